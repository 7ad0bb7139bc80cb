/* Iterations of the program, see iteration.h. */
#include "shim/core/iteration.h"

#include "shim/core/cut.h"
#include "shim/core/ranges.h"
#include "shim/driver/log.h"
#include "shim/driver/settings.h"

#include "base/array.h"
#include "base/hash.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Guarded by the core's lock, but for what is atomic. */
static struct {
    struct period *period; /* NULL: not created yet */
    bool has_failed;       /* it could not be created */
    bool is_open;
    bool is_loose;    /* see iteration_is_loose */
    uint64_t wait_ns; /* atomic: since the last event */
    bool names_next;  /* atomic: the next event begins an iteration */
    uint64_t events;  /* of the open iteration */
    uint64_t seen;    /* the newest iteration whose report was read */
    struct iteration_figures figures;
    struct match {
        const char *name;
        bool begins; /* it matches --iteration-kernel */
    } * matches;
    size_t match_count, match_capacity;
    regex_t pattern;
} iterations;

static bool is_on(void)
{
    return settings_get()->mode == CAPU_MODE_GUIDED;
}

static uint64_t now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t iteration_wait_begin(void)
{
    return is_on() ? now_ns() : 0;
}

void iteration_wait_end(uint64_t begun_ns)
{
    if (begun_ns != 0) {
        (void)__atomic_fetch_add(&iterations.wait_ns, now_ns() - begun_ns, __ATOMIC_RELAXED);
    }
}

uint64_t iteration_mix_pointer(uint64_t pointers, uint64_t ordinal, uint64_t offset)
{
    return hash_mix(hash_mix(pointers + 1, ordinal), offset);
}

bool iteration_is_loose(void)
{
    return iterations.is_loose;
}

uint64_t iteration_join_pointers(uint64_t pointers, uint64_t more)
{
    return hash_mix(pointers + 1, more);
}

void iteration_name_next(void)
{
    __atomic_store_n(&iterations.names_next, true, __ATOMIC_RELAXED);
}

/* Whether the kernel is one that begins iterations. Few names, and each is compared once. */
static bool is_named(const char *name)
{
    struct match match = {.name = name};

    for (size_t i = 0; i < iterations.match_count; i++) {
        if (iterations.matches[i].name == name) {
            return iterations.matches[i].begins;
        }
    }
    match.begins = regexec(&iterations.pattern, name, 0, NULL, 0) == 0;
    if (array_reserve(&iterations.matches, &iterations.match_capacity, iterations.match_count + 1,
                      sizeof(iterations.matches[0]))) {
        iterations.matches[iterations.match_count++] = match;
    }
    return match.begins;
}

static bool create_period(void)
{
    const char *pattern = settings_get()->iteration_kernel;

    if (iterations.period != NULL || iterations.has_failed) {
        return iterations.period != NULL;
    }
    if (pattern != NULL && regcomp(&iterations.pattern, pattern, REG_EXTENDED | REG_NOSUB) != 0) {
        log_line("--iteration-kernel %s is not a regular expression; no iteration is guided",
                 pattern);
    } else {
        iterations.period =
            period_create(pattern != NULL || settings_get()->iteration_range != NULL);
    }
    iterations.has_failed = iterations.period == NULL;
    return iterations.period != NULL;
}

/* Counts what became of the newest iteration whose work is complete, if that is a new one. */
static void read_report(capu_context *context)
{
    struct iteration_figures *figures = &iterations.figures;
    capu_report report = CAPU_REPORT_INIT;
    bool was_guided;

    if (capu_report_get(context, &report) != CAPU_OK || report.iteration <= iterations.seen) {
        return;
    }
    iterations.seen = report.iteration;
    was_guided = report.mode == CAPU_MODE_GUIDED;
    figures->diverged_count += report.diverged != 0;
    figures->guided_count += was_guided && report.diverged == 0;
    figures->unplaced_count += was_guided && report.diverged == 0 && report.unplaced != 0;
    figures->unplanned_count += !was_guided && report.diverged == 0;
    if (report.timed != 0) {
        figures->timed_count++;
        figures->stall_ns += report.stall_ns;
    }
    if (was_guided || report.diverged != 0) {
        period_note(iterations.period, report.diverged == 0);
    }
}

/* The device completes an iteration while the next one goes on. Asked now and then, the library has
   its report before that of the next. */
static void look_back(capu_context *context)
{
    uint64_t events = ++iterations.events;

    if ((events & (events - 1)) == 0 && iterations.seen + 1 < iterations.figures.count) {
        read_report(context);
    }
}

/* False: it is still open. */
static bool end_iteration(capu_context *context)
{
    capu_status status = iterations.is_open ? capu_iteration_end(context) : CAPU_OK;

    if (status != CAPU_OK) {
        log_line("an iteration cannot end: %s: %s", capu_status_text(status),
                 capu_last_error(context));
        return false;
    }
    iterations.is_open = false;
    cut_defer(false);
    read_report(context);
    return true;
}

/* `name`: of the event with which it begins; NULL: that is still to come. */
static void begin_iteration(capu_context *context, const char *name)
{
    capu_status status;

    if (!end_iteration(context)) {
        return;
    }
    cut_between(context);
    status = capu_iteration_begin(context, NULL);
    if (status != CAPU_OK) {
        log_line("an iteration cannot begin: %s: %s", capu_status_text(status),
                 capu_last_error(context));
        period_close(iterations.period);
        return;
    }
    iterations.is_open = true;
    iterations.events = 0;
    iterations.figures.count++;
    iterations.figures.name = name;
    cut_defer(true);
    read_report(context);
}

void iteration_event(capu_context *context, const char *name, enum period_kind kind,
                     uint64_t pointers)
{
    struct period_event event = {.hash = hash_mix((uintptr_t)name, pointers), .kind = kind};

    if (!is_on() || !create_period()) {
        return;
    }
    event.wait_ns = __atomic_exchange_n(&iterations.wait_ns, 0, __ATOMIC_RELAXED);
    event.is_named =
        __atomic_exchange_n(&iterations.names_next, false, __ATOMIC_RELAXED) ||
        (settings_get()->iteration_kernel != NULL && kind == PERIOD_LAUNCH && is_named(name));
    iterations.is_loose |= period_is_missing(iterations.period);
    switch (period_next(iterations.period, &event)) {
    case PERIOD_BEGINS:
        begin_iteration(context, name);
        return;
    case PERIOD_ENDS:
        if (end_iteration(context)) {
            cut_between(context);
        }
        return;
    default:
        if (iterations.is_open && iterations.figures.name == NULL) {
            iterations.figures.name = name;
        }
        look_back(context);
        return;
    }
}

uint64_t iteration_allocate(capu_context *context)
{
    if (!is_on() || !create_period()) {
        return 0;
    }
    if (period_begins_early(iterations.period,
                            __atomic_load_n(&iterations.names_next, __ATOMIC_RELAXED))) {
        begin_iteration(context, NULL);
    }
    return period_events(iterations.period);
}

void iteration_close(capu_context *context)
{
    if (iterations.is_open && end_iteration(context)) {
        period_close(iterations.period);
    }
}

/* Freeing is no op of the library, and a plan may have the memory for something else after that. An
   op without operands in its place makes an iteration leave its plan in which it is not freed. */
void iteration_free(capu_context *context, uint64_t ordinal, uint64_t born)
{
    capu_op op = {.size = sizeof(op), .name = "free", .key = ordinal + 1};
    capu_status status;

    if (iterations.period != NULL) {
        period_freed(iterations.period, born);
    }
    if (!iterations.is_open) {
        return;
    }
    status = capu_access_begin(context, &op);
    if (status == CAPU_OK) {
        status = capu_access_end(context);
    }
    if (status != CAPU_OK) {
        iteration_close(context);
    }
}

struct iteration_figures iteration_figures(void)
{
    struct iteration_figures figures = iterations.figures;

    if (iterations.period != NULL) {
        figures.state = period_state(iterations.period);
    }
    return figures;
}

/*
 * NVTX ranges: programs name what they do for profilers. With --iteration-range, each range of that
 * name begins an iteration, with the first call of CUDA in it.
 *
 * NVTX is a header. At its first call it loads the library that NVTX_INJECTION64_PATH names, which
 * `capuchin run` sets to this one, and calls the function below with a way to get at the table of
 * its own functions. Those that begin ranges are set there; all others stay as they are.
 */

/* Strings that were registered: a handle is one of these two. */
static char registered[2]; /* another one; the name */

static void note_range(const char *name)
{
    const char *wanted = settings_get()->iteration_range;

    if (name != NULL && wanted != NULL && strcmp(name, wanted) == 0) {
        iteration_name_next();
    }
}

static void note_attributes(const struct range_attributes *attributes)
{
    if (attributes == NULL || attributes->size < sizeof(*attributes)) {
        return;
    }
    if (attributes->message_type == RANGE_TEXT) {
        note_range(attributes->message);
    } else if (attributes->message_type == RANGE_REGISTERED &&
               attributes->message == &registered[1]) {
        iteration_name_next();
    }
}

static int push_range(const char *name)
{
    note_range(name);
    return RANGE_NOT_TRACKED;
}

static int push_attributes(const struct range_attributes *attributes)
{
    note_attributes(attributes);
    return RANGE_NOT_TRACKED;
}

static int push_in_domain(void *domain, const struct range_attributes *attributes)
{
    (void)domain;
    return push_attributes(attributes);
}

static uint64_t begin_range(const char *name)
{
    note_range(name);
    return 0;
}

static uint64_t begin_attributes(const struct range_attributes *attributes)
{
    note_attributes(attributes);
    return 0;
}

static uint64_t begin_in_domain(void *domain, const struct range_attributes *attributes)
{
    (void)domain;
    return begin_attributes(attributes);
}

static void *register_text(void *domain, const char *text)
{
    const char *wanted = settings_get()->iteration_range;

    (void)domain;
    return &registered[text != NULL && wanted != NULL && strcmp(text, wanted) == 0];
}

/* A table has the addresses of the header's function pointers. */
static void set_function(range_function **table, unsigned count, unsigned number,
                         range_function function)
{
    if (number < count && table[number] != NULL) {
        *table[number] = function;
    }
}

int InitializeInjectionNvtx2(range_export *get_table)
{
    const struct range_callbacks *callbacks =
        settings_get()->iteration_range != NULL && get_table != NULL ? get_table(RANGE_CALLBACKS)
                                                                     : NULL;
    range_function **table = NULL;
    unsigned count = 0;

    if (callbacks == NULL || callbacks->size < sizeof(*callbacks)) {
        return 0;
    }
    if (callbacks->get(RANGE_CORE, &table, &count) != 0 && table != NULL) {
        set_function(table, count, RANGE_START_EX, (range_function)begin_attributes);
        set_function(table, count, RANGE_START, (range_function)begin_range);
        set_function(table, count, RANGE_PUSH_EX, (range_function)push_attributes);
        set_function(table, count, RANGE_PUSH, (range_function)push_range);
    }
    if (callbacks->get(RANGE_CORE_2, &table, &count) != 0 && table != NULL) {
        set_function(table, count, RANGE_DOMAIN_START_EX, (range_function)begin_in_domain);
        set_function(table, count, RANGE_DOMAIN_PUSH_EX, (range_function)push_in_domain);
        set_function(table, count, RANGE_DOMAIN_REGISTER, (range_function)register_text);
    }
    return 1;
}

/* How far launches reach, see reach.h. */
#include "shim/launch/reach_parts.h"

#include "shim/core/alloc.h"
#include "shim/core/core.h"
#include "shim/core/cut.h"
#include "shim/core/iteration.h"
#include "shim/driver/log.h"
#include "shim/driver/real.h"
#include "shim/driver/settings.h"
#include "shim/launch/reach_cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Some hundred bytes per launch that differs from all others. */
enum { CACHE_BYTES = 16 << 20 };

/* Operands of a launch that were found before. */
struct noted {
    uint64_t allocations;   /* alloc_generation() */
    uint64_t cuts;          /* cut_generation() */
    uint64_t written_bytes; /* of operands that are written as a whole */
    uint64_t pointers;      /* find_pointers */
    uint64_t count;
    bool is_complete; /* whole writes were sought, or there are none */
    bool has_others;  /* see operands.h */
    bool is_loose;    /* iteration_is_loose() */
    capu_operand operands[];
};

/* What launches store to for certain. */
struct covered {
    uint64_t count;
    struct reach_interval intervals[];
};

/* Guarded by the core's lock. */
static struct {
    struct reach_cache results; /* of slices: struct reach_result of each report */
    struct reach_cache noted;   /* struct noted */
    struct reach_cache covered; /* struct covered, by the same keys as results */
    struct slice_result ranges[REACH_REPORTS_MOST];
    struct reach_result relative[REACH_REPORTS_MOST];
    struct reach_key key;
    struct operands reads; /* all that may be read */
    struct reach_interval intervals[REACH_INTERVALS_MOST];
    struct operands covers; /* these, for one launch */
    unsigned char block[PARAMETERS_BYTES_MOST];
} found = {.results.bytes_most = CACHE_BYTES,
           .noted.bytes_most = CACHE_BYTES,
           .covered.bytes_most = CACHE_BYTES};

bool reach_is_due(const struct code_kernel *kernel)
{
    return kernel->reason == NULL && !kernel->roles->waits_for_others &&
           settings_get()->mode != CAPU_MODE_OFF &&
           __atomic_load_n(&kernel->reach, __ATOMIC_ACQUIRE) == NULL;
}

/* Makes a slice, without variables if the driver does not say where they are. */
static capu_status emit(const struct code_kernel *kernel, const struct slice_wish *wish,
                        struct reach *reach)
{
    struct slice_wish less = *wish;
    capu_status status =
        slice_emit_with(kernel->module, kernel->roles, wish, &reach->slice, &reach->problem);

    if (status != CAPU_OK || reach_find_variables(kernel, reach) == DRIVER_SUCCESS) {
        return status;
    }
    less.variables = false;
    slice_finish(&reach->slice);
    status = slice_emit_with(kernel->module, kernel->roles, &less, &reach->slice, &reach->problem);
    return status != CAPU_OK || reach_find_variables(kernel, reach) == DRIVER_SUCCESS
               ? status
               : CAPU_NO_HOST_MEMORY;
}

/* Once: without a compiler, no kernel has a slice. */
static void log_compiler(CUresult result)
{
    const char *reason = result == DRIVER_NO_COMPILER         ? "is not installed"
                         : result == DRIVER_OLD_COMPILER      ? "is older than the program's PTX"
                         : result == DRIVER_COMPILER_DISABLED ? "is disabled"
                                                              : NULL;

    if (reason != NULL) {
        log_line("the driver's compiler for PTX %s, so launches are taken to reach over whole "
                 "allocations (docs/unmodified.md)",
                 reason);
    }
}

static capu_status make_slice(const struct code_kernel *kernel, const struct slice_wish *wish,
                              struct reach *reach)
{
    capu_status status = emit(kernel, wish, reach);
    CUresult result;

    if (status == CAPU_OK && reach->slice.report_count > REACH_REPORTS_MOST) {
        return error_text_set(&reach->problem, CAPU_TOO_LARGE, "its slice has too many reports");
    }
    if (status != CAPU_OK) {
        return status;
    }
    reach->row_bytes = slice_key_bytes(&reach->slice);
    if (!reach_key_fits(kernel->roles, reach)) {
        return error_text_set(&reach->problem, CAPU_TOO_LARGE, "its slice has too many inputs");
    }
    result = reach_load(kernel->module, kernel->roles, reach);
    if (result != DRIVER_SUCCESS) {
        reach->function = NULL;
        log_compiler(result);
        return error_text_set(&reach->problem, CAPU_DEVICE_FAILED,
                              "the driver does not load its slice: error %d", result);
    }
    return CAPU_OK;
}

/* Makes a slice, or notes why there is none. NULL: no host memory. */
static struct reach *make_reach(const struct code_kernel *kernel, const struct slice_wish *wish)
{
    struct reach *reach = calloc(1, sizeof(*reach));
    uint64_t reported = 0;

    if (reach == NULL) {
        return NULL;
    }
    if (make_slice(kernel, wish, reach) != CAPU_OK && reach->problem.text[0] == '\0') {
        (void)error_text_set(&reach->problem, CAPU_NO_HOST_MEMORY, "no memory for its slice");
    }
    for (size_t i = 0; i < reach->slice.report_count; i++) {
        reported |= reach->slice.reports[i].words;
    }
    reach->whole = reach->slice.whole | ~reported;
    reach->known = reported & ~reach->slice.whole;
    return reach;
}

void reach_prepare(struct code_kernel *kernel)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    struct slice_wish wish = {.variables = true};
    struct reach *reach;

    (void)pthread_mutex_lock(&lock);
    if (__atomic_load_n(&kernel->reach, __ATOMIC_ACQUIRE) == NULL &&
        (reach = make_reach(kernel, &wish)) != NULL) {
        wish.data_words = reach->slice.whole;
        if (reach->function != NULL && wish.data_words != 0) {
            reach->data = make_reach(kernel, &wish);
        }
        __atomic_store_n(&kernel->reach, reach, __ATOMIC_RELEASE);
    }
    (void)pthread_mutex_unlock(&lock);
}

/* What the driver holds for a slice. */
struct held {
    CUmodule module;
    CUdeviceptr copy; /* of a constant; one after the other */
};

/* Takes something of a slice. False: it has nothing. */
static bool take_held(struct reach *reach, struct held *held)
{
    for (size_t i = 0; reach->variables != NULL && i < reach->slice.source_count; i++) {
        if (reach->variables[i].copy != 0) {
            *held = (struct held){.copy = reach->variables[i].copy};
            reach->variables[i].copy = 0;
            return true;
        }
    }
    if (reach->module == NULL) {
        return false;
    }
    *held = (struct held){.module = reach->module};
    reach->function = NULL;
    reach->cover = NULL;
    reach->module = NULL;
    return true;
}

/* Takes something of a slice whose kernel is gone. False: there is nothing more. */
static bool take_gone(struct held *held)
{
    for (struct code_kernel *kernel = code_kernels(); kernel != NULL; kernel = kernel->next) {
        struct reach *reach = __atomic_load_n(&kernel->reach, __ATOMIC_ACQUIRE);

        if (kernel->is_gone && reach != NULL &&
            (take_held(reach, held) || (reach->data != NULL && take_held(reach->data, held)))) {
            return true;
        }
    }
    return false;
}

void reach_unload(void)
{
    struct held held;
    bool has_taken;

    while (core_is_open() && core_enter() == DRIVER_SUCCESS) {
        has_taken = take_gone(&held);
        core_leave();
        if (!has_taken) {
            return;
        }
        (void)(held.module != NULL ? real_calls()->cuModuleUnload(held.module)
                                   : real_calls()->cuMemFree_v2(held.copy));
    }
}

/* Stores the results relative to their pointers. False: they hold for these pointers only. */
static bool make_relative(const struct code_kernel *kernel, struct reach_result *to)
{
    const struct slice *slice = &kernel->reach->slice;
    bool is_relative = true;

    for (size_t i = 0; i < slice->report_count; i++) {
        const struct slice_result *from = &found.ranges[i];

        to[i] = (struct reach_result){0, 0};
        if (from->end == UINT64_MAX) {
            to[i].bytes = UINT64_MAX;
        } else if (from->end > from->lowest) {
            to[i].lowest =
                from->lowest - slice_base(kernel->roles, &slice->reports[i], found.block);
            to[i].bytes = from->end - from->lowest;
        }
        is_relative &= from->end == UINT64_MAX || slice_is_relative(from);
    }
    return is_relative;
}

/* The results for found.key, from the cache or by the slice. NULL: there are none. Valid until the
   next call. */
static const struct reach_result *find_results(struct code_kernel *kernel,
                                               const struct launch *launch, bool *is_repeated)
{
    struct reach *reach = kernel->reach;
    size_t bytes = reach->slice.report_count * sizeof(struct reach_result);
    struct reach_result *results =
        reach_cache_get(&found.results, found.key.key, found.key.results_bytes);

    *is_repeated = results != NULL;
    if (results != NULL) {
        reach->repeat_count++;
        return results;
    }
    reach->run_count++;
    if (reach_run(reach, launch, found.block, found.ranges) != DRIVER_SUCCESS) {
        return NULL;
    }
    if (make_relative(kernel, found.relative)) {
        results = reach_cache_put(&found.results, found.key.key, found.key.results_bytes, bytes);
    }
    if (results != NULL) {
        memcpy(results, found.relative, bytes);
    }
    return found.relative;
}

/* Whole writes. */

/* The same as make_relative, the other way round. */
static void make_absolute(const struct code_kernel *kernel, const struct reach_result *from)
{
    const struct slice *slice = &kernel->reach->slice;

    for (size_t i = 0; i < slice->report_count; i++) {
        uint64_t lowest =
            from[i].lowest + slice_base(kernel->roles, &slice->reports[i], found.block);

        found.ranges[i] = (struct slice_result)SLICE_RESULT_NONE;
        if (from[i].bytes == UINT64_MAX) {
            found.ranges[i] = (struct slice_result){0, UINT64_MAX};
        } else if (from[i].bytes > 0) {
            found.ranges[i] = (struct slice_result){lowest, lowest + from[i].bytes};
        }
    }
}

/* What launches with found.key store to for certain, from the cache or by the slice; relative as
   results are. NULL: no host memory. Valid until the next call. */
static const struct covered *find_covered(const struct code_kernel *kernel,
                                          const struct launch *launch,
                                          const struct reach_result *results)
{
    const struct reach *reach = kernel->reach;
    struct covered *covered =
        reach_cache_get(&found.covered, found.key.key, found.key.results_bytes);
    size_t count;

    if (covered != NULL) {
        return covered;
    }
    make_absolute(kernel, results);
    count = reach_cover(reach, launch, found.block, found.ranges, found.intervals);
    covered = reach_cache_put(&found.covered, found.key.key, found.key.results_bytes,
                              sizeof(*covered) + count * sizeof(covered->intervals[0]));
    if (covered == NULL) {
        return NULL;
    }
    covered->count = count;
    for (size_t i = 0; i < count; i++) {
        const struct slice_report *report = &reach->slice.reports[found.intervals[i].report];

        covered->intervals[i] = found.intervals[i];
        covered->intervals[i].first -= slice_base(kernel->roles, report, found.block);
    }
    return covered;
}

/* Makes writes of updates, where that is possible. Returns their bytes. */
static uint64_t find_writes(const struct code_kernel *kernel, const struct launch *launch,
                            const struct reach_result *results, struct operands *operands)
{
    const struct covered *covered = find_covered(kernel, launch, results);

    found.covers.count = 0;
    for (uint64_t i = 0; covered != NULL && i < covered->count; i++) {
        const struct reach_interval *interval = &covered->intervals[i];
        const struct slice_report *report = &kernel->reach->slice.reports[interval->report];

        operands_put(&found.covers,
                     interval->first + slice_base(kernel->roles, report, found.block),
                     interval->bytes, CAPU_WRITE);
    }
    return reach_find_writes(operands, &found.reads, &found.covers);
}

/* Operands. */

/* What iterations are found by: the hash of the launch's pointers. */
static uint64_t find_pointers(const struct code_kernel *kernel)
{
    size_t count = settings_get()->mode == CAPU_MODE_GUIDED ? kernel->roles->word_count : 0;
    uint64_t pointers = 0;

    for (size_t i = 0; i < count; i++) {
        uint32_t offset = 0;
        uint64_t pointer;

        while (parameters_next(found.block, kernel->roles, &kernel->roles->words[i], &offset,
                               &pointer)) {
            pointers = operands_mix_event(pointers, pointer);
        }
    }
    return pointers;
}

/* Keeps the operands of a launch for found.key. */
static void note_operands(const struct operands *operands, bool is_complete)
{
    size_t bytes = operands->count * sizeof(operands->list[0]);
    struct noted *noted =
        reach_cache_put(&found.noted, found.key.key, found.key.bytes, sizeof(*noted) + bytes);

    if (noted != NULL) {
        *noted = (struct noted){.allocations = alloc_generation(),
                                .cuts = cut_generation(),
                                .written_bytes = operands->written_bytes,
                                .pointers = operands->pointers,
                                .count = operands->count,
                                .is_complete = is_complete,
                                .has_others = operands->has_others,
                                .is_loose = iteration_is_loose()};
        if (bytes > 0) {
            memcpy(noted->operands, operands->list, bytes);
        }
    }
}

/* Whether the launch may have whole writes. What is written is not fetched then, and must not be
   missed if the driver refuses the launch. So there are none in launches of special kinds, and none
   of a kernel of which a launch has failed. */
static bool may_write(const struct reach *reach, const struct launch *launch)
{
    return reach->cover != NULL && launch->is_plain && !reach->has_failed;
}

/* Adds the operands of a launch that was seen before. False: they are not known; *is_seen if it
   was. */
static bool add_noted(struct reach *reach, const struct launch *launch, struct operands *operands,
                      bool *is_seen)
{
    bool writes = may_write(reach, launch);
    const struct noted *noted = reach_cache_get(&found.noted, found.key.key, found.key.bytes);

    *is_seen = noted != NULL && noted->allocations == alloc_generation();
    if (!*is_seen || noted->cuts != cut_generation() || noted->is_loose != iteration_is_loose() ||
        (writes ? !noted->is_complete : noted->written_bytes > 0)) {
        return false;
    }
    reach->repeat_count++;
    reach->written_bytes += noted->written_bytes;
    operands->written_bytes = noted->written_bytes;
    operands->has_others = noted->has_others;
    operands->pointers = noted->pointers;
    operands_add_list(operands, noted->operands, noted->count);
    return true;
}

/* Adds operands that are not known yet. Errors: those of reach_add. */
static CUresult add_found(const struct code_kernel *kernel, const struct launch *launch,
                          const struct reach_result *results, struct operands *operands, bool cuts)
{
    found.reads.count = 0;
    found.reads.has_failed = false;
    return reach_list_operands(kernel, launch, found.block, results, operands, &found.reads, cuts);
}

/* Whether operands can depend on data, so that they hold for one launch only. */
static bool has_data(const struct reach *reach)
{
    return reach->data != NULL && reach->data->function != NULL;
}

/* Adds the operands of a launch whose kernel has a slice. Whole writes are sought when a launch is
   repeated: the driver has accepted it then. */
static CUresult add_sliced(struct code_kernel *kernel, const struct launch *launch,
                           struct operands *operands)
{
    struct reach *reach = kernel->reach;
    const struct reach_result *results;
    bool is_repeated;
    bool is_seen;
    CUresult result;

    reach_find_key(kernel, launch, found.block, &found.key);
    if (add_noted(reach, launch, operands, &is_seen)) {
        return DRIVER_SUCCESS;
    }
    operands->pointers = find_pointers(kernel);
    results = find_results(kernel, launch, &is_repeated);
    result = add_found(kernel, launch, results, operands, !is_seen);
    is_repeated &= may_write(reach, launch);
    if (results == NULL) {
        reach->whole_count++;
    } else if (result == DRIVER_SUCCESS) {
        operands->written_bytes = is_repeated ? find_writes(kernel, launch, results, operands) : 0;
        if (!operands->has_failed && !has_data(reach)) {
            note_operands(operands, is_repeated);
        }
    }
    reach->written_bytes += operands->written_bytes;
    operands_note_list(operands);
    return result;
}

CUresult reach_add(struct code_kernel *kernel, const struct launch *launch,
                   struct operands *operands)
{
    struct reach *reach = __atomic_load_n(&kernel->reach, __ATOMIC_ACQUIRE);
    CUresult result;

    if (!parameters_block(&launch->parameters, kernel->roles, found.block)) {
        return DRIVER_INVALID_VALUE;
    }
    if (reach != NULL && reach->function != NULL) {
        memset(found.block + reach->slice.results_offset, 0,
               reach->slice.parameter_bytes - reach->slice.results_offset);
    }
    operands->stores_elsewhere = reach_stores_elsewhere(kernel->roles, found.block);
    if (reach != NULL && reach->function != NULL) {
        /* What the slice would read must not change before the kernel reads it. */
        if (reach->slice.source_count == 0 || (launch->is_next && !operands->stores_elsewhere)) {
            return add_sliced(kernel, launch, operands);
        }
        reach->whole_count++;
    }
    operands->pointers = find_pointers(kernel);
    result = add_found(kernel, launch, NULL, operands, false);
    operands_note_list(operands);
    return result;
}

void reach_note_failure(const struct code_kernel *kernel, bool has_lost)
{
    struct reach *reach = __atomic_load_n(&kernel->reach, __ATOMIC_ACQUIRE);

    if (reach == NULL) {
        return;
    }
    reach->has_failed = true;
    if (has_lost) {
        log_line("the driver has refused a launch of the kernel %s, and accepted others like it: "
                 "what was in the memory that it writes as a whole may be lost",
                 kernel->name);
    }
}

bool reach_summarise(const struct code_kernel *kernel, struct reach_summary *summary)
{
    const struct reach *reach = __atomic_load_n(&kernel->reach, __ATOMIC_ACQUIRE);

    if (reach == NULL) {
        return false;
    }
    *summary = (struct reach_summary){
        .run_count = reach->run_count,
        .repeat_count = reach->repeat_count,
        .whole_count = reach->whole_count,
        .written_bytes = reach->written_bytes,
        .reason = reach->problem.text[0] != '\0' ? reach->problem.text : NULL,
        .is_loaded = reach->module != NULL,
        .read_count = reach->data != NULL ? reach->data->run_count : 0,
    };
    return true;
}

const char *reach_whole_reason(const struct code_kernel *kernel, size_t word)
{
    const struct reach *reach = __atomic_load_n(&kernel->reach, __ATOMIC_ACQUIRE);

    if (reach == NULL || word >= SLICE_WORDS_MOST ||
        (has_data(reach) && (reach->data->known >> word & 1) != 0)) {
        return NULL;
    }
    return reach->slice.reasons[word];
}

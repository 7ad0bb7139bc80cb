/*
 * Slices that read variables of the module, and data (interpose/slice/slice.h), compared with their
 * kernels, which are those of sources.cu. First comes the slice without data; its ranges are the
 * bounds of what the second one reads, which finds out how far the remaining pointers reach.
 */
#include "interpose/slice/slice.h"

#include "base/random.h"
#include "tests/ptx/machine/machine.h"
#include "tests/support/effort.h"
#include "tests/support/suite.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    TEXT_BYTES = 1 << 16,
    POINTERS = 3,
    NUMBERS = 1 << 14, /* that each points to, around the middle */
    REPORTS_MOST = 16,
    SOURCES_MOST = 4,
    LAUNCHES_LEAST = 12,
    LAUNCHES = 100,
};

/* Which slice finds out how far a pointer reaches: the first or the one with data, exactly, or one
   of them what may be too much. */
enum by { NOTHING, FIRST, SECOND, MAY };

/* What is known of the three pointers: by which slice, or only as a whole. */
static const struct {
    const char *kernel;
    const char *words;
} expected[] = {
    {"constant_table", "ids ids -"},
    {"constant_shape", "ids ids -"},
    {"device_scalar", "ids ids -"},
    {"device_vector", "ids ids -"},
    {"beyond_table", "ids ids -"},
    {"changes_variable", "whole ids -"},
    {"managed_variable", "whole ids -"},
    {"gathered", "ids data ids"},
    {"scattered", "data may ids"},
    {"gathered_vector", "ids data ids"},
    {"rows", "ids data ids"},
    {"segments", "ids data ids"},
    {"by_class", "data ids may"},
    {"by_both", "ids data ids"},
    {"own_index", "whole ids ids"},
    {"staged", "ids whole whole"},
    {"unknown_way", "whole ids may"},
};

enum { KERNELS = sizeof(expected) / sizeof(expected[0]) };

/* The parameters that all kernels have, and those of a slice. */
struct parameters {
    int32_t *pointers[POINTERS];
    int32_t count;
    uint32_t unused;
    struct slice_result *results;
    struct {
        uint64_t lowest, end;
    } sources[SOURCES_MOST];
};

/* A kernel and its slices. */
struct subject {
    struct slice slices[2]; /* text is NULL where there is none */
    struct machine_module *sliced[2];
    const struct kernel *kernel;
};

struct fixture {
    char text[TEXT_BYTES];
    struct ptx_module module;
    struct kernels kernels;
    struct machine_module *full;
    struct subject subjects[KERNELS];
};

/* A launch, and what is seen of it. */
struct launch {
    const struct fixture *fixture;
    const struct subject *subject;
    uint32_t grid;
    uint32_t block;
    struct parameters parameters;
    struct slice_result seen[POINTERS]; /* `lowest` is UINT64_MAX if there is no access */
    struct slice_result results[2][REPORTS_MOST];
    const struct slice *slice; /* that is running */
};

static int32_t memory[POINTERS][NUMBERS];

static void open_slice(const struct fixture *fixture, struct subject *subject, unsigned which,
                       uint64_t data_words)
{
    struct slice_wish wish = {.variables = true, .data_words = data_words};
    struct error_text problem = {""};
    char text[TEXT_BYTES];
    struct slice *slice = &subject->slices[which];

    if (slice_emit_with(&fixture->module, subject->kernel, &wish, slice, &problem) != CAPU_OK) {
        ck_assert_msg(strstr(problem.text, "has no slice") != NULL, "%s", problem.text);
        return;
    }
    ck_assert_uint_le(slice->report_count, REPORTS_MOST);
    ck_assert_uint_le(slice->source_count, SOURCES_MOST);
    ck_assert_uint_eq(slice->results_offset, offsetof(struct parameters, results));
    slice_head(&fixture->module, text, sizeof(text));
    ck_assert_uint_lt(strlen(text) + slice->text_bytes, sizeof(text));
    strcat(text, slice->text);
    ck_assert_msg(machine_open(text, strlen(text), &subject->sliced[which], &problem) == CAPU_OK,
                  "%s\n%s", problem.text, text);
}

static void open_subject(struct fixture *fixture, size_t index)
{
    struct subject *subject = &fixture->subjects[index];

    for (size_t i = 0; i < fixture->kernels.count; i++) {
        if (span_is(fixture->kernels.kernels[i].name, expected[index].kernel)) {
            subject->kernel = &fixture->kernels.kernels[i];
        }
    }
    ck_assert_msg(subject->kernel != NULL, "%s", expected[index].kernel);
    open_slice(fixture, subject, 0, 0);
    if (subject->slices[0].text != NULL && subject->slices[0].whole != 0) {
        open_slice(fixture, subject, 1, subject->slices[0].whole);
    }
}

static struct fixture *open_fixture(void)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    FILE *file = fopen(SLICE_SOURCES, "r");
    struct error_text problem = {""};
    size_t count;

    ck_assert(fixture != NULL && file != NULL);
    count = fread(fixture->text, 1, TEXT_BYTES, file);
    ck_assert_uint_lt(count, TEXT_BYTES);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(ptx_parse(fixture->text, count, &fixture->module, &problem), CAPU_OK);
    ck_assert_int_eq(roles_find(&fixture->module, &fixture->kernels), CAPU_OK);
    ck_assert_uint_eq(fixture->kernels.count, KERNELS);
    ck_assert_int_eq(machine_open(fixture->text, count, &fixture->full, &problem), CAPU_OK);
    for (size_t i = 0; i < KERNELS; i++) {
        open_subject(fixture, i);
    }
    return fixture;
}

static void close_fixture(struct fixture *fixture)
{
    for (size_t i = 0; i < KERNELS; i++) {
        for (unsigned j = 0; j < 2; j++) {
            slice_finish(&fixture->subjects[i].slices[j]);
            machine_close(fixture->subjects[i].sliced[j]);
        }
    }
    machine_close(fixture->full);
    roles_finish(&fixture->kernels);
    ptx_finish(&fixture->module);
    free(fixture);
}

/* Which pointer a word is. */
static size_t pointer_of(const struct kernel *kernel, size_t word)
{
    return kernel->words[word].parameter;
}

/* What reports a word. */
static enum by reported_by(const struct subject *subject, size_t word)
{
    for (unsigned i = 0; i < 2; i++) {
        for (size_t j = 0; j < subject->slices[i].report_count; j++) {
            if (subject->slices[i].text != NULL &&
                (subject->slices[i].reports[j].words >> word & 1) != 0 &&
                (subject->slices[i].whole >> word & 1) == 0) {
                return subject->slices[i].reports[j].is_may ? MAY : i == 0 ? FIRST : SECOND;
            }
        }
    }
    return NOTHING;
}

START_TEST(what_slices_read_is_as_expected)
{
    static const char *const names[] = {"whole", "ids", "data", "may"};
    struct fixture *fixture = open_fixture();

    for (size_t i = 0; i < KERNELS; i++) {
        const struct kernel *kernel = fixture->subjects[i].kernel;
        const char *words[POINTERS] = {"-", "-", "-"};
        char text[64];

        for (size_t j = 0; j < kernel->word_count; j++) {
            words[pointer_of(kernel, j)] = names[reported_by(&fixture->subjects[i], j)];
        }
        (void)snprintf(text, sizeof(text), "%s %s %s", words[0], words[1], words[2]);
        ck_assert_msg(strcmp(text, expected[i].words) == 0, "%s: %s, expected %s",
                      expected[i].kernel, text, expected[i].words);
    }
    close_fixture(fixture);
}
END_TEST

/* Launches. */

static void widen(struct slice_result *range, uint64_t lowest, uint64_t end)
{
    range->lowest = lowest < range->lowest ? lowest : range->lowest;
    range->end = end > range->end ? end : range->end;
}

static bool observe_full(void *context, const struct machine_access *access)
{
    struct launch *launch = context;
    uint64_t offset = access->address - (uint64_t)(uintptr_t)memory;

    if (offset < sizeof(memory)) {
        widen(&launch->seen[offset / sizeof(memory[0])], access->address,
              access->address + access->bytes);
    }
    return true;
}

/* A slice writes its results, and reads them and what it was given bounds for. */
static bool observe_slice(void *context, const struct machine_access *access)
{
    const struct launch *launch = context;
    uint64_t offset = access->address - (uint64_t)(uintptr_t)launch->results;

    if (offset < sizeof(launch->results)) {
        return true;
    }
    for (size_t i = 0; i < launch->slice->source_count; i++) {
        if (access->kind == MACHINE_READ &&
            access->address >= launch->parameters.sources[i].lowest &&
            access->address + access->bytes <= launch->parameters.sources[i].end) {
            return true;
        }
    }
    return false;
}

static void run(struct launch *launch, const struct machine_module *module, const char *ending,
                machine_observer observer)
{
    struct machine_launch call = {.grid = {launch->grid, 1, 1},
                                  .block = {launch->block, 1, 1},
                                  .parameters = &launch->parameters,
                                  .observer = observer,
                                  .observer_context = launch};
    struct error_text problem = {""};
    char name[128];

    (void)snprintf(name, sizeof(name), "%.*s%s", (int)launch->subject->kernel->name.length,
                   launch->subject->kernel->name.text, ending);
    ck_assert_msg(machine_run(machine_function_find(module, name), &call, &problem) == CAPU_OK,
                  "%s: %s", name, problem.text);
}

/* The bounds of what a slice reads: variables as they are, and for words what the first slice has
   found. */
static void set_source(struct launch *launch, size_t index)
{
    const struct slice_source *source = &launch->slice->sources[index];
    const struct slice *first = &launch->subject->slices[0];
    struct slice_result range = SLICE_RESULT_NONE;

    ck_assert_uint_eq(source->offset,
                      offsetof(struct parameters, sources) + index * 2 * sizeof(uint64_t));
    if (source->variable != NULL) {
        const struct machine_variable *variable =
            machine_variable_find(launch->fixture->full, source->variable);

        ck_assert_ptr_nonnull(variable);
        ck_assert_int_eq(source->is_constant, variable->space == MACHINE_CONST);
        range.lowest = (uint64_t)(uintptr_t)variable->address;
        range.end = range.lowest + variable->bytes;
    }
    for (size_t i = 0; source->variable == NULL && i < first->report_count; i++) {
        if (first->reports[i].words == (uint64_t)1 << source->word) {
            widen(&range, launch->results[0][i].lowest, launch->results[0][i].end);
        }
    }
    launch->parameters.sources[index].lowest = range.lowest;
    launch->parameters.sources[index].end = range.end;
}

static void run_slice(struct launch *launch, unsigned which)
{
    launch->slice = &launch->subject->slices[which];
    launch->parameters.results = launch->results[which];
    for (size_t i = 0; i < REPORTS_MOST; i++) {
        launch->results[which][i] = (struct slice_result)SLICE_RESULT_NONE;
    }
    if (launch->slice->text == NULL) {
        return;
    }
    for (size_t i = 0; i < launch->slice->source_count; i++) {
        set_source(launch, i);
    }
    run(launch, launch->subject->sliced[which], "_slice", observe_slice);
}

static void make(struct launch *launch, uint64_t *random)
{
    const struct machine_variable *variable;

    for (size_t i = 0; i < POINTERS; i++) {
        launch->parameters.pointers[i] = memory[i] + NUMBERS / 2 + 4 * (random_next(random) % 16);
        launch->seen[i] = (struct slice_result)SLICE_RESULT_NONE;
        for (size_t j = 0; j < NUMBERS; j++) {
            memory[i][j] = (int32_t)(random_next(random) % 48);
        }
    }
    for (size_t i = 0; (variable = machine_variable_at(launch->fixture->full, i)) != NULL; i++) {
        for (size_t j = 0; j < variable->bytes / 4; j++) {
            int32_t number = (int32_t)(random_next(random) % 48);

            memcpy((char *)variable->address + 4 * j, &number, sizeof(number));
        }
    }
    /* A number of 64 bits. */
    variable = machine_variable_find(launch->fixture->full, "shape");
    memset((char *)variable->address + 4, 0, 4);
    launch->parameters.count = (int32_t)(random_next(random) % 40);
    launch->grid = 1 + (uint32_t)(random_next(random) % 3);
    launch->block = 1 + (uint32_t)(random_next(random) % 70);
}

/* What the slices say of a word. */
static struct slice_result reported(const struct launch *launch, size_t word)
{
    struct slice_result range = SLICE_RESULT_NONE;

    for (unsigned i = 0; i < 2; i++) {
        const struct slice *slice = &launch->subject->slices[i];

        for (size_t j = 0; j < slice->report_count; j++) {
            if ((slice->reports[j].words >> word & 1) != 0) {
                widen(&range, launch->results[i][j].lowest, launch->results[i][j].end);
            }
        }
    }
    return range;
}

static void compare(struct launch *launch, unsigned *compared)
{
    const struct kernel *kernel = launch->subject->kernel;

    /* The slices first, as they are used: the kernel may change what they read. */
    run_slice(launch, 0);
    run_slice(launch, 1);
    run(launch, launch->fixture->full, "", observe_full);
    for (size_t i = 0; i < kernel->word_count; i++) {
        struct slice_result range = reported(launch, i);
        struct slice_result seen = launch->seen[pointer_of(kernel, i)];

        enum by by = reported_by(launch->subject, i);
        bool is_right =
            by == MAY ? seen.end == 0 || (range.lowest <= seen.lowest && range.end >= seen.end)
                      : range.lowest == seen.lowest && range.end == seen.end;

        if (by != NOTHING) {
            ck_assert_msg(is_right,
                          "%.*s, word %zu: accessed %" PRIx64 " to %" PRIx64 ", reported %" PRIx64
                          " to %" PRIx64,
                          (int)kernel->name.length, kernel->name.text, i, seen.lowest, seen.end,
                          range.lowest, range.end);
            *compared += seen.end != 0;
        }
    }
}

START_TEST(what_is_read_gives_exact_ranges)
{
    struct fixture *fixture = open_fixture();
    uint64_t random = 5;

    for (size_t i = 0; i < KERNELS; i++) {
        struct launch launch = {.fixture = fixture, .subject = &fixture->subjects[i]};
        unsigned compared = 0;

        for (unsigned j = 0; j < LAUNCHES_LEAST + (unsigned)effort_share(LAUNCHES); j++) {
            make(&launch, &random);
            compare(&launch, &compared);
        }
        ck_assert_msg(compared >= LAUNCHES_LEAST, "%s: %u ranges", expected[i].kernel, compared);
    }
    close_fixture(fixture);
}
END_TEST

/* What lies outside of the bounds is not read: then nothing is known. */
START_TEST(reading_outside_of_bounds_gives_up)
{
    static const struct {
        const char *kernel;
        unsigned slice;
        int32_t count;
        bool is_cut; /* the source ends early */
        bool gives_up;
    } launches[] = {
        {"beyond_table", 0, 63, false, false}, {"beyond_table", 0, 64, false, true},
        {"beyond_table", 0, -1, false, true},  {"beyond_table", 0, INT32_MAX, false, true},
        {"gathered", 1, 0, false, false},      {"gathered", 1, 0, true, true},
        {"gathered_vector", 1, 0, true, true}, {"by_both", 1, 0, true, true},
    };
    struct fixture *fixture = open_fixture();
    uint64_t random = 1;

    for (size_t i = 0; i < sizeof(launches) / sizeof(launches[0]); i++) {
        struct launch launch = {.fixture = fixture};
        const struct slice_result *results = launch.results[launches[i].slice];

        for (size_t j = 0; j < KERNELS; j++) {
            if (strcmp(expected[j].kernel, launches[i].kernel) == 0) {
                launch.subject = &fixture->subjects[j];
            }
        }
        make(&launch, &random);
        launch.parameters.count = launches[i].count;
        run_slice(&launch, 0);
        for (size_t j = 0; launches[i].is_cut && j < launch.slice->report_count; j++) {
            launch.results[0][j].end -= launch.results[0][j].end != 0;
        }
        if (launches[i].slice == 1) {
            run_slice(&launch, 1);
        }
        ck_assert_msg((results[0].lowest == 0 && results[0].end == UINT64_MAX) ==
                          launches[i].gives_up,
                      "%zu: %s", i, launches[i].kernel);
    }
    close_fixture(fixture);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ptx_slice_sources");
    TCase *cases = tcase_create("sources");

    tcase_add_test(cases, what_slices_read_is_as_expected);
    tcase_add_test(cases, what_is_read_gives_exact_ranges);
    tcase_add_test(cases, reading_outside_of_bounds_gives_up);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}

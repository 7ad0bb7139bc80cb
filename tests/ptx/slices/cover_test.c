/*
 * What coverage slices say of stores that are easily mistaken for a whole write: those of cover.cu,
 * each with a launch whose coverage is known. Wrong coverage slices are caught, and where nothing
 * is certain there is none.
 */
#include "interpose/slice/cover.h"
#include "tests/ptx/slices/compare.h"
#include "tests/ptx/slices/coverage.h"
#include "tests/ptx/slices/text.h"

#include "tests/support/effort.h"
#include "tests/support/suite.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_BYTES = 1 << 18, REPORTS = 8, WORDS = 1 << 12, LAUNCHES_LEAST = 10, LAUNCHES = 90 };

/* Pointers that a slice never follows. */
#define P(number) ((uint64_t)(number) << 32)

static const struct {
    const char *kernel;
    uint32_t grid[3], block[3];
    uint64_t parameters[6];
    const char *covered; /* per pointer that is stored to: its granule, and bytes after it */
} launches[] = {
    {"triangle", {4, 1, 1}, {2, 1, 1}, {P(1), 4}, "1 by 4: 0-4 16-24 32-44 48-64"},
    {"full_triangle", {4, 1, 1}, {2, 1, 1}, {P(1), 4}, "1 by 4: 0-64"},
    {"tail", {2, 1, 1}, {32, 1, 1}, {P(1), P(2), 45}, "1 by 4: 0-180"},
    {"tail", {2, 1, 1}, {16, 1, 1}, {P(1) + 4, P(2), 45}, "1 by 4: 4-132"},
    {"tail", {2, 1, 1}, {16, 1, 1}, {P(1), P(2), 0}, "1 by 4:"},
    {"strided", {2, 1, 1}, {4, 1, 1}, {P(1), 100, 1}, "1 by 4: 0-400"},
    {"strided", {2, 1, 1}, {4, 1, 1}, {P(1), 3, 3}, "1 by 4: 0-4 12-16 24-28"},
    {"tiles", {2, 2, 1}, {8, 8, 1}, {P(1), P(2), 9, 10, 9}, "1 by 4: 0-360"},
    {"tiles", {2, 1, 1}, {8, 8, 1}, {P(1), P(2), 2, 3, 4}, "1 by 4: 0-8 16-24 32-40"},
    {"halves", {1, 1, 1}, {32, 1, 1}, {P(1), 31}, "1 by 2: 0-62"},
    {"halves", {1, 1, 1}, {8, 1, 1}, {P(1), 31}, "1 by 2: 0-32"},
    {"vectors", {2, 1, 1}, {4, 1, 1}, {P(1), 30}, "1 by 4: 0-120"},
    {"in_place", {1, 1, 1}, {32, 1, 1}, {P(1), 32}, "1 by 4: 0-128"},
    {"neighbours", {1, 1, 1}, {32, 1, 1}, {P(1), P(2)}, "2 by 4: 0-128, 1 by 4: 0-128"},
    {"greater", {1, 1, 1}, {32, 1, 1}, {P(1), P(2)}, "1: none"},
    {"early", {1, 1, 1}, {32, 1, 1}, {P(1), P(2), P(3)}, "1 by 4: 0-128, 2: none"},
    {"after_loop", {1, 1, 1}, {32, 1, 1}, {P(1), P(2)}, "1 by 4: 0-128"},
    {"either", {1, 1, 1}, {32, 1, 1}, {P(1), P(2), 0}, "2 by 4: 0-128"},
    {"counted", {1, 1, 1}, {32, 1, 1}, {P(1), P(2)}, "1: none, 2 by 4: 0-128"},
    {"one_hot", {1, 1, 1}, {32, 1, 1}, {P(1), P(2), 4}, ""},
    {"mixed", {1, 1, 1}, {3, 1, 1}, {P(1)}, "1 by 1: 0-24"},
};

static size_t kernel_named(const struct comparison *comparison, const char *name)
{
    for (size_t i = 0; i < comparison->kernels.count; i++) {
        if (span_is(comparison->kernels.kernels[i].name, name)) {
            return i;
        }
    }
    ck_abort_msg("no kernel %s", name);
}

/* A launch of cover.cu: parameters, and what the slice of ranges says. */
struct own_launch {
    const struct slice *slice;
    const char *kernel;
    struct machine_launch call;
    unsigned char parameters[128];
    struct slice_result results[REPORTS];
};

static void make_launch(const struct comparison *comparison, size_t index, struct own_launch *own)
{
    size_t at = kernel_named(comparison, launches[index].kernel);
    const struct kernel *kernel = &comparison->kernels.kernels[at];

    *own = (struct own_launch){.slice = &comparison->slices[at], .kernel = launches[index].kernel};
    memcpy(own->call.grid, launches[index].grid, sizeof(own->call.grid));
    memcpy(own->call.block, launches[index].block, sizeof(own->call.block));
    own->call.shared_bytes = 1 << 10;
    own->call.parameters = own->parameters;
    for (size_t i = 0; i < kernel->parameter_count; i++) {
        memcpy(own->parameters + kernel->parameters[i].offset, &launches[index].parameters[i],
               kernel->parameters[i].bytes);
    }
}

static void find_ranges(const struct comparison *comparison, struct own_launch *own)
{
    struct error_text problem = {""};
    uint64_t address = (uint64_t)(uintptr_t)own->results;
    char name[64];

    ck_assert_uint_le(own->slice->report_count, REPORTS);
    for (size_t i = 0; i < REPORTS; i++) {
        own->results[i] = (struct slice_result)SLICE_RESULT_NONE;
    }
    memcpy(own->parameters + own->slice->results_offset, &address, sizeof(address));
    (void)snprintf(name, sizeof(name), "%s_slice", own->kernel);
    ck_assert_msg(machine_run(machine_function_find(comparison->sliced, name), &own->call,
                              &problem) == CAPU_OK,
                  "%s", problem.text);
}

/* What a report covers, by windows of 64 granules, one after the other. */
static void find_cover(const struct comparison *comparison, struct own_launch *own, size_t report,
                       struct cover *cover)
{
    struct slice_window windows[REPORTS] = {{0, 0, 0}};
    uint32_t granule = own->slice->reports[report].granule_bytes;
    struct coverage_launch launch = {
        .slice = own->slice, .call = own->call, .parameters = own->parameters};
    struct error_text problem = {""};
    uint64_t base = own->results[report].lowest & ~(uint64_t)(SLICE_WINDOW_ALIGNMENT - 1);
    char name[64];

    (void)snprintf(name, sizeof(name), "%s_cover", own->kernel);
    launch.function = machine_function_find(comparison->covered, name);
    ck_assert_ptr_nonnull(launch.function);
    for (; base < own->results[report].end; base += (uint64_t)64 * granule) {
        uint32_t bits[2] = {0, 0};

        windows[report] = (struct slice_window){base, 64, (uint64_t)(uintptr_t)bits};
        ck_assert_msg(coverage_run(&launch, windows, &problem), "%s", problem.text);
        cover_add_bits(cover, bits, 64, base, granule);
    }
}

static void append(char *text, size_t bytes, const char *format, uint64_t one, uint64_t other)
{
    size_t length = strlen(text);

    (void)snprintf(text + length, bytes - length, format, one, other);
}

static void cover_text(const struct comparison *comparison, size_t index, char *text, size_t bytes)
{
    struct own_launch own;

    make_launch(comparison, index, &own);
    find_ranges(comparison, &own);
    for (size_t i = 0; i < own.slice->report_count; i++) {
        const struct slice_report *report = &own.slice->reports[i];
        uint64_t pointer = own.results[i].end != 0 ? own.results[i].lowest >> 32 : 1;
        struct cover cover = {.count = 0};

        if (!report->is_stored) {
            continue;
        }
        append(text, bytes, text[0] == '\0' ? "%" PRIu64 : ", %" PRIu64, pointer, 0);
        append(text, bytes, report->granule_bytes == 0 ? ": none" : " by %" PRIu64 ":",
               report->granule_bytes, 0);
        if (report->granule_bytes != 0) {
            find_cover(comparison, &own, i, &cover);
        }
        for (size_t j = 0; j < cover.count; j++) {
            append(text, bytes, " %" PRIu64 "-%" PRIu64, cover.intervals[j].first - P(pointer),
                   cover.intervals[j].end - P(pointer));
        }
    }
}

START_TEST(what_is_stored_for_certain_is_covered)
{
    static char text[TEXT_BYTES];
    struct comparison comparison;

    compare_open(text, text_read(COVER_PTX, text, TEXT_BYTES), NULL, &comparison);
    for (size_t i = 0; i < sizeof(launches) / sizeof(launches[0]); i++) {
        char covered[256] = "";

        cover_text(&comparison, i, covered, sizeof(covered));
        ck_assert_msg(strcmp(covered, launches[i].covered) == 0, "%s: %s, expected %s",
                      launches[i].kernel, covered, launches[i].covered);
    }
    compare_close(&comparison);
}
END_TEST

/* Random launches of the same kernels, and of those below: bits as the kernels' stores. */
START_TEST(coverage_is_what_kernels_store)
{
    static char text[TEXT_BYTES];
    struct comparison comparison;
    unsigned count = LAUNCHES_LEAST + (unsigned)effort_share(LAUNCHES);

    compare_open(text, text_read(COVER_PTX, text, TEXT_BYTES), NULL, &comparison);
    for (size_t i = 0; i < comparison.kernels.count; i++) {
        const struct kernel *kernel = &comparison.kernels.kernels[i];
        struct compared compared = compare_kernel(&comparison, i, count, i);

        ck_assert_msg(compared.difference[0] == '\0', "%s", compared.difference);
        /* Some data are an endless loop. */
        ck_assert_msg(compared.launches >= count / 4, "%.*s: %u launches", (int)kernel->name.length,
                      kernel->name.text, compared.launches);
        ck_assert_msg((compared.covered > 0) == (comparison.slices[i].cover != NULL),
                      "%.*s: %" PRIu64 " bits", (int)kernel->name.length, kernel->name.text,
                      compared.covered);
    }
    compare_close(&comparison);
}
END_TEST

/* Seeded errors. */

static void forget_predicates(char *text)
{
    text_replace(text, "eq.and.u64 %counts, %low", "eq.or.u64  %counts, %low");
}

static void set_whole_words(char *text)
{
    text_replace(text, "red.global.or.b32 [%at], %mask;", "red.global.or.b32 [%at], -1   ;");
}

static void forget_ends(char *text)
{
    text_replace(text, "lt.and.u64 %counts, %at", "ge.or.u64  %counts, %at");
}

static void forget_bits(char *text)
{
    text_replace(text, "and.b32 %shift, %shift, 31;", "and.b32 %shift, %shift, 15;");
}

static void forget_threads(char *text)
{
    text_replace(text, "%tid.x;", "1     ;");
}

static const struct {
    compare_edit edit;
    const char *path;
    const char *kernels[4]; /* that have to differ */
} errors[] = {
    {forget_predicates, SLICE_CONTROL, {"predicated"}},
    {set_whole_words, COVER_PTX, {"triangle", "tail", "mixed"}},
    {forget_ends, COVER_PTX, {"strided", "vectors"}},
    {forget_bits, COVER_PTX, {"tail", "halves"}},
    {forget_threads, COVER_PTX, {"tail", "tiles", "either"}},
};

START_TEST(wrong_coverage_is_caught)
{
    static char text[TEXT_BYTES];
    struct compare_edits edits = {NULL, errors[_i].edit};
    struct comparison comparison;

    compare_open(text, text_read(errors[_i].path, text, TEXT_BYTES), &edits, &comparison);
    for (size_t i = 0; errors[_i].kernels[i] != NULL; i++) {
        struct compared compared =
            compare_kernel(&comparison, kernel_named(&comparison, errors[_i].kernels[i]), 10, i);

        ck_assert_msg(compared.difference[0] != '\0', "%d: %s", _i, errors[_i].kernels[i]);
    }
    compare_close(&comparison);
}
END_TEST

/* Kernels that the machine need not run. */

struct emitted {
    struct ptx_module module;
    struct kernels kernels;
    struct slice slice;
};

static void emit(const char *body, struct emitted *emitted)
{
    static char text[TEXT_BYTES];
    struct error_text problem = {""};
    int count = snprintf(text, sizeof(text),
                         ".version 8.8\n.target sm_80\n.address_size 64\n"
                         "%s.func stay() {\nret;\n}\n"
                         ".visible .entry k(.param .u64 to, .param .u64 from)\n{\n"
                         ".shared .b32 own[64];\n.reg .b64 %%d<8>;\n.reg .b32 %%r<8>;\n"
                         ".reg .pred %%p;\nld.param.u64 %%d0, [to];\nld.param.u64 %%d1, [from];\n"
                         "mov.u32 %%r0, %%tid.x;\nmul.wide.u32 %%d2, %%r0, 32;\n"
                         "add.s64 %%d3, %%d0, %%d2;\nmov.u32 %%r1, 7;\n%s\nret;\n}\n",
                         strstr(body, "leave") != NULL ? ".func leave() {\nexit;\n}\n" : "", body);

    ck_assert_msg(ptx_parse(text, (size_t)count, &emitted->module, &problem) == CAPU_OK, "%s",
                  problem.text);
    ck_assert_int_eq(roles_find(&emitted->module, &emitted->kernels), CAPU_OK);
    ck_assert_msg(slice_emit(&emitted->module, &emitted->kernels.kernels[0], &emitted->slice,
                             &problem) == CAPU_OK,
                  "%s", problem.text);
}

static void finish(struct emitted *emitted)
{
    slice_finish(&emitted->slice);
    roles_finish(&emitted->kernels);
    ptx_finish(&emitted->module);
}

/* The coverage of one thread's stores to the first bytes of `to`, as bits; each granule is of that
   many bytes, or there is no coverage. */
static uint32_t cover_of(const char *body, uint32_t granule_bytes)
{
    unsigned char parameters[24] = {0};
    uint64_t pointer = P(1);
    uint32_t bits = 0;
    struct slice_window windows[REPORTS];
    struct emitted emitted;
    struct coverage_launch launch = {.call = {.grid = {1, 1, 1}, .block = {1, 1, 1}},
                                     .parameters = parameters};
    struct machine_module *module = NULL;
    struct error_text problem = {""};
    char text[4096];

    memcpy(parameters, &pointer, sizeof(pointer));
    emit(body, &emitted);
    launch.slice = &emitted.slice;
    ck_assert_uint_le(emitted.slice.report_count, REPORTS);
    for (size_t i = 0; i < emitted.slice.report_count; i++) {
        windows[i] = (struct slice_window){P(1), 32, (uint64_t)(uintptr_t)&bits};
        if (emitted.slice.reports[i].is_stored && !emitted.slice.reports[i].is_may) {
            ck_assert_uint_eq(emitted.slice.reports[i].granule_bytes, granule_bytes);
        }
    }
    ck_assert_int_eq(emitted.slice.cover != NULL, granule_bytes != 0);
    if (emitted.slice.cover != NULL) {
        slice_head(&emitted.module, text, sizeof(text));
        ck_assert_uint_lt(strlen(text) + emitted.slice.cover_bytes, sizeof(text));
        memcpy(text + strlen(text), emitted.slice.cover, emitted.slice.cover_bytes + 1);
        ck_assert_msg(machine_open(text, strlen(text), &module, &problem) == CAPU_OK, "%s\n%s",
                      problem.text, text);
        launch.function = machine_function_at(module, 0);
        ck_assert_msg(coverage_run(&launch, windows, &problem), "%s", problem.text);
        machine_close(module);
    }
    finish(&emitted);
    return bits;
}

START_TEST(only_stores_that_happen_are_counted)
{
    ck_assert_uint_eq(cover_of("st.global.u32 [%d3+4], %r1;", 4), 1 << 1);
    ck_assert_uint_eq(cover_of("call leave; st.global.u32 [%d3], %r1;", 0), 0);
    ck_assert_uint_eq(cover_of("call stay; st.global.u32 [%d3], %r1;", 4), 1);
    /* An atomic reads what is there. */
    ck_assert_uint_eq(cover_of("red.global.add.u32 [%d3], %r1;\nst.global.u32 [%d3+4], %r1;", 0),
                      0);
    /* What data decides, beside what is certain. */
    ck_assert_uint_eq(cover_of("ld.global.u32 %r2, [%d3+8];\nsetp.eq.u32 %p, %r2, 0;\n"
                               "@%p st.global.u32 [%d3+4], %r1;\nst.global.u16 [%d3], %r1;",
                               2),
                      1);
    ck_assert_uint_eq(cover_of("prefetch.global.L2 [%d3];\nst.global.u32 [%d3+8], %r1;", 4),
                      1 << 2);
}
END_TEST

START_TEST(vectors_are_counted_by_what_they_store)
{
    ck_assert_uint_eq(cover_of("st.global.v4.u32 [%d3], {%r1, %r1, %r1, %r1};", 16), 1);
    ck_assert_uint_eq(
        cover_of("st.global.v2.u32 [%d3+8], {%r1, %r1};\nst.global.u8 [%d3], %r1;", 1), 0xff01);
    ck_assert_uint_eq(cover_of("st.global.v8.u32 [%d3], {%r1, _, %r1, %r1, _, _, %r1, %r1};", 4),
                      0xcd);
    /* A device would refuse it. */
    ck_assert_uint_eq(cover_of("st.global.v2.u32 [%d3+4], {%r1, %r1};", 8), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ptx_cover");
    TCase *cases = tcase_create("cover");

    tcase_add_test(cases, what_is_stored_for_certain_is_covered);
    tcase_add_test(cases, coverage_is_what_kernels_store);
    tcase_add_loop_test(cases, wrong_coverage_is_caught, 0, sizeof(errors) / sizeof(errors[0]));
    tcase_add_test(cases, only_stores_that_happen_are_counted);
    tcase_add_test(cases, vectors_are_counted_by_what_they_store);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}

/*
 * Slices compared with their kernels: those of the files below, and, if objects are given, those
 * that nvcc has compiled into them. Wrong slices are caught.
 */
#include "tests/ptx/slices/compare.h"
#include "tests/ptx/slices/text.h"

#include "tests/support/effort.h"
#include "tests/support/suite.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_BYTES = 1 << 18, LAUNCHES_LEAST = 10, LAUNCHES = 90 };

/* What a slice finds out about each word: its range, one that is too large ("may"), or nothing. */
static const struct {
    const char *kernel;
    const char *words; /* or why it has no slice */
} expected[] = {
    {"step", "0 exact, 0+16 exact, 0+24 exact"},
    {"triangle", "0 exact"},
    {"gather", "0 exact, 1 whole, 2 exact"},
    {"scatter", "0 whole, 1 exact, 2 exact"},
    {"clip", "0 exact, 1 may"},
    {"search", "0 whole, 2 may, 3 exact"},
    {"ticket", "0 may, 1 exact, 2 may"},
    {"table", "table has no slice: it is open"},
    {"escape", "escape has no slice: it is open"},
    {"from_variable", "from_variable has no slice: it is open"},
    {"by_variable", "0 exact, 1 whole"},
    {"choose", "0 exact, 1 exact, 3 exact"},
    {"listed", "listed has no slice: local memory"},
    {"by_shared", "0 whole, 1 exact"},
    {"locked", "0 whole, 1 exact"},
    {"largest", "0 whole, 1 exact"},
    {"widen", "0 exact, 1 exact"},
    {"assembly", "0 exact, 1 exact"},
    {"two_ways", "0 may, 1 exact"},
    {"nested_ways", "0 may, 1 exact, 2 exact"},
    {"empty_way", "0 may, 1 exact"},
    {"redefined", "0 whole, 1 exact"},
    {"early_exit", "0 may, 1 exact"},
    {"by_table", "0 may, 1 exact"},
    {"predicated", "0 exact, 1 exact, 2 may"},
    {"in_loop", "0 may, 1 exact"},
    {"two_loops", "0 exact, 1 whole"},
    {"rounds", "0 may, 1 exact"},
    {"tiles", "0 exact, 1 exact, 2 exact"},
    {"bulk", "0 exact, 1 may, 2 may"},
};

/* Files, and how many kernels of them have slices, how many of their words a range, and how many
   reports a bitmap, so that a loss of precision shows. */
static const struct {
    const char *path;
    unsigned slices, words, exact, covered;
} files[] = {
    {SLICE_SAMPLES, 14, 33, 22, 10}, {SLICE_CONTROL, 12, 28, 16, 5},
    {SLICE_CUBLAS, 5, 22, 17, 7},    {SLICE_CLASSIFIER, 11, 29, 27, 11},
    {SLICE_GPT, 18, 60, 57, 25},
};

static const char *kind_of(const struct slice *slice, size_t word)
{
    bool is_may = false;

    for (size_t i = 0; i < slice->report_count; i++) {
        is_may |= (slice->reports[i].words >> word & 1) != 0 && slice->reports[i].is_may;
    }
    return (slice->whole >> word & 1) != 0 ? "whole" : is_may ? "may" : "exact";
}

static void words_text(const struct kernel *kernel, const struct slice *slice, char *text,
                       size_t bytes)
{
    size_t length = 0;

    text[0] = '\0';
    for (size_t i = 0; i < kernel->word_count && length < bytes - 64; i++) {
        char offset[16] = "";

        if (kernel->words[i].offset != 0) {
            (void)snprintf(offset, sizeof(offset), "+%" PRIu32, kernel->words[i].offset);
        }
        length += (size_t)snprintf(text + length, bytes - length, "%s%" PRIu32 "%s %s",
                                   i == 0 ? "" : ", ", kernel->words[i].parameter, offset,
                                   kind_of(slice, i));
    }
}

static void check_expected(const struct comparison *comparison, size_t index)
{
    const struct kernel *kernel = &comparison->kernels.kernels[index];
    char text[512];

    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        if (span_is(kernel->name, expected[i].kernel)) {
            words_text(kernel, &comparison->slices[index], text, sizeof(text));
            if (comparison->slices[index].text == NULL) {
                (void)snprintf(text, sizeof(text), "%s", comparison->refusals[index].text);
            }
            ck_assert_msg(strcmp(text, expected[i].words) == 0, "%s: %s, expected %s",
                          expected[i].kernel, text, expected[i].words);
            return;
        }
    }
    ck_abort_msg("%.*s is not in the table", (int)kernel->name.length, kernel->name.text);
}

START_TEST(slices_are_as_precise_as_expected)
{
    static char text[TEXT_BYTES];
    struct comparison comparison;

    for (size_t i = 0; i < 2; i++) {
        compare_open(text, text_read(files[i].path, text, TEXT_BYTES), NULL, &comparison);
        for (size_t j = 0; j < comparison.kernels.count; j++) {
            check_expected(&comparison, j);
        }
        compare_close(&comparison);
    }
}
END_TEST

/* Compares all kernels; the random launches of nearly all must fit together often enough. */
static void compare_all(const char *path, const struct comparison *comparison, unsigned launches)
{
    for (size_t i = 0; i < comparison->kernels.count; i++) {
        const struct kernel *kernel = &comparison->kernels.kernels[i];
        struct compared compared;

        if (comparison->slices[i].text == NULL) {
            continue;
        }
        compared = compare_kernel(comparison, i, launches, i);
        ck_assert_msg(compared.difference[0] == '\0', "%s: %s", path, compared.difference);
        ck_assert_msg(compared.launches == launches && compared.accesses > 0,
                      "%s: %.*s: %u launches, %u left out, %" PRIu64 " accesses", path,
                      (int)kernel->name.length, kernel->name.text, compared.launches,
                      compared.left_out, compared.accesses);
    }
}

START_TEST(slices_report_what_kernels_access)
{
    static char text[TEXT_BYTES];
    struct comparison comparison;
    unsigned slices = 0;
    unsigned words = 0;
    unsigned exact = 0;
    unsigned covered = 0;

    compare_open(text, text_read(files[_i].path, text, TEXT_BYTES), NULL, &comparison);
    for (size_t i = 0; i < comparison.kernels.count; i++) {
        if (comparison.slices[i].text != NULL) {
            slices++;
            words += (unsigned)comparison.kernels.kernels[i].word_count;
            for (size_t j = 0; j < comparison.kernels.kernels[i].word_count; j++) {
                exact += strcmp(kind_of(&comparison.slices[i], j), "exact") == 0;
            }
            for (size_t j = 0; j < comparison.slices[i].report_count; j++) {
                covered += comparison.slices[i].reports[j].granule_bytes != 0;
            }
        }
    }
    ck_assert_msg(slices == files[_i].slices && words == files[_i].words &&
                      exact == files[_i].exact && covered == files[_i].covered,
                  "%s: %u slices, %u words, %u exact, %u covered", files[_i].path, slices, words,
                  exact, covered);
    compare_all(files[_i].path, &comparison, LAUNCHES_LEAST + (unsigned)effort_share(LAUNCHES));
    compare_close(&comparison);
}
END_TEST

/* Seeded errors. */

/* Ends each range one byte early. */
static void cut_ends(char *text)
{
    text_replace(text, "%at, %at, 4;", "%at, %at, 3;");
}

/* Leaves out the first access of each kernel: its lines become blanks. */
static void drop_first(char *text)
{
    for (char *at = text; (at = strstr(at, ".entry")) != NULL; at += 6) {
        for (unsigned i = 0; i < 4; i++) {
            char *line = strstr(at, i % 2 == 0 ? "    add.s64 %at"
                                    : i == 1   ? " min.u64"
                                               : " max.u64");

            ck_assert_ptr_nonnull(line);
            memset(line, ' ', strcspn(line, "\n"));
        }
    }
}

/* Takes one thread of each row of a block for all. */
static void forget_threads(char *text)
{
    text_replace(text, "%tid.x;", "1     ;");
}

static const struct {
    struct compare_edits edits;
    const char *kernels[8]; /* that have to differ */
} errors[] = {
    {{cut_ends, NULL}, {"step", "triangle", "gather", "search", "ticket", "choose", "by_shared"}},
    {{drop_first, NULL},
     {"step", "gather", "scatter", "by_variable", "widen", "assembly", "largest"}},
    {{forget_threads, NULL},
     {"step", "gather", "scatter", "by_variable", "widen", "assembly", "choose"}},
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

START_TEST(short_ranges_are_caught)
{
    static char text[TEXT_BYTES];
    struct comparison comparison;

    compare_open(text, text_read(SLICE_SAMPLES, text, TEXT_BYTES), &errors[_i].edits, &comparison);
    for (size_t i = 0; errors[_i].kernels[i] != NULL; i++) {
        struct compared compared =
            compare_kernel(&comparison, kernel_named(&comparison, errors[_i].kernels[i]), 10, i);

        ck_assert_msg(compared.difference[0] != '\0', "%s", errors[_i].kernels[i]);
    }
    compare_close(&comparison);
}
END_TEST

/* Launches a slice of control.ptx: two pointers and a number. */
static void launch_slice(const struct comparison *comparison, const char *kernel, uint32_t number,
                         struct slice_result results[2])
{
    struct {
        uint64_t pointers[2];
        uint32_t number;
        struct slice_result *results;
    } parameters = {{1 << 20, 2 << 20}, number, results};
    struct machine_launch launch = {
        .grid = {1, 1, 1}, .block = {2, 1, 1}, .parameters = &parameters};
    const struct slice *slice = &comparison->slices[kernel_named(comparison, kernel)];
    struct error_text problem = {""};
    char name[64];

    (void)snprintf(name, sizeof(name), "%s_slice", kernel);
    ck_assert_uint_eq(slice->report_count, 2);
    ck_assert_uint_eq(slice->results_offset, 24);
    ck_assert_uint_eq(slice->parameter_bytes, sizeof(parameters));
    for (size_t i = 0; i < 2; i++) {
        results[i] = (struct slice_result)SLICE_RESULT_NONE;
    }
    ck_assert_msg(machine_run(machine_function_find(comparison->sliced, name), &launch, &problem) ==
                      CAPU_OK,
                  "%s", problem.text);
}

START_TEST(a_loop_that_may_not_be_reached_ends)
{
    static char text[TEXT_BYTES];
    struct comparison comparison;
    struct slice_result results[2];

    compare_open(text, text_read(SLICE_CONTROL, text, TEXT_BYTES), NULL, &comparison);
    launch_slice(&comparison, "rounds", 10, results);
    ck_assert_uint_eq(results[0].lowest, 2 << 20); /* the data */
    ck_assert_uint_eq(results[0].end, (2 << 20) + 8);
    ck_assert_uint_eq(results[1].lowest, 1 << 20);
    ck_assert_uint_eq(results[1].end, (1 << 20) + 40);
    launch_slice(&comparison, "rounds", UINT32_MAX, results);
    ck_assert_uint_eq(results[0].lowest, 0);
    ck_assert_uint_eq(results[0].end, UINT64_MAX);
    ck_assert_uint_eq(results[1].lowest, 0);
    ck_assert_uint_eq(results[1].end, UINT64_MAX);
    compare_close(&comparison);
}
END_TEST

/* What cannot be sliced is refused by name. */

static void check_refused(const char *parameters, const char *body, const char *reason)
{
    static char text[TEXT_BYTES];
    struct error_text problem = {""};
    struct ptx_module module;
    struct kernels kernels;
    struct slice slice;
    int count = snprintf(text, sizeof(text),
                         ".version 7.5\n.target sm_80\n.address_size 64\n.visible .entry "
                         "k(.param .u64 to%s)\n{\n.reg .b64 %%d<8>;\n.reg .b32 %%r<8>;\n.reg .pred "
                         "%%p;\nld.param.u64 %%d0, [to];\n%s\nret;\n}\n",
                         parameters, body);

    ck_assert_msg(ptx_parse(text, (size_t)count, &module, &problem) == CAPU_OK, "%s", problem.text);
    ck_assert_int_eq(roles_find(&module, &kernels), CAPU_OK);
    ck_assert_int_eq(slice_emit(&module, &kernels.kernels[0], &slice, &problem), CAPU_UNSUPPORTED);
    ck_assert_msg(strncmp(problem.text, "k has no slice: ", 16) == 0 &&
                      strstr(problem.text, reason) != NULL,
                  "%s, expected %s", problem.text, reason);
    ck_assert_ptr_null(slice.text);
    slice_finish(&slice);
    roles_finish(&kernels);
    ptx_finish(&module);
}

START_TEST(what_has_no_slice_is_refused_by_name)
{
    check_refused("", "", "nothing through a pointer");
    check_refused("", "bar.sync 0; call foo;", "it is open");
    check_refused(", .param .align 8 .b8 more[4088]", "st.global.u32 [%d0], 1;", "no room");
    check_refused("",
                  "mov.u32 %r0, %clock; st.global.u32 [%d0], %r0;\nmul.wide.u32 %d1, %r0, 4;\n"
                  "add.s64 %d2, %d0, %d1; st.global.u32 [%d2], 1;",
                  "a clock");
    check_refused("",
                  "mov.u32 %r0, %dynamic_smem_size; mul.wide.u32 %d1, %r0, 4;\n"
                  "add.s64 %d2, %d0, %d1; st.global.u32 [%d2], 1;",
                  "a special register");
    check_refused("",
                  ".shared .b32 own; mov.u32 %r0, own; mul.wide.u32 %d1, %r0, 4;\n"
                  "add.s64 %d2, %d0, %d1; st.global.u32 [%d2], 1;",
                  "where a variable lies");
    check_refused("",
                  "mov.u32 %r0, %tid.x; add.cc.u32 %r1, %r0, %r0; addc.u32 %r2, %r0, 0;\n"
                  "mul.wide.u32 %d1, %r2, 4; add.s64 %d2, %d0, %d1; st.global.u32 [%d2], 1;",
                  "a carry");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ptx_slice");
    TCase *cases = tcase_create("slices");

    tcase_add_test(cases, slices_are_as_precise_as_expected);
    tcase_add_loop_test(cases, slices_report_what_kernels_access, 0,
                        sizeof(files) / sizeof(files[0]));
    tcase_add_loop_test(cases, short_ranges_are_caught, 0, sizeof(errors) / sizeof(errors[0]));
    tcase_add_test(cases, a_loop_that_may_not_be_reached_ends);
    tcase_add_test(cases, what_has_no_slice_is_refused_by_name);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}

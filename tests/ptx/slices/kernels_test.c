/*
 * Slices of the kernels in kernels/, compared with the kernels. What they find out about each word
 * is counted, so that a loss of precision shows.
 */
#include "tests/ptx/slices/compare.h"
#include "tests/ptx/slices/text.h"

#include "tests/support/effort.h"
#include "tests/support/suite.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_BYTES = 1 << 20, LAUNCHES = 20 };

struct counts {
    unsigned none;   /* kernels without a slice */
    unsigned slices; /* kernels with one; their words by what is found out: */
    unsigned exact, may, whole;
};

struct file {
    const char *name;
    struct counts counts;
};

/* backward_tokens of embedding takes from shared memory which rows it adds up. */
static const struct file files[] = {
    {"adamw", {0, 1, 5, 0, 0}},        {"attention", {0, 6, 14, 0, 0}},
    {"average_pool", {0, 4, 8, 0, 0}}, {"batch_norm", {0, 13, 72, 0, 0}},
    {"dropout", {0, 2, 4, 0, 0}},      {"embedding", {2, 4, 10, 0, 2}},
    {"gelu", {0, 4, 8, 0, 0}},         {"gradient_norm", {0, 2, 4, 0, 0}},
    {"initialise", {0, 2, 2, 0, 0}},   {"layer_norm", {0, 7, 36, 0, 0}},
    {"matmul", {0, 5, 10, 0, 0}},      {"max_pool", {0, 4, 10, 2, 0}},
    {"relu", {0, 4, 6, 2, 0}},         {"residual", {0, 4, 12, 0, 0}},
    {"sgd", {0, 1, 4, 0, 0}},          {"softmax_cross_entropy", {0, 5, 14, 0, 2}},
};

/* Compiling these takes longer than all others together. */
static const struct file long_files[] = {
    {"conv2d", {0, 21, 65, 1, 0}},
    {"fused_attention", {0, 14, 58, 0, 0}},
};

static void count_words(const struct comparison *comparison, struct counts *counts)
{
    for (size_t i = 0; i < comparison->kernels.count; i++) {
        const struct slice *slice = &comparison->slices[i];
        uint64_t may = 0;

        if (slice->text == NULL) {
            counts->none++;
            continue;
        }
        counts->slices++;
        for (size_t j = 0; j < slice->report_count; j++) {
            may |= slice->reports[j].is_may ? slice->reports[j].words : 0;
        }
        for (size_t j = 0; j < comparison->kernels.kernels[i].word_count; j++) {
            bool is_whole = (slice->whole >> j & 1) != 0;

            counts->whole += is_whole;
            counts->may += !is_whole && (may >> j & 1) != 0;
            counts->exact += !is_whole && (may >> j & 1) == 0;
        }
    }
}

static void compare_launches(const char *name, const struct comparison *comparison)
{
    unsigned launches = (unsigned)effort_share(LAUNCHES);
    uint64_t accesses = 0;

    for (size_t i = 0; i < comparison->kernels.count; i++) {
        const struct kernel *kernel = &comparison->kernels.kernels[i];
        struct compared compared;

        if (comparison->slices[i].text == NULL) {
            continue;
        }
        compared = compare_kernel(comparison, i, launches, i);
        ck_assert_msg(compared.difference[0] == '\0', "%s: %s", name, compared.difference);
        ck_assert_msg(compared.launches == launches, "%s: %.*s: %u launches, %u left out", name,
                      (int)kernel->name.length, kernel->name.text, compared.launches,
                      compared.left_out);
        accesses += compared.accesses;
    }
    ck_assert_msg(accesses > 0, "%s: no accesses", name);
}

static void check_file(const struct file *expected)
{
    static char text[TEXT_BYTES];
    char path[4096];
    struct comparison comparison;
    struct counts found = {0};

    (void)snprintf(path, sizeof(path), "%s/%s.ptx", KERNELS_FOLDER, expected->name);
    compare_open(text, text_read(path, text, TEXT_BYTES), NULL, &comparison);
    count_words(&comparison, &found);
    ck_assert_msg(memcmp(&found, &expected->counts, sizeof(found)) == 0, "%s: {%u, %u, %u, %u, %u}",
                  expected->name, found.none, found.slices, found.exact, found.may, found.whole);
    compare_launches(expected->name, &comparison);
    compare_close(&comparison);
}

START_TEST(slices_report_what_kernels_access)
{
    check_file(&files[_i]);
}
END_TEST

START_TEST(slices_of_long_code_do)
{
    check_file(&long_files[_i]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("slices of the kernels");
    TCase *cases = tcase_create("kernels");
    TCase *long_cases = tcase_create("long_code");

    tcase_add_loop_test(cases, slices_report_what_kernels_access, 0,
                        sizeof(files) / sizeof(files[0]));
    tcase_add_loop_test(long_cases, slices_of_long_code_do, 0,
                        sizeof(long_files) / sizeof(long_files[0]));
    tcase_set_tags(long_cases, "long_code");
    suite_add_tcase(suite, cases);
    suite_add_tcase(suite, long_cases);
    return suite_run(suite);
}

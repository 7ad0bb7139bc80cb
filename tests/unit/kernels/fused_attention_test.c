/*
 * fused_attention compared with the separate ops of attention.h, which compute in fp32 what it is
 * to give in either element type. Lengths of one tile and of several, with and without a rest.
 */
#include "kernels/attention.h"
#include "kernels/fused_attention.h"

#include "tests/support/suite.h"
#include "tests/unit/kernels/support.h"

#include <stdlib.h>

static const struct fused_attention shapes[] = {
    {.batch = 1, .length = 1, .heads = 1, .head_channels = 1},
    {.batch = 2, .length = 7, .heads = 3, .head_channels = 5},
    {.batch = 1, .length = 64, .heads = 2, .head_channels = 16},
    {.batch = 1, .length = 135, .heads = 1, .head_channels = 72},
};

/* fp32: the order of sums. In bf16 both round their result, and the rounded output enters the
   gradients: by half of a unit in its last place, of up to 2^-9 for outputs below 1. */
static double tolerance_of(const struct support *support)
{
    return support->element == ELEMENT_BF16 ? 4e-3 : 5e-6;
}

/* The same numbers as fp32. */
static float *widened(const struct support *support, const void *items, size_t count)
{
    float *floats = calloc(count, sizeof(*floats));

    ck_assert_ptr_nonnull(floats);
    for (size_t i = 0; i < count; i++) {
        floats[i] = (float)support_item(support, items, i);
    }
    return floats;
}

static float *zeros(size_t count)
{
    float *floats = calloc(count, sizeof(*floats));

    ck_assert_ptr_nonnull(floats);
    return floats;
}

static void run_separately(const struct attention *attention)
{
    ck_assert_int_eq(attention_split_forward_host(NULL, attention), CAPU_OK);
    ck_assert_int_eq(attention_scores_forward_host(NULL, attention), CAPU_OK);
    ck_assert_int_eq(attention_softmax_forward_host(NULL, attention), CAPU_OK);
    ck_assert_int_eq(attention_mix_forward_host(NULL, attention), CAPU_OK);
    ck_assert_int_eq(attention_merge_forward_host(NULL, attention), CAPU_OK);
    ck_assert_int_eq(attention_merge_backward_host(NULL, attention), CAPU_OK);
    ck_assert_int_eq(attention_mix_backward_weights_host(NULL, attention), CAPU_OK);
    ck_assert_int_eq(attention_mix_backward_value_host(NULL, attention), CAPU_OK);
    ck_assert_int_eq(attention_softmax_backward_host(NULL, attention), CAPU_OK);
    ck_assert_int_eq(attention_scores_backward_query_host(NULL, attention), CAPU_OK);
    ck_assert_int_eq(attention_scores_backward_key_host(NULL, attention), CAPU_OK);
    ck_assert_int_eq(attention_split_backward_host(NULL, attention), CAPU_OK);
}

static void compare(const struct support *support, const struct fused_attention *fused,
                    size_t items, size_t square)
{
    float *qkv = widened(support, fused->qkv, 3 * items);
    float *output_gradient = widened(support, fused->output_gradient, items);
    struct attention attention = {
        .qkv = qkv,
        .parts = zeros(3 * items),
        .scores = zeros(square),
        .weights = zeros(square),
        .mixed = zeros(items),
        .output = zeros(items),
        .qkv_gradient = zeros(3 * items),
        .parts_gradient = zeros(3 * items),
        .scores_gradient = zeros(square),
        .weights_gradient = zeros(square),
        .mixed_gradient = zeros(items),
        .output_gradient = output_gradient,
        .batch = fused->batch,
        .length = fused->length,
        .heads = fused->heads,
        .head_channels = fused->head_channels,
    };
    void *const owned[] = {attention.parts,
                           attention.scores,
                           attention.weights,
                           attention.mixed,
                           attention.output,
                           attention.qkv_gradient,
                           attention.parts_gradient,
                           attention.scores_gradient,
                           attention.weights_gradient,
                           attention.mixed_gradient,
                           qkv,
                           output_gradient};

    run_separately(&attention);
    for (size_t i = 0; i < items; i++) {
        support_stored(support, "output", i, support_item(support, fused->output, i),
                       ((const float *)attention.output)[i], 5e-6);
    }
    for (size_t i = 0; i < 3 * items; i++) {
        support_stored(support, "qkv_gradient", i, support_item(support, fused->qkv_gradient, i),
                       ((const float *)attention.qkv_gradient)[i], tolerance_of(support));
    }
    for (size_t i = 0; i < sizeof(owned) / sizeof(owned[0]); i++) {
        free(owned[i]);
    }
}

static void run_case(struct support *support, const void *shape)
{
    struct fused_attention attention = *(const struct fused_attention *)shape;
    size_t rows = (size_t)attention.batch * attention.length * attention.heads;
    size_t items = rows * attention.head_channels;

    attention.element = support->element;
    attention.qkv = support_items(support, 3 * items, -1.0f, 1.0f);
    attention.output = support_blank(support, items);
    attention.log_sums = support_output(support, rows);
    attention.output_gradient = support_items(support, items, -1.0f, 1.0f);
    attention.qkv_gradient = support_blank(support, 3 * items);
    attention.products = support_output(support, rows);
    ck_assert_int_eq(fused_attention_forward_host(NULL, &attention), CAPU_OK);
    ck_assert_int_eq(fused_attention_backward_host(NULL, &attention), CAPU_OK);
    if (support->is_reference_due) {
        compare(support, &attention, items, rows * attention.length);
    }
    support_keep(support, attention.output, support_bytes(support, items));
    support_keep(support, attention.log_sums, rows * sizeof(float));
    support_keep(support, attention.qkv_gradient, support_bytes(support, 3 * items));
}

/* Scores far apart, of which the largest comes last: nothing overflows, and earlier tiles are
   scaled down to nothing. */
START_TEST(large_scores_do_not_overflow)
{
    enum { LENGTH = 100 };
    float qkv[LENGTH * 3];
    float output[LENGTH];
    float log_sums[LENGTH];
    struct fused_attention attention = {.qkv = qkv,
                                        .output = output,
                                        .log_sums = log_sums,
                                        .batch = 1,
                                        .length = LENGTH,
                                        .heads = 1,
                                        .head_channels = 1};

    for (size_t t = 0; t < LENGTH; t++) {
        qkv[3 * t] = 1000.0f;
        qkv[3 * t + 1] = (float)t;
        qkv[3 * t + 2] = (float)t * 0.5f;
    }
    ck_assert_int_eq(fused_attention_forward_host(NULL, &attention), CAPU_OK);
    for (size_t t = 0; t < LENGTH; t++) {
        support_near("output", t, output[t], (double)t * 0.5, 0.0);
        support_near("log_sums", t, log_sums[t], (double)t * 1000.0, 0.0);
    }
}
END_TEST

START_TEST(too_many_channels_are_rejected)
{
    struct fused_attention attention = {
        .batch = 1, .length = 1, .heads = 1, .head_channels = FUSED_ATTENTION_CHANNELS + 1};

    ck_assert_int_eq(fused_attention_forward_host(NULL, &attention), CAPU_TOO_LARGE);
    ck_assert_int_eq(fused_attention_backward_host(NULL, &attention), CAPU_TOO_LARGE);
    attention.head_channels = 1;
    attention.length = FUSED_ATTENTION_TILE * 65535 + 1;
    ck_assert_int_eq(fused_attention_check(&attention), CAPU_TOO_LARGE);
}
END_TEST

SUPPORT_TESTS_IN_BOTH_TYPES(run_case, shapes)

int main(void)
{
    Suite *suite = suite_create("fused_attention");
    TCase *tests = tcase_create("fused_attention");

    add_reference_tests(tests);
    tcase_add_test(tests, large_scores_do_not_overflow);
    tcase_add_test(tests, too_many_channels_are_rejected);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

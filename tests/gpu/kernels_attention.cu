/* Tests of both kinds of attention. */
#include "tests/gpu/kernels_test.h"

#include "kernels/attention.h"
#include "kernels/fused_attention.h"

#include <math.h>

/* batch, length, heads, channels per head */
static const uint32_t attentions[][4] = {
    {1, 1, 1, 1}, {2, 5, 3, 4}, {1, 40, 2, 8}, {2, 1024, 3, 64}};

START_TEST(attention_agrees_step_by_step)
{
    struct pairs pairs = pairs_in(_i);
    const uint32_t *shape = attentions[shape_in(_i)];
    struct attention attention = {};
    double tolerance;
    size_t part;
    size_t square;

    attention.element = pairs.element;
    attention.batch = shape[0];
    attention.length = shape[1];
    attention.heads = shape[2];
    attention.head_channels = shape[3];
    part = (size_t)shape[0] * shape[1] * shape[2] * shape[3];
    square = (size_t)shape[0] * shape[1] * shape[2] * shape[1];
    tolerance = product_tolerance(shape[1] > shape[3] ? shape[1] : shape[3]);
    attention.qkv = pairs_items(&pairs, 3 * part, -1.0f, 1.0f);
    attention.parts = pairs_blank(&pairs, 3 * part);
    attention.scores = pairs_blank(&pairs, square);
    attention.weights = pairs_clear(&pairs, square);
    attention.mixed = pairs_blank(&pairs, part);
    attention.output = pairs_blank(&pairs, part);
    attention.qkv_gradient = pairs_blank(&pairs, 3 * part);
    attention.parts_gradient = pairs_blank(&pairs, 3 * part);
    attention.scores_gradient = pairs_clear(&pairs, square);
    attention.weights_gradient = pairs_blank(&pairs, square);
    attention.mixed_gradient = pairs_blank(&pairs, part);
    attention.output_gradient = pairs_items(&pairs, part, -1.0f, 1.0f);
    PAIRS_RUN(&pairs, attention_split_forward, &attention, 0.0);
    PAIRS_RUN(&pairs, attention_scores_forward, &attention, tolerance);
    PAIRS_RUN(&pairs, attention_softmax_forward, &attention, NEAR);
    PAIRS_RUN(&pairs, attention_mix_forward, &attention, tolerance);
    PAIRS_RUN(&pairs, attention_merge_forward, &attention, 0.0);
    PAIRS_RUN(&pairs, attention_merge_backward, &attention, 0.0);
    PAIRS_RUN(&pairs, attention_mix_backward_weights, &attention, tolerance);
    PAIRS_RUN(&pairs, attention_mix_backward_value, &attention, tolerance);
    PAIRS_RUN(&pairs, attention_softmax_backward, &attention, NEAR);
    PAIRS_RUN(&pairs, attention_scores_backward_query, &attention, tolerance);
    PAIRS_RUN(&pairs, attention_scores_backward_key, &attention, tolerance);
    PAIRS_RUN(&pairs, attention_split_backward, &attention, 0.0);
    pairs_finish(&pairs);
}
END_TEST

/* Of one tile, of several with and without a rest, and with more channels than a tile has columns.
 */
static const uint32_t fused_attentions[][4] = {{1, 1, 1, 1},    {2, 5, 3, 4},   {1, 64, 2, 8},
                                               {1, 135, 1, 20}, {1, 70, 1, 72}, {2, 1024, 3, 64}};

START_TEST(fused_attention_agrees)
{
    struct pairs pairs = pairs_in(_i);
    const uint32_t *shape = fused_attentions[shape_in(_i)];
    size_t rows = (size_t)shape[0] * shape[1] * shape[2];
    size_t items = rows * shape[3];
    double tolerance = 4e-6 * (1.0 + sqrt((double)(shape[1] > shape[3] ? shape[1] : shape[3])));
    struct fused_attention attention = {};

    attention.element = pairs.element;
    attention.batch = shape[0];
    attention.length = shape[1];
    attention.heads = shape[2];
    attention.head_channels = shape[3];
    attention.qkv = pairs_items(&pairs, 3 * items, -2.0f, 2.0f);
    attention.output = pairs_blank(&pairs, items);
    attention.log_sums = pairs_output(&pairs, rows);
    attention.output_gradient = pairs_items(&pairs, items, -1.0f, 1.0f);
    attention.qkv_gradient = pairs_blank(&pairs, 3 * items);
    attention.products = pairs_scratch(&pairs, rows * sizeof(float));
    PAIRS_RUN(&pairs, fused_attention_forward, &attention, tolerance);
    PAIRS_RUN(&pairs, fused_attention_backward, &attention, tolerance);
    attention.head_channels = FUSED_ATTENTION_CHANNELS + 1;
    ck_assert_int_eq(fused_attention_forward_cuda(NULL, &attention), CAPU_TOO_LARGE);
    ck_assert_int_eq(fused_attention_backward_cuda(NULL, &attention), CAPU_TOO_LARGE);
    pairs_finish(&pairs);
}
END_TEST

void kernels_attention_add(TCase *tests, TCase *product_tests)
{
    LOOP_IN(product_tests, attention_agrees_step_by_step, attentions, 1);
    LOOP_IN(tests, fused_attention_agrees, fused_attentions, 1);
}

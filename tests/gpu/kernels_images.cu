/* Tests of the operations of image networks. */
#include "tests/gpu/kernels_test.h"

#include "kernels/average_pool.h"
#include "kernels/batch_norm.h"
#include "kernels/conv2d.h"
#include "kernels/dropout.h"
#include "kernels/max_pool.h"
#include "kernels/relu.h"

#include <math.h>

START_TEST(relu_agrees)
{
    struct pairs pairs = pairs_in(_i);
    size_t count = counts[shape_in(_i)];
    void *input = pairs_items(&pairs, count, -4.0f, 4.0f);
    void *gradient = pairs_items(&pairs, count, -1.0f, 1.0f);
    struct relu relu = {input, pairs_blank(&pairs, count), gradient, count,
                        (uint32_t)pairs.element};

    pairs_set(&pairs, input, count / 2, NAN);
    pairs_set(&pairs, input, 0, -0.0f);
    PAIRS_RUN(&pairs, relu_forward, &relu, 0.0);
    PAIRS_RUN(&pairs, relu_backward, &relu, 0.0);
    pairs_finish(&pairs);
}
END_TEST

/* Host and device drop the same items. */
START_TEST(dropout_agrees)
{
    static const float rates[] = {0.0f, 0.1f, 0.9f};
    struct pairs pairs = pairs_in(_i);
    size_t count = counts[shape_in(_i)];
    void *input = pairs_items(&pairs, count, 0.5f, 1.0f);
    void *output = pairs_blank(&pairs, count);
    void *gradient = pairs_items(&pairs, count, 0.5f, 1.0f);
    struct dropout dropout = {input, output, gradient, count, 1, 2, 0.0f, (uint32_t)pairs.element};

    for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
        dropout.rate = rates[i];
        dropout.counter = (UINT64_C(1) << 40) + i;
        PAIRS_RUN(&pairs, dropout_forward, &dropout, 0.0);
        PAIRS_RUN(&pairs, dropout_backward, &dropout, 0.0);
    }
    pairs_finish(&pairs);
}
END_TEST

static const struct max_pool pools[] = {
    {NULL, NULL, NULL, NULL, NULL, 1, 2, 2, 2, 0, 0, 0},
    {NULL, NULL, NULL, NULL, NULL, 7, 7, 9, 2, 0, 0, 0},
    {NULL, NULL, NULL, NULL, NULL, 3, 33, 16, 3, 0, 0, 0},
    {NULL, NULL, NULL, NULL, NULL, 5, 9, 12, 3, 2, 1, 0},
    {NULL, NULL, NULL, NULL, NULL, 2, 1, 2, 3, 2, 1, 0},
    {NULL, NULL, NULL, NULL, NULL, 2, 11, 8, 5, 1, 4, 0},
    {NULL, NULL, NULL, NULL, NULL, 3, 10, 13, 2, 3, 1, 0},
    {NULL, NULL, NULL, NULL, NULL, 4096, 28, 28, 2, 0, 0, 0},
    {NULL, NULL, NULL, NULL, NULL, 4096, 112, 112, 3, 2, 1, 0},
};

START_TEST(max_pool_agrees)
{
    struct pairs pairs = pairs_in(_i);
    struct max_pool pool = pools[shape_in(_i)];
    size_t input = pool.planes * pool.height * pool.width;
    size_t output = pool.planes * max_pool_output_height(&pool) * max_pool_output_width(&pool);
    void *values = pairs_items(&pairs, input, -1.0f, 1.0f);

    /* Of equal values the first is chosen. In bf16 more values are equal. */
    pairs_set(&pairs, values, 0, pairs_get(&pairs, values, 1));
    pairs_set(&pairs, values, input - 1, NAN);
    pool.element = pairs.element;
    pool.input = values;
    pool.output = pairs_blank(&pairs, output);
    pool.places = pairs_bytes(&pairs, output);
    pool.output_gradient = pairs_items(&pairs, output, -1.0f, 1.0f);
    pool.input_gradient = pairs_blank(&pairs, input);
    PAIRS_RUN(&pairs, max_pool_forward, &pool, 0.0);
    PAIRS_RUN(&pairs, max_pool_backward, &pool, 0.0);
    pairs_finish(&pairs);
}
END_TEST

/* Invalid pools are rejected before a launch, which would have no blocks. The host's test covers
   all invalid cases. */
START_TEST(invalid_pools_are_rejected)
{
    struct max_pool pool = pools[1];

    pool.window = 17;
    ck_assert_int_eq(max_pool_forward_cuda(NULL, &pool), CAPU_INVALID);
    ck_assert_int_eq(max_pool_backward_cuda(NULL, &pool), CAPU_INVALID);
    pool.window = pool.height + 1;
    ck_assert_int_eq(max_pool_forward_cuda(NULL, &pool), CAPU_INVALID);
    ck_assert_int_eq(max_pool_backward_cuda(NULL, &pool), CAPU_INVALID);
}
END_TEST

static const struct {
    size_t planes;
    uint32_t plane;
} averages[] = {{1, 1}, {9, 49}, {300, 5}, {3, 1000}, {64 * 2048, 49}};

START_TEST(average_pool_agrees)
{
    struct pairs pairs = pairs_in(_i);
    struct average_pool pool = {};
    size_t count;

    pool.element = pairs.element;
    pool.planes = averages[shape_in(_i)].planes;
    pool.plane = averages[shape_in(_i)].plane;
    count = pool.planes * pool.plane;
    pool.input = pairs_items(&pairs, count, -1.0f, 3.0f);
    pool.output = pairs_blank(&pairs, pool.planes);
    pool.output_gradient = pairs_items(&pairs, pool.planes, -1.0f, 1.0f);
    pool.input_gradient = pairs_blank(&pairs, count);
    PAIRS_RUN(&pairs, average_pool_forward, &pool, CLOSE);
    PAIRS_RUN(&pairs, average_pool_backward, &pool, CLOSE);
    pool.plane = 0;
    ck_assert_int_eq(average_pool_forward_cuda(NULL, &pool), CAPU_INVALID);
    ck_assert_int_eq(average_pool_backward_cuda(NULL, &pool), CAPU_INVALID);
    pairs_finish(&pairs);
}
END_TEST

static const struct {
    uint32_t batch;
    uint32_t channels;
    uint32_t plane;
} planes[] = {{2, 1, 1}, {3, 4, 9}, {5, 3, 49}, {6, 2, 785}, {64, 64, 3136}}; /* 6 * 785: 3 parts */

START_TEST(batch_norm_agrees)
{
    struct pairs pairs = pairs_in(_i);
    struct batch_norm norm = {};
    size_t count;

    norm.element = pairs.element;
    norm.batch = planes[shape_in(_i)].batch;
    norm.channels = planes[shape_in(_i)].channels;
    norm.plane = planes[shape_in(_i)].plane;
    norm.momentum = 0.1f;
    norm.epsilon = 1e-5f;
    count = (size_t)norm.batch * norm.channels * norm.plane;
    norm.input = pairs_items(&pairs, count, -1.0f, 3.0f);
    norm.output = pairs_blank(&pairs, count);
    norm.scale = pairs_items(&pairs, norm.channels, 0.5f, 1.5f);
    norm.shift = pairs_items(&pairs, norm.channels, -1.0f, 1.0f);
    norm.running_mean = pairs_floats(&pairs, norm.channels, -1.0f, 1.0f);
    norm.running_variance = pairs_floats(&pairs, norm.channels, 0.5f, 1.5f);
    norm.saved_mean = pairs_output(&pairs, norm.channels);
    norm.saved_rstd = pairs_output(&pairs, norm.channels);
    norm.gradient = pairs_items(&pairs, count, -1.0f, 1.0f);
    norm.scale_gradient = pairs_output(&pairs, norm.channels);
    norm.shift_gradient = pairs_output(&pairs, norm.channels);
    PAIRS_RUN(&pairs, batch_norm_forward, &norm, NEAR);
    PAIRS_RUN(&pairs, batch_norm_replay, &norm, NEAR);
    PAIRS_RUN(&pairs, batch_norm_infer, &norm, NEAR);
    PAIRS_RUN(&pairs, batch_norm_backward, &norm, count > 1000000 ? 1e-3 : NEAR);
    pairs_finish(&pairs);
}
END_TEST

/* batch, channels in and out, height, width, kernel, padding, stride */
static const uint32_t convolutions[][8] = {
    {1, 1, 1, 3, 3, 3, 0, 0},        {2, 3, 2, 5, 7, 3, 1, 1},
    {9, 2, 5, 12, 11, 5, 2, 0},      {3, 4, 3, 2, 2, 4, 3, 1},
    {10, 8, 6, 6, 4, 1, 0, 1},       {2, 8, 70, 9, 8, 3, 1, 1},
    {70, 2, 3, 3, 3, 2, 1, 1},       {2, 8, 70, 9, 8, 3, 1, 2},
    {2, 3, 5, 17, 14, 7, 3, 2},      {3, 8, 6, 7, 4, 1, 0, 2},
    {2, 2, 3, 10, 11, 2, 2, 3},      {1, 2, 2, 1, 5, 3, 1, 4}, /* with some remainders no pixel */
    {70, 3, 2, 2, 2, 1, 0, 1}, /* more images than parts of the weight gradient */
    {16, 64, 128, 56, 56, 3, 1, 1},  {16, 256, 64, 28, 28, 1, 0, 1},
    {16, 128, 128, 56, 56, 3, 1, 2}, {16, 256, 512, 56, 56, 1, 0, 2},
    {16, 3, 64, 224, 224, 7, 3, 2},
};

START_TEST(convolution_agrees)
{
    struct pairs pairs = pairs_in(_i);
    const uint32_t *shape = convolutions[shape_in(_i)];
    struct conv2d conv = {};
    size_t input;
    size_t weight;
    size_t output;
    double forth;   /* tolerances: forward sums over a window, */
    double weights; /* the weight gradient sums over images and positions, */
    double back;    /* the input gradient sums over a window */

    conv.element = pairs.element;
    conv.batch = shape[0];
    conv.input_channels = shape[1];
    conv.output_channels = shape[2];
    conv.height = shape[3];
    conv.width = shape[4];
    conv.kernel = shape[5];
    conv.padding = shape[6];
    conv.stride = shape[7];
    input = (size_t)conv.batch * conv.input_channels * conv.height * conv.width;
    weight = (size_t)conv.output_channels * conv.input_channels * conv.kernel * conv.kernel;
    output = (size_t)conv.batch * conv.output_channels * conv2d_output_height(&conv) *
             conv2d_output_width(&conv);
    conv.input = pairs_items(&pairs, input, -1.0f, 1.0f);
    conv.weight = pairs_items(&pairs, weight, -1.0f, 1.0f);
    conv.bias = pairs_items(&pairs, conv.output_channels, -1.0f, 1.0f);
    conv.output = pairs_blank(&pairs, output);
    conv.output_gradient = pairs_items(&pairs, output, -1.0f, 1.0f);
    conv.input_gradient = pairs_blank(&pairs, input);
    conv.weight_gradient = pairs_output(&pairs, weight);
    conv.bias_gradient = pairs_output(&pairs, conv.output_channels);
    conv.workspace = pairs_scratch(&pairs, conv2d_workspace_bytes(&conv));
    forth = fmax(NEAR, product_tolerance(weight / conv.output_channels));
    weights = fmax(NEAR, product_tolerance(output / conv.output_channels));
    back = fmax(NEAR, product_tolerance(weight / conv.input_channels));
    PAIRS_RUN(&pairs, conv2d_forward, &conv, forth);
    PAIRS_RUN(&pairs, conv2d_backward_input, &conv, back);
    PAIRS_RUN(&pairs, conv2d_backward_weight, &conv, weights);
    conv.bias = NULL;
    conv.bias_gradient = NULL;
    PAIRS_RUN(&pairs, conv2d_forward, &conv, forth);
    PAIRS_RUN(&pairs, conv2d_backward_weight, &conv, weights);
    pairs_finish(&pairs);
}
END_TEST

START_TEST(invalid_convolutions_are_rejected)
{
    struct conv2d conv = {};

    conv.batch = 1;
    conv.input_channels = 1;
    conv.output_channels = 1;
    conv.height = 2;
    conv.width = 5;
    conv.kernel = 3;
    ck_assert_int_eq(conv2d_forward_cuda(NULL, &conv), CAPU_INVALID);
    ck_assert_int_eq(conv2d_backward_input_cuda(NULL, &conv), CAPU_INVALID);
    ck_assert_int_eq(conv2d_backward_weight_cuda(NULL, &conv), CAPU_INVALID);
}
END_TEST

void kernels_images_add(TCase *tests)
{
    LOOP_IN(tests, relu_agrees, counts, 1);
    LOOP_IN(tests, dropout_agrees, counts, 1);
    LOOP_IN(tests, max_pool_agrees, pools, 2);
    tcase_add_test(tests, invalid_pools_are_rejected);
    LOOP_IN(tests, average_pool_agrees, averages, 1);
    LOOP_IN(tests, batch_norm_agrees, planes, 1);
    LOOP_IN(tests, convolution_agrees, convolutions, 5);
    tcase_add_test(tests, invalid_convolutions_are_rejected);
}

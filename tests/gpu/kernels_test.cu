/*
 * Every operation's CUDA kernels against its host implementation, and against themselves: two runs
 * give the same bits. Shapes are odd, buffers lie at odd addresses.
 *
 * Built twice: by nvcc for a GPU (skipped without one), and by the C++ compiler over the emulation,
 * which runs the same kernels on the host. The large shapes are for the GPU alone; with
 * KERNELS_SMALL set, not for it either.
 */
#include "tests/gpu/pairs.h"

#include "kernels/adamw.h"
#include "kernels/attention.h"
#include "kernels/average_pool.h"
#include "kernels/batch_norm.h"
#include "kernels/blas.cuh"
#include "kernels/conv2d.h"
#include "kernels/dropout.h"
#include "kernels/embedding.h"
#include "kernels/gelu.h"
#include "kernels/gradient_norm.h"
#include "kernels/initialise.h"
#include "kernels/layer_norm.h"
#include "kernels/matmul.h"
#include "kernels/max_pool.h"
#include "kernels/relu.h"
#include "kernels/residual.h"
#include "kernels/sgd.h"
#include "kernels/softmax_cross_entropy.h"

#include <check.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Operations that store fp32 or bf16 are tested with both. */
static const enum element elements[] = {ELEMENT_FP32, ELEMENT_BF16};
#define ELEMENT_COUNT (sizeof(elements) / sizeof(elements[0]))

/* Float sums in other orders, over some hundreds of terms. */
#define NEAR 2e-5
/* Single operations, with and without contraction. */
#define CLOSE 1e-6

/* Buffers at a 256-byte border, and one float off. */
static const size_t shifts[] = {0, sizeof(float)};
#define SHIFT_COUNT (sizeof(shifts) / sizeof(shifts[0]))

static const size_t counts[] = {1, 1000, 4099, 20000003};

/* What a test loops over: a shift, and a count or shape. */
static struct pairs pairs_of(int i)
{
    struct pairs pairs = {};

    pairs.shift = shifts[(size_t)i % SHIFT_COUNT];
    return pairs;
}

static size_t shape_of(int i)
{
    return (size_t)i / SHIFT_COUNT;
}

/* And a test that loops over element types too. */
static struct pairs pairs_in(int i)
{
    struct pairs pairs = {};

    pairs.element = elements[(size_t)i % ELEMENT_COUNT];
    pairs.shift = shifts[(size_t)i / ELEMENT_COUNT % SHIFT_COUNT];
    return pairs;
}

static size_t shape_in(int i)
{
    return (size_t)i / ELEMENT_COUNT / SHIFT_COUNT;
}

START_TEST(rectifiers)
{
    struct pairs pairs = pairs_of(_i);
    size_t count = counts[shape_of(_i)];
    float *input = pairs_floats(&pairs, count, -4.0f, 4.0f);
    float *gradient = pairs_floats(&pairs, count, -1.0f, 1.0f);
    struct relu relu = {input, pairs_output(&pairs, count), gradient, count};

    input[count / 2] = NAN;
    input[0] = -0.0f;
    PAIRS_RUN(&pairs, relu_forward, &relu, 0.0);
    PAIRS_RUN(&pairs, relu_backward, &relu, 0.0);
    pairs_finish(&pairs);
}
END_TEST

START_TEST(elementwise)
{
    struct pairs pairs = pairs_in(_i);
    size_t count = counts[shape_in(_i)];
    uint32_t element = pairs.element;
    void *input = pairs_items(&pairs, count, -4.0f, 4.0f);
    void *output = pairs_blank(&pairs, count);
    void *gradient = pairs_items(&pairs, count, -1.0f, 1.0f);
    void *other = pairs_items(&pairs, count, -1.0f, 1.0f);
    struct gelu gelu = {input, output, gradient, count, element};
    struct residual residual = {input, other, output, other, gradient, NULL, count, element};

    pairs_set(&pairs, input, count / 2, NAN);
    pairs_set(&pairs, input, 0, -0.0f);
    PAIRS_RUN(&pairs, gelu_forward, &gelu, 4 * CLOSE);
    PAIRS_RUN(&pairs, gelu_backward, &gelu, 4 * CLOSE);
    PAIRS_RUN(&pairs, residual_forward, &residual, 0.0);
    PAIRS_RUN(&pairs, residual_backward, &residual, 0.0);
    residual.branch_gradient = output;
    PAIRS_RUN(&pairs, residual_backward, &residual, 0.0);
    pairs_finish(&pairs);
}
END_TEST

START_TEST(optimizers)
{
    struct pairs pairs = pairs_of(_i);
    size_t count = counts[shape_of(_i)];
    float *parameter = pairs_floats(&pairs, count, -1.0f, 1.0f);
    float *first = pairs_floats(&pairs, count, -1.0f, 1.0f);
    float *second = pairs_floats(&pairs, count, 0.0f, 1.0f);
    float *gradient = pairs_floats(&pairs, count, -1.0f, 1.0f);
    struct sgd sgd = {parameter, first, gradient, count, 0.1f, 0.9f, 1e-3f};
    struct adamw adamw = {parameter, first, second, gradient, count, 1e-3f, 0.9f,
                          0.95f,     1e-8f, 0.1f,   0.5f,     3,     NULL};

    PAIRS_RUN(&pairs, sgd_update, &sgd, CLOSE);
    PAIRS_RUN(&pairs, adamw_update, &adamw, CLOSE);
    pairs.element = ELEMENT_BF16;
    adamw.working = (uint16_t *)pairs_blank(&pairs, count);
    PAIRS_RUN(&pairs, adamw_update, &adamw, CLOSE);
    pairs_finish(&pairs);
}
END_TEST

START_TEST(norm_of_gradients)
{
    struct pairs pairs = pairs_of(_i);
    size_t count = counts[shape_of(_i)];
    float *gradient = pairs_floats(&pairs, count, -1.0f, 1.0f);
    struct gradient_norm norm = {gradient, count, pairs_output(&pairs, 1)};

    PAIRS_RUN(&pairs, gradient_norm, &norm, NEAR);
    pairs_finish(&pairs);
}
END_TEST

/* The same items are zeroed, to the bit, and the same numbers drawn. */
START_TEST(random_numbers)
{
    static const float rates[] = {0.0f, 0.1f, 0.9f};
    struct pairs pairs = pairs_of(_i);
    size_t count = counts[shape_of(_i)];
    float *input = pairs_floats(&pairs, count, 0.5f, 1.0f);
    float *output = pairs_output(&pairs, count);
    float *gradient = pairs_floats(&pairs, count, 0.5f, 1.0f);
    struct dropout dropout = {input, output, gradient, count, 1, 2, 0.0f};
    struct initialise initial = {output, count,       UINT64_C(0x123456789abcdef), 7, 0, 0.25f,
                                 3.0f,   ELEMENT_FP32};

    for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
        dropout.rate = rates[i];
        dropout.counter = (UINT64_C(1) << 40) + i;
        PAIRS_RUN(&pairs, dropout_forward, &dropout, 0.0);
        PAIRS_RUN(&pairs, dropout_backward, &dropout, 0.0);
    }
    initial.kind = INITIALISE_CONSTANT;
    PAIRS_RUN(&pairs, initialise, &initial, 0.0);
    initial.kind = INITIALISE_UNIFORM;
    PAIRS_RUN(&pairs, initialise, &initial, 0.0);
    initial.kind = INITIALISE_NORMAL;
    PAIRS_RUN(&pairs, initialise, &initial, 1e-7); /* a bit in the last place, at most */
    pairs.element = ELEMENT_BF16;
    initial.element = ELEMENT_BF16;
    initial.output = pairs_blank(&pairs, count);
    PAIRS_RUN(&pairs, initialise, &initial, 1e-7);
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

START_TEST(max_pooling)
{
    struct pairs pairs = pairs_of(_i);
    struct max_pool pool = pools[shape_of(_i)];
    size_t input = pool.planes * pool.height * pool.width;
    size_t output = pool.planes * max_pool_output_height(&pool) * max_pool_output_width(&pool);
    float *values = pairs_floats(&pairs, input, -1.0f, 1.0f);

    values[0] = values[1]; /* equals: the first one is chosen */
    values[input - 1] = NAN;
    pool.input = values;
    pool.output = pairs_output(&pairs, output);
    pool.places = pairs_bytes(&pairs, output);
    pool.output_gradient = pairs_floats(&pairs, output, -1.0f, 1.0f);
    pool.input_gradient = pairs_output(&pairs, input);
    PAIRS_RUN(&pairs, max_pool_forward, &pool, 0.0);
    PAIRS_RUN(&pairs, max_pool_backward, &pool, 0.0);
    pairs_finish(&pairs);
}
END_TEST

/* Without a launch, which would have no blocks; the host's test has all of them. */
START_TEST(bad_pools)
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

START_TEST(average_pooling)
{
    struct pairs pairs = pairs_of(_i);
    struct average_pool pool = {};
    size_t count;

    pool.planes = averages[shape_of(_i)].planes;
    pool.plane = averages[shape_of(_i)].plane;
    count = pool.planes * pool.plane;
    pool.input = pairs_floats(&pairs, count, -1.0f, 3.0f);
    pool.output = pairs_output(&pairs, pool.planes);
    pool.output_gradient = pairs_floats(&pairs, pool.planes, -1.0f, 1.0f);
    pool.input_gradient = pairs_output(&pairs, count);
    PAIRS_RUN(&pairs, average_pool_forward, &pool, CLOSE);
    PAIRS_RUN(&pairs, average_pool_backward, &pool, CLOSE);
    pool.plane = 0;
    ck_assert_int_eq(average_pool_forward_cuda(NULL, &pool), CAPU_INVALID);
    ck_assert_int_eq(average_pool_backward_cuda(NULL, &pool), CAPU_INVALID);
    pairs_finish(&pairs);
}
END_TEST

static const struct {
    uint32_t rows;
    uint32_t classes;
} losses[] = {{1, 1}, {9, 10}, {5, 257}, {300, 33}, {512, 50257}};

START_TEST(softmax_and_loss)
{
    struct pairs pairs = pairs_in(_i);
    uint32_t rows = losses[shape_in(_i)].rows;
    uint32_t classes = losses[shape_in(_i)].classes;
    size_t count = (size_t)rows * classes;
    struct softmax_cross_entropy loss = {};

    loss.element = pairs.element;
    loss.rows = rows;
    loss.classes = classes;
    loss.scale = 1.0f / (float)rows;
    loss.logits = pairs_items(&pairs, count, -30.0f, 30.0f);
    loss.labels = pairs_numbers(&pairs, rows, classes);
    loss.probabilities = pairs_blank(&pairs, count);
    loss.losses = pairs_output(&pairs, rows);
    loss.mean = pairs_output(&pairs, 1);
    loss.gradient = pairs_blank(&pairs, count);
    PAIRS_RUN(&pairs, softmax_cross_entropy_forward, &loss, NEAR);
    PAIRS_RUN(&pairs, softmax_cross_entropy_backward, &loss, NEAR);
    pairs_finish(&pairs);
}
END_TEST

static const struct embedding embeddings[] = {
    {NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1, 1, 1, 1, 0},
    {NULL, NULL, NULL, NULL, NULL, NULL, NULL, 3, 7, 5, 4, 0},
    {NULL, NULL, NULL, NULL, NULL, NULL, NULL, 2, 150, 261, 9, 0},
    {NULL, NULL, NULL, NULL, NULL, NULL, NULL, 4, 1024, 768, 256, 0},
};

/* Backward adds in the host's order: the same bits. */
START_TEST(embedding_of_tokens)
{
    struct pairs pairs = pairs_in(_i);
    struct embedding embedding = embeddings[shape_in(_i)];
    size_t rows = (size_t)embedding.batch * embedding.length;
    size_t channels = embedding.channels;

    embedding.element = pairs.element;
    embedding.tokens = pairs_numbers(&pairs, rows, embedding.vocabulary);
    embedding.token_weight = pairs_items(&pairs, embedding.vocabulary * channels, -1.0f, 1.0f);
    embedding.position_weight = pairs_items(&pairs, embedding.length * channels, -1.0f, 1.0f);
    embedding.output = pairs_blank(&pairs, rows * channels);
    embedding.output_gradient = pairs_items(&pairs, rows * channels, -1.0f, 1.0f);
    embedding.token_gradient = pairs_floats(&pairs, embedding.vocabulary * channels, -1.0f, 1.0f);
    embedding.position_gradient = pairs_floats(&pairs, embedding.length * channels, -1.0f, 1.0f);
    PAIRS_RUN(&pairs, embedding_forward, &embedding, 0.0);
    PAIRS_RUN(&pairs, embedding_backward, &embedding, 0.0);
    pairs_finish(&pairs);
}
END_TEST

static const struct {
    uint32_t rows;
    uint32_t channels;
} norms[] = {{1, 1}, {3, 5}, {40, 33}, {70, 768}, {8192, 1600}};

START_TEST(layer_norms)
{
    struct pairs pairs = pairs_in(_i);
    struct layer_norm norm = {};
    size_t count = (size_t)norms[shape_in(_i)].rows * norms[shape_in(_i)].channels;

    norm.element = pairs.element;
    norm.rows = norms[shape_in(_i)].rows;
    norm.channels = norms[shape_in(_i)].channels;
    norm.input = pairs_items(&pairs, count, -1.0f, 3.0f);
    norm.scale = pairs_items(&pairs, norm.channels, 0.5f, 1.5f);
    norm.shift = pairs_items(&pairs, norm.channels, -1.0f, 1.0f);
    norm.output = pairs_blank(&pairs, count);
    norm.mean = pairs_output(&pairs, norm.rows);
    norm.rstd = pairs_output(&pairs, norm.rows);
    norm.output_gradient = pairs_items(&pairs, count, -1.0f, 1.0f);
    norm.input_gradient = pairs_items(&pairs, count, -1.0f, 1.0f);
    norm.scale_gradient = pairs_floats(&pairs, norm.channels, -1.0f, 1.0f);
    norm.shift_gradient = pairs_floats(&pairs, norm.channels, -1.0f, 1.0f);
    PAIRS_RUN(&pairs, layer_norm_forward, &norm, NEAR);
    PAIRS_RUN(&pairs, layer_norm_backward, &norm, norm.rows > 1000 ? 5e-4 : NEAR);
    pairs_finish(&pairs);
}
END_TEST

static const struct {
    uint32_t batch;
    uint32_t channels;
    uint32_t plane;
} planes[] = {{2, 1, 1}, {3, 4, 9}, {5, 3, 49}, {4, 2, 784}, {64, 64, 3136}};

START_TEST(batch_norms)
{
    struct pairs pairs = pairs_of(_i);
    struct batch_norm norm = {};
    size_t count;

    norm.batch = planes[shape_of(_i)].batch;
    norm.channels = planes[shape_of(_i)].channels;
    norm.plane = planes[shape_of(_i)].plane;
    norm.momentum = 0.1f;
    norm.epsilon = 1e-5f;
    count = (size_t)norm.batch * norm.channels * norm.plane;
    norm.input = pairs_floats(&pairs, count, -1.0f, 3.0f);
    norm.output = pairs_output(&pairs, count);
    norm.scale = pairs_floats(&pairs, norm.channels, 0.5f, 1.5f);
    norm.shift = pairs_floats(&pairs, norm.channels, -1.0f, 1.0f);
    norm.running_mean = pairs_floats(&pairs, norm.channels, -1.0f, 1.0f);
    norm.running_variance = pairs_floats(&pairs, norm.channels, 0.5f, 1.5f);
    norm.saved_mean = pairs_output(&pairs, norm.channels);
    norm.saved_rstd = pairs_output(&pairs, norm.channels);
    norm.gradient = pairs_floats(&pairs, count, -1.0f, 1.0f);
    norm.scale_gradient = pairs_output(&pairs, norm.channels);
    norm.shift_gradient = pairs_output(&pairs, norm.channels);
    PAIRS_RUN(&pairs, batch_norm_forward, &norm, NEAR);
    PAIRS_RUN(&pairs, batch_norm_replay, &norm, NEAR);
    PAIRS_RUN(&pairs, batch_norm_infer, &norm, NEAR);
    PAIRS_RUN(&pairs, batch_norm_backward, &norm, count > 1000000 ? 1e-3 : NEAR);
    pairs_finish(&pairs);
}
END_TEST

/* Of products whose factors are rounded first (KERNELS_MATMUL), over `depth` terms. */
static double product_tolerance(size_t depth)
{
    const char *arithmetic = getenv("KERNELS_MATMUL"); /* for factors stored in fp32 */
    double rounding = 2e-6;                            /* fp32, sums in another order */

    if (arithmetic != NULL && strcmp(arithmetic, "tf32") == 0) {
        rounding = 1e-3;
    } else if (arithmetic != NULL && strcmp(arithmetic, "bf16") == 0) {
        rounding = 8e-3;
    }
    return rounding * (1.0 + sqrt((double)depth));
}

/* batch, channels in and out, height, width, kernel, padding, stride */
static const uint32_t convolutions[][8] = {
    {1, 1, 1, 3, 3, 3, 0, 0},        {2, 3, 2, 5, 7, 3, 1, 1},
    {9, 2, 5, 12, 11, 5, 2, 0},      {3, 4, 3, 2, 2, 4, 3, 1},
    {10, 8, 6, 6, 4, 1, 0, 1},       {3, 17, 70, 9, 8, 3, 1, 1},
    {70, 2, 3, 3, 3, 2, 1, 1},       {3, 17, 70, 9, 8, 3, 1, 2},
    {2, 3, 5, 17, 14, 7, 3, 2},      {3, 8, 6, 7, 4, 1, 0, 2},
    {2, 2, 3, 10, 11, 2, 2, 3},      {1, 2, 2, 1, 5, 3, 1, 4}, /* no pixel of some remainders */
    {16, 64, 128, 56, 56, 3, 1, 1},  {16, 256, 64, 28, 28, 1, 0, 1},
    {16, 128, 128, 56, 56, 3, 1, 2}, {16, 256, 512, 56, 56, 1, 0, 2},
    {16, 3, 64, 224, 224, 7, 3, 2},
};

START_TEST(convolution)
{
    struct pairs pairs = pairs_of(_i);
    const uint32_t *shape = convolutions[shape_of(_i)];
    struct conv2d conv = {};
    size_t input;
    size_t weight;
    size_t output;
    double forth; /* tolerances: sums over a window, over images and places, over a window again */
    double weights;
    double back;

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
    conv.input = pairs_floats(&pairs, input, -1.0f, 1.0f);
    conv.weight = pairs_floats(&pairs, weight, -1.0f, 1.0f);
    conv.bias = pairs_floats(&pairs, conv.output_channels, -1.0f, 1.0f);
    conv.output = pairs_output(&pairs, output);
    conv.output_gradient = pairs_floats(&pairs, output, -1.0f, 1.0f);
    conv.input_gradient = pairs_output(&pairs, input);
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

START_TEST(bad_convolutions)
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

static const struct {
    uint32_t rows;
    uint32_t inputs;
    uint32_t outputs;
} products[] = {{1, 1, 1}, {7, 5, 3}, {33, 17, 40}, {1024, 768, 3072}};

START_TEST(products_and_biases)
{
    struct pairs pairs = pairs_in(_i);
    struct matmul matmul = {};
    size_t input;
    size_t weight;
    size_t output;

    matmul.element = pairs.element;
    matmul.rows = products[shape_in(_i)].rows;
    matmul.inputs = products[shape_in(_i)].inputs;
    matmul.outputs = products[shape_in(_i)].outputs;
    input = (size_t)matmul.rows * matmul.inputs;
    weight = (size_t)matmul.outputs * matmul.inputs;
    output = (size_t)matmul.rows * matmul.outputs;
    matmul.input = pairs_items(&pairs, input, -1.0f, 1.0f);
    matmul.weight = pairs_items(&pairs, weight, -1.0f, 1.0f);
    matmul.output = pairs_blank(&pairs, output);
    matmul.output_gradient = pairs_items(&pairs, output, -1.0f, 1.0f);
    matmul.input_gradient = pairs_blank(&pairs, input);
    matmul.weight_gradient = pairs_output(&pairs, weight);
    PAIRS_RUN(&pairs, matmul_forward, &matmul, product_tolerance(matmul.inputs));
    PAIRS_RUN(&pairs, matmul_backward_input, &matmul, product_tolerance(matmul.outputs));
    PAIRS_RUN(&pairs, matmul_backward_weight, &matmul, product_tolerance(matmul.rows));
    matmul.bias = pairs_items(&pairs, matmul.outputs, -1.0f, 1.0f);
    matmul.bias_gradient = pairs_output(&pairs, matmul.outputs);
    PAIRS_RUN(&pairs, matmul_forward, &matmul, product_tolerance(matmul.inputs));
    PAIRS_RUN(&pairs, matmul_backward_weight, &matmul, product_tolerance(matmul.rows));
    matmul.accumulate = 1;
    PAIRS_RUN(&pairs, matmul_backward_weight, &matmul, product_tolerance(matmul.rows));
    pairs_finish(&pairs);
}
END_TEST

/* batch, length, heads, channels of a head */
static const uint32_t attentions[][4] = {
    {1, 1, 1, 1}, {2, 5, 3, 4}, {1, 40, 2, 8}, {2, 1024, 3, 64}};

START_TEST(attention_step_by_step)
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

/* The host refuses what is no class or token; here such a row becomes NaN and nothing else does. */
START_TEST(unknown_labels_and_tokens)
{
    struct pairs pairs = pairs_in(_i);
    struct softmax_cross_entropy loss = {};
    struct embedding embedding = {};
    int32_t *numbers = pairs_numbers(&pairs, 3, 4);

    numbers[1] = -1;
    numbers[2] = 4;
    loss.element = pairs.element;
    embedding.element = pairs.element;
    loss.rows = 3;
    loss.classes = 4;
    loss.labels = numbers;
    loss.logits = pairs_items(&pairs, 12, -1.0f, 1.0f);
    loss.probabilities = pairs_blank(&pairs, 12);
    loss.losses = pairs_zeros(&pairs, 3);
    loss.mean = pairs_output(&pairs, 1);
    loss.gradient = pairs_clear(&pairs, 12);
    embedding.batch = 1;
    embedding.length = 3;
    embedding.channels = 4;
    embedding.vocabulary = 4;
    embedding.tokens = numbers;
    embedding.token_weight = pairs_items(&pairs, 16, -1.0f, 1.0f);
    embedding.position_weight = pairs_items(&pairs, 12, -1.0f, 1.0f);
    embedding.output = pairs_clear(&pairs, 12);
    embedding.output_gradient = pairs_items(&pairs, 12, -1.0f, 1.0f);
    embedding.token_gradient = pairs_zeros(&pairs, 16);
    embedding.position_gradient = pairs_zeros(&pairs, 12);
    pairs_run_cuda(&pairs, softmax_cross_entropy_forward_cuda, &loss, sizeof(loss));
    pairs_run_cuda(&pairs, softmax_cross_entropy_backward_cuda, &loss, sizeof(loss));
    pairs_run_cuda(&pairs, embedding_forward_cuda, &embedding, sizeof(embedding));
    pairs_run_cuda(&pairs, embedding_backward_cuda, &embedding, sizeof(embedding));
    for (size_t i = 0; i < 12; i++) {
        ck_assert_int_eq(isnan(pairs_get(&pairs, loss.gradient, i)) != 0, i >= 4);
        ck_assert_int_eq(isnan(pairs_get(&pairs, embedding.output, i)) != 0, i >= 4);
        ck_assert_int_eq(isnan(loss.losses[i / 4]) != 0, i >= 4);
    }
    ck_assert(isnan(*loss.mean));
    for (size_t i = 0; i < 16; i++) {
        ck_assert(!isnan(embedding.token_gradient[i]));
        ck_assert_int_eq(embedding.token_gradient[i] != 0.0f, (int32_t)(i / 4) == numbers[0]);
    }
    pairs_finish(&pairs);
}
END_TEST

#ifdef KERNELS_EMULATED
/* What the environment asks for is found before the first op. In a process of its own each time. */
START_TEST(settings_of_products)
{
    setenv("KERNELS_MATMUL", "fp8", 1);
    ck_assert_int_eq(blas_prepare(NULL), CAPU_INVALID);
    setenv("KERNELS_MATMUL", "bf16", 1);
    ck_assert_int_eq(blas_prepare(NULL), CAPU_OK);
}
END_TEST

/* A handle is made on the stream's device, and the device that was current stays so. */
START_TEST(streams_of_two_devices)
{
    struct emulation_stream streams[2] = {{0}, {1}};
    int current = -1;
    void *scratch = NULL;
    void *other = NULL;

    for (size_t i = 0; i < 2; i++) {
        ck_assert_int_eq(blas_prepare(&streams[i]), CAPU_OK);
        ck_assert_int_eq(cudaGetDevice(&current), cudaSuccess);
        ck_assert_int_eq(current, 0);
    }
    ck_assert_int_eq(blas_scratch(&streams[1], &scratch), CAPU_OK);
    /* Another stream at the same address. */
    streams[1].device = 2;
    ck_assert_int_eq(blas_scratch(&streams[1], &other), CAPU_OK);
    ck_assert_ptr_ne(scratch, other);
}
END_TEST

START_TEST(without_cublas)
{
    struct matmul matmul = {};

    setenv("KERNELS_CUBLAS", "/nowhere/libcublas.so", 1);
    ck_assert_int_eq(blas_prepare(NULL), CAPU_UNSUPPORTED);
    matmul.rows = 1;
    ck_assert_int_eq(matmul_backward_input_cuda(NULL, &matmul), CAPU_UNSUPPORTED);
}
END_TEST
#endif

/* The last shapes of a table are large: too much for the emulation, and for checking tools.
 */
static bool wants_large(void)
{
#ifdef KERNELS_EMULATED
    return false;
#else
    return getenv("KERNELS_SMALL") == NULL;
#endif
}

static Suite *kernels_suite(void)
{
    Suite *suite = suite_create("kernels");
    TCase *tests = tcase_create("kernels");
    TCase *product_tests = tcase_create("products"); /* what KERNELS_MATMUL matters for */

#define LOOP(tests, test, items, large)                                           \
    tcase_add_loop_test(tests, test, 0,                                           \
                        (int)(SHIFT_COUNT * (sizeof(items) / sizeof((items)[0]) - \
                                             (wants_large() ? 0u : (unsigned)(large)))))
/* Of these the last shape is large, and only aligned: its host side takes long enough. */
#define LOOP_IN(tests, test, items)                                                    \
    tcase_add_loop_test(                                                               \
        tests, test, 0,                                                                \
        (int)(SHIFT_COUNT * ELEMENT_COUNT * (sizeof(items) / sizeof((items)[0]) - 1) + \
              (wants_large() ? ELEMENT_COUNT : 0)))
    LOOP(tests, rectifiers, counts, 1);
    LOOP_IN(tests, elementwise, counts);
    LOOP(tests, optimizers, counts, 1);
    LOOP(tests, norm_of_gradients, counts, 1);
    LOOP(tests, random_numbers, counts, 1);
    LOOP(tests, max_pooling, pools, 2);
    tcase_add_test(tests, bad_pools);
    LOOP(tests, average_pooling, averages, 1);
    LOOP_IN(tests, softmax_and_loss, losses);
    LOOP_IN(tests, embedding_of_tokens, embeddings);
    LOOP_IN(tests, layer_norms, norms);
    LOOP(tests, batch_norms, planes, 1);
    LOOP(tests, convolution, convolutions, 5);
    tcase_add_test(tests, bad_convolutions);
    LOOP_IN(product_tests, products_and_biases, products);
    LOOP_IN(product_tests, attention_step_by_step, attentions);
    tcase_add_loop_test(tests, unknown_labels_and_tokens, 0, (int)(SHIFT_COUNT * ELEMENT_COUNT));
#ifdef KERNELS_EMULATED
    tcase_add_test(product_tests, settings_of_products);
    tcase_add_test(product_tests, without_cublas);
    tcase_add_test(product_tests, streams_of_two_devices);
#endif
    suite_add_tcase(suite, tests);
    suite_add_tcase(suite, product_tests);
    return suite;
}

int main(void)
{
    SRunner *runner;
    int count = 0;
    int failed;
    cudaError_t error = cudaGetDeviceCount(&count);

    if (error != cudaSuccess || count == 0) {
        printf("skipped: no GPU: %s\n", cudaGetErrorString(error));
        return 77;
    }
    runner = srunner_create(kernels_suite());
#ifndef KERNELS_EMULATED
    srunner_set_fork_status(runner, CK_NOFORK); /* CUDA does not survive a fork */
#endif
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/*
 * Compares the CUDA kernels of every operation with its host implementation, and with themselves:
 * two runs must give the same bits. Shapes are not round, and buffers are not always aligned.
 *
 * Built with nvcc for a GPU (skipped without one), and over the test driver, which executes the
 * kernels' PTX (tests/ptx/kernels). Only the GPU runs the large shapes: those are left out if
 * KERNELS_SMALL is set.
 */
#include "tests/gpu/kernels_test.h"

#include "kernels/adamw.h"
#include "kernels/blas.cuh"
#include "kernels/embedding.h"
#include "kernels/gelu.h"
#include "kernels/gradient_norm.h"
#include "kernels/initialise.h"
#include "kernels/layer_norm.h"
#include "kernels/matmul.h"
#include "kernels/parts.cuh"
#include "kernels/residual.h"
#include "kernels/sgd.h"
#include "kernels/softmax_cross_entropy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

START_TEST(elementwise_ops_agree)
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

START_TEST(optimizers_agree)
{
    struct pairs pairs = pairs_of(_i);
    size_t count = counts[shape_of(_i)];
    float *parameter = pairs_floats(&pairs, count, -1.0f, 1.0f);
    float *first = pairs_floats(&pairs, count, -1.0f, 1.0f);
    float *second = pairs_floats(&pairs, count, 0.0f, 1.0f);
    float *gradient = pairs_floats(&pairs, count, -1.0f, 1.0f);
    struct sgd sgd = {parameter, first, gradient, count, 0.1f, 0.9f, 1e-3f, NULL};
    struct adamw adamw = {parameter, first, second, gradient, count, 1e-3f, 0.9f,
                          0.95f,     1e-8f, 0.1f,   0.5f,     3,     NULL};

    PAIRS_RUN(&pairs, sgd_update, &sgd, CLOSE);
    PAIRS_RUN(&pairs, adamw_update, &adamw, CLOSE);
    pairs.element = ELEMENT_BF16;
    adamw.working = (uint16_t *)pairs_blank(&pairs, count);
    sgd.working = adamw.working;
    PAIRS_RUN(&pairs, adamw_update, &adamw, CLOSE);
    PAIRS_RUN(&pairs, sgd_update, &sgd, CLOSE);
    pairs_finish(&pairs);
}
END_TEST

START_TEST(gradient_norm_agrees)
{
    struct pairs pairs = pairs_of(_i);
    size_t count = counts[shape_of(_i)];
    float *gradient = pairs_floats(&pairs, count, -1.0f, 1.0f);
    struct gradient_norm norm = {gradient, count, pairs_output(&pairs, 1)};

    PAIRS_RUN(&pairs, gradient_norm, &norm, NEAR);
    pairs_finish(&pairs);
}
END_TEST

/* Host and device draw the same random numbers. */
START_TEST(initialisation_agrees)
{
    struct pairs pairs = pairs_of(_i);
    size_t count = counts[shape_of(_i)];
    float *output = pairs_output(&pairs, count);
    struct initialise initial = {output, count,       UINT64_C(0x123456789abcdef), 7, 0, 0.25f,
                                 3.0f,   ELEMENT_FP32};

    initial.kind = INITIALISE_CONSTANT;
    PAIRS_RUN(&pairs, initialise, &initial, 0.0);
    initial.kind = INITIALISE_UNIFORM;
    PAIRS_RUN(&pairs, initialise, &initial, 0.0);
    initial.kind = INITIALISE_NORMAL;
    PAIRS_RUN(&pairs, initialise, &initial, 1e-7); /* at most one unit in the last place */
    pairs.element = ELEMENT_BF16;
    initial.element = ELEMENT_BF16;
    initial.output = pairs_blank(&pairs, count);
    PAIRS_RUN(&pairs, initialise, &initial, 1e-7);
    pairs_finish(&pairs);
}
END_TEST

static const struct {
    uint32_t rows;
    uint32_t classes;
} losses[] = {{1, 1}, {9, 10}, {5, 257}, {300, 3}, {512, 50257}};

START_TEST(softmax_cross_entropy_agrees)
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
    /* More channels, and then more rows, than a block has threads. */
    {NULL, NULL, NULL, NULL, NULL, NULL, NULL, 3, 7, 261, 4, 0},
    {NULL, NULL, NULL, NULL, NULL, NULL, NULL, 2, 150, 5, 9, 0},
    {NULL, NULL, NULL, NULL, NULL, NULL, NULL, 4, 1024, 768, 256, 0},
};

/* Backward adds in the same order as the host, so the bits are the same. */
START_TEST(embedding_agrees)
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
} norms[] = {{1, 1}, {3, 5}, {300, 33}, {9, 257}, {8192, 1600}}; /* 300 rows: several parts */

START_TEST(layer_norm_agrees)
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
    uint32_t rows;
    uint32_t inputs;
    uint32_t outputs;
} products[] = {{1, 1, 1}, {7, 5, 3}, {33, 17, 40}, {260, 2, 3}, {1024, 768, 3072}};

START_TEST(matmul_agrees)
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

/* In one process: an algorithm that was chosen for one shape or alignment is not taken for others,
   such as that of the bias alone. */
START_TEST(biases_of_several_shapes_agree)
{
    struct pairs pairs = {};
    struct matmul matmul = {};
    const float *bias = pairs_floats(&pairs, 12, -1.0f, 1.0f);

    matmul.weight = pairs_floats(&pairs, 9 * 6, -1.0f, 1.0f);
    matmul.input = pairs_floats(&pairs, 7 * 9, -1.0f, 1.0f);
    matmul.output = pairs_output(&pairs, 7 * 6);
    for (uint32_t i = 0; i < 16; i++) {
        matmul.rows = i % 2 == 0 ? 7 : 4;
        matmul.outputs = i / 2 % 2 == 0 ? 6 : 5;
        matmul.inputs = i / 4 % 2 == 0 ? 9 : 3;
        matmul.bias = bias + (i / 8 % 2 == 0 ? 4 : 3);
        PAIRS_RUN(&pairs, matmul_forward, &matmul, product_tolerance(matmul.inputs));
    }
    pairs_finish(&pairs);
}
END_TEST

/* The host rejects a label or token that is out of range. On the device such a row becomes NaN, and
   nothing else does. */
START_TEST(unknown_labels_and_tokens_become_nan)
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

/* More channels than a grid can cover are rejected; the kernel must not handle only some of them.
 */
START_TEST(too_many_channels_are_rejected)
{
    struct embedding embedding = {};

    embedding.batch = 1;
    embedding.length = 1;
    embedding.vocabulary = 1;
    embedding.channels = 65535u * 256u + 1u;
    ck_assert_int_eq(embedding_backward_cuda(NULL, &embedding), CAPU_TOO_LARGE);
}
END_TEST

/* How a sum is split follows from its shape. Large ones occupy a device, small ones are not split,
   and the sums of all parts fit the scratch memory. */
START_TEST(sums_are_split_by_shape)
{
    struct layer_norm norm = {};

    ck_assert_uint_eq(parts_of_rows(1, 1).y, 1);
    ck_assert_uint_eq(parts_of_rows(128, 768).y, 1);
    ck_assert_uint_eq(parts_of_rows(129, 768).y, 2);
    ck_assert_uint_eq(parts_of_rows(8192, 768).x, 48);
    ck_assert_uint_eq(parts_of_rows(8192, 768).y, 22);
    ck_assert_uint_eq(parts_of_rows(1000000, 1).y, PARTS_LIMIT);
    norm.rows = 1;
    norm.channels = (uint32_t)(BLAS_SCRATCH_BYTES / sizeof(float) / 2) + 1;
    ck_assert_int_eq(layer_norm_backward_cuda(NULL, &norm), CAPU_TOO_LARGE);
}
END_TEST

static Suite *kernels_suite(void)
{
    Suite *suite = suite_create("kernels");
    TCase *tests = tcase_create("kernels");
    TCase *product_tests = tcase_create("products"); /* tests that KERNELS_MATMUL affects */

    LOOP_IN(tests, elementwise_ops_agree, counts, 1);
    LOOP(tests, optimizers_agree, counts, 1);
    LOOP(tests, gradient_norm_agrees, counts, 1);
    LOOP(tests, initialisation_agrees, counts, 1);
    LOOP_IN(tests, softmax_cross_entropy_agrees, losses, 1);
    LOOP_IN(tests, embedding_agrees, embeddings, 1);
    LOOP_IN(tests, layer_norm_agrees, norms, 1);
    kernels_images_add(tests);
    LOOP_IN(product_tests, matmul_agrees, products, 1);
    tcase_add_test(product_tests, biases_of_several_shapes_agree);
    kernels_attention_add(tests, product_tests);
    tcase_add_loop_test(tests, unknown_labels_and_tokens_become_nan, 0,
                        (int)(SHIFT_COUNT * ELEMENT_COUNT));
    tcase_add_test(tests, too_many_channels_are_rejected);
    tcase_add_test(tests, sums_are_split_by_shape);
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
    srunner_set_fork_status(runner, CK_NOFORK); /* CUDA cannot be used after a fork */
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

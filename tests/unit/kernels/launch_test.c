/* launch: the function that runs on each device, and the duration of an op where none runs. */
#include "kernels/launch.h"

#include "kernels/average_pool.h"
#include "kernels/batch_norm.h"
#include "kernels/conv2d.h"
#include "kernels/dropout.h"
#include "kernels/matmul.h"
#include "kernels/max_pool.h"
#include "kernels/relu.h"
#include "kernels/sgd.h"

#include "capuchin/capuchin.h"

#include "tests/support/suite.h"

#define COUNT ((size_t)100000)

static capu_context *make_context(const char *device)
{
    capu_config config = CAPU_CONFIG_INIT;
    capu_context *context = NULL;

    config.device = device;
    config.budget_bytes = UINT64_C(64) << 20;
    ck_assert_int_eq(capu_context_create(&config, &context), CAPU_OK);
    return context;
}

static float *make(capu_context *context, size_t count)
{
    void *address = NULL;

    ck_assert_int_eq(capu_malloc(context, count * sizeof(float), &address), CAPU_OK);
    return address;
}

START_TEST(duration_is_the_longer_of_arithmetic_and_traffic)
{
    uint64_t nothing = launch_duration_ns(0, 0);

    ck_assert_uint_gt(nothing, 0);
    /* 10 TFLOP/s, 500 GB/s */
    ck_assert_uint_eq(launch_duration_ns(UINT64_C(10000000000), 0) - nothing, 1000000);
    ck_assert_uint_eq(launch_duration_ns(0, UINT64_C(500000000)) - nothing, 1000000);
    ck_assert_uint_eq(launch_duration_ns(UINT64_C(10000000000), UINT64_C(1000000000)) - nothing,
                      2000000);
    ck_assert_uint_gt(launch_duration_ns(UINT64_MAX, UINT64_MAX), nothing);
}
END_TEST

START_TEST(ops_run_on_the_host_device)
{
    capu_context *context = make_context("host");
    float *input = make(context, COUNT);
    float *output = make(context, COUNT);
    float values[4] = {-1.0f, 2.0f, 0.0f, -3.0f};
    struct relu relu = {.input = input, .output = output, .count = COUNT};

    ck_assert_int_eq(capu_zero(context, input, 0), CAPU_OK);
    ck_assert_int_eq(capu_upload(context, input, values, sizeof(values), 0), CAPU_OK);
    ck_assert_int_eq(relu_forward(context, &relu), CAPU_OK);
    ck_assert_int_eq(capu_download(context, values, output, sizeof(values), 0), CAPU_OK);
    ck_assert_float_eq(values[0], 0.0f);
    ck_assert_float_eq(values[1], 2.0f);
    ck_assert_float_eq(values[3], 0.0f);
    capu_context_destroy(context);
}
END_TEST

/*
 * An operand of 0 bytes means the rest of the tensor to capu_run. An operation on nothing must be
 * rejected, or the runtime would take the output for written.
 */
START_TEST(empty_operations_are_rejected)
{
    capu_context *context = make_context(_i == 0 ? "host" : "sim");
    struct relu relu = {.input = make(context, COUNT), .output = make(context, COUNT)};
    struct matmul matmul = {.input = make(context, COUNT),
                            .weight = make(context, COUNT),
                            .output = make(context, COUNT),
                            .rows = 0,
                            .inputs = 10,
                            .outputs = 10};
    float value;

    ck_assert_int_eq(capu_zero(context, (void *)relu.input, 0), CAPU_OK);
    ck_assert_int_eq(capu_zero(context, (void *)matmul.input, 0), CAPU_OK);
    ck_assert_int_eq(capu_zero(context, (void *)matmul.weight, 0), CAPU_OK);
    ck_assert_int_eq(relu_forward(context, &relu), CAPU_INVALID);
    ck_assert_int_eq(matmul_forward(context, &matmul), CAPU_INVALID);
    /* The output has not been written. */
    ck_assert_int_ne(capu_download(context, &value, relu.output, sizeof(value), 0), CAPU_OK);
    capu_context_destroy(context);
}
END_TEST

/* The compute time of the iteration is the sum of its two ops, from their traffic and arithmetic.
 */
START_TEST(ops_take_their_duration_on_the_sim_device)
{
    capu_context *context = make_context("sim");
    capu_report report = CAPU_REPORT_INIT;
    struct relu relu = {
        .input = make(context, COUNT), .output = make(context, COUNT), .count = COUNT};
    struct matmul matmul = {.input = relu.output,
                            .weight = make(context, 1000 * 500),
                            .output = make(context, 100 * 500),
                            .rows = 100,
                            .inputs = 1000,
                            .outputs = 500};
    uint64_t expected = launch_duration_ns(COUNT, 2 * COUNT * sizeof(float)) +
                        launch_duration_ns(UINT64_C(2) * 100 * 1000 * 500,
                                           (COUNT + 1000 * 500 + 100 * 500) * sizeof(float));

    ck_assert_int_eq(capu_iteration_begin(context, NULL), CAPU_OK);
    ck_assert_int_eq(capu_zero(context, (void *)relu.input, 0), CAPU_OK);
    ck_assert_int_eq(capu_zero(context, (void *)matmul.weight, 0), CAPU_OK);
    ck_assert_int_eq(relu_forward(context, &relu), CAPU_OK);
    ck_assert_int_eq(matmul_forward(context, &matmul), CAPU_OK);
    ck_assert_int_eq(capu_iteration_end(context), CAPU_OK);
    ck_assert_int_eq(capu_synchronize(context), CAPU_OK);
    ck_assert_int_eq(capu_report_get(context, &report), CAPU_OK);
    ck_assert_uint_eq(report.compute_ns, expected);
    capu_context_destroy(context);
}
END_TEST

/* Checks that the operation, run in its own iteration, takes the time for moving `bytes`. */
#define TAKES(context_, bytes_, call_)                                          \
    do {                                                                        \
        capu_report report_ = CAPU_REPORT_INIT;                                 \
                                                                                \
        ck_assert_int_eq(capu_iteration_begin((context_), NULL), CAPU_OK);      \
        ck_assert_int_eq((call_), CAPU_OK);                                     \
        ck_assert_int_eq(capu_iteration_end(context_), CAPU_OK);                \
        ck_assert_int_eq(capu_synchronize(context_), CAPU_OK);                  \
        ck_assert_int_eq(capu_report_get((context_), &report_), CAPU_OK);       \
        ck_assert_uint_eq(report_.compute_ns, launch_duration_ns(0, (bytes_))); \
    } while (0)

enum { BUFFERS = 12, BUFFER_ITEMS = 1000000 };

/*
 * Creates tensors that can serve as any operand. They are persistent, because transient ones would
 * lose their contents between iterations.
 */
static void make_buffers(capu_context *context, float *buffers[BUFFERS])
{
    for (size_t i = 0; i < BUFFERS; i++) {
        buffers[i] = make(context, BUFFER_ITEMS);
        ck_assert_int_eq(
            CAPU_DESCRIBE(context, buffers[i], .kind = CAPU_PARAMETER, .lifetime = CAPU_PERSISTENT),
            CAPU_OK);
        ck_assert_int_eq(capu_zero(context, buffers[i], 0), CAPU_OK);
    }
}

static void check_items(capu_context *context, float *const *at, uint32_t element)
{
    size_t item = element_bytes(element);
    size_t count = BUFFER_ITEMS;
    struct relu relu = {at[0], at[1], at[2], count, element};
    struct dropout dropout = {at[0], at[1], at[2], count, 1, 2, 0.5f, element};
    struct sgd sgd = {at[0], at[1], at[2], count, 0.1f, 0.9f, 0.0f, NULL};

    TAKES(context, 2 * count * item, relu_forward(context, &relu));
    TAKES(context, 3 * count * item, relu_backward(context, &relu));
    TAKES(context, 2 * count * item, dropout_forward(context, &dropout));
    TAKES(context, 2 * count * item, dropout_backward(context, &dropout));
    TAKES(context, 5 * count * sizeof(float), sgd_update(context, &sgd));
    sgd.working = (uint16_t *)at[3];
    TAKES(context, 5 * count * sizeof(float) + count * sizeof(uint16_t), sgd_update(context, &sgd));
}

static void check_planes(capu_context *context, float *const *at, uint32_t element)
{
    size_t item = element_bytes(element);
    size_t count = BUFFER_ITEMS;
    size_t channels = 1000;
    struct average_pool average = {at[0], at[1], at[2], at[3], count / 1000, 1000, element};
    struct max_pool largest = {.input = at[0],
                               .output = at[1],
                               .places = (uint8_t *)at[2],
                               .output_gradient = at[3],
                               .input_gradient = at[4],
                               .planes = count / 100,
                               .height = 10,
                               .width = 10,
                               .window = 2,
                               .element = element};
    struct batch_norm norm = {at[0], at[1],  at[2], at[3], at[4], at[5], at[6], at[7],  at[8],
                              at[9], at[10], 10,    1000,  100,   0.1f,  1e-5f, element};

    TAKES(context, (count + count / 1000) * item, average_pool_forward(context, &average));
    TAKES(context, (count + count / 1000) * item, average_pool_backward(context, &average));
    TAKES(context, (count + count / 4) * item + count / 4, max_pool_forward(context, &largest));
    TAKES(context, (count + count / 4) * item + count / 4, max_pool_backward(context, &largest));
    TAKES(context, 2 * (count + channels) * item + 6 * channels * sizeof(float),
          batch_norm_forward(context, &norm));
    TAKES(context, 2 * (count + channels) * item + 2 * channels * sizeof(float),
          batch_norm_infer(context, &norm));
    TAKES(context, (3 * count + channels) * item + 4 * channels * sizeof(float),
          batch_norm_backward(context, &norm));
}

/* With one pixel and many channels the traffic is mostly weights. */
static void check_weights(capu_context *context, float *const *at, uint32_t element)
{
    size_t item = element_bytes(element);
    size_t weights = 1000 * 500;
    struct conv2d conv = {.input = at[0],
                          .weight = at[1],
                          .bias = at[2],
                          .output = at[3],
                          .output_gradient = at[4],
                          .input_gradient = at[5],
                          .weight_gradient = at[6],
                          .bias_gradient = at[7],
                          .workspace = at[11], /* its contents are undefined afterwards */
                          .batch = 1,
                          .input_channels = 1000,
                          .output_channels = 500,
                          .height = 1,
                          .width = 1,
                          .kernel = 1,
                          .element = element};

    TAKES(context, (1000 + weights + 500 + 500) * item, conv2d_forward(context, &conv));
    TAKES(context, (500 + weights + 1000) * item, conv2d_backward_input(context, &conv));
    TAKES(context, (500 + 1000) * item + (weights + 500) * sizeof(float),
          conv2d_backward_weight(context, &conv));
}

/* The bytes that an operation declares follow from its element type. */
START_TEST(declared_bytes_follow_the_element_type)
{
    static const uint32_t elements[] = {ELEMENT_FP32, ELEMENT_BF16};
    capu_context *context = make_context("sim");
    float *buffers[BUFFERS];

    make_buffers(context, buffers);
    for (size_t i = 0; i < sizeof(elements) / sizeof(elements[0]); i++) {
        check_items(context, buffers, elements[i]);
        check_planes(context, buffers, elements[i]);
        check_weights(context, buffers, elements[i]);
    }
    capu_context_destroy(context);
}
END_TEST

START_TEST(an_operation_without_a_function_is_rejected)
{
    capu_context *context = make_context("host");
    struct launch launch = {.name = "nothing"};

    ck_assert_int_eq(launch_run(context, &launch), CAPU_UNSUPPORTED);
    capu_context_destroy(context);
}
END_TEST

/* Shapes are checked before the op is issued, so every device rejects bad ones. */
START_TEST(bad_shapes_are_rejected)
{
    static const char *const devices[] = {"host", "sim"};

    for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++) {
        capu_context *context = make_context(devices[i]);
        struct max_pool pool = {.planes = 1, .height = 2, .width = 9, .window = 3};
        struct conv2d conv = {.batch = 1,
                              .input_channels = 1,
                              .output_channels = 1,
                              .height = 2,
                              .width = 9,
                              .kernel = 3};

        ck_assert_int_eq(conv2d_forward(context, &conv), CAPU_INVALID);
        ck_assert_int_eq(conv2d_backward_input(context, &conv), CAPU_INVALID);
        ck_assert_int_eq(conv2d_backward_weight(context, &conv), CAPU_INVALID);
        ck_assert_int_eq(max_pool_forward(context, &pool), CAPU_INVALID);
        ck_assert_int_eq(max_pool_backward(context, &pool), CAPU_INVALID);
        capu_context_destroy(context);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("launch");
    TCase *tests = tcase_create("launch");

    tcase_add_test(tests, duration_is_the_longer_of_arithmetic_and_traffic);
    tcase_add_test(tests, ops_run_on_the_host_device);
    tcase_add_loop_test(tests, empty_operations_are_rejected, 0, 2);
    tcase_add_test(tests, ops_take_their_duration_on_the_sim_device);
    tcase_add_test(tests, declared_bytes_follow_the_element_type);
    tcase_add_test(tests, an_operation_without_a_function_is_rejected);
    tcase_add_test(tests, bad_shapes_are_rejected);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

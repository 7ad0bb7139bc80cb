/* launch: which function runs on which device, and how long an operation takes where none runs. */
#include "kernels/launch.h"

#include "kernels/conv2d.h"
#include "kernels/matmul.h"
#include "kernels/max_pool.h"
#include "kernels/relu.h"

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

START_TEST(takes_the_longer_of_arithmetic_and_traffic)
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

START_TEST(computes_on_host)
{
    capu_context *context = make_context("host");
    float *input = make(context, COUNT);
    float *output = make(context, COUNT);
    float values[4] = {-1.0f, 2.0f, 0.0f, -3.0f};
    struct relu relu = {.input = input, .output = output, .count = COUNT};

    ck_assert_int_eq(capu_zero(context, input, 0), CAPU_OK);
    ck_assert_int_eq(capu_upload(context, input, values, sizeof(values)), CAPU_OK);
    ck_assert_int_eq(relu_forward(context, &relu), CAPU_OK);
    ck_assert_int_eq(capu_download(context, values, output, sizeof(values)), CAPU_OK);
    ck_assert_float_eq(values[0], 0.0f);
    ck_assert_float_eq(values[1], 2.0f);
    ck_assert_float_eq(values[3], 0.0f);
    capu_context_destroy(context);
}
END_TEST

/* The iteration's compute time is that of its two ops, from their operands and products. */
START_TEST(takes_its_time_on_sim)
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

START_TEST(refuses_an_operation_without_a_function)
{
    capu_context *context = make_context("host");
    struct launch launch = {.name = "nothing"};

    ck_assert_int_eq(launch_run(context, &launch), CAPU_UNSUPPORTED);
    capu_context_destroy(context);
}
END_TEST

/* Before there is an op, whose operands would make no sense: so on every device. */
START_TEST(refuses_bad_shapes)
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

    tcase_add_test(tests, takes_the_longer_of_arithmetic_and_traffic);
    tcase_add_test(tests, computes_on_host);
    tcase_add_test(tests, takes_its_time_on_sim);
    tcase_add_test(tests, refuses_an_operation_without_a_function);
    tcase_add_test(tests, refuses_bad_shapes);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

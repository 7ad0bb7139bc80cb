/*
 * batch_norm: forward compared with double precision, backward with finite differences of that
 * reference, and a replay that does not update the running statistics again.
 */
#include "kernels/batch_norm.h"

#include "tests/support/suite.h"
#include "tests/unit/kernels/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct shape {
    uint32_t batch;
    uint32_t channels;
    uint32_t plane;
};

static const struct shape shapes[] = {{2, 1, 3}, {3, 4, 17}, {5, 3, 49}, {16, 20, 64}};

/* Items whose differences are checked: tensor and reference are too large to check them all. */
#define DIFFERENCES 40

static size_t at(const struct batch_norm *norm, size_t image, size_t channel, size_t i)
{
    return (image * norm->channels + channel) * norm->plane + i;
}

static void statistics(const struct batch_norm *norm, const double *input, size_t channel,
                       double *mean, double *variance)
{
    double count = (double)norm->batch * norm->plane;
    double sum = 0.0;
    double squares = 0.0;

    for (size_t k = 0; k < (size_t)norm->batch * norm->plane; k++) {
        sum += input[at(norm, k / norm->plane, channel, k % norm->plane)];
    }
    *mean = sum / count;
    for (size_t k = 0; k < (size_t)norm->batch * norm->plane; k++) {
        double distance = input[at(norm, k / norm->plane, channel, k % norm->plane)] - *mean;
        squares += distance * distance;
    }
    *variance = squares / count;
}

/* The sum of output * weight over one channel, in double. */
static double objective(const struct batch_norm *norm, const double *input, double scale,
                        double shift, const double *weight, size_t channel)
{
    double mean;
    double variance;
    double sum = 0.0;

    statistics(norm, input, channel, &mean, &variance);
    for (size_t k = 0; k < (size_t)norm->batch * norm->plane; k++) {
        size_t i = at(norm, k / norm->plane, channel, k % norm->plane);
        double normal = (input[i] - mean) / sqrt(variance + norm->epsilon);
        sum += (scale * normal + shift) * weight[i];
    }
    return sum;
}

/* The output for a normalised item. */
static double scaled(const struct support *support, const struct batch_norm *norm, size_t channel,
                     double normal)
{
    return support_item(support, norm->scale, channel) * normal +
           support_item(support, norm->shift, channel);
}

static void check_forward(const struct support *support, const struct batch_norm *norm,
                          const double *input)
{
    for (size_t channel = 0; channel < norm->channels; channel++) {
        double mean;
        double variance;

        statistics(norm, input, channel, &mean, &variance);
        support_near("running_mean", channel, norm->running_mean[channel], 0.1 * mean, 1e-6);
        support_near("running_variance", channel, norm->running_variance[channel],
                     0.9 + 0.1 * variance, 1e-6);
        for (size_t k = 0; k < (size_t)norm->batch * norm->plane; k++) {
            size_t i = at(norm, k / norm->plane, channel, k % norm->plane);
            double normal = (input[i] - mean) / sqrt(variance + norm->epsilon);

            support_stored(support, "output", i, support_item(support, norm->output, i),
                           scaled(support, norm, channel, normal), 5e-6);
        }
    }
}

static void check_backward(const struct support *support, const struct batch_norm *norm,
                           double *input, const double *weight)
{
    const double step = 1e-5;
    size_t items = (size_t)norm->batch * norm->channels * norm->plane;

    for (size_t k = 0; k < DIFFERENCES; k++) {
        size_t i = k * 7919 % items;
        size_t channel = i / norm->plane % norm->channels;
        double scale = support_item(support, norm->scale, channel);
        double shift = support_item(support, norm->shift, channel);
        double kept = input[i];
        double up;
        double down;

        input[i] = kept + step;
        up = objective(norm, input, scale, shift, weight, channel);
        input[i] = kept - step;
        down = objective(norm, input, scale, shift, weight, channel);
        input[i] = kept;
        support_stored(support, "gradient", i, support_item(support, norm->gradient, i),
                       (up - down) / (2 * step), 1e-4);
        up = objective(norm, input, scale + step, shift, weight, channel);
        down = objective(norm, input, scale - step, shift, weight, channel);
        support_near("scale_gradient", channel, norm->scale_gradient[channel],
                     (up - down) / (2 * step), 1e-4);
        up = objective(norm, input, scale, shift + step, weight, channel);
        down = objective(norm, input, scale, shift - step, weight, channel);
        support_near("shift_gradient", channel, norm->shift_gradient[channel],
                     (up - down) / (2 * step), 1e-4);
    }
}

static struct batch_norm make(struct support *support, const struct shape *shape)
{
    size_t items = (size_t)shape->batch * shape->channels * shape->plane;

    return (struct batch_norm){
        .input = support_items(support, items, -1.0f, 3.0f),
        .output = support_blank(support, items),
        .scale = support_items(support, shape->channels, 0.5f, 1.5f),
        .shift = support_items(support, shape->channels, -1.0f, 1.0f),
        .running_mean = support_floats(support, shape->channels, 0.0f, 0.0f),
        .running_variance = support_floats(support, shape->channels, 1.0f, 1.0f),
        .saved_mean = support_output(support, shape->channels),
        .saved_rstd = support_output(support, shape->channels),
        .gradient = support_items(support, items, -1.0f, 1.0f),
        .scale_gradient = support_output(support, shape->channels),
        .shift_gradient = support_output(support, shape->channels),
        .batch = shape->batch,
        .channels = shape->channels,
        .plane = shape->plane,
        .momentum = 0.1f,
        .epsilon = 1e-5f,
        .element = support->element,
    };
}

static void run_case(struct support *support, const void *argument)
{
    const struct shape *shape = argument;
    struct batch_norm norm = make(support, shape);
    size_t items = (size_t)shape->batch * shape->channels * shape->plane;
    double *weight = support_buffer(support, items * sizeof(double) + 64);
    double *input = support_buffer(support, items * sizeof(double) + 64);

    /* The reference runs at shift 0 only, where doubles are aligned. */
    for (size_t i = 0; support->is_reference_due && i < items; i++) {
        input[i] = support_item(support, norm.input, i);
        weight[i] = support_item(support, norm.gradient, i);
    }
    ck_assert_int_eq(batch_norm_forward_host(NULL, &norm), CAPU_OK);
    ck_assert_int_eq(batch_norm_backward_host(NULL, &norm), CAPU_OK);
    if (support->is_reference_due) {
        check_forward(support, &norm, input);
        check_backward(support, &norm, input, weight);
    }
    support_keep(support, norm.output, support_bytes(support, items));
    support_keep(support, norm.gradient, support_bytes(support, items));
    support_keep(support, norm.running_variance, shape->channels * sizeof(float));
    ck_assert_int_eq(batch_norm_infer_host(NULL, &norm), CAPU_OK);
    for (size_t i = 0; support->is_reference_due && i < items; i++) {
        size_t channel = i / shape->plane % shape->channels;
        double normal =
            (input[i] - norm.running_mean[channel]) / sqrt(norm.running_variance[channel] + 1e-5);

        support_stored(support, "inferred", i, support_item(support, norm.output, i),
                       scaled(support, &norm, channel, normal), 5e-6);
    }
    support_keep(support, norm.output, support_bytes(support, items));
}

SUPPORT_TESTS_IN_BOTH_TYPES(run_case, shapes)

START_TEST(a_replay_does_not_update_statistics_again)
{
    struct support support = {.seed = support_seed()};
    struct batch_norm norm = make(&support, &shapes[3]);
    size_t bytes = (size_t)norm.batch * norm.channels * norm.plane * sizeof(float);
    size_t channel_bytes = norm.channels * sizeof(float);
    float *output = support_buffer(&support, bytes);
    float *mean = support_buffer(&support, channel_bytes);
    float *variance = support_buffer(&support, channel_bytes);

    ck_assert_int_eq(batch_norm_forward_host(NULL, &norm), CAPU_OK);
    memcpy(output, norm.output, bytes);
    memcpy(mean, norm.running_mean, channel_bytes);
    memcpy(variance, norm.running_variance, channel_bytes);
    memset(norm.output, 0xff, bytes);
    ck_assert_int_eq(batch_norm_replay_host(NULL, &norm), CAPU_OK);
    ck_assert_mem_eq(output, norm.output, bytes);
    ck_assert_mem_eq(mean, norm.running_mean, channel_bytes);
    ck_assert_mem_eq(variance, norm.running_variance, channel_bytes);
    while (support.buffer_count > 0) {
        free(support.buffers[--support.buffer_count]);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("batch_norm");
    TCase *tests = tcase_create("batch_norm");

    add_reference_tests(tests);
    tcase_add_test(tests, a_replay_does_not_update_statistics_again);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

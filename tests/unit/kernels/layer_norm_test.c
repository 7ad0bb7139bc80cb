/* layer_norm: forward compared with double precision, backward with finite differences of that. */
#include "kernels/layer_norm.h"

#include "tests/support/suite.h"
#include "tests/unit/kernels/support.h"

#include <math.h>
#include <string.h>

static const struct layer_norm shapes[] = {
    {.rows = 1, .channels = 2},
    {.rows = 5, .channels = 19},
    {.rows = 70, .channels = 64},
    {.rows = 33, .channels = 130},
};

#define STEP 1e-5
#define CHANNELS_LIMIT 130

/* Normalises one row in double precision after adding `by` to its item `changed`. */
static void normalise(const struct support *support, const struct layer_norm *norm, size_t row,
                      size_t changed, double by, double *normal, double *mean, double *rstd)
{
    double sum = 0.0;
    double squares = 0.0;

    for (size_t i = 0; i < norm->channels; i++) {
        normal[i] = support_item(support, norm->input, row * norm->channels + i) +
                    (i == changed ? by : 0.0);
        sum += normal[i];
    }
    *mean = sum / norm->channels;
    for (size_t i = 0; i < norm->channels; i++) {
        squares += (normal[i] - *mean) * (normal[i] - *mean);
    }
    *rstd = 1.0 / sqrt(squares / norm->channels + 1e-5);
    for (size_t i = 0; i < norm->channels; i++) {
        normal[i] = (normal[i] - *mean) * *rstd;
    }
}

/* The sum of output * output_gradient over the row. */
static double objective(const struct support *support, const struct layer_norm *norm, size_t row,
                        size_t changed, double by)
{
    double normal[CHANNELS_LIMIT];
    double mean;
    double rstd;
    double sum = 0.0;

    normalise(support, norm, row, changed, by, normal, &mean, &rstd);
    for (size_t i = 0; i < norm->channels; i++) {
        sum += (normal[i] * support_item(support, norm->scale, i) +
                support_item(support, norm->shift, i)) *
               support_item(support, norm->output_gradient, row * norm->channels + i);
    }
    return sum;
}

static void check(const struct support *support, const struct layer_norm *norm, const void *before)
{
    double scales[CHANNELS_LIMIT] = {0};
    double shifts[CHANNELS_LIMIT] = {0};
    size_t channels = norm->channels;

    for (size_t row = 0; row < norm->rows; row++) {
        double normal[CHANNELS_LIMIT];
        double mean;
        double rstd;

        normalise(support, norm, row, channels, 0.0, normal, &mean, &rstd);
        support_near("mean", row, norm->mean[row], mean, 1e-6);
        support_near("rstd", row, norm->rstd[row], rstd, 1e-5);
        for (size_t i = 0; i < channels; i++) {
            size_t at = row * channels + i;
            double slope =
                (objective(support, norm, row, i, STEP) - objective(support, norm, row, i, -STEP)) /
                (2 * STEP);

            support_stored(support, "output", at, support_item(support, norm->output, at),
                           normal[i] * support_item(support, norm->scale, i) +
                               support_item(support, norm->shift, i),
                           5e-6);
            support_stored(support, "input_gradient", at,
                           support_item(support, norm->input_gradient, at),
                           support_item(support, before, at) + slope, 1e-4);
            scales[i] += normal[i] * support_item(support, norm->output_gradient, at);
            shifts[i] += support_item(support, norm->output_gradient, at);
        }
    }
    for (size_t i = 0; i < channels; i++) {
        support_near("scale_gradient", i, norm->scale_gradient[i], 1.0 + scales[i], 1e-5);
        support_near("shift_gradient", i, norm->shift_gradient[i], 2.0 + shifts[i], 1e-5);
    }
}

static void run_case(struct support *support, const void *shape)
{
    struct layer_norm norm = *(const struct layer_norm *)shape;
    size_t items = (size_t)norm.rows * norm.channels;
    void *before = support_items(support, items, -1.0f, 1.0f);

    norm.element = support->element;
    norm.input = support_items(support, items, -1.0f, 3.0f);
    norm.scale = support_items(support, norm.channels, 0.5f, 1.5f);
    norm.shift = support_items(support, norm.channels, -1.0f, 1.0f);
    norm.output = support_blank(support, items);
    norm.mean = support_output(support, norm.rows);
    norm.rstd = support_output(support, norm.rows);
    norm.output_gradient = support_items(support, items, -1.0f, 1.0f);
    norm.input_gradient = support_blank(support, items);
    norm.scale_gradient = support_floats(support, norm.channels, 1.0f, 1.0f);
    norm.shift_gradient = support_floats(support, norm.channels, 2.0f, 2.0f);
    memcpy(norm.input_gradient, before, support_bytes(support, items));
    ck_assert_int_eq(layer_norm_forward_host(NULL, &norm), CAPU_OK);
    ck_assert_int_eq(layer_norm_backward_host(NULL, &norm), CAPU_OK);
    if (support->is_reference_due) {
        check(support, &norm, before);
    }
    support_keep(support, norm.output, support_bytes(support, items));
    support_keep(support, norm.input_gradient, support_bytes(support, items));
    support_keep(support, norm.scale_gradient, norm.channels * sizeof(float));
    support_keep(support, norm.shift_gradient, norm.channels * sizeof(float));
}

SUPPORT_TESTS_IN_BOTH_TYPES(run_case, shapes)

int main(void)
{
    Suite *suite = suite_create("layer_norm");
    TCase *tests = tcase_create("layer_norm");

    add_reference_tests(tests);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

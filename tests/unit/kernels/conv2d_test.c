/* conv2d: all three operations against a direct sum in double precision. */
#include "kernels/conv2d.h"

#include "tests/support/suite.h"
#include "tests/unit/kernels/support.h"

#include <stdlib.h>

static const struct conv2d shapes[] = {
    {.batch = 1, .input_channels = 1, .output_channels = 1, .height = 3, .width = 3, .kernel = 3},
    {.batch = 2,
     .input_channels = 3,
     .output_channels = 2,
     .height = 5,
     .width = 7,
     .kernel = 3,
     .padding = 1},
    {.batch = 9,
     .input_channels = 2,
     .output_channels = 5,
     .height = 28,
     .width = 28,
     .kernel = 5,
     .padding = 2},
    {.batch = 3,
     .input_channels = 4,
     .output_channels = 3,
     .height = 2,
     .width = 2,
     .kernel = 4,
     .padding = 3},
    {.batch = 10, .input_channels = 8, .output_channels = 6, .height = 6, .width = 4, .kernel = 1},
};

struct sizes {
    size_t input;
    size_t weight;
    size_t output;
};

static struct sizes sizes_of(const struct conv2d *conv)
{
    return (struct sizes){
        .input = (size_t)conv->batch * conv->input_channels * conv->height * conv->width,
        .weight =
            (size_t)conv->output_channels * conv->input_channels * conv->kernel * conv->kernel,
        .output = (size_t)conv->batch * conv->output_channels * conv2d_output_height(conv) *
                  conv2d_output_width(conv),
    };
}

struct reference {
    double *output;
    double *input_gradient;
    double *weight_gradient;
};

/* Visits every product of the convolution once: what it adds to all three results. */
static void visit(const struct conv2d *conv, struct reference *reference, size_t out, size_t tap)
{
    size_t height = conv2d_output_height(conv);
    size_t width = conv2d_output_width(conv);
    size_t x = out % width + tap % conv->kernel;
    size_t y = out / width % height + tap / conv->kernel % conv->kernel;
    size_t in_channel = tap / conv->kernel / conv->kernel;
    size_t out_channel = out / width / height % conv->output_channels;
    size_t image = out / width / height / conv->output_channels;
    size_t taps = (size_t)conv->input_channels * conv->kernel * conv->kernel;
    size_t weight = out_channel * taps + tap;
    size_t in;

    if (x < conv->padding || y < conv->padding || x - conv->padding >= conv->width ||
        y - conv->padding >= conv->height) {
        return;
    }
    in = ((image * conv->input_channels + in_channel) * conv->height + y - conv->padding) *
             conv->width +
         x - conv->padding;
    reference->output[out] += (double)conv->input[in] * conv->weight[weight];
    reference->input_gradient[in] += (double)conv->output_gradient[out] * conv->weight[weight];
    reference->weight_gradient[weight] += (double)conv->output_gradient[out] * conv->input[in];
}

static void check(const struct conv2d *conv)
{
    struct sizes sizes = sizes_of(conv);
    struct reference reference = {
        .output = calloc(sizes.output, sizeof(double)),
        .input_gradient = calloc(sizes.input, sizeof(double)),
        .weight_gradient = calloc(sizes.weight, sizeof(double)),
    };
    size_t positions = (size_t)conv2d_output_height(conv) * conv2d_output_width(conv);
    double *bias_gradient = calloc(conv->output_channels, sizeof(double));

    for (size_t out = 0; out < sizes.output; out++) {
        size_t channel = out / positions % conv->output_channels;

        for (size_t tap = 0; tap < sizes.weight / conv->output_channels; tap++) {
            visit(conv, &reference, out, tap);
        }
        support_near("output", out, conv->output[out], reference.output[out] + conv->bias[channel],
                     1e-5);
        bias_gradient[channel] += conv->output_gradient[out];
    }
    for (size_t i = 0; i < sizes.input; i++) {
        support_near("input_gradient", i, conv->input_gradient[i], reference.input_gradient[i],
                     1e-5);
    }
    for (size_t i = 0; i < sizes.weight; i++) {
        support_near("weight_gradient", i, conv->weight_gradient[i], reference.weight_gradient[i],
                     2e-5);
    }
    for (size_t i = 0; i < conv->output_channels; i++) {
        support_near("bias_gradient", i, conv->bias_gradient[i], bias_gradient[i], 2e-5);
    }
    free(reference.output);
    free(reference.input_gradient);
    free(reference.weight_gradient);
    free(bias_gradient);
}

static void run_case(struct support *support, const void *shape)
{
    struct conv2d conv = *(const struct conv2d *)shape;
    struct sizes sizes = sizes_of(&conv);

    conv.input = support_floats(support, sizes.input, -1.0f, 1.0f);
    conv.weight = support_floats(support, sizes.weight, -1.0f, 1.0f);
    conv.bias = support_floats(support, conv.output_channels, -1.0f, 1.0f);
    conv.output = support_output(support, sizes.output);
    conv.output_gradient = support_floats(support, sizes.output, -1.0f, 1.0f);
    conv.input_gradient = support_output(support, sizes.input);
    conv.weight_gradient = support_output(support, sizes.weight);
    conv.bias_gradient = support_output(support, conv.output_channels);
    conv.workspace = support_buffer(support, conv2d_workspace_bytes(&conv));
    ck_assert_int_eq(conv2d_forward_host(NULL, &conv), CAPU_OK);
    ck_assert_int_eq(conv2d_backward_input_host(NULL, &conv), CAPU_OK);
    ck_assert_int_eq(conv2d_backward_weight_host(NULL, &conv), CAPU_OK);
    if (support->is_reference_due) {
        check(&conv);
    }
    support_keep(support, conv.output, sizes.output * sizeof(float));
    support_keep(support, conv.input_gradient, sizes.input * sizeof(float));
    support_keep(support, conv.weight_gradient, sizes.weight * sizeof(float));
    support_keep(support, conv.bias_gradient, conv.output_channels * sizeof(float));
}

START_TEST(matches_reference)
{
    support_sweep(run_case, &shapes[_i]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("conv2d");
    TCase *tests = tcase_create("conv2d");

    tcase_add_loop_test(tests, matches_reference, 0, sizeof(shapes) / sizeof(shapes[0]));
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

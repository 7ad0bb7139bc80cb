/* conv2d: all three operations compared with a direct sum in double precision. */
#include "kernels/conv2d.h"

#include "tests/support/suite.h"
#include "tests/unit/kernels/support.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

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
    {.batch = 9,
     .input_channels = 3,
     .output_channels = 4,
     .height = 9,
     .width = 12,
     .kernel = 3,
     .padding = 1,
     .stride = 2},
    {.batch = 2,
     .input_channels = 3,
     .output_channels = 5,
     .height = 33,
     .width = 30,
     .kernel = 7,
     .padding = 3,
     .stride = 2},
    {.batch = 3,
     .input_channels = 5,
     .output_channels = 2,
     .height = 8,
     .width = 7,
     .kernel = 1,
     .stride = 2},
    {.batch = 2,
     .input_channels = 2,
     .output_channels = 3,
     .height = 10,
     .width = 11,
     .kernel = 2,
     .padding = 2,
     .stride = 3},
    {.batch = 1,
     .input_channels = 2,
     .output_channels = 2,
     .height = 1,
     .width = 5,
     .kernel = 3,
     .padding = 1,
     .stride = 4},
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

/* Visits every product of the convolution once and adds its contribution to all three results. */
static void visit(const struct support *support, const struct conv2d *conv,
                  struct reference *reference, size_t out, size_t tap)
{
    size_t height = conv2d_output_height(conv);
    size_t width = conv2d_output_width(conv);
    size_t stride = conv2d_stride(conv);
    size_t x = out % width * stride + tap % conv->kernel;
    size_t y = out / width % height * stride + tap / conv->kernel % conv->kernel;
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
    reference->output[out] +=
        support_item(support, conv->input, in) * support_item(support, conv->weight, weight);
    reference->input_gradient[in] += support_item(support, conv->output_gradient, out) *
                                     support_item(support, conv->weight, weight);
    reference->weight_gradient[weight] +=
        support_item(support, conv->output_gradient, out) * support_item(support, conv->input, in);
}

/* Gradients of parameters are fp32, so their tolerance is the same for both element types. */
static void check(const struct support *support, const struct conv2d *conv)
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
            visit(support, conv, &reference, out, tap);
        }
        support_stored(support, "output", out, support_item(support, conv->output, out),
                       reference.output[out] + support_item(support, conv->bias, channel), 1e-5);
        bias_gradient[channel] += support_item(support, conv->output_gradient, out);
    }
    for (size_t i = 0; i < sizes.input; i++) {
        support_stored(support, "input_gradient", i, support_item(support, conv->input_gradient, i),
                       reference.input_gradient[i], 1e-5);
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

    conv.element = support->element;
    conv.input = support_items(support, sizes.input, -1.0f, 1.0f);
    conv.weight = support_items(support, sizes.weight, -1.0f, 1.0f);
    conv.bias = support_items(support, conv.output_channels, -1.0f, 1.0f);
    conv.output = support_blank(support, sizes.output);
    conv.output_gradient = support_items(support, sizes.output, -1.0f, 1.0f);
    conv.input_gradient = support_blank(support, sizes.input);
    conv.weight_gradient = support_output(support, sizes.weight);
    conv.bias_gradient = support_output(support, conv.output_channels);
    conv.workspace = support_buffer(support, conv2d_workspace_bytes(&conv));
    ck_assert_int_eq(conv2d_forward_host(NULL, &conv), CAPU_OK);
    ck_assert_int_eq(conv2d_backward_input_host(NULL, &conv), CAPU_OK);
    ck_assert_int_eq(conv2d_backward_weight_host(NULL, &conv), CAPU_OK);
    if (support->is_reference_due) {
        check(support, &conv);
    }
    support_keep(support, conv.output, support_bytes(support, sizes.output));
    support_keep(support, conv.input_gradient, support_bytes(support, sizes.input));
    support_keep(support, conv.weight_gradient, sizes.weight * sizeof(float));
    support_keep(support, conv.bias_gradient, conv.output_channels * sizeof(float));
}

SUPPORT_TESTS_IN_BOTH_TYPES(run_case, shapes)

START_TEST(output_sizes_follow_stride_and_padding)
{
    struct conv2d conv = {.height = 224, .width = 225, .kernel = 7, .padding = 3, .stride = 2};

    ck_assert_uint_eq(conv2d_output_height(&conv), 112);
    ck_assert_uint_eq(conv2d_output_width(&conv), 113);
    conv = (struct conv2d){.height = 56, .width = 7, .kernel = 1, .stride = 2};
    ck_assert_uint_eq(conv2d_output_height(&conv), 28);
    ck_assert_uint_eq(conv2d_output_width(&conv), 4);
    conv.stride = 0;
    ck_assert_uint_eq(conv2d_output_width(&conv), 7);
}
END_TEST

/* Each case changes one member of a valid shape. */
static const struct {
    size_t field;
    uint32_t value;
    capu_status status;
} refused[] = {
    {offsetof(struct conv2d, batch), 0, CAPU_INVALID},
    {offsetof(struct conv2d, input_channels), 0, CAPU_INVALID},
    {offsetof(struct conv2d, output_channels), 0, CAPU_INVALID},
    {offsetof(struct conv2d, height), 0, CAPU_INVALID},
    {offsetof(struct conv2d, width), 0, CAPU_INVALID},
    {offsetof(struct conv2d, kernel), 0, CAPU_INVALID},
    {offsetof(struct conv2d, kernel), 9, CAPU_INVALID},
    {offsetof(struct conv2d, stride), 256, CAPU_INVALID},
    {offsetof(struct conv2d, batch), UINT32_MAX / 64, CAPU_TOO_LARGE},
    {offsetof(struct conv2d, height), UINT32_MAX, CAPU_TOO_LARGE},
    {offsetof(struct conv2d, width), UINT32_MAX / 2, CAPU_TOO_LARGE},
    {offsetof(struct conv2d, padding), UINT32_MAX, CAPU_TOO_LARGE},
    {offsetof(struct conv2d, input_channels), UINT32_MAX / 4, CAPU_TOO_LARGE},
    {offsetof(struct conv2d, output_channels), UINT32_MAX / 4, CAPU_TOO_LARGE},
    {offsetof(struct conv2d, input_channels), UINT32_MAX / 16, CAPU_TOO_LARGE},
    {offsetof(struct conv2d, input_channels), 64 * 65535 + 1, CAPU_TOO_LARGE},
    {offsetof(struct conv2d, output_channels), 64 * 65535 + 1, CAPU_TOO_LARGE},
    {offsetof(struct conv2d, width), UINT32_MAX / 8 * 3 / 4, CAPU_TOO_LARGE},
};

START_TEST(bad_shapes_are_rejected)
{
    struct conv2d conv = {.batch = 1,
                          .input_channels = 2,
                          .output_channels = 2,
                          .height = 6,
                          .width = 7,
                          .kernel = 3,
                          .padding = 1,
                          .stride = 2};

    ck_assert_int_eq(conv2d_check(&conv), CAPU_OK);
    ck_assert_uint_gt(conv2d_workspace_bytes(&conv), 0);
    memcpy((char *)&conv + refused[_i].field, &refused[_i].value, sizeof(uint32_t));
    ck_assert_uint_eq(conv2d_workspace_bytes(&conv), 0);
    ck_assert_int_eq(conv2d_forward_host(NULL, &conv), refused[_i].status);
    ck_assert_int_eq(conv2d_backward_input_host(NULL, &conv), refused[_i].status);
    ck_assert_int_eq(conv2d_backward_weight_host(NULL, &conv), refused[_i].status);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("conv2d");
    TCase *tests = tcase_create("conv2d");

    add_reference_tests(tests);
    tcase_add_test(tests, output_sizes_follow_stride_and_padding);
    tcase_add_loop_test(tests, bad_shapes_are_rejected, 0, sizeof(refused) / sizeof(refused[0]));
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

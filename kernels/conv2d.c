/* Declares the operands of conv2d and runs it. The workspace tensor is scratch as a whole, even if
 * it is larger than needed. */
#include "kernels/conv2d.h"

#include "kernels/launch.h"

/* In bytes. */
struct sizes {
    size_t input;
    size_t weight;
    size_t weight_gradient;
    size_t bias;
    size_t bias_gradient;
    size_t output;
    uint64_t flops;
};

static struct sizes sizes_of(const struct conv2d *conv)
{
    size_t image = (size_t)conv2d_output_height(conv) * conv2d_output_width(conv);
    size_t taps = (size_t)conv->input_channels * conv->kernel * conv->kernel;
    size_t item = element_bytes(conv->element);

    return (struct sizes){
        .input = item * conv->batch * conv->input_channels * conv->height * conv->width,
        .weight = item * conv->output_channels * taps,
        .weight_gradient = sizeof(float) * conv->output_channels * taps,
        .bias = item * conv->output_channels,
        .bias_gradient = sizeof(float) * conv->output_channels,
        .output = item * conv->batch * conv->output_channels * image,
        .flops = UINT64_C(2) * conv->batch * conv->output_channels * taps * image,
    };
}

/* What is plainly a product is one of cuBLAS, but for a forward pass with a bias. */
static enum launch_needs needs_of(const struct conv2d *conv)
{
    return conv2d_is_product(conv) ? LAUNCH_NEEDS_PRODUCTS : LAUNCH_NEEDS_NOTHING;
}

capu_status conv2d_forward(capu_context *context, const struct conv2d *conv)
{
    struct sizes sizes;
    capu_status status = conv2d_check(conv);

    if (status != CAPU_OK) {
        return status;
    }
    sizes = sizes_of(conv);
    if (conv->bias == NULL) {
        return LAUNCH_WITH(needs_of(conv), context, conv2d_forward, conv, sizes.flops,
                           LAUNCH_READ(conv->input, sizes.input),
                           LAUNCH_READ(conv->weight, sizes.weight),
                           LAUNCH_WRITE(conv->output, sizes.output), capu_scratch(conv->workspace));
    }
    return LAUNCH(context, conv2d_forward, conv, sizes.flops, LAUNCH_READ(conv->input, sizes.input),
                  LAUNCH_READ(conv->weight, sizes.weight), LAUNCH_READ(conv->bias, sizes.bias),
                  LAUNCH_WRITE(conv->output, sizes.output), capu_scratch(conv->workspace));
}

capu_status conv2d_backward_input(capu_context *context, const struct conv2d *conv)
{
    struct sizes sizes;
    capu_status status = conv2d_check(conv);

    if (status != CAPU_OK) {
        return status;
    }
    sizes = sizes_of(conv);
    return LAUNCH_WITH(
        needs_of(conv), context, conv2d_backward_input, conv, sizes.flops,
        LAUNCH_READ(conv->output_gradient, sizes.output), LAUNCH_READ(conv->weight, sizes.weight),
        LAUNCH_WRITE(conv->input_gradient, sizes.input), capu_scratch(conv->workspace));
}

capu_status conv2d_backward_weight(capu_context *context, const struct conv2d *conv)
{
    struct sizes sizes;
    capu_status status = conv2d_check(conv);

    if (status != CAPU_OK) {
        return status;
    }
    sizes = sizes_of(conv);
    if (conv->bias_gradient == NULL) {
        return LAUNCH_WITH(needs_of(conv), context, conv2d_backward_weight, conv, sizes.flops,
                           LAUNCH_READ(conv->output_gradient, sizes.output),
                           LAUNCH_READ(conv->input, sizes.input),
                           LAUNCH_WRITE(conv->weight_gradient, sizes.weight_gradient),
                           capu_scratch(conv->workspace));
    }
    return LAUNCH_WITH(
        needs_of(conv), context, conv2d_backward_weight, conv, sizes.flops,
        LAUNCH_READ(conv->output_gradient, sizes.output), LAUNCH_READ(conv->input, sizes.input),
        LAUNCH_WRITE(conv->weight_gradient, sizes.weight_gradient),
        LAUNCH_WRITE(conv->bias_gradient, sizes.bias_gradient), capu_scratch(conv->workspace));
}

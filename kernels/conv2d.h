/*
 * Convolution in two dimensions: images are batch x channels x height x width. The kernel is laid
 * on every `stride`th row and column of the image with `padding` zeros around it, as far as it
 * fits.
 *
 * Each image is unfolded (im2col) and multiplied. The workspace holds the unfolded piece at hand of
 * each of a fixed number of groups of images, whatever the number of threads. It is fp32, like the
 * gradients of weight and bias, whatever the rest is.
 */
#ifndef CAPU_KERNELS_CONV2D_H
#define CAPU_KERNELS_CONV2D_H

#include "capuchin/op.h"

#include "kernels/element.h"

#ifdef __cplusplus
extern "C" {
#endif

struct conv2d {
    const void *input;
    const void *weight; /* output_channels x input_channels x kernel x kernel */
    const void *bias;   /* output_channels; NULL: none */
    void *output;
    const void *output_gradient;
    void *input_gradient;
    float *weight_gradient;
    float *bias_gradient; /* NULL: none */
    float *workspace;     /* a tensor of at least conv2d_workspace_bytes */
    uint32_t batch;
    uint32_t input_channels;
    uint32_t output_channels;
    uint32_t height;
    uint32_t width;
    uint32_t kernel;
    uint32_t padding; /* rows and columns on every side */
    uint32_t stride;  /* rows and columns, at most 255; 0: 1 */
    uint32_t element; /* enum element, of what is void */
};

static inline uint32_t conv2d_stride(const struct conv2d *conv)
{
    return conv->stride != 0 ? conv->stride : 1;
}

static inline uint32_t conv2d_output_height(const struct conv2d *conv)
{
    return (conv->height + 2 * conv->padding - conv->kernel) / conv2d_stride(conv) + 1;
}

static inline uint32_t conv2d_output_width(const struct conv2d *conv)
{
    return (conv->width + 2 * conv->padding - conv->kernel) / conv2d_stride(conv) + 1;
}

/*
 * What the operations ask first. INVALID: no image, channel or kernel, an image that is smaller
 * than the kernel with its padding, a stride above 255; TOO_LARGE: the batch's pixels are more than
 * 32 bits count, an image's pixels or all channels' taps more than 31 do, which is what OpenBLAS
 * counts in, there are more than 4 million channels, or more to multiply than any machine would.
 */
capu_status conv2d_check(const struct conv2d *conv);

/* What the workspace must hold at least, the same for all three operations; 0: a bad shape. */
size_t conv2d_workspace_bytes(const struct conv2d *conv);

/* Reads input, weight, bias; writes output; workspace is scratch, as in the two that follow. */
capu_status conv2d_forward(capu_context *context, const struct conv2d *conv);
/* Reads output_gradient, weight; writes input_gradient. */
capu_status conv2d_backward_input(capu_context *context, const struct conv2d *conv);
/* Reads output_gradient, input; writes weight_gradient, bias_gradient. */
capu_status conv2d_backward_weight(capu_context *context, const struct conv2d *conv);

capu_status conv2d_forward_host(capu_stream stream, const void *arguments);
capu_status conv2d_backward_input_host(capu_stream stream, const void *arguments);
capu_status conv2d_backward_weight_host(capu_stream stream, const void *arguments);

capu_status conv2d_forward_cuda(capu_stream stream, const void *arguments);
capu_status conv2d_backward_input_cuda(capu_stream stream, const void *arguments);
capu_status conv2d_backward_weight_cuda(capu_stream stream, const void *arguments);

#ifdef __cplusplus
}
#endif

#endif

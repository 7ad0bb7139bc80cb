/*
 * Two-dimensional convolution. Images are batch x channels x height x width. The image is padded
 * with `padding` zeros on every side, and the kernel is applied at every `stride`th row and column
 * where it fits.
 *
 * On the host images are unfolded (im2col) piece by piece and multiplied; cuda gathers what it
 * multiplies and unfolds nothing (conv2d_products.cuh), and has cuBLAS multiply where there is
 * nothing to gather (conv2d_is_product; forward only without a bias). The workspace holds one
 * piece, and partial sums of the gradients, for each of a fixed number of groups of images: a
 * number that depended on the threads would change the order of sums. It is fp32, like the
 * gradients of weight and bias, whatever the element type.
 */
#ifndef CAPU_KERNELS_CONV2D_H
#define CAPU_KERNELS_CONV2D_H

#include "capuchin/op.h"

#include "kernels/element.h"

#include <stdbool.h>

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
    uint32_t element; /* enum element: type of the void buffers */
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

/* Whether it is a matrix product per image: every output is a sum over the channels of one pixel.
 */
static inline bool conv2d_is_product(const struct conv2d *conv)
{
    return conv->kernel == 1 && conv2d_stride(conv) == 1 && conv->padding == 0;
}

/*
 * The operations check this first. INVALID: no image, channel or kernel; a padded image smaller
 * than the kernel; a stride above 255. TOO_LARGE: the pixels of the batch exceed 32 bits; the
 * pixels of an image, or the taps of all channels, exceed the 31 bits that OpenBLAS counts in;
 * there are more than 4 million channels; or the products, in bytes, would come near 64 bits.
 */
capu_status conv2d_check(const struct conv2d *conv);

/* The smallest workspace, the same for all three operations; 0: conv2d_check rejects the shape. */
size_t conv2d_workspace_bytes(const struct conv2d *conv);

/* Reads input, weight, bias; writes output; workspace is scratch, as in the two functions that
 * follow. */
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

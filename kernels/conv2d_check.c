/*
 * Which shapes conv2d accepts, the same on every device: a program that trains on the host also
 * trains on cuda. Each limit comes from whichever device counts in the smaller type.
 */
#include "kernels/conv2d.h"

/* cuda handles each remainder of the stride separately, all of them in one grid. */
#define STRIDE_LIMIT 255u

/* For counts of 32 bits, including one block past the end. */
#define COUNT_LIMIT (UINT32_MAX - 1024u)

/* Rows of a product: cuda has tiles of 64 rows, and 65535 tiles along a side of a grid. */
#define CHANNELS_LIMIT ((uint64_t)64 * 65535)

/* Products of taps, positions and channels: below this no size in bytes comes near 64 bits. */
#define PRODUCT_LIMIT (UINT64_MAX / 128)

capu_status conv2d_check(const struct conv2d *conv)
{
    uint64_t height = (uint64_t)conv->height + 2 * (uint64_t)conv->padding;
    uint64_t width = (uint64_t)conv->width + 2 * (uint64_t)conv->padding;
    uint64_t kernel = conv->kernel;
    uint64_t channels =
        conv->input_channels > conv->output_channels ? conv->input_channels : conv->output_channels;
    uint64_t pixels = 0;
    uint64_t taps = 0;
    uint64_t products = 0;

    if (conv->batch == 0 || conv->input_channels == 0 || conv->output_channels == 0 ||
        conv->height == 0 || conv->width == 0 || kernel == 0 || height < kernel || width < kernel ||
        conv->stride > STRIDE_LIMIT) {
        return CAPU_INVALID;
    }
    /* With the padding there are at least as many pixels as output positions. */
    if (height > INT32_MAX || width > INT32_MAX || height * width > INT32_MAX ||
        channels > CHANNELS_LIMIT || __builtin_mul_overflow(height * width, conv->batch, &pixels) ||
        pixels > COUNT_LIMIT || __builtin_mul_overflow(kernel * kernel, channels, &taps) ||
        taps > INT32_MAX || __builtin_mul_overflow(pixels * taps, channels, &products) ||
        products > PRODUCT_LIMIT) {
        return CAPU_TOO_LARGE;
    }
    return CAPU_OK;
}

/*
 * conv2d on the host: unfold (im2col) and multiply.
 *
 * The batch is split into at most GROUPS groups, one tile each. Group g has the images g, g +
 * groups,
 * ... and a part of the workspace to itself. The number of groups does not depend on the number of
 * threads, because each group sums its share of the weight gradient and the shares are then added
 * in order: another number of groups would give other bits.
 *
 * An image is unfolded a few rows at a time, so that the piece stays in the core's cache while it
 * is multiplied; a whole unfolded image is kernel x kernel times as large as the image.
 */
#include "kernels/conv2d.h"

#include "kernels/copies.h"
#include "kernels/gemm.h"
#include "kernels/parallel.h"
#include "kernels/reduce.h"

#include <string.h>

/*
 * Which shapes conv2d accepts, the same on every device: a program that trains on the host also
 * trains on cuda. Each limit comes from whichever device counts in the smaller type.
 */

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

/* Limits the workspace, and with it the number of cores in use. */
#define GROUPS ((size_t)8)

/* Output positions unfolded at a time: 9 rows of 28, or an image of 14 x 14. */
#define PIECE_POSITIONS ((size_t)256)

struct shape {
    size_t groups;
    size_t taps; /* rows of the unfolded matrix: input channels x kernel x kernel */
    size_t stride;
    size_t height;
    size_t width;      /* of the output */
    size_t positions;  /* height x width */
    size_t piece_rows; /* output rows unfolded at a time */
    size_t piece;      /* floats of an unfolded piece */
    size_t weights;
    size_t input_items;  /* of an image */
    size_t output_items; /* of an image */
};

static struct shape shape_of(const struct conv2d *conv)
{
    struct shape shape;

    shape.groups = conv->batch < GROUPS ? conv->batch : GROUPS;
    shape.taps = (size_t)conv->input_channels * conv->kernel * conv->kernel;
    shape.stride = conv2d_stride(conv);
    shape.height = conv2d_output_height(conv);
    shape.width = conv2d_output_width(conv);
    shape.positions = shape.height * shape.width;
    shape.piece_rows = PIECE_POSITIONS / shape.width;
    if (shape.piece_rows == 0) {
        shape.piece_rows = 1;
    }
    if (shape.piece_rows > shape.height) {
        shape.piece_rows = shape.height;
    }
    shape.piece = shape.taps * shape.piece_rows * shape.width;
    shape.weights = shape.taps * conv->output_channels;
    shape.input_items = (size_t)conv->input_channels * conv->height * conv->width;
    shape.output_items = conv->output_channels * shape.positions;
    return shape;
}

/* A group's part of the workspace: a piece, then its share of the weight and bias gradients. */
static size_t group_floats(const struct conv2d *conv, const struct shape *shape)
{
    return shape->piece + shape->weights + conv->output_channels;
}

size_t conv2d_workspace_bytes(const struct conv2d *conv)
{
    struct shape shape;

    if (conv2d_check(conv) != CAPU_OK) {
        return 0;
    }
    shape = shape_of(conv);
    return shape.groups * group_floats(conv, &shape) * sizeof(float);
}

/* One tap of a piece in one output row: the input row that it reads, and which part of it exists.
 */
struct tap {
    size_t channel;
    size_t y;     /* of the input; meaningful if the row exists */
    size_t skip;  /* positions at the left that read padding */
    size_t count; /* positions that read the input; 0: the row is padding */
    size_t
        x; /* of the input, for the first of these positions; each next one is a stride further */
};

/* The first output position whose input lies `distance` or more to the right of position 0's. */
static size_t strides_to(const struct shape *shape, size_t distance)
{
    return (distance + shape->stride - 1) / shape->stride;
}

static struct tap tap_of(const struct conv2d *conv, const struct shape *shape, size_t index,
                         size_t row)
{
    size_t kernel_x = index % conv->kernel;
    size_t kernel_y = index / conv->kernel % conv->kernel;
    struct tap tap = {.channel = index / conv->kernel / conv->kernel};
    size_t y = row * shape->stride + kernel_y;
    size_t end;

    if (y < conv->padding || y - conv->padding >= conv->height ||
        kernel_x >= (size_t)conv->width + conv->padding) {
        tap.skip = shape->width;
        return tap;
    }
    tap.y = y - conv->padding;
    tap.skip = kernel_x < conv->padding ? strides_to(shape, conv->padding - kernel_x) : 0;
    if (tap.skip > shape->width) {
        tap.skip = shape->width;
    }
    end = strides_to(shape, conv->width + conv->padding - kernel_x);
    if (end > shape->width) {
        end = shape->width;
    }
    tap.count = end > tap.skip ? end - tap.skip : 0;
    tap.x = tap.skip * shape->stride + kernel_x - conv->padding;
    return tap;
}

/* A loop with a stride of 1 that the compiler knows is vectorized. */
static void gather(const float *from, size_t stride, size_t count, float *restrict to)
{
    if (stride == 1) {
        memcpy(to, from, count * sizeof(float));
        return;
    }
    for (size_t i = 0; i < count; i++) {
        to[i] = from[i * stride];
    }
}

static void scatter(const float *restrict from, size_t count, float *restrict to, size_t stride)
{
    if (stride == 1) {
        for (size_t i = 0; i < count; i++) {
            to[i] += from[i];
        }
        return;
    }
    for (size_t i = 0; i < count; i++) {
        to[i * stride] += from[i];
    }
}

/* Unfolds the output rows [first, first + rows) of one image: a row of the piece for each tap. */
static void unfold(const struct conv2d *conv, const struct shape *shape, const float *image,
                   size_t first, size_t rows, float *piece)
{
    for (size_t index = 0; index < shape->taps; index++) {
        for (size_t row = first; row < first + rows; row++) {
            struct tap tap = tap_of(conv, shape, index, row);

            memset(piece, 0, tap.skip * sizeof(float));
            if (tap.count > 0) {
                gather(image + (tap.channel * conv->height + tap.y) * conv->width + tap.x,
                       shape->stride, tap.count, piece + tap.skip);
            }
            memset(piece + tap.skip + tap.count, 0,
                   (shape->width - tap.skip - tap.count) * sizeof(float));
            piece += shape->width;
        }
    }
}

/* The transpose of unfold: adds each item of the piece to the pixel that it came from. */
static void fold(const struct conv2d *conv, const struct shape *shape, const float *piece,
                 size_t first, size_t rows, float *image)
{
    for (size_t index = 0; index < shape->taps; index++) {
        for (size_t row = first; row < first + rows; row++) {
            struct tap tap = tap_of(conv, shape, index, row);

            if (tap.count > 0) {
                scatter(piece + tap.skip, tap.count,
                        image + (tap.channel * conv->height + tap.y) * conv->width + tap.x,
                        shape->stride);
            }
            piece += shape->width;
        }
    }
}

static size_t rows_at(const struct shape *shape, size_t first)
{
    return shape->height - first < shape->piece_rows ? shape->height - first : shape->piece_rows;
}

static void forward_image(const struct conv2d *conv, const struct shape *shape, size_t image,
                          float *piece)
{
    const float *input = (const float *)conv->input + image * shape->input_items;
    const float *bias = conv->bias;
    float *output = (float *)conv->output + image * shape->output_items;

    for (size_t first = 0; first < shape->height; first += shape->piece_rows) {
        size_t rows = rows_at(shape, first);

        unfold(conv, shape, input, first, rows, piece);
        gemm_block(&(struct gemm){
            .rows = conv->output_channels,
            .columns = rows * shape->width,
            .depth = shape->taps,
            .a = conv->weight,
            .a_stride = shape->taps,
            .b = piece,
            .b_stride = rows * shape->width,
            .c = output + first * shape->width,
            .c_stride = shape->positions,
        });
    }
    for (size_t channel = 0; bias != NULL && channel < conv->output_channels; channel++) {
        float *plane = output + channel * shape->positions;

        for (size_t i = 0; i < shape->positions; i++) {
            plane[i] += bias[channel];
        }
    }
}

static void backward_input_image(const struct conv2d *conv, const struct shape *shape, size_t image,
                                 float *piece)
{
    float *input_gradient = (float *)conv->input_gradient + image * shape->input_items;
    const float *gradient = (const float *)conv->output_gradient + image * shape->output_items;

    memset(input_gradient, 0, shape->input_items * sizeof(float));
    for (size_t first = 0; first < shape->height; first += shape->piece_rows) {
        size_t rows = rows_at(shape, first);

        gemm_block(&(struct gemm){
            .rows = shape->taps,
            .columns = rows * shape->width,
            .depth = conv->output_channels,
            .a = conv->weight,
            .a_stride = shape->taps,
            .a_transposed = true,
            .b = gradient + first * shape->width,
            .b_stride = shape->positions,
            .c = piece,
            .c_stride = rows * shape->width,
        });
        fold(conv, shape, piece, first, rows, input_gradient);
    }
}

static void backward_weight_image(const struct conv2d *conv, const struct shape *shape,
                                  size_t image, float *piece, bool is_first)
{
    const float *input = (const float *)conv->input + image * shape->input_items;
    const float *gradient = (const float *)conv->output_gradient + image * shape->output_items;
    float *weight_gradient = piece + shape->piece;
    float *bias_gradient = weight_gradient + shape->weights;

    for (size_t first = 0; first < shape->height; first += shape->piece_rows) {
        size_t rows = rows_at(shape, first);

        unfold(conv, shape, input, first, rows, piece);
        gemm_block(&(struct gemm){
            .rows = conv->output_channels,
            .columns = shape->taps,
            .depth = rows * shape->width,
            .a = gradient + first * shape->width,
            .a_stride = shape->positions,
            .b = piece,
            .b_stride = rows * shape->width,
            .b_transposed = true,
            .c = weight_gradient,
            .c_stride = shape->taps,
            .beta = is_first && first == 0 ? 0.0f : 1.0f,
        });
    }
    for (size_t channel = 0; channel < conv->output_channels; channel++) {
        float sum = reduce_sum(gradient + channel * shape->positions, shape->positions);
        bias_gradient[channel] = is_first ? sum : bias_gradient[channel] + sum;
    }
}

static void forward_group(const void *arguments, size_t group)
{
    const struct conv2d *conv = arguments;
    struct shape shape = shape_of(conv);
    float *piece = conv->workspace + group * group_floats(conv, &shape);

    for (size_t image = group; image < conv->batch; image += shape.groups) {
        forward_image(conv, &shape, image, piece);
    }
}

static void backward_input_group(const void *arguments, size_t group)
{
    const struct conv2d *conv = arguments;
    struct shape shape = shape_of(conv);
    float *piece = conv->workspace + group * group_floats(conv, &shape);

    for (size_t image = group; image < conv->batch; image += shape.groups) {
        backward_input_image(conv, &shape, image, piece);
    }
}

static void backward_weight_group(const void *arguments, size_t group)
{
    const struct conv2d *conv = arguments;
    struct shape shape = shape_of(conv);
    float *piece = conv->workspace + group * group_floats(conv, &shape);

    for (size_t image = group; image < conv->batch; image += shape.groups) {
        backward_weight_image(conv, &shape, image, piece, image == group);
    }
}

/* to = the sum over the groups, in order; their shares lie `step` floats apart. */
static void sum_groups(const float *from, size_t step, size_t groups, float *to, size_t count)
{
    memcpy(to, from, count * sizeof(float));
    for (size_t group = 1; group < groups; group++) {
        const float *restrict part = from + group * step;
        float *restrict sum = to;

        for (size_t i = 0; i < count; i++) {
            sum[i] += part[i];
        }
    }
}

capu_status conv2d_forward_host(capu_stream stream, const void *arguments)
{
    struct conv2d conv = *(const struct conv2d *)arguments;
    struct copies copies = {.element = conv.element};
    struct shape shape;
    capu_status status = conv2d_check(&conv);

    (void)stream;
    if (status != CAPU_OK) {
        return status;
    }
    shape = shape_of(&conv);
    conv.input = copies_read(&copies, conv.input, conv.batch * shape.input_items);
    conv.weight = copies_read(&copies, conv.weight, shape.weights);
    conv.bias = copies_read(&copies, conv.bias, conv.output_channels);
    conv.output = copies_write(&copies, conv.output, conv.batch * shape.output_items);
    if (copies.status == CAPU_OK) {
        parallel_run(shape.groups, forward_group, &conv);
    }
    return copies_finish(&copies);
}

capu_status conv2d_backward_input_host(capu_stream stream, const void *arguments)
{
    struct conv2d conv = *(const struct conv2d *)arguments;
    struct copies copies = {.element = conv.element};
    struct shape shape;
    capu_status status = conv2d_check(&conv);

    (void)stream;
    if (status != CAPU_OK) {
        return status;
    }
    shape = shape_of(&conv);
    conv.output_gradient =
        copies_read(&copies, conv.output_gradient, conv.batch * shape.output_items);
    conv.weight = copies_read(&copies, conv.weight, shape.weights);
    conv.input_gradient =
        copies_write(&copies, conv.input_gradient, conv.batch * shape.input_items);
    if (copies.status == CAPU_OK) {
        parallel_run(shape.groups, backward_input_group, &conv);
    }
    return copies_finish(&copies);
}

static void add_groups(const struct conv2d *conv, const struct shape *shape)
{
    size_t step = group_floats(conv, shape);
    const float *first = conv->workspace + shape->piece;

    sum_groups(first, step, shape->groups, conv->weight_gradient, shape->weights);
    if (conv->bias_gradient != NULL) {
        sum_groups(first + shape->weights, step, shape->groups, conv->bias_gradient,
                   conv->output_channels);
    }
}

capu_status conv2d_backward_weight_host(capu_stream stream, const void *arguments)
{
    struct conv2d conv = *(const struct conv2d *)arguments;
    struct copies copies = {.element = conv.element};
    struct shape shape;
    capu_status status = conv2d_check(&conv);

    (void)stream;
    if (status != CAPU_OK) {
        return status;
    }
    shape = shape_of(&conv);
    conv.output_gradient =
        copies_read(&copies, conv.output_gradient, conv.batch * shape.output_items);
    conv.input = copies_read(&copies, conv.input, conv.batch * shape.input_items);
    if (copies.status == CAPU_OK) {
        parallel_run(shape.groups, backward_weight_group, &conv);
        add_groups(&conv, &shape);
    }
    return copies_finish(&copies);
}

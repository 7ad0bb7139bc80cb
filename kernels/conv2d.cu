/*
 * conv2d on cuda: each of the three is one matrix product, one factor of which is gathered from the
 * images while it is multiplied. Nothing is unfolded in memory, nothing is added by atomics.
 *
 *     forward          output[channel][position] = weight[channel][tap]      input[tap][position]
 *     backward_input   gradient[channel][pixel]  = weight[channel][out, tap] gradient[out,
 * tap][pixel] backward_weight  gradient[channel][tap]    = gradient[channel][position]
 * input[position][tap]
 *
 * backward_input does the pixels of each remainder of the stride apart: those of one have the same
 * taps, and lie side by side as with stride 1. backward_weight sums over all positions of all
 * images: it is cut into parts by images, which lie in the workspace and are added in order. Either
 * is a part of the grid's depth.
 */
#include "kernels/conv2d.h"

#include "kernels/grid.cuh"

/* A block computes a tile of 64 x 64 sums, a thread 4 x 4 of them, from slices 16 deep. */
#define TILE 64u
#define SLICE 16u
#define SQUARE 4u
#define THREADS ((TILE / SQUARE) * (TILE / SQUARE))
#define LOADS (TILE * SLICE / THREADS)

/* Keeps float4 aligned, and moves the columns of a slice to other banks. */
#define ROW (TILE + 4u)

/* More parts of a weight gradient would only be more to add. */
#define PARTS_LIMIT 64u

/*
 * One index of the gathered factor. An item is found by two of them, whose coordinates and offsets
 * add up: those of a position and those of a tap.
 */
struct place {
    ptrdiff_t offset;
    int y;
    int x;
    bool is_there; /* not past the end */
};

static __device__ inline float gather(const float *images, uint32_t height, uint32_t width,
                                      const struct place &one, const struct place &other)
{
    int y = one.y + other.y;
    int x = one.x + other.x;

    if (!one.is_there || !other.is_there || y < 0 || x < 0 || y >= (int)height || x >= (int)width) {
        return 0.0f;
    }
    return images[one.offset + other.offset];
}

/* Row y and column x, of images whose planes are width wide. */
static __device__ inline struct place place_of(uint32_t image, int y, int x, size_t image_items,
                                               uint32_t width, bool is_there)
{
    struct place place;

    place.y = y;
    place.x = x;
    place.offset =
        (ptrdiff_t)(image * image_items) + (ptrdiff_t)place.y * (ptrdiff_t)width + place.x;
    place.is_there = is_there;
    return place;
}

/* KERNEL is the kernel's side where it is known when this is compiled, else 0. */
template <unsigned KERNEL> struct sides {
    typedef uint32_t part;
    struct conv2d conv; /* its stride is not 0 */
    uint32_t out_height;
    uint32_t out_width;
    uint32_t rows;    /* of the product */
    uint32_t columns; /* of the product */

    __device__ uint32_t kernel() const
    {
        return KERNEL != 0 ? KERNEL : conv.kernel;
    }

    __device__ uint32_t window() const
    {
        return kernel() * kernel();
    }

    __device__ uint32_t part_of(uint32_t index) const
    {
        return index;
    }

    __device__ uint32_t columns_in(uint32_t) const
    {
        return columns;
    }

    /* The input's item under the kernel's first one, at an output position. */
    __device__ struct place corner(uint32_t image, uint32_t position, bool is_there) const
    {
        return place_of(image, (int)(position / out_width * conv.stride) - (int)conv.padding,
                        (int)(position % out_width * conv.stride) - (int)conv.padding,
                        (size_t)conv.input_channels * conv.height * conv.width, conv.width,
                        is_there);
    }

    /* The input's item under tap `i`, counted over channels, from that under the first one. */
    __device__ struct place tap(uint32_t i, bool is_there) const
    {
        uint32_t rest = i % window();

        return place_of(i / window(), (int)(rest / kernel()), (int)(rest % kernel()),
                        (size_t)conv.height * conv.width, conv.width, is_there);
    }
};

template <unsigned KERNEL> struct forward_product : sides<KERNEL> {
    static const bool IS_BY_DEPTH = false;

    __device__ uint32_t depth(uint32_t) const
    {
        return this->conv.input_channels * this->window();
    }

    __device__ float a(uint32_t row, uint32_t k, uint32_t) const
    {
        return this->conv.weight[(size_t)row * this->conv.input_channels * this->window() + k];
    }

    __device__ struct place along(uint32_t k, uint32_t, bool is_there) const
    {
        return this->tap(k, is_there);
    }

    __device__ struct place across(uint32_t column, uint32_t, bool is_there) const
    {
        uint32_t positions = this->out_height * this->out_width;

        return this->corner(column / positions, column % positions, is_there);
    }

    __device__ float b(const struct place &along, const struct place &across) const
    {
        return gather(this->conv.input, this->conv.height, this->conv.width, along, across);
    }

    __device__ void store(uint32_t row, uint32_t column, uint32_t, float value) const
    {
        size_t positions = (size_t)this->out_height * this->out_width;
        size_t image = column / positions;
        float bias = this->conv.bias != NULL ? this->conv.bias[row] : 0.0f;

        this->conv
            .output[(image * this->conv.output_channels + row) * positions + column % positions] =
            value + bias;
    }
};

/* In one direction: the pixels of one remainder of the stride, and the taps that look at them. */
struct side_phase {
    uint32_t taps; /* every stride-th; may be none */
    uint32_t first_pixel;
    uint32_t pixels; /* may be none */
    int output;      /* the position that has the first tap on the first pixel */
};

static __device__ inline struct side_phase side_phase_of(uint32_t first_tap, uint32_t side,
                                                         const struct conv2d &conv)
{
    uint32_t stride = conv.stride;
    struct side_phase phase;

    phase.taps = (conv.kernel + stride - 1 - first_tap) / stride;
    phase.first_pixel = (first_tap + stride - conv.padding % stride) % stride;
    phase.pixels = (side + stride - 1 - phase.first_pixel) / stride;
    phase.output = (int)((phase.first_pixel + conv.padding - first_tap) / stride);
    return phase;
}

/* Where KERNEL is known the stride is 1, and so there is one phase, of all pixels and taps. */
template <unsigned KERNEL> struct backward_input_product : sides<KERNEL> {
    static const bool IS_BY_DEPTH = false;

    struct part {
        uint32_t first_tap;
        struct side_phase y;
        struct side_phase x;
    };

    __device__ struct part part_of(uint32_t index) const
    {
        uint32_t y = index / this->conv.stride;
        uint32_t x = index % this->conv.stride;
        struct part part;

        part.first_tap = y * this->kernel() + x;
        part.y = side_phase_of(y, this->conv.height, this->conv);
        part.x = side_phase_of(x, this->conv.width, this->conv);
        return part;
    }

    __device__ uint32_t columns_in(const struct part &part) const
    {
        return this->conv.batch * part.y.pixels * part.x.pixels;
    }

    __device__ uint32_t taps_across(const struct part &part) const
    {
        return KERNEL != 0 ? KERNEL : part.x.taps;
    }

    __device__ uint32_t taps_of(const struct part &part) const
    {
        return KERNEL != 0 ? KERNEL * KERNEL : part.y.taps * part.x.taps;
    }

    __device__ uint32_t depth(const struct part &part) const
    {
        return this->conv.output_channels * taps_of(part);
    }

    __device__ float a(uint32_t row, uint32_t k, const struct part &part) const
    {
        uint32_t out = k / taps_of(part);
        uint32_t rest = k % taps_of(part);
        uint32_t tap = rest;

        if (KERNEL == 0) {
            tap = part.first_tap +
                  (rest / part.x.taps * this->kernel() + rest % part.x.taps) * this->conv.stride;
        }
        return this->conv
            .weight[((size_t)out * this->conv.input_channels + row) * this->window() + tap];
    }

    __device__ struct place along(uint32_t k, const struct part &part, bool is_there) const
    {
        uint32_t rest;

        if (!is_there) {
            return {}; /* there may be no taps to divide by, nor pixels below */
        }
        rest = k % taps_of(part);
        return place_of(k / taps_of(part), -(int)(rest / taps_across(part)),
                        -(int)(rest % taps_across(part)),
                        (size_t)this->out_height * this->out_width, this->out_width, is_there);
    }

    /* Image, row and column among the pixels of the part. */
    __device__ struct place across(uint32_t column, const struct part &part, bool is_there) const
    {
        uint32_t pixels = part.y.pixels * part.x.pixels;
        uint32_t pixel;

        if (!is_there) {
            return {};
        }
        pixel = column % pixels;
        return place_of(column / pixels, part.y.output + (int)(pixel / part.x.pixels),
                        part.x.output + (int)(pixel % part.x.pixels),
                        (size_t)this->conv.output_channels * this->out_height * this->out_width,
                        this->out_width, is_there);
    }

    __device__ float b(const struct place &along, const struct place &across) const
    {
        return gather(this->conv.output_gradient, this->out_height, this->out_width, along, across);
    }

    __device__ void store(uint32_t row, uint32_t column, const struct part &part, float value) const
    {
        uint32_t pixels = part.y.pixels * part.x.pixels;
        uint32_t pixel = column % pixels;
        uint32_t y = part.y.first_pixel + pixel / part.x.pixels * this->conv.stride;
        uint32_t x = part.x.first_pixel + pixel % part.x.pixels * this->conv.stride;
        size_t plane = (size_t)(column / pixels) * this->conv.input_channels + row;

        this->conv.input_gradient[(plane * this->conv.height + y) * this->conv.width + x] = value;
    }
};

/* Part p has the images p, p + parts, ... */
template <unsigned KERNEL> struct backward_weight_product : sides<KERNEL> {
    static const bool IS_BY_DEPTH = true;
    uint32_t parts;

    __device__ uint32_t image(uint32_t k, uint32_t part) const
    {
        return part + k / (this->out_height * this->out_width) * parts;
    }

    __device__ uint32_t depth(uint32_t part) const
    {
        return (this->conv.batch - part + parts - 1) / parts * this->out_height * this->out_width;
    }

    __device__ float a(uint32_t row, uint32_t k, uint32_t part) const
    {
        uint32_t positions = this->out_height * this->out_width;

        return this->conv
            .output_gradient[((size_t)image(k, part) * this->conv.output_channels + row) *
                                 positions +
                             k % positions];
    }

    __device__ struct place along(uint32_t k, uint32_t part, bool is_there) const
    {
        return this->corner(image(k, part), k % (this->out_height * this->out_width), is_there);
    }

    __device__ struct place across(uint32_t column, uint32_t, bool is_there) const
    {
        return this->tap(column, is_there);
    }

    __device__ float b(const struct place &along, const struct place &across) const
    {
        return gather(this->conv.input, this->conv.height, this->conv.width, along, across);
    }

    __device__ void store(uint32_t row, uint32_t column, uint32_t part, float value) const
    {
        this->conv.workspace[((size_t)part * this->rows + row) * this->columns + column] = value;
    }
};

/*
 * What a thread loads of a slice: of the first factor always four rows at one depth, of the
 * gathered one either four depths at one column or four columns at one depth, whichever lets
 * neighbouring threads read neighbouring items.
 */
template <typename Product> struct loader {
    uint32_t first_row;
    uint32_t first_column;
    uint32_t columns;
    uint32_t depth;
    typename Product::part part;
    struct place fixed[LOADS]; /* the columns: one of them, or all */

    __device__ static uint32_t row_in_tile(unsigned i)
    {
        return threadIdx.x / SLICE + i * (THREADS / SLICE);
    }

    __device__ static uint32_t b_column(unsigned i)
    {
        return Product::IS_BY_DEPTH ? row_in_tile(i) : threadIdx.x % TILE;
    }

    __device__ static uint32_t b_depth(unsigned i)
    {
        return Product::IS_BY_DEPTH ? threadIdx.x % SLICE
                                    : threadIdx.x / TILE + i * (THREADS / TILE);
    }

    __device__ void init(const Product &product)
    {
        first_row = blockIdx.y * TILE;
        first_column = blockIdx.x * TILE;
        part = product.part_of(blockIdx.z);
        columns = product.columns_in(part);
        depth = product.depth(part);
        for (unsigned i = 0; i < LOADS; i++) {
            uint32_t column = first_column + b_column(i);

            fixed[i] = product.across(column, part, column < columns);
        }
    }

    __device__ void load(const Product &product, uint32_t k, float a[LOADS], float b[LOADS]) const
    {
        uint32_t a_depth = k + threadIdx.x % SLICE;

        for (unsigned i = 0; i < LOADS; i++) {
            uint32_t row = first_row + row_in_tile(i);
            uint32_t at = k + b_depth(i);

            a[i] = row < product.rows && a_depth < depth ? product.a(row, a_depth, part) : 0.0f;
            b[i] = product.b(product.along(at, part, at < depth), fixed[i]);
        }
    }
};

template <typename Product>
static __global__ void __launch_bounds__(THREADS) multiply(const Product product)
{
    __shared__ __align__(16) float a[SLICE][ROW];
    __shared__ __align__(16) float b[SLICE][ROW];
    unsigned across = threadIdx.x % (TILE / SQUARE) * SQUARE;
    unsigned down = threadIdx.x / (TILE / SQUARE) * SQUARE;
    float sums[SQUARE][SQUARE] = {};
    float next_a[LOADS];
    float next_b[LOADS];
    loader<Product> loader;

    loader.init(product);
    loader.load(product, 0, next_a, next_b);
    for (uint32_t k = 0; k < loader.depth; k += SLICE) {
        for (unsigned i = 0; i < LOADS; i++) {
            a[threadIdx.x % SLICE][loader.row_in_tile(i)] = next_a[i];
            b[loader.b_depth(i)][loader.b_column(i)] = next_b[i];
        }
        __syncthreads();
        if (k + SLICE < loader.depth) {
            loader.load(product, k + SLICE, next_a, next_b);
        }
#pragma unroll
        for (unsigned d = 0; d < SLICE; d++) {
            const float4 left = *(const float4 *)&a[d][down];
            const float4 right = *(const float4 *)&b[d][across];
            const float rows[SQUARE] = {left.x, left.y, left.z, left.w};
            const float columns[SQUARE] = {right.x, right.y, right.z, right.w};

#pragma unroll
            for (unsigned i = 0; i < SQUARE * SQUARE; i++) {
                sums[i / SQUARE][i % SQUARE] += rows[i / SQUARE] * columns[i % SQUARE];
            }
        }
        __syncthreads();
    }
    for (unsigned i = 0; i < SQUARE * SQUARE; i++) {
        uint32_t row = loader.first_row + down + i / SQUARE;
        uint32_t column = loader.first_column + across + i % SQUARE;

        if (row < product.rows && column < loader.columns) {
            product.store(row, column, loader.part, sums[i / SQUARE][i % SQUARE]);
        }
    }
}

static __global__ void add_parts(const float *parts, uint32_t part_count, float *to, size_t count)
{
    for (size_t i = grid_first(); i < count; i += grid_stride()) {
        float sum = parts[i];

        for (uint32_t part = 1; part < part_count; part++) {
            sum += parts[part * count + i];
        }
        to[i] = sum;
    }
}

/* A block a channel. */
static __global__ void sum_bias_gradient(const struct conv2d conv, uint32_t positions)
{
    float sum = 0.0f;
    double total;

    for (uint32_t i = threadIdx.x; i < conv.batch * positions; i += blockDim.x) {
        uint32_t image = i / positions;

        sum +=
            conv.output_gradient[((size_t)image * conv.output_channels + blockIdx.x) * positions +
                                 (i - image * positions)];
    }
    total = grid_block_sum(sum);
    if (threadIdx.x == 0) {
        conv.bias_gradient[blockIdx.x] = (float)total;
    }
}

template <typename Product>
static capu_status launch(capu_stream stream, const struct conv2d *conv, Product product,
                          uint32_t rows, uint32_t columns, uint32_t parts)
{
    dim3 blocks((columns + TILE - 1) / TILE, (rows + TILE - 1) / TILE, parts);

    product.conv = *conv;
    product.conv.stride = conv2d_stride(conv);
    product.out_height = conv2d_output_height(conv);
    product.out_width = conv2d_output_width(conv);
    product.rows = rows;
    product.columns = columns;
    GRID_LAUNCH(multiply<Product>, blocks, THREADS, stream, product);
    return grid_status();
}

capu_status conv2d_forward_cuda(capu_stream stream, const void *arguments)
{
    const struct conv2d *conv = (const struct conv2d *)arguments;
    capu_status status = conv2d_check(conv);
    uint32_t columns;

    if (status != CAPU_OK) {
        return status;
    }
    columns = conv->batch * conv2d_output_height(conv) * conv2d_output_width(conv);
    switch (conv->kernel) {
    case 1:
        return launch(stream, conv, forward_product<1>(), conv->output_channels, columns, 1);
    case 3:
        return launch(stream, conv, forward_product<3>(), conv->output_channels, columns, 1);
    default:
        return launch(stream, conv, forward_product<0>(), conv->output_channels, columns, 1);
    }
}

capu_status conv2d_backward_input_cuda(capu_stream stream, const void *arguments)
{
    const struct conv2d *conv = (const struct conv2d *)arguments;
    uint32_t stride = conv2d_stride(conv);
    capu_status status = conv2d_check(conv);
    uint32_t columns;

    if (status != CAPU_OK) {
        return status;
    }
    /* Of the first remainder of the stride; others have as many, or less. */
    columns = conv->batch * ((conv->height - 1) / stride + 1) * ((conv->width - 1) / stride + 1);
    switch (stride == 1 ? conv->kernel : 0) {
    case 1:
        return launch(stream, conv, backward_input_product<1>(), conv->input_channels, columns, 1);
    case 3:
        return launch(stream, conv, backward_input_product<3>(), conv->input_channels, columns, 1);
    default:
        return launch(stream, conv, backward_input_product<0>(), conv->input_channels, columns,
                      stride * stride);
    }
}

/* As many parts as the workspace has room for, and images to give each at least one. */
static uint32_t parts_of(const struct conv2d *conv, size_t weights)
{
    size_t parts = conv2d_workspace_bytes(conv) / sizeof(float) / weights;

    parts = parts < conv->batch ? parts : conv->batch;
    return parts < PARTS_LIMIT ? (uint32_t)parts : PARTS_LIMIT;
}

template <unsigned KERNEL>
static capu_status launch_backward_weight(capu_stream stream, const struct conv2d *conv,
                                          uint32_t taps, uint32_t parts)
{
    backward_weight_product<KERNEL> product;

    product.parts = parts;
    return launch(stream, conv, product, conv->output_channels, taps, parts);
}

capu_status conv2d_backward_weight_cuda(capu_stream stream, const void *arguments)
{
    const struct conv2d *conv = (const struct conv2d *)arguments;
    uint32_t taps = conv->input_channels * conv->kernel * conv->kernel;
    size_t weights = (size_t)conv->output_channels * taps;
    uint32_t parts;
    capu_status status = conv2d_check(conv);

    if (status != CAPU_OK) {
        return status;
    }
    parts = parts_of(conv, weights);
    switch (conv->kernel) {
    case 1:
        status = launch_backward_weight<1>(stream, conv, taps, parts);
        break;
    case 3:
        status = launch_backward_weight<3>(stream, conv, taps, parts);
        break;
    default:
        status = launch_backward_weight<0>(stream, conv, taps, parts);
        break;
    }
    if (status != CAPU_OK) {
        return status;
    }
    GRID_LAUNCH(add_parts, grid_blocks(weights, GRID_THREADS), GRID_THREADS, stream,
                conv->workspace, parts, conv->weight_gradient, weights);
    if (conv->bias_gradient != NULL) {
        GRID_LAUNCH(sum_bias_gradient, conv->output_channels, GRID_THREADS, stream, *conv,
                    conv2d_output_height(conv) * conv2d_output_width(conv));
    }
    return grid_status();
}

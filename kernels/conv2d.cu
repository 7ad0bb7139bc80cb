/*
 * conv2d on cuda: each of the three operations is a matrix product (conv2d_products.cuh), one
 * factor of which is gathered from the images while it is multiplied. Nothing is unfolded in
 * memory, and nothing is added with atomics, so results are repeatable. Convolutions of 1 x 1 with
 * stride 1 gather nothing, and cuBLAS multiplies them, image by image in one call.
 */
#include "kernels/conv2d.h"

#include "kernels/blas.cuh"
#include "kernels/conv2d_products.cuh"
#include "kernels/grid.cuh"
#include "kernels/parts.cuh"

/* A block computes a tile of 64 x 64 sums, and a thread 4 x 4 of them, from slices of depth 16. */
#define TILE 64u
#define SLICE 16u
#define SQUARE 4u
#define THREADS ((TILE / SQUARE) * (TILE / SQUARE))
#define LOADS (TILE * SLICE / THREADS)

/* Keeps float4 aligned, and spreads the columns of a slice over the banks of shared memory. */
#define ROW (TILE + 4u)

/*
 * What a thread loads of a slice. Of the first factor: four rows at one depth. Of the gathered one:
 * four depths at one column or four columns at one depth, whichever lets neighbouring threads read
 * neighbouring items.
 */
template <typename Product> struct loader {
    uint32_t first_row;
    uint32_t first_column;
    uint32_t columns;
    uint32_t depth;
    typename Product::part part;
    struct conv2d_place fixed[LOADS]; /* the columns: one of them, or all */

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

/* One block per channel. */
template <typename Element>
static __global__ void sum_bias_gradient(const struct conv2d conv, uint32_t positions)
{
    const Element *gradient = (const Element *)conv.output_gradient;
    float sum = 0.0f;
    double total;

    for (uint32_t i = threadIdx.x; i < conv.batch * positions; i += blockDim.x) {
        uint32_t image = i / positions;

        sum += gradient[((size_t)image * conv.output_channels + blockIdx.x) * positions +
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

template <typename Element>
static capu_status forward(capu_stream stream, const struct conv2d *conv)
{
    uint32_t rows = conv->output_channels;
    uint32_t columns = conv->batch * conv2d_output_height(conv) * conv2d_output_width(conv);

    switch (conv->kernel) {
    case 1:
        return launch(stream, conv, conv2d_forward_product<1, Element>(), rows, columns, 1);
    case 3:
        return launch(stream, conv, conv2d_forward_product<3, Element>(), rows, columns, 1);
    default:
        return launch(stream, conv, conv2d_forward_product<0, Element>(), rows, columns, 1);
    }
}

static enum element element_of(const struct conv2d *conv)
{
    return conv->element == ELEMENT_BF16 ? ELEMENT_BF16 : ELEMENT_FP32;
}

static size_t pixels_of(const struct conv2d *conv)
{
    return (size_t)conv->height * conv->width;
}

/* Of one image. */
static size_t input_items(const struct conv2d *conv)
{
    return conv->input_channels * pixels_of(conv);
}

static size_t output_items(const struct conv2d *conv)
{
    return conv->output_channels * pixels_of(conv);
}

/* output = weight input, for each image. */
static capu_status multiply_forward(capu_stream stream, const struct conv2d *conv)
{
    struct gemm gemm = {};
    struct blas_batch batch = {conv->batch, 0, input_items(conv), output_items(conv)};

    gemm.element = element_of(conv);
    gemm.result = element_of(conv);
    gemm.rows = conv->output_channels;
    gemm.columns = pixels_of(conv);
    gemm.depth = conv->input_channels;
    gemm.a = conv->weight;
    gemm.a_stride = conv->input_channels;
    gemm.b = conv->input;
    gemm.b_stride = pixels_of(conv);
    gemm.c = conv->output;
    gemm.c_stride = pixels_of(conv);
    return blas_gemm(stream, &gemm, &batch);
}

/* input_gradient = weight^T output_gradient, for each image. */
static capu_status multiply_backward_input(capu_stream stream, const struct conv2d *conv)
{
    struct gemm gemm = {};
    struct blas_batch batch = {conv->batch, 0, output_items(conv), input_items(conv)};

    gemm.element = element_of(conv);
    gemm.result = element_of(conv);
    gemm.rows = conv->input_channels;
    gemm.columns = pixels_of(conv);
    gemm.depth = conv->output_channels;
    gemm.a = conv->weight;
    gemm.a_stride = conv->input_channels;
    gemm.a_transposed = true;
    gemm.b = conv->output_gradient;
    gemm.b_stride = pixels_of(conv);
    gemm.c = conv->input_gradient;
    gemm.c_stride = pixels_of(conv);
    return blas_gemm(stream, &gemm, &batch);
}

/* Part p of the weight gradient = the sum of output_gradient input^T over the images p, p + parts,
   ..., of which each call adds one to every part. */
static capu_status multiply_backward_weight(capu_stream stream, const struct conv2d *conv,
                                            uint32_t parts)
{
    size_t item = element_bytes(conv->element);
    struct gemm gemm = {};
    capu_status status = CAPU_OK;

    gemm.element = element_of(conv);
    gemm.result = ELEMENT_FP32;
    gemm.rows = conv->output_channels;
    gemm.columns = conv->input_channels;
    gemm.depth = pixels_of(conv);
    gemm.a_stride = pixels_of(conv);
    gemm.b_stride = pixels_of(conv);
    gemm.b_transposed = true;
    gemm.c = conv->workspace;
    gemm.c_stride = conv->input_channels;
    for (uint32_t first = 0; first < conv->batch && status == CAPU_OK; first += parts) {
        uint32_t left = conv->batch - first;
        struct blas_batch batch = {left < parts ? left : parts, output_items(conv),
                                   input_items(conv),
                                   (size_t)conv->output_channels * conv->input_channels};

        gemm.a = (const char *)conv->output_gradient + first * output_items(conv) * item;
        gemm.b = (const char *)conv->input + first * input_items(conv) * item;
        gemm.beta = first == 0 ? 0.0f : 1.0f;
        status = blas_gemm(stream, &gemm, &batch);
    }
    return status;
}

capu_status conv2d_forward_cuda(capu_stream stream, const void *arguments)
{
    const struct conv2d *conv = (const struct conv2d *)arguments;
    capu_status status = conv2d_check(conv);

    if (status != CAPU_OK) {
        return status;
    }
    if (conv2d_is_product(conv) && conv->bias == NULL) {
        return multiply_forward(stream, conv);
    }
    return conv->element == ELEMENT_BF16 ? forward<grid_bf16>(stream, conv)
                                         : forward<float>(stream, conv);
}

template <typename Element>
static capu_status backward_input(capu_stream stream, const struct conv2d *conv)
{
    uint32_t stride = conv2d_stride(conv);
    uint32_t rows = conv->input_channels;
    /* Of the first remainder of the stride; no other one has more. */
    uint32_t columns =
        conv->batch * ((conv->height - 1) / stride + 1) * ((conv->width - 1) / stride + 1);

    switch (stride == 1 ? conv->kernel : 0) {
    case 1:
        return launch(stream, conv, conv2d_backward_input_product<1, Element>(), rows, columns, 1);
    case 3:
        return launch(stream, conv, conv2d_backward_input_product<3, Element>(), rows, columns, 1);
    default:
        return launch(stream, conv, conv2d_backward_input_product<0, Element>(), rows, columns,
                      stride * stride);
    }
}

capu_status conv2d_backward_input_cuda(capu_stream stream, const void *arguments)
{
    const struct conv2d *conv = (const struct conv2d *)arguments;
    capu_status status = conv2d_check(conv);

    if (status != CAPU_OK) {
        return status;
    }
    if (conv2d_is_product(conv)) {
        return multiply_backward_input(stream, conv);
    }
    return conv->element == ELEMENT_BF16 ? backward_input<grid_bf16>(stream, conv)
                                         : backward_input<float>(stream, conv);
}

/* As many parts as fit the workspace, and at most one per image. */
static uint32_t parts_of(const struct conv2d *conv, size_t weights)
{
    size_t parts = conv2d_workspace_bytes(conv) / sizeof(float) / weights;

    parts = parts < conv->batch ? parts : conv->batch;
    return parts < PARTS_LIMIT ? (uint32_t)parts : PARTS_LIMIT;
}

template <unsigned KERNEL, typename Element>
static capu_status multiply_parts(capu_stream stream, const struct conv2d *conv, uint32_t taps,
                                  uint32_t parts)
{
    conv2d_backward_weight_product<KERNEL, Element> product;

    product.parts = parts;
    return launch(stream, conv, product, conv->output_channels, taps, parts);
}

template <typename Element>
static capu_status backward_weight(capu_stream stream, const struct conv2d *conv, uint32_t taps,
                                   uint32_t parts)
{
    switch (conv->kernel) {
    case 1:
        return multiply_parts<1, Element>(stream, conv, taps, parts);
    case 3:
        return multiply_parts<3, Element>(stream, conv, taps, parts);
    default:
        return multiply_parts<0, Element>(stream, conv, taps, parts);
    }
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
    if (conv2d_is_product(conv)) {
        status = multiply_backward_weight(stream, conv, parts);
    } else if (conv->element == ELEMENT_BF16) {
        status = backward_weight<grid_bf16>(stream, conv, taps, parts);
    } else {
        status = backward_weight<float>(stream, conv, taps, parts);
    }
    if (status != CAPU_OK) {
        return status;
    }
    parts_launch_add(stream, conv->workspace, parts, conv->weight_gradient, weights, false);
    if (conv->bias_gradient != NULL) {
        GRID_LAUNCH_FOR(conv->element, sum_bias_gradient, conv->output_channels, GRID_THREADS,
                        stream, *conv, conv2d_output_height(conv) * conv2d_output_width(conv));
    }
    return grid_status();
}

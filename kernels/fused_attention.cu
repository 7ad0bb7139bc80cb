/*
 * fused_attention on cuda, without tensor cores: a block has a tile of 64 queries or 64 keys of one
 * head. It goes through the tiles of the other kind, computes a tile of 64 x 64 scores, of which a
 * thread has 4 x 4, and multiplies the weights from shared memory with the rows that they belong
 * to.
 *
 * Backward has three launches: the product of each row's output and its gradient; the gradient of
 * the queries, by tiles of queries; those of the keys and the values, by tiles of keys. The last
 * two both compute scores and weights, so that no two blocks add to the same item.
 */
#include "kernels/fused_attention.h"

#include "kernels/grid.cuh"

#include <math.h>

enum { QUERY = 0, KEY = 1, VALUE = 2, PARTS = 3 };

#define TILE FUSED_ATTENTION_TILE
#define SLICE 16u
#define SQUARE 4u
#define ACROSS (TILE / SQUARE) /* threads along a row of a tile: half a warp */
#define THREADS (ACROSS * ACROSS)
#define LOADS (TILE * SLICE / THREADS)

/* Keeps float4 aligned, and spreads the columns of a slice over the banks of shared memory. */
#define ROW (TILE + 4u)

/* One head of one sequence. Its rows lie `stride` items apart. */
template <typename Element> struct rows {
    Element *first;
    size_t stride;
    uint32_t length;
    uint32_t channels;

    __device__ Element &at(uint32_t t, uint32_t channel) const
    {
        return first[t * stride + channel];
    }

    /* 0 past the last row or channel. */
    __device__ float load(uint32_t t, uint32_t channel) const
    {
        return t < length && channel < channels ? (float)at(t, channel) : 0.0f;
    }
};

/* The head of the block, in a buffer whose rows hold `groups` x heads x head_channels items. */
template <typename Element>
static __device__ struct rows<Element> rows_of(const struct fused_attention &attention,
                                               const void *buffer, uint32_t groups,
                                               uint32_t group) {
    size_t b = blockIdx.x / attention.heads;
    size_t head = blockIdx.x % attention.heads;
    size_t stride = (size_t)groups * attention.heads * attention.head_channels;

    return {(Element *)buffer + b * attention.length * stride +
                ((size_t)group * attention.heads + head) * attention.head_channels,
            stride, attention.length, attention.head_channels};
}

/* Shared memory of a block. */
struct tiles {
    union {
        struct {
            float a[SLICE][ROW];
            float b[SLICE][ROW];
        } factors;
        float slice[SLICE][FUSED_ATTENTION_CHANNELS + 4];
    };
    float square[TILE][ROW]; /* by columns */
};

/* The first of the thread's rows and columns in a tile. */
static __device__ uint32_t thread_row(void)
{
    return threadIdx.x / ACROSS * SQUARE;
}

static __device__ uint32_t thread_column(void)
{
    return threadIdx.x % ACROSS * SQUARE;
}

/* sums += the outer product of the thread's rows and columns at one depth. */
static __device__ inline void add_products(float sums[SQUARE][SQUARE], const float *down,
                                           const float *across)
{
    const float4 left = *(const float4 *)down;
    const float4 right = *(const float4 *)across;
    const float rows[SQUARE] = {left.x, left.y, left.z, left.w};
    const float columns[SQUARE] = {right.x, right.y, right.z, right.w};

#pragma unroll
    for (unsigned i = 0; i < SQUARE * SQUARE; i++) {
        sums[i / SQUARE][i % SQUARE] += rows[i / SQUARE] * columns[i % SQUARE];
    }
}

/* sums = the rows of a from `a_first` x the rows of b from `b_first`, transposed. */
template <typename Element>
static __device__ void multiply_rows(struct tiles *tiles, const struct rows<Element> &a,
                                     uint32_t a_first, const struct rows<Element> &b,
                                     uint32_t b_first, float sums[SQUARE][SQUARE])
{
    uint32_t depth = threadIdx.x % SLICE;

    for (unsigned i = 0; i < SQUARE * SQUARE; i++) {
        sums[i / SQUARE][i % SQUARE] = 0.0f;
    }
    for (uint32_t k = 0; k < a.channels; k += SLICE) {
        __syncthreads(); /* what was there has been read */
        for (unsigned i = 0; i < LOADS; i++) {
            uint32_t row = threadIdx.x / SLICE + i * (THREADS / SLICE);

            tiles->factors.a[depth][row] = a.load(a_first + row, k + depth);
            tiles->factors.b[depth][row] = b.load(b_first + row, k + depth);
        }
        __syncthreads();
#pragma unroll
        for (unsigned d = 0; d < SLICE; d++) {
            add_products(sums, &tiles->factors.a[d][thread_row()],
                         &tiles->factors.b[d][thread_column()]);
        }
    }
}

/* Stores the thread's part of a tile for add_rows. */
static __device__ void store_square(struct tiles *tiles, const float values[SQUARE][SQUARE])
{
    __syncthreads(); /* what was there has been read */
    for (unsigned j = 0; j < SQUARE; j++) {
        for (unsigned i = 0; i < SQUARE; i++) {
            tiles->square[thread_column() + j][thread_row() + i] = values[i][j];
        }
    }
}

/* sums += the square that was stored x the rows of b from `b_first`. Of a row of b, which has
   CHUNKS * TILE channels at most, the thread has four channels of each chunk. */
template <unsigned CHUNKS, typename Element>
static __device__ void add_rows(struct tiles *tiles, const struct rows<Element> &b,
                                uint32_t b_first, float sums[CHUNKS][SQUARE][SQUARE])
{
    for (uint32_t k = 0; k < TILE; k += SLICE) {
        __syncthreads(); /* what was there has been read, and the square is complete */
        for (unsigned i = threadIdx.x; i < SLICE * CHUNKS * TILE; i += THREADS) {
            uint32_t depth = i / (CHUNKS * TILE);
            uint32_t channel = i % (CHUNKS * TILE);

            tiles->slice[depth][channel] = b.load(b_first + k + depth, channel);
        }
        __syncthreads();
        for (unsigned d = 0; d < SLICE; d++) {
#pragma unroll
            for (unsigned chunk = 0; chunk < CHUNKS; chunk++) {
                add_products(sums[chunk], &tiles->square[k + d][thread_row()],
                             &tiles->slice[d][chunk * TILE + thread_column()]);
            }
        }
    }
}

template <unsigned CHUNKS, typename Element>
static __device__ void store_rows(const struct rows<Element> &to, uint32_t first,
                                  const float sums[CHUNKS][SQUARE][SQUARE])
{
    for (unsigned i = 0; i < CHUNKS * SQUARE * SQUARE; i++) {
        uint32_t row = first + thread_row() + i / SQUARE % SQUARE;
        uint32_t channel = i / (SQUARE * SQUARE) * TILE + thread_column() + i % SQUARE;

        if (row < to.length && channel < to.channels) {
            to.at(row, channel) = sums[i / (SQUARE * SQUARE)][i / SQUARE % SQUARE][i % SQUARE];
        }
    }
}

/* Over the threads of a row of the tile, which are half a warp. All lanes must take part. */
static __device__ float row_sum(float value)
{
    for (unsigned mask = ACROSS / 2; mask > 0; mask /= 2) {
        value += __shfl_xor_sync(GRID_ALL, value, mask);
    }
    return value;
}

static __device__ float row_largest(float value)
{
    for (unsigned mask = ACROSS / 2; mask > 0; mask /= 2) {
        value = fmaxf(value, __shfl_xor_sync(GRID_ALL, value, mask));
    }
    return value;
}

/* What a thread knows of its rows while it goes through the keys. */
struct progress {
    float most[SQUARE]; /* the largest score so far */
    float sum[SQUARE];  /* of the exponentials relative to it */
};

/* Turns scores into weights relative to the largest one so far. Returns in `corrections` what the
   output so far is to be multiplied by. Every row sees a key of every tile that it comes to. */
static __device__ void weigh(float scores[SQUARE][SQUARE], uint32_t query, uint32_t key,
                             float scale, struct progress *progress, float corrections[SQUARE])
{
    for (unsigned i = 0; i < SQUARE; i++) {
        float largest = progress->most[i];
        float sum = 0.0f;

        for (unsigned j = 0; j < SQUARE; j++) {
            if (key + j <= query + i) {
                largest = fmaxf(largest, scores[i][j]);
            }
        }
        largest = row_largest(largest);
        for (unsigned j = 0; j < SQUARE; j++) {
            scores[i][j] = key + j <= query + i ? expf((scores[i][j] - largest) * scale) : 0.0f;
            sum += scores[i][j];
        }
        corrections[i] = expf((progress->most[i] - largest) * scale);
        progress->sum[i] = progress->sum[i] * corrections[i] + row_sum(sum);
        progress->most[i] = largest;
    }
}

/* Tiles with more keys take longest, so they start first. */
static __device__ uint32_t last_tile_first(void)
{
    return (gridDim.y - 1 - blockIdx.y) * TILE;
}

template <typename Element, unsigned CHUNKS>
static __global__ void __launch_bounds__(THREADS)
    forward(const struct fused_attention attention, float scale)
{
    __shared__ __align__(16) struct tiles tiles;
    struct rows<Element> queries = rows_of<Element>(attention, attention.qkv, PARTS, QUERY);
    struct rows<Element> keys = rows_of<Element>(attention, attention.qkv, PARTS, KEY);
    struct rows<Element> values = rows_of<Element>(attention, attention.qkv, PARTS, VALUE);
    struct rows<Element> output = rows_of<Element>(attention, attention.output, 1, 0);
    uint32_t first = last_tile_first();
    uint32_t query = first + thread_row();
    float sums[CHUNKS][SQUARE][SQUARE] = {};
    float scores[SQUARE][SQUARE];
    float corrections[SQUARE];
    struct progress progress;

    for (unsigned i = 0; i < SQUARE; i++) {
        progress.most[i] = -INFINITY;
        progress.sum[i] = 0.0f;
    }
    for (uint32_t key = 0; key <= first; key += TILE) {
        multiply_rows(&tiles, queries, first, keys, key, scores);
        weigh(scores, query, key + thread_column(), scale, &progress, corrections);
        for (unsigned i = 0; i < CHUNKS * SQUARE * SQUARE; i++) {
            sums[i / (SQUARE * SQUARE)][i / SQUARE % SQUARE][i % SQUARE] *=
                corrections[i / SQUARE % SQUARE];
        }
        store_square(&tiles, scores);
        add_rows<CHUNKS>(&tiles, values, key, sums);
    }
    for (unsigned i = 0; i < CHUNKS * SQUARE * SQUARE; i++) {
        sums[i / (SQUARE * SQUARE)][i / SQUARE % SQUARE][i % SQUARE] *=
            1.0f / progress.sum[i / SQUARE % SQUARE];
    }
    store_rows<CHUNKS>(output, first, sums);
    for (unsigned i = 0; i < SQUARE && thread_column() == 0; i++) {
        if (query + i < attention.length) {
            attention.log_sums[(size_t)blockIdx.x * attention.length + query + i] =
                progress.most[i] * scale + logf(progress.sum[i]);
        }
    }
}

/* products = output x output_gradient, for every row of every head. */
template <typename Element>
static __global__ void multiply_outputs(const struct fused_attention attention)
{
    const Element *output = (const Element *)attention.output;
    const Element *gradient = (const Element *)attention.output_gradient;
    size_t channels = attention.head_channels;
    size_t count = (size_t)attention.batch * attention.heads * attention.length;

    for (size_t row = grid_first_row(); row < count; row += grid_row_stride()) {
        size_t t = row % attention.length;
        size_t head = row / attention.length % attention.heads;
        size_t b = row / attention.length / attention.heads;
        size_t at = ((b * attention.length + t) * attention.heads + head) * channels;
        float sum = 0.0f;

        for (size_t i = grid_lane(); i < channels; i += GRID_WARP) {
            sum += output[at + i] * gradient[at + i];
        }
        sum = grid_warp_sum(sum);
        if (grid_lane() == 0) {
            attention.products[row] = sum;
        }
    }
}

/* The weight of a key for a query, and the gradient of its score from that of the weight. */
static __device__ void weigh_again(const struct fused_attention &attention, uint32_t query,
                                   uint32_t key, float scale, float *score, float *gradient)
{
    size_t row = (size_t)blockIdx.x * attention.length + query;

    if (query >= attention.length || key > query) {
        *score = 0.0f;
        *gradient = 0.0f;
        return;
    }
    *score = expf(*score * scale - attention.log_sums[row]);
    *gradient = *score * (*gradient - attention.products[row]) * scale;
}

template <typename Element, unsigned CHUNKS>
static __global__ void __launch_bounds__(THREADS)
    backward_queries(const struct fused_attention attention, float scale)
{
    __shared__ __align__(16) struct tiles tiles;
    struct rows<Element> queries = rows_of<Element>(attention, attention.qkv, PARTS, QUERY);
    struct rows<Element> keys = rows_of<Element>(attention, attention.qkv, PARTS, KEY);
    struct rows<Element> values = rows_of<Element>(attention, attention.qkv, PARTS, VALUE);
    struct rows<Element> outputs = rows_of<Element>(attention, attention.output_gradient, 1, 0);
    uint32_t first = last_tile_first();
    float sums[CHUNKS][SQUARE][SQUARE] = {};
    float scores[SQUARE][SQUARE];
    float gradients[SQUARE][SQUARE];

    for (uint32_t key = 0; key <= first; key += TILE) {
        multiply_rows(&tiles, queries, first, keys, key, scores);
        multiply_rows(&tiles, outputs, first, values, key, gradients);
        for (unsigned i = 0; i < SQUARE * SQUARE; i++) {
            weigh_again(attention, first + thread_row() + i / SQUARE,
                        key + thread_column() + i % SQUARE, scale, &scores[i / SQUARE][i % SQUARE],
                        &gradients[i / SQUARE][i % SQUARE]);
        }
        store_square(&tiles, gradients);
        add_rows<CHUNKS>(&tiles, keys, key, sums);
    }
    store_rows<CHUNKS>(rows_of<Element>(attention, attention.qkv_gradient, PARTS, QUERY), first,
                       sums);
}

/* Here the rows of a tile are keys, and its columns are queries. */
template <typename Element, unsigned CHUNKS>
static __global__ void __launch_bounds__(THREADS)
    backward_keys(const struct fused_attention attention, float scale)
{
    __shared__ __align__(16) struct tiles tiles;
    struct rows<Element> queries = rows_of<Element>(attention, attention.qkv, PARTS, QUERY);
    struct rows<Element> keys = rows_of<Element>(attention, attention.qkv, PARTS, KEY);
    struct rows<Element> values = rows_of<Element>(attention, attention.qkv, PARTS, VALUE);
    struct rows<Element> outputs = rows_of<Element>(attention, attention.output_gradient, 1, 0);
    uint32_t first = blockIdx.y * TILE;
    float key_sums[CHUNKS][SQUARE][SQUARE] = {};
    float value_sums[CHUNKS][SQUARE][SQUARE] = {};
    float scores[SQUARE][SQUARE];
    float gradients[SQUARE][SQUARE];

    for (uint32_t query = first; query < attention.length; query += TILE) {
        multiply_rows(&tiles, keys, first, queries, query, scores);
        multiply_rows(&tiles, values, first, outputs, query, gradients);
        for (unsigned i = 0; i < SQUARE * SQUARE; i++) {
            weigh_again(attention, query + thread_column() + i % SQUARE,
                        first + thread_row() + i / SQUARE, scale, &scores[i / SQUARE][i % SQUARE],
                        &gradients[i / SQUARE][i % SQUARE]);
        }
        store_square(&tiles, scores);
        add_rows<CHUNKS>(&tiles, outputs, query, value_sums);
        store_square(&tiles, gradients);
        add_rows<CHUNKS>(&tiles, queries, query, key_sums);
    }
    store_rows<CHUNKS>(rows_of<Element>(attention, attention.qkv_gradient, PARTS, KEY), first,
                       key_sums);
    store_rows<CHUNKS>(rows_of<Element>(attention, attention.qkv_gradient, PARTS, VALUE), first,
                       value_sums);
}

/* One block per tile of each head. */
static dim3 blocks_of(const struct fused_attention *attention)
{
    return dim3(attention->batch * attention->heads, (attention->length + TILE - 1) / TILE);
}

static float scale_of(const struct fused_attention *attention)
{
    return 1.0f / sqrtf((float)attention->head_channels);
}

template <typename Element, unsigned CHUNKS>
static void launch_backward(capu_stream stream, const struct fused_attention *attention)
{
    GRID_LAUNCH((backward_queries<Element, CHUNKS>), blocks_of(attention), THREADS, stream,
                *attention, scale_of(attention));
    GRID_LAUNCH((backward_keys<Element, CHUNKS>), blocks_of(attention), THREADS, stream, *attention,
                scale_of(attention));
}

template <typename Element>
static void launch_forward(capu_stream stream, const struct fused_attention *attention)
{
    if (attention->head_channels <= TILE) {
        GRID_LAUNCH((forward<Element, 1>), blocks_of(attention), THREADS, stream, *attention,
                    scale_of(attention));
    } else {
        GRID_LAUNCH((forward<Element, 2>), blocks_of(attention), THREADS, stream, *attention,
                    scale_of(attention));
    }
}

template <typename Element>
static void launch_backward_for(capu_stream stream, const struct fused_attention *attention)
{
    if (attention->head_channels <= TILE) {
        launch_backward<Element, 1>(stream, attention);
    } else {
        launch_backward<Element, 2>(stream, attention);
    }
}

capu_status fused_attention_forward_cuda(capu_stream stream, const void *arguments)
{
    const struct fused_attention *attention = (const struct fused_attention *)arguments;
    capu_status status = fused_attention_check(attention);

    if (status != CAPU_OK) {
        return status;
    }
    if (attention->element == ELEMENT_BF16) {
        launch_forward<grid_bf16>(stream, attention);
    } else {
        launch_forward<float>(stream, attention);
    }
    return grid_status();
}

capu_status fused_attention_backward_cuda(capu_stream stream, const void *arguments)
{
    const struct fused_attention *attention = (const struct fused_attention *)arguments;
    size_t rows = (size_t)attention->batch * attention->heads * attention->length;
    capu_status status = fused_attention_check(attention);

    if (status != CAPU_OK) {
        return status;
    }
    GRID_LAUNCH_FOR(attention->element, multiply_outputs, grid_blocks(rows, GRID_WARPS),
                    GRID_THREADS, stream, *attention);
    if (attention->element == ELEMENT_BF16) {
        launch_backward_for<grid_bf16>(stream, attention);
    } else {
        launch_backward_for<float>(stream, attention);
    }
    return grid_status();
}

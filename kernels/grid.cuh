/*
 * What the CUDA kernels share: launches, loops over elements, sums in a fixed order.
 *
 * Results depend on the shape of the work alone: there are no atomics, and every sum has one order,
 * which follows from the launch. So a replay, and a run under any budget, gives the same bits.
 */
#ifndef CAPU_KERNELS_GRID_CUH
#define CAPU_KERNELS_GRID_CUH

#include "capuchin/op.h"

#include "kernels/element.h"

/* In operations on rows a warp works on a row, and a block on eight rows. */
#define GRID_WARP 32u
#define GRID_THREADS 256u
#define GRID_WARPS (GRID_THREADS / GRID_WARP)
#define GRID_ALL 0xffffffffu

/* Enough blocks to fill any device several times; loops handle the rest. */
#define GRID_BLOCKS_LIMIT 65535u

/* Tests that do without nvcc launch in their own way. */
#ifndef GRID_LAUNCH
#define GRID_LAUNCH(kernel, blocks, threads, stream, ...) \
    kernel<<<(blocks), (threads), 0, (cudaStream_t)(stream)>>>(__VA_ARGS__)
#endif

/* bf16 in memory. Loads give fp32 and stores take it, so kernels are templates over the stored
 * type. */
struct grid_bf16 {
    uint16_t bits;

    __device__ operator float() const
    {
        return element_widen(bits);
    }

    __device__ grid_bf16 &operator=(float value)
    {
        bits = element_round(value);
        return *this;
    }
};

/* The kernel template for an element type (enum element). */
#define GRID_LAUNCH_FOR(element, kernel, blocks, threads, stream, ...)                  \
    do {                                                                                \
        if ((element) == ELEMENT_BF16) {                                                \
            GRID_LAUNCH(kernel<grid_bf16>, (blocks), (threads), (stream), __VA_ARGS__); \
        } else {                                                                        \
            GRID_LAUNCH(kernel<float>, (blocks), (threads), (stream), __VA_ARGS__);     \
        }                                                                               \
    } while (0)

/* The errors of launches since the last call. Does not wait. */
static inline capu_status grid_status(void)
{
    return cudaGetLastError() == cudaSuccess ? CAPU_OK : CAPU_DEVICE_FAILED;
}

/* Blocks for `items` with that many items per block. Pre: items > 0: a launch needs a block. */
static inline unsigned grid_blocks(size_t items, size_t items_per_block)
{
    size_t blocks = (items + items_per_block - 1) / items_per_block;

    return blocks < GRID_BLOCKS_LIMIT ? (unsigned)blocks : GRID_BLOCKS_LIMIT;
}

/* Blocks for kernels without a grid loop, which need all of them. Pre: fewer than 2^31. */
static inline unsigned grid_blocks_all(size_t items, size_t items_per_block)
{
    return (unsigned)((items + items_per_block - 1) / items_per_block);
}

/* for (size_t i = grid_first(); i < count; i += grid_stride()): one element per thread at a time.
 */
static __device__ inline size_t grid_first(void)
{
    return (size_t)blockIdx.x * blockDim.x + threadIdx.x;
}

static __device__ inline size_t grid_stride(void)
{
    return (size_t)gridDim.x * blockDim.x;
}

/*
 * Elementwise work, four elements per thread at a time: all four are loaded before the first is
 * stored, so that a thread waits for memory once and not four times. load(i) returns what store(i,
 * value) takes. For launches of grid_blocks(count, GRID_EACH) blocks.
 */
#define GRID_BATCH 4u
#define GRID_EACH ((size_t)GRID_BATCH * GRID_THREADS)

template <typename Load, typename Store>
static __device__ inline void grid_each(size_t count, Load load, Store store)
{
    size_t stride = grid_stride();

    for (size_t i = grid_first(); i < count; i += GRID_BATCH * stride) {
        decltype(load(i)) values[GRID_BATCH] = {};

#pragma unroll
        for (unsigned k = 0; k < GRID_BATCH; k++) {
            if (i + k * stride < count) {
                values[k] = load(i + k * stride);
            }
        }
#pragma unroll
        for (unsigned k = 0; k < GRID_BATCH; k++) {
            if (i + k * stride < count) {
                store(i + k * stride, values[k]);
            }
        }
    }
}

/* for (size_t row = grid_first_row(); ...; row += grid_row_stride()): one row per warp at a time.
 */
static __device__ inline size_t grid_first_row(void)
{
    return grid_first() / GRID_WARP;
}

static __device__ inline size_t grid_row_stride(void)
{
    return grid_stride() / GRID_WARP;
}

static __device__ inline unsigned grid_lane(void)
{
    return threadIdx.x % GRID_WARP;
}

/* Over a warp. All lanes must take part, and all get the result. */
template <typename Number> static __device__ inline Number grid_warp_sum(Number value)
{
    for (unsigned mask = GRID_WARP / 2; mask > 0; mask /= 2) {
        value += __shfl_xor_sync(GRID_ALL, value, mask);
    }
    return value;
}

/* NaNs are ignored, as on the host: what follows still finds them in the values. */
static __device__ inline float grid_warp_largest(float value)
{
    for (unsigned mask = GRID_WARP / 2; mask > 0; mask /= 2) {
        value = fmaxf(value, __shfl_xor_sync(GRID_ALL, value, mask));
    }
    return value;
}

/* Over a block of whole warps. All threads must take part, and all get the result. */
static __device__ inline double grid_block_sum(double value)
{
    __shared__ double sums[GRID_WARP];
    double total = 0.0;

    value = grid_warp_sum(value);
    __syncthreads(); /* the sums of an earlier call have been read */
    if (grid_lane() == 0) {
        sums[threadIdx.x / GRID_WARP] = value;
    }
    __syncthreads();
    for (unsigned i = 0; i < blockDim.x / GRID_WARP; i++) {
        total += sums[i];
    }
    return total;
}

#endif

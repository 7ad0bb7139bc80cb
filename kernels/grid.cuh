/*
 * What the CUDA kernels share: launches, loops over elements, sums in a fixed order.
 *
 * A result depends on the shape of the work alone: no atomics, and every sum has one order, which
 * follows from the launch. So a replay, and a run under any budget, gives the same bits.
 */
#ifndef CAPU_KERNELS_GRID_CUH
#define CAPU_KERNELS_GRID_CUH

#include "capuchin/op.h"

#include "kernels/element.h"

/* A warp works on a row, eight rows a block, in what goes row by row. */
#define GRID_WARP 32u
#define GRID_THREADS 256u
#define GRID_WARPS (GRID_THREADS / GRID_WARP)
#define GRID_ALL 0xffffffffu

/* Enough to fill any device several times over; loops take what is left. */
#define GRID_BLOCKS_LIMIT 65535u

/* Tests run the kernels on the host, where a launch is a call. */
#ifndef GRID_LAUNCH
#define GRID_LAUNCH(kernel, blocks, threads, stream, ...) \
    kernel<<<(blocks), (threads), 0, (cudaStream_t)(stream)>>>(__VA_ARGS__)
#endif

/* bf16 in memory. It is read and written as what is computed with, fp32: kernels are templates. */
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

/* What became of the launches since the last call. Nothing waits. */
static inline capu_status grid_status(void)
{
    return cudaGetLastError() == cudaSuccess ? CAPU_OK : CAPU_DEVICE_FAILED;
}

/* Blocks for `items`, so many of them a block. Pre: items > 0, which a launch wants. */
static inline unsigned grid_blocks(size_t items, size_t items_a_block)
{
    size_t blocks = (items + items_a_block - 1) / items_a_block;

    return blocks < GRID_BLOCKS_LIMIT ? (unsigned)blocks : GRID_BLOCKS_LIMIT;
}

/* Blocks for kernels whose blocks do not come round again: all that there are. Pre: below 2^31. */
static inline unsigned grid_blocks_all(size_t items, size_t items_a_block)
{
    return (unsigned)((items + items_a_block - 1) / items_a_block);
}

/* for (size_t i = grid_first(); i < count; i += grid_stride()): a thread an element at a time. */
static __device__ inline size_t grid_first(void)
{
    return (size_t)blockIdx.x * blockDim.x + threadIdx.x;
}

static __device__ inline size_t grid_stride(void)
{
    return (size_t)gridDim.x * blockDim.x;
}

/*
 * Elements one by one, four at a time a thread: the four are loaded before the first is stored, or
 * a device's memory would wait for its threads. load(i) gives what store(i, value) takes. For
 * launches of grid_blocks(count, GRID_EACH) blocks.
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

/* for (size_t row = grid_first_row(); ...; row += grid_row_stride()): a warp a row at a time. */
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

/* Over a warp; all lanes take part, and all get the result. */
template <typename Number> static __device__ inline Number grid_warp_sum(Number value)
{
    for (unsigned mask = GRID_WARP / 2; mask > 0; mask /= 2) {
        value += __shfl_xor_sync(GRID_ALL, value, mask);
    }
    return value;
}

/* A NaN counts as nothing, as it does on the host: what follows sees it in the values. */
static __device__ inline float grid_warp_largest(float value)
{
    for (unsigned mask = GRID_WARP / 2; mask > 0; mask /= 2) {
        value = fmaxf(value, __shfl_xor_sync(GRID_ALL, value, mask));
    }
    return value;
}

/* Over a block of whole warps; all threads take part, and all get the result. */
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

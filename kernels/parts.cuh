/*
 * Sums over many rows or pixels whose results are few. One block per result, or per few results,
 * would leave most of a device idle, so the summands are split into parts: each block sums one part
 * and stores the sum, and a second launch adds the parts in order. How many parts there are follows
 * from the shape alone, not from the device: the same shape always gives the same bits.
 *
 * The sums of the parts lie in the stream's scratch memory (blas.cuh), which the launcher of the
 * operation declares (LAUNCH_NEEDS_SCRATCH), or in a workspace of the operation.
 */
#ifndef CAPU_KERNELS_PARTS_CUH
#define CAPU_KERNELS_PARTS_CUH

#include "kernels/blas.cuh"
#include "kernels/grid.cuh"

/* Several blocks for each SM of the largest devices. */
#define PARTS_BLOCKS 1024u

/* With more parts, adding them would outweigh the gain. */
#define PARTS_LIMIT 64u

/* For sums over rows: a block of LINES x COLUMNS threads sums COLUMNS columns, 64 bytes of each row
   at once. */
#define PARTS_COLUMNS 16u
#define PARTS_LINES 32u
#define PARTS_THREADS (PARTS_LINES * PARTS_COLUMNS)

/* The number of parts of `items` summands, at least `items_each` per part, where one part has
   `blocks` blocks. */
static inline uint32_t parts_count(size_t items, size_t items_each, size_t blocks)
{
    size_t parts = (items + items_each - 1) / items_each;
    size_t useful = (PARTS_BLOCKS + blocks - 1) / blocks;

    parts = parts < useful ? parts : useful;
    return parts < PARTS_LIMIT ? (uint32_t)parts : PARTS_LIMIT;
}

/* The stream's scratch memory. Errors: TOO_LARGE: it has fewer bytes; those of blas_scratch. */
static inline capu_status parts_scratch(capu_stream stream, size_t bytes, void **scratch)
{
    return bytes <= BLAS_SCRATCH_BYTES ? blas_scratch(stream, scratch) : CAPU_TOO_LARGE;
}

/* The blocks that sum `rows` rows of `columns` columns: across the columns, and down the parts. */
static inline dim3 parts_of_rows(size_t rows, size_t columns)
{
    unsigned across = grid_blocks_all(columns, PARTS_COLUMNS);

    return dim3(across, parts_count(rows, (size_t)4 * PARTS_LINES, across));
}

/*
 * COUNT sums over the rows of every column: add(row, column, sums) adds an item to each. Line k of
 * part p sums the rows p * LINES + k, then every (parts * LINES)-th one, and the lines are added in
 * order. Stores COUNT arrays of parts x columns. For launches of parts_of_rows blocks with
 * PARTS_THREADS threads.
 */
template <unsigned COUNT, typename Add>
static __device__ inline void parts_sum_rows(size_t rows, size_t columns, float *parts, Add add)
{
    __shared__ float shared[COUNT][PARTS_LINES][PARTS_COLUMNS];
    unsigned across = threadIdx.x % PARTS_COLUMNS;
    unsigned line = threadIdx.x / PARTS_COLUMNS;
    size_t column = (size_t)blockIdx.x * PARTS_COLUMNS + across;
    float sums[COUNT] = {};

    for (size_t row = (size_t)blockIdx.y * PARTS_LINES + line; row < rows && column < columns;
         row += (size_t)gridDim.y * PARTS_LINES) {
        add(row, column, sums);
    }
    for (unsigned i = 0; i < COUNT; i++) {
        shared[i][line][across] = sums[i];
    }
    __syncthreads();
    if (line != 0 || column >= columns) {
        return;
    }
    for (unsigned i = 0; i < COUNT; i++) {
        for (unsigned other = 1; other < PARTS_LINES; other++) {
            sums[i] += shared[i][other][across];
        }
        parts[((size_t)i * gridDim.y + blockIdx.y) * columns + column] = sums[i];
    }
}

/* Adds the parts of `count` sums in order, and the result to what is there or replaces it. */
static __global__ void parts_add(const float *parts, uint32_t part_count, float *to, size_t count,
                                 bool is_added)
{
    for (size_t i = grid_first(); i < count; i += grid_stride()) {
        float sum = parts[i];

        for (uint32_t part = 1; part < part_count; part++) {
            sum += parts[part * count + i];
        }
        to[i] = is_added ? to[i] + sum : sum;
    }
}

static inline void parts_launch_add(capu_stream stream, const float *parts, uint32_t part_count,
                                    float *to, size_t count, bool is_added)
{
    GRID_LAUNCH(parts_add, grid_blocks(count, GRID_THREADS), GRID_THREADS, stream, parts,
                part_count, to, count, is_added);
}

#endif

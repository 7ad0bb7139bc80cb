/* Calls cblas_sgemm on one thread, and splits products into blocks. */
#include "kernels/gemm.h"

#include "kernels/parallel.h"

#include <cblas.h>

#include <pthread.h>

/*
 * The size of a block is a trade-off. OpenBLAS packs both factors once per block, which costs a few
 * percent at this size; and a layer of the examples still gives some tens of blocks for the
 * threads.
 */
#define BLOCK_ROWS ((size_t)128)
#define BLOCK_COLUMNS ((size_t)256)

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void use_one_thread(void)
{
    openblas_set_num_threads(1);
}

void gemm_block(const struct gemm *gemm)
{
    pthread_once(&once, use_one_thread);
    cblas_sgemm(CblasRowMajor, gemm->a_transposed ? CblasTrans : CblasNoTrans,
                gemm->b_transposed ? CblasTrans : CblasNoTrans, (blasint)gemm->rows,
                (blasint)gemm->columns, (blasint)gemm->depth, 1.0f, gemm->a,
                (blasint)gemm->a_stride, gemm->b, (blasint)gemm->b_stride, gemm->beta, gemm->c,
                (blasint)gemm->c_stride);
}

static void run_block(const void *arguments, size_t tile)
{
    struct gemm block = *(const struct gemm *)arguments;
    size_t row_tiles = parallel_tiles(block.rows, BLOCK_ROWS);
    struct parallel_range rows = parallel_items(tile % row_tiles, BLOCK_ROWS, block.rows);
    struct parallel_range columns = parallel_items(tile / row_tiles, BLOCK_COLUMNS, block.columns);

    block.a = (const float *)block.a + rows.first * (block.a_transposed ? 1 : block.a_stride);
    block.b = (const float *)block.b + columns.first * (block.b_transposed ? block.b_stride : 1);
    block.c = (float *)block.c + rows.first * block.c_stride + columns.first;
    block.rows = rows.end - rows.first;
    block.columns = columns.end - columns.first;
    gemm_block(&block);
}

void gemm_run(const struct gemm *gemm)
{
    parallel_run(parallel_tiles(gemm->rows, BLOCK_ROWS) *
                     parallel_tiles(gemm->columns, BLOCK_COLUMNS),
                 run_block, gemm);
}

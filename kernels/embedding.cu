/*
 * embedding on cuda. Forward a warp has a row. Backward a block has one entry of the vocabulary and
 * some channels: it looks through all tokens, a block's width at a time, and adds the rows that are
 * its own in their order. So two rows with the same token are added in order, without atomics, as
 * on the host.
 *
 * The host finds a token that is not in the vocabulary before it computes. Here its row becomes
 * NaN, and backward skips it.
 */
#include "kernels/embedding.h"

#include "kernels/grid.cuh"

static __global__ void forward(const struct embedding embedding)
{
    size_t channels = embedding.channels;
    size_t rows = (size_t)embedding.batch * embedding.length;

    for (size_t row = grid_first_row(); row < rows; row += grid_row_stride()) {
        uint32_t token = (uint32_t)embedding.tokens[row];
        const float *position = embedding.position_weight + row % embedding.length * channels;
        float *output = embedding.output + row * channels;

        for (size_t i = grid_lane(); i < channels; i += GRID_WARP) {
            float weight = token < embedding.vocabulary
                               ? embedding.token_weight[token * channels + i]
                               : nanf("");

            output[i] = weight + position[i];
        }
    }
}

/* A block a token of the vocabulary (x) and GRID_THREADS channels (y). */
static __global__ void backward_tokens(const struct embedding embedding)
{
    __shared__ uint32_t found[GRID_WARPS];
    size_t channels = embedding.channels;
    size_t rows = (size_t)embedding.batch * embedding.length;
    size_t channel = (size_t)blockIdx.y * GRID_THREADS + threadIdx.x;
    float *to = embedding.token_gradient + blockIdx.x * channels + channel;
    float sum = channel < channels ? *to : 0.0f;

    for (size_t first = 0; first < rows; first += GRID_THREADS) {
        size_t row = first + threadIdx.x;
        bool is_own = row < rows && (uint32_t)embedding.tokens[row] == blockIdx.x;
        uint32_t own = __ballot_sync(GRID_ALL, is_own);

        if (grid_lane() == 0) {
            found[threadIdx.x / GRID_WARP] = own;
        }
        __syncthreads();
        for (unsigned warp = 0; warp < GRID_WARPS; warp++) {
            for (uint32_t left = found[warp]; left != 0; left &= left - 1) {
                size_t next = first + warp * GRID_WARP + __ffs((int)left) - 1;

                if (channel < channels) {
                    sum += embedding.output_gradient[next * channels + channel];
                }
            }
        }
        __syncthreads(); /* all have read what the next round overwrites */
    }
    if (channel < channels) {
        *to = sum;
    }
}

static __global__ void backward_positions(const struct embedding embedding)
{
    size_t items = (size_t)embedding.length * embedding.channels;

    for (size_t i = grid_first(); i < items; i += grid_stride()) {
        float sum = embedding.position_gradient[i];

        for (size_t b = 0; b < embedding.batch; b++) {
            sum += embedding.output_gradient[b * items + i];
        }
        embedding.position_gradient[i] = sum;
    }
}

capu_status embedding_forward_cuda(capu_stream stream, const void *arguments)
{
    const struct embedding *embedding = (const struct embedding *)arguments;
    size_t rows = (size_t)embedding->batch * embedding->length;

    GRID_LAUNCH(forward, grid_blocks(rows, GRID_WARPS), GRID_THREADS, stream, *embedding);
    return grid_status();
}

capu_status embedding_backward_cuda(capu_stream stream, const void *arguments)
{
    const struct embedding *embedding = (const struct embedding *)arguments;
    size_t items = (size_t)embedding->length * embedding->channels;
    dim3 blocks(embedding->vocabulary, grid_blocks(embedding->channels, GRID_THREADS));

    GRID_LAUNCH(backward_tokens, blocks, GRID_THREADS, stream, *embedding);
    GRID_LAUNCH(backward_positions, grid_blocks(items, GRID_THREADS), GRID_THREADS, stream,
                *embedding);
    return grid_status();
}

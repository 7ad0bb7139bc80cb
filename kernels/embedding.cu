/*
 * embedding on cuda. Forward, a warp has a row. Backward, a block has a row and a number of
 * channels. It searches all tokens, a block's width at a time. If its token occurs in an earlier
 * row, that row's block is responsible for it; otherwise it adds all rows that have the token, in
 * order. So rows with the same token are added in order and without atomics, as on the host, and
 * tokens that no row has cost nothing.
 *
 * The host rejects a token that is not in the vocabulary before it computes. Here its row becomes
 * NaN, and the backward pass skips it.
 */
#include "kernels/embedding.h"

#include "kernels/grid.cuh"

/* The most channels backward: a block has GRID_THREADS of them, a side of the grid
 * GRID_BLOCKS_LIMIT blocks. */
#define CHANNELS_LIMIT ((size_t)GRID_BLOCKS_LIMIT * GRID_THREADS)

template <typename Element> static __global__ void forward(const struct embedding embedding)
{
    const Element *tokens = (const Element *)embedding.token_weight;
    const Element *positions = (const Element *)embedding.position_weight;
    size_t channels = embedding.channels;
    size_t rows = (size_t)embedding.batch * embedding.length;

    for (size_t row = grid_first_row(); row < rows; row += grid_row_stride()) {
        uint32_t token = (uint32_t)embedding.tokens[row];
        const Element *position = positions + row % embedding.length * channels;
        Element *output = (Element *)embedding.output + row * channels;

        for (size_t i = grid_lane(); i < channels; i += GRID_WARP) {
            float weight =
                token < embedding.vocabulary ? (float)tokens[token * channels + i] : nanf("");

            output[i] = weight + position[i];
        }
    }
}

/* One block per row (x) and GRID_THREADS channels (y). A block returns if its row is not the first
 * one with its token. */
template <typename Element> static __global__ void backward_tokens(const struct embedding embedding)
{
    __shared__ uint32_t found[GRID_WARPS];
    const Element *gradients = (const Element *)embedding.output_gradient;
    size_t channels = embedding.channels;
    size_t rows = (size_t)embedding.batch * embedding.length;
    size_t channel = (size_t)blockIdx.y * GRID_THREADS + threadIdx.x;
    uint32_t token = (uint32_t)embedding.tokens[blockIdx.x];
    bool is_known = token < embedding.vocabulary;
    bool has_channel = is_known && channel < channels;
    float *to = has_channel ? embedding.token_gradient + token * channels + channel : NULL;
    float sum = has_channel ? *to : 0.0f;

    for (size_t first = 0; first < rows; first += GRID_THREADS) {
        size_t row = first + threadIdx.x;
        bool is_own = is_known && row < rows && (uint32_t)embedding.tokens[row] == token;
        uint32_t own = __ballot_sync(GRID_ALL, is_own);

        if (grid_lane() == 0) {
            found[threadIdx.x / GRID_WARP] = own;
        }
        __syncthreads();
        for (unsigned warp = 0; warp < GRID_WARPS; warp++) {
            for (uint32_t left = found[warp]; left != 0; left &= left - 1) {
                size_t next = first + warp * GRID_WARP + __ffs((int)left) - 1;

                if (next < blockIdx.x) {
                    return; /* uniform: all threads see the same tokens */
                }
                if (has_channel) {
                    sum += gradients[next * channels + channel];
                }
            }
        }
        __syncthreads(); /* all threads have read what the next round overwrites */
    }
    if (has_channel) {
        *to = sum;
    }
}

template <typename Element>
static __global__ void backward_positions(const struct embedding embedding)
{
    const Element *gradients = (const Element *)embedding.output_gradient;
    size_t items = (size_t)embedding.length * embedding.channels;

    for (size_t i = grid_first(); i < items; i += grid_stride()) {
        float sum = embedding.position_gradient[i];

        for (size_t b = 0; b < embedding.batch; b++) {
            sum += gradients[b * items + i];
        }
        embedding.position_gradient[i] = sum;
    }
}

capu_status embedding_forward_cuda(capu_stream stream, const void *arguments)
{
    const struct embedding *embedding = (const struct embedding *)arguments;
    size_t rows = (size_t)embedding->batch * embedding->length;

    GRID_LAUNCH_FOR(embedding->element, forward, grid_blocks(rows, GRID_WARPS), GRID_THREADS,
                    stream, *embedding);
    return grid_status();
}

capu_status embedding_backward_cuda(capu_stream stream, const void *arguments)
{
    const struct embedding *embedding = (const struct embedding *)arguments;
    size_t items = (size_t)embedding->length * embedding->channels;
    size_t rows = (size_t)embedding->batch * embedding->length;
    dim3 blocks((unsigned)rows, grid_blocks(embedding->channels, GRID_THREADS));

    /* As many blocks as a grid is wide, and high. */
    if (rows > INT32_MAX || embedding->channels > CHANNELS_LIMIT) {
        return CAPU_TOO_LARGE;
    }
    GRID_LAUNCH_FOR(embedding->element, backward_tokens, blocks, GRID_THREADS, stream, *embedding);
    GRID_LAUNCH_FOR(embedding->element, backward_positions, grid_blocks(items, GRID_THREADS),
                    GRID_THREADS, stream, *embedding);
    return grid_status();
}

/*
 * embedding on the host. Forward, a tile is a number of rows. Backward, a tile is a number of
 * channels over all rows, so that the gradients of rows with the same token are added by one
 * thread, in order.
 */
#include "kernels/embedding.h"

#include "kernels/copies.h"
#include "kernels/parallel.h"

#define TILE_ROWS ((size_t)64)
#define TILE_CHANNELS ((size_t)16)

static void forward_tile(const void *arguments, size_t tile)
{
    const struct embedding *embedding = arguments;
    size_t channels = embedding->channels;
    struct parallel_range rows =
        parallel_items(tile, TILE_ROWS, (size_t)embedding->batch * embedding->length);

    for (size_t row = rows.first; row < rows.end; row++) {
        size_t first = (size_t)embedding->tokens[row] * channels;
        const float *token = (const float *)embedding->token_weight + first;
        const float *position =
            (const float *)embedding->position_weight + row % embedding->length * channels;
        float *restrict output = (float *)embedding->output + row * channels;

        for (size_t i = 0; i < channels; i++) {
            output[i] = token[i] + position[i];
        }
    }
}

static void backward_tile(const void *arguments, size_t tile)
{
    const struct embedding *embedding = arguments;
    size_t channels = embedding->channels;
    size_t row_count = (size_t)embedding->batch * embedding->length;
    struct parallel_range range = parallel_items(tile, TILE_CHANNELS, channels);

    for (size_t row = 0; row < row_count; row++) {
        const float *gradient = (const float *)embedding->output_gradient + row * channels;
        float *token = embedding->token_gradient + (size_t)embedding->tokens[row] * channels;
        float *position = embedding->position_gradient + row % embedding->length * channels;

        for (size_t i = range.first; i < range.end; i++) {
            token[i] += gradient[i];
            position[i] += gradient[i];
        }
    }
}

static capu_status check_tokens(const struct embedding *embedding)
{
    for (size_t row = 0; row < (size_t)embedding->batch * embedding->length; row++) {
        if (embedding->tokens[row] < 0 ||
            (uint32_t)embedding->tokens[row] >= embedding->vocabulary) {
            return CAPU_INVALID;
        }
    }
    return CAPU_OK;
}

capu_status embedding_forward_host(capu_stream stream, const void *arguments)
{
    struct embedding embedding = *(const struct embedding *)arguments;
    struct copies copies = {.element = embedding.element, .status = check_tokens(&embedding)};
    size_t rows = (size_t)embedding.batch * embedding.length;
    size_t channels = embedding.channels;

    (void)stream;
    embedding.token_weight =
        copies_read(&copies, embedding.token_weight, embedding.vocabulary * channels);
    embedding.position_weight =
        copies_read(&copies, embedding.position_weight, embedding.length * channels);
    embedding.output = copies_write(&copies, embedding.output, rows * channels);
    if (copies.status == CAPU_OK) {
        parallel_run(parallel_tiles(rows, TILE_ROWS), forward_tile, &embedding);
    }
    return copies_finish(&copies);
}

capu_status embedding_backward_host(capu_stream stream, const void *arguments)
{
    struct embedding embedding = *(const struct embedding *)arguments;
    struct copies copies = {.element = embedding.element, .status = check_tokens(&embedding)};
    size_t rows = (size_t)embedding.batch * embedding.length;

    (void)stream;
    embedding.output_gradient =
        copies_read(&copies, embedding.output_gradient, rows * embedding.channels);
    if (copies.status == CAPU_OK) {
        parallel_run(parallel_tiles(embedding.channels, TILE_CHANNELS), backward_tile, &embedding);
    }
    return copies_finish(&copies);
}

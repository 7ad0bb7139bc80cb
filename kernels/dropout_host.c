/* dropout on the host. A draw gives four items, and its number follows from their place: so tiles
 * draw independently of each other. */
#include "kernels/dropout.h"

#include "kernels/copies.h"
#include "kernels/parallel.h"
#include "kernels/random.h"

/* `from` and `to` may be the same. A tile begins at a multiple of four. */
static void apply(const struct dropout *dropout, const float *from, float *to, size_t tile)
{
    struct parallel_range items = parallel_items(tile, PARALLEL_TILE_ITEMS, dropout->count);
    float scale = 1.0f / (1.0f - dropout->rate);
    struct random_block block = {{0}};

    for (size_t i = items.first; i < items.end; i++) {
        if (i % 4 == 0) {
            block = random_draw(dropout->seed, dropout->counter, i / 4);
        }
        to[i] = from[i] * (random_unit(block.word[i % 4]) < dropout->rate ? 0.0f : scale);
    }
}

static void forward_tile(const void *arguments, size_t tile)
{
    const struct dropout *dropout = arguments;
    apply(dropout, dropout->input, dropout->output, tile);
}

static void backward_tile(const void *arguments, size_t tile)
{
    const struct dropout *dropout = arguments;
    apply(dropout, dropout->gradient, dropout->gradient, tile);
}

capu_status dropout_forward_host(capu_stream stream, const void *arguments)
{
    struct dropout dropout = *(const struct dropout *)arguments;
    struct copies copies = {.element = dropout.element};

    (void)stream;
    dropout.input = copies_read(&copies, dropout.input, dropout.count);
    dropout.output = copies_write(&copies, dropout.output, dropout.count);
    if (copies.status == CAPU_OK) {
        parallel_run(parallel_tiles(dropout.count, PARALLEL_TILE_ITEMS), forward_tile, &dropout);
    }
    return copies_finish(&copies);
}

capu_status dropout_backward_host(capu_stream stream, const void *arguments)
{
    struct dropout dropout = *(const struct dropout *)arguments;
    struct copies copies = {.element = dropout.element};

    (void)stream;
    dropout.gradient = copies_update(&copies, dropout.gradient, dropout.count);
    if (copies.status == CAPU_OK) {
        parallel_run(parallel_tiles(dropout.count, PARALLEL_TILE_ITEMS), backward_tile, &dropout);
    }
    return copies_finish(&copies);
}

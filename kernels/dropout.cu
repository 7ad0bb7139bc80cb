/* dropout on cuda. A thread draws for four items, numbered as on the host, so the same ones are
 * zeroed. */
#include "kernels/dropout.h"

#include "kernels/grid.cuh"
#include "kernels/random.h"

#define ITEMS 4u

/* `inputs` and `outputs` may be the same. */
template <typename Element>
static __global__ void apply(const struct dropout dropout, const void *inputs, void *outputs)
{
    const Element *from = (const Element *)inputs;
    Element *to = (Element *)outputs;
    float scale = 1.0f / (1.0f - dropout.rate);
    size_t draws = (dropout.count + ITEMS - 1) / ITEMS;

    for (size_t draw = grid_first(); draw < draws; draw += grid_stride()) {
        struct random_block block = random_draw(dropout.seed, dropout.counter, draw);

        for (unsigned i = 0; i < ITEMS; i++) {
            size_t item = draw * ITEMS + i;

            if (item < dropout.count) {
                /* A product, so that a NaN stays a NaN. */
                to[item] = from[item] * (random_unit(block.word[i]) < dropout.rate ? 0.0f : scale);
            }
        }
    }
}

capu_status dropout_forward_cuda(capu_stream stream, const void *arguments)
{
    const struct dropout *dropout = (const struct dropout *)arguments;

    GRID_LAUNCH_FOR(dropout->element, apply, grid_blocks(dropout->count, ITEMS * GRID_THREADS),
                    GRID_THREADS, stream, *dropout, dropout->input, dropout->output);
    return grid_status();
}

capu_status dropout_backward_cuda(capu_stream stream, const void *arguments)
{
    const struct dropout *dropout = (const struct dropout *)arguments;

    GRID_LAUNCH_FOR(dropout->element, apply, grid_blocks(dropout->count, ITEMS * GRID_THREADS),
                    GRID_THREADS, stream, *dropout, dropout->gradient, dropout->gradient);
    return grid_status();
}

/* sgd on the host. */
#include "kernels/sgd.h"

#include "kernels/element.h"
#include "kernels/parallel.h"

static void update_tile(const void *arguments, size_t tile)
{
    const struct sgd *sgd = arguments;
    struct parallel_range items = parallel_items(tile, PARALLEL_TILE_ITEMS, sgd->count);
    float *restrict parameter = sgd->parameter;
    float *restrict velocity = sgd->velocity;
    const float *restrict gradient = sgd->gradient;
    const float rate = sgd->rate;
    const float momentum = sgd->momentum;
    const float decay = sgd->decay;

    for (size_t i = items.first; i < items.end; i++) {
        velocity[i] = momentum * velocity[i] + gradient[i] + decay * parameter[i];
        parameter[i] -= rate * velocity[i];
    }
    for (size_t i = items.first; sgd->working != NULL && i < items.end; i++) {
        sgd->working[i] = element_round(parameter[i]);
    }
}

capu_status sgd_update_host(capu_stream stream, const void *arguments)
{
    const struct sgd *sgd = arguments;

    (void)stream;
    parallel_run(parallel_tiles(sgd->count, PARALLEL_TILE_ITEMS), update_tile, sgd);
    return CAPU_OK;
}

/* adamw on the host. */
#include "kernels/adamw.h"

#include "kernels/element.h"
#include "kernels/parallel.h"

#include <math.h>

/* What is the same for all items of a step. */
struct constants {
    const struct adamw *adamw;
    float first_factor;  /* corrects the bias of the first moment, which starts at zero */
    float second_factor; /* likewise for the second one */
};

static void update_tile(const void *arguments, size_t tile)
{
    const struct constants *constants = arguments;
    const struct adamw adamw = *constants->adamw;
    const float first_factor = constants->first_factor;
    const float second_factor = constants->second_factor;
    struct parallel_range items = parallel_items(tile, PARALLEL_TILE_ITEMS, adamw.count);
    float *restrict parameter = adamw.parameter;
    float *restrict first = adamw.first_moment;
    float *restrict second = adamw.second_moment;
    const float *restrict gradient = adamw.gradient;

    for (size_t i = items.first; i < items.end; i++) {
        float g = gradient[i] * adamw.gradient_scale;
        float m = adamw.beta1 * first[i] + (1.0f - adamw.beta1) * g;
        float v = adamw.beta2 * second[i] + (1.0f - adamw.beta2) * g * g;

        first[i] = m;
        second[i] = v;
        parameter[i] -=
            adamw.rate * (m * first_factor / (sqrtf(v * second_factor) + adamw.epsilon) +
                          adamw.decay * parameter[i]);
    }
    for (size_t i = items.first; adamw.working != NULL && i < items.end; i++) {
        adamw.working[i] = element_round(parameter[i]);
    }
}

capu_status adamw_update_host(capu_stream stream, const void *arguments)
{
    const struct adamw *adamw = arguments;
    struct constants constants = {
        .adamw = adamw,
        .first_factor = (float)(1.0 / (1.0 - pow(adamw->beta1, adamw->step))),
        .second_factor = (float)(1.0 / (1.0 - pow(adamw->beta2, adamw->step))),
    };

    (void)stream;
    parallel_run(parallel_tiles(adamw->count, PARALLEL_TILE_ITEMS), update_tile, &constants);
    return CAPU_OK;
}

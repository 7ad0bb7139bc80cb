/* adamw on cuda. */
#include "kernels/adamw.h"

#include "kernels/element.h"
#include "kernels/grid.cuh"

#include <math.h>

static __global__ void update(const struct adamw adamw, float first_factor, float second_factor)
{
    for (size_t i = grid_first(); i < adamw.count; i += grid_stride()) {
        float parameter = adamw.parameter[i];
        float g = adamw.gradient[i] * adamw.gradient_scale;
        float m = adamw.beta1 * adamw.first_moment[i] + (1.0f - adamw.beta1) * g;
        float v = adamw.beta2 * adamw.second_moment[i] + (1.0f - adamw.beta2) * g * g;

        adamw.first_moment[i] = m;
        adamw.second_moment[i] = v;
        parameter -= adamw.rate * (m * first_factor / (sqrtf(v * second_factor) + adamw.epsilon) +
                                   adamw.decay * parameter);
        adamw.parameter[i] = parameter;
        if (adamw.working != NULL) {
            adamw.working[i] = element_round(parameter);
        }
    }
}

capu_status adamw_update_cuda(capu_stream stream, const void *arguments)
{
    const struct adamw *adamw = (const struct adamw *)arguments;
    /* Correct the bias of the moments, which start at zero. */
    float first_factor = (float)(1.0 / (1.0 - pow((double)adamw->beta1, (double)adamw->step)));
    float second_factor = (float)(1.0 / (1.0 - pow((double)adamw->beta2, (double)adamw->step)));

    GRID_LAUNCH(update, grid_blocks(adamw->count, GRID_THREADS), GRID_THREADS, stream, *adamw,
                first_factor, second_factor);
    return grid_status();
}

/*
 * gradient_norm on the host. The range is split into a fixed number of parts. Each is summed in
 * short runs of floats, the runs in double; then the parts are added in order.
 */
#include "kernels/gradient_norm.h"

#include "kernels/parallel.h"
#include "kernels/reduce.h"

#include <math.h>

#define PARTS ((size_t)64)
#define RUN_ITEMS ((size_t)4096)

struct parts {
    const struct gradient_norm *arguments;
    double *sums; /* PARTS of them */
};

static void part_tile(const void *argument, size_t tile)
{
    const struct parts *parts = argument;
    size_t count = parts->arguments->count;
    struct parallel_range range = {count / PARTS * tile, count / PARTS * (tile + 1)};
    double sum = 0.0;

    if (tile == PARTS - 1) {
        range.end = count;
    }
    for (size_t i = range.first; i < range.end; i += RUN_ITEMS) {
        size_t run = range.end - i < RUN_ITEMS ? range.end - i : RUN_ITEMS;
        const float *from = parts->arguments->gradient + i;

        sum += reduce_product(from, 0.0f, from, 0.0f, run);
    }
    parts->sums[tile] = sum;
}

capu_status gradient_norm_host(capu_stream stream, const void *arguments)
{
    const struct gradient_norm *norm = arguments;
    double sums[PARTS];
    struct parts parts = {norm, sums};
    double sum = 0.0;

    (void)stream;
    parallel_run(PARTS, part_tile, &parts);
    for (size_t i = 0; i < PARTS; i++) {
        sum += sums[i];
    }
    *norm->norm = (float)sqrt(sum);
    return CAPU_OK;
}

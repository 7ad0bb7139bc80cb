/* initialise on the host. */
#include "kernels/initialise.h"

#include "kernels/copies.h"
#include "kernels/parallel.h"
#include "kernels/random.h"

#include <math.h>

#define TWO_PI 6.283185307179586

/* Box and Muller: two uniform numbers give two normal ones. In double, so that rounding to float
   hides differences between mathematics libraries in the last bits. */
static void normal_pair(uint32_t first, uint32_t second, double normal[2])
{
    double radius = sqrt(-2.0 * log(((double)first + 1.0) * 0x1p-32));
    double angle = TWO_PI * ((double)second * 0x1p-32);

    normal[0] = radius * cos(angle);
    normal[1] = radius * sin(angle);
}

static void draw_four(const struct initialise *arguments, uint64_t index, float value[4])
{
    struct random_block block = random_draw(arguments->seed, arguments->counter, index);
    double normal[4];

    if (arguments->kind == INITIALISE_UNIFORM) {
        for (int i = 0; i < 4; i++) {
            value[i] = arguments->a + (arguments->b - arguments->a) * random_unit(block.word[i]);
        }
        return;
    }
    normal_pair(block.word[0], block.word[1], normal);
    normal_pair(block.word[2], block.word[3], normal + 2);
    for (int i = 0; i < 4; i++) {
        value[i] = (float)(arguments->a + arguments->b * normal[i]);
    }
}

static void fill_tile(const void *argument_block, size_t tile)
{
    const struct initialise *arguments = argument_block;
    struct parallel_range items = parallel_items(tile, PARALLEL_TILE_ITEMS, arguments->count);
    float *output = arguments->output;
    float value[4] = {arguments->a, arguments->a, arguments->a, arguments->a};

    for (size_t i = items.first; i < items.end; i++) {
        if (i % 4 == 0 && arguments->kind != INITIALISE_CONSTANT) {
            draw_four(arguments, i / 4, value);
        }
        output[i] = value[i % 4];
    }
}

capu_status initialise_host(capu_stream stream, const void *arguments)
{
    struct initialise fill = *(const struct initialise *)arguments;
    struct copies copies = {.element = fill.element};

    (void)stream;
    fill.output = copies_write(&copies, fill.output, fill.count);
    if (copies.status == CAPU_OK) {
        parallel_run(parallel_tiles(fill.count, PARALLEL_TILE_ITEMS), fill_tile, &fill);
    }
    return copies_finish(&copies);
}

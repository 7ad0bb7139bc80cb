/*
 * initialise on cuda, with the numbers of the host. Constants and uniform numbers are the same to
 * the bit; normal ones differ in the last bits of double logarithms and sines, which rounding to
 * float hides.
 */
#include "kernels/initialise.h"

#include "kernels/grid.cuh"
#include "kernels/random.h"

#define TWO_PI 6.283185307179586
#define ITEMS 4u

/* Box and Muller: two uniform numbers give two normal ones. */
static __device__ void normal_pair(uint32_t first, uint32_t second, double normal[2])
{
    double radius = sqrt(-2.0 * log(((double)first + 1.0) * 0x1p-32));
    double angle = TWO_PI * ((double)second * 0x1p-32);

    normal[0] = radius * cos(angle);
    normal[1] = radius * sin(angle);
}

/* Products and sums are rounded separately, as on the host: no fused multiply-add. */
static __device__ void draw(const struct initialise &arguments, uint64_t index, float value[ITEMS])
{
    struct random_block block = random_draw(arguments.seed, arguments.counter, index);
    double normal[ITEMS];

    if (arguments.kind == INITIALISE_UNIFORM) {
        for (unsigned i = 0; i < ITEMS; i++) {
            value[i] = __fadd_rn(arguments.a, __fmul_rn(__fsub_rn(arguments.b, arguments.a),
                                                        random_unit(block.word[i])));
        }
        return;
    }
    normal_pair(block.word[0], block.word[1], normal);
    normal_pair(block.word[2], block.word[3], normal + 2);
    for (unsigned i = 0; i < ITEMS; i++) {
        value[i] = (float)__dadd_rn(arguments.a, __dmul_rn(arguments.b, normal[i]));
    }
}

template <typename Element> static __global__ void fill(const struct initialise arguments)
{
    Element *output = (Element *)arguments.output;
    size_t draws = (arguments.count + ITEMS - 1) / ITEMS;

    for (size_t index = grid_first(); index < draws; index += grid_stride()) {
        float value[ITEMS] = {arguments.a, arguments.a, arguments.a, arguments.a};

        if (arguments.kind != INITIALISE_CONSTANT) {
            draw(arguments, index, value);
        }
        for (unsigned i = 0; i < ITEMS; i++) {
            if (index * ITEMS + i < arguments.count) {
                output[index * ITEMS + i] = value[i];
            }
        }
    }
}

capu_status initialise_cuda(capu_stream stream, const void *arguments)
{
    const struct initialise *fill_arguments = (const struct initialise *)arguments;

    GRID_LAUNCH_FOR(fill_arguments->element, fill,
                    grid_blocks(fill_arguments->count, ITEMS * GRID_THREADS), GRID_THREADS, stream,
                    *fill_arguments);
    return grid_status();
}

/* fp32 copies of bf16 operands. */
#include "kernels/copies.h"

#include "kernels/parallel.h"

#include <assert.h>
#include <stdlib.h>

struct widening {
    const uint16_t *from;
    float *to;
    size_t count;
};

static void widen_tile(const void *arguments, size_t tile)
{
    const struct widening *widening = arguments;
    struct parallel_range items = parallel_items(tile, PARALLEL_TILE_ITEMS, widening->count);
    const uint16_t *restrict from = widening->from;
    float *restrict to = widening->to;

    for (size_t i = items.first; i < items.end; i++) {
        to[i] = element_widen(from[i]);
    }
}

static void round_tile(const void *arguments, size_t tile)
{
    const struct copy *copy = arguments;
    struct parallel_range items = parallel_items(tile, PARALLEL_TILE_ITEMS, copy->count);
    const float *restrict from = copy->floats;
    uint16_t *restrict to = copy->to;

    for (size_t i = items.first; i < items.end; i++) {
        to[i] = element_round(from[i]);
    }
}

/* Room for `count` floats; NULL if there is none, or was none before. */
static float *add(struct copies *copies, uint16_t *to, size_t count)
{
    struct copy *copy = &copies->copy[copies->count];

    assert(copies->count < COPIES_LIMIT);
    if (copies->status != CAPU_OK) {
        return NULL;
    }
    /* One float at least: of nothing, malloc may give NULL. */
    if (count <= PTRDIFF_MAX / sizeof(float)) {
        copy->floats = malloc((count > 0 ? count : 1) * sizeof(float));
    }
    if (copy->floats == NULL) {
        copies->status = CAPU_NO_HOST_MEMORY;
        return NULL;
    }
    copy->to = to;
    copy->count = count;
    copies->count++;
    return copy->floats;
}

static void widen(const uint16_t *from, float *to, size_t count)
{
    struct widening widening = {from, to, count};

    if (to != NULL) {
        parallel_run(parallel_tiles(count, PARALLEL_TILE_ITEMS), widen_tile, &widening);
    }
}

const float *copies_read(struct copies *copies, const void *items, size_t count)
{
    float *floats;

    if (copies->element != ELEMENT_BF16 || items == NULL) {
        return items;
    }
    floats = add(copies, NULL, count);
    widen(items, floats, count);
    return floats;
}

float *copies_write(struct copies *copies, void *items, size_t count)
{
    if (copies->element != ELEMENT_BF16 || items == NULL) {
        return items;
    }
    return add(copies, items, count);
}

float *copies_update(struct copies *copies, void *items, size_t count)
{
    float *floats = copies_write(copies, items, count);

    if (floats != items) {
        widen(items, floats, count);
    }
    return floats;
}

capu_status copies_finish(struct copies *copies)
{
    for (size_t i = 0; i < copies->count; i++) {
        const struct copy *copy = &copies->copy[i];

        if (copies->status == CAPU_OK && copy->to != NULL) {
            parallel_run(parallel_tiles(copy->count, PARALLEL_TILE_ITEMS), round_tile, copy);
        }
        free(copy->floats);
    }
    copies->count = 0;
    return copies->status;
}

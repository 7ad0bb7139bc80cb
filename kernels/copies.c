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
    struct parallel_range items =
        parallel_items(tile, PARALLEL_TILE_ITEMS, copy->end - copy->first);
    const float *restrict from = copy->floats + copy->first;
    uint16_t *restrict to = copy->to + copy->first;

    for (size_t i = items.first; i < items.end; i++) {
        to[i] = element_round(from[i]);
    }
}

/* Allocates the floats up to `end`. NULL if that fails, or if an earlier copy failed. */
static float *add_copy(struct copies *copies, uint16_t *to, size_t first, size_t end)
{
    struct copy *copy = &copies->copy[copies->count];

    assert(copies->count < COPIES_LIMIT);
    if (copies->status != CAPU_OK) {
        return NULL;
    }
    /* At least one float: for 0 bytes malloc may return NULL. */
    if (end <= PTRDIFF_MAX / sizeof(float)) {
        copy->floats = malloc((end > 0 ? end : 1) * sizeof(float));
    }
    if (copy->floats == NULL) {
        copies->status = CAPU_NO_HOST_MEMORY;
        return NULL;
    }
    copy->to = to;
    copy->first = first;
    copy->end = end;
    copies->count++;
    return copy->floats;
}

static void widen_items(const uint16_t *from, float *to, size_t count)
{
    struct widening widening = {from, to, count};

    parallel_run(parallel_tiles(count, PARALLEL_TILE_ITEMS), widen_tile, &widening);
}

const float *copies_read_range(struct copies *copies, const void *items, size_t first, size_t end)
{
    float *floats;

    if (copies->element != ELEMENT_BF16 || items == NULL) {
        return items;
    }
    floats = add_copy(copies, NULL, first, end);
    if (floats != NULL) {
        widen_items((const uint16_t *)items + first, floats + first, end - first);
    }
    return floats;
}

float *copies_write_range(struct copies *copies, void *items, size_t first, size_t end)
{
    if (copies->element != ELEMENT_BF16 || items == NULL) {
        return items;
    }
    return add_copy(copies, items, first, end);
}

const float *copies_read(struct copies *copies, const void *items, size_t count)
{
    return copies_read_range(copies, items, 0, count);
}

float *copies_write(struct copies *copies, void *items, size_t count)
{
    return copies_write_range(copies, items, 0, count);
}

float *copies_update(struct copies *copies, void *items, size_t count)
{
    float *floats = copies_write(copies, items, count);

    if (floats != items && floats != NULL) {
        widen_items(items, floats, count);
    }
    return floats;
}

capu_status copies_finish(struct copies *copies)
{
    for (size_t i = 0; i < copies->count; i++) {
        const struct copy *copy = &copies->copy[i];

        if (copies->status == CAPU_OK && copy->to != NULL) {
            parallel_run(parallel_tiles(copy->end - copy->first, PARALLEL_TILE_ITEMS), round_tile,
                         copy);
        }
        free(copy->floats);
    }
    copies->count = 0;
    return copies->status;
}

/*
 * Free extents by size: see bins.h.
 *
 * An exact best fit would need a sorted tree, which costs a walk at every change. In a bin of a
 * larger size every member fits, and the first such bin that is not empty is found in the bit set
 * in a few steps. Only the bin of the requested size itself can hold both extents that fit and
 * extents that do not. Comparing a few members per bin gives a close fit at a constant cost.
 */
#include "allocator/bins.h"

#include "base/assert.h"

/* How many members of a bin are compared: enough for a close fit, few enough to cost little. */
#define LOOK_AT 8
#define STEP_BITS 5 /* 32 bins to each power of two: a bin's sizes differ by 3 % */
#define STEPS (1u << STEP_BITS)

/* Sizes below 32 units have a bin each; above, the five bits below the highest choose the step. */
static size_t bin_of(const struct extents *extents, uint64_t bytes)
{
    uint64_t units = bytes / extents->unit_bytes;
    unsigned top;

    if (units < STEPS) {
        return (size_t)units;
    }
    top = 63 - (unsigned)__builtin_clzll(units);
    return (size_t)(top - STEP_BITS + 1) * STEPS + (units >> (top - STEP_BITS)) % STEPS;
}

void bins_insert(struct extents *extents, uint32_t index)
{
    struct extents_node *node = &extents->nodes[index];
    size_t bin = bin_of(extents, node->bytes);
    uint32_t head = extents->bins[bin];

    ASSERT(node->is_used && !node->is_taken && node->bytes > 0);
    node->bin_before = NO_NODE;
    node->bin_after = head;
    if (head != NO_NODE) {
        extents->nodes[head].bin_before = index;
    } else {
        bits_add(&extents->bins_in_use, bin);
    }
    extents->bins[bin] = index;
}

void bins_remove(struct extents *extents, uint32_t index)
{
    struct extents_node *node = &extents->nodes[index];
    size_t bin = bin_of(extents, node->bytes);

    ASSERT(node->is_used && !node->is_taken);
    ASSERT(node->bin_before != NO_NODE || extents->bins[bin] == index);
    if (node->bin_after != NO_NODE) {
        extents->nodes[node->bin_after].bin_before = node->bin_before;
    }
    if (node->bin_before != NO_NODE) {
        extents->nodes[node->bin_before].bin_after = node->bin_after;
        return;
    }
    extents->bins[bin] = node->bin_after;
    if (node->bin_after == NO_NODE) {
        bits_remove(&extents->bins_in_use, bin);
    }
}

/* The smallest extent that holds `bytes` among the first `limit` of a bin's list. */
static uint32_t smallest_fit(const struct extents *extents, size_t bin, uint64_t bytes,
                             size_t limit)
{
    uint32_t best = NO_NODE;

    for (uint32_t i = extents->bins[bin]; i != NO_NODE && limit > 0; limit--) {
        const struct extents_node *node = &extents->nodes[i];

        if (node->bytes >= bytes && (best == NO_NODE || node->bytes < extents->nodes[best].bytes)) {
            best = i;
            if (node->bytes == bytes) {
                break;
            }
        }
        i = node->bin_after;
    }
    return best;
}

uint32_t bins_find(const struct extents *extents, uint64_t bytes)
{
    size_t bin = bin_of(extents, bytes);
    uint32_t found = smallest_fit(extents, bin, bytes, LOOK_AT);
    size_t larger;

    if (found != NO_NODE) {
        return found;
    }
    larger = bits_next(&extents->bins_in_use, bin + 1);
    if (larger != BITS_NONE) {
        return smallest_fit(extents, larger, bytes, LOOK_AT);
    }
    /* A fit may stand further back in the first bin. A slow search is better than a failed take. */
    return smallest_fit(extents, bin, bytes, SIZE_MAX);
}

uint32_t bins_find_largest(const struct extents *extents)
{
    size_t bin = bits_previous(&extents->bins_in_use, EXTENTS_BIN_COUNT - 1);
    uint32_t best = NO_NODE;
    size_t limit = LOOK_AT;

    if (bin == BITS_NONE) {
        return NO_NODE;
    }
    for (uint32_t i = extents->bins[bin]; i != NO_NODE && limit > 0; limit--) {
        if (best == NO_NODE || extents->nodes[i].bytes > extents->nodes[best].bytes) {
            best = i;
        }
        i = extents->nodes[i].bin_after;
    }
    return best;
}

const char *bins_check(const struct extents *extents, size_t free_count)
{
    size_t binned = 0;

    for (size_t bin = 0; bin < EXTENTS_BIN_COUNT; bin++) {
        uint32_t before = NO_NODE;

        if (bits_has(&extents->bins_in_use, bin) != (extents->bins[bin] != NO_NODE)) {
            return "a bin's bit is wrong";
        }
        for (uint32_t i = extents->bins[bin]; i != NO_NODE; i = extents->nodes[i].bin_after) {
            const struct extents_node *node = &extents->nodes[i];

            if (!node->is_used || node->is_taken || node->bin_before != before ||
                bin_of(extents, node->bytes) != bin) {
                return "an extent stands in the wrong bin";
            }
            before = i;
            if (++binned > free_count) {
                return "a bin holds too much";
            }
        }
    }
    return binned == free_count ? NULL : "a free extent stands in no bin";
}

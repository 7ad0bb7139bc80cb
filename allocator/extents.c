/*
 * Extents: see extents.h.
 *
 * Tensors of many sizes and lifetimes share the space, so it breaks up into pieces. Best fit keeps
 * large pieces whole, and merging at once makes them large again; both are needed, since a plan
 * that fits by its sums must not fail for lack of a large piece.
 *
 * An extent is a node. It is linked to its neighbours by address, so that merging looks at two
 * nodes only, and, if free, into the list of its size's bin (below). Links are indices, since the
 * array of nodes moves when it grows. A hash table finds the node that starts at an address, which
 * is what a give needs. A take at a given address needs the extent that contains it: for that,
 * regions keep one bit per unit, set where an extent starts.
 */

#include "allocator/extents.h"
#include "base/array.h"
#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

/*
 * Bins: the free extents by size, and the search for one that fits.
 *
 * There are 32 bins per power of two, so the sizes in one bin differ by at most 3 %. A bin is a
 * linked list. An exact best fit would need a sorted tree, which costs a walk at every change. In a
 * bin of a larger size every member fits, and the first such bin that is not empty is found in the
 * bit set in a few steps. Only the bin of the requested size itself can hold both extents that fit
 * and extents that do not. Comparing a few members per bin gives a close fit at a constant cost.
 */

#define NO_NODE UINT32_MAX

struct extents_node {
    uint64_t start;
    uint64_t bytes;
    struct extents_region *region;
    uint32_t before; /* neighbours by address */
    uint32_t after;
    uint32_t bin_before; /* in the bin's list if free; bin_after also links unused nodes */
    uint32_t bin_after;
    bool is_taken;
    bool is_used;
};

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

/* Puts a free extent into the bin of its size, and takes it out before it is taken or changes its
   size. */
static void bins_insert(struct extents *extents, uint32_t index)
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

static void bins_remove(struct extents *extents, uint32_t index)
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

/* A free extent of at least `bytes` that fits closely; NO_NODE only if there is none. */
static uint32_t bins_find(const struct extents *extents, uint64_t bytes)
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

/* The largest free extent or one within 3 % of it; NO_NODE if nothing is free. */
static uint32_t bins_find_largest(const struct extents *extents)
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

/* What is wrong with the bins if `free_count` extents are free; NULL if nothing is. */
static const char *bins_check(const struct extents *extents, size_t free_count)
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

struct extents_region {
    uint64_t start;
    uint64_t bytes;
    uint32_t first;     /* node of the region's first extent: a merge keeps the lower node */
    struct bits starts; /* with takes_at: the units at which extents start */
};

static bool is_size(const struct extents *extents, uint64_t bytes)
{
    return bytes > 0 && bytes % extents->unit_bytes == 0;
}

static void mark_start(struct extents *extents, const struct extents_node *node, bool is_start)
{
    struct extents_region *region = node->region;
    size_t unit;

    if (!extents->takes_at) {
        return;
    }
    unit = (size_t)((node->start - region->start) / extents->unit_bytes);
    if (is_start) {
        bits_add(&region->starts, unit);
    } else {
        bits_remove(&region->starts, unit);
    }
}

/* Makes sure that `count` nodes are unused and have room in the table. */
static bool reserve_nodes(struct extents *extents, size_t count)
{
    size_t used = extents->node_count - extents->unused_count;

    return used + count < NO_NODE && table_reserve(&extents->by_start, used + count) &&
           array_reserve(&extents->nodes, &extents->node_capacity, used + count,
                         sizeof(*extents->nodes));
}

/* A node for the extent, linked to nothing. Pre: reserved. */
static uint32_t node_new(struct extents *extents, struct extents_region *region, uint64_t start,
                         uint64_t bytes)
{
    uint32_t index = extents->unused;
    struct extents_node *node;

    if (index != NO_NODE) {
        extents->unused = extents->nodes[index].bin_after;
        extents->unused_count--;
    } else {
        ASSERT(extents->node_count < extents->node_capacity);
        index = (uint32_t)extents->node_count++;
    }
    node = &extents->nodes[index];
    *node = (struct extents_node){.start = start,
                                  .bytes = bytes,
                                  .region = region,
                                  .before = NO_NODE,
                                  .after = NO_NODE,
                                  .bin_before = NO_NODE,
                                  .bin_after = NO_NODE,
                                  .is_used = true};
    table_put(&extents->by_start, start, index);
    mark_start(extents, node, true);
    return index;
}

static void node_forget(struct extents *extents, uint32_t index)
{
    struct extents_node *node = &extents->nodes[index];

    mark_start(extents, node, false);
    table_remove(&extents->by_start, node->start);
    node->is_used = false;
    node->bin_after = extents->unused;
    extents->unused = index;
    extents->unused_count++;
}

/* Splits an extent that is in no bin: what lies after its first `bytes` becomes a new extent. Pre:
   a node is reserved. */
static uint32_t cut_node(struct extents *extents, uint32_t index, uint64_t bytes)
{
    struct extents_node *node = &extents->nodes[index];
    uint32_t rest_index = node_new(extents, node->region, node->start + bytes, node->bytes - bytes);
    struct extents_node *rest = &extents->nodes[rest_index];

    ASSERT(bytes > 0 && bytes < node->bytes);
    rest->before = index;
    rest->after = node->after;
    if (rest->after != NO_NODE) {
        extents->nodes[rest->after].before = rest_index;
    }
    node->after = rest_index;
    node->bytes = bytes;
    return rest_index;
}

/* Merges an extent with the one after it; neither is in a bin. */
static void merge_node(struct extents *extents, uint32_t index)
{
    struct extents_node *node = &extents->nodes[index];
    uint32_t gone = node->after;

    ASSERT(gone != NO_NODE && !extents->nodes[gone].is_taken);
    node->bytes += extents->nodes[gone].bytes;
    node->after = extents->nodes[gone].after;
    if (node->after != NO_NODE) {
        extents->nodes[node->after].before = index;
    }
    node_forget(extents, gone);
}

/* Takes the lower `bytes` of a free extent. Pre: it is large enough, and a node is reserved. */
static void take_node(struct extents *extents, uint32_t index, uint64_t bytes)
{
    ASSERT(!extents->nodes[index].is_taken && extents->nodes[index].bytes >= bytes);
    bins_remove(extents, index);
    if (extents->nodes[index].bytes > bytes) {
        bins_insert(extents, cut_node(extents, index, bytes));
    }
    extents->nodes[index].is_taken = true;
    extents->taken_count++;
    extents->taken_bytes += bytes;
    extents->free_bytes -= bytes;
}

/* How many regions start at or below the address. */
static size_t regions_up_to(const struct extents *extents, uint64_t address)
{
    size_t low = 0;
    size_t high = extents->region_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (extents->regions[middle]->start <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static struct extents_region *region_of(const struct extents *extents, uint64_t address)
{
    size_t below = regions_up_to(extents, address);
    struct extents_region *region;

    if (below == 0) {
        return NULL;
    }
    region = extents->regions[below - 1];
    return address - region->start < region->bytes ? region : NULL;
}

capu_status extents_init(struct extents *extents, uint64_t unit_bytes, bool takes_at)
{
    struct bits bins_in_use;

    if (unit_bytes == 0) {
        return CAPU_INVALID;
    }
    if (!bits_init(&bins_in_use, EXTENTS_BIN_COUNT)) {
        return CAPU_NO_HOST_MEMORY;
    }
    memset(extents, 0, sizeof(*extents));
    extents->unit_bytes = unit_bytes;
    extents->takes_at = takes_at;
    extents->unused = NO_NODE;
    extents->bins_in_use = bins_in_use;
    for (size_t bin = 0; bin < EXTENTS_BIN_COUNT; bin++) {
        extents->bins[bin] = NO_NODE;
    }
    return CAPU_OK;
}

void extents_finish(struct extents *extents)
{
    for (size_t i = 0; i < extents->region_count; i++) {
        bits_finish(&extents->regions[i]->starts);
        free(extents->regions[i]);
    }
    free(extents->regions);
    bits_finish(&extents->bins_in_use);
    table_finish(&extents->by_start);
    free(extents->nodes);
    memset(extents, 0, sizeof(*extents));
}

capu_status extents_add(struct extents *extents, uint64_t start, uint64_t bytes)
{
    struct extents_region *region;
    uint64_t units = bytes / extents->unit_bytes;
    size_t at;

    if (!is_size(extents, bytes) || start % extents->unit_bytes != 0 ||
        bytes > UINT64_MAX - start) {
        return CAPU_INVALID;
    }
    if (!reserve_nodes(extents, 1) ||
        !array_reserve(&extents->regions, &extents->region_capacity, extents->region_count + 1,
                       sizeof(struct extents_region *))) {
        return CAPU_NO_HOST_MEMORY;
    }
    region = calloc(1, sizeof(*region));
    if (region == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    if (extents->takes_at && (units > SIZE_MAX || !bits_init(&region->starts, (size_t)units))) {
        free(region);
        return CAPU_NO_HOST_MEMORY;
    }
    at = regions_up_to(extents, start);
    ASSERT(at == 0 || start - extents->regions[at - 1]->start >= extents->regions[at - 1]->bytes);
    ASSERT(at == extents->region_count || extents->regions[at]->start - start >= bytes);
    region->start = start;
    region->bytes = bytes;
    region->first = node_new(extents, region, start, bytes);
    bins_insert(extents, region->first);
    extents->free_bytes += bytes;

    memmove(&extents->regions[at + 1], &extents->regions[at],
            (extents->region_count - at) * sizeof(struct extents_region *));
    extents->regions[at] = region;
    extents->region_count++;
    return CAPU_OK;
}

capu_status extents_take(struct extents *extents, uint64_t bytes, uint64_t *start)
{
    uint32_t found;

    if (!is_size(extents, bytes)) {
        return CAPU_INVALID;
    }
    found = bins_find(extents, bytes);
    if (found == NO_NODE) {
        return CAPU_NOT_READY;
    }
    if (!reserve_nodes(extents, 1)) {
        return CAPU_NO_HOST_MEMORY;
    }
    take_node(extents, found, bytes);
    *start = extents->nodes[found].start;
    return CAPU_OK;
}

capu_status extents_take_some(struct extents *extents, uint64_t bytes, struct extent *taken)
{
    uint32_t found;

    if (!is_size(extents, bytes)) {
        return CAPU_INVALID;
    }
    found = bins_find_largest(extents);
    if (found == NO_NODE) {
        return CAPU_NOT_READY;
    }
    if (!reserve_nodes(extents, 1)) {
        return CAPU_NO_HOST_MEMORY;
    }
    if (bytes > extents->nodes[found].bytes) {
        bytes = extents->nodes[found].bytes;
    }
    take_node(extents, found, bytes);
    *taken = (struct extent){.start = extents->nodes[found].start, .bytes = bytes};
    return CAPU_OK;
}

capu_status extents_take_at(struct extents *extents, uint64_t start, uint64_t bytes)
{
    const struct extents_region *region = region_of(extents, start);
    const struct extents_node *node;
    uint64_t found;
    size_t unit;
    bool is_found;

    if (!extents->takes_at || !is_size(extents, bytes) || start % extents->unit_bytes != 0) {
        return CAPU_INVALID;
    }
    if (region == NULL) {
        return CAPU_NOT_READY;
    }
    unit = (size_t)((start - region->start) / extents->unit_bytes);
    unit = bits_previous(&region->starts, unit);
    is_found = table_get(&extents->by_start, region->start + unit * extents->unit_bytes, &found);
    ASSERT(is_found); /* extents cover the region, and their starts are marked */
    (void)is_found;
    node = &extents->nodes[found];
    if (node->is_taken || node->bytes - (start - node->start) < bytes) {
        return CAPU_NOT_READY;
    }
    if (!reserve_nodes(extents, 2)) {
        return CAPU_NO_HOST_MEMORY;
    }
    node = &extents->nodes[found];
    if (node->start < start) {
        uint32_t lower = (uint32_t)found;

        bins_remove(extents, lower);
        found = cut_node(extents, lower, start - node->start);
        bins_insert(extents, lower);
        bins_insert(extents, (uint32_t)found);
    }
    take_node(extents, (uint32_t)found, bytes);
    return CAPU_OK;
}

uint64_t extents_give(struct extents *extents, uint64_t start)
{
    struct extents_node *node;
    uint64_t found;
    uint64_t bytes;
    uint32_t index;

    if (!table_get(&extents->by_start, start, &found) || !extents->nodes[found].is_taken) {
        return 0;
    }
    index = (uint32_t)found;
    node = &extents->nodes[index];
    bytes = node->bytes;
    node->is_taken = false;
    extents->taken_count--;
    extents->taken_bytes -= bytes;
    extents->free_bytes += bytes;
    if (node->after != NO_NODE && !extents->nodes[node->after].is_taken) {
        bins_remove(extents, node->after);
        merge_node(extents, index);
    }
    if (node->before != NO_NODE && !extents->nodes[node->before].is_taken) {
        index = node->before;
        bins_remove(extents, index);
        merge_node(extents, index);
    }
    bins_insert(extents, index);
    return bytes;
}

uint64_t extents_taken_at(const struct extents *extents, uint64_t start)
{
    uint64_t found;

    if (!table_get(&extents->by_start, start, &found) || !extents->nodes[found].is_taken) {
        return 0;
    }
    return extents->nodes[found].bytes;
}

bool extents_contain(const struct extents *extents, uint64_t address)
{
    return region_of(extents, address) != NULL;
}

struct extent extents_region(const struct extents *extents, size_t index)
{
    ASSERT(index < extents->region_count);
    return (struct extent){.start = extents->regions[index]->start,
                           .bytes = extents->regions[index]->bytes};
}

/* What a walk over the extents or the bins has counted. */
struct tally {
    size_t taken_count;
    size_t free_count;
    uint64_t taken_bytes;
    uint64_t free_bytes;
};

static const char *check_region(const struct extents *extents, const struct extents_region *region,
                                struct tally *tally)
{
    uint64_t expected = region->start;
    uint32_t before = NO_NODE;
    bool was_free = false;

    for (uint32_t i = region->first; i != NO_NODE; i = extents->nodes[i].after) {
        const struct extents_node *node = &extents->nodes[i];
        uint64_t found;
        size_t unit = (size_t)((node->start - region->start) / extents->unit_bytes);

        if (!node->is_used || node->region != region || node->before != before) {
            return "an extent is linked wrongly";
        }
        if (node->start != expected || !is_size(extents, node->bytes)) {
            return "a region is not covered without gaps";
        }
        if (was_free && !node->is_taken) {
            return "two free neighbours are not merged";
        }
        if (!table_get(&extents->by_start, node->start, &found) || found != i) {
            return "an extent is not found by its start";
        }
        if (extents->takes_at && !bits_has(&region->starts, unit)) {
            return "an extent's start is not marked";
        }
        tally->taken_count += node->is_taken;
        tally->free_count += !node->is_taken;
        tally->taken_bytes += node->is_taken ? node->bytes : 0;
        tally->free_bytes += node->is_taken ? 0 : node->bytes;
        was_free = !node->is_taken;
        before = i;
        expected += node->bytes;
    }
    if (expected != region->start + region->bytes) {
        return "a region is not covered to its end";
    }
    return extents->takes_at && !bits_validate(&region->starts) ? "marks of starts are broken"
                                                                : NULL;
}

bool extents_validate(const struct extents *extents, const char **what)
{
    struct tally tally = {0};
    const char *breach = NULL;

    for (size_t i = 0; i < extents->region_count && breach == NULL; i++) {
        const struct extents_region *region = extents->regions[i];

        if (i > 0 &&
            extents->regions[i - 1]->start + extents->regions[i - 1]->bytes > region->start) {
            breach = "regions overlap or are out of order";
            break;
        }
        breach = check_region(extents, region, &tally);
    }
    if (breach == NULL) {
        breach = bins_check(extents, tally.free_count);
    }
    if (breach == NULL &&
        (tally.taken_count != extents->taken_count || tally.taken_bytes != extents->taken_bytes ||
         tally.free_bytes != extents->free_bytes)) {
        breach = "sums are wrong";
    }
    if (breach == NULL &&
        (tally.taken_count + tally.free_count + extents->unused_count != extents->node_count ||
         extents->by_start.count != tally.taken_count + tally.free_count)) {
        breach = "nodes are lost";
    }
    if (breach != NULL) {
        *what = breach;
    }
    return breach == NULL;
}

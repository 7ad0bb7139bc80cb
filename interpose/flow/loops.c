/* Nested loops, see loops.h: strongly connected components, by Tarjan's walk. */
#include "interpose/flow/loops.h"

#include <stdlib.h>
#include <string.h>

/* A walk over all blocks, with an element per block in each array. */
struct components {
    const struct ptx_graph *graph;
    const uint32_t *old; /* the loops that are taken apart */
    const bool *is_cut;
    uint32_t *number; /* in the order of the walk, from 1; 0: not reached */
    uint32_t *lowest; /* number that is reached from there */
    uint32_t *open;   /* blocks whose component is not known yet */
    uint32_t *path;
    uint32_t *next; /* way out of a block of the path */
    uint32_t open_count, path_count, count;
};

enum { ARRAYS = 7 };

static void release(struct loops *loops)
{
    free(loops->outermost);
    free(loops->memory);
    free(loops->is_cut);
}

capu_status loops_begin(struct ptx_graph *graph, struct loops *loops)
{
    size_t count = graph->block_count;

    *loops = (struct loops){graph, calloc(count + 1, sizeof(uint32_t)),
                            calloc(ARRAYS * (count + 1), sizeof(uint32_t)),
                            calloc(graph->successor_count + 1, sizeof(bool))};
    if (loops->outermost == NULL || loops->memory == NULL || loops->is_cut == NULL) {
        release(loops);
        return CAPU_NO_HOST_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        loops->outermost[i] = graph->blocks[i].loop;
    }
    return CAPU_OK;
}

void loops_end(struct loops *loops)
{
    for (size_t i = 0; i < loops->graph->block_count; i++) {
        loops->graph->blocks[i].loop = loops->outermost[i];
    }
    release(loops);
}

/* Finds a block by which each loop is entered: one with a way into it from outside. */
static void find_entries(const struct ptx_graph *graph, const uint32_t *old, uint32_t *entry)
{
    for (uint32_t i = 0; i < graph->block_count; i++) {
        entry[i] = PTX_NONE;
    }
    if (graph->block_count > 0 && old[0] != PTX_NONE) {
        entry[old[0]] = 0;
    }
    for (uint32_t i = 0; i < graph->block_count; i++) {
        const struct ptx_block *block = &graph->blocks[i];

        for (uint32_t j = 0; j < block->successor_count; j++) {
            uint32_t to = graph->successors[block->successor_first + j];

            if (to != graph->block_count && old[to] != PTX_NONE && old[to] != old[i] &&
                entry[old[to]] == PTX_NONE) {
                entry[old[to]] = to;
            }
        }
    }
    for (uint32_t i = 0; i < graph->block_count; i++) {
        if (old[i] == i && entry[i] == PTX_NONE) {
            entry[i] = i; /* nothing leads there */
        }
    }
}

/* Cuts the last way back to the entry of each loop. `last` has an element per block. */
static void cut(struct loops *loops, const uint32_t *old, const uint32_t *entry, uint32_t *last)
{
    const struct ptx_graph *graph = loops->graph;

    for (uint32_t i = 0; i < graph->block_count; i++) {
        last[i] = PTX_NONE;
    }
    for (uint32_t i = 0; i < graph->block_count; i++) {
        const struct ptx_block *block = &graph->blocks[i];

        for (uint32_t j = 0; old[i] != PTX_NONE && j < block->successor_count; j++) {
            if (graph->successors[block->successor_first + j] == entry[old[i]] &&
                !loops->is_cut[block->successor_first + j]) {
                last[old[i]] = block->successor_first + j;
            }
        }
    }
    for (uint32_t i = 0; i < graph->block_count; i++) {
        if (last[i] != PTX_NONE) {
            loops->is_cut[last[i]] = true;
        }
    }
}

static void reach(struct components *walk, uint32_t block)
{
    walk->number[block] = walk->lowest[block] = ++walk->count;
    walk->open[walk->open_count++] = block;
    walk->path[walk->path_count++] = block;
    walk->next[block] = 0;
}

/* Numbers the component of which `block` was reached first. True: it is a loop. */
static bool close_component(struct components *walk, uint32_t block, bool leads_to_itself)
{
    struct ptx_block *blocks = walk->graph->blocks;
    bool is_loop = walk->open[walk->open_count - 1] != block || leads_to_itself;
    uint32_t at;

    do {
        at = walk->open[--walk->open_count];
        blocks[at].loop = is_loop ? block : PTX_NONE;
        walk->lowest[at] = UINT32_MAX; /* known */
    } while (at != block);
    return is_loop;
}

/* Goes on at the end of the path. True: a loop was found. */
static bool step(struct components *walk)
{
    uint32_t at = walk->path[walk->path_count - 1];
    const struct ptx_block *block = &walk->graph->blocks[at];
    bool leads_to_itself = false;

    while (walk->next[at] < block->successor_count) {
        uint32_t way = block->successor_first + walk->next[at]++;
        uint32_t to = walk->graph->successors[way];

        if (to == walk->graph->block_count || walk->old[to] != walk->old[at] || walk->is_cut[way]) {
            continue;
        }
        if (walk->number[to] == 0) {
            reach(walk, to);
            return false;
        }
        if (walk->lowest[to] != UINT32_MAX && walk->number[to] < walk->lowest[at]) {
            walk->lowest[at] = walk->number[to];
        }
    }
    for (uint32_t i = 0; i < block->successor_count; i++) {
        leads_to_itself |= walk->graph->successors[block->successor_first + i] == at &&
                           !walk->is_cut[block->successor_first + i];
    }
    walk->path_count--;
    if (walk->path_count > 0) {
        uint32_t before = walk->path[walk->path_count - 1];

        if (walk->lowest[at] < walk->lowest[before]) {
            walk->lowest[before] = walk->lowest[at];
        }
    }
    return walk->lowest[at] == walk->number[at] && close_component(walk, at, leads_to_itself);
}

bool loops_open(struct loops *loops)
{
    struct ptx_graph *graph = loops->graph;
    size_t count = graph->block_count + 1;
    uint32_t *old = loops->memory;
    uint32_t *entry = old + count;
    struct components walk = {.graph = graph,
                              .old = old,
                              .is_cut = loops->is_cut,
                              .number = old + 2 * count,
                              .lowest = old + 3 * count,
                              .open = old + 4 * count,
                              .path = old + 5 * count,
                              .next = old + 6 * count};
    bool has_some = false;

    memset(loops->memory, 0, ARRAYS * count * sizeof(*loops->memory));
    for (uint32_t i = 0; i < graph->block_count; i++) {
        old[i] = graph->blocks[i].loop;
    }
    find_entries(graph, old, entry);
    cut(loops, old, entry, walk.lowest); /* which the walk sets anew */
    for (uint32_t i = 0; i < graph->block_count; i++) {
        graph->blocks[i].loop = PTX_NONE;
    }
    for (uint32_t i = 0; i < graph->block_count; i++) {
        if (old[i] != PTX_NONE && walk.number[i] == 0) {
            reach(&walk, i);
            while (walk.path_count > 0) {
                has_some |= step(&walk);
            }
        }
    }
    return has_some;
}

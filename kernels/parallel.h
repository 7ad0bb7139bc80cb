/*
 * A pool of threads that runs tiles.
 *
 * Work is split into tiles whose size never depends on the number of threads, and no tile reads
 * what another one writes. So results are the same for every number of threads, bit for bit. The
 * pool starts at its first use and lives until the process ends; nothing runs at exit.
 */
#ifndef CAPU_KERNELS_PARALLEL_H
#define CAPU_KERNELS_PARALLEL_H

#include <stddef.h>

/* Elements per tile of elementwise work: 64 KiB of floats, so that taking a tile costs little in
 * comparison. */
#define PARALLEL_TILE_ITEMS ((size_t)16384)

/* Computes tile `tile` of the work that `arguments` describes. */
typedef void (*parallel_function)(const void *arguments, size_t tile);

/* The items of one tile: first <= index < end. */
struct parallel_range {
    size_t first;
    size_t end;
};

/* Runs all tiles and returns when they are done. Any number of threads may call it at once. */
void parallel_run(size_t tile_count, parallel_function function, const void *arguments);

/*
 * The number of threads that work on tiles, including the caller: KERNELS_THREADS, or the number of
 * cores. `parallel_set_threads` changes it for later work, up to an internal limit.
 */
unsigned parallel_threads(void);
void parallel_set_threads(unsigned count);

static inline size_t parallel_tiles(size_t item_count, size_t tile_items)
{
    return item_count / tile_items + (item_count % tile_items != 0);
}

static inline struct parallel_range parallel_items(size_t tile, size_t tile_items,
                                                   size_t item_count)
{
    struct parallel_range range;
    range.first = tile * tile_items;
    range.end = item_count - range.first < tile_items ? item_count : range.first + tile_items;
    return range;
}

#endif

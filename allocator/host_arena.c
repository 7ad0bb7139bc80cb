/*
 * Host arena: see host_arena.h.
 *
 * Pinning a gigabyte takes about half a second, so memory is pinned in chunks and stays pinned
 * until the end. Chunks grow with the arena.
 *
 * The budget is a hard limit. If blocks had to be in one piece, tensors that fit by their sum could
 * still find no room. So a block is taken in one piece if possible, and else
 * gathered from the largest free extents, since every further extent costs the latency of one copy.
 *
 * A block that is given back stays taken in the extents until its position has completed
 * (waiting.h). The lists of further extents are recycled, so that a steady iteration allocates
 * nothing.
 *
 * The lock guards everything but `device` and `budget_bytes`, which are constant, and the lanes,
 * which only the context's thread uses. host_alloc runs outside of it; memory that is being pinned
 * already counts in `pledged_bytes`.
 */
#include "allocator/host_arena.h"

#include "allocator/extents.h"
#include "allocator/waiting.h"
#include "base/assert.h"

#include <pthread.h>
#include <stdlib.h>

#define ALIGNMENT UINT64_C(64) /* a cache line: copies of two blocks never share one */
/* Chunks grow with the arena, so that their number stays small. What is pinned and not used is lost
   to the machine, so a chunk adds a sixteenth at most; 1 GiB takes about half a second to pin, long
   enough to wait for. */
#define CHUNK_MIN (UINT64_C(4) << 20)
#define CHUNK_MAX (UINT64_C(1) << 30)
#define CHUNK_SHARE 16
/* With more than an eighth of the arena free, or about to be, nothing need be added. */
#define FREE_SHARE 8
#define LIST_CLASSES 48

struct chunk {
    struct chunk *next;
    void *address;
    uint64_t bytes;
};

/* The further extents of a scattered block; there is room for 2 to the power of `class_index`. */
struct extent_list {
    struct extent_list *next_made; /* in the list of all, which the arena frees in the end */
    struct extent_list *next_unused;
    unsigned class_index;
    struct host_extent extents[];
};

struct host_arena {
    struct device *device; /* the caller's; outlives the arena */
    uint64_t budget_bytes;
    pthread_mutex_t lock;
    struct chunk *chunks;
    uint64_t chunk_bytes;
    uint64_t pledged_bytes; /* chunk_bytes and what is being added: never above the budget */
    struct extents extents;
    uint64_t used_bytes; /* taken and not waiting */
    struct waiting waiting;
    struct extent_list *lists_made;
    struct extent_list *lists_unused[LIST_CLASSES];
};

/* For assertions. */
static inline bool is_sound(struct host_arena *arena)
{
    const char *what;

    return host_arena_validate(arena, &what);
}

static void lock(struct host_arena *arena)
{
    pthread_mutex_lock(&arena->lock);
}

static void unlock(struct host_arena *arena)
{
    pthread_mutex_unlock(&arena->lock);
}

static bool round_up(uint64_t bytes, uint64_t *rounded)
{
    if (bytes > UINT64_MAX - (ALIGNMENT - 1)) {
        return false;
    }
    *rounded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return true;
}

capu_status host_arena_create(struct device *device, uint64_t budget_bytes, struct host_arena **out)
{
    struct host_arena *arena = calloc(1, sizeof(*arena));
    capu_status status;

    if (arena == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    arena->device = device;
    arena->budget_bytes = budget_bytes;
    if (pthread_mutex_init(&arena->lock, NULL) != 0) {
        status = CAPU_NO_HOST_MEMORY;
        goto free_arena;
    }
    waiting_init(&arena->waiting);
    status = extents_init(&arena->extents, ALIGNMENT, false);
    if (status != CAPU_OK) {
        goto destroy_lock;
    }
    *out = arena;
    return CAPU_OK;

destroy_lock:
    pthread_mutex_destroy(&arena->lock);
free_arena:
    free(arena);
    return status;
}

void host_arena_destroy(struct host_arena *arena)
{
    if (arena == NULL) {
        return;
    }
    while (arena->lists_made != NULL) {
        struct extent_list *list = arena->lists_made;

        arena->lists_made = list->next_made;
        free(list);
    }
    while (arena->chunks != NULL) {
        struct chunk *chunk = arena->chunks;

        arena->chunks = chunk->next;
        device_host_free(arena->device, chunk->address, chunk->bytes);
        free(chunk);
    }
    waiting_finish(&arena->waiting);
    extents_finish(&arena->extents);
    pthread_mutex_destroy(&arena->lock);
    free(arena);
}

static struct extent_list *list_of(struct host_extent *extents)
{
    return (struct extent_list *)(void *)((char *)extents - offsetof(struct extent_list, extents));
}

static struct host_extent *list_take(struct host_arena *arena, size_t count)
{
    unsigned class_index = 0;
    struct extent_list *list;

    while ((size_t)1 << class_index < count) {
        class_index++;
    }
    if (class_index >= LIST_CLASSES) {
        return NULL;
    }
    list = arena->lists_unused[class_index];
    if (list != NULL) {
        arena->lists_unused[class_index] = list->next_unused;
        return list->extents;
    }
    list = malloc(sizeof(*list) + ((size_t)sizeof(list->extents[0]) << class_index));
    if (list == NULL) {
        return NULL;
    }
    list->class_index = class_index;
    list->next_made = arena->lists_made;
    arena->lists_made = list;
    return list->extents;
}

static void list_give(struct host_arena *arena, struct host_extent *extents)
{
    struct extent_list *list = list_of(extents);

    ASSERT(list->class_index < LIST_CLASSES);
    list->next_unused = arena->lists_unused[list->class_index];
    arena->lists_unused[list->class_index] = list;
}

/* Adds an extent to a block that is being gathered; `more` has room for a power of two. */
static bool append_extent(struct host_arena *arena, struct host_block *block,
                          struct host_extent extent)
{
    size_t more_count = block->extent_count - 1;

    if (block->extent_count == 0) {
        block->first = extent;
        block->extent_count = 1;
        return true;
    }
    if ((more_count & (more_count - 1)) == 0) { /* full, or none yet */
        struct host_extent *larger = list_take(arena, more_count + 1);

        if (larger == NULL) {
            return false;
        }
        for (size_t i = 0; i < more_count; i++) {
            larger[i] = block->more[i];
        }
        if (block->more != NULL) {
            list_give(arena, block->more);
        }
        block->more = larger;
    }
    block->more[more_count] = extent;
    block->extent_count++;
    return true;
}

static struct host_extent *extent_of(struct host_block *block, size_t index)
{
    return index == 0 ? &block->first : &block->more[index - 1];
}

static uint64_t start_of(const struct host_extent *extent)
{
    return (uint64_t)(uintptr_t)extent->address;
}

/* Gives back the extents of a block that could not be completed. */
static void scatter_undo(struct host_arena *arena, struct host_block *block)
{
    for (size_t i = 0; i < block->extent_count; i++) {
        extents_give(&arena->extents, start_of(extent_of(block, i)));
    }
    if (block->more != NULL) {
        list_give(arena, block->more);
    }
}

/* Gathers `bytes` from the largest free extents. Pre: that many are free. */
static capu_status scatter(struct host_arena *arena, uint64_t bytes, struct host_block *block)
{
    struct host_block gathered = {0};
    capu_status status;

    ASSERT(bytes <= arena->extents.free_bytes);
    while (bytes > 0) {
        struct extent taken;
        uint64_t used;

        status = waiting_reserve(&arena->waiting, &arena->extents, 1)
                     ? extents_take_some(&arena->extents,
                                         (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT, &taken)
                     : CAPU_NO_HOST_MEMORY;
        if (status != CAPU_OK) {
            goto undo;
        }
        used = taken.bytes < bytes ? taken.bytes : bytes;
        if (!append_extent(arena, &gathered,
                           (struct host_extent){(void *)(uintptr_t)taken.start, used})) {
            extents_give(&arena->extents, taken.start);
            status = CAPU_NO_HOST_MEMORY;
            goto undo;
        }
        bytes -= used;
    }
    *block = gathered;
    return CAPU_OK;

undo:
    scatter_undo(arena, &gathered);
    return status;
}

static capu_status take_locked(struct host_arena *arena, uint64_t bytes, uint64_t rounded,
                               bool in_pieces, struct host_block *block)
{
    uint64_t start;
    capu_status status;

    waiting_collect(&arena->waiting, &arena->extents);
    if (!waiting_reserve(&arena->waiting, &arena->extents, 1)) {
        return CAPU_NO_HOST_MEMORY;
    }
    if (rounded > arena->extents.free_bytes) {
        return CAPU_NOT_READY;
    }
    status = extents_take(&arena->extents, rounded, &start);
    if (status == CAPU_OK) {
        *block = (struct host_block){.first = {(void *)(uintptr_t)start, bytes}, .extent_count = 1};
    } else if (status == CAPU_NOT_READY && in_pieces) {
        status = scatter(arena, bytes, block);
    }
    if (status == CAPU_OK) {
        arena->used_bytes += rounded;
    }
    return status;
}

static capu_status take_block(struct host_arena *arena, uint64_t bytes, bool in_pieces,
                              struct host_block *block)
{
    uint64_t rounded;
    capu_status status;

    if (bytes == 0) {
        return CAPU_INVALID;
    }
    if (!round_up(bytes, &rounded)) {
        return CAPU_NOT_READY;
    }
    lock(arena);
    status = take_locked(arena, bytes, rounded, in_pieces, block);
    unlock(arena);
    ASSERT_EXPENSIVE(is_sound(arena));
    return status;
}

capu_status host_arena_take(struct host_arena *arena, uint64_t bytes, struct host_block *block)
{
    return take_block(arena, bytes, true, block);
}

capu_status host_arena_take_whole(struct host_arena *arena, uint64_t bytes,
                                  struct host_block *block)
{
    return take_block(arena, bytes, false, block);
}

void host_arena_give(struct host_arena *arena, struct host_block *block, struct lane_position after)
{
    bool is_past = lane_has_passed(after);

    lock(arena);
    for (size_t i = 0; i < block->extent_count; i++) {
        uint64_t start = start_of(extent_of(block, i));
        uint64_t bytes = extents_taken_at(&arena->extents, start);

        ASSERT(bytes > 0 && bytes <= arena->used_bytes);
        arena->used_bytes -= bytes;
        if (is_past) {
            extents_give(&arena->extents, start);
        } else {
            waiting_add(&arena->waiting, start, after);
        }
    }
    waiting_turn(&arena->waiting);
    if (block->more != NULL) {
        list_give(arena, block->more);
    }
    unlock(arena);
    *block = (struct host_block){0};
    ASSERT_EXPENSIVE(is_sound(arena));
}

bool host_arena_oldest(struct host_arena *arena, struct lane_position *position)
{
    bool is_any;

    /* Collects nothing: the caller would not learn that there is room now, and would give up. */
    lock(arena);
    is_any = waiting_oldest(&arena->waiting, position);
    unlock(arena);
    return is_any;
}

/* Reserves `pledged` bytes of the budget: a chunk of the usual size, or less, but at least `bytes`
   or the rest of the budget. */
static bool pledge(struct host_arena *arena, uint64_t bytes, uint64_t *pledged)
{
    uint64_t left;
    uint64_t usual;
    bool fits;

    lock(arena);
    left = arena->budget_bytes - arena->pledged_bytes;
    left -= left % ALIGNMENT;
    usual = arena->chunk_bytes / CHUNK_SHARE / CHUNK_MIN * CHUNK_MIN;
    usual = usual < CHUNK_MIN ? CHUNK_MIN : usual;
    usual = usual > CHUNK_MAX ? CHUNK_MAX : usual;
    usual = usual < left ? usual : left;
    fits = left > 0 && arena->used_bytes <= arena->budget_bytes &&
           bytes <= arena->budget_bytes - arena->used_bytes;
    *pledged = bytes > usual ? bytes : usual;
    *pledged = *pledged < left ? *pledged : left;
    if (fits) {
        arena->pledged_bytes += *pledged;
    }
    unlock(arena);
    return fits;
}

static void add_chunk(struct host_arena *arena, struct chunk *chunk)
{
    chunk->next = arena->chunks;
    arena->chunks = chunk;
    arena->chunk_bytes += chunk->bytes;
}

capu_status host_arena_grow(struct host_arena *arena, uint64_t bytes)
{
    uint64_t needed;
    uint64_t pledged;
    struct chunk *chunk;
    capu_status status;

    if (bytes == 0) {
        return CAPU_INVALID;
    }
    if (!round_up(bytes, &needed) || !pledge(arena, needed, &pledged)) {
        return CAPU_HOST_OVER_BUDGET;
    }
    chunk = malloc(sizeof(*chunk));
    if (chunk == NULL) {
        status = CAPU_NO_HOST_MEMORY;
        goto unpledge;
    }
    status = device_host_alloc(arena->device, pledged, &chunk->address);
    if (status == CAPU_NO_HOST_MEMORY && pledged > needed) {
        lock(arena);
        arena->pledged_bytes -= pledged - needed;
        unlock(arena);
        pledged = needed;
        status = device_host_alloc(arena->device, pledged, &chunk->address);
    }
    if (status != CAPU_OK) {
        goto free_chunk;
    }
    chunk->bytes = pledged;
    lock(arena);
    status = extents_add(&arena->extents, (uint64_t)(uintptr_t)chunk->address, pledged);
    if (status == CAPU_OK) {
        add_chunk(arena, chunk);
    }
    unlock(arena);
    if (status != CAPU_OK) {
        goto free_host;
    }
    return CAPU_OK;

free_host:
    device_host_free(arena->device, chunk->address, pledged);
free_chunk:
    free(chunk);
unpledge:
    lock(arena);
    arena->pledged_bytes -= pledged;
    unlock(arena);
    return status;
}

bool host_arena_is_wasteful(struct host_arena *arena)
{
    bool is_wasteful;

    lock(arena);
    is_wasteful = arena->chunk_bytes - arena->used_bytes > arena->chunk_bytes / FREE_SHARE;
    unlock(arena);
    return is_wasteful;
}

bool host_arena_is_short(struct host_arena *arena, uint64_t bytes)
{
    uint64_t free_bytes;
    bool is_short;

    lock(arena);
    free_bytes = arena->chunk_bytes - arena->used_bytes;
    is_short = free_bytes < bytes || free_bytes < arena->chunk_bytes / (2 * CHUNK_SHARE);
    unlock(arena);
    return is_short;
}

uint64_t host_arena_chunk_bytes(struct host_arena *arena)
{
    uint64_t bytes;

    lock(arena);
    bytes = arena->chunk_bytes;
    unlock(arena);
    return bytes;
}

uint64_t host_arena_used_bytes(struct host_arena *arena)
{
    uint64_t bytes;

    lock(arena);
    bytes = arena->used_bytes;
    unlock(arena);
    return bytes;
}

bool host_arena_validate(struct host_arena *arena, const char **what)
{
    const char *breach = NULL;
    uint64_t chunk_bytes = 0;
    uint64_t waiting_bytes;

    lock(arena);
    if (extents_validate(&arena->extents, &breach) &&
        waiting_validate(&arena->waiting, &arena->extents, &waiting_bytes, &breach) &&
        arena->used_bytes + waiting_bytes != arena->extents.taken_bytes) {
        breach = "used is wrong";
    }
    for (const struct chunk *chunk = arena->chunks; chunk != NULL; chunk = chunk->next) {
        chunk_bytes += chunk->bytes;
    }
    if (breach == NULL &&
        (chunk_bytes != arena->chunk_bytes || arena->chunk_bytes > arena->pledged_bytes ||
         arena->pledged_bytes > arena->budget_bytes ||
         arena->extents.taken_bytes + arena->extents.free_bytes != chunk_bytes)) {
        breach = "chunks do not add up";
    }
    unlock(arena);
    if (breach != NULL) {
        *what = breach;
    }
    return breach == NULL;
}

/* Extents that wait for work to complete: see waiting.h. */
#include "allocator/waiting.h"

#include "base/array.h"
#include "base/assert.h"

#include <stdlib.h>

#define NO_ENTRY SIZE_MAX

struct waiting_entry {
    uint64_t start; /* of the extent, taken until `after` has completed */
    struct lane_position after;
    uint64_t turn;
    size_t next; /* in its queue, or among the unused */
};

void waiting_init(struct waiting *waiting)
{
    *waiting = (struct waiting){.unused = NO_ENTRY};
}

void waiting_finish(struct waiting *waiting)
{
    free(waiting->entries);
    waiting_init(waiting);
}

bool waiting_reserve(struct waiting *waiting, const struct extents *extents, size_t count)
{
    size_t before = waiting->capacity;

    if (!array_reserve(&waiting->entries, &waiting->capacity, extents->taken_count + count,
                       sizeof(*waiting->entries))) {
        return false;
    }
    for (size_t i = before; i < waiting->capacity; i++) {
        waiting->entries[i].next = waiting->unused;
        waiting->unused = i;
    }
    return true;
}

static struct waiting_queue *queue_of(struct waiting *waiting, struct lane *lane)
{
    for (size_t i = 0; i < waiting->queue_count; i++) {
        if (waiting->queues[i].lane == lane) {
            return &waiting->queues[i];
        }
    }
    if (waiting->queue_count < WAITING_QUEUES) {
        struct waiting_queue *queue = &waiting->queues[waiting->queue_count++];

        *queue = (struct waiting_queue){.lane = lane, .first = NO_ENTRY, .last = NO_ENTRY};
        return queue;
    }
    return &waiting->queues[WAITING_QUEUES - 1];
}

void waiting_add(struct waiting *waiting, uint64_t start, struct lane_position after)
{
    struct waiting_queue *queue = queue_of(waiting, after.lane);
    size_t entry = waiting->unused;

    ASSERT(entry != NO_ENTRY);
    waiting->unused = waiting->entries[entry].next;
    waiting->entries[entry] = (struct waiting_entry){
        .start = start, .after = after, .turn = waiting->turn, .next = NO_ENTRY};
    if (queue->last != NO_ENTRY) {
        waiting->entries[queue->last].next = entry;
    } else {
        queue->first = entry;
    }
    queue->last = entry;
    waiting->count++;
}

void waiting_turn(struct waiting *waiting)
{
    waiting->turn++;
}

void waiting_collect(struct waiting *waiting, struct extents *extents)
{
    for (size_t i = 0; i < waiting->queue_count && waiting->count > 0; i++) {
        struct waiting_queue *queue = &waiting->queues[i];

        while (queue->first != NO_ENTRY && lane_has_passed(waiting->entries[queue->first].after)) {
            size_t entry = queue->first;

            queue->first = waiting->entries[entry].next;
            if (queue->first == NO_ENTRY) {
                queue->last = NO_ENTRY;
            }
            extents_give(extents, waiting->entries[entry].start);
            waiting->entries[entry].next = waiting->unused;
            waiting->unused = entry;
            waiting->count--;
        }
    }
}

bool waiting_oldest(const struct waiting *waiting, struct lane_position *position)
{
    const struct waiting_entry *oldest = NULL;

    for (size_t i = 0; i < waiting->queue_count; i++) {
        const struct waiting_queue *queue = &waiting->queues[i];

        if (queue->first != NO_ENTRY &&
            (oldest == NULL || waiting->entries[queue->first].turn < oldest->turn)) {
            oldest = &waiting->entries[queue->first];
        }
    }
    if (oldest != NULL) {
        *position = oldest->after;
    }
    return oldest != NULL;
}

/* NULL: nothing is wrong. */
static const char *check_queues(const struct waiting *waiting, const struct extents *extents,
                                uint64_t *waiting_bytes)
{
    size_t count = 0;
    size_t unused = 0;

    for (size_t i = 0; i < waiting->queue_count; i++) {
        size_t last = NO_ENTRY;

        for (size_t at = waiting->queues[i].first; at != NO_ENTRY; at = waiting->entries[at].next) {
            uint64_t bytes = extents_taken_at(extents, waiting->entries[at].start);

            if (bytes == 0 || ++count > waiting->count) {
                return "something waits that is not taken";
            }
            *waiting_bytes += bytes;
            last = at;
        }
        if (last != waiting->queues[i].last) {
            return "a queue ends wrongly";
        }
    }
    for (size_t at = waiting->unused; at != NO_ENTRY && unused <= waiting->capacity;
         at = waiting->entries[at].next) {
        unused++;
    }
    if (count != waiting->count || count + unused != waiting->capacity) {
        return "entries are lost";
    }
    return extents->taken_count > waiting->capacity ? "an extent would find no entry to wait in"
                                                    : NULL;
}

bool waiting_validate(const struct waiting *waiting, const struct extents *extents,
                      uint64_t *waiting_bytes, const char **what)
{
    const char *breach;

    *waiting_bytes = 0;
    breach = check_queues(waiting, extents, waiting_bytes);
    if (breach != NULL) {
        *what = breach;
    }
    return breach == NULL;
}

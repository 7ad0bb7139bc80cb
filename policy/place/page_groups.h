/*
 * What placement works on: the residencies of each tensor, and the pages, in groups with the same
 * holders. Owned by one thread.
 */
#ifndef CAPU_POLICY_PAGE_GROUPS_H
#define CAPU_POLICY_PAGE_GROUPS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "capuchin/status.h"
#include "policy/model/program.h"
#include "policy/model/timeline.h"

/*
 * Residencies: the intervals in which each tensor is in device memory in a steady iteration of a
 * plan, by issue order and by time.
 *
 * A position is an index into the records of the timeline, a time is in ns from the begin of the
 * iteration. Both are circular: a tensor that is resident over the iteration border has its last
 * residency end beyond the turn (at `to` of the next iteration plus residencies.turn, `end` plus
 * residencies.turn_ns).
 */
struct residency {
    uint32_t from; /* issue position of what makes it resident */
    uint32_t to;   /* issue position of its release */
    int64_t start; /* when that starts; if it may start later, half as late */
    int64_t end;   /* when its memory is usable again */
};

struct residencies {
    uint32_t *first; /* per tensor, plus one: its residencies start at first[t], by `from` */
    struct residency *list;
    uint8_t *is_always; /* per tensor: resident all the time, without residencies */
    uint32_t turn;      /* records of an iteration */
    int64_t turn_ns;    /* the iteration's time */
};

/* Pre: `timeline` was made with records, of the program of a valid plan. Errors: NO_HOST_MEMORY; on
 * failure zeroed. */
capu_status residencies_init(struct residencies *residencies, const struct program *program,
                             const struct timeline *timeline);
void residencies_finish(struct residencies *residencies);

static inline uint32_t residencies_count(const struct residencies *residencies, uint32_t tensor)
{
    return residencies->first[tensor + 1] - residencies->first[tensor];
}

/*
 * Pages during a sweep over the issue order of an iteration. Pages with the same holders so far
 * form a group; a group is split when a tensor takes only part of it. So the work depends on the
 * number of tensors, not of pages. Before the sweep begins, a tensor may take any group.
 *
 * A busy group is in a heap until its holder is released. A free one is in one list per record of
 * the timeline at which its next holder comes (in the next iteration, if none comes in this one),
 * and a set tells which lists are not empty: a tensor finds first the groups that are needed again
 * soonest after it, and mostly looks at no others. The last list is for unused pages.
 */

#define NO_GROUP UINT32_MAX

/* In 40 bytes: placing reads many of them. */
struct page_group {
    uint32_t first; /* page */
    uint32_t count;
    struct residency *residencies; /* of its holders, by `from`; past ones may be missing */
    size_t residency_capacity;
    uint32_t residency_count;
    uint32_t begun;    /* how many of them have begun */
    uint32_t next;     /* in the list of free groups, or NO_GROUP */
    uint32_t previous; /* the same */
};

struct page_groups_busy {
    uint32_t to;
    uint32_t group;
};

struct page_groups {
    const struct residencies *residencies; /* of the current plan: borrowed */
    struct page_group *list;
    uint32_t count;
    size_t capacity;
    uint32_t made; /* slots that have been in use: they keep their memory */
    struct page_groups_busy *busy;
    uint32_t busy_count;
    size_t busy_capacity;
    uint32_t *free; /* per list: its first group */
    size_t free_capacity;
    struct bits filled; /* lists that are not empty */
    uint32_t list_count;
    bool is_sweeping;
};

/* Zeroed is empty. `residencies` stays valid until the next reset. Errors: NO_HOST_MEMORY. */
capu_status page_groups_reset(struct page_groups *groups, const struct residencies *residencies);
void page_groups_finish(struct page_groups *groups);

/* Adds unused pages. Errors: NO_HOST_MEMORY. */
capu_status page_groups_add(struct page_groups *groups, uint32_t first, uint32_t count);
/* Adds pages of a tensor that is resident at the iteration border, but not all the time. */
capu_status page_groups_add_held(struct page_groups *groups, uint32_t first, uint32_t count,
                                 uint32_t tensor);

/* Begins the sweep, at the iteration border: pages of what is resident there are busy. Pre: no
   sweep has begun since the last reset. */
void page_groups_begin_sweep(struct page_groups *groups);

/* Moves the sweep to this record: groups whose holder has left are free, those whose next holder
   has come are busy. Pre: the sweep has begun. */
void page_groups_advance(struct page_groups *groups, uint32_t now);

/* The first list from this one on that is not empty; list_count if there is none. */
uint32_t page_groups_find(const struct page_groups *groups, uint32_t list);

/* Can the tensor, whose first residency begins now if there is a sweep, have that free group?
   *late: ns that it, or tensors after it, would wait. *gap: records from the end of its first
   residency to the next holder. */
bool page_groups_fit(const struct page_groups *groups, uint32_t group, uint32_t tensor,
                     int64_t *late, uint32_t *gap);

/* Gives the first `count` pages of a free group to the tensor. Pre: the group has as many. Errors:
   NO_HOST_MEMORY. */
capu_status page_groups_take(struct page_groups *groups, uint32_t group, uint32_t count,
                             uint32_t tensor);

/* Pages that are still unused. */
uint64_t page_groups_untouched(const struct page_groups *groups);

#endif

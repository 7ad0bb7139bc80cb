/*
 * Residencies: the intervals in which each tensor is in device memory in a steady iteration of a
 * plan, by issue order and by time. Placement works on them.
 *
 * A position is an index into the records of the timeline, a time is in ns from the begin of the
 * iteration. Both are circular: a tensor that is resident over the iteration border has its last
 * residency end beyond the turn (at `to` of the next iteration plus residencies.turn, `end` plus
 * residencies.turn_ns).
 */
#ifndef CAPU_POLICY_RESIDENCIES_H
#define CAPU_POLICY_RESIDENCIES_H

#include <stdint.h>

#include "capuchin/status.h"
#include "policy/model/program.h"
#include "policy/model/timeline.h"

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

#endif

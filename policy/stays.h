/*
 * Residencies: from where to where, and from when to when, each tensor is in device memory in a
 * steady iteration of a plan. Placement is made of them.
 *
 * A place is an index into the records of the timeline, a time is in ns from the iteration's begin.
 * Both go round: what is resident over the iteration border comes last among a tensor's stays and
 * ends beyond the turn (at `to` of the next iteration plus stays.turn, `end` plus stays.turn_ns).
 */
#ifndef CAPU_POLICY_STAYS_H
#define CAPU_POLICY_STAYS_H

#include <stdint.h>

#include "capuchin/status.h"
#include "policy/timeline.h"
#include "policy/uses.h"

struct stay {
    uint32_t from; /* issued: what brings it in */
    uint32_t to;   /* issued: its release */
    int64_t start; /* when what brings it in starts; where that may be later, half as late */
    int64_t end;   /* when its memory is usable again */
};

struct stays {
    uint32_t *first; /* per tensor, one more at the end: its stays are first[t] up, by `from` */
    struct stay *list;
    uint8_t *is_always; /* per tensor: resident all the time, without stays */
    uint32_t turn;      /* records of an iteration */
    int64_t turn_ns;    /* the iteration's time */
};

/* `timeline` has the records of a valid plan. Errors: NO_HOST_MEMORY; on failure zeroed. */
capu_status stays_init(struct stays *stays, const struct uses *uses,
                       const struct timeline *timeline);
void stays_finish(struct stays *stays);

static inline uint32_t stays_count(const struct stays *stays, uint32_t tensor)
{
    return stays->first[tensor + 1] - stays->first[tensor];
}

#endif

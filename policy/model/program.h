/*
 * A trace and a plan merged: what is issued in one iteration, in issue order, with implicit
 * releases written out, and the pages of each tensor. Whoever works on a plan takes its program, so
 * that a plan is merged once: the validator, the timeline, the placer, and the runtime.
 */
#ifndef CAPU_POLICY_PROGRAM_H
#define CAPU_POLICY_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error_text.h"
#include "capuchin/status.h"
#include "policy/format/plan.h"
#include "policy/model/placement.h"
#include "policy/model/trace_index.h"

struct item {
    uint32_t kind;    /* enum action_kind; never a recompute: its replays are listed instead */
    uint32_t subject; /* op or tensor */
    uint32_t point;   /* the op it precedes, is, or follows */
};

/* Whether the subject is an op that runs, for the first time or again; else it is a tensor. */
static inline bool item_is_run(const struct item *item)
{
    return item->kind == ACTION_OP || item->kind == ACTION_REPLAY;
}

struct program {
    const struct trace_index *trace_index; /* borrowed: outlives this */
    const struct plan *plan;               /* the same; its actions may change: they are copied */
    struct item *items;
    uint32_t count;
    uint8_t *starts_on_host; /* per tensor: persistent, and its first event is a prefetch */
    struct placement placement;
};

/*
 * Errors: those of placement_init, INVALID (an action names a tensor or op that does not exist, or
 * a tensor that is not managed, or a replay of an op that is not replayable or not earlier),
 * NO_HOST_MEMORY. On failure zeroed.
 */
capu_status program_init(struct program *program, const struct trace_index *trace_index,
                         const struct plan *plan, struct error_text *error);
void program_finish(struct program *program);

/* Reads the plan's place lines again, which have changed. Errors: those of placement_init; there is
   no placement then. */
capu_status program_place(struct program *program, struct error_text *error);

#endif

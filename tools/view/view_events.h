/*
 * What a view is built from: an iteration as a list of events in order of issue, each with its
 * times. The simulation and the report of a run both become such a list, and one function makes the
 * view of it, so that planned and measured views mean the same.
 */
#ifndef CAPU_TOOLS_VIEW_EVENTS_H
#define CAPU_TOOLS_VIEW_EVENTS_H

#include "tools/view/view.h"

enum view_event_kind {
    EVENT_OP,
    EVENT_REPLAY,
    EVENT_OUT,  /* a copy to the host */
    EVENT_IN,   /* a copy back */
    EVENT_TAKE, /* a tensor takes its memory, for the next event that touches it */
    EVENT_GIVE, /* a tensor gives its memory up, for now: an eviction */
    EVENT_END   /* the same for good */
};

struct view_event {
    enum view_event_kind kind;
    uint32_t subject; /* the number of the op, or the tensor */
    uint32_t point;   /* the number of the op before which it is issued, or which it is */
    uint32_t method; /* EVENT_GIVE: enum capu_method. EMPTY becomes RECOMPUTE if a replay brings the
                        contents back */
    enum view_wait wait;
    int64_t begin_ns; /* of those that take time */
    int64_t end_ns;
    uint64_t wait_ns;
    uint64_t waited_ns; /* EVENT_OP: for others, between begin and end */
};

/* Where a tensor is when the iteration begins. */
struct view_start {
    bool is_on_device;
    bool is_on_host;  /* and not on the device */
    int64_t ready_ns; /* on the device: a copy in of the iteration before ends then; 0: none is
                         under way */
    int64_t saved_ns; /* the same of a copy out */
    int64_t free_ns;  /* not on the device: its memory is free from then; 0: it is free */
};

struct view_events {
    const struct trace_index *trace_index;
    uint64_t time_ns;
    uint64_t fixed_bytes;
    uint64_t *held_bytes;      /* per tensor: while it is on the device; 0: always resident */
    struct view_start *starts; /* per tensor */
    struct view_event *events;
    uint32_t count;
};

/*
 * Fills in everything of a view but what only the caller knows: source, iteration, mode, budget,
 * peak and link. Pre: events name ops and tensors that exist.
 * Errors: NO_HOST_MEMORY. On failure the view is zeroed.
 */
capu_status view_build(struct view *view, struct view_events *events, struct error_text *error);

/*
 * Writes the stays, in the order in which they end, the moves, the copies, and the ops with their
 * waits. Pre: names, ops, op_of_number, copies and tensors are allocated. Called by
 * view_build. Errors: NO_HOST_MEMORY.
 */
capu_status view_walk(struct view *view, const struct view_events *events);

#endif

/*
 * A view: one iteration as pictures show it. The HTML page, the timeline for profilers and every
 * other picture read this struct and nothing else, so they agree with each other.
 *
 * A view is either planned or measured, as `source` says, and never a mixture: a planned one is the
 * simulation of a trace under a plan (view_plan.c), a measured one is what a run recorded. To
 * compare the two, hold one of each; their ops and tensors have the same numbers if `trace_name`,
 * `op_count` and `tensor_count` are equal and the run followed the plan.
 *
 * Times are in nanoseconds from the beginning of the iteration. Ops lie within [0, time_ns]. A copy
 * may begin before 0, because it waits for nothing that this iteration does, and end after time_ns,
 * while the next iteration runs. Stays and samples are clipped to [0, time_ns]. Copies of the
 * iteration before that still run at 0 belong to that one and are not listed here; stays show what
 * they do.
 *
 * Bytes held are whole pages; bytes copied are what is copied. `fixed_bytes` are held all the time
 * and belong to no stay: slabs, shared pages and tensors that are not managed.
 *
 * All arrays belong to the view, and all strings lie in `names`. Owned by one thread; nothing in it
 * changes once it is built.
 */
#ifndef CAPU_TOOLS_VIEW_H
#define CAPU_TOOLS_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error_text.h"
#include "capuchin/report.h"
#include "capuchin/status.h"
#include "policy/format/plan.h"
#include "policy/model/trace_index.h"

#define VIEW_NONE UINT32_MAX /* no such op, copy, move, ... */

enum view_source { VIEW_PLANNED, VIEW_MEASURED };

/*
 * What a tensor is for. The first six are what the program has said, or the trace. Programs need
 * not say it: an activation that outlives the iteration is then `persistent`; and if a trace has
 * activations only, nothing was said, and all kinds are by life: `persistent`, `carried` from
 * forward to backward (alive at the peak of the unlimited run, and at another op besides), or
 * `short`.
 */
enum view_kind {
    VIEW_PARAMETERS,
    VIEW_OPTIMIZER,
    VIEW_GRADIENTS,
    VIEW_ACTIVATIONS,
    VIEW_WORKSPACE,
    VIEW_INPUTS,
    VIEW_PERSISTENT,
    VIEW_CARRIED,
    VIEW_SHORT,
    VIEW_KIND_COUNT
};

/* Why an op or a copy began later than its engine fell idle. */
enum view_wait {
    VIEW_WAIT_NOTHING,
    VIEW_WAIT_TENSOR,  /* an operand was still coming */
    VIEW_WAIT_MEMORY,  /* no free memory */
    VIEW_WAIT_SAVE,    /* an operand that it writes was still being copied out */
    VIEW_WAIT_COMPUTE, /* copies: for an op */
    VIEW_WAIT_HOST,    /* copies in: for the copy out */
    VIEW_WAIT_UNKNOWN, /* measured: for a tensor or for memory */
    VIEW_WAIT_COUNT
};

/* Where a tensor is. Stays of one tensor do not overlap. Where there is none, it has no contents
   that will be used. */
enum view_state {
    VIEW_RESIDENT,
    VIEW_LEAVING, /* being copied out after its last access */
    VIEW_ON_HOST,
    VIEW_COMING,   /* being copied in */
    VIEW_DROPPED,  /* discarded, and recomputed later */
    VIEW_REPLAYED, /* being recomputed */
    VIEW_STATE_COUNT
};

enum view_direction { VIEW_OUT, VIEW_IN };

struct view_tensor {
    const char *name;
    uint64_t bytes;
    uint64_t held_bytes; /* of device memory while it is there; 0: always resident */
    enum view_kind kind;
    uint64_t waited_ns;    /* compute waited for its copies in, as far as attributable to it */
    uint64_t copied_bytes; /* out and in */
    uint32_t first_stay;   /* its stays are stays[first_stay] up, by time */
    uint32_t stay_count;
};

/* An op, or an op that runs again. */
struct view_op {
    const char *name;
    const char *segment; /* "": none */
    uint32_t number;     /* of the op in program order; of a replay: of the op that runs again */
    uint32_t before;     /* a replay: the op on whose behalf it runs; else `number` */
    bool is_replay;
    int64_t begin_ns;
    int64_t end_ns;
    uint64_t
        wait_ns; /* compute stood still before it, waiting for memory; all add up to stall_ns */
    enum view_wait wait;
    uint64_t waited_ns;       /* of the time that it ran it waited for others, not computing */
    uint64_t unlimited_bytes; /* what an unlimited run holds while it runs (the ghost) */
};

struct view_copy {
    enum view_direction direction;
    uint32_t tensor;
    uint64_t bytes;
    int64_t begin_ns;
    int64_t end_ns;
    uint64_t wait_ns; /* planned: its engine was idle before it */
    enum view_wait wait;
    uint32_t
        issue;     /* number of the op before which it was issued; op numbers end at number_count */
    uint32_t move; /* the eviction, or the return, that it is for */
};

/* A tensor leaves, and comes back: an eviction and its return. Either half may be missing, where it
   belongs to the iteration before or after. */
struct view_move {
    uint32_t tensor;
    uint32_t method; /* enum capu_method */
    int64_t left_ns; /* its memory is free from here; valid if has_left */
    bool has_left;
    uint32_t copy_out;   /* index of the copy; VIEW_NONE: not copied */
    uint32_t in_trigger; /* number of the op before which the return was issued; VIEW_NONE: none */
    uint32_t copy_in;    /* index of the copy; VIEW_NONE: not copied */
    uint32_t replay;     /* index of the replay in `ops` that recomputes it; VIEW_NONE: none */
    uint32_t back_op;    /* number of the op that accesses it next (its back-access); VIEW_NONE */
    uint64_t wait_ns;    /* compute waited at the back-access for this tensor */
};

struct view_stay {
    uint32_t tensor;
    enum view_state state;
    int64_t begin_ns;
    int64_t end_ns;
};

/* Bytes held from this moment to the next sample. */
struct view_sample {
    int64_t begin_ns;
    uint64_t held_bytes; /* in total: fixed_bytes and the sum over the kinds */
    uint64_t by_kind[VIEW_KIND_COUNT];
};

struct view {
    enum view_source source;
    const char *trace_name; /* or the label */
    uint64_t iteration;     /* measured: its number */
    const char *mode;       /* "guided" or "passive" */

    uint64_t time_ns;
    uint64_t ideal_ns; /* sum of the times of ops, without replays and without waiting for others */
    uint64_t waited_ns; /* sum of all waited_ns of ops */
    uint64_t replay_ns;
    uint64_t stall_ns;  /* sum of all wait_ns of ops and replays */
    uint64_t out_bytes; /* sums of the copies */
    uint64_t in_bytes;
    uint64_t budget_bytes;
    uint64_t peak_bytes; /* the most held in order of issue, as reports have it. Over time it can
                            be more, up to the budget: what is being copied out is held until the
                            copy ends, though room was made for what is issued next */
    uint64_t fixed_bytes;
    uint64_t unlimited_peak_bytes; /* the most of unlimited_bytes */
    uint64_t floor_bytes;          /* the smallest budget in which the iteration can run */
    const char *floor_op;          /* the op that sets it; "": none */
    uint64_t d2h_bytes_per_s;      /* the link as assumed; 0: not known */
    uint64_t h2d_bytes_per_s;

    struct view_op *ops; /* ops and replays in the order in which they run */
    uint32_t op_count;
    uint32_t number_count;    /* ops without replays */
    uint32_t *op_of_number;   /* index in `ops` of each number */
    struct view_copy *copies; /* in order of issue */
    uint32_t copy_count;
    struct view_move *moves; /* in the order in which the tensors left, or else came back */
    uint32_t move_count;
    struct view_tensor *tensors;
    uint32_t tensor_count;
    struct view_stay *stays; /* by tensor, then by time */
    uint32_t stay_count;
    struct view_sample *samples; /* by time; the first is at 0 */
    uint32_t sample_count;
    char *names;
};

/*
 * The simulation of a plan: its fourth iteration, which stands for every steady one. `machine`
 * NULL: the trace's own. Pre: trace_index is for the plan's page size, and the plan is valid for
 * it. Nothing of the arguments is kept. Errors: INVALID (no machine), TOO_LARGE (times beyond 2^62
 * ns), NO_HOST_MEMORY. On failure zeroed.
 */
capu_status view_of_plan(struct view *view, const struct trace_index *trace_index,
                         const struct plan *plan, const struct machine *machine,
                         struct error_text *error);

/*
 * The measured view of one iteration from its timeline, one line of a report file; `file` and
 * `number` are that file's name and the line's number, for messages, which name the field, too.
 * floor_bytes is for the page in use, not for the page of the report's floor.
 * Errors: FILE_FAILED (not a timeline that this version reads), TOO_LARGE, NO_HOST_MEMORY. On
 * failure zeroed.
 */
capu_status view_of_timeline(struct view *view, const char *file, size_t number, const char *text,
                             size_t length, struct error_text *error);

/* Frees everything. A zeroed view is fine. */
void view_finish(struct view *view);

/* "parameters", "on host", "copied out" and so on. Constants. */
const char *view_source_name(enum view_source source);
const char *view_kind_name(enum view_kind kind);
const char *view_state_name(enum view_state state);
const char *view_wait_name(enum view_wait wait);
const char *view_method_name(uint32_t method);

#endif

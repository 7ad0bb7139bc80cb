/*
 * A guide: a plan compiled for carrying out, in flat arrays indexed by op.
 *
 * It holds what the recorded iteration's ops were, so that the next iteration can be compared op by
 * op, and what the plan does before and after each. Pages are numbers here; installing binds them
 * to pages of the device (install.c). Nothing in it points to a tensor of the context unless it is
 * installed: a kept guide outlives what is freed.
 *
 * Made on the context's thread (guide_create), completed on any (guide_compile), then the context
 * thread's again.
 */
#ifndef CAPU_RUNTIME_GUIDE_H
#define CAPU_RUNTIME_GUIDE_H

#include "policy/plan.h"
#include "policy/trace_index.h"
#include "runtime/tracker.h"

/* A stretch of one of the guide's arrays. */
struct guide_part {
    uint32_t first;
    uint32_t count;
};

struct guide_item {
    uint32_t kind;              /* enum action_kind: all but an op and a recompute */
    uint32_t subject;           /* tensor; of a replay, op */
    bool is_owed;               /* a drop: a replay of the plan makes it again */
    bool is_filled;             /* a drop: known zeros are filled in next */
    bool is_begun;              /* a drop: a part is written next, then of nothing */
    bool is_older;              /* a drop: of what was there before the iteration */
    struct guide_part previous; /* tensors that had the pages it takes before */
};

struct guide_access {
    uint32_t tensor;
    uint32_t role;       /* as recorded: CAPU_READ, CAPU_WRITE or CAPU_UPDATE */
    bool needs_contents; /* an update of nothing does not */
    bool is_partial;     /* a part is written */
    uint64_t version;    /* that it read or made in this iteration */
};

struct guide_op {
    struct call call; /* its operand list lies in operands */
    bool is_replayable;
    struct guide_part accesses;
    struct guide_part cleared; /* ranges cleared before it, also when it is replayed */
    struct guide_part before;  /* items */
    struct guide_part after;
    struct guide_part previous; /* tensors that had the pages its writes take before */
    bool is_followed;           /* a copy out starts behind it */
    uint64_t ns;                /* as planned with */
    uint64_t seen_ns;           /* sum over the iterations sampled */

    const void *arguments; /* of this iteration's run */
    uint64_t duration_ns;
};

struct guide_tensor {
    const void *address;
    uint64_t bytes;    /* of the whole tensor */
    size_t page_count; /* 0: always resident */
    const char *name;  /* interned, or NULL */
    bool is_split;
    bool is_transient; /* by its description */
    bool is_kept;      /* to the iteration's end; others are dead behind their last access */
    bool starts_resident;
    bool is_copied; /* needs a host block */
    uint32_t
        zeroed_op; /* capu_zero ended its contents before this op at the latest; 0: it did not */
    struct guide_part runs;

    bool is_arriving;      /* its install brought it back: that copy is none of the plan's */
    struct tensor *tensor; /* while installed, and while its iteration goes on without the plan;
                              NULL: always resident, or gone */
    uint64_t version;      /* for recovery: that the plan's ops made or read last; of one that is
                              always resident and freed, that its memory holds */
    uint32_t maker;        /* for recovery: the op that made its newest version, plus one */
    bool is_source;        /* for recovery: to be overwritten only behind replays still to come */
};

struct guide {
    const char *label; /* interned */
    uint64_t signature;
    uint64_t used;     /* iteration of last use */
    uint32_t failures; /* installs that failed, or trouble while it was carried out */
    bool is_wrong;     /* given up: discarded before the next iteration */

    struct guide_tensor *tensors;
    uint32_t tensor_count;
    struct guide_op *ops;
    uint32_t op_count;
    struct guide_access *accesses;
    capu_operand *operands;
    struct record_range *cleared;

    struct guide_item *items;
    uint32_t *previous; /* tensors */
    struct plan_run *runs;
    uint32_t page_count; /* pages it needs */
    device_page *pages;  /* while installed: the page behind each number */
    uint32_t *stack;     /* for recovery: room for every tensor */

    uint64_t predicted_ns;
    uint64_t ideal_ns;
    uint64_t replay_ns;
    uint64_t measured_ns; /* an iteration, over the last window; 0: none yet */

    /* Feedback: what the iterations of the present window took. */
    uint32_t settling;    /* iterations to come before times are those of a steady one */
    uint32_t to_time;     /* iterations to come whose ops are timed */
    uint64_t since_timed; /* iterations begun since the last one whose ops are timed */
    uint32_t strays;      /* iterations in a row that took another time than measured_ns */
    uint32_t sampled;
    uint32_t window;
    uint32_t round; /* how many plans this one improved on */
    uint64_t seen_ns;
    uint64_t seen_stall_ns;
    uint32_t link_percent; /* of the measured link rates, as planned with */

    uint32_t next; /* op to come, in an iteration under way */
};

/* What the record's iteration did, without a plan yet. NO_HOST_MEMORY. */
capu_status guide_create(const struct record *record, struct guide **out);
void guide_destroy(struct guide *guide);

/* Fills in what the plan does. `trace_index` is that of the trace built from the same record, for
   a plan. Errors: INVALID (not a placed plan of it), NO_HOST_MEMORY. */
capu_status guide_compile(struct guide *guide, const struct trace_index *trace_index,
                          const struct plan *plan, struct error_text *error);

#endif

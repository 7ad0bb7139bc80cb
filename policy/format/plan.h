/*
 * A plan in memory: what the memory manager does about a trace under a budget. Actions in file
 * order, flat arrays that only grow. A plan may hold anything; validate_plan says whether it fits a
 * trace. Owned by one thread.
 */
#ifndef CAPU_POLICY_PLAN_H
#define CAPU_POLICY_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error_text.h"
#include "capuchin/status.h"
#include "policy/format/string_buffer.h"

#define PLAN_BYTES_MAX ((uint64_t)1 << 52)
#define PLAN_PAGES_MAX 16777216 /* page numbers stay below */

/*
 * What is done in an iteration. A plan lists the first five. A program (program.h), and what the
 * runtime makes of it, lists everything in issue order: the ops, and each op of a recompute as a
 * replay of its own.
 */
enum action_kind {
    ACTION_EVICT,
    ACTION_SAVE,
    ACTION_DROP,
    ACTION_PREFETCH,
    ACTION_RECOMPUTE,
    ACTION_OP,
    ACTION_REPLAY,
    ACTION_RELEASE, /* a transient's own, after its last access; nothing if it is not resident */
    ACTION_KIND_COUNT
};

struct plan_action {
    uint32_t kind;   /* enum action_kind */
    uint32_t tensor; /* of all but recompute */
    uint32_t point;  /* the op it comes before (prefetch, recompute) or after (the others) */
    uint32_t first;  /* recompute: its replays */
    uint32_t count;
};

struct plan_replay {
    uint32_t op;
    uint32_t first_drop; /* tensors given back after it */
    uint32_t drop_count;
};

struct plan_run {
    uint32_t first; /* page */
    uint32_t count;
};

struct plan_place {
    uint32_t tensor;
    uint32_t first; /* its runs of pages */
    uint32_t count;
};

#define PLAN_COUNT_UNKNOWN UINT32_MAX

struct plan {
    char *trace; /* the name of the trace that it is for; owned */
    uint32_t
        trace_tensors; /* how many that trace has; PLAN_COUNT_UNKNOWN in files of older versions */
    uint32_t trace_ops;
    uint64_t budget_bytes;
    uint64_t page_bytes; /* 1 when left out */
    uint64_t fixed_bytes;
    uint64_t host_bytes; /* UINT64_MAX: no limit */

    struct plan_action *actions;
    uint32_t action_count;
    size_t action_capacity;
    struct plan_replay *replays;
    uint32_t replay_count;
    size_t replay_capacity;
    uint32_t *drops;
    uint32_t drop_count;
    size_t drop_capacity;
    struct plan_place *places;
    uint32_t place_count;
    size_t place_capacity;
    struct plan_run *runs;
    uint32_t run_count;
    size_t run_capacity;
};

/* An empty plan for a trace of which only the name is known. On failure it is zeroed. Errors:
   NO_HOST_MEMORY. */
capu_status plan_init(struct plan *plan, const char *trace, uint64_t budget_bytes,
                      uint64_t page_bytes);
/* An empty plan with the header of another. Errors as above. */
capu_status plan_init_like(struct plan *plan, const struct plan *other);
/* A plan with the contents of another. Errors as above. */
capu_status plan_copy(struct plan *plan, const struct plan *other);
void plan_finish(struct plan *plan);
/* Forgets actions and places, keeps header and memory. */
void plan_clear(struct plan *plan);
/* Forgets the places alone. */
void plan_clear_places(struct plan *plan);

/* Each appends. plan_add_replay belongs to the recompute added last, plan_add_drop to the replay
   added last, plan_add_run to the place added last. Pre: there is one. Errors: TOO_LARGE,
   NO_HOST_MEMORY. */
capu_status plan_add(struct plan *plan, enum action_kind kind, uint32_t tensor, uint32_t point);
capu_status plan_add_recompute(struct plan *plan, uint32_t before);
capu_status plan_add_replay(struct plan *plan, uint32_t op);
capu_status plan_add_drop(struct plan *plan, uint32_t tensor);
capu_status plan_add_place(struct plan *plan, uint32_t tensor);
capu_status plan_add_run(struct plan *plan, uint32_t first, uint32_t count);

/* "evict" and so on. A constant. */
const char *action_kind_name(enum action_kind kind);

/* Appends the plan as JSON lines. Errors: INVALID (the name is not UTF-8),
   NO_HOST_MEMORY. */
capu_status plan_write(const struct plan *plan, struct string_buffer *text,
                       struct error_text *error);

/* As trace_read and trace_load. The fields of each line are checked; whether the plan fits a trace
   is checked by validate.c. */
capu_status plan_read(struct plan *plan, const char *file, const char *data, size_t length,
                      struct error_text *error);
capu_status plan_load(struct plan *plan, const char *path, struct error_text *error);

#endif

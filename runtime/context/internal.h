/*
 * The inside of a context, for the files of this room only.
 *
 * struct capu_context puts the parts together; each part has a header of its own, and README.md
 * lists them. All of it is owned by the thread that calls the library; agent.h says what the
 * agent's thread sees.
 */
#ifndef CAPU_RUNTIME_INTERNAL_H
#define CAPU_RUNTIME_INTERNAL_H

#include "capuchin/capuchin.h"
#include "device/marks.h"
#include "runtime/context/agent.h"
#include "runtime/context/failure.h"
#include "runtime/context/fork_mark.h"
#include "runtime/context/settings.h"
#include "runtime/context/structs.h"
#include "runtime/guide/guided.h"
#include "runtime/iteration/iteration_state.h"
#include "runtime/lanes/graph.h"
#include "runtime/lanes/lanes.h"
#include "runtime/plan/plans.h"
#include "runtime/record/records.h"
#include "runtime/residency/residency.h"
#include "runtime/tensor/call.h"
#include "runtime/tensor/memory.h"
#include "runtime/tensor/tensor_state.h"

/* A tensor that an op touches, after its operands have been resolved and merged. */
struct access {
    struct tensor *tensor;
    uint32_t role;     /* CAPU_READ, CAPU_WRITE, CAPU_UPDATE or CAPU_SCRATCH */
    bool is_read;      /* some operand reads its contents */
    bool is_partial;   /* only a part is written: other contents, if any, are kept */
    uint32_t recorded; /* when the op ends: its role in the record */
    uint64_t checksum; /* of a tensor that is only read, before the op: strict_watch.c */
};

/* The part of an operand that lies in one tensor. */
struct piece {
    size_t access; /* index into accesses */
    void *address;
    uint64_t bytes;
    uint32_t role; /* as the operand says */
};

/* The current op. The arrays keep their capacity, so that calls allocate nothing in the long run.
 */
struct operands {
    struct access *accesses;
    size_t access_count;
    size_t access_capacity;
    struct piece *pieces;
    size_t piece_count;
    size_t piece_capacity;
    bool clears;    /* some piece is cleared: CAPU_WRITE_CLEARED */
    uint64_t stamp; /* counts ops; tensor.in_op.stamp equals it for operands of this op */

    struct call call; /* with its operands in `list` */
    capu_operand *list;
    size_t list_capacity;
    const char *name; /* its name */
    struct lane_position start;
    bool has_waited; /* the host waited for room for it, or compute for a copy */

    struct device_grant *grants; /* what it may touch: strict_watch.c */
    size_t grant_capacity;
    uint64_t poison_number;      /* of its first access, and the next lower ones: poison.h */
    uint64_t poison_last;        /* the highest number given out */
    struct strangers *strangers; /* tensors that share pages with it: strict_strangers.h */
    unsigned char *saved;        /* what it has written: strict_again.c */
    size_t saved_capacity;
};

struct capu_context {
    struct settings settings;
    struct fork_mark fork_mark;
    struct failure failure;
    struct lanes lanes;
    struct memory memory;
    struct residency residency;
    struct records records;
    struct agent *agent;
    struct operands operands;

    struct iteration_state iteration;
    bool in_access;         /* between capu_access_begin and capu_access_end */
    bool access_is_planned; /* the active guide has that access */
    struct plans plans;
    struct guided guided;
    struct graphs graphs;
};

/* Every public call begins with this: OK, or the status of a lost context; INVALID without one,
   WRONG_PROCESS in a child of its process, WRONG_ORDER in a run function. */
capu_status context_usable(capu_context *context);

/* INVALID without a context, WRONG_PROCESS in a child of its process: for calls that work even if
   the context is lost. */
capu_status context_present(capu_context *context);

/* As context_usable, and WRONG_ORDER between capu_access_begin and capu_access_end, and while the
   program captures the stream. */
capu_status context_ready(capu_context *context, const char *call);

/* As context_ready, and WRONG_ORDER while an iteration is captured: the call would wait, or change
   what the graph names. */
capu_status context_uncaptured(capu_context *context, const char *call);

/* The layout of tensors changes: graphs that were captured before are stale. */
void context_note_layout(capu_context *context, const struct tensor *tensor);

/* Creates a context on a given device, which it owns if the call succeeds. Tests pass a device
   inside adaptors. `config` is complete, as config_resolve leaves it. */
capu_status context_create_on(struct device *device, const capu_config *config,
                              capu_context **context, char *text, size_t text_bytes);

/*
 * operands.c: everything around the work of an op. operands_begin resolves the operands, makes them
 * resident, clears and poisons them, and marks the start. The caller enqueues the work on the
 * compute stream. operands_end marks the end and updates versions, copies and the record; it fails
 * only if the context is lost.
 *
 * If operands_begin fails, nothing has been written. If the work could not be enqueued, the caller
 * calls operands_abort instead of operands_end: it waits for what was enqueued, and makes undefined
 * what may have been cleared or, with `has_written`, partly written.
 */
/* Only resolves the operands, and reports what is wrong with them. */
capu_status operands_check(capu_context *context, const struct call *call);
capu_status operands_begin(capu_context *context, const struct call *call, bool *is_planned);
capu_status operands_end(capu_context *context, bool is_planned);
void operands_abort(capu_context *context, bool is_planned, bool has_written);
void operands_finish(struct operands *operands);

/* Notes that a tensor is read outside iterations: plans must keep a transient one to their end. */
capu_status operands_note_visit(capu_context *context, struct tensor *tensor);

/* validate.c: checks the books of the whole context. If something is wrong, returns false and says
   in *what. */
bool context_validate(capu_context *context, const char **what);

/* The same for assertions: prints what is wrong to stderr. */
bool context_is_valid(capu_context *context);

#endif

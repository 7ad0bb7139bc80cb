/*
 * The op at hand: one call of the program from its beginning to its end.
 *
 * The operands that it names are ranges. They are resolved to pieces, each of which lies in one
 * tensor, and merged to accesses, one for each tensor however many operands name it.
 *
 * The context has one for the calls of the program, and recovery one for what it runs again, which
 * has accesses only. The arrays keep their capacity, so that calls allocate nothing in the long
 * run. Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_OP_H
#define CAPU_RUNTIME_OP_H

#include "base/array.h"
#include "capuchin/op.h"
#include "device/lane.h"
#include "runtime/tensor/tensor_state.h"

#include <stdbool.h>
#include <stdlib.h>

/*
 * A call: one piece of device work as the runtime sees it, an op of the program or one of the
 * library's own. Calls are compared by their fields; the bytes of the arguments are not compared,
 * because a learning rate changes every step.
 */

enum call_kind {
    CALL_RUN,      /* capu_run */
    CALL_ACCESS,   /* capu_access_begin to capu_access_end */
    CALL_ZERO,     /* capu_zero that fills its operand at once */
    CALL_FILL,     /* zeros known since an earlier capu_zero are filled into a tensor's span */
    CALL_UPLOAD,   /* capu_upload */
    CALL_DOWNLOAD, /* capu_download */
    CALL_COPY      /* capu_copy: from the first operand to the second */
};

struct call {
    enum call_kind kind;
    const char *name; /* interned */
    capu_run_function run;
    capu_run_function replay; /* NULL: `run` */
    uint64_t key;
    bool is_once;       /* fills in zeros known for long: the next iteration will not have it */
    bool is_replayable; /* as far as the caller says; updates may still prevent it */
    const capu_operand *operands;
    size_t operand_count;
};

/* The host's side of a transfer. */
struct host_side {
    unsigned char
        *memory;         /* the caller's, of an upload or a download; NULL: an upload runs again */
    unsigned char *kept; /* the library's copy of what is uploaded, uploads.h; NULL: not kept */
    uint64_t offset;     /* of an upload: where in the operand it begins; 0 if it is kept */
    uint64_t bytes;      /* of an upload; the rest of the operand becomes undefined */
};

/* The op. */

/* A tensor that an op touches, after its operands have been resolved and merged. */
struct access {
    struct tensor *tensor;
    uint32_t role;     /* CAPU_READ, CAPU_WRITE, CAPU_UPDATE or CAPU_SCRATCH */
    bool is_read;      /* some operand reads its contents */
    bool is_partial;   /* only a part is written: other contents, if any, are kept */
    uint32_t recorded; /* when the op ends: its role in the record */
};

/* The part of an operand that lies in one tensor. */
struct piece {
    void *address;
    uint64_t bytes;
    uint32_t access;  /* index into accesses */
    uint32_t operand; /* and into the list of operands */
};

/* Whether an op is under way, and what makes its tensors ready. */
enum op_stage {
    OP_OVER,      /* none is under way */
    OP_UNPLANNED, /* no guide does */
    OP_PLANNED    /* the active guide does: it is the op that comes next there */
};

struct op {
    struct call call; /* the operands are the caller's until they are kept in `list` */
    enum op_stage stage;
    bool clears; /* some piece is cleared: CAPU_WRITE_REST_ZERO */
    capu_operand *list;
    size_t list_capacity;
    const void *arguments; /* of CALL_RUN; in staging memory */
    uint64_t duration_ns;  /* the same; on a device that simulates */
    struct lane_position start;

    struct access *accesses;
    size_t access_count;
    size_t access_capacity;
    struct piece *pieces;
    size_t piece_count;
    size_t piece_capacity;
    uint64_t stamp; /* tensor.in_op.stamp equals it for operands of this op: victims_spare */
};

static inline bool op_is_under_way(const struct op *op)
{
    return op->stage != OP_OVER;
}

static inline bool op_is_planned(const struct op *op)
{
    return op->stage == OP_PLANNED;
}

/* As its operand says. */
static inline uint32_t piece_role(const struct op *op, const struct piece *piece)
{
    return op->list[piece->operand].role;
}

/* Frees the arrays. Zeroed is fine. */
static inline void op_finish(struct op *op)
{
    free(op->accesses);
    free(op->pieces);
    free(op->list);
    *op = (struct op){0};
}

/* Creates the access of a tensor that the current op has not named yet. NULL: no memory. */
static inline struct access *access_create(struct op *op, struct tensor *tensor)
{
    struct access *access;

    if (!array_reserve(&op->accesses, &op->access_capacity, op->access_count + 1,
                       sizeof(*access))) {
        return NULL;
    }
    tensor->in_op.stamp = op->stamp;
    tensor->in_op.index = op->access_count;
    access = &op->accesses[op->access_count++];
    *access = (struct access){.tensor = tensor};
    return access;
}

/* The access of a tensor in the current op: the one it already has, or a new one. NULL: no host
   memory. */
static inline struct access *access_of(struct op *op, struct tensor *tensor)
{
    return tensor->in_op.stamp == op->stamp ? &op->accesses[tensor->in_op.index]
                                            : access_create(op, tensor);
}

/* Adds an access that no operand asks for: replays have only accesses. NO_HOST_MEMORY. */
static inline capu_status access_add(struct op *op, struct tensor *tensor, uint32_t role)
{
    struct access *access = access_of(op, tensor);

    if (access == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    access->role = role;
    access->is_read = role == CAPU_READ;
    return CAPU_OK;
}

/* Whether an access needs the present contents of its tensor. */
static inline bool access_needs_contents(const struct access *access)
{
    return access->is_read || (access->is_partial && tensor_is_defined(access->tensor));
}

/* The role of an access in the record. Scratch is recorded as a write, because nothing reads it;
   and a partial write of a tensor without contents as a whole one, because there is nothing to
   keep. */
static inline uint32_t access_role(const struct access *access)
{
    bool writes_nothing_before =
        access->role == CAPU_UPDATE && !access->is_read && !tensor_is_defined(access->tensor);

    return access->role == CAPU_SCRATCH || writes_nothing_before ? CAPU_WRITE : access->role;
}

/* An update cannot be repeated. A function made for replays leaves the updated tensor alone, so
   such an op is replayable if the tensor is always resident: otherwise it would be brought back for
   nothing. */
static inline bool access_allows_replay(const struct op *op, const struct access *access)
{
    return access->recorded != CAPU_UPDATE ||
           (op->call.replay != NULL && !tensor_is_managed(access->tensor));
}

/* Whether the op at hand may run again; stores the recorded role of each access. */
static inline bool access_can_replay(struct op *op)
{
    bool can = op->call.is_replayable;

    for (size_t i = 0; i < op->access_count; i++) {
        struct access *access = &op->accesses[i];

        access->recorded = access_role(access);
        can = can && access_allows_replay(op, access);
    }
    return can;
}

#endif

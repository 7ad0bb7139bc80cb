/*
 * Ops: units of device work that declare what they read and write.
 *
 * The runtime makes every tensor that an op names resident, keeps it resident while the op runs,
 * and may run a replayable op again later with the same function and the same arguments: addresses
 * never change, and argument blocks are copied.
 */
#ifndef CAPU_INCLUDE_OP_H
#define CAPU_INCLUDE_OP_H

#include <stddef.h>
#include <stdint.h>

#include "capuchin/context.h"
#include "capuchin/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What an op does to the bytes of one operand. */
typedef enum capu_role {
    CAPU_READ = 1,            /* reads, does not modify, not even to restore it before it ends: the
                                 tensor may be copied out meanwhile. What does that is an update */
    CAPU_WRITE = 2,           /* overwrites the whole range; its old contents are not needed */
    CAPU_WRITE_REST_ZERO = 3, /* writes part of the range, and the rest must read as zero: the
                                 runtime clears the range before the op and before its replays. A
                                 replay with `replay` leaves always-resident tensors that the op
                                 updates as they are */
    CAPU_UPDATE = 4,          /* reads, then modifies in place */
    CAPU_SCRATCH = 5,         /* undefined before and after */
    /* Writes some of the range, and nothing else of the tensors that it meets is needed any more:
       what the op does not write is undefined after it. Counts as writing all of those tensors,
       whichever range is named, so a plan also serves the smaller last batch of an epoch */
    CAPU_WRITE_REST_UNDEFINED = 6
} capu_role;

/*
 * One operand. `address` may be inside a tensor. `bytes` 0 means from `address` to the end of its
 * tensor. A range may cover several tensors split from one allocation; it then names each of them.
 * Writing part of a tensor counts as an update of it, except with CAPU_WRITE_REST_UNDEFINED.
 * Operands that name the same tensor are merged: two reads are a read, two writes are a write, a
 * read and a write are an update.
 */
typedef struct capu_operand {
    const void *address;
    size_t bytes;
    uint32_t role;     /* capu_role */
    uint32_t reserved; /* 0 */
} capu_operand;

/*
 * An op's work. On cuda it is called on the caller's thread and only enqueues work on `stream` (a
 * cudaStream_t). On host it is called on the stream's own thread and computes. On sim it is never
 * called. `arguments` is the library's copy of the argument block, aligned for any type, valid
 * during the call; NULL if there is none. The function must not call the library, except
 * capu_run_waited and capu_run_explain.
 *
 * Returns CAPU_OK on success. On cuda any other status makes capu_run fail with DEVICE_FAILED and
 * the context stays usable. On host it stops the stream, and this call or a later one returns
 * OP_FAILED. Both texts name the op.
 */
typedef capu_status (*capu_run_function)(capu_stream stream, const void *arguments);

typedef enum capu_op_flag {
    CAPU_OP_NOT_REPLAYABLE =
        1 /* running it again would give different results or has another effect */
} capu_op_flag;

/* The most operands that an op may have. */
#define CAPU_OPERAND_COUNT_MAX 1048576

/*
 * An op. Zero means "default" in every field except `size`, `name` and `run`. Name, arguments and
 * operands are copied during the call; what an argument block points to is not. Host memory that it
 * points to is read when `run` runs (on cuda during capu_run, on host any time after) and again in
 * each replay. It may change once the op has run if the op is not replayable (see capu_run), and
 * otherwise once the work of its iteration is complete: after capu_iteration_end and
 * capu_synchronize, or the second capu_iteration_begin that follows. Only strict mode on host
 * notices a change that comes too early, and only if a plan replays the op.
 */
typedef struct capu_op {
    size_t size;      /* sizeof(capu_op), as the caller was compiled */
    const char *name; /* for reports, traces and errors. Kept until the context is destroyed: use a
                         few names. Part of the signature by which guided mode recognises an op */
    capu_run_function run;
    capu_run_function replay; /* called instead of `run` for replays: produces the same outputs but
                                 leaves updated operands unchanged; NULL: `run` */
    const void *arguments;    /* argument_bytes of them; NULL if 0 */
    size_t argument_bytes;
    const capu_operand *operands;
    size_t operand_count; /* at most CAPU_OPERAND_COUNT_MAX */
    uint32_t flags;       /* capu_op_flag */
    uint32_t reserved;    /* 0 */
    uint64_t key;         /* distinguishes ops that are otherwise equal; part of the signature */
    uint64_t duration_ns; /* how long it takes on the sim device; ignored elsewhere */
} capu_op;

/*
 * Runs an op after all earlier work of the context on the compute stream. Returns when it is
 * enqueued; in passive mode it may first wait for an eviction to free memory. Allowed inside and
 * outside an iteration.
 *
 * An op is replayable unless it has CAPU_OP_NOT_REPLAYABLE or updates a tensor. One exception: an
 * op with updates is replayable if it provides `replay` and every tensor that it updates is small
 * enough to be always resident. Batch normalisation uses this for its running statistics: the
 * replay produces the output again and does not touch them. If an op also updates something large,
 * split it into two ops.
 *
 * In mode off, without a report file, a trace file or strict mode, an op's operands are only looked
 * up: which contents are defined is not known, so no read is answered with UNDEFINED_READ.
 *
 * Stream order: compute stream.
 * Errors after which the op has not run and nothing is lost: INVALID (no name, no `run`, a count
 * without an array, more than CAPU_OPERAND_COUNT_MAX operands, an unknown role or flag),
 * WRONG_STRUCT, WRONG_ADDRESS, UNDEFINED_READ (it reads or updates a tensor without contents),
 * CONTENTS_LOST (guided mode: the plan discarded what it reads, the iteration left the plan, and
 * the contents cannot be recomputed), OVER_BUDGET (its operands alone exceed the budget; the text
 * says by how much), HOST_OVER_BUDGET or NO_HOST_MEMORY (nowhere to evict to), SYSTEM_LIMIT,
 * DEVICE_FAILED.
 * In strict mode on host a replayable op runs twice.
 * Other errors: INVALID in strict mode on host (the op has run and did to an operand what its role
 * does not say, or is not replayable); OP_FAILED, DEVICE_LOST (the context is no longer usable; in
 * strict mode on host OP_FAILED also if the op touched a tensor that it does not name).
 */
CAPU_API capu_status capu_run(capu_context *context, const capu_op *op);

/*
 * What a run function can say about itself, from inside, on the thread that called it. What it says
 * adds up over the call.
 *
 * capu_run_waited: for `ns` nanoseconds it waited for something that is neither its own work nor
 * memory: another process, a file, a lock. That time says nothing about the op and comes from
 * outside, so plans are not made with it, and an iteration that takes longer because of it leads to
 * no new plan. It is reported as capu_report.waited_ns and is part of time_ns, but not of
 * compute_ns or stall_ns. While an op waits, copies go on.
 *
 * capu_run_explain: why it is about to return an error. The text, which is copied and cut after 399
 * bytes, follows the op's name in capu_last_error.
 *
 * Stream order: none. Thread: the one that called the run function. Errors: WRONG_ORDER (not inside
 * a run function), UNSUPPORTED (the device is cuda, where a run function only enqueues work and so
 * does not know how long that waits), INVALID (`text` is NULL).
 */
CAPU_API capu_status capu_run_waited(uint64_t ns);
CAPU_API capu_status capu_run_explain(const char *text);

/*
 * Like capu_run, for work that the caller launches itself. Between begin and end the operands are
 * resident and valid, and the caller may launch work that touches them on the context's compute
 * stream. Such an access is never replayed: its tensors can be swapped but not recomputed. On host,
 * begin waits for all earlier work and the caller touches the memory directly. `op` supplies name,
 * operands and key; its `run` is ignored. Accesses do not nest. capuchin/context.h lists the calls
 * allowed in between.
 *
 * Stream order: compute stream; end marks the end of what the caller launched there.
 * Errors of begin: those of capu_run; then there is no access to end. Errors of end: WRONG_ORDER
 * (no begin), OP_FAILED, DEVICE_LOST, and INVALID in strict mode as for capu_run.
 */
CAPU_API capu_status capu_access_begin(capu_context *context, const capu_op *op);
CAPU_API capu_status capu_access_end(capu_context *context);

/*
 * Segments: the ops between begin and end form one checkpointed module. The planner `manual` keeps
 * what enters the module and recomputes what is produced inside when the backward pass needs it;
 * other planners decide for themselves. Segments nest; the outermost counts. They are recorded in
 * traces, and every segment must end before its iteration does. `name` is copied.
 *
 * Stream order: none. Errors: INVALID (no name), WRONG_ORDER (end without begin, or no iteration
 * open), NO_HOST_MEMORY.
 */
CAPU_API capu_status capu_segment_begin(capu_context *context, const char *name);
CAPU_API capu_status capu_segment_end(capu_context *context);

/* Shorthands for operands: a range with a role, and from an address to the end of its tensor. */
static inline capu_operand capu_operand_of(const void *address, size_t bytes, capu_role role)
{
    capu_operand operand;
    operand.address = address;
    operand.bytes = bytes;
    operand.role = role;
    operand.reserved = 0;
    return operand;
}

static inline capu_operand capu_reads(const void *address)
{
    return capu_operand_of(address, 0, CAPU_READ);
}

static inline capu_operand capu_writes(const void *address)
{
    return capu_operand_of(address, 0, CAPU_WRITE);
}

static inline capu_operand capu_writes_rest_zero(const void *address)
{
    return capu_operand_of(address, 0, CAPU_WRITE_REST_ZERO);
}

static inline capu_operand capu_writes_rest_undefined(const void *address)
{
    return capu_operand_of(address, 0, CAPU_WRITE_REST_UNDEFINED);
}

static inline capu_operand capu_updates(const void *address)
{
    return capu_operand_of(address, 0, CAPU_UPDATE);
}

static inline capu_operand capu_scratch(const void *address)
{
    return capu_operand_of(address, 0, CAPU_SCRATCH);
}

#ifndef __cplusplus
/*
 * The common case in one line (C only: compound literals):
 *
 *     CAPU_RUN(context, relu_forward, &arguments, capu_reads(x), capu_writes(y));
 *
 * The op is named after the function. `arguments` is a typed pointer to the argument block: its
 * target's size is copied, so it must not be a void pointer.
 */
#define CAPU_RUN(context_, function_, arguments_, ...)                                      \
    capu_run((context_), &(capu_op){                                                        \
                             .size = sizeof(capu_op),                                       \
                             .name = #function_,                                            \
                             .run = (function_),                                            \
                             .arguments = (arguments_),                                     \
                             .argument_bytes = sizeof(*(arguments_)),                       \
                             .operands = (const capu_operand[]){__VA_ARGS__},               \
                             .operand_count = sizeof((const capu_operand[]){__VA_ARGS__}) / \
                                              sizeof(capu_operand),                         \
                         })
#endif

#ifdef __cplusplus
}
#endif

#endif

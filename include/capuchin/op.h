/*
 * Ops: units of device work that say what they read and write.
 *
 * The runtime brings in whatever an op touches, keeps it there while the op runs, and may run a
 * replayable op again later with the same function and the same arguments, because addresses never
 * change and argument blocks are copied.
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
    CAPU_READ = 1,          /* reads, does not modify */
    CAPU_WRITE = 2,         /* overwrites the whole range; what it held is not needed */
    CAPU_WRITE_CLEARED = 3, /* writes a part, and the rest must read as zero: the runtime clears the
                               range before the op, and again before a replay of it; not
                               where a function for replays leaves the tensor alone */
    CAPU_UPDATE = 4,        /* reads, then modifies in place */
    CAPU_SCRATCH = 5        /* undefined before and after */
} capu_role;

/*
 * One operand. An interior address is fine. `bytes` 0 means from `address` to the end of its
 * tensor. A range may reach over several tensors split from one allocation: it then names each of
 * them. Writing a part of a tensor counts as an update of it. Naming a tensor twice merges: read
 * and read is a read, read and write an update.
 */
typedef struct capu_operand {
    const void *address;
    size_t bytes;
    uint32_t role;     /* capu_role */
    uint32_t reserved; /* 0 */
} capu_operand;

/*
 * An op's work. On cuda it is called on the caller's thread and only enqueues on `stream` (a
 * cudaStream_t); on host it is called on the stream's thread and computes. `arguments` is the
 * library's copy of the argument block, aligned for any type. It must not call the library. A
 * failure stops the stream; the library reports it by the op's name.
 */
typedef capu_status (*capu_run_function)(capu_stream stream, const void *arguments);

typedef enum capu_op_flag {
    CAPU_OP_NOT_REPLAYABLE =
        1 /* running it again would give other results or have another effect */
} capu_op_flag;

/*
 * An op. Zero means "default" in every field but `size`, `name` and `run`. Everything is copied
 * during the call.
 */
typedef struct capu_op {
    size_t size;      /* sizeof(capu_op), as the caller was compiled */
    const char *name; /* for reports, traces and errors; part of the signature, by which mode guided
                         knows an op again */
    capu_run_function run;
    capu_run_function replay; /* used instead of `run` for replays: makes the same outputs and
                                 leaves the operands that are updated alone; NULL: `run` */
    const void *arguments;    /* argument_bytes of them; NULL if 0 */
    size_t argument_bytes;
    const capu_operand *operands;
    size_t operand_count;
    uint32_t flags;       /* capu_op_flag */
    uint32_t reserved;    /* 0 */
    uint64_t key;         /* tells apart ops that are otherwise alike; part of the signature */
    uint64_t duration_ns; /* how long it takes on a sim device; ignored elsewhere */
} capu_op;

/*
 * Runs an op now, after all earlier work of this context; returns when it is enqueued.
 *
 * An op with CAPU_OP_NOT_REPLAYABLE is never replayed, nor one with an update, but for this: if it
 * gives a function for replays and all it updates is small enough to be always resident, that
 * function runs. Batch normalisation keeps its running statistics so: its replay makes the output
 * again and does not touch them. An op in which something large is updated besides is better made
 * two.
 * Stream order: compute stream. Thread: the context's calling thread.
 * Errors: INVALID, WRONG_STRUCT, UNKNOWN_ADDRESS, ALREADY_FREED, OUT_OF_RANGE, UNDEFINED_READ (a
 * tensor without contents is read or updated), CONTENTS_LOST (mode guided, outside the plan: what
 * it reads was given up by the plan and cannot be recomputed), WRONG_ORDER (between
 * capu_access_begin and capu_access_end), OVER_BUDGET (its operands alone exceed the budget; the
 * text tells what they need), HOST_OVER_BUDGET or NO_HOST_MEMORY (nowhere to evict to),
 * NO_ADDRESS_SPACE, DEVICE_FAILED: the op was not run and nothing is lost. OP_FAILED, DEVICE_LOST:
 * the context is of no more use.
 */
CAPU_API capu_status capu_run(capu_context *context, const capu_op *op);

/*
 * The same for launches that stay the caller's own: between begin and end the operands are resident
 * and valid, and the caller may launch on the context's compute stream whatever touches them. Such
 * an access is never replayed: its tensors are only swapped. On host, begin waits for all earlier
 * work and the caller touches the memory directly. `op` gives name, operands and key; its `run` is
 * ignored. Not nestable; no other call of this context in between, except capu_context_stream.
 *
 * Errors of begin: as capu_run. Errors of end: WRONG_ORDER (no begin), DEVICE_LOST.
 */
CAPU_API capu_status capu_access_begin(capu_context *context, const capu_op *op);
CAPU_API capu_status capu_access_end(capu_context *context);

/*
 * Segments: the ops between begin and end form one checkpointed module. A planner that obeys hints
 * keeps what enters the module and recomputes what is made inside when backward needs it. Nestable;
 * the outermost decides. Passive mode records segments in the trace and does nothing else with
 * them; in mode guided they reach the planner.
 *
 * Errors: INVALID (no name), WRONG_ORDER (end without begin, or no iteration open).
 */
CAPU_API capu_status capu_segment_begin(capu_context *context, const char *name);
CAPU_API capu_status capu_segment_end(capu_context *context);

/* Operands in a word each. */
static inline capu_operand capu_operand_of(const void *address, size_t bytes, capu_role role)
{
    capu_operand operand;
    operand.address = address;
    operand.bytes = bytes;
    operand.role = (uint32_t)role;
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

static inline capu_operand capu_writes_cleared(const void *address)
{
    return capu_operand_of(address, 0, CAPU_WRITE_CLEARED);
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
 * The op is named after the function; `arguments` points to the argument block itself, not to void.
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

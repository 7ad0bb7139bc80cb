/*
 * Strict mode: what a program or the library does wrong with memory shows at once.
 *
 * Two means: memory that must not be read is poisoned, and memory that must not be touched is
 * unmapped. So an output that an op does not write, scratch that it reads later, and a tensor that
 * it uses without naming it give wrong results or a fault there and then, not now and then. Where
 * ops compute on the host, tensors that an op only reads are also compared with what they were.
 *
 * Waiting for every eviction and mapping pages whenever they change hands makes strict mode slow:
 * it is for tests. All of its steps are here. Other files call them at the place where they belong,
 * and without strict mode each does nothing.
 *
 * Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_STRICT_H
#define CAPU_RUNTIME_STRICT_H

#include "runtime/guide.h"
#include "runtime/internal.h"

/* What memory is filled with that must not be read: a NaN in every floating-point format. */
enum { STRICT_POISON = 0xff };

static inline bool strict_is_on(const capu_context *context)
{
    return context->config.strict != 0;
}

/* A tensor takes its pages from the guide: maps them. */
capu_status strict_map(capu_context *context, struct tensor *tensor);

/* And poisons what the tensor before left in them; waits. */
capu_status strict_poison_mapped(capu_context *context, const struct tensor *tensor);

/* A tensor gives its pages to the guide: waits for its last use, and unmaps them. */
capu_status strict_unmap(capu_context *context, struct tensor *tensor);

/* A tensor was evicted: waits until its pages are unmapped. */
capu_status strict_wait_evicted(capu_context *context, struct departure *departure);

/* Before the work of an op: poisons what it is to write and does not read. */
capu_status strict_poison_outputs(capu_context *context);

/* After an op: poisons its scratch, as far as the device lets us. */
void strict_poison_scratch(capu_context *context);

/* Whether strict_poison_outputs wrote to an output of the op at hand. */
bool strict_has_poisoned(const capu_context *context, const struct access *access);

/* Before a replay: poisons what it writes. */
capu_status strict_poison_replay(capu_context *context, const struct guide *guide,
                                 const struct guide_op *op);

/* Before the caller's own work of an op: waits for all work before it, and notes what the tensors
   hold that it only reads. */
capu_status strict_begin(capu_context *context);

/* After it: waits for it, and returns the first of these tensors that has changed, or NULL. */
struct tensor *strict_changed(capu_context *context);

#endif

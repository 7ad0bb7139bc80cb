/*
 * Everything around the work of an op. operands_begin resolves and checks the operands, makes them
 * resident, clears and poisons them, and marks the start. The caller enqueues the work on the
 * compute stream. operands_end marks the end and updates versions, copies and the record; it fails
 * only if the context is lost.
 *
 * If operands_begin fails, nothing has been written. If the work could not be enqueued, the caller
 * calls operands_abort instead of operands_end: it waits for what was enqueued, and makes undefined
 * what may have been cleared or, with `has_written`, partly written.
 *
 * Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_OPERANDS_H
#define CAPU_RUNTIME_OPERANDS_H

#include "runtime/op/op.h"

/* Only resolves the operands of the op's call, and reports what is wrong with them. */
capu_status operands_check(capu_context *context, struct op *op);

capu_status operands_begin(capu_context *context, struct op *op);
capu_status operands_end(capu_context *context, struct op *op);
void operands_abort(capu_context *context, const struct op *op, bool has_written);

/* Notes that a tensor is read outside iterations: plans must keep a transient one to their end. */
capu_status operands_note_visit(capu_context *context, struct tensor *tensor);

#endif

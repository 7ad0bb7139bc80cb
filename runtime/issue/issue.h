/*
 * Issuing calls of the program: the one way from capu_run, capu_zero, capu_upload, capu_download,
 * capu_copy and accesses to the device.
 *
 * For each call, in this order: its operands are resolved and made resident, as the active guide
 * has it or without one, and the start is marked (operands_begin); strict mode notes what must not
 * change; the work is enqueued (enqueue.h); strict mode looks again; the end is marked, and
 * versions, copies and the record are brought up to date (operands_end). Where the work could not
 * be enqueued, operands_abort does what is left to do instead.
 *
 * Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_ISSUE_H
#define CAPU_RUNTIME_ISSUE_H

#include "capuchin/context.h"
#include "runtime/op/op.h"

/*
 * Issuing. For all of these, op->call is filled in, with the operands as the caller gave them.
 */

/* Issues an op of the program. op->duration_ns is filled in, too; of `from`, the argument bytes are
   copied. */
capu_status issue_op(capu_context *context, struct op *op, const capu_op *from);

/* Issues a transfer. */
capu_status issue_transfer(capu_context *context, struct op *op, struct host_side host);

/* The same in two halves, for accesses, whose work the caller enqueues. Between them the op is
   under way: op_is_under_way. After a failed issue_begin nothing has begun. `status` says how the
   work went. */
capu_status issue_begin(capu_context *context, struct op *op);
capu_status issue_end(capu_context *context, struct op *op, capu_status status);

/*
 * Operands (operands.c): everything around the work of an op. operands_begin resolves and checks
 * the operands, makes them resident, clears and poisons them, and marks the start. The caller
 * enqueues the work on the compute stream. operands_end marks the end and updates versions, copies
 * and the record; it fails only if the context is lost.
 *
 * If operands_begin fails, nothing has been written. If the work could not be enqueued, the caller
 * calls operands_abort instead of operands_end: it waits for what was enqueued, and makes undefined
 * what may have been cleared or, with `has_written`, partly written.
 */

/* Only resolves the operands of the op's call, and reports what is wrong with them. */
capu_status operands_check(capu_context *context, struct op *op);

capu_status operands_begin(capu_context *context, struct op *op);
capu_status operands_end(capu_context *context, struct op *op);
void operands_abort(capu_context *context, const struct op *op, bool has_written);

/* Notes that a tensor is read outside iterations: plans must keep a transient one to their end. */
capu_status operands_note_visit(capu_context *context, struct tensor *tensor);

/*
 * Settling: taking note of work that has passed. The host only ever enqueues; what follows from the
 * end of that work (reports, plans, pages that are free now) waits until one of these calls looks.
 */

/* Completes the reports of iterations whose work has passed, and plans for them. Does not wait. */
capu_status settle_records(capu_context *context);

/* Waits for all work of all lanes, completes reports, and ends departures that waited for it. */
capu_status settle_work(capu_context *context);

/* Every call that enqueues work calls this after it. In an iteration without a plan it looks
   whether the one before has ended, so that planning begins then and not with the next iteration,
   when the device may have nothing left to do meanwhile. Outside iterations it keeps the lanes'
   rings bounded, for programs that mark none. Fails only if the context is lost. */
capu_status settle_call(capu_context *context);

#endif

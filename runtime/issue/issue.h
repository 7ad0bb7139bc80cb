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

#include "runtime/op/op.h"

/* For all of these, op->call is filled in, with the operands as the caller gave them. */

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

#endif

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
#include "runtime/call.h"

struct issue_source {
    const void *arguments; /* of an op; copied */
    size_t argument_bytes;
    uint64_t duration_ns;
    void *host; /* of an upload or download: the caller's memory */
};

/* Issues a call whole. */
capu_status issue_call(capu_context *context, const struct call *call,
                       const struct issue_source *source);

/* The same in two halves, for accesses, whose work the caller enqueues. *is_planned: the active
   guide has this op next; pass it on. After a failed issue_begin nothing has begun. `status` says
   how the work went. */
capu_status issue_begin(capu_context *context, const struct call *call, bool *is_planned);
capu_status issue_end(capu_context *context, enum call_kind kind, bool is_planned,
                      capu_status status);

#endif

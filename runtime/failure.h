/*
 * Failures: the text that capu_last_error returns, failures of the device, and waiting for work
 * before memory that it touches is given up.
 */
#ifndef CAPU_RUNTIME_FAILURE_H
#define CAPU_RUNTIME_FAILURE_H

#include "capuchin/context.h"
#include "device/lane.h"

/* Sets the last error and returns `status`. */
capu_status failure_set(capu_context *context, capu_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Takes a status from another room: says what was attempted, and turns the device's own failure
   into a lost context. OK passes through. Statuses of this room have been told already: return them
   as they are. */
capu_status failure_explain(capu_context *context, capu_status status, const char *attempt);
static inline capu_status failure_check(capu_context *context, capu_status status,
                                        const char *attempt)
{
    return status == CAPU_OK ? CAPU_OK : failure_explain(context, status, attempt);
}

/* Waits for a lane by any means there are: for ways out of failures, where memory that the lane's
   work touches is about to go. */
void failure_quiesce(capu_context *context, struct lane *lane);
void failure_quiesce_all(capu_context *context);

#endif

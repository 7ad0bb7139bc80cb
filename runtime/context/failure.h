/*
 * Failures: the text that capu_last_error returns, and lost contexts.
 *
 * An error is described once, where it is first understood, and callers pass the status on. A
 * status of another room gets its text from failure_check; one of this room has a text already.
 *
 * Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_FAILURE_H
#define CAPU_RUNTIME_FAILURE_H

#include "capuchin/context.h"
#include "device/device.h"

enum { ERROR_TEXT_BYTES = 1024 };

struct failure {
    struct device *device;       /* which may fail by itself */
    capu_status lost;            /* OK, or why the context can no longer be used */
    char text[ERROR_TEXT_BYTES]; /* the last error */
};

/* Sets the last error and returns `status`. */
capu_status failure_set(struct failure *failure, capu_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Takes a status of another room and sets the last error: `attempt` says what was attempted. If the
   device itself has failed, the context is lost, and that status is returned. OK passes through. */
capu_status failure_explain(struct failure *failure, capu_status status, const char *attempt);
static inline capu_status failure_check(struct failure *failure, capu_status status,
                                        const char *attempt)
{
    return status == CAPU_OK ? CAPU_OK : failure_explain(failure, status, attempt);
}

#endif

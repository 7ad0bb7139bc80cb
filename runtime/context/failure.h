/*
 * Whether a context can be used: the text that capu_last_error returns, lost contexts, and contexts
 * of another process.
 *
 * An error is described once, where it is first understood, and callers pass the status on. A
 * status of another room gets its text from failure_check; one of this room has a text already.
 *
 * Owned by the context's thread, but for fork marks.
 */
#ifndef CAPU_RUNTIME_FAILURE_H
#define CAPU_RUNTIME_FAILURE_H

#include "capuchin/context.h"
#include "capuchin/status.h"
#include "device/device.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

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

/*
 * Fork marks: whether this process made something, or a process that it was forked from.
 *
 * After a fork the child has a copy of a context, but neither its threads nor its memory, and a
 * lock may be held by a thread that is not there. So nothing of the context may be touched. The
 * mark is a page that the kernel clears in children, which makes the test one load; a process id
 * would cost a system call per call of the library.
 *
 * Written once, by the process that makes it; read by any thread.
 */

struct fork_mark {
    const unsigned *page; /* 1; 0 in a child. NULL: the kernel cannot clear it, so `process` says */
    pid_t process;
};

/* NO_HOST_MEMORY. */
capu_status fork_mark_init(struct fork_mark *mark);

/* Accepts a zeroed mark. Not in a child. */
void fork_mark_finish(struct fork_mark *mark);

/* The slow half of fork_mark_is_in_child. */
bool fork_mark_differs(const struct fork_mark *mark);

/* Whether this is a child of the process that made the mark. */
static inline bool fork_mark_is_in_child(const struct fork_mark *mark)
{
    return mark->page != NULL ? *mark->page == 0 : fork_mark_differs(mark);
}

#endif

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
#ifndef CAPU_RUNTIME_FORK_MARK_H
#define CAPU_RUNTIME_FORK_MARK_H

#include "capuchin/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

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

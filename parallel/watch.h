/*
 * Notices the end of other ranks on the same host: MPI does not say that one has ended, and its
 * calls then wait for ever. A pidfd becomes readable when its process ends, however it ends.
 *
 * A kernel without pidfd_open, and ranks in other containers, are not watched. Owned by one thread
 * at a time.
 */
#ifndef CAPU_PARALLEL_WATCH_H
#define CAPU_PARALLEL_WATCH_H

#include "capuchin/status.h"

#include <mpi.h>
#include <poll.h>

struct watch {
    struct pollfd *processes;
    int *ranks; /* of these processes */
    int count;
};

/* Watches the ranks of `comm` on this host, which are alive when this returns. Collective. On
   failure nothing is held: NO_HOST_MEMORY, SYSTEM_LIMIT (no more descriptors), OP_FAILED (an MPI
   call failed, or a rank has ended). */
capu_status watch_open(struct watch *watch, MPI_Comm comm);

/* A rank that has ended; -1: none is known to have. Does not wait. */
int watch_ended(struct watch *watch);

/* A zeroed watch is fine. */
void watch_close(struct watch *watch);

#endif

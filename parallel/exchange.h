/*
 * What a group says to the other ranks: waiting with a limit, and the headers before collectives.
 *
 * Called with the group's lock held, on any thread. Once the group has ended nothing is sent.
 */
#ifndef CAPU_PARALLEL_EXCHANGE_H
#define CAPU_PARALLEL_EXCHANGE_H

#include "parallel/group.h"

/* The header of a collective, without serial number and bytes. `name` is cut. */
struct group_header exchange_header(enum group_kind kind, uint32_t type, int root,
                                    const char *name);

/* Ends the group with an error text; the first one counts. Returns OP_FAILED. */
capu_status exchange_end(struct capu_parallel *group, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Tells the other ranks that this one has failed, and ends the group, unless it has ended. Waits
   for them, and takes the lock itself: called without it, on the context's thread. */
void exchange_give_up(struct capu_parallel *group, capu_status failure, const char *name,
                      const char *why);

/* Exchanges headers: waits until all ranks are there. OP_FAILED, and the group has ended: a rank
   has failed, has another header, has ended, or does not answer. */
capu_status exchange_meet(struct capu_parallel *group, struct group_header *own);

/* Starts to receive, and to send; complete after exchange_wait. `name` is for errors. At most one
   of each per rank and wait. OP_FAILED, and the group has ended. */
capu_status exchange_receive(struct capu_parallel *group, const char *name, int rank, void *to,
                             uint64_t bytes);
capu_status exchange_send(struct capu_parallel *group, const char *name, int rank, const void *from,
                          uint64_t bytes);
capu_status exchange_wait(struct capu_parallel *group, const char *name);

/* The machine's monotonic clock. */
uint64_t exchange_now_ns(void);

#endif

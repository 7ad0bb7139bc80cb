/*
 * Moving the data of one collective, after the headers agree.
 *
 * Called with the group's lock held, by the op's run function.
 */
#ifndef CAPU_PARALLEL_TRANSFER_H
#define CAPU_PARALLEL_TRANSFER_H

#include "parallel/group.h"

/* A collective of one op, as its argument block has it. */
struct transfer {
    struct capu_parallel *group;
    uint64_t
        count; /* elements of the range on each rank; where there are two, of the smaller one */
    void *to;
    const void *from;
    struct group_header header; /* without serial number and bytes */
};

/* Device memory that a transfer needs beside its operands, for buckets of this size. */
uint64_t transfer_workspace_bytes(uint64_t bucket_bytes, int ranks);

/* Bytes of the larger range. */
uint64_t transfer_bytes(const struct transfer *transfer);

/* Moves the data. OP_FAILED, and the group has ended. */
capu_status transfer_run(const struct transfer *transfer);

#endif

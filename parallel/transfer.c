/*
 * The data of collectives, see transfer.h.
 *
 * A sum is made by one rank and sent to the others, so that all have the same bits: rank r adds up
 * the r-th part of a bucket. Everything goes in buckets, so what a collective needs beside its
 * operands does not grow with them.
 */
#include "parallel/transfer.h"

#include "capuchin/parallel.h"
#include "parallel/exchange.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Sums of the numbers of all ranks, in the order of the ranks. Elements may lie at any address, so
   they are copied. */

#define SUM(name_, type_, wide_)                                                                 \
    static void name_(unsigned char *to, const void *const *parts, int ranks, size_t count)      \
    {                                                                                            \
        for (size_t i = 0; i < count; i++) {                                                     \
            type_ sum;                                                                           \
            type_ next;                                                                          \
                                                                                                 \
            memcpy(&sum, (const unsigned char *)parts[0] + i * sizeof(sum), sizeof(sum));        \
            for (int r = 1; r < ranks; r++) {                                                    \
                memcpy(&next, (const unsigned char *)parts[r] + i * sizeof(next), sizeof(next)); \
                sum = (type_)((wide_)sum + (wide_)next);                                         \
            }                                                                                    \
            memcpy(to + i * sizeof(sum), &sum, sizeof(sum));                                     \
        }                                                                                        \
    }

SUM(sum_f32, float, float)
SUM(sum_f64, double, double)
SUM(sum_i32, int32_t, uint32_t)
SUM(sum_i64, int64_t, uint64_t)

/*
 * Stores ((x0 + x1) + x2) + ... at `to` for each of `count` elements. The numbers of rank r are at
 * parts[r], aligned in no way; one of them may be `to` itself. Each sum is rounded to the element's
 * type; integers wrap around. `type` is a capu_parallel_type other than BYTE.
 */
static void sum_ranks(void *to, const void *const *parts, int ranks, size_t count, uint32_t type)
{
    switch (type) {
    case CAPU_PARALLEL_F32:
        sum_f32(to, parts, ranks, count);
        break;
    case CAPU_PARALLEL_F64:
        sum_f64(to, parts, ranks, count);
        break;
    case CAPU_PARALLEL_I32:
        sum_i32(to, parts, ranks, count);
        break;
    default:
        sum_i64(to, parts, ranks, count);
        break;
    }
}

enum { ALIGNMENT = 8 };

/* A part of a bucket: elements from `first` on. */
struct part {
    uint64_t first;
    uint64_t count;
};

uint64_t transfer_workspace_bytes(uint64_t bucket_bytes, int ranks)
{
    uint64_t others = (uint64_t)ranks - 1;

    return others * (bucket_bytes / (uint64_t)ranks + ALIGNMENT);
}

uint64_t transfer_bytes(const struct transfer *transfer)
{
    bool has_two =
        transfer->header.kind == GROUP_ALLGATHER || transfer->header.kind == GROUP_REDUCE_SCATTER;

    return transfer->count * group_type_bytes(transfer->header.type) *
           (has_two ? (uint64_t)transfer->group->ranks : 1);
}

/* The part of `count` elements that a rank adds up. */
static struct part part_of(uint64_t count, int ranks, int rank)
{
    uint64_t each = (count + (uint64_t)ranks - 1) / (uint64_t)ranks;
    uint64_t first = each * (uint64_t)rank < count ? each * (uint64_t)rank : count;

    return (struct part){first, count - first < each ? count - first : each};
}

/* Where the part from another rank is received: the others share the workspace. */
static unsigned char *slot_of(const struct transfer *transfer, int rank)
{
    const struct capu_parallel *group = transfer->group;
    uint64_t each = group->bucket_bytes / (uint64_t)group->ranks + ALIGNMENT;
    int slot = rank < group->rank ? rank : rank - 1;

    return (unsigned char *)group->workspace + (uint64_t)slot * each;
}

static capu_status receive(const struct transfer *transfer, int rank, void *to, uint64_t bytes)
{
    return bytes > 0 ? exchange_receive(transfer->group, transfer->header.name, rank, to, bytes)
                     : CAPU_OK;
}

static capu_status send(const struct transfer *transfer, int rank, const void *from, uint64_t bytes)
{
    return bytes > 0 ? exchange_send(transfer->group, transfer->header.name, rank, from, bytes)
                     : CAPU_OK;
}

/* Every rank sends parts[r], which begins at `from`, to rank r, receives its own part from all, and
   stores their sum at `to`. */
static capu_status reduce(const struct transfer *transfer, unsigned char *to,
                          const unsigned char *from, const struct part *parts)
{
    struct capu_parallel *group = transfer->group;
    uint64_t size = group_type_bytes(transfer->header.type);
    const struct part *own = &parts[group->rank];
    const void *numbers[group->ranks];
    capu_status status = CAPU_OK;

    for (int r = 0; r < group->ranks && status == CAPU_OK; r++) {
        numbers[r] = r == group->rank ? from + own->first * size : slot_of(transfer, r);
        if (r != group->rank) {
            status = receive(transfer, r, slot_of(transfer, r), own->count * size);
        }
    }
    for (int r = 0; r < group->ranks && status == CAPU_OK; r++) {
        if (r != group->rank) {
            status = send(transfer, r, from + parts[r].first * size, parts[r].count * size);
        }
    }
    status = status == CAPU_OK ? exchange_wait(group, transfer->header.name) : status;
    if (status == CAPU_OK) {
        sum_ranks(to, numbers, group->ranks, own->count, transfer->header.type);
    }
    return status;
}

/* Every rank sends `own` to all others, and receives parts[r], which begins at `to`, from rank r.
 */
static capu_status gather(const struct transfer *transfer, unsigned char *to,
                          const unsigned char *own, const struct part *parts)
{
    struct capu_parallel *group = transfer->group;
    uint64_t size = group_type_bytes(transfer->header.type);
    capu_status status = CAPU_OK;

    for (int r = 0; r < group->ranks && status == CAPU_OK; r++) {
        if (r != group->rank) {
            status = receive(transfer, r, to + parts[r].first * size, parts[r].count * size);
        }
    }
    for (int r = 0; r < group->ranks && status == CAPU_OK; r++) {
        if (r != group->rank) {
            status = send(transfer, r, own, parts[group->rank].count * size);
        }
    }
    return status == CAPU_OK ? exchange_wait(group, transfer->header.name) : status;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static capu_status allreduce(const struct transfer *transfer)
{
    struct capu_parallel *group = transfer->group;
    uint64_t size = group_type_bytes(transfer->header.type);
    uint64_t most = group->bucket_bytes / size;
    struct part parts[group->ranks];
    capu_status status = CAPU_OK;

    for (uint64_t done = 0; done < transfer->count && status == CAPU_OK; done += most) {
        unsigned char *bucket = (unsigned char *)transfer->to + done * size;
        unsigned char *own;

        for (int r = 0; r < group->ranks; r++) {
            parts[r] = part_of(smaller(transfer->count - done, most), group->ranks, r);
        }
        own = bucket + parts[group->rank].first * size;
        status = reduce(transfer, own, bucket, parts);
        status = status == CAPU_OK ? gather(transfer, bucket, own, parts) : status;
    }
    return status;
}

/* How many elements of each rank go into a bucket of the other collectives. */
static uint64_t elements_each(const struct transfer *transfer)
{
    const struct capu_parallel *group = transfer->group;

    return group->bucket_bytes / (uint64_t)group->ranks / group_type_bytes(transfer->header.type);
}

static capu_status reduce_scatter(const struct transfer *transfer)
{
    struct capu_parallel *group = transfer->group;
    uint64_t size = group_type_bytes(transfer->header.type);
    uint64_t most = elements_each(transfer);
    struct part parts[group->ranks];
    capu_status status = CAPU_OK;

    for (uint64_t done = 0; done < transfer->count && status == CAPU_OK; done += most) {
        for (int r = 0; r < group->ranks; r++) {
            parts[r] = (struct part){(uint64_t)r * transfer->count + done,
                                     smaller(transfer->count - done, most)};
        }
        status =
            reduce(transfer, (unsigned char *)transfer->to + done * size, transfer->from, parts);
    }
    return status;
}

static capu_status allgather(const struct transfer *transfer)
{
    struct capu_parallel *group = transfer->group;
    uint64_t size = group_type_bytes(transfer->header.type);
    uint64_t most = elements_each(transfer);
    struct part parts[group->ranks];
    capu_status status = CAPU_OK;

    memcpy((unsigned char *)transfer->to + (uint64_t)group->rank * transfer->count * size,
           transfer->from, transfer->count * size);
    for (uint64_t done = 0; done < transfer->count && status == CAPU_OK; done += most) {
        for (int r = 0; r < group->ranks; r++) {
            parts[r] = (struct part){(uint64_t)r * transfer->count + done,
                                     smaller(transfer->count - done, most)};
        }
        status = gather(transfer, transfer->to, (const unsigned char *)transfer->from + done * size,
                        parts);
    }
    return status;
}

static capu_status broadcast(const struct transfer *transfer)
{
    struct capu_parallel *group = transfer->group;
    uint64_t bytes = transfer_bytes(transfer);
    capu_status status = CAPU_OK;

    for (uint64_t done = 0; done < bytes && status == CAPU_OK; done += group->bucket_bytes) {
        unsigned char *bucket = (unsigned char *)transfer->to + done;
        uint64_t now = smaller(bytes - done, group->bucket_bytes);

        if (group->rank != (int)transfer->header.root) {
            status = receive(transfer, (int)transfer->header.root, bucket, now);
        }
        for (int r = 0; r < group->ranks && status == CAPU_OK; r++) {
            if (group->rank == (int)transfer->header.root && r != group->rank) {
                status = send(transfer, r, bucket, now);
            }
        }
        status = status == CAPU_OK ? exchange_wait(group, transfer->header.name) : status;
    }
    return status;
}

capu_status transfer_run(const struct transfer *transfer)
{
    switch (transfer->header.kind) {
    case GROUP_ALLREDUCE:
        return allreduce(transfer);
    case GROUP_BROADCAST:
        return broadcast(transfer);
    case GROUP_ALLGATHER:
        return allgather(transfer);
    default:
        return reduce_scatter(transfer);
    }
}

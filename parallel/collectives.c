/*
 * The collectives, as ops of the context: see capuchin/parallel.h.
 *
 * A sum is made by one rank and sent to the others, so that all have the same bits: rank r adds up
 * the r-th part of a bucket. Everything goes in buckets, so what a collective needs beside its
 * operands does not grow with them.
 */
#include "capuchin/parallel.h"

#include "capuchin/memory.h"
#include "capuchin/op.h"
#include "capuchin/private.h"
#include "parallel/exchange.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* A collective of one op, as its argument block has it. */
struct transfer {
    struct capu_parallel *group;
    uint64_t
        count; /* elements of the range on each rank; where there are two, of the smaller one */
    void *to;
    const void *from;
    struct group_header header; /* without serial number and bytes */
};

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

uint64_t collectives_workspace_bytes(uint64_t bucket_bytes, int ranks)
{
    uint64_t others = (uint64_t)ranks - 1;

    return others * (bucket_bytes / (uint64_t)ranks + ALIGNMENT);
}

/* Bytes of the larger range. */
static uint64_t transfer_bytes(const struct transfer *transfer)
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

static capu_status receive_part(const struct transfer *transfer, int rank, void *to, uint64_t bytes)
{
    return bytes > 0 ? exchange_receive(transfer->group, transfer->header.name, rank, to, bytes)
                     : CAPU_OK;
}

static capu_status send_part(const struct transfer *transfer, int rank, const void *from,
                             uint64_t bytes)
{
    return bytes > 0 ? exchange_send(transfer->group, transfer->header.name, rank, from, bytes)
                     : CAPU_OK;
}

/* Every rank sends parts[r], which begins at `from`, to rank r, receives its own part from all, and
   stores their sum at `to`. */
static capu_status reduce_part(const struct transfer *transfer, unsigned char *to,
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
            status = receive_part(transfer, r, slot_of(transfer, r), own->count * size);
        }
    }
    for (int r = 0; r < group->ranks && status == CAPU_OK; r++) {
        if (r != group->rank) {
            status = send_part(transfer, r, from + parts[r].first * size, parts[r].count * size);
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
static capu_status gather_parts(const struct transfer *transfer, unsigned char *to,
                                const unsigned char *own, const struct part *parts)
{
    struct capu_parallel *group = transfer->group;
    uint64_t size = group_type_bytes(transfer->header.type);
    capu_status status = CAPU_OK;

    for (int r = 0; r < group->ranks && status == CAPU_OK; r++) {
        if (r != group->rank) {
            status = receive_part(transfer, r, to + parts[r].first * size, parts[r].count * size);
        }
    }
    for (int r = 0; r < group->ranks && status == CAPU_OK; r++) {
        if (r != group->rank) {
            status = send_part(transfer, r, own, parts[group->rank].count * size);
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
        status = reduce_part(transfer, own, bucket, parts);
        status = status == CAPU_OK ? gather_parts(transfer, bucket, own, parts) : status;
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
        status = reduce_part(transfer, (unsigned char *)transfer->to + done * size, transfer->from,
                             parts);
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
        status = gather_parts(transfer, transfer->to,
                              (const unsigned char *)transfer->from + done * size, parts);
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
            status = receive_part(transfer, (int)transfer->header.root, bucket, now);
        }
        for (int r = 0; r < group->ranks && status == CAPU_OK; r++) {
            if (group->rank == (int)transfer->header.root && r != group->rank) {
                status = send_part(transfer, r, bucket, now);
            }
        }
        status = status == CAPU_OK ? exchange_wait(group, transfer->header.name) : status;
    }
    return status;
}

/* Moves the data. Called with the lock of the group held. OP_FAILED, and the group has ended. */
static capu_status transfer_run(const struct transfer *transfer)
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

/* The ops. */

/* On the stream's thread: the headers, then the data. One rank alone only has data to copy. */
static capu_status meet_and_transfer(const struct transfer *transfer)
{
    struct capu_parallel *group = transfer->group;
    struct group_header header = transfer->header;
    uint64_t start_ns = exchange_now_ns();
    uint64_t met_ns;
    capu_status status;

    header.bytes = transfer_bytes(transfer);
    status = exchange_meet(group, &header);
    met_ns = exchange_now_ns();
    if (group->ranks > 1) {
        (void)capu_run_waited(met_ns - start_ns);
    }
    if (status == CAPU_OK) {
        status = transfer_run(transfer);
    }
    if (status == CAPU_OK && group->ranks > 1) {
        (void)capuchin_run_exchanged(transfer_bytes(transfer), exchange_now_ns() - met_ns);
    }
    return status;
}

static capu_status run_transfer(capu_stream stream, const void *arguments)
{
    const struct transfer *transfer = arguments;
    struct capu_parallel *group = transfer->group;
    capu_status status;

    (void)stream;
    pthread_mutex_lock(&group->lock);
    status = meet_and_transfer(transfer);
    pthread_mutex_unlock(&group->lock);
    if (status != CAPU_OK) {
        (void)capu_run_explain(group->error);
    }
    return status;
}

/* Enqueues one op. Collectives differ from rank to rank in what they do, so they never run again.
 */
static capu_status enqueue_collective(const struct transfer *transfer, const char *name,
                                      const capu_operand *operands, size_t operand_count)
{
    capu_op op = {
        .size = sizeof(op),
        .name = name,
        .run = run_transfer,
        .arguments = transfer,
        .argument_bytes = sizeof(*transfer),
        .operands = operands,
        .operand_count = operand_count,
        .flags = CAPU_OP_NOT_REPLAYABLE,
        .key = transfer->header.kind,
    };

    return capu_run(transfer->group->context, &op);
}

/* An op over [to, to + count) that every rank has. The ranks' parts of the workspace are of no use
   to a broadcast, or to one rank. */
static capu_status enqueue_range(const struct transfer *transfer, const char *name)
{
    const struct capu_parallel *group = transfer->group;
    bool sums = transfer->header.kind == GROUP_ALLREDUCE;
    capu_role role = sums                                        ? CAPU_UPDATE
                     : group->rank == (int)transfer->header.root ? CAPU_READ
                                                                 : CAPU_WRITE;
    capu_operand operands[] = {
        capu_operand_of(transfer->to, transfer_bytes(transfer), role),
        capu_scratch(group->workspace),
    };

    return enqueue_collective(transfer, name, operands, sums && group->workspace != NULL ? 2 : 1);
}

/*
 * How much of a range one op takes, from its beginning: the first tensor, and those after it that
 * fit into a bucket together. This depends on how the program has split its memory, and on nothing
 * else, so it is the same on all ranks. After an error *why says what is wrong; NULL: the context
 * says.
 */
static capu_status first_piece(const struct transfer *transfer, uint64_t *count, const char **why)
{
    struct capu_parallel *group = transfer->group;
    uint64_t size = group_type_bytes(transfer->header.type);
    uint64_t all = transfer->count * size;
    const unsigned char *begin = transfer->to;
    uint64_t bytes = 0;

    *why = NULL;
    while (bytes < all) {
        capu_tensor_state tensor = {.size = sizeof(tensor)};
        capu_status status = capu_tensor_query(group->context, begin + bytes, &tensor);
        uint64_t end;

        if (status != CAPU_OK) {
            return status;
        }
        end = (uint64_t)((const unsigned char *)tensor.address + tensor.bytes - begin);
        if (end < all && capu_tensor_next(group->context, begin + bytes) == NULL) {
            *why = "the range reaches past the end of its allocation";
            return CAPU_WRONG_ADDRESS;
        }
        end = end < all ? end : all;
        if (end % size != 0) {
            *why = "a tensor ends inside an element";
            return CAPU_INVALID;
        }
        if (bytes > 0 && end > group->bucket_bytes) {
            break;
        }
        bytes = end;
    }
    *count = bytes / size;
    return CAPU_OK;
}

static bool is_sum(const struct transfer *transfer)
{
    return transfer->header.kind == GROUP_ALLREDUCE ||
           transfer->header.kind == GROUP_REDUCE_SCATTER;
}

/* After an error *why says what is wrong. */
static capu_status check_collective(const struct transfer *transfer, const char *name,
                                    const char **why)
{
    const struct capu_parallel *group = transfer->group;
    size_t size = group_type_bytes(transfer->header.type);

    *why = NULL;
    if (name == NULL || name[0] == '\0') {
        *why = "a collective needs a name";
    } else if (size == 0) {
        *why = "there is no such element type";
    } else if (is_sum(transfer) && transfer->header.type == CAPU_PARALLEL_BYTE) {
        *why = "bytes are not summed: say which numbers they are";
    } else if (transfer->to == NULL || transfer->from == NULL) {
        *why = "an address is NULL";
    } else if (transfer->header.root >= (uint32_t)group->ranks) {
        *why = "the root is not a rank of the group";
    }
    if (*why != NULL) {
        return CAPU_INVALID;
    }
    if (transfer->count == 0) {
        *why = "there are no elements";
        return CAPU_INVALID;
    }
    if (transfer->count > UINT64_MAX / size / (uint64_t)group->ranks) {
        *why = "no memory has so many elements";
        return CAPU_TOO_LARGE;
    }
    return CAPU_OK;
}

/* Tells the others of a collective that did not begin here. A call that comes at a wrong place or
   from a wrong process must not. `why` NULL: the context says. */
static capu_status reject_collective(struct capu_parallel *group, const char *name,
                                     capu_status status, const char *why)
{
    char text[GROUP_TEXT_BYTES];

    name = name != NULL ? name : "";
    if (why != NULL) {
        snprintf(text, sizeof(text), "'%s': %s", name, why);
    } else {
        why = capu_last_error(group->context);
        snprintf(text, sizeof(text), "%s", why);
    }
    if (status != CAPU_WRONG_ORDER) {
        exchange_give_up(group, status, name, why);
    }
    return capu_explain(group->context, status, text); /* giving up may have failed, too */
}

/* A collective over one range, in as many ops as it needs. */
static capu_status run_range(struct transfer transfer, const char *name)
{
    struct capu_parallel *group = transfer.group;
    uint64_t left = transfer.count;
    const char *why;
    capu_status status = check_collective(&transfer, name, &why);

    if (status != CAPU_OK) {
        return reject_collective(group, name, status, why);
    }
    while (left > 0) {
        transfer.count = left;
        status = first_piece(&transfer, &transfer.count, &why);
        status = status == CAPU_OK ? enqueue_range(&transfer, name) : status;
        if (status != CAPU_OK) {
            return reject_collective(group, name, status, why);
        }
        left -= transfer.count;
        transfer.to =
            (unsigned char *)transfer.to + transfer.count * group_type_bytes(transfer.header.type);
    }
    return CAPU_OK;
}

/* A collective with a range for this rank and one for all. */
static capu_status run_pair(struct transfer transfer, const char *name)
{
    struct capu_parallel *group = transfer.group;
    uint64_t bytes = transfer.count * group_type_bytes(transfer.header.type);
    uint64_t all = bytes * (uint64_t)group->ranks;
    bool sums = is_sum(&transfer);
    capu_operand operands[] = {
        capu_operand_of(transfer.from, sums ? all : bytes, CAPU_READ),
        capu_operand_of(transfer.to, sums ? bytes : all, CAPU_WRITE),
        capu_scratch(group->workspace),
    };
    const char *why;
    capu_status status = check_collective(&transfer, name, &why);

    if (status != CAPU_OK) {
        return reject_collective(group, name, status, why);
    }
    status =
        enqueue_collective(&transfer, name, operands, sums && group->workspace != NULL ? 3 : 2);
    return status == CAPU_OK ? CAPU_OK : reject_collective(group, name, status, NULL);
}

/* A collective, if it can be issued at all. */
static capu_status run_collective(struct capu_parallel *group, enum group_kind kind,
                                  const char *name, void *to, const void *from, size_t count,
                                  capu_parallel_type type, int root)
{
    struct transfer transfer = {.group = group, .count = count, .to = to, .from = from};
    char text[GROUP_TEXT_BYTES + GROUP_NAME_BYTES];

    if (group == NULL) {
        return CAPU_INVALID;
    }
    if (atomic_load_explicit(&group->has_ended, memory_order_acquire)) {
        snprintf(text, sizeof(text), "'%s' needs the group, which has failed: %s",
                 name != NULL ? name : "", group->error);
        return capu_explain(group->context, CAPU_OP_FAILED, text);
    }
    transfer.header = exchange_header(kind, (uint32_t)type, root, name != NULL ? name : "");
    return kind == GROUP_ALLREDUCE || kind == GROUP_BROADCAST ? run_range(transfer, name)
                                                              : run_pair(transfer, name);
}

capu_status capu_parallel_allreduce(capu_parallel *group, const char *name, void *address,
                                    size_t count, capu_parallel_type type)
{
    return run_collective(group, GROUP_ALLREDUCE, name, address, address, count, type, 0);
}

capu_status capu_parallel_broadcast(capu_parallel *group, const char *name, void *address,
                                    size_t count, capu_parallel_type type, int root)
{
    return run_collective(group, GROUP_BROADCAST, name, address, address, count, type, root);
}

capu_status capu_parallel_allgather(capu_parallel *group, const char *name, void *to,
                                    const void *from, size_t count, capu_parallel_type type)
{
    return run_collective(group, GROUP_ALLGATHER, name, to, from, count, type, 0);
}

capu_status capu_parallel_reduce_scatter(capu_parallel *group, const char *name, void *to,
                                         const void *from, size_t count, capu_parallel_type type)
{
    return run_collective(group, GROUP_REDUCE_SCATTER, name, to, from, count, type, 0);
}

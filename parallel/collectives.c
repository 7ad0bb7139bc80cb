/* The collectives, as ops of the context: see capuchin/parallel.h. */
#include "capuchin/parallel.h"

#include "capuchin/memory.h"
#include "capuchin/op.h"
#include "parallel/exchange.h"
#include "parallel/transfer.h"

#include <stdio.h>

/* On the stream's thread: the headers, then the data. One rank alone only has data to copy. */
static capu_status exchange(const struct transfer *transfer)
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
        (void)capu_run_exchanged(transfer_bytes(transfer), exchange_now_ns() - met_ns);
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
    status = exchange(transfer);
    pthread_mutex_unlock(&group->lock);
    if (status != CAPU_OK) {
        (void)capu_run_explain(group->error);
    }
    return status;
}

/* Enqueues one op. Collectives differ from rank to rank in what they do, so they never run again.
 */
static capu_status enqueue(const struct transfer *transfer, const char *name,
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

    return enqueue(transfer, name, operands, sums && group->workspace != NULL ? 2 : 1);
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
            return CAPU_OUT_OF_RANGE;
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
static capu_status check(const struct transfer *transfer, const char *name, const char **why)
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
        return CAPU_ZERO_BYTES;
    }
    if (transfer->count > UINT64_MAX / size / (uint64_t)group->ranks) {
        *why = "no memory has so many elements";
        return CAPU_TOO_LARGE;
    }
    return CAPU_OK;
}

/* Tells the others of a collective that did not begin here. A call that comes at a wrong place or
   from a wrong process must not. `why` NULL: the context says. */
static capu_status refuse(struct capu_parallel *group, const char *name, capu_status status,
                          const char *why)
{
    char text[GROUP_TEXT_BYTES];

    name = name != NULL ? name : "";
    if (why != NULL) {
        snprintf(text, sizeof(text), "'%s': %s", name, why);
    } else {
        why = capu_last_error(group->context);
        snprintf(text, sizeof(text), "%s", why);
    }
    if (status != CAPU_WRONG_ORDER && status != CAPU_WRONG_PROCESS) {
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
    capu_status status = check(&transfer, name, &why);

    if (status != CAPU_OK) {
        return refuse(group, name, status, why);
    }
    while (left > 0) {
        transfer.count = left;
        status = first_piece(&transfer, &transfer.count, &why);
        status = status == CAPU_OK ? enqueue_range(&transfer, name) : status;
        if (status != CAPU_OK) {
            return refuse(group, name, status, why);
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
    capu_status status = check(&transfer, name, &why);

    if (status != CAPU_OK) {
        return refuse(group, name, status, why);
    }
    status = enqueue(&transfer, name, operands, sums && group->workspace != NULL ? 3 : 2);
    return status == CAPU_OK ? CAPU_OK : refuse(group, name, status, NULL);
}

/* A collective, if it can be issued at all. */
static capu_status run(struct capu_parallel *group, enum group_kind kind, const char *name,
                       void *to, const void *from, size_t count, capu_parallel_type type, int root)
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
    return run(group, GROUP_ALLREDUCE, name, address, address, count, type, 0);
}

capu_status capu_parallel_broadcast(capu_parallel *group, const char *name, void *address,
                                    size_t count, capu_parallel_type type, int root)
{
    return run(group, GROUP_BROADCAST, name, address, address, count, type, root);
}

capu_status capu_parallel_allgather(capu_parallel *group, const char *name, void *to,
                                    const void *from, size_t count, capu_parallel_type type)
{
    return run(group, GROUP_ALLGATHER, name, to, from, count, type, 0);
}

capu_status capu_parallel_reduce_scatter(capu_parallel *group, const char *name, void *to,
                                         const void *from, size_t count, capu_parallel_type type)
{
    return run(group, GROUP_REDUCE_SCATTER, name, to, from, count, type, 0);
}

/*
 * Which tensors a launch writes as a whole, whatever they held: all bytes are stored to for
 * certain, and nothing in the launch may read any, through whichever pointer. That depends on the
 * actual addresses, so it is found at each launch. Their part of the updates becomes a write of the
 * whole tensor; what is left stays an update.
 */
#include "shim/core/core.h"
#include "shim/launch/reach_parts.h"

#include "runtime/api/describe.h"

#include <stdlib.h>

static uint64_t first_of(const capu_operand *operand)
{
    return (uintptr_t)operand->address;
}

static uint64_t end_of(const capu_operand *operand)
{
    return (uintptr_t)operand->address + operand->bytes;
}

static int by_address(const void *one, const void *other)
{
    uint64_t a = first_of(one);
    uint64_t b = first_of(other);

    return (a > b) - (a < b);
}

/* Puts ranges in order, and makes one of those that touch or overlap. */
static void merge(struct operands *operands)
{
    size_t count = 0;

    if (operands->count > 0) {
        qsort(operands->list, operands->count, sizeof(operands->list[0]), by_address);
    }
    for (size_t i = 0; i < operands->count; i++) {
        capu_operand *last = count > 0 ? &operands->list[count - 1] : NULL;
        uint64_t end = end_of(&operands->list[i]);

        if (last == NULL || first_of(&operands->list[i]) > end_of(last)) {
            operands->list[count++] = operands->list[i];
        } else if (end > end_of(last)) {
            last->bytes = end - first_of(last);
        }
    }
    operands->count = count;
}

static bool meets(const struct operands *operands, uint64_t first, uint64_t end)
{
    for (size_t i = 0; i < operands->count; i++) {
        if (first_of(&operands->list[i]) < end && end_of(&operands->list[i]) > first) {
            return true;
        }
    }
    return false;
}

/* Lists the tensors that lie in a range and that no read meets. */
static void add_tensors(const capu_operand *range, const struct operands *reads,
                        struct operands *writes)
{
    struct describe_range left = {first_of(range), end_of(range)};
    capu_tensor_state state;

    while (describe_next(core_context(), &left, &state)) {
        uint64_t first = (uintptr_t)state.address;

        if (first >= first_of(range) && left.address <= left.end &&
            !meets(reads, first, left.address)) {
            operands_put(writes, first, state.bytes, CAPU_WRITE);
        }
    }
}

/* Takes the tensors that are written, which are in order, out of an update. What is left of it are
   more of them. */
static void split(struct operands *operands, size_t index, const struct operands *writes)
{
    capu_operand update = operands->list[index];
    uint64_t at = first_of(&update);
    bool is_first = true;

    for (size_t i = 0; i <= writes->count; i++) {
        uint64_t end = i < writes->count && first_of(&writes->list[i]) < end_of(&update)
                           ? first_of(&writes->list[i])
                           : end_of(&update);

        if (end > at && is_first) {
            operands->list[index] =
                capu_operand_of((const void *)(uintptr_t)at, end - at, CAPU_UPDATE);
            is_first = false;
        } else if (end > at) {
            operands_put(operands, at, end - at, CAPU_UPDATE);
        }
        at = i < writes->count && end_of(&writes->list[i]) > at ? end_of(&writes->list[i]) : at;
    }
    if (is_first) {
        operands->list[index].bytes = 0; /* nothing is left */
    }
}

static void drop_empty(struct operands *operands)
{
    size_t count = 0;

    for (size_t i = 0; i < operands->count; i++) {
        if (operands->list[i].bytes > 0) {
            operands->list[count++] = operands->list[i];
        }
    }
    operands->count = count;
}

uint64_t reach_find_writes(struct operands *operands, const struct operands *reads,
                           struct operands *covered)
{
    static struct operands writes; /* guarded by the core's lock */
    size_t count = operands->count;
    uint64_t bytes = 0;

    writes.count = 0;
    merge(covered);
    for (size_t i = 0; i < covered->count && !reads->has_failed; i++) {
        add_tensors(&covered->list[i], reads, &writes);
    }
    if (writes.count == 0) {
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        if (operands->list[i].role == CAPU_UPDATE) {
            split(operands, i, &writes);
        }
    }
    drop_empty(operands);
    for (size_t i = 0; i < writes.count; i++) {
        operands_put(operands, first_of(&writes.list[i]), writes.list[i].bytes, CAPU_WRITE);
        bytes += writes.list[i].bytes;
    }
    return bytes;
}

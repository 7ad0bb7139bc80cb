/* The steps of strict mode, see strict.h. */
#include "runtime/strict/strict.h"

#include "base/hash.h"
#include "runtime/context/failure.h"
#include "runtime/tensor/order.h"

#include <string.h>

static bool can_guard(const struct strict *strict)
{
    return strict_is_on(strict->settings) && strict->lanes->device->capabilities.can_guard;
}

capu_status strict_guard_device(struct strict *strict)
{
    return can_guard(strict) ? device_guard(strict->lanes->device) : CAPU_OK;
}

void strict_guard_slabs(struct strict *strict)
{
    if (can_guard(strict)) {
        slabs_spread(strict->memory->slabs);
    }
}

static capu_status poison_memory(struct strict *strict, void *address, uint64_t bytes)
{
    return device_fill(strict->lanes->device, strict->lanes->compute.stream, address, STRICT_POISON,
                       bytes);
}

capu_status strict_map(struct strict *strict, struct tensor *tensor)
{
    capu_status status;

    if (!strict_is_on(strict->settings)) {
        return CAPU_OK;
    }
    status = device_map(strict->lanes->device, tensor->span, tensor->pages, tensor->page_count);
    if (status == CAPU_OK) {
        TRACKER_ADD(strict->records, map_count, 1);
    }
    return failure_check(strict->failure, status, "handing pages over in strict mode");
}

capu_status strict_poison_mapped(struct strict *strict, const struct tensor *tensor)
{
    capu_status status;

    if (!strict_is_on(strict->settings)) {
        return CAPU_OK;
    }
    status = poison_memory(strict, tensor->span, tensor->span_bytes);
    if (status == CAPU_OK) {
        status = lane_synchronize(&strict->lanes->compute);
    }
    return failure_check(strict->failure, status, "handing pages over in strict mode");
}

capu_status strict_unmap(struct strict *strict, struct tensor *tensor)
{
    capu_status status;

    if (!strict_is_on(strict->settings)) {
        return CAPU_OK;
    }
    status = order_wait(tensor);
    if (status == CAPU_OK) {
        status = device_unmap(strict->lanes->device, tensor->span, tensor->page_count);
        TRACKER_ADD(strict->records, unmap_count, 1);
    }
    return failure_check(strict->failure, status, "giving pages up");
}

bool strict_has_poisoned(const struct strict *strict, const struct access *access)
{
    return strict_is_on(strict->settings) && !access->is_read;
}

struct poison strict_poison_of(const struct strict *strict, size_t access)
{
    return poison_of(strict->poison_number - access);
}

static capu_status fill_pattern(struct strict *strict, const struct poison *pattern, void *address,
                                uint64_t bytes)
{
    uint64_t here;

    for (uint64_t done = 0; done < bytes; done += here) {
        void *memory;

        here = bytes - done;
        memory = device_view(strict->lanes->device, (char *)address + done, &here);
        if (memory == NULL) {
            return CAPU_DEVICE_FAILED;
        }
        poison_fill(pattern, memory, (char *)address + done, here);
    }
    return CAPU_OK;
}

/* Poisons for an access: with its pattern, where the host can, so that it can be found again. */
static capu_status poison_access(struct strict *strict, size_t access, void *address,
                                 uint64_t bytes)
{
    struct poison pattern = strict_poison_of(strict, access);

    return can_guard(strict) ? fill_pattern(strict, &pattern, address, bytes)
                             : poison_memory(strict, address, bytes);
}

/* What a tensor without contents is not given by this op shows as well. */
static bool is_begun(const struct access *access)
{
    return access->is_partial && !tensor_is_defined(access->tensor);
}

static capu_status poison_undefined(struct strict *strict, const struct op *op)
{
    capu_status status = CAPU_OK;

    for (size_t i = 0; i < op->access_count && status == CAPU_OK; i++) {
        const struct access *access = &op->accesses[i];

        if (is_begun(access)) {
            status = poison_access(strict, i, access->tensor->address, access->tensor->bytes);
        }
    }
    return status;
}

bool strict_is_poisoned(const struct strict *strict, const struct op *op, const struct piece *piece)
{
    uint32_t role = piece_role(op, piece);

    return (role == CAPU_WRITE || role == CAPU_WRITE_REST_UNDEFINED || role == CAPU_SCRATCH) &&
           strict_has_poisoned(strict, &op->accesses[piece->access]);
}

static capu_status poison_outputs(struct strict *strict, const struct op *op)
{
    capu_status status = CAPU_OK;

    if (can_guard(strict)) {
        /* This thread writes the patterns: earlier work may still use what it writes to. */
        status = lane_synchronize(&strict->lanes->compute);
    }
    strict->poison_last += op->access_count;
    strict->poison_number = strict->poison_last;
    status = status == CAPU_OK ? poison_undefined(strict, op) : status;
    for (size_t i = 0; i < op->piece_count && status == CAPU_OK; i++) {
        const struct piece *piece = &op->pieces[i];

        if (strict_is_poisoned(strict, op, piece)) {
            status = poison_access(strict, piece->access, piece->address, piece->bytes);
        }
    }
    return failure_check(strict->failure, status, "poisoning the outputs of an op");
}

/* The work is apart, so that without strict mode an op saves no registers for it. */
capu_status strict_poison_outputs(struct strict *strict, const struct op *op)
{
    return strict_is_on(strict->settings) ? poison_outputs(strict, op) : CAPU_OK;
}

capu_status strict_poison_again(struct strict *strict, const struct op *op, bool is_other)
{
    capu_status status = CAPU_OK;

    for (size_t i = 0; i < op->piece_count && status == CAPU_OK; i++) {
        const struct piece *piece = &op->pieces[i];
        struct poison pattern = strict_poison_of(strict, piece->access);

        if (op->accesses[piece->access].recorded != CAPU_WRITE) {
            continue;
        }
        pattern = is_other ? poison_other(&pattern) : pattern;
        if (piece_role(op, piece) == CAPU_WRITE_REST_ZERO) {
            status = device_fill(strict->lanes->device, strict->lanes->compute.stream,
                                 piece->address, 0, piece->bytes);
        } else if (strict_is_poisoned(strict, op, piece)) {
            status = fill_pattern(strict, &pattern, piece->address, piece->bytes);
        }
    }
    return status;
}

/* Words begin at multiples of their size, as pages do, so the sum does not depend on which pages
   follow each other. */
uint64_t strict_checksum(const struct strict *strict, const struct tensor *tensor)
{
    uint64_t sum = 0;
    uint64_t here;
    uint64_t size;

    for (uint64_t done = 0; done < tensor->bytes; done += here) {
        const unsigned char *memory;

        here = tensor->bytes - done;
        memory = device_view(strict->lanes->device, (const char *)tensor->address + done, &here);
        for (uint64_t at = 0; memory != NULL && at < here; at += size) {
            uint64_t left = here - at;
            uint64_t word = 0;

            size = sizeof(word) - ((uintptr_t)tensor->address + done + at) % sizeof(word);
            size = size < left ? size : left;
            memcpy(&word, memory + at, (size_t)size);
            sum = hash_mix(sum, word);
        }
    }
    return sum;
}

void strict_copy(const struct strict *strict, const struct tensor *tensor, unsigned char *memory,
                 bool is_out)
{
    uint64_t here;

    for (uint64_t done = 0; done < tensor->bytes; done += here) {
        unsigned char *at;

        here = tensor->bytes - done;
        at = device_view(strict->lanes->device, (const char *)tensor->address + done, &here);
        if (at != NULL) {
            memcpy(is_out ? memory + done : at, is_out ? at : memory + done, here);
        }
    }
}

static void poison_scratch(struct strict *strict, const struct op *op)
{
    for (size_t i = 0; i < op->piece_count; i++) {
        const struct piece *piece = &op->pieces[i];

        if (op->accesses[piece->access].role == CAPU_SCRATCH) {
            poison_memory(strict, piece->address, piece->bytes);
        }
    }
}

void strict_poison_scratch(struct strict *strict, const struct op *op)
{
    if (strict_is_on(strict->settings)) {
        poison_scratch(strict, op);
    }
}

void strict_find_results(const struct strict *strict, const struct poison *poison, bool own,
                         const struct tensor *tensor, struct poison_found *found)
{
    uint64_t here;

    for (uint64_t done = 0; done < tensor->bytes; done += here) {
        const char *address = (const char *)tensor->address + done;
        const void *memory;

        here = tensor->bytes - done;
        memory = device_view(strict->lanes->device, address, &here);
        if (memory != NULL) {
            poison_find_results(poison, own, memory, address, here, found);
        }
    }
}

capu_status strict_poison_replay(struct strict *strict, const struct guide *guide,
                                 const struct guide_op *op)
{
    capu_status status = CAPU_OK;

    if (!strict_is_on(strict->settings) || op->call.kind == CALL_FILL) {
        return CAPU_OK;
    }
    for (uint32_t i = 0; i < op->accesses.count && status == CAPU_OK; i++) {
        const struct guide_access *access = &guide->accesses[op->accesses.first + i];
        const struct tensor *tensor = strict->guided->binding.tensors[access->tensor].tensor;

        if (access->role == CAPU_WRITE && tensor != NULL) {
            status = poison_memory(strict, tensor->address, tensor->bytes);
        }
    }
    return status;
}

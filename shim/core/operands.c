/* Operands of an access, see operands.h. */
#include "shim/core/operands.h"

#include "shim/core/alloc.h"
#include "shim/core/code.h"
#include "shim/core/core.h"
#include "shim/core/cut.h"
#include "shim/core/iteration.h"
#include "shim/driver/settings.h"

#include "base/array.h"
#include "runtime/api/describe.h"

#include <stdlib.h>
#include <string.h>

/* A list that no access uses, so that most need not be allocated. Guarded by the core's lock. */
static struct {
    capu_operand *list;
    size_t capacity;
} spare;

void operands_finish(struct operands *operands)
{
    if (operands->capacity > spare.capacity) {
        free(spare.list);
        spare.list = operands->list;
        spare.capacity = operands->capacity;
    } else {
        free(operands->list);
    }
    operands->list = NULL;
    operands->count = operands->capacity = 0;
}

static bool reserve(struct operands *operands, size_t count)
{
    if (operands->list == NULL) {
        operands->list = spare.list;
        operands->capacity = spare.capacity;
        spare.list = NULL;
        spare.capacity = 0;
    }
    return array_reserve(&operands->list, &operands->capacity, operands->count + count,
                         sizeof(operands->list[0]));
}

static uint64_t sum(const capu_operand *list, size_t count)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < count; i++) {
        bytes += list[i].bytes;
    }
    return bytes;
}

void operands_add_list(struct operands *operands, const capu_operand *list, size_t count)
{
    if (!reserve(operands, count)) {
        operands->has_failed = true;
        return;
    }
    if (count > 0) {
        memcpy(operands->list + operands->count, list, count * sizeof(list[0]));
    }
    operands->count += count;
    operands->bytes += sum(list, count);
}

static void note_store(const capu_operand *operand)
{
    if (settings_get()->mode == CAPU_MODE_GUIDED && operand->role != CAPU_READ) {
        alloc_note_stored((uintptr_t)operand->address);
    }
}

uint64_t operands_sum(const struct operands *operands)
{
    return sum(operands->list, operands->count);
}

void operands_note_list(struct operands *operands)
{
    operands->bytes = operands_sum(operands);
    for (size_t i = 0; i < operands->count; i++) {
        note_store(&operands->list[i]);
    }
}

void operands_add(struct operands *operands, uint64_t address, uint64_t bytes, capu_role role)
{
    const capu_operand operand = capu_operand_of((const void *)(uintptr_t)address, bytes, role);

    note_store(&operand);
    operands_add_list(operands, &operand, 1);
}

void operands_put(struct operands *operands, uint64_t address, uint64_t bytes, capu_role role)
{
    const capu_operand operand = capu_operand_of((const void *)(uintptr_t)address, bytes, role);

    operands_add_list(operands, &operand, 1);
}

uint64_t operands_mix_pointer(uint64_t pointers, uint64_t address)
{
    const struct allocation *allocation = alloc_find(address);

    return allocation != NULL
               ? iteration_mix_pointer(pointers, allocation->ordinal, address - allocation->address)
               : pointers;
}

bool operands_is_data(uint64_t address)
{
    return iteration_is_loose() && alloc_find_data(address) != NULL;
}

uint64_t operands_mix_event(uint64_t pointers, uint64_t address)
{
    const struct allocation *allocation = alloc_note_place(address);

    return allocation == NULL ? pointers
                              : iteration_mix_pointer(
                                    pointers, allocation->ordinal,
                                    operands_is_data(address) ? 0 : address - allocation->address);
}

uint64_t operands_note_pointer(uint64_t pointers, uint64_t address)
{
    return settings_get()->mode == CAPU_MODE_GUIDED
               ? iteration_join_pointers(pointers, operands_mix_event(0, address))
               : pointers;
}

void operands_widen(uint64_t *address, uint64_t *bytes)
{
    const struct allocation *allocation = alloc_find(*address);
    struct describe_range first = {*address, *address + 1};
    struct describe_range last = {*address + *bytes - 1, *address + *bytes};
    capu_tensor_state state;
    uint64_t begin;
    uint64_t end;

    if (allocation == NULL || !describe_next(core_context(), &last, &state) ||
        !describe_next(core_context(), &first, &state)) {
        return;
    }
    begin = (uintptr_t)state.address;
    begin = begin > allocation->address ? begin : allocation->address;
    end = last.address - allocation->address < allocation->bytes
              ? last.address
              : allocation->address + allocation->bytes;
    *address = begin;
    *bytes = end - begin;
}

uint64_t operands_tensor_bytes(uint64_t address, uint64_t bytes)
{
    operands_widen(&address, &bytes);
    return bytes;
}

void operands_loosen(struct operands *operands)
{
    uint64_t budget = iteration_is_loose() && alloc_has_data()
                          ? capu_context_config(core_context())->budget_bytes
                          : 0;
    uint64_t needed = 0;
    capu_operand *list = operands->list;

    for (size_t i = 0; i < operands->count && budget > 0; i++) {
        needed += operands_tensor_bytes((uintptr_t)list[i].address, list[i].bytes);
    }
    for (size_t i = 0; i < operands->count && needed < budget / 2; i++) {
        uint64_t address = (uintptr_t)list[i].address;
        uint64_t bytes = list[i].bytes;

        if (list[i].role == CAPU_READ && operands_is_data(address)) {
            operands_widen(&address, &bytes);
            operands->bytes += bytes - list[i].bytes;
            list[i] = capu_operand_of((const void *)(uintptr_t)address, bytes, CAPU_READ);
        }
    }
}

static int by_address(const void *one, const void *other)
{
    uint64_t a = (uintptr_t)((const capu_operand *)one)->address;
    uint64_t b = (uintptr_t)((const capu_operand *)other)->address;

    return (a > b) - (a < b);
}

void operands_merge(struct operands *operands, bool joins)
{
    capu_operand *list = operands->list;
    size_t kept = 0;

    if (operands->count > 0) {
        qsort(list, operands->count, sizeof(list[0]), by_address);
    }
    operands->bytes = 0;
    for (size_t i = 0; i < operands->count; i++) {
        uint64_t address = (uintptr_t)list[i].address;
        uint64_t end = address + list[i].bytes;
        capu_operand *last = kept > 0 ? &list[kept - 1] : NULL;
        uint64_t last_end = last != NULL ? (uintptr_t)last->address + last->bytes : 0;

        if (last != NULL && (address < last_end || (joins && address == last_end))) {
            last->role =
                last->role == CAPU_READ && list[i].role == CAPU_READ ? CAPU_READ : CAPU_UPDATE;
            last->bytes += end > last_end ? end - last_end : 0;
            operands->bytes += end > last_end ? end - last_end : 0;
            continue;
        }
        list[kept] = list[i];
        list[kept].role = list[i].role == CAPU_READ ? CAPU_READ : CAPU_UPDATE;
        operands->bytes += list[kept++].bytes;
    }
    operands->count = kept;
}

void operands_add_all(struct operands *operands)
{
    size_t count;
    const struct allocation *list = alloc_list(&count);

    for (size_t i = 0; i < count; i++) {
        operands_add(operands, list[i].address, list[i].bytes, CAPU_UPDATE);
    }
}

void operands_add_allocation(struct operands *operands, uint64_t address, capu_role role)
{
    const struct allocation *allocation = alloc_find_pointer(address);

    if (allocation != NULL) {
        operands_add(operands, allocation->address, allocation->bytes, role);
    }
}

void operands_add_range(struct operands *operands, uint64_t address, uint64_t bytes, capu_role role)
{
    const struct allocation *allocation = alloc_find(address);
    uint64_t left;

    if (allocation == NULL && address != 0 && role != CAPU_READ) {
        code_note_stored(); /* it may be a variable */
    }
    if (allocation == NULL || bytes == 0) {
        return;
    }
    left = allocation->bytes - (address - allocation->address);
    bytes = role == CAPU_READ && bytes > left ? left : bytes;
    if (bytes <= left && !(role == CAPU_READ && operands_is_data(address))) {
        cut_range(core_context(), address, bytes);
    }
    operands_add(operands, address, bytes, role);
}

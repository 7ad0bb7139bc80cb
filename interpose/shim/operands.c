/* Operands of an access, see operands.h. */
#include "interpose/shim/operands.h"

#include "interpose/shim/alloc.h"
#include "interpose/shim/code.h"
#include "interpose/shim/core.h"
#include "interpose/shim/cut.h"
#include "interpose/shim/iteration.h"

void operands_add(struct operands *operands, uint64_t address, uint64_t bytes, capu_role role)
{
    operands->bytes += bytes;
    operands->has_failed |= !core_add(address, bytes, role);
}

void operands_note_pointer(uint64_t address)
{
    const struct allocation *allocation = alloc_find(address);

    if (allocation != NULL) {
        iteration_add_pointer(allocation->ordinal, address - allocation->address);
    }
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
    if (bytes <= left) {
        cut_range(core_context(), address, bytes);
    }
    operands_add(operands, address, bytes, role);
}

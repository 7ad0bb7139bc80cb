/* What copies of all shapes share, see copy_ends.h. */
#include "shim/copies/copy_ends.h"

#include "shim/core/alloc.h"
#include "shim/core/core.h"
#include "shim/core/iteration.h"
#include "shim/core/operands.h"
#include "shim/driver/real.h"

bool copy_ends_pageable(uint64_t address)
{
    unsigned type = 0;

    return real_calls()->cuPointerGetAttribute(&type, POINTER_MEMORY_TYPE, address) !=
           DRIVER_SUCCESS;
}

bool copy_ends_visible(uint64_t address)
{
    unsigned type = 0;
    unsigned is_managed = 0;

    return real_calls()->cuPointerGetAttribute(&type, POINTER_MEMORY_TYPE, address) !=
               DRIVER_SUCCESS ||
           type == MEMORY_HOST ||
           (real_calls()->cuPointerGetAttribute(&is_managed, POINTER_IS_MANAGED, address) ==
                DRIVER_SUCCESS &&
            is_managed != 0);
}

void copy_ends_note(uint64_t to, uint64_t from, bool is_from_host)
{
    const struct allocation *source = alloc_find(from);
    uint64_t pointers = operands_note_pointer(0, to);

    /* What the host looks at may be elsewhere each time, such as the element with the largest
       number. */
    pointers = operands_note_pointer(
        pointers, source != NULL && alloc_find(to) == NULL ? source->address : from);
    iteration_event(core_context(), is_from_host ? "copy from the host" : "copy",
                    is_from_host ? PERIOD_COPY_IN : PERIOD_OTHER, pointers);
}

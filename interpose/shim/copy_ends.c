/* What copies of all shapes share, see copy_ends.h. */
#include "interpose/shim/copy_ends.h"

#include "interpose/shim/core.h"
#include "interpose/shim/iteration.h"
#include "interpose/shim/operands.h"
#include "interpose/shim/real_calls.h"

bool copy_ends_pageable(uint64_t address)
{
    unsigned type = 0;

    return real_calls()->cuPointerGetAttribute(&type, POINTER_MEMORY_TYPE, address) !=
           DRIVER_SUCCESS;
}

void copy_ends_note(uint64_t to, uint64_t from, bool is_from_host)
{
    operands_note_pointer(to);
    operands_note_pointer(from);
    iteration_event(core_context(), is_from_host ? "copy from the host" : "copy",
                    is_from_host ? PERIOD_COPY_IN : PERIOD_OTHER);
}

/*
 * Device memory outside the context: what the program allocates in ways that stay the driver's, and
 * what CUDA's libraries allocate for themselves. It is taken from the budget before it is
 * allocated, and given back after it was freed. Thread: any, also one that has entered the core.
 */
#ifndef CAPU_SHIM_OUTSIDE_H
#define CAPU_SHIM_OUTSIDE_H

#include "shim/driver/caller.h"
#include "shim/driver/driver.h"

#include <stdbool.h>
#include <stdint.h>

/* What a handle is one of. */
enum outside_kind {
    OUTSIDE_ADDRESS,
    OUTSIDE_ARRAY,
    OUTSIDE_MIPMAPPED_ARRAY,
    OUTSIDE_PAGES,
    OUTSIDE_SPARE, /* an address: memory of this library's own that can be spared */
};

/* Takes so many bytes from the budget, for a call of the driver's function `name`. An error:
   there are not so many, and a line says so. The caller then makes the call, and: */
CUresult outside_take(enum caller caller, const char *name, uint64_t bytes);

/* Takes bytes from the budget that CUDA's libraries are likely to allocate, before they do. What
   they allocate is no more taken then; where something of the program does not fit otherwise, the
   rest goes back. No error if there are not so many. For the thread that has entered the core. */
void outside_reserve(uint64_t bytes);

/* notes what it has allocated, by its result, which it returns. If the call failed, the bytes go
   back to the budget. */
CUresult outside_note(enum caller caller, CUresult result, enum outside_kind kind, uint64_t handle,
                      uint64_t bytes);

/* After a call that has freed something, by its result, which it returns. What is not known is
   fine. */
CUresult outside_freed(enum caller caller, CUresult result, enum outside_kind kind,
                       uint64_t handle);

/* Pages stay in use as long as they are mapped, also after they were released. */
CUresult outside_mapped(enum caller caller, CUresult result, uint64_t handle, uint64_t address,
                        uint64_t bytes);
CUresult outside_unmapped(enum caller caller, CUresult result, uint64_t address, uint64_t bytes);

/* Sets what frees memory that can be spared, when something of the program does not fit otherwise.
   It is called once. For the thread that has entered the core. */
void outside_on_lack(void (*release)(void));

/* Now, and at most since the start; at most without what can be spared; what is reserved in
   addition. For the thread that has entered the core, or at the end. */
uint64_t outside_bytes(void);
uint64_t outside_reserved_bytes(void);
uint64_t outside_peak_bytes(void);
uint64_t outside_needed_bytes(void);

/* For the report: all calls of one of the driver's functions that succeeded. */
struct passed {
    const char *name; /* of the function, and whose calls they are */
    uint64_t call_count;
    uint64_t bytes; /* of all calls, also of memory that was freed again */
};

/* Notes such a call by its result, which it returns. `name` lives for ever. Thread: any. */
CUresult outside_count_call(CUresult result, const char *name, uint64_t bytes);

/* The functions that were called, from 0. False: there are no more. Thread: any. */
bool outside_call(size_t index, struct passed *passed);

#endif

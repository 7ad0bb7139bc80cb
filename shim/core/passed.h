/*
 * Memory that the driver itself gives: what the program allocates in ways that stay the driver's,
 * and what CUDA's libraries allocate for themselves. It is counted for the report. Thread: any.
 */
#ifndef CAPU_SHIM_PASSED_H
#define CAPU_SHIM_PASSED_H

#include "shim/driver/driver.h"

#include <stdbool.h>
#include <stdint.h>

/* All calls of one function that succeeded. */
struct passed {
    const char *name; /* of the function, and whose calls they are */
    uint64_t call_count;
    uint64_t bytes; /* of all calls, also of memory that was freed again */
};

/* Notes a call by its result, which it returns. `name` lives for ever. */
CUresult passed_note(CUresult result, const char *name, uint64_t bytes);

/* The functions that were called, from 0. False: there are no more. */
bool passed_get(size_t index, struct passed *passed);

#endif

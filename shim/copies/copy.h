/* What copies of all shapes share. */
#ifndef CAPU_SHIM_COPY_H
#define CAPU_SHIM_COPY_H

#include <stdbool.h>
#include <stdint.h>

/* Whether an address that is not ours is pageable host memory: the driver does not know it. A copy
   from or to it may make the driver's call wait. Thread: any. */
bool copy_is_pageable(uint64_t address);

/* Whether an address that is not ours is of memory that the host can look at, too. Thread: any. */
bool copy_is_visible(uint64_t address);

/* Notes a copy as an event (iteration.h), before its access begins. Pre: entered. */
void copy_note(uint64_t to, uint64_t from, bool is_from_host);

#endif

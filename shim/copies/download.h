/* Downloads to pageable host memory. */
#ifndef CAPU_SHIM_DOWNLOAD_H
#define CAPU_SHIM_DOWNLOAD_H

#include "shim/driver/driver.h"

/* Copies memory of the program's allocations to pageable memory, after all work that was enqueued
   before, and waits for it, but not with the core's lock. Pre: the core was not entered. Thread:
   any. Errors: INVALID_VALUE: not inside one allocation. */
CUresult download(void *to, CUdeviceptr from, size_t bytes);

#endif

/*
 * libcapuchin: train past the memory of the device.
 *
 * A training loop allocates with capu_malloc, says with capu_run what each operation reads and
 * writes, and marks its iterations. The library holds device memory to a hard budget by moving
 * tensors to host memory and back, with the same results to the bit.
 */
#ifndef CAPU_INCLUDE_CAPUCHIN_H
#define CAPU_INCLUDE_CAPUCHIN_H

#include "capuchin/context.h"
#include "capuchin/iteration.h"
#include "capuchin/memory.h"
#include "capuchin/op.h"
#include "capuchin/report.h"
#include "capuchin/status.h"
#include "capuchin/version.h"

#endif

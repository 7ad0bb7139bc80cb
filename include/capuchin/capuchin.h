/*
 * libcapuchin: train past the memory of the device.
 *
 * A training loop allocates with capu_malloc, declares with capu_run what each operation reads and
 * writes, and marks its iterations. The library holds device memory to a hard budget by copying
 * tensors to host memory and back, or by recomputing them. The results are bit for bit those of a
 * run without a budget.
 *
 * This header includes all others except capuchin/drop_in.h and capuchin/launcher.h,
 * capuchin/parallel.h, which needs MPI, and capuchin/capuchin.hpp for C++. The rules that all calls
 * share are at the top of capuchin/context.h. Everything in these headers was introduced in version
 * 0.1.0 unless a comment names a later version.
 */
#ifndef CAPU_INCLUDE_CAPUCHIN_H
#define CAPU_INCLUDE_CAPUCHIN_H

#include "capuchin/context.h"
#include "capuchin/graph.h"
#include "capuchin/iteration.h"
#include "capuchin/memory.h"
#include "capuchin/op.h"
#include "capuchin/report.h"
#include "capuchin/status.h"
#include "capuchin/version.h"

#endif

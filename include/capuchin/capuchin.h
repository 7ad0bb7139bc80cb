/*
 * libcapuchin: train past the memory of the device.
 *
 * A training loop allocates with capu_malloc, declares with capu_run what each operation reads and
 * writes, and marks its iterations. The library holds device memory to a hard budget by copying
 * tensors to host memory and back, or by recomputing them. The results are bit for bit those of a
 * run without a budget.
 *
 * What to include:
 *
 * - This header: the whole interface for C, and for C++ as well.
 * - capuchin/launcher.h, which includes this one: each function of the program becomes an op with
 *   one declaration. Most programs begin with it; CAPU_LAUNCHER is explained there.
 * - capuchin/capuchin.hpp instead, for C++17: ops from lambdas, and objects that end what they
 *   began.
 * - capuchin/drop_in.h in addition, for loops that keep calls in the shape of cudaMalloc.
 * - capuchin/parallel.h in addition, for several processes; it needs MPI and libcapuchin-mpi.
 *
 * The rules that all calls share are at the top of capuchin/context.h, what a version promises is
 * in capuchin/version.h. Everything was introduced in version 0.1.0 unless a comment names a later
 * version.
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

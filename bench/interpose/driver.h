/* What the bench of launches and its driver agree on. */
#ifndef CAPU_BENCH_INTERPOSE_DRIVER_H
#define CAPU_BENCH_INTERPOSE_DRIVER_H

enum { THREADS = 256, RANGE_BYTES = 4 * THREADS }; /* of a launch; from each pointer */

#endif

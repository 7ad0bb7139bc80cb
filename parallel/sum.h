/* Sums of the numbers of all ranks, in the order of the ranks. Pure; any thread. */
#ifndef CAPU_PARALLEL_SUM_H
#define CAPU_PARALLEL_SUM_H

#include <stddef.h>
#include <stdint.h>

/*
 * Stores ((x0 + x1) + x2) + ... at `to` for each of `count` elements. The numbers of rank r are at
 * parts[r], aligned in no way; one of them may be `to` itself. Each sum is rounded to the element's
 * type; integers wrap around. `type` is a capu_parallel_type other than BYTE.
 */
void sum_ranks(void *to, const void *const *parts, int ranks, size_t count, uint32_t type);

#endif

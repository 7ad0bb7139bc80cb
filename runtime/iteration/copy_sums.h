/* The copies of one direction that were timed, and how fast they were. */
#ifndef CAPU_RUNTIME_COPY_SUMS_H
#define CAPU_RUNTIME_COPY_SUMS_H

#include <stdint.h>

enum copy_way { COPY_OUT, COPY_IN, COPY_WAYS };

struct copy_sums {
    uint64_t count;
    uint64_t bytes;
    uint64_t ns;
};

/* Bytes per second beside the latency of each copy; 0: there was no copy. */
static inline uint64_t copy_sums_rate(const struct copy_sums *sums, uint64_t latency_ns)
{
    uint64_t latency = sums->count * latency_ns;
    double ns = sums->ns > latency ? (double)(sums->ns - latency) : 1.0;

    return sums->bytes == 0 ? 0 : (uint64_t)((double)sums->bytes * 1e9 / ns);
}

#endif

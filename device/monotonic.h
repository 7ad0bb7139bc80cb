/* The machine's monotonic clock, which is the clock of the devices that run in real time. */
#ifndef CAPU_DEVICE_MONOTONIC_H
#define CAPU_DEVICE_MONOTONIC_H

#include <stdint.h>
#include <time.h>

static inline uint64_t monotonic_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif

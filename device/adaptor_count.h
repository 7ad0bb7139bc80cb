/*
 * A device that counts what it is asked: calls, failures and bytes of every slot, pages and mapped
 * pages now and at their peak. Any thread may read.
 */
#ifndef CAPU_DEVICE_ADAPTOR_COUNT_H
#define CAPU_DEVICE_ADAPTOR_COUNT_H

#include "device/adaptor.h"

struct adaptor_counts {
    struct {
        uint64_t calls;
        uint64_t failures;
        uint64_t bytes; /* of the calls that succeeded */
    } slots[ADAPTOR_SLOT_COUNT];
    uint64_t pages;
    uint64_t pages_peak;
    uint64_t mapped_bytes; /* an alias counts again */
    uint64_t mapped_bytes_peak;
    uint64_t host_bytes;
    uint64_t host_bytes_peak;
};

/* Takes `inner`. NO_HOST_MEMORY. */
capu_status adaptor_count_create(struct device *inner, struct device **device);

/* The counts since the adaptor was made, or since the last reset; zeros if `device` is none. */
void adaptor_count_read(struct device *device, struct adaptor_counts *counts);

/* Calls, failures and bytes start at 0 again, peaks at what there is now. */
void adaptor_count_reset(struct device *device);

#endif

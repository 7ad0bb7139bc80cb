/*
 * A device that counts the calls to it: calls, failures and bytes per slot; pages, mapped bytes and
 * host memory, now and at their peak. Any thread may read.
 */
#ifndef CAPU_TESTS_SUPPORT_ADAPTOR_COUNT_H
#define CAPU_TESTS_SUPPORT_ADAPTOR_COUNT_H

#include "tests/support/adaptor.h"

struct adaptor_counts {
    struct {
        uint64_t calls;
        uint64_t failures;
        uint64_t bytes; /* of the calls that succeeded */
    } slots[ADAPTOR_SLOT_COUNT];
    uint64_t pages;
    uint64_t pages_peak;
    uint64_t mapped_bytes; /* a page that is mapped twice counts twice */
    uint64_t mapped_bytes_peak;
    uint64_t host_bytes;
    uint64_t host_bytes_peak;
};

/* Takes `inner`. NO_HOST_MEMORY. */
capu_status adaptor_count_create(struct device *inner, struct device **device);

/* The counts since creation or the last reset; zeros if `device` is not such an adaptor. */
void adaptor_count_read(struct device *device, struct adaptor_counts *counts);

/* Sets calls, failures and bytes to 0, and peaks to the present values. */
void adaptor_count_reset(struct device *device);

#endif

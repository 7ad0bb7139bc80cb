/*
 * A device that has at most so many pages at any time, whatever the inner one has: tests check a
 * budget at the device table with it. Owned by the device's calling thread.
 */
#ifndef CAPU_DEVICE_ADAPTOR_LIMIT_H
#define CAPU_DEVICE_ADAPTOR_LIMIT_H

#include "device/device.h"

/* Takes `inner`. Past the limit page_create is OVER_BUDGET. NO_HOST_MEMORY. */
capu_status adaptor_limit_create(struct device *inner, uint64_t page_limit, struct device **device);

/* How often the limit refused a page; 0 if `device` is no such adaptor. */
uint64_t adaptor_limit_refusals(struct device *device);

#endif

/*
 * A device with a limit on the number of pages that exist, whatever the inner device has. With it,
 * tests check a budget at the device table. Owned by the device's calling thread.
 */
#ifndef CAPU_TESTS_SUPPORT_ADAPTOR_LIMIT_H
#define CAPU_TESTS_SUPPORT_ADAPTOR_LIMIT_H

#include "device/device.h"

/* Takes `inner`. At the limit page_create returns OVER_BUDGET. NO_HOST_MEMORY. */
capu_status adaptor_limit_create(struct device *inner, uint64_t page_limit, struct device **device);

/* How often the limit refused a page; 0 if `device` is not such an adaptor. */
uint64_t adaptor_limit_refusals(struct device *device);

#endif

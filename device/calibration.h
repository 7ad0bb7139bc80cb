/*
 * Calibration: measures the link of any device that does not know how fast it is.
 *
 * Large copies between pinned and device memory are timed by events, each direction alone and then
 * both at once; the fastest of a few rounds counts, since whatever disturbs a copy makes it slower.
 * struct device_link says what the results mean.
 *
 * Owned by the device's calling thread. All that is created for it is given back.
 */
#ifndef CAPU_DEVICE_CALIBRATION_H
#define CAPU_DEVICE_CALIBRATION_H

#include "device/device.h"

/*
 * Measures the link unless both solo rates in *link are known, and fills in what is 0 there. Uses
 * at most `memory_bytes` of device memory, in whole pages, but at least one page. Takes tens of
 * milliseconds and waits for its copies. On failure *link is unchanged: OVER_BUDGET,
 * NO_HOST_MEMORY, SYSTEM_LIMIT, DEVICE_FAILED, DEVICE_LOST.
 */
capu_status calibration_complete(struct device *device, uint64_t memory_bytes,
                                 struct device_link *link);

#endif

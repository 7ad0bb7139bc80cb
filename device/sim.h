/* What only a sim device can do. */
#ifndef CAPU_DEVICE_SIM_H
#define CAPU_DEVICE_SIM_H

#include "device/device.h"

/* Fails the device as work of that name would: `run` is not called on sim, so nothing fails by
   itself. False if it is not a sim device. */
bool sim_device_fail(struct device *device, const char *name);

#endif

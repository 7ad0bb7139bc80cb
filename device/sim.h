/* What only the sim device can do. */
#ifndef CAPU_DEVICE_SIM_H
#define CAPU_DEVICE_SIM_H

#include "device/device.h"

/* Makes the device fail as if work of that name had failed. On sim `run` is not called, so no work
   fails by itself. False if it is not a sim device. */
bool sim_device_fail(struct device *device, const char *name);

#endif

/* The process's device. Thread: any. */
#ifndef CAPU_INTERPOSE_SHIM_DEVICE_H
#define CAPU_INTERPOSE_SHIM_DEVICE_H

#include "interpose/shim/driver.h"

/* The architecture of a device: 90 for compute capability 9.0. */
unsigned device_architecture_of(CUdevice device);

/* The same of the device that the process uses, as far as that is known: code is also loaded before
   a device is chosen, and then this is the first one's. See code_settle. */
unsigned device_architecture(void);

#endif

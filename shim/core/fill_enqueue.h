/* The driver's own memsets, by the size of an element. */
#ifndef CAPU_SHIM_FILL_ENQUEUE_H
#define CAPU_SHIM_FILL_ENQUEUE_H

#include "shim/driver/driver.h"

/* Enqueues the driver's own memset on a stream of the driver. Thread: any. */
CUresult fill_enqueue(const struct memset_node *fill, CUstream stream);

#endif

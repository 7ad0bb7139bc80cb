/*
 * The device, its lanes, and what is enqueued there.
 *
 * Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_LANES_H
#define CAPU_RUNTIME_LANES_H

#include "device/lane.h"
#include "runtime/context/failure.h"
#include "runtime/lanes/capture.h"
#include "runtime/lanes/staging.h"

struct lanes {
    struct failure *failure; /* where its errors go */
    struct device *device;
    struct lane compute;
    struct lane d2h;
    struct lane h2d;
    struct device_link link; /* guided mode: what plans are made for */
    struct staging staging;
    struct capture capture;  /* of the iteration under way */
    uint64_t unrecorded_ops; /* since the compute lane was last retired outside iterations */
};

/* Waits for a lane by whatever means still work: on the way out of a failure, when memory that the
   lane's work touches is about to be given up. The second waits for all lanes. */
void lanes_quiesce(struct lanes *lanes, struct lane *lane);
void lanes_quiesce_all(struct lanes *lanes);

#endif

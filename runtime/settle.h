/* Settling: taking note of work that has passed. */
#ifndef CAPU_RUNTIME_SETTLE_H
#define CAPU_RUNTIME_SETTLE_H

#include "capuchin/context.h"

/* Waits for all work of all lanes, completes reports, and lets everything that waited
   for it go. */
capu_status settle_work(capu_context *context);

/* Keeps the lanes' rings bounded for programs that mark no iterations: called by what marks them.
 */
capu_status settle_unrecorded(capu_context *context);

#endif

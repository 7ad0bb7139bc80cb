/*
 * Settling: taking note of work that has passed. The host only ever enqueues; what follows from the
 * end of that work (reports, plans, pages that are free now) waits until one of these calls looks.
 *
 * The record goes to planning here and not in the tracker: planning leaves guides, which calls most
 * of the room, and the room calls the tracker.
 */
#ifndef CAPU_RUNTIME_SETTLE_H
#define CAPU_RUNTIME_SETTLE_H

#include "capuchin/context.h"

/* Completes the reports of iterations whose work has passed, and plans for them. Does not wait. */
capu_status settle_records(capu_context *context);

/* Waits for all work of all lanes, completes reports, and ends departures that waited for it. */
capu_status settle_work(capu_context *context);

/* Keeps the lanes' rings bounded for programs that mark no iterations: every call that enqueues
   work calls this after it. */
capu_status settle_unrecorded(capu_context *context);

#endif

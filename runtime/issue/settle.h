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

/* Every call that enqueues work calls this after it. In an iteration without a plan it looks
   whether the one before has ended, so that planning begins then and not with the next iteration,
   when the device may have nothing left to do meanwhile. Outside iterations it keeps the lanes'
   rings bounded, for programs that mark none. Fails only if the context is lost. */
capu_status settle_call(capu_context *context);

#endif

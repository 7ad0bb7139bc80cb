/*
 * Running an op of a plan again, for what it made and the plan gave up: where the plan says so, and
 * in recovery. Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_REPLAY_H
#define CAPU_RUNTIME_REPLAY_H

#include "runtime/guide.h"

/*
 * Runs the guide's op of this number again with this iteration's arguments; what it needs is
 * resident and followed. What it made and has not been overwritten since is there again. On failure
 * it is not: what was there before is gone where something had been written by then, and owed.
 */
capu_status replay_run(capu_context *context, const struct guide *guide, uint32_t number);

#endif

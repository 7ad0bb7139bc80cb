/*
 * Running an op of a guide again to recompute what it made: where the plan says so, and in
 * recovery.
 *
 * Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_REPLAY_H
#define CAPU_RUNTIME_REPLAY_H

#include "runtime/guide/guide.h"

struct following;

/*
 * Runs the guide's op of this number again with this iteration's arguments. Pre: what it accesses
 * is resident, and compute follows the copies. Outputs that have not been overwritten since are
 * valid again. On failure they are not, and once something may have been written, earlier contents
 * are lost, too, and owed.
 */
capu_status replay_run(struct following *following, const struct guide *guide, uint32_t number);

#endif

/*
 * Watching ops in strict mode: what an op does that its declaration does not say is found, and
 * named by op, tensor and offset.
 *
 * Works where ops compute on the host (device.h: can_guard). While an op runs, it can touch only
 * its operands, and write only those that it does not just read; the device notes everything else
 * that it touches. Afterwards its outputs are searched for the poison that strict_poison_outputs
 * has left there. Small parts of tensors, which share pages with others, are compared by a checksum
 * instead.
 *
 * Strict mode waits for each op, so ops run one at a time. Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_STRICT_WATCH_H
#define CAPU_RUNTIME_STRICT_WATCH_H

#include "runtime/strict/strict.h"

/* Frees what strict mode has kept. Zeroed is fine. */
void strict_finish(struct strict *strict);

/* Before the caller's own work of an op: waits for all work before it, and opens its operands. If
   it fails, nothing is open. NO_HOST_MEMORY, NO_ADDRESS_SPACE, a lost context. */
capu_status strict_watch_begin(struct strict *strict, const struct op *op);

/* After it, however it ended: waits for it, closes its operands, and notes what it did wrong. */
void strict_watch_end(struct strict *strict, const struct op *op);

/* Once the books are complete: describes what was noted as the error of the call, whose `status`
   comes first where it is one. INVALID; for STRICT_STRAYED, OP_FAILED in any case, and the context
   is lost, because what the op touched cannot be trusted. */
capu_status strict_watch_report(struct strict *strict, const struct op *op, capu_status status);

/* What an op touched that ran again, although it was not granted. Pre: there is something. */
void strict_watch_strayed(const struct strict *strict, const struct device_faults *faults,
                          struct strict_finding *finding);

/* The same around a replay, which is checked only for what it touches. Any breach is OP_FAILED. */
capu_status strict_watch_replay_begin(struct strict *strict, const struct guide *guide,
                                      const struct guide_op *op);
capu_status strict_watch_replay_end(struct strict *strict, const struct guide_op *op);

#endif

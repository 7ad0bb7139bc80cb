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

/* What an op did wrong. If it did several things, the first of this order. */
enum strict_breach {
    STRICT_NOTHING,
    STRICT_STRAYED, /* touched memory that it does not name */
    STRICT_CHANGED, /* changed a tensor that it only reads */
    STRICT_READ,    /* read a tensor that it only writes */
    STRICT_SKIPPED, /* did not write all that it writes */

    /* When it ran again (strict_again.h): */
    STRICT_TAMPERED, /* its function for replays changed what it must leave alone */
    STRICT_DEPENDS,  /* its results depend on what it only writes */
    STRICT_VARIES    /* its results differ for another reason */
};

struct strict_finding {
    enum strict_breach breach;
    const void *at;          /* the first address concerned; NULL: not known */
    struct tensor *tensor;   /* concerned; NULL: `at` is in no tensor, or both are not known */
    bool is_again;           /* STRICT_STRAYED: when it ran again */
    uint32_t role;           /* STRICT_READ: as it is declared */
    uint64_t bytes;          /* STRICT_SKIPPED: not written, at least */
    const void *result;      /* STRICT_READ: where it shows */
    struct tensor *shows_in; /* and the tensor there */
};

/* Before the caller's own work of an op: waits for all work before it, and opens its operands. If
   it fails, nothing is open. NO_HOST_MEMORY, NO_ADDRESS_SPACE, a lost context. */
capu_status strict_watch_begin(struct strict *strict);

/* After it, however it ended: waits for it, closes its operands, and says what it did wrong. */
void strict_watch_end(struct strict *strict, struct strict_finding *finding);

/* Describes it as the error of the call. INVALID; for STRICT_STRAYED, OP_FAILED, and the context is
   lost, because what the op touched cannot be trusted. OK for STRICT_NOTHING. */
capu_status strict_watch_report(struct strict *strict, const struct strict_finding *finding);

/* What an op touched that ran again, although it was not granted. Pre: there is something. */
void strict_watch_strayed(const struct strict *strict, const struct device_faults *faults,
                          struct strict_finding *finding);

/* The same around a replay, which is checked only for what it touches. Any breach is OP_FAILED. */
capu_status strict_watch_replay_begin(struct strict *strict, const struct guide *guide,
                                      const struct guide_op *op);
capu_status strict_watch_replay_end(struct strict *strict, const struct guide_op *op);

#endif

/*
 * Strict mode: what a program or the library does wrong with memory shows at once.
 *
 * Two means: memory that must not be read is poisoned, and memory that must not be touched is
 * unmapped. So an output that an op does not write, scratch that it reads later, and a tensor that
 * it uses without naming it give wrong results or a fault there and then, not now and then. Where
 * ops compute on the host, each of these becomes an error that names op and tensor.
 *
 * Waiting for every eviction and mapping pages whenever they change hands makes strict mode slow:
 * it is for tests. All of its steps are here. Other files call them at the place where they belong,
 * and without strict mode each does nothing.
 *
 * Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_STRICT_H
#define CAPU_RUNTIME_STRICT_H

#include "runtime/guide/guided.h"
#include "runtime/record/records.h"
#include "runtime/strict/poison.h"

/* What an op did wrong. If it did several things, the first of this order. */
enum strict_breach {
    STRICT_NOTHING,
    STRICT_STRAYED, /* touched memory that it does not name */
    STRICT_CHANGED, /* changed a tensor that it only reads */
    STRICT_READ,    /* read a tensor that it only writes */
    STRICT_SKIPPED, /* did not write all that it writes */

    /* When it ran again: */
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

struct strict {
    /* What it works with. */
    const struct settings *settings;
    struct failure *failure;
    struct lanes *lanes;
    struct memory *memory;
    struct records *records;
    const struct guided *guided;

    /* The arrays keep their capacity. */
    struct device_grant *grants; /* what the op at hand, or a replay, may touch */
    size_t grant_capacity;
    uint64_t *checksums; /* of the accesses that only read, before the op */
    size_t checksum_capacity;
    uint64_t poison_number;        /* of the op's first access, and the next lower ones: poison.h */
    uint64_t poison_last;          /* the highest number given out */
    struct bystanders *bystanders; /* tensors that share pages with the op */
    unsigned char *saved;          /* what the op has written */
    size_t saved_capacity;
    struct strict_finding finding; /* what the op did wrong */
};

/* What memory is filled with that must not be read: a NaN in every floating-point format. */
enum { STRICT_POISON = 0xff };

static inline bool strict_is_on(const struct settings *settings)
{
    return settings->config.strict != 0;
}

/* When a context is created: before memory is reserved, and once there are slabs. Errors as
   device_guard. */
capu_status strict_guard_device(struct strict *strict);
void strict_guard_slabs(struct strict *strict);

/* Frees what strict mode has kept. Zeroed is fine. */
void strict_finish(struct strict *strict);

/* A tensor takes its pages from the guide: maps them. */
capu_status strict_map(struct strict *strict, struct tensor *tensor);

/* And poisons what the tensor before left in them; waits. */
capu_status strict_poison_mapped(struct strict *strict, const struct tensor *tensor);

/* A tensor gives its pages to the guide: waits for its last use, and unmaps them. */
capu_status strict_unmap(struct strict *strict, struct tensor *tensor);

/* Before the work of an op: poisons what it is to write and does not read. */
capu_status strict_poison_outputs(struct strict *strict, const struct op *op);

/* The poison of one access of the op at hand, where the host can look for it, and whether a piece
   was filled with it: it is to be written, and not read. */
struct poison strict_poison_of(const struct strict *strict, size_t access);
bool strict_is_poisoned(const struct strict *strict, const struct op *op,
                        const struct piece *piece);

/* Before it runs again: the same, or with the other patterns (poison_other); and clears what is to
   be cleared. Leaves alone what replays do. */
capu_status strict_poison_again(struct strict *strict, const struct op *op, bool is_other);

/* A checksum of what a tensor holds. */
uint64_t strict_checksum(const struct strict *strict, const struct tensor *tensor);

/* Copies what a tensor holds to host memory, or back. */
void strict_copy(const struct strict *strict, const struct tensor *tensor, unsigned char *memory,
                 bool is_out);

/* After an op: poisons its scratch, as far as the device lets us. */
void strict_poison_scratch(struct strict *strict, const struct op *op);

/* Whether strict_poison_outputs wrote to an output of the op at hand. */
bool strict_has_poisoned(const struct strict *strict, const struct access *access);

/* Adds the results of poison that the memory of a tensor shows, where the host can look at it;
   `own` as in poison_find_results. */
void strict_find_results(const struct strict *strict, const struct poison *poison, bool own,
                         const struct tensor *tensor, struct poison_found *found);

/* Before a replay: poisons what it writes. */
capu_status strict_poison_replay(struct strict *strict, const struct guide *guide,
                                 const struct guide_op *op);

/*
 * Bystanders: tensors that share a page with an operand of the op at hand, but are none of them.
 *
 * Pieces that were split from one allocation can be smaller than a page, and access is granted by
 * pages. So strict mode hides the contents of bystanders while an op runs, by poison. If it is
 * changed after the op, the op has written there; if results of it are in an output, the op has
 * read there. Only the part of a bystander that lies in a shared page is hidden; the rest is not
 * open.
 *
 * Small allocations share pages, too. They have addresses of their own (slabs_spread), but after
 * the end of one lies the next one of its page. Only the one before and the one after are hidden.
 *
 * Shared pages are always resident, and only the compute lane touches them.
 *
 * All but destroy need a device that can guard, and no work running.
 */

/* NULL is fine. */
void strict_bystanders_destroy(struct bystanders *bystanders);

/* Whether the op at hand has any. */
bool strict_bystanders_any(const struct strict *strict);

/* Saves what the bystanders of the op at hand hold, and poisons them. NO_HOST_MEMORY: nothing is
   hidden. */
capu_status strict_bystanders_hide(struct strict *strict, const struct op *op);

/* The first byte of a bystander that has changed since, or NULL. */
const void *strict_bystanders_written(const struct strict *strict);

/* Puts their contents back. They are still remembered for the next function. */
void strict_bystanders_show(struct strict *strict);

/* A bystander of which something is in an output of the op, or NULL. */
struct tensor *strict_bystanders_read(const struct strict *strict, const struct op *op);

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
 * Strict mode waits for each op, so ops run one at a time.
 */

/* Before the caller's own work of an op: waits for all work before it, and opens its operands. If
   it fails, nothing is open. NO_HOST_MEMORY, SYSTEM_LIMIT, a lost context. */
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

/*
 * Strict mode runs each replayable op twice, and compares.
 *
 * A plan may run such an op again instead of keeping what it has written. So the op must give the
 * same bytes from the same operands and arguments. It does not if it draws from a random generator
 * of the host, or if its function for replays reads what has changed since.
 *
 * Where ops compute on the host (device.h: can_guard), an op is therefore run once more right after
 * it has run, as a replay would run it. What it only writes is filled with another pattern before,
 * one that is a number, not NaN. So bytes that it leaves unwritten differ, however few, and results
 * that depend on what was there before, be they integers. If results differ, a third run with the
 * first pattern shows whether they depend on the pattern. Afterwards the outputs are what the first
 * run has left there. Host memory holds as much as the op writes.
 *
 * A replay of a plan is compared as well: with a checksum of what the op had written.
 */

/* After an op whose run function has done what it says: runs it again, unless it is not replayable
   or there is no memory for that, or something was noted about it already. Notes what is wrong.
   OP_FAILED, DEVICE_LOST: it failed this time, which loses the context. */
capu_status strict_again_run(struct strict *strict, struct op *op);

/* After a replay, which has finished: OP_FAILED if it has written other bytes than the op. The
   context is lost then. */
capu_status strict_again_check(struct strict *strict, const struct guide *guide,
                               const struct guide_op *op);

#endif

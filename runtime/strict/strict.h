/*
 * Strict mode: what a program or the library does wrong with memory shows at once.
 *
 * Two means: memory that must not be read is poisoned, and memory that must not be touched is
 * unmapped. So an output that an op does not write, scratch that it reads later, and a tensor that
 * it uses without naming it give wrong results or a fault there and then, not now and then. Where
 * ops compute on the host, each of these becomes an error that names op and tensor:
 * strict_watch.h.
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
    struct bystanders *bystanders; /* tensors that share pages with the op: strict_bystanders.h */
    unsigned char *saved;          /* what the op has written: strict_again.h */
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

#endif

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

/* What it works with. */
struct strict {
    const struct settings *settings;
    struct failure *failure;
    struct lanes *lanes;
    struct memory *memory;
    struct records *records;
    const struct guided *guided;
    struct op *op;
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
capu_status strict_poison_outputs(struct strict *strict);

/* The poison of one access of the op at hand, where the host can look for it, and whether a piece
   was filled with it: it is to be written, and not read. */
struct poison strict_poison_of(const struct strict *strict, size_t access);
bool strict_is_poisoned(const struct strict *strict, const struct piece *piece);

/* Before it runs again: the same, or with the other patterns (poison_other); and clears what is to
   be cleared. Leaves alone what replays do. */
capu_status strict_poison_again(struct strict *strict, bool is_other);

/* A checksum of what a tensor holds. */
uint64_t strict_checksum(const struct strict *strict, const struct tensor *tensor);

/* Copies what a tensor holds to host memory, or back. */
void strict_copy(const struct strict *strict, const struct tensor *tensor, unsigned char *memory,
                 bool is_out);

/* After an op: poisons its scratch, as far as the device lets us. */
void strict_poison_scratch(struct strict *strict);

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

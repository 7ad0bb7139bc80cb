/*
 * Sequence: which address the n-th allocation of an iteration got last time.
 *
 * Programs that allocate and free inside each step get the same addresses each step, which is what
 * lets a plan made for one iteration hold for the next; those with a smaller batch now and then,
 * too, since a few sizes of each allocation are remembered. Kept per iteration label, a bounded
 * number of them. Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_SEQUENCE_H
#define CAPU_RUNTIME_SEQUENCE_H

#include "capuchin/status.h"

#include <stddef.h>
#include <stdint.h>

enum { SEQUENCE_LABELS = 16, SEQUENCE_SIZES = 4 };

struct sequence_entry {
    void *address;
    uint64_t bytes; /* 0: unused */
};

/* What the n-th allocations got, the newest first, each size once. */
struct sequence_place {
    struct sequence_entry entries[SEQUENCE_SIZES];
};

struct sequence_list {
    const char *label; /* interned; NULL: unused */
    uint64_t used;     /* iteration of last use */
    struct sequence_place *places;
    size_t count;
    size_t capacity;
};

struct sequence {
    struct sequence_list lists[SEQUENCE_LABELS];
    struct sequence_list *open; /* NULL outside an iteration */
    size_t next;                /* n */
};

void sequence_finish(struct sequence *sequence);

/* Starts counting for this label; the label least recently used makes way. */
void sequence_begin(struct sequence *sequence, const char *label, uint64_t iteration);
void sequence_end(struct sequence *sequence);

/* The address the next allocation had when it last had this size; NULL: it had not lately. */
void *sequence_propose(const struct sequence *sequence, uint64_t bytes);

/* Notes what the next allocation got, and counts it. NO_HOST_MEMORY: not noted, harmless. */
capu_status sequence_note(struct sequence *sequence, void *address, uint64_t bytes);

#endif

/*
 * Sequence: which address the n-th allocation of an iteration got last time.
 *
 * Programs that allocate and free inside each step get the same addresses each step, which is what
 * lets a plan made for one iteration hold for the next. Kept per iteration label, a bounded number
 * of them. Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_SEQUENCE_H
#define CAPU_RUNTIME_SEQUENCE_H

#include "capuchin/status.h"

#include <stddef.h>
#include <stdint.h>

enum { SEQUENCE_LABELS = 16 };

struct sequence_entry {
    void *address;
    uint64_t bytes;
};

struct sequence_list {
    const char *label; /* interned; NULL: unused */
    uint64_t used;     /* iteration of last use */
    struct sequence_entry *entries;
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

/* The address the next allocation had last time, if it had this size; NULL if not. */
void *sequence_propose(const struct sequence *sequence, uint64_t bytes);

/* Notes what the next allocation got, and counts it. NO_HOST_MEMORY: not noted, harmless. */
capu_status sequence_note(struct sequence *sequence, void *address, uint64_t bytes);

#endif

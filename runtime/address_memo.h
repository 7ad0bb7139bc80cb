/*
 * Address memo: which address the n-th allocation of an iteration got last time.
 *
 * Programs that allocate and free inside each step get the same addresses each step, which is what
 * lets a plan made for one iteration hold for the next; those with a smaller batch now and then,
 * too, since a few sizes of each allocation are remembered. Kept per iteration label, a bounded
 * number of them. Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_ADDRESS_MEMO_H
#define CAPU_RUNTIME_ADDRESS_MEMO_H

#include "capuchin/status.h"

#include <stddef.h>
#include <stdint.h>

enum { ADDRESS_MEMO_LABELS = 16, ADDRESS_MEMO_SIZES = 4 };

struct address_memo_entry {
    void *address;
    uint64_t bytes; /* 0: unused */
};

/* What the n-th allocations got, the newest first, each size once. */
struct address_memo_place {
    struct address_memo_entry entries[ADDRESS_MEMO_SIZES];
};

struct address_memo_list {
    const char *label; /* interned; NULL: unused */
    uint64_t used;     /* iteration of last use */
    struct address_memo_place *places;
    size_t count;
    size_t capacity;
};

struct address_memo {
    struct address_memo_list lists[ADDRESS_MEMO_LABELS];
    struct address_memo_list *open; /* NULL outside an iteration */
    size_t next;                    /* n */
};

void address_memo_finish(struct address_memo *memo);

/* Starts counting for this label; the label least recently used makes way. */
void address_memo_begin(struct address_memo *memo, const char *label, uint64_t iteration);
void address_memo_end(struct address_memo *memo);

/* The address the next allocation had when it last had this size; NULL: it had not lately. */
void *address_memo_propose(const struct address_memo *memo, uint64_t bytes);

/* Notes what the next allocation got, and counts it. NO_HOST_MEMORY: not noted, harmless. */
capu_status address_memo_note(struct address_memo *memo, void *address, uint64_t bytes);

#endif

/*
 * Address memo: which address the n-th allocation of an iteration under a label got last time.
 *
 * A plan names tensors by address, so it only fits an iteration whose allocations get the addresses
 * that the recorded one had. Programs that allocate and free inside each step are given the same
 * addresses each step from this memo. A few sizes are remembered per allocation, so that an
 * occasional smaller batch does not displace the usual one.
 *
 * Zeroed is empty. Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_ADDRESS_MEMO_H
#define CAPU_RUNTIME_ADDRESS_MEMO_H

#include "capuchin/status.h"

#include <stddef.h>
#include <stdint.h>

enum { ADDRESS_MEMO_SIZES = 4 };

struct address_memo_entry {
    void *address;
    uint64_t bytes; /* 0: unused */
};

/* What the n-th allocations got, the newest first, each size once. */
struct address_memo_place {
    struct address_memo_entry entries[ADDRESS_MEMO_SIZES];
};

struct address_memo {
    struct address_memo_place *places;
    size_t count;
    size_t capacity;
    size_t next; /* n, of the allocation to come in this iteration */
};

void address_memo_finish(struct address_memo *memo);

/* An iteration begins: counts its allocations from 0. */
void address_memo_begin(struct address_memo *memo);

/* The address the next allocation had when it last had this size; NULL: it had not lately. */
void *address_memo_propose(const struct address_memo *memo, uint64_t bytes);

/* Notes what the next allocation got, and counts it. NO_HOST_MEMORY: not noted, harmless. */
capu_status address_memo_note(struct address_memo *memo, void *address, uint64_t bytes);

#endif

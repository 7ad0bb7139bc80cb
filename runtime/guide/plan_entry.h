/*
 * A plan that planning keeps: the guide it was compiled to, and what is known of it since.
 *
 * The worker that makes plans has entries of its own until it hands them over. From then on an
 * entry is the context thread's, and its guide never changes.
 */
#ifndef CAPU_RUNTIME_PLAN_ENTRY_H
#define CAPU_RUNTIME_PLAN_ENTRY_H

#include "policy/format/string_buffer.h"
#include "runtime/guide/feedback.h"
#include "runtime/guide/guide.h"
#include "runtime/guide/improvement.h"

struct plan_entry {
    struct guide *guide; /* owned */
    struct feedback feedback;
    struct string_buffer text; /* the plan as a file; empty: not wanted, or written already */
    uint64_t budget_bytes;     /* that it was made for */
    uint64_t used;             /* iteration of last use */
    uint64_t change_ns;        /* what changing to it took last, without waiting */
    uint32_t failures;         /* times it could not be installed */
    uint32_t stage;      /* number among the plans that were kept for such iterations, from 1 */
    bool keeps_contents; /* it copies out what nothing could recompute, instead of discarding it */
    struct plan_entry *better; /* owned: takes its place once it is worth it; NULL: there is none */
    struct improvement improvement; /* by it */
};

/* An entry for the record's iteration, without a plan yet, with the times that the record has.
   NO_HOST_MEMORY, TOO_LARGE. */
capu_status plan_entry_create(const struct record *record, struct plan_entry **out);

/* Another entry for the same iteration. Pre: it has no plan yet. NO_HOST_MEMORY. */
capu_status plan_entry_copy(const struct plan_entry *entry, struct plan_entry **out);

/* Host memory that a compiled plan takes, with a better one. */
uint64_t plan_entry_bytes(const struct plan_entry *entry);

/* NULL is fine. */
void plan_entry_destroy(struct plan_entry *entry);

#endif

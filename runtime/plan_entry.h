/*
 * A plan that planning keeps: the guide it was compiled to, and what is known of it since.
 *
 * The worker that makes the plan has an entry of its own until it is done. From then on the entry
 * is the context thread's, and its guide never changes.
 */
#ifndef CAPU_RUNTIME_PLAN_ENTRY_H
#define CAPU_RUNTIME_PLAN_ENTRY_H

#include "runtime/feedback.h"
#include "runtime/guide.h"

struct plan_entry {
    struct guide *guide; /* owned */
    struct feedback feedback;
    uint64_t used;       /* iteration of last use */
    uint32_t failures;   /* times it could not be installed */
    bool keeps_contents; /* it copies out what nothing could recompute, instead of discarding it */
};

/* An entry for the record's iteration, without a plan yet, with the times that the record has.
   NO_HOST_MEMORY, TOO_LARGE. */
capu_status plan_entry_create(const struct record *record, struct plan_entry **out);

/* Host memory that a compiled plan takes. */
uint64_t plan_entry_bytes(const struct plan_entry *entry);

/* NULL is fine. */
void plan_entry_destroy(struct plan_entry *entry);

#endif

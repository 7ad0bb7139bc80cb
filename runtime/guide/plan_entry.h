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

#include <stdbool.h>
#include <stdint.h>

/*
 * When it is worth changing to a better plan.
 *
 * The device is idle while plans are changed, and how many iterations are still to come is unknown.
 * So a better plan waits until the iterations without it have lost as much time as the change
 * costs, the next one included. This is the break-even rule of problems in which one rents or buys
 * (A. R. Karlin, M. S. Manasse, L. Rudolph, D. D. Sleator: Competitive snoopy caching, Algorithmica
 * 3, 1988): however many iterations follow, what is lost to waiting and changing is at most twice
 * the least that could have been lost.
 *
 * Zeroed: there is no better plan. Owned by the thread that owns the plan.
 */
struct improvement {
    uint64_t gain_ns;    /* per iteration */
    uint64_t forgone_ns; /* what the iterations without it have lost */
};

/* An iteration begins, and plans can be changed before it, for `change_ns`. True: it is worth it.
   False: the iteration runs without the improvement, which is noted. Pre: there is a better plan.
 */
bool improvement_is_due(struct improvement *improvement, uint64_t change_ns);

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

/*
 * The results of planning for the iterations under one label: plans that can be made active, and
 * refusals, which are the reasons why no plan was found. Both are found by the iteration's
 * signature.
 *
 * A plan may keep a better one for the same iterations, until changing to it is worth it
 * (struct improvement).
 *
 * The memory that plans take is limited over all labels: label_records.h picks those to discard.
 * Reasons are short, and a label has PLAN_CACHE_REFUSALS of them.
 *
 * Zeroed is empty. Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_PLAN_CACHE_H
#define CAPU_RUNTIME_PLAN_CACHE_H

#include "runtime/guide/plan_entry.h"

enum { PLAN_CACHE_REFUSALS = 16, PLAN_CACHE_TEXT_BYTES = 1024 };

struct refusal;

/* The signature is repeated here, so that a look-up among many plans reads one array. */
struct plan_slot {
    uint64_t signature;
    struct plan_entry *entry; /* owned */
};

struct plan_cache {
    struct plan_slot *slots;
    size_t count;
    size_t capacity;
    uint64_t bytes;                                /* of host memory that the plans take */
    struct refusal *refusals[PLAN_CACHE_REFUSALS]; /* owned; NULL: unused */
    size_t refusal_count;                          /* ever; a new one replaces the oldest */
};

void plan_cache_finish(struct plan_cache *cache);

/* NULL: there is none. */
struct plan_entry *plan_cache_find(const struct plan_cache *cache, uint64_t signature);

/* The least recently used plan that is not `active`; NULL: there is none. */
struct plan_entry *plan_cache_oldest(const struct plan_cache *cache,
                                     const struct plan_entry *active);

/* Takes a compiled plan. False: no host memory, and the plan still belongs to the caller. Pre:
   there is none of its signature. */
bool plan_cache_add(struct plan_cache *cache, struct plan_entry *entry);

/* Takes a plan that is better than one of the cache, which keeps it until it takes its place. It
   replaces one that the entry keeps already, and what was forgone counts on. Pre: it is predicted
   to take less time. */
void plan_cache_add_better(struct plan_cache *cache, struct plan_entry *entry,
                           struct plan_entry *better);

/* Destroys the better plan that an entry keeps, if there is one. */
void plan_cache_discard_better(struct plan_cache *cache, struct plan_entry *entry);

/* Puts the better plan in the place of the entry, which is destroyed, and returns it. Pre: there is
   one. */
struct plan_entry *plan_cache_promote(struct plan_cache *cache, struct plan_entry *entry);

/* Destroys a plan of the cache. */
void plan_cache_discard(struct plan_cache *cache, struct plan_entry *entry);

/* Destroys plans that turned out wrong while an iteration could still need them. */
void plan_cache_discard_wrong(struct plan_cache *cache);

/* Why there is no plan for such iterations; NULL: none was refused, as far as is remembered. */
const char *plan_cache_refusal(const struct plan_cache *cache, uint64_t signature);

/* Forgets all reasons. */
void plan_cache_forget_refusals(struct plan_cache *cache);

/* Remembers the reason. Without host memory for it nothing is remembered, and planning for such
   iterations is tried again. */
void plan_cache_refuse(struct plan_cache *cache, uint64_t signature, const char *text);

#endif

/*
 * The results of planning for the iterations under one label: plans that can be made active, and
 * refusals, which are the reasons why no plan was found. Both are found by the iteration's
 * signature.
 *
 * Plans are large, so PLAN_CACHE_ENTRIES bounds them over all labels: label_records.h picks the
 * one to replace. Reasons are short, and a label has PLAN_CACHE_REFUSALS of them.
 *
 * Zeroed is empty. Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_PLAN_CACHE_H
#define CAPU_RUNTIME_PLAN_CACHE_H

#include "runtime/plan_entry.h"

enum { PLAN_CACHE_ENTRIES = 8, PLAN_CACHE_REFUSALS = 16, PLAN_CACHE_TEXT_BYTES = 1024 };

struct refusal;

struct plan_cache {
    struct plan_entry *entries[PLAN_CACHE_ENTRIES]; /* owned; the first entry_count */
    size_t entry_count;
    struct refusal *refusals[PLAN_CACHE_REFUSALS]; /* owned; NULL: unused */
    size_t refusal_count;                          /* ever; a new one replaces the oldest */
};

void plan_cache_finish(struct plan_cache *cache);

/* NULL: there is none. */
struct plan_entry *plan_cache_find(const struct plan_cache *cache, uint64_t signature);

/* The least recently used plan that is not `active`; NULL: there is none. */
struct plan_entry *plan_cache_oldest(const struct plan_cache *cache,
                                     const struct plan_entry *active);

/* Takes a plan. Pre: there are fewer than PLAN_CACHE_ENTRIES. */
void plan_cache_add(struct plan_cache *cache, struct plan_entry *entry);

/* Destroys a plan of the cache. */
void plan_cache_discard(struct plan_cache *cache, struct plan_entry *entry);

/* Destroys plans that turned out wrong while an iteration could still need them. */
void plan_cache_discard_wrong(struct plan_cache *cache);

/* Why there is no plan for such iterations; NULL: none was refused, as far as is remembered. */
const char *plan_cache_refusal(const struct plan_cache *cache, uint64_t signature);

/* Remembers the reason. Without host memory for it nothing is remembered, and planning for such
   iterations is tried again. */
void plan_cache_refuse(struct plan_cache *cache, uint64_t signature, const char *text);

#endif

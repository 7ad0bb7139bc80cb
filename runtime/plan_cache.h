/*
 * What planning has come to: guides that can be put in force, and iterations for which no plan was
 * found, with the reason. Both go by an iteration's label and signature, and both are bounded.
 *
 * Zeroed is empty. Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_PLAN_CACHE_H
#define CAPU_RUNTIME_PLAN_CACHE_H

#include "runtime/guide.h"

enum { PLAN_CACHE_GUIDES = 8, PLAN_CACHE_REFUSALS = 16, PLAN_CACHE_TEXT_BYTES = 1024 };

/* An iteration for which no plan was found. */
struct refusal {
    const char *label; /* interned; NULL: unused */
    uint64_t signature;
    char text[PLAN_CACHE_TEXT_BYTES];
};

struct plan_cache {
    struct guide *guides[PLAN_CACHE_GUIDES]; /* owned; NULL: free */
    struct refusal refusals[PLAN_CACHE_REFUSALS];
    size_t refusal_count; /* ever; the oldest makes way */
};

void plan_cache_finish(struct plan_cache *cache);

/* NULL: there is none. */
struct guide *plan_cache_find(const struct plan_cache *cache, const char *label,
                              uint64_t signature);

/* Takes a guide. Where there is no room, the one least recently used goes, but not `in_force`. */
void plan_cache_add(struct plan_cache *cache, struct guide *guide, const struct guide *in_force);

/* Destroys a kept guide. */
void plan_cache_discard(struct plan_cache *cache, struct guide *guide);

/* Destroys those that were given up while an iteration could still need them. */
void plan_cache_discard_wrong(struct plan_cache *cache);

/* Why there is no plan for such iterations; NULL: none was refused, as far as is remembered. */
const char *plan_cache_refusal(const struct plan_cache *cache, const char *label,
                               uint64_t signature);
void plan_cache_refuse(struct plan_cache *cache, const char *label, uint64_t signature,
                       const char *text);

#endif

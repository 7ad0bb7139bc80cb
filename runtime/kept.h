/*
 * What planning has come to: guides that can be put in force, and iterations for which no plan was
 * found, with the reason. Both go by an iteration's label and signature, and both are bounded.
 *
 * Zeroed is empty. Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_KEPT_H
#define CAPU_RUNTIME_KEPT_H

#include "runtime/guide.h"

enum { KEPT_GUIDES = 8, KEPT_REFUSALS = 16, KEPT_TEXT_BYTES = 1024 };

/* An iteration for which no plan was found. */
struct refusal {
    const char *label; /* interned; NULL: unused */
    uint64_t signature;
    char text[KEPT_TEXT_BYTES];
};

struct kept {
    struct guide *guides[KEPT_GUIDES]; /* owned; NULL: free */
    struct refusal refusals[KEPT_REFUSALS];
    size_t refusal_count; /* ever; the oldest makes way */
};

void kept_finish(struct kept *kept);

/* NULL: there is none. */
struct guide *kept_find(const struct kept *kept, const char *label, uint64_t signature);

/* Takes a guide. Where there is no room, the one least recently used goes, but not `in_force`. */
void kept_add(struct kept *kept, struct guide *guide, const struct guide *in_force);

/* Destroys a kept guide. */
void kept_discard(struct kept *kept, struct guide *guide);

/* Destroys those that were given up while an iteration could still need them. */
void kept_discard_wrong(struct kept *kept);

/* Why there is no plan for such iterations; NULL: none was refused, as far as is remembered. */
const char *kept_refusal(const struct kept *kept, const char *label, uint64_t signature);
void kept_refuse(struct kept *kept, const char *label, uint64_t signature, const char *text);

#endif

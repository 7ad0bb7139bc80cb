/*
 * Backoff: when iterations under a label stop following plans, and when they try again.
 *
 * Where shapes are drawn at random, nearly every iteration leaves its plan. It has then paid for
 * installing and leaving it, and gained nothing. So after BACKOFF_DIVERGED iterations in a row that
 * left their plans, a label pauses for BACKOFF_PAUSE iterations, which are passive. Then one
 * iteration tries again, and each time it fails the next pause is twice as long. One iteration that
 * follows its plan to the end ends all this. Iterations that had no plan count neither way.
 *
 * Pure functions of the struct. Zeroed: nothing has diverged. Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_BACKOFF_H
#define CAPU_RUNTIME_BACKOFF_H

#include <stdbool.h>
#include <stdint.h>

enum { BACKOFF_DIVERGED = 8, BACKOFF_PAUSE = 64 };

struct backoff {
    uint32_t diverged; /* iterations in a row that left their plan, at most BACKOFF_DIVERGED */
    uint64_t pause;    /* iterations of the newest pause; 0: there was none */
    uint64_t left;     /* iterations of it that have not ended */
};

/* Whether the next iteration is not to follow a plan. */
bool backoff_is_paused(const struct backoff *backoff);

/* An iteration has ended. `is_guided`: it began with a plan. `has_diverged`: it left that plan. */
void backoff_note(struct backoff *backoff, bool is_guided, bool has_diverged);

#endif

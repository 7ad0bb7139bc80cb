/* Trees over the ops of an iteration: the bytes held at every op, and the idle time of a link at
   every op. Owned by one thread. */
#ifndef CAPU_POLICY_OP_TREES_H
#define CAPU_POLICY_OP_TREES_H

#include <stdint.h>

#include "base/assert.h"
#include "capuchin/status.h"

/* A segment tree with range addition and range maximum, O(log n) each. Planning keeps in it the
   bytes held at every op: "does this tensor fit from here to there?" is one query, and keeping it
   is one addition. */
struct segment_tree {
    int64_t *most;   /* per node: the largest below it, its own `added` included */
    int64_t *added;  /* per node: what was added to all of it */
    uint32_t leaves; /* a power of two */
};

/* Errors: NO_HOST_MEMORY. On failure zeroed. */
capu_status segment_tree_init(struct segment_tree *tree, uint32_t points);
void segment_tree_finish(struct segment_tree *tree);
/* Point i holds values[i]. Pre: no more points than at segment_tree_init. */
void segment_tree_fill(struct segment_tree *tree, const int64_t *values, uint32_t points);
/* Points from `first` to `last`, both included; nothing if first > last. Pre: `last` is a point. */
void segment_tree_add(struct segment_tree *tree, uint32_t first, uint32_t last, int64_t bytes);
/* INT64_MIN for an empty range. Pre: as above. */
int64_t segment_tree_most(const struct segment_tree *tree, uint32_t first, uint32_t last);

/* Idle time of a link, per op, found by amount and consumed: the greedy plans copies into it. */
struct idle_time {
    int64_t *left; /* per op, in ns */
    int64_t *sums; /* a Fenwick tree over them, from index 1 */
    uint32_t count;
};

/* Errors: NO_HOST_MEMORY. On failure zeroed. */
capu_status idle_time_init(struct idle_time *idle, uint32_t ops);
void idle_time_finish(struct idle_time *idle);

/* Op k runs from start_ns[k] to start_ns[k + 1], and the link is busy for busy[k] of that. */
void idle_time_fill(struct idle_time *idle, const uint64_t *start_ns, const uint64_t *busy);

/* Idle time in ops 0 to k-1. Pre: k is at most the number of ops. */
static inline int64_t idle_time_before(const struct idle_time *idle, uint32_t k)
{
    int64_t sum = 0;

    ASSERT(k <= idle->count);
    for (; k > 0; k -= k & -k) {
        sum += idle->sums[k];
    }
    return sum;
}

/* The largest number of ops from op 0 on whose idle time together is less than `amount`. */
static inline uint32_t idle_time_find(const struct idle_time *idle, int64_t amount)
{
    uint32_t at = 0;
    uint32_t step = 1;

    while (step * 2 <= idle->count) {
        step *= 2;
    }
    for (; step > 0; step /= 2) {
        if (at + step <= idle->count && idle->sums[at + step] < amount) {
            at += step;
            amount -= idle->sums[at];
        }
    }
    return at;
}

/* Takes the amount from op `from` on, or before op `to` backwards, as far as there is any.
   Pre: `to` is at most the number of ops. */
void idle_time_consume_forward(struct idle_time *idle, uint32_t from, int64_t amount);
void idle_time_consume_backward(struct idle_time *idle, uint32_t to, int64_t amount);

#endif

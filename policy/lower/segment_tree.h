/* A segment tree with range addition and range maximum, O(log n) each. Planning keeps in it the
   bytes held at every op: "does this tensor fit from here to there?" is one query, and keeping it
   is one addition. */
#ifndef CAPU_POLICY_SEGMENT_TREE_H
#define CAPU_POLICY_SEGMENT_TREE_H

#include <stdint.h>

#include "capuchin/status.h"

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

#endif

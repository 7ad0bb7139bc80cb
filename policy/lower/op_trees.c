/* The segment tree and the Fenwick tree. */
#include "policy/lower/op_trees.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

/*
 * A segment tree walked from the leaves upwards: node i has the children 2i and 2i + 1, and the
 * leaves are a power of two. `added` is never pushed down; a query adds what it passes on its way
 * to the root. So an update writes no child, and both operations are short loops without recursion.
 */

capu_status segment_tree_init(struct segment_tree *tree, uint32_t points)
{
    uint32_t leaves = 1;

    while (leaves < points) {
        leaves *= 2;
    }
    *tree = (struct segment_tree){.leaves = leaves};
    tree->most = calloc((size_t)leaves * 2, sizeof(*tree->most));
    tree->added = calloc((size_t)leaves * 2, sizeof(*tree->added));
    if (tree->most == NULL || tree->added == NULL) {
        segment_tree_finish(tree);
        return CAPU_NO_HOST_MEMORY;
    }
    return CAPU_OK;
}

void segment_tree_finish(struct segment_tree *tree)
{
    free(tree->most);
    free(tree->added);
    *tree = (struct segment_tree){0};
}

static void pull(struct segment_tree *tree, uint32_t node)
{
    int64_t left = tree->most[2 * node];
    int64_t right = tree->most[2 * node + 1];

    tree->most[node] = (left > right ? left : right) + tree->added[node];
}

void segment_tree_fill(struct segment_tree *tree, const int64_t *values, uint32_t points)
{
    ASSERT(points <= tree->leaves);
    memset(tree->added, 0, (size_t)tree->leaves * 2 * sizeof(*tree->added));
    for (uint32_t i = 0; i < tree->leaves; i++) {
        tree->most[tree->leaves + i] = i < points ? values[i] : 0;
    }
    for (uint32_t node = tree->leaves - 1; node > 0; node--) {
        pull(tree, node);
    }
}

void segment_tree_add(struct segment_tree *tree, uint32_t first, uint32_t last, int64_t bytes)
{
    uint32_t left = tree->leaves + first;
    uint32_t right = tree->leaves + last + 1;
    uint32_t left_end = left;
    uint32_t right_end = right - 1;

    if (first > last) {
        return;
    }
    ASSERT(last < tree->leaves);
    for (; left < right; left /= 2, right /= 2) {
        if (left % 2 == 1) {
            tree->most[left] += bytes;
            tree->added[left++] += bytes;
        }
        if (right % 2 == 1) {
            tree->most[--right] += bytes;
            tree->added[right] += bytes;
        }
    }
    for (left = left_end / 2; left > 0; left /= 2) {
        pull(tree, left);
    }
    for (right = right_end / 2; right > 0; right /= 2) {
        pull(tree, right);
    }
}

int64_t segment_tree_most(const struct segment_tree *tree, uint32_t first, uint32_t last)
{
    uint32_t left = tree->leaves + first;
    uint32_t right = tree->leaves + last;
    int64_t left_most;
    int64_t right_most;

    if (first > last) {
        return INT64_MIN;
    }
    ASSERT(last < tree->leaves);
    /* Two paths upwards; the subtrees between them are covered whole. */
    left_most = tree->most[left];
    right_most = tree->most[right];
    while (left / 2 != right / 2) {
        if (left % 2 == 0 && tree->most[left + 1] > left_most) {
            left_most = tree->most[left + 1];
        }
        if (right % 2 == 1 && tree->most[right - 1] > right_most) {
            right_most = tree->most[right - 1];
        }
        left /= 2;
        right /= 2;
        left_most += tree->added[left];
        right_most += tree->added[right];
    }
    left_most = left_most > right_most ? left_most : right_most;
    for (left /= 2; left > 0; left /= 2) {
        left_most += tree->added[left];
    }
    return left_most;
}

/*
 * Idle time per op: the time itself, and a Fenwick tree over it. "How much idle time is there
 * before op k?" and "before which op has so much of it passed?" are one walk of O(log ops) each.
 */

capu_status idle_time_init(struct idle_time *idle, uint32_t ops)
{
    *idle = (struct idle_time){.count = ops};
    idle->left = calloc((size_t)ops + 2, sizeof(*idle->left));
    idle->sums = calloc((size_t)ops + 2, sizeof(*idle->sums));
    if (idle->left == NULL || idle->sums == NULL) {
        idle_time_finish(idle);
        return CAPU_NO_HOST_MEMORY;
    }
    return CAPU_OK;
}

void idle_time_finish(struct idle_time *idle)
{
    free(idle->left);
    free(idle->sums);
    *idle = (struct idle_time){0};
}

void idle_time_fill(struct idle_time *idle, const uint64_t *start_ns, const uint64_t *busy)
{
    uint32_t ops = idle->count;

    for (uint32_t k = 0; k < ops; k++) {
        int64_t span = (int64_t)(start_ns[k + 1] - start_ns[k]);

        idle->left[k] = span - (int64_t)busy[k];
        idle->left[k] = idle->left[k] > 0 ? idle->left[k] : 0;
        idle->sums[k + 1] = idle->left[k];
    }
    for (uint32_t i = 1; i <= ops; i++) {
        uint32_t parent = i + (i & -i);

        if (parent <= ops) {
            idle->sums[parent] += idle->sums[i];
        }
    }
}

static int64_t take_idle(struct idle_time *idle, uint32_t k, int64_t amount)
{
    int64_t taken = idle->left[k] < amount ? idle->left[k] : amount;

    if (taken > 0) {
        idle->left[k] -= taken;
        for (uint32_t i = k + 1; i <= idle->count; i += i & -i) {
            idle->sums[i] -= taken;
        }
    }
    return amount - taken;
}

void idle_time_consume_forward(struct idle_time *idle, uint32_t from, int64_t amount)
{
    for (uint32_t k = from; k < idle->count && amount > 0; k++) {
        amount = take_idle(idle, k, amount);
    }
}

void idle_time_consume_backward(struct idle_time *idle, uint32_t to, int64_t amount)
{
    ASSERT(to <= idle->count);
    for (uint32_t k = to; k-- > 0 && amount > 0;) {
        amount = take_idle(idle, k, amount);
    }
}

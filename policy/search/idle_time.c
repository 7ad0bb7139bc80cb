/*
 * Idle time per op: the time itself, and a Fenwick tree over it. "How much idle time is there
 * before op k?" and "before which op has so much of it passed?" are one walk of O(log ops) each.
 */
#include "policy/search/idle_time.h"

#include "base/assert.h"

#include <stdlib.h>

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

static int64_t take(struct idle_time *idle, uint32_t k, int64_t amount)
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
        amount = take(idle, k, amount);
    }
}

void idle_time_consume_backward(struct idle_time *idle, uint32_t to, int64_t amount)
{
    ASSERT(to <= idle->count);
    for (uint32_t k = to; k-- > 0 && amount > 0;) {
        amount = take(idle, k, amount);
    }
}

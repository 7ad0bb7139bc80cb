/* Counting the frees that a plan relies on, see guide_frees.h. */
#include "runtime/guide/guide_frees.h"

#include <stdlib.h>

/* A tensor takes its pages for an op. False: another one has not been freed by then. */
static bool take(struct guide *guide, uint32_t *holder, uint32_t tensor, uint32_t op)
{
    struct guide_part runs = guide->tensors[tensor].runs;

    for (uint32_t r = 0; r < runs.count; r++) {
        const struct plan_run *run = &guide->runs[runs.first + r];

        for (uint32_t page = run->first; page < run->first + run->count; page++) {
            uint32_t last = holder[page];

            holder[page] = tensor + 1;
            if (last == 0 || last - 1 == tensor) {
                continue;
            }
            if (guide->tensors[last - 1].freed_op > op) {
                return false;
            }
            guide->tensors[last - 1].passes_pages_on = true;
        }
    }
    return true;
}

/* Tensors take their pages when they are first accessed; what outlives iterations has its own. */
static bool take_all(struct guide *guide, uint32_t *holder)
{
    bool is_apart = true;

    for (uint32_t k = 0; k < guide->op_count && is_apart; k++) {
        struct guide_part accesses = guide->ops[k].accesses;

        for (uint32_t i = 0; i < accesses.count && is_apart; i++) {
            is_apart = take(guide, holder, guide->accesses[accesses.first + i].tensor, k);
        }
    }
    return is_apart;
}

capu_status guide_frees_note(struct guide *guide)
{
    uint32_t *holder = calloc((size_t)guide->page_count + 1, sizeof(*holder));
    bool is_apart;
    uint32_t count = 0;

    if (holder == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    is_apart = take_all(guide, holder);
    free(holder);
    for (uint32_t t = 0; t < guide->tensor_count; t++) {
        struct guide_tensor *tensor = &guide->tensors[t];

        tensor->passes_pages_on = tensor->passes_pages_on && is_apart;
        if (tensor->passes_pages_on) {
            guide->ops[tensor->freed_op].free_count++;
        }
    }
    for (uint32_t k = 0; k < guide->op_count; k++) {
        count += guide->ops[k].free_count;
        guide->ops[k].free_count = count;
    }
    return CAPU_OK;
}

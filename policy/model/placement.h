/*
 * Which pages a placed plan gives each tensor: the place lines of a plan, looked up by tensor. An
 * unplaced plan has an empty placement.
 */
#ifndef CAPU_POLICY_PLACEMENT_H
#define CAPU_POLICY_PLACEMENT_H

#include <stdint.h>

#include "base/error_text.h"
#include "capuchin/status.h"
#include "policy/format/plan.h"
#include "policy/model/trace_index.h"

struct placement {
    uint32_t *first;     /* per tensor, one more at the end; NULL: nothing is placed */
    uint32_t *pages;     /* page numbers, by tensor */
    uint32_t page_count; /* the largest page number, plus one */
};

/*
 * Errors: INVALID (a tensor does not exist, is placed twice, is not managed, or has another number
 * of pages than its bytes need; the pages exceed the budget), NO_HOST_MEMORY. On failure zeroed.
 */
capu_status placement_init(struct placement *placement, const struct trace_index *trace_index,
                           const struct plan *plan, struct error_text *error);
void placement_finish(struct placement *placement);

static inline uint32_t placement_count(const struct placement *placement, uint32_t tensor)
{
    return placement->first == NULL ? 0 : placement->first[tensor + 1] - placement->first[tensor];
}

static inline uint32_t placement_page(const struct placement *placement, uint32_t tensor,
                                      uint32_t index)
{
    return placement->pages[placement->first[tensor] + index];
}

#endif

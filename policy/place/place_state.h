/* Internals of placement, shared by place.c (the order of the tensors) and place_candidates.c
   (which pages each gets). */
#ifndef CAPU_POLICY_PLACE_STATE_H
#define CAPU_POLICY_PLACE_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "capuchin/status.h"
#include "policy/format/plan.h"
#include "policy/model/trace_index.h"
#include "policy/place/page_groups.h"

/* A group that a tensor could have. */
struct place_candidate {
    int64_t late; /* ns that tensors would wait */
    uint32_t group;
    uint32_t rank; /* in the order found, or by how well it fits: decides between equals */
};

struct turn_order {
    uint32_t rank; /* record at which it comes, or how much shorter than all it is */
    uint32_t tensor;
};

struct placer {
    const struct trace_index *trace_index;
    const struct machine *machine;
    struct residencies residencies; /* of the current plan */
    struct plan *plan;
    const struct plan *kept; /* place lines to keep; NULL: none */
    uint8_t *is_kept;        /* per page below the limit; not without `kept` */
    size_t kept_capacity;
    uint8_t *has_kept;   /* per tensor: it has the pages of `kept` */
    uint64_t page_count; /* handed out, or in groups; more than the limit: they did not suffice */
    uint64_t limit;      /* of pages */
    int64_t tolerance;   /* ns to wait rather than take unused pages */
    bool must_fit;       /* gives up if the pages run out; else it adds some */
    bool is_long_first;
    int64_t late_ns;          /* all waits together */
    struct turn_order *order; /* long tensors, if they come first, and the others */
    uint32_t long_count;
    uint32_t order_count;

    struct page_groups groups;
    struct place_candidate *late; /* of the current tensor, as all that follow */
    uint32_t late_count;
    size_t late_capacity;
    uint32_t *chosen;
    uint32_t chosen_count;
    size_t chosen_capacity;
    struct plan_run *runs;
    uint32_t run_count;
    size_t run_capacity;
};

static inline uint32_t place_pages_of(const struct placer *placer, uint32_t tensor)
{
    return (uint32_t)(placer->trace_index->rounded[tensor] / placer->trace_index->page_bytes);
}

/* place_candidates.c: chooses groups with so many pages for the tensor, into `chosen`; *need
   becomes the number of pages that are missing. */
void place_candidates_choose(struct placer *placer, uint32_t tensor, uint32_t *need);
/* Reserves room for one candidate, choice and run per group, and one more. Errors: NO_HOST_MEMORY.
 */
capu_status place_candidates_reserve(struct placer *placer);
/* Writes the current runs, neighbours joined, as the tensor's place line. Errors: NO_HOST_MEMORY.
 */
capu_status place_candidates_write(struct placer *placer, uint32_t tensor);

#endif

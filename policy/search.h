/*
 * What a search over decisions keeps: the best plan so far, and how it was got. Every evaluation is
 * a hard lowering and an exact simulation; where the planning has a placer, what is better so far
 * is placed within the header's budget, and its time with place lines counts.
 */
#ifndef CAPU_POLICY_SEARCH_H
#define CAPU_POLICY_SEARCH_H

#include "capuchin/status.h"
#include "policy/planner_shared.h"

struct search {
    struct planning *planning;
    bool is_unplaced; /* nothing is placed, whatever the planning has */
    struct plan scratch;
    struct plan best;
    uint64_t best_ns;             /* UINT64_MAX: nothing yet */
    uint64_t unplaced_ns;         /* the best there was before it was placed, if it could be */
    uint64_t floor_ns;            /* what is faster than this is passed over */
    uint8_t *decisions;           /* of the best, one a gap */
    uint32_t *extended_life;      /* of the best, one a tensor */
    struct lower_options options; /* of the best, its estimate included */
    uint64_t *estimate_ns;
    uint64_t timed_ops; /* ops simulated so far, one iteration each */
};

/* Errors: NO_HOST_MEMORY. search_finish also after a failure. */
capu_status search_init(struct search *search, struct planning *planning);
void search_finish(struct search *search);
void search_swap(struct search *a, struct search *b);

/*
 * Lowers and times; keeps what is better than the best. *ns is UINT64_MAX where the decisions lower
 * to no plan. `extended_life` may be NULL. Errors: NO_HOST_MEMORY.
 */
capu_status search_try(struct search *search, const uint8_t *decisions,
                       const uint32_t *extended_life, const struct lower_options *options,
                       uint64_t *ns);
/* The same for a plan from elsewhere. Pre: it is valid. Its contents may be taken. It is timed
   at this search's budget; where there is a placer, placed and timed at its own. */
capu_status search_offer(struct search *search, struct plan *plan);

/* Is the best plan about as fast as the best would be without place lines? */
bool search_is_placed_well(const struct search *search);

/* Ops walked over and simulated so far: a measure of effort that is the same everywhere. */
uint64_t search_work(const struct search *search);

bool search_should_stop(const struct search *search);

/* The best into the planning's plan. OVER_BUDGET: there is none. */
capu_status search_conclude(struct search *search);

#endif

/*
 * The state of a search: the best plan so far (the incumbent), and the decisions and options that
 * gave it. Every evaluation is a hard lowering and an exact simulation; where the planning has a
 * placer, a plan that is better so far is also placed within the header's budget, and its time with
 * place lines counts.
 */
#ifndef CAPU_POLICY_SEARCH_H
#define CAPU_POLICY_SEARCH_H

#include "capuchin/status.h"
#include "policy/search/planner_shared.h"

struct search {
    struct planning *planning;
    bool is_unplaced; /* nothing is placed even if the planning has a placer */
    struct plan scratch;
    struct plan best;
    uint64_t best_ns;     /* UINT64_MAX: none yet */
    uint64_t unplaced_ns; /* the best time without place lines, of plans that may be placed */
    uint64_t floor_ns;    /* faster plans are ignored */
    uint8_t *decisions;   /* of the best, one per gap */
    bool has_virtual;     /* the decisions are for the virtual reads, too */
    bool has_returns;     /* returns have made it faster: they are worth the effort */
    struct lower_options options; /* of the best, its estimate included */
    uint64_t *estimate_ns;
    uint64_t timed_ops; /* ops simulated so far, one iteration each */
};

/* Errors: NO_HOST_MEMORY. search_finish also after a failure. */
capu_status search_init(struct search *search, struct planning *planning);
void search_finish(struct search *search);
void search_swap(struct search *a, struct search *b);

/*
 * Lowers and times the decisions; keeps the plan if it is better. *ns is UINT64_MAX if no plan came
 * of them or it was cut off. Errors: NO_HOST_MEMORY.
 */
capu_status search_try(struct search *search, const uint8_t *decisions,
                       const struct lower_options *options, uint64_t *ns);
/* The same for a plan from elsewhere. Pre: it is valid. Its contents may be taken. It is timed
   at this search's budget; where there is a placer, placed and timed at its own. */
capu_status search_offer(struct search *search, struct plan *plan);

/* Is the best plan about as fast as the best would be without place lines? */
bool search_is_placed_well(const struct search *search);

/* Ops walked over and simulated so far: a measure of effort that does not depend on the machine. */
uint64_t search_work(const struct search *search);

bool search_should_stop(const struct search *search);

/* Passes on how much work is left of the longest phase. */
void search_note_work(const struct search *search, uint64_t left);

/* The best into the planning's plan. OVER_BUDGET: there is none. */
capu_status search_conclude(struct search *search);

#endif

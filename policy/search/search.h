/*
 * The state of a search: the best plan so far (the incumbent), and the decisions and options that
 * gave it. Every evaluation is a hard lowering and an exact simulation; where the planning has a
 * placer, a plan that is better so far is also placed within the header's budget, and its time with
 * place lines counts. Then local search, which improves it.
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

/*
 * Local search: changes decisions a few at a time, and lowers and times every change. It finds what
 * the greedy cannot see because it prices one gap at a time: exchanges between means, and the same
 * change in many equal layers at once.
 */

struct local_search;

/* Seeded by `seed` alone. Pre: the search has a plan of its own lowering; `seed` is not 0. Errors:
 * NO_HOST_MEMORY. */
capu_status local_search_create(struct search *search, uint64_t seed, struct local_search **out);
void local_search_destroy(struct local_search *local_search);

/*
 * Starts from the best plan of the search; takes so many steps, or fewer if search_work reaches
 * `work_end`; better plans go into the search. `heat` (0 to 1) says how much worse than the best
 * the current decisions may be for a while. Errors: NO_HOST_MEMORY.
 */
capu_status local_search_run(struct local_search *local_search, uint32_t steps, uint64_t work_end,
                             double heat);

#endif

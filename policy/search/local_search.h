/*
 * Local search: changes decisions a few at a time, and lowers and times every change. It finds what
 * the greedy cannot see because it prices one gap at a time: exchanges between means, and the same
 * change in many equal layers at once.
 */
#ifndef CAPU_POLICY_LOCAL_SEARCH_H
#define CAPU_POLICY_LOCAL_SEARCH_H

#include "capuchin/status.h"
#include "policy/search/search.h"

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

/*
 * Local search: decisions are changed a few at a time, and every change is lowered and timed. What
 * the greedy cannot see, since it prices one gap at a time, is found here: exchanges between means,
 * and the same change in many equal layers at once.
 */
#ifndef CAPU_POLICY_LOCAL_SEARCH_H
#define CAPU_POLICY_LOCAL_SEARCH_H

#include "capuchin/status.h"
#include "policy/search.h"

struct local_search;

/* Seeded by `seed` alone. Pre: the search has a plan of its own lowering; `seed` is not 0. Errors:
 * NO_HOST_MEMORY. */
capu_status local_search_create(struct search *search, uint64_t seed, struct local_search **out);
void local_search_destroy(struct local_search *local_search);

/*
 * From the best of the search on, in so many steps or until search_work is `work_end`; what is
 * better goes into the search. `heat` (0 to 1) says how much worse than its best a search may be
 * for a while. Errors: NO_HOST_MEMORY.
 */
capu_status local_search_run(struct local_search *local_search, uint32_t steps, uint64_t work_end,
                             double heat);

#endif

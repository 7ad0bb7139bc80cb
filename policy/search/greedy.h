/*
 * The greedy: from any decisions to decisions under which the budget nearly suffices, by price.
 *
 * It works in rounds. A round lowers softly (nothing is evicted for want of room), which shows at
 * which ops and by how many bytes the budget is exceeded. Then it gives up the gaps that relieve
 * most of that excess for their price: a swap costs theta times its copies and relieves from where
 * idle time of the link has carried it out to where idle time must begin to bring it back; a drop
 * costs the replays that are not made anyway and relieves the whole gap.
 */
#ifndef CAPU_POLICY_GREEDY_H
#define CAPU_POLICY_GREEDY_H

#include "capuchin/status.h"
#include "policy/search/planner_shared.h"

struct greedy_options {
    double theta;
    double safety; /* of copy times */
    double margin; /* of the budget: the share that the profile is to fit into */
    bool with_swap;
    bool with_drop;
    bool with_stalled; /* also swaps that compute has to wait for */
    bool with_save;    /* copies out may begin at the last write, ahead of the last access */
    bool is_wary;      /* prices include what replays have to fetch */
    uint32_t rounds_max;
    uint32_t first_round; /* later rounds go for larger shares of the excess */
};

struct greedy;

/* Errors: NO_HOST_MEMORY. */
capu_status greedy_create(struct planning *planning, struct greedy **out);
void greedy_destroy(struct greedy *greedy);

/* Pre: theta, safety and margin are positive. Changes decisions of KEEP until the soft profile fits
   or nothing helps, then gives back what is not needed. `scratch` is a plan to lower into. Errors:
   NO_HOST_MEMORY. */
capu_status greedy_run(struct greedy *greedy, const struct greedy_options *options,
                       uint8_t *decisions, struct plan *scratch);

/* When each op is expected to start under the decisions the last run ended with. */
const uint64_t *greedy_estimate(const struct greedy *greedy);

#endif

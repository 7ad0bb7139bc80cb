/*
 * When it is worth changing to a better plan.
 *
 * The device is idle while plans are changed, and how many iterations are still to come is unknown.
 * So a better plan waits until the iterations without it have lost as much time as the change
 * costs, the next one included. This is the break-even rule of problems in which one rents or buys
 * (A. R. Karlin, M. S. Manasse, L. Rudolph, D. D. Sleator: Competitive snoopy caching, Algorithmica
 * 3, 1988): however many iterations follow, what is lost to waiting and changing is at most twice
 * the least that could have been lost.
 *
 * Zeroed: there is no better plan. Owned by the thread that owns the plan.
 */
#ifndef CAPU_RUNTIME_IMPROVEMENT_H
#define CAPU_RUNTIME_IMPROVEMENT_H

#include <stdbool.h>
#include <stdint.h>

struct improvement {
    uint64_t gain_ns;    /* per iteration */
    uint64_t forgone_ns; /* what the iterations without it have lost */
};

/* An iteration begins, and plans can be changed before it, for `change_ns`. True: it is worth it.
   False: the iteration runs without the improvement, which is noted. Pre: there is a better plan.
 */
bool improvement_is_due(struct improvement *improvement, uint64_t change_ns);

#endif

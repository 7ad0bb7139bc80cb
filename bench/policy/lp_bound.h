/* A lower bound on the iteration time of any valid plan, by linear programming. */
#ifndef CAPU_BENCH_POLICY_LP_BOUND_H
#define CAPU_BENCH_POLICY_LP_BOUND_H

#include <stdbool.h>
#include <stdint.h>

#include "policy/clock.h"
#include "policy/trace_index.h"

struct lp_result {
    uint64_t ns;     /* no valid plan is faster */
    bool is_optimal; /* false: stopped early; it holds, but is less tight */
    int rows;
    int columns;
};

/* Looks at `cuts` ops (32 at most) and stops after so many seconds. The budget is no less than the
   floor. False: no memory. */
bool lp_bound(const struct trace_index *trace_index, const struct machine *machine,
              uint64_t budget_bytes, int cuts, int seconds, struct lp_result *result);

#endif

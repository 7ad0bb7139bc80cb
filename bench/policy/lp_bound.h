/* A lower bound on the iteration time of any valid plan, computed by linear programming. */
#ifndef CAPU_BENCH_POLICY_LP_BOUND_H
#define CAPU_BENCH_POLICY_LP_BOUND_H

#include <stdbool.h>
#include <stdint.h>

#include "policy/model/clock.h"
#include "policy/model/trace_index.h"

struct lp_result {
    uint64_t ns;     /* no valid plan is faster */
    bool is_optimal; /* false: stopped early; the bound holds, but is less tight */
    int rows;
    int columns;
};

/* Considers `cuts` ops (at most 32) and stops after that many seconds. The budget must not be below
   the floor. False: out of memory. */
bool lp_bound(const struct trace_index *trace_index, const struct machine *machine,
              uint64_t budget_bytes, int cuts, int seconds, struct lp_result *result);

#endif

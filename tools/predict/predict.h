/* How long an iteration takes under the plan that a planner makes for a budget. */
#ifndef CAPU_TOOLS_PREDICT_H
#define CAPU_TOOLS_PREDICT_H

#include <stdint.h>

#include "policy/search/planner.h"

/* Plans without a limit on host memory, at most until SIGINT (progress.h), and times the plan; *ns
   is the time of one iteration. Errors: those of planner_run and timeline_time. */
capu_status predict_iteration(const struct planner *planner, const struct trace_index *trace_index,
                              const struct machine *machine, uint64_t budget_bytes,
                              enum planner_effort effort, uint64_t *ns, struct error_text *error);

/* In percent: what an iteration of `ns` takes more than the ops by themselves; 0 if they take no
   time. */
double predict_overhead(const struct trace_index *trace_index, uint64_t ns);

#endif

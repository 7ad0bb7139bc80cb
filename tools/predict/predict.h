/* How long an iteration takes under the plan that a planner makes for a budget. */
#ifndef CAPU_TOOLS_PREDICT_H
#define CAPU_TOOLS_PREDICT_H

#include "policy/search/planner.h"
#include "tools/predict/subject.h"

#include <stdbool.h>
#include <stdint.h>

/* Plans without a limit on host memory, at most until SIGINT (progress.h), and times the plan; *ns
   is the time of one iteration. Errors: those of planner_run and timeline_time. */
capu_status predict_iteration(const struct planner *planner, const struct trace_index *trace_index,
                              const struct machine *machine, uint64_t budget_bytes,
                              capu_effort effort, uint64_t *ns, struct error_text *error);

/* In percent: what an iteration of `ns` takes more than the ops by themselves; 0 if they take no
   time. */
double predict_overhead(const struct trace_index *trace_index, uint64_t ns);

/* The overhead of planners over a range of budgets, and the lower bound. */

#define CURVES_STEPS_MAX 101
#define CURVES_MAX 24

/* Percent over the ideal, by budget; below 0: no plan. */
struct curve {
    const struct planner *planner; /* NULL: the bound */
    double overhead[CURVES_STEPS_MAX];
};

/* Zeroed, there is no planner. The planners are set before curves_measure, at most CURVES_MAX - 1;
   the bound comes after them. */
struct curves {
    struct curve items[CURVES_MAX];
    unsigned item_count;
    unsigned percent[CURVES_STEPS_MAX]; /* of the peak without a plan */
    unsigned count;                     /* of budgets */
};

/* Whole percentages of the peak, 1 to 100. */
struct curves_range {
    unsigned from;
    unsigned to;
    unsigned step;
};

/* The budget that is so many percent of the peak. */
uint64_t curves_budget(const struct subject *subject, unsigned percent);

/* Makes a plan per planner and budget, and shows progress. True: it was stopped; there are only the
   budgets that every planner has finished. */
bool curves_measure(struct curves *curves, const struct subject *subject,
                    const struct curves_range *range, capu_effort effort);

/* The name of its planner, or "bound". */
const char *curve_name(const struct curve *curve);

#endif

/* What most subcommands work on, a trace and the machine it runs on, and predictions by plans for
   it. */
#ifndef CAPU_TOOLS_PREDICT_H
#define CAPU_TOOLS_PREDICT_H

#include "policy/format/plan.h"
#include "policy/format/trace.h"
#include "policy/model/trace_index.h"
#include "policy/search/planner.h"

#include <stdbool.h>
#include <stdint.h>

/* A trace, its index, and the machine that it runs on. */
struct subject {
    struct trace trace;
    struct trace_index trace_index;
    struct machine machine;
};

/* Loads a trace, and warns if it may be cut. False: an error has been printed. */
bool subject_trace(struct trace *trace, const char *path);

/* Loads the trace and builds its index. `machine_name` NULL: the machine in the trace. False: an
 * error has been printed, and nothing is held. */
bool subject_load(struct subject *subject, const char *path, const char *machine_name,
                  uint64_t page_bytes);
void subject_finish(struct subject *subject);

/* Loads a plan, and indexes the trace for its page. `path` NULL: the empty plan, with a budget that
   holds everything. Persistent tensors that no op touches and that the plan does not have leave the
   trace, with a message. Whether the plan is valid for the trace is not checked. False: an error
   has been printed, and nothing is held but the subject. */
bool subject_plan(struct subject *subject, const char *path, struct plan *plan);

/* The file that --machine names; NULL if it names a known machine, or is NULL. */
const char *subject_machine_file(const char *name);

/* How long an iteration takes under the plan that a planner makes for a budget. */

/* Plans without a limit on host memory, at most until SIGINT (progress.h), and times the plan; *ns
   is the time of one iteration. Errors: those of planner_run and timeline_time. */
capu_status predict_iteration(const struct planner *planner, const struct trace_index *trace_index,
                              const struct machine *machine, uint64_t budget_bytes,
                              enum plan_effort effort, uint64_t *ns, struct error_text *error);

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
                    const struct curves_range *range, enum plan_effort effort);

/* The name of its planner, or "bound". */
const char *curve_name(const struct curve *curve);

#endif

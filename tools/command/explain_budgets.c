/* Predictions for other budgets, see explain_budgets.h. */
#include "tools/command/explain_budgets.h"

#include "tools/output/human.h"
#include "tools/predict/advice.h"
#include "tools/predict/predict.h"

#include "policy/bound/bound.h"

#include <inttypes.h>
#include <stdio.h>

/* The predicted time of an iteration within a budget; UINT64_MAX: no plan was found. */
static uint64_t predict_ns(const struct subject *subject, uint64_t budget_bytes,
                           enum planner_effort effort)
{
    uint64_t ns;

    return predict_iteration(&planners[0], &subject->trace_index, &subject->machine, budget_bytes,
                             effort, &ns, NULL) == CAPU_OK
               ? ns
               : UINT64_MAX;
}

/* One line of the list of budgets. There are many, and whether another budget helps shows with
   little effort, too. */
static void print_budget(const struct subject *subject, unsigned percent, uint64_t used_bytes)
{
    uint64_t budget = (uint64_t)((double)subject->trace_index.peak_bytes * percent / 100.0);
    uint64_t next = (uint64_t)((double)subject->trace_index.peak_bytes * (percent + 10) / 100.0);
    uint64_t ns = predict_ns(subject, budget, EFFORT_QUICK);
    char buffer[32];

    printf("  %14s ", human_bytes(budget, buffer));
    if (ns == UINT64_MAX) {
        printf("%14s\n", "no plan");
        return;
    }
    printf("%14s %8.1f %%%s\n", human_ns(ns, buffer), predict_overhead(&subject->trace_index, ns),
           budget <= used_bytes && used_bytes < next ? "  <- this budget" : "");
}

/* Whether another effort than that of the run would pay. `quick_ns`: what quick effort achieves;
   UINT64_MAX: no plan. */
static void print_effort(const struct subject *subject, const struct reported *counters,
                         uint64_t quick_ns)
{
    uint64_t budget = counters->budget_bytes;
    uint64_t worth_ns = subject->trace_index.trace->total_ns / 100;
    uint64_t usual_ns = predict_ns(subject, budget, EFFORT_DEFAULT);
    uint64_t bound_ns;
    char first[32];
    char second[32];

    if (usual_ns == UINT64_MAX || counters->effort == 0) {
        return;
    }
    if (counters->effort == CAPU_EFFORT_QUICK && quick_ns - worth_ns > usual_ns) {
        printf("\neffort: the default (CAPUCHIN_EFFORT=default) finds a plan of %s instead of %s\n",
               human_ns(usual_ns, first),
               quick_ns == UINT64_MAX ? "none" : human_ns(quick_ns, second));
    } else if (counters->effort != CAPU_EFFORT_QUICK && counters->plan_stage == 0 &&
               counters->planning_ns > 0 && quick_ns <= usual_ns + worth_ns) {
        printf("\neffort: the iteration had no plan while planning had taken %.2f s; quick effort "
               "(CAPUCHIN_EFFORT=quick)\n  finds a plan that is as good\n",
               (double)counters->planning_ns / 1e9);
    } else if (counters->effort == CAPU_EFFORT_DEFAULT) {
        bound_ns = bound_iteration(&subject->trace_index, &subject->machine, budget);
        if (usual_ns > bound_ns + worth_ns) {
            printf("\neffort: CAPUCHIN_EFFORT=best searches longer, for a gain of at most %s, the "
                   "distance to the lower bound\n",
                   human_ns(usual_ns - bound_ns, first));
        }
    }
}

/* The change to the program that saves most, if one does. */
static void print_change(const char *trace, const struct advice_list *list, uint64_t budget)
{
    char buffer[32];

    for (size_t i = 0; i < list->count; i++) {
        const struct advice *advice = &list->items[i];

        if (advice->is_program && advice->gain_ns > 0 && list->ideal_ns > 0) {
            printf("\nthe best change to the program: %s\n  saves %s, %.1f %% of the ideal; "
                   "'capuchin advise %s --budget %" PRIu64 "' lists others\n",
                   advice->text.data, human_ns((uint64_t)advice->gain_ns, buffer),
                   100.0 * (double)advice->gain_ns / (double)list->ideal_ns, trace, budget);
            break;
        }
    }
}

/* What else would help at this budget: another effort, a change to the program. */
static void print_help(const char *trace, const struct subject *subject,
                       const struct reported *counters)
{
    uint64_t budget = counters->budget_bytes;
    struct error_text error = {""};
    struct advice_list list;

    if (advice_find(&list, subject, budget, EFFORT_QUICK, &error) != CAPU_OK) {
        print_effort(subject, counters, UINT64_MAX);
        return;
    }
    print_effort(subject, counters, list.iteration_ns);
    print_change(trace, &list, budget);
    advice_finish(&list);
}

static double seconds_of_copies(uint64_t bytes, uint64_t bytes_per_s)
{
    return bytes_per_s > 0 ? (double)bytes / (double)bytes_per_s : 0.0;
}

void explain_budgets(const char *trace, const struct account *account,
                     const struct subject *subject)
{
    const struct reported *counters = &account->counters;

    printf("\nthe link was busy for %.3f ms with copies out and %.3f ms with copies back\n",
           1e3 * seconds_of_copies(counters->evicted_bytes, subject->machine.d2h_bytes_per_s),
           1e3 * seconds_of_copies(counters->prefetched_bytes, subject->machine.h2d_bytes_per_s));
    printf("\nother budgets, predicted for %s with quick effort\n  %14s %14s %10s\n", trace,
           "budget", "iteration", "overhead");
    for (unsigned percent = 30; percent <= 100; percent += 10) {
        print_budget(subject, percent, counters->budget_bytes);
    }
    print_help(trace, subject, counters);
}

/* The overhead of planners over a range of budgets, and the lower bound. */
#ifndef CAPU_TOOLS_CURVES_H
#define CAPU_TOOLS_CURVES_H

#include <stdbool.h>

#include "policy/search/planner.h"

#include "tools/predict/subject.h"

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
                    const struct curves_range *range, enum planner_effort effort);

/* The name of its planner, or "bound". */
const char *curve_name(const struct curve *curve);

#endif

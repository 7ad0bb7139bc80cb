/*
 * Planners of papers, to compare plans with. The command and the benches link them; the library
 * does not, and hybrid does not try them.
 */
#ifndef CAPU_POLICY_BASELINES_H
#define CAPU_POLICY_BASELINES_H

#include <stddef.h>

#include "policy/search/planner.h"

/* All planners: those of planner.h, then those of papers. NULL: there are no more. */
const struct planner *baselines_planner_at(size_t index);

/* Any of them. NULL: no such planner. */
const struct planner *baselines_find(const char *name);

/* Each planner's entry. */
capu_status capuchin_plan(struct planning *planning);
capu_status checkpoint_plan(struct planning *planning);
capu_status dtr_plan(struct planning *planning);
capu_status speed_plan(struct planning *planning);
capu_status vdnn_plan(struct planning *planning);

#endif

/*
 * Placement of a plan without actions so that contents outlive their last access.
 *
 * Where everything fits, a tensor that is dead for the plan need not make room for another one. So
 * each tensor gets pages of its own, and only what the program has freed passes its pages on. An
 * iteration that differs from the plan then finds everything that it has written.
 *
 * No time is lost: without copies, work follows in order on one engine.
 */
#ifndef CAPU_POLICY_PLACE_APART_H
#define CAPU_POLICY_PLACE_APART_H

#include <stdint.h>

#include "capuchin/status.h"
#include "policy/format/plan.h"
#include "policy/model/trace_index.h"

/*
 * Replaces the plan's place lines, as placer_run does. `freed`: per tensor, the op before which the
 * program frees it, or TRACE_INDEX_NONE; NULL: it frees none. Pre: the plan has no actions.
 *
 * Errors: OVER_BUDGET (more than `page_limit` pages; the plan then has no place lines),
 * NO_HOST_MEMORY, TOO_LARGE.
 */
capu_status place_apart(const struct trace_index *trace_index, const uint32_t *freed,
                        uint64_t page_limit, struct plan *plan);

#endif

/*
 * Placement: gives every managed tensor the pages that it occupies in all its residencies of the
 * iteration, so that a runtime maps it once.
 *
 * Two residencies may share a page only if they are disjoint in issue order, over the iteration
 * border too. Among the pages that this allows, those that are also free in simulated time are
 * preferred, since a residency has to wait until the last holder of its pages is done with them.
 */
#ifndef CAPU_POLICY_PLACE_H
#define CAPU_POLICY_PLACE_H

#include <stdint.h>

#include "base/error_text.h"
#include "capuchin/status.h"
#include "policy/model/program.h"

struct place_result {
    uint64_t unplaced_ns; /* an iteration without place lines */
    uint64_t placed_ns;   /* an iteration with them; UINT64_MAX: the pages do not suffice */
    uint64_t pages;       /* available: budget_bytes less fixed_bytes, in whole pages */
    uint64_t needed;      /* what was used, or would have been */
};

/* Buffers for placing many plans of one trace. Owned by one thread. */
struct placer;

/*
 * `machine` NULL: the trace's own. `kept` has the place lines (and needs nothing else) of another
 * placed plan of a program with these tensors, by the ids of this trace; NULL: none. A tensor that
 * is resident at the iteration border gets those pages again if they exist and are as many as it
 * needs, so that a switch of plans leaves its contents in place. `trace_index`, `machine` and
 * `kept` are borrowed and must outlive the placer.
 *
 * Errors: INVALID (no machine), TOO_LARGE (pages so small that there are too many of them),
 * NO_HOST_MEMORY.
 */
capu_status placer_create(const struct trace_index *trace_index, const struct machine *machine,
                          const struct plan *kept, struct placer **out, struct error_text *error);
void placer_destroy(struct placer *placer);

/*
 * Replaces the place lines of the plan and of its program. The same plan gives the same place
 * lines, to the byte. Every managed tensor that has bytes and is ever resident gets one. Pre: the
 * plan is valid, except that it may hold more than its budget allows.
 *
 * Errors: OVER_BUDGET (the pages do not suffice; the text says how many would), NO_HOST_MEMORY. The
 * plan then has no place lines.
 */
capu_status placer_run(struct placer *placer, struct plan *plan, struct program *program,
                       struct place_result *result, struct error_text *error);

/* Creates a placer, merges the plan, places it, and destroys both. Errors: as above, and those of
   program_init. */
capu_status place_plan(const struct trace_index *trace_index, const struct machine *machine,
                       struct plan *plan, struct place_result *result, struct error_text *error);

/*
 * place_apart.c: placement of a plan without actions so that contents outlive their last access.
 *
 * Where everything fits, a tensor that is dead for the plan need not make room for another one. So
 * each tensor gets pages of its own, and only what the program has freed passes its pages on. An
 * iteration that differs from the plan then finds everything that it has written. No time is lost:
 * without copies, work follows in order on one engine.
 *
 * Replaces the plan's place lines, as placer_run does. `freed`: per tensor, the op before which the
 * program frees it, or TRACE_INDEX_NONE; NULL: it frees none. Pre: the plan has no actions.
 *
 * Errors: OVER_BUDGET (more than `page_limit` pages; the plan then has no place lines),
 * NO_HOST_MEMORY, TOO_LARGE.
 */
capu_status place_apart(const struct trace_index *trace_index, const uint32_t *freed,
                        uint64_t page_limit, struct plan *plan);

#endif

/* What several planners share: the limit that follows from a budget, options of the lowering, the
   plan that leaves placement the most freedom, and what a plan goes through before it leaves. */
#include "policy/search/planner_shared.h"

#include "base/assert.h"

#include "policy/model/timeline.h"
#include "policy/model/validate.h"

#include <stdlib.h>
#include <string.h>

struct lower_options planner_paging_options(const struct planning *planning)
{
    return (struct lower_options){.limit_bytes = planning->limit_bytes,
                                  .host_bytes = planning->request->host_bytes,
                                  .victims = VICTIM_LEAST_RECENT,
                                  .safety = 1.0};
}

struct lower_options planner_full_options(const struct planning *planning)
{
    return (struct lower_options){.limit_bytes = planning->limit_bytes,
                                  .host_bytes = planning->request->host_bytes,
                                  .victims = VICTIM_FARTHEST_USE,
                                  .with_collective = true,
                                  .with_save = true,
                                  .with_prefetch = true,
                                  .safety = 1.0,
                                  .lead = 2.0};
}

bool planner_set_budget(struct planning *planning, uint64_t budget_bytes)
{
    const struct trace_index *trace_index = planning->request->trace_index;
    uint64_t managed_floor = trace_index->floor_bytes - trace_index->fixed_bytes;
    bool is_frugal =
        budget_bytes < managed_floor + trace_index->idle_bytes + trace_index->unmanaged_bytes;

    planning->plan->fixed_bytes =
        is_frugal ? trace_index->fixed_bytes : trace_index->unmanaged_bytes;
    if (budget_bytes < managed_floor + planning->plan->fixed_bytes) {
        return false;
    }
    planning->limit_bytes = budget_bytes - planning->plan->fixed_bytes;
    lower_set_frugal(planning->lower, is_frugal);
    return true;
}

/* No iteration is shorter than what compute and either link have to do. */
static uint64_t busiest_ns(const struct planning *planning, const struct timeline *timeline)
{
    const struct machine *machine = planning->machine;
    uint64_t compute = timeline->ideal_ns + timeline->replay_ns;
    uint64_t out = clock_copy_ns(timeline->evicted_bytes, machine->d2h_bytes_per_s, 0);
    uint64_t in = clock_copy_ns(timeline->prefetched_bytes, machine->h2d_bytes_per_s, 0);

    out = out > in ? out : in;
    return out > compute ? out : compute;
}

capu_status planner_place(struct planning *planning, struct plan *plan, struct place_result *result,
                          struct error_text *error)
{
    struct program program;
    capu_status status = program_init(&program, planning->request->trace_index, plan, error);

    if (status == CAPU_OK) {
        status = placer_run(planning->placer, plan, &program, result, error);
    }
    program_finish(&program);
    return status;
}

/* Places the plan in as few pages as it is known to fit, and sets its budget to that. Without any
   pages to begin with, the placer says how many it would use; given so many, it looks for a faster
   placement, which may take a few more. */
static capu_status place_least(struct planning *planning, struct program *program)
{
    enum { ROUNDS = 8 };
    struct plan *plan = planning->plan;
    struct place_result result = {0};
    uint64_t pages = 0;
    capu_status status = CAPU_OVER_BUDGET;

    for (int round = 0; round < ROUNDS && status == CAPU_OVER_BUDGET; round++) {
        plan->budget_bytes = plan->fixed_bytes + pages * planning->request->trace_index->page_bytes;
        status = placer_run(planning->placer, plan, program, &result, NULL);
        pages = result.needed > pages ? result.needed : pages + 1;
    }
    return status;
}

capu_status planner_plan_frugally(struct planning *planning, uint64_t below_ns)
{
    const struct trace_index *trace_index = planning->request->trace_index;
    uint64_t budget = trace_index->floor_bytes + trace_index->idle_bytes;
    struct plan *plan = planning->plan;
    struct lower_options options;
    struct program program = {0};
    struct timeline timeline;
    capu_status status;

    ASSERT(planning->placer != NULL);
    if (budget > planning->request->budget_bytes || !planner_set_budget(planning, budget)) {
        return CAPU_OVER_BUDGET;
    }
    memset(planning->decisions, DECIDE_SWAP, trace_index->trace->operand_count);
    options = planner_paging_options(planning);
    status = lower_run(planning->lower, planning->decisions, &options, plan);
    if (status == CAPU_OK) {
        status = program_init(&program, trace_index, plan, NULL);
    }
    if (status == CAPU_OK) {
        status = timeline_of(&timeline, &program, planning->machine, false, NULL);
    }
    if (status == CAPU_OK) {
        status = busiest_ns(planning, &timeline) < below_ns ? place_least(planning, &program)
                                                            : CAPU_OVER_BUDGET;
    }
    program_finish(&program);
    if (status != CAPU_OK) {
        return status;
    }
    planning->placed_floor = plan->budget_bytes;
    return planning->placed_floor <= planning->request->budget_bytes ? CAPU_OK : CAPU_OVER_BUDGET;
}

/* Adds copies to a valid plan that keep contents for other iterations. They may exceed the host
   limit: then the plan is as before, or none if it must have them. */
static capu_status add_copies(const struct planner_request *request, struct plan *plan,
                              struct program *program, struct error_text *error)
{
    uint32_t count = plan->action_count;
    struct plan_action *before = malloc((count + 1) * sizeof(*before));
    struct program with_copies;
    capu_status status;

    if (before == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    if (count > 0) {
        memcpy(before, plan->actions, count * sizeof(*before));
    }
    status = preserve_contents(program, request->freed, request->preserve, plan);
    if (status == CAPU_OK) {
        status = validate_program(&with_copies, request->trace_index, plan, error);
    }
    if (status == CAPU_OK) {
        program_finish(program);
        *program = with_copies;
    } else if (status == CAPU_INVALID && request->preserve == PRESERVE_UNREAD) {
        if (count > 0) {
            memcpy(plan->actions, before, count * sizeof(*before));
        }
        plan->action_count = count;
        status = CAPU_OK;
    } else if (status == CAPU_INVALID) {
        status = error_text_set(error, CAPU_UNSUPPORTED,
                                "the host limit leaves no room to keep all contents");
    }
    free(before);
    return status;
}

capu_status planner_conclude(const struct planner_request *request, struct plan *plan,
                             struct program *program, struct error_text *error)
{
    capu_status status = validate_program(program, request->trace_index, plan, error);

    if (status == CAPU_OK && request->preserve != PRESERVE_NOTHING) {
        status = add_copies(request, plan, program, error);
        if (status != CAPU_OK) {
            program_finish(program);
        }
    }
    return status;
}

capu_status planner_report(struct planning *planning, const struct plan *found, uint64_t ns)
{
    const struct planner_request *request = planning->request;
    struct program program;
    struct plan plan;
    capu_status status;

    if (request->improved == NULL || planning->is_quiet || ns >= planning->reported_ns) {
        return CAPU_OK;
    }
    status = plan_copy(&plan, found);
    if (status != CAPU_OK) {
        return status;
    }
    plan.budget_bytes = request->budget_bytes;
    status = planner_conclude(request, &plan, &program, NULL);
    if (status == CAPU_OK) {
        planning->reported_ns = ns;
        request->improved(request->user, &program, ns);
    }
    program_finish(&program);
    plan_finish(&plan);
    return status == CAPU_NO_HOST_MEMORY ? status : CAPU_OK;
}

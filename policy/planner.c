/* The table of planners, and what is the same for all: the floor, the empty plan, the last check.
 */
#include "policy/planner.h"

#include "policy/validate.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const struct planner planners[] = {
    {"hybrid", "swap or recompute each tensor and gap by price, then search", hybrid_plan},
    {"capuchin", "the paper's: by free time, swap or recompute one tensor after the other",
     capuchin_plan},
    {"lru", "demand paging: the least recently used tensor leaves, nothing returns early",
     lru_plan},
    {"swap", "copies only, chosen by price", swap_plan},
    {"recompute", "replays only, chosen by price", recompute_plan},
    {"dtr", "dynamic rematerialisation: the least price for bytes and disuse is dropped", dtr_plan},
    {"vdnn", "copies of what enters a layer, all layers or products only", vdnn_plan},
    {"checkpoint", "replays of all but every sqrt(n)-th place where forward is one tensor",
     checkpoint_plan},
    {"speed", "replays of all but what convolutions and matrix products make", speed_plan},
    {"manual", "the trace's own hints and segments, and nothing else", manual_plan},
    {NULL, NULL, NULL},
};

const struct planner *planner_find(const char *name)
{
    for (const struct planner *planner = planners; planner->name != NULL; planner++) {
        if (strcmp(planner->name, name) == 0) {
            return planner;
        }
    }
    return NULL;
}

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
    const struct uses *uses = planning->request->uses;
    uint64_t managed_floor = uses->floor_bytes - uses->fixed_bytes;
    bool is_frugal = budget_bytes < managed_floor + uses->idle_bytes + uses->unmanaged_bytes;

    planning->plan->fixed_bytes = is_frugal ? uses->fixed_bytes : uses->unmanaged_bytes;
    if (budget_bytes < managed_floor + planning->plan->fixed_bytes) {
        return false;
    }
    planning->limit_bytes = budget_bytes - planning->plan->fixed_bytes;
    lower_set_frugal(planning->lower, is_frugal);
    return true;
}

static capu_status check_floor(const struct planner_request *request, struct error_text *error)
{
    const struct uses *uses = request->uses;

    if (uses->floor_bytes <= request->budget_bytes) {
        return CAPU_OK;
    }
    if (uses->trace->op_count == 0) {
        return error_text_set(error, CAPU_OVER_BUDGET, "no plan exists below %" PRIu64 " bytes",
                              uses->floor_bytes);
    }
    return error_text_set(
        error, CAPU_OVER_BUDGET,
        "no plan exists below %" PRIu64 " bytes: op %" PRIu32 " (%.120s) needs them all at once",
        uses->floor_bytes, uses->floor_op, trace_op_name(uses->trace, uses->floor_op));
}

static capu_status make_plan(const struct planner *planner, struct planning *planning)
{
    const struct planner_request *request = planning->request;
    capu_status status;

    planning->decisions = calloc((size_t)request->uses->trace->operand_count + 1, 1);
    if (planning->decisions == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    status = lower_create(request->uses, planning->machine, &planning->lower);
    if (status == CAPU_OK) {
        planner_set_budget(planning, request->budget_bytes);
        status = planner->plan(planning);
    }
    lower_destroy(planning->lower);
    free(planning->decisions);
    return status;
}

static capu_status none_found(const struct planner *planner, const struct planner_request *request,
                              struct error_text *error)
{
    return error_text_set(error, CAPU_UNSUPPORTED,
                          "%s found no plan within %" PRIu64
                          " bytes, though one may exist (largest op: %" PRIu64 " bytes%s)",
                          planner->name, request->budget_bytes, request->uses->floor_bytes,
                          request->host_bytes != UINT64_MAX ? "; the host limit counts too" : "");
}

capu_status planner_run(const struct planner *planner, const struct planner_request *request,
                        struct plan *plan, struct error_text *error)
{
    const struct uses *uses = request->uses;
    struct planning planning = {.request = request, .plan = plan, .error = error};
    capu_status status = check_floor(request, error);

    *plan = (struct plan){0};
    if (status != CAPU_OK) {
        return status;
    }
    if (request->machine == NULL && !uses->trace->has_machine) {
        return error_text_set(error, CAPU_INVALID, "the trace names no machine");
    }
    planning.machine = request->machine != NULL ? request->machine : &uses->trace->machine;
    status = plan_init(plan, trace_text(uses->trace, uses->trace->name), request->budget_bytes,
                       uses->page_bytes);
    if (status != CAPU_OK) {
        return status;
    }
    plan->fixed_bytes = uses->fixed_bytes;
    plan->host_bytes = request->host_bytes;
    if (uses->peak_bytes > request->budget_bytes) {
        /* Without an op there is nowhere an action could stand. */
        status = uses->trace->op_count > 0 ? make_plan(planner, &planning) : CAPU_OVER_BUDGET;
    }
    if (status == CAPU_OK) {
        status = validate_plan(uses, plan, error);
    } else if (status != CAPU_NO_HOST_MEMORY) {
        status = none_found(planner, request, error);
    }
    if (status != CAPU_OK) {
        plan_finish(plan);
    }
    return status;
}

/* The library's planners, and what is the same for every planner: the check of the floor, the empty
   plan where everything fits, placement for planners that know nothing of it (their plan is made
   for smaller and smaller budgets until it can be placed without waits), and what is done with the
   plan they return. */
#include "policy/search/planner.h"

#include "base/assert.h"
#include "base/size_text.h"
#include "policy/model/timeline.h"
#include "policy/place/place.h"
#include "policy/search/planner_shared.h"
#include "policy/search/search.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const char *const plan_effort_names[EFFORT_BEST + 1] = {"quick", "default", "best", NULL};

/* Nothing that a planner calls may use this file. Planner hybrid, which tries the others, gets the
   table through struct planning. */
const struct planner planners[] = {
    {"hybrid", "swaps or recomputes each tensor, whichever costs less, then searches", hybrid_plan,
     true},
    {"lru", "demand paging: evicts the least recently used tensor, prefetches nothing", lru_plan,
     false},
    {"swap", "only swaps, what costs least first", swap_plan, false},
    {"recompute", "only recomputes, what costs least first", recompute_plan, false},
    {"manual", "follows the trace's hints and segments, and decides nothing else", manual_plan,
     false},
    {NULL, NULL, NULL, false},
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

static capu_status check_floor(const struct planner_request *request, struct error_text *error)
{
    const struct trace_index *trace_index = request->trace_index;

    if (trace_index->floor_bytes <= request->budget_bytes) {
        return CAPU_OK;
    }
    if (trace_index->trace->op_count == 0) {
        return error_text_set(error, CAPU_OVER_BUDGET, "no plan exists below %s",
                              size_text(trace_index->floor_bytes).text);
    }
    return error_text_set(error, CAPU_OVER_BUDGET,
                          "no plan exists below %s: op %" PRIu32 " (%.120s) needs them all at once",
                          size_text(trace_index->floor_bytes).text, trace_index->floor_op,
                          trace_op_name(trace_index->trace, trace_index->floor_op));
}

/* Runs a planner that knows nothing of placement at the budget, and at smaller ones until its plan
   can be placed within the budget without waits. */
static capu_status plan_smaller(const struct planner *planner, struct planning *planning)
{
    /* Parts of a thousand. */
    static const uint64_t parts[] = {1000, 990, 975, 955, 930, 900, 850, 800, 700, 600, 500};
    uint64_t budget = planning->request->budget_bytes;
    struct search best;
    capu_status status = search_init(&best, planning);

    for (size_t i = 0; status == CAPU_OK && i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (!planner_set_budget(planning, budget / 1000 * parts[i]) ||
            search_is_placed_well(&best) ||
            (best.best_ns != UINT64_MAX && search_should_stop(&best))) {
            break;
        }
        planning->plan->budget_bytes = budget;
        memset(planning->decisions, DECIDE_KEEP,
               planning->request->trace_index->trace->operand_count);
        status = planner->plan(planning);
        if (status == CAPU_OK) {
            status = search_offer(&best, planning->plan);
        } else if (status != CAPU_NO_HOST_MEMORY) {
            status = CAPU_OK;
        }
    }
    if (status == CAPU_OK && best.best_ns == UINT64_MAX) {
        status = planner_plan_frugally(planning, UINT64_MAX);
        status = status == CAPU_OK ? search_offer(&best, planning->plan) : status;
    }
    if (status == CAPU_OK) {
        status = search_conclude(&best);
    }
    search_finish(&best);
    return status;
}

static capu_status make_plan(const struct planner *planner, struct planning *planning)
{
    const struct planner_request *request = planning->request;
    struct virtual_reads reads;
    capu_status status = virtual_reads_choose(request->trace_index, &reads);

    if (status == CAPU_OK) {
        status = lower_create(request->trace_index, planning->machine, &reads, &planning->lower);
    }
    virtual_reads_finish(&reads);
    if (status == CAPU_OK) {
        planning->decisions = calloc((size_t)lower_gap_count(planning->lower) + 1, 1);
        status = planning->decisions != NULL ? CAPU_OK : CAPU_NO_HOST_MEMORY;
    }
    if (status == CAPU_OK) {
        planner_set_budget(planning, request->budget_bytes);
        status = planning->placer == NULL || planner->is_placing ? planner->plan(planning)
                                                                 : plan_smaller(planner, planning);
    }
    lower_destroy(planning->lower);
    free(planning->decisions);
    return status == CAPU_TOO_LARGE
               ? error_text_set(planning->error, status, "an iteration beyond 2^62 ns")
               : status;
}

static capu_status none_found(const struct planner *planner, const struct planning *planning,
                              struct error_text *error)
{
    const struct planner_request *request = planning->request;

    if (planning->placed_floor > request->budget_bytes) {
        return error_text_set(
            error, CAPU_UNSUPPORTED,
            "%s found no placement within %s; the smallest known takes %s (%" PRIu64
            " pages of %" PRIu64 " and what is fixed)",
            planner->name, size_text(request->budget_bytes).text,
            size_text(planning->placed_floor).text,
            (planning->placed_floor - planning->plan->fixed_bytes) /
                request->trace_index->page_bytes,
            request->trace_index->page_bytes);
    }
    return error_text_set(error, CAPU_UNSUPPORTED,
                          "%s found no plan within %s, though one may exist (largest op: %s%s); "
                          "everything fits within %s",
                          planner->name, size_text(request->budget_bytes).text,
                          size_text(request->trace_index->floor_bytes).text,
                          request->host_bytes != UINT64_MAX ? "; the host limit counts too" : "",
                          size_text(request->trace_index->peak_bytes).text);
}

/* The place lines of the empty plan. Tensors are kept apart if there is room for that. */
static capu_status place_empty(struct planning *planning)
{
    const struct planner_request *request = planning->request;
    uint64_t fixed_bytes = planning->plan->fixed_bytes;
    struct place_result result;
    capu_status status = CAPU_OVER_BUDGET;

    if (request->apart_bytes > fixed_bytes) {
        status =
            place_apart(request->trace_index, request->freed,
                        (request->apart_bytes - fixed_bytes) / request->trace_index->page_bytes,
                        planning->plan);
    }
    return status != CAPU_OVER_BUDGET
               ? status
               : planner_place(planning, planning->plan, &result, planning->error);
}

/* The plan where something has to leave, or the empty one; with place lines where they are wanted.
 */
static capu_status fill_plan(const struct planner *planner, struct planning *planning)
{
    const struct planner_request *request = planning->request;
    const struct trace_index *trace_index = request->trace_index;
    capu_status status = CAPU_OK;

    if (request->place) {
        status = placer_create(trace_index, planning->machine, request->kept, &planning->placer,
                               planning->error);
    }
    if (status == CAPU_OK && trace_index->peak_bytes > request->budget_bytes) {
        /* Without ops there is no point for an action. */
        status = trace_index->trace->op_count > 0 ? make_plan(planner, planning) : CAPU_OVER_BUDGET;
        planning->plan->budget_bytes = request->budget_bytes;
    } else if (status == CAPU_OK && request->place) {
        status = place_empty(planning);
    }
    placer_destroy(planning->placer);
    return status;
}

/* For planners that do not search: what they return is the first that is reported. */
static capu_status report_last(struct planning *planning)
{
    const struct planner_request *request = planning->request;
    struct program program;
    uint64_t ns;
    capu_status status;

    if (request->improved == NULL) {
        return CAPU_OK;
    }
    status = program_init(&program, request->trace_index, planning->plan, NULL);
    if (status == CAPU_OK) {
        status = timeline_time(&program, planning->machine, 0, &ns);
    }
    program_finish(&program);
    return status == CAPU_OK ? planner_report(planning, planning->plan, ns) : status;
}

/* Chooses the machine, and starts an empty plan. */
static capu_status begin_plan(struct planning *planning)
{
    const struct planner_request *request = planning->request;
    const struct trace_index *trace_index = request->trace_index;
    struct plan *plan = planning->plan;
    capu_status status;

    if (request->machine == NULL && !trace_index->trace->has_machine) {
        return error_text_set(planning->error, CAPU_INVALID, "the trace names no machine");
    }
    planning->machine = request->machine != NULL ? request->machine : &trace_index->trace->machine;
    status = plan_init(plan, trace_text(trace_index->trace, trace_index->trace->name),
                       request->budget_bytes, trace_index->page_bytes);
    if (status == CAPU_OK) {
        plan->trace_tensors = trace_index->trace->tensor_count;
        plan->trace_ops = trace_index->trace->op_count;
        plan->fixed_bytes = trace_index->fixed_bytes;
        plan->host_bytes = request->host_bytes;
    }
    return status;
}

static capu_status run_request(const struct planner *planner, const struct planner_request *request,
                               struct plan *plan, struct program *program, struct error_text *error)
{
    struct planning planning = {.request = request,
                                .planner = planner,
                                .planners = planners,
                                .plan = plan,
                                .reported_ns = UINT64_MAX,
                                .error = error};
    capu_status status = check_floor(request, error);

    if (status == CAPU_OK) {
        status = begin_plan(&planning);
    }
    if (status != CAPU_OK) {
        return status;
    }
    status = fill_plan(planner, &planning);
    if (status == CAPU_OK) {
        status = report_last(&planning);
    }
    if (status == CAPU_OK) {
        status = planner_conclude(request, plan, program, error);
    } else if (status != CAPU_NO_HOST_MEMORY && status != CAPU_TOO_LARGE) {
        status = none_found(planner, &planning, error);
    }
    if (status != CAPU_OK) {
        plan_finish(plan);
    }
    return status;
}

capu_status planner_run_program(const struct planner *planner,
                                const struct planner_request *request, struct plan *plan,
                                struct program *program, struct error_text *error)
{
    struct trace_index trace_index = *request->trace_index;
    struct planner_request raised = *request;
    capu_status status;

    ASSERT(planner != NULL);
    *plan = (struct plan){0};
    *program = (struct program){0};
    raised.trace_index = &trace_index;
    trace_index_raise_fixed(&trace_index, request->fixed_bytes);
    status = run_request(planner, &raised, plan, program, error);
    if (status == CAPU_OK) {
        program->trace_index = request->trace_index;
    }
    return status;
}

capu_status planner_run(const struct planner *planner, const struct planner_request *request,
                        struct plan *plan, struct error_text *error)
{
    struct program program;
    capu_status status = planner_run_program(planner, request, plan, &program, error);

    program_finish(&program);
    return status;
}

static capu_status plan_frugally(struct planning *planning)
{
    return planner_plan_frugally(planning, UINT64_MAX);
}

/* Lowers *bytes to what a placement of the frugal plan takes. */
static capu_status try_frugal_placement(struct planning *planning, uint64_t *bytes)
{
    static const struct planner frugal = {.plan = plan_frugally, .is_placing = true};
    capu_status status = begin_plan(planning);

    if (status == CAPU_OK) {
        status = placer_create(planning->request->trace_index, planning->machine, NULL,
                               &planning->placer, planning->error);
    }
    if (status == CAPU_OK) {
        status = make_plan(&frugal, planning);
    }
    if (planning->placed_floor > 0 && planning->placed_floor < *bytes) {
        *bytes = planning->placed_floor;
    }
    placer_destroy(planning->placer);
    plan_finish(planning->plan);
    return status == CAPU_OVER_BUDGET ? CAPU_OK : status;
}

capu_status planner_least_budget(const struct planner_request *request, uint64_t *bytes,
                                 struct error_text *error)
{
    struct trace_index trace_index = *request->trace_index;
    struct planner_request raised = *request;
    struct plan plan = {0};
    struct planning planning = {.request = &raised,
                                .planners = planners,
                                .plan = &plan,
                                .reported_ns = UINT64_MAX,
                                .error = error};
    uint64_t least;

    raised.trace_index = &trace_index;
    trace_index_raise_fixed(&trace_index, request->fixed_bytes);
    raised.improved = NULL;
    raised.budget_bytes = trace_index.floor_bytes + trace_index.idle_bytes;
    least = trace_index.peak_bytes;
    if (trace_index.trace->op_count > 0 && request->place) {
        capu_status status = try_frugal_placement(&planning, &least);

        if (status != CAPU_OK) {
            return status;
        }
    } else if (raised.budget_bytes < least) {
        least = raised.budget_bytes;
    }
    *bytes = least;
    return CAPU_OK;
}

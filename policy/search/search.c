/* Evaluation of decisions, from cheap to expensive: the lowering's own clock already shows that
   many are too slow, the simulation with a cutoff most of the others, and only what is still better
   than the best is placed. */
#include "policy/search/search.h"

#include "base/assert.h"

#include "policy/model/timeline.h"
#include "policy/model/validate.h"

#include <stdlib.h>
#include <string.h>

/* A placement counts as so many simulations. */
#define PLACE_WORK 4

capu_status search_init(struct search *search, struct planning *planning)
{
    const struct trace *trace = planning->request->trace_index->trace;
    capu_status status;

    *search =
        (struct search){.planning = planning, .best_ns = UINT64_MAX, .unplaced_ns = UINT64_MAX};
    status = plan_init_like(&search->scratch, planning->plan);
    if (status == CAPU_OK) {
        status = plan_init_like(&search->best, planning->plan);
    }
    search->decisions = calloc((size_t)lower_gap_count(planning->lower) + 1, 1);
    search->estimate_ns = calloc((size_t)trace->op_count + 1, sizeof(*search->estimate_ns));
    if (status != CAPU_OK || search->decisions == NULL || search->estimate_ns == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    return CAPU_OK;
}

void search_finish(struct search *search)
{
    plan_finish(&search->scratch);
    plan_finish(&search->best);
    free(search->decisions);
    free(search->estimate_ns);
    *search = (struct search){0};
}

void search_swap(struct search *a, struct search *b)
{
    struct search kept = *a;

    *a = *b;
    *b = kept;
}

static void swap_plans(struct plan *a, struct plan *b)
{
    struct plan kept = *a;

    *a = *b;
    *b = kept;
}

/* Gives the scratch plan place lines; *ns is its time with them. */
static capu_status place_scratch(struct search *search, struct program *program, uint64_t *ns)
{
    struct place_result result;
    capu_status status =
        placer_run(search->planning->placer, &search->scratch, program, &result, NULL);

    search->timed_ops +=
        PLACE_WORK * (uint64_t)search->planning->request->trace_index->trace->op_count;
    *ns = status == CAPU_OK ? result.placed_ns : UINT64_MAX;
    return status == CAPU_OVER_BUDGET ? CAPU_OK : status;
}

/* Times the scratch plan; UINT64_MAX if it is not valid, or slower than the cutoff. The lowering's
   plans are valid, except that it does not know how long replays prolong the life of host copies.
   Placed if it is faster than `place_below_ns` without; the cutoff is for the time without. */
static capu_status time_scratch(struct search *search, uint64_t cutoff_ns, uint64_t place_below_ns,
                                uint64_t *ns)
{
    const struct planner_request *request = search->planning->request;
    struct program program;
    capu_status status;

    search->timed_ops += request->trace_index->trace->op_count;
    *ns = UINT64_MAX;
    status = request->host_bytes != UINT64_MAX
                 ? validate_program(&program, request->trace_index, &search->scratch, NULL)
                 : program_init(&program, request->trace_index, &search->scratch, NULL);
    if (status == CAPU_OK) {
        status = timeline_time(&program, search->planning->machine, cutoff_ns, ns);
    }
    if (status == CAPU_OK && search->planning->placer != NULL && !search->is_unplaced &&
        search->scratch.place_count == 0) {
        search->unplaced_ns = *ns < search->unplaced_ns ? *ns : search->unplaced_ns;
        status = *ns < place_below_ns ? place_scratch(search, &program, ns) : CAPU_OK;
    }
    program_finish(&program);
    return status == CAPU_NO_HOST_MEMORY ? status : CAPU_OK;
}

/* By the lowering's own clock, which saw the first iteration: the later ones are no faster, but for
   copies that begin in the one before. */
static bool is_too_slow(const struct search *search, const struct lower_options *options)
{
    uint32_t ops = search->planning->request->trace_index->trace->op_count;
    uint64_t first_ns = lower_result_of(search->planning->lower)->start_ns[ops];

    return options->cutoff_ns > 0 && first_ns - first_ns / 512 >= options->cutoff_ns;
}

/* The scratch plan is the best so far, and complete or not. */
static capu_status take_scratch(struct search *search, uint64_t ns)
{
    search->best_ns = ns;
    swap_plans(&search->best, &search->scratch);
    return search->is_unplaced && search->planning->placer != NULL
               ? CAPU_OK
               : planner_report(search->planning, &search->best, ns);
}

capu_status search_try(struct search *search, const uint8_t *decisions,
                       const struct lower_options *options, uint64_t *ns)
{
    const struct trace *trace = search->planning->request->trace_index->trace;
    capu_status status = lower_run(search->planning->lower, decisions, options, &search->scratch);

    *ns = UINT64_MAX;
    if (status == CAPU_OK && !is_too_slow(search, options)) {
        status = time_scratch(search, options->cutoff_ns, search->best_ns, ns);
    }
    if (status != CAPU_OK) {
        return status == CAPU_NO_HOST_MEMORY ? status : CAPU_OK;
    }
    if (*ns < search->floor_ns) {
        *ns = UINT64_MAX;
    }
    if (*ns < search->best_ns) {
        status = take_scratch(search, *ns);
        memmove(search->decisions, decisions, lower_gap_count(search->planning->lower));
        lower_settle_returns(search->planning->lower, search->decisions);
        search->options = *options;
        if (options->estimate_ns != NULL) {
            memmove(search->estimate_ns, options->estimate_ns,
                    ((size_t)trace->op_count + 1) * sizeof(*search->estimate_ns));
            search->options.estimate_ns = search->estimate_ns;
        }
    }
    return status;
}

capu_status search_offer(struct search *search, struct plan *plan)
{
    struct plan other = *plan;
    uint64_t ns;
    capu_status status;

    ASSERT_EXPENSIVE(validate_is_sound(search->planning->request->trace_index, plan));
    /* The actions change places, the header stays: but what is fixed goes with the actions. */
    swap_plans(&search->scratch, plan);
    if (search->planning->placer == NULL) {
        search->scratch.budget_bytes = plan->budget_bytes;
    }
    /* A placed plan may even be faster: the answer is the same whatever else was offered. */
    status = time_scratch(search, 0, UINT64_MAX, &ns);
    if (status == CAPU_OK && ns < search->best_ns && ns >= search->floor_ns) {
        status = take_scratch(search, ns);
    }
    swap_plans(&search->scratch, plan);
    plan->fixed_bytes = other.fixed_bytes;
    plan->budget_bytes = other.budget_bytes;
    return status;
}

bool search_is_placed_well(const struct search *search)
{
    return search->best_ns != UINT64_MAX &&
           search->best_ns - search->best_ns / 512 <= search->unplaced_ns;
}

uint64_t search_work(const struct search *search)
{
    return lower_work(search->planning->lower) + search->timed_ops;
}

bool search_should_stop(const struct search *search)
{
    const struct planner_request *request = search->planning->request;

    return request->should_stop != NULL && request->should_stop(request->user);
}

void search_note_work(const struct search *search, uint64_t left)
{
    const struct planner_request *request = search->planning->request;

    if (request->working != NULL) {
        request->working(request->user, left);
    }
}

capu_status search_conclude(struct search *search)
{
    if (search->best_ns == UINT64_MAX) {
        return CAPU_OVER_BUDGET;
    }
    swap_plans(search->planning->plan, &search->best);
    return CAPU_OK;
}

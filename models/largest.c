/*
 * The search for the largest batch.
 *
 * Every try builds the trace of a batch and plans it, which takes seconds for a large model, so the
 * search should need few of them. Doubling and bisection need a number that is logarithmic in the
 * answer, but they assume that if a batch works, all smaller ones do. Memory behaves like that.
 * Overhead does not: a planner's result jumps where another tensor no longer fits, and a larger
 * batch may be easier to plan. So the search then goes on above the answer in steps of an eighth,
 * up to the largest batch whose largest op still fits, beyond which there is no plan at all.
 */
#include "models/largest.h"

#include "base/assert.h"

#include "policy/model/timeline.h"

/* Whether a batch works; if it does, *result is set. */
typedef capu_status (*probe)(const struct largest_request *request, uint64_t batch, bool *fits,
                             struct largest *result, struct error_text *error);

static capu_status build_trace(const struct largest_request *request, uint64_t batch,
                               struct trace *trace, struct trace_index *trace_index,
                               struct error_text *error)
{
    struct zoo_options options = *request->options;
    capu_status status;

    options.batch = batch;
    *trace_index = (struct trace_index){0};
    status = zoo_build(request->model, &options, request->hardware, trace, NULL, error);
    if (status == CAPU_OK) {
        status = trace_index_init(trace_index, trace, 1, error);
    }
    return status;
}

static capu_status plan_and_time(const struct largest_request *request,
                                 const struct trace_index *trace_index, struct largest *result,
                                 struct error_text *error)
{
    const struct planner_request planner_request = {.trace_index = trace_index,
                                                    .budget_bytes = request->budget_bytes,
                                                    .host_bytes = UINT64_MAX,
                                                    .effort = request->effort,
                                                    .should_stop = request->should_stop,
                                                    .user = request->user};
    struct timeline timeline = {0};
    struct program program;
    struct plan plan;
    capu_status status =
        planner_run_program(request->planner, &planner_request, &plan, &program, error);

    if (status == CAPU_OK) {
        status = timeline_of(&timeline, &program, NULL, false, error);
        program_finish(&program);
        plan_finish(&plan);
    }
    if (status == CAPU_OK) {
        result->iteration_ns = timeline.iteration_ns;
        result->overhead = timeline_overhead(&timeline);
    }
    timeline_finish(&timeline);
    return status == CAPU_OVER_BUDGET || status == CAPU_UNSUPPORTED ? CAPU_OK : status;
}

capu_status largest_try(const struct largest_request *request, uint64_t batch,
                        struct largest *result, struct error_text *error)
{
    struct trace trace;
    struct trace_index trace_index;
    capu_status status = build_trace(request, batch, &trace, &trace_index, error);

    *result = (struct largest){.batch = batch, .overhead = -1.0};
    if (status == CAPU_TOO_LARGE) {
        status = CAPU_OK;
    } else if (status == CAPU_OK && trace_index.peak_bytes <= request->budget_bytes) {
        result->iteration_ns = trace.total_ns;
        result->overhead = 0.0;
    } else if (status == CAPU_OK && request->planner != NULL) {
        status = plan_and_time(request, &trace_index, result, error);
    }
    trace_index_finish(&trace_index);
    trace_finish(&trace);
    if (status == CAPU_OK && request->tried != NULL) {
        request->tried(batch, result->overhead, request->user);
    }
    return status;
}

static capu_status probe_plan(const struct largest_request *request, uint64_t batch, bool *fits,
                              struct largest *result, struct error_text *error)
{
    struct largest one;
    capu_status status = largest_try(request, batch, &one, error);

    *fits = status == CAPU_OK && one.overhead >= 0.0 && one.overhead <= request->overhead;
    if (*fits) {
        *result = one;
    }
    return status;
}

static capu_status probe_floor(const struct largest_request *request, uint64_t batch, bool *fits,
                               struct largest *result, struct error_text *error)
{
    struct trace trace;
    struct trace_index trace_index;
    capu_status status = build_trace(request, batch, &trace, &trace_index, error);

    *fits = status == CAPU_OK && trace_index.floor_bytes <= request->budget_bytes;
    if (*fits) {
        result->batch = batch;
    }
    trace_index_finish(&trace_index);
    trace_finish(&trace);
    return status == CAPU_TOO_LARGE ? CAPU_OK : status;
}

static bool should_stop(const struct largest_request *request)
{
    return request->should_stop != NULL && request->should_stop(request->user);
}

/* Says how many batches are left to try; only for those that are planned, which takes time. */
static void note_left(const struct largest_request *request, probe fits_of, uint64_t left)
{
    if (fits_of == probe_plan && request->trying != NULL) {
        request->trying(left, request->user);
    }
}

/* How often an interval can be halved. */
static uint64_t halvings(uint64_t length)
{
    uint64_t count = 0;

    for (; length > 1; length -= length / 2) {
        count++;
    }
    return count;
}

/* Bisects between a batch that works and one that does not. */
static capu_status bisect_batch(const struct largest_request *request, probe fits_of,
                                uint64_t below, uint64_t above, struct largest *result,
                                struct error_text *error)
{
    capu_status status = CAPU_OK;
    bool fits;

    while (status == CAPU_OK && above - below > 1 &&
           (double)(above - below) > (double)below * request->slack && !should_stop(request)) {
        uint64_t batch = below + (above - below) / 2;

        note_left(request, fits_of, halvings(above - below));
        status = fits_of(request, batch, &fits, result, error);
        *(fits ? &below : &above) = batch;
    }
    return status;
}

static capu_status find_batch(const struct largest_request *request, probe fits_of, uint64_t from,
                              struct largest *result, struct error_text *error)
{
    uint64_t below = 0;
    uint64_t above = from;
    bool fits = true;
    capu_status status = CAPU_OK;

    *result = (struct largest){0};
    while (status == CAPU_OK && fits && above <= ZOO_BATCH_MAX && !should_stop(request)) {
        status = fits_of(request, above, &fits, result, error);
        if (fits) {
            below = above;
            above *= 2;
        }
    }
    above = above <= ZOO_BATCH_MAX ? above : ZOO_BATCH_MAX + 1;
    return status == CAPU_OK ? bisect_batch(request, fits_of, below, above, result, error) : status;
}

/* The next larger batch to try, an eighth above the last one. */
static uint64_t step_up(uint64_t batch, uint64_t possible)
{
    uint64_t step = batch / 8 > 0 ? batch / 8 : 1;

    return possible - batch > step ? batch + step : possible;
}

static uint64_t count_steps(uint64_t batch, uint64_t possible)
{
    uint64_t count = 0;

    for (; batch < possible; batch = step_up(batch, possible)) {
        count++;
    }
    return count;
}

/* Tries larger batches in steps of an eighth, and bisects above the last one that works. */
static capu_status look_further(const struct largest_request *request, uint64_t possible,
                                struct largest *result, struct error_text *error)
{
    uint64_t last = 0;
    uint64_t next = 0;
    bool fits;
    capu_status status = CAPU_OK;

    for (uint64_t batch = result->batch;
         status == CAPU_OK && batch < possible && !should_stop(request);) {
        note_left(request, probe_plan, count_steps(batch, possible) + halvings(result->batch / 8));
        batch = step_up(batch, possible);
        status = probe_plan(request, batch, &fits, result, error);
        if (fits) {
            last = batch;
            next = 0;
        } else if (next == 0) {
            next = batch;
        }
    }
    if (status == CAPU_OK && last != 0 && next != 0) {
        status = bisect_batch(request, probe_plan, last, next, result, error);
    }
    return status;
}

capu_status largest_possible(const struct largest_request *request, uint64_t *batch,
                             struct error_text *error)
{
    struct largest_request exact = *request;
    struct largest result;
    capu_status status;

    exact.slack = 0.0;
    status = find_batch(&exact, probe_floor, 1, &result, error);

    *batch = result.batch;
    return status;
}

capu_status largest_batch(const struct largest_request *request, struct largest *result,
                          struct error_text *error)
{
    struct largest_request plain = *request;
    struct largest without;
    uint64_t possible;
    capu_status status;

    ASSERT(request->slack >= 0.0 && request->overhead >= 0.0);
    /* A batch that needs no plan is found quickly and loses no time. */
    plain.planner = NULL;
    plain.tried = NULL;
    plain.slack = 0.0;
    status = find_batch(&plain, probe_plan, 1, &without, error);
    *result = without;
    if (status != CAPU_OK || request->planner == NULL) {
        return status;
    }
    status = largest_possible(request, &possible, error);
    if (status == CAPU_OK) {
        status = find_batch(request, probe_plan, without.batch + 1, result, error);
    }
    if (without.batch > result->batch) {
        *result = without;
    }
    return status == CAPU_OK ? look_further(request, possible, result, error) : status;
}

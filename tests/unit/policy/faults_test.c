/*
 * Failing host memory, in everything that this room does: the n-th allocation fails, for n = 1, 2,
 * ... or a sample of these, until the operation passes, alone or with all later ones. A failed
 * operation reports it and leaks nothing (the sanitizer build checks that); one that passes gives
 * the same result as without a failure.
 */
#include "tests/unit/policy/fixture.h"

#include "policy/baselines/baselines.h"
#include "policy/bound/bound_iteration.h"
#include "policy/model/timeline.h"
#include "policy/model/validate.h"
#include "policy/search/planner.h"

#include "tests/support/effort.h"
#include "tests/support/malloc_faults.h"
#include "tests/support/random_trace.h"

#include <jansson.h>

#define CALLS_MAX 200000

static struct trace trace;
static struct trace_index trace_index;
static struct string_buffer trace_text_of;

/* One operation; its result goes into `out`. */
typedef capu_status operation(const void *argument, struct string_buffer *out);

/* Jansson is a separate library, which the linker's wraps do not reach. */
static void *allocate(size_t bytes)
{
    return malloc(bytes);
}

static void setup(void)
{
    json_set_alloc_funcs(allocate, free);
}

/* Small, with a bit of everything, and a budget that most of it does not fit. */
static void make(uint64_t seed)
{
    random_trace(&trace, seed, 14);
    ck_assert_int_eq(trace_index_init(&trace_index, &trace, 16, NULL), CAPU_OK);
    ck_assert_int_eq(trace_write(&trace, &trace_text_of, NULL), CAPU_OK);
}

static void teardown(void)
{
    string_buffer_finish(&trace_text_of);
    trace_index_finish(&trace_index);
    trace_finish(&trace);
}

/* One call in so many fails, or a sample of these calls. `also`: what an operation may return
   besides NO_HOST_MEMORY. */
static void sweep(const char *name, operation *run, const void *argument, uint64_t every,
                  capu_status also)
{
    struct string_buffer expected = {0};
    capu_status without = run(argument, &expected);

    for (int lasting = 0; lasting < 2; lasting++) {
        bool has_passed = false;

        for (uint64_t call = 1; call < CALLS_MAX && !has_passed;
             call = effort_next(call + every - 1)) {
            struct string_buffer out = {0};
            capu_status status;

            malloc_faults_arm(call, lasting == 1);
            status = run(argument, &out);
            malloc_faults_arm(0, false);
            has_passed = malloc_faults_hits() == 0;
            if (has_passed) {
                ck_assert_int_eq(status, without);
            } else if (status != CAPU_NO_HOST_MEMORY && status != also) {
                ck_assert_msg(status == without, "%s: call %llu gives %d", name,
                              (unsigned long long)call, (int)status);
                ck_assert_msg(strcmp(out.data != NULL ? out.data : "",
                                     expected.data != NULL ? expected.data : "") == 0,
                              "%s: call %llu gives something else", name, (unsigned long long)call);
            }
            string_buffer_finish(&out);
        }
        ck_assert_msg(has_passed, "%s", name);
    }
    string_buffer_finish(&expected);
}

static capu_status read_and_write_trace(const void *argument, struct string_buffer *out)
{
    struct trace copy;
    struct error_text error;
    capu_status status =
        trace_read(&copy, "trace", trace_text_of.data, trace_text_of.length, &error);

    (void)argument;
    if (status == CAPU_OK) {
        status = trace_write(&copy, out, &error);
    }
    trace_finish(&copy);
    return status;
}

static capu_status read_and_write_plan(const void *argument, struct string_buffer *out)
{
    const struct string_buffer *text = argument;
    struct plan copy;
    struct error_text error;
    capu_status status = plan_read(&copy, "plan", text->data, text->length, &error);

    if (status == CAPU_OK) {
        status = plan_write(&copy, out, &error);
    }
    plan_finish(&copy);
    return status;
}

static capu_status check_and_time(const void *argument, struct string_buffer *out)
{
    const struct plan *plan = argument;
    struct trace_index own;
    struct timeline timeline;
    capu_status status = trace_index_init(&own, &trace, 16, NULL);

    if (status != CAPU_OK) {
        return status;
    }
    status = validate_plan(&own, plan, NULL);
    if (status == CAPU_OK) {
        status = timeline_init(&timeline, &own, plan, NULL, true, NULL);
    }
    if (status == CAPU_OK) {
        status = string_buffer_format(out, "%llu", (unsigned long long)timeline.iteration_ns);
        timeline_finish(&timeline);
    }
    trace_index_finish(&own);
    return status;
}

struct wish {
    const struct planner *planner;
    struct planner_request request;
};

static capu_status make_plan(const void *argument, struct string_buffer *out)
{
    const struct wish *wish = argument;
    struct plan plan;
    capu_status status = planner_run(wish->planner, &wish->request, &plan, NULL);

    if (status != CAPU_OK) {
        return plan.trace == NULL && plan.actions == NULL ? status : CAPU_INVALID;
    }
    status = plan_write(&plan, out, NULL);
    plan_finish(&plan);
    return status;
}

static struct planner_request request_of(bool place, enum plan_effort effort)
{
    return (struct planner_request){.trace_index = &trace_index,
                                    .budget_bytes =
                                        trace_index.floor_bytes +
                                        (trace_index.peak_bytes - trace_index.floor_bytes) / 3,
                                    .host_bytes = UINT64_MAX,
                                    .place = place,
                                    .effort = effort};
}

START_TEST(reading_and_writing_survive_failures)
{
    struct planner_request request;
    struct string_buffer text = {0};
    struct plan plan;

    make(3);
    request = request_of(true, EFFORT_QUICK);
    ck_assert_int_eq(planner_run(&planners[0], &request, &plan, NULL), CAPU_OK);
    ck_assert_uint_gt(plan.action_count, 0);
    ck_assert_int_eq(plan_write(&plan, &text, NULL), CAPU_OK);
    /* Jansson reports some of its own failures as errors of the text. */
    sweep("trace", read_and_write_trace, NULL, 1, CAPU_FILE_FAILED);
    sweep("plan", read_and_write_plan, &text, 1, CAPU_FILE_FAILED);
    sweep("check", check_and_time, &plan, 1, CAPU_NO_HOST_MEMORY);
    string_buffer_finish(&text);
    plan_finish(&plan);
}
END_TEST

START_TEST(planning_survives_failures)
{
    const struct planner *planner = baselines_planner_at((size_t)_i);

    make(3);
    for (int place = 0; place < 2; place++) {
        struct wish wish = {.planner = planner, .request = request_of(place == 1, EFFORT_QUICK)};

        sweep(planner->name, make_plan, &wish, 1, CAPU_NO_HOST_MEMORY);
    }
}
END_TEST

START_TEST(keeping_contents_survives_failures)
{
    struct wish wish = {.planner = &planners[0]};

    make(3);
    wish.request = request_of(true, EFFORT_QUICK);
    wish.request.preserve = PRESERVE_ALL;
    if (_i == 1) {
        wish.request.budget_bytes = 100 * trace_index.peak_bytes;
        wish.request.apart_bytes = wish.request.budget_bytes;
    }
    sweep("keeping contents", make_plan, &wish, _i == 1 ? 1 : 7, CAPU_NO_HOST_MEMORY);
}
END_TEST

/* The bound reports no failure: it is less tight. */
static capu_status compute_bound(const void *argument, struct string_buffer *out)
{
    const uint64_t *most = argument;
    uint64_t bound = bound_iteration(&trace_index, &trace.machine, trace_index.floor_bytes);

    (void)out;
    return bound < trace.total_ns || bound > *most ? CAPU_INVALID
           : bound < *most                         ? CAPU_NO_HOST_MEMORY
                                                   : CAPU_OK;
}

START_TEST(bounds_survive_failures)
{
    uint64_t most;

    make(2);
    most = bound_iteration(&trace_index, &trace.machine, trace_index.floor_bytes);
    ck_assert_uint_gt(most, trace.total_ns);
    sweep("the bound", compute_bound, &most, 1, CAPU_OK);
}
END_TEST

/* A search in depth makes too many calls to fail each of them. */
START_TEST(planning_with_full_effort_survives_failures)
{
    make(3);
    for (int place = 0; place < 2; place++) {
        struct wish wish = {.planner = &planners[0],
                            .request = request_of(place == 1, EFFORT_DEFAULT)};

        sweep("hybrid in depth", make_plan, &wish, place == 0 ? 389 : 1597, CAPU_NO_HOST_MEMORY);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("policy/faults");
    TCase *tests = tcase_create("faults");
    int count = 0;

    while (baselines_planner_at((size_t)count) != NULL) {
        count++;
    }
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, reading_and_writing_survive_failures);
    tcase_add_loop_test(tests, planning_survives_failures, 0, count);
    tcase_add_loop_test(tests, keeping_contents_survives_failures, 0, 2);
    tcase_add_test(tests, bounds_survive_failures);
    tcase_add_test(tests, planning_with_full_effort_survives_failures);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

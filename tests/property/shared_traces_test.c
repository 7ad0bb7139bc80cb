/*
 * Real training iterations, if available: TEST_TRACES names their folder (default: ../shared/traces
 * next to the source). Skipped without them.
 */
#include "policy/baselines/baselines.h"
#include "policy/bound/bound_iteration.h"
#include "policy/model/timeline.h"
#include "policy/search/planner.h"

#include "tests/support/suite.h"

#include <glob.h>
#include <stdio.h>
#include <string.h>

static glob_t found;
static struct trace trace;
static struct trace_index trace_index;

static void load(const char *path)
{
    struct error_text error = {""};

    ck_assert_msg(trace_load(&trace, path, &error) == CAPU_OK, "%s", error.text);
    ck_assert_msg(trace_index_init(&trace_index, &trace, 1, &error) == CAPU_OK, "%s", error.text);
}

static void forget(void)
{
    trace_index_finish(&trace_index);
    trace_finish(&trace);
}

/* Percent over the ideal; the plan must be valid and not below the bound. */
static double overhead_of(const char *planner, unsigned percent, enum plan_effort effort,
                          bool is_placed)
{
    struct planner_request request = {.trace_index = &trace_index,
                                      .budget_bytes = trace_index.peak_bytes / 100 * percent +
                                                      trace_index.peak_bytes % 100 * percent / 100,
                                      .host_bytes = UINT64_MAX,
                                      .place = is_placed,
                                      .effort = effort};
    struct error_text error = {""};
    struct timeline timeline;
    struct plan plan;
    double result;

    ck_assert_msg(planner_run(baselines_find(planner), &request, &plan, &error) == CAPU_OK,
                  "%s: %s", planner, error.text);
    ck_assert_int_eq(plan.place_count > 0, is_placed);
    ck_assert_int_eq(timeline_init(&timeline, &trace_index, &plan, NULL, false, &error), CAPU_OK);
    ck_assert_uint_le(timeline.peak_bytes, request.budget_bytes);
    ck_assert_uint_ge(timeline.iteration_ns,
                      bound_iteration(&trace_index, &trace.machine, request.budget_bytes));
    result = 100.0 * timeline_overhead(&timeline);
    timeline_finish(&timeline);
    plan_finish(&plan);
    return result;
}

static double overhead(const char *planner, unsigned percent, enum plan_effort effort)
{
    return overhead_of(planner, percent, effort, false);
}

START_TEST(every_planner_plans_every_trace)
{
    const struct planner *planner;

    for (size_t i = 0; i < found.gl_pathc; i++) {
        load(found.gl_pathv[i]);
        for (size_t j = 0; (planner = baselines_planner_at(j)) != NULL; j++) {
            overhead(planner->name, 70, EFFORT_QUICK);
        }
        forget();
    }
}
END_TEST

/* What a prototype of this planner reached with a full search, and demand paging far above it. */
START_TEST(resnet_is_as_good_as_the_prototype)
{
    for (size_t i = 0; i < found.gl_pathc; i++) {
        if (strstr(found.gl_pathv[i], "resnet50-b190") != NULL) {
            load(found.gl_pathv[i]);
            ck_assert_double_le(overhead("hybrid", 70, EFFORT_DEFAULT), 1.35);
            ck_assert_double_le(overhead("hybrid", 50, EFFORT_DEFAULT), 5.5);
            ck_assert_double_ge(overhead("lru", 50, EFFORT_DEFAULT), 100.0);
            forget();
        }
    }
}
END_TEST

/* Where the paper's planner loses nothing, this one must not either. */
START_TEST(bert_is_as_good_as_the_papers_planner)
{
    for (size_t i = 0; i < found.gl_pathc; i++) {
        if (strstr(found.gl_pathv[i], "bert-b66") != NULL) {
            load(found.gl_pathv[i]);
            ck_assert_double_le(overhead("hybrid", 80, EFFORT_DEFAULT),
                                overhead("capuchin", 80, EFFORT_DEFAULT));
            forget();
        }
    }
}
END_TEST

/* Small tensors in whole pages, and features that outlive their last access for replays. */
START_TEST(densenet_costs_little_more_in_pages)
{
    for (size_t i = 0; i < found.gl_pathc; i++) {
        if (strstr(found.gl_pathv[i], "densenet121") != NULL) {
            load(found.gl_pathv[i]);
            trace_index_finish(&trace_index);
            ck_assert_int_eq(trace_index_init(&trace_index, &trace, 2097152, NULL), CAPU_OK);
            ck_assert_double_le(overhead("hybrid", 30, EFFORT_DEFAULT), 13.0);
            forget();
        }
    }
}
END_TEST

/* Tensors that share pages need slightly more memory than the plan has; a search limited to plans
   that can be placed, or a placement that lets many tensors wait, loses more than that. */
START_TEST(placement_costs_little)
{
    static const struct {
        const char *trace;
        unsigned percent;
    } cases[] = {{"resnet50-b190", 40}, {"densenet121", 70}};

    for (size_t i = 0; i < found.gl_pathc * 2; i++) {
        const char *path = found.gl_pathv[i / 2];
        unsigned percent = cases[i % 2].percent;

        if (strstr(path, cases[i % 2].trace) != NULL) {
            load(path);
            trace_index_finish(&trace_index);
            ck_assert_int_eq(trace_index_init(&trace_index, &trace, 2097152, NULL), CAPU_OK);
            ck_assert_double_le(overhead_of("hybrid", percent, EFFORT_DEFAULT, true),
                                overhead("hybrid", percent, EFFORT_DEFAULT) + 0.25);
            forget();
        }
    }
}
END_TEST

int main(void)
{
    const char *folder = getenv("TEST_TRACES");
    char pattern[1024];
    Suite *suite;
    TCase *tests;
    int code;

    snprintf(pattern, sizeof(pattern), "%s/*.jsonl",
             folder != NULL ? folder : CAPUCHIN_SOURCE "/../shared/traces");
    if (glob(pattern, 0, NULL, &found) != 0) {
        printf("no traces in %s: skipped\n", pattern);
        return 77;
    }
    suite = suite_create("shared traces");
    tests = tcase_create("traces");
    tcase_set_timeout(tests, 200);
    tcase_add_test(tests, every_planner_plans_every_trace);
    tcase_add_test(tests, resnet_is_as_good_as_the_prototype);
    tcase_add_test(tests, bert_is_as_good_as_the_papers_planner);
    tcase_add_test(tests, densenet_costs_little_more_in_pages);
    tcase_add_test(tests, placement_costs_little);
    suite_add_tcase(suite, tests);
    code = suite_run(suite);
    globfree(&found);
    return code;
}

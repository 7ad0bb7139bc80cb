/* The parts of the search on one small trace: the greedy, the record of the best plan, local
   search. */
#include "tests/unit/policy/fixture.h"

#include "policy/search/greedy.h"
#include "policy/search/search.h"

/* The gap of x between f1 and b0, and that of w over the border. */
enum { GAP_W = 0, GAP_X = 2 };

static struct trace trace;
static struct trace_index trace_index;
static struct plan plan;
static struct planner_request request;
static struct planning planning;
static uint8_t decisions[16];
static struct search search;

static void load(uint64_t budget)
{
    read_trace(&trace, CHAIN_TRACE);
    ck_assert_int_eq(trace_index_init(&trace_index, &trace, 1, NULL), CAPU_OK);
    ck_assert_int_eq(plan_init(&plan, "t", budget, 1), CAPU_OK);
    request = (struct planner_request){.trace_index = &trace_index,
                                       .budget_bytes = budget,
                                       .host_bytes = UINT64_MAX,
                                       .effort = EFFORT_DEFAULT};
    plan.host_bytes = UINT64_MAX;
    planning = (struct planning){.request = &request,
                                 .machine = &trace.machine,
                                 .decisions = decisions,
                                 .limit_bytes = budget,
                                 .plan = &plan};
    memset(decisions, DECIDE_KEEP, sizeof(decisions));
    ck_assert_int_eq(lower_create(&trace_index, &trace.machine, NULL, &planning.lower), CAPU_OK);
    ck_assert_int_eq(search_init(&search, &planning), CAPU_OK);
}

static void teardown(void)
{
    search_finish(&search);
    lower_destroy(planning.lower);
    plan_finish(&plan);
    trace_index_finish(&trace_index);
    trace_finish(&trace);
}

static uint64_t try_x(enum decision decision)
{
    struct lower_options options = planner_full_options(&planning);
    uint64_t ns;

    options.with_save = false;
    decisions[GAP_X] = (uint8_t)decision;
    ck_assert_int_eq(search_try(&search, decisions, &options, &ns), CAPU_OK);
    return ns;
}

static struct greedy *make_greedy(void)
{
    struct greedy *greedy = NULL;

    ck_assert_int_eq(greedy_create(&planning, &greedy), CAPU_OK);
    return greedy;
}

static struct greedy_options greedy_options_of(bool with_stalled)
{
    return (struct greedy_options){.theta = 0.1,
                                   .safety = 1.0,
                                   .margin = 1.0,
                                   .with_swap = true,
                                   .with_drop = true,
                                   .with_stalled = with_stalled,
                                   .rounds_max = 8};
}

START_TEST(greedy_does_nothing_if_everything_fits)
{
    struct greedy_options options = greedy_options_of(true);
    struct greedy *greedy;

    load(3100);
    greedy = make_greedy();
    ck_assert_int_eq(greedy_run(greedy, &options, decisions, &search.scratch), CAPU_OK);
    for (int gap = 0; gap < 9; gap++) {
        ck_assert_int_eq(decisions[gap], DECIDE_KEEP);
    }
    greedy_destroy(greedy);
}
END_TEST

/* f2 needs 930 bytes more than there are. x cannot leave and return around f2 alone, so it is
   dropped; w, cheaper per byte, is given up first and kept again at the end. b0 then starts at
   9000. */
START_TEST(greedy_drops_what_the_link_cannot_carry)
{
    struct greedy_options options = greedy_options_of(false);
    struct greedy *greedy;

    load(2170);
    greedy = make_greedy();
    ck_assert_int_eq(greedy_run(greedy, &options, decisions, &search.scratch), CAPU_OK);
    ck_assert_int_eq(decisions[GAP_X], DECIDE_DROP);
    ck_assert_int_eq(decisions[GAP_W], DECIDE_KEEP);
    ck_assert_uint_eq(greedy_estimate(greedy)[2], 4000);
    ck_assert_uint_eq(greedy_estimate(greedy)[3], 9000);
    greedy_destroy(greedy);
}
END_TEST

/* A stall of one copy and a half, 1515 ns, is cheaper than the replay's 2000. */
START_TEST(greedy_stalls_if_that_is_cheaper)
{
    struct greedy_options options = greedy_options_of(true);
    struct greedy *greedy;

    load(2170);
    greedy = make_greedy();
    ck_assert_int_eq(greedy_run(greedy, &options, decisions, &search.scratch), CAPU_OK);
    ck_assert_int_eq(decisions[GAP_X], DECIDE_SWAP);
    greedy_destroy(greedy);
}
END_TEST

START_TEST(greedy_uses_only_allowed_methods)
{
    struct greedy_options options = greedy_options_of(false);
    struct greedy *greedy;

    load(2170);
    options.with_drop = false;
    greedy = make_greedy();
    ck_assert_int_eq(greedy_run(greedy, &options, decisions, &search.scratch), CAPU_OK);
    ck_assert_int_ne(decisions[GAP_X], DECIDE_DROP);
    greedy_destroy(greedy);
}
END_TEST

START_TEST(the_search_keeps_the_best_plan)
{
    load(2170);
    ck_assert_uint_eq(search.best_ns, UINT64_MAX);
    ck_assert_int_eq(search_conclude(&search), CAPU_OVER_BUDGET);
    ck_assert_uint_eq(try_x(DECIDE_SWAP), 11020);
    ck_assert_uint_eq(try_x(DECIDE_DROP), 11000);
    ck_assert_uint_eq(try_x(DECIDE_SWAP), 11020);
    ck_assert_uint_eq(search.best_ns, 11000);
    ck_assert_int_eq(search.decisions[GAP_X], DECIDE_DROP);
    ck_assert_int_eq(search_conclude(&search), CAPU_OK);
    ck_assert_uint_eq(plan.replay_count, 1);
    ck_assert_uint_eq(plan.budget_bytes, 2170);
}
END_TEST

START_TEST(the_search_skips_plans_below_its_floor)
{
    load(2170);
    search.floor_ns = 11010;
    ck_assert_uint_eq(try_x(DECIDE_DROP), UINT64_MAX);
    ck_assert_uint_eq(try_x(DECIDE_SWAP), 11020);
    ck_assert_uint_eq(search.best_ns, 11020);
}
END_TEST

START_TEST(a_cutoff_skips_the_simulation)
{
    struct lower_options options;
    uint64_t work;
    uint64_t ns;

    load(2170);
    options = planner_full_options(&planning);
    options.with_save = false;
    options.cutoff_ns = 11000;
    decisions[GAP_X] = DECIDE_DROP;
    work = search_work(&search);
    ck_assert_int_eq(search_try(&search, decisions, &options, &ns), CAPU_OK);
    ck_assert_uint_eq(ns, UINT64_MAX);
    /* Four ops walked over, none simulated. */
    ck_assert_uint_eq(search_work(&search) - work, 4);
}
END_TEST

START_TEST(an_offered_plan_is_timed_with_the_search_budget)
{
    struct plan other;

    load(2170);
    ck_assert_int_eq(plan_init(&other, "t", 2150, 1), CAPU_OK);
    ck_assert_int_eq(plan_add(&other, ACTION_EVICT, 1, 1), CAPU_OK);
    ck_assert_int_eq(plan_add(&other, ACTION_PREFETCH, 1, 3), CAPU_OK);
    ck_assert_int_eq(search_offer(&search, &other), CAPU_OK);
    ck_assert_uint_eq(search.best_ns, 11020);
    ck_assert_uint_eq(search.best.budget_bytes, 2170);
    ck_assert_uint_eq(other.budget_bytes, 2150);
    plan_finish(&other);
}
END_TEST

/* From the drop's 11000: a swap that is saved during f1 waits only for the copy back. */
START_TEST(local_search_finds_the_save)
{
    struct local_search *local_search = NULL;

    load(2170);
    ck_assert_uint_eq(try_x(DECIDE_DROP), 11000);
    ck_assert_int_eq(local_search_create(&search, 1, &local_search), CAPU_OK);
    ck_assert_int_eq(local_search_run(local_search, 300, UINT64_MAX, 1.0), CAPU_OK);
    ck_assert_uint_eq(search.best_ns, 10010);
    local_search_destroy(local_search);
}
END_TEST

START_TEST(local_search_stops_at_its_work_limit)
{
    struct local_search *local_search = NULL;

    load(2170);
    ck_assert_uint_eq(try_x(DECIDE_DROP), 11000);
    ck_assert_int_eq(local_search_create(&search, 1, &local_search), CAPU_OK);
    ck_assert_int_eq(local_search_run(local_search, 300, search_work(&search), 1.0), CAPU_OK);
    ck_assert_uint_eq(search.best_ns, 11000);
    local_search_destroy(local_search);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("policy/search");
    TCase *tests = tcase_create("search");

    tcase_add_checked_fixture(tests, NULL, teardown);
    tcase_add_test(tests, greedy_does_nothing_if_everything_fits);
    tcase_add_test(tests, greedy_drops_what_the_link_cannot_carry);
    tcase_add_test(tests, greedy_stalls_if_that_is_cheaper);
    tcase_add_test(tests, greedy_uses_only_allowed_methods);
    tcase_add_test(tests, the_search_keeps_the_best_plan);
    tcase_add_test(tests, the_search_skips_plans_below_its_floor);
    tcase_add_test(tests, a_cutoff_skips_the_simulation);
    tcase_add_test(tests, an_offered_plan_is_timed_with_the_search_budget);
    tcase_add_test(tests, local_search_finds_the_save);
    tcase_add_test(tests, local_search_stops_at_its_work_limit);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

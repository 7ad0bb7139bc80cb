/*
 * Properties of every planner, over generated traces: the plan is valid, within the budget, not
 * faster than the bound, and the same the second time; for hybrid, a larger budget is never slower.
 * One loop per property, once over the usual traces and once over odd ones (loop number 1). A
 * failure names the seed; TEST_SEED=n runs that seed alone, TEST_SEEDS=n sets how many run from
 * there on.
 */
#include "policy/baselines/baselines.h"
#include "policy/bound/bound_iteration.h"
#include "policy/model/timeline.h"
#include "policy/model/validate.h"
#include "policy/search/planner.h"

#include "tests/support/effort.h"
#include "tests/support/random_trace.h"
#include "tests/support/suite.h"

#include <string.h>

#define TRACES 1500
#define HYBRID_TRACES 150

static struct trace trace;
static struct trace_index trace_index;
static bool is_odd;
static bool is_placing;
static uint64_t fixed_bytes; /* of the requests */

static uint64_t first_seed(void)
{
    const char *given = getenv("TEST_SEED");

    return given != NULL ? strtoull(given, NULL, 10) : 1;
}

static uint64_t seeds(uint64_t many)
{
    if (getenv("TEST_SEEDS") != NULL) {
        return strtoull(getenv("TEST_SEEDS"), NULL, 10);
    }
    return getenv("TEST_SEED") != NULL ? 1 : effort_share(is_odd ? many / 3 : many);
}

static void make(uint64_t seed)
{
    uint64_t state = seed + 77;
    uint64_t page_bytes;
    struct error_text error = {""};

    fixed_bytes = 0;
    if (is_odd) {
        random_odd_trace(&trace, seed, 1 + (uint32_t)random_below(&state, 60));
        page_bytes = (uint64_t)1 << random_below(&state, 31);
        fixed_bytes = seed % 4 == 0 ? random_below(&state, 5000) : 0;
    } else {
        random_trace(&trace, seed, 4 + (uint32_t)random_below(&state, 60));
        page_bytes = (uint64_t)1 << random_below(&state, 8);
    }
    /* Whatever takes time per page depends on their number. */
    while (trace.total_bytes / page_bytes > 20000 && page_bytes < TRACE_INDEX_PAGE_MAX) {
        page_bytes *= 2;
    }
    ck_assert_msg(trace_index_init(&trace_index, &trace, page_bytes, &error) == CAPU_OK,
                  "seed %llu: %s", (unsigned long long)seed, error.text);
    /* What every request raises them to. */
    trace_index_raise_fixed(&trace_index, fixed_bytes);
}

static void forget(void)
{
    trace_index_finish(&trace_index);
    trace_finish(&trace);
}

/* Of all requests. */
static uint64_t apart_bytes;
static enum preserve preserve;

static uint64_t asks_left = UINT64_MAX; /* then a search is asked to stop */

static bool should_stop(void *user)
{
    (void)user;
    asks_left -= asks_left > 0 && asks_left < UINT64_MAX;
    return asks_left == 0;
}

/* What a search reports: plans, each faster than the one before. */
static struct {
    bool is_asked_for;
    uint32_t count;
    uint64_t last_ns;
    uint64_t last_left;
} reports;

/* While there is a next call, there is work left, and something was done since the last one. */
static void working(void *user, uint64_t work_left)
{
    (void)user;
    ck_assert_uint_gt(work_left, 0);
    ck_assert_uint_ne(work_left, reports.last_left);
    reports.last_left = work_left;
}

/* A reported plan is as good as a returned one. */
static void improved(void *user, const struct program *program, uint64_t predicted_ns)
{
    struct error_text error = {""};
    uint64_t ns;

    (void)user;
    ck_assert_uint_lt(predicted_ns, reports.last_ns);
    ck_assert_msg(validate_plan(&trace_index, program->plan, &error) == CAPU_OK, "%s", error.text);
    ck_assert_int_eq(timeline_time(program, &trace.machine, 0, &ns), CAPU_OK);
    ck_assert_uint_le(ns, predicted_ns);
    reports.last_ns = predicted_ns;
    reports.count++;
}

/* The time of a planner's plan; UINT64_MAX if it found none. `text` is the plan, if asked for. */
static uint64_t run(const struct planner *planner, uint64_t seed, uint64_t budget, uint64_t host,
                    enum plan_effort effort, struct string_buffer *text)
{
    struct planner_request request = {.trace_index = &trace_index,
                                      .budget_bytes = budget,
                                      .host_bytes = host,
                                      .fixed_bytes = fixed_bytes,
                                      .effort = effort,
                                      .should_stop = should_stop,
                                      .improved = reports.is_asked_for ? improved : NULL,
                                      .working = reports.is_asked_for ? working : NULL,
                                      .place = is_placing,
                                      .apart_bytes = apart_bytes,
                                      .preserve = preserve};
    struct error_text error = {""};
    struct timeline timeline;
    struct plan plan;
    uint64_t ns;
    capu_status status = planner_run(planner, &request, &plan, &error);

    if (status == CAPU_UNSUPPORTED) {
        return UINT64_MAX;
    }
    ck_assert_msg(status == CAPU_OK, "seed %llu, %s at %llu of %llu: %s", (unsigned long long)seed,
                  planner->name, (unsigned long long)budget,
                  (unsigned long long)trace_index.peak_bytes, error.text);
    ck_assert_int_eq(validate_plan(&trace_index, &plan, &error), CAPU_OK);
    ck_assert_int_eq(timeline_init(&timeline, &trace_index, &plan, NULL, false, &error), CAPU_OK);
    ck_assert_msg(timeline.peak_bytes <= budget, "seed %llu, %s", (unsigned long long)seed,
                  planner->name);
    ns = timeline.iteration_ns;
    ck_assert_msg(bound_iteration(&trace_index, &trace.machine, budget) <= ns,
                  "seed %llu, %s at %llu: faster than the bound", (unsigned long long)seed,
                  planner->name, (unsigned long long)budget);
    if (text != NULL) {
        ck_assert_int_eq(plan_write(&plan, text, &error), CAPU_OK);
    }
    timeline_finish(&timeline);
    plan_finish(&plan);
    return ns;
}

static uint64_t some_budget(uint64_t *state)
{
    uint64_t spare = trace_index.peak_bytes - trace_index.floor_bytes;
    uint64_t edges[] = {0, spare > 0, trace_index.idle_bytes < spare ? trace_index.idle_bytes : 0,
                        spare > 0 ? spare - 1 : 0};

    return trace_index.floor_bytes + (is_odd && random_below(state, 3) == 0
                                          ? edges[random_below(state, 4)]
                                          : random_below(state, spare + 1));
}

START_TEST(baselines_give_valid_plans)
{
    const struct planner *planner;

    is_odd = _i == 1;
    for (uint64_t seed = first_seed(); seed < first_seed() + seeds(TRACES); seed++) {
        uint64_t state = seed;

        make(seed);
        for (size_t i = 1; (planner = baselines_planner_at(i)) != NULL; i++) {
            uint64_t budget = some_budget(&state);
            uint64_t ns = run(planner, seed, budget, UINT64_MAX, EFFORT_QUICK, NULL);

            /* The floor does not include what no op names; the lowering keeps it resident. */
            ck_assert_msg(ns != UINT64_MAX ||
                              budget < trace_index.floor_bytes + trace_index.idle_bytes,
                          "seed %llu: %s found none at %llu", (unsigned long long)seed,
                          planner->name, (unsigned long long)budget);
        }
        forget();
    }
}
END_TEST

START_TEST(hybrid_is_not_slower_with_a_larger_budget)
{
    is_odd = _i == 1;
    for (uint64_t seed = first_seed(); seed < first_seed() + seeds(HYBRID_TRACES); seed++) {
        uint64_t last = UINT64_MAX;

        make(seed);
        for (unsigned step = 0; step <= 5; step++) {
            uint64_t budget = trace_index.floor_bytes +
                              (trace_index.peak_bytes - trace_index.floor_bytes) * step / 5;
            uint64_t ns = run(&planners[0], seed, budget, UINT64_MAX, EFFORT_QUICK, NULL);

            ck_assert_msg(ns <= last, "seed %llu: slower at step %u", (unsigned long long)seed,
                          step);
            last = ns;
        }
        forget();
    }
}
END_TEST

START_TEST(hybrid_is_not_slower_than_other_planners)
{
    is_odd = _i == 1;
    for (uint64_t seed = first_seed(); seed < first_seed() + seeds(HYBRID_TRACES / 3); seed++) {
        uint64_t budget;
        uint64_t ns;

        make(seed);
        budget = trace_index.peak_bytes / 10 * 7 + trace_index.peak_bytes % 10 * 7 / 10;
        if (budget >= trace_index.floor_bytes) {
            ns = run(&planners[0], seed, budget, UINT64_MAX, EFFORT_DEFAULT, NULL);
            for (const struct planner *planner = planners + 1; planner->name != NULL; planner++) {
                uint64_t other = run(planner, seed, budget, UINT64_MAX, EFFORT_DEFAULT, NULL);

                ck_assert_msg(ns <= other, "seed %llu: %s is faster, %llu against %llu",
                              (unsigned long long)seed, planner->name, (unsigned long long)other,
                              (unsigned long long)ns);
            }
        }
        forget();
    }
}
END_TEST

/* One op less than a power of two, and a tensor kept for replays that has to leave nevertheless:
   the search once read beyond its profile, whose last point is the last op. */
START_TEST(the_profile_ends_with_the_last_op)
{
    fixed_bytes = 0;
    random_trace(&trace, 20004, 15);
    ck_assert_int_eq(trace_index_init(&trace_index, &trace, 2, NULL), CAPU_OK);
    ck_assert_uint_lt(
        run(&planners[0], 20004, trace_index.peak_bytes / 10 * 7, UINT64_MAX, EFFORT_DEFAULT, NULL),
        UINT64_MAX);
    forget();
}
END_TEST

/* Whenever it is asked to stop, a search ends with a valid plan, if it finds one at all. */
START_TEST(a_stopped_search_has_a_plan)
{
    is_odd = _i == 1;
    for (uint64_t seed = first_seed(); seed < first_seed() + seeds(HYBRID_TRACES / 3); seed++) {
        uint64_t state = seed;
        uint64_t budget;

        make(seed);
        budget = some_budget(&state);
        for (uint64_t asked = 0; asked < 300; asked = asked * 3 + 1) {
            is_placing = asked % 2 == 1;
            asks_left = asked;
            run(&planners[0], seed, budget, UINT64_MAX, EFFORT_DEFAULT, NULL);
        }
        asks_left = UINT64_MAX;
        forget();
    }
}
END_TEST

START_TEST(the_same_request_gives_the_same_plan)
{
    is_odd = _i == 1;
    for (uint64_t seed = first_seed(); seed < first_seed() + seeds(HYBRID_TRACES / 3); seed++) {
        struct string_buffer first = {0};
        struct string_buffer second = {0};
        uint64_t state = seed;
        uint64_t budget;

        make(seed);
        budget = some_budget(&state);
        if (run(&planners[0], seed, budget, UINT64_MAX, EFFORT_DEFAULT, &first) != UINT64_MAX) {
            run(&planners[0], seed, budget, UINT64_MAX, EFFORT_DEFAULT, &second);
            ck_assert_str_eq(first.data, second.data);
        }
        string_buffer_finish(&first);
        string_buffer_finish(&second);
        forget();
    }
}
END_TEST

/* Every better plan is reported, the returned one last, and who listens changes nothing. */
START_TEST(improvements_are_reported)
{
    enum plan_effort effort = _i == 1 ? EFFORT_DEFAULT : EFFORT_QUICK;

    is_odd = _i % 2 == 1;
    is_placing = _i >= 2;
    for (uint64_t seed = first_seed(); seed < first_seed() + seeds(HYBRID_TRACES / 6); seed++) {
        uint64_t state = seed;

        make(seed);
        for (const struct planner *planner = planners; planner->name != NULL; planner++) {
            struct string_buffer heard = {0};
            struct string_buffer unheard = {0};
            uint64_t budget = some_budget(&state);
            uint64_t ns;

            reports.is_asked_for = true;
            reports.last_ns = UINT64_MAX;
            reports.count = 0;
            reports.last_left = 0;
            ns = run(planner, seed, budget, UINT64_MAX, effort, &heard);
            reports.is_asked_for = false;
            ck_assert_uint_eq(run(planner, seed, budget, UINT64_MAX, effort, &unheard), ns);
            ck_assert_msg(reports.last_ns == ns, "seed %llu, %s", (unsigned long long)seed,
                          planner->name);
            if (ns != UINT64_MAX) {
                ck_assert_uint_gt(reports.count, 0);
                ck_assert_str_eq(heard.data, unheard.data);
            }
            string_buffer_finish(&heard);
            string_buffer_finish(&unheard);
        }
        forget();
    }
}
END_TEST

/* Is there anything to place? */
static bool has_pages(void)
{
    uint64_t bytes = 0;

    for (uint32_t t = 0; t < trace.tensor_count; t++) {
        bytes += trace_index.first[t] < trace_index.first[t + 1] || trace.tensors[t].persistent
                     ? trace_index.rounded[t]
                     : 0;
    }
    return bytes > 0;
}

/* Valid includes: no page is used twice at once, not over the border either, and no more pages than
   the budget has. */
START_TEST(placed_plans_are_valid)
{
    is_odd = _i == 1;
    is_placing = true;
    for (uint64_t seed = first_seed(); seed < first_seed() + seeds(TRACES / 3); seed++) {
        uint64_t state = seed;

        make(seed);
        for (const struct planner *planner = planners; planner->name != NULL; planner++) {
            struct string_buffer text = {0};
            uint64_t budget = some_budget(&state);
            uint64_t ns = run(planner, seed, budget, UINT64_MAX, EFFORT_QUICK, &text);

            ck_assert(ns == UINT64_MAX || strstr(text.data, "\"place\"") != NULL || !has_pages());
            string_buffer_finish(&text);
        }
        /* If everything fits, it also fits with place lines. */
        ck_assert_uint_eq(
            run(&planners[0], seed, trace_index.peak_bytes, UINT64_MAX, EFFORT_QUICK, NULL),
            trace.total_ns);
        forget();
    }
}
END_TEST

/* The copies that keep contents leave a plan valid, and need no more memory on the device. Without
   a host limit there is always room for them. */
START_TEST(plans_that_keep_contents_are_valid)
{
    is_odd = _i == 1;
    is_placing = true;
    for (uint64_t seed = first_seed(); seed < first_seed() + seeds(TRACES / 3); seed++) {
        uint64_t state = seed;

        make(seed);
        for (const struct planner *planner = planners; planner->name != NULL; planner++) {
            uint64_t budget = some_budget(&state);
            bool has_plan;

            apart_bytes = random_below(&state, 2) * budget;
            preserve = PRESERVE_NOTHING;
            has_plan = run(planner, seed, budget, UINT64_MAX, EFFORT_QUICK, NULL) != UINT64_MAX;
            preserve = random_below(&state, 2) == 0 ? PRESERVE_ALL : PRESERVE_UNREAD;
            ck_assert(has_plan ==
                      (run(planner, seed, budget, UINT64_MAX, EFFORT_QUICK, NULL) != UINT64_MAX));
            run(planner, seed, budget, random_below(&state, budget + 1), EFFORT_QUICK, NULL);
        }
        apart_bytes = trace_index.peak_bytes;
        run(&planners[0], seed, trace_index.peak_bytes, UINT64_MAX, EFFORT_QUICK, NULL);
        forget();
    }
}
END_TEST

/* Small samples, as sanitizers take them, try a third of the budgets and little effort. */
START_TEST(placed_hybrid_is_not_slower_with_a_larger_budget)
{
    bool is_small = effort_percent() < EFFORT_USUAL;

    is_odd = _i == 1;
    is_placing = true;
    for (uint64_t seed = first_seed(); seed < first_seed() + seeds(HYBRID_TRACES / 2); seed++) {
        uint64_t last = UINT64_MAX;
        struct string_buffer first = {0};
        struct string_buffer second = {0};
        uint64_t budget;
        uint64_t ns;

        make(seed);
        for (unsigned step = 0; step <= 9; step += is_small ? 3 : 1) {
            budget = trace_index.floor_bytes +
                     (trace_index.peak_bytes - trace_index.floor_bytes) * step / 9;
            ns = run(&planners[0], seed, budget, UINT64_MAX, EFFORT_QUICK, NULL);
            ck_assert_msg(ns <= last, "seed %llu: slower at step %u", (unsigned long long)seed,
                          step);
            last = ns;
        }
        budget = trace_index.floor_bytes + (trace_index.peak_bytes - trace_index.floor_bytes) / 2;
        if (seed % 4 == 1 && !is_small &&
            run(&planners[0], seed, budget, UINT64_MAX, EFFORT_DEFAULT, &first) != UINT64_MAX) {
            run(&planners[0], seed, budget, UINT64_MAX, EFFORT_DEFAULT, &second);
            ck_assert_str_eq(first.data, second.data);
        }
        string_buffer_finish(&first);
        string_buffer_finish(&second);
        forget();
    }
}
END_TEST

START_TEST(the_host_limit_is_respected)
{
    is_odd = _i == 1;
    for (uint64_t seed = first_seed(); seed < first_seed() + seeds(HYBRID_TRACES); seed++) {
        uint64_t state = seed;

        make(seed);
        /* A plan that exceeds it would not validate. */
        run(&planners[0], seed, some_budget(&state),
            random_below(&state, trace_index.peak_bytes + 1), EFFORT_QUICK, NULL);
        forget();
    }
}
END_TEST

/* With and without places, every planner finds a plan at the least budget and above. None fits
   below the floor. */
START_TEST(plans_exist_from_the_least_budget_on)
{
    is_odd = _i % 2 == 1;
    is_placing = _i / 2 == 1;
    for (uint64_t seed = first_seed(); seed < first_seed() + seeds(TRACES / 12); seed++) {
        uint64_t state = seed;
        uint64_t least = 0;
        struct planner_request request = {
            .trace_index = &trace_index, .place = is_placing, .host_bytes = UINT64_MAX};

        make(seed);
        request.fixed_bytes = fixed_bytes;
        ck_assert_int_eq(planner_least_budget(&request, &least, NULL), CAPU_OK);
        ck_assert_uint_ge(least, trace_index.floor_bytes);
        ck_assert_uint_le(least, trace_index.peak_bytes);
        for (const struct planner *planner = planners; planner->name != NULL; planner++) {
            uint64_t budget = least + random_below(&state, trace_index.peak_bytes - least + 1);

            ck_assert_msg(run(planner, seed, least, UINT64_MAX, EFFORT_QUICK, NULL) != UINT64_MAX,
                          "seed %llu: %s found none at %llu", (unsigned long long)seed,
                          planner->name, (unsigned long long)least);
            ck_assert_msg(run(planner, seed, budget, UINT64_MAX, EFFORT_QUICK, NULL) != UINT64_MAX,
                          "seed %llu: %s found none at %llu, above %llu", (unsigned long long)seed,
                          planner->name, (unsigned long long)budget, (unsigned long long)least);
        }
        forget();
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("planner properties");
    TCase *tests = tcase_create("properties");

    tcase_set_timeout(tests, getenv("TEST_SEEDS") != NULL ? 3000 : 200);
    tcase_add_loop_test(tests, baselines_give_valid_plans, 0, 2);
    tcase_add_loop_test(tests, hybrid_is_not_slower_with_a_larger_budget, 0, 2);
    tcase_add_loop_test(tests, hybrid_is_not_slower_than_other_planners, 0, 2);
    tcase_add_test(tests, the_profile_ends_with_the_last_op);
    tcase_add_loop_test(tests, a_stopped_search_has_a_plan, 0, 2);
    tcase_add_loop_test(tests, the_same_request_gives_the_same_plan, 0, 2);
    tcase_add_loop_test(tests, improvements_are_reported, 0, 4);
    tcase_add_loop_test(tests, placed_plans_are_valid, 0, 2);
    tcase_add_loop_test(tests, plans_that_keep_contents_are_valid, 0, 2);
    tcase_add_loop_test(tests, placed_hybrid_is_not_slower_with_a_larger_budget, 0, 2);
    tcase_add_loop_test(tests, the_host_limit_is_respected, 0, 2);
    tcase_add_loop_test(tests, plans_exist_from_the_least_budget_on, 0, 4);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

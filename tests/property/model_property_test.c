/*
 * The validator accepts exactly the valid plans, and the timeline times them to the nanosecond:
 * both are compared with a second implementation of the specification (tests/support/model.h), over
 * plans of all planners with a few actions changed, and with limits that just suffice or just do
 * not. A failure names the seed; TEST_SEED=n runs that seed alone, TEST_SEEDS=n sets how many run
 * from there on.
 */
#include "policy/baselines/baselines.h"
#include "policy/model/timeline.h"
#include "policy/model/validate.h"
#include "policy/search/planner.h"

#include "tests/support/effort.h"
#include "tests/support/model.h"
#include "tests/support/random_trace.h"
#include "tests/support/suite.h"

#define SEEDS 6000

static struct trace trace;
static struct trace_index trace_index;
static struct plan plan;
static uint64_t state;

static uint64_t number(const char *name, uint64_t otherwise)
{
    const char *given = getenv(name);

    return given != NULL ? strtoull(given, NULL, 10) : otherwise;
}

static uint64_t draw(uint64_t below)
{
    return random_below(&state, below);
}

static void make_trace(uint64_t seed)
{
    uint64_t page_bytes;

    state = seed + 99;
    if (draw(2) == 0) {
        random_odd_trace(&trace, seed, 1 + (uint32_t)draw(10));
    } else {
        random_trace(&trace, seed, 2 + (uint32_t)draw(12));
    }
    page_bytes = (uint64_t)1 << draw(12);
    while (trace.total_bytes / page_bytes > 500) {
        page_bytes *= 2;
    }
    ck_assert_int_eq(
        trace_index_init(&trace_index, &trace,
                         page_bytes < TRACE_INDEX_PAGE_MAX ? page_bytes : TRACE_INDEX_PAGE_MAX,
                         NULL),
        CAPU_OK);
}

/* A plan of a random planner, or one without actions. */
static void make_plan(void)
{
    uint64_t spare = trace_index.peak_bytes - trace_index.floor_bytes;
    struct planner_request request = {.trace_index = &trace_index,
                                      .budget_bytes = trace_index.floor_bytes + draw(spare + 1),
                                      .host_bytes = UINT64_MAX,
                                      .place = draw(2) == 0,
                                      .effort = EFFORT_QUICK};
    uint32_t count = 0;

    while (baselines_planner_at(count) != NULL) {
        count++;
    }
    if (draw(8) != 0 &&
        planner_run(baselines_planner_at(draw(count)), &request, &plan, NULL) == CAPU_OK) {
        return;
    }
    ck_assert_int_eq(plan_init(&plan, "x", trace_index.peak_bytes, trace_index.page_bytes),
                     CAPU_OK);
    plan.fixed_bytes = trace_index.unmanaged_bytes;
}

/* False: every tensor is unmanaged. */
static bool some_tensor(uint32_t *tensor)
{
    for (uint32_t i = 0; i < 20 && trace.tensor_count > 0; i++) {
        *tensor = (uint32_t)draw(trace.tensor_count);
        if (trace.tensors[*tensor].managed) {
            return true;
        }
    }
    return false;
}

static void add_recompute(uint32_t point)
{
    uint32_t tensor;

    ck_assert_int_eq(plan_add_recompute(&plan, point), CAPU_OK);
    for (uint64_t i = draw(3); i > 0 && point > 0; i--) {
        uint32_t op = (uint32_t)draw(point);

        if (trace.ops[op].replayable) {
            ck_assert_int_eq(plan_add_replay(&plan, op), CAPU_OK);
            if (draw(2) == 0 && some_tensor(&tensor)) {
                ck_assert_int_eq(plan_add_drop(&plan, tensor), CAPU_OK);
            }
        }
    }
}

/* Removes an action, adds one, moves one or exchanges two. */
static void change(void)
{
    uint32_t at = plan.action_count > 0 ? (uint32_t)draw(plan.action_count) : 0;
    uint32_t point = (uint32_t)draw(trace.op_count);
    uint32_t tensor;

    switch (draw(5)) {
    case 0:
        if (plan.action_count > 0) {
            plan.actions[at] = plan.actions[--plan.action_count];
        }
        break;
    case 1:
        if (plan.action_count > 0 && plan.actions[at].kind != ACTION_RECOMPUTE) {
            plan.actions[at].point = point;
        }
        break;
    case 2:
        if (plan.action_count > 0) {
            uint32_t other = (uint32_t)draw(plan.action_count);
            struct plan_action kept = plan.actions[at];

            plan.actions[at] = plan.actions[other];
            plan.actions[other] = kept;
        }
        break;
    case 3:
        add_recompute(point);
        break;
    default:
        if (some_tensor(&tensor)) {
            ck_assert_int_eq(
                plan_add(&plan, (enum action_kind)draw(ACTION_RECOMPUTE), tensor, point), CAPU_OK);
        }
        break;
    }
}

/* An eviction and its prefetch, which is often a valid plan; the prefetch may come after replays at
   the same point. */
static void add_swap(void)
{
    uint32_t first = (uint32_t)draw(trace.op_count);
    uint32_t second = (uint32_t)draw(trace.op_count);
    uint32_t tensor;

    if (draw(3) == 0) {
        add_recompute(second);
    }

    if (some_tensor(&tensor)) {
        ck_assert_int_eq(plan_add(&plan, draw(3) == 0 ? ACTION_SAVE : ACTION_EVICT, tensor, first),
                         CAPU_OK);
        ck_assert_int_eq(plan_add(&plan, ACTION_PREFETCH, tensor, second), CAPU_OK);
    }
}

static void compare(uint64_t seed, uint64_t *valid)
{
    struct error_text error = {""};
    struct timeline timeline;
    struct model model;
    capu_status status = validate_plan(&trace_index, &plan, &error);

    model_run(&model, &trace, &plan);
    ck_assert_msg((status == CAPU_OK) == model.is_valid, "seed %llu: \"%s\", but \"%s\"",
                  (unsigned long long)seed, error.text, model.why);
    if (!model.is_valid) {
        ck_assert_int_eq(status, CAPU_INVALID);
        return;
    }
    (*valid)++;
    status = timeline_init(&timeline, &trace_index, &plan, NULL, true, &error);
    ck_assert_msg(status == CAPU_OK, "seed %llu: %s", (unsigned long long)seed, error.text);
    ck_assert_msg(timeline.iteration_ns == model.iteration_ns, "seed %llu: %llu ns, but %llu",
                  (unsigned long long)seed, (unsigned long long)timeline.iteration_ns,
                  (unsigned long long)model.iteration_ns);
    ck_assert_uint_eq(timeline.peak_bytes,
                      model.most_held > 0 ? model.most_held : plan.fixed_bytes);
    timeline_finish(&timeline);
    /* As much as it needs, and one byte less. */
    if (model.most_on_host > 0 && plan.host_bytes == UINT64_MAX) {
        plan.host_bytes = model.most_on_host;
        ck_assert_int_eq(validate_plan(&trace_index, &plan, &error), CAPU_OK);
        plan.host_bytes--;
        ck_assert_int_eq(validate_plan(&trace_index, &plan, &error), CAPU_INVALID);
        plan.host_bytes = UINT64_MAX;
    }
    if (plan.place_count == 0 && model.most_held > 0 && plan.budget_bytes > model.most_held) {
        uint64_t budget = plan.budget_bytes;

        plan.budget_bytes = model.most_held;
        compare(seed, valid);
        plan.budget_bytes--;
        ck_assert_int_eq(validate_plan(&trace_index, &plan, &error), CAPU_INVALID);
        plan.budget_bytes = budget;
    }
}

START_TEST(results_match_the_specification)
{
    uint64_t first = number("TEST_SEED", 1);
    uint64_t seeds = number("TEST_SEEDS", getenv("TEST_SEED") != NULL ? 1 : effort_share(SEEDS));
    uint64_t valid = 0;

    for (uint64_t seed = first; seed < first + seeds; seed++) {
        make_trace(seed);
        make_plan();
        compare(seed, &valid);
        for (uint64_t i = draw(4); i > 0; i--) {
            if (draw(2) == 0) {
                change();
            } else {
                add_swap();
            }
            if (draw(6) == 0) {
                plan.fixed_bytes -= draw(2) == 0 && plan.fixed_bytes > 0;
            }
            if (plan.place_count > 0 && draw(8) == 0) {
                plan.runs[draw(plan.run_count)].first = (uint32_t)draw(20);
            }
            compare(seed, &valid);
        }
        plan_finish(&plan);
        trace_index_finish(&trace_index);
        trace_finish(&trace);
    }
    ck_assert(valid > seeds || seeds < 1000);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plans by the specification");
    TCase *tests = tcase_create("model");

    tcase_set_timeout(tests, getenv("TEST_SEEDS") != NULL ? 3000 : 200);
    tcase_add_test(tests, results_match_the_specification);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

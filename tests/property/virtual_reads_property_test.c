/*
 * Properties of virtual reads, over generated traces: random reads of random dead tensors, and
 * random decisions. The plan is valid and within its limit, the same the second time, and does
 * nothing to a dead tensor that no replay needs any more. If every dead tensor is dropped, or no
 * replay needs one, the plan is the one without virtual reads. TEST_SEED=n runs one seed.
 */
#include "policy/bound/bound.h"
#include "policy/lower/lower.h"
#include "policy/model/timeline.h"
#include "policy/model/validate.h"

#include "tests/support/effort.h"
#include "tests/support/random_trace.h"
#include "tests/support/suite.h"

#include <string.h>

#define TRACES 3000
#define MOST 4096

static struct trace trace;
static struct trace_index trace_index;
static struct virtual_reads reads;
static struct virtual_read list[MOST];
static struct lower *lower;
static struct plan plan;
static uint8_t decisions[2 * MOST];
static struct lower_options options;

static uint64_t first_seed(void)
{
    const char *given = getenv("TEST_SEED");

    return given != NULL ? strtoull(given, NULL, 10) : 1;
}

static uint64_t last_seed(void)
{
    return getenv("TEST_SEED") != NULL ? first_seed() : effort_share(TRACES);
}

static bool is_transient(uint32_t tensor)
{
    return trace_index.rounded[tensor] > 0 && !trace.tensors[tensor].persistent &&
           trace_index.first[tensor] < trace_index.first[tensor + 1];
}

static uint32_t death_of(uint32_t tensor)
{
    return trace_index.op[trace_index.first[tensor + 1] - 1];
}

static void load(uint64_t seed, bool is_unconditional)
{
    uint64_t state = seed + 5;

    random_trace(&trace, seed, 4 + (uint32_t)random_below(&state, 50));
    ck_assert_int_eq(
        trace_index_init(&trace_index, &trace, (uint64_t)1 << random_below(&state, 8), NULL),
        CAPU_OK);
    reads = (struct virtual_reads){.list = list, .is_unconditional = is_unconditional};
    for (uint32_t t = 0; t < trace.tensor_count; t++) {
        for (uint32_t k = is_transient(t) ? death_of(t) + 1 : trace.op_count; k < trace.op_count;
             k++) {
            if (random_below(&state, 4) == 0 && reads.count < MOST) {
                list[reads.count++] = (struct virtual_read){.tensor = t, .op = k};
            }
        }
    }
    ck_assert_int_eq(lower_create(&trace_index, &trace.machine, &reads, &lower), CAPU_OK);
    ck_assert_uint_le(lower_gap_count(lower), sizeof(decisions));
    for (uint32_t gap = 0; gap < lower_gap_count(lower); gap++) {
        decisions[gap] = (uint8_t)random_below(&state, 4);
    }
    options = (struct lower_options){
        .limit_bytes = trace_index.floor_bytes - trace_index.fixed_bytes +
                       random_below(&state, trace_index.peak_bytes - trace_index.floor_bytes + 1) +
                       trace_index.idle_bytes,
        .host_bytes = UINT64_MAX,
        .with_collective = random_below(&state, 2) == 0,
        .with_save = random_below(&state, 2) == 0,
        .with_prefetch = random_below(&state, 4) > 0,
        .safety = 1.0,
        .lead = (double)random_below(&state, 4)};
    /* Replays must not extend the life of tensors that are not managed. */
    lower_set_frugal(lower, true);
    ck_assert_int_eq(plan_init(&plan, "random", trace_index.fixed_bytes + options.limit_bytes,
                               trace_index.page_bytes),
                     CAPU_OK);
    plan.trace_tensors = trace.tensor_count;
    plan.trace_ops = trace.op_count;
    plan.fixed_bytes = trace_index.fixed_bytes;
    plan.host_bytes = UINT64_MAX;
}

static void forget(void)
{
    plan_finish(&plan);
    lower_destroy(lower);
    trace_index_finish(&trace_index);
    trace_finish(&trace);
}

static void lower_into(struct string_buffer *text, uint64_t seed)
{
    ck_assert_msg(lower_run(lower, decisions, &options, &plan) == CAPU_OK, "seed %llu",
                  (unsigned long long)seed);
    ck_assert_int_eq(plan_write(&plan, text, NULL), CAPU_OK);
}

/* Does a replay from this action on touch the tensor? */
static bool is_replayed_later(uint32_t from, uint32_t tensor)
{
    for (uint32_t i = from; i < plan.action_count; i++) {
        const struct plan_action *action = &plan.actions[i];

        for (uint32_t j = 0; action->kind == ACTION_RECOMPUTE && j < action->count; j++) {
            const struct trace_op *op = &trace.ops[plan.replays[action->first + j].op];

            for (uint32_t k = 0; k < trace_operand_count(op); k++) {
                if (trace.operands[op->first + k] == tensor) {
                    return true;
                }
            }
        }
    }
    return false;
}

static void check_plan(uint64_t seed)
{
    struct error_text error = {""};
    struct timeline timeline;

    ck_assert_msg(validate_plan(&trace_index, &plan, &error) == CAPU_OK, "seed %llu: %s",
                  (unsigned long long)seed, error.text);
    ck_assert_int_eq(timeline_init(&timeline, &trace_index, &plan, NULL, false, &error), CAPU_OK);
    ck_assert_uint_le(timeline.peak_bytes, plan.budget_bytes);
    ck_assert_uint_ge(timeline.iteration_ns,
                      bound_cut(&trace_index, &trace.machine, plan.budget_bytes));
    timeline_finish(&timeline);
    for (uint32_t i = 0; i < plan.action_count; i++) {
        const struct plan_action *action = &plan.actions[i];

        if (action->kind != ACTION_RECOMPUTE && is_transient(action->tensor) &&
            action->point >= death_of(action->tensor) + (action->kind == ACTION_PREFETCH)) {
            ck_assert_msg(is_replayed_later(i, action->tensor),
                          "seed %llu: tensor %u is dead at action %u", (unsigned long long)seed,
                          action->tensor, i);
        }
    }
}

START_TEST(any_decisions_give_a_valid_plan_without_idle_actions)
{
    for (uint64_t seed = first_seed(); seed <= last_seed(); seed++) {
        struct string_buffer first = {0};
        struct string_buffer second = {0};

        load(seed, _i == 1);
        lower_use_virtual_reads(lower, true);
        lower_into(&first, seed);
        check_plan(seed);
        lower_into(&second, seed);
        ck_assert_str_eq(first.data, second.data);
        string_buffer_finish(&first);
        string_buffer_finish(&second);
        forget();
    }
}
END_TEST

START_TEST(without_dead_tensors_kept_virtual_reads_change_nothing)
{
    for (uint64_t seed = first_seed(); seed <= last_seed(); seed++) {
        struct string_buffer plain = {0};
        struct string_buffer dropped = {0};
        uint32_t switched = 0;

        load(seed, false);
        for (uint32_t gap = 0; _i == 1 && gap < lower_gap_count(lower); gap++) {
            decisions[gap] = decisions[gap] == DECIDE_DROP ? DECIDE_KEEP : decisions[gap];
        }
        lower_into(&plain, seed);
        lower_use_virtual_reads(lower, true);
        for (uint32_t gap = 0; gap < lower_gap_count(lower); gap++) {
            if (lower_gap_is_virtual(lower, gap) && _i == 0) {
                decisions[gap] = DECIDE_DROP;
                switched++;
            }
        }
        ck_assert(_i == 1 || switched == reads.count);
        lower_into(&dropped, seed);
        ck_assert_msg(strcmp(plain.data, dropped.data) == 0, "seed %llu", (unsigned long long)seed);
        string_buffer_finish(&plain);
        string_buffer_finish(&dropped);
        forget();
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("properties of virtual reads");
    TCase *tests = tcase_create("properties");

    tcase_set_timeout(tests, 200);
    tcase_add_loop_test(tests, any_decisions_give_a_valid_plan_without_idle_actions, 0, 2);
    tcase_add_loop_test(tests, without_dead_tensors_kept_virtual_reads_change_nothing, 0, 2);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

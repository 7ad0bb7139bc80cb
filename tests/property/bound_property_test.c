/*
 * No plan is faster than the bound: over tiny random traces, and many random walks through the
 * actions that are possible at each point. The walks include what our planners do not try, such as
 * tensors that return, with a valid host copy, before the iteration ends. A failure names the seed;
 * TEST_SEED=n runs that seed alone.
 */
#include "policy/bound/bound_iteration.h"
#include "policy/model/timeline.h"
#include "policy/model/validate.h"

#include "tests/support/effort.h"
#include "tests/support/random_trace.h"
#include "tests/support/suite.h"

#define TRACES 100
#define WALKS 4000
#define TENSORS_MAX 24

static struct trace trace;
static struct trace_index trace_index;
static uint64_t state;

/* Roughly what validate_plan tracks; it decides. */
struct walk {
    struct plan plan;
    uint64_t calm;                  /* one in so many tensors leaves after an op */
    bool was_resident[TENSORS_MAX]; /* when the iteration began */
    bool is_resident[TENSORS_MAX];
    bool has_host_copy[TENSORS_MAX];
    uint32_t maker[TENSORS_MAX]; /* the op of the newest version, or TRACE_INDEX_NONE */
};

static bool happens(uint64_t one_in)
{
    return random_below(&state, one_in) == 0;
}

static void add(struct walk *walk, enum action_kind kind, uint32_t tensor, uint32_t point)
{
    ck_assert_int_eq(plan_add(&walk->plan, kind, tensor, point), CAPU_OK);
    walk->is_resident[tensor] = kind == ACTION_SAVE || kind == ACTION_PREFETCH;
    walk->has_host_copy[tensor] |= kind == ACTION_EVICT || kind == ACTION_SAVE;
}

/* Replays the op that made a tensor, and, of its inputs, those that are lost and can be made by one
   replay each. */
static void recompute(struct walk *walk, uint32_t tensor, uint32_t point)
{
    const struct trace_op *op = &trace.ops[walk->maker[tensor]];

    ck_assert_int_eq(plan_add_recompute(&walk->plan, point), CAPU_OK);
    for (uint32_t i = 0; i < op->read_count; i++) {
        uint32_t input = trace_reads(&trace, op)[i];
        uint32_t maker = walk->maker[input];

        if (!walk->is_resident[input] && maker != TRACE_INDEX_NONE && trace.ops[maker].replayable) {
            ck_assert_int_eq(plan_add_replay(&walk->plan, maker), CAPU_OK);
            walk->is_resident[input] = true;
        }
    }
    ck_assert_int_eq(plan_add_replay(&walk->plan, walk->maker[tensor]), CAPU_OK);
    for (uint32_t i = 0; i < op->read_count; i++) {
        uint32_t input = trace_reads(&trace, op)[i];

        if (trace.tensors[input].managed && !trace.tensors[input].persistent && happens(3)) {
            ck_assert_int_eq(plan_add_drop(&walk->plan, input), CAPU_OK);
            walk->is_resident[input] = false;
        }
    }
    walk->is_resident[tensor] = true;
}

static void before(struct walk *walk, uint32_t k)
{
    const struct trace_op *op = &trace.ops[k];

    for (uint32_t t = 0; t < trace.tensor_count; t++) {
        bool is_named = false;

        for (uint32_t i = 0; i < trace_operand_count(op); i++) {
            is_named |= trace.operands[op->first + i] == t &&
                        (i < op->read_count || i >= op->read_count + op->write_count);
        }
        if (!trace.tensors[t].managed || walk->is_resident[t] || !(is_named || happens(8))) {
            continue;
        }
        if (walk->has_host_copy[t]) {
            add(walk, ACTION_PREFETCH, t, k);
        } else if (walk->maker[t] != TRACE_INDEX_NONE && trace.ops[walk->maker[t]].replayable) {
            recompute(walk, t, k);
        }
    }
}

static void after(struct walk *walk, uint32_t k)
{
    const struct trace_op *op = &trace.ops[k];

    for (uint32_t i = op->read_count; i < trace_operand_count(op); i++) {
        uint32_t t = trace.operands[op->first + i];

        walk->is_resident[t] = true;
        walk->has_host_copy[t] = false;
        walk->maker[t] = i < op->read_count + op->write_count ? k : TRACE_INDEX_NONE;
    }
    for (uint32_t t = 0; t < trace.tensor_count; t++) {
        uint32_t end = trace_index.first[t + 1];
        bool is_persistent = trace.tensors[t].persistent;
        bool is_over = is_persistent ? k + 1 == trace.op_count
                                     : end == trace_index.first[t] || trace_index.op[end - 1] <= k;

        if (!trace.tensors[t].managed || !walk->is_resident[t]) {
            continue;
        }
        if (is_over && is_persistent && !walk->was_resident[t]) {
            add(walk, ACTION_EVICT, t, k);
        } else if (!is_over && happens(walk->calm)) {
            bool can_drop = walk->has_host_copy[t] || !is_persistent;

            add(walk,
                can_drop && happens(2) ? ACTION_DROP
                : happens(6)           ? ACTION_SAVE
                                       : ACTION_EVICT,
                t, k);
        }
    }
}

static void make_walk(struct walk *walk, uint64_t calm)
{
    *walk = (struct walk){.calm = calm};
    ck_assert_int_eq(plan_init(&walk->plan, "random", PLAN_BYTES_MAX, trace_index.page_bytes),
                     CAPU_OK);
    walk->plan.fixed_bytes = trace_index.fixed_bytes;
    for (uint32_t t = 0; t < trace.tensor_count; t++) {
        bool is_persistent = trace.tensors[t].persistent;

        walk->maker[t] = TRACE_INDEX_NONE;
        walk->was_resident[t] = !trace.tensors[t].managed || (is_persistent && !happens(3));
        walk->is_resident[t] = walk->was_resident[t];
        walk->has_host_copy[t] = is_persistent && !walk->was_resident[t];
    }
    for (uint32_t k = 0; k < trace.op_count; k++) {
        before(walk, k);
        after(walk, k);
    }
}

static uint64_t time_of(const struct plan *plan, uint64_t *peak_bytes)
{
    struct timeline timeline;
    uint64_t ns;

    ck_assert_int_eq(timeline_init(&timeline, &trace_index, plan, NULL, false, NULL), CAPU_OK);
    ns = timeline.iteration_ns;
    *peak_bytes = timeline.peak_bytes;
    timeline_finish(&timeline);
    return ns;
}

START_TEST(no_plan_is_faster_than_the_bound)
{
    const char *given = getenv("TEST_SEED");
    uint64_t first = given != NULL ? strtoull(given, NULL, 10) : 1;
    uint64_t traces = given != NULL ? 1 : TRACES;
    uint64_t walks = effort_share(WALKS);
    uint64_t valid = 0;
    uint64_t above_ideal = 0; /* of those, where the bound says something */

    for (uint64_t seed = first; seed < first + traces; seed++) {
        random_trace(&trace, seed, 3 + (uint32_t)(seed % 6));
        ck_assert_uint_le(trace.tensor_count, TENSORS_MAX);
        ck_assert_int_eq(trace_index_init(&trace_index, &trace, 1, NULL), CAPU_OK);
        state = seed + 5;
        for (uint64_t i = 0; i < walks; i++) {
            struct walk walk;

            make_walk(&walk, 1 + i % 4);
            /* Without a limit; then within what it needs. */
            if (validate_plan(&trace_index, &walk.plan, NULL) == CAPU_OK) {
                uint64_t peak_bytes;
                uint64_t bound;
                uint64_t ns = time_of(&walk.plan, &peak_bytes);

                walk.plan.budget_bytes = peak_bytes;
                ck_assert_int_eq(validate_plan(&trace_index, &walk.plan, NULL), CAPU_OK);
                ns = time_of(&walk.plan, &peak_bytes);
                bound = bound_iteration(&trace_index, &trace.machine, peak_bytes);
                ck_assert_msg(bound <= ns, "seed %llu: %llu ns, bound %llu ns",
                              (unsigned long long)seed, (unsigned long long)ns,
                              (unsigned long long)bound);
                valid++;
                above_ideal += bound > trace.total_ns;
            }
            plan_finish(&walk.plan);
        }
        trace_index_finish(&trace_index);
        trace_finish(&trace);
    }
    ck_assert_msg(given != NULL || (valid >= traces * walks / 10 && above_ideal > 0),
                  "of %llu plans %llu are valid, %llu of them with a bound",
                  (unsigned long long)(traces * walks), (unsigned long long)valid,
                  (unsigned long long)above_ideal);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("policy/bound_property");
    TCase *tests = tcase_create("bound");

    tcase_set_timeout(tests, 280);
    tcase_add_test(tests, no_plan_is_faster_than_the_bound);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

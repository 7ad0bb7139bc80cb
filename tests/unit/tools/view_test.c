/* The view of a plan says what the simulation says: sums and peaks, to the byte and nanosecond, and
 * where each tensor is at each moment. */
#include "tools/view/view.h"

#include "policy/baselines/baselines.h"
#include "policy/model/timeline.h"

#include "tests/support/effort.h"
#include "tests/support/random_trace.h"
#include "tests/unit/policy/fixture.h"

#include <stdlib.h>

#define TRACES 400

static struct trace trace;
static struct trace_index trace_index;
static struct plan plan;
static struct timeline timeline;
static struct view view;

static void finish(void)
{
    view_finish(&view);
    timeline_finish(&timeline);
    plan_finish(&plan);
    trace_index_finish(&trace_index);
    trace_finish(&trace);
}

static void make_view(void)
{
    struct error_text error = {""};

    ck_assert_int_eq(timeline_init(&timeline, &trace_index, &plan, NULL, true, &error), CAPU_OK);
    ck_assert_int_eq(view_of_plan(&view, &trace_index, &plan, NULL, &error), CAPU_OK);
}

/* x leaves after its first use and comes back before op 3; y is dropped and made again. */
START_TEST(hand_made)
{
    struct error_text error = {""};
    const struct view_move *move;

    read_trace(&trace, CHAIN_TRACE);
    ck_assert_int_eq(trace_index_init(&trace_index, &trace, 1, &error), CAPU_OK);
    read_plan(&plan, PLAN_LINE(2200, "") AFTER("evict", 1, 1) PREFETCH(1, 3));
    make_view();

    ck_assert_int_eq(view.source, VIEW_PLANNED);
    ck_assert_str_eq(view.trace_name, "t");
    ck_assert_uint_eq(view.op_count, 4);
    ck_assert_str_eq(view.ops[3].name, "b0");
    ck_assert_uint_eq(view.ops[2].unlimited_bytes, 3100);
    ck_assert_uint_eq(view.unlimited_peak_bytes, 3100);
    ck_assert_str_eq(view.floor_op, trace_op_name(&trace, trace_index.floor_op));

    ck_assert_uint_eq(view.copy_count, 2);
    ck_assert_int_eq(view.copies[0].direction, VIEW_OUT);
    ck_assert_int_eq(view.copies[0].begin_ns, 4000);
    ck_assert_int_eq(view.copies[0].end_ns, 5010);
    ck_assert_uint_eq(view.copies[0].bytes, 1000);
    ck_assert_int_eq(view.copies[1].direction, VIEW_IN);
    ck_assert_uint_eq(view.move_count, 1);
    move = &view.moves[0];
    ck_assert_uint_eq(move->tensor, 1);
    ck_assert_uint_eq(move->method, CAPU_METHOD_SWAP);
    ck_assert_int_eq(move->left_ns, 5010);
    ck_assert_uint_eq(move->copy_out, 0);
    ck_assert_uint_eq(move->copy_in, 1);
    ck_assert_uint_eq(move->in_trigger, 3);
    ck_assert_uint_eq(move->back_op, 3);
    ck_assert_uint_eq(move->wait_ns, view.ops[3].wait_ns);

    {
        static const enum view_state states[] = {VIEW_RESIDENT, VIEW_LEAVING, VIEW_ON_HOST,
                                                 VIEW_COMING, VIEW_RESIDENT};
        const struct view_tensor *x = &view.tensors[1];

        ck_assert_uint_eq(x->stay_count, 5);
        for (uint32_t i = 0; i < 5; i++) {
            ck_assert_int_eq(view.stays[x->first_stay + i].state, states[i]);
        }
        ck_assert_int_eq(view.stays[x->first_stay + 1].begin_ns, 4000);
        ck_assert_uint_eq(x->waited_ns, move->wait_ns);
    }
}
END_TEST

START_TEST(recomputed)
{
    struct error_text error = {""};
    const struct view_tensor *x;

    read_trace(&trace, CHAIN_TRACE);
    ck_assert_int_eq(trace_index_init(&trace_index, &trace, 1, &error), CAPU_OK);
    read_plan(&plan, PLAN_LINE(2200, "") AFTER("drop", 1, 1) RECOMPUTE(3, REPLAY(0, "[]")));
    make_view();
    ck_assert_uint_eq(view.op_count, 5);
    ck_assert(view.ops[3].is_replay);
    ck_assert_uint_eq(view.ops[3].number, 0);
    ck_assert_uint_eq(view.ops[3].before, 3);
    ck_assert_uint_eq(view.op_of_number[3], 4);
    ck_assert_uint_eq(view.move_count, 1);
    ck_assert_uint_eq(view.moves[0].method, CAPU_METHOD_RECOMPUTE);
    ck_assert_uint_eq(view.moves[0].replay, 3);
    ck_assert_uint_eq(view.moves[0].back_op, 3);
    x = &view.tensors[1];
    ck_assert_uint_eq(x->stay_count, 4);
    ck_assert_int_eq(view.stays[x->first_stay + 1].state, VIEW_DROPPED);
    ck_assert_int_eq(view.stays[x->first_stay + 2].state, VIEW_REPLAYED);
    ck_assert_int_eq(view.stays[x->first_stay + 2].begin_ns, view.ops[3].begin_ns);
}
END_TEST

static bool is_here(enum view_state state)
{
    return state != VIEW_ON_HOST && state != VIEW_DROPPED;
}

static void check_sums(uint64_t seed)
{
    ck_assert_msg(view.time_ns == timeline.iteration_ns && view.ideal_ns == timeline.ideal_ns &&
                      view.replay_ns == timeline.replay_ns && view.stall_ns == timeline.stall_ns,
                  "seed %llu: times", (unsigned long long)seed);
    ck_assert_msg(view.out_bytes == timeline.evicted_bytes &&
                      view.in_bytes == timeline.prefetched_bytes &&
                      view.peak_bytes == timeline.peak_bytes,
                  "seed %llu: bytes", (unsigned long long)seed);
    ck_assert_msg(view.unlimited_peak_bytes == trace_index.peak_bytes, "seed %llu: unlimited peak",
                  (unsigned long long)seed);
}

/* The stays of a tensor follow each other within the iteration. */
static void check_stays(uint64_t seed)
{
    for (uint32_t t = 0; t < view.tensor_count; t++) {
        int64_t last = 0;

        for (uint32_t i = 0; i < view.tensors[t].stay_count; i++) {
            const struct view_stay *stay = &view.stays[view.tensors[t].first_stay + i];

            ck_assert_msg(stay->tensor == t && stay->begin_ns >= last &&
                              stay->end_ns > stay->begin_ns &&
                              stay->end_ns <= (int64_t)view.time_ns,
                          "seed %llu: stay %u of tensor %u", (unsigned long long)seed, i, t);
            last = stay->end_ns;
        }
    }
}

/* Each op finds its operands on the device as long as it runs. */
static void check_operands(uint64_t seed)
{
    for (uint32_t i = 0; i < view.op_count; i++) {
        const struct view_op *op = &view.ops[i];
        const struct trace_op *traced = &trace.ops[op->number];

        for (uint32_t k = 0; k < trace_operand_count(traced); k++) {
            const struct view_tensor *tensor = &view.tensors[trace.operands[traced->first + k]];
            int64_t covered = op->begin_ns;

            for (uint32_t s = 0; s < tensor->stay_count; s++) {
                const struct view_stay *stay = &view.stays[tensor->first_stay + s];

                if (is_here(stay->state) && stay->begin_ns <= covered && stay->end_ns > covered) {
                    covered = stay->end_ns;
                }
            }
            ck_assert_msg(tensor->held_bytes == 0 || covered >= op->end_ns,
                          "seed %llu: op %u does not have %s", (unsigned long long)seed, op->number,
                          tensor->name);
        }
    }
}

/* The samples are the sums of the stays, and within the budget. */
static void check_samples(uint64_t seed)
{
    ck_assert_uint_ge(view.sample_count, 1);
    ck_assert_int_eq(view.samples[0].begin_ns, 0);
    for (uint32_t i = 0; i < view.sample_count; i++) {
        const struct view_sample *sample = &view.samples[i];
        uint64_t held = view.fixed_bytes;
        uint64_t kinds = view.fixed_bytes;

        for (uint32_t s = 0; s < view.stay_count; s++) {
            const struct view_stay *stay = &view.stays[s];

            if (is_here(stay->state) && stay->begin_ns <= sample->begin_ns &&
                stay->end_ns > sample->begin_ns) {
                held += view.tensors[stay->tensor].held_bytes;
            }
        }
        for (size_t k = 0; k < VIEW_KIND_COUNT; k++) {
            kinds += sample->by_kind[k];
        }
        ck_assert_msg(held == sample->held_bytes && kinds == held && held <= view.budget_bytes,
                      "seed %llu: sample %u", (unsigned long long)seed, i);
    }
}

/* Every copy is for a move of its tensor, and memory is free when the simulation says so. */
static void check_moves(uint64_t seed)
{
    uint32_t next = 0;

    for (uint32_t i = 0; i < view.copy_count; i++) {
        const struct view_copy *copy = &view.copies[i];

        ck_assert_msg(copy->move < view.move_count && view.moves[copy->move].tensor == copy->tensor,
                      "seed %llu: copy %u", (unsigned long long)seed, i);
        if (copy->direction == VIEW_IN) {
            ck_assert_uint_eq(view.moves[copy->move].copy_in, i);
        }
    }
    for (uint32_t i = 0; i < timeline.record_count; i++) {
        const struct timeline_record *record = &timeline.records[i];

        if (record->item.kind != ACTION_EVICT && record->item.kind != ACTION_DROP) {
            continue;
        }
        while (next < view.move_count && !view.moves[next].has_left) {
            next++;
        }
        ck_assert_uint_lt(next, view.move_count);
        ck_assert_uint_eq(view.moves[next].tensor, record->item.subject);
        ck_assert_msg(view.tensors[record->item.subject].held_bytes == 0 ||
                          (int64_t)record->span.end - (int64_t)timeline.begin_ns ==
                              view.moves[next].left_ns ||
                          (int64_t)record->span.end < (int64_t)timeline.begin_ns,
                      "seed %llu: move %u is free at %lld, not %lld", (unsigned long long)seed,
                      next, (long long)view.moves[next].left_ns,
                      (long long)record->span.end - (long long)timeline.begin_ns);
        next++;
    }
}

START_TEST(agrees_with_the_simulation)
{
    static const char *const names[] = {"hybrid", "lru", "capuchin", "checkpoint"};
    uint64_t count = effort_share(TRACES);

    for (uint64_t seed = 1; seed <= count; seed++) {
        struct error_text error = {""};
        struct planner_request request = {.trace_index = &trace_index,
                                          .machine = NULL,
                                          .host_bytes = UINT64_MAX,
                                          .place = seed % 2 == 0,
                                          .effort = EFFORT_QUICK};
        uint64_t least;
        uint64_t state = seed;

        random_trace(&trace, seed, 4 + (uint32_t)random_below(&state, 60));
        ck_assert_int_eq(
            trace_index_init(&trace_index, &trace, (uint64_t)1 << random_below(&state, 8), &error),
            CAPU_OK);
        ck_assert_int_eq(planner_least_budget(&request, &least, &error), CAPU_OK);
        request.budget_bytes = least + random_below(&state, trace_index.peak_bytes - least + 1);
        if (planner_run(baselines_find(names[seed / 2 % 4]), &request, &plan, &error) == CAPU_OK) {
            make_view();
            check_sums(seed);
            check_stays(seed);
            check_operands(seed);
            check_samples(seed);
            check_moves(seed);
        }
        finish();
    }
}
END_TEST

START_TEST(kinds_by_life)
{
    struct error_text error = {""};

    read_trace(
        &trace,
        TRACE_LINE MACHINE_LINE TENSOR_LINE(0, "in", 10, "activation")
            TENSOR_LINE(1, "kept", 10, "activation") TENSOR_LINE(2, "short", 10, "activation")
                TENSOR_LINE(3, "top", 10, "activation") OP_LINE("f0", 1, "[]", "[1]", "[]", "true")
                    OP_LINE("f1", 1, "[1]", "[0,2]", "[]", "true")
                        OP_LINE("f2", 1, "[0,2]", "[3]", "[]", "true")
                            OP_LINE("b0", 1, "[1,3]", "[]", "[]", "true") END_LINE(4, 4));
    ck_assert_int_eq(trace_index_init(&trace_index, &trace, 1, &error), CAPU_OK);
    ck_assert_int_eq(plan_init(&plan, "t", 100, 1), CAPU_OK);
    make_view();
    ck_assert_int_eq(view.tensors[1].kind, VIEW_CARRIED);
    ck_assert_int_eq(view.tensors[2].kind, VIEW_SHORT);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tools/view");
    TCase *tests = tcase_create("planned");

    tcase_add_checked_fixture(tests, NULL, finish);
    tcase_add_test(tests, hand_made);
    tcase_add_test(tests, recomputed);
    tcase_add_test(tests, kinds_by_life);
    tcase_add_test(tests, agrees_with_the_simulation);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

/* Decisions in, actions and times out. Every number here was worked out by hand. */
#include "tests/unit/policy/fixture.h"

#include "policy/lower/lower.h"
#include "policy/model/timeline.h"
#include "policy/model/validate.h"

/* Gaps of CHAIN_TRACE: accesses are numbered by tensor, then in program order. */
enum { GAP_W = 0, GAP_X = 2 };

static struct trace trace;
static struct trace_index trace_index;
static struct plan plan;
static struct lower *lower;
static uint8_t decisions[32];
static struct lower_options options;

static void load(const char *text, uint64_t limit)
{
    read_trace(&trace, text);
    ck_assert_int_eq(trace_index_init(&trace_index, &trace, 1, NULL), CAPU_OK);
    ck_assert_int_eq(plan_init(&plan, "t", limit, 1), CAPU_OK);
    ck_assert_int_eq(lower_create(&trace_index, &trace.machine, NULL, &lower), CAPU_OK);
    memset(decisions, DECIDE_KEEP, sizeof(decisions));
    options = (struct lower_options){.limit_bytes = limit,
                                     .host_bytes = UINT64_MAX,
                                     .with_collective = true,
                                     .with_prefetch = true,
                                     .safety = 1.0};
}

static void teardown(void)
{
    lower_destroy(lower);
    plan_finish(&plan);
    trace_index_finish(&trace_index);
    trace_finish(&trace);
}

static capu_status run(void)
{
    return lower_run(lower, decisions, &options, &plan);
}

static void check_action(uint32_t index, enum action_kind kind, uint32_t tensor, uint32_t point)
{
    ck_assert_uint_lt(index, plan.action_count);
    ck_assert_int_eq(plan.actions[index].kind, kind);
    if (kind != ACTION_RECOMPUTE) {
        ck_assert_uint_eq(plan.actions[index].tensor, tensor);
    }
    ck_assert_uint_eq(plan.actions[index].point, point);
}

START_TEST(keeping_needs_no_action)
{
    static const uint64_t starts[] = {0, 2000, 4000, 7000, 9000};
    static const int64_t held[] = {1100, 2100, 3100, 2150};

    load(CHAIN_TRACE, 3100);
    ck_assert_int_eq(run(), CAPU_OK);
    ck_assert_uint_eq(plan.action_count, 0);
    for (int k = 0; k < 4; k++) {
        ck_assert_uint_eq(lower_result_of(lower)->start_ns[k], starts[k]);
        ck_assert_int_eq(lower_result_of(lower)->profile[k], held[k]);
    }
    ck_assert_uint_eq(lower_result_of(lower)->start_ns[4], starts[4]);
    ck_assert_int_eq(lower_result_of(lower)->excess_most, 0);
}
END_TEST

START_TEST(a_gap_is_named_by_the_access_before_it)
{
    load(CHAIN_TRACE, 3100);
    ck_assert_uint_eq(lower_gap_tensor(lower, GAP_X), 1);
    ck_assert_uint_eq(lower_gap_end(lower, GAP_X), 3);
    ck_assert_uint_eq(lower_gap_end(lower, GAP_W), 4); /* op 0 of the next iteration */
    ck_assert_uint_eq(lower_gap_end(lower, 3), TRACE_INDEX_NONE);
    ck_assert(lower_can_drop(lower, GAP_X));
    ck_assert(!lower_can_drop(lower, GAP_W));
    ck_assert_int_eq(run(), CAPU_OK);
    ck_assert_uint_eq(lower_drop_cost(lower, decisions, GAP_X, false), 2000);
    ck_assert_uint_eq(lower_drop_cost(lower, decisions, GAP_W, false), UINT64_MAX);
}
END_TEST

/* x leaves 4000-5010, f2 waits for its bytes: 5010-8010; x returns 8010-9020; b0 9020-11020. */
START_TEST(a_swap_is_an_evict_and_a_prefetch)
{
    load(CHAIN_TRACE, 2150);
    decisions[GAP_X] = DECIDE_SWAP;
    ck_assert_int_eq(run(), CAPU_OK);
    ck_assert_uint_eq(plan.action_count, 2);
    check_action(0, ACTION_EVICT, 1, 1);
    check_action(1, ACTION_PREFETCH, 1, 3);
    ck_assert_uint_eq(lower_result_of(lower)->start_ns[2], 5010);
    ck_assert_uint_eq(lower_result_of(lower)->start_ns[3], 9020);
    ck_assert_uint_eq(lower_result_of(lower)->start_ns[4], 11020);
    ck_assert_uint_eq(lower_result_of(lower)->out_busy[1], 1010);
}
END_TEST

/* Saved during f1, 2000-3010, so that the evict is free: f2 4000-7000, x back at 8010. */
START_TEST(a_save_precedes_a_swap)
{
    load(CHAIN_TRACE, 2150);
    decisions[GAP_X] = DECIDE_SWAP;
    options.with_save = true;
    ck_assert_int_eq(run(), CAPU_OK);
    ck_assert_uint_eq(plan.action_count, 3);
    check_action(0, ACTION_SAVE, 1, 0);
    check_action(1, ACTION_EVICT, 1, 1);
    check_action(2, ACTION_PREFETCH, 1, 3);
    ck_assert_uint_eq(lower_result_of(lower)->start_ns[4], 10010);
}
END_TEST

START_TEST(a_dropped_tensor_is_replayed_before_its_use)
{
    load(CHAIN_TRACE, 2150);
    decisions[GAP_X] = DECIDE_DROP;
    ck_assert_int_eq(run(), CAPU_OK);
    ck_assert_uint_eq(plan.action_count, 2);
    check_action(0, ACTION_DROP, 1, 1);
    check_action(1, ACTION_RECOMPUTE, 0, 3);
    ck_assert_uint_eq(plan.replay_count, 1);
    ck_assert_uint_eq(plan.replays[0].op, 0);
    ck_assert_uint_eq(lower_result_of(lower)->start_ns[4], 11000);
    ck_assert_uint_eq(lower_result_of(lower)->replays[0], 1);
}
END_TEST

/* w, next needed in the next iteration, is evicted first, and x after it: both were to be kept. */
START_TEST(tensors_that_do_not_fit_are_forced_out)
{
    load(CHAIN_TRACE, 2060);
    ck_assert_int_eq(run(), CAPU_OK);
    ck_assert_uint_eq(plan.action_count, 4);
    check_action(0, ACTION_PREFETCH, 0, 0);
    check_action(1, ACTION_EVICT, 0, 0);
    check_action(2, ACTION_EVICT, 1, 1);
    check_action(3, ACTION_PREFETCH, 1, 3);
    ck_assert_uint_eq(lower_forced(lower)[GAP_X], 1);
    ck_assert_uint_eq(lower_forced(lower)[4], 0);
}
END_TEST

START_TEST(no_plan_exists_below_the_largest_op)
{
    load(CHAIN_TRACE, 2049);
    ck_assert_int_eq(run(), CAPU_OVER_BUDGET);
}
END_TEST

START_TEST(a_cutoff_ends_the_lowering)
{
    load(CHAIN_TRACE, 3100);
    options.cutoff_ns = 9000;
    ck_assert_int_eq(run(), CAPU_OVER_BUDGET);
    options.cutoff_ns = 9001;
    ck_assert_int_eq(run(), CAPU_OK);
    /* The cost of the replay is lost at b0, and nothing was lost before. */
    decisions[GAP_X] = DECIDE_DROP;
    ck_assert_int_eq(run(), CAPU_OVER_BUDGET);
    options.cutoff_ns = 11001;
    ck_assert_int_eq(run(), CAPU_OK);
}
END_TEST

START_TEST(a_soft_lowering_shows_the_excess)
{
    load(CHAIN_TRACE, 2150);
    options.is_soft = true;
    ck_assert_int_eq(run(), CAPU_OK);
    ck_assert_uint_eq(plan.action_count, 0);
    ck_assert_int_eq(lower_result_of(lower)->excess_most, 950);
}
END_TEST

/*
 * x0 and x1 are dropped in forward; b1 needs x1, which needs x0; b0 needs x0 again. At b1 the pool
 * holds w, u, x0, x1 and g1: 100 + 10 + 1000 + 1000 + 50 bytes.
 */
#define TWICE_TRACE                                                                       \
    TRACE_LINE MACHINE_LINE TENSOR_LINE(0, "w", 100, "parameter")                         \
        TENSOR_LINE(1, "x0", 1000, "activation") TENSOR_LINE(2, "x1", 1000, "activation") \
            TENSOR_LINE(3, "s", 10, "activation") TENSOR_LINE(4, "u", 10, "activation")   \
                TENSOR_LINE(5, "g1", 50, "gradient") TENSOR_LINE(6, "g0", 50, "gradient") \
                    OP_LINE("f0", 100, "[0]", "[1]", "[]", "true")                        \
                        OP_LINE("f1", 100, "[1]", "[2]", "[]", "true")                    \
                            OP_LINE("f2", 100, "[2]", "[3]", "[]", "true")                \
                                OP_LINE("m", 100, "[3]", "[4]", "[]", "true")             \
                                    OP_LINE("b1", 100, "[2,4]", "[5]", "[]", "false")     \
                                        OP_LINE("b0", 100, "[1,5]", "[6]", "[]", "false")
enum { GAP_X0 = 2, GAP_X1 = 5 };

START_TEST(a_replay_keeps_what_is_needed_later_if_it_fits)
{
    load(TWICE_TRACE, 2160);
    decisions[GAP_X0] = DECIDE_DROP;
    decisions[GAP_X1] = DECIDE_DROP;
    ck_assert_int_eq(run(), CAPU_OK);
    ck_assert_uint_eq(plan.replay_count, 2);
    ck_assert_uint_eq(plan.drop_count, 0);
    ck_assert_uint_eq(lower_result_of(lower)->start_ns[6], 800);
}
END_TEST

START_TEST(what_cannot_be_kept_is_replayed_twice)
{
    load(TWICE_TRACE, 2159);
    decisions[GAP_X0] = DECIDE_DROP;
    decisions[GAP_X1] = DECIDE_DROP;
    ck_assert_int_eq(run(), CAPU_OK);
    ck_assert_uint_eq(plan.replay_count, 3);
    ck_assert_uint_eq(plan.drop_count, 1);
    ck_assert_uint_eq(lower_result_of(lower)->start_ns[6], 900);
}
END_TEST

START_TEST(cautious_lowering_keeps_less)
{
    load(TWICE_TRACE, 3109);
    decisions[GAP_X0] = DECIDE_DROP;
    decisions[GAP_X1] = DECIDE_DROP;
    options.is_cautious = true;
    ck_assert_int_eq(run(), CAPU_OK);
    ck_assert_uint_eq(plan.replay_count, 3);
    options.limit_bytes = 3110;
    ck_assert_int_eq(run(), CAPU_OK);
    ck_assert_uint_eq(plan.replay_count, 2);
}
END_TEST

/* y is made from x by op 1, and read by ops 2, 4 and 6; x is needed again by the last op. */
#define AGAIN_TRACE                                                                           \
    TRACE_LINE MACHINE_LINE TENSOR_LINE(0, "w", 10, "parameter")                              \
        TENSOR_LINE(1, "x", 1000, "activation") TENSOR_LINE(2, "y", 100, "activation")        \
            TENSOR_LINE(3, "z", 10, "activation") TENSOR_LINE(4, "u", 10, "activation")       \
                TENSOR_LINE(5, "v", 10, "gradient") TENSOR_LINE(6, "s", 10, "gradient")       \
                    TENSOR_LINE(7, "t", 10, "gradient") TENSOR_LINE(8, "o", 10, "gradient")   \
                        OP_LINE("f0", 100, "[0]", "[1]", "[]",                                \
                                "true") OP_LINE("f1", 200, "[1]", "[2]", "[]", "true")        \
                            OP_LINE("f2", 100, "[2]", "[3]", "[]", "true")                    \
                                OP_LINE("f3", 100, "[3]", "[4]", "[]", "true")                \
                                    OP_LINE("b0", 100, "[2,4]", "[5]", "[]", "false")         \
                                        OP_LINE("b1", 100, "[5]", "[6]", "[]", "false")       \
                                            OP_LINE("b2", 100, "[2,6]", "[7]", "[]", "false") \
                                                OP_LINE("b3", 100, "[1,7]", "[8]", "[]", "false")
enum { GAP_AGAIN_X = 2, GAP_AGAIN_Y0 = 5, GAP_AGAIN_Y1 = 6 };

START_TEST(wary_lowering_counts_what_replays_fetch)
{
    load(AGAIN_TRACE, 3000);
    decisions[GAP_AGAIN_X] = DECIDE_SWAP;
    ck_assert_int_eq(run(), CAPU_OK);
    ck_assert_uint_eq(lower_drop_cost(lower, decisions, GAP_AGAIN_Y0, false), 200);
    ck_assert_uint_eq(lower_drop_cost(lower, decisions, GAP_AGAIN_Y0, true), 200 + 1010);
    /* No tensor is kept that a replay could read. */
    lower_note_drop(lower, decisions, GAP_AGAIN_Y0);
    ck_assert_uint_eq(lower_chain_reads(lower, GAP_AGAIN_X), 0);
}
END_TEST

START_TEST(wary_lowering_pays_for_each_gap)
{
    load(AGAIN_TRACE, 3000);
    decisions[GAP_AGAIN_Y0] = DECIDE_DROP;
    ck_assert_int_eq(run(), CAPU_OK);
    ck_assert_uint_eq(lower_chain_reads(lower, GAP_AGAIN_X), 1);
    ck_assert_uint_eq(lower_drop_cost(lower, decisions, GAP_AGAIN_Y1, false), 0);
    ck_assert_uint_eq(lower_drop_cost(lower, decisions, GAP_AGAIN_Y1, true), 200);
    ck_assert_uint_eq(lower_chain_reads(lower, GAP_AGAIN_X), 1);
    lower_note_drop(lower, decisions, GAP_AGAIN_Y1);
    ck_assert_uint_eq(lower_chain_reads(lower, GAP_AGAIN_X), 2);
    /* The next lowering starts counting from zero. */
    ck_assert_int_eq(run(), CAPU_OK);
    ck_assert_uint_eq(lower_chain_reads(lower, GAP_AGAIN_X), 1);
}
END_TEST

/* w is read by op 0 and updated by op 2; without op 3 nothing would come between that and the end.
 */
#define BORDER_TRACE                                                                    \
    TRACE_LINE MACHINE_LINE TENSOR_LINE(0, "w", 1000, "parameter")                      \
        TENSOR_LINE(1, "x", 1000, "activation") TENSOR_LINE(2, "y", 1000, "activation") \
            TENSOR_LINE(3, "z", 1000, "activation")                                     \
                OP_LINE("f0", 2000, "[0]", "[1]", "[]", "true")                         \
                    OP_LINE("f1", 2000, "[1]", "[2]", "[]", "true")                     \
                        OP_LINE("u", 2000, "[]", "[]", "[0]", "false")                  \
                            OP_LINE("e", 2000, "[2]", "[3]", "[]", "true") END_LINE(4, 4)
enum { GAP_FORWARD_W = 0, GAP_BORDER_W = 1 };

static uint64_t iteration_ns(void)
{
    struct program program;
    uint64_t ns;

    ck_assert_int_eq(validate_program(&program, &trace_index, &plan, NULL), CAPU_OK);
    ck_assert_int_eq(timeline_time(&program, &trace.machine, 0, &ns), CAPU_OK);
    program_finish(&program);
    return ns;
}

/* w is copied out 6000-7010 and in 7010-8020, so f0 waits for 20 ns; but its eviction after f0 is
   free, which otherwise takes until 3010. */
START_TEST(a_return_crosses_the_border_with_a_host_copy)
{
    load(BORDER_TRACE, 4000);
    decisions[GAP_FORWARD_W] = DECIDE_SWAP;
    decisions[GAP_BORDER_W] = DECIDE_RETURN;
    ck_assert(!lower_can_return(lower, GAP_FORWARD_W));
    ck_assert(lower_can_return(lower, GAP_BORDER_W));
    ck_assert_int_eq(run(), CAPU_OK);
    ck_assert_uint_eq(plan.action_count, 4);
    check_action(0, ACTION_EVICT, 0, 0);
    check_action(1, ACTION_PREFETCH, 0, 1);
    check_action(2, ACTION_EVICT, 0, 2);
    check_action(3, ACTION_PREFETCH, 0, 3);
    ck_assert_uint_eq(lower_result_of(lower)->out_busy[0], 0);
    ck_assert_uint_eq(lower_result_of(lower)->out_busy[3], 1010);
    ck_assert_uint_eq(iteration_ns(), 8020);
    decisions[GAP_BORDER_W] = DECIDE_SWAP;
    ck_assert_int_eq(run(), CAPU_OK);
    ck_assert_uint_eq(iteration_ns(), 9010);
}
END_TEST

START_TEST(a_return_without_room_is_a_swap)
{
    struct string_buffer returns = {0};
    struct string_buffer swaps = {0};

    load(BORDER_TRACE, 2500);
    decisions[GAP_BORDER_W] = DECIDE_RETURN;
    ck_assert_int_eq(run(), CAPU_OK);
    ck_assert_int_eq(plan_write(&plan, &returns, NULL), CAPU_OK);
    lower_settle_returns(lower, decisions);
    ck_assert_int_eq(decisions[GAP_BORDER_W], DECIDE_SWAP);
    ck_assert_int_eq(run(), CAPU_OK);
    ck_assert_int_eq(plan_write(&plan, &swaps, NULL), CAPU_OK);
    ck_assert_str_eq(returns.data, swaps.data);
    string_buffer_finish(&returns);
    string_buffer_finish(&swaps);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("policy/lower");
    TCase *tests = tcase_create("lower");

    tcase_add_checked_fixture(tests, NULL, teardown);
    tcase_add_test(tests, keeping_needs_no_action);
    tcase_add_test(tests, a_gap_is_named_by_the_access_before_it);
    tcase_add_test(tests, a_swap_is_an_evict_and_a_prefetch);
    tcase_add_test(tests, a_save_precedes_a_swap);
    tcase_add_test(tests, a_dropped_tensor_is_replayed_before_its_use);
    tcase_add_test(tests, tensors_that_do_not_fit_are_forced_out);
    tcase_add_test(tests, no_plan_exists_below_the_largest_op);
    tcase_add_test(tests, a_cutoff_ends_the_lowering);
    tcase_add_test(tests, a_soft_lowering_shows_the_excess);
    tcase_add_test(tests, a_replay_keeps_what_is_needed_later_if_it_fits);
    tcase_add_test(tests, what_cannot_be_kept_is_replayed_twice);
    tcase_add_test(tests, cautious_lowering_keeps_less);
    tcase_add_test(tests, wary_lowering_counts_what_replays_fetch);
    tcase_add_test(tests, wary_lowering_pays_for_each_gap);
    tcase_add_test(tests, a_return_crosses_the_border_with_a_host_copy);
    tcase_add_test(tests, a_return_without_room_is_a_swap);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

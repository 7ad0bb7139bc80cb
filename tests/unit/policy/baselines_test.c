/* What the baselines decide, on traces small enough to follow their rules by hand. */
#include "tests/unit/policy/fixture.h"

#include "policy/baselines/baselines.h"

static struct trace trace;
static struct trace_index trace_index;
static struct plan plan;

static void teardown(void)
{
    plan_finish(&plan);
    trace_index_finish(&trace_index);
    trace_finish(&trace);
}

static void run_without(const char *name, const char *text, uint64_t budget, unsigned without)
{
    struct planner_request request = {.trace_index = &trace_index,
                                      .budget_bytes = budget,
                                      .host_bytes = UINT64_MAX,
                                      .effort = EFFORT_DEFAULT,
                                      .without = without};
    struct error_text error = {""};

    read_trace(&trace, text);
    ck_assert_int_eq(trace_index_init(&trace_index, &trace, 1, NULL), CAPU_OK);
    ck_assert_ptr_nonnull(baselines_find(name));
    ck_assert_msg(planner_run(baselines_find(name), &request, &plan, &error) == CAPU_OK, "%s",
                  error.text);
}

static void run(const char *name, const char *text, uint64_t budget)
{
    run_without(name, text, budget, 0);
}

static void expect(uint32_t index, enum action_kind kind, uint32_t tensor, uint32_t point)
{
    ck_assert_uint_lt(index, plan.action_count);
    ck_assert_int_eq(plan.actions[index].kind, kind);
    ck_assert_uint_eq(plan.actions[index].point, point);
    if (kind != ACTION_RECOMPUTE) {
        ck_assert_uint_eq(plan.actions[index].tensor, tensor);
    }
}

/* b is made from a; c, e and the idle outputs are made from w alone; backward reads e, c, b, a. */
#define DTR_TRACE(c_ns)                                                                            \
    TRACE_LINE MACHINE_LINE TENSOR_LINE(0, "w", 10, "parameter")                                   \
        TENSOR_LINE(1, "a", 100, "activation") TENSOR_LINE(2, "b", 100, "activation") TENSOR_LINE( \
            3, "c", 100, "activation") TENSOR_LINE(4, "e", 100, "activation")                      \
            TENSOR_LINE(5, "d", 10, "gradient") TENSOR_LINE(6, "s", 1, "activation") TENSOR_LINE(  \
                7, "t", 1, "activation") OP_LINE("f1", 100, "[0]", "[1]", "[]", "true")            \
                OP_LINE("f2", 100, "[1]", "[2]", "[]", "true")                                     \
                    OP_LINE("n1", 1000, "[0]", "[6]", "[]", "true")                                \
                        OP_LINE("f3", c_ns, "[0]", "[3]", "[]", "true")                            \
                            OP_LINE("n2", 1000, "[0]", "[7]", "[]", "true")                        \
                                OP_LINE("f4", 100, "[0]", "[4]", "[]", "true")                     \
                                    OP_LINE("l", 100, "[4]", "[5]", "[]", "false")                 \
                                        OP_LINE("gc", 100, "[3]", "[]", "[5]", "false")            \
                                            OP_LINE("gb", 100, "[2]", "[]", "[5]", "false")        \
                                                OP_LINE("ga", 100, "[1]", "[]", "[5]", "false")

/*
 * Room for two of the four. Before f3, at 1200: a costs 100 and was used at 100, b costs 100 and
 * was used at 200; a is evicted, being unused for longer. Before f4: b alone would cost 100 for
 * 2070 unused ns (0.048), but a would have to be replayed, too (0.097); c costs 70, unused for 1000
 * (0.07).
 */
START_TEST(dtr_counts_tensors_already_evicted)
{
    run("dtr", DTR_TRACE(70), 309);
    ck_assert_uint_eq(plan.action_count, 4);
    expect(0, ACTION_DROP, 1, 1);
    expect(1, ACTION_DROP, 3, 3);
    expect(2, ACTION_RECOMPUTE, 0, 7);
    expect(3, ACTION_RECOMPUTE, 0, 9);
    ck_assert_uint_eq(plan.replays[0].op, 3);
    ck_assert_uint_eq(plan.replays[1].op, 0);
}
END_TEST

/* The same with c at 110: 0.11 is more than b's 0.095, so b is evicted, and its replay includes
   a's. */
START_TEST(dtr_divides_cost_by_unused_time)
{
    run("dtr", DTR_TRACE(110), 309);
    expect(0, ACTION_DROP, 1, 1);
    expect(1, ACTION_DROP, 2, 1);
    expect(2, ACTION_RECOMPUTE, 0, 8);
    ck_assert_uint_ge(plan.replay_count, 2);
    ck_assert_uint_eq(plan.replays[0].op, 0);
    ck_assert_uint_eq(plan.replays[1].op, 1);
}
END_TEST

static unsigned count(enum action_kind kind)
{
    unsigned found = 0;

    for (uint32_t i = 0; i < plan.action_count; i++) {
        found += plan.actions[i].kind == kind;
    }
    return found;
}

/* b is made from a, e from w; backward reads e, b, a. */
#define COLLECTIVE_TRACE                                                               \
    TRACE_LINE MACHINE_LINE TENSOR_LINE(0, "w", 10, "parameter")                       \
        TENSOR_LINE(1, "a", 100, "activation") TENSOR_LINE(2, "b", 100, "activation")  \
            TENSOR_LINE(3, "e", 300, "activation") TENSOR_LINE(4, "d", 10, "gradient") \
                OP_LINE("f1", 100, "[0]", "[1]", "[]", "true")                         \
                    OP_LINE("f2", 100, "[1]", "[2]", "[]", "true")                     \
                        OP_LINE("f3", 100, "[0]", "[3]", "[]", "true")                 \
                            OP_LINE("l", 100, "[3]", "[4]", "[]", "false")             \
                                OP_LINE("gb", 100, "[2]", "[]", "[4]", "false")        \
                                    OP_LINE("ga", 100, "[1]", "[]", "[4]", "false")

/* 101 bytes too many: a is dropped, then b. One pass of f1 and f2 makes both again, with room to
   keep a until ga; without keeping it, f1 runs once more for ga. */
START_TEST(capuchin_keeps_targets_computed_on_the_way)
{
    run_without("capuchin", COLLECTIVE_TRACE, 419, WITHOUT_SWAP);
    ck_assert_uint_eq(count(ACTION_EVICT), 0);
    expect(0, ACTION_DROP, 1, 1);
    expect(1, ACTION_DROP, 2, 1);
    ck_assert_uint_eq(plan.replay_count, 2);
    teardown();
    run_without("capuchin", COLLECTIVE_TRACE, 419, WITHOUT_SWAP | WITHOUT_COLLECTIVE);
    ck_assert_uint_eq(count(ACTION_EVICT), 0);
    ck_assert_uint_eq(plan.replay_count, 3);
}
END_TEST

/* A copy takes 110 ns, a replay of f1 100: planner swap never replays, even if that is cheaper. */
START_TEST(capuchin_without_replays_swaps)
{
    run_without("capuchin", DTR_TRACE(70), 309, WITHOUT_RECOMPUTE);
    ck_assert_uint_eq(count(ACTION_RECOMPUTE), 0);
    ck_assert_uint_eq(count(ACTION_DROP), 0);
    ck_assert_uint_eq(count(ACTION_EVICT), 2);
}
END_TEST

/* Two convolutions with a relu between them; backward reads u, z, x, and y where `y_ops` has an op.
 */
#define LAYERS_TRACE(y_ops)                                                                 \
    TRACE_LINE MACHINE_LINE TENSOR_LINE(0, "w", 100, "parameter")                           \
        TENSOR_LINE(1, "v", 100, "parameter") TENSOR_LINE(2, "x", 1000, "activation")       \
            TENSOR_LINE(3, "y", 40, "activation") TENSOR_LINE(4, "z", 1000, "activation")   \
                TENSOR_LINE(5, "u", 1000, "activation") TENSOR_LINE(6, "g", 50, "gradient") \
                    OP_LINE("load", 2000, "[]", "[2]", "[]",                                \
                            "false") OP_LINE("conv1", 2000, "[0,2]", "[3]", "[]", "true")   \
                        OP_LINE("relu", 2000, "[3]", "[4]", "[]", "true")                   \
                            OP_LINE("conv2", 2000, "[1,4]", "[5]", "[]", "true")            \
                                OP_LINE("l", 2000, "[5]", "[6]", "[]", "false")             \
                                    OP_LINE("ub", 2000, "[5]", "[]", "[6]", "false")        \
                                        OP_LINE("zb", 2000, "[4]", "[]", "[6]", "false")    \
                                            y_ops OP_LINE("xb", 2000, "[2]", "[]", "[6]", "false")

/* x and z enter layers and are evicted after them; y enters none. z is fetched for op 6, x for op
   8. */
START_TEST(vdnn_swaps_layer_inputs)
{
    run("vdnn", LAYERS_TRACE(OP_LINE("yb", 2000, "[3]", "[]", "[6]", "false")), 3289);
    ck_assert_uint_eq(plan.action_count, 4);
    expect(0, ACTION_EVICT, 2, 1);
    expect(1, ACTION_EVICT, 4, 3);
    ck_assert_uint_eq(plan.actions[2].kind, ACTION_PREFETCH);
    ck_assert_uint_eq(plan.actions[2].tensor, 4);
    ck_assert_uint_le(plan.actions[2].point, 6);
    ck_assert_uint_eq(plan.actions[3].kind, ACTION_PREFETCH);
    ck_assert_uint_eq(plan.actions[3].tensor, 2);
    ck_assert_uint_le(plan.actions[3].point, 8);
}
END_TEST
/* Only z can be replayed and is not the output of a product: relu runs again before zb. */
START_TEST(speed_keeps_outputs_of_products)
{
    run("speed", LAYERS_TRACE(OP_LINE("yb", 2000, "[3]", "[]", "[6]", "false")), 3289);
    ck_assert_uint_eq(plan.action_count, 2);
    expect(0, ACTION_DROP, 4, 3);
    expect(1, ACTION_RECOMPUTE, 0, 6);
    ck_assert_uint_eq(plan.replay_count, 1);
    ck_assert_uint_eq(plan.replays[0].op, 2);
}
END_TEST

/* Backward does not read y, but relu's replay does: it is kept, and conv1 does not run again. */
START_TEST(speed_keeps_products_alive_for_replays)
{
    run("speed", LAYERS_TRACE(""), 3249);
    ck_assert_uint_eq(trace_index.peak_bytes, 3250);
    expect(0, ACTION_DROP, 4, 3);
    ck_assert_uint_eq(plan.replay_count, 1);
    ck_assert_uint_eq(plan.replays[0].op, 2);
}
END_TEST

/* Four places, so every second is kept: b and d. Before gc, c is made from b; before ga, a from w.
 */
START_TEST(checkpoint_keeps_every_second_of_four)
{
    run("checkpoint",
        TRACE_LINE MACHINE_LINE TENSOR_LINE(0, "w", 10, "parameter") TENSOR_LINE(
            1, "a", 100, "activation") TENSOR_LINE(2, "b", 100, "activation")
            TENSOR_LINE(3, "c", 100, "activation") TENSOR_LINE(4, "d", 100, "activation")
                TENSOR_LINE(5, "g", 10, "gradient") OP_LINE("f1", 50, "[0]", "[1]", "[]", "true")
                    OP_LINE("f2", 50, "[1]", "[2]", "[]", "true")
                        OP_LINE("f3", 50, "[2]", "[3]", "[]", "true")
                            OP_LINE("f4", 50, "[3]", "[4]", "[]", "true")
                                OP_LINE("l", 50, "[4]", "[5]", "[]", "false")
                                    OP_LINE("gd", 50, "[4]", "[]", "[5]", "false")
                                        OP_LINE("gc", 50, "[3]", "[]", "[5]", "false")
                                            OP_LINE("gb", 50, "[2]", "[]", "[5]", "false")
                                                OP_LINE("ga", 50, "[1]", "[]", "[5]", "false"),
        419);
    ck_assert_uint_eq(plan.action_count, 4);
    expect(0, ACTION_DROP, 1, 1);
    expect(1, ACTION_DROP, 3, 3);
    expect(2, ACTION_RECOMPUTE, 0, 6);
    expect(3, ACTION_RECOMPUTE, 0, 8);
    ck_assert_uint_eq(plan.replays[0].op, 2);
    ck_assert_uint_eq(plan.replays[1].op, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("policy/baselines");
    TCase *tests = tcase_create("baselines");

    tcase_add_checked_fixture(tests, NULL, teardown);
    tcase_add_test(tests, dtr_counts_tensors_already_evicted);
    tcase_add_test(tests, capuchin_keeps_targets_computed_on_the_way);
    tcase_add_test(tests, capuchin_without_replays_swaps);
    tcase_add_test(tests, dtr_divides_cost_by_unused_time);
    tcase_add_test(tests, vdnn_swaps_layer_inputs);
    tcase_add_test(tests, speed_keeps_outputs_of_products);
    tcase_add_test(tests, speed_keeps_products_alive_for_replays);
    tcase_add_test(tests, checkpoint_keeps_every_second_of_four);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

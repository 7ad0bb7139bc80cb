/* Planners on traces small enough to know the result; bounds worked out by hand. */
#include "tests/unit/policy/fixture.h"

#include "policy/bound/bound.h"
#include "policy/model/timeline.h"
#include "policy/model/validate.h"
#include "policy/search/planner.h"

static struct trace trace;
static struct trace_index trace_index;
static struct plan plan;

static void teardown(void)
{
    plan_finish(&plan);
    trace_index_finish(&trace_index);
    trace_finish(&trace);
}

static void load(const char *text)
{
    read_trace(&trace, text);
    ck_assert_int_eq(trace_index_init(&trace_index, &trace, 1, NULL), CAPU_OK);
}

static capu_status run(const char *name, uint64_t budget, uint64_t host, struct error_text *error)
{
    struct planner_request request = {.trace_index = &trace_index,
                                      .budget_bytes = budget,
                                      .host_bytes = host,
                                      .effort = EFFORT_DEFAULT};

    ck_assert_ptr_nonnull(planner_find(name));
    return planner_run(planner_find(name), &request, &plan, error);
}

static uint64_t iteration_ns(void)
{
    struct timeline timeline;
    uint64_t ns;

    ck_assert_int_eq(timeline_init(&timeline, &trace_index, &plan, NULL, false, NULL), CAPU_OK);
    ns = timeline.iteration_ns;
    timeline_finish(&timeline);
    return ns;
}

START_TEST(if_everything_fits_the_plan_is_empty)
{
    load(CHAIN_TRACE);
    for (const struct planner *planner = planners; planner->name != NULL; planner++) {
        ck_assert_int_eq(run(planner->name, 3100, UINT64_MAX, NULL), CAPU_OK);
        ck_assert_uint_eq(plan.action_count, 0);
        plan_finish(&plan);
    }
}
END_TEST

START_TEST(the_op_that_exceeds_the_budget_is_named)
{
    struct error_text error;

    load(CHAIN_TRACE);
    for (const struct planner *planner = planners; planner->name != NULL; planner++) {
        ck_assert_int_eq(run(planner->name, 2049, UINT64_MAX, &error), CAPU_OVER_BUDGET);
        ck_assert_str_eq(error.text,
                         "no plan exists below 2050 bytes: op 3 (b0) needs them all at once");
    }
}
END_TEST

START_TEST(a_plan_exists_at_the_floor)
{
    load(CHAIN_TRACE);
    for (const struct planner *planner = planners; planner->name != NULL; planner++) {
        ck_assert_int_eq(run(planner->name, 2050, UINT64_MAX, NULL), CAPU_OK);
        plan_finish(&plan);
    }
}
END_TEST

START_TEST(lru_evicts_the_least_recently_used)
{
    /* z needs room next to y: w was used last by f0, so it is evicted first; no op needs it again,
       so it spends the rest of each iteration on the host. Then x is evicted, and fetched for b0.
       */
    load(CHAIN_TRACE);
    ck_assert_int_eq(run("lru", 2100, UINT64_MAX, NULL), CAPU_OK);
    ck_assert_uint_eq(plan.action_count, 4);
    ck_assert_uint_eq(plan.actions[0].kind, ACTION_PREFETCH);
    ck_assert_uint_eq(plan.actions[0].tensor, 0);
    ck_assert_uint_eq(plan.actions[1].kind, ACTION_EVICT);
    ck_assert_uint_eq(plan.actions[1].tensor, 0);
    ck_assert_uint_eq(plan.actions[1].point, 0);
    ck_assert_uint_eq(plan.actions[2].kind, ACTION_EVICT);
    ck_assert_uint_eq(plan.actions[2].tensor, 1);
    ck_assert_uint_eq(plan.actions[2].point, 1);
    ck_assert_uint_eq(plan.actions[3].kind, ACTION_PREFETCH);
    ck_assert_uint_eq(plan.actions[3].tensor, 1);
    ck_assert_uint_eq(plan.actions[3].point, 3);
}
END_TEST

START_TEST(without_host_memory_only_replays_remain)
{
    /* No bytes may go to the host: x can only be dropped and replayed. */
    load(CHAIN_TRACE);
    ck_assert_int_eq(run("hybrid", 2170, 0, NULL), CAPU_OK);
    ck_assert_uint_eq(iteration_ns(), 11000);
    plan_finish(&plan);
    ck_assert_int_eq(run("swap", 2170, 0, NULL), CAPU_UNSUPPORTED);
}
END_TEST

#define SEGMENT_OP(name, ns, reads, writes)                                                        \
    "{\"type\":\"op\",\"name\":\"" name "\",\"ns\":" #ns ",\"reads\":" reads ",\"writes\":" writes \
    ",\"replayable\":true,\"segment\":\"s\"}\n"
/* a and b are made inside the segment, b leaves it; backward reads both. */
#define SEGMENT_TRACE                                                                  \
    TRACE_LINE MACHINE_LINE TENSOR_LINE(0, "w", 10, "parameter")                       \
        TENSOR_LINE(1, "a", 100, "activation") TENSOR_LINE(2, "b", 100, "activation")  \
            TENSOR_LINE(3, "c", 100, "activation") TENSOR_LINE(4, "d", 10, "gradient") \
                SEGMENT_OP("f1", 50, "[0]", "[1]") SEGMENT_OP("f2", 50, "[1]", "[2]")  \
                    OP_LINE("f3", 50, "[2]", "[3]", "[]", "false")                     \
                        OP_LINE("l", 50, "[3]", "[4]", "[]", "false")                  \
                            OP_LINE("g", 50, "[1,2]", "[]", "[4]", "false")

START_TEST(manual_recomputes_tensors_of_a_segment)
{
    load(SEGMENT_TRACE);
    /* Everything: w, a, b, c, d. Without a next to c and d: 100 less. */
    ck_assert_uint_eq(trace_index.peak_bytes, 320);
    ck_assert_int_eq(run("manual", 319, UINT64_MAX, NULL), CAPU_OK);
    ck_assert_uint_eq(plan.action_count, 2);
    ck_assert_uint_eq(plan.actions[0].kind, ACTION_DROP);
    ck_assert_uint_eq(plan.actions[0].tensor, 1);
    ck_assert_uint_eq(plan.actions[0].point, 1);
    ck_assert_uint_eq(plan.actions[1].kind, ACTION_RECOMPUTE);
    ck_assert_uint_eq(plan.actions[1].point, 4);
    ck_assert_uint_eq(plan.replays[0].op, 0);
}
END_TEST

START_TEST(hybrid_beats_the_baselines)
{
    load(CHAIN_TRACE);
    ck_assert_int_eq(run("hybrid", 2170, UINT64_MAX, NULL), CAPU_OK);
    ck_assert_uint_le(iteration_ns(), 10120);
}
END_TEST

/*
 * At f2 (4000 to 7000) y and z are operands, w and x are not: 3100 - 2150 = 950 bytes have to be
 * away. Before f2 the link can take 4000 bytes, after it 2000 can return, so no stall is necessary.
 */
START_TEST(the_bound_is_the_ideal_if_copies_can_be_hidden)
{
    load(CHAIN_TRACE);
    ck_assert_uint_eq(bound_cut(&trace_index, &trace.machine, 2150), 9000);
    ck_assert_uint_eq(bound_cut(&trace_index, &trace.machine, 5000), 9000);
}
END_TEST

/* b0 takes 100 instead: 100 bytes return in its time, w's 100 may be away over the border, and 950
   - 200 = 750 are left; x costs 2 ns per byte to replay, a stall 1 ns per byte: at least 750 / 3 =
   250. */
START_TEST(the_bound_counts_bytes_that_return_late)
{
    uint64_t bound;

    load(TRACE_LINE MACHINE_LINE TENSOR_LINE(0, "w", 100, "parameter")
             TENSOR_LINE(1, "x", 1000, "activation") TENSOR_LINE(2, "y", 1000, "activation")
                 TENSOR_LINE(3, "z", 1000, "activation") TENSOR_LINE(4, "g", 50, "gradient")
                     OP_LINE("f0", 2000, "[0]", "[1]", "[]", "true")
                         OP_LINE("f1", 2000, "[1]", "[2]", "[]", "true")
                             OP_LINE("f2", 3000, "[2]", "[3]", "[]", "true")
                                 OP_LINE("b0", 100, "[1,3]", "[4]", "[]", "false"));
    bound = bound_cut(&trace_index, &trace.machine, 2150);
    ck_assert_uint_ge(bound, 7100 + 495);
    ck_assert_uint_le(bound, 7100 + 500);
}
END_TEST

/* g is persistent and has 1000 bytes. The first op reads it, and the last overwrites it next to
   2000 bytes of b: its drop costs nothing, a copy would take longer than the iteration. */
START_TEST(the_bound_drops_overwritten_tensors_for_free)
{
    load(TRACE_LINE MACHINE_LINE
         "{\"type\":\"tensor\",\"id\":0,\"name\":\"g\",\"bytes\":1000,"
         "\"kind\":\"gradient\",\"persistent\":true}\n" TENSOR_LINE(1, "b", 2000, "activation")
             OP_LINE("r", 10, "[0]", "[]", "[]", "false")
                 OP_LINE("b", 10, "[]", "[1]", "[]", "false")
                     OP_LINE("w", 10, "[]", "[0]", "[]", "false"));
    read_plan(&plan, PLAN_LINE(2000, "") AFTER("drop", 0, 0));
    ck_assert_int_eq(validate_plan(&trace_index, &plan, NULL), CAPU_OK);
    ck_assert_uint_eq(iteration_ns(), 30);
    ck_assert_uint_eq(bound_cut(&trace_index, &trace.machine, 2000), 30);
}
END_TEST

/* p comes from the previous iteration and is overwritten by w before it is read: it makes room
   without a copy. */
START_TEST(overwritten_tensors_are_evicted_without_a_copy)
{
    load(TRACE_LINE MACHINE_LINE TENSOR_LINE(0, "p", 1000, "parameter")
             TENSOR_LINE(1, "a", 600, "activation") TENSOR_LINE(2, "b", 600, "activation")
                 OP_LINE("a", 10, "[]", "[1]", "[]", "false")
                     OP_LINE("b", 10, "[1]", "[2]", "[]", "false")
                         OP_LINE("w", 10, "[2]", "[0]", "[]", "false"));
    ck_assert_int_eq(run("hybrid", 1700, UINT64_MAX, NULL), CAPU_OK);
    ck_assert_uint_eq(iteration_ns(), 30);
    ck_assert_uint_eq(plan.action_count, 1);
    ck_assert_uint_eq(plan.actions[0].kind, ACTION_DROP);
}
END_TEST

/* w makes the persistent g again in 5 ns where two copies would take 2000. */
START_TEST(the_bound_can_replay_persistent_tensors)
{
    load(TRACE_LINE MACHINE_LINE
         "{\"type\":\"tensor\",\"id\":0,\"name\":\"g\",\"bytes\":1000,"
         "\"kind\":\"gradient\",\"persistent\":true}\n" TENSOR_LINE(1, "b", 2000, "activation")
             OP_LINE("w", 5, "[]", "[0]", "[]", "true") OP_LINE("b", 10, "[]", "[1]", "[]", "false")
                 OP_LINE("r", 10, "[0]", "[]", "[]", "false"));
    read_plan(&plan, PLAN_LINE(2000, "") AFTER("drop", 0, 0) RECOMPUTE(2, REPLAY(0, "[]")));
    ck_assert_int_eq(validate_plan(&trace_index, &plan, NULL), CAPU_OK);
    ck_assert_uint_eq(iteration_ns(), 30);
    ck_assert_uint_le(bound_cut(&trace_index, &trace.machine, 2000), 30);
}
END_TEST

/* Three weights and three activations of `bytes`, each pair updated in turn, over the slowest
   allowed link. */
static void load_slow(uint64_t bytes)
{
    struct machine machine = {.d2h_bytes_per_s = TRACE_RATE_MIN,
                              .h2d_bytes_per_s = TRACE_RATE_MIN,
                              .copy_latency_ns = TRACE_NS_MAX};

    ck_assert_int_eq(trace_init(&trace, "slow", NULL), CAPU_OK);
    ck_assert_int_eq(trace_set_machine(&trace, &machine, NULL), CAPU_OK);
    for (uint32_t t = 0; t < 6; t++) {
        struct tensor_description tensor = {
            .name = "", .bytes = bytes, .kind = t < 3 ? CAPU_PARAMETER : CAPU_ACTIVATION};

        ck_assert_int_eq(trace_add_tensor(&trace, &tensor, NULL, NULL), CAPU_OK);
    }
    for (uint32_t k = 0; k < 3 * 40; k++) {
        uint32_t weight = k % 3;
        uint32_t activation = 3 + k % 3;
        struct op_description op = {.name = "", .ns = 1, .reads = &activation, .read_count = 1};

        if (k < 3) {
            op.reads = &weight;
            op.writes = &activation;
            op.write_count = 1;
            op.replayable = true;
        } else {
            op.updates = &weight;
            op.update_count = 1;
        }
        ck_assert_int_eq(trace_add_op(&trace, &op, NULL), CAPU_OK);
    }
    ck_assert_int_eq(trace_index_init(&trace_index, &trace, TRACE_INDEX_PAGE_MAX, NULL), CAPU_OK);
}

/* Whether there is a plan or not, no sum wraps around; the sanitizers check that. */
START_TEST(huge_times_do_not_overflow)
{
    for (unsigned shift = 32; shift <= 47; shift += 5) {
        load_slow((uint64_t)1 << shift);
        for (const struct planner *planner = planners; planner->name != NULL; planner++) {
            for (int place = 0; place < 2; place++) {
                struct planner_request request = {.trace_index = &trace_index,
                                                  .budget_bytes = trace_index.peak_bytes / 2,
                                                  .host_bytes = UINT64_MAX,
                                                  .place = place == 1,
                                                  .effort = EFFORT_QUICK};
                struct error_text error = {""};
                capu_status status = planner_run(planner, &request, &plan, &error);

                if (shift == 47) {
                    ck_assert_msg(status == CAPU_TOO_LARGE || status == CAPU_UNSUPPORTED,
                                  "%s: %d, %s", planner->name, (int)status, error.text);
                    ck_assert(status != CAPU_TOO_LARGE || strstr(error.text, "2^62") != NULL);
                } else if (shift == 32) {
                    ck_assert_msg(status == CAPU_OK, "%s: %s", planner->name, error.text);
                    ck_assert_uint_lt(iteration_ns(), CLOCK_NS_MAX);
                }
                plan_finish(&plan);
            }
        }
        trace_index_finish(&trace_index);
        trace_finish(&trace);
    }
}
END_TEST

static uint32_t add_tensor(void)
{
    struct tensor_description tensor = {.name = "", .bytes = 4, .persistent = true};
    uint32_t id;

    ck_assert_int_eq(trace_add_tensor(&trace, &tensor, &id, NULL), CAPU_OK);
    return id;
}

static void add_op(const uint32_t *reads, uint32_t read_count, const uint32_t *updates,
                   uint32_t update_count)
{
    struct op_description op = {.name = "",
                                .ns = 1,
                                .reads = reads,
                                .read_count = read_count,
                                .updates = updates,
                                .update_count = update_count};

    ck_assert_int_eq(trace_add_op(&trace, &op, NULL), CAPU_OK);
}

/* Layers of a weight, an activation and a gradient, of four pages each and used by three ops of
   each pass; in the middle, an op needs all activations at once. */
static void load_wide_op(void)
{
    enum { LAYERS = 4 };
    const struct machine machine = {
        .name = "m", .d2h_bytes_per_s = 1000000000, .h2d_bytes_per_s = 1000000000};
    uint32_t w[LAYERS];
    uint32_t a[LAYERS + 1];
    uint32_t g[LAYERS];

    ck_assert_int_eq(trace_init(&trace, "wide", NULL), CAPU_OK);
    ck_assert_int_eq(trace_set_machine(&trace, &machine, NULL), CAPU_OK);
    a[LAYERS] = add_tensor();
    for (uint32_t i = 0; i < LAYERS; i++) {
        w[i] = add_tensor();
        a[i] = add_tensor();
        g[i] = add_tensor();
    }
    for (uint32_t i = 0; i < LAYERS; i++) {
        add_op((uint32_t[]){w[i], a[i]}, 2, &a[i + 1], 1);
        add_op(&a[i], 1, &a[i + 1], 1);
        add_op(&w[i], 1, &a[i + 1], 1);
    }
    add_op(NULL, 0, a, LAYERS + 1);
    for (uint32_t i = LAYERS; i-- > 0;) {
        add_op(&a[i + 1], 1, &g[i], 1);
        add_op(&w[i], 1, (uint32_t[]){a[i], g[i]}, 2);
        add_op(&a[i + 1], 1, &g[i], 1);
    }
    for (uint32_t i = 0; i < LAYERS; i++) {
        add_op(&g[i], 1, &w[i], 1);
    }
    ck_assert_int_eq(trace_index_init(&trace_index, &trace, 1, NULL), CAPU_OK);
}

/* The wide op needs all pages, so weights and gradients share theirs with activations. With every
   tensor away between its accesses, 172 bytes are fetched, and without places 88. */
START_TEST(places_at_the_floor_do_not_double_the_copies)
{
    for (int effort = EFFORT_UNSET; effort <= EFFORT_DEFAULT; effort++) {
        struct planner_request request = {.trace_index = &trace_index,
                                          .host_bytes = UINT64_MAX,
                                          .place = true,
                                          .effort = (enum plan_effort)effort};
        struct timeline timeline;
        struct error_text error;

        load_wide_op();
        request.budget_bytes = trace_index.floor_bytes;
        ck_assert_int_eq(planner_run(planner_find("hybrid"), &request, &plan, &error), CAPU_OK);
        ck_assert_uint_gt(plan.place_count, 0);
        ck_assert_int_eq(timeline_init(&timeline, &trace_index, &plan, NULL, false, NULL), CAPU_OK);
        ck_assert_uint_le(timeline.prefetched_bytes, 120);
        ck_assert_uint_le(timeline.evicted_bytes, 72);
        timeline_finish(&timeline);
        teardown();
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("policy/planner");
    TCase *tests = tcase_create("planner");

    tcase_add_checked_fixture(tests, NULL, teardown);
    tcase_add_test(tests, if_everything_fits_the_plan_is_empty);
    tcase_add_test(tests, the_op_that_exceeds_the_budget_is_named);
    tcase_add_test(tests, a_plan_exists_at_the_floor);
    tcase_add_test(tests, lru_evicts_the_least_recently_used);
    tcase_add_test(tests, without_host_memory_only_replays_remain);
    tcase_add_test(tests, manual_recomputes_tensors_of_a_segment);
    tcase_add_test(tests, hybrid_beats_the_baselines);
    tcase_add_test(tests, the_bound_is_the_ideal_if_copies_can_be_hidden);
    tcase_add_test(tests, the_bound_counts_bytes_that_return_late);
    tcase_add_test(tests, the_bound_drops_overwritten_tensors_for_free);
    tcase_add_test(tests, the_bound_can_replay_persistent_tensors);
    tcase_add_test(tests, overwritten_tensors_are_evicted_without_a_copy);
    tcase_add_test(tests, huge_times_do_not_overflow);
    tcase_add_test(tests, places_at_the_floor_do_not_double_the_copies);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

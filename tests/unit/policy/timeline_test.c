/* Golden times: every number here was computed by hand from the specification. */
#include "tests/unit/policy/fixture.h"

#include "policy/model/timeline.h"
#include "policy/model/validate.h"

static struct trace trace;
static struct trace_index trace_index;
static struct plan plan;
static struct timeline timeline;

static void teardown(void)
{
    timeline_finish(&timeline);
    plan_finish(&plan);
    trace_index_finish(&trace_index);
    trace_finish(&trace);
}

static void simulate(const char *trace_text_, const char *plan_text)
{
    struct error_text error = {""};

    read_trace(&trace, trace_text_);
    read_plan(&plan, plan_text);
    ck_assert_int_eq(trace_index_init(&trace_index, &trace, plan.page_bytes, &error), CAPU_OK);
    ck_assert_msg(validate_plan(&trace_index, &plan, &error) == CAPU_OK, "%s", error.text);
    ck_assert_int_eq(timeline_init(&timeline, &trace_index, &plan, NULL, true, &error), CAPU_OK);
}

START_TEST(an_empty_plan_takes_the_ideal_time)
{
    simulate(CHAIN_TRACE, PLAN_LINE(3100, ""));
    ck_assert_uint_eq(timeline.iteration_ns, 9000);
    ck_assert_uint_eq(timeline.peak_bytes, 3100);
    ck_assert_uint_eq(timeline.stall_ns, 0);
    ck_assert_double_eq(timeline_overhead(&timeline), 0.0);
}
END_TEST

/* evict x: 4000-5010. f2 waits for its bytes: 5010-8010. prefetch: 8010-9020. b0: 9020-11020. */
START_TEST(a_swap_stalls_on_memory_and_on_the_copy)
{
    const struct timeline_record *f2;

    simulate(CHAIN_TRACE, PLAN_LINE(2150, "") AFTER("evict", 1, 1) PREFETCH(1, 3));
    ck_assert_uint_eq(timeline.iteration_ns, 11020);
    ck_assert_uint_eq(timeline.peak_bytes, 2150);
    ck_assert_uint_eq(timeline.evicted_bytes, 1000);
    ck_assert_uint_eq(timeline.prefetched_bytes, 1000);
    ck_assert_uint_eq(timeline.stall_ns, 2020);
    ck_assert_uint_eq(timeline.replay_ns, 0);
    /* Items: f0, f1, evict, f2, release y, prefetch, b0, releases of x, z, g. */
    ck_assert_uint_eq(timeline.record_count, 10);
    f2 = &timeline.records[3];
    ck_assert_uint_eq(f2->item.kind, ACTION_OP);
    ck_assert_uint_eq(f2->span.start - timeline.begin_ns, 5010);
    ck_assert_uint_eq(f2->span.idle_from - timeline.begin_ns, 4000);
    ck_assert_int_eq(f2->span.wait, WAIT_MEMORY);
    ck_assert_int_eq(timeline.records[6].span.wait, WAIT_TENSOR);
    ck_assert_int_eq(timeline.records[2].engine, ENGINE_D2H);
}
END_TEST

/* save x: 2000-3010, during f1. The evict is free: f2 4000-7000, prefetch 7000-8010. */
START_TEST(a_save_makes_the_evict_free)
{
    simulate(CHAIN_TRACE,
             PLAN_LINE(2150, "") AFTER("save", 1, 0) AFTER("evict", 1, 1) PREFETCH(1, 3));
    ck_assert_uint_eq(timeline.iteration_ns, 10010);
    ck_assert_uint_eq(timeline.evicted_bytes, 1000);
}
END_TEST

/*
 * Copies at 5 ns per byte. save x: 2000-7010, during f1 and f2: 9000 in all. Coupled, f2 waits for
 * what was issued when f1 began: 7010-10010, b0 10010-12010. If only f0 and b0 begin layers, the
 * save was issued after f0 and may run during all of its layer.
 */
START_TEST(coupled_layers_wait_for_the_copies_before_the_last)
{
    const struct machine machine = {
        .d2h_bytes_per_s = 200000000, .h2d_bytes_per_s = 200000000, .copy_latency_ns = 10};
    const uint8_t every_op[] = {1, 1, 1, 1};
    const uint8_t outer[] = {1, 0, 0, 1};
    struct program program;
    struct timeline other;

    simulate(CHAIN_TRACE, PLAN_LINE(5000, "") AFTER("save", 1, 0));
    ck_assert_int_eq(program_init(&program, &trace_index, &plan, NULL), CAPU_OK);
    ck_assert_int_eq(timeline_of(&other, &program, &machine, false, NULL), CAPU_OK);
    ck_assert_uint_eq(other.iteration_ns, 9000);
    ck_assert_int_eq(timeline_of_coupled(&other, &program, &machine, every_op, NULL), CAPU_OK);
    ck_assert_uint_eq(other.iteration_ns, 12010);
    ck_assert_int_eq(timeline_of_coupled(&other, &program, &machine, outer, NULL), CAPU_OK);
    ck_assert_uint_eq(other.iteration_ns, 9000);
    program_finish(&program);
}
END_TEST

/* drop x: usable at 4000. f2 4000-7000, f0 again 7000-9000, b0 9000-11000. */
START_TEST(a_replay_costs_its_op)
{
    simulate(CHAIN_TRACE, PLAN_LINE(2150, "") AFTER("drop", 1, 1) RECOMPUTE(3, REPLAY(0, "[]")));
    ck_assert_uint_eq(timeline.iteration_ns, 11000);
    ck_assert_uint_eq(timeline.replay_ns, 2000);
    ck_assert_uint_eq(timeline.stall_ns, 0);
}
END_TEST

#define OPTIMIZER_TRACE                                                                      \
    TRACE_LINE MACHINE_LINE TENSOR_LINE(0, "w", 1000, "parameter")                           \
        TENSOR_LINE(1, "x", 100, "activation") OP_LINE("a", 500, "[]", "[1]", "[]", "false") \
            OP_LINE("b", 500, "[1]", "[]", "[0]", "false")

/* Each iteration: a 0-500; the prefetch waits for the evict of the previous iteration, which ends
   at 1010: 1010-2020; b 2020-2520. The first iteration alone would take 2010. */
START_TEST(a_wrapping_swap_is_measured_in_steady_state)
{
    simulate(OPTIMIZER_TRACE, PLAN_LINE(1100, "") PREFETCH(0, 1) AFTER("evict", 0, 1));
    ck_assert_uint_eq(timeline.iteration_ns, 2520);
    ck_assert_uint_eq(timeline.evicted_bytes, 1000);
}
END_TEST

#define CLEAN_TRACE                                                                           \
    TRACE_LINE MACHINE_LINE TENSOR_LINE(0, "w", 1000, "parameter")                            \
        TENSOR_LINE(1, "x", 1000, "activation") OP_LINE("a", 500, "[]", "[1]", "[]", "false") \
            OP_LINE("b", 500, "[0]", "[]", "[]", "false")

/* w is never written: its host copy stays current and the evict is free. x and w alternate in the
   same bytes: a 0-500, x is free at 500, prefetch 500-1510, b 1510-2010. */
START_TEST(evicting_a_clean_persistent_tensor_is_free)
{
    simulate(CLEAN_TRACE, PLAN_LINE(1000, "") PREFETCH(0, 1) AFTER("evict", 0, 1));
    ck_assert_uint_eq(timeline.iteration_ns, 2010);
    ck_assert_uint_eq(timeline.evicted_bytes, 0);
    ck_assert_uint_eq(timeline.prefetched_bytes, 1000);
}
END_TEST

/*
 * Pages of 500 bytes: x in 0-1, y and later g in 2-3, w in 4. z cannot use the pages of x, because
 * x could not return to them for b0. It has 6-7, which takes a larger budget, but f2 does not wait
 * for the evict.
 */
START_TEST(a_tensor_in_its_own_pages_does_not_wait)
{
    simulate(CHAIN_TRACE,
             PLAN_LINE(4000, ",\"page_bytes\":500") AFTER("evict", 1, 1)
                 PREFETCH(1, 3) "{\"type\":\"place\",\"tensor\":0,\"pages\":[[4,1]]}\n"
                                "{\"type\":\"place\",\"tensor\":1,\"pages\":[[0,2]]}\n"
                                "{\"type\":\"place\",\"tensor\":2,\"pages\":[[2,2]]}\n"
                                "{\"type\":\"place\",\"tensor\":3,\"pages\":[[6,2]]}\n"
                                "{\"type\":\"place\",\"tensor\":4,\"pages\":[[2,1]]}\n");
    /* evict 4000-5010, f2 4000-7000 in pages of its own, prefetch at 7000-8010, b0 8010-10010. */
    ck_assert_uint_eq(timeline.iteration_ns, 10010);
}
END_TEST

START_TEST(copies_round_up)
{
    ck_assert_uint_eq(clock_copy_ns(0, 1000000, 7), 7);
    ck_assert_uint_eq(clock_copy_ns(1, 3000000000u, 0), 1);
    ck_assert_uint_eq(clock_copy_ns(12000000001u, 12000000000u, 10), 1000000011u);
    ck_assert_uint_eq(clock_copy_ns((uint64_t)1 << 50, 1000000000000u, 0),
                      1125899906842624u / 1000 + 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("policy/timeline");
    TCase *tests = tcase_create("timeline");

    tcase_add_checked_fixture(tests, NULL, teardown);
    tcase_add_test(tests, an_empty_plan_takes_the_ideal_time);
    tcase_add_test(tests, a_swap_stalls_on_memory_and_on_the_copy);
    tcase_add_test(tests, a_save_makes_the_evict_free);
    tcase_add_test(tests, coupled_layers_wait_for_the_copies_before_the_last);
    tcase_add_test(tests, a_replay_costs_its_op);
    tcase_add_test(tests, a_wrapping_swap_is_measured_in_steady_state);
    tcase_add_test(tests, evicting_a_clean_persistent_tensor_is_free);
    tcase_add_test(tests, a_tensor_in_its_own_pages_does_not_wait);
    tcase_add_test(tests, copies_round_up);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

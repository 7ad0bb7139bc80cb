/* Which dead tensors get virtual reads, and what becomes of them. */
#include "tests/unit/policy/fixture.h"

#include "policy/lower/lower.h"

#include <stdio.h>

/* s is made by op 0 and read by two ops, which make a and b; it is dead from op 2 on. Then nothing
   needs any of them for `idle` ops; the last two ops read b (or s), then a. */
static void load(struct trace *trace, struct trace_index *trace_index, unsigned bytes,
                 unsigned idle, bool is_alive)
{
    char text[1 << 16];
    int at = snprintf(
        text, sizeof(text),
        TRACE_LINE MACHINE_LINE TENSOR_LINE(0, "w", 100, "parameter") TENSOR_LINE(
            1, "s", 1000,
            "activation") "{\"type\":\"tensor\",\"id\":2,"
                          "\"name\":\"a\",\"bytes\":%u,\"kind\":\"activation\"}\n" TENSOR_LINE(
                              3, "b", 1000, "activation") TENSOR_LINE(4, "g", 100, "gradient")
                              OP_LINE("s", 9000, "[0]", "[1]", "[]", "true")
                                  OP_LINE("a", 10, "[1]", "[2]", "[]", "true")
                                      OP_LINE("b", 10, "[1]", "[3]", "[]", "true"),
        bytes);

    for (unsigned i = 0; i < idle; i++) {
        at += snprintf(text + at, sizeof(text) - (size_t)at,
                       OP_LINE("idle", 1000, "[0]", "[4]", "[]", "false"));
    }
    snprintf(text + at, sizeof(text) - (size_t)at,
             OP_LINE("gb", 100, "[%d]", "[4]", "[]", "false")
                 OP_LINE("ga", 100, "[2]", "[4]", "[]", "false") "{\"type\":\"end\",\"tensors\":5,"
                                                                 "\"ops\":%u}\n",
             is_alive ? 1 : 3, idle + 5);
    read_trace(trace, text);
    ck_assert_int_eq(trace_index_init(trace_index, trace, 1, NULL), CAPU_OK);
}

START_TEST(a_dead_source_of_larger_idle_results_is_read)
{
    static const struct {
        unsigned bytes; /* of a; b has 1000, and so has the source */
        unsigned idle;
        uint32_t reads;
    } cases[] = {{1000, 50, 2}, {600, 50, 2}, {400, 50, 0}, {1000, 30, 0}};
    struct trace trace;
    struct trace_index trace_index;
    struct virtual_reads reads;

    load(&trace, &trace_index, cases[_i].bytes, cases[_i].idle, false);
    ck_assert_int_eq(virtual_reads_choose(&trace_index, &reads), CAPU_OK);
    ck_assert_uint_eq(reads.count, cases[_i].reads);
    for (uint32_t i = 0; i < reads.count; i++) {
        ck_assert_uint_eq(reads.list[i].tensor, 1);
        ck_assert_uint_eq(reads.list[i].op, cases[_i].idle + 3 + i);
    }
    virtual_reads_finish(&reads);
    trace_index_finish(&trace_index);
    trace_finish(&trace);
}
END_TEST

/* However small the result is: s is kept for one more op. */
START_TEST(a_source_is_read_by_what_is_needed_soon_after_its_death)
{
    static const unsigned idle[] = {50, 30};
    struct trace trace;
    struct trace_index trace_index;
    struct virtual_reads reads;

    load(&trace, &trace_index, 400, idle[_i], true);
    ck_assert_int_eq(virtual_reads_choose(&trace_index, &reads), CAPU_OK);
    ck_assert_uint_eq(reads.count, _i == 0);
    if (_i == 0) {
        ck_assert_uint_eq(reads.list[0].tensor, 1);
        ck_assert_uint_eq(reads.list[0].op, 54);
    }
    virtual_reads_finish(&reads);
    trace_index_finish(&trace_index);
    trace_finish(&trace);
}
END_TEST

/* Both results are dropped, and made again from s, which is on the host meanwhile. */
START_TEST(a_dead_tensor_is_swapped_for_the_replays)
{
    struct trace trace;
    struct trace_index trace_index;
    struct virtual_reads reads;
    struct lower *lower;
    struct plan plan;
    uint8_t decisions[256] = {DECIDE_KEEP};
    struct lower_options options = {
        .limit_bytes = 5000, .host_bytes = UINT64_MAX, .with_prefetch = true, .safety = 1.0};
    uint32_t seen = 0;
    uint32_t evicts = 0;
    uint32_t prefetches = 0;

    load(&trace, &trace_index, 1000, 50, false);
    ck_assert_int_eq(virtual_reads_choose(&trace_index, &reads), CAPU_OK);
    ck_assert_int_eq(lower_create(&trace_index, &trace.machine, &reads, &lower), CAPU_OK);
    ck_assert_int_eq(plan_init(&plan, "t", 5000, 1), CAPU_OK);
    lower_use_virtual_reads(lower, true);
    ck_assert_uint_le(lower_gap_count(lower), sizeof(decisions));
    for (uint32_t gap = 0; gap < lower_gap_count(lower); gap++) {
        uint32_t tensor = lower_gap_tensor(lower, gap);
        uint32_t end = lower_gap_end(lower, gap);

        if (end != TRACE_INDEX_NONE && end >= 53 && end < 55 && lower_gap_start(lower, gap) < 53 &&
            tensor != 0 && tensor != 4) {
            decisions[gap] = tensor == 1 ? DECIDE_SWAP : DECIDE_DROP;
            seen++;
        }
    }
    ck_assert_uint_eq(seen, 3);
    ck_assert_int_eq(lower_run(lower, decisions, &options, &plan), CAPU_OK);
    for (uint32_t i = 0; i < plan.action_count; i++) {
        evicts += plan.actions[i].kind == ACTION_EVICT;
        prefetches += plan.actions[i].kind == ACTION_PREFETCH;
        ck_assert(plan.actions[i].kind > ACTION_PREFETCH || plan.actions[i].tensor == 1 ||
                  plan.actions[i].kind == ACTION_DROP);
    }
    ck_assert_uint_eq(evicts, 1);
    ck_assert_uint_eq(prefetches, 1);
    /* The source is not made again: only a and b are. */
    ck_assert_uint_eq(plan.replay_count, 2);
    for (uint32_t i = 0; i < plan.replay_count; i++) {
        ck_assert_uint_ne(plan.replays[i].op, 0);
    }
    plan_finish(&plan);
    lower_destroy(lower);
    virtual_reads_finish(&reads);
    trace_index_finish(&trace_index);
    trace_finish(&trace);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("virtual reads");
    TCase *tests = tcase_create("virtual reads");

    tcase_add_loop_test(tests, a_dead_source_of_larger_idle_results_is_read, 0, 4);
    tcase_add_loop_test(tests, a_source_is_read_by_what_is_needed_soon_after_its_death, 0, 2);
    tcase_add_test(tests, a_dead_tensor_is_swapped_for_the_replays);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

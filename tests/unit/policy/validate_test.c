/* What makes a plan invalid, one rule per case. The tests of the timeline have valid plans. */
#include "tests/unit/policy/fixture.h"

#include "policy/model/validate.h"

#define UPDATE_TRACE                                                                        \
    TRACE_LINE MACHINE_LINE TENSOR_LINE(0, "w", 100, "parameter")                           \
        TENSOR_LINE(1, "x", 100, "activation") OP_LINE("f", 10, "[0]", "[1]", "[]", "true") \
            OP_LINE("u", 10, "[1]", "[]", "[0]", "false")                                   \
                OP_LINE("l", 10, "[1]", "[]", "[]", "false")
#define FIXED_TRACE                                                                        \
    TRACE_LINE MACHINE_LINE                                                                \
        "{\"type\":\"tensor\",\"id\":0,\"name\":\"s\",\"bytes\":5,\"kind\":\"parameter\"," \
        "\"managed\":false}\n" OP_LINE("a", 1, "[0]", "[]", "[]", "true")

/* w is written twice, by ops that can be replayed. */
#define TWICE_TRACE                                                                       \
    TRACE_LINE MACHINE_LINE TENSOR_LINE(0, "w", 100, "parameter")                         \
        TENSOR_LINE(1, "x", 100, "parameter") OP_LINE("f", 10, "[]", "[0]", "[]", "true") \
            OP_LINE("g", 10, "[]", "[0]", "[]", "true")                                   \
                OP_LINE("h", 10, "[1]", "[]", "[]", "true")
#define EMPTY_TRACE TRACE_LINE MACHINE_LINE TENSOR_LINE(0, "w", 100, "parameter")

static const struct {
    const char *trace;
    const char *plan;
    const char *message;
} bad[] = {
    {CHAIN_TRACE, PLAN_LINE(3099, ""), "op 2 (f2): tensor 3 (z) exceeds the budget"},
    {CHAIN_TRACE, PLAN_LINE(99, ""), "at the start: tensor 0 (w) does not fit"},
    {CHAIN_TRACE, PLAN_LINE(9000, "") AFTER("evict", 1, 1),
     "op 3 (b0): tensor 1 (x) is needed and not resident"},
    {CHAIN_TRACE, PLAN_LINE(9000, "") AFTER("evict", 1, 0),
     "op 1 (f1): tensor 1 (x) is needed and not resident"},
    {CHAIN_TRACE, PLAN_LINE(9000, "") AFTER("drop", 1, 1) PREFETCH(1, 3),
     "prefetch at op 3 (b0): tensor 1 (x) has no host copy"},
    {CHAIN_TRACE, PLAN_LINE(9000, "") PREFETCH(1, 3),
     "prefetch at op 3 (b0): tensor 1 (x) is resident already"},
    {CHAIN_TRACE, PLAN_LINE(9000, "") AFTER("drop", 2, 3),
     "drop at op 3 (b0): tensor 2 (y) is not resident"},
    {CHAIN_TRACE, PLAN_LINE(9000, "") AFTER("evict", 1, 3) AFTER("save", 1, 3),
     "save at op 3 (b0): tensor 1 (x) is not resident"},
    {CHAIN_TRACE, PLAN_LINE(9000, "") AFTER("evict", 1, 9), "evict: there is no op 9"},
    {CHAIN_TRACE, PLAN_LINE(9000, "") AFTER("evict", 9, 1), "there is no tensor 9"},
    {CHAIN_TRACE, PLAN_LINE(9000, "") RECOMPUTE(3, REPLAY(3, "[]")), "op 3 is not earlier"},
    {CHAIN_TRACE, PLAN_LINE(9000, "") AFTER("drop", 0, 3),
     "at the end: tensor 0 (w) starts resident but does not end so"},
    {CHAIN_TRACE, PLAN_LINE(9000, "") PREFETCH(0, 0),
     "at the end: tensor 0 (w) starts on the host but does not end so"},
    {CHAIN_TRACE, PLAN_LINE(9000, ",\"host_bytes\":999") AFTER("evict", 1, 1) PREFETCH(1, 3),
     "evict at op 1 (f1): tensor 1 (x) exceeds host_bytes"},
    {CHAIN_TRACE, PLAN_LINE(9000, ",\"host_bytes\":99") PREFETCH(0, 0) AFTER("evict", 0, 3),
     "what starts the iteration on the host exceeds host_bytes"},
    {CHAIN_TRACE, PLAN_LINE(9000, ",\"fixed_bytes\":9001"), "fixed_bytes exceeds the budget"},
    /* y's last access is f2: after that point it is released, whatever an action says. */
    {CHAIN_TRACE, PLAN_LINE(9000, "") AFTER("evict", 2, 2) PREFETCH(2, 3),
     "prefetch at op 3 (b0): tensor 2 (y) has no host copy"},
    /* A replay that keeps y alive until it has ended. */
    {CHAIN_TRACE,
     PLAN_LINE(9000, "") RECOMPUTE(3, REPLAY(2, "[]") "," REPLAY(2, "[]")) AFTER("drop", 2, 3),
     "drop at op 3 (b0): tensor 2 (y) is not resident"},
    /* f read w before u changed it: its replay would see another version. */
    {UPDATE_TRACE, PLAN_LINE(900, "") AFTER("drop", 1, 1) RECOMPUTE(2, REPLAY(0, "[]")),
     "replay 0 (f) before op 2: tensor 0 (w) holds another version than the op saw"},
    {UPDATE_TRACE, PLAN_LINE(900, "") RECOMPUTE(2, REPLAY(1, "[]")), "op 1 (u) is not replayable"},
    /* w's host copy is stale after u: the fetch would return an old version. */
    {UPDATE_TRACE, PLAN_LINE(900, "") AFTER("save", 0, 0) AFTER("drop", 0, 1) PREFETCH(0, 2),
     "prefetch at op 2 (l): tensor 0 (w) has no host copy"},
    {UPDATE_TRACE, PLAN_LINE(900, "") PREFETCH(0, 0) AFTER("drop", 0, 1),
     "at the end: tensor 0 (w) starts on the host but does not end so with its newest version"},
    /* The replay of f leaves its own version of w, and g's is lost. */
    {TWICE_TRACE, PLAN_LINE(900, "") RECOMPUTE(2, REPLAY(0, "[]")),
     "at the end: tensor 0 (w) starts resident but does not end so with its newest version"},
    {EMPTY_TRACE, PLAN_LINE(99, ""), "at the start: tensor 0 (w) does not fit"},
    {CHAIN_TRACE,
     PLAN_LINE(9000, ",\"fixed_bytes\":3100") AFTER("evict", 1, 1)
         PREFETCH(1, 3) "{\"type\":\"place\",\"tensor\":4,\"pages\":[[0,50]]}",
     "evict at op 1 (f1): tensor 1 (x) has no place line and is counted in fixed_bytes"},
    {FIXED_TRACE, PLAN_LINE(900, ""), "at the start: tensor 0 (s) does not fit"},
    {FIXED_TRACE, PLAN_LINE(900, ",\"fixed_bytes\":5") AFTER("evict", 0, 0), "is not managed"},
    {CHAIN_TRACE, PLAN_LINE(9000, "") "{\"type\":\"place\",\"tensor\":4,\"pages\":[[0,49]]}",
     "place: tensor 4 has 49 pages, its bytes need 50"},
    {CHAIN_TRACE,
     PLAN_LINE(9000,
               ",\"fixed_bytes\":3099") "{\"type\":\"place\",\"tensor\":4,\"pages\":[[0,50]]}",
     "op 2 (f2): tensor 3 (z) exceeds fixed_bytes"},
    {CHAIN_TRACE,
     PLAN_LINE(9000, ",\"page_bytes\":1000,\"fixed_bytes\":150") "{\"type\":\"place\",\"tensor\":1,"
                                                                 "\"pages\":[[0,1]]}\n"
                                                                 "{\"type\":\"place\",\"tensor\":2,"
                                                                 "\"pages\":[[1,1]]}\n"
                                                                 "{\"type\":\"place\",\"tensor\":3,"
                                                                 "\"pages\":[[0,1]]}\n",
     "op 2 (f2): tensor 3 (z) takes a page that another tensor holds"},
    {CHAIN_TRACE,
     PLAN_LINE(2000, ",\"page_bytes\":1000,\"fixed_bytes\":150") "{\"type\":\"place\",\"tensor\":1,"
                                                                 "\"pages\":[[0,1]]}\n"
                                                                 "{\"type\":\"place\",\"tensor\":2,"
                                                                 "\"pages\":[[1,1]]}\n",
     "place: 2 pages and fixed_bytes exceed the budget"},
    /* The counts come before every other rule. */
    {CHAIN_TRACE, PLAN_LINE(99, ",\"tensors\":6,\"ops\":4") AFTER("evict", 9, 9),
     "the plan is for another trace: \"t\" with 6 tensors, not \"t\" with 5"},
    {CHAIN_TRACE, PLAN_LINE(99, ",\"tensors\":5,\"ops\":3") AFTER("evict", 9, 9),
     "the plan is for another trace: \"t\" with 3 ops, not \"t\" with 4"},
    {CHAIN_TRACE,
     "{\"type\":\"plan\",\"version\":1,\"trace\":\"t2\",\"tensors\":5,\"ops\":4,\"budget_bytes\":"
     "9}",
     "the plan is for another trace: \"t2\", not \"t\""},
    /* Without counts, or without a name, only the other rules remain. */
    {CHAIN_TRACE, "{\"type\":\"plan\",\"version\":1,\"trace\":\"t2\",\"budget_bytes\":3099}",
     "op 2 (f2): tensor 3 (z) exceeds the budget"},
    {CHAIN_TRACE, "{\"type\":\"plan\",\"version\":1,\"tensors\":5,\"ops\":4,\"budget_bytes\":3099}",
     "op 2 (f2): tensor 3 (z) exceeds the budget"},
};

START_TEST(invalid_plans_are_rejected)
{
    struct error_text error = {""};
    struct trace trace;
    struct trace_index trace_index;
    struct plan plan;

    read_trace(&trace, bad[_i].trace);
    read_plan(&plan, bad[_i].plan);
    ck_assert_int_eq(trace_index_init(&trace_index, &trace, plan.page_bytes, &error), CAPU_OK);
    ck_assert_int_eq(validate_plan(&trace_index, &plan, &error), CAPU_INVALID);
    ck_assert_msg(strstr(error.text, bad[_i].message) != NULL, "\"%s\" is not in \"%s\"",
                  bad[_i].message, error.text);
    trace_index_finish(&trace_index);
    plan_finish(&plan);
    trace_finish(&trace);
}
END_TEST

/* 1024 runs of 2^24 pages of 2^30 bytes are 2^64 bytes, which wraps to what a tensor of 0 bytes
   needs. */
START_TEST(impossibly_many_pages_are_rejected)
{
    struct error_text error = {""};
    struct trace trace;
    struct trace_index trace_index;
    struct plan plan;

    read_trace(&trace, TRACE_LINE MACHINE_LINE TENSOR_LINE(0, "e", 0, "parameter")
                           OP_LINE("a", 1, "[0]", "[]", "[]", "true"));
    ck_assert_int_eq(plan_init(&plan, "t", (uint64_t)1 << 40, (uint64_t)1 << 30), CAPU_OK);
    ck_assert_int_eq(plan_add_place(&plan, 0), CAPU_OK);
    for (int i = 0; i < 1024; i++) {
        ck_assert_int_eq(plan_add_run(&plan, 0, PLAN_PAGES_MAX), CAPU_OK);
    }
    ck_assert_int_eq(trace_index_init(&trace_index, &trace, plan.page_bytes, &error), CAPU_OK);
    ck_assert_int_eq(validate_plan(&trace_index, &plan, &error), CAPU_INVALID);
    ck_assert_msg(strstr(error.text, "too many pages") != NULL, "%s", error.text);
    trace_index_finish(&trace_index);
    plan_finish(&plan);
    trace_finish(&trace);
}
END_TEST

START_TEST(plans_for_other_pages_are_rejected)
{
    struct error_text error = {""};
    struct trace trace;
    struct trace_index trace_index;
    struct plan plan;

    read_trace(&trace, CHAIN_TRACE);
    read_plan(&plan, PLAN_LINE(9000, ",\"page_bytes\":1000"));
    ck_assert_int_eq(trace_index_init(&trace_index, &trace, 500, &error), CAPU_OK);
    ck_assert_int_eq(validate_plan(&trace_index, &plan, &error), CAPU_INVALID);
    ck_assert_str_eq(error.text, "the plan is for pages of another size");
    trace_index_finish(&trace_index);
    plan_finish(&plan);
    trace_finish(&trace);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("policy/validate");
    TCase *tests = tcase_create("validate");

    tcase_add_loop_test(tests, invalid_plans_are_rejected, 0, sizeof(bad) / sizeof(bad[0]));
    tcase_add_test(tests, impossibly_many_pages_are_rejected);
    tcase_add_test(tests, plans_for_other_pages_are_rejected);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

/* Which copies are added to a plan so that other iterations find what it would discard. */
#include "tests/unit/policy/fixture.h"

#include "policy/lower/preserve.h"
#include "policy/model/validate.h"
#include "policy/place/place.h"

#define PAGE ",\"page_bytes\":500"

static struct trace trace;
static struct trace_index trace_index;
static struct plan plan;
static struct error_text error;

static void teardown(void)
{
    plan_finish(&plan);
    trace_index_finish(&trace_index);
    trace_finish(&trace);
}

/*
 * a is made by an op that cannot be repeated, and b by one that reads w, which is updated later. c
 * can be recomputed. No op reads d. e takes the pages of one of them.
 */
#define OPS                                              \
    OP_LINE("make a", 100, "[]", "[1]", "[]", "false")   \
    OP_LINE("make b", 100, "[0,1]", "[2]", "[]", "true") \
    OP_LINE("make c", 100, "[2]", "[3]", "[]", "true")   \
    OP_LINE("make d", 100, "[3]", "[4]", "[]", "false")  \
    OP_LINE("make e", 100, "[]", "[5]", "[]", "true")    \
    OP_LINE("update", 100, "[5]", "[]", "[0]", "false") END_LINE(6, 6)
#define TRACE                                                                           \
    TRACE_LINE MACHINE_LINE TENSOR_LINE(0, "w", 500, "parameter")                       \
        TENSOR_LINE(1, "a", 500, "activation") TENSOR_LINE(2, "b", 500, "activation")   \
            TENSOR_LINE(3, "c", 500, "activation") TENSOR_LINE(4, "d", 500, "gradient") \
                TENSOR_LINE(5, "e", 500, "activation") OPS

#define PLACE(tensor, page) \
    "{\"type\":\"place\",\"tensor\":" #tensor ",\"pages\":[[" #page ",1]]}\n"
#define PLACES(e) PLACE(0, 0) PLACE(1, 1) PLACE(2, 2) PLACE(3, 3) PLACE(4, 4) PLACE(5, e)

static void preserve(const uint32_t *freed, enum preserve what)
{
    struct program program;

    ck_assert_int_eq(program_init(&program, &trace_index, &plan, &error), CAPU_OK);
    ck_assert_int_eq(preserve_contents(&program, freed, what, &plan), CAPU_OK);
    program_finish(&program);
}

static void preserve_in(const char *lines, const uint32_t *freed, enum preserve what)
{
    read_trace(&trace, TRACE);
    read_plan(&plan, lines);
    ck_assert_int_eq(trace_index_init(&trace_index, &trace, 500, &error), CAPU_OK);
    ck_assert_msg(validate_plan(&trace_index, &plan, &error) == CAPU_OK, "%s", error.text);
    preserve(freed, what);
    ck_assert_msg(validate_plan(&trace_index, &plan, &error) == CAPU_OK, "%s", error.text);
}

/* e takes the pages of a, b, c, d or of none. */
START_TEST(a_copy_is_added_where_nothing_else_helps)
{
    static const struct {
        const char *lines;
        enum preserve what;
        uint32_t saved; /* after the op of this number less one; 0: none */
    } cases[] = {
        {PLAN_LINE(3000, PAGE) PLACES(1), PRESERVE_ALL, 1},
        {PLAN_LINE(3000, PAGE) PLACES(1), PRESERVE_UNREAD, 0},
        {PLAN_LINE(3000, PAGE) PLACES(2), PRESERVE_ALL, 2},
        {PLAN_LINE(3000, PAGE) PLACES(3), PRESERVE_ALL, 0},
        {PLAN_LINE(3000, PAGE) PLACES(4), PRESERVE_ALL, 4},
        {PLAN_LINE(3000, PAGE) PLACES(4), PRESERVE_UNREAD, 4},
        {PLAN_LINE(3000, PAGE) PLACES(4), PRESERVE_NOTHING, 0},
        {PLAN_LINE(3000, PAGE) PLACES(5), PRESERVE_ALL, 0},
    };

    preserve_in(cases[_i].lines, NULL, cases[_i].what);
    ck_assert_uint_eq(plan.action_count, cases[_i].saved > 0);
    if (cases[_i].saved > 0) {
        ck_assert_uint_eq(plan.actions[0].kind, ACTION_SAVE);
        ck_assert_uint_eq(plan.actions[0].tensor, cases[_i].saved);
        ck_assert_uint_eq(plan.actions[0].point, cases[_i].saved - 1);
    }
}
END_TEST

/* What the program frees before its pages are taken need not be kept; what it frees later must. */
START_TEST(freed_tensors_need_no_copy)
{
    uint32_t freed[6] = {TRACE_INDEX_NONE, 4 + (uint32_t)_i, TRACE_INDEX_NONE,
                         TRACE_INDEX_NONE, TRACE_INDEX_NONE, TRACE_INDEX_NONE};

    preserve_in(PLAN_LINE(3000, PAGE) PLACES(1), freed, PRESERVE_ALL);
    ck_assert_uint_eq(plan.action_count, _i);
}
END_TEST

/* Without places any tensor may take a page as soon as it is released. */
START_TEST(plans_without_places_keep_what_nothing_can_remake)
{
    uint32_t freed[6] = {TRACE_INDEX_NONE, 2, TRACE_INDEX_NONE,
                         TRACE_INDEX_NONE, 4, TRACE_INDEX_NONE};

    preserve_in(PLAN_LINE(3000, PAGE), NULL, PRESERVE_UNREAD);
    ck_assert_uint_eq(plan.action_count, 1);
    ck_assert_uint_eq(plan.actions[0].kind, ACTION_SAVE);
    ck_assert_uint_eq(plan.actions[0].tensor, 4);
    teardown();
    preserve_in(PLAN_LINE(3000, PAGE), NULL, PRESERVE_ALL);
    ck_assert_uint_eq(plan.action_count, 3);
    teardown();
    preserve_in(PLAN_LINE(3000, PAGE), freed, PRESERVE_ALL); /* a and d, before the next op */
    ck_assert_uint_eq(plan.action_count, 1);
    ck_assert_uint_eq(plan.actions[0].tensor, 2);
}
END_TEST

/* A drop that discards contents becomes an eviction; one copy is enough. */
START_TEST(drops_become_evictions)
{
    preserve_in(PLAN_LINE(3000, PAGE) AFTER("drop", 1, 1) PLACES(1), NULL, PRESERVE_ALL);
    ck_assert_uint_eq(plan.action_count, 1);
    ck_assert_uint_eq(plan.actions[0].kind, ACTION_EVICT);
}
END_TEST

/* The op that made a cannot be run again once x, its other output, is newer. */
START_TEST(a_newer_output_prevents_a_replay)
{
    read_trace(&trace,
               TRACE_LINE MACHINE_LINE TENSOR_LINE(0, "a", 500, "activation")
                   TENSOR_LINE(1, "x", 500, "activation") TENSOR_LINE(2, "e", 500, "activation")
                       OP_LINE("make a and x", 100, "[]", "[0,1]", "[]", "true")
                           OP_LINE("make x", 100, "[0]", "[1]", "[]", "true")
                               OP_LINE("make e", 100, "[1]", "[2]", "[]", "true") END_LINE(3, 3));
    read_plan(&plan, PLAN_LINE(1000, PAGE) PLACE(0, 0) PLACE(1, 1) PLACE(2, 0));
    ck_assert_int_eq(trace_index_init(&trace_index, &trace, 500, &error), CAPU_OK);
    preserve(NULL, PRESERVE_ALL);
    ck_assert_uint_eq(plan.action_count, 1);
    ck_assert_uint_eq(plan.actions[0].kind, ACTION_SAVE);
    ck_assert_uint_eq(plan.actions[0].tensor, 0);
}
END_TEST

/* A plan that copies the tensor anyway, or drops what can be recomputed, stays as it is. */
START_TEST(other_plans_stay_as_they_are)
{
    static const char *const plans[] = {
        PLAN_LINE(3000, PAGE) AFTER("save", 1, 0) PLACES(1),
        PLAN_LINE(3000, PAGE) AFTER("drop", 3, 3) PLACES(3),
    };
    uint32_t kind;

    preserve_in(plans[_i], NULL, PRESERVE_ALL);
    kind = _i == 0 ? ACTION_SAVE : ACTION_DROP;
    ck_assert_uint_eq(plan.action_count, 1);
    ck_assert_uint_eq(plan.actions[0].kind, kind);
}
END_TEST

/* a is dropped as soon as it is made, made again when x is, and dead until it is overwritten. The
   update of x then prevents another replay. */
START_TEST(what_a_replay_makes_for_nothing_is_preserved)
{
    read_trace(&trace,
               TRACE_LINE MACHINE_LINE TENSOR_LINE(0, "a", 500, "activation")
                   TENSOR_LINE(1, "x", 500, "activation") TENSOR_LINE(2, "e", 500, "activation")
                       OP_LINE("make a and x", 100, "[]", "[0,1]", "[]",
                               "true") OP_LINE("make e", 100, "[]", "[2]", "[]", "true")
                           OP_LINE("update", 100, "[]", "[]", "[1]", "false")
                               OP_LINE("overwrite", 100, "[]", "[0]", "[]", "true") END_LINE(3, 4));
    read_plan(&plan, PLAN_LINE(1500, PAGE) AFTER("drop", 0, 0) AFTER("drop", 1, 0)
                         RECOMPUTE(2, REPLAY(0, "[0]")) PLACE(0, 0) PLACE(1, 1) PLACE(2, 2));
    ck_assert_int_eq(trace_index_init(&trace_index, &trace, 500, &error), CAPU_OK);
    ck_assert_msg(validate_plan(&trace_index, &plan, &error) == CAPU_OK, "%s", error.text);
    preserve(NULL, PRESERVE_ALL);
    ck_assert_msg(validate_plan(&trace_index, &plan, &error) == CAPU_OK, "%s", error.text);
    ck_assert_uint_eq(plan.actions[0].kind, ACTION_EVICT);
    ck_assert_uint_eq(plan.actions[1].kind, ACTION_DROP);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("policy/preserve");
    TCase *tests = tcase_create("preserve");

    tcase_add_checked_fixture(tests, NULL, teardown);
    tcase_add_loop_test(tests, a_copy_is_added_where_nothing_else_helps, 0, 8);
    tcase_add_loop_test(tests, freed_tensors_need_no_copy, 0, 2);
    tcase_add_test(tests, plans_without_places_keep_what_nothing_can_remake);
    tcase_add_test(tests, a_newer_output_prevents_a_replay);
    tcase_add_test(tests, drops_become_evictions);
    tcase_add_loop_test(tests, other_plans_stay_as_they_are, 0, 2);
    tcase_add_test(tests, what_a_replay_makes_for_nothing_is_preserved);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

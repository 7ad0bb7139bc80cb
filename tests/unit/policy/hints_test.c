/* Why a plan may not follow a hint, and whether it does. */
#include "policy/model/hints.h"
#include "tests/unit/policy/fixture.h"

static struct trace trace;
static struct trace_index trace_index;

static void teardown(void)
{
    trace_index_finish(&trace_index);
    trace_finish(&trace);
}

#define HINTED(id, name, kind, hint)                                                            \
    "{\"type\":\"tensor\",\"id\":" #id ",\"name\":\"" name "\",\"bytes\":1000,\"kind\":\"" kind \
    "\",\"hint\":\"" hint "\"}\n"

/* w is updated at the end; x and y come from replayable ops, z does not; y is computed from v,
   which is overwritten. */
#define HINTED_TRACE                                                                         \
    TRACE_LINE HINTED(0, "w", "parameter", "recompute") HINTED(1, "v", "activation", "keep") \
        HINTED(2, "x", "activation", "recompute") HINTED(3, "y", "activation", "recompute")  \
            HINTED(4, "z", "activation", "recompute") HINTED(5, "s", "activation", "swap")   \
                OP_LINE("make v", 10, "[0]", "[1,5]", "[]", "true")                          \
                    OP_LINE("make x", 10, "[0]", "[2]", "[]", "true")                        \
                        OP_LINE("make y", 10, "[1]", "[3]", "[]", "true")                    \
                            OP_LINE("make z", 10, "[1]", "[4]", "[]", "false")               \
                                OP_LINE("make v again", 10, "[0]", "[1]", "[]", "true")      \
                                    OP_LINE("use", 10, "[2,3,4,5]", "[]", "[]", "false")     \
                                        OP_LINE("update", 10, "[1]", "[]", "[0]", "false")

static struct hint_reason reason_of(uint32_t tensor)
{
    return hint_reason_of(&trace_index, tensor);
}

START_TEST(reasons_are_found)
{
    char text[200];

    read_trace(&trace, HINTED_TRACE);
    ck_assert_int_eq(trace_index_init(&trace_index, &trace, 1, NULL), CAPU_OK);
    ck_assert_int_eq(reason_of(0).obstacle, OBSTACLE_PERSISTENT);
    ck_assert_int_eq(reason_of(1).obstacle, OBSTACLE_COST);
    ck_assert_int_eq(reason_of(2).obstacle, OBSTACLE_COST);
    ck_assert_int_eq(reason_of(3).obstacle, OBSTACLE_OVERWRITTEN);
    ck_assert_uint_eq(reason_of(3).op, 4);
    ck_assert_int_eq(reason_of(4).obstacle, OBSTACLE_NOT_REPLAYABLE);
    ck_assert_uint_eq(reason_of(4).op, 3);
    ck_assert_int_eq(reason_of(5).obstacle, OBSTACLE_COST);
    hint_reason_text(CAPU_HINT_RECOMPUTE, OBSTACLE_NOT_REPLAYABLE, "make z", text, sizeof(text));
    ck_assert_str_eq(text, "op 'make z', which computes it, is not replayable");
    hint_reason_text(CAPU_HINT_KEEP, OBSTACLE_COST, "", text, sizeof(text));
    ck_assert_str_eq(text, "the budget has no room for it all the time");
}
END_TEST

static bool is_ignored(const char *text, uint32_t tensor)
{
    struct plan plan = {0};
    bool ignored;

    read_plan(&plan, text);
    ignored = hint_is_ignored(&trace_index, &plan, tensor);
    plan_finish(&plan);
    return ignored;
}

START_TEST(ignored_hints_are_found)
{
    const char *swaps_x = PLAN_LINE(4000, "") AFTER("evict", 2, 1) PREFETCH(2, 5);
    const char *drops_s = PLAN_LINE(4000, "") AFTER("drop", 5, 0);
    const char *drops_v = PLAN_LINE(4000, "") AFTER("drop", 1, 3);
    const char *swaps_v = PLAN_LINE(4000, "") AFTER("evict", 1, 4) PREFETCH(1, 6);

    read_trace(&trace, HINTED_TRACE);
    ck_assert_int_eq(trace_index_init(&trace_index, &trace, 1, NULL), CAPU_OK);
    ck_assert(is_ignored(swaps_x, 2));
    ck_assert(!is_ignored(swaps_x, 3));
    ck_assert(is_ignored(drops_s, 5));
    ck_assert(!is_ignored(drops_v, 1)); /* it is overwritten next */
    ck_assert(is_ignored(swaps_v, 1));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("hints");
    TCase *tcase = tcase_create("hints");

    tcase_add_checked_fixture(tcase, NULL, teardown);
    tcase_add_test(tcase, reasons_are_found);
    tcase_add_test(tcase, ignored_hints_are_found);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}

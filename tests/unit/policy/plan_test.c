/* Plans are built, written and read back. */
#include "tests/unit/policy/fixture.h"

static const char *const written =
    "{\"type\":\"plan\",\"version\":1,\"trace\":\"a \\\"b\\\"\",\"tensors\":41,\"ops\":98,"
    "\"budget_bytes\":4096,\"page_bytes\":512,\"fixed_bytes\":7,\"host_bytes\":99}\n"
    "{\"type\":\"evict\",\"tensor\":12,\"after\":40}\n"
    "{\"type\":\"recompute\",\"before\":88,\"replays\":[{\"op\":15,\"drop\":[]},{\"op\":16,"
    "\"drop\":[30,31]}]}\n"
    "{\"type\":\"prefetch\",\"tensor\":12,\"before\":97}\n"
    "{\"type\":\"place\",\"tensor\":12,\"pages\":[[0,3],[7,1]]}\n";

START_TEST(plans_are_written_exactly)
{
    struct plan plan;
    struct string_buffer text = {0};

    ck_assert_int_eq(plan_init(&plan, "a \"b\"", 4096, 512), CAPU_OK);
    plan.trace_tensors = 41;
    plan.trace_ops = 98;
    plan.fixed_bytes = 7;
    plan.host_bytes = 99;
    ck_assert_int_eq(plan_add(&plan, ACTION_EVICT, 12, 40), CAPU_OK);
    ck_assert_int_eq(plan_add_recompute(&plan, 88), CAPU_OK);
    ck_assert_int_eq(plan_add_replay(&plan, 15), CAPU_OK);
    ck_assert_int_eq(plan_add_replay(&plan, 16), CAPU_OK);
    ck_assert_int_eq(plan_add_drop(&plan, 30), CAPU_OK);
    ck_assert_int_eq(plan_add_drop(&plan, 31), CAPU_OK);
    ck_assert_int_eq(plan_add(&plan, ACTION_PREFETCH, 12, 97), CAPU_OK);
    ck_assert_int_eq(plan_add_place(&plan, 12), CAPU_OK);
    ck_assert_int_eq(plan_add_run(&plan, 0, 3), CAPU_OK);
    ck_assert_int_eq(plan_add_run(&plan, 7, 1), CAPU_OK);
    ck_assert_int_eq(plan_write(&plan, &text, NULL), CAPU_OK);
    ck_assert_str_eq(text.data, written);
    string_buffer_finish(&text);
    plan_finish(&plan);
}
END_TEST

START_TEST(written_plans_can_be_read)
{
    struct plan plan;
    struct string_buffer text = {0};

    read_plan(&plan, written);
    ck_assert_uint_eq(plan.trace_tensors, 41);
    ck_assert_uint_eq(plan.trace_ops, 98);
    ck_assert_uint_eq(plan.host_bytes, 99);
    ck_assert_int_eq(plan_write(&plan, &text, NULL), CAPU_OK);
    ck_assert_str_eq(text.data, written);
    string_buffer_finish(&text);
    plan_finish(&plan);
}
END_TEST

/* Plans of older versions say nothing about their trace but its name, and stay as they are. */
START_TEST(counts_of_the_trace_may_be_missing)
{
    static const char text[] = PLAN_LINE(4096, ",\"page_bytes\":512");
    struct plan plan;
    struct string_buffer again = {0};

    read_plan(&plan, text);
    ck_assert_uint_eq(plan.trace_tensors, PLAN_COUNT_UNKNOWN);
    ck_assert_uint_eq(plan.trace_ops, PLAN_COUNT_UNKNOWN);
    ck_assert_int_eq(plan_write(&plan, &again, NULL), CAPU_OK);
    ck_assert_str_eq(again.data, text);
    string_buffer_finish(&again);
    plan_finish(&plan);
}
END_TEST

static const struct {
    const char *text;
    const char *message;
} bad[] = {
    {PLAN_LINE(1, ",\"tensors\":-1"), "f:1: \"tensors\" is not a number of 0 or more"},
    {PLAN_LINE(1, ",\"ops\":4294967295"), "f:1: \"ops\" is too large"},
    {"\n\n", "f: empty"},
    {TRACE_LINE, "f:1: a plan begins with a line of type \"plan\""},
    {"{\"type\":\"plan\",\"version\":1}", "f:1: \"budget_bytes\" is missing"},
    {PLAN_LINE(1, "") PLAN_LINE(1, ""), "f:2: a second line of type"},
    {PLAN_LINE(1, "") "{\"type\":\"evict\",\"tensor\":1,\"before\":2}",
     "f:2: \"after\" is missing"},
    {PLAN_LINE(1, "") "{\"type\":\"keep\"}", "f:2: unknown \"type\""},
    {PLAN_LINE(1, "") "{\"type\":\"recompute\",\"before\":2}", "\"replays\" is not a list"},
    {PLAN_LINE(1, "") "{\"type\":\"recompute\",\"before\":2,\"replays\":[1]}",
     "an entry of \"replays\" is not an object"},
    {PLAN_LINE(1, "") "{\"type\":\"place\",\"tensor\":2,\"pages\":[[1]]}",
     "an entry of \"pages\" is not [first, count]"},
};

START_TEST(errors_name_the_place)
{
    struct error_text error = {""};
    struct plan plan;

    ck_assert_int_eq(plan_read(&plan, "f", bad[_i].text, strlen(bad[_i].text), &error),
                     CAPU_FILE_FAILED);
    ck_assert_msg(strstr(error.text, bad[_i].message) != NULL, "\"%s\" is not in \"%s\"",
                  bad[_i].message, error.text);
    ck_assert_ptr_null(plan.trace);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("policy/plan");
    TCase *tests = tcase_create("plan");

    tcase_add_test(tests, plans_are_written_exactly);
    tcase_add_test(tests, written_plans_can_be_read);
    tcase_add_test(tests, counts_of_the_trace_may_be_missing);
    tcase_add_loop_test(tests, errors_name_the_place, 0, sizeof(bad) / sizeof(bad[0]));
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

/* Versions, the unconstrained peak and the floor. */
#include "tests/unit/policy/fixture.h"

static struct trace trace;
static struct trace_index trace_index;

static void teardown(void)
{
    trace_index_finish(&trace_index);
    trace_finish(&trace);
}

START_TEST(peak_and_floor_are_found)
{
    read_trace(&trace, CHAIN_TRACE);
    ck_assert_int_eq(trace_index_init(&trace_index, &trace, 1, NULL), CAPU_OK);
    ck_assert_uint_eq(trace_index.peak_bytes, 3100);
    ck_assert_uint_eq(trace_index.peak_op, 2);
    ck_assert_uint_eq(trace_index.floor_bytes, 2050);
    ck_assert_uint_eq(trace_index.floor_op, 3);
    ck_assert_uint_eq(trace_index.first[2] - trace_index.first[1], 3);
    ck_assert_uint_eq(trace_index.op[trace_index.first[1] + 2], 3);
    ck_assert_uint_eq(trace_index.role[trace_index.first[1]], USE_WRITE);
}
END_TEST

START_TEST(sizes_are_rounded_to_pages)
{
    read_trace(&trace, CHAIN_TRACE);
    ck_assert_int_eq(trace_index_init(&trace_index, &trace, 512, NULL), CAPU_OK);
    ck_assert_uint_eq(trace_index.rounded[0], 512);
    ck_assert_uint_eq(trace_index.rounded[1], 1024);
    ck_assert_uint_eq(trace_index.peak_bytes, 512 + 3 * 1024);
    ck_assert_uint_eq(trace_index.floor_bytes, 2 * 1024 + 512);
}
END_TEST

START_TEST(writes_start_new_versions)
{
    read_trace(&trace,
               TRACE_LINE TENSOR_LINE(0, "w", 4, "parameter") TENSOR_LINE(1, "x", 4, "activation")
                   OP_LINE("a", 1, "[0]", "[1]", "[]", "true")
                       OP_LINE("b", 1, "[1]", "[]", "[0]", "false")
                           OP_LINE("c", 1, "[0]", "[1]", "[]", "true"));
    ck_assert_int_eq(trace_index_init(&trace_index, &trace, 1, NULL), CAPU_OK);
    ck_assert_uint_eq(trace_index.version[0], 0); /* a reads w */
    ck_assert_uint_eq(trace_index.version[1], 1); /* a writes x */
    ck_assert_uint_eq(trace_index.version[2], 1); /* b reads x */
    ck_assert_uint_eq(trace_index.version[3], 0); /* b sees w before it makes the next */
    ck_assert_uint_eq(trace_index.version[4], 1); /* c reads w */
    ck_assert_uint_eq(trace_index.version[5], 2); /* c writes x */
    ck_assert_uint_eq(trace_index.final_version[0], 1);
    ck_assert_uint_eq(trace_index.final_version[1], 2);
}
END_TEST

START_TEST(unmanaged_tensors_are_fixed)
{
    read_trace(&trace, TRACE_LINE
               "{\"type\":\"tensor\",\"id\":0,\"name\":\"s\",\"bytes\":5,\"kind\":\"parameter\","
               "\"managed\":false}\n"
               "{\"type\":\"tensor\",\"id\":1,\"name\":\"t\",\"bytes\":6,\"kind\":\"activation\","
               "\"managed\":false}\n" TENSOR_LINE(2, "u", 7, "activation")
                   OP_LINE("a", 1, "[0]", "[2]", "[]", "true")
                       OP_LINE("b", 1, "[]", "[1]", "[]", "true"));
    ck_assert_int_eq(trace_index_init(&trace_index, &trace, 1, NULL), CAPU_OK);
    ck_assert_uint_eq(trace_index.fixed_bytes, 11);
    ck_assert_uint_eq(trace_index.floor_bytes, 18);
    ck_assert_uint_eq(trace_index.peak_bytes, 18);
}
END_TEST

START_TEST(a_read_before_any_write_is_rejected)
{
    struct error_text error = {""};

    read_trace(&trace, TRACE_LINE TENSOR_LINE(0, "x", 4, "activation")
                           OP_LINE("a", 1, "[0]", "[]", "[]", "true"));
    ck_assert_int_eq(trace_index_init(&trace_index, &trace, 1, &error), CAPU_INVALID);
    ck_assert_str_eq(error.text, "op 0 (a) reads tensor 0 (x), which nothing has written");
    ck_assert_int_eq(trace_index_init(&trace_index, &trace, 0, &error), CAPU_INVALID);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("policy/trace_index");
    TCase *tests = tcase_create("trace_index");

    tcase_add_checked_fixture(tests, NULL, teardown);
    tcase_add_test(tests, peak_and_floor_are_found);
    tcase_add_test(tests, sizes_are_rounded_to_pages);
    tcase_add_test(tests, writes_start_new_versions);
    tcase_add_test(tests, unmanaged_tensors_are_fixed);
    tcase_add_test(tests, a_read_before_any_write_is_rejected);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

/* Building a trace, and writing it. */
#include "policy/format/trace.h"

#include "tests/support/suite.h"

#include <stdio.h>
#include <string.h>

static struct trace trace;
static struct error_text error;

static void setup(void)
{
    ck_assert_int_eq(trace_init(&trace, "t", &error), CAPU_OK);
}

static void teardown(void)
{
    trace_finish(&trace);
}

static uint32_t add_tensor(const char *name, uint64_t bytes, capu_kind kind)
{
    struct tensor_description description = {.name = name, .bytes = bytes, .kind = kind};
    uint32_t id = UINT32_MAX;

    ck_assert_int_eq(trace_add_tensor(&trace, &description, &id, &error), CAPU_OK);
    return id;
}

START_TEST(traces_are_flat_arrays)
{
    uint32_t w = add_tensor("w", 100, CAPU_PARAMETER);
    uint32_t x = add_tensor("x", 7, CAPU_ACTIVATION);
    uint32_t y = add_tensor("y", 9, CAPU_KIND_UNKNOWN);
    struct op_description description = {.name = "f",
                                         .segment = "block",
                                         .ns = 5,
                                         .reads = (uint32_t[]){w, x},
                                         .read_count = 2,
                                         .writes = &y,
                                         .write_count = 1,
                                         .replayable = true};

    ck_assert_int_eq(trace_add_op(&trace, &description, &error), CAPU_OK);
    ck_assert_int_eq(trace_add_op(&trace, &description, &error), CAPU_OK);
    ck_assert_uint_eq(trace.tensor_count, 3);
    ck_assert(trace.tensors[w].persistent);
    ck_assert(!trace.tensors[x].persistent);
    ck_assert_uint_eq(trace.tensors[y].kind, CAPU_ACTIVATION);
    ck_assert_uint_eq(trace.op_count, 2);
    ck_assert_uint_eq(trace.ops[0].segment, trace.ops[1].segment);
    ck_assert_str_eq(trace_text(&trace, trace.ops[1].segment), "block");
    ck_assert_uint_eq(trace_reads(&trace, &trace.ops[1])[1], x);
    ck_assert_uint_eq(trace_writes(&trace, &trace.ops[1])[0], y);
    ck_assert_uint_eq(trace.total_bytes, 116);
    ck_assert_uint_eq(trace.total_ns, 10);
}
END_TEST

START_TEST(bad_entries_are_rejected_without_a_change)
{
    uint32_t x = add_tensor("x", 7, CAPU_ACTIVATION);
    uint32_t unknown_tensor = 9;
    struct op_description twice = {
        .name = "f", .reads = &x, .read_count = 1, .writes = &x, .write_count = 1};
    struct op_description unknown = {.name = "g", .reads = &unknown_tensor, .read_count = 1};
    struct op_description update = {
        .name = "h", .updates = &x, .update_count = 1, .replayable = true};
    struct op_description fine = {.name = "i", .updates = &x, .update_count = 1};
    struct op_description slow = {.name = "j", .ns = TRACE_NS_MAX + 1};
    struct tensor_description huge = {.name = "y", .bytes = TRACE_BYTES_MAX};
    struct tensor_description fixed = {.name = "z", .bytes = 1, .fixed_bytes = 2};

    ck_assert_int_eq(trace_add_op(&trace, &twice, &error), CAPU_INVALID);
    ck_assert_str_eq(error.text, "op 0 (f): names tensor 0 (x) twice");
    ck_assert_int_eq(trace_add_op(&trace, &unknown, &error), CAPU_INVALID);
    ck_assert_str_eq(error.text, "op 0 (g): there is no tensor 9");
    ck_assert_int_eq(trace_add_op(&trace, &update, &error), CAPU_INVALID);
    ck_assert_int_eq(trace_add_op(&trace, &slow, &error), CAPU_TOO_LARGE);
    ck_assert_int_eq(trace_add_tensor(&trace, &huge, NULL, &error), CAPU_TOO_LARGE);
    ck_assert_int_eq(trace_add_tensor(&trace, &fixed, NULL, NULL), CAPU_INVALID);
    ck_assert_uint_eq(trace.op_count, 0);
    ck_assert_uint_eq(trace.operand_count, 0);
    ck_assert_uint_eq(trace.tensor_count, 1);
    /* The rejected ops named x: that must not count against this one. */
    ck_assert_int_eq(trace_add_op(&trace, &fine, &error), CAPU_OK);
}
END_TEST

START_TEST(a_machine_without_a_link_is_rejected)
{
    struct machine machine = {.name = "m", .d2h_bytes_per_s = 0, .h2d_bytes_per_s = 12000000000};

    ck_assert_int_eq(trace_set_machine(&trace, &machine, &error), CAPU_INVALID);
    ck_assert(!trace.has_machine);
}
END_TEST

START_TEST(traces_can_grow)
{
    for (uint32_t i = 0; i < 1000; i++) {
        char name[16];
        struct op_description description = {.name = name, .ns = 1, .writes = &i, .write_count = 1};

        snprintf(name, sizeof(name), "n%u", i);
        ck_assert_uint_eq(add_tensor(name, i + 1, CAPU_GRADIENT), i);
        ck_assert_int_eq(trace_add_op(&trace, &description, &error), CAPU_OK);
    }
    ck_assert_str_eq(trace_tensor_name(&trace, 617), "n617");
    ck_assert_str_eq(trace_op_name(&trace, 999), "n999");
    ck_assert_uint_eq(trace_writes(&trace, &trace.ops[999])[0], 999);
}
END_TEST

START_TEST(traces_are_written_exactly)
{
    struct machine machine = {.name = "m",
                              .memory_bytes = 1000,
                              .d2h_bytes_per_s = 2000000,
                              .h2d_bytes_per_s = 3000000,
                              .copy_latency_ns = 4};
    struct tensor_description odd = {.name = "a \"quoted\" name\n",
                                     .bytes = 5,
                                     .kind = CAPU_WORKSPACE,
                                     .hint = CAPU_HINT_SWAP,
                                     .persistent = true,
                                     .unmanaged = true,
                                     .scales = true,
                                     .fixed_bytes = 3};
    uint32_t w = add_tensor("w", 100, CAPU_PARAMETER);
    struct op_description update = {
        .name = "sgd", .segment = "s", .ns = 6, .updates = &w, .update_count = 1, .scales = true};
    struct string_buffer text = {0};

    ck_assert_int_eq(trace_set_machine(&trace, &machine, &error), CAPU_OK);
    ck_assert_int_eq(trace_add_tensor(&trace, &odd, NULL, &error), CAPU_OK);
    ck_assert_int_eq(trace_add_op(&trace, &update, &error), CAPU_OK);
    trace.batch = 8;
    ck_assert_int_eq(trace_write(&trace, &text, &error), CAPU_OK);
    ck_assert_str_eq(
        text.data,
        "{\"type\":\"trace\",\"version\":1,\"name\":\"t\",\"batch\":8}\n"
        "{\"type\":\"machine\",\"name\":\"m\",\"memory_bytes\":1000,\"d2h_bytes_per_s\":2000000,"
        "\"h2d_bytes_per_s\":3000000,\"copy_latency_ns\":4}\n"
        "{\"type\":\"tensor\",\"id\":0,\"name\":\"w\",\"bytes\":100,\"kind\":\"parameter\"}\n"
        "{\"type\":\"tensor\",\"id\":1,\"name\":\"a \\\"quoted\\\" name\\n\",\"bytes\":5,"
        "\"kind\":\"workspace\",\"persistent\":true,\"managed\":false,\"hint\":\"swap\","
        "\"scales\":true,\"fixed_bytes\":3}\n"
        "{\"type\":\"op\",\"name\":\"sgd\",\"ns\":6,\"reads\":[],\"writes\":[],\"updates\":[0],"
        "\"replayable\":false,\"scales\":true,\"segment\":\"s\"}\n"
        "{\"type\":\"end\",\"tensors\":2,\"ops\":1}\n");
    string_buffer_finish(&text);
}
END_TEST

START_TEST(a_name_that_is_not_utf8_is_rejected)
{
    struct string_buffer text = {0};

    add_tensor("\xff\xfe", 1, CAPU_INPUT);
    ck_assert_int_eq(trace_write(&trace, &text, &error), CAPU_INVALID);
    ck_assert_str_eq(error.text, "tensor 0: its name is not UTF-8");
    string_buffer_finish(&text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("policy/trace");
    TCase *tests = tcase_create("trace");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, traces_are_flat_arrays);
    tcase_add_test(tests, bad_entries_are_rejected_without_a_change);
    tcase_add_test(tests, a_machine_without_a_link_is_rejected);
    tcase_add_test(tests, traces_can_grow);
    tcase_add_test(tests, traces_are_written_exactly);
    tcase_add_test(tests, a_name_that_is_not_utf8_is_rejected);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

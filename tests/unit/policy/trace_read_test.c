/* Reading traces: what is written is read back unchanged, and errors name file, line and field. */
#include "tests/unit/policy/fixture.h"

#include "policy/format/json_lines.h"

START_TEST(written_traces_can_be_read)
{
    struct trace trace;
    struct trace again;
    struct string_buffer first = {0};
    struct string_buffer second = {0};

    read_trace(&trace, CHAIN_TRACE);
    ck_assert_int_eq(trace_write(&trace, &first, NULL), CAPU_OK);
    read_trace(&again, first.data);
    ck_assert_int_eq(trace_write(&again, &second, NULL), CAPU_OK);
    ck_assert_str_eq(first.data, second.data);
    ck_assert_uint_eq(again.total_ns, 9000);
    ck_assert_uint_eq(again.machine.copy_latency_ns, 10);
    string_buffer_finish(&first);
    string_buffer_finish(&second);
    trace_finish(&trace);
    trace_finish(&again);
}
END_TEST

START_TEST(unknown_keys_and_blank_lines_are_ignored)
{
    struct trace trace;

    read_trace(&trace, "{\"type\":\"trace\",\"version\":1,\"name\":\"t\",\"by\":[{}]}\n\n  \r\n"
                       "{\"type\":\"tensor\",\"id\":0,\"bytes\":0,\"kind\":\"input\",\"a\":null}");
    ck_assert_uint_eq(trace.tensor_count, 1);
    ck_assert(!trace.has_machine);
    trace_finish(&trace);
}
END_TEST

static const struct {
    const char *text;
    const char *message;
} bad[] = {
    {"", "f: empty"},
    {"{\"type\":\"plan\"}", "f:1: a trace begins with a line of type \"trace\""},
    {"{\"type\":\"trace\"}", "f:1: \"version\" is missing"},
    {"{\"type\":\"trace\",\"version\":2}", "f:1: only version 1 is known"},
    {"{\"version\":1}", "f:1: \"type\" is missing"},
    {"[]", "f:1: not an object"},
    {"{\"type\":\"trace\",\"version\":1,\"version\":1}", "duplicate object key"},
    {"[[[[[[[[[[[[[[[[[[[[", "f:1: nested too deeply"},
    {TRACE_LINE TRACE_LINE, "f:2: a second line of type"},
    {TRACE_LINE MACHINE_LINE MACHINE_LINE, "f:3: a second machine"},
    {TRACE_LINE "{\"type\":\"tensr\"}", "f:2: unknown \"type\""},
    {TRACE_LINE "{\"type\":\"tensor\",\"id\":1,\"bytes\":1,\"kind\":\"input\"}",
     "f:2: \"id\" is not the next one"},
    {TRACE_LINE "{\"type\":\"tensor\",\"id\":0,\"bytes\":-1,\"kind\":\"input\"}",
     "f:2: \"bytes\" is not a number of 0 or more"},
    {TRACE_LINE "{\"type\":\"tensor\",\"id\":0,\"bytes\":1e3,\"kind\":\"input\"}",
     "f:2: \"bytes\" is not a number of 0 or more"},
    {TRACE_LINE "{\"type\":\"tensor\",\"id\":0,\"bytes\":9000000000000000,\"kind\":\"input\"}",
     "f:2: \"bytes\" is too large"},
    {TRACE_LINE "{\"type\":\"tensor\",\"id\":0,\"bytes\":1,\"kind\":\"weight\"}",
     "f:2: unknown \"kind\""},
    {TRACE_LINE "{\"type\":\"op\",\"ns\":1,\"reads\":[0]}", "f:2: op 0 (): there is no tensor 0"},
    {TRACE_LINE "{\"type\":\"op\",\"ns\":1,\"reads\":[\"0\"]}",
     "f:2: \"reads\" has an entry that is not an id"},
    {TRACE_LINE "{\"type\":\"op\",\"ns\":1,\"reads\":0}", "f:2: \"reads\" is not a list"},
    {TRACE_LINE "{\"type\":\"op\",\"ns\":1,\"replayable\":1}",
     "f:2: \"replayable\" is neither true nor false"},
    {TRACE_LINE "{\"type\":\"machine\",\"d2h_bytes_per_s\":0,\"h2d_bytes_per_s\":1000000}",
     "f:2: machine \"\": a link rate is outside"},
    {TRACE_LINE END_LINE(0, 1),
     "f:2: the end line counts 0 tensors and 1 ops, but there are 0 and 0"},
    {TRACE_LINE END_LINE(9000000000, 0), "f:2: the end line counts 9000000000 tensors and 0 ops"},
    {TRACE_LINE "{\"type\":\"end\",\"tensors\":0}", "f:2: \"ops\" is missing"},
    {TRACE_LINE "{\"type\":\"end\",\"ops\":0}", "f:2: \"tensors\" is missing"},
    {TRACE_LINE END_LINE(0, 0) MACHINE_LINE, "f:3: a line after the end line"},
    {TRACE_LINE END_LINE(0, 0) "\n" END_LINE(0, 0), "f:4: a line after the end line"},
    {TRACE_LINE END_LINE(0, 0) TRACE_LINE, "f:3: a line after the end line"},
    {END_LINE(0, 0), "f:1: a trace begins with a line of type \"trace\""},
};

/* Wherever a trace is cut, the reader notices: by a line that is not complete, or by the end line
   that is missing. Without a line in the middle, the counts differ. */
START_TEST(missing_lines_are_noticed)
{
    static const char text[] = CHAIN_TRACE;
    size_t length = sizeof(text) - 1;
    size_t header = sizeof(TRACE_LINE) - 1;
    char *cut = malloc(length);
    struct trace trace;

    ck_assert_ptr_nonnull(cut);
    ck_assert_int_eq(trace_read(&trace, "f", text, length, NULL), CAPU_OK);
    ck_assert(!trace.may_be_cut);
    trace_finish(&trace);
    for (size_t end = header; end < length - 1; end++) {
        if (trace_read(&trace, "f", text, end, NULL) == CAPU_OK) {
            ck_assert_msg(trace.may_be_cut, "cut at byte %zu", end);
            trace_finish(&trace);
        }
    }
    for (const char *line = strstr(text, "{\"type\":\"op\""); line != NULL;
         line = strstr(line + 1, "{\"type\":\"op\"")) {
        size_t before = (size_t)(line - text);
        size_t after = before + strcspn(line, "\n") + 1;

        memcpy(cut, text, before);
        memcpy(cut + before, text + after, length - after);
        ck_assert_int_eq(trace_read(&trace, "f", cut, length - (after - before), NULL),
                         CAPU_FILE_FAILED);
    }
    free(cut);
}
END_TEST

START_TEST(errors_name_the_place)
{
    struct error_text error = {""};
    struct trace trace;

    ck_assert_int_eq(trace_read(&trace, "f", bad[_i].text, strlen(bad[_i].text), &error),
                     CAPU_FILE_FAILED);
    ck_assert_msg(strstr(error.text, bad[_i].message) != NULL, "\"%s\" is not in \"%s\"",
                  bad[_i].message, error.text);
    ck_assert_ptr_null(trace.names);
    /* The same without a buffer for the message. */
    ck_assert_int_eq(trace_read(&trace, "f", bad[_i].text, strlen(bad[_i].text), NULL),
                     CAPU_FILE_FAILED);
}
END_TEST

START_TEST(a_missing_file_is_named)
{
    struct error_text error = {""};
    struct trace trace;

    ck_assert_int_eq(trace_load(&trace, "/nowhere/at/all", &error), CAPU_FILE_FAILED);
    ck_assert_msg(strstr(error.text, "/nowhere/at/all: ") == error.text, "%s", error.text);
}
END_TEST

/* 40 characters of two bytes do not fit, and what is kept of them can be written again. */
START_TEST(a_long_name_of_a_machine_is_cut_between_characters)
{
    char text[512] = TRACE_LINE "{\"type\":\"machine\",\"d2h_bytes_per_s\":1000000000,"
                                "\"h2d_bytes_per_s\":1000000000,\"name\":\"";
    struct string_buffer out = {0};
    struct trace trace;

    for (int i = 0; i < 40; i++) {
        strcat(text, "\xc3\xa9");
    }
    strcat(text, "\"}\n");
    read_trace(&trace, text);
    ck_assert_uint_eq(strlen(trace.machine.name), 62);
    ck_assert_int_eq(trace_write(&trace, &out, NULL), CAPU_OK);
    string_buffer_finish(&out);
    trace_finish(&trace);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("policy/trace_read");
    TCase *tests = tcase_create("trace_read");

    tcase_add_test(tests, written_traces_can_be_read);
    tcase_add_test(tests, unknown_keys_and_blank_lines_are_ignored);
    tcase_add_test(tests, missing_lines_are_noticed);
    tcase_add_loop_test(tests, errors_name_the_place, 0, sizeof(bad) / sizeof(bad[0]));
    tcase_add_test(tests, a_missing_file_is_named);
    tcase_add_test(tests, a_long_name_of_a_machine_is_cut_between_characters);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

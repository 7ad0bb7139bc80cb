/* capuchin replay: runs a trace through the runtime, on one small enough to work out by hand. */
#include "tests/unit/tools/fixture.h"

/*
 * A chain through a, b, c, p and q and back, with a hint for each. p is written inside a segment
 * and used outside. Tensors have 16 KiB, ops take 50 us, links copy one byte per nanosecond.
 */
static const char trace[] =
    "{\"type\":\"trace\",\"version\":1,\"name\":\"wishes\"}\n"
    "{\"type\":\"machine\",\"name\":\"m\",\"memory_bytes\":100000000,\"d2h_bytes_per_s\":"
    "1000000000,\"h2d_bytes_per_s\":1000000000,\"copy_latency_ns\":10}\n"
    "{\"type\":\"tensor\",\"id\":0,\"name\":\"w\",\"bytes\":16384,\"kind\":\"parameter\"}\n"
    "{\"type\":\"tensor\",\"id\":1,\"name\":\"a\",\"bytes\":16384,\"kind\":\"activation\",\"hint\":"
    "\"swap\"}\n"
    "{\"type\":\"tensor\",\"id\":2,\"name\":\"b\",\"bytes\":16384,\"kind\":\"activation\",\"hint\":"
    "\"recompute\"}\n"
    "{\"type\":\"tensor\",\"id\":3,\"name\":\"c\",\"bytes\":16384,\"kind\":\"activation\",\"hint\":"
    "\"keep\"}\n"
    "{\"type\":\"tensor\",\"id\":4,\"name\":\"p\",\"bytes\":16384,\"kind\":\"activation\"}\n"
    "{\"type\":\"tensor\",\"id\":5,\"name\":\"q\",\"bytes\":16384,\"kind\":\"activation\"}\n"
    "{\"type\":\"tensor\",\"id\":6,\"name\":\"g\",\"bytes\":16384,\"kind\":\"gradient\"}\n"
    "{\"type\":\"op\",\"name\":\"fa\",\"ns\":50000,\"reads\":[0],\"writes\":[1],\"updates\":[],"
    "\"replayable\":true}\n"
    "{\"type\":\"op\",\"name\":\"fb\",\"ns\":50000,\"reads\":[1],\"writes\":[2],\"updates\":[],"
    "\"replayable\":true}\n"
    "{\"type\":\"op\",\"name\":\"fc\",\"ns\":50000,\"reads\":[2],\"writes\":[3],\"updates\":[],"
    "\"replayable\":true}\n"
    "{\"type\":\"op\",\"name\":\"fp\",\"ns\":50000,\"reads\":[3],\"writes\":[4],\"updates\":[],"
    "\"replayable\":true,\"segment\":\"s\"}\n"
    "{\"type\":\"op\",\"name\":\"fq\",\"ns\":50000,\"reads\":[4],\"writes\":[5],\"updates\":[],"
    "\"replayable\":true,\"segment\":\"s\"}\n"
    "{\"type\":\"op\",\"name\":\"bq\",\"ns\":50000,\"reads\":[5],\"writes\":[6],\"updates\":[],"
    "\"replayable\":false}\n"
    "{\"type\":\"op\",\"name\":\"bp\",\"ns\":50000,\"reads\":[4],\"writes\":[],\"updates\":[6]}\n"
    "{\"type\":\"op\",\"name\":\"bc\",\"ns\":50000,\"reads\":[3],\"writes\":[],\"updates\":[6]}\n"
    "{\"type\":\"op\",\"name\":\"bb\",\"ns\":50000,\"reads\":[2],\"writes\":[],\"updates\":[6]}\n"
    "{\"type\":\"op\",\"name\":\"ba\",\"ns\":50000,\"reads\":[1],\"writes\":[],\"updates\":[6]}\n"
    "{\"type\":\"op\",\"name\":\"uw\",\"ns\":50000,\"reads\":[6],\"writes\":[],\"updates\":[0]}\n";

static void setup(void)
{
    make_folder();
    write_file("t", trace);
}

/* The number that follows `key` in the output. */
static unsigned long long number(const char *key)
{
    const char *at = strstr(output, key);

    ck_assert_msg(at != NULL, "\"%s\" is not in \"%s\"", key, output);
    return strtoull(at + strlen(key), NULL, 10);
}

/*
 * Hints and segments of the trace reach the planner through the runtime, and the saved plan refers
 * to the tensors and ops of the trace.
 */
/* The name of a trace can contain an escape sequence for the terminal. */
START_TEST(names_are_escaped)
{
    char named[sizeof(trace) + 64];

    snprintf(named, sizeof(named),
             "{\"type\":\"trace\",\"version\":1,\"name\":\"\\u009b31mw\\u001b[31m\"}\n%s",
             strchr(trace, '\n') + 1);
    write_file("named", named);
    RUN_COMMANDS({"replay named --page 4096 -b 100%", 0, {"\\xc2\\x9b31mw\\x1b[31m on m: "}},
                 {"replay named --page 4096 -b 100% --json", 0, {"\\u009B31mw\\u001B[31m\""}});
}
END_TEST

START_TEST(hints_and_segments_are_followed)
{
    unsigned long long ns;

    RUN_COMMANDS({"replay t --budget 80% --page 4096 --planner manual --save-plan p",
                  0,
                  {"wishes on m: 89.60 KiB in pages of 4.00 KiB\n", "        1  passive ",
                   "        2  guided ", "        8  guided ",
                   "the steady-state iteration takes exactly that time"}},
                 {"check t p && cat p", 0, {"valid: 11 ops, 7 tensors, 6 actions"}},
                 {"plan t --budget 80% --page 4096 --place --planner manual -o q && "
                  "cmp p q && cat p",
                  0,
                  {"{\"type\":\"evict\",\"tensor\":1,\"after\":1}",
                   "{\"type\":\"drop\",\"tensor\":2,\"after\":2}",
                   "{\"type\":\"drop\",\"tensor\":4,\"after\":4}",
                   "{\"type\":\"recompute\",\"before\":6,\"replays\":[{\"op\":3,\"drop\":[]}]}",
                   "{\"type\":\"prefetch\",\"tensor\":1,\"before\":8}",
                   "{\"type\":\"recompute\",\"before\":8,\"replays\":[{\"op\":1,\"drop\":[]}]}"}},
                 {"simulate t p --json", 0, {""}});
    ns = number("\"iteration_ns\":");
    RUN_COMMANDS({"replay t --budget 80% --page 4096 --planner manual --json", 0, {""}});
    ck_assert_uint_eq(number("\"steady_ns\":"), ns);
    ck_assert_uint_eq(number("\"predicted_ns\":"), ns);
    ck_assert_uint_eq(number("\"simulated_ns\":"), ns);
    expect("\"is_equal\":true");
}
END_TEST

START_TEST(the_trace_and_reports_can_be_saved)
{
    RUN_COMMANDS({"replay t --budget 80% --page 4096 --save-trace s --report r -n 5", 0, {""}},
                 {"check s", 0, {"valid: 11 ops, 7 tensors"}},
                 {"check s && cat s",
                  0,
                  {"\"name\":\"b\",\"bytes\":16384,\"kind\":\"activation\",\"hint\":\"recompute\"}",
                   "\"segment\":\"s\"}"}},
                 {"check s && wc -l <r", 0, {"\n5\n"}});
}
END_TEST

START_TEST(replay_works_without_a_plan)
{
    RUN_COMMANDS(
        {"replay t --budget 80% --page 4096 --mode passive -n 3", 0, {"        3  passive "}});
    ck_assert(strstr(output, "simulate") == NULL);
    RUN_COMMANDS({"replay t --budget 80% --page 4096 -n 3", 0, {"no steady state"}},
                 {"replay t --budget 80% --page 4096 -n 1 --save-plan none",
                  2,
                  {"--save-plan none: there is no plan"}},
                 {"replay t --budget 80% --page 4096 --mode passive --save-plan none", 2, {""}});
}
END_TEST

/* With all tensors in slabs the plan places no pages but is still valid for the trace. */
START_TEST(slab_tensors_have_no_pages)
{
    RUN_COMMANDS({"replay t --budget 80% --save-plan p",
                  0,
                  {"the steady-state iteration takes exactly that time"}},
                 {"simulate t p --json", 0, {"\"iteration_ns\":550000,"}},
                 /* By default a page is 2 MiB; with --slab 2 every tensor takes a page. */
                 {"replay t --budget 10MiB --slab 2 --save-plan p && cat p",
                  0,
                  {"{\"type\":\"place\",\"tensor\":0,\"pages\":[[0,1]]}"}});
}
END_TEST

START_TEST(impossible_requests_are_rejected)
{
    RUN_COMMANDS(
        {"replay t --budget 30000 --page 4096", 3, {"needs 32768 bytes of device memory at once"}},
        {"replay t --budget 4000 --page 4096", 3, {"leaves no page"}}, {"replay t", 2, {""}},
        {"replay t --budget much", 2, {""}},
        {"replay t --budget 80% --page 5000", 2, {"not a power of two"}},
        {"replay t --budget 80% --slab 1", 2, {""}}, {"replay t --budget 80% --mode off", 2, {""}},
        {"replay t --budget 80% --effort least", 2, {""}},
        {"replay t --budget 80% --planner best", 2, {""}}, {"replay t --budget 80% -n 0", 2, {""}},
        {"replay t --budget 80% --report nowhere/r", 2, {""}});
    write_file("m", "{\"type\":\"machine\",\"name\":\"m\",\"memory_bytes\":1,"
                    "\"d2h_bytes_per_s\":1000000000,\"h2d_bytes_per_s\":1000000000,"
                    "\"copy_latency_ns\":0}\n");
    RUN_COMMANDS({"replay t --budget 80% --machine m", 2, {"no copies without latency"}});
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tools/replay");
    TCase *tests = tcase_create("replay");

    tcase_add_checked_fixture(tests, setup, remove_folder);
    tcase_add_test(tests, names_are_escaped);
    tcase_add_test(tests, hints_and_segments_are_followed);
    tcase_add_test(tests, the_trace_and_reports_can_be_saved);
    tcase_add_test(tests, replay_works_without_a_plan);
    tcase_add_test(tests, slab_tensors_have_no_pages);
    tcase_add_test(tests, impossible_requests_are_rejected);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

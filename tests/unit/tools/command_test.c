/* The capuchin command: outputs and exit codes, on a trace small enough to work them out by hand.
 */
#include "tests/unit/policy/fixture.h"
#include "tests/unit/tools/fixture.h"

#include "capuchin/version.h"

static void setup(void)
{
    make_folder();
    write_file("t", CHAIN_TRACE);
}

START_TEST(plans_can_be_checked_and_simulated)
{
    RUN_COMMANDS({"plan t --budget 70% -o p", 0, {"hybrid: "}},
                 {"check t p", 0, {"valid: 4 ops, 5 tensors"}},
                 {"simulate t p --json",
                  0,
                  {"{\"valid\":true,\"iteration_ns\":1", ",\"ideal_ns\":9000,\"overhead\":0.",
                   "\"budget_bytes\":2170,"}},
                 /* Without a plan nothing is evicted, so every number is known exactly. */
                 {"simulate t --json",
                  0,
                  {"{\"valid\":true,\"iteration_ns\":9000,\"ideal_ns\":9000,\"overhead\":0.0,"
                   "\"peak_bytes\":3100,\"budget_bytes\":3100,\"evicted_bytes\":0,"
                   "\"prefetched_bytes\":0,\"replay_ns\":0,\"stall_ns\":0}"}},
                 {"simulate t p --timeline c.pftrace && wc -c c.pftrace", 0, {"c.pftrace"}});
}
END_TEST

START_TEST(plans_can_include_placement)
{
    RUN_COMMANDS({"plan t --budget 2600 --page 50 --place",
                  4,
                  {"the smallest known takes 3000 bytes (60 pages of 50 and what is fixed)"}},
                 {"plan t --budget 3000 --page 50 --place -o p",
                  0,
                  {"placed: 5 tensors in ", " runs of pages; without placement "}},
                 {"check t p", 0, {""}},
                 {"simulate t p && cat p", 0, {"{\"type\":\"place\",\"tensor\":0,\"pages\":[["}},
                 {"plan t --budget 3100 --page 50 --place --json -o p",
                  0,
                  {",\"unplaced_ns\":9000,\"placed_tensors\":5,\"page_runs\":5}"}},
                 /* By default a page is 2 MiB, and each tensor takes one. */
                 {"plan t --budget 8MiB --place -o -", 0, {"\"page_bytes\":2097152"}},
                 {"plan t --budget 6MiB --place", 0, {""}},
                 {"plan t --budget 6MiB --fixed 1 --place",
                  3,
                  {"no plan exists below 6.01 MiB (6291457 bytes)"}});
}
END_TEST

/* The smallest budget, and the plan for it. */
START_TEST(the_smallest_budget_is_found)
{
    RUN_COMMANDS({"plan t --budget min -o p",
                  0,
                  {"the smallest budget for which there is a plan: 2050 bytes\nhybrid: "}},
                 {"check t p", 0, {"valid: "}},
                 {"plan t --budget min --page 50 --place --planner lru -o p",
                  0,
                  {"the smallest budget for which there is a plan with places: 3000 bytes\nlru: "}},
                 {"check t p && head -n 1 p", 0, {"\"budget_bytes\":3000,"}},
                 {"plan t --budget min --page 50 --place --json",
                  0,
                  {"{\"planner\":\"hybrid\",", "\"budget_bytes\":3000,"}},
                 {"plan t --budget min --place", 0, {"with places: 6.00 MiB (6291456 bytes)"}},
                 {"plan t --budget minimum", 2, {"--budget minimum: neither a size above 0 nor"}});
}
END_TEST

/* Without -o only the summary is printed. */
START_TEST(a_plan_is_written_where_it_is_wanted)
{
    RUN_COMMANDS({"plan t --budget 80%", 0, {"hybrid: "}});
    ck_assert_ptr_null(strchr(output, '{'));
    RUN_COMMANDS({"plan t --budget 80% -o - 2>/dev/null", 0, {"{\"type\":\"plan\","}});
    ck_assert_ptr_null(strstr(output, "hybrid: "));
    shell(CAPUCHIN_COMMAND " plan t --budget 80% -o - 2>&1 >/dev/null");
    expect("hybrid: ");
    shell(CAPUCHIN_COMMAND " plan t --budget 80% -o p 2>/dev/null");
    expect("hybrid: ");
    RUN_COMMANDS({"check t p", 0, {"valid: "}});
}
END_TEST

START_TEST(budgets_below_the_floor_are_reported)
{
    RUN_COMMANDS({"plan t --budget 2049",
                  3,
                  {"no plan exists below 2050 bytes: op 3 (b0) needs them all at once"}},
                 {"bound t --budget 2049", 3, {""}});
}
END_TEST

START_TEST(a_planner_that_finds_no_plan_is_reported)
{
    /* Nothing fits on the host, and once w is out, x cannot be replayed for b0 beside z. */
    RUN_COMMANDS({"plan t --budget 2050 --host 1 --planner lru", 4, {"lru found no plan"}});
}
END_TEST

START_TEST(bad_usage_and_bad_files_are_rejected)
{
    write_file("bad", TRACE_LINE "{\"type\":\"op\"}\n");
    write_file("q", PLAN_LINE(3099, ""));
    RUN_COMMANDS({"plan t", 2, {""}}, {"plan t --budget much", 2, {""}},
                 {"plan t --budget 1GiB --planner best", 2, {"hybrid"}},
                 {"check bad", 2, {"bad:2: \"ns\" is missing"}}, {"check nowhere", 2, {""}},
                 {"simulate t q", 2, {"not valid: op 2 (f2): tensor 3 (z) exceeds the budget"}},
                 {"simulate t q --json", 2, {"{\"valid\":false,"}}, {"nonsense", 2, {""}},
                 {"", 2, {""}});
}
END_TEST

/* Also through a pipe, and only to standard error. */
START_TEST(progress_is_a_line_per_better_plan)
{
    RUN_COMMANDS(
        {"plan t --budget 70% -o p && " CAPUCHIN_COMMAND
         " plan t --budget 70% --progress -o q 2>&1 && cmp p q",
         0,
         {"after 0.", " s: ", " per iteration, ", "11.22 % over the ideal\nhybrid: "}},
        {"plan t --budget 100% --progress -o p 2>&1 >/dev/null | sed 's/after [0-9.]* s//'",
         0,
         {": 0.009 ms per iteration, 0.00 % over the ideal\n"}});
}
END_TEST

/* A plan made for another trace is recognised by its header, also if it happens to be valid. */
START_TEST(plans_for_another_trace_are_rejected)
{
    shell("sed 's/\"t\"/\"other\"/' t >renamed && "
          "sed -e '/\"b0\"/d' -e 's/\"ops\":4/\"ops\":3/' t >shorter");
    RUN_COMMANDS({"plan t --budget 100% -o p && head -n 1 p",
                  0,
                  {"{\"type\":\"plan\",\"version\":1,\"trace\":\"t\",\"tensors\":5,\"ops\":4,"}},
                 {"check t p", 0, {"valid: "}},
                 {"check renamed p", 2, {"the plan is for another trace: \"t\", not \"other\""}},
                 {"check shorter p", 2, {"for another trace: \"t\" with 4 ops, not \"t\" with 3"}},
                 {"simulate shorter p", 2, {"not valid: the plan is for another trace: "}});
    shell("sed 's/,\"tensors\":5,\"ops\":4//' p >older");
    RUN_COMMANDS({"check renamed older", 0, {"valid: "}});
}
END_TEST

/* The trace of a run ends with persistent tensors that no op touches; its plans do not have them.
 */
START_TEST(plans_leave_untouched_tensors)
{
    shell("sed -e '/\"id\":4,/a {\"type\":\"tensor\",\"id\":5,\"name\":\"more\",\"bytes\":9000,"
          "\"kind\":\"parameter\"}' -e 's/\"tensors\":5/\"tensors\":6/' t >more && "
          "sed '/\"more\"/s/parameter/activation/' more >transient && "
          "sed 's/\"writes\":\\[4/\"writes\":[5,4/' more >touched");
    RUN_COMMANDS({"plan t --budget 70% -o p", 0, {"hybrid: "}},
                 {"simulate t p >one && " CAPUCHIN_COMMAND " simulate more p >other 2>messages && "
                  "cmp one other && cat messages",
                  0,
                  {"tensors that no op touches, which the plan leaves on the host: 1"}},
                 {"check more p", 0, {"valid: 4 ops, 5 tensors"}},
                 {"check transient p", 2, {"for another trace: \"t\" with 5 tensors, not"}},
                 {"check touched p", 2, {"for another trace: \"t\" with 5 tensors, not"}});
}
END_TEST

/* Traces of older versions have no end line. */
START_TEST(a_trace_that_may_be_cut_is_accepted_with_a_warning)
{
    shell("grep -v '\"end\"' t >older && grep -v '\"f1\"' t >cut");
    RUN_COMMANDS({"check older 2>&1 >/dev/null",
                  0,
                  {"capuchin: older: warning: the trace has no end line: it may be cut"}},
                 {"check older", 0, {"valid: 4 ops, 5 tensors"}},
                 {"simulate older 2>&1 >/dev/null", 0, {"older: warning: "}},
                 {"plan older -b 80% -o p && " CAPUCHIN_COMMAND " check t p", 0, {"valid: "}},
                 {"check cut", 2, {"cut:11: the end line counts 5 tensors and 4 ops, but there"}});
    ck_assert_int_eq(run("check t 2>&1 >/dev/null"), 0);
    ck_assert_str_eq(output, "");
}
END_TEST

START_TEST(machines_can_be_builtin_or_files)
{
    write_file("m", MACHINE_LINE);
    RUN_COMMANDS({"machines", 0, {"h200"}},
                 {"bound t --budget 70% --machine p100 --json",
                  0,
                  {"\"budget_bytes\":2170,\"peak_bytes\":3100"}},
                 {"bound t --budget 70% --machine m", 0, {""}},
                 {"bound t --budget 70% --machine nobody", 2, {""}});
}
END_TEST

START_TEST(sweep_writes_svg_or_json)
{
    RUN_COMMANDS(
        {"sweep t --planners lru,hybrid --from 80% -o s.svg && cat s.svg", 0, {"<polyline"}},
        {"sweep t --planners lru --from 100% -o s.json && cat s.json",
         0,
         {"\"lru\": [\n   0.0\n  ]"}});
}
END_TEST

START_TEST(model_writes_valid_traces)
{
    RUN_COMMANDS(
        {"model --list", 0, {"resnet50 ", "llama3-8b "}},
        {"model vgg16 --batch 4 --machine p100 -o v",
         0,
         {"vgg16-b4-p100: ", "138.358 M parameters"}},
        {"check v", 0, {""}},
        {"plan v --budget 80% --planner lru -o vp && " CAPUCHIN_COMMAND " check v vp", 0, {""}},
        {"model gpt2-small --batch 1 --machine h100 --dtype bf16 --update asap "
         "--granularity layer --attention saved --sequence 64 -o g && head -n 1 g",
         0,
         {"{\"type\":\"trace\",\"version\":1,\"name\":\"gpt2-small-b1-h100-asap-saved-layer\","
          "\"batch\":1}"}},
        {"model unet --batch 1 --image 64 --machine a100 2>g | tail -n 1",
         0,
         {"{\"type\":\"end\",\"tensors\":"}});
}
END_TEST

START_TEST(impossible_models_are_rejected)
{
    RUN_COMMANDS({"model vgg19 --batch 4 --machine p100",
                  2,
                  {"there is no model \"vgg19\". The models are:", "vgg16 "}},
                 {"model vgg16 --batch 4 --machine p101", 2, {"there is no machine \"p101\""}},
                 {"model vgg16 --batch 4", 2, {"--machine is required"}},
                 {"model vgg16 --machine p100", 2, {""}},
                 {"model vgg16 --batch 0 --machine p100", 2, {"--batch 0: not a number from 1 to"}},
                 {"model vgg16 --batch 16000000 --machine p100", 2, {"exceed"}},
                 {"model vgg16 --batch 4 --machine p100 --dtype bf16",
                  2,
                  {"machine p100 has no rate for bf16; it has rates for fp32 fp16"}},
                 {"model vgg16 --batch 4 --machine p100 --update never",
                  2,
                  {"--update never: not end or asap"}},
                 {"model vgg16 --batch 4 --machine p100 -o nowhere/v", 2, {""}});
    write_file("m", MACHINE_LINE);
    RUN_COMMANDS({"model vgg16 --batch 4 --machine m", 2, {"machine m has no rates"}});
}
END_TEST

START_TEST(maxbatch_finds_the_largest_batch)
{
    RUN_COMMANDS(
        {"maxbatch vgg16 --machine p100 --planner lru --overhead 20% --json",
         0,
         {"{\"model\":\"vgg16\",\"machine\":\"p100\",\"budget_bytes\":17179869184,"
          "\"planner\":\"lru\",\"overhead_limit\":0.2,\"batch\":",
          "\"batch_without_plan\":2"}},
        {"maxbatch vgg16 --machine p100 --planner lru --budget 50%",
         0,
         {"vgg16 on p100 in 8.00 GiB\nwithout a plan: batch 1",
          "lru, at most 5 % over the ideal: batch 1", "the largest op fits up to batch 2"}},
        {"maxbatch vgg16 --machine p100 --budget 1MiB", 3, {"not even a single sample"}},
        {"maxbatch vgg16 --machine p100 --budget 1300MiB --planner lru", 4, {""}},
        {"maxbatch vgg16 --machine p100 --planner best", 2, {"--planner best: not hybrid, lru, "}},
        {"maxbatch vgg19 --machine p100", 2, {""}},
        {"maxbatch vgg16 --machine p100 --overhead much", 2, {""}},
        {"maxbatch vgg16 --machine p100 --effort much", 2, {""}},
        {"maxbatch vgg16 --machine p100 --budget much", 2, {""}},
        {"maxbatch vgg16 --machine p100 --dtype tf32",
         2,
         {"vgg16: machine p100 has no rate for tf32"}});
}
END_TEST

/* Whatever a file contains, no control character reaches the terminal. */
START_TEST(names_from_files_are_escaped)
{
#define RED "\\u001b[31m"
#define SHOWN "\\x1b[31m"
    static const struct command commands[] = {
        {"bound named -b 1000", 3, {"op 0 (" SHOWN "f0) needs them all at once"}},
        {"check twice", 2, {"twice:3: "}},
        {"plan named -b 100% -o -", 0, {"\"\\u009B31mnet\""}},
        {"maxbatch vgg16 --machine m --planner lru --budget 1MiB", 3, {"vgg16 on " SHOWN "m in"}},
        {"maxbatch vgg16 --machine m --planner lru --budget 1MiB --json",
         3,
         {"\"machine\":\"\\u001B[31mm\","}},
        {"simulate named q --json", 2, {"\"error\":\"prefetch at op 1 (\\\\x1b[31mf1)"}},
        {"check '\x1b[31mfile'", 2, {SHOWN "file: No such file"}},
        {0}};

    write_file(
        "named",
        "{\"type\":\"trace\",\"version\":1,\"name\":\"\\u009b31mnet\"}\n" MACHINE_LINE TENSOR_LINE(
            0, RED "w", 1000, "parameter") TENSOR_LINE(1, RED "x", 1000, "activation")
            OP_LINE(RED "f0", 2000, "[0]", "[1]", "[]", "true")
                OP_LINE(RED "f1", 2000, "[0,1]", "[]", "[]", "true"));
    write_file("q", PLAN_LINE(9000, "") PREFETCH(1, 1));
    write_file("twice", TRACE_LINE TENSOR_LINE(0, RED "w", 1000, "parameter")
                            TENSOR_LINE(0, RED "w", 1000, RED "kind"));
    write_file("m", "{\"type\":\"machine\",\"name\":\"" RED
                    "m\",\"memory_bytes\":17179869184,\"d2h_bytes_per_s\":12000000000,"
                    "\"h2d_bytes_per_s\":12000000000,\"copy_latency_ns\":10000,"
                    "\"fp32_flops_per_s\":9300000000000,\"memory_bytes_per_s\":732000000000,"
                    "\"product_percent\":69,\"memory_percent\":75,\"launch_ns\":4000,"
                    "\"text\":\"\"}\n");
    for (const struct command *command = commands; command->arguments != NULL; command++) {
        run_commands((const struct command[]){*command, {0}});
        ck_assert_ptr_null(strchr(output, '\x1b'));
        ck_assert_ptr_null(strstr(output, "\xc2\x9b"));
    }
#undef RED
#undef SHOWN
}
END_TEST

START_TEST(every_command_has_help)
{
    static const char *const commands[] = {"plan",  "simulate", "check",  "bound",    "sweep",
                                           "model", "maxbatch", "replay", "machines", "explain"};
    char arguments[64];

    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        snprintf(arguments, sizeof(arguments), "%s --help", commands[i]);
        ck_assert_int_eq(run(arguments), 0);
        expect("Usage: capuchin");
        expect("-h, --help");
        snprintf(arguments, sizeof(arguments), "%s -h", commands[i]);
        ck_assert_int_eq(run(arguments), 0);
        expect("Usage: capuchin");
    }
    RUN_COMMANDS({"plan --help", 0, {"\n  lru "}},
                 {"plan -?", 0, {"Usage: capuchin plan [OPTION...] TRACE"}},
                 {"plan --usage", 0, {"Usage: capuchin plan [-h]"}},
                 {"-h", 0, {"Usage: capuchin COMMAND"}},
                 {"--help", 0, {"explain    explain from a report file why"}},
                 {"--version", 0, {"capuchin " CAPU_VERSION_STRING "\n"}});
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tools/command");
    TCase *tests = tcase_create("command");

    tcase_add_checked_fixture(tests, setup, remove_folder);
    tcase_add_test(tests, plans_can_be_checked_and_simulated);
    tcase_add_test(tests, plans_can_include_placement);
    tcase_add_test(tests, the_smallest_budget_is_found);
    tcase_add_test(tests, a_plan_is_written_where_it_is_wanted);
    tcase_add_test(tests, budgets_below_the_floor_are_reported);
    tcase_add_test(tests, a_planner_that_finds_no_plan_is_reported);
    tcase_add_test(tests, bad_usage_and_bad_files_are_rejected);
    tcase_add_test(tests, progress_is_a_line_per_better_plan);
    tcase_add_test(tests, plans_for_another_trace_are_rejected);
    tcase_add_test(tests, plans_leave_untouched_tensors);
    tcase_add_test(tests, a_trace_that_may_be_cut_is_accepted_with_a_warning);
    tcase_add_test(tests, machines_can_be_builtin_or_files);
    tcase_add_test(tests, sweep_writes_svg_or_json);
    tcase_add_test(tests, model_writes_valid_traces);
    tcase_add_test(tests, impossible_models_are_rejected);
    tcase_add_test(tests, maxbatch_finds_the_largest_batch);
    tcase_add_test(tests, names_from_files_are_escaped);
    tcase_add_test(tests, every_command_has_help);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

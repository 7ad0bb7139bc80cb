/*
 * Wrong options, bad files and failing outputs: every subcommand reports them in the same way,
 * names the culprit and exits with the right code.
 */
#include "tests/unit/policy/fixture.h"
#include "tests/unit/tools/fixture.h"

static void setup(void)
{
    make_folder();
    write_file("t", CHAIN_TRACE);
    write_file("t.svg", CHAIN_TRACE);
    write_file("m", MACHINE_LINE);
    write_file("empty", "");
    shell("ln -s t soft && ln -s t.svg soft.svg && ln t hard");
    ck_assert_int_eq(run("model vgg16 --batch 1 --machine p100 -o v"), 0);
}

static const struct {
    const char *arguments;
    const char *error;
} refused[] = {
    {"plan -b 80%", "a TRACE is required"},
    {"bound -b 80%", "a TRACE is required"},
    {"sweep", "a TRACE is required"},
    {"simulate", "a TRACE is required"},
    {"check", "a TRACE is required"},
    {"replay -b 80%", "a TRACE is required"},
    {"plan t", "--budget is required"},
    {"explain", "a REPORT is required"},
    {"explain t t --trace t", "--trace: has no effect on several reports"},
    {"explain t t --html h", "--html: has no effect on several reports"},
    {"explain t -i 0", "--iteration 0: not a number from 1 to"},
    {"explain nowhere", "nowhere: No such file"},
    {"explain t", "t:1: not a report"},
    {"explain empty", "empty: contains no iteration"},
    {"bound t", "--budget is required"},
    {"replay t", "--budget is required"},
    {"model --batch 1 --machine p100", "a MODEL is required"},
    {"maxbatch --machine p100", "a MODEL is required"},
    {"model vgg16 --machine p100", "--batch is required"},
    {"plan t x -b 80%", "x: too many arguments"},
    {"simulate t t x", "x: too many arguments"},
    {"model vgg16 x --batch 1 --machine p100", "x: too many arguments"},
    {"maxbatch vgg16 x --machine p100", "x: too many arguments"},
    {"machines x", "Too many arguments"},
    {"plan t -b nan", "--budget nan: neither a size above 0 nor a percentage"},
    {"plan t -b nan%", "--budget nan%: neither"},
    {"plan t -b 0%", "--budget 0%: neither"},
    {"plan t -b 0", "--budget 0: neither a size above 0"},
    {"bound t -b 0MiB", "--budget 0MiB: neither"},
    {"replay t -b 0", "--budget 0: neither"},
    {"maxbatch vgg16 --machine p100 -b 0", "--budget 0: neither"},
    {"plan t -b -1", "--budget -1: neither"},
    {"plan t -b 0x50%", "--budget 0x50%: neither"},
    {"plan t -b ' 50%'", "--budget  50%: neither"},
    {"plan t -b 1001%", "--budget 1001%: neither"},
    {"bound t -b 1e99", "--budget 1e99: neither"},
    {"replay t -b 16EiB", "--budget 16EiB: neither"},
    {"maxbatch vgg16 --machine p100 -b 99999999999999999999", "--budget 99999999999999999999: nei"},
    {"plan t -b 80% --planner best", "--planner best: not hybrid, lru, "},
    {"replay t -b 80% --planner best", "--planner best: not hybrid, lru, "},
    {"maxbatch vgg16 --machine p100 -p best", "--planner best: not hybrid, lru, "},
    {"sweep t --planners lru,best", "--planners best: not hybrid, lru, "},
    {"sweep t --planners lru,lru", "--planners lru,lru: lru is listed twice"},
    {"sweep t --planners ''", "--planners : not hybrid"},
    {"plan t -b 80% --effort most", "--effort most: not quick, default or best"},
    {"replay t -b 80% --effort most", "--effort most: not quick, default or best"},
    {"maxbatch vgg16 --machine p100 --effort most", "--effort most: not quick, default or best"},
    {"plan t -b 80% --page 0", "--page 0: must be at least 1"},
    {"replay t -b 80% --page x", "--page x: not a size"},
    {"plan t -b 80% --host -1", "--host -1: not a size"},
    {"replay t -b 80% --host 0", "--host 0: must be at least 1"},
    {"plan t -b 80% --fixed 16EiB", "--fixed 16EiB: not a size"},
    {"plan t -b 80% --seconds nan", "--seconds nan: not a number of seconds above 0"},
    {"plan t -b 80% --seconds 0", "--seconds 0: not a number of seconds above 0"},
    {"replay t -b 80% --mode fast", "--mode fast: not off, passive or guided"},
    {"replay t -b 80% --mode off", "--mode off: the mode off ignores the budget"},
    {"replay t -b 80% --slab 1", "--slab 1: must be at least 2"},
    {"replay t -b 80% -n 1e3", "--iterations 1e3: not a number from 1 to 10000"},
    {"sweep t --from 0", "--from 0: not a percentage from 1 to 100"},
    {"sweep t --step 1.5", "--step 1.5: not a whole percentage"},
    {"sweep t --from 90 --to 80", "--from 90% is above --to 80%"},
    {"sweep t -o t.png", "--output t.png: the name must end in .svg or .json"},
    {"model vgg16 --batch -1 --machine p100", "--batch -1: not a number from 1 to"},
    {"model vgg16 --batch 1 --machine p100 --dtype int",
     "--dtype int: not fp32, tf32, fp16 or bf16"},
    {"model vgg16 --batch 1 --machine p100 --image 0", "--image 0: not a number from 1 to"},
    {"maxbatch vgg16 --machine p100 --overhead inf", "--overhead inf: not a percentage from 0"},
    {"plan t -b 80% --nonsense", "unrecognized option '--nonsense'"},
    {"plan t -b", "option requires an argument -- 'b'"},
    {"check nowhere", "nowhere: No such file"},
    {"check .", ".: Is a directory"},
    {"check empty", "empty: empty"},
    {"check t empty", "empty: empty"},
    {"plan t -b 80% --machine nowhere", "there is no machine \"nowhere\" and no such file"},
    {"plan t -b 80% --machine .", ".: Is a directory"},
    {"plan t -b 80% --machine empty", "empty: contains no machine line"},
    {"plan t -b 80% -o nowhere/p", "nowhere/p: cannot be written: No such file"},
    {"plan t -b 80% -o .", ".: cannot be written: Is a directory"},
    {"sweep t -o nowhere/s.svg", "nowhere/s.svg: cannot be written: No such file"},
    {"simulate t --timeline nowhere/c", "nowhere/c: cannot be written: No such file"},
    {"model vgg16 --batch 1 --machine p100 -o nowhere/v", "nowhere/v: cannot be written: No such"},
    {"replay v -b 90% -p lru --save-plan nowhere/p", "nowhere/p: cannot be written: No such file"},
    {"replay v -b 90% -p lru --save-trace nowhere/t", "nowhere/t: cannot be written: No such file"},
    {"replay v -b 90% -p lru --report nowhere/r", "nowhere/r: cannot be written: No such file"},
    {"plan t -b 80% -o t", "--output t is the same file as TRACE t"},
    {"plan t -b 80% -o soft", "--output soft is the same file as TRACE t"},
    {"plan soft -b 80% -o hard", "--output hard is the same file as TRACE soft"},
    {"plan t -b 80% --machine m -o ./m", "--output ./m is the same file as --machine m"},
    {"sweep soft.svg -o t.svg", "--output t.svg is the same file as TRACE soft.svg"},
    {"simulate t --timeline t", "--timeline t is the same file as TRACE t"},
    {"simulate t empty --timeline empty", "--timeline empty is the same file as PLAN empty"},
    {"model vgg16 --batch 1 --machine m -o m", "--output m is the same file as --machine m"},
    {"replay t -b 80% --report t", "--report t is the same file as TRACE t"},
    {"replay t -b 80% --report f --save-trace f", "--save-trace f is the same file as --report f"},
    {"replay t -b 80% --report f --save-plan ./f",
     "--save-plan ./f is the same file as --report f"},
};

START_TEST(errors_name_the_culprit)
{
    char arguments[256];

    /* Errors go to stderr; stdout is for results. */
    snprintf(arguments, sizeof(arguments), "%s 2>&1 >/dev/null", refused[_i].arguments);
    ck_assert_msg(run(arguments) == 2, "%s: %s", refused[_i].arguments, output);
    expect("capuchin");
    expect(refused[_i].error);
}
END_TEST

static const char *const answers[] = {
    "plan t -b 80%",
    "plan t -b 80% -o p",
    "plan t -b 80% --json -o p",
    "simulate t",
    "simulate t --json",
    "check t",
    "bound t -b 80%",
    "bound t -b 80% --json",
    "sweep t --planners lru",
    "model vgg16 --batch 1 --machine p100",
    "model vgg16 --batch 1 --machine p100 -o w",
    "model --list",
    "maxbatch vgg16 --machine p100 -p lru",
    "replay v -b 90% -p lru",
    "replay v -b 90% -p lru --json",
    "machines",
    "machines --json",
    "--help",
    "plan --help",
    "replay --usage",
};

/* Output that cannot be written is a failure, whichever part of the program wrote it. */
START_TEST(lost_output_is_an_error)
{
    char arguments[256];

    snprintf(arguments, sizeof(arguments), "%s 2>&1 >&-", answers[_i]);
    ck_assert_msg(run(arguments) == 2, "%s: %s", answers[_i], output);
    expect("standard output: cannot be written");
    if (access("/dev/full", W_OK) == 0) {
        snprintf(arguments, sizeof(arguments), "%s 2>&1 >/dev/full", answers[_i]);
        ck_assert_msg(run(arguments) == 2, "%s: %s", answers[_i], output);
        expect("standard output: cannot be written");
    }
}
END_TEST

/* A file opened while stdout or stderr is closed must not receive their output. */
START_TEST(closed_outputs_do_not_end_up_in_files)
{
    ck_assert_int_eq(run("replay v -b 90% -p lru -n 1 --report r --save-plan p 2>&-"), 2);
    ck_assert_int_eq(run("--help && cat r"), 0);
    expect("\"iteration\":");
    ck_assert_ptr_null(strstr(output, "cannot be written"));
}
END_TEST

START_TEST(a_missing_largest_batch_is_reported)
{
    ck_assert_int_eq(run("maxbatch vgg16 --machine p100 -p lru -b 1 2>&1 >/dev/null"), 3);
    expect("lru found no batch of vgg16 for this budget");
    ck_assert_int_eq(run("maxbatch vgg16 --machine p100 -p lru -b 1300MiB 2>&1 >/dev/null"), 4);
    expect("lru found no batch of vgg16 for this budget");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tools/options");
    TCase *tests = tcase_create("options");

    tcase_add_checked_fixture(tests, setup, remove_folder);
    tcase_add_loop_test(tests, errors_name_the_culprit, 0, sizeof(refused) / sizeof(refused[0]));
    tcase_add_loop_test(tests, lost_output_is_an_error, 0, sizeof(answers) / sizeof(answers[0]));
    tcase_add_test(tests, closed_outputs_do_not_end_up_in_files);
    tcase_add_test(tests, a_missing_largest_batch_is_reported);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

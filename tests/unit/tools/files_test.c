/*
 * The files that the command writes: they are replaced when their new contents are complete, and a
 * command that fails leaves them alone.
 */
#include "tests/unit/policy/fixture.h"
#include "tests/unit/tools/fixture.h"

static void setup(void)
{
    make_folder();
    write_file("t", CHAIN_TRACE);
    write_file("p", PLAN_LINE(3100, ""));
    write_file("f", "old\n");
    write_file("f.json", "old\n");
    write_file("g", "old\n");
}

/* No file has changed, and there is no other one. */
static void check_files(void)
{
    shell("cat f f.json g && ls -A");
    ck_assert_str_eq(output, "old\nold\nold\nf\nf.json\ng\np\nt\n");
}

static const char *const writers[] = {
    "plan t -b 80% -o f",
    "simulate t --timeline f",
    "sweep t --planners lru -o f.json",
    "model vgg16 --batch 1 --machine p100 -o f",
    "replay t -b 10MiB --slab 2 --save-plan f",
    "replay t -b 10MiB --slab 2 --save-trace f --report g",
};

START_TEST(a_full_disk_leaves_the_old_file)
{
    char command[256];

    snprintf(command, sizeof(command), "ulimit -f 0 && %s 2>&1 %s", CAPUCHIN_COMMAND, writers[_i]);
    ck_assert_msg(run_shell(command) == 2, "%s: %s", writers[_i], output);
    expect("ile too large");
    check_files();
    /* The same command succeeds if there is room. */
    ck_assert_msg(run(writers[_i]) == 0, "%s: %s", writers[_i], output);
    ck_assert_int_ne(run_shell("grep -qx old f && grep -qx old f.json"), 0);
}
END_TEST

START_TEST(a_full_device_is_reported)
{
    if (access("/dev/full", W_OK) == 0) {
        RUN_COMMANDS({"plan t -b 80% -o /dev/full",
                      2,
                      {"/dev/full: cannot be written: No space left on device"}},
                     {"replay t -b 10MiB --slab 2 --report /dev/full",
                      2,
                      {"/dev/full: cannot be written: No space left on device"}});
    }
}
END_TEST

/* Below the floor no iteration completes, so there is nothing to write. */
START_TEST(a_failed_run_leaves_all_files)
{
    RUN_COMMANDS(
        {"plan t -b 2049 -o f", 3, {"no plan exists"}},
        {"replay t -b 8192 --page 4096 --slab 2 --save-trace f --report g --save-plan f.json",
         3,
         {""}},
        {"plan t -b 2050 --host 1 --planner lru -o f", 4, {"lru found no plan"}});
    check_files();
}
END_TEST

START_TEST(a_trace_needs_a_second_iteration)
{
    RUN_COMMANDS({"replay t -b 10MiB --slab 2 -n 1 --save-trace f",
                  2,
                  {"--save-trace f: there is no second iteration"}});
    check_files();
}
END_TEST

START_TEST(permissions_and_links_stay)
{
    shell("chmod 640 f && ln -s f link");
    ck_assert_int_eq(run("plan t -b 80% -o link"), 0);
    shell("stat -c %a f && readlink link && head -c 14 f");
    ck_assert_str_eq(output, "640\nf\n{\"type\":\"plan\"");
}
END_TEST

/* The summary for people is then on standard error, as it is without the option. */
START_TEST(a_dash_is_standard_output)
{
    RUN_COMMANDS({"plan t -b 80% -o - 2>/dev/null | head -c 14", 0, {"{\"type\":\"plan\""}},
                 {"plan t -b 80% -o - 2>&1 >/dev/null", 0, {"hybrid: "}},
                 {"model vgg16 --batch 1 --machine p100 -o - 2>/dev/null | head -c 15",
                  0,
                  {"{\"type\":\"trace\""}},
                 {"plan t -b 80% -o /dev/stdout | cat", 0, {"{\"type\":\"plan\""}},
                 {"simulate t --timeline /dev/null", 0, {""}});
    check_files();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tools/files");
    TCase *tests = tcase_create("files");

    tcase_add_checked_fixture(tests, setup, remove_folder);
    tcase_add_loop_test(tests, a_full_disk_leaves_the_old_file, 0,
                        sizeof(writers) / sizeof(writers[0]));
    tcase_add_test(tests, a_full_device_is_reported);
    tcase_add_test(tests, a_failed_run_leaves_all_files);
    tcase_add_test(tests, a_trace_needs_a_second_iteration);
    tcase_add_test(tests, permissions_and_links_stay);
    tcase_add_test(tests, a_dash_is_standard_output);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

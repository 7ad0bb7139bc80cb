/* capuchin run: wrong usage, and programs that it cannot start. */
#include "tests/shim/programs.h"
#include "tests/support/suite.h"

#include <sys/stat.h>
#include <unistd.h>

#define RUN ALONE "CAPUCHIN_DEVICE=host CAPUCHIN_WAIT_FOR_PLAN=1 " CAPUCHIN_COMMAND " run "

static char output[OUTPUT_BYTES];

static void expect(const char *command, int code, const char *text)
{
    check_run(command, code, text, output);
}

START_TEST(test_wrong_options)
{
    expect(RUN, 2, "PROGRAM is missing");
    expect(RUN "--bugdet 1GiB /bin/true", 2, "unrecognized option '--bugdet");
    expect(RUN "--budget none /bin/true", 2, "--budget none: not a size");
    expect(RUN "--budget 0% /bin/true", 2, "--budget 0%: must be above 0");
    expect(RUN "--budget 0 /bin/true", 2, "--budget 0: must be at least 1");
    expect(RUN "--budget 120% /bin/true", 2, "--budget 120%");
    expect(RUN "--host-budget x /bin/true", 2, "--host-budget x: not a size");
    expect(RUN "--pretend 0 /bin/true", 2, "--pretend 0: must be at least 1");
    expect(RUN "--mode manual /bin/true", 2, "--mode manual: not");
    expect(RUN "--iteration-kernel x --iteration-range y /bin/true", 2, "cannot be combined with");
    expect("NVTX_INJECTION64_PATH=/x " RUN "--iteration-range y /bin/true", 2,
           "which is set: another tool uses NVTX");
    expect(RUN "--iteration-kernel '(' /bin/true", 2, "--iteration-kernel (: ");
    expect(RUN "--driver /nowhere/libcuda.so.1 /bin/true", 2,
           "--driver /nowhere/libcuda.so.1: No such file");
}
END_TEST

/* Files that cannot be written are found out before the program runs, as far as that is possible.
 */
START_TEST(test_wrong_files)
{
    char path[] = "/tmp/capuchin-run-XXXXXX";
    char command[1024];
    int file = mkstemp(path);

    expect(RUN "--report /nowhere/r /bin/echo", 2, "run: --report /nowhere/r: No such file");
    expect(RUN "--operands /tmp /bin/echo", 2, "run: --operands /tmp: Is a directory");
    expect(RUN "--iterations '' /bin/echo", 2, "run: --iterations : No such file");
    expect(RUN "--report /dev/full " WORK " queries", 0,
           "capuchin: the report /dev/full cannot be written: No space left on device\n");
    expect(RUN "--mode guided --budget 900KiB --iterations /dev/full " WORK " batches", 0,
           "capuchin: --iterations: writing the report file '/dev/full': No space left on device");
    /* The report of another run is gone, also if this one ends without a report. */
    ck_assert_int_eq((int)write(file, "budget: 5\n", 10), 10);
    ck_assert_int_eq(close(file), 0);
    snprintf(command, sizeof(command), RUN "--report %s /bin/sh -c 'kill -9 $$'", path);
    expect(command, 128 + 9, "");
    snprintf(command, sizeof(command), "wc -c <%s && rm %s", path, path);
    expect(command, 0, "0\n");
}
END_TEST

START_TEST(test_wrong_budgets)
{
    expect(RUN "--budget 1000000GiB " WORK " queries", 1,
           "capuchin: the program cannot be put under a budget: does not fit the budget: a budget "
           "of ");
    check_contains(output, " is more than the machine's memory of ");
    expect(RUN "--budget 600KiB --host-budget 4KiB " WORK " train", 1,
           "capuchin: cuMemAlloc: 262144 bytes more do not fit the budgets of device and host "
           "memory together: --budget is 614400, --host-budget (CAPUCHIN_HOST_BUDGET) 4096, and "
           "524288 bytes are "
           "allocated\n");
}
END_TEST

/* Other libraries that the user preloads, and a second budget. */
START_TEST(test_environment)
{
    expect("LD_PRELOAD=libm.so.6 " RUN "/bin/sh -c 'echo $LD_PRELOAD'", 0,
           "/libcapuchin-interpose.so:libm.so.6\n");
    expect(RUN CAPUCHIN_COMMAND " run /bin/echo", 2,
           "this command is itself run by `capuchin run`");
}
END_TEST

/* Options of the program are its own. */
START_TEST(test_programs_options)
{
    expect(RUN "--budget 1GiB /bin/echo --budget 5 -h", 0, "--budget 5 -h\n");
    expect(RUN "--budget 1GiB -- /bin/echo --mode", 0, "--mode\n");
    expect(RUN "echo found", 0, "found\n");
    expect(RUN "/bin/sh -c 'exit 9'", 9, "");
    expect(RUN "/bin/sh -c 'kill -USR1 $$'", 128 + 10, "");
}
END_TEST

static void put(const char *path, const char *bytes, size_t count)
{
    FILE *file = fopen(path, "w");

    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, count, file), count);
    ck_assert_int_eq(fclose(file), 0);
}

START_TEST(test_wrong_programs)
{
    static const char small[64] = "\177ELF\1"; /* of 32 bits */
    static const char script[] = "#!/nowhere/shell\n";
    char path[] = "/tmp/capuchin-run-XXXXXX";
    char command[1024];
    int file = mkstemp(path);

    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(close(file), 0);
    put(path, "text\n", 5);
    expect(RUN "no-such-program-at-all", 2, "there is no program no-such-program-at-all in");
    expect(RUN "/nowhere/program", 2, "/nowhere/program: No such file");
    expect(RUN "/tmp", 2, "/tmp: not a program");
    expect(RUN STATIC, 2, "is linked statically, so no library can be preloaded");
    expect(RUN SHIM_FOLDER "/libcapuchin-interpose.so", 2, "is a library, or linked statically");
    snprintf(command, sizeof(command), RUN "%s", path);
    expect(command, 2, "not a program that can be executed");
    ck_assert_int_eq(chmod(path, 0755), 0);
    expect(command, 2, "neither a program nor a script");
    put(path, small, sizeof(small));
    expect(command, 2, "a program for another kind of machine than x86-64");
    put(path, script, sizeof(script) - 1);
    expect(command, 2, "the loader or the interpreter that it names is not there");
    /* With a set-group bit of another group, as far as this user may set one. */
    if (chown(path, 65534, 65534) == 0) {
        ck_assert_int_eq(chmod(path, 04755), 0);
        expect(command, 2, "runs with the rights of another user");
    }
    ck_assert_int_eq(unlink(path), 0);
}
END_TEST

START_TEST(test_missing_files)
{
    /* A copy of the command without its library beside it. */
    char folder[] = "/tmp/capuchin-run-XXXXXX";
    char command[1024];

    expect(SANITIZERS "LD_LIBRARY_PATH=/nowhere " CAPUCHIN_COMMAND
                      " run --driver /nowhere/x /bin/true",
           2, "--driver /nowhere/x: No such file");
    expect(SANITIZERS "LD_LIBRARY_PATH=" SHIM_FOLDER " " CAPUCHIN_COMMAND " run /bin/true", 2,
           "the driver that the library path leads to is libcapuchin-interpose.so itself");
    expect(RUN "--driver " STUB_DRIVER " " PRODUCTS, 1,
           "capuchin: the CUDA driver has no function cuCtxGetCurrent, which runs under a budget "
           "need: it may be too old\n");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(command, sizeof(command),
             "cp " CAPUCHIN_COMMAND " %s && " ALONE "%s/capuchin run true", folder, folder);
    expect(command, 2, "libcapuchin-interpose.so is not there");
    /* One that the loader would leave out. */
    snprintf(command, sizeof(command),
             "mkdir -p %s/bin %s/lib/capuchin && mv %s/capuchin %s/bin && "
             "echo text >%s/lib/capuchin/libcapuchin-interpose.so && " ALONE
             "%s/bin/capuchin run true",
             folder, folder, folder, folder, folder, folder);
    expect(command, 2, "libcapuchin-interpose.so cannot be loaded: ");
    snprintf(command, sizeof(command), "rm -r %s", folder);
    ck_assert_int_eq(run_command(command, output), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("usage");
    TCase *cases = tcase_create("usage");

    tcase_add_test(cases, test_wrong_options);
    tcase_add_test(cases, test_wrong_files);
    tcase_add_test(cases, test_wrong_budgets);
    tcase_add_test(cases, test_environment);
    tcase_add_test(cases, test_programs_options);
    tcase_add_test(cases, test_wrong_programs);
    tcase_add_test(cases, test_missing_files);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}

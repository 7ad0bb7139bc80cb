/*
 * capuchin run: programs that compute the same under a budget as alone, over a driver that executes
 * their PTX on this machine; what is refused; and wrong usage of the command.
 */
#include "tests/shim/programs.h"
#include "tests/support/suite.h"

#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#define ALONE \
    SANITIZERS "LD_LIBRARY_PATH=" DRIVER_FOLDER " PTX_DRIVER_MEMORY=64MiB PTX_DRIVER_FOREIGN=1 "
#define RUN ALONE "CAPUCHIN_DEVICE=host " CAPUCHIN_COMMAND " run "

static char alone[OUTPUT_BYTES];
static char output[OUTPUT_BYTES];

/* Runs a part of the program alone and with options; what it prints must be the same. */
static void check_same_program(const char *program, const char *part, const char *options)
{
    char command[2048];
    int code;

    snprintf(command, sizeof(command), ALONE "%s %s", program, part);
    ck_assert_int_eq(run_command(command, alone), 0);
    snprintf(command, sizeof(command), RUN "%s %s %s 2>/dev/null", options, program, part);
    code = run_command(command, output);
    ck_assert_msg(code == 0 && strcmp(alone, output) == 0, "%s: %d\n%s\nand alone\n%s", command,
                  code, output, alone);
}

static void check_same(const char *part, const char *options)
{
    check_same_program(WORK, part, options);
}

static void expect(const char *command, int code, const char *text)
{
    int status = run_command(command, output);

    ck_assert_msg(status == code, "%s: %d\n%s", command, status, output);
    check_contains(output, text);
}

/* The program's twelve tensors have 3 MiB. */
START_TEST(test_same_results)
{
    check_same("train", "");
    check_same("train", "--budget 2304KiB"); /* 75 % */
    check_same("train", "--budget 1700KiB"); /* 55 % */
    check_same("train", "--budget 600KiB");
    check_same("train", "--budget 1700KiB --strict");
    check_same("train", "--mode off");
    check_same("copies", "--budget 600KiB");
    check_same("copies", "--budget 600KiB --strict");
    check_same("queries", "--budget 2MiB");
    check_same("forms", "--budget 600KiB");
    check_same("reload", "--budget 1700KiB");
    check_same("forked", "--budget 600KiB");
    check_same("open 2", "--budget 2MiB");
    check_same("threads", "--budget 1200KiB");
}
END_TEST

START_TEST(test_budget_is_kept)
{
    char report[] = "/tmp/capuchin-run-report-XXXXXX";
    int file = mkstemp(report);
    char options[256];

    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(close(file), 0);
    snprintf(options, sizeof(options), "--budget 1700KiB --report %s", report);
    check_same("train", options);
    snprintf(options, sizeof(options), "cat %s", report);
    expect(options, 0, "budget: 1740800 bytes of device memory\n");
    check_contains(output, "at most 3145728\n");
    check_contains(output, "launches: 88 of closed kernels, 0 of open ones\n");
    check_contains(output, "kernel add: closed, 44 launches, at most 524288 bytes of operands, "
                           "0 launches failed\n");
    {
        const char *peak = strstr(output, "peak: ");

        ck_assert_ptr_nonnull(peak);
        ck_assert_int_le(atoi(peak + strlen("peak: ")), 1740800);
        ck_assert_int_ge(atoi(peak + strlen("peak: ")), 1024 * 1024);
    }
    ck_assert_int_eq(unlink(report), 0);
}
END_TEST

/* Products of cuBLAS on ten buffers of 48 KiB, at most four at once; and on parts of one
   allocation, which is cut as the program first uses them. */
START_TEST(test_products)
{
    check_same_program(PRODUCTS, "", "");
    check_same_program(PRODUCTS, "", "--budget 360KiB"); /* 75 % */
    check_same_program(PRODUCTS, "", "--budget 208KiB");
    check_same_program(PRODUCTS, "", "--budget 208KiB --strict");
    check_same_program(PRODUCTS, "blob", "--budget 360KiB");
    check_same_program(PRODUCTS, "blob", "--budget 360KiB --strict");
    /* A function that is not known needs all memory; cublasLtMatmul needs its operands. */
    check_same_program(PRODUCTS, "scale", "--budget 4MiB");
    expect(RUN "--budget 300KiB " PRODUCTS " scale", 0, "which is open: code of a CUDA library");
    check_same_program(PRODUCTS, "lt", "--budget 208KiB");
}
END_TEST

/* Kernels of code that was unloaded are not taken for those that were loaded after it. */
START_TEST(test_reloaded_code)
{
    expect(RUN "--budget 1700KiB --report /dev/stdout " WORK " reload", 0,
           "launches: 33 of closed kernels, 0 of open ones\n");
    check_contains(output, "kernel scale: closed, 11 launches, ");
}
END_TEST

/* A percentage is a share of the device's 64 MiB. */
START_TEST(test_percentage)
{
    expect(RUN "--budget 3% --report /dev/stdout " WORK " train", 0,
           "budget: 2013265 bytes of device memory\n");
}
END_TEST

START_TEST(test_pretend)
{
    expect(RUN "--budget 2MiB --pretend 3GiB " WORK " queries", 0, "used 1048576 of 3221225472\n");
}
END_TEST

/* What cannot run gets an error of the driver, and a line that says why. */
START_TEST(test_refusals)
{
    expect(RUN "--budget 2MiB " WORK " spin", 0, "spin 801\nspin 801\n");
    check_contains(output, "capuchin: refused: the kernel spin waits for memory");
    expect(RUN "--budget 2MiB " WORK " spin 2>&1 | grep -c refused", 0, "1\n");
    expect(RUN "--budget 2MiB " WORK " open 12", 0, "launch 2\n");
    check_contains(output, "capuchin: all 3145736 bytes are needed for the kernel through_table, "
                           "which is open: an address that no parameter gives");
    expect(RUN "--budget 2MiB --report /dev/stdout " WORK " open 12", 0,
           ", 0 launches, at most 0 bytes of operands, 1 launches failed\n");
    /* The context cannot be created. */
    expect(RUN "--budget 1 " WORK " queries", 1, "the program cannot be put under a budget: ");
    check_contains(output, "error 801");
}
END_TEST

START_TEST(test_wrong_options)
{
    expect(RUN, 2, "PROGRAM is missing");
    expect(RUN "--bugdet 1GiB /bin/true", 2, "unrecognized option '--bugdet");
    expect(RUN "--budget none /bin/true", 2, "--budget none: not a size");
    expect(RUN "--budget 0% /bin/true", 2, "--budget 0%: must be above 0");
    expect(RUN "--budget 120% /bin/true", 2, "--budget 120%");
    expect(RUN "--host-budget x /bin/true", 2, "--host-budget x: not a size");
    expect(RUN "--pretend 0 /bin/true", 2, "--pretend 0: must be at least 1");
    expect(RUN "--mode guided /bin/true", 2, "--mode guided: not");
    expect(RUN "--driver /nowhere/libcuda.so.1 /bin/true", 2,
           "--driver /nowhere/libcuda.so.1: No such file");
}
END_TEST

/* Options of the program are its own. */
START_TEST(test_programs_options)
{
    expect(RUN "--budget 1GiB /bin/echo --budget 5 -h", 0, "--budget 5 -h\n");
    expect(RUN "--budget 1GiB -- /bin/echo --mode", 0, "--mode\n");
    expect(RUN "echo found", 0, "found\n");
    expect(RUN "/bin/sh -c 'exit 9'", 9, "");
}
END_TEST

START_TEST(test_wrong_programs)
{
    char path[] = "/tmp/capuchin-run-XXXXXX";
    char command[1024];
    int file = mkstemp(path);

    ck_assert_int_ge(file, 0);
    ck_assert_int_eq((int)write(file, "text\n", 5), 5);
    ck_assert_int_eq(close(file), 0);
    expect(RUN "no-such-program-at-all", 2, "there is no program no-such-program-at-all in");
    expect(RUN "/nowhere/program", 2, "/nowhere/program: No such file");
    expect(RUN "/tmp", 2, "/tmp: not a program");
    expect(RUN STATIC, 2, "is linked statically, so no library can be preloaded");
    snprintf(command, sizeof(command), RUN "%s", path);
    expect(command, 2, "not a program that can be executed");
    ck_assert_int_eq(chmod(path, 0755), 0);
    expect(command, 2, "neither a program nor a script");
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
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(command, sizeof(command),
             "cp " CAPUCHIN_COMMAND " %s && " ALONE "%s/capuchin run true", folder, folder);
    expect(command, 2, "libcapuchin-interpose.so is not there");
    snprintf(command, sizeof(command), "rm -r %s", folder);
    ck_assert_int_eq(run_command(command, output), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("run");
    TCase *cases = tcase_create("run");

    tcase_add_test(cases, test_same_results);
    tcase_add_test(cases, test_budget_is_kept);
    tcase_add_test(cases, test_products);
    tcase_add_test(cases, test_reloaded_code);
    tcase_add_test(cases, test_percentage);
    tcase_add_test(cases, test_pretend);
    tcase_add_test(cases, test_refusals);
    tcase_add_test(cases, test_wrong_options);
    tcase_add_test(cases, test_programs_options);
    tcase_add_test(cases, test_wrong_programs);
    tcase_add_test(cases, test_missing_files);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}

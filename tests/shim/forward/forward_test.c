/*
 * The library that stands in for the driver, over a driver that computes nothing: which functions a
 * client gets that starts as NVIDIA's runtime does, and that calls arrive as they were made.
 */
#include "shim/driver/loader.h"
#include "tests/shim/programs.h"
#include "tests/support/suite.h"

#include <stdbool.h>

#define PRELOADED SANITIZERS "LD_PRELOAD=" SHIM " CAPU_RUN_DRIVER=" DRIVER " "
#define MANAGED PRELOADED "CAPU_RUN_MODE=passive "
#define BY_PATH SANITIZERS "LD_LIBRARY_PATH=" SHIM_FOLDER " CAPU_RUN_DRIVER=" DRIVER " "

/* What cuGetProcAddress has to give where nothing is managed: ours for what is wrapped, for both
   kinds of default stream; the driver's own for the rest, also for other variants. */
static const char from_runtime[] = "cuGetProcAddress_v2 by name: shim\n"
                                   "cuGetProcAddress 12000 1: 0 0 shim\n"
                                   "cuGetProcAddress 11030 1: 0 0 shim\n"
                                   "old cuGetProcAddress: 0 driver\n"
                                   "cuInit 2000 1: 0 0 driver\n"
                                   "cuStreamQuery 2000 1: 0 0 shim\n"
                                   "query 4001\n"
                                   "cuStreamQuery 7000 2: 0 0 shim\n"
                                   "query per thread 4002\n"
                                   "cuMemGetInfo 3020 1: 0 0 shim\n"
                                   "info 0 3298534883328 4398046511104\n"
                                   "cuStreamWaitValue32 12000 1: 0 0 driver\n"
                                   "wait 4003 4003\n"
                                   "cuCtxCreate 3020 1: 0 0 driver\n"
                                   "create 4004\n"
                                   "cuDevicePrimaryCtxRetain 7000 1: 0 0 shim\n"
                                   "retain 101 0 0 0\n"
                                   "cuMemGetInfo 2000 1: 0 0 driver\n"
                                   "old info 0\n"
                                   "cuDriverGetVersion 2020 1: 0 0 driver\n"
                                   "cuDevicePrimaryCtxRetain 6000 1: 500 2 nothing\n"
                                   "cuNoSuchFunction 13000 1: 500 1 nothing\n";

/* The same lines where memory is managed. */
static const char managed[] = "cuStreamWaitValue32 12000 1: 0 0 shim\n"
                              "wait 801 801\n"
                              "cuCtxCreate 3020 1: 0 0 shim\n"
                              "create 801\n"
                              "cuDevicePrimaryCtxRetain 7000 1: 0 0 shim\n"
                              "retain 101 0 0 801\n"
                              "cuMemGetInfo 2000 1: 0 0 shim\n"
                              "old info 801\n"
                              "cuDriverGetVersion 2020 1: 0 0 driver\n";

static const char by_symbols[] = "init 0 1\n"
                                 "bias 1500 -2250\n"
                                 "clamp 3507\n"
                                 "launch 157654321\n"
                                 "launch 157654321\n"
                                 "missing 500\n"
                                 "unknown nothing\n";

static void expect(const char *command, int code, const char *lines)
{
    static char output[OUTPUT_BYTES];
    int status = run_command(command, output);

    ck_assert_msg(status == code, "%s: %d\n%s", command, status, output);
    ck_assert_msg(strstr(output, lines) != NULL, "%s says\n%s\nand not\n%s", command, output,
                  lines);
}

/* Only lines of the client; what the shim says goes to standard error. */
static void expect_output(const char *environment, const char *arguments, const char *lines)
{
    static char output[OUTPUT_BYTES];
    char command[2048];

    snprintf(command, sizeof(command), "%s " CLIENT " %s 2>/dev/null", environment, arguments);
    ck_assert_int_eq(run_command(command, output), 0);
    ck_assert_str_eq(output, lines);
}

START_TEST(test_runtime_start)
{
    expect_output(PRELOADED, "", from_runtime);
    expect_output(BY_PATH, "", from_runtime);
    /* Preloaded, it is found before a driver that the library path has. */
    expect_output(PRELOADED "LD_LIBRARY_PATH=" DRIVER_FOLDER " ", "", from_runtime);
}
END_TEST

START_TEST(test_refusals)
{
    expect(MANAGED CLIENT, 0, managed);
}
END_TEST

START_TEST(test_symbols)
{
    expect_output(PRELOADED, "symbols", by_symbols);
    expect_output(BY_PATH, "symbols", by_symbols);
}
END_TEST

/* Programs that are linked with the driver reach the same functions. */
START_TEST(test_linked)
{
    expect(PRELOADED "LD_LIBRARY_PATH=" DRIVER_FOLDER " " LINKED, 0,
           "launch 157654321\ncreate 4004\n");
    expect(MANAGED "LD_LIBRARY_PATH=" DRIVER_FOLDER " " LINKED, 0,
           "refused: cuCtxCreate, which programs cannot use under a budget: use "
           "cuDevicePrimaryCtxRetain and cuCtxSetCurrent (docs/unmodified.md)\n");
    expect("LD_LIBRARY_PATH=" DRIVER_FOLDER " " LINKED, 0, "create 4004\n");
}
END_TEST

/* libcapuchin's own CUDA runtime must not come back to us; the libraries of CUDA must. They may use
   what only the program's memory must not be used with, and variants of what is theirs. */
START_TEST(test_callers)
{
    expect_output(PRELOADED, ASKER_FOLDER "/libcapuchin-cuda0.so",
                  "wrapped driver\nrefused driver\nshared driver\nold driver\nitself driver\n");
    expect_output(PRELOADED, ASKER_FOLDER "/libcublas-asker.so",
                  "wrapped shim\nrefused driver\nshared driver\nold driver\nitself shim\n");
    expect_output(MANAGED, ASKER_FOLDER "/libcublas-asker.so",
                  "wrapped shim\nrefused shim\nshared driver\nold driver\nitself shim\n");
    expect_output(MANAGED, ASKER_FOLDER "/libprogram.so",
                  "wrapped shim\nrefused shim\nshared shim\nold shim\nitself shim\n");
}
END_TEST

START_TEST(test_messages)
{
    expect(MANAGED CLIENT, 0, "capuchin: refused: cuStreamWaitValue32, which programs");
    expect(MANAGED CLIENT, 0, "capuchin: refused: device 1 beside device 0; ");
    expect(MANAGED CLIENT " 2>&1 | grep -c 'refused: cuStreamWaitValue32'", 0, "1\n");
    expect(PRELOADED CLIENT " 2>&1 | grep -c refused", 1, "0\n");
    expect(PRELOADED CLIENT " symbols", 0,
           "the CUDA driver has no function cuMemPrefetchAsync_v2, which");
}
END_TEST

/* Without the command, the driver is the one that the loader would find. */
START_TEST(test_loaders_driver)
{
    expect_output(SANITIZERS "LD_PRELOAD=" SHIM " LD_LIBRARY_PATH=" DRIVER_FOLDER " ", "symbols",
                  by_symbols);
    expect_output(SANITIZERS "LD_LIBRARY_PATH=" SHIM_FOLDER ":" DRIVER_FOLDER " ", "symbols",
                  by_symbols);
}
END_TEST

static char cached[4096];

static bool take_cached(const char *path)
{
    snprintf(cached, sizeof(cached), "%s", path);
    return true;
}

START_TEST(test_loaders_cache)
{
    static char output[OUTPUT_BYTES];
    char folder[] = "/tmp/capuchin-loader-XXXXXX";
    char path[64];
    char command[1024];

    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/cache", folder);
    snprintf(command, sizeof(command),
             "echo " DRIVER_FOLDER
             " >%s/folders && PATH=$PATH:/sbin ldconfig -X -C %s -f %s/folders",
             folder, path, folder);
    ck_assert_int_eq(run_command(command, output), 0);
    ck_assert(loader_find_cached(path, "libcuda.so.1", take_cached));
    ck_assert_str_eq(cached, DRIVER);
    ck_assert(!loader_find_cached(path, "libcuda.so.2", take_cached));
    ck_assert(!loader_find_cached("/nowhere/cache", "libcuda.so.1", take_cached));
    snprintf(command, sizeof(command), "rm -r %s", folder);
    ck_assert_int_eq(run_command(command, output), 0);
}
END_TEST

/* Calls fail as without a device, with one line that says why; nothing crashes. */
START_TEST(test_no_driver)
{
    expect(SANITIZERS "LD_PRELOAD=" SHIM " CAPU_RUN_DRIVER=/nowhere/libcuda.so.1 " CLIENT
                      " symbols",
           0, "capuchin: the CUDA driver cannot be opened: /nowhere/libcuda.so.1");
    expect(SANITIZERS "LD_PRELOAD=" SHIM " CAPU_RUN_DRIVER=/nowhere/libcuda.so.1 " CLIENT
                      " symbols",
           0, "init 100 100\n");
    expect(SANITIZERS "LD_PRELOAD=" SHIM " CAPU_RUN_DRIVER=libcuda.so.1 " CLIENT " symbols", 0,
           "must be an absolute path");
    expect(SANITIZERS "LD_PRELOAD=" SHIM " CAPU_RUN_DRIVER=" SHIM " " CLIENT " symbols", 0,
           "which is this library and not a driver");
    expect(SANITIZERS "LD_PRELOAD=" SHIM " CAPU_RUN_DRIVER=" SHIM_FOLDER "/libcuda.so.1 " CLIENT
                      " symbols",
           0, "which is this library and not a driver");
}
END_TEST

/* A program that does not use CUDA is left alone, without a driver, too. */
START_TEST(test_other_programs)
{
    static char output[OUTPUT_BYTES];

    ck_assert_int_eq(run_command(SANITIZERS "LD_PRELOAD=" SHIM " CAPU_RUN_DRIVER=/nowhere/x " PLAIN
                                            " forward",
                                 output),
                     0);
    ck_assert_str_eq(output, "forward\n");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("forward");
    TCase *cases = tcase_create("forward");

    tcase_add_test(cases, test_runtime_start);
    tcase_add_test(cases, test_refusals);
    tcase_add_test(cases, test_symbols);
    tcase_add_test(cases, test_linked);
    tcase_add_test(cases, test_callers);
    tcase_add_test(cases, test_messages);
    tcase_add_test(cases, test_loaders_driver);
    tcase_add_test(cases, test_loaders_cache);
    tcase_add_test(cases, test_no_driver);
    tcase_add_test(cases, test_other_programs);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}

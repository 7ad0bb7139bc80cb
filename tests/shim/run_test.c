/*
 * capuchin run: programs that compute the same under a budget as alone, over a driver that executes
 * their PTX on this machine; what is refused; and wrong usage of the command.
 */
#include "tests/shim/programs.h"
#include "tests/support/suite.h"
#include "tests/unit/interpose/device_code.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#define ALONE \
    SANITIZERS "LD_LIBRARY_PATH=" DRIVER_FOLDER " PTX_DRIVER_MEMORY=64MiB PTX_DRIVER_FOREIGN=1 "
#define RUN ALONE "CAPUCHIN_DEVICE=host CAPUCHIN_WAIT_FOR_PLAN=1 " CAPUCHIN_COMMAND " run "

static char alone[OUTPUT_BYTES];
static char output[OUTPUT_BYTES];

/* Runs a part of the program alone and with options; what it prints must be the same. All that its
   launches touch is compared with their operands; in strict mode, differences have to fault. */
static void check_same_program(const char *program, const char *part, const char *options)
{
    char command[2048];
    char list[64];
    int code;

    snprintf(command, sizeof(command), ALONE "%s %s", program, part);
    ck_assert_int_eq(run_command(command, alone), 0);
    if (strstr(options, "--strict") != NULL) {
        snprintf(command, sizeof(command), RUN "%s %s %s 2>/dev/null", options, program, part);
        code = run_command(command, output);
    } else {
        snprintf(list, sizeof(list), "/tmp/capuchin-run-list-%d", (int)getpid());
        snprintf(command, sizeof(command),
                 "PTX_DRIVER_OPERANDS=%s " RUN "--operands %s %s %s %s 2>/dev/null", list, list,
                 options, program, part);
        code = run_command(command, output);
        (void)unlink(list); /* not there if nothing was launched */
    }
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
    check_same("boxes", "");
    check_same("boxes", "--budget 2500KiB");
    check_same("boxes", "--budget 600KiB");
    check_same("boxes", "--budget 600KiB --strict");
    check_same("queries", "--budget 2MiB");
    check_same("forms", "--budget 600KiB");
    check_same("reload", "--budget 1700KiB");
    check_same("forked", "--budget 600KiB");
    check_same("open 2", "--budget 2MiB");
    check_same("threads", "--budget 1200KiB");
    check_same("waits", "--budget 2304KiB");
}
END_TEST

/* What stays the driver's, and what cuBLAS allocates, comes out of the budget, and goes back to it
   when it is freed. Windows and bitmaps of coverage slices stay. */
START_TEST(test_memory_of_others)
{
    check_same("beside", "--budget 1700KiB");
    check_same("beside", "--budget 900KiB --strict");
    expect(RUN "--budget 900KiB --report /dev/stdout " WORK " beside", 0,
           "taken by others: 10240 bytes of device memory at the end, at most 534528\n");
    check_contains(output, "budget: 921600 bytes");
    check_contains(output, "passed through: cuMemAllocManaged: 2 calls, 524288 bytes in all\n");
    /* While it was taken, there was no room for a launch with three tensors. */
    expect(RUN "--budget 900KiB " WORK " beside 3", 0, "launch 2\nlaunch 0\n");
    check_contains(output, "needs 524288 bytes of device memory at once");
    expect(RUN "--budget 500KiB " WORK " beside", 1, "cuMemAllocManaged: error 2\n");
    check_contains(output,
                   "capuchin: cuMemAllocManaged: 262144 bytes do not fit the budget, of which "
                   "such memory has 262144: does not fit the budget");
    expect(RUN "--budget 272KiB --report /dev/stdout " PRODUCTS, 0,
           "taken by others: 0 bytes of device memory at the end, at most 65536\n");
    expect(RUN "--budget 60KiB " PRODUCTS, 1, "cublasCreate_v2: error 3\n");
    check_contains(output, "capuchin: cuMemAlloc_v2 by libraries of CUDA: 65536 bytes do not fit");
}
END_TEST

/* The report's, of iterations whose reports could be read: the last ones are missing. */
static int guided_count(void)
{
    const char *guided = strstr(output, "\nguided iterations: ");

    ck_assert_ptr_nonnull(guided);
    return atoi(guided + strlen("\nguided iterations: "));
}

/* Each step allocates what it begins with, and frees it: the iteration begins there. */
START_TEST(test_batches)
{
    check_same("batches", "--mode guided --budget 900KiB");
    expect(RUN "--mode guided --budget 900KiB --report /dev/stdout " WORK " batches", 0,
           "\niterations: 20\nperiod: 13 calls, begun by copy from the host ");
    ck_assert_int_ge(guided_count(), 12);
}
END_TEST

/* Steps that repeat, and some that do not: they keep memory that others free, read what others
   overwrite, do more or less. At most nine tensors of 256 KiB; an op names two. */
START_TEST(test_guided)
{
    static const int unusual[] = {22, 12, 16};
    char part[32];
    char options[1024];

    snprintf(part, sizeof(part), "steps %d", unusual[_i]);
    check_same(part, _i == 0 ? "--mode guided --budget 1700KiB" : "--mode guided --budget 900KiB");
    check_same(part, _i == 0 ? "--mode guided --budget 900KiB --strict"
                             : "--mode guided --budget 600KiB --iteration-kernel scale");
    snprintf(options, sizeof(options),
             RUN "--mode guided --budget 900KiB --report /dev/stdout " WORK " %s", part);
    expect(options, 0, "\nperiod: 14 calls, begun by copy from the host (a copy from the host), ");
    if (unusual[_i] == 22) {
        ck_assert_int_ge(guided_count(), 12);
        check_contains(output, "\niterations: 20\n");
        check_contains(output, "\niterations that left their plan: 0\n");
    }
}
END_TEST

/* Each step has a range of NVTX, by its name or by a registered string in a domain. */
START_TEST(test_ranges)
{
    const char *part = _i == 0 ? "ranges" : "ranges domain";
    char command[1024];

    check_same(part, "--mode guided --budget 900KiB --iteration-range step");
    snprintf(command, sizeof(command),
             RUN "--mode guided --budget 900KiB --iteration-range step --report /dev/stdout " WORK
                 " %s",
             part);
    expect(command, 0, "\niterations: 22\nperiod: 14 calls, begun by copy (as --iteration-range ");
    /* Whole writes are found when a launch is repeated, which changes what the first plan knew. */
    check_contains(output, "\niterations that left their plan: 1\n");
    ck_assert_int_ge(guided_count(), 12);
    snprintf(command, sizeof(command),
             RUN "--mode guided --budget 900KiB --iteration-range other --report /dev/stdout " WORK
                 " %s",
             part);
    expect(command, 0, "\niterations: 0\nno period was found\n");
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

/* What each launch is taken to touch, and that it was enqueued. */
START_TEST(test_operands)
{
    expect(RUN "--budget 600KiB --operands /dev/stdout " WORK " train", 0, "1 scale: read 0x");
    check_contains(output, " 262144 of 0x");
    check_contains(output, " 262144, update 0x");
    check_contains(output, "\n1 done\n2 ");
    check_contains(output, "\n88 done\n");
    expect(RUN "--operands /nowhere/list " WORK " train", 0,
           "capuchin: the list of operands /nowhere/list cannot be written: No such file");
    expect(RUN "--operands /dev/full " WORK " train", 0,
           "capuchin: the list of operands cannot be written: No space left");
}
END_TEST

/* Products of cuBLAS on ten buffers of 48 KiB, at most four at once, beside its workspace of 64
   KiB; and on parts of one allocation, which is cut as the program first uses them. */
START_TEST(test_products)
{
    check_same_program(PRODUCTS, "", "");
    check_same_program(PRODUCTS, "", "--budget 424KiB"); /* 75 % of the buffers */
    check_same_program(PRODUCTS, "", "--budget 272KiB");
    check_same_program(PRODUCTS, "", "--budget 272KiB --strict");
    check_same_program(PRODUCTS, "blob", "--budget 424KiB");
    check_same_program(PRODUCTS, "blob", "--budget 424KiB --strict");
    check_same_program(PRODUCTS, "blob", "--budget 400KiB --mode guided --iteration-kernel .");
    /* A function that is not known needs all memory; cublasLtMatmul needs its operands. */
    check_same_program(PRODUCTS, "rotate", "--budget 4MiB");
    expect(RUN "--budget 300KiB " PRODUCTS " rotate", 0, "which is open: code of a CUDA library");
    check_same_program(PRODUCTS, "lt", "--budget 272KiB");
    check_same_program(PRODUCTS, "graphs", "--budget 300KiB");
    check_same_program(PRODUCTS, "graphs", "--budget 300KiB --strict");
    check_same_program(PRODUCTS, "vectors", "--budget 272KiB");
    check_same_program(PRODUCTS, "vectors", "--budget 272KiB --strict");
}
END_TEST

/* cuRAND fills eight buffers of 64 KiB, and its own state is not part of the budget. */
START_TEST(test_random_numbers)
{
    check_same_program(NUMBERS, "", "");
    check_same_program(NUMBERS, "", "--budget 192KiB");
    check_same_program(NUMBERS, "", "--budget 192KiB --strict");
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

/* Launches that may be repeated are launched by the library: also those of code that is unloaded
   afterwards, and those that the driver refuses. */
START_TEST(test_repeatable_launches)
{
    static const char *const parts[] = {"train", "steps 12", "forms", "reload"};

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        check_same(parts[i], "--budget 1700KiB --mode guided --recompute");
        check_same(parts[i], "--budget 1700KiB --mode guided --recompute --strict");
    }
    expect(RUN "--budget 1700KiB --mode guided --recompute --report /dev/stdout " WORK " reload", 0,
           "\nrepeatable scale: 10 launches, repeated 0 times\n");
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
    expect(RUN "--budget 2MiB " WORK " spin", 0, "spin 801\nspin 801\ncooperative 0\n");
    check_contains(output, "capuchin: refused: the kernel spin waits for memory");
    expect(RUN "--budget 2MiB --report /dev/stdout " WORK " spin", 0, "\nrefused: spin\n");
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

/* Communicators of one rank are left alone. */
START_TEST(test_nccl)
{
    expect(RUN COMM " 1", 0, "rank 0 id\nall 0\n");
    ck_assert_ptr_null(strstr(output, "refused"));
    expect(RUN COMM " 2", 0, "rank 5 none\nall 5\n");
    check_contains(output, "capuchin: refused: ncclCommInitRank with 2 ranks, which programs");
    check_contains(output, "capuchin: refused: ncclCommInitAll with 2 ranks, which programs");
    expect(RUN "--mode off " COMM " 2", 0, "rank 5 none\n");
    expect(ALONE COMM " 2", 0, "rank 0 id\nall 0\n");
}
END_TEST

/* Whole families of functions, by symbol and by cuGetProcAddress; the program can go on. */
#define REFUSED                                                                                  \
    "cuIpcGetMemHandle cuIpcOpenMemHandle_v2 cuIpcCloseMemHandle cuIpcGetEventHandle "           \
    "cuIpcOpenEventHandle cuGreenCtxCreate cuCtxFromGreenCtx cuMemcpyPeer cuMemcpyPeerAsync "    \
    "cuMemcpy3DPeer cuCtxEnablePeerAccess cuStreamWaitValue32_v2 cuStreamWriteValue64_v2 "       \
    "cuStreamBatchMemOp_v2 cuCtxCreate_v2 cuCtxCreate_v4 "                                       \
    "cuStreamBeginCaptureToGraph cuGraphAddBatchMemOpNode cuGraphAddExternalSemaphoresWaitNode " \
    "cuImportExternalSemaphore cuMemcpyBatchAsync_v2 cuMulticastCreate "                         \
    "cuMemExportToShareableHandle"

START_TEST(test_refused_functions)
{
    static char names[] = REFUSED;
    char line[256];
    int given = 0;

    expect("IMAGE=" KERNELS_PTX " " RUN "--budget 2MiB --report /dev/stdout " LIMITS
           " refused " REFUSED,
           0, "launch 0: 298\n");
    check_contains(output, "second device 801\n");
    check_contains(output, "capuchin: refused: device 1 beside device 0; a program under a budget");
    check_contains(output, "refused: a second device\n");
    for (char *name = strtok(names, " "); name != NULL; name = strtok(NULL, " ")) {
        char *version = strstr(name, "_v");

        snprintf(line, sizeof(line), "%s 801 801\n", name);
        if (strstr(output, line) != NULL) {
            given++;
        } else { /* the driver for tests does not have it */
            snprintf(line, sizeof(line), "%s 801, not given\n", name);
            check_contains(output, line);
        }
        if (version != NULL) {
            *version = '\0';
        }
        snprintf(line, sizeof(line), "capuchin: refused: %s, which programs cannot use", name);
        check_contains(output, line);
        snprintf(line, sizeof(line), "\nrefused: %s\n", name);
        check_contains(output, line);
    }
    ck_assert_int_ge(given, 12);
}
END_TEST

/* Writes a fat binary with the PTX of kernels.ptx, for 8.0, and machine code of its kernels;
   "scale" has other parameters there if the last of them has another size. */
static void write_image(const char *path, unsigned architecture, unsigned last_bytes)
{
    const struct written_kernel kernels[] = {{"scale", {8, 8, 4, last_bytes}, false},
                                             {"add", {8, 8, 4}, false},
                                             {"through_table", {8, 4}, false},
                                             {"spin", {8}, false}};
    static unsigned char text[65536];
    struct buffer cubin = {NULL, 0};
    struct buffer fatbin = {NULL, 0};
    struct written_image images[2] = {{.kind = 1, .architecture = 80},
                                      {.kind = 2, .architecture = architecture}};
    FILE *file = fopen(KERNELS_PTX, "r");

    ck_assert_ptr_nonnull(file);
    images[0].contents = (struct bytes){text, fread(text, 1, sizeof(text) - 1, file) + 1};
    ck_assert_int_eq(fclose(file), 0);
    write_cubin(&cubin, false, kernels, 4);
    images[1].contents = buffer_bytes(&cubin);
    write_fatbin(&fatbin, images, 2);
    file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fwrite(fatbin.data, fatbin.count, 1, file), 1);
    ck_assert_int_eq(fclose(file), 0);
    free(cubin.data);
    free(fatbin.data);
}

/* PTX is evidence only if what runs was made from it. */
START_TEST(test_images)
{
    static const struct {
        unsigned architecture, last_bytes;
        bool is_closed;
        const char *text;
    } rows[] = {
        {80, 4, true, "kernel scale: closed"},
        {90, 4, false, "kernel scale: open: no PTX of the architecture whose machine code runs"},
        {70, 4, false, "kernel scale: open: no machine code of the PTX's architecture"},
        {80, 8, false, "kernel scale: open: the machine code has other kernels or parameters"},
    };
    char path[] = "/tmp/capuchin-run-image-XXXXXX";
    char command[2048];
    int file = mkstemp(path);

    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(close(file), 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        write_image(path, rows[i].architecture, rows[i].last_bytes);
        snprintf(command, sizeof(command),
                 "IMAGE=%s " RUN "--budget %s --report /dev/stdout " LIMITS " image", path,
                 rows[i].is_closed ? "700KiB" : "2MiB");
        expect(command, 0, "launch 0: 298\n");
        check_contains(output, rows[i].text);
    }
    snprintf(command, sizeof(command), "IMAGE=%s " RUN "--budget 700KiB " LIMITS " image", path);
    expect(command, 0, "launch 2: 99\n");
    check_contains(output, "the kernel scale, which is open: ");
    ck_assert_int_eq(unlink(path), 0);
}
END_TEST

/* With trust, an open kernel needs what its parameters lead to, and nothing else is lost. */
START_TEST(test_trust)
{
    static const char *const forms[] = {"image", "packed"};
    char path[] = "/tmp/capuchin-run-image-XXXXXX";
    char list[] = "/tmp/capuchin-run-list-XXXXXX";
    char command[2048];
    int file = mkstemp(path);

    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(close(file), 0);
    ck_assert_ptr_nonnull(mkdtemp(list));
    write_image(path, 90, 4);
    for (size_t i = 0; i < 2; i++) {
        snprintf(command, sizeof(command),
                 "IMAGE=%s PTX_DRIVER_OPERANDS=%s/%zu " RUN "--budget 700KiB --trust-parameters "
                 "--operands %s/%zu --report /dev/stdout " LIMITS " %s",
                 path, list, i, list, i, forms[i]);
        expect(command, 0, "launch 0: 298\n");
        check_contains(output, "kernel scale: open: no PTX of the architecture whose machine code "
                               "runs (its parameters are trusted), 1 launches, at most 524288 ");
        ck_assert_ptr_null(strstr(output, "capuchin: "));
    }
    /* Pointers in memory are not found. */
    snprintf(command, sizeof(command),
             "PTX_DRIVER_OPERANDS=%s/2 " RUN
             "--budget 2MiB --trust-parameters --operands %s/2 " WORK " open 12",
             list, list);
    expect(command, 99, "through_table, line 75, block 0,0,0, thread 0,0,0 stores to what is not");
    snprintf(command, sizeof(command), "rm -r %s %s", path, list);
    ck_assert_int_eq(run_command(command, output), 0);
}
END_TEST

/* Code that runs is made from other PTX, or that is not certain: with --jit it is made from this.
 */
START_TEST(test_jit)
{
    static const struct {
        unsigned architecture, last_bytes;
        bool is_compiled;
        const char *form;
    } rows[] = {{90, 4, true, "image"},
                {90, 4, true, "library"},
                {70, 4, true, "image"},
                {80, 8, true, "library"},
                {80, 4, false, "image"}};
    char path[] = "/tmp/capuchin-run-image-XXXXXX";
    char command[2048];
    int file = mkstemp(path);

    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(close(file), 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        write_image(path, rows[i].architecture, rows[i].last_bytes);
        snprintf(command, sizeof(command),
                 "PTX_DRIVER_MACHINE_CODE=1 IMAGE=%s " RUN
                 "--jit --budget 700KiB --report /dev/stdout " LIMITS " %s",
                 path, rows[i].form);
        expect(command, 0, "launch 0: 298\n");
        check_contains(output, "kernel scale: closed, 1 launches");
        ck_assert_int_eq(rows[i].is_compiled,
                         strstr(output, "capuchin: --jit: the driver compiles PTX in place") !=
                             NULL);
    }
    /* Without it, the driver takes the machine code. */
    write_image(path, 90, 4);
    snprintf(command, sizeof(command), "PTX_DRIVER_MACHINE_CODE=1 IMAGE=%s " RUN LIMITS " image",
             path);
    expect(command, 1, "cuModuleGetFunction: error 500\n");
    ck_assert_int_eq(unlink(path), 0);
}
END_TEST

/* Memory that is not part of the budget. */
START_TEST(test_passed_through)
{
    expect(RUN "--budget 600KiB --report /dev/stdout " WORK " copies", 0,
           "passed through: cuMemAllocHost_v2: 1 calls, 262144 bytes in all\n");
    expect(RUN "--budget 360KiB --report /dev/stdout " PRODUCTS, 0,
           "passed through: cuMemAlloc_v2 by libraries of CUDA: ");
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
    expect(RUN "--verify --strict /bin/true", 2, "--verify cannot be combined with --strict");
    expect(RUN "--mode guided --verify /bin/true", 2, "--verify cannot be combined with --mode");
    expect(RUN "--mode manual /bin/true", 2, "--mode manual: not");
    expect(RUN "--iteration-kernel x --iteration-range y /bin/true", 2, "cannot be combined with");
    expect("NVTX_INJECTION64_PATH=/x " RUN "--iteration-range y /bin/true", 2,
           "which is set: another tool uses NVTX");
    expect(RUN "--iteration-kernel '(' /bin/true", 2, "--iteration-kernel (: ");
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
    tcase_add_test(cases, test_memory_of_others);
    tcase_add_loop_test(cases, test_guided, 0, 3);
    tcase_add_test(cases, test_batches);
    tcase_add_loop_test(cases, test_ranges, 0, 2);
    tcase_add_test(cases, test_budget_is_kept);
    tcase_add_test(cases, test_operands);
    tcase_add_test(cases, test_products);
    tcase_add_test(cases, test_random_numbers);
    tcase_add_test(cases, test_reloaded_code);
    tcase_add_test(cases, test_repeatable_launches);
    tcase_add_test(cases, test_percentage);
    tcase_add_test(cases, test_pretend);
    tcase_add_test(cases, test_refusals);
    tcase_add_test(cases, test_nccl);
    tcase_add_test(cases, test_refused_functions);
    tcase_add_test(cases, test_images);
    tcase_add_test(cases, test_jit);
    tcase_add_test(cases, test_trust);
    tcase_add_test(cases, test_passed_through);
    tcase_add_test(cases, test_wrong_options);
    tcase_add_test(cases, test_programs_options);
    tcase_add_test(cases, test_wrong_programs);
    tcase_add_test(cases, test_missing_files);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}

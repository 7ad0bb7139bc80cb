/*
 * capuchin run: programs that compute the same under a budget as alone, over a driver that executes
 * their PTX on this machine; and what is refused.
 */
#include "tests/shim/programs.h"
#include "tests/support/suite.h"

#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

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
    check_run(command, code, text, output);
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
    check_same("pools", "--budget 600KiB");
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
    check_contains(output,
                   "capuchin: does not fit the budget: op 'scale' needs 524288 bytes of device "
                   "memory at once");
    check_contains(output, "(--budget is 921600, of which 524288 are taken by others)");
    check_contains(output, "capuchin: launches, copies or memsets not carried out: 1, see");
    /* Bitmaps are freed where a launch has no room beside them. */
    check_same("train", "--budget 512KiB");
    expect(RUN "--budget 512KiB --report /dev/stdout " WORK " train", 0,
           "\ntaken by others: 0 bytes of device memory at the end, at most 1");
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

/* A workspace that cuBLAS allocates with its first product has room: it was reserved before, as far
   as nothing of the program needed that. If there is none, the product may have other bits, so that
   counts as not carried out. The report's floor would do. */
START_TEST(test_workspace)
{
    expect("PTX_CUBLAS_LATE_WORKSPACE=1 PTX_DRIVER_CAPABILITY=80 " RUN
           "--budget 8MiB --report /dev/stdout " PRODUCTS,
           0, "\nreserved for libraries: 4128768 bytes of device memory at the end\n");
    expect("PTX_CUBLAS_LATE_WORKSPACE=1 PTX_DRIVER_CAPABILITY=80 " RUN
           "--budget 4120KiB --report /dev/stdout " PRODUCTS,
           0, "\nnot carried out: 0 launches, copies and memsets\n");
    expect("PTX_CUBLAS_LATE_WORKSPACE=1 " RUN "--budget 200KiB --report /dev/stdout " PRODUCTS, 0,
           "capuchin: cuMemAlloc_v2 by libraries of CUDA: 65536 bytes do not fit the budget, of "
           "which such memory has 0: does not fit the budget; for what the program has done so "
           "far, --budget 212992 would do\n");
    check_contains(output, "\nnot carried out: 1 launches, copies and memsets\n");
    check_contains(output, "\nfloor: 262144 bytes of device memory\n");
    expect("PTX_CUBLAS_LATE_WORKSPACE=1 " RUN "--budget 262144 --report /dev/stdout " PRODUCTS, 0,
           "\nnot carried out: 0 launches, copies and memsets\n");
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

/* A shell and the two programs that it starts: each program has a report and a list of its own. */
START_TEST(test_each_process_has_its_files)
{
    char folder[] = "/tmp/capuchin-run-files-XXXXXX";
    char command[1024];

    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(command, sizeof(command),
             RUN "--budget 1700KiB --report %s/r.%%p --operands %s/o.%%p sh -c '" WORK
                 " train; " WORK " train'",
             folder, folder);
    ck_assert_int_eq(run_command(command, output), 0);
    snprintf(command, sizeof(command),
             "cd %s && test $(ls r.[0-9]* | wc -l) = 2 && test $(ls o.[0-9]* | wc -l) = 2 && "
             "grep -h '^launches: 88 of closed kernels, 0 of open ones$' r.* | wc -l",
             folder);
    expect(command, 0, "2\n");
    snprintf(command, sizeof(command), "rm -r %s", folder);
    ck_assert_int_eq(run_command(command, output), 0);
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
    /* The library is in the scope of a plug-in only. */
    check_same_program(PLUGIN, "lt", "--budget 272KiB");
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

/* So are kernels that are found among all. */
START_TEST(test_enumerated_code)
{
    static const char *const forms[] = {"kernels", "functions"};
    char command[1024];

    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        snprintf(command, sizeof(command),
                 "IMAGE=" KERNELS_PTX " " RUN "--budget 700KiB --report /dev/stdout " LIMITS " %s",
                 forms[i]);
        expect(command, 0, "launch 0: 298\n");
        check_contains(output, "\nkernel scale: closed, 1 launches, ");
    }
}
END_TEST

/* What is done with managed memory is in order with the rest: on one stream. */
START_TEST(test_managed_memory)
{
    static const char streams[] = " 2>&1 | sed -n 's/.* on stream //p' | sort -u | wc -l";

    check_same("managed", "--budget 2MiB");
    expect("PTX_DRIVER_STREAMS=1 " RUN "--budget 2MiB " WORK
           " managed 2>&1 | grep -c ' on stream '",
           0, "5\n");
    for (int i = 0; i < 2; i++) {
        char command[1024];

        snprintf(command, sizeof(command), "PTX_DRIVER_STREAMS=1 %s" WORK " managed%s",
                 i == 0 ? ALONE : RUN "--budget 2MiB ", streams);
        expect(command, 0, i == 0 ? "2\n" : "1\n");
    }
}
END_TEST

/* Copies and memsets return when CUDA says. On the host device, calls for memory of ours always
   wait, so that nothing passes. */
START_TEST(test_synchronous_calls)
{
    expect(ALONE SYNCHRONOUS " | grep -c ': 1 5$'", 0, "13\n");
    expect(ALONE SYNCHRONOUS " passing | grep -c ': passes 5$'", 0, "5\n");
    check_same_program(SYNCHRONOUS, "", "--budget 2MiB");
}
END_TEST

/* Code of a library is loaded, found and unloaded before there is a context. */
START_TEST(test_early_code)
{
    expect("IMAGE=" KERNELS_PTX " " ALONE LIMITS " early", 0, "context 0\nlaunch 0: 298\n");
    expect("IMAGE=" KERNELS_PTX " " RUN "--budget 2MiB --report /dev/stdout " LIMITS " early", 0,
           "context 0\nlaunch 0: 298\n");
    check_contains(output, "\nkernel scale: closed, 1 launches, ");
    /* Nor does it fail where nothing can be managed. */
    expect("IMAGE=" KERNELS_PTX " " RUN "--budget 1 " LIMITS " early", 1,
           "context 0\ncuMemAlloc_v2: error 801\n");
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

/* Two of the twelve tensors fit. Each of the four steps copies twelve back: the source of ten of
   the eleven updates on the way back, that of a copy, and one that a memset changes in part. All
   that is written leaves before it is needed again: 24 tensors per step, but for the last one. */
START_TEST(test_traffic)
{
    expect(RUN "--budget 600KiB --report /dev/stdout " WORK " train", 0,
           "\ncopied to the host: 24903680 bytes in 95 copies\n"
           "copied back: 12582912 bytes in 48 copies\n");
    check_contains(output,
                   "\nmoved: allocation 4: 3145728 bytes out, 2097152 back; 262144 bytes, at");
    check_contains(output, "\nmoved: 2 other allocations\n");
    ck_assert_ptr_null(strstr(output, "compute waited for memory: 0 ns"));
    expect(
        RUN "--budget 4MiB --report /dev/stdout " WORK " train", 0,
        "\ncopied to the host: 0 bytes in 0 copies\ncopied back: 0 bytes in 0 copies\n"
        "evicted without a copy: 0 bytes with a valid copy, 0 bytes without contents, 0 bytes to "
        "be recomputed\noverwritten without being copied back: 0 bytes\n"
        "compute waited for memory: 0 ns\nthe program waited for evictions: 0 ns\n");
    ck_assert_ptr_null(strstr(output, "moved: "));
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
    check_contains(output, "capuchin: launches, copies or memsets not carried out: 2, see");
    expect(RUN "--budget 2MiB --report /dev/stdout " WORK " spin", 0,
           "\nrefused: spin\nnot carried out: 2 launches, copies and memsets\n");
    expect(RUN "--budget 2MiB " WORK " spin 2>&1 | grep -c refused", 0, "1\n");
    expect(RUN "--budget 2MiB " WORK " open 12", 0, "launch 2\n");
    check_contains(output, "capuchin: all 3145736 bytes are needed for the kernel through_table, "
                           "which is open: an address that no parameter gives");
    expect(RUN "--budget 2MiB --report /dev/stdout " WORK " open 12", 0,
           ", 0 launches, at most 0 bytes of operands, 1 launches failed\n");
    check_contains(output, "\nnot carried out: 1 launches, copies and memsets\n");
    expect(RUN "--report /dev/stdout " WORK " open 2", 0,
           "\nnot carried out: 0 launches, copies and memsets\n");
    ck_assert_ptr_null(strstr(output, "capuchin: "));
    expect(RUN "--report /dev/stdout " WORK " pools host", 0,
           "host 801\nmanaged 801\ndefault 801\n");
    check_contains(output, "capuchin: refused: cuMemPoolCreate for memory of the host or managed");
    check_contains(output, "capuchin: refused: cuMemGetMemPool for memory of the host or managed");
    check_contains(output, "\nrefused: a memory pool of the host or of managed memory\n");
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

/* Memory that is not part of the budget. */
START_TEST(test_passed_through)
{
    expect(RUN "--budget 600KiB --report /dev/stdout " WORK " copies", 0,
           "passed through: cuMemAllocHost_v2: 1 calls, 262144 bytes in all\n");
    expect(RUN "--budget 360KiB --report /dev/stdout " PRODUCTS, 0,
           "passed through: cuMemAlloc_v2 by libraries of CUDA: ");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("run");
    TCase *cases = tcase_create("run");

    tcase_add_test(cases, test_same_results);
    tcase_add_test(cases, test_memory_of_others);
    tcase_add_test(cases, test_workspace);
    tcase_add_loop_test(cases, test_guided, 0, 3);
    tcase_add_test(cases, test_batches);
    tcase_add_loop_test(cases, test_ranges, 0, 2);
    tcase_add_test(cases, test_budget_is_kept);
    tcase_add_test(cases, test_each_process_has_its_files);
    tcase_add_test(cases, test_operands);
    tcase_add_test(cases, test_products);
    tcase_add_test(cases, test_random_numbers);
    tcase_add_test(cases, test_enumerated_code);
    tcase_add_test(cases, test_managed_memory);
    tcase_add_test(cases, test_synchronous_calls);
    tcase_add_test(cases, test_early_code);
    tcase_add_test(cases, test_reloaded_code);
    tcase_add_test(cases, test_repeatable_launches);
    tcase_add_test(cases, test_traffic);
    tcase_add_test(cases, test_percentage);
    tcase_add_test(cases, test_pretend);
    tcase_add_test(cases, test_refusals);
    tcase_add_test(cases, test_nccl);
    tcase_add_test(cases, test_refused_functions);
    tcase_add_test(cases, test_passed_through);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}

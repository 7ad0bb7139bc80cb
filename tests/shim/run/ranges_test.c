/*
 * Ranges of launches under `capuchin run`: programs of few large allocations within budgets that
 * are smaller than one of them, how often slices are launched, and what is refused.
 */
#include "tests/shim/programs.h"
#include "tests/support/suite.h"

#define RUN ALONE "CAPUCHIN_DEVICE=host " CAPUCHIN_COMMAND " run "

static char alone[OUTPUT_BYTES];
static char output[OUTPUT_BYTES];

/* Runs a part of the program alone and with options, also strict and with its launches compared,
   access by access, with the operands; what it prints must be the same. */
static void check_same(const char *part, const char *options)
{
    static const char *const ways[] = {
        RUN "%s " RANGES " %s 2>/dev/null",
        RUN "--strict %s " RANGES " %s 2>/dev/null",
        "list=$(mktemp) && PTX_DRIVER_OPERANDS=$list " RUN "--operands $list %s " RANGES " %s "
        "2>/dev/null; code=$?; rm -f $list; exit $code",
    };
    char command[2048];

    snprintf(command, sizeof(command), ALONE RANGES " %s", part);
    ck_assert_msg(run_command(command, alone) == 0, "%s", alone);
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        int code;

        snprintf(command, sizeof(command), ways[i], options, part);
        code = run_command(command, output);
        ck_assert_msg(code == 0 && strcmp(alone, output) == 0, "%s: %d\n%s\nand alone\n%s", command,
                      code, output, alone);
    }
}

static void expect(const char *command, int code, const char *text)
{
    check_run(command, code, text, output);
}

/* An allocation of 8 MiB of which each launch touches 1 MiB. */
START_TEST(test_parts_come_and_go)
{
    check_same("blob", "--budget 2MiB");
    check_same("cleared", "--budget 2MiB");
    check_same("structure", "--budget 2MiB");
    expect(
        RUN "--budget 2MiB --report /dev/stdout " RANGES " blob", 0,
        "kernel fill: closed, 16 launches, at most 524288 bytes of operands, 0 launches failed\n");
    /* The two tensors of a launch, and bitmaps. */
    check_contains(output, "floor: 1048576 bytes");
    /* A launch that touches all of it cannot be cut, and needs it all. */
    expect(RUN "--budget 2MiB " RANGES " all", 1, "fill: error 2\n");
    check_contains(output, "does not fit the budget");
}
END_TEST

/* Ten launches each: by other numbers that do not matter, and at other addresses, one slice; with
   three numbers that matter, three; with memory that is new each time, one more for a number; and
   ten grids. */
START_TEST(test_slices_are_not_repeated)
{
    check_same("repeats", "--budget 1200KiB");
    expect(RUN "--budget 1200KiB --report /dev/stdout " RANGES " repeats", 0,
           "\nslice of line: launched 5 times, not needed for 55 launches, 15728640 bytes written "
           "as a "
           "whole\n");
    check_contains(output, "\nslice of fill: launched 10 times, not needed for 0 launches\n");
    check_contains(output, "passed through: cuMemAlloc_v2 for slices: 2 calls, ");
    /* A budget is needed for that. */
    expect(RUN "--mode off --report /dev/stdout " RANGES " repeats", 0, "launches: 70 of closed");
    check_contains(output,
                   "slices: launched 0 times, not needed for 0 launches, 0 loaded at the end\n");
    ck_assert_ptr_null(strstr(output, "slice of"));
}
END_TEST

/* A kernel without a slice takes whole allocations, and the report says why there is none. */
START_TEST(test_kernels_without_slices)
{
    check_same("carried", "--budget 1MiB");
    expect(
        RUN "--budget 1MiB --report /dev/stdout " RANGES " carried", 0,
        "kernel carried: closed, 1 launches, at most 524288 bytes of operands, 0 launches failed\n"
        "slice of carried: none: carried has no slice: a carry\n");
}
END_TEST

/* Slices are unloaded with what they are of. */
START_TEST(test_slices_are_unloaded)
{
    check_same("reload", "--budget 1MiB");
    expect(RUN "--budget 1MiB --report /dev/stdout " RANGES " reload", 0,
           "\nslices: launched 6 times, not needed for 0 launches, 0 loaded at the end\n");
    expect(RUN "--budget 1MiB --report /dev/stdout " RANGES " filled", 0,
           ", 1 loaded at the end\n");
}
END_TEST

/* Loads beyond the end are cut there, and so is what is only possible. */
START_TEST(test_ranges_end_with_their_allocation)
{
    check_same("vectors", "--budget 1MiB");
    check_same("may", "--budget 3MiB");
    expect(RUN "--budget 3MiB " RANGES " far; true", 0, "capuchin: the kernel ends loads up to ");
    check_contains(output,
                   " beyond the end of an allocation of 524288 bytes, by its parameter 1\n");
    expect(RUN "--budget 3MiB --report /dev/stdout " RANGES " may", 0,
           "kernel choose: closed, 1 launches, at most 1310720 bytes of operands");
}
END_TEST

/* Addresses that come from several pointers. */
START_TEST(test_several_pointers)
{
    check_same("either", "--budget 20MiB");
    check_same("each", "--budget 4MiB");
    expect(RUN "--budget 2MiB " RANGES " either", 0, "way 0: 0\nway 1: 0\nway 2: 2\n");
    check_contains(output, "does not fit the budget");
    expect(RUN "--budget 4MiB --report /dev/stdout " RANGES " each", 0,
           "kernel each: closed, 1 launches, at most 2621440 bytes of operands");
}
END_TEST

/* Stores beyond an allocation are refused; what they would have changed stays as it is. */
START_TEST(test_stores_outside_are_refused)
{
    expect(RUN "--budget 2MiB --report /dev/stdout " RANGES " beyond", 0, "after the end 700\n");
    check_contains(output, "before the start 700\n");
    check_contains(output,
                   "capuchin: refused: the kernel fill would store up to 4 bytes beyond the "
                   "end of an allocation of 524288 bytes, by its parameter 0\n");
    check_contains(output,
                   "capuchin: refused: the kernel fill would store up to 64 bytes before the "
                   "start of an allocation of 524288 bytes, by its parameter 0\n");
    check_contains(output, "kernel fill: closed, 3 launches, at most 524288 bytes of operands, 2 "
                           "launches failed\n");
    expect(RUN "--budget 2MiB " RANGES " beyond 2>/dev/null | sed 1,2d", 0, "memory ");
    memcpy(alone, output, sizeof(alone));
    expect(RUN "--budget 2MiB " RANGES " filled 2>/dev/null", 0, "memory ");
    ck_assert_str_eq(alone, output);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ranges");
    TCase *cases = tcase_create("ranges");

    tcase_add_test(cases, test_parts_come_and_go);
    tcase_add_test(cases, test_slices_are_not_repeated);
    tcase_add_test(cases, test_kernels_without_slices);
    tcase_add_test(cases, test_slices_are_unloaded);
    tcase_add_test(cases, test_ranges_end_with_their_allocation);
    tcase_add_test(cases, test_several_pointers);
    tcase_add_test(cases, test_stores_outside_are_refused);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}

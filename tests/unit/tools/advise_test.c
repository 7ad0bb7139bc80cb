/* capuchin advise, on programs small enough to see what would help them. */
#include "tests/unit/policy/fixture.h"
#include "tests/unit/tools/fixture.h"

/* Two layers. Both optimizer steps are at the end, and their state fits beside nothing else. */
#define LATE_TRACE                                                                                 \
    TRACE_LINE MACHINE_LINE TENSOR_LINE(0, "w1", 100, "parameter")                                 \
        TENSOR_LINE(1, "w2", 100, "parameter") TENSOR_LINE(2, "m1", 3000, "optimizer")             \
            TENSOR_LINE(3, "m2", 3000, "optimizer") TENSOR_LINE(4, "a1", 1000, "activation")       \
                TENSOR_LINE(5, "a2", 1000, "activation") TENSOR_LINE(6, "g1", 1000, "gradient")    \
                    TENSOR_LINE(7, "g2", 1000, "gradient") TENSOR_LINE(8, "d", 1000, "activation") \
                        OP_LINE("f1", 2000, "[0]", "[4]", "[]", "false")                           \
                            OP_LINE("f2", 2000, "[4,1]", "[5]", "[]", "false")                     \
                                OP_LINE("b2", 3000, "[4,5,1]", "[7,8]", "[]", "false")             \
                                    OP_LINE("b1", 3000, "[4,8,0]", "[6]", "[]", "false")           \
                                        OP_LINE("u2", 500, "[7]", "[]", "[1,3]", "false")          \
                                            OP_LINE("u1", 500, "[6]", "[]", "[0,2]", "false")      \
                                                END_LINE(9, 6)

/* Two masks of random numbers, which cannot be drawn again, next to an op with a large workspace.
 */
#define MASK_TRACE                                                                                \
    TRACE_LINE MACHINE_LINE TENSOR_LINE(0, "x", 1000, "input")                                    \
        TENSOR_LINE(1, "k1", 2000, "activation") TENSOR_LINE(2, "k2", 2000, "activation")         \
            TENSOR_LINE(3, "y", 1000, "activation") TENSOR_LINE(4, "space", 4000, "workspace")    \
                TENSOR_LINE(5, "g", 10, "gradient") OP_LINE("in", 10, "[]", "[0]", "[]", "false") \
                    OP_LINE("mask1", 50, "[]", "[1]", "[]", "false")                              \
                        OP_LINE("mask2", 50, "[]", "[2]", "[]", "false")                          \
                            OP_LINE("big", 100, "[0]", "[3,4]", "[]", "true")                     \
                                OP_LINE("use", 100, "[1,2,3]", "[5]", "[]", "false")              \
                                    END_LINE(6, 5)

static void setup(void)
{
    make_folder();
    write_file("late", LATE_TRACE);
    write_file("mask", MASK_TRACE);
}

START_TEST(changes_are_listed_with_what_they_save)
{
    RUN_COMMANDS(
        {"advise late --budget 7000",
         0,
         {"now: 0.020 ms per iteration in 6.84 KiB, 82.09 % over the ideal (no plan is below ",
          "why the program, and not its plan, needs the time", "the updates are at the end",
          "the link is saturated from op ", "set a budget of 7.97 KiB, 80 % of the peak",
          "use a link to the host that is twice as fast",
          "update each parameter directly after its gradient is complete: 1 step of the optimizer "
          "moves up"}},
        {"advise mask --budget 8000",
         0,
         {"make op mask1 and those like it replayable (2 ops)", "split op 3 (big) into 2 parts",
          "op 3 (big) alone needs 5.86 KiB of the budget", "run 2 micro-batches of 1/2"}},
        {"advise mask --budget 8000 --json",
         0,
         {"{\"iteration_ns\":", ",\"ideal_ns\":310,\"bound_ns\":", ",\"causes\":\"",
          ",\"advice\":[{\"change\":\"", "\",\"iteration_ns\":", ",\"gain_ns\":", ",\"gain\":",
          ",\"peak_bytes\":", ",\"floor_bytes\":"}});
}
END_TEST

/* The best comes first, and the numbers are those of the list's first line. */
START_TEST(the_best_change_comes_first)
{
    shell(CAPUCHIN_COMMAND " advise late --budget 7000 --json 2>&1 |"
                           " grep -o '\"gain_ns\":[0-9]*' | cut -d: -f2 >gains &&"
                           " test $(wc -l <gains) -gt 2 && sort -rn gains | cmp - gains");
}
END_TEST

START_TEST(what_cannot_help_is_not_listed)
{
    RUN_COMMANDS({"advise late --budget 100%",
                  0,
                  {" 0.00 % over the ideal", "no change that is known here makes it faster"}});
    ck_assert_ptr_null(strstr(output, "set a budget"));
    /* No op is without replay, none is an optimizer step, and pages do not count. */
    write_file("chain", CHAIN_TRACE);
    RUN_COMMANDS({"advise chain --budget 2170", 0, {"now: "}});
    ck_assert_ptr_null(strstr(output, "update each parameter"));
    ck_assert_ptr_null(strstr(output, "replayable"));
    ck_assert_ptr_null(strstr(output, "pages"));
}
END_TEST

/* Clearing gradients takes as long in the first of several rounds, and no time in the others. */
START_TEST(rounds_save_no_work)
{
    write_file("clear",
               TRACE_LINE MACHINE_LINE TENSOR_LINE(0, "w", 100, "parameter")
                   TENSOR_LINE(1, "g", 100, "gradient") TENSOR_LINE(2, "a", 1000, "activation")
                       TENSOR_LINE(3, "b", 1000, "activation")
                           OP_LINE("clear", 90000, "[]", "[1]", "[]", "true")
                               OP_LINE("f1", 1000, "[0]", "[2]", "[]", "true")
                                   OP_LINE("f2", 1000, "[2]", "[3]", "[]", "true")
                                       OP_LINE("b2", 1000, "[3]", "[]", "[1]", "false")
                                           OP_LINE("b1", 1000, "[2]", "[]", "[1]", "false")
                                               OP_LINE("step", 1000, "[1]", "[]", "[0]", "false")
                                                   END_LINE(4, 6));
    RUN_COMMANDS(
        {"advise clear --budget 2190 --json", 0, {"\"ideal_ns\":95000", "run 2 micro-batches"}});
    shell(CAPUCHIN_COMMAND " advise clear --budget 2190 --json |"
                           " grep -oE '\"iteration_ns\":([1-8][0-9]|9[0-4])[0-9]{3},' >faster; "
                           "test ! -s faster");
}
END_TEST

START_TEST(smaller_pages_are_advised_where_pages_count)
{
    shell("sed 's/\"bytes\":1000,/\"bytes\":17000,/' "
          "late >wide");
    RUN_COMMANDS(
        {"advise wide --budget 150000 --page 16384", 0, {"use pages of 4 KiB (page_bytes)"}});
}
END_TEST

START_TEST(bad_usage_and_small_budgets_are_rejected)
{
    RUN_COMMANDS({"advise", 2, {""}}, {"advise late", 2, {"budget"}},
                 {"advise late --budget 1000", 3, {"no plan exists below 4100 bytes"}},
                 {"advise nowhere --budget 50%", 2, {"nowhere"}},
                 {"advise late --budget 50% --effort much", 2, {"quick"}});
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tools/advise");
    TCase *tests = tcase_create("advise");

    tcase_set_timeout(tests, 60);
    tcase_add_unchecked_fixture(tests, setup, remove_folder);
    tcase_add_test(tests, changes_are_listed_with_what_they_save);
    tcase_add_test(tests, the_best_change_comes_first);
    tcase_add_test(tests, what_cannot_help_is_not_listed);
    tcase_add_test(tests, rounds_save_no_work);
    tcase_add_test(tests, smaller_pages_are_advised_where_pages_count);
    tcase_add_test(tests, bad_usage_and_small_budgets_are_rejected);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

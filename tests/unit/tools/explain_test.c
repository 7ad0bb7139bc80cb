/* capuchin explain: its output for reports, and its errors for files that are not reports. */
#include "tests/unit/policy/fixture.h"
#include "tests/unit/tools/fixture.h"

/* A report line as the library writes it. Members missing from `rest` are read as 0. */
#define LINE(iteration, mode, label, rest)                                              \
    "{\"type\":\"report\",\"version\":1,\"mode\":\"" mode "\",\"label\":\"" label "\"," \
    "\"iteration\":" #iteration "," rest "}\n"

/* Two ops waited: op 3 for x and y at the same time, op 7 for z, which was prefetched at op 5. */
#define EVICTIONS                                                                       \
    "\"evictions\":["                                                                   \
    "{\"tensor\":\"x\",\"bytes\":1048576,\"method\":\"swap\",\"evicted_access\":1,"     \
    "\"evicted_op\":\"f\",\"back_access\":3,\"back_op\":\"g\",\"in_trigger\":3,"        \
    "\"wait_ns\":2000000,\"hidden\":false},"                                            \
    "{\"tensor\":\"y\",\"bytes\":2097152,\"method\":\"clean\",\"evicted_access\":null," \
    "\"evicted_op\":\"\",\"back_access\":3,\"back_op\":\"g\",\"in_trigger\":3,"         \
    "\"wait_ns\":2000000,\"hidden\":false},"                                            \
    "{\"tensor\":\"z\",\"bytes\":4194304,\"method\":\"swap\",\"evicted_access\":2,"     \
    "\"evicted_op\":\"f\",\"back_access\":7,\"back_op\":\"h\",\"in_trigger\":5,"        \
    "\"wait_ns\":5000000,\"hidden\":false},"                                            \
    "{\"tensor\":\"w\",\"bytes\":4096,\"method\":\"recompute\",\"evicted_access\":2,"   \
    "\"evicted_op\":\"f\",\"back_access\":9,\"back_op\":\"h\",\"in_trigger\":9,"        \
    "\"wait_ns\":0,\"hidden\":true},"                                                   \
    "{\"tensor\":\"u\",\"bytes\":4096,\"method\":\"empty\",\"evicted_access\":4,"       \
    "\"evicted_op\":\"g\",\"back_access\":null,\"back_op\":\"\",\"in_trigger\":null,"   \
    "\"wait_ns\":0,\"hidden\":false}]"
/*
 * Op 5 waited for free memory, and so did two replays: of e for op 7, and of f for the next
 * iteration.
 */
#define STALLS                                                                     \
    "\"stalls\":[{\"access\":3,\"op\":\"g\",\"wait_ns\":2000000,\"replay\":\"\"}," \
    "{\"access\":5,\"op\":\"k\",\"wait_ns\":900000,\"replay\":\"\"},"              \
    "{\"access\":7,\"op\":\"h\",\"wait_ns\":70000,\"replay\":\"e\"},"              \
    "{\"access\":7,\"op\":\"h\",\"wait_ns\":5000000,\"replay\":\"\"},"             \
    "{\"access\":null,\"op\":\"\",\"wait_ns\":30000,\"replay\":\"f\"}]"
#define MEMORY                                                                       \
    "\"budget_bytes\":8388608,\"live_peak_bytes\":16777216,\"floor_bytes\":8388608," \
    "\"next_floor_bytes\":4194304,\"floor_op\":\"huge\",\"evicted_bytes\":5242880,"  \
    "\"prefetched_bytes\":7340032"

static void setup(void)
{
    make_folder();
    write_file("t", CHAIN_TRACE);
}

static void expect_not(const char *text)
{
    ck_assert_msg(strstr(output, text) == NULL, "\"%s\" is in \"%s\"", text, output);
}

START_TEST(the_slowest_after_the_first_is_explained)
{
    write_file("r",
               LINE(1, "passive", "a", "\"time_ns\":90000000,\"compute_ns\":90000000")
                   LINE(2, "passive", "a", "\"time_ns\":10000000,\"compute_ns\":10000000")
                       LINE(3, "passive", "b", "\"time_ns\":30000000,\"compute_ns\":30000000")
                           LINE(4, "passive", "a", "\"time_ns\":20000000,\"compute_ns\":20000000"));
    RUN_COMMANDS(
        {"explain r",
         0,
         {"4 iterations", "\niteration 3 b, passive mode: 30.000 ms\n",
          "Nothing: memory management cost less than 2 % of the time."}},
        {"explain r -i 1",
         0,
         {"\niteration 1 a, passive mode: 90.000 ms\nthe median of this label and mode is 20.000 "
          "ms\n",
          "The ops themselves took 350 % longer than in the median iteration like it"}},
        {"explain r -i 5", 2, {"r: there is no iteration 5"}});
}
END_TEST

/*
 * Iterations before the plan are slow because they have none, so explain prefers one with a plan,
 * unless most iterations had none.
 */
START_TEST(iterations_with_a_plan_are_preferred)
{
#define UNPLANNED                                                                             \
    LINE(1, "passive", "a", "\"time_ns\":90000000")                                           \
    LINE(2, "passive", "a", "\"time_ns\":50000000,\"compute_ns\":1000,\"stall_ns\":40000000") \
    LINE(3, "passive", "b", "\"time_ns\":10000000,\"compute_ns\":1000")
#define PLANNED                                                        \
    LINE(4, "guided", "a", "\"time_ns\":20000000,\"compute_ns\":1000") \
    LINE(5, "guided", "a", "\"time_ns\":21000000,\"compute_ns\":1000")
    write_file("half", UNPLANNED PLANNED);
    RUN_COMMANDS({"explain half", 0, {"\niteration 2 a, passive mode: 50.000 ms\n"}});
    write_file("most", UNPLANNED PLANNED PLANNED);
    RUN_COMMANDS({"explain most", 0, {"\niteration 5 a, guided mode: 21.000 ms\n"}},
                 {"explain most -i 2", 0, {"It had no plan yet"}});
#undef UNPLANNED
#undef PLANNED
}
END_TEST

/* Under a steady plan most iterations are not timed; explain prefers one whose ops were timed. */
START_TEST(timed_iterations_are_preferred)
{
    write_file("r", LINE(1, "guided", "", "\"time_ns\":10000000,\"compute_ns\":10000000")
                        LINE(2, "guided", "", "\"time_ns\":20000000,\"compute_ns\":20000000")
                            LINE(3, "guided", "",
                                 "\"time_ns\":30000000,\"compute_ns\":null,\"stall_ns\":null,"
                                 "\"recompute_ns\":null," MEMORY ","
                                 "\"evictions\":[{\"tensor\":\"x\",\"bytes\":4096,"
                                 "\"method\":\"swap\",\"evicted_access\":1,"
                                 "\"evicted_op\":\"f\",\"back_access\":3,\"back_op\":\"g\","
                                 "\"in_trigger\":2,\"wait_ns\":null,\"hidden\":null}]"));
    RUN_COMMANDS({"explain r", 0, {"\niteration 2, guided mode: 20.000 ms\n"}},
                 {"explain r -i 3",
                  0,
                  {"\niteration 3, guided mode: 30.000 ms\n", "unknown: its ops were not timed",
                   "not timed\n"}});
    expect_not("idle");
    expect_not("memory management cost less");
    expect_not("longer than in the median");
}
END_TEST

START_TEST(waits_are_attributed_to_tensors_and_ops)
{
    write_file("r",
               LINE(1, "passive", "",
                    "\"time_ns\":20000000,\"compute_ns\":10000000,\"stall_ns\":8000000,"
                    "\"op_count\":9,\"recompute_ns\":500000," MEMORY "," EVICTIONS "," STALLS));
    RUN_COMMANDS(
        {"explain r",
         0,
         {/* The wait for x and y counts once. */
          "waiting for tensors to return                      7.000 ms   35.0 %",
          "waiting for free memory                            0.900 ms    4.5 %",
          "waiting before replays                             0.100 ms    0.5 %",
          "idle: no op was issued in time                     1.500 ms    7.5 %",
          "ops that waited longest (5 waited)",
          "h                                 7       0.070 ms            0 B  a replay of e\n",
          "(after the last op)               9       0.030 ms            0 B  a replay of f\n",
          "k                                 5       0.900 ms            0 B  free memory\n",
          "h                                 7       5.000 ms       4.00 MiB  z, requested in "
          "advance",
          "g                                 3       2.000 ms       3.00 MiB  y and 1 more\n",
          "budget 8.00 MiB, 50 % of the 16.00 MiB that a run without a limit needs",
          "tensors moved most (5 were evicted)",
          "z                                  4.00 MiB       4.00 MiB       4.00 MiB       5.000 "
          "ms",
          "y                                  2.00 MiB            0 B       2.00 MiB       2.000 "
          "ms",
          "0.000 ms  recomputed\n", "CAPUCHIN_MODE=guided",
          "The budget costs up to 8.500 ms, 42.5 % of this iteration. With 16.00 MiB nothing",
          "The op huge alone needs 8.00 MiB of the budget. Split it.",
          "the calling thread issued ops late. It did not wait for"}});
    write_file("late", LINE(1, "passive", "",
                            "\"time_ns\":20000000,\"compute_ns\":10000000,"
                            "\"host_wait_ns\":9500000"));
    RUN_COMMANDS({"explain late",
                  0,
                  {"the calling thread issued ops late. It waited 9.500 ms for evictions\n"}});
}
END_TEST

/* Reports of earlier versions do not say what their floor consists of. */
START_TEST(the_floor_is_split)
{
#define FLOOR "\"time_ns\":20000000,\"live_peak_bytes\":16777216,\"floor_bytes\":8388608"
#define PARTS                                                               \
    FLOOR ",\"page_bytes\":65536,\"floor_page_bytes\":65536,"               \
          "\"floor_operands_bytes\":5242880,\"floor_edges_bytes\":3080192," \
          "\"floor_slabs_bytes\":65536"
    write_file("r", LINE(1, "passive", "", PARTS));
    RUN_COMMANDS({"explain r",
                  0,
                  {"smallest possible budget 8.00 MiB\n    operands 5.00 MiB, edge pages 2.94 MiB, "
                   "slabs 64.00 KiB; in pages of 64.00 KiB\n",
                   "Edge pages, which split tensors share, take 2.94 MiB, 18 % of what is needed "
                   "without a limit. Split at\n    multiples of the page (64.00 KiB), or"}});
    write_file("pinned", LINE(1, "passive", "",
                              PARTS ",\"better_page_bytes\":4096,\"better_floor_bytes\":6291456"));
    RUN_COMMANDS({"explain pinned",
                  0,
                  {"Pages of 4.00 KiB would lower the smallest budget to 6.00 MiB: do not set "
                   "page_bytes (CAPUCHIN_PAGE).\n"}});
    expect_not("Split at");
    write_file("old", LINE(1, "passive", "", FLOOR));
    RUN_COMMANDS({"explain old", 0, {"smallest possible budget 8.00 MiB\n"}});
    expect_not("edge pages");
    expect_not("Pages of");
#undef PARTS
#undef FLOOR
}
END_TEST

START_TEST(other_budgets_are_compared)
{
    write_file("r", LINE(1, "passive", "",
                         "\"time_ns\":9000,\"compute_ns\":5000,\"stall_ns\":4000,"
                         "\"budget_bytes\":2500,\"live_peak_bytes\":3100,"
                         "\"evicted_bytes\":1000,\"prefetched_bytes\":500"));
    RUN_COMMANDS(
        {"explain r --trace t",
         0,
         {"the link was busy for ", "no plan\n", "2.42 KiB", "  <- this budget",
          " 3.03 KiB       0.009 ms      0.0 %\n",
          "the best change to the program: run 2 micro-batches of 1/2 ",
          "  saves 0.002 ms, 22.2 % of the ideal; 'capuchin advise t --budget 2500' lists"}},
        {"explain r --trace nowhere", 2, {""}}, {"explain r --trace t --machine nobody", 2, {""}});
}
END_TEST

/* Only where another effort could help, and never the one that the run has. */
START_TEST(efforts_are_recommended)
{
#define GUIDED(budget_, fields_)                                   \
    LINE(1, "guided", "",                                          \
         "\"time_ns\":9000,\"compute_ns\":5000,\"stall_ns\":4000," \
         "\"live_peak_bytes\":3100,\"budget_bytes\":" #budget_ fields_)
    write_file("late", GUIDED(3100, ",\"effort\":2,\"planning_ns\":2500000000"));
    RUN_COMMANDS(
        {"explain late --trace t",
         0,
         {"\neffort: the iteration had no plan while planning had taken 2.50 s; quick effort "
          "(CAPUCHIN_EFFORT=quick)\n  finds a plan that is as good\n"}});
    write_file("quick", GUIDED(2500, ",\"effort\":1,\"planning_ns\":2500000000"));
    RUN_COMMANDS(
        {"explain quick --trace t",
         0,
         {"\neffort: the default (CAPUCHIN_EFFORT=default) finds a plan of 0.010 ms instead "
          "of 0.011 ms\n"}});
    write_file("default", GUIDED(2500, ",\"effort\":2,\"plan_stage\":1"));
    RUN_COMMANDS(
        {"explain default --trace t", 0, {"\neffort: CAPUCHIN_EFFORT=best searches longer"}});
    write_file("best", GUIDED(2500, ",\"effort\":3,\"plan_stage\":1"));
    RUN_COMMANDS({"explain best --trace t", 0, {""}});
    expect_not("\neffort:");
    write_file("passive", GUIDED(2500, ""));
    RUN_COMMANDS({"explain passive --trace t", 0, {""}});
    expect_not("\neffort:");
#undef GUIDED
}
END_TEST

START_TEST(the_outcome_of_plans_is_reported)
{
#define GUIDED(number, rest) LINE(number, "guided", "train", rest)
    write_file(
        "r",
        GUIDED(1, "\"time_ns\":20000000,\"compute_ns\":10000000,\"stall_ns\":8000000,"
                  "\"predicted_ns\":20000000," EVICTIONS)
            GUIDED(2, "\"time_ns\":20000000,\"compute_ns\":10000000,\"stall_ns\":8000000,"
                      "\"predicted_ns\":15000000," EVICTIONS)
                GUIDED(3,
                       "\"time_ns\":20000000,\"diverged\":1,\"diverged_at\":17,"
                       "\"install_ns\":3000000") LINE(4, "passive", "train",
                                                      "\"time_ns\":20000000,\"stall_ns\":9000000,"
                                                      "\"plan_error\":\"hybrid found none\"")
                    LINE(5, "passive", "eval", "\"time_ns\":20000000,\"stall_ns\":9000000") LINE(
                        6, "guided", "odd", "\"time_ns\":20000000,\"install_ns\":3000000")
                        LINE(7, "guided", "odd", "\"time_ns\":20000000,\"install_ns\":3000000"));
    RUN_COMMANDS(
        {"explain r -i 1", 0, {"predicted 20.000 ms", "It took no longer than predicted"}});
    expect_not("Waits were up to");
    expect_not("no places");
    RUN_COMMANDS(
        {"explain r -i 2",
         0,
         {"Waits were up to 5.000 ms longer than predicted: of the tensors requested in advance, "
          "1 arrived"}},
        {"explain r -i 3",
         0,
         {"Op 17 was not the planned one",
          "Installing a plan before this iteration took 3.000 ms; 1 of the 3 iterations like it"}});
    expect_not("Plans change too often");
    RUN_COMMANDS({"explain r -i 4", 0, {"It had no plan: hybrid found none."}});
    expect_not("wait_for_plan");
    RUN_COMMANDS(
        {"explain r -i 5", 0, {"It had no plan yet."}},
        {"explain r -i 7",
         0,
         {"; 2 of the 2 iterations like it began with that.\n    Plans change too often"}});
    write_file("r", GUIDED(1, "\"time_ns\":20000000,\"unplaced\":1,\"map_count\":17,"
                              "\"unmap_count\":19"));
    RUN_COMMANDS({"explain r",
                  0,
                  {"the plan has no places for tensors: memory was mapped 17 times and unmapped 19 "
                   "times\n"}});
#undef GUIDED
}
END_TEST

/* A plan without places may be slower than none, which only a run that had both shows. */
START_TEST(passive_mode_is_recommended_where_it_was_faster)
{
#define TIMES(number, mode, label, ns, rest) \
    LINE(number, mode, label, "\"time_ns\":" #ns "000000,\"compute_ns\":1000000" rest)
#define WITHOUT ",\"unplaced\":1,\"budget_bytes\":8388608,\"guided_floor_bytes\":16777216"
    write_file("slower", TIMES(1, "passive", "", 90, "") TIMES(2, "passive", "", 46, "")
                             TIMES(3, "passive", "", 46, "") TIMES(4, "guided", "", 63, WITHOUT));
    RUN_COMMANDS(
        {"explain slower -i 4",
         0,
         {"  - Iterations with this plan, which has no places, took 63.000 ms, passive ones 46.000 "
          "ms (medians). Use\n    CAPUCHIN_MODE=passive in this budget, or guided mode with at "
          "least 16.00 MiB.\n"}});
    write_file("faster", TIMES(1, "passive", "", 90, "") TIMES(2, "passive", "", 64, "")
                             TIMES(3, "guided", "", 63, WITHOUT));
    RUN_COMMANDS({"explain faster -i 3", 0, {"the plan has no places"}});
    expect_not("CAPUCHIN_MODE=passive");
    write_file("placed", TIMES(1, "passive", "", 46, "") TIMES(2, "passive", "", 46, "")
                             TIMES(3, "guided", "", 63, ""));
    RUN_COMMANDS({"explain placed -i 3", 0, {""}});
    expect_not("CAPUCHIN_MODE=passive");
    write_file("alone", TIMES(1, "passive", "", 46, "") TIMES(2, "guided", "", 63, WITHOUT));
    RUN_COMMANDS({"explain alone -i 2", 0, {""}});
    expect_not("CAPUCHIN_MODE=passive");
#undef TIMES
#undef WITHOUT
}
END_TEST

/* A guided run whose plans come too late, or keep being left, is not told to use guided mode. */
START_TEST(the_mode_of_the_run_is_known)
{
#define STALLED "\"time_ns\":20000000,\"compute_ns\":1000,\"stall_ns\":9000000"
    write_file("guided", LINE(1, "passive", "", STALLED ",\"guided_mode\":1"));
    RUN_COMMANDS({"explain guided", 0, {"It had no plan yet."}});
    expect_not("CAPUCHIN_MODE=guided");
    write_file("planning",
               LINE(1, "passive", "", STALLED ",\"guided_mode\":1,\"planning_ns\":1230000000")
                   LINE(2, "guided", "",
                        STALLED ",\"guided_mode\":1,\"plan_stage\":3,"
                                "\"planning_ns\":4560000000")
                       LINE(3, "guided", "", STALLED ",\"guided_mode\":1,\"plan_stage\":4"));
    RUN_COMMANDS(
        {"explain planning -i 1", 0, {"it had no plan yet; planning, 1.23 s so far\n"}},
        {"explain planning -i 2", 0, {"stage 3 of its plan was active; planning, 4.56 s so far\n"}},
        {"explain planning -i 3", 0, {"stage 4 of its plan was active\n"}});
    write_file("passive", LINE(1, "passive", "", STALLED ",\"guided_mode\":0"));
    RUN_COMMANDS({"explain passive", 0, {"CAPUCHIN_MODE=guided"}});
    write_file("paused", LINE(1, "passive", "",
                              STALLED ",\"guided_mode\":1,\"retry_in\":17,"
                                      "\"plan_error\":\"it pauses\""));
    RUN_COMMANDS({"explain paused",
                  0,
                  {"It had no plan: it pauses.\n    It is tried again after 17 iterations."}});
    expect_not("CAPUCHIN_MODE=guided");
#undef STALLED
}
END_TEST

/* Reports without ops, and of a budget that is the whole machine, are explained in words. */
START_TEST(what_is_not_known_is_not_printed)
{
    write_file("r", LINE(1, "passive", "",
                         "\"time_ns\":1000,\"compute_ns\":1000,\"budget_bytes\":403726925824,"
                         "\"live_peak_bytes\":1624768512,\"floor_op\":\"\"")
                        LINE(2, "passive", "", "\"time_ns\":1000,\"compute_ns\":1000"));
    RUN_COMMANDS({"explain r -i 1",
                  0,
                  {"budget 376.00 GiB, more than the 1.51 GiB that a run without a limit needs\n",
                   "smallest possible budget 0 B\n"}});
    expect_not("set by");
    expect_not("24848 %");
    RUN_COMMANDS({"explain r -i 2", 0, {""}});
}
END_TEST

/* Every name in a report can contain an escape sequence for the terminal. */
START_TEST(names_are_escaped)
{
#define RED "\\u001b[31m"
#define SHOWN "\\x1b[31m"
    write_file(
        "r",
        LINE(1, "passive", RED "label",
             "\"time_ns\":20000000,\"compute_ns\":1000,\"stall_ns\":9000000,"
             "\"budget_bytes\":1000,\"live_peak_bytes\":2000,\"floor_bytes\":1000,"
             "\"floor_op\":\"" RED "floor\",\"plan_error\":\"" RED "no plan\",\"evictions\":["
             "{\"tensor\":\"" RED "x\",\"bytes\":4096,\"method\":\"swap\",\"evicted_access\":1,"
             "\"evicted_op\":\"f\",\"back_access\":3,\"back_op\":\"" RED "op\",\"in_trigger\":3,"
             "\"wait_ns\":2000000,\"hidden\":false}],\"stalls\":[{\"access\":7,\"op\":\"h\","
             "\"wait_ns\":70000,\"replay\":\"" RED "e\"}]"));
    RUN_COMMANDS({"explain r",
                  0,
                  {"iteration 1 " SHOWN "label,", "set by " SHOWN "floor;", "The op " SHOWN "floor",
                   "It had no plan: " SHOWN "no plan.", "  " SHOWN "x     ", "  " SHOWN "op     ",
                   "a replay of " SHOWN "e\n"}});
    expect_not("\x1b");
    /* Columns are cut and filled by characters. */
    write_file("r", LINE(1, "passive",
                         "gr\xc3\xb6\xc3\x9f"
                         "e von mehr als zwanzig Zeichen",
                         "\"time_ns\":1"));
    RUN_COMMANDS({"explain r",
                  0,
                  {"  gr\xc3\xb6\xc3\x9f"
                   "e von mehr als z passive "}});
#undef RED
#undef SHOWN
}
END_TEST

START_TEST(files_that_are_not_reports_are_rejected)
{
    RUN_COMMANDS({"explain", 2, {""}},
                 {"explain nowhere -m p100", 2, {"--machine p100: has no effect without --trace"}},
                 {"explain nowhere", 2, {"nowhere: No such file or directory"}},
                 {"explain t", 2, {"t:1: not a report as CAPUCHIN_REPORT=FILE writes it"}});
    write_file("empty", "");
    RUN_COMMANDS({"explain empty",
                  2,
                  {"empty: contains no iteration: the program must call capu_iteration_begin and"}},
                 {"explain empty -i none", 2, {""}}, {"explain .", 2, {".: Is a directory"}});
    /* A program that was killed leaves half a line. */
    write_file("cut", LINE(1, "passive", "a", "\"time_ns\":7000000") "{\"type\":\"report\",\"ver");
    RUN_COMMANDS(
        {"explain cut", 0, {"cut:2: the line is cut off and is left out", "1 iterations"}});
}
END_TEST

/* Iterations `from` to `from` + 3 of a label: one in two leaves its plan, and each but the first
   begins with another one. */
#define FOUR(label, a, b, c, d, rest)                                                            \
    LINE(a, "guided", label, "\"time_ns\":10000000,\"compute_ns\":1000,\"op_count\":40")         \
    rest LINE(b, "guided", label,                                                                \
              "\"time_ns\":30000000,\"compute_ns\":1000,\"op_count\":34,\"diverged\":1,"         \
              "\"diverged_at\":0,\"install_ns\":2000000") rest                                   \
    LINE(c, "guided", label,                                                                     \
         "\"time_ns\":10000000,\"compute_ns\":1000,\"op_count\":40,\"install_ns\":2000000") rest \
    LINE(d, "guided", label,                                                                     \
         "\"time_ns\":30000000,\"compute_ns\":1000,\"op_count\":34,\"diverged\":1,"              \
         "\"diverged_at\":34,\"install_ns\":2000000") rest
#define OTHER LINE(9, "guided", "eval", "\"time_ns\":1000000,\"compute_ns\":1000,\"op_count\":7")
#define CALM(number, rest) \
    LINE(number, "guided", "calm", "\"time_ns\":10000000,\"compute_ns\":1000,\"op_count\":40," rest)

/* Whatever the slowest iteration waited for: most of what is lost, its label loses by leaving plans
   and changing them. */
START_TEST(labels_are_recommended_where_plans_are_left)
{
    write_file("r", FOUR("", 1, 2, 3, 4, "") FOUR("", 5, 6, 7, 8, ""));
    RUN_COMMANDS(
        {"explain r",
         0,
         {"plans of                        left by     changed before     installing\n"
          "  (none)                     4 iterations       5 iterations      12.000 ms\n",
          "what to do\n  - Of 8 iterations without a label, 4 left their plan (and took 80.000 ms "
          "longer in all), and 5 began with another\n    plan than the one before (installing took "
          "12.000 ms in all).\n    They are of several kinds, with 40, 34 ops. Give each kind that "
          "is known in advance a label\n    of its own (capu_iteration_begin)",
          "2 of those that left only ended early"}});
    expect_not("another label");
    write_file("r", FOUR("train", 1, 2, 3, 4, OTHER) FOUR("train", 5, 6, 7, 8, OTHER));
    RUN_COMMANDS({"explain r -i 2",
                  0,
                  {"Of 8 iterations with this label, 4 left",
                   "5 of the changes came after an iteration with another label"}},
                 {"explain r -i 9", 0, {"iteration 9 eval"}});
    expect_not("left their plan");
    write_file("r", CALM(1, "\"install_ns\":5") CALM(2, "\"diverged\":1") CALM(3, "\"graph\":0")
                        CALM(4, "\"install_ns\":5") CALM(5, "\"graph\":0") CALM(6, "\"graph\":0")
                            CALM(7, "\"graph\":0") CALM(8, "\"graph\":0") CALM(9, "\"graph\":0")
                                CALM(10, "\"graph\":0") CALM(11, "\"graph\":0"));
    RUN_COMMANDS({"explain r -i 5", 0, {"calm                       1 iterations       1 iter"}});
    expect_not("Of 11 iterations");
}
END_TEST

/* Waits after an install are not the link's fault. */
START_TEST(waits_after_an_install_do_not_blame_the_link)
{
    write_file("r", LINE(1, "guided", "train",
                         "\"time_ns\":20000000,\"compute_ns\":10000000,\"stall_ns\":8000000,"
                         "\"install_ns\":1000,\"predicted_ns\":15000000," EVICTIONS));
    RUN_COMMANDS({"explain r", 0, {"Its plan was installed just before it"}});
    expect_not("The link was slower");
}
END_TEST

START_TEST(ignored_hints_are_listed_by_tensor)
{
#define IGNORED(name, hint, because)                                                           \
    "{\"tensor\":\"" name "\",\"bytes\":4096,\"method\":\"swap\",\"evicted_access\":1,"        \
    "\"evicted_op\":\"f\",\"back_access\":3,\"back_op\":\"g\",\"in_trigger\":3,\"wait_ns\":0," \
    "\"hidden\":true,\"ignored_hint\":\"" hint "\",\"ignored_because\":\"" because "\"}"
    write_file(
        "r",
        LINE(1, "guided", "",
             "\"time_ns\":1000,\"evictions\":[" IGNORED(
                 "mask", "recompute",
                 "op 'dropout' is not replayable") "," IGNORED("mask", "recompute",
                                                               "op 'dropout' is not "
                                                               "replayable") "," IGNORED("w",
                                                                                         "kee"
                                                                                         "p",
                                                                                         "no "
                                                                                         "roo"
                                                                                         "m") "]"));
    RUN_COMMANDS({"explain r",
                  0,
                  {"hints that the plan does not follow (of 2 tensors)\n",
                   "  mask                         recompute  op 'dropout' is not replayable\n",
                   "  w                            keep       no room\n"}});
#undef IGNORED
}
END_TEST

START_TEST(what_the_program_needs_and_slabs_that_are_kept_are_named)
{
    write_file("r", LINE(1, "passive", "",
                         "\"time_ns\":1000,\"floor_bytes\":4096,\"program_floor_bytes\":1048576,"
                         "\"program_floor_op\":\"fill\",\"live_peak_bytes\":4194304,"
                         "\"page_bytes\":4096,\"floor_page_bytes\":4096,\"slab_bytes\":2097152,"
                         "\"slab_used_bytes\":524288"));
    RUN_COMMANDS({"explain r",
                  0,
                  {"  the program needs 1.00 MiB at least, for fill outside iterations\n",
                   "  - Slabs keep 2.00 MiB, and the small tensors in them take 512.00 KiB."}});
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("capuchin explain");
    TCase *cases = tcase_create("explain");

    tcase_add_checked_fixture(cases, setup, remove_folder);
    tcase_add_test(cases, the_slowest_after_the_first_is_explained);
    tcase_add_test(cases, iterations_with_a_plan_are_preferred);
    tcase_add_test(cases, timed_iterations_are_preferred);
    tcase_add_test(cases, waits_are_attributed_to_tensors_and_ops);
    tcase_add_test(cases, the_floor_is_split);
    tcase_add_test(cases, other_budgets_are_compared);
    tcase_add_test(cases, efforts_are_recommended);
    tcase_add_test(cases, the_outcome_of_plans_is_reported);
    tcase_add_test(cases, passive_mode_is_recommended_where_it_was_faster);
    tcase_add_test(cases, the_mode_of_the_run_is_known);
    tcase_add_test(cases, what_is_not_known_is_not_printed);
    tcase_add_test(cases, names_are_escaped);
    tcase_add_test(cases, files_that_are_not_reports_are_rejected);
    tcase_add_test(cases, labels_are_recommended_where_plans_are_left);
    tcase_add_test(cases, waits_after_an_install_do_not_blame_the_link);
    tcase_add_test(cases, ignored_hints_are_listed_by_tensor);
    tcase_add_test(cases, what_the_program_needs_and_slabs_that_are_kept_are_named);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}

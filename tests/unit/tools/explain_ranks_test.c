/* capuchin explain with the reports of several ranks: its output for fixed files, and its errors.
 */
#include "tests/unit/tools/fixture.h"

/* An iteration of a rank; times are in milliseconds. Each exchanges 4 MiB in 5 ms. */
struct line {
    unsigned iteration;
    const char *label;
    const char *mode;
    unsigned time;
    unsigned waited;
    int compute; /* -1: not timed */
    unsigned stall;
    unsigned evictions;
    unsigned predicted;
};

/* Writes the report of a rank: lines up to one without a label. */
static void write_lines(const char *name, unsigned rank, unsigned rank_count,
                        const struct line *lines)
{
    static char text[16384];
    size_t used = 0;

    for (const struct line *line = lines; line->label != NULL; line++) {
        char times[128] = "\"compute_ns\":null,\"stall_ns\":null,\"recompute_ns\":null";

        if (line->compute >= 0) {
            snprintf(times, sizeof(times), "\"compute_ns\":%u,\"stall_ns\":%u,\"recompute_ns\":0",
                     (unsigned)line->compute * 1000000, line->stall * 1000000);
        }
        used += (size_t)snprintf(
            text + used, sizeof(text) - used,
            "{\"type\":\"report\",\"version\":1,\"iteration\":%u,\"label\":\"%s\",\"mode\":\"%s\","
            "\"rank\":%u,\"rank_count\":%u,\"time_ns\":%u,\"waited_ns\":%u,"
            "\"exchange_ns\":5000000,\"exchanged_bytes\":4194304,\"budget_bytes\":8388608,"
            "\"peak_bytes\":%u,\"live_peak_bytes\":16777216,\"floor_bytes\":4194304,"
            "\"host_bytes\":10485760,\"evict_count\":%u,\"evicted_bytes\":%u,"
            "\"prefetched_bytes\":1048576,\"predicted_ns\":%u,\"plan_stage\":%u,%s}\n",
            line->iteration, line->label, line->mode, rank, rank_count, line->time * 1000000,
            line->waited * 1000000, 8388608 - rank * 1048576, line->evictions,
            line->evictions * 1048576, line->predicted * 1000000, line->predicted > 0, times);
        ck_assert_uint_lt(used, sizeof(text));
    }
    write_file(name, text);
}

#define WRITE_LINES(name, rank, rank_count, ...) \
    write_lines(name, rank, rank_count, (const struct line[]){__VA_ARGS__, {0}})

/* Rank 0 also samples, under numbers that rank 1 gives to training. Rank 1 waits for memory. */
static void setup(void)
{
    make_folder();
    WRITE_LINES(
        "r.0", 0, 2, {1, "train", "passive", 90, 0, 60, 20, 10, 0},
        {2, "sample", "passive", 5, 0, 5, 0, 10, 0}, {3, "train", "passive", 50, 10, 29, 10, 10, 0},
        {4, "train", "guided", 40, 12, 26, 1, 5, 30}, {5, "train", "guided", 40, 12, 26, 1, 5, 30});
    WRITE_LINES("r.1", 1, 2, {1, "train", "passive", 90, 0, 60, 20, 10, 0},
                {2, "train", "passive", 50, 0, 29, 20, 10, 0},
                {3, "train", "passive", 40, 1, 26, 12, 10, 0},
                {4, "train", "guided", 40, 0, 26, 13, 7, 28});
}

static const char golden[] =
    "2 of 2 ranks, 4 iterations that all of them have\n"
    "  rank 0: 5 iterations in r.0\n"
    "  rank 1: 4 iterations in r.1\n"
    "\n"
    "where the time went, on average over 3 of them, without the first of each label\n"
    "   rank           time          others         memory       exchange            ops        "
    "replays\n"
    "      0      43.333 ms       11.333 ms       4.000 ms       5.000 ms      22.000 ms       "
    "0.000 ms\n"
    "      1      43.333 ms        0.333 ms      15.000 ms       5.000 ms      22.000 ms       "
    "0.000 ms\n"
    "  others: waiting for other ranks; memory: waiting for tensors or for room; exchange: "
    "collectives\n"
    "  without that waiting; ops: all others\n"
    "\n"
    "memory, the most in any of them\n"
    "   rank         budget           peak  without limit       smallest    on the host      "
    "exchanged\n"
    "      0       8.00 MiB       8.00 MiB      16.00 MiB       4.00 MiB      10.00 MiB       4.00 "
    "MiB\n"
    "      1       8.00 MiB       7.00 MiB      16.00 MiB       4.00 MiB      10.00 MiB       4.00 "
    "MiB\n"
    "  exchanged: by collectives, per iteration\n"
    "\n"
    "plans, of train 4\n"
    "   rank  mode     stage      predicted evictions     copied out           back  replays\n"
    "      0  guided       1      30.000 ms         5       5.00 MiB       1.00 MiB        0\n"
    "      1  guided       1      28.000 ms         7       7.00 MiB       1.00 MiB        0\n"
    "  modes differ in 1 of 4 iterations: train 3\n"
    "  plans differ in 1 of 4 iterations: train 4\n"
    "\n"
    "what to do\n"
    "  - Rank 1 is the slowest: by itself it takes 43.000 ms per iteration, rank 0 32.000 ms.\n"
    "    It was the slowest in 3 of 3 iterations.\n"
    "    Compared with rank 0 it lost 11.000 ms more to memory, its ops took 0.000 ms longer, and\n"
    "    exchanging 0.000 ms.\n"
    "    A larger budget for rank 1 makes all ranks faster. 'capuchin explain r.1' says what else "
    "does.\n";

/* The files come in any order, and iterations are matched by label, not by number. */
START_TEST(all_of_it)
{
    RUN_COMMANDS({"explain r.1 r.0", 0, {golden}});
    ck_assert_str_eq(output, golden);
}
END_TEST

START_TEST(a_single_iteration)
{
    RUN_COMMANDS({"explain r.0 r.1 -i 3",
                  0,
                  {"on average over the iteration asked for\n",
                   "\n      0      50.000 ms       10.000 ms      10.000 ms",
                   "\n      1      50.000 ms        0.000 ms      20.000 ms"}},
                 {"explain r.0 r.1 -i 2", 2, {"r.0: there is no iteration 2 that all ranks have"}});
}
END_TEST

/* The rank with more work is named as such, and so is a missing file. */
START_TEST(more_work_is_not_a_matter_of_memory)
{
    WRITE_LINES("a", 0, 3, {1, "train", "passive", 40, 0, 40, 0, 10, 0});
    WRITE_LINES("b", 2, 3, {1, "train", "passive", 40, 10, 30, 0, 10, 0});
    RUN_COMMANDS({"explain a b",
                  0,
                  {"2 of 3 ranks, 1 iterations that all of them have\n  rank 0: 1 iterations in a\n"
                   "  rank 2: 1 iterations in b\n",
                   "on average over all of them\n",
                   "- Rank 0 is the slowest: by itself it takes 40.000 ms per iteration, rank 2 "
                   "30.000 ms.\n    It was the slowest in 1 of 1 iterations.\n",
                   "Compared with rank 2 it lost 0.000 ms more to memory, its ops took 10.000 ms "
                   "longer, and\n    exchanging 0.000 ms.\n    The cause is not memory"}});
    ck_assert_ptr_null(strstr(output, "plans"));
}
END_TEST

START_TEST(ranks_may_take_turns)
{
    WRITE_LINES("a", 0, 2, {1, "train", "passive", 90, 0, 90, 0, 10, 0},
                {2, "train", "passive", 40, 10, 30, 0, 10, 0},
                {3, "train", "passive", 40, 0, 40, 0, 10, 0});
    WRITE_LINES("b", 1, 2, {1, "train", "passive", 90, 0, 90, 0, 10, 0},
                {2, "train", "passive", 40, 0, 40, 0, 10, 0},
                {3, "train", "passive", 40, 10, 30, 0, 10, 0});
    RUN_COMMANDS({"explain a b", 0, {"take turns in being late", "in 1 of 2 iterations"}});
    WRITE_LINES("c", 1, 2, {1, "train", "passive", 90, 0, 90, 0, 10, 0},
                {2, "train", "passive", 30, 0, 30, 0, 10, 0});
    WRITE_LINES("d", 0, 2, {1, "train", "passive", 90, 0, 90, 0, 10, 0},
                {2, "train", "passive", 30, 0, 30, 0, 10, 0});
    RUN_COMMANDS({"explain c d", 0, {"Nothing: no rank waited for others for 2 % of the time."}});
}
END_TEST

/* What is known only of timed ops is said to be unknown where one rank did not time them. */
START_TEST(times_that_are_not_known)
{
    WRITE_LINES("a", 0, 2, {1, "train", "guided", 40, 10, 20, 5, 5, 30});
    WRITE_LINES("b", 1, 2, {1, "train", "guided", 40, 0, -1, 0, 5, 30});
    RUN_COMMANDS(
        {"explain a b",
         0,
         {"\n      0      40.000 ms       10.000 ms      not timed       5.000 ms      not "
          "timed      not timed\n",
          "over the 0 in which all ranks timed their ops", "CAPUCHIN_SAMPLE_EVERY=1",
          "plans differ in 0 of 1 iterations\n"}});
}
END_TEST

/* One report of a rank says what its rank waited for others. */
START_TEST(a_single_rank)
{
    RUN_COMMANDS(
        {"explain r.0 -i 4",
         0,
         {"\nrank 0 of 2, iteration 4 train, guided mode: 40.000 ms, predicted 30.000 ms\n",
          "  ops                                               26.000 ms   65.0 %\n"
          "    of that 5.000 ms to exchange 4.00 MiB with others\n"
          "  waiting for others                                12.000 ms   30.0 %\n",
          "  idle: no op was issued in time                     1.000 ms    2.5 %\n",
          "30 % of the time it waited for others."}});
}
END_TEST

START_TEST(files_that_do_not_belong_together)
{
    WRITE_LINES("alone", 0, 0, {1, "train", "passive", 40, 0, 40, 0, 10, 0});
    WRITE_LINES("four", 1, 4, {1, "train", "passive", 40, 0, 40, 0, 10, 0});
    WRITE_LINES("other", 1, 2, {1, "validate", "passive", 40, 0, 40, 0, 10, 0});
    RUN_COMMANDS({"explain r.0 r.0", 2, {"r.0 and r.0 are both of rank 0"}},
                 {"explain r.0 alone", 2, {"not the report of one of several processes"}},
                 {"explain r.0 four", 2, {"r.0 is of 2 ranks and four of 4"}},
                 {"explain r.0 other", 2, {"no iterations in common"}},
                 {"explain r.0 nowhere", 2, {"nowhere: No such file"}});
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("capuchin explain, ranks");
    TCase *cases = tcase_create("ranks");

    tcase_add_checked_fixture(cases, setup, remove_folder);
    tcase_add_test(cases, all_of_it);
    tcase_add_test(cases, a_single_iteration);
    tcase_add_test(cases, more_work_is_not_a_matter_of_memory);
    tcase_add_test(cases, ranks_may_take_turns);
    tcase_add_test(cases, times_that_are_not_known);
    tcase_add_test(cases, a_single_rank);
    tcase_add_test(cases, files_that_do_not_belong_together);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}

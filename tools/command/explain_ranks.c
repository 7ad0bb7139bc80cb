/*
 * capuchin explain with the reports of several ranks.
 *
 * All ranks take the same time, because each waits for the slowest in every step. So what a rank
 * takes by itself, without waiting for others, says which one is the slowest, and where it spends
 * more than the one that waits most says why: memory, or its ops.
 */
#include "tools/command/explain.h"

#include "base/printable.h"
#include "tools/output/output.h"
#include "tools/report/rank_reports.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The share of the time from which on something is mentioned. */
#define WORTH_MENTIONING 0.02

/* The most steps that are named. */
enum { NAMED = 8 };

static uint64_t less(uint64_t from, uint64_t by)
{
    return from > by ? from - by : 0;
}

static uint64_t mean(uint64_t sum, size_t count)
{
    return count > 0 ? sum / count : 0;
}

static double part(uint64_t ns, uint64_t whole)
{
    return whole > 0 ? (double)ns / (double)whole : 0.0;
}

static const char *timed_ns(uint64_t sum, const struct rank_sums *sums, char *buffer)
{
    return sums->timed > 0 ? human_ns(mean(sum, sums->timed), buffer) : "not timed";
}

static void print_step_name(const struct rank_reports *reports, const struct rank_step *step)
{
    const char *label = rank_reports_label(reports, step);
    char text[PRINTABLE_BYTES];

    printf("%s %zu", label[0] != '\0' ? printable(label, text) : "(no label)", step->number);
}

static void print_head(const struct rank_reports *reports)
{
    printf("%zu of %" PRIu64 " ranks, %zu iterations that all of them have\n", reports->count,
           reports->rank_count, reports->step_count);
    for (size_t r = 0; r < reports->count; r++) {
        const struct rank_report *rank = &reports->ranks[r];
        char path[PRINTABLE_BYTES];

        printf("  rank %" PRIu64 ": %zu iterations in %s\n", rank->rank, rank->file.count,
               printable(rank->file.path, path));
    }
}

/* Means per step. Waits for memory and the time of ops are known of timed steps only. */
static void print_times(const struct rank_reports *reports)
{
    printf("\nwhere the time went, on average over ");
    if (reports->counted == reports->step_count) {
        printf("all of them\n");
    } else if (reports->is_single) {
        printf("the iteration asked for\n");
    } else {
        printf("%zu of them, without the first of each label\n", reports->counted);
    }
    printf("  %5s %14s  %14s %14s %14s %14s %14s\n", "rank", "time", "others", "memory", "exchange",
           "ops", "replays");
    for (size_t r = 0; r < reports->count; r++) {
        const struct rank_sums *sums = &reports->ranks[r].sums;
        char text[6][32];

        printf("  %5" PRIu64 " %14s  %14s %14s %14s %14s %14s\n", reports->ranks[r].rank,
               human_ns(mean(sums->time_ns, reports->counted), text[0]),
               human_ns(mean(sums->waited_ns, reports->counted), text[1]),
               timed_ns(sums->stall_ns, sums, text[2]),
               human_ns(mean(sums->exchange_ns, reports->counted), text[3]),
               timed_ns(sums->compute_ns, sums, text[4]), timed_ns(sums->replay_ns, sums, text[5]));
    }
    printf("  others: waiting for other ranks; memory: waiting for tensors or for room; exchange: "
           "collectives\n  without that waiting; ops: all others\n");
    if (reports->ranks[0].sums.timed < reports->counted) {
        printf("  memory, ops and replays over the %zu in which all ranks timed their ops\n",
               reports->ranks[0].sums.timed);
    }
}

static void print_memory(const struct rank_reports *reports)
{
    printf("\nmemory, the most in any of them\n  %5s %14s %14s %14s %14s %14s %14s\n", "rank",
           "budget", "peak", "without limit", "smallest", "on the host", "exchanged");
    for (size_t r = 0; r < reports->count; r++) {
        const struct rank_sums *sums = &reports->ranks[r].sums;
        char text[6][32];

        printf("  %5" PRIu64 " %14s %14s %14s %14s %14s %14s\n", reports->ranks[r].rank,
               human_bytes(sums->budget_bytes, text[0]), human_bytes(sums->peak_bytes, text[1]),
               human_bytes(sums->live_peak_bytes, text[2]), human_bytes(sums->floor_bytes, text[3]),
               human_bytes(sums->host_bytes, text[4]),
               human_bytes(mean(sums->exchanged_bytes, reports->counted), text[5]));
    }
    printf("  exchanged: by collectives, per iteration\n");
}

static bool modes_differ(const struct rank_reports *reports, const struct rank_step *step)
{
    for (size_t r = 1; r < reports->count; r++) {
        if (strcmp(rank_reports_mode(reports, step, r), rank_reports_mode(reports, step, 0)) != 0) {
            return true;
        }
    }
    return false;
}

/* Whether ranks that all followed plans moved or recomputed different tensors. */
static bool plans_differ(const struct rank_reports *reports, const struct rank_step *step)
{
    const struct reported *first = step->of[0];

    for (size_t r = 0; r < reports->count; r++) {
        const struct reported *other = step->of[r];

        if (strcmp(rank_reports_mode(reports, step, r), "guided") != 0) {
            return false;
        }
        if (other->evicted_bytes != first->evicted_bytes ||
            other->prefetched_bytes != first->prefetched_bytes ||
            other->evict_count != first->evict_count ||
            other->replay_count != first->replay_count || other->unplaced != first->unplaced) {
            return true;
        }
    }
    return false;
}

/* "modes differ in 3 of 12 iterations: train 2, train 3, ..." */
static void print_differing(const struct rank_reports *reports, const char *what,
                            bool (*differ)(const struct rank_reports *, const struct rank_step *))
{
    size_t count = 0;

    for (size_t i = 0; i < reports->step_count; i++) {
        count += differ(reports, &reports->steps[i]);
    }
    printf("  %s differ in %zu of %zu iterations", what, count, reports->step_count);
    for (size_t i = 0, named = 0; i < reports->step_count && named < count && named <= NAMED; i++) {
        if (!differ(reports, &reports->steps[i])) {
            continue;
        }
        if (named == NAMED) {
            printf(", ...");
            break;
        }
        printf("%s", named++ == 0 ? ": " : ", ");
        print_step_name(reports, &reports->steps[i]);
    }
    printf("\n");
}

static bool has_guided(const struct rank_reports *reports, const struct rank_step *step)
{
    for (size_t r = 0; r < reports->count; r++) {
        if (strcmp(rank_reports_mode(reports, step, r), "guided") == 0) {
            return true;
        }
    }
    return false;
}

/* The newest step that counts in which a rank had a plan; NULL: none. */
static const struct rank_step *newest_guided(const struct rank_reports *reports)
{
    for (size_t i = reports->step_count; i-- > 0;) {
        if (reports->steps[i].counts && has_guided(reports, &reports->steps[i])) {
            return &reports->steps[i];
        }
    }
    return NULL;
}

static void print_plans(const struct rank_reports *reports)
{
    const struct rank_step *step = newest_guided(reports);

    if (step == NULL) {
        return;
    }
    printf("\nplans, of ");
    print_step_name(reports, step);
    printf("\n  %5s  %-8s %5s %14s %9s %14s %14s %8s\n", "rank", "mode", "stage", "predicted",
           "evictions", "copied out", "back", "replays");
    for (size_t r = 0; r < reports->count; r++) {
        const struct reported *iteration = step->of[r];
        char mode[PRINTABLE_BYTES];
        char text[3][32];

        printf("  %5" PRIu64 "  %s %5" PRIu64 " %14s %9" PRIu64 " %14s %14s %8" PRIu64 "\n",
               reports->ranks[r].rank,
               printable_column(rank_reports_mode(reports, step, r), 8, mode),
               iteration->plan_stage,
               iteration->predicted_ns > 0 ? human_ns(iteration->predicted_ns, text[0]) : "-",
               iteration->evict_count, human_bytes(iteration->evicted_bytes, text[1]),
               human_bytes(iteration->prefetched_bytes, text[2]), iteration->replay_count);
    }
    print_differing(reports, "modes", modes_differ);
    print_differing(reports, "plans", plans_differ);
}

static uint64_t own_ns(const struct rank_reports *reports, size_t rank)
{
    const struct rank_sums *sums = &reports->ranks[rank].sums;

    return mean(less(sums->time_ns, sums->waited_ns), reports->counted);
}

/* The ranks that take longest and shortest by themselves. */
static void find_extremes(const struct rank_reports *reports, size_t *slow, size_t *fast)
{
    *slow = 0;
    *fast = 0;
    for (size_t r = 1; r < reports->count; r++) {
        if (own_ns(reports, r) > own_ns(reports, *slow)) {
            *slow = r;
        }
        if (own_ns(reports, r) < own_ns(reports, *fast)) {
            *fast = r;
        }
    }
}

/* How much longer one rank spends on something in a timed step than another one. */
static uint64_t more_ns(const struct rank_sums *slow, uint64_t slow_sum, uint64_t fast_sum)
{
    return less(mean(slow_sum, slow->timed), mean(fast_sum, slow->timed));
}

/* Why the slowest rank is slower. */
static void print_reason(const struct rank_report *slow, const struct rank_report *fast,
                         size_t counted)
{
    const struct rank_sums *a = &slow->sums;
    const struct rank_sums *b = &fast->sums;
    uint64_t memory_ns = more_ns(a, a->stall_ns + a->replay_ns, b->stall_ns + b->replay_ns);
    uint64_t ops_ns = more_ns(a, a->compute_ns, b->compute_ns);
    uint64_t exchange_ns = less(mean(a->exchange_ns, counted), mean(b->exchange_ns, counted));
    char memory[32];
    char ops[32];
    char exchange[32];
    char path[PRINTABLE_BYTES];

    printable(slow->file.path, path);
    if (a->timed == 0) {
        printf("    What it did longer is unknown: in no iteration did all ranks time their ops.\n"
               "    CAPUCHIN_SAMPLE_EVERY=1 times all.\n");
        return;
    }
    printf("    Compared with rank %" PRIu64
           " it lost %s more to memory, its ops took %s longer, and\n    exchanging %s.\n",
           fast->rank, human_ns(memory_ns, memory), human_ns(ops_ns, ops),
           human_ns(exchange_ns, exchange));
    if (exchange_ns > memory_ns && exchange_ns > ops_ns) {
        printf("    The cause is not memory: its messages are slower, or it shares its cores.\n");
    } else if (memory_ns >= ops_ns && memory_ns > 0) {
        printf("    A larger budget for rank %" PRIu64 " makes all ranks faster. 'capuchin explain "
               "%s' says what else does.\n",
               slow->rank, path);
    } else if (ops_ns > 0) {
        printf("    The cause is not memory: it has more work, a slower device, or shares it.\n");
    } else {
        printf("    The rest is idling: its calling thread was late. See 'capuchin explain %s'.\n",
               path);
    }
}

static void print_slowest(const struct rank_reports *reports)
{
    const struct rank_report *slow;
    const struct rank_report *fast;
    size_t s;
    size_t f;
    char own[32];
    char other[32];

    find_extremes(reports, &s, &f);
    slow = &reports->ranks[s];
    fast = &reports->ranks[f];
    printf("\nwhat to do\n");
    if (part(fast->sums.waited_ns, fast->sums.time_ns) < WORTH_MENTIONING) {
        printf("  Nothing: no rank waited for others for %.0f %% of the time.\n",
               100.0 * WORTH_MENTIONING);
        return;
    }
    printf("  - Rank %" PRIu64 " is the slowest: by itself it takes %s per iteration, rank %" PRIu64
           " %s.\n    It was the slowest in %zu of %zu iterations.\n",
           slow->rank, human_ns(own_ns(reports, s), own), fast->rank,
           human_ns(own_ns(reports, f), other), slow->sums.slowest, reports->counted);
    if (own_ns(reports, s) - own_ns(reports, f) <
        (uint64_t)(WORTH_MENTIONING * (double)own_ns(reports, s))) {
        printf("    The ranks take turns in being late: their ops take times that vary.\n");
        return;
    }
    print_reason(slow, fast, reports->counted);
}

bool explain_ranks(char *const *paths, size_t count, uint64_t iteration)
{
    struct rank_reports reports;

    if (!rank_reports_read(&reports, paths, count, iteration)) {
        return false;
    }
    print_head(&reports);
    print_times(&reports);
    print_memory(&reports);
    print_plans(&reports);
    print_slowest(&reports);
    rank_reports_finish(&reports);
    return true;
}

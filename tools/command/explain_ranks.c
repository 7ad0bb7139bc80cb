/*
 * capuchin explain with the reports of several ranks.
 *
 * All ranks take the same time, because each waits for the slowest in every step. So what a rank
 * takes by itself, without waiting for others, says which one is the slowest, and where it spends
 * more than the one that waits most says why: memory, or its ops.
 */
#include "tools/command/commands.h"

#include "base/printable.h"
#include "tools/output/output.h"
#include "tools/report/report_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * The report files of all ranks of a run: which of their iterations are the same step of training,
 * and what those cost each rank.
 *
 * Iterations are matched by their label and their number under it, because a rank may have
 * iterations of labels that others do not have. A rank whose file ends early ends the comparison of
 * that label.
 */

/* Over the steps that count. */
struct rank_sums {
    uint64_t time_ns;
    uint64_t waited_ns; /* for other ranks */
    uint64_t exchange_ns;
    uint64_t exchanged_bytes;
    uint64_t peak_bytes; /* the largest; so are the other sizes */
    uint64_t budget_bytes;
    uint64_t live_peak_bytes;
    uint64_t floor_bytes;
    uint64_t host_bytes;
    size_t slowest;      /* steps in which the rank took longest by itself */
    size_t timed;        /* steps in which all ranks timed their ops; of those: */
    uint64_t compute_ns; /* without exchanging */
    uint64_t stall_ns;   /* waiting for memory */
    uint64_t replay_ns;
};

struct rank_report {
    struct report_file file;
    uint64_t rank;
    struct rank_sums sums;
};

struct rank_step {
    const struct reported **of; /* the iteration of each rank, in their order */
    size_t number;              /* among those of its label, from 1 */
    bool counts;                /* the first of a label does not, unless it is the only one */
};

struct rank_reports {
    struct rank_report *ranks; /* in order */
    size_t count;
    uint64_t rank_count;            /* of the run; some may be missing here */
    const struct reported **places; /* of all steps */
    struct rank_step *steps;
    size_t step_count;
    size_t counted; /* steps that count */
    bool is_single; /* one iteration was asked for */
};

static uint64_t largest(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* What a rank's iteration took without waiting for others. */
static uint64_t iteration_own_ns(const struct reported *iteration)
{
    return report_less(iteration->time_ns, iteration->waited_ns);
}

/* The label of a step, "" if it has none. */
static const char *step_label(const struct rank_reports *reports, const struct rank_step *step)
{
    return reports->ranks[0].file.kinds[step->of[0]->kind].label;
}

/* The mode of a rank in a step. */
static const char *step_mode(const struct rank_reports *reports, const struct rank_step *step,
                             size_t rank)
{
    return reports->ranks[rank].file.kinds[step->of[rank]->kind].mode;
}

static int by_rank(const void *left, const void *right)
{
    const struct rank_report *a = left;
    const struct rank_report *b = right;

    return a->rank < b->rank ? -1 : a->rank > b->rank;
}

/* The files are those of different ranks of one run. */
static bool are_of_one_run(struct rank_reports *reports)
{
    const struct rank_report *ranks = reports->ranks;

    for (size_t i = 0; i < reports->count; i++) {
        if (ranks[i].file.iterations[0].rank_count == 0) {
            say("%s: not the report of one of several processes: rank_count is 0",
                ranks[i].file.path);
            return false;
        }
        if (ranks[i].file.iterations[0].rank_count != reports->rank_count) {
            say("%s is of %" PRIu64 " ranks and %s of %" PRIu64 ": they are not of one run",
                ranks[0].file.path, reports->rank_count, ranks[i].file.path,
                ranks[i].file.iterations[0].rank_count);
            return false;
        }
        if (i > 0 && ranks[i].rank == ranks[i - 1].rank) {
            say("%s and %s are both of rank %" PRIu64, ranks[i - 1].file.path, ranks[i].file.path,
                ranks[i].rank);
            return false;
        }
    }
    return true;
}

static bool read_files(struct rank_reports *reports, char *const *paths, size_t count)
{
    reports->ranks = calloc(count, sizeof(*reports->ranks));
    if (reports->ranks == NULL) {
        say("out of memory for %zu reports", count);
        return false;
    }
    for (; reports->count < count; reports->count++) {
        struct rank_report *rank = &reports->ranks[reports->count];

        if (!report_file_read(&rank->file, paths[reports->count])) {
            return false;
        }
        rank->rank = rank->file.iterations[0].rank;
    }
    qsort(reports->ranks, count, sizeof(*reports->ranks), by_rank);
    reports->rank_count = reports->ranks[0].file.iterations[0].rank_count;
    return are_of_one_run(reports);
}

static const char *label_of(const struct report_file *file, const struct reported *iteration)
{
    return file->kinds[iteration->kind].label;
}

/* Where in each file to look for the next iteration of each label of the first one. */
struct cursors {
    size_t label_count;
    size_t *next;    /* of each file, of each label */
    size_t *numbers; /* of each label: how many there were */
};

/* The first kind with that label stands for it. */
static size_t label_index(const struct report_file *file, const char *label)
{
    size_t index = 0;

    while (strcmp(file->kinds[index].label, label) != 0) {
        index++;
    }
    return index;
}

/* The next iteration of a label; NULL: there is none. */
static const struct reported *find_next(const struct report_file *file, const char *label,
                                        size_t *next)
{
    while (*next < file->count) {
        const struct reported *iteration = &file->iterations[(*next)++];

        if (strcmp(label_of(file, iteration), label) == 0) {
            return iteration;
        }
    }
    return NULL;
}

/* Finds the counterparts of an iteration of the lowest rank. False: not all ranks have one. */
static bool match_step(const struct rank_reports *reports, struct cursors *cursors,
                       const struct reported *iteration, struct rank_step *step)
{
    const char *label = label_of(&reports->ranks[0].file, iteration);
    size_t index = label_index(&reports->ranks[0].file, label);
    bool is_everywhere = true;

    step->number = ++cursors->numbers[index];
    for (size_t r = 0; r < reports->count; r++) {
        step->of[r] = find_next(&reports->ranks[r].file, label,
                                &cursors->next[r * cursors->label_count + index]);
        is_everywhere = is_everywhere && step->of[r] != NULL;
    }
    return is_everywhere;
}

static void match_with(struct rank_reports *reports, struct cursors *cursors,
                       const struct reported **places)
{
    const struct report_file *first = &reports->ranks[0].file;

    for (size_t i = 0; i < first->count; i++) {
        struct rank_step *step = &reports->steps[reports->step_count];

        step->of = places + reports->step_count * reports->count;
        reports->step_count += match_step(reports, cursors, &first->iterations[i], step);
    }
}

static bool match_all(struct rank_reports *reports)
{
    const struct report_file *first = &reports->ranks[0].file;
    const struct reported **places = calloc(first->count * reports->count, sizeof(*places));
    struct cursors cursors = {
        .label_count = first->kind_count,
        .next = calloc(first->kind_count * reports->count, sizeof(*cursors.next)),
        .numbers = calloc(first->kind_count, sizeof(*cursors.numbers)),
    };
    bool is_fine = true;

    reports->places = places;
    reports->steps = calloc(first->count, sizeof(*reports->steps));
    if (places == NULL || cursors.next == NULL || cursors.numbers == NULL ||
        reports->steps == NULL) {
        say("out of memory for the iterations of %zu ranks", reports->count);
        is_fine = false;
    } else {
        match_with(reports, &cursors, places);
        is_fine = reports->step_count > 0;
        if (!is_fine) {
            say("%s and the others have no iterations in common: no label is in all of them",
                first->path);
        }
    }
    free(cursors.next);
    free(cursors.numbers);
    return is_fine;
}

/* The first of a label includes what happens once, so it counts only if it is the only one. */
static bool is_typical(const struct rank_reports *reports, const struct rank_step *step)
{
    if (step->number > 1) {
        return true;
    }
    for (size_t i = 0; i < reports->step_count; i++) {
        const struct rank_step *other = &reports->steps[i];

        if (other->number > 1 &&
            strcmp(step_label(reports, other), step_label(reports, step)) == 0) {
            return false;
        }
    }
    return true;
}

static void add_iteration(struct rank_sums *sums, const struct reported *iteration, bool all_timed)
{
    sums->time_ns += iteration->time_ns;
    sums->waited_ns += iteration->waited_ns;
    sums->exchange_ns += iteration->exchange_ns;
    sums->exchanged_bytes += iteration->exchanged_bytes;
    sums->peak_bytes = largest(sums->peak_bytes, iteration->peak_bytes);
    sums->budget_bytes = largest(sums->budget_bytes, iteration->budget_bytes);
    sums->live_peak_bytes = largest(sums->live_peak_bytes, iteration->live_peak_bytes);
    sums->floor_bytes = largest(sums->floor_bytes, iteration->floor_bytes);
    sums->host_bytes = largest(sums->host_bytes, iteration->host_bytes);
    if (all_timed) {
        sums->timed++;
        sums->compute_ns += report_less(iteration->compute_ns, iteration->exchange_ns);
        sums->stall_ns += iteration->stall_ns;
        sums->replay_ns += iteration->recompute_ns;
    }
}

static void add_step(struct rank_reports *reports, const struct rank_step *step)
{
    size_t slowest = 0;
    bool all_timed = true;

    for (size_t r = 0; r < reports->count; r++) {
        all_timed = all_timed && step->of[r]->is_timed;
        if (iteration_own_ns(step->of[r]) > iteration_own_ns(step->of[slowest])) {
            slowest = r;
        }
    }
    for (size_t r = 0; r < reports->count; r++) {
        add_iteration(&reports->ranks[r].sums, step->of[r], all_timed);
    }
    reports->ranks[slowest].sums.slowest++;
    reports->counted++;
}

static bool sum_up(struct rank_reports *reports, uint64_t iteration)
{
    for (size_t i = 0; i < reports->step_count; i++) {
        struct rank_step *step = &reports->steps[i];

        step->counts =
            iteration != 0 ? step->of[0]->iteration == iteration : is_typical(reports, step);
        if (step->counts) {
            add_step(reports, step);
        }
    }
    if (reports->counted == 0) {
        say("%s: there is no iteration %" PRIu64 " that all ranks have",
            reports->ranks[0].file.path, iteration);
    }
    return reports->counted > 0;
}

static void rank_reports_finish(struct rank_reports *reports)
{
    for (size_t r = 0; r < reports->count; r++) {
        report_file_finish(&reports->ranks[r].file);
    }
    free(reports->places);
    free(reports->steps);
    free(reports->ranks);
    *reports = (struct rank_reports){0};
}

/*
 * Reads the files, in any order. `iteration`, unless it is 0, is the number of an iteration of the
 * lowest rank, and then only its step counts. False: an error has been printed: a file cannot be
 * read, is not that of a rank, or of another run; two are of one rank; there is no such iteration,
 * or no common one.
 */
static bool rank_reports_read(struct rank_reports *reports, char *const *paths, size_t count,
                              uint64_t iteration)
{
    *reports = (struct rank_reports){.is_single = iteration != 0};
    if (!read_files(reports, paths, count) || !match_all(reports) || !sum_up(reports, iteration)) {
        rank_reports_finish(reports);
        return false;
    }
    return true;
}

/* What is printed of them. */

/* The share of the time from which on something is mentioned. */
#define WORTH_MENTIONING 0.02

/* The most steps that are named. */
enum { NAMED = 8 };

static uint64_t mean(uint64_t sum, size_t count)
{
    return count > 0 ? sum / count : 0;
}

static const char *timed_ns(uint64_t sum, const struct rank_sums *sums, char *buffer)
{
    return sums->timed > 0 ? human_ns(mean(sum, sums->timed), buffer) : "not timed";
}

static void print_step_name(const struct rank_reports *reports, const struct rank_step *step)
{
    const char *label = step_label(reports, step);
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
        if (strcmp(step_mode(reports, step, r), step_mode(reports, step, 0)) != 0) {
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

        if (strcmp(step_mode(reports, step, r), "guided") != 0) {
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
        if (strcmp(step_mode(reports, step, r), "guided") == 0) {
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
               reports->ranks[r].rank, printable_column(step_mode(reports, step, r), 8, mode),
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

    return mean(report_less(sums->time_ns, sums->waited_ns), reports->counted);
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
    return report_less(mean(slow_sum, slow->timed), mean(fast_sum, slow->timed));
}

/* Why the slowest rank is slower. */
static void print_reason(const struct rank_report *slow, const struct rank_report *fast,
                         size_t counted)
{
    const struct rank_sums *a = &slow->sums;
    const struct rank_sums *b = &fast->sums;
    uint64_t memory_ns = more_ns(a, a->stall_ns + a->replay_ns, b->stall_ns + b->replay_ns);
    uint64_t ops_ns = more_ns(a, a->compute_ns, b->compute_ns);
    uint64_t exchange_ns =
        report_less(mean(a->exchange_ns, counted), mean(b->exchange_ns, counted));
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
    if (report_share(fast->sums.waited_ns, fast->sums.time_ns) < WORTH_MENTIONING) {
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

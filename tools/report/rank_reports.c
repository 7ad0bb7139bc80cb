/* Reads the report files of all ranks and matches their iterations. */
#include "tools/report/rank_reports.h"

#include "tools/output/output.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static uint64_t less(uint64_t from, uint64_t by)
{
    return from > by ? from - by : 0;
}

static uint64_t largest(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

uint64_t rank_reports_own_ns(const struct reported *iteration)
{
    return less(iteration->time_ns, iteration->waited_ns);
}

const char *rank_reports_label(const struct rank_reports *reports, const struct rank_step *step)
{
    return reports->ranks[0].file.kinds[step->of[0]->kind].label;
}

const char *rank_reports_mode(const struct rank_reports *reports, const struct rank_step *step,
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
static bool match(const struct rank_reports *reports, struct cursors *cursors,
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
        reports->step_count += match(reports, cursors, &first->iterations[i], step);
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
            strcmp(rank_reports_label(reports, other), rank_reports_label(reports, step)) == 0) {
            return false;
        }
    }
    return true;
}

static void add(struct rank_sums *sums, const struct reported *iteration, bool all_timed)
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
        sums->compute_ns += less(iteration->compute_ns, iteration->exchange_ns);
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
        if (rank_reports_own_ns(step->of[r]) > rank_reports_own_ns(step->of[slowest])) {
            slowest = r;
        }
    }
    for (size_t r = 0; r < reports->count; r++) {
        add(&reports->ranks[r].sums, step->of[r], all_timed);
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

bool rank_reports_read(struct rank_reports *reports, char *const *paths, size_t count,
                       uint64_t iteration)
{
    *reports = (struct rank_reports){.is_single = iteration != 0};
    if (!read_files(reports, paths, count) || !match_all(reports) || !sum_up(reports, iteration)) {
        rank_reports_finish(reports);
        return false;
    }
    return true;
}

void rank_reports_finish(struct rank_reports *reports)
{
    for (size_t r = 0; r < reports->count; r++) {
        report_file_finish(&reports->ranks[r].file);
    }
    free(reports->places);
    free(reports->steps);
    free(reports->ranks);
    *reports = (struct rank_reports){0};
}

/*
 * Overhead of every planner on every trace and budget, as a table in Markdown.
 *
 *     bench_policy_table [-p planner,...] [-b 80,70,...] [-e quick|default|best] [-g PAGE]
 *                        [-s SEEDS] [-z] [TRACE...]
 *
 * With -z, or without traces, it uses a few models of the zoo, which need no files.
 *
 * A cell is the overhead in percent over the ideal iteration; "-": no plan. In parentheses: the
 * lower bound in percent, and the CPU time of planning in seconds. With -g every tensor is
 * rounded up to pages of that many bytes, and a cell is the percentage without and with place
 * lines; in parentheses: the seconds of either, and the milliseconds of placement alone. With -s
 * every cell is planned with so many seeds: the mean of the overheads; in parentheses: the least
 * and the largest, and the mean of the seconds.
 */
#include "models/zoo.h"
#include "policy/baselines/baselines.h"
#include "policy/bound/bound_iteration.h"
#include "policy/format/trace.h"
#include "policy/model/timeline.h"
#include "policy/place/place.h"
#include "policy/search/planner.h"
#include "tools/output/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct settings {
    const char *planners;
    const char *budgets;
    enum plan_effort effort;
    uint64_t page_bytes; /* 0: without place lines */
    uint64_t seeds;      /* 0: the usual one alone */
};

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Whether the name is in the list. */
static bool is_listed(const char *list, const char *name)
{
    size_t length = strlen(name);

    for (const char *at = list; at != NULL && *at != '\0';) {
        const char *comma = strchr(at, ',');
        size_t own = comma != NULL ? (size_t)(comma - at) : strlen(at);

        if (own == length && strncmp(at, name, length) == 0) {
            return true;
        }
        at = comma != NULL ? comma + 1 : NULL;
    }
    return list == NULL;
}

static bool print_cell(const struct planner *planner, const struct trace_index *trace_index,
                       unsigned percent, enum plan_effort effort)
{
    struct planner_request request = {
        .trace_index = trace_index,
        .budget_bytes = (uint64_t)((double)trace_index->peak_bytes * percent / 100.0),
        .host_bytes = UINT64_MAX,
        .effort = effort};
    struct timeline timeline;
    struct error_text error = {""};
    struct plan plan;
    double begin = now();
    double seconds;
    capu_status status = planner_run(planner, &request, &plan, &error);

    seconds = now() - begin;
    if (status == CAPU_OVER_BUDGET || status == CAPU_UNSUPPORTED) {
        printf(" - |");
        return true;
    }
    if (status == CAPU_OK) {
        status = timeline_init(&timeline, trace_index, &plan, NULL, false, &error);
        plan_finish(&plan);
    }
    if (status != CAPU_OK) {
        fprintf(stderr, "%s: %s\n", planner->name, error.text);
        return false;
    }
    printf(" %.1f (%.1f; %.2f s) |", 100.0 * timeline_overhead(&timeline),
           100.0 * ((double)bound_iteration(trace_index, &trace_index->trace->machine,
                                            request.budget_bytes) /
                        (double)trace_index->trace->total_ns -
                    1.0),
           seconds);
    fflush(stdout);
    timeline_finish(&timeline);
    return true;
}

/* Percent over the ideal; below 0: no plan. */
static bool plan_once(const struct planner *planner, const struct planner_request *request,
                      struct plan *plan, double *percent, double *seconds)
{
    struct timeline timeline;
    struct error_text error = {""};
    double begin = now();
    capu_status status = planner_run(planner, request, plan, &error);

    *seconds = now() - begin;
    *percent = -1.0;
    if (status == CAPU_OVER_BUDGET || status == CAPU_UNSUPPORTED) {
        return true;
    }
    if (status == CAPU_OK) {
        status = timeline_init(&timeline, request->trace_index, plan, NULL, false, &error);
    }
    if (status != CAPU_OK) {
        fprintf(stderr, "%s: %s\n", planner->name, error.text);
        return false;
    }
    *percent = 100.0 * timeline_overhead(&timeline);
    timeline_finish(&timeline);
    return true;
}

static bool print_placed_cell(const struct planner *planner, const struct trace_index *trace_index,
                              unsigned percent, enum plan_effort effort)
{
    struct planner_request request = {.trace_index = trace_index,
                                      .budget_bytes = trace_index->peak_bytes / 100 * percent +
                                                      trace_index->peak_bytes % 100 * percent / 100,
                                      .host_bytes = UINT64_MAX,
                                      .effort = effort};
    struct place_result result;
    struct plan unplaced;
    struct plan placed;
    double overheads[2];
    double seconds[2];
    double begin;
    bool is_fine = plan_once(planner, &request, &unplaced, &overheads[0], &seconds[0]);

    plan_finish(&unplaced);
    request.place = true;
    is_fine &= plan_once(planner, &request, &placed, &overheads[1], &seconds[1]);
    if (!is_fine || overheads[1] < 0.0) {
        if (overheads[0] < 0.0) {
            printf(" - |");
        } else {
            printf(" %.1f / - |", overheads[0]);
        }
        return is_fine;
    }
    begin = now();
    is_fine = place_plan(trace_index, NULL, &placed, &result, NULL) == CAPU_OK;
    printf(" %.1f / %.1f (%.2f / %.2f s; %.1f ms) |", overheads[0], overheads[1], seconds[0],
           seconds[1], 1e3 * (now() - begin));
    fflush(stdout);
    plan_finish(&placed);
    return is_fine;
}

/* The spread over seeds. */
static bool print_seeds(const struct planner *planner, const struct trace_index *trace_index,
                        unsigned percent, const struct settings *settings)
{
    struct planner_request request = {.trace_index = trace_index,
                                      .budget_bytes = trace_index->peak_bytes / 100 * percent +
                                                      trace_index->peak_bytes % 100 * percent / 100,
                                      .host_bytes = UINT64_MAX,
                                      .place = settings->page_bytes > 0,
                                      .effort = settings->effort};
    double sum = 0.0;
    double least = 0.0;
    double most = 0.0;
    double seconds = 0.0;

    for (; request.seed < settings->seeds; request.seed++) {
        struct plan plan;
        double overhead;
        double spent;

        if (!plan_once(planner, &request, &plan, &overhead, &spent)) {
            return false;
        }
        plan_finish(&plan);
        if (overhead < 0.0) {
            printf(" - |");
            return true;
        }
        least = request.seed == 0 || overhead < least ? overhead : least;
        most = overhead > most ? overhead : most;
        sum += overhead;
        seconds += spent;
    }
    printf(" %.1f (%.1f to %.1f; %.2f s) |", sum / (double)settings->seeds, least, most,
           seconds / (double)settings->seeds);
    fflush(stdout);
    return true;
}

static bool print_one(const struct planner *planner, const struct trace_index *trace_index,
                      unsigned percent, const struct settings *settings)
{
    if (settings->seeds > 0) {
        return print_seeds(planner, trace_index, percent, settings);
    }
    return settings->page_bytes > 0
               ? print_placed_cell(planner, trace_index, percent, settings->effort)
               : print_cell(planner, trace_index, percent, settings->effort);
}

/* Takes the trace and finishes it. */
static bool print_trace(struct trace *trace, const struct settings *settings)
{
    struct error_text error = {""};
    struct trace_index trace_index = {0};
    const struct planner *planner;
    bool is_fine = true;

    if (trace_index_init(&trace_index, trace, settings->page_bytes > 0 ? settings->page_bytes : 1,
                         &error) != CAPU_OK) {
        fprintf(stderr, "%s\n", error.text);
        trace_finish(trace);
        return false;
    }
    for (size_t i = 0; (planner = baselines_planner_at(i)) != NULL; i++) {
        if (!is_listed(settings->planners, planner->name) || progress_should_stop(NULL)) {
            continue;
        }
        printf("| `%s` | `%s` |", trace_text(trace, trace->name), planner->name);
        for (const char *at = settings->budgets; at != NULL;) {
            const char *comma = strchr(at, ',');

            is_fine &= print_one(planner, &trace_index, (unsigned)atoi(at), settings);
            progress_step();
            at = comma != NULL && !progress_should_stop(NULL) ? comma + 1 : NULL;
        }
        printf("\n");
    }
    trace_index_finish(&trace_index);
    trace_finish(trace);
    return is_fine;
}

static bool print_file(const char *path, const struct settings *settings)
{
    struct error_text error = {""};
    struct trace trace;

    if (trace_load(&trace, path, &error) != CAPU_OK) {
        fprintf(stderr, "%s\n", error.text);
        return false;
    }
    return print_trace(&trace, settings);
}

enum { ZOO_CASES = 6 };

/* One model of each kind. If optimizer state is large, with updates at the end and as soon as
 * possible. */
static bool print_zoo(const struct settings *settings)
{
    static const struct {
        const char *model;
        const char *machine;
        struct zoo_options options;
    } cases[ZOO_CASES] = {
        {"resnet152", "a100", {.batch = 256, .dtype = DTYPE_TF32}},
        {"unet", "v100", {.batch = 32}},
        {"lstm", "rtx4090", {.batch = 1024, .dtype = DTYPE_TF32}},
        {"gpt2-xl", "h200", {.batch = 8, .dtype = DTYPE_BF16}},
        {"gpt2-xl", "h200", {.batch = 8, .dtype = DTYPE_BF16, .updates_asap = true}},
        {"llama3-1b", "h100", {.batch = 4, .dtype = DTYPE_BF16, .updates_asap = true}},
    };
    struct error_text error = {""};
    bool is_fine = true;

    for (size_t i = 0; is_fine && i < ZOO_CASES && !progress_should_stop(NULL); i++) {
        struct hardware hardware;
        struct trace trace;

        if (hardware_load(&hardware, cases[i].machine, &error) != CAPU_OK ||
            zoo_build(zoo_find(cases[i].model), &cases[i].options, &hardware, &trace, NULL,
                      &error) != CAPU_OK) {
            fprintf(stderr, "%s: %s\n", cases[i].model, error.text);
            return false;
        }
        is_fine = print_trace(&trace, settings);
    }
    return is_fine;
}

static uint64_t count_cells(const struct settings *settings, int traces)
{
    const struct planner *planner;
    uint64_t rows = 0;
    uint64_t columns = 1;

    for (size_t i = 0; (planner = baselines_planner_at(i)) != NULL; i++) {
        rows += is_listed(settings->planners, planner->name);
    }
    for (const char *at = settings->budgets; *at != '\0'; at++) {
        columns += *at == ',';
    }
    return rows * columns * (uint64_t)traces;
}

int main(int argc, char **argv)
{
    struct settings settings = {.budgets = "80,70,60,50,40,30", .effort = EFFORT_DEFAULT};
    bool with_zoo = false;
    bool is_fine = true;
    int option;

    while ((option = getopt(argc, argv, "p:b:e:g:s:z")) != -1) {
        switch (option) {
        case 'p':
            settings.planners = optarg;
            break;
        case 'b':
            settings.budgets = optarg;
            break;
        case 'e':
            settings.effort = strcmp(optarg, "quick") == 0  ? EFFORT_QUICK
                              : strcmp(optarg, "best") == 0 ? EFFORT_BEST
                                                            : EFFORT_DEFAULT;
            break;
        case 'g':
            settings.page_bytes = strtoull(optarg, NULL, 10);
            break;
        case 's':
            settings.seeds = strtoull(optarg, NULL, 10);
            break;
        case 'z':
            with_zoo = true;
            break;
        default:
            fprintf(stderr,
                    "usage: %s [-p planner,...] [-b 80,...] [-e effort] [-g page] [-s seeds] [-z] "
                    "[TRACE...]\n",
                    argv[0]);
            return 2;
        }
    }
    with_zoo = with_zoo || optind == argc;
    /* On a terminal the cells of a row are progress enough, and the line would lie over them. */
    progress_begin(isatty(STDOUT_FILENO) == 1 ? NULL : "planning",
                   count_cells(&settings, argc - optind + (with_zoo ? ZOO_CASES : 0)), 0.0);
    for (int i = optind; i < argc && !progress_should_stop(NULL); i++) {
        is_fine &= print_file(argv[i], &settings);
    }
    if (with_zoo) {
        is_fine &= print_zoo(&settings);
    }
    return progress_end() ? EXIT_STOPPED : is_fine ? 0 : 1;
}

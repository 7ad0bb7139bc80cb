/*
 * How far plans are from the optimum: for each trace and budget the lower bound (docs/bounds.md),
 * the bound by linear programming, and the overhead of `hybrid`, in percent over the ideal
 * iteration. Fails if a plan is faster than a bound.
 *
 *     bench_policy_lp [-c CUTS] [-t SECONDS] [-b 80,70,...] TRACE...
 *
 * "-": the linear program was not solved in time; fewer cuts may help.
 */
#include "bench/policy/lp_bound.h"

#include "policy/baselines/baselines.h"
#include "policy/bound/bound_iteration.h"
#include "policy/format/trace.h"
#include "policy/model/timeline.h"
#include "policy/search/planner.h"
#include "tools/output/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct settings {
    const char *budgets;
    int cuts;
    int seconds;
};

static double percent_over(const struct trace *trace, uint64_t ns)
{
    return 100.0 * ((double)ns / (double)trace->total_ns - 1.0);
}

/* UINT64_MAX: no plan. */
static uint64_t plan_ns(const struct planner *planner, const struct trace_index *trace_index,
                        uint64_t budget)
{
    struct planner_request request = {.trace_index = trace_index,
                                      .budget_bytes = budget,
                                      .host_bytes = UINT64_MAX,
                                      .effort = EFFORT_DEFAULT};
    struct timeline timeline;
    struct plan plan;
    uint64_t ns = UINT64_MAX;

    if (planner_run(planner, &request, &plan, NULL) == CAPU_OK) {
        if (timeline_init(&timeline, trace_index, &plan, NULL, false, NULL) == CAPU_OK) {
            ns = timeline.iteration_ns;
            timeline_finish(&timeline);
        }
        plan_finish(&plan);
    }
    return ns;
}

static bool print_budget(const struct trace_index *trace_index, unsigned percent,
                         const struct settings *settings)
{
    const struct trace *trace = trace_index->trace;
    uint64_t budget = (uint64_t)((double)trace_index->peak_bytes * percent / 100.0);
    uint64_t bound_ns = bound_iteration(trace_index, &trace->machine, budget);
    const struct planner *planner;
    uint64_t hybrid_ns;
    struct lp_result lp;
    char solved[32] = "-";
    bool is_fine = true;

    if (budget < trace_index->floor_bytes) {
        return true;
    }
    if (!lp_bound(trace_index, &trace->machine, budget, settings->cuts, settings->seconds, &lp)) {
        return false;
    }
    hybrid_ns = plan_ns(&planners[0], trace_index, budget);
    if (lp.is_optimal) {
        snprintf(solved, sizeof(solved), "%.2f", percent_over(trace, lp.ns));
    }
    progress_clear();
    printf("| %s | %u | %.2f | %s | %.2f | %d x %d |\n", trace_text(trace, trace->name), percent,
           percent_over(trace, bound_ns), solved, percent_over(trace, hybrid_ns), lp.rows,
           lp.columns);
    fflush(stdout);
    for (size_t i = 0; (planner = baselines_planner_at(i)) != NULL; i++) {
        uint64_t ns = planner == planners ? hybrid_ns : plan_ns(planner, trace_index, budget);

        if (ns < bound_ns || ns < lp.ns) {
            fprintf(stderr, "%s: %s at %u %% is faster than the bound\n",
                    trace_text(trace, trace->name), planner->name, percent);
            is_fine = false;
        }
    }
    return is_fine;
}

static bool print_trace(const char *path, const struct settings *settings)
{
    struct error_text error = {""};
    struct trace trace;
    struct trace_index trace_index = {0};
    bool is_fine = true;

    if (trace_load(&trace, path, &error) != CAPU_OK ||
        trace_index_init(&trace_index, &trace, 1, &error) != CAPU_OK) {
        fprintf(stderr, "%s\n", error.text);
        trace_finish(&trace);
        return false;
    }
    for (const char *at = settings->budgets; at != NULL;) {
        const char *comma = strchr(at, ',');

        is_fine &= print_budget(&trace_index, (unsigned)atoi(at), settings);
        progress_step();
        at = comma != NULL && !progress_should_stop(NULL) ? comma + 1 : NULL;
    }
    trace_index_finish(&trace_index);
    trace_finish(&trace);
    return is_fine;
}

int main(int argc, char **argv)
{
    struct settings settings = {.budgets = "80,70,60,50,40,30", .cuts = 16, .seconds = 60};
    uint64_t budgets = 1;
    bool is_fine = true;
    int option;

    while ((option = getopt(argc, argv, "c:t:b:")) != -1) {
        switch (option) {
        case 'c':
            settings.cuts = atoi(optarg);
            break;
        case 't':
            settings.seconds = atoi(optarg);
            break;
        case 'b':
            settings.budgets = optarg;
            break;
        default:
            fprintf(stderr, "usage: %s [-c cuts] [-t seconds] [-b 80,...] TRACE...\n", argv[0]);
            return 2;
        }
    }
    printf("| trace | budget %% | bound | linear program | `hybrid` | rows x columns |\n");
    printf("| --- | --- | --- | --- | --- | --- |\n");
    for (const char *at = settings.budgets; *at != '\0'; at++) {
        budgets += *at == ',';
    }
    progress_begin("solving", budgets * (uint64_t)(argc - optind), 0.0);
    for (int i = optind; i < argc && !progress_should_stop(NULL); i++) {
        is_fine &= print_trace(argv[i], &settings);
    }
    return progress_end() ? EXIT_STOPPED : is_fine ? 0 : 1;
}

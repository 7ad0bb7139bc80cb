/*
 * capuchin explain: from a report file, why an iteration was slow and what to do about it.
 *
 * The time of an iteration is the sum of five things, each of which has a different remedy: ops,
 * waits for tensors, waits for memory, replays, and idling of the device. account.c attributes it,
 * remedies.c derives advice from it, and this file prints it. The choice of the iteration matters,
 * because remedies compare it with others: untimed iterations say little, and the first one, and
 * those that still waited for a plan, are slow for reasons that pass by themselves. The reports of
 * several ranks are explained together in explain_ranks.c.
 */
#include "tools/commands.h"

#include "tools/account.h"
#include "tools/advice.h"
#include "tools/arguments.h"
#include "tools/curves.h"
#include "tools/exit_code.h"
#include "tools/explain_ranks.h"
#include "tools/human.h"
#include "tools/output.h"
#include "tools/page_plan.h"
#include "tools/predict.h"
#include "tools/printable.h"
#include "tools/remedies.h"
#include "tools/say.h"
#include "tools/subject.h"

#include "policy/bound.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The most lines of a list. */
enum { LISTED = 8 };

struct settings {
    struct arguments arguments; /* `trace` is an option here */
    const char *report;         /* the first of: */
    char **reports;
    size_t report_count;
    uint64_t iteration; /* 0: the slowest */
};

enum option_key { KEY_ITERATION = 'i', KEY_TRACE = KEY_OWN, KEY_PLAN };

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    struct settings *settings = state->input;

    switch (key) {
    case KEY_ITERATION:
        settings->iteration = arguments_count("iteration", argument, UINT64_MAX, state);
        return 0;
    case KEY_TRACE:
        settings->arguments.trace = argument;
        return 0;
    case KEY_PLAN:
        settings->arguments.plan = argument;
        return 0;
    case ARGP_KEY_ARG:
        return ARGP_ERR_UNKNOWN; /* all of them come with the next key */
    case ARGP_KEY_ARGS:
        settings->reports = state->argv + state->next;
        settings->report_count = (size_t)(state->argc - state->next);
        settings->report = settings->reports[0];
        return 0;
    case ARGP_KEY_END:
        if (settings->report == NULL) {
            argp_error(state, "a REPORT is required");
        } else if (settings->report_count > 1 &&
                   (settings->arguments.trace != NULL || settings->arguments.html != NULL)) {
            argp_error(state, "%s: has no effect on several reports",
                       settings->arguments.trace != NULL ? "--trace" : "--html");
        } else if (settings->arguments.machine != NULL && settings->arguments.trace == NULL) {
            argp_error(state, "--machine %s: has no effect without --trace",
                       settings->arguments.machine);
        } else if (settings->arguments.plan != NULL &&
                   (settings->arguments.trace == NULL || settings->arguments.html == NULL)) {
            argp_error(state, "--plan %s: has no effect without --trace and --html",
                       settings->arguments.plan);
        }
        return 0;
    default:
        return arguments_parse(key, argument, &settings->arguments, state);
    }
}

static bool is_slower(const struct reported *iteration, const struct reported *than)
{
    return than == NULL || iteration->time_ns > than->time_ns;
}

/* Whether most iterations of its label are guided and this one is not: then it had no plan yet. */
static bool awaits_plan(const struct report_file *file, const struct reported *iteration)
{
    const struct report_kind *own = &file->kinds[iteration->kind];

    for (size_t i = 0; i < file->kind_count && strcmp(own->mode, "passive") == 0; i++) {
        const struct report_kind *kind = &file->kinds[i];

        if (strcmp(kind->mode, "guided") == 0 && strcmp(kind->label, own->label) == 0) {
            return kind->count > own->count;
        }
    }
    return false;
}

/* The requested iteration, or else the slowest one. In order of preference: timed and not waiting
   for a plan, timed, any. The first iteration is chosen only if it is the only one. */
static const struct reported *choose(const struct report_file *file, uint64_t number)
{
    const struct reported *settled = NULL;
    const struct reported *timed = NULL;
    const struct reported *any = NULL;

    for (size_t i = 0; i < file->count; i++) {
        const struct reported *iteration = &file->iterations[i];

        if (number != 0 ? iteration->iteration != number : i == 0 && file->count > 1) {
            continue;
        }
        any = is_slower(iteration, any) ? iteration : any;
        timed = iteration->is_timed && is_slower(iteration, timed) ? iteration : timed;
        settled =
            iteration->is_timed && !awaits_plan(file, iteration) && is_slower(iteration, settled)
                ? iteration
                : settled;
    }
    if (any == NULL) {
        say("%s: there is no iteration %" PRIu64, file->path, number);
    }
    return settled != NULL ? settled : timed != NULL ? timed : any;
}

static void print_kinds(const struct report_file *file)
{
    char median[32];
    char slowest[32];
    char label[PRINTABLE_BYTES];
    char mode[PRINTABLE_BYTES];

    printf("%zu iterations\n  %-20s %-8s %6s %14s %14s  %s\n", file->count, "label", "mode",
           "count", "median", "slowest", "found in");
    for (size_t i = 0; i < file->kind_count; i++) {
        const struct report_kind *kind = &file->kinds[i];
        const struct reported *worst = &file->iterations[kind->slowest];

        printf("  %s %s %6zu %14s %14s  iteration %" PRIu64 "\n",
               printable_column(kind->label[0] != '\0' ? kind->label : "(none)", 20, label),
               printable_column(kind->mode, 8, mode), kind->count,
               human_ns(kind->median_ns, median), human_ns(worst->time_ns, slowest),
               worst->iteration);
    }
}

static double part(uint64_t ns, uint64_t whole)
{
    return whole > 0 ? (double)ns / (double)whole : 0.0;
}

static void print_time(const char *what, uint64_t ns, uint64_t whole)
{
    char buffer[32];

    printf("  %-44s %14s %6.1f %%\n", what, human_ns(ns, buffer), 100.0 * part(ns, whole));
}

static uint64_t less(uint64_t from, uint64_t by)
{
    return from > by ? from - by : 0;
}

/* Which plan was active, and for how long the next one had been in the making. */
static void print_planning(const struct reported *counters)
{
    if (counters->plan_stage > 0) {
        printf("stage %" PRIu64 " of its plan was active", counters->plan_stage);
    } else if (counters->planning_ns > 0) {
        printf("it had no plan yet");
    } else {
        return;
    }
    if (counters->planning_ns > 0) {
        printf("; planning, %.2f s so far", (double)counters->planning_ns / 1e9);
    }
    printf("\n");
}

/* The link as the plan was made for, and as it was. */
static void print_link(const struct reported *counters)
{
    if (counters->plan_d2h_bytes_per_s == 0) {
        return;
    }
    printf("planned for %.2f GB/s out and %.2f GB/s back",
           (double)counters->plan_d2h_bytes_per_s / 1e9,
           (double)counters->plan_h2d_bytes_per_s / 1e9);
    if (counters->seen_d2h_bytes_per_s > 0) {
        printf("; copies out had %.2f GB/s", (double)counters->seen_d2h_bytes_per_s / 1e9);
    }
    if (counters->seen_h2d_bytes_per_s > 0) {
        printf("; copies back had %.2f GB/s", (double)counters->seen_h2d_bytes_per_s / 1e9);
    }
    printf("\n");
}

static void print_where(const struct account *account)
{
    const struct reported *counters = &account->counters;
    char buffer[32];
    char size[32];
    char label[PRINTABLE_BYTES];
    char mode[PRINTABLE_BYTES];

    printf("\n");
    if (counters->rank_count > 0) {
        printf("rank %" PRIu64 " of %" PRIu64 ", ", counters->rank, counters->rank_count);
    }
    printf("iteration %" PRIu64 "%s%s, %s mode: %s", counters->iteration,
           account->kind->label[0] != '\0' ? " " : "", printable(account->kind->label, label),
           printable(account->kind->mode, mode), human_ns(counters->time_ns, buffer));
    if (counters->predicted_ns > 0) {
        printf(", predicted %s", human_ns(counters->predicted_ns, buffer));
    }
    printf("\n");
    if (account->kind->count > 1) {
        printf("the median of this label and mode is %s\n",
               human_ns(account->kind->median_ns, buffer));
    }
    print_planning(counters);
    print_link(counters);
    printf("\nwhere the time went\n");
    if (!counters->is_timed) {
        printf(
            "  unknown: its ops were not timed. In guided mode only some iterations are, in mode "
            "off none; CAPUCHIN_SAMPLE_EVERY=1 times all\n");
        return;
    }
    print_time("ops", counters->compute_ns, counters->time_ns);
    if (counters->exchange_ns > 0) {
        printf("    of that %s to exchange %s with others\n",
               human_ns(counters->exchange_ns, buffer),
               human_bytes(counters->exchanged_bytes, size));
    }
    if (counters->waited_ns > 0) {
        print_time("waiting for others", counters->waited_ns, counters->time_ns);
    }
    print_time("waiting for tensors to return", account->back_ns, counters->time_ns);
    print_time("waiting for free memory",
               less(counters->stall_ns, account->back_ns + account->replay_ns), counters->time_ns);
    print_time("waiting before replays", account->replay_ns, counters->time_ns);
    print_time("replays", counters->recompute_ns, counters->time_ns);
    print_time("idle: no op was issued in time", account_idle_ns(account), counters->time_ns);
}

/* The budget, and how much of it there is compared with a run without a limit. */
static void print_budget_share(const struct reported *counters)
{
    char budget[32];
    char peak[32];

    human_bytes(counters->budget_bytes, budget);
    human_bytes(counters->live_peak_bytes, peak);
    if (counters->budget_bytes > counters->live_peak_bytes) {
        printf("  budget %s, more than the %s that a run without a limit needs\n", budget, peak);
    } else {
        printf("  budget %s, %.0f %% of the %s that a run without a limit needs\n", budget,
               100.0 * part(counters->budget_bytes, counters->live_peak_bytes), peak);
    }
}

/* What the smallest budget consists of. Reports of earlier versions do not say. */
static void print_floor_parts(const struct reported *counters)
{
    char operands[32];
    char edges[32];
    char slabs[32];
    char page[32];

    printf("    operands %s, edge pages %s, slabs %s; in pages of %s\n",
           human_bytes(counters->floor_operands_bytes, operands),
           human_bytes(counters->floor_edges_bytes, edges),
           human_bytes(counters->floor_slabs_bytes, slabs),
           human_bytes(counters->floor_page_bytes, page));
}

static void print_memory(const struct account *account)
{
    const struct reported *counters = &account->counters;
    const char *floor_op = account_text(account, "floor_op");
    char first[32];
    char second[32];
    char third[32];
    char name[PRINTABLE_BYTES];

    printf("\nmemory\n");
    print_budget_share(counters);
    if (counters->unplaced != 0) {
        printf("  the plan has no places for tensors: memory was mapped %" PRIu64
               " times and unmapped %" PRIu64 " times\n",
               counters->map_count, counters->unmap_count);
    }
    printf("  copied out %s, back %s; discarded without a copy %s\n",
           human_bytes(counters->evicted_bytes, first),
           human_bytes(counters->prefetched_bytes, second),
           human_bytes(counters->dropped_bytes, third));
    printf("  smallest possible budget %s", human_bytes(counters->floor_bytes, first));
    if (floor_op[0] != '\0') {
        printf(", set by %s; without that op %s", printable(floor_op, name),
               human_bytes(counters->next_floor_bytes, second));
    }
    printf("\n");
    if (counters->page_bytes > 0) {
        print_floor_parts(counters);
    }
}

/* What an op waited for. */
static const char *wait_reason(const struct wait *wait)
{
    return wait->replay[0] != '\0' ? wait->replay : wait->name != NULL ? wait->name : "free memory";
}

static void print_waits(const struct account *account)
{
    char time[32];
    char size[32];
    char op[PRINTABLE_BYTES];
    char reason[PRINTABLE_BYTES];

    if (account->wait_count == 0) {
        return;
    }
    printf("\nops that waited longest (%zu waited)\n"
           "  %-28s %6s %14s %14s  %s\n",
           account->wait_count, "op", "number", "waited", "copied back", "for");
    for (size_t i = 0; i < account->wait_count && i < LISTED; i++) {
        const struct wait *wait = &account->waits[i];

        printf("  %s %6" PRIu64 " %14s %14s  %s%s", printable_column(wait->op, 28, op),
               wait->access, human_ns(wait->ns, time), human_bytes(wait->bytes, size),
               wait->replay[0] != '\0' ? "a replay of " : "", printable(wait_reason(wait), reason));
        if (wait->count > 1) {
            printf(" and %zu more", wait->count - 1);
        }
        printf(wait->ahead > 0 ? ", requested in advance\n" : "\n");
    }
}

static void print_movers(const struct account *account)
{
    char size[32];
    char out[32];
    char in[32];
    char time[32];
    char name[PRINTABLE_BYTES];

    if (account->mover_count == 0) {
        return;
    }
    printf("\ntensors moved most (%zu were evicted)\n  %-28s %14s %14s %14s %14s\n",
           account->mover_count, "tensor", "size", "out", "back", "waited for");
    for (size_t i = 0; i < account->mover_count && i < LISTED; i++) {
        const struct mover *mover = &account->movers[i];

        printf("  %s %14s %14s %14s %14s%s\n", printable_column(mover->name, 28, name),
               human_bytes(mover->bytes, size), human_bytes(mover->out_bytes, out),
               human_bytes(mover->in_bytes, in),
               account->counters.is_timed ? human_ns(mover->ns, time) : "not timed",
               mover->recomputed > 0 ? "  recomputed" : "");
    }
}

/* The predicted time of an iteration within a budget; UINT64_MAX: no plan was found. */
static uint64_t predict_ns(const struct subject *subject, uint64_t budget_bytes,
                           enum planner_effort effort)
{
    uint64_t ns;

    return predict_iteration(&planners[0], &subject->trace_index, &subject->machine, budget_bytes,
                             effort, &ns, NULL) == CAPU_OK
               ? ns
               : UINT64_MAX;
}

/* One line of the list of budgets. There are many, and whether another budget helps shows with
   little effort, too. */
static void print_budget(const struct subject *subject, unsigned percent, uint64_t used_bytes)
{
    uint64_t budget = (uint64_t)((double)subject->trace_index.peak_bytes * percent / 100.0);
    uint64_t next = (uint64_t)((double)subject->trace_index.peak_bytes * (percent + 10) / 100.0);
    uint64_t ns = predict_ns(subject, budget, EFFORT_QUICK);
    char buffer[32];

    printf("  %14s ", human_bytes(budget, buffer));
    if (ns == UINT64_MAX) {
        printf("%14s\n", "no plan");
        return;
    }
    printf("%14s %8.1f %%%s\n", human_ns(ns, buffer), predict_overhead(&subject->trace_index, ns),
           budget <= used_bytes && used_bytes < next ? "  <- this budget" : "");
}

/* Whether another effort than that of the run would pay. `quick_ns`: what quick effort achieves;
   UINT64_MAX: no plan. */
static void print_effort(const struct subject *subject, const struct reported *counters,
                         uint64_t quick_ns)
{
    uint64_t budget = counters->budget_bytes;
    uint64_t worth_ns = subject->trace_index.trace->total_ns / 100;
    uint64_t usual_ns = predict_ns(subject, budget, EFFORT_DEFAULT);
    uint64_t bound_ns;
    char first[32];
    char second[32];

    if (usual_ns == UINT64_MAX || counters->effort == 0) {
        return;
    }
    if (counters->effort == CAPU_EFFORT_QUICK && quick_ns - worth_ns > usual_ns) {
        printf("\neffort: the default (CAPUCHIN_EFFORT=default) finds a plan of %s instead of %s\n",
               human_ns(usual_ns, first),
               quick_ns == UINT64_MAX ? "none" : human_ns(quick_ns, second));
    } else if (counters->effort != CAPU_EFFORT_QUICK && counters->plan_stage == 0 &&
               counters->planning_ns > 0 && quick_ns <= usual_ns + worth_ns) {
        printf("\neffort: the iteration had no plan while planning had taken %.2f s; quick effort "
               "(CAPUCHIN_EFFORT=quick)\n  finds a plan that is as good\n",
               (double)counters->planning_ns / 1e9);
    } else if (counters->effort == CAPU_EFFORT_DEFAULT) {
        bound_ns = bound_iteration(&subject->trace_index, &subject->machine, budget);
        if (usual_ns > bound_ns + worth_ns) {
            printf("\neffort: CAPUCHIN_EFFORT=best searches longer, for a gain of at most %s, the "
                   "distance to the lower bound\n",
                   human_ns(usual_ns - bound_ns, first));
        }
    }
}

/* The change to the program that saves most, if one does. */
static void print_change(const char *trace, const struct advice_list *list, uint64_t budget)
{
    char buffer[32];

    for (size_t i = 0; i < list->count; i++) {
        const struct advice *advice = &list->items[i];

        if (advice->is_program && advice->gain_ns > 0 && list->ideal_ns > 0) {
            printf("\nthe best change to the program: %s\n  saves %s, %.1f %% of the ideal; "
                   "'capuchin advise %s --budget %" PRIu64 "' lists others\n",
                   advice->text.data, human_ns((uint64_t)advice->gain_ns, buffer),
                   100.0 * (double)advice->gain_ns / (double)list->ideal_ns, trace, budget);
            break;
        }
    }
}

/* What else would help at this budget: another effort, a change to the program. */
static void print_help(const char *trace, const struct subject *subject,
                       const struct reported *counters)
{
    uint64_t budget = counters->budget_bytes;
    struct error_text error = {""};
    struct advice_list list;

    if (advice_find(&list, subject, budget, EFFORT_QUICK, &error) != CAPU_OK) {
        print_effort(subject, counters, UINT64_MAX);
        return;
    }
    print_effort(subject, counters, list.iteration_ns);
    print_change(trace, &list, budget);
    advice_finish(&list);
}

static double seconds_of_copies(uint64_t bytes, uint64_t bytes_per_s)
{
    return bytes_per_s > 0 ? (double)bytes / (double)bytes_per_s : 0.0;
}

/* How busy the link was, and what iterations would take at other budgets, by plans for the trace.
 */
static void print_budgets(const struct settings *settings, const struct account *account,
                          const struct subject *subject)
{
    const struct reported *counters = &account->counters;

    printf("\nthe link was busy for %.3f ms with copies out and %.3f ms with copies back\n",
           1e3 * seconds_of_copies(counters->evicted_bytes, subject->machine.d2h_bytes_per_s),
           1e3 * seconds_of_copies(counters->prefetched_bytes, subject->machine.h2d_bytes_per_s));
    printf("\nother budgets, predicted for %s with quick effort\n  %14s %14s %10s\n",
           settings->arguments.trace, "budget", "iteration", "overhead");
    for (unsigned percent = 30; percent <= 100; percent += 10) {
        print_budget(subject, percent, counters->budget_bytes);
    }
    print_help(settings->arguments.trace, subject, counters);
}

/* Adds to the page what other budgets would cost, and what the plan of the run promised. False: an
   error has been printed, or it was stopped. */
static bool add_trace(const struct settings *settings, struct page *page, struct curves *curves,
                      struct view *planned)
{
    static const struct curves_range range = {.from = 20, .to = 100, .step = 10};

    curves->items[0].planner = settings->arguments.planner;
    curves->item_count = 1;
    page->curves = curves;
    if (curves_measure(curves, page->subject, &range, EFFORT_QUICK)) {
        say("stopped: there is no page");
        return false;
    }
    if (settings->arguments.plan != NULL) {
        page->planned = planned;
        return page_load_plan(planned, page->subject, settings->arguments.plan);
    }
    return true;
}

/* Writes the page. A trace and a timeline add to it. */
static bool write_page(const struct settings *settings, const struct report_file *file,
                       const struct account *account, const struct subject *subject)
{
    static struct curves curves;
    struct view planned = {0};
    struct view measured = {0};
    struct page page = {.command = "explain",
                        .source = settings->report,
                        .report = file,
                        .account = account,
                        .trace = settings->arguments.trace,
                        .subject = subject};
    bool is_fine = subject == NULL || add_trace(settings, &page, &curves, &planned);

    if (is_fine && report_file_has_view(&account->counters)) {
        page.measured = &measured;
        is_fine = report_file_view(file, &account->counters, &measured);
    }
    is_fine = is_fine && page_write(settings->arguments.html, &page);
    view_finish(&planned);
    view_finish(&measured);
    return is_fine;
}

static bool check_files(const struct settings *settings)
{
    const struct output_file files[] = {
        {"REPORT", settings->report, false},
        {"--trace", settings->arguments.trace, false},
        {"--plan", settings->arguments.plan, false},
        {"--machine", subject_machine_file(settings->arguments.machine), false},
        {"--html", settings->arguments.html, true},
    };

    return output_check(files, sizeof(files) / sizeof(files[0]));
}

/* Explains an iteration with all that is given. False: an error has been printed. */
static bool explain(const struct settings *settings, const struct report_file *file,
                    const struct account *account, const struct subject *subject)
{
    print_kinds(file);
    print_where(account);
    print_memory(account);
    print_waits(account);
    print_movers(account);
    printf("\nwhat to do\n");
    remedies_print(stdout, account, file, settings->arguments.trace);
    if (subject != NULL) {
        print_budgets(settings, account, subject);
    }
    return settings->arguments.html == NULL || write_page(settings, file, account, subject);
}

int explain_main(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"iteration", KEY_ITERATION, "N", 0,
         "Iteration to explain (default: the slowest one whose ops were timed, apart from the "
         "first and "
         "from those that had no plan yet; with several reports: all, apart from the first of each "
         "label)",
         0},
        {"trace", KEY_TRACE, "FILE", 0, "Trace of the program; adds predictions for other budgets",
         0},
        {"machine", KEY_MACHINE, "NAME|FILE", 0,
         "With --trace: use this machine instead of the one in the trace", 0},
        {"plan", KEY_PLAN, "FILE", 0,
         "With --trace and --html: the plan that the run followed, to compare with", 0},
        {"html", KEY_HTML, "FILE", 0, "Also write a page with pictures to FILE", 0},
        {0}};
    static const struct argp argp = {
        options,
        parse_option,
        "REPORT...",
        "Explains why an iteration was slow, from a report file that CAPUCHIN_REPORT=REPORT wrote. "
        "With the reports of several ranks (CAPUCHIN_REPORT=r.%r, then r.*), explains which rank "
        "is "
        "the slowest, and why.",
        NULL,
        NULL,
        NULL};
    struct settings settings = {.arguments = ARGUMENTS_INIT};
    const struct reported *iteration;
    struct report_file file;
    struct account account;
    struct subject subject = {0};
    const char *trace;
    bool is_fine;

    arguments_read(&argp, argc, argv, &settings);
    if (settings.report_count > 1) {
        is_fine = explain_ranks(settings.reports, settings.report_count, settings.iteration);
        return is_fine && fflush(stdout) == 0 ? EXIT_FINE : EXIT_USAGE;
    }
    trace = settings.arguments.trace;
    if (!check_files(&settings) || !report_file_read(&file, settings.report)) {
        return EXIT_USAGE;
    }
    iteration = choose(&file, settings.iteration);
    if (iteration == NULL || !account_init(&account, &file, iteration)) {
        report_file_finish(&file);
        return EXIT_USAGE;
    }
    is_fine = (trace == NULL || subject_load(&subject, trace, settings.arguments.machine, 1)) &&
              explain(&settings, &file, &account, trace != NULL ? &subject : NULL);
    subject_finish(&subject);
    account_finish(&account);
    report_file_finish(&file);
    return is_fine && fflush(stdout) == 0 ? EXIT_FINE : EXIT_USAGE;
}

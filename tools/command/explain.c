/*
 * capuchin explain: from a report file, why an iteration was slow and what to do about it.
 *
 * The time of an iteration is the sum of five things, each of which has a different remedy: ops,
 * waits for tensors, waits for memory, replays, and idling of the device. account.c attributes and
 * prints it, remedies.c derives advice from it. This file has the options, chooses the iteration
 * and writes the page. The choice matters, because remedies compare the iteration with others:
 * untimed iterations say little, and the first one, and those that still waited for a plan, are
 * slow for reasons that pass by themselves. The reports of several ranks are explained together in
 * explain_ranks.c.
 */
#include "tools/command/commands.h"

#include "policy/bound/bound_iteration.h"
#include "tools/command/arguments.h"
#include "tools/output/output.h"
#include "tools/page/page.h"
#include "tools/predict/advice.h"
#include "tools/predict/predict.h"
#include "tools/report/account.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What a trace adds to the explanation of an iteration: predictions for other budgets. */

/* The predicted time of an iteration within a budget; UINT64_MAX: no plan was found. */
static uint64_t predict_ns(const struct subject *subject, uint64_t budget_bytes,
                           enum plan_effort effort)
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
    if (counters->effort == EFFORT_QUICK && quick_ns - worth_ns > usual_ns) {
        printf("\neffort: the default (CAPUCHIN_EFFORT=default) finds a plan of %s instead of %s\n",
               human_ns(usual_ns, first),
               quick_ns == UINT64_MAX ? "none" : human_ns(quick_ns, second));
    } else if (counters->effort != EFFORT_QUICK && counters->plan_stage == 0 &&
               counters->planning_ns > 0 && quick_ns <= usual_ns + worth_ns) {
        printf("\neffort: the iteration had no plan while planning had taken %.2f s; quick effort "
               "(CAPUCHIN_EFFORT=quick)\n  finds a plan that is as good\n",
               (double)counters->planning_ns / 1e9);
    } else if (counters->effort == EFFORT_DEFAULT) {
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

/*
 * Prints to stdout how busy the link was, what iterations would take at other budgets, by plans for
 * the trace, and whether another effort or a change to the program would help at this one. `trace`:
 * the name of the trace's file. `subject` was made of it.
 */
static void explain_budgets(const char *trace, const struct account *account,
                            const struct subject *subject)
{
    const struct reported *counters = &account->counters;

    printf("\nthe link was busy for %.3f ms with copies out and %.3f ms with copies back\n",
           1e3 * seconds_of_copies(counters->evicted_bytes, subject->machine.d2h_bytes_per_s),
           1e3 * seconds_of_copies(counters->prefetched_bytes, subject->machine.h2d_bytes_per_s));
    printf("\nother budgets, predicted for %s with quick effort\n  %14s %14s %10s\n", trace,
           "budget", "iteration", "overhead");
    for (unsigned percent = 30; percent <= 100; percent += 10) {
        print_budget(subject, percent, counters->budget_bytes);
    }
    print_help(trace, subject, counters);
}

struct settings {
    struct arguments arguments; /* `trace` is an option here */
    const char *report;         /* the first of: */
    char **reports;
    size_t report_count;
    uint64_t iteration; /* 0: the slowest */
};

enum option_key { KEY_ITERATION = 'i', KEY_TRACE = KEY_OWN, KEY_PLAN };

static error_t parse_explain_option(int key, char *argument, struct argp_state *state)
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
static const struct reported *choose_iteration(const struct report_file *file, uint64_t number)
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
static bool write_explain_page(const struct settings *settings, const struct report_file *file,
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

static bool check_explain_files(const struct settings *settings)
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
static bool explain_iteration(const struct settings *settings, const struct report_file *file,
                              const struct account *account, const struct subject *subject)
{
    account_print_kinds(file);
    account_print_plans(file);
    account_print(account);
    printf("\nwhat to do\n");
    remedies_print(stdout, account, file, settings->arguments.trace);
    if (subject != NULL) {
        explain_budgets(settings->arguments.trace, account, subject);
    }
    return settings->arguments.html == NULL || write_explain_page(settings, file, account, subject);
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
        parse_explain_option,
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
    if (!check_explain_files(&settings) || !report_file_read(&file, settings.report)) {
        return EXIT_USAGE;
    }
    iteration = choose_iteration(&file, settings.iteration);
    if (iteration == NULL || !account_init(&account, &file, iteration)) {
        report_file_finish(&file);
        return EXIT_USAGE;
    }
    is_fine = (trace == NULL || subject_load(&subject, trace, settings.arguments.machine, 1)) &&
              explain_iteration(&settings, &file, &account, trace != NULL ? &subject : NULL);
    subject_finish(&subject);
    account_finish(&account);
    report_file_finish(&file);
    return is_fine && fflush(stdout) == 0 ? EXIT_FINE : EXIT_USAGE;
}

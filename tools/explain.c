/* capuchin explain: from a report file, why an iteration was slow and what to do about it. */
#include "tools/commands.h"

#include "tools/account.h"
#include "tools/arguments.h"
#include "tools/exit_code.h"
#include "tools/human.h"
#include "tools/say.h"
#include "tools/subject.h"

#include "policy/plan.h"
#include "policy/timeline.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Lines of a list at the most, and parts of the time that are worth a word. */
enum { LISTED = 8 };
#define WORTH_TELLING 0.02

struct settings {
    struct arguments arguments; /* `trace` is an option here */
    const char *report;
    uint64_t iteration; /* 0: the slowest */
};

enum option_key { KEY_ITERATION = 'i', KEY_TRACE = KEY_OWN };

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
    case ARGP_KEY_ARG:
        if (settings->report != NULL) {
            argp_error(state, "%s: one argument too many", argument);
        }
        settings->report = argument;
        return 0;
    case ARGP_KEY_END:
        if (settings->report == NULL) {
            argp_error(state, "no REPORT is given");
        } else if (settings->arguments.machine != NULL && settings->arguments.trace == NULL) {
            argp_error(state, "--machine %s: runs a trace, and no --trace is given",
                       settings->arguments.machine);
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

/* Whether most iterations of its label are guided and this one is not: it had no plan yet. */
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

/* The iteration asked for, or the slowest: one whose ops were timed, if there is any, since others
   tell less, and of these neither the first nor one that had no plan yet, if there are others,
   since they are slow for reasons of their own. */
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
        say("%s: no iteration %" PRIu64, file->path, number);
    }
    return settled != NULL ? settled : timed != NULL ? timed : any;
}

static void print_kinds(const struct report_file *file)
{
    char median[32];
    char slowest[32];

    printf("%zu iterations\n  %-20s %-8s %6s %14s %14s  %s\n", file->count, "label", "mode",
           "count", "median", "slowest", "which is");
    for (size_t i = 0; i < file->kind_count; i++) {
        const struct report_kind *kind = &file->kinds[i];
        const struct reported *worst = &file->iterations[kind->slowest];

        printf("  %-20.20s %-8s %6zu %14s %14s  iteration %" PRIu64 "\n",
               kind->label[0] != '\0' ? kind->label : "(none)", kind->mode, kind->count,
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

static void print_where(const struct account *account)
{
    const struct reported *counters = &account->counters;
    char buffer[32];

    printf("\niteration %" PRIu64 "%s%s, mode %s: %s", counters->iteration,
           account->kind->label[0] != '\0' ? " " : "", account->kind->label, account->kind->mode,
           human_ns(counters->time_ns, buffer));
    if (counters->predicted_ns > 0) {
        printf(", its plan says %s", human_ns(counters->predicted_ns, buffer));
    }
    printf("\n");
    if (account->kind->count > 1) {
        printf("the median of its kind is %s\n", human_ns(account->kind->median_ns, buffer));
    }
    printf("\nwhere the time went\n");
    if (!counters->is_timed) {
        printf("  not known: its ops were not timed, as most under a steady plan "
               "(CAPUCHIN_SAMPLE_EVERY=1 times all)\n");
        return;
    }
    print_time("ops", counters->compute_ns, counters->time_ns);
    print_time("waiting for tensors to come back", account->back_ns, counters->time_ns);
    print_time("waiting for room", less(counters->stall_ns, account->back_ns + account->replay_ns),
               counters->time_ns);
    print_time("waiting before recomputing", account->replay_ns, counters->time_ns);
    print_time("recomputing", counters->recompute_ns, counters->time_ns);
    print_time("idle: ops were not issued in time", account_idle_ns(account), counters->time_ns);
}

static void print_memory(const struct account *account)
{
    const struct reported *counters = &account->counters;
    char first[32];
    char second[32];
    char third[32];

    printf("\nmemory\n  budget %s, %.0f %% of the %s an unlimited run needs\n",
           human_bytes(counters->budget_bytes, first),
           100.0 * part(counters->budget_bytes, counters->live_peak_bytes),
           human_bytes(counters->live_peak_bytes, second));
    printf("  copied out %s, back %s; given up without a copy %s\n",
           human_bytes(counters->evicted_bytes, first),
           human_bytes(counters->prefetched_bytes, second),
           human_bytes(counters->dropped_bytes, third));
    printf("  smallest budget %s, set by %s; without that op %s\n",
           human_bytes(counters->floor_bytes, first), account_text(account, "floor_op"),
           human_bytes(counters->next_floor_bytes, second));
}

static void print_waits(const struct account *account)
{
    char time[32];
    char size[32];

    if (account->wait_count == 0) {
        return;
    }
    printf("\nops that waited longest (%zu in all)\n"
           "  %-28s %6s %14s %14s  %s\n",
           account->wait_count, "op", "number", "waited", "brought back", "for");
    for (size_t i = 0; i < account->wait_count && i < LISTED; i++) {
        const struct wait *wait = &account->waits[i];

        printf("  %-28.28s %6" PRIu64 " %14s %14s  %s%s", wait->op, wait->access,
               human_ns(wait->ns, time), human_bytes(wait->bytes, size),
               wait->replay[0] != '\0' ? "a replay of " : "",
               wait->replay[0] != '\0' ? wait->replay
               : wait->name != NULL    ? wait->name
                                       : "room");
        if (wait->count > 1) {
            printf(" and %zu more", wait->count - 1);
        }
        printf(wait->ahead > 0 ? ", asked for ahead\n" : "\n");
    }
}

static void print_movers(const struct account *account)
{
    char size[32];
    char out[32];
    char in[32];
    char time[32];

    if (account->mover_count == 0) {
        return;
    }
    printf("\ntensors moved most (%zu left the device)\n  %-28s %14s %14s %14s %14s\n",
           account->mover_count, "tensor", "size", "out", "back", "waited for");
    for (size_t i = 0; i < account->mover_count && i < LISTED; i++) {
        const struct mover *mover = &account->movers[i];

        printf("  %-28.28s %14s %14s %14s %14s%s\n", mover->name, human_bytes(mover->bytes, size),
               human_bytes(mover->out_bytes, out), human_bytes(mover->in_bytes, in),
               account->counters.is_timed ? human_ns(mover->ns, time) : "not timed",
               mover->recomputed > 0 ? "  recomputed" : "");
    }
}

/* How much longer the ops themselves took than they do in the median iteration like it. */
static uint64_t slower_ns(const struct account *account)
{
    return less(account->counters.compute_ns, account->kind->median_compute_ns);
}

/* Waits of a guided iteration: those its plan knows of, or others. Ops that took longer are told
   elsewhere. */
static unsigned advise_on_waits(const struct account *account)
{
    const struct reported *counters = &account->counters;
    uint64_t over_ns = less(counters->time_ns, counters->predicted_ns + slower_ns(account));
    char buffer[32];

    if (part(counters->stall_ns, counters->time_ns) < WORTH_TELLING) {
        return 0;
    }
    if (over_ns < counters->predicted_ns / 20) {
        printf("  - It took no longer than its plan says, which knows of these waits or expects "
               "slower ops. Where it\n    knows of them, the link cannot bring more in time within "
               "this budget: --trace FILE tells.\n");
        return 1;
    }
    over_ns = over_ns < counters->stall_ns ? over_ns : counters->stall_ns;
    printf("  - Waits are up to %s longer than planned: of what was asked for ahead, %zu came "
           "late. The link\n    was slower than planned for, or ops faster. Plans are remade where "
           "that lasts; if it does not\n    pass, set d2h_bytes_per_s and h2d_bytes_per_s to what "
           "the link gives.\n",
           human_ns(over_ns, buffer), account->ahead);
    return 1;
}

/* Whether any iteration of the file was guided. */
static bool has_guided(const struct report_file *file)
{
    for (size_t i = 0; i < file->kind_count; i++) {
        if (strcmp(file->kinds[i].mode, "guided") == 0) {
            return true;
        }
    }
    return false;
}

/* A new plan costs that once; only plans that keep changing are a reason to do something. */
static void advise_on_installing(const struct account *account, const struct report_file *file)
{
    size_t count = 0;
    char buffer[32];

    for (size_t i = 0; i < file->count; i++) {
        count += file->iterations[i].kind == account->counters.kind &&
                 file->iterations[i].install_ns > 0;
    }
    printf("  - Putting a plan in force took %s before it; %zu of the %zu iterations like it began "
           "so.\n",
           human_ns(account->counters.install_ns, buffer), count, account->kind->count);
    if (count > 1 && count * 4 > account->kind->count) {
        printf("    Plans change too often: a label a shape, iterations of one label behind each "
               "other, and the\n    same addresses in each keep them.\n");
    }
}

/* Advice on plans: left, not found, changed, late. */
static unsigned advise_on_plan(const struct account *account, const struct report_file *file)
{
    const struct reported *counters = &account->counters;
    const char *plan_error = account_text(account, "plan_error");
    bool is_guided = strcmp(account->kind->mode, "guided") == 0;
    unsigned said = 0;

    if (counters->diverged != 0) {
        said++;
        printf("  - Op %" PRIu64 " was not the planned one, and from there on nothing was planned. "
               "Give iterations\n    of another shape a label of their own "
               "(capu_iteration_begin).\n",
               counters->diverged_at);
    }
    if (plan_error[0] != '\0') {
        said++;
        printf("  - No plan was found: %s.\n", plan_error);
    }
    if (part(counters->install_ns, counters->time_ns) >= WORTH_TELLING) {
        said++;
        advise_on_installing(account, file);
    }
    if (is_guided && account->ahead > 0 && counters->diverged == 0) {
        said += advise_on_waits(account);
    }
    if (!is_guided && plan_error[0] == '\0' && counters->diverged == 0 &&
        part(counters->stall_ns, counters->time_ns) >= WORTH_TELLING) {
        said++;
        printf(has_guided(file)
                   ? "  - There was no plan for it yet. wait_for_plan makes the second "
                     "iteration a guided one.\n"
                   : "  - Passive mode brings tensors back when they are touched. Mode guided "
                     "does it ahead:\n    CAPUCHIN_MODE=guided.\n");
    }
    return said;
}

static unsigned advise_on_budget(const struct account *account, const char *trace)
{
    const struct reported *counters = &account->counters;
    uint64_t lost_ns = counters->stall_ns + counters->recompute_ns;
    unsigned said = 0;
    char first[32];
    char second[32];

    if (part(lost_ns, counters->time_ns) < WORTH_TELLING) {
        return 0;
    }
    if (counters->budget_bytes < counters->live_peak_bytes) {
        said++;
        printf("  - The budget costs up to %s, %.1f %% of this iteration. With %s nothing need "
               "leave.\n",
               human_ns(lost_ns, first), 100.0 * part(lost_ns, counters->time_ns),
               human_bytes(counters->live_peak_bytes, second));
        if (trace == NULL) {
            printf("    What lies between: record a trace in mode guided (CAPUCHIN_TRACE=FILE) and "
                   "add --trace FILE.\n");
        }
    } else {
        said++;
        printf("  - The budget holds all that is live at once, and yet tensors left: passive mode "
               "drops what is\n    dead only at the iteration's end. A guided plan, or capu_free "
               "behind the last use, avoids it.\n");
    }
    if (counters->budget_bytes < counters->floor_bytes / 10 * 11 &&
        counters->next_floor_bytes < counters->floor_bytes / 10 * 9) {
        said++;
        printf("  - %s alone needs %s of the budget. Split it.\n",
               account_text(account, "floor_op"), human_bytes(counters->floor_bytes, first));
    }
    return said;
}

static void advise_on_idling(const struct reported *counters)
{
    char buffer[32];

    printf("  - The device had nothing to do: the calling thread was late. ");
    if (counters->host_wait_ns > 0) {
        printf("It waited %s for evictions\n    to finish, beside what the device did; the rest it "
               "spent between ops.\n",
               human_ns(counters->host_wait_ns, buffer));
    } else {
        printf("It waited for no eviction:\n    look at what it does between ops.\n");
    }
}

static void print_advice(const struct account *account, const struct report_file *file,
                         const char *trace)
{
    const struct reported *counters = &account->counters;
    uint64_t usual_ns = account->kind->median_compute_ns;
    unsigned said = 0;

    printf("\nwhat to do\n");
    if (part(slower_ns(account), counters->time_ns) >= 0.05) {
        said++;
        printf("  - The ops themselves took %.0f %% longer than in the median iteration like it: "
               "not memory, but\n    the machine (clocks, other work) or the program.\n",
               100.0 * part(slower_ns(account), usual_ns));
    }
    said += advise_on_plan(account, file);
    said += advise_on_budget(account, trace);
    if (counters->is_timed && part(account_idle_ns(account), counters->time_ns) >= 0.05) {
        said++;
        advise_on_idling(counters);
    }
    if (!counters->is_timed) {
        printf("  - Look at an iteration whose ops were timed: without -i, the slowest of them is "
               "shown.\n");
    } else if (said == 0) {
        printf("  Nothing: memory cost less than %.0f %% of it.\n", 100.0 * WORTH_TELLING);
    }
}

/* One line of the list below. */
static void print_budget(const struct subject *subject, unsigned percent, uint64_t used_bytes)
{
    uint64_t next = (uint64_t)((double)subject->trace_index.peak_bytes * (percent + 10) / 100.0);
    struct planner_request request = {
        .trace_index = &subject->trace_index,
        .machine = &subject->machine,
        .budget_bytes = (uint64_t)((double)subject->trace_index.peak_bytes * percent / 100.0),
        .host_bytes = UINT64_MAX,
        .effort = EFFORT_DEFAULT};
    struct timeline timeline = {0};
    struct plan plan;
    char buffer[32];

    printf("  %14s ", human_bytes(request.budget_bytes, buffer));
    if (planner_run(&planners[0], &request, &plan, NULL) != CAPU_OK) {
        printf("%14s\n", "no plan");
        return;
    }
    if (timeline_init(&timeline, &subject->trace_index, &plan, &subject->machine, false, NULL) ==
        CAPU_OK) {
        printf("%14s %8.1f %%%s", human_ns(timeline.iteration_ns, buffer),
               100.0 * timeline_overhead(&timeline),
               request.budget_bytes <= used_bytes && used_bytes < next ? "  <- the budget is here"
                                                                       : "");
    }
    printf("\n");
    timeline_finish(&timeline);
    plan_finish(&plan);
}

static double seconds_of_copies(uint64_t bytes, uint64_t bytes_per_s)
{
    return bytes_per_s > 0 ? (double)bytes / (double)bytes_per_s : 0.0;
}

/* What the link had to do, and what plans for a trace of the program promise at other budgets. */
static bool print_budgets(const struct settings *settings, const struct account *account)
{
    const struct reported *counters = &account->counters;
    struct subject subject;

    if (!subject_load(&subject, settings->arguments.trace, settings->arguments.machine, 1)) {
        return false;
    }
    printf("\nthe link needs %.3f ms for what was copied out, %.3f ms for what was copied back\n",
           1e3 * seconds_of_copies(counters->evicted_bytes, subject.machine.d2h_bytes_per_s),
           1e3 * seconds_of_copies(counters->prefetched_bytes, subject.machine.h2d_bytes_per_s));
    printf("\nby plans for %s\n  %14s %14s %10s\n", settings->arguments.trace, "budget",
           "iteration", "overhead");
    for (unsigned percent = 30; percent <= 100; percent += 10) {
        print_budget(&subject, percent, counters->budget_bytes);
    }
    subject_finish(&subject);
    return true;
}

int explain_main(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"iteration", KEY_ITERATION, "N", 0,
         "This one (default: the slowest of those whose ops were timed, but for the first, and for "
         "those of mode guided that had no plan yet)",
         0},
        {"trace", KEY_TRACE, "FILE", 0, "A trace of the program: what other budgets would give", 0},
        {"machine", KEY_MACHINE, "NAME|FILE", 0, "On this machine, not the trace's", 0},
        {0}};
    static const struct argp argp = {
        options,  parse_option,
        "REPORT", "Why an iteration was slow, from what CAPUCHIN_REPORT=REPORT wrote.",
        NULL,     NULL,
        NULL};
    struct settings settings = {.arguments = ARGUMENTS_INIT};
    const struct reported *iteration;
    struct report_file file;
    struct account account;
    bool is_fine = true;

    argp_parse(&argp, argc, argv, 0, NULL, &settings);
    if (!report_file_read(&file, settings.report)) {
        return EXIT_USAGE;
    }
    iteration = choose(&file, settings.iteration);
    if (iteration == NULL || !account_init(&account, &file, iteration)) {
        report_file_finish(&file);
        return EXIT_USAGE;
    }
    print_kinds(&file);
    print_where(&account);
    print_memory(&account);
    print_waits(&account);
    print_movers(&account);
    print_advice(&account, &file, settings.arguments.trace);
    if (settings.arguments.trace != NULL) {
        is_fine = print_budgets(&settings, &account);
    }
    account_finish(&account);
    report_file_finish(&file);
    return is_fine && fflush(stdout) == 0 ? EXIT_FINE : EXIT_USAGE;
}

/* capuchin plan: makes a plan for a trace within a budget, and says what it costs. */
#include "tools/command/commands.h"

#include "tools/command/arguments.h"
#include "tools/output/output.h"
#include "tools/output/progress.h"
#include "tools/page/page.h"
#include "tools/predict/predict.h"

#include "base/printable.h"
#include "base/size_text.h"
#include "policy/baselines/baselines.h"
#include "policy/bound/bound_iteration.h"
#include "policy/format/plan.h"
#include "policy/model/hints.h"
#include "policy/model/timeline.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct settings {
    struct arguments arguments;
    double seconds;
    uint64_t fixed_bytes;
    bool place;
    bool with_progress;
    bool writes_plan;
};

#define PLACE_PAGE_BYTES ((uint64_t)2 << 20) /* CUDA's; for --place without --page */

enum option_key { KEY_SECONDS = KEY_OWN, KEY_FIXED, KEY_PLACE, KEY_PROGRESS };

static const struct argp_option options[] = {
    {"budget", KEY_BUDGET, "SIZE|N%|min", 0,
     "Device memory that the plan may use, as a size or as a percentage of the peak without a "
     "plan; "
     "min: the smallest budget for which there is a plan, which is printed first",
     0},
    {"planner", KEY_PLANNER, "NAME", 0, "Planner (default: hybrid); listed below", 0},
    {"effort", KEY_EFFORT, "LEVEL", 0, "How hard to search: quick, default or best", 0},
    {"seconds", KEY_SECONDS, "N", 0, "Stop searching after N seconds and use the best plan so far",
     0},
    {"machine", KEY_MACHINE, "NAME|FILE", 0,
     "Plan for this machine instead of the one in the trace", 0},
    {"page", KEY_PAGE, "BYTES", 0, "Page size: every tensor takes whole pages (default: 1 byte)",
     0},
    {"place", KEY_PLACE, NULL, 0,
     "Also assign pages to every tensor (--page defaults to 2 MiB then)", 0},
    {"host", KEY_HOST, "SIZE", 0, "Host memory that evicted tensors may use (default: unlimited)",
     0},
    {"fixed", KEY_FIXED, "SIZE", 0, "Part of the budget that the plan must leave free", 0},
    {"output", KEY_OUTPUT, "FILE", 0, "Write the plan to FILE, or to standard output if FILE is -",
     0},
    {"html", KEY_HTML, "FILE", 0, "Also write a page with pictures of the plan to FILE", 0},
    {"json", KEY_JSON, NULL, 0, "Print the cost of the plan as JSON", 0},
    {"progress", KEY_PROGRESS, NULL, 0,
     "Print a line to standard error for each better plan, as soon as it is found", 0},
    {0},
};

static error_t parse_plan_option(int key, char *argument, struct argp_state *state)
{
    struct settings *settings = state->input;

    switch (key) {
    case KEY_SECONDS:
        settings->seconds = arguments_seconds("seconds", argument, state);
        return 0;
    case KEY_PLACE:
        settings->place = true;
        return 0;
    case KEY_PROGRESS:
        settings->with_progress = true;
        return 0;
    case KEY_OUTPUT:
        settings->writes_plan = true;
        return arguments_parse(key, argument, &settings->arguments, state);
    case KEY_FIXED:
        settings->fixed_bytes = arguments_bytes("fixed", argument, 0, state);
        return 0;
    default:
        return arguments_parse(key, argument, &settings->arguments, state);
    }
}

struct watch {
    double seconds; /* 0: no limit */
    bool with_lines;
    uint64_t ideal_ns;
    /* The work that was left of a phase of the search when it was first known, and last. */
    uint64_t first_left;
    uint64_t last_left;
    double first_s; /* when it was first known */
};

static bool should_stop(void *user)
{
    const struct watch *watch = user;

    return progress_should_stop(NULL) ||
           (watch->seconds > 0.0 && progress_seconds() > watch->seconds);
}

/* The time that the rest of a phase takes, from what its work took so far. More work than before is
   that of the next phase. */
static void show_work(void *user, uint64_t work_left)
{
    struct watch *watch = user;

    if (watch->first_left == 0 || work_left > watch->last_left) {
        watch->first_left = work_left;
        watch->first_s = progress_seconds();
    } else if (work_left < watch->first_left) {
        progress_set_left((progress_seconds() - watch->first_s) * (double)work_left /
                          (double)(watch->first_left - work_left));
    }
    watch->last_left = work_left;
}

/* With --progress a line per better plan, also where standard error is a pipe or a file; else the
   best one is part of the line of progress. */
static void show_improvement(void *user, const struct program *program, uint64_t predicted_ns)
{
    const struct watch *watch = user;
    double over =
        watch->ideal_ns > 0 ? 100.0 * ((double)predicted_ns / (double)watch->ideal_ns - 1.0) : 0.0;
    char text[32];

    (void)program;
    if (!watch->with_lines) {
        progress_note("best so far %.2f %% over the ideal", over);
        return;
    }
    fprintf(stderr, "after %.3f s: %s per iteration, %.2f %% over the ideal\n", progress_seconds(),
            human_ns(predicted_ns, text), over);
    (void)fflush(stderr);
}

/* What the plan would cost if no pages had been assigned. False: memory ran out. */
static bool unplaced_init(struct timeline *timeline, const struct subject *subject,
                          const struct plan *plan)
{
    struct plan unplaced = *plan;

    unplaced.place_count = 0;
    unplaced.run_count = 0;
    return timeline_init(timeline, &subject->trace_index, &unplaced, &subject->machine, false,
                         NULL) == CAPU_OK;
}

/* How many pages were assigned, and what the plan would cost without that constraint. */
static void print_places(FILE *file, const struct subject *subject, const struct plan *plan)
{
    struct timeline timeline;

    if (unplaced_init(&timeline, subject, plan)) {
        fprintf(file,
                "placed: %" PRIu32 " tensors in %" PRIu64
                " runs of pages; without placement %.2f %% over the ideal\n",
                plan->place_count, (uint64_t)plan->run_count, 100.0 * timeline_overhead(&timeline));
        timeline_finish(&timeline);
    }
}

/* The hints that the plan does not follow, and why. */
static void print_hints(FILE *file, const struct subject *subject, const struct plan *plan)
{
    const struct trace *trace = &subject->trace;
    char name[PRINTABLE_BYTES];
    char op[PRINTABLE_BYTES];
    char why[2 * PRINTABLE_BYTES];

    for (uint32_t t = 0; t < trace->tensor_count; t++) {
        capu_hint hint = (capu_hint)trace->tensors[t].hint;
        struct hint_reason reason;

        if (!hint_is_ignored(&subject->trace_index, plan, t)) {
            continue;
        }
        reason = hint_reason_of(&subject->trace_index, t);
        hint_reason_text(
            hint, reason.obstacle,
            reason.op != TRACE_INDEX_NONE ? printable(trace_op_name(trace, reason.op), op) : "",
            why, sizeof(why));
        fprintf(file, "hint not followed: %s of %s: %s\n", tensor_hint_name(hint),
                printable(trace_tensor_name(trace, t), name), why);
    }
}

static void report_json(FILE *file, const struct settings *settings, const struct subject *subject,
                        const struct plan *plan, const struct timeline *timeline, double seconds)
{
    uint64_t bound =
        bound_iteration(&subject->trace_index, &subject->machine, timeline->budget_bytes);
    double ideal = timeline->ideal_ns > 0 ? (double)timeline->ideal_ns : 1.0;
    json_t *line = json_pack(
        "{s:s,s:I,s:I,s:f,s:I,s:f,s:I,s:I,s:f}", "planner", settings->arguments.planner->name,
        "iteration_ns", (json_int_t)timeline->iteration_ns, "ideal_ns",
        (json_int_t)timeline->ideal_ns, "overhead", timeline_overhead(timeline), "bound_ns",
        (json_int_t)bound, "distance", (double)(timeline->iteration_ns - bound) / ideal,
        "peak_bytes", (json_int_t)timeline->peak_bytes, "budget_bytes",
        (json_int_t)timeline->budget_bytes, "seconds", seconds);
    struct timeline unplaced;

    if (settings->place && unplaced_init(&unplaced, subject, plan)) {
        (void)json_object_set_new(line, "unplaced_ns",
                                  json_integer((json_int_t)unplaced.iteration_ns));
        (void)json_object_set_new(line, "placed_tensors", json_integer(plan->place_count));
        (void)json_object_set_new(line, "page_runs", json_integer((json_int_t)plan->run_count));
        timeline_finish(&unplaced);
    }
    (void)output_json(file, line);
}

/* Where the summary goes: not into the plan. */
static FILE *report_file(const struct settings *settings)
{
    return settings->writes_plan && settings->arguments.output == NULL ? stderr : stdout;
}

static void report_plan(const struct settings *settings, const struct subject *subject,
                        const struct plan *plan, const struct timeline *timeline, double seconds)
{
    uint64_t bound;
    double ideal = timeline->ideal_ns > 0 ? (double)timeline->ideal_ns : 1.0;
    FILE *file = report_file(settings);
    char first[32];
    char second[32];

    if (settings->arguments.as_json) {
        report_json(file, settings, subject, plan, timeline, seconds);
        return;
    }
    bound = bound_iteration(&subject->trace_index, &subject->machine, timeline->budget_bytes);
    fprintf(file, "%s: %s per iteration, %.2f %% over the ideal\n",
            settings->arguments.planner->name, human_ns(timeline->iteration_ns, first),
            100.0 * timeline_overhead(timeline));
    if (settings->place) {
        print_places(file, subject, plan);
    }
    print_hints(file, subject, plan);
    fprintf(file, "at most %.2f percentage points above the optimum (no plan is below %.2f %%)\n",
            100.0 * (double)(timeline->iteration_ns - bound) / ideal,
            100.0 * ((double)bound / ideal - 1.0));
    fprintf(file, "uses %s of %s", human_bytes(timeline->peak_bytes, first),
            human_bytes(timeline->budget_bytes, second));
    fprintf(file, "; out %s, in %s, replays", human_bytes(timeline->evicted_bytes, first),
            human_bytes(timeline->prefetched_bytes, second));
    fprintf(file, " %s, stalls %s\n", human_ns(timeline->replay_ns, first),
            human_ns(timeline->stall_ns, second));
}

/* The budget of the request, from --budget. */
static int set_budget(const struct settings *settings, const struct subject *subject,
                      struct planner_request *request)
{
    struct error_text error = {""};
    int code;

    if (strcmp(settings->arguments.budget, "min") != 0) {
        return arguments_budget(&settings->arguments, subject->trace_index.peak_bytes,
                                &request->budget_bytes)
                   ? EXIT_FINE
                   : EXIT_USAGE;
    }
    code = exit_code_of_plan(planner_least_budget(request, &request->budget_bytes, &error), &error);
    if (code == EXIT_FINE && !settings->arguments.as_json) {
        fprintf(report_file(settings), "the smallest budget for which there is a plan%s: %s\n",
                settings->place ? " with places" : "", size_text(request->budget_bytes).text);
    }
    return code;
}

static bool write_plan_page(const struct settings *settings, const struct subject *subject,
                            const struct plan *plan)
{
    static struct curves curves;
    static const struct curves_range range = {.from = 20, .to = 100, .step = 10};
    struct page page = {.command = "plan",
                        .source = settings->arguments.trace,
                        .subject = subject,
                        .curves = &curves};

    curves.items[0].planner = settings->arguments.planner;
    curves.item_count = 1;
    if (curves_measure(&curves, subject, &range, EFFORT_QUICK)) {
        say("stopped: there is no page");
        return false;
    }
    return page_write_plan(settings->arguments.html, &page, plan);
}

/* Makes the plan, times it and writes it. */
static int plan_and_write(const struct settings *settings, const struct subject *subject)
{
    struct watch watch = {.seconds = settings->seconds,
                          .with_lines = settings->with_progress,
                          .ideal_ns = subject->trace.total_ns};
    struct planner_request request = {.trace_index = &subject->trace_index,
                                      .machine = &subject->machine,
                                      .host_bytes = settings->arguments.host_bytes,
                                      .fixed_bytes = settings->fixed_bytes,
                                      .place = settings->place,
                                      .effort = settings->arguments.effort,
                                      .should_stop = should_stop,
                                      .working = show_work,
                                      .user = &watch};
    struct error_text error = {""};
    struct timeline timeline = {0};
    struct string_buffer text = {0};
    struct program program;
    struct plan plan = {0};
    capu_status status;
    double seconds;
    bool is_stopped;
    int code;

    progress_begin(settings->with_progress ? NULL : "planning", 0, settings->seconds);
    if (settings->with_progress || progress_is_shown()) {
        request.improved = show_improvement;
    }
    code = set_budget(settings, subject, &request);
    if (code != EXIT_FINE) {
        (void)progress_end();
        return code;
    }
    status = planner_run_program(settings->arguments.planner, &request, &plan, &program, &error);
    seconds = progress_seconds();
    is_stopped = progress_end();
    if (status == CAPU_OK) {
        status = timeline_of(&timeline, &program, &subject->machine, false, &error);
    }
    program_finish(&program);
    if (status == CAPU_OK && settings->writes_plan) {
        status = plan_write(&plan, &text, &error);
    }
    code = exit_code_of_plan(status, &error);
    if (status == CAPU_OK && settings->writes_plan) {
        code = output_write(settings->arguments.output, &text) ? EXIT_FINE : EXIT_USAGE;
    }
    if (code == EXIT_FINE) {
        report_plan(settings, subject, &plan, &timeline, seconds);
    }
    if (code == EXIT_FINE && settings->arguments.html != NULL) {
        code = write_plan_page(settings, subject, &plan) ? EXIT_FINE : EXIT_USAGE;
    }
    if (code == EXIT_FINE && is_stopped) {
        say("stopped: this is the best plan so far");
        code = EXIT_STOPPED;
    }
    string_buffer_finish(&text);
    timeline_finish(&timeline);
    plan_finish(&plan);
    return code;
}

/* argp breaks long lines at the same column but does not indent what follows. */
static void append_wrapped(struct string_buffer *list, const char *text)
{
    enum { INDENT = 14, WIDTH = 78 };
    size_t column = INDENT;

    while (*text != '\0') {
        size_t length = strcspn(text, " ");

        if (column > INDENT && column + 1 + length > WIDTH) {
            (void)string_buffer_format(list, "\n%*s", INDENT, "");
            column = INDENT;
        } else if (column > INDENT) {
            (void)string_buffer_append(list, " ", 1);
            column++;
        }
        (void)string_buffer_append(list, text, length);
        column += length;
        text += length + (text[length] == ' ');
    }
}

/* Appends the planners to the text of --help. */
static char *list_planners(int key, const char *text, void *input)
{
    struct string_buffer list = {0};
    const struct planner *planner;

    (void)input;
    if (key != ARGP_KEY_HELP_POST_DOC || string_buffer_format(&list, "%s", text) != CAPU_OK) {
        return (char *)text;
    }
    for (size_t i = 0; (planner = baselines_planner_at(i)) != NULL; i++) {
        (void)string_buffer_format(&list, "\n  %-12s", planner->name);
        append_wrapped(&list, planner->summary);
    }
    return list.data; /* which argp frees */
}

static bool check_plan_files(const struct arguments *arguments)
{
    const struct output_file files[] = {
        {"TRACE", arguments->trace, false},
        {"--machine", subject_machine_file(arguments->machine), false},
        {"--output", arguments->output, true},
        {"--html", arguments->html, true},
    };

    return output_check(files, sizeof(files) / sizeof(files[0]));
}

int plan_main(int argc, char **argv)
{
    static const struct argp argp = {options,
                                     parse_plan_option,
                                     "TRACE --budget SIZE|N%|min",
                                     "Makes a plan for a trace within a memory budget.\vPlanners:",
                                     NULL,
                                     list_planners,
                                     NULL};
    struct settings settings = {.arguments = ARGUMENTS_INIT};
    struct arguments *arguments = &settings.arguments;
    struct subject subject;
    int code;

    arguments->takes_trace = true;
    arguments->needs_budget = true;
    arguments_read(&argp, argc, argv, &settings);
    if (arguments->page_bytes == 0) {
        arguments->page_bytes = settings.place ? PLACE_PAGE_BYTES : 1;
    }
    if (!check_plan_files(arguments) ||
        !subject_load(&subject, arguments->trace, arguments->machine, arguments->page_bytes)) {
        return EXIT_USAGE;
    }
    code = plan_and_write(&settings, &subject);
    subject_finish(&subject);
    return code;
}

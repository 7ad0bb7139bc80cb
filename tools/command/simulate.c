/* capuchin simulate, check and bound: the subcommands on a trace, or a plan for it, that need no
 * search. */
#include "tools/command/commands.h"

#include "tools/command/arguments.h"
#include "tools/output/output.h"
#include "tools/page/page.h"
#include "tools/predict/predict.h"
#include "tools/view/timeline_export.h"
#include "tools/view/view.h"

#include "base/printable.h"
#include "base/size_text.h"
#include "policy/bound/bound_iteration.h"
#include "policy/format/plan.h"
#include "policy/model/timeline.h"
#include "policy/model/validate.h"

#include <jansson.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct settings {
    struct arguments arguments;
    const char *timeline;
};

enum option_key { KEY_TIMELINE = KEY_OWN };

static error_t parse_simulate_option(int key, char *argument, struct argp_state *state)
{
    struct settings *settings = state->input;

    if (key == KEY_TIMELINE) {
        settings->timeline = argument;
        return 0;
    }
    return arguments_parse(key, argument, &settings->arguments, state);
}

static bool write_timeline(const struct settings *settings, const struct subject *subject,
                           const struct plan *plan)
{
    struct timeline_export export = {0};
    struct error_text error = {""};
    struct view view;

    if (view_of_plan(&view, &subject->trace_index, plan, &subject->machine, &error) != CAPU_OK) {
        say_error(&error);
        return false;
    }
    timeline_export_view(&export, &view, 0);
    view_finish(&view);
    return timeline_export_write(&export, settings->timeline);
}

static void print_times(const struct settings *settings, const struct timeline *timeline)
{
    char first[32];
    char second[32];

    if (settings->arguments.as_json) {
        (void)output_json(stdout, json_pack("{s:b,s:I,s:I,s:f,s:I,s:I,s:I,s:I,s:I,s:I}", "valid", 1,
                                            "iteration_ns", (json_int_t)timeline->iteration_ns,
                                            "ideal_ns", (json_int_t)timeline->ideal_ns, "overhead",
                                            timeline_overhead(timeline), "peak_bytes",
                                            (json_int_t)timeline->peak_bytes, "budget_bytes",
                                            (json_int_t)timeline->budget_bytes, "evicted_bytes",
                                            (json_int_t)timeline->evicted_bytes, "prefetched_bytes",
                                            (json_int_t)timeline->prefetched_bytes, "replay_ns",
                                            (json_int_t)timeline->replay_ns, "stall_ns",
                                            (json_int_t)timeline->stall_ns));
        return;
    }
    printf("iteration  %s, %.2f %% over the ideal", human_ns(timeline->iteration_ns, first),
           100.0 * timeline_overhead(timeline));
    printf(" of %s\n", human_ns(timeline->ideal_ns, first));
    printf("memory     %s of %s\n", human_bytes(timeline->peak_bytes, first),
           human_bytes(timeline->budget_bytes, second));
    printf("copies     %s out, %s in\n", human_bytes(timeline->evicted_bytes, first),
           human_bytes(timeline->prefetched_bytes, second));
    printf("replays    %s\n", human_ns(timeline->replay_ns, first));
    printf("stalls     %s\n", human_ns(timeline->stall_ns, first));
}

static int simulate(const struct settings *settings, struct subject *subject,
                    const struct plan *plan)
{
    char text[PRINTABLE_BYTES];
    struct error_text error = {""};
    struct program program;
    struct timeline timeline;
    capu_status status;
    int code = EXIT_FINE;

    if (validate_program(&program, &subject->trace_index, plan, &error) != CAPU_OK) {
        if (settings->arguments.as_json) {
            (void)output_json(
                stdout, json_pack("{s:b,s:s}", "valid", 0, "error", printable(error.text, text)));
        }
        say("not valid: %s", error.text);
        return EXIT_USAGE;
    }
    status = timeline_of(&timeline, &program, &subject->machine, false, &error);
    program_finish(&program);
    if (status != CAPU_OK) {
        say_error(&error);
        return EXIT_USAGE;
    }
    print_times(settings, &timeline);
    if (settings->timeline != NULL && !write_timeline(settings, subject, plan)) {
        code = EXIT_USAGE;
    }
    timeline_finish(&timeline);
    if (code == EXIT_FINE && settings->arguments.html != NULL) {
        struct page page = {
            .command = "simulate", .source = settings->arguments.trace, .subject = subject};

        code = page_write_plan(settings->arguments.html, &page, plan) ? EXIT_FINE : EXIT_USAGE;
    }
    return code;
}

static bool check_simulate_files(const struct settings *settings)
{
    const struct output_file files[] = {
        {"TRACE", settings->arguments.trace, false},
        {"PLAN", settings->arguments.plan, false},
        {"--machine", subject_machine_file(settings->arguments.machine), false},
        {"--timeline", settings->timeline, true},
        {"--html", settings->arguments.html, true},
    };

    return output_check(files, sizeof(files) / sizeof(files[0]));
}

int simulate_main(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"machine", KEY_MACHINE, "NAME|FILE", 0, "Use this machine instead of the one in the trace",
         0},
        {"timeline", KEY_TIMELINE, "FILE", 0,
         "Write the timeline of the iteration to FILE, for ui.perfetto.dev", 0},
        {"html", KEY_HTML, "FILE", 0, "Also write a page with pictures to FILE", 0},
        {"json", KEY_JSON, NULL, 0, "Print JSON", 0},
        {0}};
    static const struct argp argp = {options,
                                     parse_simulate_option,
                                     "TRACE [PLAN]",
                                     "Computes the time of an iteration in steady state, with a "
                                     "plan, or without one if everything "
                                     "fits.",
                                     NULL,
                                     NULL,
                                     NULL};
    struct settings settings = {.arguments = {.takes_trace = true, .takes_plan = true}};
    struct subject subject;
    struct plan plan;
    int code = EXIT_USAGE;

    arguments_read(&argp, argc, argv, &settings);
    if (!check_simulate_files(&settings) ||
        !subject_load(&subject, settings.arguments.trace, settings.arguments.machine, 1)) {
        return EXIT_USAGE;
    }
    if (subject_plan(&subject, settings.arguments.plan, &plan)) {
        code = simulate(&settings, &subject, &plan);
        plan_finish(&plan);
    }
    subject_finish(&subject);
    return code;
}

int check_main(int argc, char **argv)
{
    static const struct argp argp = {
        NULL,
        parse_simulate_option,
        "TRACE [PLAN]",
        "Says whether a trace is well-formed and complete, and a plan valid for it. A trace "
        "without an end line, as older versions wrote it, is accepted with a warning.",
        NULL,
        NULL,
        NULL};
    struct settings settings = {.arguments = {.takes_trace = true, .takes_plan = true}};
    struct error_text error = {""};
    struct subject subject = {0};
    struct plan plan = {0};
    capu_status status;

    arguments_read(&argp, argc, argv, &settings);
    if (!subject_trace(&subject.trace, settings.arguments.trace)) {
        return EXIT_USAGE;
    }
    status = trace_index_init(&subject.trace_index, &subject.trace, 1, &error);
    if (status == CAPU_OK) {
        if (!subject_plan(&subject, settings.arguments.plan, &plan)) {
            subject_finish(&subject);
            return EXIT_USAGE;
        }
        status = validate_plan(&subject.trace_index, &plan, &error);
    }
    if (status == CAPU_OK) {
        printf("valid: %" PRIu32 " ops, %" PRIu32 " tensors, %" PRIu32 " actions\n",
               subject.trace.op_count, subject.trace.tensor_count, plan.action_count);
    } else {
        say_error(&error);
    }
    plan_finish(&plan);
    subject_finish(&subject);
    return status == CAPU_OK ? EXIT_FINE : EXIT_USAGE;
}

static int print_bound(const struct settings *settings, const struct subject *subject)
{
    const struct trace_index *trace_index = &subject->trace_index;
    char first[32];
    uint64_t budget;
    uint64_t bound;

    if (!arguments_budget(&settings->arguments, trace_index->peak_bytes, &budget)) {
        return EXIT_USAGE;
    }
    if (budget < trace_index->floor_bytes) {
        say("no plan exists below %s: op %" PRIu32 " (%s) needs them all at once",
            size_text(trace_index->floor_bytes).text, trace_index->floor_op,
            trace_op_name(&subject->trace, trace_index->floor_op));
        return EXIT_NO_PLAN;
    }
    bound = bound_iteration(trace_index, &subject->machine, budget);
    if (settings->arguments.as_json) {
        (void)output_json(stdout, json_pack("{s:I,s:I,s:I,s:I,s:I}", "bound_ns", (json_int_t)bound,
                                            "ideal_ns", (json_int_t)subject->trace.total_ns,
                                            "budget_bytes", (json_int_t)budget, "peak_bytes",
                                            (json_int_t)trace_index->peak_bytes, "floor_bytes",
                                            (json_int_t)trace_index->floor_bytes));
        return EXIT_FINE;
    }
    printf("no plan is faster than %s", human_ns(bound, first));
    printf(" (%.2f %% over the ideal)\n",
           subject->trace.total_ns == 0
               ? 0.0
               : 100.0 * ((double)bound / (double)subject->trace.total_ns - 1.0));
    printf("peak without a plan %s", human_bytes(trace_index->peak_bytes, first));
    printf(", floor %s\n", human_bytes(trace_index->floor_bytes, first));
    return EXIT_FINE;
}

int bound_main(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"budget", KEY_BUDGET, "SIZE|N%", 0,
         "Device memory that a plan may use, as a size or as a percentage of the peak without a "
         "plan",
         0},
        {"machine", KEY_MACHINE, "NAME|FILE", 0, "Use this machine instead of the one in the trace",
         0},
        {"json", KEY_JSON, NULL, 0, "Print JSON", 0},
        {0}};
    static const struct argp argp = {
        options,
        parse_simulate_option,
        "TRACE --budget SIZE|N%",
        "Computes a lower bound on the iteration time of any plan within a memory budget.",
        NULL,
        NULL,
        NULL};
    struct settings settings = {.arguments = {.takes_trace = true, .needs_budget = true}};
    struct subject subject;
    int code;

    arguments_read(&argp, argc, argv, &settings);
    if (!subject_load(&subject, settings.arguments.trace, settings.arguments.machine, 1)) {
        return EXIT_USAGE;
    }
    code = print_bound(&settings, &subject);
    subject_finish(&subject);
    return code;
}

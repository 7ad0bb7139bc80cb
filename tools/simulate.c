/* capuchin simulate, check and bound: the subcommands on a trace, or a plan for it, that need no
 * search. */
#include "tools/commands.h"

#include "tools/arguments.h"
#include "tools/exit_code.h"
#include "tools/human.h"
#include "tools/output.h"
#include "tools/page_plan.h"
#include "tools/printable.h"
#include "tools/say.h"
#include "tools/subject.h"

#include "base/size_text.h"
#include "policy/bound.h"
#include "policy/plan.h"
#include "policy/timeline.h"
#include "policy/validate.h"

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

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    struct settings *settings = state->input;

    if (key == KEY_TIMELINE) {
        settings->timeline = argument;
        return 0;
    }
    return arguments_parse(key, argument, &settings->arguments, state);
}

static bool is_touched(const struct trace *trace, uint32_t tensor)
{
    for (uint32_t i = 0; i < trace->operand_count; i++) {
        if (trace->operands[i] == tensor) {
            return true;
        }
    }
    return false;
}

/* The trace of a run lists persistent tensors that no op touches after all others. The run's plans
   do not have them: they stay on the host. */
static void leave_untouched(struct trace *trace, const struct plan *plan)
{
    uint32_t count = trace->tensor_count;

    while (plan->trace_tensors < count && trace->tensors[count - 1].persistent &&
           !is_touched(trace, count - 1)) {
        count--;
    }
    if (count == plan->trace_tensors && count < trace->tensor_count) {
        say("tensors that no op touches, which the plan leaves on the host: %" PRIu32,
            trace->tensor_count - count);
        while (trace->tensor_count > count) {
            trace->total_bytes -= trace->tensors[--trace->tensor_count].bytes;
        }
    }
}

/* Loads the plan, or makes the empty plan whose budget holds everything. */
static bool load_plan(const struct settings *settings, struct subject *subject, struct plan *plan)
{
    uint32_t tensor_count = subject->trace.tensor_count;
    struct error_text error = {""};
    capu_status status;

    if (settings->arguments.plan == NULL) {
        status = plan_init(plan, trace_text(&subject->trace, subject->trace.name),
                           subject->trace_index.peak_bytes, 1);
        plan->fixed_bytes = subject->trace_index.fixed_bytes;
    } else {
        status = plan_load(plan, settings->arguments.plan, &error);
    }
    if (status == CAPU_OK) {
        leave_untouched(&subject->trace, plan);
    }
    if (status == CAPU_OK && (plan->page_bytes != subject->trace_index.page_bytes ||
                              subject->trace.tensor_count != tensor_count)) {
        trace_index_finish(&subject->trace_index);
        status = trace_index_init(&subject->trace_index, &subject->trace, plan->page_bytes, &error);
    }
    if (status != CAPU_OK) {
        say_error(&error);
        plan_finish(plan);
    }
    return status == CAPU_OK;
}

static const char *item_name(const struct subject *subject, const struct item *item)
{
    return item_is_run(item) ? trace_op_name(&subject->trace, item->subject)
                             : trace_tensor_name(&subject->trace, item->subject);
}

/* One event of the Chrome trace format. Times in microseconds. */
static json_t *event_of(const struct subject *subject, const struct timeline *timeline,
                        const struct timeline_record *record)
{
    static const char *const kinds[] = {"op",   "replay",   "evict",  "save",
                                        "drop", "prefetch", "release"};
    static const char *const waits[] = {"", "tensor", "memory", "save", "compute", "host copy"};
    double from = ((double)record->span.start - (double)timeline->begin_ns) / 1e3;

    return json_pack("{s:s,s:s,s:s,s:i,s:i,s:f,s:f,s:{s:s,s:I,s:I}}", "name",
                     item_name(subject, &record->item), "cat", kinds[record->item.kind], "ph", "X",
                     "pid", 1, "tid", (int)record->engine, "ts", from, "dur",
                     (double)(record->span.end - record->span.start) / 1e3, "args", "waited_for",
                     waits[record->span.wait], "waited_ns",
                     (json_int_t)(record->span.start - record->span.idle_from), "held_bytes",
                     (json_int_t)record->held_bytes);
}

static bool write_timeline(const struct settings *settings, const struct subject *subject,
                           const struct timeline *timeline)
{
    static const char *const engines[] = {"", "compute", "device to host", "host to device"};
    json_t *events = json_array();
    json_t *whole;
    struct string_buffer text = {0};
    bool is_fine;

    for (int engine = ENGINE_COMPUTE; engine <= ENGINE_H2D; engine++) {
        json_array_append_new(events, json_pack("{s:s,s:s,s:i,s:i,s:{s:s}}", "name", "thread_name",
                                                "ph", "M", "pid", 1, "tid", engine, "args", "name",
                                                engines[engine]));
    }
    for (uint32_t i = 0; i < timeline->record_count; i++) {
        if (timeline->records[i].engine != ENGINE_NONE) {
            json_array_append_new(events, event_of(subject, timeline, &timeline->records[i]));
        }
    }
    whole = json_pack("{s:o,s:s}", "traceEvents", events, "displayTimeUnit", "ms");
    text.data = json_dumps(whole, JSON_COMPACT | JSON_ENSURE_ASCII);
    json_decref(whole);
    if (text.data == NULL) {
        say("out of memory");
        return false;
    }
    text.length = strlen(text.data);
    is_fine = output_write(settings->timeline, &text);
    free(text.data);
    return is_fine;
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
    struct timeline timeline;
    int code = EXIT_FINE;

    if (validate_plan(&subject->trace_index, plan, &error) != CAPU_OK) {
        if (settings->arguments.as_json) {
            (void)output_json(
                stdout, json_pack("{s:b,s:s}", "valid", 0, "error", printable(error.text, text)));
        }
        say("not valid: %s", error.text);
        return EXIT_USAGE;
    }
    if (timeline_init(&timeline, &subject->trace_index, plan, &subject->machine,
                      settings->timeline != NULL, &error) != CAPU_OK) {
        say_error(&error);
        return EXIT_USAGE;
    }
    print_times(settings, &timeline);
    if (settings->timeline != NULL && !write_timeline(settings, subject, &timeline)) {
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

static bool check_files(const struct settings *settings)
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
         "Write the timeline of the iteration to FILE, as Chrome trace JSON", 0},
        {"html", KEY_HTML, "FILE", 0, "Also write a page with pictures to FILE", 0},
        {"json", KEY_JSON, NULL, 0, "Print JSON", 0},
        {0}};
    static const struct argp argp = {options,
                                     parse_option,
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
    if (!check_files(&settings) ||
        !subject_load(&subject, settings.arguments.trace, settings.arguments.machine, 1)) {
        return EXIT_USAGE;
    }
    if (load_plan(&settings, &subject, &plan)) {
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
        parse_option,
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
        if (!load_plan(&settings, &subject, &plan)) {
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
        parse_option,
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

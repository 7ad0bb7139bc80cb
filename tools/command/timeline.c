/* capuchin timeline: iterations as a trace for Perfetto, from a report, or from a trace and a plan.
 */
#include "tools/command/commands.h"

#include "tools/command/arguments.h"
#include "tools/output/output.h"
#include "tools/predict/predict.h"
#include "tools/report/report_file.h"

#include "policy/model/validate.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct settings {
    struct arguments arguments; /* its trace is the input */
    const char *plan;
    const char *trace;
    uint64_t iteration; /* 0: all */
};

enum option_key { KEY_PLAN_FILE = KEY_OWN, KEY_TRACE_FILE, KEY_ITERATION };

static error_t parse_timeline_option(int key, char *argument, struct argp_state *state)
{
    struct settings *settings = state->input;

    switch (key) {
    case KEY_PLAN_FILE:
        settings->plan = argument;
        return 0;
    case KEY_TRACE_FILE:
        settings->trace = argument;
        return 0;
    case KEY_ITERATION:
        settings->iteration = arguments_count("iteration", argument, INT64_MAX, state);
        return 0;
    default:
        return arguments_parse(key, argument, &settings->arguments, state);
    }
}

enum input { INPUT_UNKNOWN, INPUT_REPORT, INPUT_TRACE };

/* What a file is, by its first line. UNKNOWN: an error has been printed. */
static enum input recognise(const char *path)
{
    FILE *stream = fopen(path, "rb");
    json_t *object;
    const char *type;
    enum input input = INPUT_UNKNOWN;

    if (stream == NULL) {
        say("%s: %s", path, strerror(errno));
        return input;
    }
    object = json_loadf(stream, JSON_DISABLE_EOF_CHECK, NULL); /* stops at what is not JSON */
    fclose(stream);
    type = json_string_value(json_object_get(object, "type"));
    if (type != NULL && (strcmp(type, "report") == 0 || strcmp(type, "timeline") == 0)) {
        input = INPUT_REPORT;
    } else if (type != NULL && strcmp(type, "trace") == 0) {
        input = INPUT_TRACE;
    } else {
        say("%s: its first line is neither that of a report nor that of a trace", path);
    }
    json_decref(object);
    return input;
}

/* Adds the simulation of a plan. */
static bool add_plan(const struct settings *settings, const char *trace, uint64_t begin_ns,
                     struct timeline_export *export)
{
    struct error_text error = {""};
    struct subject subject;
    struct plan plan;
    struct view view;
    capu_status status;

    if (!subject_load(&subject, trace, settings->arguments.machine, 1)) {
        return false;
    }
    if (!subject_plan(&subject, settings->plan, &plan)) {
        subject_finish(&subject);
        return false;
    }
    status = validate_plan(&subject.trace_index, &plan, &error);
    if (status == CAPU_OK) {
        status = view_of_plan(&view, &subject.trace_index, &plan, &subject.machine, &error);
    }
    if (status == CAPU_OK) {
        timeline_export_view(export, &view, begin_ns);
        view_finish(&view);
    } else {
        say_error(&error);
    }
    plan_finish(&plan);
    subject_finish(&subject);
    return status == CAPU_OK;
}

static bool add_report(const struct settings *settings, struct timeline_export *export)
{
    struct report_file file;
    uint64_t last_ns = 0;
    bool is_fine;

    if (!report_file_read(&file, settings->arguments.trace)) {
        return false;
    }
    is_fine = report_timeline_add(&file, settings->iteration, export, &last_ns);
    report_file_finish(&file);
    return is_fine &&
           (settings->trace == NULL || add_plan(settings, settings->trace, last_ns, export));
}

static bool check_timeline_files(const struct settings *settings)
{
    const struct output_file files[] = {
        {"INPUT", settings->arguments.trace, false},
        {"--plan", settings->plan, false},
        {"--trace", settings->trace, false},
        {"--machine", subject_machine_file(settings->arguments.machine), false},
        {"--output", settings->arguments.output, true},
    };

    return output_check(files, sizeof(files) / sizeof(files[0]));
}

/* Options that the input does not take, or needs. */
static bool check_options(const struct settings *settings, enum input input)
{
    if (input == INPUT_TRACE && settings->plan == NULL) {
        say("%s is a trace: --plan PLAN says what is done about it", settings->arguments.trace);
    } else if (input == INPUT_TRACE && (settings->trace != NULL || settings->iteration != 0)) {
        say("%s is a trace: --trace and --iteration are for reports", settings->arguments.trace);
    } else if (input == INPUT_REPORT && (settings->trace == NULL) != (settings->plan == NULL)) {
        say("--trace and --plan belong together: they add what was planned");
    } else {
        return true;
    }
    return false;
}

int timeline_main(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"output", KEY_OUTPUT, "FILE", 0, "Write to FILE instead of standard output", 0},
        {"plan", KEY_PLAN_FILE, "PLAN", 0, "The plan whose simulation is shown", 0},
        {"trace", KEY_TRACE_FILE, "TRACE", 0,
         "With a report and --plan: the plan's trace. The last iteration is shown as planned, too",
         0},
        {"iteration", KEY_ITERATION, "N", 0, "Only this iteration of a report", 0},
        {"machine", KEY_MACHINE, "NAME|FILE", 0, "Use this machine instead of the one in the trace",
         0},
        {0}};
    static const struct argp argp = {
        options,
        parse_timeline_option,
        "INPUT -o FILE.pftrace",
        "Writes the timeline of iterations for ui.perfetto.dev: measured ones from a report with "
        "timelines (CAPUCHIN_REPORT and CAPUCHIN_TIMELINE=1), the planned one from a trace and "
        "its plan. The first line of INPUT says which of the two it is.",
        NULL,
        NULL,
        NULL};
    struct settings settings = {.arguments = {.takes_trace = true}};
    struct timeline_export export = {0};
    enum input input;
    bool is_fine;

    arguments_read(&argp, argc, argv, &settings);
    if (!check_timeline_files(&settings)) {
        return EXIT_USAGE;
    }
    input = recognise(settings.arguments.trace);
    if (input == INPUT_UNKNOWN || !check_options(&settings, input)) {
        return EXIT_USAGE;
    }
    is_fine = input == INPUT_REPORT ? add_report(&settings, &export)
                                    : add_plan(&settings, settings.arguments.trace, 0, &export);
    if (!is_fine) {
        timeline_export_discard(&export);
        return EXIT_USAGE;
    }
    return timeline_export_write(&export, settings.arguments.output) ? EXIT_FINE : EXIT_USAGE;
}

/* capuchin replay: runs a trace through the runtime itself on a simulated device, and compares the
 * measured iterations with the simulated one. */
#include "tools/command/commands.h"

#include "base/printable.h"
#include "models/driver.h"
#include "tools/command/arguments.h"
#include "tools/output/output.h"
#include "tools/output/progress.h"
#include "tools/page/page.h"
#include "tools/predict/predict.h"
#include "tools/report/report_file.h"

#include "capuchin/capuchin.h"

#include "policy/format/plan.h"
#include "policy/model/timeline.h"

#include <jansson.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE_BYTES ((uint64_t)2 << 20) /* the sim device's own */
#define ITERATIONS 8
#define ITERATIONS_MAX 10000
#define STEADY_AFTER 3 /* guided iterations: the simulation describes the fourth and later ones */

struct settings {
    struct arguments arguments;
    const char *save_plan;
    const char *save_trace;
    const char *report;
    const char *timeline;
    struct driver_options driver;
    unsigned iterations;
};

struct result {
    struct report *reports;
    size_t count;
    size_t guided;               /* how many iterations were */
    const struct report *steady; /* the newest guided one in steady state; NULL: none */
    struct plan plan;
    bool has_plan;
    uint64_t simulated_ns;
    bool is_stopped; /* by SIGINT, before all iterations */
};

enum option_key {
    KEY_SLAB = KEY_OWN,
    KEY_MODE,
    KEY_SAVE_PLAN,
    KEY_SAVE_TRACE,
    KEY_REPORT,
    KEY_TIMELINE
};

static const struct argp_option options[] = {
    {"budget", KEY_BUDGET, "SIZE|N%", 0,
     "Device memory, as a size or as a percentage of the peak without a plan", 0},
    {"planner", KEY_PLANNER, "NAME", 0,
     "Planner of the library: hybrid (the default), lru, swap, recompute or manual", 0},
    {"effort", KEY_EFFORT, "LEVEL", 0, "How hard to search: quick, default or best", 0},
    {"machine", KEY_MACHINE, "NAME|FILE", 0, "Use this machine instead of the one in the trace", 0},
    {"page", KEY_PAGE, "BYTES", 0, "Page size of the device, a power of two (default: 2 MiB)", 0},
    {"slab", KEY_SLAB, "BYTES", 0,
     "Tensors smaller than this are always resident (at least 2, at most half a page, which is the "
     "default)",
     0},
    {"host", KEY_HOST, "SIZE", 0, "Host memory that evicted tensors may use (default: unlimited)",
     0},
    {"iterations", 'n', "N", 0, "Number of iterations (default: 8)", 0},
    {"mode", KEY_MODE, "MODE", 0, "passive or guided (default: guided)", 0},
    {"save-plan", KEY_SAVE_PLAN, "FILE", 0,
     "Write the runtime's plan to FILE, with the tensor and op numbers of the trace", 0},
    {"save-trace", KEY_SAVE_TRACE, "FILE", 0,
     "Write the second iteration to FILE, as the runtime recorded it", 0},
    {"report", KEY_REPORT, "FILE", 0, "Write one report per iteration to FILE, as JSON lines", 0},
    {"timeline", KEY_TIMELINE, "FILE", 0,
     "Write the timelines of all iterations as measured, and of the last one as planned, to FILE, "
     "for ui.perfetto.dev; the report has them, too",
     0},
    {"html", KEY_HTML, "FILE", 0, "Also write a page with pictures of the run to FILE", 0},
    {"json", KEY_JSON, NULL, 0, "Print JSON", 0},
    {0},
};

static uint32_t parse_mode(const char *text, struct argp_state *state)
{
    static const char *const modes[] = {"off", "passive", "guided", NULL};
    uint32_t mode = CAPU_MODE_OFF + arguments_word("mode", text, modes, state);

    if (mode == CAPU_MODE_OFF) {
        argp_error(state, "--mode off: the mode off ignores the budget");
    }
    return mode;
}

static error_t parse_replay_option(int key, char *argument, struct argp_state *state)
{
    struct settings *settings = state->input;

    switch (key) {
    case 'n':
        settings->iterations =
            (unsigned)arguments_count("iterations", argument, ITERATIONS_MAX, state);
        return 0;
    case KEY_HOST: /* to the runtime 0 means unlimited */
        settings->arguments.host_bytes = arguments_bytes("host", argument, 1, state);
        return 0;
    case KEY_MODE:
        settings->driver.mode = parse_mode(argument, state);
        return 0;
    case KEY_SLAB: /* 0 would mean the default, and below 2 bytes no tensor would lie in a slab */
        settings->driver.slab_bytes = arguments_bytes("slab", argument, 2, state);
        return 0;
    case KEY_SAVE_PLAN:
        settings->save_plan = argument;
        return 0;
    case KEY_SAVE_TRACE:
        settings->save_trace = argument;
        return 0;
    case KEY_REPORT:
        settings->report = argument;
        return 0;
    case KEY_TIMELINE:
        settings->timeline = argument;
        settings->driver.has_timelines = true;
        return 0;
    case KEY_HTML:
        settings->driver.has_timelines = true;
        return arguments_parse(key, argument, &settings->arguments, state);
    default:
        return arguments_parse(key, argument, &settings->arguments, state);
    }
}

/* Runs the iterations and collects their reports and the plan. */
static capu_status run_iterations(const struct settings *settings, struct driver *driver,
                                  struct result *result, struct error_text *error)
{
    struct timeline timeline = {0};
    capu_status status = CAPU_OK;
    unsigned count = 0;

    progress_begin("replaying", settings->iterations, 0.0);
    while (count < settings->iterations && status == CAPU_OK &&
           (!progress_should_stop(NULL) || count == 0)) {
        status = driver_iterate(driver, error);
        progress_step();
        count++;
    }
    result->is_stopped = progress_end() && count < settings->iterations;
    if (status == CAPU_OK) {
        status = driver_settle(driver, error);
    }
    if (status == CAPU_OK) {
        status = driver_reports(driver, result->reports, count, error);
    }
    if (status != CAPU_OK) {
        return status;
    }
    result->count = count;
    for (size_t i = 0; i < result->count; i++) {
        result->guided += result->reports[i].mode == CAPU_MODE_GUIDED;
        result->steady =
            result->reports[i].mode == CAPU_MODE_GUIDED && result->guided > STEADY_AFTER
                ? &result->reports[i]
                : NULL;
    }
    status = driver_plan(driver, &result->plan, error);
    if (status != CAPU_OK) {
        return status == CAPU_NOT_READY ? CAPU_OK : status;
    }
    result->has_plan = true;
    status = driver_simulate(driver, &result->plan, &timeline, error);
    result->simulated_ns = timeline.iteration_ns;
    timeline_finish(&timeline);
    return status;
}

static const char *mode_name(const struct report *report)
{
    return report->mode != CAPU_MODE_GUIDED ? "passive"
           : report->diverged != 0          ? "diverged"
                                            : "guided";
}

static void print_replay_text(const struct settings *settings, const struct subject *subject,
                              const struct result *result)
{
    char text[PRINTABLE_BYTES];
    char buffer[32];

    printf("%s on ", printable(trace_text(&subject->trace, subject->trace.name), text));
    printf("%s: ", printable(subject->machine.name, text));
    printf("%s", human_bytes(settings->driver.budget_bytes, buffer));
    printf(" in pages of %s\n", human_bytes(subject->trace_index.page_bytes, buffer));
    printf("iteration  mode               time  over ideal           out            in\n");
    for (size_t i = 0; i < result->count; i++) {
        const struct report *report = &result->reports[i];

        printf("%9" PRIu64 "  %-8s %14s", report->iteration, mode_name(report),
               human_ns(report->time_ns, buffer));
        printf("  %8.2f %%  %12s", predict_overhead(&subject->trace_index, report->time_ns),
               human_bytes(report->evicted_bytes, buffer));
        printf("  %12s\n", human_bytes(report->prefetched_bytes, buffer));
    }
    if (!result->has_plan) {
        return;
    }
    printf("the runtime predicts %s",
           human_ns(result->reports[result->count - 1].predicted_ns, buffer));
    printf("; the simulation of its plan %s, %.2f %% over the ideal\n",
           human_ns(result->simulated_ns, buffer),
           predict_overhead(&subject->trace_index, result->simulated_ns));
    if (result->steady == NULL) {
        printf("no steady state yet: it begins with the fourth guided iteration\n");
    } else if (result->steady->time_ns == result->simulated_ns) {
        printf("the steady-state iteration takes exactly that time\n");
    } else {
        printf("the steady-state iteration takes %" PRId64 " ns more\n",
               (int64_t)(result->steady->time_ns - result->simulated_ns));
    }
}

static bool print_replay_json(const struct subject *subject, const struct result *result)
{
    json_t *iterations = json_array();
    json_t *whole;

    for (size_t i = 0; i < result->count; i++) {
        const struct report *report = &result->reports[i];

        json_array_append_new(iterations,
                              json_pack("{s:I,s:s,s:I,s:I,s:I,s:o}", "iteration",
                                        (json_int_t)report->iteration, "mode", mode_name(report),
                                        "time_ns", (json_int_t)report->time_ns, "evicted_bytes",
                                        (json_int_t)report->evicted_bytes, "prefetched_bytes",
                                        (json_int_t)report->prefetched_bytes, "recompute_ns",
                                        report->recompute_ns != CAPU_NOT_TIMED
                                            ? json_integer((json_int_t)report->recompute_ns)
                                            : json_null()));
    }
    whole = json_pack("{s:s,s:I,s:o}", "trace", trace_text(&subject->trace, subject->trace.name),
                      "ideal_ns", (json_int_t)subject->trace.total_ns, "iterations", iterations);
    if (result->has_plan) {
        json_object_set_new(
            whole, "predicted_ns",
            json_integer((json_int_t)result->reports[result->count - 1].predicted_ns));
        json_object_set_new(whole, "simulated_ns", json_integer((json_int_t)result->simulated_ns));
    }
    if (result->steady != NULL) {
        json_object_set_new(whole, "steady_ns", json_integer((json_int_t)result->steady->time_ns));
        json_object_set_new(
            whole, "overhead",
            json_real(predict_overhead(&subject->trace_index, result->steady->time_ns) / 100.0));
        json_object_set_new(whole, "is_equal",
                            json_boolean(result->steady->time_ns == result->simulated_ns));
    }
    return output_json(stdout, whole);
}

static bool save_plan(const struct settings *settings, const struct result *result)
{
    struct error_text error = {""};
    struct string_buffer text = {0};
    bool is_fine = plan_write(&result->plan, &text, &error) == CAPU_OK &&
                   output_write(settings->save_plan, &text);

    string_buffer_finish(&text);
    return is_fine;
}

/* All iterations as measured, and below the last one what its plan says. */
static bool save_timeline(const struct settings *settings, const struct subject *subject,
                          const struct result *result, const char *report_path)
{
    struct timeline_export export = {0};
    struct error_text error = {""};
    struct report_file file;
    struct view view;
    uint64_t last_ns = 0;
    bool is_fine;

    if (!report_file_read(&file, report_path)) {
        return false;
    }
    is_fine = report_timeline_add(&file, 0, &export, &last_ns);
    report_file_finish(&file);
    if (is_fine && result->has_plan) {
        is_fine = view_of_plan(&view, &subject->trace_index, &result->plan, &subject->machine,
                               &error) == CAPU_OK;
        if (is_fine) {
            timeline_export_view(&export, &view, last_ns);
            view_finish(&view);
        } else {
            say_error(&error);
        }
    }
    if (!is_fine) {
        timeline_export_discard(&export);
    }
    return is_fine && timeline_export_write(&export, settings->timeline);
}

static int report_replay(const struct settings *settings, const struct subject *subject,
                         const struct result *result)
{
    if (settings->arguments.as_json) {
        print_replay_json(subject, result);
    } else {
        print_replay_text(settings, subject, result);
    }
    if (settings->save_plan != NULL && result->has_plan && !save_plan(settings, result)) {
        return EXIT_USAGE;
    }
    if (result->is_stopped) {
        say("stopped after %zu of %u iterations", result->count, settings->iterations);
        return EXIT_STOPPED;
    }
    if (settings->driver.mode == CAPU_MODE_GUIDED && !result->has_plan && result->count > 1) {
        say("no plan was found for this budget");
        return EXIT_NONE_FOUND;
    }
    if (settings->save_plan != NULL && !result->has_plan) {
        say("--save-plan %s: there is no plan: it takes guided mode and two iterations",
            settings->save_plan);
        return EXIT_USAGE;
    }
    return EXIT_FINE;
}

/* Files of the run, in a folder of its own: a run that fails leaves the user's files alone. */
struct files {
    char report[64];
    char plan[64];
    char trace[64];
};

static int save_files(const struct settings *settings, const struct files *files, bool is_stopped)
{
    bool has_trace = settings->save_trace != NULL && access(files->trace, F_OK) == 0;

    if (settings->report != NULL && !output_copy(settings->report, files->report)) {
        return EXIT_USAGE;
    }
    if (settings->save_trace != NULL && !has_trace && !is_stopped) {
        say("--save-trace %s: there is no second iteration", settings->save_trace);
        return EXIT_USAGE;
    }
    return !has_trace || output_copy(settings->save_trace, files->trace) ? EXIT_FINE : EXIT_USAGE;
}

/* The iteration that a page is about: the newest that has a timeline, or else the newest. */
static const struct reported *choose_iteration(const struct report_file *file)
{
    for (size_t i = file->count; i-- > 0;) {
        if (report_file_has_view(&file->iterations[i])) {
            return &file->iterations[i];
        }
    }
    return &file->iterations[file->count - 1];
}

/* Writes a page about the run, with the simulation of its plan if there is one. */
static bool write_replay_page(const struct settings *settings, const struct subject *subject,
                              const struct result *result, const struct report_file *file)
{
    const struct reported *iteration = choose_iteration(file);
    struct page page = {.command = "replay",
                        .source = settings->arguments.trace,
                        .trace = settings->arguments.trace,
                        .report = file,
                        .subject = subject};
    struct error_text error = {""};
    struct account account = {0};
    struct view planned = {0};
    struct view measured = {0};
    bool is_fine = account_init(&account, file, iteration);

    page.account = &account;
    if (is_fine && report_file_has_view(iteration)) {
        page.measured = &measured;
        is_fine = report_file_view(file, iteration, &measured);
    }
    if (is_fine && result->has_plan) {
        page.planned = &planned;
        is_fine = view_of_plan(&planned, &subject->trace_index, &result->plan, &subject->machine,
                               &error) == CAPU_OK;
        if (!is_fine) {
            say_error(&error);
        }
    }
    is_fine = is_fine && page_write(settings->arguments.html, &page);
    account_finish(&account);
    view_finish(&planned);
    view_finish(&measured);
    return is_fine;
}

static bool save_page(const struct settings *settings, const struct subject *subject,
                      const struct result *result, const char *report_path)
{
    struct report_file file;
    bool is_fine;

    if (!report_file_read(&file, report_path)) {
        return false;
    }
    is_fine = write_replay_page(settings, subject, result, &file);
    report_file_finish(&file);
    return is_fine;
}

static int replay_trace(const struct settings *settings, const struct subject *subject,
                        const struct files *files)
{
    struct driver_options own = settings->driver;
    struct result result = {0};
    struct error_text error = {""};
    struct driver *driver = NULL;
    capu_status status;
    int code;

    own.machine = &subject->machine;
    own.report_path = files->report;
    own.plan_path = files->plan;
    own.trace_path = settings->save_trace != NULL ? files->trace : NULL;
    result.reports = calloc(settings->iterations, sizeof(*result.reports));
    status = result.reports == NULL ? CAPU_NO_HOST_MEMORY
                                    : driver_create(&subject->trace_index, &own, &driver, &error);
    if (status == CAPU_OK) {
        status = run_iterations(settings, driver, &result, &error);
    }
    code = status == CAPU_OK ? save_files(settings, files, result.is_stopped)
                             : exit_code_of_plan(status, &error);
    if (status == CAPU_OK && code == EXIT_FINE && settings->timeline != NULL &&
        !save_timeline(settings, subject, &result, files->report)) {
        code = EXIT_USAGE;
    }
    if (status == CAPU_OK && code == EXIT_FINE && settings->arguments.html != NULL &&
        !save_page(settings, subject, &result, files->report)) {
        code = EXIT_USAGE;
    }
    if (status == CAPU_OK && code == EXIT_FINE) {
        code = report_replay(settings, subject, &result);
    }
    driver_destroy(driver);
    plan_finish(&result.plan);
    free(result.reports);
    return code;
}

static int replay_in_folder(struct settings *settings, struct subject *subject)
{
    char folder[] = "/tmp/capuchin-replay-XXXXXX";
    struct files files;
    int code;

    if (!arguments_budget(&settings->arguments, subject->trace_index.peak_bytes,
                          &settings->driver.budget_bytes)) {
        return EXIT_USAGE;
    }
    if (mkdtemp(folder) == NULL) {
        say("%s: cannot be created: %s", folder, strerror(errno));
        return EXIT_USAGE;
    }
    snprintf(files.report, sizeof(files.report), "%s/report", folder);
    snprintf(files.plan, sizeof(files.plan), "%s/plan", folder);
    snprintf(files.trace, sizeof(files.trace), "%s/trace", folder);
    code = replay_trace(settings, subject, &files);
    (void)unlink(files.report);
    (void)unlink(files.plan);
    (void)unlink(files.trace);
    (void)rmdir(folder);
    return code;
}

static bool check_replay_files(const struct settings *settings)
{
    const struct output_file files[] = {
        {"TRACE", settings->arguments.trace, false},
        {"--machine", subject_machine_file(settings->arguments.machine), false},
        {"--save-plan", settings->save_plan, true},
        {"--save-trace", settings->save_trace, true},
        {"--report", settings->report, true},
        {"--timeline", settings->timeline, true},
        {"--html", settings->arguments.html, true},
    };

    return output_check(files, sizeof(files) / sizeof(files[0]));
}

int replay_main(int argc, char **argv)
{
    static const struct argp argp = {options,
                                     parse_replay_option,
                                     "TRACE --budget SIZE|N%",
                                     "Runs a trace through the runtime on a simulated device and "
                                     "compares the measured times with "
                                     "the predicted ones.",
                                     NULL,
                                     NULL,
                                     NULL};
    struct settings settings = {.arguments = ARGUMENTS_INIT,
                                .driver = {.mode = CAPU_MODE_GUIDED},
                                .iterations = ITERATIONS};
    struct arguments *arguments = &settings.arguments;
    struct subject subject;
    int code;

    arguments->takes_trace = true;
    arguments->runs_library = true;
    arguments->needs_budget = true;
    arguments->page_bytes = PAGE_BYTES;
    arguments_read(&argp, argc, argv, &settings);
    settings.driver.planner = arguments->planner->name;
    settings.driver.effort = arguments->effort;
    settings.driver.host_bytes = arguments->host_bytes;
    if (!check_replay_files(&settings) ||
        !subject_load(&subject, arguments->trace, arguments->machine, arguments->page_bytes)) {
        return EXIT_USAGE;
    }
    code = replay_in_folder(&settings, &subject);
    subject_finish(&subject);
    return code;
}

/* capuchin sweep: the overhead of several planners over a range of budgets, and the lower bound. */
#include "tools/commands.h"

#include "tools/arguments.h"
#include "tools/exit_code.h"
#include "tools/output.h"
#include "tools/predict.h"
#include "tools/progress.h"
#include "tools/say.h"
#include "tools/subject.h"

#include "policy/bound.h"

#include <jansson.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEPS_MAX 101
#define CURVES_MAX 24

struct settings {
    struct arguments arguments;
    unsigned from;
    unsigned to;
    unsigned step;
    struct picture *picture; /* its curves' planners */
};

/* Percent over the ideal, by budget; below 0: no plan. */
struct curve {
    const struct planner *planner; /* NULL: the bound */
    double overhead[STEPS_MAX];
};

struct picture {
    struct curve curves[CURVES_MAX];
    unsigned curve_count;
    unsigned percent[STEPS_MAX];
    unsigned count;
};

enum option_key { KEY_PLANNERS = KEY_OWN, KEY_FROM, KEY_TO, KEY_STEP, KEY_QUICK };

static const char *name_of(const struct curve *curve)
{
    return curve->planner != NULL ? curve->planner->name : "bound";
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text);

    return length >= strlen(end) && strcmp(text + length - strlen(end), end) == 0;
}

static unsigned parse_percent(const char *option, const char *text, struct argp_state *state)
{
    double percent = arguments_percent(option, text, 1.0, 100.0, state);

    if (percent != (double)(unsigned)percent) {
        argp_error(state, "--%s %s: not a whole percentage", option, text);
    }
    return (unsigned)percent;
}

/* One curve per planner of the list. */
static void parse_planners(const char *list, struct picture *picture, struct argp_state *state)
{
    picture->curve_count = 0;
    for (const char *at = list; at != NULL;) {
        size_t length = strcspn(at, ",");
        const struct planner *planner = arguments_planner("planners", at, length, state);

        for (unsigned i = 0; i < picture->curve_count; i++) {
            if (picture->curves[i].planner == planner) {
                argp_error(state, "--planners %s: %s is listed twice", list, planner->name);
            }
        }
        picture->curves[picture->curve_count++].planner = planner;
        at = at[length] == ',' ? at + length + 1 : NULL;
    }
}

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    struct settings *settings = state->input;

    switch (key) {
    case KEY_OUTPUT:
        if (!ends_with(argument, ".svg") && !ends_with(argument, ".json")) {
            argp_error(state, "--output %s: the name must end in .svg or .json", argument);
        }
        settings->arguments.output = argument;
        return 0;
    case KEY_PLANNERS:
        parse_planners(argument, settings->picture, state);
        return 0;
    case KEY_FROM:
        settings->from = parse_percent("from", argument, state);
        return 0;
    case KEY_TO:
        settings->to = parse_percent("to", argument, state);
        return 0;
    case KEY_STEP:
        settings->step = parse_percent("step", argument, state);
        return 0;
    case KEY_QUICK:
        settings->arguments.effort = EFFORT_QUICK;
        return 0;
    case ARGP_KEY_END:
        if (settings->from > settings->to) {
            argp_error(state, "--from %u%% is above --to %u%%", settings->from, settings->to);
        }
        return arguments_parse(key, argument, &settings->arguments, state);
    default:
        return arguments_parse(key, argument, &settings->arguments, state);
    }
}

static double overhead_of(const struct subject *subject, const struct planner *planner,
                          uint64_t budget, enum planner_effort effort)
{
    uint64_t ns;

    return predict_iteration(planner, &subject->trace_index, &subject->machine, budget, effort, &ns,
                             NULL) == CAPU_OK
               ? predict_overhead(&subject->trace_index, ns)
               : -1.0;
}

static double bound_of(const struct subject *subject, uint64_t budget)
{
    const struct trace_index *trace_index = &subject->trace_index;

    return budget < trace_index->floor_bytes || subject->trace.total_ns == 0
               ? -1.0
               : predict_overhead(trace_index,
                                  bound_iteration(trace_index, &subject->machine, budget));
}

/* True: it was stopped; only budgets that every planner has finished are in the picture. */
static bool measure(const struct settings *settings, const struct subject *subject,
                    struct picture *picture)
{
    uint64_t peak = subject->trace_index.peak_bytes;
    struct curve *bound = &picture->curves[picture->curve_count];
    unsigned budgets = (settings->to - settings->from) / settings->step + 1;
    bool is_stopped = false;

    bound->planner = NULL;
    progress_begin("comparing planners", (uint64_t)budgets * picture->curve_count, 0.0);
    for (unsigned percent = settings->from; percent <= settings->to && !is_stopped;
         percent += settings->step) {
        uint64_t budget = peak / 100 * percent + peak % 100 * percent / 100;
        unsigned at = picture->count;

        for (unsigned i = 0; i < picture->curve_count && !is_stopped; i++) {
            progress_note("%s at %u %%", name_of(&picture->curves[i]), percent);
            picture->curves[i].overhead[at] = overhead_of(subject, picture->curves[i].planner,
                                                          budget, settings->arguments.effort);
            is_stopped = progress_should_stop(NULL);
            progress_step();
        }
        if (!is_stopped) {
            picture->percent[at] = percent;
            bound->overhead[at] = bound_of(subject, budget);
            picture->count++;
        }
    }
    picture->curve_count++;
    return progress_end();
}

static capu_status put_table(const struct picture *picture, struct string_buffer *text)
{
    capu_status status = string_buffer_format(text, "%-10s", "budget");

    for (unsigned at = 0; status == CAPU_OK && at < picture->count; at++) {
        status = string_buffer_format(text, " %6u%%", picture->percent[at]);
    }
    for (unsigned i = 0; status == CAPU_OK && i < picture->curve_count; i++) {
        status = string_buffer_format(text, "\n%-10s", name_of(&picture->curves[i]));
        for (unsigned at = 0; status == CAPU_OK && at < picture->count; at++) {
            double overhead = picture->curves[i].overhead[at];

            status = overhead < 0.0 ? string_buffer_format(text, " %7s", "-")
                                    : string_buffer_format(text, " %7.1f", overhead);
        }
    }
    return status == CAPU_OK ? string_buffer_append(text, "\n", 1) : status;
}

static capu_status put_json(const struct picture *picture, struct string_buffer *text)
{
    json_t *lists = json_object();
    json_t *percents = json_array();
    json_t *whole;
    char *dump;
    capu_status status = CAPU_NO_HOST_MEMORY;

    for (unsigned at = 0; at < picture->count; at++) {
        json_array_append_new(percents, json_integer(picture->percent[at]));
    }
    for (unsigned i = 0; i < picture->curve_count; i++) {
        json_t *list = json_array();

        for (unsigned at = 0; at < picture->count; at++) {
            double overhead = picture->curves[i].overhead[at];

            json_array_append_new(list, overhead < 0.0 ? json_null() : json_real(overhead));
        }
        json_object_set_new(lists, name_of(&picture->curves[i]), list);
    }
    whole = json_pack("{s:o,s:o}", "budget_percent", percents, "overhead_percent", lists);
    dump = json_dumps(whole, JSON_INDENT(1) | JSON_ENSURE_ASCII);
    if (dump != NULL) {
        status = string_buffer_format(text, "%s\n", dump);
    }
    free(dump);
    json_decref(whole);
    return status;
}

#define WIDTH 640.0
#define HEIGHT 400.0
#define MARGIN 50.0
#define OVERHEAD_SHOWN 100.0

static double x_of(const struct picture *picture, unsigned at)
{
    double low = picture->percent[0];
    double high = picture->percent[picture->count - 1];

    return MARGIN + (high > low ? (picture->percent[at] - low) / (high - low) : 0.5) * WIDTH;
}

static double y_of(double overhead)
{
    double shown = overhead < OVERHEAD_SHOWN ? overhead : OVERHEAD_SHOWN;

    return MARGIN + HEIGHT * (1.0 - shown / OVERHEAD_SHOWN);
}

static capu_status put_svg(const struct picture *picture, struct string_buffer *text)
{
    static const char *const colours[] = {"#0b6", "#d33", "#36c", "#c80", "#808",
                                          "#088", "#a52", "#555", "#e6a", "#7a0"};
    capu_status status = string_buffer_format(
        text,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" "
        "font-family=\"sans-serif\" "
        "font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
        "<text x=\"%g\" y=\"20\">overhead in %% (up to %g) against budget in %% of the "
        "peak</text>\n",
        WIDTH + 4 * MARGIN, HEIGHT + 2 * MARGIN, MARGIN, OVERHEAD_SHOWN);

    for (unsigned tick = 0; status == CAPU_OK && tick <= 5; tick++) {
        double overhead = OVERHEAD_SHOWN * tick / 5.0;

        status = string_buffer_format(
            text,
            "<line x1=\"%g\" x2=\"%g\" y1=\"%g\" y2=\"%g\" stroke=\"#ddd\"/>"
            "<text x=\"10\" y=\"%g\">%g</text>\n",
            MARGIN, MARGIN + WIDTH, y_of(overhead), y_of(overhead), y_of(overhead) + 4, overhead);
    }
    for (unsigned at = 0; status == CAPU_OK && at < picture->count; at++) {
        status =
            string_buffer_format(text, "<text x=\"%g\" y=\"%g\">%u</text>\n", x_of(picture, at) - 8,
                                 HEIGHT + MARGIN + 20, picture->percent[at]);
    }
    for (unsigned i = 0; status == CAPU_OK && i < picture->curve_count; i++) {
        const char *colour = colours[i % (sizeof(colours) / sizeof(colours[0]))];
        bool is_bound = i + 1 == picture->curve_count;

        status = string_buffer_format(
            text,
            "<text x=\"%g\" y=\"%g\" fill=\"%s\">%s</text>\n<polyline fill=\"none\" stroke=\"%s\" "
            "stroke-width=\"2\"%s points=\"",
            WIDTH + MARGIN + 15, MARGIN + 16.0 * (i + 1), is_bound ? "#000" : colour,
            name_of(&picture->curves[i]), is_bound ? "#000" : colour,
            is_bound ? " stroke-dasharray=\"4 3\"" : "");
        for (unsigned at = 0; status == CAPU_OK && at < picture->count; at++) {
            if (picture->curves[i].overhead[at] >= 0.0) {
                status = string_buffer_format(text, "%g,%g ", x_of(picture, at),
                                              y_of(picture->curves[i].overhead[at]));
            }
        }
        if (status == CAPU_OK) {
            status = string_buffer_format(text, "\"/>\n");
        }
    }
    return status == CAPU_OK ? string_buffer_format(text, "</svg>\n") : status;
}

static capu_status write_picture(const struct picture *picture, const char *output,
                                 struct string_buffer *text)
{
    return output == NULL              ? put_table(picture, text)
           : ends_with(output, ".svg") ? put_svg(picture, text)
                                       : put_json(picture, text);
}

static bool check_files(const struct arguments *arguments)
{
    const struct output_file files[] = {
        {"TRACE", arguments->trace, false},
        {"--machine", subject_machine_file(arguments->machine), false},
        {"--output", arguments->output, true},
    };

    return output_check(files, sizeof(files) / sizeof(files[0]));
}

int sweep_main(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"planners", KEY_PLANNERS, "NAME,...", 0, "Planners to compare (default: all)", 0},
        {"from", KEY_FROM, "N%", 0, "Smallest budget, as a percentage of the peak (default: 20%)",
         0},
        {"to", KEY_TO, "N%", 0, "Largest budget (default: 100%)", 0},
        {"step", KEY_STEP, "N%", 0, "Distance between budgets (default: 10%)", 0},
        {"quick", KEY_QUICK, NULL, 0, "Search less: quick effort", 0},
        {"machine", KEY_MACHINE, "NAME|FILE", 0, "Use this machine instead of the one in the trace",
         0},
        {"output", KEY_OUTPUT, "FILE.svg|.json", 0,
         "Write a picture or numbers to a file (default: print a table)", 0},
        {0}};
    static const struct argp argp = {
        options,
        parse_option,
        "TRACE",
        "Compares planners: the overhead of each over a range of budgets, and the lower bound.",
        NULL,
        NULL,
        NULL};
    static struct picture picture;
    struct settings settings = {
        .arguments = ARGUMENTS_INIT, .from = 20, .to = 100, .step = 10, .picture = &picture};
    struct arguments *arguments = &settings.arguments;
    const char *output;
    struct subject subject;
    struct string_buffer text = {0};
    capu_status status;
    bool is_stopped;
    bool is_fine;

    arguments->takes_trace = true;
    for (const struct planner *planner = planners; planner->name != NULL; planner++) {
        picture.curves[picture.curve_count++].planner = planner;
    }
    arguments_read(&argp, argc, argv, &settings);
    output = arguments->output;
    if (!check_files(arguments) ||
        !subject_load(&subject, arguments->trace, arguments->machine, 1)) {
        return EXIT_USAGE;
    }
    is_stopped = measure(&settings, &subject, &picture);
    if (picture.count == 0) { /* there is always a budget, so it was stopped */
        say("stopped before a budget was complete");
        subject_finish(&subject);
        return EXIT_STOPPED;
    }
    status = write_picture(&picture, output, &text);
    if (status != CAPU_OK) {
        say("out of memory");
    }
    is_fine = status == CAPU_OK && output_write(output, &text);
    if (is_fine && is_stopped) {
        say("stopped: the budgets above %u %% are missing", picture.percent[picture.count - 1]);
    }
    string_buffer_finish(&text);
    subject_finish(&subject);
    return !is_fine ? EXIT_USAGE : is_stopped ? EXIT_STOPPED : EXIT_FINE;
}

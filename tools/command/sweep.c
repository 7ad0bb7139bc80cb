/* capuchin sweep: the overhead of several planners over a range of budgets, and the lower bound. */
#include "tools/command/commands.h"

#include "tools/command/arguments.h"
#include "tools/output/output.h"
#include "tools/output/progress.h"
#include "tools/page/page.h"
#include "tools/predict/predict.h"

#include "policy/baselines/baselines.h"

#include <jansson.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct settings {
    struct arguments arguments;
    struct curves_range range;
    struct curves *curves; /* the planners */
};

enum option_key { KEY_PLANNERS = KEY_OWN, KEY_FROM, KEY_TO, KEY_STEP, KEY_QUICK };

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
static void parse_planners(const char *list, struct curves *curves, struct argp_state *state)
{
    curves->item_count = 0;
    for (const char *at = list; at != NULL;) {
        size_t length = strcspn(at, ",");
        const struct planner *planner = arguments_planner("planners", at, length, false, state);

        for (unsigned i = 0; i < curves->item_count; i++) {
            if (curves->items[i].planner == planner) {
                argp_error(state, "--planners %s: %s is listed twice", list, planner->name);
            }
        }
        curves->items[curves->item_count++].planner = planner;
        at = at[length] == ',' ? at + length + 1 : NULL;
    }
}

static error_t parse_sweep_option(int key, char *argument, struct argp_state *state)
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
        parse_planners(argument, settings->curves, state);
        return 0;
    case KEY_FROM:
        settings->range.from = parse_percent("from", argument, state);
        return 0;
    case KEY_TO:
        settings->range.to = parse_percent("to", argument, state);
        return 0;
    case KEY_STEP:
        settings->range.step = parse_percent("step", argument, state);
        return 0;
    case KEY_QUICK:
        settings->arguments.effort = EFFORT_QUICK;
        return 0;
    case ARGP_KEY_END:
        if (settings->range.from > settings->range.to) {
            argp_error(state, "--from %u%% is above --to %u%%", settings->range.from,
                       settings->range.to);
        }
        return arguments_parse(key, argument, &settings->arguments, state);
    default:
        return arguments_parse(key, argument, &settings->arguments, state);
    }
}

static capu_status put_table(const struct curves *curves, struct string_buffer *text)
{
    capu_status status = string_buffer_format(text, "%-10s", "budget");

    for (unsigned at = 0; status == CAPU_OK && at < curves->count; at++) {
        status = string_buffer_format(text, " %6u%%", curves->percent[at]);
    }
    for (unsigned i = 0; status == CAPU_OK && i < curves->item_count; i++) {
        status = string_buffer_format(text, "\n%-10s", curve_name(&curves->items[i]));
        for (unsigned at = 0; status == CAPU_OK && at < curves->count; at++) {
            double overhead = curves->items[i].overhead[at];

            status = overhead < 0.0 ? string_buffer_format(text, " %7s", "-")
                                    : string_buffer_format(text, " %7.1f", overhead);
        }
    }
    return status == CAPU_OK ? string_buffer_append(text, "\n", 1) : status;
}

static capu_status put_json(const struct curves *curves, struct string_buffer *text)
{
    json_t *lists = json_object();
    json_t *percents = json_array();
    json_t *whole;
    char *dump;
    capu_status status = CAPU_NO_HOST_MEMORY;

    for (unsigned at = 0; at < curves->count; at++) {
        json_array_append_new(percents, json_integer(curves->percent[at]));
    }
    for (unsigned i = 0; i < curves->item_count; i++) {
        json_t *list = json_array();

        for (unsigned at = 0; at < curves->count; at++) {
            double overhead = curves->items[i].overhead[at];

            json_array_append_new(list, overhead < 0.0 ? json_null() : json_real(overhead));
        }
        json_object_set_new(lists, curve_name(&curves->items[i]), list);
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

static double x_of(const struct curves *curves, unsigned at)
{
    double low = curves->percent[0];
    double high = curves->percent[curves->count - 1];

    return MARGIN + (high > low ? (curves->percent[at] - low) / (high - low) : 0.5) * WIDTH;
}

static double y_of(double overhead)
{
    double shown = overhead < OVERHEAD_SHOWN ? overhead : OVERHEAD_SHOWN;

    return MARGIN + HEIGHT * (1.0 - shown / OVERHEAD_SHOWN);
}

static capu_status put_svg(const struct curves *curves, struct string_buffer *text)
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
    for (unsigned at = 0; status == CAPU_OK && at < curves->count; at++) {
        status =
            string_buffer_format(text, "<text x=\"%g\" y=\"%g\">%u</text>\n", x_of(curves, at) - 8,
                                 HEIGHT + MARGIN + 20, curves->percent[at]);
    }
    for (unsigned i = 0; status == CAPU_OK && i < curves->item_count; i++) {
        const char *colour = colours[i % (sizeof(colours) / sizeof(colours[0]))];
        bool is_bound = i + 1 == curves->item_count;

        status = string_buffer_format(
            text,
            "<text x=\"%g\" y=\"%g\" fill=\"%s\">%s</text>\n<polyline fill=\"none\" stroke=\"%s\" "
            "stroke-width=\"2\"%s points=\"",
            WIDTH + MARGIN + 15, MARGIN + 16.0 * (i + 1), is_bound ? "#000" : colour,
            curve_name(&curves->items[i]), is_bound ? "#000" : colour,
            is_bound ? " stroke-dasharray=\"4 3\"" : "");
        for (unsigned at = 0; status == CAPU_OK && at < curves->count; at++) {
            if (curves->items[i].overhead[at] >= 0.0) {
                status = string_buffer_format(text, "%g,%g ", x_of(curves, at),
                                              y_of(curves->items[i].overhead[at]));
            }
        }
        if (status == CAPU_OK) {
            status = string_buffer_format(text, "\"/>\n");
        }
    }
    return status == CAPU_OK ? string_buffer_format(text, "</svg>\n") : status;
}

static capu_status write_picture(const struct curves *curves, const char *output,
                                 struct string_buffer *text)
{
    return output == NULL              ? put_table(curves, text)
           : ends_with(output, ".svg") ? put_svg(curves, text)
                                       : put_json(curves, text);
}

static bool check_sweep_files(const struct arguments *arguments)
{
    const struct output_file files[] = {
        {"TRACE", arguments->trace, false},
        {"--machine", subject_machine_file(arguments->machine), false},
        {"--output", arguments->output, true},
        {"--html", arguments->html, true},
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
        {"html", KEY_HTML, "FILE", 0, "Also write a page with the curves to FILE", 0},
        {0}};
    static const struct argp argp = {
        options,
        parse_sweep_option,
        "TRACE",
        "Compares planners: the overhead of each over a range of budgets, and the lower bound.",
        NULL,
        NULL,
        NULL};
    static struct curves curves;
    struct settings settings = {.arguments = ARGUMENTS_INIT,
                                .range = {.from = 20, .to = 100, .step = 10},
                                .curves = &curves};
    struct arguments *arguments = &settings.arguments;
    const char *output;
    struct subject subject;
    struct string_buffer text = {0};
    capu_status status;
    struct page page = {.command = "sweep", .subject = &subject, .curves = &curves};
    bool is_stopped;
    bool is_fine;

    arguments->takes_trace = true;
    while ((curves.items[curves.item_count].planner = baselines_planner_at(curves.item_count)) !=
           NULL) {
        curves.item_count++;
    }
    arguments_read(&argp, argc, argv, &settings);
    output = arguments->output;
    page.source = arguments->trace;
    if (!check_sweep_files(arguments) ||
        !subject_load(&subject, arguments->trace, arguments->machine, 1)) {
        return EXIT_USAGE;
    }
    is_stopped = curves_measure(&curves, &subject, &settings.range, arguments->effort);
    if (curves.count == 0) { /* there is always a budget, so it was stopped */
        say("stopped before a budget was complete");
        subject_finish(&subject);
        return EXIT_STOPPED;
    }
    status = write_picture(&curves, output, &text);
    if (status != CAPU_OK) {
        say("out of memory");
    }
    is_fine = status == CAPU_OK && output_write(output, &text) &&
              (arguments->html == NULL || page_write(arguments->html, &page));
    if (is_fine && is_stopped) {
        say("stopped: the budgets above %u %% are missing", curves.percent[curves.count - 1]);
    }
    string_buffer_finish(&text);
    subject_finish(&subject);
    return !is_fine ? EXIT_USAGE : is_stopped ? EXIT_STOPPED : EXIT_FINE;
}

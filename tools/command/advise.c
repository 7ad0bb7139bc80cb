/* capuchin advise: what would make an iteration faster within a budget, best first. advice.c finds
 * it. */
#include "tools/command/commands.h"

#include "tools/command/arguments.h"
#include "tools/output/output.h"
#include "tools/output/progress.h"
#include "tools/predict/advice.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static error_t parse_advise_option(int key, char *argument, struct argp_state *state)
{
    return arguments_parse(key, argument, state->input, state);
}

static double percent_of_ideal(const struct advice_list *list, double ns)
{
    return list->ideal_ns > 0 ? 100.0 * ns / (double)list->ideal_ns : 0.0;
}

static void print_advice_json(const struct advice_list *list)
{
    json_t *items = json_array();

    for (size_t i = 0; i < list->count; i++) {
        const struct advice *advice = &list->items[i];

        (void)json_array_append_new(
            items,
            json_pack("{s:s,s:I,s:I,s:f,s:I,s:I}", "change", advice->text.data, "iteration_ns",
                      (json_int_t)advice->iteration_ns, "gain_ns", (json_int_t)advice->gain_ns,
                      "gain", percent_of_ideal(list, (double)advice->gain_ns) / 100.0, "peak_bytes",
                      (json_int_t)advice->peak_bytes, "floor_bytes",
                      (json_int_t)advice->floor_bytes));
    }
    (void)output_json(
        stdout,
        json_pack("{s:I,s:I,s:I,s:s,s:o}", "iteration_ns", (json_int_t)list->iteration_ns,
                  "ideal_ns", (json_int_t)list->ideal_ns, "bound_ns", (json_int_t)list->bound_ns,
                  "causes", list->causes.data != NULL ? list->causes.data : "", "advice", items));
}

static void print_causes(const struct advice_list *list)
{
    const char *line = list->causes.data;

    if (line != NULL) {
        printf("\nwhy the program, and not its plan, needs the time\n");
    }
    while (line != NULL && *line != '\0') {
        size_t length = strcspn(line, "\n");

        printf("  %.*s\n", (int)length, line);
        line += length + (line[length] == '\n');
    }
}

static void print_list(const struct advice_list *list, uint64_t budget)
{
    char first[32];
    char second[32];

    printf("now: %s per iteration in %s, %.2f %% over the ideal (no plan is below %.2f %%)\n",
           human_ns(list->iteration_ns, first), human_bytes(budget, second),
           percent_of_ideal(list, (double)list->iteration_ns - (double)list->ideal_ns),
           percent_of_ideal(list, (double)list->bound_ns - (double)list->ideal_ns));
    print_causes(list);
    if (list->count == 0 && list->is_stopped) {
        return;
    }
    if (list->count == 0) {
        printf("\nno change that is known here makes it faster\n");
        return;
    }
    printf("\n  %12s %8s %12s %12s  %s\n", "saves", "points", "peak", "floor", "what to change");
    for (size_t i = 0; i < list->count; i++) {
        const struct advice *advice = &list->items[i];
        bool is_slower = advice->gain_ns < 0;
        uint64_t ns = (uint64_t)(is_slower ? -advice->gain_ns : advice->gain_ns);
        char size[32];
        char time[34];

        snprintf(time, sizeof(time), "%s%s", is_slower ? "-" : "", human_ns(ns, first));
        printf("  %12s %8.2f %12s %12s  %s\n", time,
               percent_of_ideal(list, (double)advice->gain_ns),
               human_bytes(advice->peak_bytes, second), human_bytes(advice->floor_bytes, size),
               advice->text.data);
    }
}

int advise_main(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"budget", KEY_BUDGET, "SIZE|N%", 0,
         "Device memory that plans may use, as a size or as a percentage of the peak without a "
         "plan",
         0},
        {"effort", KEY_EFFORT, "LEVEL", 0,
         "How hard to search for each plan: quick (default), default or best", 0},
        {"machine", KEY_MACHINE, "NAME|FILE", 0, "Use this machine instead of the one in the trace",
         0},
        {"page", KEY_PAGE, "BYTES", 0,
         "Page size: every tensor takes whole pages (default: 1 byte)", 0},
        {"json", KEY_JSON, NULL, 0, "Print JSON", 0},
        {0}};
    static const struct argp argp = {
        options,
        parse_advise_option,
        "TRACE --budget SIZE|N%",
        "Lists what would make iterations faster within a memory budget, best first. Each line is "
        "measured by a plan for the changed program.",
        NULL,
        NULL,
        NULL};
    struct arguments arguments = ARGUMENTS_INIT;
    struct error_text error = {""};
    struct advice_list list;
    struct subject subject;
    uint64_t budget;
    int code = EXIT_USAGE;

    arguments.takes_trace = true;
    arguments.needs_budget = true;
    arguments.effort = EFFORT_QUICK;
    arguments_read(&argp, argc, argv, &arguments);
    if (!subject_load(&subject, arguments.trace, arguments.machine,
                      arguments.page_bytes > 0 ? arguments.page_bytes : 1)) {
        return EXIT_USAGE;
    }
    if (arguments_budget(&arguments, subject.trace_index.peak_bytes, &budget)) {
        code = exit_code_of_plan(advice_find(&list, &subject, budget, arguments.effort, &error),
                                 &error);
        if (code == EXIT_FINE && arguments.as_json) {
            print_advice_json(&list);
        } else if (code == EXIT_FINE) {
            print_list(&list, budget);
        }
        if (code == EXIT_FINE) {
            if (list.is_stopped) {
                say("stopped: not all changes were tried");
                code = EXIT_STOPPED;
            }
            advice_finish(&list);
        }
    }
    subject_finish(&subject);
    return code;
}

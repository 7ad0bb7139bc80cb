/* capuchin top: shows running programs that offer their counters. */
#include "tools/command/commands.h"

#include "tools/command/arguments.h"
#include "tools/output/output.h"
#include "tools/top/top_source.h"
#include "tools/top/top_view.h"

#include <stdio.h>
#include <string.h>

enum { TABLE_COLUMNS = 100 };

struct settings {
    bool once;
    bool as_json;
    double seconds;
    const char *folder; /* NULL: the user's */
};

enum option_key { KEY_ONCE = KEY_OWN, KEY_INTERVAL, KEY_FOLDER };

static error_t parse_top_option(int key, char *argument, struct argp_state *state)
{
    struct settings *settings = state->input;

    switch (key) {
    case KEY_ONCE:
        settings->once = true;
        return 0;
    case KEY_JSON:
        settings->as_json = true;
        return 0;
    case KEY_INTERVAL:
        settings->seconds = arguments_seconds("interval", argument, state);
        if (settings->seconds < 0.1 || settings->seconds > 3600.0) {
            argp_error(state, "--interval %s: not between 0.1 and 3600 seconds", argument);
        }
        return 0;
    case KEY_FOLDER:
        settings->folder = argument;
        return 0;
    case ARGP_KEY_END:
        if (settings->as_json && !settings->once) {
            argp_error(state, "--json needs --once");
        }
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* The lines of the programs as they were received, and the texts of what is not shown. */
static bool print_programs_json(const struct top_snapshot *snapshot)
{
    json_t *rejected = json_array();
    const char *line = snapshot->rejected.data;

    while (line != NULL && *line != '\0') {
        size_t length = strcspn(line, "\n");

        (void)json_array_append_new(rejected, json_stringn(line, length));
        line += length + (line[length] == '\n');
    }
    return output_json(stdout,
                       json_pack("{s:O,s:o,s:I}", "programs", snapshot->programs, "rejected",
                                 rejected, "removed", (json_int_t)snapshot->removed));
}

static bool print_programs(const struct top_snapshot *snapshot)
{
    const struct top_style style = {.columns = TABLE_COLUMNS};
    struct string_buffer text = {0};
    bool is_fine = top_view(&text, snapshot, &style) == CAPU_OK;

    if (is_fine) {
        is_fine = output_write(NULL, &text);
    } else {
        say("out of memory");
    }
    string_buffer_finish(&text);
    return is_fine;
}

int top_main(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"once", KEY_ONCE, NULL, 0, "Print the programs as they are now, as a table, and end", 0},
        {"json", KEY_JSON, NULL, 0, "With --once: print one line of JSON", 0},
        {"interval", KEY_INTERVAL, "SECONDS", 0, "Time between updates of the screen (default: 1)",
         0},
        {"folder", KEY_FOLDER, "FOLDER", 0,
         "Look for sockets in FOLDER only, such as the runtime directory of a container", 0},
        {0}};
    static const struct argp argp = {
        options,
        parse_top_option,
        "",
        "Shows running programs of the same user: budget, memory by kind, plan, iteration times, "
        "use of the link and stalls. Programs are shown if they run with CAPUCHIN_TOP=1. Keys: q "
        "quits; up, down, page up, page down and home move.",
        NULL,
        NULL,
        NULL};
    struct settings settings = {.seconds = 1.0};
    struct top_snapshot snapshot;
    bool is_fine;

    arguments_read(&argp, argc, argv, &settings);
    if (!settings.once) {
        return top_screen_run(settings.folder, settings.seconds);
    }
    if (!top_snapshot_take(settings.folder, &snapshot)) {
        return EXIT_USAGE;
    }
    is_fine = settings.as_json ? print_programs_json(&snapshot) : print_programs(&snapshot);
    top_snapshot_finish(&snapshot);
    return is_fine ? EXIT_FINE : EXIT_USAGE;
}

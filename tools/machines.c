/* The machines the command knows: machines.jsonl, built into it. */
#include "tools/common.h"

#include "policy/lines.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

__asm__(".pushsection .rodata\n"
        "machines_begin: .incbin \"" MACHINES_FILE "\"\n"
        "machines_end:\n"
        ".popsection\n");
extern const char machines_begin[];
extern const char machines_end[];

/* Reads one machine line by giving it to the trace reader under a header of its own. */
static bool read_machine(const char *file, const char *line, size_t length, struct machine *machine)
{
    struct error_text error = {""};
    struct text text = {0};
    struct trace trace;
    bool is_fine = false;

    if (text_format(&text, "{\"type\":\"trace\",\"version\":1}\n") == CAPU_OK &&
        text_append(&text, line, length) == CAPU_OK &&
        trace_read(&trace, file, text.data, text.length, &error) == CAPU_OK) {
        is_fine = trace.has_machine;
        *machine = trace.machine;
        trace_finish(&trace);
    }
    if (!is_fine) {
        say("%s", error.text[0] != '\0' ? error.text : "no machine line");
    }
    text_finish(&text);
    return is_fine;
}

/* Calls `visit` with each built-in machine's line until it says true. */
static bool each_line(bool (*visit)(const json_t *machine, const char *line, size_t length,
                                    void *user),
                      void *user)
{
    struct lines lines;
    bool more = true;
    bool found = false;
    size_t from = 0;

    lines_init(&lines, "machines", machines_begin, (size_t)(machines_end - machines_begin), NULL);
    while (!found && lines_next(&lines, &more) == CAPU_OK && more) {
        found = visit(lines.value, lines.data + from, lines.offset - from, user);
        from = lines.offset;
    }
    lines_finish(&lines);
    return found;
}

struct wanted {
    const char *name;
    struct machine *machine;
};

static bool is_wanted(const json_t *machine, const char *line, size_t length, void *user)
{
    struct wanted *wanted = user;
    const char *name = json_string_value(json_object_get(machine, "name"));

    return name != NULL && strcmp(name, wanted->name) == 0 &&
           read_machine("machines", line, length, wanted->machine);
}

bool machine_load(const char *name, struct machine *machine)
{
    struct wanted wanted = {.name = name, .machine = machine};
    struct error_text error = {""};
    struct text text = {0};
    bool is_fine;

    if (each_line(is_wanted, &wanted)) {
        return true;
    }
    if (lines_load(name, &text, &error) != CAPU_OK || text.data == NULL) {
        say("no machine \"%s\", and no such file (capuchin machines lists them)", name);
        text_finish(&text);
        return false;
    }
    is_fine = read_machine(name, text.data, text.length, machine);
    text_finish(&text);
    return is_fine;
}

static bool print_machine(const json_t *machine, const char *line, size_t length, void *user)
{
    const bool *as_json = user;

    if (*as_json) {
        printf("%.*s", (int)length, line);
        return false;
    }
    printf("%-10s %s, %.0f GB/s out, %.0f GB/s in\n",
           json_string_value(json_object_get(machine, "name")),
           json_string_value(json_object_get(machine, "text")),
           (double)json_integer_value(json_object_get(machine, "d2h_bytes_per_s")) / 1e9,
           (double)json_integer_value(json_object_get(machine, "h2d_bytes_per_s")) / 1e9);
    return false;
}

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    bool *as_json = state->input;

    (void)argument;
    if (key != 'j') {
        return ARGP_ERR_UNKNOWN;
    }
    *as_json = true;
    return 0;
}

int machines_main(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"json", 'j', NULL, 0, "Machine lines as a trace holds them", 0}, {0}};
    static const struct argp argp = {
        options, parse_option, "", "Lists the machines known by name.", NULL, NULL, NULL};
    bool as_json = false;

    argp_parse(&argp, argc, argv, 0, NULL, &as_json);
    each_line(print_machine, &as_json);
    return EXIT_FINE;
}

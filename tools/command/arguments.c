/* Parses the options and arguments that several subcommands share. */
#include "tools/command/arguments.h"

#include "base/assert.h"
#include "capuchin/context.h"
#include "policy/baselines/baselines.h"
#include "tools/output/output.h"
#include "tools/page/page.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIST_BYTES = 256 };

/* A decimal number: no sign, exponent, blank, hexadecimal digits, "inf" or "nan", all of which
 * strtod accepts. *end points to the first character after it. */
static bool read_number(const char *text, double *number, const char **end)
{
    size_t length = strspn(text, "0123456789.");
    char *stop;

    *number = strtod(text, &stop);
    *end = text + length;
    return length > 0 && stop == *end;
}

static bool read_percent(const char *text, double *percent)
{
    const char *end;

    if (!read_number(text, percent, &end)) {
        return false;
    }
    end += strspn(end, " ");
    return *end == '\0' || strcmp(end, "%") == 0;
}

/* "a", "a or b", "a, b or c". */
static void list_words(const char *const *words, char list[static LIST_BYTES])
{
    size_t length = 0;

    list[0] = '\0';
    for (size_t i = 0; words[i] != NULL && length < LIST_BYTES; i++) {
        const char *between = i == 0 ? "" : words[i + 1] == NULL ? " or " : ", ";

        length += (size_t)snprintf(list + length, LIST_BYTES - length, "%s%s", between, words[i]);
    }
}

uint64_t arguments_bytes(const char *option, const char *text, uint64_t least,
                         struct argp_state *state)
{
    uint64_t bytes = 0;

    if (capu_parse_size(text, &bytes) != CAPU_OK) {
        argp_error(state, "--%s %s: not a size, such as 4G or 512 MiB", option, text);
    }
    if (bytes < least) {
        argp_error(state, "--%s %s: must be at least %" PRIu64, option, text, least);
    }
    return bytes;
}

uint64_t arguments_count(const char *option, const char *text, uint64_t most,
                         struct argp_state *state)
{
    char *end;
    unsigned long long count;

    errno = 0;
    count = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || count < 1 || count > most) {
        argp_error(state, "--%s %s: not a number from 1 to %" PRIu64, option, text, most);
    }
    return count;
}

double arguments_percent(const char *option, const char *text, double least, double most,
                         struct argp_state *state)
{
    double percent = 0.0;

    if (!read_percent(text, &percent) || percent < least || percent > most) {
        argp_error(state, "--%s %s: not a percentage from %.0f to %.0f", option, text, least, most);
    }
    return percent;
}

double arguments_seconds(const char *option, const char *text, struct argp_state *state)
{
    const char *end;
    double seconds = 0.0;

    if (!read_number(text, &seconds, &end) || *end != '\0' || seconds <= 0.0) {
        argp_error(state, "--%s %s: not a number of seconds above 0", option, text);
    }
    return seconds;
}

unsigned arguments_word(const char *option, const char *text, const char *const *words,
                        struct argp_state *state)
{
    char list[LIST_BYTES];

    for (unsigned i = 0; words[i] != NULL; i++) {
        if (strcmp(text, words[i]) == 0) {
            return i;
        }
    }
    list_words(words, list);
    argp_error(state, "--%s %s: not %s", option, text, list);
    return 0;
}

const struct planner *arguments_planner(const char *option, const char *name, size_t length,
                                        bool of_library, struct argp_state *state)
{
    const char *names[32] = {NULL};
    char list[LIST_BYTES];
    const struct planner *planner;

    for (size_t i = 0; (planner = baselines_planner_at(i)) != NULL; i++) {
        if (of_library && planner_find(planner->name) == NULL) {
            break;
        }
        if (strlen(planner->name) == length && memcmp(planner->name, name, length) == 0) {
            return planner;
        }
        if (i + 1 < sizeof(names) / sizeof(names[0])) {
            names[i] = planner->name;
        }
    }
    list_words(names, list);
    argp_error(state, "--%s %.*s: not %s", option, (int)length, name, list);
    return NULL;
}

const char *arguments_output(const char *path)
{
    return strcmp(path, "-") != 0 ? path : NULL;
}

static const char *arguments_html(const char *path, struct argp_state *state)
{
    if (!page_is_possible()) {
        argp_error(
            state,
            "--html %s: this command was built without dygraphs, which draws curves: install "
            "the Debian package libjs-dygraphs and build again",
            path);
    } else if (arguments_output(path) == NULL) {
        argp_error(state, "--html %s: a page is written to a file", path);
    }
    return path;
}

/* What argp adds on its own, except that its --help has no -h. */
static error_t parse_help(int key, char *argument, struct argp_state *state)
{
    (void)argument;
    switch (key) {
    case 'h':
    case '?':
        argp_state_help(state, stdout, ARGP_HELP_STD_HELP);
        return 0;
    case KEY_USAGE:
        argp_state_help(state, stdout, ARGP_HELP_USAGE | ARGP_HELP_EXIT_OK);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static void read_arguments(const struct argp *argp, int argc, char **argv, unsigned flags,
                           void *input)
{
    static const struct argp_option options[] = {
        {"help", 'h', NULL, 0, "Print this help", -1},
        {NULL, '?', NULL, OPTION_HIDDEN, NULL, -1},
        {"usage", KEY_USAGE, NULL, 0, "Print a short usage message", -1},
        {0}};
    static const struct argp help = {.options = options, .parser = parse_help};
    struct argp_child children[4] = {{0}};
    struct argp whole = *argp;
    size_t count = 0;

    while (argp->children != NULL && argp->children[count].argp != NULL) {
        children[count] = argp->children[count];
        count++;
        ASSERT(count + 1 < sizeof(children) / sizeof(children[0]));
    }
    children[count] = (struct argp_child){.argp = &help, .group = -1};
    whole.children = children;
    argp_parse(&whole, argc, argv, flags | ARGP_NO_HELP, NULL, input);
}

void arguments_read(const struct argp *argp, int argc, char **argv, void *input)
{
    read_arguments(argp, argc, argv, 0, input);
}

void arguments_read_first(const struct argp *argp, int argc, char **argv, void *input)
{
    read_arguments(argp, argc, argv, ARGP_IN_ORDER, input);
}

/* The first argument is the trace, the second one the plan if the subcommand takes one. */
static error_t take_file(char *path, struct arguments *arguments, struct argp_state *state)
{
    if (!arguments->takes_trace) {
        return ARGP_ERR_UNKNOWN;
    }
    if (arguments->trace == NULL) {
        arguments->trace = path;
    } else if (arguments->takes_plan && arguments->plan == NULL) {
        arguments->plan = path;
    } else {
        argp_error(state, "%s: too many arguments", path);
    }
    return 0;
}

error_t arguments_parse(int key, char *argument, struct arguments *arguments,
                        struct argp_state *state)
{
    switch (key) {
    case KEY_BUDGET:
        arguments->budget = argument;
        return 0;
    case KEY_MACHINE:
        arguments->machine = argument;
        return 0;
    case KEY_OUTPUT:
        arguments->output = arguments_output(argument);
        return 0;
    case KEY_PLANNER:
        arguments->planner = arguments_planner("planner", argument, strlen(argument),
                                               arguments->runs_library, state);
        return 0;
    case KEY_EFFORT:
        arguments->effort = (enum plan_effort)(
            EFFORT_QUICK + arguments_word("effort", argument, plan_effort_names, state));
        return 0;
    case KEY_HOST:
        arguments->host_bytes = arguments_bytes("host", argument, 0, state);
        return 0;
    case KEY_HTML:
        arguments->html = arguments_html(argument, state);
        return 0;
    case KEY_PAGE:
        arguments->page_bytes = arguments_bytes("page", argument, 1, state);
        return 0;
    case KEY_JSON:
        arguments->as_json = true;
        return 0;
    case ARGP_KEY_ARG:
        return take_file(argument, arguments, state);
    case ARGP_KEY_END:
        if (arguments->takes_trace && arguments->trace == NULL) {
            argp_error(state, "a TRACE is required");
        }
        if (arguments->needs_budget && arguments->budget == NULL) {
            argp_error(state, "--budget is required");
        }
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* Whole percentages are computed exactly, because planners try the same budgets. False: not a
 * percentage above 0 and up to 1000, or too large for 64 bits. */
static bool share_of(uint64_t whole, double percent, uint64_t *bytes)
{
    if (percent <= 0.0 || percent > 1000.0 || whole > UINT64_MAX / 10) {
        return false;
    }
    if (percent == (double)(uint64_t)percent) {
        *bytes = whole / 100 * (uint64_t)percent + whole % 100 * (uint64_t)percent / 100;
    } else {
        *bytes = (uint64_t)((double)whole * percent / 100.0);
    }
    return true;
}

bool arguments_budget(const struct arguments *arguments, uint64_t whole, uint64_t *bytes)
{
    const char *text = arguments->budget;
    size_t length;
    double percent;

    ASSERT(text != NULL);
    length = strlen(text);
    if (length > 0 && text[length - 1] == '%'
            ? read_percent(text, &percent) && share_of(whole, percent, bytes)
            : capu_parse_size(text, bytes) == CAPU_OK && *bytes > 0) {
        return true;
    }
    say("--budget %s: neither a size above 0 nor a percentage up to 1000", text);
    return false;
}

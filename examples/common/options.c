/* Parses the options that all training examples share. */
#include "examples/common/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum key {
    KEY_DEVICE = 0x1000,
    KEY_BUDGET,
    KEY_MODE,
    KEY_PLANNER,
    KEY_EFFORT,
    KEY_WAIT_FOR_PLAN,
    KEY_BATCH,
    KEY_STEPS,
    KEY_VALIDATE,
    KEY_SEED,
    KEY_LOSS_LOG,
    KEY_SAVE,
    KEY_REPORT,
    KEY_TRACE,
    KEY_PLAN,
    KEY_STRICT
};

static const struct argp_option option_table[] = {
    {NULL, 0, NULL, 0, "Training:", 10},
    {"batch", KEY_BATCH, "N", 0, "Samples per step", 10},
    {"steps", KEY_STEPS, "N", 0, "Number of training steps", 10},
    {"validate", KEY_VALIDATE, "N", 0, "Validate before training and after every N steps", 10},
    {"seed", KEY_SEED, "N", 0, "Seed for weights, data order and dropout (default 1)", 10},
    {NULL, 0, NULL, 0, "Memory:", 11},
    {"device", KEY_DEVICE, "NAME", 0, "Device: auto, host, sim or cuda (default auto)", 11},
    {"budget", KEY_BUDGET, "SIZE|N%|none", 0,
     "Limit on device memory: a size (512MiB, 4e9) or a percentage of what this run needs without "
     "a "
     "limit (default: CAPUCHIN_BUDGET, or none)",
     11},
    {"mode", KEY_MODE, "NAME", 0, "off, passive or guided (default: CAPUCHIN_MODE, or passive)",
     11},
    {"planner", KEY_PLANNER, "NAME", 0,
     "Planner of guided mode: hybrid, lru, swap, recompute or manual (default hybrid)", 11},
    {"effort", KEY_EFFORT, "NAME", 0, "How hard the planner searches: quick, default or best", 11},
    {"wait-for-plan", KEY_WAIT_FOR_PLAN, NULL, 0,
     "Wait for the plan instead of training without one while it is made", 11},
    {"strict", KEY_STRICT, NULL, 0, "Strict mode: expose wrong operand declarations; slow", 11},
    {NULL, 0, NULL, 0, "Files:", 12},
    {"loss-log", KEY_LOSS_LOG, "FILE", 0,
     "Write one line per step: its number, and the loss as a hexadecimal float", 12},
    {"save", KEY_SAVE, "FILE", 0, "Write the weights to FILE at the end", 12},
    {"report", KEY_REPORT, "FILE", 0, "Write one report per iteration to FILE, as JSON lines", 12},
    {"trace", KEY_TRACE, "FILE", 0, "Write a trace of one iteration to FILE", 12},
    {"plan", KEY_PLAN, "FILE", 0, "Write each new plan to FILE, which keeps the newest one", 12},
    {NULL, 0, NULL, 0, NULL, 0},
};

uint64_t options_number(struct argp_state *state, const char *name, const char *text, uint64_t low,
                        uint64_t high)
{
    char *end = NULL;
    unsigned long long value;

    errno = 0;
    value = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || errno != 0 || value < low || value > high) {
        argp_error(state, "--%s %s: not a whole number from %llu to %llu", name, text,
                   (unsigned long long)low, (unsigned long long)high);
    }
    return value;
}

static void parse_budget(struct options *options, const char *text, struct argp_state *state)
{
    size_t length = strlen(text);

    if (strcmp(text, "none") == 0) {
        options->budget_kind = BUDGET_NONE;
        return;
    }
    if (length > 1 && text[length - 1] == '%') {
        char digits[16] = "";

        if (length < sizeof(digits)) {
            memcpy(digits, text, length - 1);
        }
        options->budget_kind = BUDGET_PERCENT;
        options->budget_percent = (unsigned)options_number(state, "budget", digits, 1, 1000);
        return;
    }
    if (capu_parse_size(text, &options->budget_bytes) != CAPU_OK || options->budget_bytes == 0) {
        argp_error(state, "--budget %s: not a size (512MiB, 4e9), a percentage or none", text);
    }
    options->budget_kind = BUDGET_BYTES;
}

static void parse_mode(struct options *options, const char *text, struct argp_state *state)
{
    static const struct {
        const char *name;
        capu_mode mode;
    } modes[] = {
        {"off", CAPU_MODE_OFF}, {"passive", CAPU_MODE_PASSIVE}, {"guided", CAPU_MODE_GUIDED}};

    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        if (strcmp(text, modes[i].name) == 0) {
            options->mode = modes[i].mode;
            return;
        }
    }
    argp_error(state, "--mode %s: not off, passive or guided", text);
}

/* To the library an empty text means that nothing is set. */
static const char *given(const char *text, const char *option, struct argp_state *state)
{
    if (text[0] == '\0') {
        argp_error(state, "--%s: it is empty", option);
    }
    return text;
}

static void parse_effort(struct options *options, const char *text, struct argp_state *state)
{
    capu_config config = CAPU_CONFIG_INIT;

    if (text[0] == '\0' || capu_config_set(&config, "effort", text) != CAPU_OK) {
        argp_error(state, "--effort %s: not quick, default or best", text);
    }
    options->effort = text;
}

static void parse_device(struct options *options, const char *text, struct argp_state *state)
{
    static const char *const names[] = {"auto", "host", "sim", "cuda"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(text, names[i]) == 0) {
            options->device = names[i];
            return;
        }
    }
    argp_error(state, "--device %s: not auto, host, sim or cuda", text);
}

/* The options of files and plans. */
static error_t parse_rest(int key, char *argument, struct argp_state *state)
{
    struct options *options = state->input;

    switch (key) {
    case KEY_PLANNER:
        options->planner = given(argument, "planner", state); /* the library checks the name */
        return 0;
    case KEY_EFFORT:
        parse_effort(options, argument, state);
        return 0;
    case KEY_WAIT_FOR_PLAN:
        options->waits_for_plan = true;
        return 0;
    case KEY_LOSS_LOG:
        options->loss_log = argument;
        return 0;
    case KEY_SAVE:
        options->save = argument;
        return 0;
    case KEY_REPORT:
        options->report = argument;
        return 0;
    case KEY_TRACE:
        options->trace = argument;
        return 0;
    case KEY_PLAN:
        options->plan = given(argument, "plan", state);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct options *options = state->input;

    switch (key) {
    case KEY_DEVICE:
        parse_device(options, argument, state);
        return 0;
    case KEY_BUDGET:
        parse_budget(options, argument, state);
        return 0;
    case KEY_MODE:
        parse_mode(options, argument, state);
        return 0;
    case KEY_BATCH:
        options->batch = (uint32_t)options_number(state, "batch", argument, 1, 65536);
        return 0;
    case KEY_STEPS:
        options->steps = (uint32_t)options_number(state, "steps", argument, 1, 1000000000);
        return 0;
    case KEY_VALIDATE:
        options->validate_every =
            (uint32_t)options_number(state, "validate", argument, 1, 1000000000);
        return 0;
    case KEY_SEED:
        options->seed = options_number(state, "seed", argument, 0, UINT64_MAX);
        return 0;
    case KEY_STRICT:
        options->is_strict = true;
        return 0;
    default:
        return parse_rest(key, argument, state);
    }
}

enum element options_dtype(struct argp_state *state, const char *text)
{
    enum element element = strcmp(text, "bf16") == 0 ? ELEMENT_BF16 : ELEMENT_FP32;

    if (element == ELEMENT_FP32 && strcmp(text, "fp32") != 0) {
        argp_error(state, "--dtype %s: not fp32 or bf16", text);
    }
    return element;
}

const struct argp options_argp = {.options = option_table, .parser = parse};

void options_parse(const struct argp *argp, int argc, char **argv, void *input)
{
    argp_err_exit_status = OPTIONS_EXIT_USAGE;
    if (argp_parse(argp, argc, argv, 0, NULL, input) != 0) {
        exit(OPTIONS_EXIT_USAGE);
    }
}

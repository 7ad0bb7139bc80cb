/* Which network, how, and on what: options. */
#include "tools/zoo_options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct argp_option options[] = {
    {"machine", 'm', "NAME|FILE", 0, "On this machine (capuchin machines lists them)", 0},
    {"dtype", ZOO_KEY_DTYPE, "TYPE", 0, "fp32 (default), tf32, fp16 or bf16", 0},
    {"update", ZOO_KEY_UPDATE, "WHEN", 0,
     "Parameters are updated at the end (default), or asap: each once its gradient is complete", 0},
    {"granularity", ZOO_KEY_GRANULARITY, "WHAT", 0, "op (default), or layer: ops merged", 0},
    {"attention", ZOO_KEY_ATTENTION, "HOW", 0,
     "fused (default), or saved: single ops, which keep their matrices for backward", 0},
    {"sequence", ZOO_KEY_SEQUENCE, "N", 0, "Tokens a sample, where the model takes tokens", 0},
    {"image", ZOO_KEY_IMAGE, "N", 0, "Pixels of an edge, where it takes images", 0},
    {0}};

/* Which of the two words it is; leaves with an error for any other. */
static bool is_second(const char *text, const char *first, const char *second, const char *option,
                      struct argp_state *state)
{
    if (strcmp(text, first) != 0 && strcmp(text, second) != 0) {
        argp_error(state, "--%s %s: not %s or %s", option, text, first, second);
    }
    return strcmp(text, second) == 0;
}

static enum dtype parse_dtype(const char *text, struct argp_state *state)
{
    for (unsigned i = 0; i < DTYPE_COUNT; i++) {
        if (strcmp(text, dtype_name((enum dtype)i)) == 0) {
            return (enum dtype)i;
        }
    }
    argp_error(state, "--dtype %s: not fp32, tf32, fp16 or bf16", text);
    return DTYPE_FP32;
}

bool parse_count(const char *text, uint64_t most, uint64_t *count)
{
    char *end;
    unsigned long long value;

    errno = 0;
    value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || value < 1 || value > most) {
        return false;
    }
    *count = value;
    return true;
}

bool parse_effort_name(const char *text, enum planner_effort *effort)
{
    static const char *const names[EFFORT_COUNT] = {"quick", "default", "best"};

    for (unsigned i = 0; i < EFFORT_COUNT; i++) {
        if (strcmp(text, names[i]) == 0) {
            *effort = (enum planner_effort)i;
            return true;
        }
    }
    return false;
}

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    struct zoo_settings *settings = state->input;
    struct zoo_options *own = &settings->options;

    switch (key) {
    case 'm':
        settings->machine = argument;
        return 0;
    case ZOO_KEY_DTYPE:
        own->dtype = parse_dtype(argument, state);
        return 0;
    case ZOO_KEY_UPDATE:
        own->updates_asap = is_second(argument, "end", "asap", "update", state);
        return 0;
    case ZOO_KEY_GRANULARITY:
        own->by_layer = is_second(argument, "op", "layer", "granularity", state);
        return 0;
    case ZOO_KEY_ATTENTION:
        own->saves_matrix = is_second(argument, "fused", "saved", "attention", state);
        return 0;
    case ZOO_KEY_SEQUENCE:
        if (!parse_count(argument, ZOO_BATCH_MAX, &own->sequence)) {
            argp_error(state, "--sequence %s: not a number from 1 to %" PRIu64, argument,
                       ZOO_BATCH_MAX);
        }
        return 0;
    case ZOO_KEY_IMAGE:
        if (!parse_count(argument, ZOO_BATCH_MAX, &own->image)) {
            argp_error(state, "--image %s: not a number from 1 to %" PRIu64, argument,
                       ZOO_BATCH_MAX);
        }
        return 0;
    case ARGP_KEY_ARG:
        if (settings->model != NULL) {
            return ARGP_ERR_UNKNOWN;
        }
        settings->model = argument;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp zoo_argp = {options, parse_option, NULL, NULL, NULL, NULL, NULL};

void zoo_print_list(FILE *file)
{
    for (const struct zoo_model *model = zoo_models; model->name != NULL; model++) {
        fprintf(file, "  %-12s %s, %s %" PRIu64 "\n", model->name, model->text,
                model->sequence != 0 ? "sequence" : "image",
                model->sequence != 0 ? model->sequence : model->image);
    }
}

bool zoo_settings_find(const struct zoo_settings *settings, const struct zoo_model **model,
                       struct hardware *hardware)
{
    struct error_text error = {""};

    *model = zoo_find(settings->model);
    if (*model == NULL) {
        say("no model \"%s\". There are:", settings->model);
        zoo_print_list(stderr);
        return false;
    }
    if (settings->machine == NULL) {
        say("on which machine? --machine NAME (capuchin machines lists them)");
        return false;
    }
    if (hardware_load(hardware, settings->machine, &error) != CAPU_OK) {
        say("%s", error.text[0] != '\0' ? error.text : "out of memory");
        return false;
    }
    return true;
}

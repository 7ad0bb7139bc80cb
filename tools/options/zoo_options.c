/* The options that select a network, its variant and a machine. */
#include "tools/options/zoo_options.h"

#include "tools/output/output.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct argp_option options[] = {
    {"machine", KEY_MACHINE, "NAME|FILE", 0, "Machine ('capuchin machines' lists them)", 0},
    {"dtype", ZOO_KEY_DTYPE, "TYPE", 0, "Data type: fp32 (default), tf32, fp16 or bf16", 0},
    {"update", ZOO_KEY_UPDATE, "WHEN", 0,
     "When parameters are updated: end (default), after the backward pass; or asap, each as soon "
     "as "
     "its gradient is complete",
     0},
    {"granularity", ZOO_KEY_GRANULARITY, "WHAT", 0,
     "op (default); or layer, which merges the ops of a layer", 0},
    {"attention", ZOO_KEY_ATTENTION, "HOW", 0,
     "fused (default); or saved, single ops that keep the attention matrix for the backward pass",
     0},
    {"sequence", ZOO_KEY_SEQUENCE, "N", 0, "Tokens per sample, for models of text", 0},
    {"image", ZOO_KEY_IMAGE, "N", 0,
     "Width and height of the images in pixels, for models of images", 0},
    {0}};

/* Whether it is the second of two words. */
static bool is_second(const char *option, const char *text, const char *first, const char *second,
                      struct argp_state *state)
{
    const char *const words[] = {first, second, NULL};

    return arguments_word(option, text, words, state) == 1;
}

static enum dtype parse_dtype(const char *text, struct argp_state *state)
{
    const char *names[DTYPE_COUNT + 1] = {NULL};

    for (unsigned i = 0; i < DTYPE_COUNT; i++) {
        names[i] = dtype_name((enum dtype)i);
    }
    return (enum dtype)arguments_word("dtype", text, names, state);
}

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    struct zoo_settings *settings = state->input;
    struct zoo_options *own = &settings->options;

    switch (key) {
    case KEY_MACHINE:
        settings->machine = argument;
        return 0;
    case ZOO_KEY_DTYPE:
        own->dtype = parse_dtype(argument, state);
        return 0;
    case ZOO_KEY_UPDATE:
        own->updates_asap = is_second("update", argument, "end", "asap", state);
        return 0;
    case ZOO_KEY_GRANULARITY:
        own->by_layer = is_second("granularity", argument, "op", "layer", state);
        return 0;
    case ZOO_KEY_ATTENTION:
        own->saves_matrix = is_second("attention", argument, "fused", "saved", state);
        return 0;
    case ZOO_KEY_SEQUENCE:
        own->sequence = arguments_count("sequence", argument, ZOO_BATCH_MAX, state);
        return 0;
    case ZOO_KEY_IMAGE:
        own->image = arguments_count("image", argument, ZOO_BATCH_MAX, state);
        return 0;
    case ARGP_KEY_ARG:
        if (settings->model != NULL) {
            argp_error(state, "%s: too many arguments", argument);
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
        say("there is no model \"%s\". The models are:", settings->model);
        zoo_print_list(stderr);
        return false;
    }
    if (settings->machine == NULL) {
        say("--machine is required ('capuchin machines' lists the machines)");
        return false;
    }
    if (hardware_load(hardware, settings->machine, &error) != CAPU_OK) {
        say_error(&error);
        return false;
    }
    return true;
}

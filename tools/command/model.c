/* capuchin model: writes the trace of a known network, computed from the shapes of its layers. */
#include "tools/command/commands.h"

#include "tools/command/arguments.h"
#include "tools/output/output.h"
#include "tools/predict/predict.h"

#include <inttypes.h>
#include <stdio.h>

struct settings {
    struct zoo_settings zoo;
    const char *output;
    bool lists;
};

enum option_key { KEY_LIST = KEY_OWN };

static error_t parse_model_option(int key, char *argument, struct argp_state *state)
{
    struct settings *settings = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &settings->zoo;
        return 0;
    case 'b':
        settings->zoo.options.batch = arguments_count("batch", argument, ZOO_BATCH_MAX, state);
        return 0;
    case KEY_OUTPUT:
        settings->output = arguments_output(argument);
        return 0;
    case KEY_LIST:
        settings->lists = true;
        return 0;
    case ARGP_KEY_END:
        if (!settings->lists && settings->zoo.model == NULL) {
            argp_error(state, "a MODEL is required");
        }
        if (!settings->lists && settings->zoo.options.batch == 0) {
            argp_error(state, "--batch is required");
        }
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* Summarizes the trace for people. */
static void report_model(const struct settings *settings, const struct trace *trace,
                         const struct trace_index *trace_index, const struct zoo_summary *summary)
{
    FILE *file = settings->output != NULL ? stdout : stderr;
    char bytes[32];
    char time[32];

    fprintf(file,
            "%s: %" PRIu32 " ops, %" PRIu32
            " tensors, %.3f M parameters, %.2f TFLOP per iteration\n",
            trace_text(trace, trace->name), trace->op_count, trace->tensor_count,
            (double)summary->parameter_count / 1e6, summary->flops / 1e12);
    fprintf(file, "%s per iteration, peak %s", human_ns(trace->total_ns, time),
            human_bytes(trace_index->peak_bytes, bytes));
    fprintf(file, " of %s, largest op", human_bytes(trace->machine.memory_bytes, bytes));
    fprintf(file, " %s\n", human_bytes(trace_index->floor_bytes, bytes));
}

static int build_and_write(const struct settings *settings, const struct zoo_model *model,
                           const struct hardware *hardware)
{
    struct zoo_summary summary = {0};
    struct error_text error = {""};
    struct string_buffer text = {0};
    struct trace_index trace_index = {0};
    struct trace trace;
    capu_status status =
        zoo_build(model, &settings->zoo.options, hardware, &trace, &summary, &error);
    bool is_fine = false;

    if (status == CAPU_OK) {
        status = trace_index_init(&trace_index, &trace, 1, &error);
    }
    if (status == CAPU_OK) {
        status = trace_write(&trace, &text, &error);
    }
    if (status == CAPU_OK) {
        is_fine = output_write(settings->output, &text);
    } else {
        say("%s: %s", model->name, error.text[0] != '\0' ? error.text : "out of memory");
    }
    if (is_fine) {
        report_model(settings, &trace, &trace_index, &summary);
    }
    string_buffer_finish(&text);
    trace_index_finish(&trace_index);
    trace_finish(&trace);
    return is_fine ? EXIT_FINE : EXIT_USAGE;
}

static bool check_model_files(const struct settings *settings)
{
    const struct output_file files[] = {
        {"--machine", subject_machine_file(settings->zoo.machine), false},
        {"--output", settings->output, true},
    };

    return output_check(files, sizeof(files) / sizeof(files[0]));
}

int model_main(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"batch", 'b', "N", 0, "Samples per iteration", 0},
        {"output", KEY_OUTPUT, "FILE", 0,
         "Write the trace to FILE (default, and if FILE is -: standard output)", 0},
        {"list", KEY_LIST, NULL, 0, "List the models", 0},
        {0}};
    static const struct argp_child children[] = {{&zoo_argp, 0, NULL, 0}, {0}};
    static const struct argp argp = {
        options,
        parse_model_option,
        "MODEL --batch N --machine NAME",
        "Writes the trace of a training iteration of a known network. Ops and tensors follow from "
        "the "
        "shapes of its layers, times from the peak rates of the machine.",
        children,
        NULL,
        NULL};
    struct settings settings = {0};
    const struct zoo_model *model;
    struct hardware hardware;

    arguments_read(&argp, argc, argv, &settings);
    if (settings.lists) {
        zoo_print_list(stdout);
        return EXIT_FINE;
    }
    if (!check_model_files(&settings) || !zoo_settings_find(&settings.zoo, &model, &hardware)) {
        return EXIT_USAGE;
    }
    return build_and_write(&settings, model, &hardware);
}

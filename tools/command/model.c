/*
 * Known networks and machines: capuchin model writes the trace of a network, computed from the
 * shapes of its layers; maxbatch finds the largest batch that a planner can train on a machine
 * (models/largest.c has the search); machines lists the machines.
 */
#include "tools/command/commands.h"

#include "base/printable.h"
#include "models/hardware.h"
#include "models/largest.h"
#include "models/zoo.h"
#include "tools/command/arguments.h"
#include "tools/output/output.h"
#include "tools/output/progress.h"
#include "tools/predict/predict.h"

#include <argp.h>
#include <inttypes.h>
#include <stdio.h>

/* The options of model and maxbatch: the network, its variant and the machine. */

struct zoo_settings {
    const char *model; /* NULL: not named yet */
    const char *machine;
    struct zoo_options options;
};

enum zoo_key {
    ZOO_KEY_DTYPE = 512,
    ZOO_KEY_UPDATE,
    ZOO_KEY_GRANULARITY,
    ZOO_KEY_ATTENTION,
    ZOO_KEY_SEQUENCE,
    ZOO_KEY_IMAGE
};

static const struct argp_option zoo_argp_options[] = {
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

static error_t parse_zoo_option(int key, char *argument, struct argp_state *state)
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

/* A child parser, whose input is a struct zoo_settings: the options and the argument MODEL. */
static const struct argp zoo_argp = {
    zoo_argp_options, parse_zoo_option, NULL, NULL, NULL, NULL, NULL};

/* One model per line. */
static void zoo_print_list(FILE *file)
{
    for (const struct zoo_model *model = zoo_models; model->name != NULL; model++) {
        fprintf(file, "  %-12s %s, %s %" PRIu64 "\n", model->name, model->text,
                model->sequence != 0 ? "sequence" : "image",
                model->sequence != 0 ? model->sequence : model->image);
    }
}

/* Finds the model and the machine by name. False: an error has been printed, with the known names.
 */
static bool zoo_settings_find(const struct zoo_settings *settings, const struct zoo_model **model,
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

/* capuchin model. */

struct model_settings {
    struct zoo_settings zoo;
    const char *output;
    bool lists;
};

enum { KEY_LIST = KEY_OWN };

static error_t parse_model_option(int key, char *argument, struct argp_state *state)
{
    struct model_settings *settings = state->input;

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
static void report_model(const struct model_settings *settings, const struct trace *trace,
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

static int build_and_write(const struct model_settings *settings, const struct zoo_model *model,
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

static bool check_model_files(const struct model_settings *settings)
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
    struct model_settings settings = {0};
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

/* capuchin maxbatch. */

struct maxbatch_settings {
    struct zoo_settings zoo;
    struct arguments arguments;
    double overhead;
};

enum { KEY_OVERHEAD = KEY_OWN };

static error_t parse_maxbatch_option(int key, char *argument, struct argp_state *state)
{
    struct maxbatch_settings *settings = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &settings->zoo;
        return 0;
    case KEY_OVERHEAD:
        settings->overhead = arguments_percent("overhead", argument, 0.0, 1e6, state) / 100.0;
        return 0;
    case ARGP_KEY_END:
        if (settings->zoo.model == NULL) {
            argp_error(state, "a MODEL is required");
        }
        return 0;
    default:
        return arguments_parse(key, argument, &settings->arguments, state);
    }
}

/* For the time left. */
struct watch {
    uint64_t tried;
};

/* A batch takes about as long as those before it. */
static void show_left(uint64_t left, void *user)
{
    const struct watch *watch = user;

    if (watch->tried > 0) {
        progress_set_left(progress_seconds() / (double)watch->tried * (double)left);
    }
}

static void show_try(uint64_t batch, double overhead, void *user)
{
    struct watch *watch = user;

    watch->tried++;
    if (overhead < 0.0) {
        progress_note("batch %" PRIu64 ": no plan", batch);
    } else {
        progress_note("batch %" PRIu64 ": %.2f %% over the ideal", batch, 100.0 * overhead);
    }
}

struct answer {
    struct largest without;
    struct largest with;
    uint64_t possible;
};

static double samples_per_s(const struct largest *largest)
{
    return largest->iteration_ns > 0 ? (double)largest->batch * 1e9 / (double)largest->iteration_ns
                                     : 0.0;
}

static void report_largest(const struct maxbatch_settings *settings,
                           const struct largest_request *request, const struct answer *answer)
{
    char name[PRINTABLE_BYTES];
    char text[32];

    if (settings->arguments.as_json) {
        (void)output_json(
            stdout, json_pack("{s:s,s:s,s:I,s:s,s:f,s:I,s:f,s:I,s:f,s:I,s:I}", "model",
                              request->model->name, "machine", request->hardware->machine.name,
                              "budget_bytes", (json_int_t)request->budget_bytes, "planner",
                              request->planner->name, "overhead_limit", request->overhead, "batch",
                              (json_int_t)answer->with.batch, "overhead", answer->with.overhead,
                              "iteration_ns", (json_int_t)answer->with.iteration_ns,
                              "samples_per_s", samples_per_s(&answer->with), "batch_without_plan",
                              (json_int_t)answer->without.batch, "batch_possible",
                              (json_int_t)answer->possible));
        return;
    }
    printf("%s on %s in %s\n", request->model->name,
           printable(request->hardware->machine.name, name),
           human_bytes(request->budget_bytes, text));
    printf("without a plan: batch %" PRIu64 ", %.1f samples/s\n", answer->without.batch,
           samples_per_s(&answer->without));
    printf("%s, at most %.4g %% over the ideal: ", request->planner->name,
           100.0 * request->overhead);
    if (answer->with.batch == 0) {
        printf("not even a single sample\n");
    } else {
        printf("batch %" PRIu64, answer->with.batch);
        if (answer->without.batch > 0) {
            printf(" (%.2f x)", (double)answer->with.batch / (double)answer->without.batch);
        }
        printf(", %.2f %% over, %.1f samples/s\n", 100.0 * answer->with.overhead,
               samples_per_s(&answer->with));
    }
    printf("the largest op fits up to batch %" PRIu64 "\n", answer->possible);
}

static int search_and_report(const struct maxbatch_settings *settings,
                             struct largest_request *request)
{
    struct largest_request plain = *request;
    struct error_text error = {""};
    struct answer answer;
    struct watch watch = {0};
    bool is_stopped;
    capu_status status;

    progress_begin("searching", 0, 0.0);
    plain.planner = NULL;
    request->tried = show_try;
    request->trying = show_left;
    request->user = &watch;
    request->should_stop = progress_should_stop;
    status = largest_batch(&plain, &answer.without, &error);
    if (status == CAPU_OK) {
        status = largest_possible(&plain, &answer.possible, &error);
    }
    if (status == CAPU_OK) {
        status = largest_batch(request, &answer.with, &error);
    }
    is_stopped = progress_end();
    if (status != CAPU_OK) {
        say("%s: %s", request->model->name, error.text[0] != '\0' ? error.text : "out of memory");
        return EXIT_USAGE;
    }
    report_largest(settings, request, &answer);
    if (is_stopped) {
        say("stopped: a larger batch may be possible");
        return EXIT_STOPPED;
    }
    if (answer.with.batch > 0) {
        return EXIT_FINE;
    }
    say("%s found no batch of %s for this budget", request->planner->name, request->model->name);
    return answer.possible == 0 ? EXIT_NO_PLAN : EXIT_NONE_FOUND;
}

int maxbatch_main(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"overhead", KEY_OVERHEAD, "N%", 0,
         "Time that may be lost, as a percentage of the ideal (default: 5%)", 0},
        {"budget", KEY_BUDGET, "SIZE|N%", 0,
         "Device memory, as a size or as a percentage of the machine's (default: 100%)", 0},
        {"planner", KEY_PLANNER, "NAME", 0,
         "Planner (default: hybrid); 'capuchin plan --help' lists them", 0},
        {"effort", KEY_EFFORT, "LEVEL", 0, "How hard to search: quick, default or best", 0},
        {"json", KEY_JSON, NULL, 0, "Print JSON", 0},
        {0}};
    static const struct argp_child children[] = {{&zoo_argp, 0, NULL, 0}, {0}};
    static const struct argp argp = {
        options,
        parse_maxbatch_option,
        "MODEL --machine NAME",
        "Finds the largest batch that a planner can train in a machine's memory with an acceptable "
        "loss of time, and the largest batch that needs no plan.",
        children,
        NULL,
        NULL};
    struct maxbatch_settings settings = {.arguments = ARGUMENTS_INIT, .overhead = 0.05};
    struct largest_request request;
    struct hardware hardware;
    uint64_t whole;

    arguments_read(&argp, argc, argv, &settings);
    request = (struct largest_request){.options = &settings.zoo.options,
                                       .hardware = &hardware,
                                       .planner = settings.arguments.planner,
                                       .effort = settings.arguments.effort,
                                       .overhead = settings.overhead};
    if (!zoo_settings_find(&settings.zoo, &request.model, &hardware)) {
        return EXIT_USAGE;
    }
    whole = hardware.machine.memory_bytes;
    request.budget_bytes = whole;
    if (settings.arguments.budget != NULL &&
        !arguments_budget(&settings.arguments, whole, &request.budget_bytes)) {
        return EXIT_USAGE;
    }
    return search_and_report(&settings, &request);
}

/* capuchin machines. */

static bool print_machines_json(const struct hardware *hardware)
{
    const struct machine *machine = &hardware->machine;
    json_t *line = json_pack("{s:s,s:s,s:I,s:I,s:I,s:I}", "type", "machine", "name", machine->name,
                             "memory_bytes", (json_int_t)machine->memory_bytes, "d2h_bytes_per_s",
                             (json_int_t)machine->d2h_bytes_per_s, "h2d_bytes_per_s",
                             (json_int_t)machine->h2d_bytes_per_s, "copy_latency_ns",
                             (json_int_t)machine->copy_latency_ns);
    json_t *rest = json_pack("{s:I,s:I,s:I,s:I,s:s}", "memory_bytes_per_s",
                             (json_int_t)hardware->memory_bytes_per_s, "product_percent",
                             (json_int_t)hardware->product_percent, "memory_percent",
                             (json_int_t)hardware->memory_percent, "launch_ns",
                             (json_int_t)hardware->launch_ns, "text", hardware->text);

    for (unsigned i = 0; i < DTYPE_COUNT; i++) {
        char key[32];

        snprintf(key, sizeof(key), "%s_flops_per_s", dtype_name((enum dtype)i));
        if (hardware->flops_per_s[i] != 0) {
            (void)json_object_set_new(line, key,
                                      json_integer((json_int_t)hardware->flops_per_s[i]));
        }
    }
    (void)json_object_update(line, rest);
    json_decref(rest);
    return output_json(stdout, line);
}

static void print_machine(const struct hardware *hardware)
{
    printf("%-10s %-30s %3.0f GB/s out, %3.0f GB/s in, %4.0f GB/s memory; TFLOP/s:",
           hardware->machine.name, hardware->text, (double)hardware->machine.d2h_bytes_per_s / 1e9,
           (double)hardware->machine.h2d_bytes_per_s / 1e9,
           (double)hardware->memory_bytes_per_s / 1e9);
    for (unsigned i = 0; i < DTYPE_COUNT; i++) {
        if (hardware->flops_per_s[i] != 0) {
            printf(" %s %.1f", dtype_name((enum dtype)i), (double)hardware->flops_per_s[i] / 1e12);
        }
    }
    printf("\n");
}

static error_t parse_machines_option(int key, char *argument, struct argp_state *state)
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
        {"json", 'j', NULL, 0, "Print machine lines in the format of traces", 0}, {0}};
    static const struct argp argp = {options,
                                     parse_machines_option,
                                     "",
                                     "Lists the machines known by name, with the rates of their "
                                     "links and the peak rates of their "
                                     "data sheets.",
                                     NULL,
                                     NULL,
                                     NULL};
    struct hardware hardware;
    bool as_json = false;

    arguments_read(&argp, argc, argv, &as_json);
    for (unsigned i = 0; hardware_builtin(&hardware, i); i++) {
        if (!as_json) {
            print_machine(&hardware);
        } else if (!print_machines_json(&hardware)) {
            return EXIT_USAGE;
        }
    }
    return EXIT_FINE;
}

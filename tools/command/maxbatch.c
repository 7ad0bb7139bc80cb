/* capuchin maxbatch: finds the largest batch that a planner can train on a machine.
 * models/largest.c has the search. */
#include "tools/command/commands.h"

#include "base/printable.h"
#include "models/largest.h"
#include "tools/command/arguments.h"
#include "tools/output/output.h"
#include "tools/output/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct settings {
    struct zoo_settings zoo;
    struct arguments arguments;
    double overhead;
};

enum option_key { KEY_OVERHEAD = KEY_OWN };

static error_t parse_maxbatch_option(int key, char *argument, struct argp_state *state)
{
    struct settings *settings = state->input;

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

static void report_largest(const struct settings *settings, const struct largest_request *request,
                           const struct answer *answer)
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

static int search_and_report(const struct settings *settings, struct largest_request *request)
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
    struct settings settings = {.arguments = ARGUMENTS_INIT, .overhead = 0.05};
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

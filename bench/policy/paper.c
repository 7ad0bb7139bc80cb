/*
 * The results of the Capuchin paper (ASPLOS 2020) next to ours, on the models of the zoo and a
 * P100, as tables in Markdown: the largest batches, the effect of each mechanism, and the time of
 * an iteration without memory management.
 *
 *     bench_policy_paper [-e quick|default|best] [-m MODEL]
 *
 * Published numbers are those of the paper (of Figure 8, read off its bars) and of the iterations
 * in its authors' profiles. The execution model validates and times every plan.
 */
#include "models/largest.h"
#include "policy/baselines/baselines.h"
#include "policy/baselines/training_passes.h"
#include "policy/model/timeline.h"
#include "policy/search/planner.h"
#include "tools/output/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of 16 GiB; the rest is for the CUDA context and libraries. */
#define MEMORY_PERCENT 97
/* Batches that need a plan are found to within one percent. */
#define SLACK 0.01
#define BERT_SEQUENCE 128

static const double limits[] = {0.05, 0.25, 1.0};
static const char *const compared[] = {"vdnn", "checkpoint", "speed", "capuchin", "hybrid"};

#define LIMITS (sizeof(limits) / sizeof(limits[0]))
#define COMPARED (sizeof(compared) / sizeof(compared[0]))

/* The paper's Table 2, and one iteration of the authors' profiles. */
static const struct published {
    const char *model;
    unsigned plain;
    unsigned vdnn; /* 0: none */
    unsigned openai;
    unsigned capuchin;
    unsigned recorded_batch;
    double busy_ms;
} published[] = {
    {"vgg16", 228, 272, 260, 350, 228, 2288.0},
    {"resnet50", 190, 520, 540, 1014, 190, 746.0},
    {"resnet152", 86, 330, 440, 798, 86, 881.0},
    {"inceptionv3", 160, 400, 400, 716, 160, 1061.0},
    {"inceptionv4", 88, 220, 220, 468, 88, 1208.0},
    {"bert-base", 64, 0, 210, 450, 66, 849.0},
};

#define MODELS (sizeof(published) / sizeof(published[0]))

struct settings {
    enum plan_effort effort;
    const char *only; /* a model; NULL: all */
};

static struct hardware hardware;

static struct zoo_options options_of(const char *model, uint64_t batch)
{
    struct zoo_options options = {.batch = batch};

    if (strcmp(model, "bert-base") == 0) {
        options.sequence = BERT_SEQUENCE;
        options.saves_matrix = true;
    }
    return options;
}

static uint64_t budget_of(const struct hardware *machine)
{
    return machine->machine.memory_bytes / 100 * MEMORY_PERCENT;
}

static bool is_wanted(const struct settings *settings, const char *model)
{
    return settings->only == NULL || strcmp(settings->only, model) == 0;
}

static bool failed(const char *what, const struct error_text *error)
{
    fprintf(stderr, "%s: %s\n", what, error->text);
    return false;
}

static bool largest_plain(const char *model, uint64_t *batch)
{
    struct zoo_options options = options_of(model, 0);
    struct largest_request request = {.model = zoo_find(model),
                                      .options = &options,
                                      .hardware = &hardware,
                                      .budget_bytes = budget_of(&hardware)};
    struct error_text error = {""};
    struct largest result;

    if (largest_batch(&request, &result, &error) != CAPU_OK) {
        return failed(model, &error);
    }
    *batch = result.batch;
    return true;
}

static bool print_batches(const struct settings *settings, const struct published *row)
{
    struct zoo_options options = options_of(row->model, 0);
    struct largest_request request = {.model = zoo_find(row->model),
                                      .options = &options,
                                      .hardware = &hardware,
                                      .budget_bytes = budget_of(&hardware),
                                      .effort = settings->effort,
                                      .should_stop = progress_should_stop};
    struct error_text error = {""};
    struct largest result;
    uint64_t plain;
    uint64_t possible;

    if (!largest_plain(row->model, &plain)) {
        return false;
    }
    if (largest_possible(&request, &possible, &error) != CAPU_OK) {
        return failed(row->model, &error);
    }
    printf("| %s | %u | ", row->model, row->plain);
    printf(row->vdnn != 0 ? "%u" : "-", row->vdnn);
    printf(" | %u | %u | %" PRIu64 " |", row->openai, row->capuchin, plain);
    for (size_t i = 0; i < COMPARED; i++) {
        request.planner = baselines_find(compared[i]);
        request.slack = SLACK;
        for (size_t limit = 0; limit < LIMITS; limit++) {
            request.overhead = limits[limit];
            if (largest_batch(&request, &result, &error) != CAPU_OK) {
                return failed(row->model, &error);
            }
            progress_step();
            if (progress_should_stop(NULL)) { /* a search that was cut off is no result */
                printf("\n");
                return true;
            }
            printf("%s%" PRIu64, limit == 0 ? " " : " / ", result.batch);
        }
        printf(" |");
        fflush(stdout);
    }
    printf(" %" PRIu64 " |\n", possible);
    return true;
}

static bool print_batch_table(const struct settings *settings)
{
    bool is_fine = true;

    printf(
        "\nLargest batch. Published: TensorFlow, vDNN, OpenAI's checkpointing, Capuchin. Ours at "
        "%d %% of 16 GiB: without a plan; then for each planner, at most %.0f / %.0f / %.0f %% "
        "over "
        "the ideal iteration; last, the largest batch for which any plan exists.\n\n",
        MEMORY_PERCENT, 100.0 * limits[0], 100.0 * limits[1], 100.0 * limits[2]);
    printf("| model | TF | vDNN | OpenAI | Capuchin | no plan |");
    for (size_t i = 0; i < COMPARED; i++) {
        printf(" `%s` |", compared[i]);
    }
    printf(" any plan |\n| --- | --- | --- | --- | --- | --- |");
    for (size_t i = 0; i < COMPARED; i++) {
        printf(" --- |");
    }
    printf(" --- |\n");
    for (size_t i = 0; is_fine && i < MODELS && !progress_should_stop(NULL); i++) {
        if (is_wanted(settings, published[i].model)) {
            is_fine = print_batches(settings, &published[i]);
        }
    }
    return is_fine;
}

/* A row of the paper's Figure 8, at a multiple of the largest batch without a plan. */
static const struct mechanism {
    const char *model;
    unsigned published_batch;
    const char *name;
    double published_per_s;
    const char *planner;
    unsigned without;
    bool is_coupled;
} mechanisms[] = {
    {"inceptionv3", 200, "vDNN", 68, "vdnn", 0, true},
    {"inceptionv3", 200, "vDNN+DS", 0, "vdnn", 0, false},
    {"inceptionv3", 200, "ATP", 0, "capuchin", WITHOUT_RECOMPUTE | WITHOUT_FEEDBACK, true},
    {"inceptionv3", 200, "ATP+DS", 118, "capuchin", WITHOUT_RECOMPUTE | WITHOUT_FEEDBACK, false},
    {"inceptionv3", 200, "ATP+DS+FA", 144, "capuchin", WITHOUT_RECOMPUTE, false},
    {"inceptionv3", 400, "vDNN", 69, "vdnn", 0, true},
    {"inceptionv3", 400, "vDNN+DS", 0, "vdnn", 0, false},
    {"inceptionv3", 400, "ATP", 0, "capuchin", WITHOUT_RECOMPUTE | WITHOUT_FEEDBACK, true},
    {"inceptionv3", 400, "ATP+DS", 70, "capuchin", WITHOUT_RECOMPUTE | WITHOUT_FEEDBACK, false},
    {"inceptionv3", 400, "ATP+DS+FA", 73, "capuchin", WITHOUT_RECOMPUTE, false},
    {"resnet50", 300, "OpenAI-S", 174, "speed", 0, false},
    {"resnet50", 300, "ATP", 240, "capuchin", WITHOUT_SWAP | WITHOUT_COLLECTIVE, false},
    {"resnet50", 300, "ATP+CR", 240, "capuchin", WITHOUT_SWAP, false},
    {"resnet50", 540, "OpenAI-M", 190, "checkpoint", 0, false},
    {"resnet50", 540, "ATP", 210, "capuchin", WITHOUT_SWAP | WITHOUT_COLLECTIVE, false},
    {"resnet50", 540, "ATP+CR", 223, "capuchin", WITHOUT_SWAP, false},
};

#define MECHANISMS (sizeof(mechanisms) / sizeof(mechanisms[0]))

static const struct published *published_of(const char *model)
{
    size_t i = 0;

    while (strcmp(published[i].model, model) != 0) {
        i++;
    }
    return &published[i];
}

/* A product of the forward or backward pass begins a layer; the one for the input gradient belongs
 * to the previous layer. */
static uint8_t *layer_starts(const struct trace *trace)
{
    uint64_t mean_bytes = training_passes_mean_parameter(trace);
    uint8_t *starts = calloc((size_t)trace->op_count + 1, 1);

    for (uint32_t k = 0; starts != NULL && k < trace->op_count; k++) {
        const char *suffix = strrchr(trace_op_name(trace, k), '.');

        starts[k] = suffix != NULL &&
                    (strcmp(suffix, ".fwd") == 0 || strcmp(suffix, ".bwd_weight") == 0) &&
                    training_passes_is_product(trace, k, mean_bytes);
    }
    return starts;
}

static capu_status time_mechanism(const struct mechanism *row, const struct settings *settings,
                                  const struct trace_index *trace_index, struct timeline *timeline,
                                  struct error_text *error)
{
    const struct planner_request request = {.trace_index = trace_index,
                                            .budget_bytes = budget_of(&hardware),
                                            .host_bytes = UINT64_MAX,
                                            .effort = settings->effort,
                                            .without = row->without};
    struct program program = {0};
    struct plan plan = {0};
    uint8_t *starts = layer_starts(trace_index->trace);
    capu_status status = CAPU_NO_HOST_MEMORY;

    if (starts != NULL) {
        status =
            planner_run_program(baselines_find(row->planner), &request, &plan, &program, error);
    }
    if (status == CAPU_OK) {
        status = row->is_coupled ? timeline_of_coupled(timeline, &program, NULL, starts, error)
                                 : timeline_of(timeline, &program, NULL, false, error);
    }
    program_finish(&program);
    plan_finish(&plan);
    free(starts);
    return status;
}

/* The paper's batch, scaled to our largest batch without a plan. */
static bool print_mechanism(const struct mechanism *row, const struct settings *settings)
{
    const struct published *plain_row = published_of(row->model);
    double plain_per_s = plain_row->recorded_batch * 1e3 / plain_row->busy_ms;
    struct zoo_options options;
    struct timeline timeline = {0};
    struct error_text error = {""};
    struct trace trace = {0};
    struct trace_index trace_index = {0};
    uint64_t plain;
    capu_status status;

    if (!largest_plain(row->model, &plain)) {
        return false;
    }
    options = options_of(row->model,
                         (plain * row->published_batch + plain_row->plain / 2) / plain_row->plain);
    status = zoo_build(zoo_find(row->model), &options, &hardware, &trace, NULL, &error);
    if (status == CAPU_OK) {
        status = trace_index_init(&trace_index, &trace, 1, &error);
    }
    if (status == CAPU_OK) {
        status = time_mechanism(row, settings, &trace_index, &timeline, &error);
    }
    if (status == CAPU_OK) {
        printf("| %s | %s | %u | ", row->model, row->name, row->published_batch);
        if (row->published_per_s > 0.0) {
            printf("%.0f | %.0f %% |", row->published_per_s,
                   100.0 * row->published_per_s / plain_per_s);
        } else {
            printf("- | - |");
        }
        printf(" %" PRIu64 " | %.0f | %.0f %% |\n", options.batch,
               (double)options.batch * 1e9 / (double)timeline.iteration_ns,
               100.0 * (double)timeline.ideal_ns / (double)timeline.iteration_ns);
        fflush(stdout);
    }
    timeline_finish(&timeline);
    trace_index_finish(&trace_index);
    trace_finish(&trace);
    return status == CAPU_OK || failed(row->model, &error);
}

static bool print_mechanism_table(const struct settings *settings)
{
    bool is_fine = true;

    printf("\nThe effect of each mechanism: images per second, and percent of the speed without a "
           "limit. Swaps alone for InceptionV3, recomputation alone for ResNet-50, at the same "
           "multiples of the largest plain batch.\n\n");
    printf("| model | mechanisms | batch | published | of plain | our batch | ours | of ideal |\n"
           "| --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for (size_t i = 0; is_fine && i < MECHANISMS && !progress_should_stop(NULL); i++) {
        if (is_wanted(settings, mechanisms[i].model)) {
            is_fine = print_mechanism(&mechanisms[i], settings);
            progress_step();
        }
    }
    return is_fine;
}

static bool print_iteration_table(const struct settings *settings)
{
    printf("\nOne iteration without a limit: as recorded on a P100 (time that the GPU was busy), "
           "and as "
           "computed by the zoo.\n\n| model | batch | recorded ms | zoo ms | zoo / recorded | zoo "
           "peak GiB |\n"
           "| --- | --- | --- | --- | --- | --- |\n");
    for (size_t i = 0; i < MODELS; i++) {
        const struct published *row = &published[i];
        struct zoo_options options = options_of(row->model, row->recorded_batch);
        struct error_text error = {""};
        struct trace trace;
        struct trace_index trace_index = {0};

        if (!is_wanted(settings, row->model)) {
            continue;
        }
        if (zoo_build(zoo_find(row->model), &options, &hardware, &trace, NULL, &error) != CAPU_OK ||
            trace_index_init(&trace_index, &trace, 1, &error) != CAPU_OK) {
            trace_finish(&trace);
            return failed(row->model, &error);
        }
        printf("| %s | %u | %.0f | %.0f | %.2f | %.2f |\n", row->model, row->recorded_batch,
               row->busy_ms, (double)trace.total_ns / 1e6,
               (double)trace.total_ns / 1e6 / row->busy_ms,
               (double)trace_index.peak_bytes / (double)(1 << 30));
        trace_index_finish(&trace_index);
        trace_finish(&trace);
    }
    return true;
}

static uint64_t count_results(const struct settings *settings)
{
    uint64_t count = 0;

    for (size_t i = 0; i < MECHANISMS; i++) {
        count += is_wanted(settings, mechanisms[i].model);
    }
    for (size_t i = 0; i < MODELS; i++) {
        count += is_wanted(settings, published[i].model) ? COMPARED * LIMITS : 0;
    }
    return count;
}

int main(int argc, char **argv)
{
    struct settings settings = {.effort = EFFORT_DEFAULT};
    struct error_text error = {""};
    bool is_fine;
    int option;

    while ((option = getopt(argc, argv, "e:m:")) != -1) {
        switch (option) {
        case 'e':
            settings.effort = strcmp(optarg, "quick") == 0  ? EFFORT_QUICK
                              : strcmp(optarg, "best") == 0 ? EFFORT_BEST
                                                            : EFFORT_DEFAULT;
            break;
        case 'm':
            settings.only = optarg;
            break;
        default:
            fprintf(stderr, "usage: %s [-e effort] [-m model]\n", argv[0]);
            return 2;
        }
    }
    if (hardware_load(&hardware, "p100", &error) != CAPU_OK) {
        failed("p100", &error);
        return 1;
    }
    /* On a terminal the cells of a row are progress enough, and the line would lie over them. */
    progress_begin(isatty(STDOUT_FILENO) == 1 ? NULL : "planning", count_results(&settings), 0.0);
    is_fine = print_iteration_table(&settings) && print_mechanism_table(&settings) &&
              print_batch_table(&settings);
    return progress_end() ? EXIT_STOPPED : is_fine ? 0 : 1;
}

/*
 * Trains ResNet-50 (resnet.h) on random images within a memory budget.
 *
 * Introduces: a network that branches, and activations larger than the parameters by far, which is
 * where swapping and recomputation have the most to give. Benches and checks on GPUs train it.
 */
#include "examples/train_cnn/resnet.h"

#include "examples/common/files.h"
#include "examples/common/options.h"
#include "examples/common/progress.h"
#include "examples/common/run.h"
#include "examples/common/try.h"

#include "examples/layers/network.h"

#include "kernels/random.h"

#include <stdio.h>
#include <stdlib.h>

#define IMAGE_STREAM UINT64_C(0x696d61676573)

static const struct network_rates rates = {.rate = 0.01f, .momentum = 0.9f, .decay = 1e-4f};

struct settings {
    struct options options;
    enum element element;
    uint32_t side;
    uint32_t width;
};

struct training {
    const struct settings *settings;
    struct resnet resnet;
    struct network network;
    struct loss_log log;
    void *images; /* of the element type */
    int32_t *labels;
};

enum { KEY_DTYPE = 1, KEY_SIDE, KEY_WIDTH };

static const struct argp_option option_table[] = {
    {"dtype", KEY_DTYPE, "TYPE", 0,
     "fp32 (default), or bf16: images, activations and working weights in bf16; sums, statistics, "
     "parameter gradients, velocities and master weights in fp32",
     1},
    {"side", KEY_SIDE, "N", 0, "Width and height of the images (default 224)", 1},
    {"width", KEY_WIDTH, "N", 0, "Channels after the first layer (default 64, as in ResNet-50)", 1},
    {NULL, 0, NULL, 0, NULL, 0},
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct settings *settings = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &settings->options;
        return 0;
    case KEY_DTYPE:
        settings->element = options_dtype(state, argument);
        return 0;
    case KEY_SIDE:
        settings->side = (uint32_t)options_number(state, "side", argument, 1, RESNET_SIDE_LIMIT);
        return 0;
    case KEY_WIDTH:
        settings->width = (uint32_t)options_number(state, "width", argument, 1, RESNET_WIDTH_LIMIT);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_child children[] = {{&options_argp, 0, NULL, 0}, {NULL, 0, NULL, 0}};

static const struct argp argp = {
    .options = option_table,
    .parser = parse,
    .doc = "Train ResNet-50 on random images within a memory budget.",
    .children = children,
};

static size_t image_items(const struct settings *settings)
{
    return (size_t)3 * settings->options.batch * settings->side * settings->side;
}

/* Every step trains on the same random images: what is measured does not depend on them. */
static bool prepare(struct training *training)
{
    const struct settings *settings = training->settings;
    uint64_t seed = settings->options.seed;

    resnet_init(&training->resnet, settings->side, settings->width);
    training->images = calloc(image_items(settings), element_bytes(settings->element));
    training->labels = calloc(settings->options.batch, sizeof(int32_t));
    if (training->images == NULL || training->labels == NULL) {
        perror("train_cnn");
        return false;
    }
    for (size_t i = 0; i < image_items(settings); i++) {
        element_set(settings->element, training->images, i,
                    random_unit(random_draw(seed, IMAGE_STREAM, i).word[0]) - 0.5f);
    }
    for (uint32_t i = 0; i < settings->options.batch; i++) {
        training->labels[i] =
            (int32_t)(random_draw(seed, IMAGE_STREAM + 1, i).word[0] % RESNET_CLASSES);
    }
    return weights_check(settings->options.save) == CAPU_OK &&
           loss_log_open(&training->log, settings->options.loss_log) == CAPU_OK;
}

static capu_status save(const struct training *training, capu_context *context)
{
    const char *path = training->settings->options.save;
    struct weight weights[NETWORK_WEIGHTS_LIMIT];

    return path == NULL
               ? CAPU_OK
               : weights_save(context, path, weights, network_weights(&training->network, weights));
}

static capu_status make_network(struct training *training, capu_context *context, uint64_t seed)
{
    const struct settings *settings = training->settings;

    TRY(network_init(&training->network, context, &training->resnet.table, settings->element,
                     seed));
    return network_resize(&training->network, settings->options.batch);
}

static capu_status run_all(struct training *training, struct run *run)
{
    const struct options *options = &training->settings->options;
    struct progress progress;

    TRY(make_network(training, run->context, options->seed));
    progress_begin(&progress, options->steps, "images");
    for (uint32_t step = 1; step <= options->steps; step++) {
        float loss = 0.0f;

        TRY(network_train(&training->network, training->images, training->labels, step, &rates,
                          &loss));
        TRY(loss_log_write(&training->log, step, loss));
        progress_step(&progress, step, loss, options->batch);
    }
    progress_end(&progress);
    TRY(save(training, run->context));
    return run_print_report(run);
}

static capu_status dry(capu_context *context, void *argument)
{
    struct training *training = argument;
    float loss;

    TRY(make_network(training, context, 0));
    return network_train(&training->network, training->images, training->labels, 1, &rates, &loss);
}

int main(int argc, char **argv)
{
    struct settings settings = {
        .options = {.mode = CAPU_MODE_PASSIVE, .batch = 32, .steps = 10, .seed = 1},
        .side = 224,
        .width = 64,
    };
    static struct training training;
    struct run run;
    capu_status closed;
    int exit_code = OPTIONS_EXIT_FAILED;

    options_parse(&argp, argc, argv, &settings);
    training.settings = &settings;
    if (prepare(&training) && run_open(&run, &settings.options, NULL, dry, &training)) {
        exit_code = run_close(&run, run_all(&training, &run));
    }
    closed = loss_log_close(&training.log);
    free(training.images);
    free(training.labels);
    return closed == CAPU_OK ? exit_code : OPTIONS_EXIT_FAILED;
}

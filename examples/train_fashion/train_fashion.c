/*
 * Trains a convolutional network on Fashion-MNIST within a memory budget.
 *
 * Introduces: the whole loop. A context with a budget, tensors with names and kinds, inputs that
 * are uploaded inside the iteration, training and validation iterations with labels of their own,
 * fp32, or bf16 with masters. With --budget 50% its losses and weights are those of a run without a
 * limit, bit for bit.
 */
#include "examples/train_fashion/fashion_data.h"
#include "examples/train_fashion/layers.h"

#include "examples/common/options.h"
#include "examples/common/progress.h"
#include "examples/common/run.h"
#include "examples/common/try.h"

#include "examples/layers/network.h"

#include "kernels/random.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOMENTUM 0.9f
#define DECAY 5e-4f

/* Steps over which the learning rate rises to its peak. */
#define WARM_UP 10u

/* A stream of random numbers that no layer uses. */
#define ORDER_STREAM UINT64_C(0x6f72646572)

struct settings {
    struct options options;
    const char *data;
    enum element element;
    float rate;
    size_t train_images; /* to train with, at most; 0: all */
    size_t test_images;  /* to validate with, at most; 0: all */
};

/* What a run works with. The batch buffers are on the host. */
struct training {
    const struct settings *settings;
    struct network network;
    struct fashion_set train;
    struct fashion_set test;
    struct loss_log log;
    uint32_t *order; /* of the training images in this epoch */
    void *pixels;    /* of the element type, like the probabilities */
    void *probabilities;
    int32_t *labels;
};

enum { KEY_DATA = 1, KEY_DTYPE, KEY_RATE, KEY_TRAIN_IMAGES, KEY_TEST_IMAGES };

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct settings *settings = state->input;
    char *end = NULL;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &settings->options;
        return 0;
    case KEY_DATA:
        settings->data = argument;
        return 0;
    case KEY_DTYPE:
        settings->element = options_dtype(state, argument);
        return 0;
    case KEY_RATE:
        settings->rate = strtof(argument, &end);
        if (end == argument || *end != '\0' || !(settings->rate > 0.0f && settings->rate < 10.0f)) {
            argp_error(state, "--rate %s: not a number between 0 and 10", argument);
        }
        return 0;
    case KEY_TRAIN_IMAGES:
        settings->train_images = options_number(state, "train-images", argument, 1, UINT32_MAX);
        return 0;
    case KEY_TEST_IMAGES:
        settings->test_images = options_number(state, "test-images", argument, 1, UINT32_MAX);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option option_table[] = {
    {"data", KEY_DATA, "DIR", 0, "Folder of the data (default: /usr/share/datasets/fashion-mnist)",
     1},
    {"dtype", KEY_DTYPE, "TYPE", 0,
     "fp32 (default), or bf16: pixels, activations and working weights in bf16; sums, statistics, "
     "parameter gradients, velocities and master weights in fp32",
     1},
    {"rate", KEY_RATE, "X", 0, "Peak learning rate (default 0.05)", 1},
    {"train-images", KEY_TRAIN_IMAGES, "N", 0,
     "Images per epoch, the last batch of which may be smaller (default: all)", 1},
    {"test-images", KEY_TEST_IMAGES, "N", 0, "Test images for validation (default: all)", 1},
    {NULL, 0, NULL, 0, NULL, 0},
};

static const struct argp_child children[] = {{&options_argp, 0, NULL, 0}, {NULL, 0, NULL, 0}};

static const struct argp argp = {
    .options = option_table,
    .parser = parse,
    .doc = "Train a convolutional network on Fashion-MNIST within a memory budget.",
    .children = children,
};

static size_t train_count(const struct training *training)
{
    size_t wanted = training->settings->train_images;

    return wanted > 0 && wanted < training->train.count ? wanted : training->train.count;
}

/* Draws a new order for each epoch from the seed (Fisher and Yates). */
static void shuffle(struct training *training, uint64_t epoch)
{
    uint64_t seed = training->settings->options.seed;
    size_t count = train_count(training);

    for (size_t i = 0; i < count; i++) {
        training->order[i] = (uint32_t)i;
    }
    for (size_t i = count; i-- > 1;) {
        struct random_block block = random_draw(seed, ORDER_STREAM + epoch, i);
        size_t other = (size_t)(((uint64_t)block.word[0] * (i + 1)) >> 32);
        uint32_t kept = training->order[i];

        training->order[i] = training->order[other];
        training->order[other] = kept;
    }
}

/* Rises over the first steps, then falls to zero at the end. */
static float rate_at(const struct settings *settings, uint32_t step)
{
    uint32_t steps = settings->options.steps;

    if (step < WARM_UP && steps > WARM_UP) {
        return settings->rate * (float)(step + 1) / (float)WARM_UP;
    }
    return settings->rate * (float)(steps - step) / (float)steps;
}

static size_t test_count(const struct training *training)
{
    size_t wanted = training->settings->test_images;

    return wanted > 0 && wanted < training->test.count ? wanted : training->test.count;
}

/* Classifies the test images in order; the last batch may be smaller. */
static capu_status validate(struct training *training)
{
    const struct fashion_set *test = &training->test;
    size_t total = test_count(training);
    size_t right = 0;
    uint32_t count;

    for (size_t i = 0; i < total; i += count) {
        uint32_t order[65536];
        uint32_t right_here = 0;

        count = training->settings->options.batch;
        if (total - i < count) {
            count = (uint32_t)(total - i);
        }
        for (uint32_t k = 0; k < count; k++) {
            order[k] = (uint32_t)(i + k);
        }
        fashion_set_batch(test, order, count, training->settings->element, training->pixels,
                          training->labels);
        TRY(network_resize(&training->network, count));
        TRY(network_validate(&training->network, training->pixels, training->labels,
                             training->probabilities, &right_here));
        right += right_here;
    }
    printf("test accuracy %.2f %% (%zu of %zu images)\n", 100.0 * (double)right / (double)total,
           right, total);
    return CAPU_OK;
}

/* One step on the `count` images of the epoch from `first`. */
static capu_status train_step(struct training *training, uint32_t step, size_t first,
                              uint32_t count, float *loss)
{
    struct network_rates rates = {rate_at(training->settings, step), MOMENTUM, DECAY};

    fashion_set_batch(&training->train, training->order + first, count, training->settings->element,
                      training->pixels, training->labels);
    TRY(network_resize(&training->network, count));
    return network_train(&training->network, training->pixels, training->labels, step, &rates,
                         loss);
}

static capu_status train(struct training *training)
{
    const struct options *options = &training->settings->options;
    size_t images = train_count(training);
    size_t done = 0; /* images of this epoch */
    uint64_t epoch = 0;
    struct progress progress;

    progress_begin(&progress, options->steps, "images");
    for (uint32_t step = 0; step < options->steps; step++) {
        uint32_t count =
            images - done < options->batch ? (uint32_t)(images - done) : options->batch;
        float loss = 0.0f;

        if (options->validate_every != 0 && step % options->validate_every == 0) {
            progress_break(&progress);
            TRY(validate(training));
        }
        if (done == 0) {
            shuffle(training, epoch++);
        }
        TRY(train_step(training, step, done, count, &loss));
        done = done + count < images ? done + count : 0;
        TRY(loss_log_write(&training->log, step + 1, loss));
        progress_step(&progress, step + 1, loss, count);
    }
    progress_end(&progress);
    return CAPU_OK;
}

static capu_status save(struct training *training, capu_context *context)
{
    const char *path = training->settings->options.save;
    struct weight weights[NETWORK_WEIGHTS_LIMIT];

    if (path == NULL) {
        return CAPU_OK;
    }
    return weights_save(context, path, weights, network_weights(&training->network, weights));
}

/*
 * Goes through the shapes that come before a training iteration: small tensors of other sizes leave
 * other pages resident, and the dry run must find the same ones.
 */
static capu_status resize_like_the_loop(struct training *training)
{
    const struct settings *settings = training->settings;
    uint32_t batch = settings->options.batch;
    size_t images = train_count(training);
    size_t tests = test_count(training);

    TRY(network_resize(&training->network, batch));
    if (images > batch && images % batch != 0) {
        TRY(network_resize(&training->network, (uint32_t)(images % batch)));
    }
    if (settings->options.validate_every != 0) {
        TRY(network_resize(&training->network, tests < batch ? (uint32_t)tests : batch));
        TRY(network_resize(&training->network,
                           tests % batch != 0 ? (uint32_t)(tests % batch) : batch));
    }
    return network_resize(&training->network, batch);
}

static capu_status run_all(struct training *training, struct run *run)
{
    const struct options *options = &training->settings->options;

    TRY(network_init(&training->network, run->context, &fashion_layers, training->settings->element,
                     options->seed));
    TRY(network_resize(&training->network, options->batch));
    network_print(&training->network);
    TRY(train(training));
    TRY(run_print_report(run));
    TRY(save(training, run->context));
    return validate(training);
}

/* One training iteration with any contents of the host buffers: only sizes matter. */
static capu_status dry(capu_context *context, void *argument)
{
    struct training *training = argument;
    struct network_rates rates = {0.0f, 0.0f, 0.0f};
    float loss;

    TRY(network_init(&training->network, context, &fashion_layers, training->settings->element, 0));
    TRY(resize_like_the_loop(training));
    return network_train(&training->network, training->pixels, training->labels, 0, &rates, &loss);
}

/* Reads the data and allocates the host buffers. False: an error has been printed. */
static bool prepare(struct training *training)
{
    const struct settings *settings = training->settings;
    size_t batch = settings->options.batch;
    size_t item = element_bytes(settings->element);

    if (!fashion_set_read(&training->train, settings->data, "train") ||
        !fashion_set_read(&training->test, settings->data, "t10k")) {
        return false;
    }
    if (batch > train_count(training)) {
        fprintf(stderr, "%s: --batch %zu: there are only %zu images\n",
                program_invocation_short_name, batch, train_count(training));
        return false;
    }
    training->order = calloc(training->train.count, sizeof(*training->order));
    training->pixels = calloc(batch * FASHION_PIXELS, item);
    training->probabilities = calloc(batch * FASHION_CLASSES, item);
    training->labels = calloc(batch, sizeof(*training->labels));
    if (training->order == NULL || training->pixels == NULL || training->probabilities == NULL ||
        training->labels == NULL) {
        fprintf(stderr, "%s: %s\n", program_invocation_short_name, strerror(ENOMEM));
        return false;
    }
    return weights_check(settings->options.save) == CAPU_OK &&
           loss_log_open(&training->log, settings->options.loss_log) == CAPU_OK;
}

static void finish(struct training *training)
{
    fashion_set_finish(&training->train);
    fashion_set_finish(&training->test);
    free(training->order);
    free(training->pixels);
    free(training->probabilities);
    free(training->labels);
}

int main(int argc, char **argv)
{
    struct settings settings = {
        .options = {.batch = 128, .steps = 300, .seed = 1},
        .data = "/usr/share/datasets/fashion-mnist",
        .rate = 0.05f,
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
    finish(&training);
    return closed == CAPU_OK ? exit_code : OPTIONS_EXIT_FAILED;
}

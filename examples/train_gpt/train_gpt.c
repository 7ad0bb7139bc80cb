/*
 * Trains a GPT on the bytes of a text, within a memory budget.
 *
 * Introduces: everything that real training programs do to a memory manager. Buffers split at odd
 * offsets, parts of buffers as operands, partial writes, buffers with two uses, gradients that are
 * cleared at once and accumulated, tied weights, one op over all parameters, validation before
 * training, batches of other shapes, sampling in between, fp32, or bf16 with masters. The losses
 * within any budget are those without one.
 */
#include "examples/train_gpt/gpt.h"
#include "examples/train_gpt/text.h"

#include "examples/common/options.h"
#include "examples/common/progress.h"
#include "examples/common/run.h"
#include "examples/common/try.h"

#include "kernels/random.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Steps over which the learning rate rises to its peak. */
#define WARM_UP 10u

/* GPT-2's 50,257 tokens, padded to a multiple of 128, which makes the last product faster. */
#define MODEL_VOCABULARY 50304u

/* Batches of a validation pass; the last one is half as large. */
#define VALIDATION_BATCHES 3u

/* Streams of random numbers that no parameter uses. */
#define WINDOW_STREAM UINT64_C(0x77696e646f77)
#define SAMPLE_STREAM UINT64_C(0x73616d706c65)

struct settings {
    struct options options;
    struct gpt_shape shape;
    const char *data;
    float rate;
    uint32_t default_vocabulary; /* without --vocab */
    uint32_t accumulate;
    uint32_t other_length;   /* of the sequences in every second step; 0: the same */
    uint32_t segment_layers; /* 0: no segments */
    uint32_t sample_bytes;
    bool is_asap;
};

struct training {
    const struct settings *settings;
    struct gpt gpt;
    struct text text;
    struct loss_log log;
    int32_t *tokens; /* accumulate batches */
    int32_t *targets;
};

enum {
    KEY_LAYERS = 1,
    KEY_CHANNELS,
    KEY_HEADS,
    KEY_SEQ,
    KEY_ALIGN,
    KEY_MODEL,
    KEY_VOCAB,
    KEY_DTYPE,
    KEY_UPDATE,
    KEY_ACCUMULATE,
    KEY_OTHER_SEQ,
    KEY_CHECKPOINT,
    KEY_SAMPLE,
    KEY_DATA,
    KEY_RATE
};

static const struct argp_option option_table[] = {
    {"model", KEY_MODEL, "NAME", 0, "Sizes of GPT-2: d12, d24, d36 or d48", 1},
    {"vocab", KEY_VOCAB, "N", 0,
     "Size of the vocabulary, of which the text uses the first 256 (default 256; with --model "
     "50304, "
     "GPT-2's 50257 padded)",
     1},
    {"dtype", KEY_DTYPE, "TYPE", 0,
     "fp32 (default), or bf16: activations and working weights in bf16; sums, parameter gradients, "
     "moments and master weights in fp32",
     1},
    {"layers", KEY_LAYERS, "N", 0, "Number of layers (default 4)", 1},
    {"channels", KEY_CHANNELS, "N", 0, "Number of channels (default 128)", 1},
    {"heads", KEY_HEADS, "N", 0, "Number of attention heads (default 4)", 1},
    {"seq", KEY_SEQ, "N", 0, "Length of a sequence (default 128)", 1},
    {"align", KEY_ALIGN, "N", 0,
     "Align tensors to multiples of N items (default 1: no gaps, as in a buffer read from a file; "
     "GPUs "
     "prefer 64)",
     1},
    {"update", KEY_UPDATE, "end|asap", 0,
     "end (default): update all parameters in one op at the end; asap: update each one as soon as "
     "its "
     "gradient is complete",
     1},
    {"accumulate", KEY_ACCUMULATE, "N", 0,
     "Batches per step, whose gradients are accumulated (default 1)", 1},
    {"other-seq", KEY_OTHER_SEQ, "N", 0,
     "Length of the sequences in every second step (default: as --seq)", 1},
    {"checkpoint", KEY_CHECKPOINT, "N", 0,
     "Make every N layers a segment, which --planner manual recomputes (default: no segments)", 1},
    {"sample", KEY_SAMPLE, "N", 0, "Write N bytes of text after each validation and at the end", 1},
    {"data", KEY_DATA, "FILE", 0, "Text to learn (default: the King James Bible)", 1},
    {"rate", KEY_RATE, "X", 0, "Peak learning rate (default 0.001)", 1},
    {NULL, 0, NULL, 0, NULL, 0},
};

static void parse_model(struct settings *settings, const char *name, struct argp_state *state)
{
    static const struct {
        const char *name;
        struct gpt_shape shape;
    } models[] = {
        {"d12", {.layers = 12, .channels = 768, .heads = 12}},
        {"d24", {.layers = 24, .channels = 1024, .heads = 16}},
        {"d36", {.layers = 36, .channels = 1280, .heads = 20}},
        {"d48", {.layers = 48, .channels = 1600, .heads = 25}},
    };

    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        if (strcmp(name, models[i].name) == 0) {
            settings->shape.layers = models[i].shape.layers;
            settings->shape.channels = models[i].shape.channels;
            settings->shape.heads = models[i].shape.heads;
            settings->shape.length = 1024;
            settings->default_vocabulary = MODEL_VOCABULARY;
            return;
        }
    }
    argp_error(state, "--model %s: not d12, d24, d36 or d48", name);
}

static void parse_update(struct settings *settings, const char *text, struct argp_state *state)
{
    settings->is_asap = strcmp(text, "asap") == 0;
    if (!settings->is_asap && strcmp(text, "end") != 0) {
        argp_error(state, "--update %s: not end or asap", text);
    }
}

static void check_settings(const struct settings *settings, struct argp_state *state)
{
    const struct gpt_shape *shape = &settings->shape;

    if (shape->channels % shape->heads != 0) {
        argp_error(state, "--channels %u: not a multiple of --heads %u", shape->channels,
                   shape->heads);
    }
    if (settings->other_length > shape->length) {
        argp_error(state, "--other-seq %u: longer than --seq %u", settings->other_length,
                   shape->length);
    }
    if ((uint64_t)settings->options.batch * shape->length > INT32_MAX / 4) {
        argp_error(state, "--batch %u --seq %u: more rows than a matrix may have",
                   settings->options.batch, shape->length);
    }
}

static uint32_t number(struct argp_state *state, const char *name, const char *text, uint32_t low,
                       uint32_t high)
{
    return (uint32_t)options_number(state, name, text, low, high);
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct settings *settings = state->input;
    char *end = NULL;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &settings->options;
        return 0;
    case ARGP_KEY_SUCCESS:
        if (settings->shape.vocabulary == 0) {
            settings->shape.vocabulary = settings->default_vocabulary;
        }
        check_settings(settings, state);
        return 0;
    case KEY_MODEL:
        parse_model(settings, argument, state);
        return 0;
    case KEY_VOCAB:
        settings->shape.vocabulary = number(state, "vocab", argument, GPT_BYTES, 1 << 20);
        return 0;
    case KEY_DTYPE:
        settings->shape.element = options_dtype(state, argument);
        return 0;
    case KEY_LAYERS:
        settings->shape.layers = number(state, "layers", argument, 1, 1000);
        return 0;
    case KEY_CHANNELS:
        settings->shape.channels = number(state, "channels", argument, 1, 65536);
        return 0;
    case KEY_HEADS:
        settings->shape.heads = number(state, "heads", argument, 1, 1024);
        return 0;
    case KEY_SEQ:
        settings->shape.length = number(state, "seq", argument, 2, 65536);
        return 0;
    case KEY_ALIGN:
        settings->shape.align = number(state, "align", argument, 1, 1024);
        return 0;
    case KEY_UPDATE:
        parse_update(settings, argument, state);
        return 0;
    case KEY_ACCUMULATE:
        settings->accumulate = number(state, "accumulate", argument, 1, 1024);
        return 0;
    case KEY_OTHER_SEQ:
        settings->other_length = number(state, "other-seq", argument, 2, 65536);
        return 0;
    case KEY_CHECKPOINT:
        settings->segment_layers = number(state, "checkpoint", argument, 1, 1000);
        return 0;
    case KEY_SAMPLE:
        settings->sample_bytes = number(state, "sample", argument, 0, 1000000);
        return 0;
    case KEY_DATA:
        settings->data = argument;
        return 0;
    case KEY_RATE:
        settings->rate = strtof(argument, &end);
        if (end == argument || *end != '\0' || !(settings->rate > 0.0f && settings->rate < 1.0f)) {
            argp_error(state, "--rate %s: not a number between 0 and 1", argument);
        }
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_child children[] = {{&options_argp, 0, NULL, 0}, {NULL, 0, NULL, 0}};

static const struct argp argp = {
    .options = option_table,
    .parser = parse,
    .doc = "Train a GPT on the bytes of a text within a memory budget.",
    .children = children,
};

static uint32_t length_of(const struct settings *settings, uint32_t step)
{
    return settings->other_length != 0 && step % 2 == 0 ? settings->other_length
                                                        : settings->shape.length;
}

/* Draws the windows of one step. */
static void draw_windows(struct training *training, uint32_t step)
{
    const struct settings *settings = training->settings;
    size_t length = length_of(settings, step);
    size_t windows = (size_t)settings->accumulate * settings->options.batch;
    uint64_t starts = training->text.train_count - length;

    for (size_t i = 0; i < windows; i++) {
        struct random_block block = random_draw(settings->options.seed, WINDOW_STREAM + step, i);

        text_window(&training->text, (size_t)(((uint64_t)block.word[0] * starts) >> 32), length,
                    training->tokens + i * length, training->targets + i * length);
    }
}

/* The number of windows in a validation pass. */
static size_t validation_windows(const struct training *training)
{
    const struct settings *settings = training->settings;
    size_t kept_back = training->text.count - training->text.train_count;
    size_t there = (kept_back - 1) / settings->shape.length;
    size_t wanted = (size_t)settings->options.batch * (VALIDATION_BATCHES - 1) +
                    (settings->options.batch + 1) / 2;

    return wanted < there ? wanted : there;
}

/* A pass over the first windows of the validation text; the last batch is smaller. */
static capu_status validate(struct training *training)
{
    const struct settings *settings = training->settings;
    size_t length = settings->shape.length;
    size_t windows = validation_windows(training);
    double sum = 0.0;
    size_t done = 0;

    while (done < windows) {
        size_t left = windows - done;
        uint32_t batch = left < settings->options.batch ? (uint32_t)left : settings->options.batch;
        float loss = 0.0f;

        for (size_t i = 0; i < batch; i++) {
            text_window(&training->text, training->text.train_count + (done + i) * length, length,
                        training->tokens + i * length, training->targets + i * length);
        }
        TRY(gpt_resize(&training->gpt, batch, settings->shape.length));
        TRY(gpt_validate(&training->gpt, training->tokens, training->targets, &loss));
        sum += (double)loss * batch;
        done += batch;
    }
    printf("validation loss %.4f\n", sum / (double)windows);
    return CAPU_OK;
}

/* Draws a byte from the distribution that the logits describe. */
static uint8_t pick(const float logits[GPT_BYTES], float even)
{
    double most = logits[0];
    double sum = 0.0;
    double reached = 0.0;

    for (size_t i = 1; i < GPT_BYTES; i++) {
        most = logits[i] > most ? logits[i] : most;
    }
    for (size_t i = 0; i < GPT_BYTES; i++) {
        sum += exp(logits[i] - most);
    }
    for (size_t i = 0; i < GPT_BYTES; i++) {
        reached += exp(logits[i] - most);
        if (reached > even * sum) {
            return (uint8_t)i;
        }
    }
    return ' ';
}

/* Continues after a line break, one byte per iteration. Attention is causal, so what lies after the
 * position has no influence. */
static capu_status sample(struct training *training, uint32_t step)
{
    const struct settings *settings = training->settings;
    uint32_t length = settings->shape.length;
    int32_t *window = training->tokens;
    uint32_t position = 0;

    if (settings->sample_bytes == 0) {
        return CAPU_OK;
    }
    memset(window, 0, length * sizeof(*window));
    window[0] = '\n';
    TRY(gpt_resize(&training->gpt, 1, length));
    fputs("sample: ", stdout);
    for (uint32_t i = 0; i < settings->sample_bytes; i++) {
        struct random_block block = random_draw(settings->options.seed, SAMPLE_STREAM + step, i);
        float logits[GPT_BYTES] = {0};
        uint8_t byte;

        TRY(gpt_logits(&training->gpt, window, position, logits));
        byte = pick(logits, random_unit(block.word[0]));
        putchar(isprint(byte) ? byte : ' ');
        if (position + 1 == length) {
            memmove(window, window + 1, (length - 1) * sizeof(*window));
        } else {
            position++;
        }
        window[position] = byte;
    }
    putchar('\n');
    return CAPU_OK;
}

static bool is_validation_due(const struct settings *settings, uint32_t step)
{
    uint32_t every = settings->options.validate_every;

    return every != 0 && step % every == 0;
}

static capu_status train(struct training *training)
{
    const struct settings *settings = training->settings;
    const struct options *options = &settings->options;
    struct gpt_step step = {.accumulate = settings->accumulate, .is_asap = settings->is_asap};
    uint64_t windows = (uint64_t)settings->accumulate * options->batch;
    struct progress progress;

    progress_begin(&progress, options->steps, "bytes");
    for (step.step = 1; step.step <= options->steps; step.step++) {
        uint32_t length = length_of(settings, step.step);
        float loss = 0.0f;

        if (is_validation_due(settings, step.step - 1)) {
            progress_break(&progress);
            TRY(validate(training));
            TRY(sample(training, step.step - 1));
        }
        step.rate = settings->rate;
        if (step.step < WARM_UP) {
            step.rate = settings->rate * (float)step.step / (float)WARM_UP;
        }
        draw_windows(training, step.step);
        TRY(gpt_resize(&training->gpt, options->batch, length));
        TRY(gpt_train(&training->gpt, training->tokens, training->targets, &step, &loss));
        TRY(loss_log_write(&training->log, step.step, loss));
        progress_step(&progress, step.step, loss, windows * length);
    }
    progress_end(&progress);
    return CAPU_OK;
}

static capu_status save(struct training *training)
{
    const char *path = training->settings->options.save;
    size_t count = gpt_weights(&training->gpt, NULL);
    struct weight *weights;
    capu_status status;

    if (path == NULL) {
        return CAPU_OK;
    }
    weights = calloc(count, sizeof(*weights));
    if (weights == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    gpt_weights(&training->gpt, weights);
    status = weights_save(training->gpt.context, path, weights, count);
    free(weights);
    return status;
}

static capu_status run_all(struct training *training, struct run *run)
{
    const struct settings *settings = training->settings;

    TRY(gpt_init(&training->gpt, run->context, &settings->shape, settings->options.seed));
    printf("%u layers, %u channels, %u heads, sequences of %u bytes, a vocabulary of %u, %s: %zu "
           "parameters\n",
           settings->shape.layers, settings->shape.channels, settings->shape.heads,
           settings->shape.length, settings->shape.vocabulary,
           element_name(settings->shape.element), gpt_parameter_count(&training->gpt));
    training->gpt.segment_layers = settings->segment_layers;
    TRY(train(training));
    TRY(run_print_report(run));
    TRY(save(training));
    if (settings->options.validate_every != 0) {
        TRY(validate(training));
    }
    return sample(training, settings->options.steps);
}

/*
 * Goes through all shapes that come before a training iteration: small tensors of other sizes leave
 * other pages resident, and the dry run must find the same ones.
 */
static capu_status resize_like_the_loop(struct training *training)
{
    const struct settings *settings = training->settings;
    uint32_t batch = settings->options.batch;
    size_t windows = validation_windows(training);

    if (settings->other_length != 0) {
        TRY(gpt_resize(&training->gpt, batch, settings->other_length));
    }
    if (settings->options.validate_every != 0) {
        TRY(gpt_resize(&training->gpt, windows < batch ? (uint32_t)windows : batch,
                       settings->shape.length));
        if (windows > batch && windows % batch != 0) {
            TRY(gpt_resize(&training->gpt, (uint32_t)(windows % batch), settings->shape.length));
        }
        if (settings->sample_bytes != 0) {
            TRY(gpt_resize(&training->gpt, 1, settings->shape.length));
        }
    }
    return gpt_resize(&training->gpt, batch, settings->shape.length);
}

/* One training iteration with any contents of the host buffers: only sizes matter. */
static capu_status dry(capu_context *context, void *argument)
{
    struct training *training = argument;
    const struct settings *settings = training->settings;
    struct gpt_step step = {
        .step = 1, .accumulate = settings->accumulate, .is_asap = settings->is_asap};
    float loss;
    capu_status status;

    status = gpt_init(&training->gpt, context, &settings->shape, 0);
    if (status == CAPU_OK) {
        status = resize_like_the_loop(training);
    }
    if (status == CAPU_OK) {
        status = gpt_train(&training->gpt, training->tokens, training->targets, &step, &loss);
    }
    gpt_finish(&training->gpt);
    return status;
}

/* Reads the text and allocates the host buffers. False: an error has been printed. */
static bool prepare(struct training *training)
{
    const struct settings *settings = training->settings;
    size_t count = (size_t)settings->accumulate * settings->options.batch * settings->shape.length;

    if (!text_read(&training->text, settings->data, settings->shape.length)) {
        return false;
    }
    training->tokens = calloc(count, sizeof(*training->tokens));
    training->targets = calloc(count, sizeof(*training->targets));
    if (training->tokens == NULL || training->targets == NULL) {
        fprintf(stderr, "%s: %s\n", program_invocation_short_name, strerror(ENOMEM));
        return false;
    }
    return weights_check(settings->options.save) == CAPU_OK &&
           loss_log_open(&training->log, settings->options.loss_log) == CAPU_OK;
}

static void finish(struct training *training)
{
    gpt_finish(&training->gpt);
    text_close(&training->text);
    free(training->tokens);
    free(training->targets);
}

int main(int argc, char **argv)
{
    struct settings settings = {
        .options = {.batch = 8, .steps = 100, .seed = 1},
        .shape = {.layers = 4, .channels = 128, .heads = 4, .length = 128},
        .rate = 1e-3f,
        .default_vocabulary = GPT_BYTES,
        .accumulate = 1,
    };
    static struct training training;
    struct run run;
    capu_status closed;
    int exit_code = OPTIONS_EXIT_FAILED;

    options_parse(&argp, argc, argv, &settings);
    training.settings = &settings;
    if (prepare(&training) && run_open(&run, &settings.options, dry, &training)) {
        exit_code = run_close(&run, run_all(&training, &run));
    }
    closed = loss_log_close(&training.log);
    finish(&training);
    return closed == CAPU_OK ? exit_code : OPTIONS_EXIT_FAILED;
}

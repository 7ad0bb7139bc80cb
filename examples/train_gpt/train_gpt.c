/*
 * Trains a GPT on the bytes of a text, within a memory budget.
 *
 * Introduces: everything that real training programs do to a memory manager. Buffers split at odd
 * offsets, parts of buffers as operands, partial writes, buffers with two uses, gradients that are
 * cleared at once and accumulated, tied weights, one op over all parameters, validation before
 * training, batches of other shapes, sampling in between, fp32, or bf16 with masters. The losses
 * within any budget are those without one. Under mpirun each process computes a part of each batch.
 */
#include "examples/train_gpt/gpt.h"
#include "examples/train_gpt/settings.h"
#include "examples/train_gpt/text.h"

#include "examples/common/options.h"
#include "examples/common/progress.h"
#include "examples/common/ranks.h"
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

/* Batches of a validation pass; the last one is half as large. */
#define VALIDATION_BATCHES 3u

/* Streams of random numbers that no parameter uses. */
#define WINDOW_STREAM UINT64_C(0x77696e646f77)
#define SAMPLE_STREAM UINT64_C(0x73616d706c65)

struct training {
    const struct settings *settings;
    struct gpt gpt;
    struct ranks ranks;
    struct text text;
    struct loss_log log;
    int32_t *tokens; /* accumulate batches */
    int32_t *targets;
};

/* Whether this process prints what all of them know. */
static bool is_first(const struct training *training)
{
    return training->ranks.peers.rank == 0;
}

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

/* Windows of a training batch in one replica. */
static uint32_t replica_batch(const struct settings *settings)
{
    return settings->options.batch / settings->replicas;
}

/* Of the batch of a validation pass that begins with window `begin`: the last one is smaller. */
static uint32_t validation_batch(const struct training *training, size_t begin)
{
    size_t left = validation_windows(training) - begin;
    uint32_t batch = replica_batch(training->settings);

    return left < batch ? (uint32_t)left : batch;
}

/* The sum of the losses of one replica's windows: of every `replicas.count`-th batch. */
static capu_status validate_replica(struct training *training, uint32_t replica, double *sum)
{
    const struct settings *settings = training->settings;
    size_t length = settings->shape.length;
    size_t windows = validation_windows(training);
    size_t begin = (size_t)replica * replica_batch(settings);

    *sum = 0.0;
    for (; begin < windows; begin += settings->options.batch) {
        uint32_t batch = validation_batch(training, begin);
        float loss = 0.0f;

        for (size_t i = 0; i < batch; i++) {
            text_window(&training->text, training->text.train_count + (begin + i) * length, length,
                        training->tokens + i * length, training->targets + i * length);
        }
        TRY(gpt_resize(&training->gpt, batch, settings->shape.length));
        TRY(gpt_validate(&training->gpt, training->tokens, training->targets, &loss));
        *sum += (double)loss * batch;
    }
    return CAPU_OK;
}

/* A pass over the first windows of the validation text. */
static capu_status validate(struct training *training)
{
    const struct gpt_replicas *replicas = &training->gpt.replicas;
    double sum = 0.0;

    for (uint32_t replica = replicas->first; replica < replicas->end; replica++) {
        double own = 0.0;

        TRY(validate_replica(training, replica, &own));
        sum += own;
    }
    TRY(gpt_sum(&training->gpt, &sum));
    if (!is_first(training)) {
        return CAPU_OK;
    }
    printf("validation loss %.4f\n", sum / (double)validation_windows(training));
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
    progress.is_silent = !is_first(training);
    /* mpirun gives each process a terminal of its own, wherever the output goes. */
    progress.is_terminal = progress.is_terminal && !training->ranks.is_launched;
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
        TRY(gpt_resize(&training->gpt, replica_batch(settings), length));
        TRY(gpt_train(&training->gpt, training->tokens, training->targets, &step, &loss));
        TRY(loss_log_write(&training->log, step.step, loss));
        progress_step(&progress, step.step, loss, windows * length);
    }
    progress_end(&progress);
    if (settings->has_graphs) {
        printf("%u of %u steps were launched as graphs\n", training->gpt.graph_steps,
               options->steps);
    }
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

/* Parameters, and how batches are divided. */
static capu_status init(struct training *training, capu_context *context, uint64_t seed)
{
    const struct settings *settings = training->settings;

    TRY(ranks_join(&training->ranks, context));
    TRY(gpt_init(&training->gpt, context, &settings->shape, seed));
    if (training->ranks.group != NULL && settings->replicas == settings->ranks) {
        return gpt_join(&training->gpt, &training->ranks);
    }
    return gpt_replicate(&training->gpt, settings->replicas);
}

static capu_status run_all(struct training *training, struct run *run)
{
    const struct settings *settings = training->settings;

    TRY(init(training, run->context, settings->options.seed));
    if (is_first(training)) {
        printf(
            "%u layers, %u channels, %u heads, sequences of %u bytes, a vocabulary of %u, %s: %zu "
            "parameters\n",
            settings->shape.layers, settings->shape.channels, settings->shape.heads,
            settings->shape.length, settings->shape.vocabulary,
            element_name(settings->shape.element), gpt_parameter_count(&training->gpt));
    }
    training->gpt.segment_layers = settings->segment_layers;
    if (settings->has_graphs) {
        TRY(capu_graph_create(run->context, &training->gpt.graph));
    }
    TRY(train(training));
    if (training->ranks.peers.count == 1) { /* several have reports, which explain merges */
        TRY(run_print_report(run));
    }
    TRY(save(training));
    if (settings->options.validate_every != 0) {
        TRY(validate(training));
    }
    return sample(training, settings->options.steps);
}

/* run_all, and then the context is no member of the group any more. */
static capu_status run_as_rank(struct training *training, struct run *run)
{
    capu_status status = run_all(training, run);

    if (status == CAPU_OK) {
        status = capu_synchronize(run->context);
    }
    ranks_leave(&training->ranks, status, capu_last_error(run->context));
    return status;
}

static capu_status resize_like_validation(struct training *training, uint32_t replica)
{
    const struct settings *settings = training->settings;
    size_t windows = validation_windows(training);
    size_t begin = (size_t)replica * replica_batch(settings);

    for (; begin < windows; begin += settings->options.batch) {
        TRY(gpt_resize(&training->gpt, validation_batch(training, begin), settings->shape.length));
    }
    return CAPU_OK;
}

/*
 * Goes through all shapes that come before a training iteration: small tensors of other sizes leave
 * other pages resident, and the dry run must find the same ones.
 */
static capu_status resize_like_the_loop(struct training *training)
{
    const struct settings *settings = training->settings;
    const struct gpt_replicas *replicas = &training->gpt.replicas;
    uint32_t batch = replica_batch(settings);

    if (settings->other_length != 0) {
        TRY(gpt_resize(&training->gpt, batch, settings->other_length));
    }
    if (settings->options.validate_every != 0) {
        for (uint32_t replica = replicas->first; replica < replicas->end; replica++) {
            TRY(resize_like_validation(training, replica));
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

    status = init(training, context, 0);
    if (status == CAPU_OK) {
        status = resize_like_the_loop(training);
    }
    if (status == CAPU_OK) {
        status = gpt_train(&training->gpt, training->tokens, training->targets, &step, &loss);
    }
    ranks_leave(&training->ranks, CAPU_OK, "");
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

/* All ranks compute the same losses and weights. */
static void leave_results_to_first(struct settings *settings)
{
    settings->options.loss_log = NULL;
    settings->options.save = NULL;
    settings->sample_bytes = 0;
}

int main(int argc, char **argv)
{
    struct settings settings;
    static struct training training;
    struct run run;
    capu_status closed;
    int exit_code = OPTIONS_EXIT_FAILED;

    if (!ranks_open(&training.ranks, &argc, &argv)) {
        return OPTIONS_EXIT_FAILED;
    }
    settings_parse(&settings, training.ranks.peers.count, argc, argv);
    if (!is_first(&training)) {
        leave_results_to_first(&settings);
    }
    training.settings = &settings;
    training.ranks.bucket_bytes = settings.bucket_bytes;
    training.ranks.limit_ns = settings.limit_s * UINT64_C(1000000000);
    if (run_agree(&training.ranks.peers, prepare(&training)) &&
        run_open(&run, &settings.options, &training.ranks.peers, dry, &training)) {
        exit_code = run_close(&run, run_as_rank(&training, &run));
    }
    closed = loss_log_close(&training.log);
    finish(&training);
    exit_code = closed == CAPU_OK ? exit_code : OPTIONS_EXIT_FAILED;
    ranks_close(&training.ranks, exit_code);
    return exit_code;
}

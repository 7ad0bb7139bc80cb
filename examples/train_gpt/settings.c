/* Parses the options of train_gpt. */
#include "examples/train_gpt/settings.h"

#include "kernels/fused_attention.h"

#include <stdlib.h>
#include <string.h>

/* GPT-2's 50,257 tokens, padded to a multiple of 128, which makes the last product faster. */
#define MODEL_VOCABULARY 50304u

enum {
    KEY_LAYERS = 1,
    KEY_CHANNELS,
    KEY_HEADS,
    KEY_SEQ,
    KEY_ALIGN,
    KEY_ATTENTION,
    KEY_MODEL,
    KEY_VOCAB,
    KEY_DTYPE,
    KEY_UPDATE,
    KEY_GRAPH,
    KEY_ACCUMULATE,
    KEY_REPLICAS,
    KEY_BUCKET,
    KEY_LIMIT,
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
    {"attention", KEY_ATTENTION, "scores|fused", 0,
     "scores (default): attention in several ops, which keep scores and weights; fused: in one op "
     "that keeps neither",
     1},
    {"update", KEY_UPDATE, "end|asap", 0,
     "end (default): update all parameters in one op at the end; asap: update each one as soon as "
     "its "
     "gradient is complete",
     1},
    {"graph", KEY_GRAPH, NULL, 0,
     "Capture each step as a CUDA graph where the plan allows it, and update the graph in place; "
     "with --device cuda, --mode guided and --update asap",
     1},
    {"accumulate", KEY_ACCUMULATE, "N", 0,
     "Batches per step, whose gradients are accumulated (default 1)", 1},
    {"replicas", KEY_REPLICAS, "N", 0,
     "Divide each batch into N parts with gradients of their own, which are added in order, as N "
     "processes do (default 1)",
     1},
    {"bucket", KEY_BUCKET, "SIZE", 0,
     "With several ranks: exchange gradients in pieces of SIZE (default: the library's)", 1},
    {"limit", KEY_LIMIT, "SECONDS", 0,
     "With several ranks: fail if another rank does not answer for so long (default: no limit)", 1},
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

static void parse_attention(struct settings *settings, const char *text, struct argp_state *state)
{
    settings->shape.is_fused = strcmp(text, "fused") == 0;
    if (!settings->shape.is_fused && strcmp(text, "scores") != 0) {
        argp_error(state, "--attention %s: not scores or fused", text);
    }
}

static void check_settings(const struct settings *settings, struct argp_state *state)
{
    const struct gpt_shape *shape = &settings->shape;

    if (shape->channels % shape->heads != 0) {
        argp_error(state, "--channels %u: not a multiple of --heads %u", shape->channels,
                   shape->heads);
    }
    if (settings->options.batch % settings->replicas != 0) {
        argp_error(state, "--batch %u: not a multiple of %s %u", settings->options.batch,
                   settings->ranks > 1 ? "the number of ranks," : "--replicas", settings->replicas);
    }
    if (shape->is_fused && shape->channels / shape->heads > FUSED_ATTENTION_CHANNELS) {
        argp_error(state, "--attention fused: a head of %u channels, and at most %u are possible",
                   shape->channels / shape->heads, FUSED_ATTENTION_CHANNELS);
    }
    if (settings->has_graphs &&
        (!settings->is_asap || settings->accumulate > 1 || settings->replicas > 1)) {
        argp_error(state,
                   "--graph: nothing may be downloaded in a step, so it needs --update asap, "
                   "and no --accumulate or --replicas");
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

static void parse_bucket(struct settings *settings, const char *text, struct argp_state *state)
{
    if (capu_parse_size(text, &settings->bucket_bytes) != CAPU_OK || settings->bucket_bytes == 0) {
        argp_error(state, "--bucket %s: not a size (256KiB, 1e6)", text);
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
    case KEY_ATTENTION:
        parse_attention(settings, argument, state);
        return 0;
    case KEY_UPDATE:
        parse_update(settings, argument, state);
        return 0;
    case KEY_GRAPH:
        settings->has_graphs = true;
        return 0;
    case KEY_ACCUMULATE:
        settings->accumulate = number(state, "accumulate", argument, 1, 1024);
        return 0;
    case KEY_REPLICAS:
        if (settings->ranks > 1) {
            argp_error(state, "--replicas %s: each of the %u ranks computes one", argument,
                       settings->ranks);
        }
        settings->replicas = number(state, "replicas", argument, 1, 1024);
        return 0;
    case KEY_BUCKET:
        parse_bucket(settings, argument, state);
        return 0;
    case KEY_LIMIT:
        settings->limit_s = number(state, "limit", argument, 1, 1000000);
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

void settings_parse(struct settings *settings, uint32_t ranks, int argc, char **argv)
{
    *settings = (struct settings){
        .options = {.batch = 8, .steps = 100, .seed = 1},
        .shape = {.layers = 4, .channels = 128, .heads = 4, .length = 128},
        .rate = 1e-3f,
        .default_vocabulary = GPT_BYTES,
        .accumulate = 1,
        .ranks = ranks,
        .replicas = ranks,
    };
    options_parse(&argp, argc, argv, settings);
}

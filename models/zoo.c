/* The list of models, and how one becomes a trace. */
#include "models/zoo.h"

#include "models/merge.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Rows of BERT's tables: 512 positions and 2 types. */
#define BERT_POSITIONS (512 + 2)

static const struct transformer bert_base = {TRANSFORMER_BERT, 12,  768, 12, 12, 3072, 30522,
                                             BERT_POSITIONS,   true};
static const struct transformer bert_large = {TRANSFORMER_BERT, 24,  1024, 16, 16, 4096, 30522,
                                              BERT_POSITIONS,   true};
static const struct transformer gpt2_small = {TRANSFORMER_GPT, 12,   768, 12, 12, 3072,
                                              50257,           1024, true};
static const struct transformer gpt2_medium = {TRANSFORMER_GPT, 24,   1024, 16, 16, 4096,
                                               50257,           1024, true};
static const struct transformer gpt2_large = {TRANSFORMER_GPT, 36,   1280, 20, 20, 5120,
                                              50257,           1024, true};
static const struct transformer gpt2_xl = {TRANSFORMER_GPT, 48,   1600, 25, 25, 6400,
                                           50257,           1024, true};
static const struct transformer llama3_1b = {
    TRANSFORMER_LLAMA, 16, 2048, 32, 8, 8192, 128256, 0, true};
static const struct transformer llama3_8b = {
    TRANSFORMER_LLAMA, 32, 4096, 32, 8, 14336, 128256, 0, false};

const struct zoo_model zoo_models[] = {
    {"vgg16", "VGG-16, configuration D", OPTIMIZER_MOMENTUM, 0, 224, vgg_forward, NULL},
    {"resnet50", "ResNet-50, stride in the 3 x 3", OPTIMIZER_MOMENTUM, 0, 224, resnet_forward,
     resnet50_blocks},
    {"resnet152", "ResNet-152, stride in the 3 x 3", OPTIMIZER_MOMENTUM, 0, 224, resnet_forward,
     resnet152_blocks},
    {"inceptionv3", "Inception v3 without auxiliary head", OPTIMIZER_MOMENTUM, 0, 299,
     inception_forward, NULL},
    {"inceptionv4", "Inception v4", OPTIMIZER_MOMENTUM, 0, 299, inception4_forward, NULL},
    {"densenet121", "DenseNet-121, growth 32", OPTIMIZER_MOMENTUM, 0, 224, densenet_forward, NULL},
    {"unet", "U-Net, 64 to 1024 channels, padded", OPTIMIZER_MOMENTUM, 0, 512, unet_forward, NULL},
    {"lstm", "LSTM language model, 2 x 1500, 10,000 words", OPTIMIZER_MOMENTUM, 35, 0, lstm_forward,
     NULL},
    {"bert-base", "BERT base, pre-training", OPTIMIZER_ADAM, 512, 0, transformer_forward,
     &bert_base},
    {"bert-large", "BERT large, pre-training", OPTIMIZER_ADAM, 512, 0, transformer_forward,
     &bert_large},
    {"gpt2-small", "GPT-2 small", OPTIMIZER_ADAM, 1024, 0, transformer_forward, &gpt2_small},
    {"gpt2-medium", "GPT-2 medium", OPTIMIZER_ADAM, 1024, 0, transformer_forward, &gpt2_medium},
    {"gpt2-large", "GPT-2 large", OPTIMIZER_ADAM, 1024, 0, transformer_forward, &gpt2_large},
    {"gpt2-xl", "GPT-2 XL", OPTIMIZER_ADAM, 1024, 0, transformer_forward, &gpt2_xl},
    {"llama3-1b", "Llama 3.2 1B", OPTIMIZER_ADAM, 4096, 0, transformer_forward, &llama3_1b},
    {"llama3-8b", "Llama 3 8B", OPTIMIZER_ADAM, 8192, 0, transformer_forward, &llama3_8b},
    {NULL, NULL, OPTIMIZER_MOMENTUM, 0, 0, NULL, NULL},
};

const struct zoo_model *zoo_find(const char *name)
{
    for (const struct zoo_model *model = zoo_models; model->name != NULL; model++) {
        if (strcmp(model->name, name) == 0) {
            return model;
        }
    }
    return NULL;
}

/* Sets the default sizes of the network. */
static capu_status settle(const struct zoo_model *model, struct zoo_options *options,
                          struct error_text *error)
{
    if (options->batch == 0 || options->batch > ZOO_BATCH_MAX) {
        return error_text_set(error, options->batch == 0 ? CAPU_INVALID : CAPU_TOO_LARGE,
                              "a batch is 1 to %" PRIu64, ZOO_BATCH_MAX);
    }
    if ((options->sequence != 0 && model->sequence == 0) ||
        (options->image != 0 && model->image == 0)) {
        return error_text_set(error, CAPU_INVALID, "%s takes %s", model->name,
                              model->sequence == 0 ? "images, not sequences"
                                                   : "sequences, not images");
    }
    if (options->saves_matrix && model->forward != transformer_forward) {
        return error_text_set(error, CAPU_INVALID, "%s has no attention", model->name);
    }
    options->sequence = options->sequence != 0 ? options->sequence : model->sequence;
    options->image = options->image != 0 ? options->image : model->image;
    if (options->sequence > ZOO_BATCH_MAX || options->image > ZOO_BATCH_MAX) {
        return error_text_set(error, CAPU_TOO_LARGE, "sequences and images go up to %" PRIu64,
                              ZOO_BATCH_MAX);
    }
    return CAPU_OK;
}

static capu_status build_ops(const struct zoo_model *model, const struct zoo_options *options,
                             const struct hardware *hardware, struct trace *trace,
                             struct zoo_summary *summary, struct error_text *error)
{
    const struct tape_options tape_options = {.dtype = options->dtype,
                                              .optimizer = model->optimizer,
                                              .updates_asap = options->updates_asap};
    struct tape tape;
    capu_status status;

    tape_init(&tape, trace, hardware, &tape_options, error);
    model->forward(&tape, model, options);
    tape_finish_iteration(&tape);
    status = tape.status;
    if (status == CAPU_OK && options->by_layer) {
        status = merge_layers(&tape, error);
    }
    if (status == CAPU_OK && summary != NULL) {
        *summary =
            (struct zoo_summary){.parameter_count = tape.parameter_count, .flops = tape.flops};
    }
    tape_finish(&tape);
    return status;
}

capu_status zoo_build(const struct zoo_model *model, const struct zoo_options *options,
                      const struct hardware *hardware, struct trace *trace,
                      struct zoo_summary *summary, struct error_text *error)
{
    struct zoo_options settled = *options;
    char name[128];
    capu_status status;

    *trace = (struct trace){0};
    status = settle(model, &settled, error);
    if (status == CAPU_OK) {
        status = hardware_check(hardware, options->dtype, error);
    }
    if (status == CAPU_OK) {
        snprintf(name, sizeof(name), "%s-b%" PRIu64 "-%.64s%s%s%s", model->name, options->batch,
                 hardware->machine.name, options->updates_asap ? "-asap" : "",
                 options->saves_matrix ? "-saved" : "", options->by_layer ? "-layer" : "");
        status = trace_init(trace, name, error);
    }
    if (status == CAPU_OK) {
        status = trace_set_machine(trace, &hardware->machine, error);
        trace->batch = options->batch;
    }
    if (status == CAPU_OK) {
        status = build_ops(model, &settled, hardware, trace, summary, error);
    }
    if (status != CAPU_OK) {
        trace_finish(trace);
    }
    return status;
}

/* The list of models, and how one becomes a trace. */
#include "models/zoo.h"

#include "models/tape.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Merges the ops of a layer, for traces at the granularity of layers.
 *
 * It takes two passes over the trace. The first one assigns every op to a merged op and finds the
 * first and the last merged op that names each tensor. From that the second one can tell which
 * tensors never leave a merged op: they become its workspace. All others become its operands: read
 * if the contents come from before, written if it makes them, updated if both.
 */

/* In this order within a layer: ops that draw random numbers read nothing, and no other op reads
   what an update writes. */
enum part { PART_DRAW, PART_MAIN, PART_UPDATE, PART_COUNT };

/* How the op being merged uses a tensor. */
enum use { USE_NONE, USE_OF_READ, USE_OF_WRITE, USE_OF_UPDATE };

struct merge {
    const struct tape *tape;
    const struct trace *from;
    struct trace to;
    uint32_t *first_group; /* per tensor of `from`: first and last merged op that names it */
    uint32_t *last_group;
    uint32_t *last_op;  /* per tensor: the op of `from` that names it last */
    uint32_t *group_of; /* per op: its merged op */
    uint32_t *new_id;   /* per tensor of `from`: its new id plus one; 0: none yet */
    uint8_t *use;       /* per tensor: in the op being merged */
    uint32_t *named;    /* tensors of the op being merged, in order of their first use */
    uint32_t *lists[3]; /* reads, writes, updates, as new ids */
    struct error_text *error;
};

static enum part part_of(const struct merge *merge, uint32_t op)
{
    const struct trace_op *entry = &merge->from->ops[op];

    if (entry->update_count > 0) {
        return PART_UPDATE;
    }
    return entry->replayable ? PART_MAIN : PART_DRAW;
}

/* A run of consecutive ops of a layer: of the forward pass, or of the backward pass with its
 * updates. */
static uint32_t run_end(const struct merge *merge, uint32_t begin)
{
    const struct label *labels = merge->tape->labels;
    uint32_t end = begin + 1;

    while (end < merge->from->op_count && labels[end].layer == labels[begin].layer &&
           (labels[end].phase == PHASE_FORWARD) == (labels[begin].phase == PHASE_FORWARD)) {
        end++;
    }
    return end;
}

/* Numbers the merged ops and notes which of them name each tensor. */
static void survey_ops(struct merge *merge)
{
    const struct trace *from = merge->from;
    uint32_t group = 0;

    for (uint32_t begin = 0; begin < from->op_count;) {
        uint32_t end = run_end(merge, begin);

        for (uint32_t k = begin; k < end; k++) {
            const struct trace_op *op = &from->ops[k];

            merge->group_of[k] = group + part_of(merge, k);
            for (uint32_t i = 0; i < trace_operand_count(op); i++) {
                uint32_t t = from->operands[op->first + i];

                if (merge->last_op[t] == UINT32_MAX || merge->group_of[k] < merge->first_group[t]) {
                    merge->first_group[t] = merge->group_of[k];
                }
                if (merge->last_op[t] == UINT32_MAX || merge->group_of[k] > merge->last_group[t]) {
                    merge->last_group[t] = merge->group_of[k];
                }
                merge->last_op[t] = k;
            }
        }
        group += PART_COUNT;
        begin = end;
    }
}

static bool is_inner(const struct merge *merge, uint32_t tensor)
{
    return !merge->from->tensors[tensor].persistent &&
           merge->first_group[tensor] == merge->last_group[tensor];
}

/* The id of the tensor in the new trace; adds it if necessary. */
static capu_status carry_over(struct merge *merge, uint32_t tensor)
{
    const struct trace_tensor *old = &merge->from->tensors[tensor];
    struct tensor_description description = {.name = trace_tensor_name(merge->from, tensor),
                                             .bytes = old->bytes,
                                             .kind = (capu_kind)old->kind,
                                             .persistent = old->persistent,
                                             .scales = old->scales};
    uint32_t id = 0;
    capu_status status;

    if (merge->new_id[tensor] != 0) {
        return CAPU_OK;
    }
    status = trace_add_tensor(&merge->to, &description, &id, merge->error);
    merge->new_id[tensor] = id + 1;
    return status;
}

/* Combines how the op uses its tensors with how the merged op has used them so far. */
static void note_uses(struct merge *merge, const struct trace_op *op, uint32_t *named_count)
{
    for (uint32_t i = 0; i < trace_operand_count(op); i++) {
        uint32_t t = merge->from->operands[op->first + i];
        bool is_read = i < op->read_count;
        bool is_write = !is_read && i < op->read_count + op->write_count;

        if (merge->use[t] == USE_NONE) {
            merge->named[(*named_count)++] = t;
            merge->use[t] = is_read ? USE_OF_READ : is_write ? USE_OF_WRITE : USE_OF_UPDATE;
        } else if (merge->use[t] == USE_OF_READ && !is_read) {
            merge->use[t] = USE_OF_UPDATE;
        }
    }
}

/* The peak size of the inner tensors over the ops of one part of a run. */
static uint64_t inner_bytes(const struct merge *merge, uint32_t begin, uint32_t end, enum part part)
{
    uint64_t alive = 0;
    uint64_t most = 0;

    for (uint32_t k = begin; k < end; k++) {
        const struct trace_op *op = &merge->from->ops[k];
        const uint32_t *operands = merge->from->operands + op->first;

        if (part_of(merge, k) != part) {
            continue;
        }
        for (uint32_t i = op->read_count; i < op->read_count + op->write_count; i++) {
            alive += is_inner(merge, operands[i]) ? merge->from->tensors[operands[i]].bytes : 0;
        }
        most = alive > most ? alive : most;
        for (uint32_t i = 0; i < trace_operand_count(op); i++) {
            alive -= is_inner(merge, operands[i]) && merge->last_op[operands[i]] == k
                         ? merge->from->tensors[operands[i]].bytes
                         : 0;
        }
    }
    return most;
}

static const char *name_of(const struct merge *merge, uint32_t op, enum part part)
{
    const struct label *label = &merge->tape->labels[op];

    if (label->phase == PHASE_FORWARD) {
        return part == PART_DRAW ? "draw" : part == PART_MAIN ? "fwd" : "running";
    }
    return part == PART_UPDATE ? "update" : "bwd";
}

/* Sorts the named tensors into the lists of operands, and clears their uses. */
static capu_status fill_lists(struct merge *merge, uint32_t named_count, size_t *counts)
{
    capu_status status = CAPU_OK;

    for (uint32_t i = 0; i < named_count; i++) {
        uint32_t t = merge->named[i];
        enum use use = (enum use)merge->use[t];

        merge->use[t] = USE_NONE;
        if (status == CAPU_OK && !is_inner(merge, t)) {
            status = carry_over(merge, t);
            merge->lists[use - USE_OF_READ][counts[use - USE_OF_READ]++] = merge->new_id[t] - 1;
        }
    }
    return status;
}

/* Adds one part of a run as one op; nothing if the part has no ops. */
static capu_status merge_part(struct merge *merge, uint32_t begin, uint32_t end, enum part part)
{
    char name[2 * TAPE_NAME_MAX];
    size_t counts[3] = {0};
    struct op_description description = {.name = name, .replayable = part == PART_MAIN};
    uint64_t workspace = inner_bytes(merge, begin, end, part);
    uint32_t named_count = 0;
    uint32_t op_count = 0;
    uint32_t id = 0;
    capu_status status;

    for (uint32_t k = begin; k < end; k++) {
        if (part_of(merge, k) == part) {
            note_uses(merge, &merge->from->ops[k], &named_count);
            description.ns += merge->from->ops[k].ns;
            description.scales |= merge->from->ops[k].scales;
            op_count++;
        }
    }
    status = fill_lists(merge, named_count, counts);
    if (status != CAPU_OK || op_count == 0) {
        return status;
    }
    snprintf(name, sizeof(name), "%s.%s", merge->tape->layers[merge->tape->labels[begin].layer],
             name_of(merge, begin, part));
    if (workspace > 0) {
        char inner[sizeof(name) + 8];
        struct tensor_description scratch = {
            .name = inner, .bytes = workspace, .kind = CAPU_WORKSPACE, .scales = true};

        snprintf(inner, sizeof(inner), "%s.inner", name);
        status = trace_add_tensor(&merge->to, &scratch, &id, merge->error);
        merge->lists[1][counts[1]++] = id;
    }
    description.reads = merge->lists[0];
    description.writes = merge->lists[1];
    description.updates = merge->lists[2];
    description.read_count = counts[0];
    description.write_count = counts[1];
    description.update_count = counts[2];
    return status == CAPU_OK ? trace_add_op(&merge->to, &description, merge->error) : status;
}

static capu_status merge_all(struct merge *merge)
{
    capu_status status = CAPU_OK;

    for (uint32_t begin = 0; status == CAPU_OK && begin < merge->from->op_count;) {
        uint32_t end = run_end(merge, begin);

        for (int part = 0; status == CAPU_OK && part < PART_COUNT; part++) {
            status = merge_part(merge, begin, end, (enum part)part);
        }
        begin = end;
    }
    return status;
}

static bool allocate_merge(struct merge *merge)
{
    size_t tensors = (size_t)merge->from->tensor_count + 1;
    bool is_fine = true;

    merge->first_group = calloc(tensors, sizeof(*merge->first_group));
    merge->last_group = calloc(tensors, sizeof(*merge->last_group));
    merge->last_op = malloc(tensors * sizeof(*merge->last_op));
    merge->group_of = calloc((size_t)merge->from->op_count + 1, sizeof(*merge->group_of));
    merge->new_id = calloc(tensors, sizeof(*merge->new_id));
    merge->use = calloc(tensors, sizeof(*merge->use));
    merge->named = calloc(tensors, sizeof(*merge->named));
    for (int i = 0; i < 3; i++) {
        merge->lists[i] = calloc(tensors + 1, sizeof(*merge->lists[i]));
        is_fine &= merge->lists[i] != NULL;
    }
    if (merge->last_op != NULL) {
        memset(merge->last_op, 0xff, tensors * sizeof(*merge->last_op));
    }
    return is_fine && merge->first_group != NULL && merge->last_group != NULL &&
           merge->last_op != NULL && merge->group_of != NULL && merge->new_id != NULL &&
           merge->use != NULL && merge->named != NULL;
}

/*
 * Replaces the tape's trace by one in which each run of consecutive ops of a layer becomes at most
 * three ops: those that draw random numbers, those that can be replayed, and those that update.
 * They stay apart because a merged op can only be replayed if all its parts can. Tensors that live
 * only inside a merged op become its workspace, which is as large as the most of them that are
 * alive at the same time.
 *
 * Errors: TOO_LARGE, NO_HOST_MEMORY; the trace is as before.
 */
static capu_status merge_layers(struct tape *tape, struct error_text *error)
{
    struct merge merge = {.tape = tape, .from = tape->trace, .error = error};
    capu_status status = trace_init(&merge.to, trace_text(tape->trace, tape->trace->name), error);

    if (status == CAPU_OK && !allocate_merge(&merge)) {
        status = CAPU_NO_HOST_MEMORY;
    }
    if (status == CAPU_OK) {
        status = trace_set_machine(&merge.to, &tape->trace->machine, error);
        merge.to.batch = tape->trace->batch;
    }
    if (status == CAPU_OK) {
        survey_ops(&merge);
        status = merge_all(&merge);
    }
    if (status == CAPU_OK) {
        trace_finish(tape->trace);
        *tape->trace = merge.to;
        merge.to = (struct trace){0};
    }
    trace_finish(&merge.to);
    free(merge.first_group);
    free(merge.last_group);
    free(merge.last_op);
    free(merge.group_of);
    free(merge.new_id);
    free(merge.use);
    free(merge.named);
    for (int i = 0; i < 3; i++) {
        free(merge.lists[i]);
    }
    return status;
}

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
static capu_status settle_options(const struct zoo_model *model, struct zoo_options *options,
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
    status = settle_options(model, &settled, error);
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

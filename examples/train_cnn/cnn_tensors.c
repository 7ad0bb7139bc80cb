/* The network's tensors. */
#include "examples/train_cnn/cnn.h"

#include "examples/common/try.h"

#include "kernels/initialise.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const uint32_t stage_blocks[CNN_STAGES] = {3, 4, 6, 3};

static capu_status make_bytes(struct cnn *cnn, const char *name, size_t bytes, capu_kind kind,
                              capu_lifetime lifetime, void **address)
{
    TRY(capu_malloc(cnn->context, bytes, address));
    return CAPU_DESCRIBE(cnn->context, *address, .name = name, .kind = kind, .lifetime = lifetime);
}

static capu_status make_tensor(struct cnn *cnn, const char *name, const char *what, size_t bytes,
                               capu_kind kind, void **address)
{
    char full[64];

    snprintf(full, sizeof(full), "%s.%s", name, what);
    return make_bytes(cnn, full, bytes, kind, CAPU_LIFETIME_DEFAULT, address);
}

/* In the element type. */
static capu_status make(struct cnn *cnn, const char *name, const char *what, size_t count,
                        capu_kind kind, void **address)
{
    return make_tensor(cnn, name, what, count * element_bytes(cnn->shape.element), kind, address);
}

static capu_status make_floats(struct cnn *cnn, const char *name, const char *what, size_t count,
                               capu_kind kind, float **address)
{
    void *memory = NULL;

    TRY(make_tensor(cnn, name, what, count * sizeof(float), kind, &memory));
    *address = memory;
    return CAPU_OK;
}

/*
 * The buffer of this slot and size: what two layers of one shape need at different times has one
 * slot, as in programs that know their own memory. Every use overwrites all of it.
 */
static capu_status share(struct cnn *cnn, const char *slot, size_t count, capu_kind kind,
                         void **address)
{
    struct cnn_shared *shared;
    char what[32];

    for (size_t i = 0; i < cnn->shared_count; i++) {
        shared = &cnn->shared[i];
        if (shared->count == count && strcmp(shared->slot, slot) == 0) {
            *address = shared->address;
            return CAPU_OK;
        }
    }
    if (cnn->shared_count == CNN_SHARED) {
        return CAPU_TOO_LARGE;
    }
    shared = &cnn->shared[cnn->shared_count++];
    shared->slot = slot;
    shared->count = count;
    snprintf(what, sizeof(what), "%zu", count);
    TRY(make(cnn, slot, what, count, kind, &shared->address));
    *address = shared->address;
    return CAPU_OK;
}

/* A master and its working weight begin with the same numbers, these rounded. */
static capu_status make_parameter(struct cnn *cnn, const char *name, const char *what, size_t count,
                                  const struct initialise *start, struct cnn_parameter *parameter)
{
    struct initialise arguments = *start;
    char gradient[32];
    char velocity[32];
    char master[32];

    snprintf(gradient, sizeof(gradient), "%s.gradient", what);
    snprintf(velocity, sizeof(velocity), "%s.velocity", what);
    snprintf(master, sizeof(master), "%s.master", what);
    parameter->count = count;
    TRY(make(cnn, name, what, count, CAPU_PARAMETER, &parameter->value));
    TRY(make_floats(cnn, name, gradient, count, CAPU_GRADIENT, &parameter->gradient));
    TRY(make_floats(cnn, name, velocity, count, CAPU_OPTIMIZER, &parameter->velocity));
    arguments.output = parameter->value;
    arguments.count = count;
    arguments.element = cnn->shape.element;
    TRY(initialise(cnn->context, &arguments));
    if (cnn->shape.element == ELEMENT_BF16) {
        TRY(make_floats(cnn, name, master, count, CAPU_OPTIMIZER, &parameter->master));
        arguments.output = parameter->master;
        arguments.element = ELEMENT_FP32;
        TRY(initialise(cnn->context, &arguments));
    }
    return capu_zero(cnn->context, parameter->velocity, 0);
}

static capu_status make_statistic(struct cnn *cnn, const char *name, const char *what,
                                  uint32_t count, float value, float **address)
{
    TRY(make_floats(cnn, name, what, count, CAPU_PARAMETER, address));
    return initialise(cnn->context, &(struct initialise){.output = *address,
                                                         .count = count,
                                                         .kind = INITIALISE_CONSTANT,
                                                         .a = value});
}

/* What of a unit is shared by those that have the same part in a block. */
struct slots {
    const char *normed;
    const char *gradient;
    bool has_relu;
};

static const struct slots stem_slots = {"stem.normed", "stem.gradient", true};
static const struct slots reduce_slots = {"normed", "reduce.gradient", true};
static const struct slots middle_slots = {"normed", "middle.gradient", true};
static const struct slots expand_slots = {"expand.normed", "expand.gradient", false};
static const struct slots project_slots = {"project.normed", "project.gradient", false};

static capu_status make_unit(struct cnn *cnn, const char *name, const struct cnn_unit *shape,
                             const struct slots *slots, uint64_t seed, struct cnn_unit **out)
{
    struct cnn_unit *unit = &cnn->units[cnn->unit_count];
    size_t inputs = (size_t)shape->inputs * shape->kernel * shape->kernel;
    size_t count = (size_t)cnn->shape.batch * shape->outputs * shape->side * shape->side;
    struct initialise weight = {.seed = seed,
                                .counter = cnn->unit_count,
                                .kind = INITIALISE_NORMAL,
                                .b = sqrtf(2.0f / (float)inputs)};
    struct initialise one = {.kind = INITIALISE_CONSTANT, .a = 1.0f};
    struct initialise zero = {.kind = INITIALISE_CONSTANT};

    cnn->unit_count++;
    *unit = *shape;
    TRY(make_parameter(cnn, name, "weight", inputs * unit->outputs, &weight, &unit->weight));
    TRY(make_parameter(cnn, name, "scale", unit->outputs, &one, &unit->scale));
    TRY(make_parameter(cnn, name, "shift", unit->outputs, &zero, &unit->shift));
    TRY(make_statistic(cnn, name, "running_mean", unit->outputs, 0.0f, &unit->running_mean));
    TRY(make_statistic(cnn, name, "running_variance", unit->outputs, 1.0f,
                       &unit->running_variance));
    TRY(make_floats(cnn, name, "saved_mean", unit->outputs, CAPU_ACTIVATION, &unit->saved_mean));
    TRY(make_floats(cnn, name, "saved_rstd", unit->outputs, CAPU_ACTIVATION, &unit->saved_rstd));
    TRY(make(cnn, name, "convolved", count, CAPU_ACTIVATION, &unit->convolved));
    TRY(share(cnn, slots->normed, count, CAPU_ACTIVATION, &unit->normed));
    TRY(share(cnn, slots->gradient, count, CAPU_GRADIENT, &unit->gradient));
    *out = unit;
    return slots->has_relu ? make(cnn, name, "output", count, CAPU_ACTIVATION, &unit->output)
                           : CAPU_OK;
}

/* What is left of a side of which every second position is taken. */
static uint32_t half(uint32_t side)
{
    return (side + 1) / 2;
}

static capu_status make_block_units(struct cnn *cnn, size_t index, uint32_t inputs, uint32_t width,
                                    uint32_t side, uint32_t stride, uint64_t seed)
{
    struct cnn_block *block = &cnn->blocks[index];
    uint32_t left = stride == 2 ? half(side) : side;
    struct cnn_unit reduce = {.inputs = inputs,
                              .outputs = width,
                              .entering_side = side,
                              .side = side,
                              .kernel = 1,
                              .stride = 1};
    struct cnn_unit middle = {.inputs = width,
                              .outputs = width,
                              .entering_side = side,
                              .side = left,
                              .kernel = 3,
                              .stride = stride};
    struct cnn_unit expand = {.inputs = width,
                              .outputs = 4 * width,
                              .entering_side = left,
                              .side = left,
                              .kernel = 1,
                              .stride = 1};
    struct cnn_unit project = {.inputs = inputs,
                               .outputs = 4 * width,
                               .entering_side = side,
                               .side = left,
                               .kernel = 1,
                               .stride = stride};
    char name[48];

    snprintf(name, sizeof(name), "block%zu.reduce", index);
    TRY(make_unit(cnn, name, &reduce, &reduce_slots, seed, &block->reduce));
    snprintf(name, sizeof(name), "block%zu.middle", index);
    TRY(make_unit(cnn, name, &middle, &middle_slots, seed, &block->middle));
    snprintf(name, sizeof(name), "block%zu.expand", index);
    TRY(make_unit(cnn, name, &expand, &expand_slots, seed, &block->expand));
    if (inputs == 4 * width && stride == 1) {
        return CAPU_OK;
    }
    snprintf(name, sizeof(name), "block%zu.project", index);
    return make_unit(cnn, name, &project, &project_slots, seed, &block->project);
}

static capu_status make_block(struct cnn *cnn, size_t index, uint32_t inputs, uint32_t width,
                              uint32_t side, uint32_t stride, uint64_t seed)
{
    struct cnn_block *block = &cnn->blocks[index];
    size_t entering = (size_t)cnn->shape.batch * inputs * side * side;
    size_t leaving;
    char name[32];

    *block = (struct cnn_block){.channels = 4 * width};
    TRY(make_block_units(cnn, index, inputs, width, side, stride, seed));
    block->side = block->expand->side;
    leaving = (size_t)cnn->shape.batch * block->channels * block->side * block->side;
    snprintf(name, sizeof(name), "block%zu", index);
    TRY(share(cnn, "sum", leaving, CAPU_ACTIVATION, &block->sum));
    TRY(make(cnn, name, "output", leaving, CAPU_ACTIVATION, &block->output));
    /* A block's gradient and that of the one before are there at once. */
    TRY(share(cnn, index % 2 == 0 ? "even.gradient" : "odd.gradient", leaving, CAPU_GRADIENT,
              &block->gradient));
    return share(cnn, "spare", entering, CAPU_GRADIENT, &block->spare);
}

static capu_status make_blocks(struct cnn *cnn, uint64_t seed, uint32_t side, uint32_t *channels)
{
    size_t index = 0;
    uint32_t width = cnn->shape.width;

    for (size_t stage = 0; stage < CNN_STAGES; stage++, width *= 2) {
        for (uint32_t i = 0; i < stage_blocks[stage]; i++, index++) {
            TRY(make_block(cnn, index, *channels, width, side, stage > 0 && i == 0 ? 2 : 1, seed));
            side = cnn->blocks[index].side;
            *channels = cnn->blocks[index].channels;
        }
    }
    return CAPU_OK;
}

struct conv2d cnn_conv(const struct cnn *cnn, const struct cnn_unit *unit)
{
    return (struct conv2d){
        .batch = cnn->shape.batch,
        .input_channels = unit->inputs,
        .output_channels = unit->outputs,
        .height = unit->entering_side,
        .width = unit->entering_side,
        .kernel = unit->kernel,
        .padding = unit->kernel / 2,
        .stride = unit->stride,
        .element = cnn->shape.element,
    };
}

/* The largest workspace that a convolution wants: all of them share one tensor. */
static size_t workspace_floats(const struct cnn *cnn)
{
    size_t largest = 0;

    for (size_t i = 0; i < cnn->unit_count; i++) {
        struct conv2d conv = cnn_conv(cnn, &cnn->units[i]);
        size_t bytes = conv2d_workspace_bytes(&conv);

        largest = bytes > largest ? bytes : largest;
    }
    return largest / sizeof(float);
}

static capu_status make_ends(struct cnn *cnn, uint32_t channels, uint64_t seed)
{
    size_t batch = cnn->shape.batch;
    size_t logits = batch * CNN_CLASSES;
    void *labels = NULL;
    struct initialise weight = {.seed = seed,
                                .counter = CNN_UNITS,
                                .kind = INITIALISE_NORMAL,
                                .b = sqrtf(1.0f / (float)channels)};
    struct initialise zero = {.kind = INITIALISE_CONSTANT};

    TRY(make(cnn, "last", "pooled", batch * channels, CAPU_ACTIVATION, &cnn->last_pooled));
    TRY(make(cnn, "last", "gradient", batch * channels, CAPU_GRADIENT, &cnn->last_gradient));
    TRY(make_parameter(cnn, "dense", "weight", (size_t)channels * CNN_CLASSES, &weight,
                       &cnn->dense));
    TRY(make_parameter(cnn, "dense", "bias", CNN_CLASSES, &zero, &cnn->dense_bias));
    TRY(make(cnn, "loss", "logits", logits, CAPU_ACTIVATION, &cnn->logits));
    TRY(make(cnn, "loss", "logits.gradient", logits, CAPU_GRADIENT, &cnn->logits_gradient));
    TRY(make(cnn, "loss", "probabilities", logits, CAPU_ACTIVATION, &cnn->probabilities));
    TRY(make_floats(cnn, "loss", "losses", batch, CAPU_ACTIVATION, &cnn->losses));
    TRY(make_floats(cnn, "loss", "mean", 1, CAPU_ACTIVATION, &cnn->mean_loss));
    TRY(make_bytes(cnn, "labels", batch * sizeof(int32_t), CAPU_INPUT, CAPU_LIFETIME_DEFAULT,
                   &labels));
    cnn->labels = labels;
    return make_floats(cnn, "conv", "workspace", workspace_floats(cnn), CAPU_WORKSPACE,
                       &cnn->workspace);
}

static capu_status make_stem(struct cnn *cnn, uint64_t seed)
{
    uint32_t side = half(cnn->shape.side);
    size_t pooled = (size_t)cnn->shape.batch * cnn->shape.width * half(side) * half(side);
    struct cnn_unit shape = {.inputs = 3,
                             .outputs = cnn->shape.width,
                             .entering_side = cnn->shape.side,
                             .side = side,
                             .kernel = 7,
                             .stride = 2};
    struct cnn_unit *stem = NULL;
    void *places = NULL;

    TRY(make_unit(cnn, "stem", &shape, &stem_slots, seed, &stem));
    TRY(make(cnn, "stem", "pooled", pooled, CAPU_ACTIVATION, &cnn->stem_pooled));
    TRY(make_bytes(cnn, "stem.places", pooled, CAPU_ACTIVATION, CAPU_LIFETIME_DEFAULT, &places));
    cnn->stem_places = places;
    return make(cnn, "stem", "pooled.gradient", pooled, CAPU_GRADIENT, &cnn->stem_gradient);
}

capu_status cnn_init(struct cnn *cnn, capu_context *context, const struct cnn_shape *shape,
                     uint64_t seed)
{
    uint32_t channels = shape->width;

    if (shape->batch == 0 || shape->side == 0 || shape->side > CNN_SIDE_LIMIT ||
        shape->width == 0 || shape->width > CNN_WIDTH_LIMIT) {
        return CAPU_INVALID;
    }
    *cnn = (struct cnn){.context = context, .shape = *shape};
    TRY(make(cnn, "input", "images", (size_t)shape->batch * 3 * shape->side * shape->side,
             CAPU_INPUT, &cnn->images));
    TRY(make_stem(cnn, seed));
    TRY(make_blocks(cnn, seed, half(half(shape->side)), &channels));
    return make_ends(cnn, channels, seed);
}

static struct weight weight_of(const char *name, const float *address, size_t count)
{
    return (struct weight){.name = name, .address = address, .bytes = count * sizeof(float)};
}

static struct weight weight_of_parameter(const char *name, const struct cnn_parameter *parameter)
{
    return weight_of(name, parameter->master != NULL ? parameter->master : parameter->value,
                     parameter->count);
}

size_t cnn_weights(const struct cnn *cnn, struct weight *weights)
{
    size_t count = 0;

    for (size_t i = 0; i < cnn->unit_count; i++) {
        const struct cnn_unit *unit = &cnn->units[i];

        weights[count++] = weight_of_parameter("weight", &unit->weight);
        weights[count++] = weight_of_parameter("scale", &unit->scale);
        weights[count++] = weight_of_parameter("shift", &unit->shift);
        weights[count++] = weight_of("running_mean", unit->running_mean, unit->outputs);
        weights[count++] = weight_of("running_variance", unit->running_variance, unit->outputs);
    }
    weights[count++] = weight_of_parameter("dense.weight", &cnn->dense);
    weights[count++] = weight_of_parameter("dense.bias", &cnn->dense_bias);
    return count;
}

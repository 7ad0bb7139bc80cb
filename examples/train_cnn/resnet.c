/*
 * Builds the table of ResNet-50.
 *
 * Most of the network's memory is activations, so the tensors are those of a program that already
 * saves what it can by itself: what no backward pass reads (the normed values, sums) and the
 * gradients lie in slots that layers of one shape use in turn. What remains is what a memory
 * manager has to earn: each convolution's output, which its norm reads again, and each relu's
 * output, which the relu and the next convolution read again.
 */
#include "examples/train_cnn/resnet.h"

#include <assert.h>
#include <stdio.h>

#define STAGES 4

/* One per convolution and one for the dense layer. */
#define STREAMS 128
#define DENSE_STREAM 65

static const uint32_t stage_blocks[STAGES] = {3, 4, 6, 3};

/* A convolution, its norm and, in most places, a relu. */
struct unit {
    const char *name;
    uint32_t channels;
    uint32_t kernel;
    uint32_t stride;
    uint32_t input; /* as in struct layer */
    const char *normed_slot;
    const char *gradient_slot;
    bool has_relu;
};

/* Adds a layer. Returns its number, by which others name it. */
static uint32_t add(struct resnet *resnet, const struct layer *layer, const char *name,
                    const char *what)
{
    struct layer *added = &resnet->layers[resnet->table.count];

    assert(resnet->table.count < RESNET_LAYERS_LIMIT);
    *added = *layer;
    snprintf(added->name, sizeof(added->name), "%s.%s", name, what);
    return (uint32_t)++resnet->table.count;
}

/* `stream` is that of the next convolution. */
static uint32_t add_unit(struct resnet *resnet, const struct unit *unit, uint32_t *stream)
{
    uint32_t number;

    add(resnet,
        &(struct layer){.kind = LAYER_CONV,
                        .size = unit->channels,
                        .kernel = unit->kernel,
                        .stride = unit->stride,
                        .padding = unit->kernel / 2,
                        .stream = (*stream)++,
                        .input = unit->input},
        unit->name, "conv");
    number = add(resnet,
                 &(struct layer){.kind = LAYER_NORM,
                                 .output_slot = unit->normed_slot,
                                 .gradient_slot = unit->gradient_slot},
                 unit->name, "norm");
    if (unit->has_relu) {
        number =
            add(resnet, &(struct layer){.kind = LAYER_RELU, .gradient_slot = unit->gradient_slot},
                unit->name, "relu");
    }
    return number;
}

/* The three convolutions of a block. Returns the number of the last layer. */
static uint32_t add_branch(struct resnet *resnet, const char *block, uint32_t input, uint32_t width,
                           uint32_t stride, uint32_t *stream)
{
    char name[24];
    struct unit reduce = {.name = name,
                          .channels = width,
                          .kernel = 1,
                          .stride = 1,
                          .input = input,
                          .normed_slot = "normed",
                          .gradient_slot = "reduce.gradient",
                          .has_relu = true};
    struct unit middle = {.name = name,
                          .channels = width,
                          .kernel = 3,
                          .stride = stride,
                          .normed_slot = "normed",
                          .gradient_slot = "middle.gradient",
                          .has_relu = true};
    struct unit expand = {.name = name,
                          .channels = 4 * width,
                          .kernel = 1,
                          .stride = 1,
                          .normed_slot = "expand.normed",
                          .gradient_slot = "expand.gradient"};

    snprintf(name, sizeof(name), "%s.reduce", block);
    add_unit(resnet, &reduce, stream);
    snprintf(name, sizeof(name), "%s.middle", block);
    add_unit(resnet, &middle, stream);
    snprintf(name, sizeof(name), "%s.expand", block);
    return add_unit(resnet, &expand, stream);
}

/* A projection brings what enters to the shape of what leaves; where they have one shape there is
 * none. Returns the number of the block's last layer. */
static uint32_t add_block(struct resnet *resnet, size_t index, uint32_t input, uint32_t width,
                          uint32_t stride, bool is_projected, uint32_t *stream)
{
    char block[16];
    char name[24];
    struct unit project = {.name = name,
                           .channels = 4 * width,
                           .kernel = 1,
                           .stride = stride,
                           .input = input,
                           .normed_slot = "project.normed",
                           .gradient_slot = "project.gradient"};
    struct layer sum = {.kind = LAYER_ADD, .input = input, .output_slot = "sum"};
    /* The gradients of this block's output and of the previous one's exist at the same time. */
    struct layer relu = {.kind = LAYER_RELU,
                         .gradient_slot = index % 2 == 0 ? "even.gradient" : "odd.gradient"};

    snprintf(block, sizeof(block), "block%zu", index);
    sum.branch = add_branch(resnet, block, input, width, stride, stream);
    if (is_projected) {
        snprintf(name, sizeof(name), "%s.project", block);
        sum.input = add_unit(resnet, &project, stream);
    }
    add(resnet, &sum, block, "sum");
    return add(resnet, &relu, block, "relu");
}

static void add_blocks(struct resnet *resnet, uint32_t input, uint32_t width, uint32_t *stream)
{
    size_t index = 0;

    for (uint32_t stage = 0; stage < STAGES; stage++) {
        for (uint32_t i = 0; i < stage_blocks[stage]; i++) {
            input = add_block(resnet, index++, input, width << stage, stage > 0 && i == 0 ? 2 : 1,
                              i == 0, stream);
        }
    }
}

void resnet_init(struct resnet *resnet, uint32_t side, uint32_t width)
{
    struct unit stem = {
        .name = "stem", .channels = width, .kernel = 7, .stride = 2, .has_relu = true};
    struct layer pool = {.kind = LAYER_MAX_POOL, .kernel = 3, .stride = 2, .padding = 1};
    struct layer average = {.kind = LAYER_AVERAGE_POOL};
    struct layer dense = {.kind = LAYER_DENSE,
                          .size = RESNET_CLASSES,
                          .has_bias = true,
                          .gain = 1.0f,
                          .stream = DENSE_STREAM};
    uint32_t stream = 0;

    *resnet = (struct resnet){
        .table = {.layers = resnet->layers, .channels = 3, .side = side, .streams = STREAMS}};
    add_unit(resnet, &stem, &stream);
    add_blocks(resnet, add(resnet, &pool, "stem", "pool"), width, &stream);
    add(resnet, &average, "last", "pool");
    add(resnet, &dense, "last", "dense");
}

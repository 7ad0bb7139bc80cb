/*
 * VGG-16 (Simonyan and Zisserman, 2014), ResNet (He et al., 2015; with the stride in the 3 x 3, the
 * variant that is trained now), DenseNet-121 (Huang et al., 2016) and U-Net (Ronneberger et al.,
 * 2015).
 */
#include "models/layers.h"
#include "models/zoo.h"

#include <stdio.h>

#define CLASSES 1000
#define DENSE_INPUTS_MAX 32
#define DENSE_GROWTH 32
#define UNET_LEVELS 4
#define UNET_CLASSES 2

const uint32_t resnet50_blocks[4] = {3, 4, 6, 3};
const uint32_t resnet152_blocks[4] = {3, 8, 36, 3};

static uint32_t images(struct tape *tape, const struct zoo_options *options)
{
    return tape_input(tape, options->batch, 3, options->image, options->image,
                      tape_element_bytes(tape), "images");
}

/* A square kernel without bias, padded so that stride 1 keeps the size of the image. */
static uint32_t plain_conv(struct tape *tape, uint32_t x, uint64_t channels, uint64_t kernel,
                           uint64_t stride, const char *name)
{
    struct conv conv = {.channels = channels,
                        .kernel_height = kernel,
                        .kernel_width = kernel,
                        .stride = stride,
                        .pad_height = kernel / 2,
                        .pad_width = kernel / 2};

    return layer_conv(tape, x, &conv, name);
}

void vgg_forward(struct tape *tape, const struct zoo_model *model,
                 const struct zoo_options *options)
{
    static const uint64_t channels[] = {64, 64,  0,   128, 128, 0,   256, 256, 256,
                                        0,  512, 512, 512, 0,   512, 512, 512, 0};
    static const struct pool pool = {.kernel = 2, .stride = 2};
    struct conv conv = {.kernel_height = 3,
                        .kernel_width = 3,
                        .stride = 1,
                        .pad_height = 1,
                        .pad_width = 1,
                        .has_bias = true,
                        .has_relu = true};
    uint32_t x = images(tape, options);
    char name[TAPE_NAME_MAX];

    (void)model;
    for (size_t i = 0; i < sizeof(channels) / sizeof(channels[0]); i++) {
        conv.channels = channels[i];
        snprintf(name, sizeof(name), "%s%zu", conv.channels != 0 ? "conv" : "pool", i + 1);
        tape_layer(tape, "%s", name);
        x = conv.channels != 0 ? layer_conv(tape, x, &conv, name)
                               : layer_pool(tape, x, &pool, name);
    }
    tape_layer(tape, "classifier");
    if (options->image != model->image) {
        x = layer_pool_to(tape, x, 7, 7, "pool_to");
    }
    x = layer_linear(tape, x, 4096, true, true, "linear1");
    x = layer_dropout(tape, x, "dropout1");
    x = layer_linear(tape, x, 4096, true, true, "linear2");
    x = layer_dropout(tape, x, "dropout2");
    x = layer_linear(tape, x, CLASSES, true, false, "linear3");
    layer_loss(tape, x, "loss");
}

/* 1 x 1, 3 x 3, 1 x 1; the shortcut is the identity, or a 1 x 1 where the shape changes. */
static uint32_t bottleneck(struct tape *tape, uint32_t x, uint64_t channels, uint64_t stride,
                           const char *block)
{
    char name[TAPE_NAME_MAX];
    uint32_t side = x;
    uint32_t y;

    tape_layer(tape, "%s", block);
    snprintf(name, sizeof(name), "%.32s.conv1", block);
    y = plain_conv(tape, x, channels, 1, 1, name);
    snprintf(name, sizeof(name), "%.32s.bn1", block);
    y = layer_batch_norm(tape, y, true, name);
    snprintf(name, sizeof(name), "%.32s.conv2", block);
    y = plain_conv(tape, y, channels, 3, stride, name);
    snprintf(name, sizeof(name), "%.32s.bn2", block);
    y = layer_batch_norm(tape, y, true, name);
    snprintf(name, sizeof(name), "%.32s.conv3", block);
    y = plain_conv(tape, y, channels * 4, 1, 1, name);
    snprintf(name, sizeof(name), "%.32s.bn3", block);
    y = layer_batch_norm(tape, y, false, name);
    if (tape_at(tape, x).channels != channels * 4) {
        snprintf(name, sizeof(name), "%.32s.side.conv", block);
        side = plain_conv(tape, x, channels * 4, 1, stride, name);
        snprintf(name, sizeof(name), "%.32s.side.bn", block);
        side = layer_batch_norm(tape, side, false, name);
    }
    snprintf(name, sizeof(name), "%.32s.add", block);
    return layer_add(tape, y, side, true, name);
}

void resnet_forward(struct tape *tape, const struct zoo_model *model,
                    const struct zoo_options *options)
{
    static const struct pool pool = {.kernel = 3, .stride = 2, .pad = 1};
    const uint32_t *blocks = model->shape;
    uint32_t x = images(tape, options);
    char name[TAPE_NAME_MAX];

    tape_layer(tape, "stem");
    x = plain_conv(tape, x, 64, 7, 2, "conv1");
    x = layer_batch_norm(tape, x, true, "bn1");
    x = layer_pool(tape, x, &pool, "pool1");
    for (uint32_t stage = 0; stage < 4; stage++) {
        for (uint32_t i = 0; i < blocks[stage]; i++) {
            snprintf(name, sizeof(name), "stage%u.%u", stage + 1, i + 1);
            x = bottleneck(tape, x, (uint64_t)64 << stage, stage > 0 && i == 0 ? 2 : 1, name);
        }
    }
    tape_layer(tape, "classifier");
    x = layer_pool_to(tape, x, 1, 1, "pool");
    x = layer_linear(tape, x, CLASSES, true, false, "linear");
    layer_loss(tape, x, "loss");
}

/* Its input is everything that the block has computed so far. */
static uint32_t dense_layer(struct tape *tape, const uint32_t *inputs, uint32_t count,
                            const char *layer)
{
    char name[TAPE_NAME_MAX];
    uint32_t x = inputs[0];

    tape_layer(tape, "%s", layer);
    if (count > 1) {
        snprintf(name, sizeof(name), "%.32s.cat", layer);
        x = layer_concatenate(tape, inputs, count, false, name);
    }
    snprintf(name, sizeof(name), "%.32s.bn1", layer);
    x = layer_batch_norm(tape, x, true, name);
    snprintf(name, sizeof(name), "%.32s.conv1", layer);
    x = plain_conv(tape, x, 4 * DENSE_GROWTH, 1, 1, name);
    snprintf(name, sizeof(name), "%.32s.bn2", layer);
    x = layer_batch_norm(tape, x, true, name);
    snprintf(name, sizeof(name), "%.32s.conv2", layer);
    return plain_conv(tape, x, DENSE_GROWTH, 3, 1, name);
}

static uint32_t dense_transition(struct tape *tape, uint32_t x, uint32_t number)
{
    static const struct pool halve = {.kernel = 2, .stride = 2, .is_average = true};
    char name[TAPE_NAME_MAX];

    snprintf(name, sizeof(name), "transition%u.bn", number);
    x = layer_batch_norm(tape, x, true, name);
    snprintf(name, sizeof(name), "transition%u.conv", number);
    x = plain_conv(tape, x, tape_at(tape, x).channels / 2, 1, 1, name);
    snprintf(name, sizeof(name), "transition%u.pool", number);
    return layer_pool(tape, x, &halve, name);
}

void densenet_forward(struct tape *tape, const struct zoo_model *model,
                      const struct zoo_options *options)
{
    static const struct pool pool = {.kernel = 3, .stride = 2, .pad = 1};
    static const uint32_t layers[4] = {6, 12, 24, 16};
    uint32_t inputs[DENSE_INPUTS_MAX];
    uint32_t x = images(tape, options);
    char name[TAPE_NAME_MAX];

    (void)model;
    tape_layer(tape, "stem");
    x = plain_conv(tape, x, 64, 7, 2, "conv0");
    x = layer_batch_norm(tape, x, true, "bn0");
    x = layer_pool(tape, x, &pool, "pool0");
    for (uint32_t block = 0; block < 4; block++) {
        inputs[0] = x;
        for (uint32_t i = 0; i < layers[block]; i++) {
            snprintf(name, sizeof(name), "dense%u.%u", block + 1, i + 1);
            inputs[i + 1] = dense_layer(tape, inputs, i + 1, name);
        }
        tape_layer(tape, "transition%u", block + 1);
        snprintf(name, sizeof(name), "transition%u.cat", block + 1);
        x = layer_concatenate(tape, inputs, layers[block] + 1, false, name);
        if (block < 3) {
            x = dense_transition(tape, x, block + 1);
        }
    }
    tape_layer(tape, "classifier");
    x = layer_batch_norm(tape, x, true, "bn5");
    x = layer_pool_to(tape, x, 1, 1, "pool5");
    x = layer_linear(tape, x, CLASSES, true, false, "linear");
    layer_loss(tape, x, "loss");
}

/* U-Net, for two classes. Its convolutions keep the size of the image, so nothing needs to be
   cropped for concatenation. The side of the image must be a multiple of 16. */

static uint32_t double_conv(struct tape *tape, uint32_t x, uint64_t channels, const char *side,
                            uint32_t level)
{
    const struct conv conv = {.channels = channels,
                              .kernel_height = 3,
                              .kernel_width = 3,
                              .stride = 1,
                              .pad_height = 1,
                              .pad_width = 1,
                              .has_bias = true,
                              .has_relu = true};
    char name[TAPE_NAME_MAX];

    for (uint32_t i = 1; i <= 2; i++) {
        snprintf(name, sizeof(name), "%.16s%u.conv%u", side, level, i);
        x = layer_conv(tape, x, &conv, name);
    }
    return x;
}

void unet_forward(struct tape *tape, const struct zoo_model *model,
                  const struct zoo_options *options)
{
    static const struct pool halve = {.kernel = 2, .stride = 2};
    static const struct conv last = {.channels = UNET_CLASSES,
                                     .kernel_height = 1,
                                     .kernel_width = 1,
                                     .stride = 1,
                                     .has_bias = true};
    uint32_t sides[UNET_LEVELS];
    char name[TAPE_NAME_MAX];
    uint32_t x = tape_input(tape, options->batch, 1, options->image, options->image,
                            tape_element_bytes(tape), "images");

    (void)model;
    if (options->image % (1 << UNET_LEVELS) != 0) {
        tape_fail(tape, CAPU_INVALID, "the image's edge must be a multiple of %d",
                  1 << UNET_LEVELS);
    }
    for (uint32_t level = 0; level < UNET_LEVELS; level++) {
        tape_layer(tape, "down%u", level);
        sides[level] = double_conv(tape, x, (uint64_t)64 << level, "down", level);
        snprintf(name, sizeof(name), "down%u.pool", level);
        x = layer_pool(tape, sides[level], &halve, name);
    }
    tape_layer(tape, "bottom");
    x = double_conv(tape, x, (uint64_t)64 << UNET_LEVELS, "bottom", UNET_LEVELS);
    for (uint32_t level = UNET_LEVELS; level-- > 0;) {
        uint32_t joined[2];

        tape_layer(tape, "up%u", level);
        snprintf(name, sizeof(name), "up%u.conv_up", level);
        joined[0] = sides[level];
        joined[1] = layer_conv_up(tape, x, (uint64_t)64 << level, name);
        snprintf(name, sizeof(name), "up%u.cat", level);
        x = layer_concatenate(tape, joined, 2, false, name);
        x = double_conv(tape, x, (uint64_t)64 << level, "up", level);
    }
    tape_layer(tape, "classifier");
    x = layer_conv(tape, x, &last, "conv_last");
    layer_loss(tape, x, "loss");
}

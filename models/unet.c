/* U-Net (Ronneberger et al., 2015) for two classes. Its convolutions keep the size of the image, so
   nothing needs to be cropped for concatenation. The side of the image must be a multiple of 16. */
#include "models/layers.h"
#include "models/zoo.h"

#include <stdio.h>

#define LEVELS 4
#define CLASSES 2

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
    static const struct conv last = {
        .channels = CLASSES, .kernel_height = 1, .kernel_width = 1, .stride = 1, .has_bias = true};
    uint32_t sides[LEVELS];
    char name[TAPE_NAME_MAX];
    uint32_t x = tape_input(tape, options->batch, 1, options->image, options->image,
                            tape_element_bytes(tape), "images");

    (void)model;
    if (options->image % (1 << LEVELS) != 0) {
        tape_fail(tape, CAPU_INVALID, "the image's edge must be a multiple of %d", 1 << LEVELS);
    }
    for (uint32_t level = 0; level < LEVELS; level++) {
        tape_layer(tape, "down%u", level);
        sides[level] = double_conv(tape, x, (uint64_t)64 << level, "down", level);
        snprintf(name, sizeof(name), "down%u.pool", level);
        x = layer_pool(tape, sides[level], &halve, name);
    }
    tape_layer(tape, "bottom");
    x = double_conv(tape, x, (uint64_t)64 << LEVELS, "bottom", LEVELS);
    for (uint32_t level = LEVELS; level-- > 0;) {
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

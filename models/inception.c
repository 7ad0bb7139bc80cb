/* Inception v3 (Szegedy et al., 2015) and v4 (2016), without the auxiliary head. */
#include "models/layers.h"
#include "models/zoo.h"

#include <stdio.h>

#define CLASSES 1000

/* The state of a network under construction: its convolutions are numbered consecutively. */
struct inception {
    struct tape *tape;
    uint32_t made;
};

static const struct pool max_halve = {.kernel = 3, .stride = 2};
static const struct pool average = {.kernel = 3, .stride = 1, .pad = 1, .is_average = true};

/* Convolution, norm, ReLU. */
static uint32_t unit(struct inception *net, uint32_t x, uint64_t channels, uint64_t height,
                     uint64_t width, uint64_t stride, bool is_padded)
{
    struct conv conv = {.channels = channels,
                        .kernel_height = height,
                        .kernel_width = width,
                        .stride = stride,
                        .pad_height = is_padded ? height / 2 : 0,
                        .pad_width = is_padded ? width / 2 : 0};
    char name[TAPE_NAME_MAX];

    snprintf(name, sizeof(name), "conv%u", ++net->made);
    x = layer_conv(net->tape, x, &conv, name);
    snprintf(name, sizeof(name), "bn%u", net->made);
    return layer_batch_norm(net->tape, x, true, name);
}

static uint32_t square(struct inception *net, uint32_t x, uint64_t channels, uint64_t kernel)
{
    return unit(net, x, channels, kernel, kernel, 1, true);
}

static uint32_t pooled(struct inception *net, uint32_t x, const struct pool *pool)
{
    char name[TAPE_NAME_MAX];

    snprintf(name, sizeof(name), "pool%u", net->made);
    return layer_pool(net->tape, x, pool, name);
}

static uint32_t join_branches(struct inception *net, const uint32_t *branches, uint32_t count)
{
    char name[TAPE_NAME_MAX];

    snprintf(name, sizeof(name), "cat%u", net->made);
    return layer_concatenate(net->tape, branches, count, false, name);
}

/* At 35 x 35. */
static uint32_t module_a(struct inception *net, uint32_t x, uint64_t pool_channels)
{
    uint32_t branches[4];

    branches[0] = square(net, x, 64, 1);
    branches[1] = square(net, square(net, x, 48, 1), 64, 5);
    branches[2] = square(net, square(net, square(net, x, 64, 1), 96, 3), 96, 3);
    branches[3] = square(net, pooled(net, x, &average), pool_channels, 1);
    return join_branches(net, branches, 4);
}

static uint32_t reduce_b(struct inception *net, uint32_t x)
{
    uint32_t branches[3];

    branches[0] = unit(net, x, 384, 3, 3, 2, false);
    branches[1] = unit(net, square(net, square(net, x, 64, 1), 96, 3), 96, 3, 3, 2, false);
    branches[2] = pooled(net, x, &max_halve);
    return join_branches(net, branches, 3);
}

/* At 17 x 17: the 7 x 7 is factorised into two. */
static uint32_t module_c(struct inception *net, uint32_t x, uint64_t inner)
{
    uint32_t branches[4];
    uint32_t y;

    branches[0] = square(net, x, 192, 1);
    y = unit(net, square(net, x, inner, 1), inner, 1, 7, 1, true);
    branches[1] = unit(net, y, 192, 7, 1, 1, true);
    y = unit(net, square(net, x, inner, 1), inner, 7, 1, 1, true);
    y = unit(net, y, inner, 1, 7, 1, true);
    y = unit(net, y, inner, 7, 1, 1, true);
    branches[2] = unit(net, y, 192, 1, 7, 1, true);
    branches[3] = square(net, pooled(net, x, &average), 192, 1);
    return join_branches(net, branches, 4);
}

static uint32_t reduce_d(struct inception *net, uint32_t x)
{
    uint32_t branches[3];
    uint32_t y;

    branches[0] = unit(net, square(net, x, 192, 1), 320, 3, 3, 2, false);
    y = unit(net, square(net, x, 192, 1), 192, 1, 7, 1, true);
    y = unit(net, y, 192, 7, 1, 1, true);
    branches[1] = unit(net, y, 192, 3, 3, 2, false);
    branches[2] = pooled(net, x, &max_halve);
    return join_branches(net, branches, 3);
}

/* At 8 x 8: the 3 x 3 is factorised into two, side by side. */
static uint32_t module_e(struct inception *net, uint32_t x)
{
    uint32_t branches[6];
    uint32_t y;

    branches[0] = square(net, x, 320, 1);
    y = square(net, x, 384, 1);
    branches[1] = unit(net, y, 384, 1, 3, 1, true);
    branches[2] = unit(net, y, 384, 3, 1, 1, true);
    y = square(net, square(net, x, 448, 1), 384, 3);
    branches[3] = unit(net, y, 384, 1, 3, 1, true);
    branches[4] = unit(net, y, 384, 3, 1, 1, true);
    branches[5] = square(net, pooled(net, x, &average), 192, 1);
    return join_branches(net, branches, 6);
}

static uint32_t stem(struct inception *net, uint32_t x)
{
    tape_layer(net->tape, "stem");
    x = unit(net, x, 32, 3, 3, 2, false);
    x = unit(net, x, 32, 3, 3, 1, false);
    x = square(net, x, 64, 3);
    x = pooled(net, x, &max_halve);
    x = square(net, x, 80, 1);
    x = unit(net, x, 192, 3, 3, 1, false);
    return pooled(net, x, &max_halve);
}

/* v4's modules. At 35 x 35. */
static uint32_t module4_a(struct inception *net, uint32_t x)
{
    uint32_t branches[4];

    branches[0] = square(net, x, 96, 1);
    branches[1] = square(net, square(net, x, 64, 1), 96, 3);
    branches[2] = square(net, square(net, square(net, x, 64, 1), 96, 3), 96, 3);
    branches[3] = square(net, pooled(net, x, &average), 96, 1);
    return join_branches(net, branches, 4);
}

static uint32_t reduce4_a(struct inception *net, uint32_t x)
{
    uint32_t branches[3];

    branches[0] = unit(net, x, 384, 3, 3, 2, false);
    branches[1] = unit(net, square(net, square(net, x, 192, 1), 224, 3), 256, 3, 3, 2, false);
    branches[2] = pooled(net, x, &max_halve);
    return join_branches(net, branches, 3);
}

/* At 17 x 17. */
static uint32_t module4_b(struct inception *net, uint32_t x)
{
    uint32_t branches[4];
    uint32_t y;

    branches[0] = square(net, x, 384, 1);
    y = unit(net, square(net, x, 192, 1), 224, 1, 7, 1, true);
    branches[1] = unit(net, y, 256, 7, 1, 1, true);
    y = unit(net, square(net, x, 192, 1), 192, 7, 1, 1, true);
    y = unit(net, y, 224, 1, 7, 1, true);
    y = unit(net, y, 224, 7, 1, 1, true);
    branches[2] = unit(net, y, 256, 1, 7, 1, true);
    branches[3] = square(net, pooled(net, x, &average), 128, 1);
    return join_branches(net, branches, 4);
}

static uint32_t reduce4_b(struct inception *net, uint32_t x)
{
    uint32_t branches[3];
    uint32_t y;

    branches[0] = unit(net, square(net, x, 192, 1), 192, 3, 3, 2, false);
    y = unit(net, square(net, x, 256, 1), 256, 1, 7, 1, true);
    y = unit(net, y, 320, 7, 1, 1, true);
    branches[1] = unit(net, y, 320, 3, 3, 2, false);
    branches[2] = pooled(net, x, &max_halve);
    return join_branches(net, branches, 3);
}

/* At 8 x 8. */
static uint32_t module4_c(struct inception *net, uint32_t x)
{
    uint32_t branches[6];
    uint32_t y;

    branches[0] = square(net, x, 256, 1);
    y = square(net, x, 384, 1);
    branches[1] = unit(net, y, 256, 1, 3, 1, true);
    branches[2] = unit(net, y, 256, 3, 1, 1, true);
    y = unit(net, square(net, x, 384, 1), 448, 3, 1, 1, true);
    y = unit(net, y, 512, 1, 3, 1, true);
    branches[3] = unit(net, y, 256, 1, 3, 1, true);
    branches[4] = unit(net, y, 256, 3, 1, 1, true);
    branches[5] = square(net, pooled(net, x, &average), 256, 1);
    return join_branches(net, branches, 6);
}

static uint32_t stem4(struct inception *net, uint32_t x)
{
    uint32_t sides[2];
    uint32_t y;

    tape_layer(net->tape, "stem");
    x = unit(net, x, 32, 3, 3, 2, false);
    x = unit(net, x, 32, 3, 3, 1, false);
    x = square(net, x, 64, 3);
    sides[0] = pooled(net, x, &max_halve);
    sides[1] = unit(net, x, 96, 3, 3, 2, false);
    x = join_branches(net, sides, 2);
    sides[0] = unit(net, square(net, x, 64, 1), 96, 3, 3, 1, false);
    y = unit(net, square(net, x, 64, 1), 64, 1, 7, 1, true);
    y = unit(net, y, 64, 7, 1, 1, true);
    sides[1] = unit(net, y, 96, 3, 3, 1, false);
    x = join_branches(net, sides, 2);
    sides[0] = unit(net, x, 192, 3, 3, 2, false);
    sides[1] = pooled(net, x, &max_halve);
    return join_branches(net, sides, 2);
}

static void add_classifier(struct tape *tape, uint32_t x)
{
    tape_layer(tape, "classifier");
    x = layer_pool_to(tape, x, 1, 1, "pool");
    x = layer_dropout(tape, x, "dropout");
    x = layer_linear(tape, x, CLASSES, true, false, "linear");
    layer_loss(tape, x, "loss");
}

void inception4_forward(struct tape *tape, const struct zoo_model *model,
                        const struct zoo_options *options)
{
    struct inception net = {.tape = tape};
    uint32_t x = tape_input(tape, options->batch, 3, options->image, options->image,
                            tape_element_bytes(tape), "images");

    (void)model;
    x = stem4(&net, x);
    for (uint32_t i = 0; i < 4; i++) {
        tape_layer(tape, "module_a%u", i + 1);
        x = module4_a(&net, x);
    }
    tape_layer(tape, "reduce_a");
    x = reduce4_a(&net, x);
    for (uint32_t i = 0; i < 7; i++) {
        tape_layer(tape, "module_b%u", i + 1);
        x = module4_b(&net, x);
    }
    tape_layer(tape, "reduce_b");
    x = reduce4_b(&net, x);
    for (uint32_t i = 0; i < 3; i++) {
        tape_layer(tape, "module_c%u", i + 1);
        x = module4_c(&net, x);
    }
    add_classifier(tape, x);
}

void inception_forward(struct tape *tape, const struct zoo_model *model,
                       const struct zoo_options *options)
{
    static const uint64_t pool_channels[] = {32, 64, 64};
    static const uint64_t inner[] = {128, 160, 160, 192};
    struct inception net = {.tape = tape};
    uint32_t x = tape_input(tape, options->batch, 3, options->image, options->image,
                            tape_element_bytes(tape), "images");

    (void)model;
    x = stem(&net, x);
    for (uint32_t i = 0; i < 3; i++) {
        tape_layer(tape, "module_a%u", i + 1);
        x = module_a(&net, x, pool_channels[i]);
    }
    tape_layer(tape, "reduce_b");
    x = reduce_b(&net, x);
    for (uint32_t i = 0; i < 4; i++) {
        tape_layer(tape, "module_c%u", i + 1);
        x = module_c(&net, x, inner[i]);
    }
    tape_layer(tape, "reduce_d");
    x = reduce_d(&net, x);
    for (uint32_t i = 0; i < 2; i++) {
        tape_layer(tape, "module_e%u", i + 1);
        x = module_e(&net, x);
    }
    add_classifier(tape, x);
}

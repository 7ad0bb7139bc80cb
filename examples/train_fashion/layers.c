/*
 * Two convolutions per resolution, so that no op needs much more than a quarter of what a training
 * iteration needs in all: a budget of 40 % is then still feasible.
 */
#include "examples/train_fashion/layers.h"

#include "examples/train_fashion/fashion_data.h"

#define CONV(name_, channels_, stream_)                                                  \
    {                                                                                    \
        .name = name_, .kind = LAYER_CONV, .size = channels_, .kernel = 3, .padding = 1, \
        .has_bias = true, .stream = stream_                                              \
    }
#define NORM(name_)                       \
    {                                     \
        .name = name_, .kind = LAYER_NORM \
    }
#define RELU(name_)                       \
    {                                     \
        .name = name_, .kind = LAYER_RELU \
    }
#define POOL(name_)                                        \
    {                                                      \
        .name = name_, .kind = LAYER_MAX_POOL, .kernel = 2 \
    }

/* A layer's stream is its index here; any other distinct numbers would do. */
static const struct layer layers[] = {
    CONV("conv1", 16, 0),
    NORM("norm1"),
    RELU("relu1"),
    CONV("conv2", 16, 3),
    NORM("norm2"),
    RELU("relu2"),
    POOL("pool2"),

    CONV("conv3", 32, 7),
    NORM("norm3"),
    RELU("relu3"),
    CONV("conv4", 32, 10),
    NORM("norm4"),
    RELU("relu4"),
    POOL("pool4"),

    CONV("conv5", 64, 14),
    NORM("norm5"),
    RELU("relu5"),
    POOL("pool5"),
    {.name = "dropout", .kind = LAYER_DROPOUT, .size = 10, .stream = 18},
    {.name = "dense", .kind = LAYER_DENSE, .size = FASHION_CLASSES, .has_bias = true, .stream = 19},
};

const struct layer_table fashion_layers = {
    .layers = layers,
    .count = sizeof(layers) / sizeof(layers[0]),
    .channels = 1,
    .side = FASHION_SIDE,
    .streams = 32,
};

/*
 * Two layers at each resolution, so that no op needs much more than a quarter of what all of
 * training needs: a budget of 40 % is then still possible.
 */
#include "examples/layers/layer.h"

const struct layer layers[] = {
    {"conv1", LAYER_CONV, 16}, {"norm1", LAYER_NORM, 0},       {"relu1", LAYER_RELU, 0},
    {"conv2", LAYER_CONV, 16}, {"norm2", LAYER_NORM, 0},       {"relu2", LAYER_RELU, 0},
    {"pool2", LAYER_POOL, 2},

    {"conv3", LAYER_CONV, 32}, {"norm3", LAYER_NORM, 0},       {"relu3", LAYER_RELU, 0},
    {"conv4", LAYER_CONV, 32}, {"norm4", LAYER_NORM, 0},       {"relu4", LAYER_RELU, 0},
    {"pool4", LAYER_POOL, 2},

    {"conv5", LAYER_CONV, 64}, {"norm5", LAYER_NORM, 0},       {"relu5", LAYER_RELU, 0},
    {"pool5", LAYER_POOL, 2},  {"dropout", LAYER_DROPOUT, 10}, {"dense", LAYER_DENSE, 10},
};

const size_t layer_count = sizeof(layers) / sizeof(layers[0]);

/*
 * ResNet-50 as a table of layers: a stem, sixteen bottleneck blocks in four stages, the average
 * over the planes, a dense layer. It is the variant (1.5) that halves the image in a stage's first
 * convolution of 3 x 3, and in the projection beside it.
 */
#ifndef CAPU_EXAMPLES_TRAIN_CNN_RESNET_H
#define CAPU_EXAMPLES_TRAIN_CNN_RESNET_H

#include "examples/layers/layer.h"

#define RESNET_CLASSES 1000u
#define RESNET_LAYERS_LIMIT 192
#define RESNET_SIDE_LIMIT 1024u
#define RESNET_WIDTH_LIMIT 1024u

struct resnet {
    struct layer layers[RESNET_LAYERS_LIMIT];
    struct layer_table table; /* of them: do not copy or move a resnet */
};

/* Images of `side` x `side`, of which ResNet-50 has 224; `width` channels after the stem, of which
 * it has 64. Both are at least 1 and at most their limits. */
void resnet_init(struct resnet *resnet, uint32_t side, uint32_t width);

#endif

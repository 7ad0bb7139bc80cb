/* The layers of the network. */
#ifndef CAPU_EXAMPLES_TRAIN_FASHION_LAYERS_H
#define CAPU_EXAMPLES_TRAIN_FASHION_LAYERS_H

#include "examples/layers/layer.h"

extern const struct layer_table fashion_layers;

#endif

/* One layer of a network, forward and backward. */
#ifndef CAPU_EXAMPLES_LAYERS_LAYER_RUN_H
#define CAPU_EXAMPLES_LAYERS_LAYER_RUN_H

#include "examples/layers/network.h"

/* `step` selects the draws of dropout. Outside training nothing is dropped, and norms use their
 * running statistics. */
capu_status layer_run_forward(struct network *network, size_t index, uint64_t step,
                              bool is_training);

/* Turns the gradient of the layer's output into that of its input and of its parameters. */
capu_status layer_run_backward(struct network *network, size_t index, uint64_t step);

#endif

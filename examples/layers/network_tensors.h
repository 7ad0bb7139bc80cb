/* Allocates the tensors of a network and describes them to the library, for the files of network.h.
 * A tensor's name is "LAYER.WHAT". */
#ifndef CAPU_EXAMPLES_LAYERS_NETWORK_TENSORS_H
#define CAPU_EXAMPLES_LAYERS_NETWORK_TENSORS_H

#include "examples/layers/network.h"

/* `like` has kind and lifetime; the library copies the name. */
capu_status network_tensors_make(struct network *network, const char *layer, const char *what,
                                 size_t bytes, const capu_tensor_info *like, void **address);

capu_status network_tensors_floats(struct network *network, const char *layer, const char *what,
                                   size_t count, capu_kind kind, float **address);

/* Items of the network's element type. */
capu_status network_tensors_items(struct network *network, const char *layer, const char *what,
                                  size_t count, capu_kind kind, void **address);

#endif

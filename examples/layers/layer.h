/* The network's shape: one line a layer. */
#ifndef CAPU_EXAMPLES_LAYERS_LAYER_H
#define CAPU_EXAMPLES_LAYERS_LAYER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum layer_kind { LAYER_CONV, LAYER_NORM, LAYER_RELU, LAYER_POOL, LAYER_DROPOUT, LAYER_DENSE };

struct layer {
    const char *name;
    enum layer_kind kind;
    uint32_t size; /* conv, dense: output channels; pool: the window; dropout: percent dropped */
};

extern const struct layer layers[];
extern const size_t layer_count;

/* Backward of these changes the gradient in place. */
static inline bool layer_is_in_place(const struct layer *layer)
{
    return layer->kind == LAYER_NORM || layer->kind == LAYER_RELU || layer->kind == LAYER_DROPOUT;
}

#endif

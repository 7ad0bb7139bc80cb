/*
 * A network as a table of layers: one line per layer, in the order of the forward pass.
 *
 * A layer reads the output of the layer before it, unless it names another one. So a table can
 * branch and join: what enters a residual block is read by the block's first convolution and, at
 * its end, by the sum. The backward pass walks the table in reverse. The last reader of an output
 * is then the first to produce a gradient for it; every other reader adds its own.
 *
 * Layers are numbered from 1, so that 0 can stand for "the layer before".
 */
#ifndef CAPU_EXAMPLES_LAYERS_LAYER_H
#define CAPU_EXAMPLES_LAYERS_LAYER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In place of the index of a layer that does not exist. */
#define LAYER_NONE SIZE_MAX

enum layer_kind {
    LAYER_CONV,
    LAYER_NORM,
    LAYER_RELU,
    LAYER_MAX_POOL,
    LAYER_AVERAGE_POOL, /* over the whole plane */
    LAYER_DROPOUT,
    LAYER_DENSE,
    LAYER_ADD
};

/* Fields that a kind does not mention are not read for it. */
struct layer {
    char name[32];
    enum layer_kind kind;
    uint32_t size;    /* conv, dense: output channels; dropout: percent dropped */
    uint32_t kernel;  /* conv: side of the kernel; max-pool: of the window */
    uint32_t stride;  /* conv: 0 is 1; max-pool: 0 is the window */
    uint32_t padding; /* conv, max-pool */
    bool has_bias;    /* conv, dense */
    float gain;       /* conv, dense: variance of the initial weights times the inputs of an output;
                         0: 2, which keeps the variance of a signal through a relu (He) */
    uint32_t stream;  /* conv, dense, dropout: of random numbers; no two layers share one */
    uint32_t input;   /* number of the layer that it reads; 0: the layer before */
    uint32_t branch;  /* add: number of the other layer that it reads */

    /*
     * Layers that name the same slot share a tensor per size, as in programs that manage their own
     * memory. The contents must not be read after another layer has written the slot. NULL: a
     * tensor of its own.
     */
    const char *output_slot;
    const char *gradient_slot; /* ignored where the gradient lies in that of an in-place reader */
};

struct layer_table {
    const struct layer *layers;
    size_t count;
    uint32_t channels; /* of the images that enter */
    uint32_t side;
    uint32_t streams; /* above all the layers' streams */
};

/* The index of the layer that this one reads; LAYER_NONE: it reads the images. */
size_t layer_input(const struct layer_table *table, size_t index);

/* The index of the last layer that reads this one; LAYER_NONE: none does. */
size_t layer_last_reader(const struct layer_table *table, size_t index);

/* Whether the layer's backward pass turns the gradient of its output into that of its input in
 * place, so that both are one tensor. */
bool layer_is_in_place(const struct layer *layer);

/*
 * Whether the passes can walk the table: a convolution comes first, every layer reads an earlier
 * one and, but for the last, has a reader; a layer that works in place is the only reader of its
 * input, and a sum is the last reader of both of its inputs.
 */
bool layer_table_is_valid(const struct layer_table *table);

#endif

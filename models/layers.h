/*
 * The layers that networks consist of. Each adds its forward ops to the tape and leaves a step for
 * the backward pass. It takes and returns values, as indices. A layer's name is the prefix of its
 * ops and tensors: NAME.fwd, NAME.bwd_data, NAME.bwd_weight, NAME.w, NAME.y.
 *
 * What frameworks do in place (a ReLU over its input, a bias) is fused into the preceding op: one
 * buffer, one tensor. The backward pass has one op per kernel. The forward pass keeps for it what
 * PyTorch's autograd saves for the same layer: what is kept decides how much memory a plan can
 * save.
 */
#ifndef CAPU_MODELS_LAYERS_H
#define CAPU_MODELS_LAYERS_H

#include "models/tape.h"

struct conv {
    uint64_t channels; /* out */
    uint64_t kernel_height;
    uint64_t kernel_width;
    uint64_t stride;
    uint64_t pad_height;
    uint64_t pad_width;
    bool has_bias;
    bool has_relu;
};

struct pool {
    uint64_t kernel;
    uint64_t stride;
    uint64_t pad;
    bool is_average;
};

/* Errors of all layers: INVALID (the kernel does not fit the image), TOO_LARGE. */
uint32_t layer_conv(struct tape *tape, uint32_t x, const struct conv *conv, const char *name);
/* A transposed convolution of 2 x 2 with a bias: doubles height and width. */
uint32_t layer_conv_up(struct tape *tape, uint32_t x, uint64_t channels, const char *name);
/* A separate op updates the running statistics, so that the normalisation can be replayed. */
uint32_t layer_batch_norm(struct tape *tape, uint32_t x, bool has_relu, const char *name);
uint32_t layer_pool(struct tape *tape, uint32_t x, const struct pool *pool, const char *name);
/* Averages height x width windows that divide the image as evenly as possible. */
uint32_t layer_pool_to(struct tape *tape, uint32_t x, uint64_t height, uint64_t width,
                       const char *name);
uint32_t layer_add(struct tape *tape, uint32_t a, uint32_t b, bool has_relu, const char *name);
/* Concatenates along the channels or, with `by_rows`, along the rows. */
uint32_t layer_concatenate(struct tape *tape, const uint32_t *values, uint32_t count, bool by_rows,
                           const char *name);

uint32_t layer_linear(struct tape *tape, uint32_t x, uint64_t outputs, bool has_bias, bool has_relu,
                      const char *name);
/* Uses the weight of another layer (an embedding), and optionally a bias of its own. */
uint32_t layer_linear_tied(struct tape *tape, uint32_t x, uint32_t weight, uint64_t outputs,
                           bool has_bias, const char *name);
/* A separate op draws the mask, one byte per element, and cannot be replayed. */
uint32_t layer_dropout(struct tape *tape, uint32_t x, const char *name);
/* Normalises over the channels: with scale and offset, or with a scale only (RMS). */
uint32_t layer_norm(struct tape *tape, uint32_t x, bool is_rms, const char *name);
/* An elementwise function whose backward pass needs the input, such as GELU; a gated one has half
   as many channels in its output. */
uint32_t layer_activation(struct tape *tape, uint32_t x, uint64_t channels, const char *name);
/* Looks up rows of a table by ids. A second table, of positions and types, is added if it has rows.
 *table is the weight of the first one. */
uint32_t layer_embedding(struct tape *tape, uint32_t ids, uint64_t table_rows,
                         uint64_t position_rows, uint64_t channels, uint32_t *table,
                         const char *name);
/* Looks up other rows of the same table. */
uint32_t layer_embedding_of(struct tape *tape, uint32_t ids, uint32_t table, uint64_t channels,
                            const char *name);
/* Selects some of the rows. */
uint32_t layer_gather(struct tape *tape, uint32_t x, uint64_t rows, const char *name);
/* Softmax and cross-entropy with labels: the backward pass begins here. */
void layer_loss(struct tape *tape, uint32_t logits, const char *name);

#endif

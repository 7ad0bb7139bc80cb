/*
 * The layers that networks are written in. Each adds its ops of forward to the tape and leaves a
 * step for backward; it takes and returns values, by index. A layer's name prefixes its ops and
 * tensors: NAME.fwd, NAME.bwd_data, NAME.bwd_weight, NAME.w, NAME.y.
 *
 * What frameworks do in place (ReLU over its input, a bias) is folded into the op before it: one
 * buffer, one tensor. Backward is one op a kernel. What forward leaves for backward is what
 * PyTorch's autograd saves for the same layer.
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

/* Errors, here and below: INVALID (the kernel does not fit the image), TOO_LARGE. */
uint32_t layer_conv(struct tape *tape, uint32_t x, const struct conv *conv, const char *name);
/* Twice as high and wide, from a kernel of 2 x 2 with a bias. */
uint32_t layer_conv_up(struct tape *tape, uint32_t x, uint64_t channels, const char *name);
/* With running statistics, which an op of their own updates: the normalisation can be replayed. */
uint32_t layer_batch_norm(struct tape *tape, uint32_t x, bool has_relu, const char *name);
uint32_t layer_pool(struct tape *tape, uint32_t x, const struct pool *pool, const char *name);
/* To windows of height x width, which divide the image as evenly as they can. */
uint32_t layer_pool_to(struct tape *tape, uint32_t x, uint64_t height, uint64_t width,
                       const char *name);
uint32_t layer_add(struct tape *tape, uint32_t a, uint32_t b, bool has_relu, const char *name);
/* Along the channels; or, with `by_rows`, along the rows. */
uint32_t layer_concatenate(struct tape *tape, const uint32_t *values, uint32_t count, bool by_rows,
                           const char *name);

uint32_t layer_linear(struct tape *tape, uint32_t x, uint64_t outputs, bool has_bias, bool has_relu,
                      const char *name);
/* With a weight of another layer (an embedding's), and a bias of its own if told so. */
uint32_t layer_linear_tied(struct tape *tape, uint32_t x, uint32_t weight, uint64_t outputs,
                           bool has_bias, const char *name);
/* The mask is made by an op of its own, which cannot be run again; a byte an element. */
uint32_t layer_dropout(struct tape *tape, uint32_t x, const char *name);
/* Over the channels: with scale and offset, or the scale alone (RMS). */
uint32_t layer_norm(struct tape *tape, uint32_t x, bool is_rms, const char *name);
/* An element-wise function of which backward needs the input: GELU; with half the channels out, a
   gated one. */
uint32_t layer_activation(struct tape *tape, uint32_t x, uint64_t channels, const char *name);
/* Rows of a table by ids; a second table, of positions and types, is added if it has any rows.
 *table is its weight. */
uint32_t layer_embedding(struct tape *tape, uint32_t ids, uint64_t table_rows,
                         uint64_t position_rows, uint64_t channels, uint32_t *table,
                         const char *name);
/* The same table once more: other rows of it. */
uint32_t layer_embedding_of(struct tape *tape, uint32_t ids, uint32_t table, uint64_t channels,
                            const char *name);
/* Some of the rows. */
uint32_t layer_gather(struct tape *tape, uint32_t x, uint64_t rows, const char *name);
/* Softmax and cross entropy against labels: where backward begins. */
void layer_loss(struct tape *tape, uint32_t logits, const char *name);

/* For the layers' own files. The gradient of the step's output, behind the ReLU that is folded into
   it: an op of its own. */
uint32_t layer_gradient_before_relu(struct tape *tape, const struct step *step, bool has_relu);
/* Scratch of a product whose long dimension is split, such as the gradient of a weight. */
uint32_t layer_split_workspace(struct tape *tape, uint32_t weight, const char *name);

#endif

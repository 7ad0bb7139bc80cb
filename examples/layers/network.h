/*
 * A convolutional network, made from a table of layers: its tensors on the device, forward,
 * backward and update. Parameters live as long as the network; what depends on the size of the
 * batch is made anew when that changes.
 *
 * In bf16 pixels, activations, their gradients and the working weights are stored in bf16.
 * Statistics, gradients of parameters and velocities are fp32, and so is a master copy of each
 * weight: the optimizer updates it and rounds the working weight from it.
 */
#ifndef CAPU_EXAMPLES_LAYERS_NETWORK_H
#define CAPU_EXAMPLES_LAYERS_NETWORK_H

#include "capuchin/capuchin.h"

#include "examples/common/files.h"
#include "examples/layers/layer.h"

#include "kernels/element.h"

#include <stdbool.h>

#define NETWORK_LAYERS_LIMIT 192
#define NETWORK_SLOTS_LIMIT 96
#define NETWORK_WEIGHTS_LIMIT (NETWORK_LAYERS_LIMIT * 4)

/* A parameter and the tensors that belong to it. */
struct network_parameter {
    char name[64];
    void *value; /* of the network's element type */
    float *gradient;
    float *velocity;
    float *master; /* with bf16 values only */
    size_t count;
};

/* The tensors of a layer; NULL where a layer has no such thing. */
struct network_layer {
    uint32_t channels; /* of the output; its items are channels x side x side */
    uint32_t side;
    struct network_parameter weight; /* batch-norm: scale */
    struct network_parameter bias;   /* batch-norm: shift */
    char mean_name[64];              /* batch-norm: of the running statistics */
    char variance_name[64];
    float *running_mean;
    float *running_variance;
    float *saved_mean;
    float *saved_rstd;
    void *output;
    uint8_t *places; /* max-pool */
    void *gradient;  /* of the output; also that of an in-place reader's output */
    void *spare;     /* gradient of the input, where a later reader has written the first one */
};

/* A tensor that several layers use in turn (layer.h). */
struct network_slot {
    const char *name;
    size_t count; /* items */
    void *address;
};

struct network {
    capu_context *context;
    const struct layer_table *table; /* the caller's; outlives the network */
    enum element element;
    uint32_t batch; /* 0: nothing allocated for a batch */
    uint64_t seed;
    struct network_layer layers[NETWORK_LAYERS_LIMIT];
    struct network_slot slots[NETWORK_SLOTS_LIMIT];
    size_t slot_count;
    void *pixels;
    int32_t *labels;
    float *workspace;
    void *probabilities;
    float *losses;
    float *mean_loss;
};

struct network_rates {
    float rate;
    float momentum;
    float decay;
};

/* Items of a layer's output for the whole batch. */
static inline size_t network_items(const struct network *network, size_t index)
{
    const struct network_layer *state = &network->layers[index];

    return (size_t)network->batch * state->channels * state->side * state->side;
}

/* Items of a batch of images. */
static inline size_t network_pixels(const struct network *network)
{
    return (size_t)network->batch * network->table->channels * network->table->side *
           network->table->side;
}

/*
 * Allocates and initialises the parameters. All tensors belong to the context and are freed with
 * it. INVALID: layer_table_is_valid rejects the table, or a kernel is larger than its image;
 * TOO_LARGE: the table is too long; other statuses are those of the library.
 */
capu_status network_init(struct network *network, capu_context *context,
                         const struct layer_table *table, enum element element, uint64_t seed);

/* Allocates the tensors for batches of this size. Call it outside iterations. */
capu_status network_resize(struct network *network, uint32_t batch);

/*
 * One training iteration on a batch: pixels, of the network's element type, and labels are on the
 * host. `step` selects the draws of dropout. Waits for the mean loss.
 */
capu_status network_train(struct network *network, const void *pixels, const int32_t *labels,
                          uint64_t step, const struct network_rates *rates, float *loss);

/*
 * One validation iteration: how many images of the batch are classified correctly. `probabilities`
 * is host memory for those of all classes of each image, in the network's element type. Waits.
 */
capu_status network_validate(struct network *network, const void *pixels, const int32_t *labels,
                             void *probabilities, uint32_t *right);

/* What to save: parameters, in fp32, and running statistics, at most NETWORK_WEIGHTS_LIMIT. Returns
 * their number. */
size_t network_weights(const struct network *network, struct weight *weights);

/* Prints the table of layers. */
void network_print(const struct network *network);

#endif

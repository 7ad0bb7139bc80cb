/*
 * A convolutional network as a table of layers: its tensors on the device, forward, backward, and
 * the update. Parameters live as long as the network; what depends on the batch comes and goes.
 *
 * In bf16 pixels, activations, their gradients and the weights that are worked with are stored in
 * bf16. Statistics, gradients of parameters and velocities are fp32, and so is the master of every
 * weight, which the optimizer changes and rounds the working weight from.
 */
#ifndef CAPU_EXAMPLES_LAYERS_NETWORK_H
#define CAPU_EXAMPLES_LAYERS_NETWORK_H

#include "capuchin/capuchin.h"

#include "examples/common/files.h"

#include "kernels/element.h"

#include <stdbool.h>

#define NETWORK_LAYERS_LIMIT 32
#define NETWORK_WEIGHTS_LIMIT (NETWORK_LAYERS_LIMIT * 4)

/* A parameter with what belongs to it. */
struct network_parameter {
    char name[32];
    void *value; /* of the network's element type */
    float *gradient;
    float *velocity;
    float *master; /* with bf16 values only */
    size_t count;
};

/* What a layer holds. Without the first three, all is NULL where the layer has no such thing. */
struct network_layer {
    uint32_t channels; /* of the output; its items are channels x side x side */
    uint32_t side;
    struct network_parameter weight; /* batch-norm: scale */
    struct network_parameter bias;   /* batch-norm: shift */
    char mean_name[32];              /* batch-norm: of the running statistics */
    char variance_name[32];
    float *running_mean;
    float *running_variance;
    float *saved_mean;
    float *saved_rstd;
    void *output;
    uint8_t *places; /* max-pool */
    void *gradient;  /* of the output; shared with the layer before where backward is in place */
};

struct network {
    capu_context *context;
    enum element element;
    uint32_t batch; /* 0: nothing allocated for a batch */
    uint64_t seed;
    struct network_layer layers[NETWORK_LAYERS_LIMIT];
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

/*
 * Allocates and initialises the parameters. Everything belongs to the context and goes with it;
 * statuses are those of the library.
 */
capu_status network_init(struct network *network, capu_context *context, enum element element,
                         uint64_t seed);

/* Makes room for batches of this size, outside iterations. */
capu_status network_resize(struct network *network, uint32_t batch);

/*
 * One training iteration on the batch: pixels, of the network's element type, and labels are on the
 * host. `step` numbers the draws of dropout. Waits for the mean loss.
 */
capu_status network_train(struct network *network, const void *pixels, const int32_t *labels,
                          uint64_t step, const struct network_rates *rates, float *loss);

/*
 * One validation iteration: how many of the batch are classified right, by the probabilities of
 * the classes of each, which go to the host, of the network's element type too. Waits.
 */
capu_status network_validate(struct network *network, const void *pixels, const int32_t *labels,
                             void *probabilities, uint32_t *right);

/* What to save: parameters, in fp32, and running statistics. Gives their number. */
size_t network_weights(const struct network *network, struct weight *weights);

/* Prints the table of layers. */
void network_print(const struct network *network);

#endif

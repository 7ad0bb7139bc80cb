/*
 * ResNet-50, over random images: a stem, sixteen bottleneck blocks in four stages, the average over
 * the planes, a dense layer. It is the variant (1.5) that takes every second position in a stage's
 * first convolution of 3 x 3, and in the projection beside it.
 *
 * In bf16 images, activations, their gradients and the weights that are worked with are stored in
 * bf16. Statistics, gradients of parameters and velocities are fp32, and so is the master of every
 * weight, which the optimizer changes and rounds the working weight from.
 */
#ifndef CAPU_EXAMPLES_TRAIN_CNN_CNN_H
#define CAPU_EXAMPLES_TRAIN_CNN_CNN_H

#include "examples/common/files.h"

#include "kernels/conv2d.h"

#include "capuchin/capuchin.h"

#define CNN_STAGES 4
#define CNN_BLOCKS 16
#define CNN_UNITS (1 + 4 * CNN_BLOCKS)
#define CNN_CLASSES 1000u
#define CNN_SHARED 96
#define CNN_WEIGHTS (5 * CNN_UNITS + 2)
#define CNN_SIDE_LIMIT 1024u
#define CNN_WIDTH_LIMIT 1024u

struct cnn_shape {
    uint32_t batch;
    uint32_t side;  /* of an image; ResNet-50 has 224 */
    uint32_t width; /* channels after the stem; ResNet-50 has 64 */
    enum element element;
};

/* A parameter with what belongs to it. What is void, here and below, is of the element type. */
struct cnn_parameter {
    void *value;
    float *gradient;
    float *velocity;
    float *master; /* with bf16 values only */
    size_t count;
};

/* A convolution with its norm, and a relu where there is one. */
struct cnn_unit {
    uint32_t inputs;
    uint32_t outputs;
    uint32_t entering_side;
    uint32_t side; /* of what leaves */
    uint32_t kernel;
    uint32_t stride;
    struct cnn_parameter weight;
    struct cnn_parameter scale;
    struct cnn_parameter shift;
    float *running_mean;
    float *running_variance;
    float *saved_mean;
    float *saved_rstd;
    void *convolved;
    void *normed;
    void *output;   /* after the relu; NULL: there is none */
    void *gradient; /* of `normed`, and in place of `convolved` */
};

struct cnn_block {
    struct cnn_unit *reduce;
    struct cnn_unit *middle;
    struct cnn_unit *expand;
    struct cnn_unit *project; /* NULL: what enters is added as it is */
    uint32_t channels;        /* of what leaves */
    uint32_t side;
    void *sum;
    void *output;
    void *gradient; /* of the output, and in place of the sum */
    void *spare;    /* a gradient on its way to what entered */
};

/* A buffer that layers of one shape take in turn, for what nobody reads later. */
struct cnn_shared {
    const char *slot;
    size_t count;
    void *address;
};

struct cnn {
    capu_context *context;
    struct cnn_shape shape;
    struct cnn_shared shared[CNN_SHARED];
    size_t shared_count;
    struct cnn_unit units[CNN_UNITS];
    size_t unit_count;
    struct cnn_block blocks[CNN_BLOCKS];
    void *images;
    int32_t *labels;
    float *workspace;
    void *stem_pooled;
    uint8_t *stem_places;
    void *stem_gradient; /* of stem_pooled */
    void *last_pooled;
    void *last_gradient;
    struct cnn_parameter dense;
    struct cnn_parameter dense_bias;
    void *logits;
    void *logits_gradient;
    void *probabilities;
    float *losses;
    float *mean_loss;
};

/* The convolution of a unit, without tensors. */
struct conv2d cnn_conv(const struct cnn *cnn, const struct cnn_unit *unit);

/* Everything belongs to the context and goes with it. INVALID: a shape of no size, or a huge one.
 */
capu_status cnn_init(struct cnn *cnn, capu_context *context, const struct cnn_shape *shape,
                     uint64_t seed);

/* All parameters, in fp32, and running statistics, unit by unit, at most CNN_WEIGHTS. Gives how
 * many. */
size_t cnn_weights(const struct cnn *cnn, struct weight *weights);

/* One iteration on a batch from the host, images of the element type. Waits for the mean loss. */
capu_status cnn_train(struct cnn *cnn, const void *images, const int32_t *labels, float *loss);

#endif

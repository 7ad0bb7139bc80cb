/*
 * The work of both programs: a chain of layers, output = tanh(weight * input) element by element,
 * whose weights learn to map one vector to another. These three functions stand for the kernels
 * that a training program already has.
 */
#ifndef CAPU_EXAMPLES_DROP_IN_CHAIN_H
#define CAPU_EXAMPLES_DROP_IN_CHAIN_H

#include <math.h>
#include <stddef.h>

#define CHAIN_LAYERS 12
#define CHAIN_ITEMS 65536
#define CHAIN_BYTES (CHAIN_ITEMS * sizeof(float))
#define CHAIN_STEPS 10
#define CHAIN_RATE 0.5f

struct chain_layer {
    const float *input;
    float *weight;
    float *output;
    float *gradient; /* backward: in, of the output; out, of the input */
};

struct chain_loss {
    const float *output;
    const float *target;
    float *gradient;
    float *loss; /* one float */
};

static inline void chain_forward(const struct chain_layer *layer)
{
    for (size_t i = 0; i < CHAIN_ITEMS; i++) {
        layer->output[i] = tanhf(layer->weight[i] * layer->input[i]);
    }
}

static inline void chain_measure(const struct chain_loss *loss)
{
    double sum = 0.0;

    for (size_t i = 0; i < CHAIN_ITEMS; i++) {
        float distance = loss->output[i] - loss->target[i];

        loss->gradient[i] = distance;
        sum += 0.5 * distance * distance;
    }
    *loss->loss = (float)(sum / CHAIN_ITEMS);
}

/* Computes the gradient of the input, and updates the weight by its own gradient. */
static inline void chain_backward(const struct chain_layer *layer)
{
    for (size_t i = 0; i < CHAIN_ITEMS; i++) {
        float slope = layer->gradient[i] * (1.0f - layer->output[i] * layer->output[i]);

        layer->gradient[i] = slope * layer->weight[i];
        layer->weight[i] -= CHAIN_RATE * slope * layer->input[i];
    }
}

/* The initial contents, on the host. */
static inline void chain_fill(float *values, float low, float high)
{
    for (size_t i = 0; i < CHAIN_ITEMS; i++) {
        values[i] = low + (high - low) * (float)i / CHAIN_ITEMS;
    }
}

#endif

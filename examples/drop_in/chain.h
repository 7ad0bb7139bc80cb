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

static inline void chain_forward(float *output, const float *input, const float *weight)
{
    for (size_t i = 0; i < CHAIN_ITEMS; i++) {
        output[i] = tanhf(weight[i] * input[i]);
    }
}

/* Computes the loss, one float, and the gradient of the output. */
static inline void chain_measure(float *loss, float *gradient, const float *output,
                                 const float *target)
{
    double sum = 0.0;

    for (size_t i = 0; i < CHAIN_ITEMS; i++) {
        float distance = output[i] - target[i];

        gradient[i] = distance;
        sum += 0.5 * distance * distance;
    }
    *loss = (float)(sum / CHAIN_ITEMS);
}

/* Turns the gradient of the output into that of the input, and updates the weight by its own. */
static inline void chain_backward(float *gradient, float *weight, const float *input,
                                  const float *output)
{
    for (size_t i = 0; i < CHAIN_ITEMS; i++) {
        float slope = gradient[i] * (1.0f - output[i] * output[i]);

        gradient[i] = slope * weight[i];
        weight[i] -= CHAIN_RATE * slope * input[i];
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

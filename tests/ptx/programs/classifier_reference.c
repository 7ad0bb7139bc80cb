/* The losses of examples/unmodified/classifier.cu, computed by plain loops in double precision. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIDE = 16, PIXELS = 256, CLASSES = 10, BATCH = 64, WIDTH = 96, LAYERS = 6 };

static uint32_t state = 1234567;

static float random_value(void)
{
    state = state * 1664525u + 1013904223u;
    return (float)(state >> 8) / 8388608.0f - 1.0f;
}

static int inputs_of(int layer)
{
    return layer == 0 ? PIXELS : WIDTH;
}

static int outputs_of(int layer)
{
    return layer == LAYERS - 1 ? CLASSES : WIDTH;
}

/* values[0] is the images, values[i + 1] what layer i makes of them. */
static double weights[LAYERS][PIXELS * WIDTH];
static double velocities[LAYERS][PIXELS * WIDTH];
static double biases[LAYERS][WIDTH];
static double bias_velocities[LAYERS][WIDTH];
static double values[LAYERS + 1][BATCH * PIXELS];
static double sums[LAYERS][BATCH * WIDTH];
static double gradients[LAYERS][BATCH * WIDTH]; /* of the sums */
static int labels[BATCH];

static void make_weights(void)
{
    for (int i = 0; i < LAYERS; i++) {
        float scale = sqrtf(3.0f / (float)inputs_of(i));

        for (int j = 0; j < inputs_of(i) * outputs_of(i); j++) {
            weights[i][j] = scale * random_value();
        }
    }
}

static void make_batch(void)
{
    for (int image = 0; image < BATCH; image++) {
        labels[image] = (image * 7 + 3) % CLASSES;
        for (int pixel = 0; pixel < PIXELS; pixel++) {
            float stripe = pixel % SIDE == labels[image] ? 1.0f : 0.0f;

            values[0][image * PIXELS + pixel] = stripe + 0.25f * random_value();
        }
    }
}

static void forward(int layer)
{
    int inputs = inputs_of(layer);
    int outputs = outputs_of(layer);

    for (int row = 0; row < BATCH; row++) {
        for (int column = 0; column < outputs; column++) {
            double sum = biases[layer][column];

            for (int i = 0; i < inputs; i++) {
                sum += values[layer][row * inputs + i] * weights[layer][i * outputs + column];
            }
            sums[layer][row * outputs + column] = sum;
            values[layer + 1][row * outputs + column] = sum > 0 ? sum : 0;
        }
    }
}

/* Returns the mean loss, and stores the gradient of the last sums. */
static double loss(void)
{
    const double *logits = sums[LAYERS - 1];
    double total = 0;

    for (int row = 0; row < BATCH; row++) {
        double sum = 0;

        for (int i = 0; i < CLASSES; i++) {
            sum += exp(logits[row * CLASSES + i]);
        }
        for (int i = 0; i < CLASSES; i++) {
            double probability = exp(logits[row * CLASSES + i]) / sum;

            gradients[LAYERS - 1][row * CLASSES + i] = (probability - (i == labels[row])) / BATCH;
        }
        total += log(sum) - logits[row * CLASSES + labels[row]];
    }
    return total / BATCH;
}

static void step(double *value, double *velocity, double gradient)
{
    *velocity = 0.9 * *velocity + gradient;
    *value -= 0.1 * *velocity;
}

/* Passes the gradient on before the weights change. */
static void backward(int layer)
{
    int inputs = inputs_of(layer);
    int outputs = outputs_of(layer);

    for (int row = 0; layer > 0 && row < BATCH; row++) {
        for (int i = 0; i < inputs; i++) {
            double sum = 0;

            for (int j = 0; j < outputs; j++) {
                sum += gradients[layer][row * outputs + j] * weights[layer][i * outputs + j];
            }
            gradients[layer - 1][row * inputs + i] =
                sums[layer - 1][row * inputs + i] > 0 ? sum : 0;
        }
    }
    for (int column = 0; column < outputs; column++) {
        double sum = 0;

        for (int row = 0; row < BATCH; row++) {
            sum += gradients[layer][row * outputs + column];
        }
        step(&biases[layer][column], &bias_velocities[layer][column], sum);
        for (int i = 0; i < inputs; i++) {
            sum = 0;
            for (int row = 0; row < BATCH; row++) {
                sum += values[layer][row * inputs + i] * gradients[layer][row * outputs + column];
            }
            step(&weights[layer][i * outputs + column], &velocities[layer][i * outputs + column],
                 sum);
        }
    }
}

int main(int count, char **arguments)
{
    int steps = count > 1 ? atoi(arguments[1]) : 6;

    make_weights();
    for (int i = 1; i <= steps; i++) {
        make_batch();
        for (int layer = 0; layer < LAYERS; layer++) {
            forward(layer);
        }
        printf("step %d: loss %.6f\n", i, loss());
        for (int layer = LAYERS - 1; layer >= 0; layer--) {
            backward(layer);
        }
    }
    return 0;
}

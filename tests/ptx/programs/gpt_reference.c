/* The losses of examples/unmodified/gpt.cu, computed by plain loops in double precision. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BATCH = 4,
    LENGTH = 32,
    ROWS = BATCH * LENGTH,
    CHANNELS = 48,
    HEADS = 3,
    HEAD = CHANNELS / HEADS,
    LAYERS = 2,
    VOCABULARY = 64,
};

/* A linear layer. */
struct linear {
    double weight[4 * CHANNELS * CHANNELS]; /* [outputs][inputs] */
    double bias[4 * CHANNELS];
};

struct norm {
    double weight[CHANNELS];
    double bias[CHANNELS];
};

/* All parameters, in the order in which the program initialises them; all doubles. */
struct model {
    double wte[VOCABULARY * CHANNELS];
    double wpe[LENGTH * CHANNELS];
    struct layer {
        struct norm ln1;
        struct linear qkv, projection;
        struct norm ln2;
        struct linear up, down;
    } layers[LAYERS];
    struct norm lnf;
};

/* Activations, or their gradients. */
struct activations {
    double embedded[ROWS * CHANNELS];
    struct {
        double ln1[ROWS * CHANNELS], qkv[3 * ROWS * CHANNELS];
        double attention[BATCH * HEADS * LENGTH * LENGTH], joined[ROWS * CHANNELS];
        double projected[ROWS * CHANNELS], middle[ROWS * CHANNELS], ln2[ROWS * CHANNELS];
        double up[4 * ROWS * CHANNELS], active[4 * ROWS * CHANNELS], down[ROWS * CHANNELS];
        double out[ROWS * CHANNELS];
    } layers[LAYERS];
    double lnf[ROWS * CHANNELS], logits[ROWS * VOCABULARY];
};

static struct model model, gradient, first, second;
static struct activations act, grad;
static int tokens[ROWS], targets[ROWS];
static uint32_t state = 42;

static uint32_t random_bits(void)
{
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

static void initialise(double *values, int count)
{
    for (int i = 0; i < count; i++) {
        values[i] = ((float)random_bits() / 8388608.0f - 1.0f) * 0.05f;
    }
}

/* The program draws a number for every parameter, also where it then stores 0 or 1. */
static void initialise_norm(struct norm *norm)
{
    for (int i = 0; i < 2 * CHANNELS; i++) {
        random_bits();
    }
    for (int i = 0; i < CHANNELS; i++) {
        norm->weight[i] = 1;
    }
}

static void initialise_linear(struct linear *linear, int inputs, int outputs)
{
    initialise(linear->weight, inputs * outputs);
    for (int i = 0; i < outputs; i++) {
        random_bits();
    }
}

static void initialise_model(void)
{
    initialise(model.wte, VOCABULARY * CHANNELS);
    initialise(model.wpe, LENGTH * CHANNELS);
    for (int i = 0; i < LAYERS; i++) {
        struct layer *layer = &model.layers[i];

        initialise_norm(&layer->ln1);
        initialise_linear(&layer->qkv, CHANNELS, 3 * CHANNELS);
        initialise_linear(&layer->projection, CHANNELS, CHANNELS);
        initialise_norm(&layer->ln2);
        initialise_linear(&layer->up, CHANNELS, 4 * CHANNELS);
        initialise_linear(&layer->down, 4 * CHANNELS, CHANNELS);
    }
    initialise_norm(&model.lnf);
}

static void make_batch(void)
{
    for (int b = 0; b < BATCH; b++) {
        int token = (int)(random_bits() % VOCABULARY);

        for (int t = 0; t < LENGTH; t++) {
            tokens[b * LENGTH + t] = token;
            token = (5 * token + 7) % VOCABULARY;
            targets[b * LENGTH + t] = token;
        }
    }
}

static void norm(double *out, const double *in, const struct norm *w)
{
    for (int row = 0; row < ROWS; row++, in += CHANNELS, out += CHANNELS) {
        double mean = 0;
        double variance = 0;

        for (int i = 0; i < CHANNELS; i++) {
            mean += in[i] / CHANNELS;
        }
        for (int i = 0; i < CHANNELS; i++) {
            variance += (in[i] - mean) * (in[i] - mean) / CHANNELS;
        }
        for (int i = 0; i < CHANNELS; i++) {
            out[i] = (in[i] - mean) / sqrt(variance + 1e-5) * w->weight[i] + w->bias[i];
        }
    }
}

/* Adds to every gradient. */
static void norm_backward(double *din, struct norm *dw, const double *dout, const double *in,
                          const struct norm *w)
{
    for (int row = 0; row < ROWS; row++, in += CHANNELS, din += CHANNELS, dout += CHANNELS) {
        double mean = 0;
        double variance = 0;
        double sum = 0;
        double products = 0;
        double scale;

        for (int i = 0; i < CHANNELS; i++) {
            mean += in[i] / CHANNELS;
        }
        for (int i = 0; i < CHANNELS; i++) {
            variance += (in[i] - mean) * (in[i] - mean) / CHANNELS;
        }
        scale = 1 / sqrt(variance + 1e-5);
        for (int i = 0; i < CHANNELS; i++) {
            double normal = (in[i] - mean) * scale;

            dw->weight[i] += dout[i] * normal;
            dw->bias[i] += dout[i];
            sum += w->weight[i] * dout[i] / CHANNELS;
            products += w->weight[i] * dout[i] * normal / CHANNELS;
        }
        for (int i = 0; i < CHANNELS; i++) {
            din[i] += (w->weight[i] * dout[i] - sum - (in[i] - mean) * scale * products) * scale;
        }
    }
}

/* Without a bias if that is NULL. */
static void linear(double *out, const double *in, const double *weight, const double *bias,
                   int inputs, int outputs)
{
    for (int row = 0; row < ROWS; row++) {
        for (int o = 0; o < outputs; o++) {
            double sum = bias != NULL ? bias[o] : 0;

            for (int i = 0; i < inputs; i++) {
                sum += in[row * inputs + i] * weight[o * inputs + i];
            }
            out[row * outputs + o] = sum;
        }
    }
}

static void linear_backward(double *din, double *dweight, double *dbias, const double *dout,
                            const double *in, const double *weight, int inputs, int outputs)
{
    for (int row = 0; row < ROWS; row++) {
        for (int o = 0; o < outputs; o++) {
            double value = dout[row * outputs + o];

            if (dbias != NULL) {
                dbias[o] += value;
            }
            for (int i = 0; i < inputs; i++) {
                din[row * inputs + i] += value * weight[o * inputs + i];
                dweight[o * inputs + i] += value * in[row * inputs + i];
            }
        }
    }
}

/* Where q, k (1) or v (2) of a position and head begin in qkv. */
static int part_of(int b, int t, int which, int h)
{
    return (((b * LENGTH + t) * 3 + which) * HEADS + h) * HEAD;
}

static void attend(double *joined, double *attention, const double *qkv, int b, int h, int t)
{
    double *row = attention + ((b * HEADS + h) * LENGTH + t) * LENGTH;
    double *out = joined + (b * LENGTH + t) * CHANNELS + h * HEAD;
    double sum = 0;

    for (int u = 0; u <= t; u++) {
        double score = 0;

        for (int d = 0; d < HEAD; d++) {
            score += qkv[part_of(b, t, 0, h) + d] * qkv[part_of(b, u, 1, h) + d];
        }
        row[u] = exp(score / 4);
        sum += row[u];
    }
    memset(out, 0, HEAD * sizeof(*out));
    for (int u = 0; u <= t; u++) {
        row[u] /= sum;
        for (int d = 0; d < HEAD; d++) {
            out[d] += row[u] * qkv[part_of(b, u, 2, h) + d];
        }
    }
}

static void attend_backward(double *dqkv, const double *djoined, const double *attention,
                            const double *qkv, int b, int h, int t)
{
    const double *row = attention + ((b * HEADS + h) * LENGTH + t) * LENGTH;
    const double *dout = djoined + (b * LENGTH + t) * CHANNELS + h * HEAD;
    double dattention[LENGTH];
    double sum = 0;

    for (int u = 0; u <= t; u++) {
        dattention[u] = 0;
        for (int d = 0; d < HEAD; d++) {
            dattention[u] += dout[d] * qkv[part_of(b, u, 2, h) + d];
            dqkv[part_of(b, u, 2, h) + d] += row[u] * dout[d];
        }
        sum += dattention[u] * row[u];
    }
    for (int u = 0; u <= t; u++) {
        double dscore = row[u] * (dattention[u] - sum) / 4;

        for (int d = 0; d < HEAD; d++) {
            dqkv[part_of(b, t, 0, h) + d] += dscore * qkv[part_of(b, u, 1, h) + d];
            dqkv[part_of(b, u, 1, h) + d] += dscore * qkv[part_of(b, t, 0, h) + d];
        }
    }
}

static double gelu(double x)
{
    return 0.5 * x * (1 + tanh(0.7978845608 * (x + 0.044715 * x * x * x)));
}

static double gelu_slope(double x)
{
    double t = tanh(0.7978845608 * (x + 0.044715 * x * x * x));

    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * 0.7978845608 * (1 + 3 * 0.044715 * x * x);
}

static void add(double *out, const double *a, const double *b, int count)
{
    for (int i = 0; i < count; i++) {
        out[i] = a[i] + b[i];
    }
}

static void forward(void)
{
    const double *residual = act.embedded;

    for (int i = 0; i < ROWS * CHANNELS; i++) {
        act.embedded[i] = model.wte[tokens[i / CHANNELS] * CHANNELS + i % CHANNELS] +
                          model.wpe[i % (LENGTH * CHANNELS)];
    }
    for (int i = 0; i < LAYERS; i++) {
        const struct layer *w = &model.layers[i];

        norm(act.layers[i].ln1, residual, &w->ln1);
        linear(act.layers[i].qkv, act.layers[i].ln1, w->qkv.weight, w->qkv.bias, CHANNELS,
               3 * CHANNELS);
        for (int at = 0; at < BATCH * HEADS * LENGTH; at++) {
            attend(act.layers[i].joined, act.layers[i].attention, act.layers[i].qkv,
                   at / (HEADS * LENGTH), at / LENGTH % HEADS, at % LENGTH);
        }
        linear(act.layers[i].projected, act.layers[i].joined, w->projection.weight,
               w->projection.bias, CHANNELS, CHANNELS);
        add(act.layers[i].middle, residual, act.layers[i].projected, ROWS * CHANNELS);
        norm(act.layers[i].ln2, act.layers[i].middle, &w->ln2);
        linear(act.layers[i].up, act.layers[i].ln2, w->up.weight, w->up.bias, CHANNELS,
               4 * CHANNELS);
        for (int j = 0; j < 4 * ROWS * CHANNELS; j++) {
            act.layers[i].active[j] = gelu(act.layers[i].up[j]);
        }
        linear(act.layers[i].down, act.layers[i].active, w->down.weight, w->down.bias, 4 * CHANNELS,
               CHANNELS);
        add(act.layers[i].out, act.layers[i].middle, act.layers[i].down, ROWS * CHANNELS);
        residual = act.layers[i].out;
    }
    norm(act.lnf, residual, &model.lnf);
    linear(act.logits, act.lnf, model.wte, NULL, CHANNELS, VOCABULARY);
}

/* The mean loss; its gradient goes to grad.logits. */
static double loss(void)
{
    double total = 0;

    for (int row = 0; row < ROWS; row++) {
        const double *logits = act.logits + row * VOCABULARY;
        double sum = 0;

        for (int i = 0; i < VOCABULARY; i++) {
            sum += exp(logits[i]);
        }
        for (int i = 0; i < VOCABULARY; i++) {
            grad.logits[row * VOCABULARY + i] = (exp(logits[i]) / sum - (i == targets[row])) / ROWS;
        }
        total += log(sum) - logits[targets[row]];
    }
    return total / ROWS;
}

static void backward_layer(int i, const double *in, double *din)
{
    const struct layer *w = &model.layers[i];
    struct layer *dw = &gradient.layers[i];

    memcpy(grad.layers[i].middle, grad.layers[i].out, sizeof(grad.layers[i].middle));
    linear_backward(grad.layers[i].active, dw->down.weight, dw->down.bias, grad.layers[i].out,
                    act.layers[i].active, w->down.weight, 4 * CHANNELS, CHANNELS);
    for (int j = 0; j < 4 * ROWS * CHANNELS; j++) {
        grad.layers[i].up[j] = grad.layers[i].active[j] * gelu_slope(act.layers[i].up[j]);
    }
    linear_backward(grad.layers[i].ln2, dw->up.weight, dw->up.bias, grad.layers[i].up,
                    act.layers[i].ln2, w->up.weight, CHANNELS, 4 * CHANNELS);
    norm_backward(grad.layers[i].middle, &dw->ln2, grad.layers[i].ln2, act.layers[i].middle,
                  &w->ln2);
    linear_backward(grad.layers[i].joined, dw->projection.weight, dw->projection.bias,
                    grad.layers[i].middle, act.layers[i].joined, w->projection.weight, CHANNELS,
                    CHANNELS);
    for (int at = 0; at < BATCH * HEADS * LENGTH; at++) {
        attend_backward(grad.layers[i].qkv, grad.layers[i].joined, act.layers[i].attention,
                        act.layers[i].qkv, at / (HEADS * LENGTH), at / LENGTH % HEADS, at % LENGTH);
    }
    linear_backward(grad.layers[i].ln1, dw->qkv.weight, dw->qkv.bias, grad.layers[i].qkv,
                    act.layers[i].ln1, w->qkv.weight, CHANNELS, 3 * CHANNELS);
    memcpy(din, grad.layers[i].middle, sizeof(grad.layers[i].middle));
    norm_backward(din, &dw->ln1, grad.layers[i].ln1, in, &w->ln1);
}

static void backward(void)
{
    linear_backward(grad.lnf, gradient.wte, NULL, grad.logits, act.lnf, model.wte, CHANNELS,
                    VOCABULARY);
    norm_backward(grad.layers[LAYERS - 1].out, &gradient.lnf, grad.lnf, act.layers[LAYERS - 1].out,
                  &model.lnf);
    for (int i = LAYERS - 1; i >= 0; i--) {
        backward_layer(i, i > 0 ? act.layers[i - 1].out : act.embedded,
                       i > 0 ? grad.layers[i - 1].out : grad.embedded);
    }
    for (int i = 0; i < ROWS * CHANNELS; i++) {
        gradient.wte[tokens[i / CHANNELS] * CHANNELS + i % CHANNELS] += grad.embedded[i];
        gradient.wpe[i % (LENGTH * CHANNELS)] += grad.embedded[i];
    }
}

static void update(int step)
{
    double *value = (double *)&model;
    const double *slope = (const double *)&gradient;
    double *m = (double *)&first;
    double *v = (double *)&second;

    for (size_t i = 0; i < sizeof(model) / sizeof(double); i++) {
        m[i] = 0.9 * m[i] + 0.1 * slope[i];
        v[i] = 0.99 * v[i] + 0.01 * slope[i] * slope[i];
        value[i] -=
            0.003 * (m[i] / (1 - pow(0.9, step)) / (sqrt(v[i] / (1 - pow(0.99, step))) + 1e-8) +
                     0.01 * value[i]);
    }
}

int main(int count, char **arguments)
{
    int steps = count > 1 ? atoi(arguments[1]) : 5;

    initialise_model();
    for (int step = 1; step <= steps; step++) {
        make_batch();
        memset(&gradient, 0, sizeof(gradient));
        memset(&grad, 0, sizeof(grad));
        forward();
        printf("step %d: loss %.6f\n", step, loss());
        backward();
        update(step);
    }
    return 0;
}

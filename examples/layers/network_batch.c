/* The network's tensors: what lives as long as it, and what a batch needs. */
#include "examples/layers/layer.h"
#include "examples/layers/network.h"
#include "examples/train_fashion/fashion_data.h"

#include "examples/common/try.h"

#include "kernels/conv2d.h"
#include "kernels/initialise.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Allocates and describes in one go. The library copies the name. */
static capu_status make(struct network *network, const char *layer, const char *what, size_t bytes,
                        const capu_tensor_info *like, void **address)
{
    capu_tensor_info info = *like;
    char name[64];

    info.size = sizeof(info);
    info.name = name;
    snprintf(name, sizeof(name), "%s.%s", layer, what);
    TRY(capu_malloc(network->context, bytes, address));
    return capu_tensor_describe(network->context, *address, &info);
}

static capu_status make_floats(struct network *network, const char *layer, const char *what,
                               size_t count, capu_kind kind, float **address)
{
    void *memory = NULL;

    TRY(make(network, layer, what, count * sizeof(float), &(capu_tensor_info){.kind = kind},
             &memory));
    *address = memory;
    return CAPU_OK;
}

/* In the network's element type. */
static capu_status make_items(struct network *network, const char *layer, const char *what,
                              size_t count, capu_kind kind, void **address)
{
    return make(network, layer, what, count * element_bytes(network->element),
                &(capu_tensor_info){.kind = kind}, address);
}

/*
 * The numbers a parameter begins with: drawn by `start`, which lacks only where they go. A master
 * and its working weight begin with the same numbers, these rounded.
 */
static capu_status start_parameter(struct network *network,
                                   const struct network_parameter *parameter,
                                   const struct initialise *start)
{
    struct initialise arguments = *start;

    arguments.output = parameter->value;
    arguments.count = parameter->count;
    arguments.element = network->element;
    TRY(initialise(network->context, &arguments));
    if (parameter->master == NULL) {
        return CAPU_OK;
    }
    arguments.output = parameter->master;
    arguments.element = ELEMENT_FP32;
    return initialise(network->context, &arguments);
}

static const struct initialise zero = {.kind = INITIALISE_CONSTANT};
static const struct initialise one = {.kind = INITIALISE_CONSTANT, .a = 1.0f};

static capu_status make_parameter(struct network *network, struct network_parameter *parameter,
                                  const char *layer, const char *what, size_t count,
                                  const struct initialise *start)
{
    char velocity[32];
    char gradient[32];
    char master[32];

    snprintf(parameter->name, sizeof(parameter->name), "%s.%s", layer, what);
    snprintf(velocity, sizeof(velocity), "%s.velocity", what);
    snprintf(gradient, sizeof(gradient), "%s.gradient", what);
    snprintf(master, sizeof(master), "%s.master", what);
    parameter->count = count;
    TRY(make_items(network, layer, what, count, CAPU_PARAMETER, &parameter->value));
    TRY(make_floats(network, layer, velocity, count, CAPU_OPTIMIZER, &parameter->velocity));
    TRY(make_floats(network, layer, gradient, count, CAPU_GRADIENT, &parameter->gradient));
    if (network->element == ELEMENT_BF16) {
        TRY(make_floats(network, layer, master, count, CAPU_OPTIMIZER, &parameter->master));
    }
    TRY(start_parameter(network, parameter, start));
    return capu_zero(network->context, parameter->velocity, 0);
}

/* Weights of the size that keeps a signal's variance through a relu (He); biases zero. */
static capu_status make_weights(struct network *network, size_t index, size_t inputs,
                                size_t outputs)
{
    struct network_layer *state = &network->layers[index];
    const char *name = layers[index].name;

    TRY(make_parameter(network, &state->weight, name, "weight", inputs * outputs,
                       &(struct initialise){.seed = network->seed,
                                            .counter = index,
                                            .kind = INITIALISE_NORMAL,
                                            .b = sqrtf(2.0f / (float)inputs)}));
    return make_parameter(network, &state->bias, name, "bias", outputs, &zero);
}

/* Running statistics are nobody's gradient, but carry over: persistent. */
static capu_status make_statistic(struct network *network, const char *layer, const char *what,
                                  size_t count, const struct initialise *start, float **address)
{
    struct initialise arguments = *start;
    void *memory = NULL;

    TRY(make(network, layer, what, count * sizeof(float),
             &(capu_tensor_info){.kind = CAPU_PARAMETER, .lifetime = CAPU_PERSISTENT}, &memory));
    *address = memory;
    arguments.output = memory;
    arguments.count = count;
    return initialise(network->context, &arguments);
}

static capu_status make_norm(struct network *network, size_t index, size_t channels)
{
    struct network_layer *state = &network->layers[index];
    const char *name = layers[index].name;

    TRY(make_parameter(network, &state->weight, name, "scale", channels, &one));
    TRY(make_parameter(network, &state->bias, name, "shift", channels, &zero));
    snprintf(state->mean_name, sizeof(state->mean_name), "%s.running_mean", name);
    snprintf(state->variance_name, sizeof(state->variance_name), "%s.running_variance", name);
    TRY(make_statistic(network, name, "running_mean", channels, &zero, &state->running_mean));
    TRY(make_statistic(network, name, "running_variance", channels, &one,
                       &state->running_variance));
    TRY(make_floats(network, name, "saved_mean", channels, CAPU_ACTIVATION, &state->saved_mean));
    return make_floats(network, name, "saved_rstd", channels, CAPU_ACTIVATION, &state->saved_rstd);
}

capu_status network_init(struct network *network, capu_context *context, enum element element,
                         uint64_t seed)
{
    uint32_t channels = 1;
    uint32_t side = FASHION_SIDE;

    memset(network, 0, sizeof(*network));
    network->context = context;
    network->element = element;
    network->seed = seed;
    for (size_t i = 0; i < layer_count; i++) {
        struct network_layer *state = &network->layers[i];

        switch (layers[i].kind) {
        case LAYER_CONV:
            TRY(make_weights(network, i, (size_t)channels * 9, layers[i].size));
            channels = layers[i].size;
            break;
        case LAYER_NORM:
            TRY(make_norm(network, i, channels));
            break;
        case LAYER_POOL:
            side /= layers[i].size;
            break;
        case LAYER_DENSE:
            TRY(make_weights(network, i, (size_t)channels * side * side, layers[i].size));
            channels = layers[i].size;
            side = 1;
            break;
        case LAYER_RELU:
        case LAYER_DROPOUT:
            break;
        }
        state->channels = channels;
        state->side = side;
    }
    return CAPU_OK;
}

static size_t output_items(const struct network *network, size_t index)
{
    const struct network_layer *state = &network->layers[index];
    return (size_t)network->batch * state->channels * state->side * state->side;
}

static capu_status free_batch(struct network *network)
{
    void *held[] = {network->pixels,        network->labels, network->workspace,
                    network->probabilities, network->losses, network->mean_loss};

    for (size_t i = 0; i < sizeof(held) / sizeof(held[0]); i++) {
        TRY(capu_free(network->context, held[i]));
    }
    for (size_t i = 0; i < layer_count; i++) {
        struct network_layer *state = &network->layers[i];

        TRY(capu_free(network->context, state->output));
        TRY(capu_free(network->context, state->places));
        if (i + 1 == layer_count || state->gradient != network->layers[i + 1].gradient) {
            TRY(capu_free(network->context, state->gradient));
        }
    }
    network->batch = 0;
    return CAPU_OK;
}

/* The largest workspace that a convolution wants: all of them share one tensor. */
static size_t workspace_bytes(const struct network *network)
{
    size_t largest = 0;

    for (size_t i = 0; i < layer_count; i++) {
        const struct network_layer *state = &network->layers[i];
        struct conv2d conv = {
            .batch = network->batch,
            .input_channels = i > 0 ? network->layers[i - 1].channels : 1,
            .output_channels = state->channels,
            .height = state->side,
            .width = state->side,
            .kernel = 3,
            .padding = 1,
        };
        size_t bytes = layers[i].kind == LAYER_CONV ? conv2d_workspace_bytes(&conv) : 0;

        largest = bytes > largest ? bytes : largest;
    }
    return largest;
}

static capu_status make_ends(struct network *network)
{
    size_t batch = network->batch;
    void *memory = NULL;

    TRY(make(network, "input", "labels", batch * sizeof(int32_t),
             &(capu_tensor_info){.kind = CAPU_INPUT}, &memory));
    network->labels = memory;
    TRY(make_items(network, "input", "pixels", batch * FASHION_PIXELS, CAPU_INPUT,
                   &network->pixels));
    TRY(make_floats(network, "conv", "workspace", workspace_bytes(network) / sizeof(float),
                    CAPU_WORKSPACE, &network->workspace));
    TRY(make_items(network, "loss", "probabilities", batch * FASHION_CLASSES, CAPU_ACTIVATION,
                   &network->probabilities));
    TRY(make_floats(network, "loss", "losses", batch, CAPU_ACTIVATION, &network->losses));
    return make_floats(network, "loss", "mean", 1, CAPU_ACTIVATION, &network->mean_loss);
}

static capu_status make_places(struct network *network, size_t index)
{
    void *memory = NULL;

    TRY(make(network, layers[index].name, "places", output_items(network, index),
             &(capu_tensor_info){.kind = CAPU_ACTIVATION}, &memory));
    network->layers[index].places = memory;
    return CAPU_OK;
}

capu_status network_resize(struct network *network, uint32_t batch)
{
    if (batch == network->batch) {
        return CAPU_OK;
    }
    if (network->batch > 0) {
        TRY(free_batch(network));
        /* Freed memory can go when the work on it has ended: wait, or two batches are held. */
        TRY(capu_synchronize(network->context));
    }
    network->batch = batch;
    TRY(make_ends(network));
    for (size_t i = 0; i < layer_count; i++) {
        struct network_layer *state = &network->layers[i];

        TRY(make_items(network, layers[i].name, "output", output_items(network, i), CAPU_ACTIVATION,
                       &state->output));
        if (layers[i].kind == LAYER_POOL) {
            TRY(make_places(network, i));
        }
    }
    for (size_t i = layer_count; i-- > 0;) {
        struct network_layer *state = &network->layers[i];

        if (i + 1 < layer_count && layer_is_in_place(&layers[i + 1])) {
            state->gradient = network->layers[i + 1].gradient;
            continue;
        }
        TRY(make_items(network, layers[i].name, "gradient", output_items(network, i), CAPU_GRADIENT,
                       &state->gradient));
    }
    return CAPU_OK;
}

static size_t add_weight(struct weight *weights, size_t count, const char *name,
                         const float *address, size_t items)
{
    if (address == NULL) {
        return count;
    }
    weights[count] = (struct weight){name, address, items * sizeof(float)};
    return count + 1;
}

static size_t add_parameter(const struct network *network, struct weight *weights, size_t count,
                            const struct network_parameter *parameter)
{
    return add_weight(weights, count, parameter->name,
                      network->element == ELEMENT_BF16 ? parameter->master : parameter->value,
                      parameter->count);
}

size_t network_weights(const struct network *network, struct weight *weights)
{
    size_t count = 0;

    for (size_t i = 0; i < layer_count; i++) {
        const struct network_layer *state = &network->layers[i];

        count = add_parameter(network, weights, count, &state->weight);
        count = add_parameter(network, weights, count, &state->bias);
        count = add_weight(weights, count, state->mean_name, state->running_mean, state->channels);
        count = add_weight(weights, count, state->variance_name, state->running_variance,
                           state->channels);
    }
    return count;
}

void network_print(const struct network *network)
{
    size_t parameters = 0;

    printf("%-8s %10s %12s\n", "layer", "output", "parameters");
    for (size_t i = 0; i < layer_count; i++) {
        const struct network_layer *state = &network->layers[i];
        size_t count = state->weight.count + state->bias.count;

        parameters += count;
        printf("%-8s %4ux%2ux%2u %12zu\n", layers[i].name, state->channels, state->side,
               state->side, count);
    }
    printf("%s: %zu parameters\n", element_name(network->element), parameters);
}

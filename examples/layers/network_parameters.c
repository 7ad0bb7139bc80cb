/* The parameters of a network: made with it, updated by every training iteration, saved at the end.
 */
#include "examples/layers/network.h"

#include "examples/layers/network_tensors.h"

#include "examples/common/try.h"

#include "kernels/initialise.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/*
 * Writes the initial values of a parameter: `start` says which, and lacks only the destination. A
 * master and its working weight start with the same values, the latter rounded.
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
    TRY(network_tensors_items(network, layer, what, count, CAPU_PARAMETER, &parameter->value));
    TRY(network_tensors_floats(network, layer, velocity, count, CAPU_OPTIMIZER,
                               &parameter->velocity));
    TRY(network_tensors_floats(network, layer, gradient, count, CAPU_GRADIENT,
                               &parameter->gradient));
    if (network->element == ELEMENT_BF16) {
        TRY(network_tensors_floats(network, layer, master, count, CAPU_OPTIMIZER,
                                   &parameter->master));
    }
    TRY(start_parameter(network, parameter, start));
    return capu_zero(network->context, parameter->velocity, 0);
}

/* Weights of the size that keeps the variance of a signal; biases zero. */
static capu_status make_weights(struct network *network, size_t index, size_t inputs)
{
    const struct layer *layer = &network->table->layers[index];
    struct network_layer *state = &network->layers[index];
    float gain = layer->gain != 0.0f ? layer->gain : 2.0f;

    TRY(make_parameter(network, &state->weight, layer->name, "weight", inputs * layer->size,
                       &(struct initialise){.seed = network->seed,
                                            .counter = layer->stream,
                                            .kind = INITIALISE_NORMAL,
                                            .b = sqrtf(gain / (float)inputs)}));
    return layer->has_bias
               ? make_parameter(network, &state->bias, layer->name, "bias", layer->size, &zero)
               : CAPU_OK;
}

/* No optimizer updates running statistics, but they carry over to the next iteration: persistent.
 */
static capu_status make_statistic(struct network *network, const char *layer, const char *what,
                                  size_t count, const struct initialise *start, float **address)
{
    struct initialise arguments = *start;
    void *memory = NULL;

    TRY(network_tensors_make(
        network, layer, what, count * sizeof(float),
        &(capu_tensor_info){.kind = CAPU_PARAMETER, .lifetime = CAPU_PERSISTENT}, &memory));
    *address = memory;
    arguments.output = memory;
    arguments.count = count;
    return initialise(network->context, &arguments);
}

static capu_status make_norm(struct network *network, size_t index, size_t channels)
{
    struct network_layer *state = &network->layers[index];
    const char *name = network->table->layers[index].name;

    TRY(make_parameter(network, &state->weight, name, "scale", channels, &one));
    TRY(make_parameter(network, &state->bias, name, "shift", channels, &zero));
    snprintf(state->mean_name, sizeof(state->mean_name), "%s.running_mean", name);
    snprintf(state->variance_name, sizeof(state->variance_name), "%s.running_variance", name);
    TRY(make_statistic(network, name, "running_mean", channels, &zero, &state->running_mean));
    TRY(make_statistic(network, name, "running_variance", channels, &one,
                       &state->running_variance));
    TRY(network_tensors_floats(network, name, "saved_mean", channels, CAPU_ACTIVATION,
                               &state->saved_mean));
    return network_tensors_floats(network, name, "saved_rstd", channels, CAPU_ACTIVATION,
                                  &state->saved_rstd);
}

/* The side of the output of a layer whose kernel or window moves over an image; 0: it does not fit.
 */
static uint32_t side_after(const struct layer *layer, uint32_t side, uint32_t stride)
{
    uint32_t padded = side + 2 * layer->padding;

    return padded >= layer->kernel ? (padded - layer->kernel) / stride + 1 : 0;
}

/* The shape of the layer's output, and its parameters. */
static capu_status init_layer(struct network *network, size_t index)
{
    const struct layer *layer = &network->table->layers[index];
    struct network_layer *state = &network->layers[index];
    size_t input = layer_input(network->table, index);
    uint32_t channels =
        input != LAYER_NONE ? network->layers[input].channels : network->table->channels;
    uint32_t side = input != LAYER_NONE ? network->layers[input].side : network->table->side;

    state->channels = channels;
    state->side = side;
    switch (layer->kind) {
    case LAYER_CONV:
        state->channels = layer->size;
        state->side = side_after(layer, side, layer->stride != 0 ? layer->stride : 1);
        return make_weights(network, index, (size_t)channels * layer->kernel * layer->kernel);
    case LAYER_NORM:
        return make_norm(network, index, channels);
    case LAYER_MAX_POOL:
        state->side = side_after(layer, side, layer->stride != 0 ? layer->stride : layer->kernel);
        return CAPU_OK;
    case LAYER_AVERAGE_POOL:
        state->side = 1;
        return CAPU_OK;
    case LAYER_DENSE:
        state->channels = layer->size;
        state->side = 1;
        return make_weights(network, index, (size_t)channels * side * side);
    case LAYER_RELU:
    case LAYER_DROPOUT:
    case LAYER_ADD:
        return CAPU_OK;
    }
    return CAPU_INVALID;
}

capu_status network_init(struct network *network, capu_context *context,
                         const struct layer_table *table, enum element element, uint64_t seed)
{
    if (table->count > NETWORK_LAYERS_LIMIT) {
        return CAPU_TOO_LARGE;
    }
    if (!layer_table_is_valid(table)) {
        return CAPU_INVALID;
    }
    memset(network, 0, sizeof(*network));
    network->context = context;
    network->table = table;
    network->element = element;
    network->seed = seed;
    for (size_t i = 0; i < table->count; i++) {
        TRY(init_layer(network, i));
        if (network->layers[i].side == 0) {
            return CAPU_INVALID;
        }
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

    for (size_t i = 0; i < network->table->count; i++) {
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
    for (size_t i = 0; i < network->table->count; i++) {
        const struct network_layer *state = &network->layers[i];
        size_t count = state->weight.count + state->bias.count;

        parameters += count;
        printf("%-8s %4ux%2ux%2u %12zu\n", network->table->layers[i].name, state->channels,
               state->side, state->side, count);
    }
    printf("%s: %zu parameters\n", element_name(network->element), parameters);
}

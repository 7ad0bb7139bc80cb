/*
 * One layer of a network, forward and backward: fills the argument struct of an operation from the
 * table and the tensors, and runs it. Nothing here knows of a budget: each operation declares what
 * it reads and writes, and that is all the library needs.
 */
#include "examples/layers/layer_run.h"

#include "examples/common/try.h"

#include "kernels/average_pool.h"
#include "kernels/batch_norm.h"
#include "kernels/conv2d.h"
#include "kernels/dropout.h"
#include "kernels/matmul.h"
#include "kernels/max_pool.h"
#include "kernels/relu.h"
#include "kernels/residual.h"

/* The output that a layer reads, or the images. */
struct input {
    void *values;
    void *gradient; /* NULL: not needed */
    uint32_t channels;
    uint32_t side;
};

static struct input input_at(const struct network *network, size_t index)
{
    const struct network_layer *state;

    if (index == LAYER_NONE) {
        return (struct input){network->pixels, NULL, network->table->channels,
                              network->table->side};
    }
    state = &network->layers[index];
    return (struct input){state->output, state->gradient, state->channels, state->side};
}

/* The gradient that the layer writes is the spare one if another layer has written the first. */
static struct input input_of(const struct network *network, size_t index)
{
    struct input input = input_at(network, layer_input(network->table, index));

    if (network->layers[index].spare != NULL) {
        input.gradient = network->layers[index].spare;
    }
    return input;
}

static struct conv2d conv_of(const struct network *network, size_t index)
{
    const struct layer *layer = &network->table->layers[index];
    const struct network_layer *state = &network->layers[index];
    struct input input = input_of(network, index);

    return (struct conv2d){
        .input = input.values,
        .weight = state->weight.value,
        .bias = state->bias.value,
        .output = state->output,
        .output_gradient = state->gradient,
        .input_gradient = input.gradient,
        .weight_gradient = state->weight.gradient,
        .bias_gradient = state->bias.gradient,
        .workspace = network->workspace,
        .batch = network->batch,
        .input_channels = input.channels,
        .output_channels = state->channels,
        .height = input.side,
        .width = input.side,
        .kernel = layer->kernel,
        .padding = layer->padding,
        .stride = layer->stride,
        .element = network->element,
    };
}

static struct batch_norm norm_of(const struct network *network, size_t index)
{
    const struct network_layer *state = &network->layers[index];

    return (struct batch_norm){
        .input = input_of(network, index).values,
        .output = state->output,
        .scale = state->weight.value,
        .shift = state->bias.value,
        .running_mean = state->running_mean,
        .running_variance = state->running_variance,
        .saved_mean = state->saved_mean,
        .saved_rstd = state->saved_rstd,
        .gradient = state->gradient,
        .scale_gradient = state->weight.gradient,
        .shift_gradient = state->bias.gradient,
        .batch = network->batch,
        .channels = state->channels,
        .plane = state->side * state->side,
        .momentum = 0.1f,
        .epsilon = 1e-5f,
        .element = network->element,
    };
}

static struct relu relu_of(const struct network *network, size_t index)
{
    const struct network_layer *state = &network->layers[index];

    return (struct relu){
        .input = input_of(network, index).values,
        .output = state->output,
        .gradient = state->gradient,
        .count = network_items(network, index),
        .element = network->element,
    };
}

static struct max_pool max_pool_of(const struct network *network, size_t index)
{
    const struct layer *layer = &network->table->layers[index];
    const struct network_layer *state = &network->layers[index];
    struct input input = input_of(network, index);

    return (struct max_pool){
        .input = input.values,
        .output = state->output,
        .places = state->places,
        .output_gradient = state->gradient,
        .input_gradient = input.gradient,
        .planes = (size_t)network->batch * state->channels,
        .height = input.side,
        .width = input.side,
        .window = layer->kernel,
        .stride = layer->stride,
        .padding = layer->padding,
        .element = network->element,
    };
}

static struct average_pool average_pool_of(const struct network *network, size_t index)
{
    const struct network_layer *state = &network->layers[index];
    struct input input = input_of(network, index);

    return (struct average_pool){
        .input = input.values,
        .output = state->output,
        .output_gradient = state->gradient,
        .input_gradient = input.gradient,
        .planes = (size_t)network->batch * state->channels,
        .plane = input.side * input.side,
        .element = network->element,
    };
}

static struct dropout dropout_of(const struct network *network, size_t index, uint64_t step)
{
    const struct layer *layer = &network->table->layers[index];
    const struct network_layer *state = &network->layers[index];

    return (struct dropout){
        .input = input_of(network, index).values,
        .output = state->output,
        .gradient = state->gradient,
        .count = network_items(network, index),
        .seed = network->seed,
        /* Step 0 begins after the counters of the initial weights. */
        .counter = (step + 1) * network->table->streams + layer->stream,
        .rate = (float)layer->size / 100.0f,
        .element = network->element,
    };
}

static struct matmul dense_of(const struct network *network, size_t index)
{
    const struct network_layer *state = &network->layers[index];
    struct input input = input_of(network, index);

    return (struct matmul){
        .input = input.values,
        .weight = state->weight.value,
        .bias = state->bias.value,
        .output = state->output,
        .output_gradient = state->gradient,
        .input_gradient = input.gradient,
        .weight_gradient = state->weight.gradient,
        .bias_gradient = state->bias.gradient,
        .rows = network->batch,
        .inputs = input.channels * input.side * input.side,
        .outputs = state->channels,
        .element = network->element,
    };
}

static capu_status forward_add(struct network *network, size_t index)
{
    const struct layer *layer = &network->table->layers[index];
    struct residual residual = {
        .input = input_of(network, index).values,
        .branch = input_at(network, layer->branch - 1).values,
        .output = network->layers[index].output,
        .count = network_items(network, index),
        .element = network->element,
    };

    return residual_forward(network->context, &residual);
}

capu_status layer_run_forward(struct network *network, size_t index, uint64_t step,
                              bool is_training)
{
    capu_context *context = network->context;

    switch (network->table->layers[index].kind) {
    case LAYER_CONV: {
        struct conv2d conv = conv_of(network, index);
        return conv2d_forward(context, &conv);
    }
    case LAYER_NORM: {
        struct batch_norm norm = norm_of(network, index);
        return is_training ? batch_norm_forward(context, &norm) : batch_norm_infer(context, &norm);
    }
    case LAYER_RELU: {
        struct relu relu = relu_of(network, index);
        return relu_forward(context, &relu);
    }
    case LAYER_MAX_POOL: {
        struct max_pool pool = max_pool_of(network, index);
        return max_pool_forward(context, &pool);
    }
    case LAYER_AVERAGE_POOL: {
        struct average_pool pool = average_pool_of(network, index);
        return average_pool_forward(context, &pool);
    }
    case LAYER_DROPOUT: {
        struct dropout dropout = dropout_of(network, index, step);

        /* A rate of 0 copies the input. */
        dropout.rate = is_training ? dropout.rate : 0.0f;
        return dropout_forward(context, &dropout);
    }
    case LAYER_DENSE: {
        struct matmul dense = dense_of(network, index);
        return matmul_forward(context, &dense);
    }
    case LAYER_ADD:
        return forward_add(network, index);
    }
    return CAPU_INVALID;
}

static capu_status backward_conv(struct network *network, size_t index)
{
    struct conv2d conv = conv_of(network, index);

    TRY(conv2d_backward_weight(network->context, &conv));
    return conv.input_gradient != NULL ? conv2d_backward_input(network->context, &conv) : CAPU_OK;
}

static capu_status backward_dense(struct network *network, size_t index)
{
    struct matmul dense = dense_of(network, index);

    TRY(matmul_backward_weight(network->context, &dense));
    return matmul_backward_input(network->context, &dense);
}

/* The gradient of a sum is that of both terms. The sum is the last reader of both, so each copy is
   the first gradient of its term. */
static capu_status backward_add(struct network *network, size_t index)
{
    const struct layer *layer = &network->table->layers[index];
    const void *gradient = network->layers[index].gradient;
    size_t bytes = network_items(network, index) * element_bytes(network->element);

    TRY(capu_copy(network->context, input_at(network, layer->branch - 1).gradient, gradient,
                  bytes));
    return capu_copy(network->context, input_of(network, index).gradient, gradient, bytes);
}

static capu_status backward_kind(struct network *network, size_t index, uint64_t step)
{
    capu_context *context = network->context;

    switch (network->table->layers[index].kind) {
    case LAYER_CONV:
        return backward_conv(network, index);
    case LAYER_NORM: {
        struct batch_norm norm = norm_of(network, index);
        return batch_norm_backward(context, &norm);
    }
    case LAYER_RELU: {
        struct relu relu = relu_of(network, index);
        return relu_backward(context, &relu);
    }
    case LAYER_MAX_POOL: {
        struct max_pool pool = max_pool_of(network, index);
        return max_pool_backward(context, &pool);
    }
    case LAYER_AVERAGE_POOL: {
        struct average_pool pool = average_pool_of(network, index);
        return average_pool_backward(context, &pool);
    }
    case LAYER_DROPOUT: {
        struct dropout dropout = dropout_of(network, index, step);
        return dropout_backward(context, &dropout);
    }
    case LAYER_DENSE:
        return backward_dense(network, index);
    case LAYER_ADD:
        return backward_add(network, index);
    }
    return CAPU_INVALID;
}

/* Adds the spare gradient to that of the input. */
static capu_status add_spare(struct network *network, size_t index)
{
    size_t input = layer_input(network->table, index);
    struct residual residual = {
        .output_gradient = network->layers[index].spare,
        .input_gradient = network->layers[input].gradient,
        .count = network_items(network, input),
        .element = network->element,
    };

    return residual_backward(network->context, &residual);
}

capu_status layer_run_backward(struct network *network, size_t index, uint64_t step)
{
    TRY(backward_kind(network, index, step));
    return network->layers[index].spare != NULL ? add_spare(network, index) : CAPU_OK;
}

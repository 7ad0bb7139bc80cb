/*
 * Forward, backward and update: a walk over the table of layers there, and one back. Nothing here
 * knows of a budget: each operation says what it touches, and that is all.
 */
#include "examples/layers/network.h"

#include "examples/layers/layer.h"
#include "examples/train_fashion/fashion_data.h"

#include "examples/common/try.h"

#include "kernels/batch_norm.h"
#include "kernels/conv2d.h"
#include "kernels/dropout.h"
#include "kernels/matmul.h"
#include "kernels/max_pool.h"
#include "kernels/relu.h"
#include "kernels/sgd.h"
#include "kernels/softmax_cross_entropy.h"

/* The output of the layer before, or the pixels. */
struct input {
    void *values;
    void *gradient; /* NULL: nobody wants it */
    uint32_t channels;
    uint32_t side;
};

static struct input input_of(const struct network *network, size_t index)
{
    if (index == 0) {
        return (struct input){network->pixels, NULL, 1, FASHION_SIDE};
    }
    return (struct input){network->layers[index - 1].output, network->layers[index - 1].gradient,
                          network->layers[index - 1].channels, network->layers[index - 1].side};
}

static struct conv2d conv_of(const struct network *network, size_t index)
{
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
        .height = state->side,
        .width = state->side,
        .kernel = 3,
        .padding = 1,
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

static size_t items_of(const struct network *network, const struct network_layer *state)
{
    return (size_t)network->batch * state->channels * state->side * state->side;
}

static struct relu relu_of(const struct network *network, size_t index)
{
    const struct network_layer *state = &network->layers[index];

    return (struct relu){
        .input = input_of(network, index).values,
        .output = state->output,
        .gradient = state->gradient,
        .count = items_of(network, state),
        .element = network->element,
    };
}

static struct max_pool pool_of(const struct network *network, size_t index)
{
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
        .window = layers[index].size,
        .element = network->element,
    };
}

static struct dropout dropout_of(const struct network *network, size_t index, uint64_t step)
{
    const struct network_layer *state = &network->layers[index];

    return (struct dropout){
        .input = input_of(network, index).values,
        .output = state->output,
        .gradient = state->gradient,
        .count = items_of(network, state),
        .seed = network->seed,
        /* Above the counters of the weights, and one for each layer and step. */
        .counter = (step + 1) * NETWORK_LAYERS_LIMIT + index,
        .rate = (float)layers[index].size / 100.0f,
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

static struct softmax_cross_entropy loss_of(const struct network *network)
{
    const struct network_layer *last = &network->layers[layer_count - 1];

    return (struct softmax_cross_entropy){
        .logits = last->output,
        .labels = network->labels,
        .probabilities = network->probabilities,
        .losses = network->losses,
        .mean = network->mean_loss,
        .gradient = last->gradient,
        .rows = network->batch,
        .classes = last->channels,
        .scale = 1.0f / (float)network->batch,
        .element = network->element,
    };
}

static capu_status forward_layer(struct network *network, size_t index, uint64_t step,
                                 bool is_training)
{
    capu_context *context = network->context;

    switch (layers[index].kind) {
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
    case LAYER_POOL: {
        struct max_pool pool = pool_of(network, index);
        return max_pool_forward(context, &pool);
    }
    case LAYER_DROPOUT: {
        struct dropout dropout = dropout_of(network, index, step);

        /* Drops nothing, and so copies, when it only classifies. */
        dropout.rate = is_training ? dropout.rate : 0.0f;
        return dropout_forward(context, &dropout);
    }
    case LAYER_DENSE: {
        struct matmul dense = dense_of(network, index);
        return matmul_forward(context, &dense);
    }
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

static capu_status backward_layer(struct network *network, size_t index, uint64_t step)
{
    capu_context *context = network->context;

    switch (layers[index].kind) {
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
    case LAYER_POOL: {
        struct max_pool pool = pool_of(network, index);
        return max_pool_backward(context, &pool);
    }
    case LAYER_DROPOUT: {
        struct dropout dropout = dropout_of(network, index, step);
        return dropout_backward(context, &dropout);
    }
    case LAYER_DENSE:
        return backward_dense(network, index);
    }
    return CAPU_INVALID;
}

static capu_status update(struct network *network, const struct network_parameter *parameter,
                          const struct network_rates *rates)
{
    bool has_masters = network->element == ELEMENT_BF16;

    if (parameter->value == NULL) {
        return CAPU_OK;
    }
    return sgd_update(network->context,
                      &(struct sgd){.parameter = has_masters ? parameter->master : parameter->value,
                                    .velocity = parameter->velocity,
                                    .gradient = parameter->gradient,
                                    .count = parameter->count,
                                    .rate = rates->rate,
                                    .momentum = rates->momentum,
                                    .decay = rates->decay,
                                    .working = has_masters ? parameter->value : NULL});
}

static capu_status forward(struct network *network, const void *pixels, const int32_t *labels,
                           uint64_t step, bool is_training)
{
    struct softmax_cross_entropy loss = loss_of(network);

    TRY(capu_upload(network->context, network->pixels, pixels,
                    (size_t)network->batch * FASHION_PIXELS * element_bytes(network->element)));
    TRY(capu_upload(network->context, network->labels, labels,
                    (size_t)network->batch * sizeof(int32_t)));
    for (size_t i = 0; i < layer_count; i++) {
        TRY(forward_layer(network, i, step, is_training));
    }
    return softmax_cross_entropy_forward(network->context, &loss);
}

capu_status network_train(struct network *network, const void *pixels, const int32_t *labels,
                          uint64_t step, const struct network_rates *rates, float *loss)
{
    capu_context *context = network->context;
    struct softmax_cross_entropy end = loss_of(network);

    TRY(capu_iteration_begin(context, "train"));
    TRY(forward(network, pixels, labels, step, true));
    TRY(softmax_cross_entropy_backward(context, &end));
    for (size_t i = layer_count; i-- > 0;) {
        TRY(backward_layer(network, i, step));
    }
    for (size_t i = 0; i < layer_count; i++) {
        TRY(update(network, &network->layers[i].weight, rates));
        TRY(update(network, &network->layers[i].bias, rates));
    }
    TRY(capu_download(context, loss, network->mean_loss, sizeof(*loss)));
    return capu_iteration_end(context);
}

static float probability_at(const struct network *network, const void *probabilities, size_t index)
{
    return network->element == ELEMENT_BF16
               ? element_widen(((const uint16_t *)probabilities)[index])
               : ((const float *)probabilities)[index];
}

/* The class of the highest probability, the first of equals. */
static uint32_t best_class(const struct network *network, const void *probabilities, size_t image)
{
    size_t first = image * FASHION_CLASSES;
    uint32_t best = 0;

    for (uint32_t i = 1; i < FASHION_CLASSES; i++) {
        if (probability_at(network, probabilities, first + i) >
            probability_at(network, probabilities, first + best)) {
            best = i;
        }
    }
    return best;
}

capu_status network_validate(struct network *network, const void *pixels, const int32_t *labels,
                             void *probabilities, uint32_t *right)
{
    capu_context *context = network->context;

    *right = 0;
    TRY(capu_iteration_begin(context, "validate"));
    TRY(forward(network, pixels, labels, 0, false));
    TRY(capu_download(context, probabilities, network->probabilities,
                      (size_t)network->batch * FASHION_CLASSES * element_bytes(network->element)));
    for (size_t image = 0; image < network->batch; image++) {
        *right += best_class(network, probabilities, image) == (uint32_t)labels[image];
    }
    return capu_iteration_end(context);
}

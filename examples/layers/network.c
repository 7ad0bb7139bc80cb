/* Iterations of a network: the forward pass walks the table of layers, the backward pass walks it
 * in reverse, and the update visits every parameter. */
#include "examples/layers/network.h"

#include "examples/layers/layer_run.h"

#include "examples/common/try.h"

#include "kernels/sgd.h"
#include "kernels/softmax_cross_entropy.h"

static struct softmax_cross_entropy loss_of(const struct network *network)
{
    const struct network_layer *last = &network->layers[network->table->count - 1];

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
                    network_pixels(network) * element_bytes(network->element), 0));
    TRY(capu_upload(network->context, network->labels, labels,
                    (size_t)network->batch * sizeof(int32_t), 0));
    for (size_t i = 0; i < network->table->count; i++) {
        TRY(layer_run_forward(network, i, step, is_training));
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
    for (size_t i = network->table->count; i-- > 0;) {
        TRY(layer_run_backward(network, i, step));
    }
    for (size_t i = 0; i < network->table->count; i++) {
        TRY(update(network, &network->layers[i].weight, rates));
        TRY(update(network, &network->layers[i].bias, rates));
    }
    TRY(capu_download(context, loss, network->mean_loss, sizeof(*loss), 0));
    return capu_iteration_end(context);
}

static float probability_at(const struct network *network, const void *probabilities, size_t index)
{
    return network->element == ELEMENT_BF16
               ? element_widen(((const uint16_t *)probabilities)[index])
               : ((const float *)probabilities)[index];
}

static uint32_t class_count(const struct network *network)
{
    return network->layers[network->table->count - 1].channels;
}

/* The class of the highest probability, the first of equals. */
static uint32_t best_class(const struct network *network, const void *probabilities, size_t image)
{
    uint32_t classes = class_count(network);
    size_t first = image * classes;
    uint32_t best = 0;

    for (uint32_t i = 1; i < classes; i++) {
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
    TRY(capu_download(
        context, probabilities, network->probabilities,
        (size_t)network->batch * class_count(network) * element_bytes(network->element), 0));
    for (size_t image = 0; image < network->batch; image++) {
        *right += best_class(network, probabilities, image) == (uint32_t)labels[image];
    }
    return capu_iteration_end(context);
}

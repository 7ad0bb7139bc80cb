/*
 * The tensors of a batch: activations, their gradients, workspace and loss. When the size of the
 * batch changes, all of them are freed and made anew.
 *
 * Gradients are made from the last layer to the first, as the backward pass writes them, because a
 * layer that works in place takes the tensor of its reader.
 */
#include "examples/layers/network.h"

#include "examples/layers/network_tensors.h"

#include "examples/common/try.h"

#include "kernels/conv2d.h"

#include <stdio.h>
#include <string.h>

/* The layer whose backward pass turns this one's gradient into its own in place; LAYER_NONE: none.
 */
static size_t in_place_reader(const struct layer_table *table, size_t index)
{
    size_t reader = layer_last_reader(table, index);

    return reader != LAYER_NONE && layer_is_in_place(&table->layers[reader]) ? reader : LAYER_NONE;
}

static capu_status free_layer(struct network *network, size_t index)
{
    const struct layer *layer = &network->table->layers[index];
    struct network_layer *state = &network->layers[index];

    if (layer->output_slot == NULL) {
        TRY(capu_free(network->context, state->output));
    }
    TRY(capu_free(network->context, state->places));
    if (layer->gradient_slot == NULL && in_place_reader(network->table, index) == LAYER_NONE) {
        TRY(capu_free(network->context, state->gradient));
    }
    return CAPU_OK;
}

static capu_status free_batch(struct network *network)
{
    void *held[] = {network->pixels,        network->labels, network->workspace,
                    network->probabilities, network->losses, network->mean_loss};

    for (size_t i = 0; i < sizeof(held) / sizeof(held[0]); i++) {
        TRY(capu_free(network->context, held[i]));
    }
    for (size_t i = 0; i < network->table->count; i++) {
        TRY(free_layer(network, i));
    }
    for (; network->slot_count > 0; network->slot_count--) {
        TRY(capu_free(network->context, network->slots[network->slot_count - 1].address));
    }
    network->batch = 0;
    return CAPU_OK;
}

/* The largest workspace that a convolution needs: all of them share one tensor. */
static size_t workspace_bytes(const struct network *network)
{
    size_t largest = 0;

    for (size_t i = 0; i < network->table->count; i++) {
        const struct layer *layer = &network->table->layers[i];
        size_t input = layer_input(network->table, i);
        bool is_first = input == LAYER_NONE;
        uint32_t side = is_first ? network->table->side : network->layers[input].side;
        struct conv2d conv = {
            .batch = network->batch,
            .input_channels = is_first ? network->table->channels : network->layers[input].channels,
            .output_channels = layer->size,
            .height = side,
            .width = side,
            .kernel = layer->kernel,
            .padding = layer->padding,
            .stride = layer->stride,
        };
        size_t bytes = layer->kind == LAYER_CONV ? conv2d_workspace_bytes(&conv) : 0;

        largest = bytes > largest ? bytes : largest;
    }
    return largest;
}

static capu_status make_ends(struct network *network)
{
    size_t batch = network->batch;
    size_t classes = network->layers[network->table->count - 1].channels;
    void *memory = NULL;

    TRY(network_tensors_make(network, "input", "labels", batch * sizeof(int32_t),
                             &(capu_tensor_info){.kind = CAPU_INPUT}, &memory));
    network->labels = memory;
    TRY(network_tensors_items(network, "input", "pixels", network_pixels(network), CAPU_INPUT,
                              &network->pixels));
    TRY(network_tensors_floats(network, "conv", "workspace",
                               workspace_bytes(network) / sizeof(float), CAPU_WORKSPACE,
                               &network->workspace));
    TRY(network_tensors_items(network, "loss", "probabilities", batch * classes, CAPU_ACTIVATION,
                              &network->probabilities));
    TRY(network_tensors_floats(network, "loss", "losses", batch, CAPU_ACTIVATION,
                               &network->losses));
    return network_tensors_floats(network, "loss", "mean", 1, CAPU_ACTIVATION, &network->mean_loss);
}

/* The tensor of this slot and size. */
static capu_status share(struct network *network, const char *slot_name, size_t count,
                         capu_kind kind, void **address)
{
    struct network_slot *slot;
    char what[32];

    for (size_t i = 0; i < network->slot_count; i++) {
        slot = &network->slots[i];
        if (slot->count == count && strcmp(slot->name, slot_name) == 0) {
            *address = slot->address;
            return CAPU_OK;
        }
    }
    if (network->slot_count == NETWORK_SLOTS_LIMIT) {
        return CAPU_TOO_LARGE;
    }
    slot = &network->slots[network->slot_count];
    snprintf(what, sizeof(what), "%zu", count);
    TRY(network_tensors_items(network, slot_name, what, count, kind, &slot->address));
    slot->name = slot_name;
    slot->count = count;
    network->slot_count++;
    *address = slot->address;
    return CAPU_OK;
}

/* A tensor of the slot, or of the layer alone if there is none. */
static capu_status make_value(struct network *network, size_t index, const char *slot,
                              const char *what, capu_kind kind, void **address)
{
    size_t count = network_items(network, index);

    return slot != NULL ? share(network, slot, count, kind, address)
                        : network_tensors_items(network, network->table->layers[index].name, what,
                                                count, kind, address);
}

static capu_status make_output(struct network *network, size_t index)
{
    const struct layer *layer = &network->table->layers[index];
    struct network_layer *state = &network->layers[index];
    void *memory = NULL;

    TRY(make_value(network, index, layer->output_slot, "output", CAPU_ACTIVATION, &state->output));
    if (layer->kind == LAYER_MAX_POOL) {
        TRY(network_tensors_make(network, layer->name, "places", network_items(network, index),
                                 &(capu_tensor_info){.kind = CAPU_ACTIVATION}, &memory));
        state->places = memory;
    }
    return CAPU_OK;
}

static capu_status make_gradients(struct network *network, size_t index)
{
    const struct layer_table *table = network->table;
    const struct layer *layer = &table->layers[index];
    struct network_layer *state = &network->layers[index];
    size_t reader = in_place_reader(table, index);
    size_t input = layer_input(table, index);

    if (reader != LAYER_NONE) {
        state->gradient = network->layers[reader].gradient;
    } else {
        TRY(make_value(network, index, layer->gradient_slot, "gradient", CAPU_GRADIENT,
                       &state->gradient));
    }
    state->spare = NULL;
    if (input == LAYER_NONE || layer_last_reader(table, input) == index) {
        return CAPU_OK;
    }
    /* It is added as soon as it is written, so all layers can share it. */
    return share(network, "spare", network_items(network, input), CAPU_GRADIENT, &state->spare);
}

capu_status network_resize(struct network *network, uint32_t batch)
{
    if (batch == network->batch) {
        return CAPU_OK;
    }
    if (network->batch > 0) {
        TRY(free_batch(network));
        /* Memory is released when the work on it has completed: wait, or two batches are held. */
        TRY(capu_synchronize(network->context));
    }
    network->batch = batch;
    TRY(make_ends(network));
    for (size_t i = 0; i < network->table->count; i++) {
        TRY(make_output(network, i));
    }
    for (size_t i = network->table->count; i-- > 0;) {
        TRY(make_gradients(network, i));
    }
    return CAPU_OK;
}

/*
 * The large LSTM language model of Zaremba et al. (2014): two layers of 1500 units, 10,000 words,
 * dropout between layers. Every step of the sequence has ops of its own. The gradient of a layer's
 * weight is summed over the steps.
 */
#include "models/layers.h"
#include "models/zoo.h"

#include <stdio.h>
#include <stdlib.h>

#define LAYERS 2
#define UNITS 1500
#define WORDS 10000
#define STEPS_MAX 4096

/* A layer: its weight, and what it passes from one step to the next. */
struct cell {
    uint32_t weight;
    uint32_t hidden;
    uint32_t carried;
};

/* in: x; second: hidden before; out: the gates. */
static void gates_backward(struct tape *tape, const struct step *step)
{
    uint32_t dy = tape_gradient(tape, step->out);
    uint32_t dx = tape_new_gradient(tape, step->in, step->name);
    uint32_t dh =
        tape_at(tape, step->second).wants_gradient
            ? tape_tensor(tape, CAPU_GRADIENT, tape_bytes(tape, tape_at(tape, step->second).ref), 1,
                          step->name, "dh")
            : 0;
    struct tape_op op = {
        .name = step->name,
        .suffix = "bwd_weight",
        .reads = {dy, tape_at(tape, step->in).ref, tape_at(tape, step->second).ref},
        .flops = step->flops};

    if (dy == 0) {
        return;
    }
    tape_weight_op(tape, &op, step->weight);
    tape_op(tape, &(struct tape_op){.name = step->name,
                                    .suffix = "bwd_data",
                                    .reads = {dy, tape_weight_ref(tape, step->weight)},
                                    .writes = {dx, dh},
                                    .flops = step->flops});
    tape_give_gradient(tape, step->in, dx, step->name);
    tape_give_gradient(tape, step->second, dh, step->name);
}

/* in: the gates; second: carried before; out: hidden; sizes[0]: carried; saved[0]: the gates after
   their functions. */
static void cell_backward(struct tape *tape, const struct step *step)
{
    uint32_t carried = (uint32_t)step->sizes[0];
    uint32_t gates = tape_new_gradient(tape, step->in, step->name);
    uint32_t before =
        tape_at(tape, step->second).wants_gradient
            ? tape_tensor(tape, CAPU_GRADIENT, tape_bytes(tape, tape_at(tape, step->second).ref), 1,
                          step->name, "dc")
            : 0;

    tape_op(tape, &(struct tape_op){.name = step->name,
                                    .suffix = "bwd",
                                    .reads = {tape_gradient(tape, step->out),
                                              tape_gradient(tape, carried), step->saved[0],
                                              tape_at(tape, step->second).ref,
                                              tape_at(tape, carried).ref},
                                    .writes = {gates, before}});
    tape_give_gradient(tape, step->in, gates, step->name);
    tape_give_gradient(tape, step->second, before, step->name);
}

/* One step of one layer. */
static uint32_t advance(struct tape *tape, struct cell *cell, uint32_t x, const char *name)
{
    struct value in = tape_at(tape, x);
    struct step gates = {.backward = gates_backward, .in = x, .second = cell->hidden};
    struct step step = {.backward = cell_backward, .second = cell->carried};
    char own[TAPE_NAME_MAX];
    uint32_t carried;

    snprintf(own, sizeof(own), "%.40s.gates", name);
    gates.weight = cell->weight;
    gates.out = tape_value(tape, in.rows, 4 * UNITS, 1, 1, own);
    gates.flops = 2.0 * (double)in.rows * (double)(in.channels + UNITS) * 4.0 * UNITS;
    tape_op(tape, &(struct tape_op){.name = own,
                                    .suffix = "fwd",
                                    .reads = {in.ref, tape_at(tape, cell->hidden).ref,
                                              tape_use(tape, cell->weight)},
                                    .writes = {tape_at(tape, gates.out).ref},
                                    .flops = gates.flops});
    tape_step(tape, &gates, own);

    snprintf(own, sizeof(own), "%.40s.carried", name);
    carried = tape_value(tape, in.rows, UNITS, 1, 1, own);
    snprintf(own, sizeof(own), "%.40s.cell", name);
    step.in = gates.out;
    step.out = tape_value(tape, in.rows, UNITS, 1, 1, own);
    step.sizes[0] = carried;
    step.saved[0] = tape_tensor(tape, CAPU_ACTIVATION,
                                tape_bytes(tape, tape_at(tape, gates.out).ref), 1, own, "gates");
    tape_op(tape, &(struct tape_op){
                      .name = own,
                      .suffix = "fwd",
                      .reads = {tape_at(tape, gates.out).ref, tape_at(tape, cell->carried).ref},
                      .writes = {tape_at(tape, step.out).ref, tape_at(tape, carried).ref,
                                 step.saved[0]}});
    tape_step(tape, &step, own);
    cell->hidden = step.out;
    cell->carried = carried;
    return step.out;
}

/* Passes the words of one step through all layers. */
static uint32_t advance_all(struct tape *tape, struct cell *cells, uint32_t *table, uint64_t batch,
                            uint64_t at)
{
    char name[TAPE_NAME_MAX];
    uint32_t x;

    snprintf(name, sizeof(name), "ids%u", (unsigned)at);
    x = tape_input(tape, batch, 1, 1, 1, 8, name);
    snprintf(name, sizeof(name), "embedding%u", (unsigned)at);
    x = at == 0 ? layer_embedding(tape, x, WORDS, 0, UNITS, table, name)
                : layer_embedding_of(tape, x, *table, UNITS, name);
    for (uint32_t layer = 0; layer < LAYERS; layer++) {
        snprintf(name, sizeof(name), "dropout%u.%u", layer, (unsigned)at);
        x = layer_dropout(tape, x, name);
        if (at == 0) {
            /* A sequence begins with the final state of the previous one, which gets no gradient.
             */
            snprintf(name, sizeof(name), "lstm%u", layer);
            cells[layer].weight =
                tape_weight(tape, (uint64_t)(2 * UNITS + 1) * 4 * UNITS, name, "w");
            snprintf(name, sizeof(name), "hidden%u", layer);
            cells[layer].hidden =
                tape_input(tape, batch, UNITS, 1, 1, tape_element_bytes(tape), name);
            snprintf(name, sizeof(name), "carried%u", layer);
            cells[layer].carried =
                tape_input(tape, batch, UNITS, 1, 1, tape_element_bytes(tape), name);
        }
        snprintf(name, sizeof(name), "lstm%u.%u", layer, (unsigned)at);
        x = advance(tape, &cells[layer], x, name);
    }
    snprintf(name, sizeof(name), "dropout%d.%u", LAYERS, (unsigned)at);
    return layer_dropout(tape, x, name);
}

void lstm_forward(struct tape *tape, const struct zoo_model *model,
                  const struct zoo_options *options)
{
    struct cell cells[LAYERS] = {{0}};
    uint32_t *outputs;
    uint32_t table = 0;
    uint32_t x;

    (void)model;
    if (options->sequence > STEPS_MAX) {
        tape_fail(tape, CAPU_TOO_LARGE, "at most %d steps", STEPS_MAX);
        return;
    }
    outputs = calloc(options->sequence, sizeof(*outputs));
    if (outputs == NULL) {
        tape_fail(tape, CAPU_NO_HOST_MEMORY, "out of memory");
        return;
    }
    for (uint64_t at = 0; at < options->sequence; at++) {
        tape_layer(tape, "step%u", (unsigned)at);
        outputs[at] = advance_all(tape, cells, &table, options->batch, at);
    }
    tape_layer(tape, "head");
    x = layer_concatenate(tape, outputs, (uint32_t)options->sequence, true, "cat");
    free(outputs);
    x = layer_linear(tape, x, WORDS, true, false, "linear");
    layer_loss(tape, x, "loss");
}

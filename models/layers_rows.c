/* Layers on rows, which are samples or tokens: products, dropout, norms, embeddings, the loss. */
#include "models/layers.h"

#include <stdio.h>

enum linear_size { LINEAR_RELU, LINEAR_BIAS, LINEAR_TIED_BIAS };

static void linear_backward(struct tape *tape, const struct step *step)
{
    uint32_t dz = layer_gradient_before_relu(tape, step, step->sizes[LINEAR_RELU] != 0);
    struct tape_op op = {.name = step->name,
                         .suffix = "bwd_weight",
                         .reads = {dz, tape_at(tape, step->in).ref},
                         .flops = step->flops};
    uint32_t dx;

    if (dz == 0) {
        return;
    }
    if (step->sizes[LINEAR_BIAS] != 0) {
        op.extra_bytes = (double)tape_bytes(tape, dz);
        op.extra_launches = 1;
    }
    op.writes[0] = layer_split_workspace(tape, step->weight, step->name);
    tape_weight_op(tape, &op, step->weight);
    if (step->sizes[LINEAR_TIED_BIAS] != 0) {
        struct tape_op bias = {.name = step->name, .suffix = "bwd_bias", .reads = {dz}};

        tape_weight_op(tape, &bias, (uint32_t)step->sizes[LINEAR_TIED_BIAS] - 1);
    }
    dx = tape_new_gradient(tape, step->in, step->name);
    if (dx != 0) {
        tape_op(tape, &(struct tape_op){.name = step->name,
                                        .suffix = "bwd_data",
                                        .reads = {dz, tape_weight_ref(tape, step->weight)},
                                        .writes = {dx},
                                        .flops = step->flops});
        tape_give_gradient(tape, step->in, dx, step->name);
    }
}

static uint32_t add_linear(struct tape *tape, struct step *step, uint64_t outputs, const char *name)
{
    struct value in = tape_at(tape, step->in);
    bool has_relu = step->sizes[LINEAR_RELU] != 0;
    uint64_t bias = step->sizes[LINEAR_TIED_BIAS];
    double y_bytes;

    step->backward = linear_backward;
    step->out = tape_value(tape, in.rows, outputs, 1, 1, name);
    y_bytes = (double)tape_bytes(tape, tape_at(tape, step->out).ref);
    step->flops =
        2.0 * (double)in.rows * (double)(in.channels * in.height * in.width) * (double)outputs;
    /* The product adds the bias itself; a ReLU takes another pass. */
    tape_op(tape, &(struct tape_op){.name = name,
                                    .suffix = has_relu ? "relu.fwd" : "fwd",
                                    .reads = {in.ref, tape_use(tape, step->weight),
                                              bias != 0 ? tape_use(tape, (uint32_t)bias - 1) : 0},
                                    .writes = {tape_at(tape, step->out).ref},
                                    .flops = step->flops,
                                    .extra_bytes = has_relu ? 2.0 * y_bytes : 0.0,
                                    .extra_launches = has_relu});
    tape_step(tape, step, name);
    return step->out;
}

uint32_t layer_linear(struct tape *tape, uint32_t x, uint64_t outputs, bool has_bias, bool has_relu,
                      const char *name)
{
    struct value in = tape_at(tape, x);
    struct step step = {.in = x, .sizes = {[LINEAR_RELU] = has_relu, [LINEAR_BIAS] = has_bias}};

    step.weight =
        tape_weight(tape, (in.channels * in.height * in.width + has_bias) * outputs, name, "w");
    return add_linear(tape, &step, outputs, name);
}

uint32_t layer_linear_tied(struct tape *tape, uint32_t x, uint32_t weight, uint64_t outputs,
                           bool has_bias, const char *name)
{
    struct step step = {.in = x, .weight = weight};

    if (has_bias) {
        step.sizes[LINEAR_TIED_BIAS] = (uint64_t)tape_weight(tape, outputs, name, "b") + 1;
    }
    return add_linear(tape, &step, outputs, name);
}

/* saved[0]: the mask. */
static void dropout_backward(struct tape *tape, const struct step *step)
{
    uint32_t dy = tape_gradient(tape, step->out);
    uint32_t dx = dy != 0 ? tape_new_gradient(tape, step->in, step->name) : 0;

    if (dx != 0) {
        tape_op(tape, &(struct tape_op){.name = step->name,
                                        .suffix = "bwd",
                                        .reads = {dy, step->saved[0]},
                                        .writes = {dx}});
        tape_give_gradient(tape, step->in, dx, step->name);
    }
}

uint32_t layer_dropout(struct tape *tape, uint32_t x, const char *name)
{
    struct value in = tape_at(tape, x);
    struct step step = {.backward = dropout_backward, .in = x};

    step.out = tape_value(tape, in.rows, in.channels, in.height, in.width, name);
    step.saved[0] = tape_tensor(tape, CAPU_ACTIVATION,
                                tape_elements(tape, in.rows, in.channels, in.height, in.width), 1,
                                name, "mask");
    tape_op(tape,
            &(struct tape_op){
                .name = name, .suffix = "mask", .writes = {step.saved[0]}, .is_random = true});
    tape_op(tape, &(struct tape_op){.name = name,
                                    .suffix = "fwd",
                                    .reads = {in.ref, step.saved[0]},
                                    .writes = {tape_at(tape, step.out).ref}});
    tape_step(tape, &step, name);
    return step.out;
}

/* saved[0]: a row's mean and deviation. */
static void norm_backward(struct tape *tape, const struct step *step)
{
    uint32_t dy = tape_gradient(tape, step->out);
    uint32_t dx = dy != 0 ? tape_new_gradient(tape, step->in, step->name) : 0;
    struct tape_op op = {.name = step->name,
                         .suffix = "bwd",
                         .reads = {dy, tape_at(tape, step->in).ref,
                                   tape_weight_ref(tape, step->weight), step->saved[0]},
                         .writes = {dx},
                         .extra_launches = 1};

    if (dy != 0) {
        /* The sums over the rows, for the weight, take another pass. */
        op.extra_bytes = 2.0 * (double)tape_bytes(tape, dy);
        tape_weight_op(tape, &op, step->weight);
        tape_give_gradient(tape, step->in, dx, step->name);
    }
}

uint32_t layer_norm(struct tape *tape, uint32_t x, bool is_rms, const char *name)
{
    struct value in = tape_at(tape, x);
    struct step step = {.backward = norm_backward, .in = x};

    step.weight = tape_weight(tape, (is_rms ? 1 : 2) * in.channels, name, is_rms ? "w" : "wb");
    step.out = tape_value(tape, in.rows, in.channels, in.height, in.width, name);
    step.saved[0] =
        tape_tensor(tape, CAPU_ACTIVATION, (is_rms ? 1 : 2) * in.rows, 4, name, "statistics");
    tape_op(tape, &(struct tape_op){.name = name,
                                    .suffix = "fwd",
                                    .reads = {in.ref, tape_use(tape, step.weight)},
                                    .writes = {tape_at(tape, step.out).ref, step.saved[0]}});
    tape_step(tape, &step, name);
    return step.out;
}

static void activation_backward(struct tape *tape, const struct step *step)
{
    uint32_t dy = tape_gradient(tape, step->out);
    uint32_t dx = dy != 0 ? tape_new_gradient(tape, step->in, step->name) : 0;

    if (dx != 0) {
        tape_op(tape, &(struct tape_op){.name = step->name,
                                        .suffix = "bwd",
                                        .reads = {dy, tape_at(tape, step->in).ref},
                                        .writes = {dx}});
        tape_give_gradient(tape, step->in, dx, step->name);
    }
}

uint32_t layer_activation(struct tape *tape, uint32_t x, uint64_t channels, const char *name)
{
    struct value in = tape_at(tape, x);
    struct step step = {.backward = activation_backward, .in = x};

    step.out = tape_value(tape, in.rows, channels, in.height, in.width, name);
    tape_op(tape, &(struct tape_op){.name = name,
                                    .suffix = "fwd",
                                    .reads = {in.ref},
                                    .writes = {tape_at(tape, step.out).ref}});
    tape_step(tape, &step, name);
    return step.out;
}

/* sizes[0]: the positions' weight plus one. */
static void embedding_backward(struct tape *tape, const struct step *step)
{
    uint32_t dy = tape_gradient(tape, step->out);
    struct tape_op op = {
        .name = step->name, .suffix = "bwd", .reads = {dy, tape_at(tape, step->in).ref}};

    if (dy == 0) {
        return;
    }
    if (tape->weights[step->weight].gradient != 0) {
        /* Another use has written the gradient: only the rows in question are read and written. */
        op.extra_bytes = 2.0 * (double)tape_bytes(tape, dy) -
                         2.0 * (double)tape_bytes(tape, tape_weight_ref(tape, step->weight));
    }
    tape_weight_op(tape, &op, step->weight);
    if (step->sizes[0] != 0) {
        struct tape_op positions = {.name = step->name, .suffix = "bwd_positions", .reads = {dy}};

        tape_weight_op(tape, &positions, (uint32_t)step->sizes[0] - 1);
    }
}

static uint32_t add_embedding(struct tape *tape, struct step *step, uint64_t channels,
                              const char *name)
{
    struct value in = tape_at(tape, step->in);
    uint64_t positions = step->sizes[0];
    uint32_t y;

    step->backward = embedding_backward;
    step->out = tape_value(tape, in.rows, channels, 1, 1, name);
    y = tape_at(tape, step->out).ref;
    tape_op(tape,
            &(struct tape_op){
                .name = name,
                .suffix = "fwd",
                .reads = {in.ref, tape_use(tape, step->weight),
                          positions != 0 ? tape_use(tape, (uint32_t)positions - 1) : 0},
                .writes = {y},
                /* Reads as many rows of the table as the output has. */
                .extra_bytes = (double)tape_bytes(tape, y) -
                               (double)tape_bytes(tape, tape_weight_ref(tape, step->weight))});
    tape_step(tape, step, name);
    return step->out;
}

uint32_t layer_embedding(struct tape *tape, uint32_t ids, uint64_t table_rows,
                         uint64_t position_rows, uint64_t channels, uint32_t *table,
                         const char *name)
{
    struct step step = {.in = ids};

    step.weight = tape_weight(tape, table_rows * channels, name, "w");
    if (position_rows > 0) {
        step.sizes[0] =
            (uint64_t)tape_weight(tape, position_rows * channels, name, "positions") + 1;
    }
    *table = step.weight;
    return add_embedding(tape, &step, channels, name);
}

uint32_t layer_embedding_of(struct tape *tape, uint32_t ids, uint32_t table, uint64_t channels,
                            const char *name)
{
    struct step step = {.in = ids, .weight = table};

    return add_embedding(tape, &step, channels, name);
}

static void gather_backward(struct tape *tape, const struct step *step)
{
    uint32_t dy = tape_gradient(tape, step->out);
    uint32_t dx = dy != 0 ? tape_new_gradient(tape, step->in, step->name) : 0;

    if (dx != 0) {
        tape_op(tape, &(struct tape_op){
                          .name = step->name, .suffix = "bwd", .reads = {dy}, .writes = {dx}});
        tape_give_gradient(tape, step->in, dx, step->name);
    }
}

uint32_t layer_gather(struct tape *tape, uint32_t x, uint64_t rows, const char *name)
{
    struct value in = tape_at(tape, x);
    struct step step = {.backward = gather_backward, .in = x};
    uint32_t y;

    step.out = tape_value(tape, rows, in.channels, 1, 1, name);
    y = tape_at(tape, step.out).ref;
    tape_op(tape, &(struct tape_op){.name = name,
                                    .suffix = "fwd",
                                    .reads = {in.ref},
                                    .writes = {y},
                                    .extra_bytes = (double)tape_bytes(tape, y) -
                                                   (double)tape_bytes(tape, in.ref)});
    tape_step(tape, &step, name);
    return step.out;
}

/* saved[0]: logarithms of the probabilities; saved[1]: labels. */
static void loss_backward(struct tape *tape, const struct step *step)
{
    uint32_t dx = tape_new_gradient(tape, step->in, step->name);

    tape_op(tape, &(struct tape_op){.name = step->name,
                                    .suffix = "bwd",
                                    .reads = {step->saved[0], step->saved[1]},
                                    .writes = {dx}});
    tape_give_gradient(tape, step->in, dx, step->name);
}

void layer_loss(struct tape *tape, uint32_t logits, const char *name)
{
    struct value in = tape_at(tape, logits);
    struct step step = {.backward = loss_backward, .in = logits};
    char labels[TAPE_NAME_MAX];
    uint32_t loss;

    snprintf(labels, sizeof(labels), "%.48s.labels", name);
    step.saved[1] = tape_at(tape, tape_input(tape, in.rows, 1, 1, 1, 8, labels)).ref;
    step.saved[0] =
        tape_tensor(tape, CAPU_ACTIVATION, tape_elements(tape, in.rows, in.channels, 1, 1), 4, name,
                    "probabilities");
    loss = tape_tensor(tape, CAPU_ACTIVATION, 1, 4, name, "loss");
    tape_op(tape, &(struct tape_op){.name = name,
                                    .suffix = "fwd",
                                    .reads = {in.ref, step.saved[1]},
                                    .writes = {step.saved[0], loss}});
    tape_step(tape, &step, name);
}

/* The layers: first those on images, then those on rows, which are samples or tokens. */
#include "models/layers.h"

#include <stdio.h>

/* The workspace of a spatial convolution: the limit that frameworks in the style of Caffe set for
   cuDNN, or an eighth of the output if that is less. */
#define CONV_WORKSPACE_MAX ((uint64_t)64 << 20)
/* Partial sums of a product that is split along its long dimension: the workspace that cuBLAS gets
   on recent machines. */
#define SPLIT_WORKSPACE_MAX ((uint64_t)32 << 20)
#define SPLITS 4

/* Winograd's F(2 x 2, 3 x 3) needs 16 of every 36 multiplications of a 3 x 3 convolution. */
#define WINOGRAD_SAVES (1.0 - 16.0 / 36.0)

/* The gradient of the step's output before the ReLU that is fused into it, which takes an op of its
   own. */
static uint32_t gradient_before_relu(struct tape *tape, const struct step *step, bool has_relu)
{
    uint32_t out = tape_gradient(tape, step->out);
    uint32_t ref;

    if (!has_relu || out == 0) {
        return out;
    }
    ref = tape_tensor(tape, CAPU_GRADIENT, tape_bytes(tape, out), 1, step->name, "dz");
    tape_op(tape, &(struct tape_op){.name = step->name,
                                    .suffix = "relu_bwd",
                                    .reads = {out, tape_at(tape, step->out).ref},
                                    .writes = {ref}});
    return ref;
}

/* The workspace of a product whose long dimension is split, such as the gradient of a weight. */
static uint32_t split_workspace(struct tape *tape, uint32_t weight, const char *name)
{
    uint64_t bytes = tape_bytes(tape, tape_weight_ref(tape, weight));

    return tape_workspace(tape, bytes / tape_element_bytes(tape) * 4 * SPLITS, SPLIT_WORKSPACE_MAX,
                          name);
}

/* Layers on images: convolutions, batch norms, pools, sums and concatenation. */

enum conv_size { CONV_RELU, CONV_BIAS, CONV_SPATIAL, CONV_WINOGRAD };

static uint32_t conv_workspace(struct tape *tape, const struct step *step, const char *name)
{
    uint64_t bytes = tape_bytes(tape, tape_at(tape, step->out).ref);

    return step->sizes[CONV_SPATIAL] != 0
               ? tape_workspace(tape, bytes / 8, CONV_WORKSPACE_MAX, name)
               : 0;
}

static void conv_backward(struct tape *tape, const struct step *step)
{
    uint32_t dz = gradient_before_relu(tape, step, step->sizes[CONV_RELU] != 0);
    uint32_t x = tape_at(tape, step->in).ref;
    uint32_t workspace = conv_workspace(tape, step, step->name);
    struct tape_op op = {
        .name = step->name, .suffix = "bwd_weight", .reads = {dz, x}, .flops = step->flops};
    uint32_t dx;

    if (dz == 0) {
        return;
    }
    if (step->sizes[CONV_BIAS] != 0) {
        op.extra_bytes = (double)tape_bytes(tape, dz);
        op.extra_launches = 1;
    }
    op.writes[0] = workspace != 0 ? workspace : split_workspace(tape, step->weight, step->name);
    tape_weight_op(tape, &op, step->weight);
    dx = tape_new_gradient(tape, step->in, step->name);
    if (dx == 0) {
        return;
    }
    tape_op(tape, &(struct tape_op){.name = step->name,
                                    .suffix = "bwd_data",
                                    .reads = {dz, tape_weight_ref(tape, step->weight)},
                                    .writes = {dx, conv_workspace(tape, step, step->name)},
                                    .flops = step->flops,
                                    .saved_flops = step->sizes[CONV_WINOGRAD] != 0
                                                       ? step->flops * WINOGRAD_SAVES
                                                       : 0.0});
    tape_give_gradient(tape, step->in, dx, step->name);
}

/* Adds the op and the step of a convolution whose output exists. */
static uint32_t add_conv(struct tape *tape, struct step *step, const struct conv *conv,
                         const char *name)
{
    uint32_t y = tape_at(tape, step->out).ref;
    double y_bytes = (double)tape_bytes(tape, y);
    unsigned folded = (unsigned)conv->has_bias + (unsigned)conv->has_relu;

    step->backward = conv_backward;
    step->sizes[CONV_RELU] = conv->has_relu;
    step->sizes[CONV_BIAS] = conv->has_bias;
    step->sizes[CONV_SPATIAL] = conv->kernel_height * conv->kernel_width > 1;
    step->sizes[CONV_WINOGRAD] = conv->kernel_height == 3 && conv->kernel_width == 3 &&
                                 conv->stride == 1 && tape->options.dtype == DTYPE_FP32;
    tape_op(tape,
            &(struct tape_op){
                .name = name,
                .suffix = conv->has_relu ? "relu.fwd" : "fwd",
                .reads = {tape_at(tape, step->in).ref, tape_use(tape, step->weight)},
                .writes = {y, conv_workspace(tape, step, name)},
                .flops = step->flops,
                .saved_flops = step->sizes[CONV_WINOGRAD] != 0 ? step->flops * WINOGRAD_SAVES : 0.0,
                .extra_bytes = 2.0 * y_bytes * folded,
                .extra_launches = folded});
    tape_step(tape, step, name);
    return step->out;
}

uint32_t layer_conv(struct tape *tape, uint32_t x, const struct conv *conv, const char *name)
{
    struct value in = tape_at(tape, x);
    uint64_t window = in.channels * conv->kernel_height * conv->kernel_width;
    uint64_t high = in.height + 2 * conv->pad_height;
    uint64_t wide = in.width + 2 * conv->pad_width;
    struct step step = {.in = x};
    struct value out;

    if (high < conv->kernel_height || wide < conv->kernel_width) {
        tape_fail(tape, CAPU_INVALID, "%s: the image is too small", name);
        return 0;
    }
    step.weight = tape_weight(tape, (window + conv->has_bias) * conv->channels, name, "w");
    step.out =
        tape_value(tape, in.rows, conv->channels, (high - conv->kernel_height) / conv->stride + 1,
                   (wide - conv->kernel_width) / conv->stride + 1, name);
    out = tape_at(tape, step.out);
    step.flops = 2.0 * (double)out.rows * (double)out.channels * (double)out.height *
                 (double)out.width * (double)window;
    return add_conv(tape, &step, conv, name);
}

uint32_t layer_conv_up(struct tape *tape, uint32_t x, uint64_t channels, const char *name)
{
    static const uint64_t kernel = 2;
    struct value in = tape_at(tape, x);
    struct conv conv = {.channels = channels,
                        .kernel_height = kernel,
                        .kernel_width = kernel,
                        .stride = kernel,
                        .has_bias = true};
    struct step step = {.in = x};

    step.weight = tape_weight(tape, (in.channels * kernel * kernel + 1) * channels, name, "w");
    step.out = tape_value(tape, in.rows, channels, in.height * kernel, in.width * kernel, name);
    step.flops = 2.0 * (double)in.rows * (double)in.channels * (double)in.height *
                 (double)in.width * (double)(channels * kernel * kernel);
    return add_conv(tape, &step, &conv, name);
}

/* saved[0]: mean and variance; sizes[0]: with ReLU. */
static void batch_norm_backward(struct tape *tape, const struct step *step)
{
    uint32_t dz = gradient_before_relu(tape, step, step->sizes[0] != 0);
    uint32_t x = tape_at(tape, step->in).ref;
    uint32_t dx = tape_new_gradient(tape, step->in, step->name);
    /* One pass over both for the sums, another one for the result. */
    struct tape_op op = {.name = step->name,
                         .suffix = "bwd",
                         .reads = {dz, x, tape_weight_ref(tape, step->weight), step->saved[0]},
                         .writes = {dx},
                         .extra_bytes = 2.0 * (double)tape_bytes(tape, x),
                         .extra_launches = 1};

    if (dz != 0) {
        tape_weight_op(tape, &op, step->weight);
        tape_give_gradient(tape, step->in, dx, step->name);
    }
}

uint32_t layer_batch_norm(struct tape *tape, uint32_t x, bool has_relu, const char *name)
{
    struct value in = tape_at(tape, x);
    struct step step = {.backward = batch_norm_backward, .in = x, .sizes = {has_relu}};
    uint32_t running = tape_buffer(tape, 2 * in.channels, name, "running");
    double bytes = (double)tape_bytes(tape, in.ref);

    step.weight = tape_weight(tape, 2 * in.channels, name, "wb");
    step.out = tape_value(tape, in.rows, in.channels, in.height, in.width, name);
    step.saved[0] = tape_tensor(tape, CAPU_ACTIVATION, 2 * in.channels, 4, name, "statistics");
    tape_op(tape, &(struct tape_op){.name = name,
                                    .suffix = has_relu ? "relu.fwd" : "fwd",
                                    .reads = {in.ref, tape_use(tape, step.weight)},
                                    .writes = {tape_at(tape, step.out).ref, step.saved[0]},
                                    .extra_bytes = bytes + (has_relu ? 2.0 * bytes : 0.0),
                                    .extra_launches = 1 + has_relu});
    tape_op(tape,
            &(struct tape_op){
                .name = name, .suffix = "running", .reads = {step.saved[0]}, .updates = {running}});
    tape_step(tape, &step, name);
    return step.out;
}

/* sizes[0]: an average, whose backward pass needs neither input nor output. */
static void pool_backward(struct tape *tape, const struct step *step)
{
    uint32_t dy = tape_gradient(tape, step->out);
    uint32_t dx = dy != 0 ? tape_new_gradient(tape, step->in, step->name) : 0;
    bool is_average = step->sizes[0] != 0;

    if (dx == 0) {
        return;
    }
    tape_op(tape, &(struct tape_op){.name = step->name,
                                    .suffix = "bwd",
                                    .reads = {dy, is_average ? 0 : tape_at(tape, step->in).ref,
                                              is_average ? 0 : tape_at(tape, step->out).ref},
                                    .writes = {dx}});
    tape_give_gradient(tape, step->in, dx, step->name);
}

static uint32_t add_pool(struct tape *tape, uint32_t x, uint64_t height, uint64_t width,
                         bool is_average, const char *name)
{
    struct value in = tape_at(tape, x);
    struct step step = {.backward = pool_backward, .in = x, .sizes = {is_average}};

    step.out = tape_value(tape, in.rows, in.channels, height, width, name);
    tape_op(tape, &(struct tape_op){.name = name,
                                    .suffix = "fwd",
                                    .reads = {in.ref},
                                    .writes = {tape_at(tape, step.out).ref}});
    tape_step(tape, &step, name);
    return step.out;
}

uint32_t layer_pool(struct tape *tape, uint32_t x, const struct pool *pool, const char *name)
{
    struct value in = tape_at(tape, x);
    uint64_t high = in.height + 2 * pool->pad;
    uint64_t wide = in.width + 2 * pool->pad;

    if (high < pool->kernel || wide < pool->kernel) {
        tape_fail(tape, CAPU_INVALID, "%s: the image is too small", name);
        return 0;
    }
    return add_pool(tape, x, (high - pool->kernel) / pool->stride + 1,
                    (wide - pool->kernel) / pool->stride + 1, pool->is_average, name);
}

uint32_t layer_pool_to(struct tape *tape, uint32_t x, uint64_t height, uint64_t width,
                       const char *name)
{
    return add_pool(tape, x, height, width, true, name);
}

/* sizes[0]: with ReLU. Both inputs get the same gradient. */
static void add_backward(struct tape *tape, const struct step *step)
{
    uint32_t dz = gradient_before_relu(tape, step, step->sizes[0] != 0);

    tape_give_gradient(tape, step->in, dz, step->name);
    tape_give_gradient(tape, step->second, dz, step->name);
}

uint32_t layer_add(struct tape *tape, uint32_t a, uint32_t b, bool has_relu, const char *name)
{
    struct value in = tape_at(tape, a);
    struct step step = {.backward = add_backward, .in = a, .second = b, .sizes = {has_relu}};
    double bytes = (double)tape_bytes(tape, in.ref);

    step.out = tape_value(tape, in.rows, in.channels, in.height, in.width, name);
    tape_op(tape, &(struct tape_op){.name = name,
                                    .suffix = has_relu ? "relu.fwd" : "fwd",
                                    .reads = {in.ref, tape_at(tape, b).ref},
                                    .writes = {tape_at(tape, step.out).ref},
                                    .extra_bytes = has_relu ? 2.0 * bytes : 0.0,
                                    .extra_launches = has_relu});
    tape_step(tape, &step, name);
    return step.out;
}

/* Each input's part is copied from the gradient and added to a previous one in the same pass. */
static void concatenate_backward(struct tape *tape, const struct step *step)
{
    uint32_t dy = tape_gradient(tape, step->out);

    for (uint32_t i = 0; dy != 0 && i < step->input_count; i++) {
        uint32_t input = tape->inputs[step->first_input + i];
        uint32_t before = tape_gradient(tape, input);
        uint32_t dx = tape_new_gradient(tape, input, step->name);

        if (dx == 0) {
            continue;
        }
        tape_op(tape, &(struct tape_op){.name = step->name,
                                        .suffix = before != 0 ? "bwd_add" : "bwd",
                                        .reads = {dy, before},
                                        .writes = {dx},
                                        .extra_bytes = (double)tape_bytes(tape, dx) -
                                                       (double)tape_bytes(tape, dy)});
        tape->values[input].gradient = dx;
    }
}

uint32_t layer_concatenate(struct tape *tape, const uint32_t *values, uint32_t count, bool by_rows,
                           const char *name)
{
    struct value in = tape_at(tape, values[0]);
    struct step step = {.backward = concatenate_backward, .input_count = count};
    uint64_t channels = 0;
    uint64_t rows = 0;

    for (uint32_t i = 0; i < count; i++) {
        channels += tape_at(tape, values[i]).channels;
        rows += tape_at(tape, values[i]).rows;
    }
    step.first_input = tape_add_inputs(tape, values, count);
    step.out = tape_value(tape, by_rows ? rows : in.rows, by_rows ? in.channels : channels,
                          in.height, in.width, name);
    tape_op(tape, &(struct tape_op){.name = name,
                                    .suffix = "fwd",
                                    .writes = {tape_at(tape, step.out).ref},
                                    .more_reads = values,
                                    .more_count = count});
    tape_step(tape, &step, name);
    return step.out;
}

/* Layers on rows: products, dropout, norms, embeddings, the loss. */

enum linear_size { LINEAR_RELU, LINEAR_BIAS, LINEAR_TIED_BIAS };

static void linear_backward(struct tape *tape, const struct step *step)
{
    uint32_t dz = gradient_before_relu(tape, step, step->sizes[LINEAR_RELU] != 0);
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
    op.writes[0] = split_workspace(tape, step->weight, step->name);
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

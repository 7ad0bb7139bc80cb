/*
 * The network's forward and backward pass, op by op. Each op declares what it reads and writes.
 * Nothing here knows where tensors are at the moment, or whether all of them fit.
 */
#include "examples/train_gpt/gpt.h"

#include "examples/common/try.h"

#include "kernels/attention.h"
#include "kernels/embedding.h"
#include "kernels/fused_attention.h"
#include "kernels/gelu.h"
#include "kernels/layer_norm.h"
#include "kernels/matmul.h"
#include "kernels/residual.h"
#include "kernels/softmax_cross_entropy.h"

#include <stdio.h>

/* Of the stream, and of everything else with one row of channels per token. */
static size_t stream_bytes(const struct gpt *gpt)
{
    return (size_t)gpt_rows(gpt) * gpt->shape.channels * element_bytes(gpt->shape.element);
}

static void *value(const struct gpt *gpt, enum gpt_parameter parameter, uint32_t layer)
{
    return gpt_parameter_at(gpt, GPT_VALUE, parameter, layer);
}

static float *gradient(const struct gpt *gpt, enum gpt_parameter parameter, uint32_t layer)
{
    return gpt_parameter_at(gpt, gpt->gradient, parameter, layer);
}

/* The input of layer `layer`: the output of the previous one, or the embedding. */
static void *entering(const struct gpt *gpt, uint32_t layer)
{
    return layer > 0 ? gpt->layers[layer - 1].residual2 : gpt->shared.embedded;
}

/* The arguments of a dense layer, forward and backward; weight gradients accumulate. */
struct dense {
    enum gpt_parameter weight;
    enum gpt_parameter bias; /* GPT_PARAMETERS: none */
    uint32_t layer;
    uint32_t inputs; /* in channels */
    uint32_t outputs;
};

static struct matmul dense_of(const struct gpt *gpt, const struct dense *dense)
{
    struct matmul matmul = {
        .weight = value(gpt, dense->weight, dense->layer),
        .weight_gradient = gradient(gpt, dense->weight, dense->layer),
        .rows = gpt_rows(gpt),
        .inputs = dense->inputs,
        .outputs = dense->outputs,
        .accumulate = 1,
        .element = gpt->shape.element,
    };

    if (dense->bias != GPT_PARAMETERS) {
        matmul.bias = value(gpt, dense->bias, dense->layer);
        matmul.bias_gradient = gradient(gpt, dense->bias, dense->layer);
    }
    return matmul;
}

static capu_status dense_forward(struct gpt *gpt, const struct dense *dense, const void *input,
                                 void *output)
{
    struct matmul matmul = dense_of(gpt, dense);

    matmul.input = input;
    matmul.output = output;
    return matmul_forward(gpt->context, &matmul);
}

static capu_status dense_backward(struct gpt *gpt, const struct dense *dense, const void *input,
                                  const void *output_gradient, void *input_gradient)
{
    struct matmul matmul = dense_of(gpt, dense);

    matmul.input = input;
    matmul.output_gradient = output_gradient;
    matmul.input_gradient = input_gradient;
    TRY(matmul_backward_weight(gpt->context, &matmul));
    return matmul_backward_input(gpt->context, &matmul);
}

static struct dense qkv_dense(const struct gpt *gpt, uint32_t layer)
{
    return (struct dense){GPT_QKV_WEIGHT, GPT_QKV_BIAS, layer, gpt->shape.channels,
                          3 * gpt->shape.channels};
}

static struct dense attention_dense(const struct gpt *gpt, uint32_t layer)
{
    return (struct dense){GPT_ATTENTION_WEIGHT, GPT_ATTENTION_BIAS, layer, gpt->shape.channels,
                          gpt->shape.channels};
}

static struct dense hidden_dense(const struct gpt *gpt, uint32_t layer)
{
    return (struct dense){GPT_HIDDEN_WEIGHT, GPT_HIDDEN_BIAS, layer, gpt->shape.channels,
                          4 * gpt->shape.channels};
}

static struct dense out_dense(const struct gpt *gpt, uint32_t layer)
{
    return (struct dense){GPT_OUT_WEIGHT, GPT_OUT_BIAS, layer, 4 * gpt->shape.channels,
                          gpt->shape.channels};
}

/* The last layer uses the token embedding again. */
static struct dense logits_dense(const struct gpt *gpt)
{
    return (struct dense){GPT_TOKENS, GPT_PARAMETERS, 0, gpt->shape.channels,
                          gpt->shape.vocabulary};
}

static struct layer_norm norm1_of(const struct gpt *gpt, uint32_t index)
{
    const struct gpt_layer *layer = &gpt->layers[index];

    return (struct layer_norm){
        .input = entering(gpt, index),
        .scale = value(gpt, GPT_NORM1_SCALE, index),
        .shift = value(gpt, GPT_NORM1_SHIFT, index),
        .output = layer->norm1,
        .mean = layer->norm1_mean,
        .rstd = layer->norm1_rstd,
        .output_gradient = gpt->shared.branch,
        .input_gradient = gpt->shared.stream_gradient,
        .scale_gradient = gradient(gpt, GPT_NORM1_SCALE, index),
        .shift_gradient = gradient(gpt, GPT_NORM1_SHIFT, index),
        .rows = gpt_rows(gpt),
        .channels = gpt->shape.channels,
        .element = gpt->shape.element,
    };
}

static struct layer_norm norm2_of(const struct gpt *gpt, uint32_t index)
{
    const struct gpt_layer *layer = &gpt->layers[index];

    return (struct layer_norm){
        .input = layer->residual1,
        .scale = value(gpt, GPT_NORM2_SCALE, index),
        .shift = value(gpt, GPT_NORM2_SHIFT, index),
        .output = layer->norm2,
        .mean = layer->norm2_mean,
        .rstd = layer->norm2_rstd,
        .output_gradient = gpt->shared.branch,
        .input_gradient = gpt->shared.stream_gradient,
        .scale_gradient = gradient(gpt, GPT_NORM2_SCALE, index),
        .shift_gradient = gradient(gpt, GPT_NORM2_SHIFT, index),
        .rows = gpt_rows(gpt),
        .channels = gpt->shape.channels,
        .element = gpt->shape.element,
    };
}

static struct layer_norm last_norm_of(const struct gpt *gpt)
{
    return (struct layer_norm){
        .input = entering(gpt, gpt->shape.layers),
        .scale = value(gpt, GPT_LAST_SCALE, 0),
        .shift = value(gpt, GPT_LAST_SHIFT, 0),
        .output = gpt->shared.last,
        .mean = gpt->shared.last_mean,
        .rstd = gpt->shared.last_rstd,
        .output_gradient = gpt->shared.branch,
        .input_gradient = gpt->shared.stream_gradient,
        .scale_gradient = gradient(gpt, GPT_LAST_SCALE, 0),
        .shift_gradient = gradient(gpt, GPT_LAST_SHIFT, 0),
        .rows = gpt_rows(gpt),
        .channels = gpt->shape.channels,
        .element = gpt->shape.element,
    };
}

/* The backward pass puts gradients into qkv, scores and mixed, which the forward pass no longer
 * needs. */
static struct attention attention_of(const struct gpt *gpt, uint32_t index)
{
    const struct gpt_layer *layer = &gpt->layers[index];
    const struct gpt_shared *shared = &gpt->shared;

    return (struct attention){
        .qkv = shared->qkv,
        .parts = layer->parts,
        .scores = shared->scores,
        .weights = layer->weights,
        .mixed = shared->mixed,
        .output = layer->attended,
        .qkv_gradient = shared->qkv,
        .parts_gradient = shared->parts_gradient,
        .scores_gradient = shared->scores,
        .weights_gradient = shared->weights_gradient,
        .mixed_gradient = shared->mixed,
        .output_gradient = shared->branch,
        .batch = gpt->batch,
        .length = gpt->length,
        .heads = gpt->shape.heads,
        .head_channels = gpt->shape.channels / gpt->shape.heads,
        .element = gpt->shape.element,
    };
}

static struct fused_attention fused_attention_of(const struct gpt *gpt, uint32_t index)
{
    const struct gpt_layer *layer = &gpt->layers[index];

    return (struct fused_attention){
        .qkv = layer->parts,
        .output = layer->attended,
        .log_sums = layer->log_sums,
        .output_gradient = gpt->shared.branch,
        .qkv_gradient = gpt->shared.qkv,
        .products = gpt->shared.products,
        .batch = gpt->batch,
        .length = gpt->length,
        .heads = gpt->shape.heads,
        .head_channels = gpt->shape.channels / gpt->shape.heads,
        .element = gpt->shape.element,
    };
}

static struct gelu gelu_of(const struct gpt *gpt, uint32_t index)
{
    return (struct gelu){
        .input = gpt->layers[index].hidden,
        .output = gpt->layers[index].activated,
        .gradient = gpt->shared.hidden_gradient,
        .count = (size_t)gpt_rows(gpt) * 4 * gpt->shape.channels,
        .element = gpt->shape.element,
    };
}

static struct embedding embedding_of(const struct gpt *gpt)
{
    return (struct embedding){
        .tokens = gpt->tokens,
        .token_weight = value(gpt, GPT_TOKENS, 0),
        .position_weight = value(gpt, GPT_POSITIONS, 0),
        .output = gpt->shared.embedded,
        .output_gradient = gpt->shared.stream_gradient,
        .token_gradient = gradient(gpt, GPT_TOKENS, 0),
        .position_gradient = gradient(gpt, GPT_POSITIONS, 0),
        .batch = gpt->batch,
        .length = gpt->length,
        .channels = gpt->shape.channels,
        .vocabulary = gpt->shape.vocabulary,
        .element = gpt->shape.element,
    };
}

static struct softmax_cross_entropy loss_of(const struct gpt *gpt, uint32_t accumulate)
{
    return (struct softmax_cross_entropy){
        .logits = gpt->shared.logits,
        .labels = gpt->targets,
        .probabilities = gpt->shared.probabilities,
        .losses = gpt->shared.losses,
        .mean = gpt->shared.mean_loss,
        .gradient = gpt->shared.logits,
        .rows = gpt_rows(gpt),
        .classes = gpt->shape.vocabulary,
        .scale = 1.0f / ((float)gpt_rows(gpt) * (float)accumulate * (float)gpt->replicas.count),
        .element = gpt->shape.element,
    };
}

static capu_status add_branch(struct gpt *gpt, const void *input, void *output)
{
    return residual_forward(gpt->context, &(struct residual){
                                              .input = input,
                                              .branch = gpt->shared.branch,
                                              .output = output,
                                              .count = (size_t)gpt_rows(gpt) * gpt->shape.channels,
                                              .element = gpt->shape.element,
                                          });
}

static capu_status attention_forward(struct gpt *gpt, uint32_t index)
{
    struct attention attention = attention_of(gpt, index);
    struct fused_attention fused = fused_attention_of(gpt, index);

    if (gpt->shape.is_fused) {
        return fused_attention_forward(gpt->context, &fused);
    }
    TRY(attention_split_forward(gpt->context, &attention));
    TRY(attention_scores_forward(gpt->context, &attention));
    TRY(attention_softmax_forward(gpt->context, &attention));
    TRY(attention_mix_forward(gpt->context, &attention));
    return attention_merge_forward(gpt->context, &attention);
}

static capu_status layer_forward(struct gpt *gpt, uint32_t index)
{
    const struct gpt_layer *layer = &gpt->layers[index];
    struct layer_norm norm1 = norm1_of(gpt, index);
    struct layer_norm norm2 = norm2_of(gpt, index);
    struct dense qkv = qkv_dense(gpt, index);
    struct dense attention = attention_dense(gpt, index);
    struct dense hidden = hidden_dense(gpt, index);
    struct dense out = out_dense(gpt, index);
    struct gelu gelu = gelu_of(gpt, index);

    TRY(layer_norm_forward(gpt->context, &norm1));
    TRY(dense_forward(gpt, &qkv, layer->norm1,
                      gpt->shape.is_fused ? layer->parts : gpt->shared.qkv));
    TRY(attention_forward(gpt, index));
    TRY(dense_forward(gpt, &attention, layer->attended, gpt->shared.branch));
    TRY(add_branch(gpt, norm1.input, layer->residual1));
    TRY(layer_norm_forward(gpt->context, &norm2));
    TRY(dense_forward(gpt, &hidden, layer->norm2, layer->hidden));
    TRY(gelu_forward(gpt->context, &gelu));
    TRY(dense_forward(gpt, &out, layer->activated, gpt->shared.branch));
    return add_branch(gpt, layer->residual1, layer->residual2);
}

/* With segments, every `segment_layers` layers are one. */
static capu_status layers_forward(struct gpt *gpt)
{
    uint32_t each = gpt->segment_layers;

    for (uint32_t i = 0; i < gpt->shape.layers; i++) {
        if (each != 0 && i % each == 0) {
            char name[32];

            snprintf(name, sizeof(name), "layers.%u", i);
            TRY(capu_segment_begin(gpt->context, name));
        }
        TRY(layer_forward(gpt, i));
        if (each != 0 && ((i + 1) % each == 0 || i + 1 == gpt->shape.layers)) {
            TRY(capu_segment_end(gpt->context));
        }
    }
    return CAPU_OK;
}

capu_status gpt_forward(struct gpt *gpt, bool with_loss)
{
    struct embedding embedding = embedding_of(gpt);
    struct layer_norm last = last_norm_of(gpt);
    struct dense logits = logits_dense(gpt);
    struct softmax_cross_entropy loss = loss_of(gpt, 1);

    TRY(embedding_forward(gpt->context, &embedding));
    TRY(layers_forward(gpt));
    TRY(layer_norm_forward(gpt->context, &last));
    TRY(dense_forward(gpt, &logits, gpt->shared.last, gpt->shared.logits));
    return with_loss ? softmax_cross_entropy_forward(gpt->context, &loss) : CAPU_OK;
}

/* The gradient of the parts is written part by part, so it must have contents before. */
static capu_status attention_backward(struct gpt *gpt, uint32_t index)
{
    capu_context *context = gpt->context;
    struct attention attention = attention_of(gpt, index);
    struct fused_attention fused = fused_attention_of(gpt, index);
    size_t parts_bytes = 3 * stream_bytes(gpt);

    if (gpt->shape.is_fused) {
        return fused_attention_backward(context, &fused);
    }
    TRY(attention_merge_backward(context, &attention));
    TRY(attention_mix_backward_weights(context, &attention));
    TRY(capu_zero(context, attention.parts_gradient, parts_bytes));
    TRY(attention_mix_backward_value(context, &attention));
    TRY(attention_softmax_backward(context, &attention));
    TRY(attention_scores_backward_query(context, &attention));
    TRY(attention_scores_backward_key(context, &attention));
    return attention_split_backward(context, &attention);
}

/*
 * The gradient of the stream is also that of the branch, so a residual needs no copy: the norm adds
 * what its branch contributes.
 */
static capu_status layer_backward(struct gpt *gpt, uint32_t index)
{
    const struct gpt_layer *layer = &gpt->layers[index];
    const struct gpt_shared *shared = &gpt->shared;
    struct layer_norm norm1 = norm1_of(gpt, index);
    struct layer_norm norm2 = norm2_of(gpt, index);
    struct dense qkv = qkv_dense(gpt, index);
    struct dense attention = attention_dense(gpt, index);
    struct dense hidden = hidden_dense(gpt, index);
    struct dense out = out_dense(gpt, index);
    struct gelu gelu = gelu_of(gpt, index);

    TRY(dense_backward(gpt, &out, layer->activated, shared->stream_gradient,
                       shared->hidden_gradient));
    TRY(gelu_backward(gpt->context, &gelu));
    TRY(dense_backward(gpt, &hidden, layer->norm2, shared->hidden_gradient, shared->branch));
    TRY(layer_norm_backward(gpt->context, &norm2));
    TRY(dense_backward(gpt, &attention, layer->attended, shared->stream_gradient, shared->branch));
    TRY(attention_backward(gpt, index));
    TRY(dense_backward(gpt, &qkv, layer->norm1, shared->qkv, shared->branch));
    return layer_norm_backward(gpt->context, &norm1);
}

/* Its gradient is complete. */
static capu_status update_one(struct gpt *gpt, const struct gpt_step *step,
                              enum gpt_parameter parameter, uint32_t layer)
{
    TRY(gpt_merge_one(gpt, parameter, layer, 1));
    return gpt_update_one(gpt, step, parameter, layer);
}

static capu_status update_layer(struct gpt *gpt, const struct gpt_step *step, uint32_t layer)
{
    static const enum gpt_parameter own[] = {
        GPT_NORM1_SCALE, GPT_NORM1_SHIFT, GPT_QKV_BIAS,       GPT_QKV_WEIGHT,
        GPT_NORM2_SCALE, GPT_NORM2_SHIFT, GPT_ATTENTION_BIAS, GPT_ATTENTION_WEIGHT,
        GPT_HIDDEN_BIAS, GPT_OUT_BIAS,    GPT_HIDDEN_WEIGHT,  GPT_OUT_WEIGHT,
    };

    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
        TRY(update_one(gpt, step, own[i], layer));
    }
    return CAPU_OK;
}

capu_status gpt_backward(struct gpt *gpt, uint32_t accumulate, const struct gpt_step *asap)
{
    const struct gpt_shared *shared = &gpt->shared;
    struct softmax_cross_entropy loss = loss_of(gpt, accumulate);
    struct dense logits = logits_dense(gpt);
    struct layer_norm last = last_norm_of(gpt);
    struct embedding embedding = embedding_of(gpt);

    TRY(softmax_cross_entropy_backward(gpt->context, &loss));
    TRY(dense_backward(gpt, &logits, shared->last, shared->logits, shared->branch));
    TRY(capu_zero(gpt->context, shared->stream_gradient, stream_bytes(gpt)));
    TRY(layer_norm_backward(gpt->context, &last));
    if (asap != NULL) {
        TRY(update_one(gpt, asap, GPT_LAST_SCALE, 0));
        TRY(update_one(gpt, asap, GPT_LAST_SHIFT, 0));
    }
    for (uint32_t i = gpt->shape.layers; i-- > 0;) {
        TRY(layer_backward(gpt, i));
        if (asap != NULL) {
            TRY(update_layer(gpt, asap, i));
        }
    }
    TRY(embedding_backward(gpt->context, &embedding));
    if (asap != NULL) {
        TRY(update_one(gpt, asap, GPT_TOKENS, 0));
        TRY(update_one(gpt, asap, GPT_POSITIONS, 0));
    }
    return CAPU_OK;
}

/* The network's forward, backward and update. */
#include "examples/train_cnn/cnn.h"

#include "examples/common/try.h"

#include "kernels/average_pool.h"
#include "kernels/batch_norm.h"
#include "kernels/matmul.h"
#include "kernels/max_pool.h"
#include "kernels/relu.h"
#include "kernels/residual.h"
#include "kernels/sgd.h"
#include "kernels/softmax_cross_entropy.h"

#include <stdbool.h>

static size_t items(const struct cnn *cnn, uint32_t channels, uint32_t side)
{
    return (size_t)cnn->shape.batch * channels * side * side;
}

static size_t bytes_of(const struct cnn *cnn, size_t count)
{
    return count * element_bytes(cnn->shape.element);
}

static struct conv2d conv_of(const struct cnn *cnn, const struct cnn_unit *unit, const void *input)
{
    struct conv2d conv = cnn_conv(cnn, unit);

    conv.input = input;
    conv.weight = unit->weight.value;
    conv.output = unit->convolved;
    conv.output_gradient = unit->gradient;
    conv.weight_gradient = unit->weight.gradient;
    conv.workspace = cnn->workspace;
    return conv;
}

static struct batch_norm norm_of(const struct cnn *cnn, const struct cnn_unit *unit)
{
    return (struct batch_norm){
        .input = unit->convolved,
        .output = unit->normed,
        .scale = unit->scale.value,
        .shift = unit->shift.value,
        .running_mean = unit->running_mean,
        .running_variance = unit->running_variance,
        .saved_mean = unit->saved_mean,
        .saved_rstd = unit->saved_rstd,
        .gradient = unit->gradient,
        .scale_gradient = unit->scale.gradient,
        .shift_gradient = unit->shift.gradient,
        .batch = cnn->shape.batch,
        .channels = unit->outputs,
        .plane = unit->side * unit->side,
        .momentum = 0.1f,
        .epsilon = 1e-5f,
        .element = cnn->shape.element,
    };
}

static struct relu relu_of(const struct cnn *cnn, const struct cnn_unit *unit)
{
    return (struct relu){
        .input = unit->normed,
        .output = unit->output,
        .gradient = unit->gradient,
        .count = items(cnn, unit->outputs, unit->side),
        .element = cnn->shape.element,
    };
}

static capu_status forward_unit(struct cnn *cnn, struct cnn_unit *unit, const void *input)
{
    struct conv2d conv = conv_of(cnn, unit, input);
    struct batch_norm norm = norm_of(cnn, unit);
    struct relu relu = relu_of(cnn, unit);

    TRY(conv2d_forward(cnn->context, &conv));
    TRY(batch_norm_forward(cnn->context, &norm));
    return unit->output != NULL ? relu_forward(cnn->context, &relu) : CAPU_OK;
}

/* unit->gradient holds that of the output; what enters gets its own, NULL: nobody wants it. */
static capu_status backward_unit(struct cnn *cnn, struct cnn_unit *unit, const void *input,
                                 void *input_gradient)
{
    struct conv2d conv = conv_of(cnn, unit, input);
    struct batch_norm norm = norm_of(cnn, unit);
    struct relu relu = relu_of(cnn, unit);

    conv.input_gradient = input_gradient;
    if (unit->output != NULL) {
        TRY(relu_backward(cnn->context, &relu));
    }
    TRY(batch_norm_backward(cnn->context, &norm));
    TRY(conv2d_backward_weight(cnn->context, &conv));
    return input_gradient != NULL ? conv2d_backward_input(cnn->context, &conv) : CAPU_OK;
}

/* What enters a block: the output of the one before, or of the pooled stem. */
static void *entering(struct cnn *cnn, size_t index)
{
    return index > 0 ? cnn->blocks[index - 1].output : cnn->stem_pooled;
}

static struct relu relu_of_block(const struct cnn *cnn, const struct cnn_block *block)
{
    return (struct relu){
        .input = block->sum,
        .output = block->output,
        .gradient = block->gradient,
        .count = items(cnn, block->channels, block->side),
        .element = cnn->shape.element,
    };
}

static capu_status forward_block(struct cnn *cnn, size_t index)
{
    struct cnn_block *block = &cnn->blocks[index];
    void *input = entering(cnn, index);
    struct residual residual = {
        .branch = block->expand->normed,
        .output = block->sum,
        .count = items(cnn, block->channels, block->side),
        .element = cnn->shape.element,
    };
    struct relu relu = relu_of_block(cnn, block);

    TRY(forward_unit(cnn, block->reduce, input));
    TRY(forward_unit(cnn, block->middle, block->reduce->output));
    TRY(forward_unit(cnn, block->expand, block->middle->output));
    if (block->project != NULL) {
        TRY(forward_unit(cnn, block->project, input));
    }
    residual.input = block->project != NULL ? block->project->normed : input;
    TRY(residual_forward(cnn->context, &residual));
    return relu_forward(cnn->context, &relu);
}

/* block->gradient holds that of the output; `input_gradient` gets that of what entered. */
static capu_status backward_block(struct cnn *cnn, size_t index, void *input_gradient)
{
    struct cnn_block *block = &cnn->blocks[index];
    void *input = entering(cnn, index);
    size_t bytes = bytes_of(cnn, items(cnn, block->channels, block->side));
    struct relu relu = relu_of_block(cnn, block);

    TRY(relu_backward(cnn->context, &relu));
    /* The sum's gradient is that of both that were added. */
    TRY(capu_copy(cnn->context, block->expand->gradient, block->gradient, bytes));
    if (block->project != NULL) {
        TRY(capu_copy(cnn->context, block->project->gradient, block->gradient, bytes));
        TRY(backward_unit(cnn, block->project, input, input_gradient));
    } else {
        TRY(capu_copy(cnn->context, input_gradient, block->gradient, bytes));
    }
    TRY(backward_unit(cnn, block->expand, block->middle->output, block->middle->gradient));
    TRY(backward_unit(cnn, block->middle, block->reduce->output, block->reduce->gradient));
    TRY(backward_unit(cnn, block->reduce, input, block->spare));
    return residual_backward(
        cnn->context,
        &(struct residual){.output_gradient = block->spare,
                           .input_gradient = input_gradient,
                           .count = items(cnn, block->reduce->inputs, block->reduce->entering_side),
                           .element = cnn->shape.element});
}

static struct matmul dense_of(const struct cnn *cnn)
{
    return (struct matmul){
        .input = cnn->last_pooled,
        .weight = cnn->dense.value,
        .bias = cnn->dense_bias.value,
        .output = cnn->logits,
        .output_gradient = cnn->logits_gradient,
        .input_gradient = cnn->last_gradient,
        .weight_gradient = cnn->dense.gradient,
        .bias_gradient = cnn->dense_bias.gradient,
        .rows = cnn->shape.batch,
        .inputs = cnn->blocks[CNN_BLOCKS - 1].channels,
        .outputs = CNN_CLASSES,
        .element = cnn->shape.element,
    };
}

static struct softmax_cross_entropy loss_of(const struct cnn *cnn)
{
    return (struct softmax_cross_entropy){
        .logits = cnn->logits,
        .labels = cnn->labels,
        .probabilities = cnn->probabilities,
        .losses = cnn->losses,
        .mean = cnn->mean_loss,
        .gradient = cnn->logits_gradient,
        .rows = cnn->shape.batch,
        .classes = CNN_CLASSES,
        .scale = 1.0f / (float)cnn->shape.batch,
        .element = cnn->shape.element,
    };
}

static struct max_pool stem_pool_of(const struct cnn *cnn)
{
    const struct cnn_unit *stem = &cnn->units[0];

    return (struct max_pool){
        .input = stem->output,
        .output = cnn->stem_pooled,
        .places = cnn->stem_places,
        .output_gradient = cnn->stem_gradient,
        .input_gradient = stem->gradient,
        .planes = (size_t)cnn->shape.batch * stem->outputs,
        .height = stem->side,
        .width = stem->side,
        .window = 3,
        .stride = 2,
        .padding = 1,
        .element = cnn->shape.element,
    };
}

/* Over the whole plane that is left. */
static struct average_pool last_pool_of(const struct cnn *cnn)
{
    const struct cnn_block *block = &cnn->blocks[CNN_BLOCKS - 1];

    return (struct average_pool){
        .input = block->output,
        .output = cnn->last_pooled,
        .output_gradient = cnn->last_gradient,
        .input_gradient = block->gradient,
        .planes = (size_t)cnn->shape.batch * block->channels,
        .plane = block->side * block->side,
        .element = cnn->shape.element,
    };
}

static capu_status forward(struct cnn *cnn)
{
    struct max_pool stem = stem_pool_of(cnn);
    struct average_pool last = last_pool_of(cnn);
    struct matmul dense = dense_of(cnn);
    struct softmax_cross_entropy loss = loss_of(cnn);

    TRY(forward_unit(cnn, &cnn->units[0], cnn->images));
    TRY(max_pool_forward(cnn->context, &stem));
    for (size_t i = 0; i < CNN_BLOCKS; i++) {
        TRY(forward_block(cnn, i));
    }
    TRY(average_pool_forward(cnn->context, &last));
    TRY(matmul_forward(cnn->context, &dense));
    return softmax_cross_entropy_forward(cnn->context, &loss);
}

static capu_status backward(struct cnn *cnn)
{
    struct max_pool stem = stem_pool_of(cnn);
    struct average_pool last = last_pool_of(cnn);
    struct matmul dense = dense_of(cnn);
    struct softmax_cross_entropy loss = loss_of(cnn);

    TRY(softmax_cross_entropy_backward(cnn->context, &loss));
    TRY(matmul_backward_weight(cnn->context, &dense));
    TRY(matmul_backward_input(cnn->context, &dense));
    TRY(average_pool_backward(cnn->context, &last));
    for (size_t i = CNN_BLOCKS; i-- > 0;) {
        TRY(backward_block(cnn, i, i > 0 ? cnn->blocks[i - 1].gradient : cnn->stem_gradient));
    }
    TRY(max_pool_backward(cnn->context, &stem));
    return backward_unit(cnn, &cnn->units[0], cnn->images, NULL);
}

static capu_status update(struct cnn *cnn, const struct cnn_parameter *parameter)
{
    bool has_masters = cnn->shape.element == ELEMENT_BF16;

    return sgd_update(cnn->context,
                      &(struct sgd){
                          .parameter = has_masters ? parameter->master : parameter->value,
                          .velocity = parameter->velocity,
                          .gradient = parameter->gradient,
                          .count = parameter->count,
                          .rate = 0.01f,
                          .momentum = 0.9f,
                          .decay = 1e-4f,
                          .working = has_masters ? parameter->value : NULL,
                      });
}

static capu_status update_all(struct cnn *cnn)
{
    for (size_t i = 0; i < cnn->unit_count; i++) {
        TRY(update(cnn, &cnn->units[i].weight));
        TRY(update(cnn, &cnn->units[i].scale));
        TRY(update(cnn, &cnn->units[i].shift));
    }
    TRY(update(cnn, &cnn->dense));
    return update(cnn, &cnn->dense_bias);
}

capu_status cnn_train(struct cnn *cnn, const void *images, const int32_t *labels, float *loss)
{
    TRY(capu_iteration_begin(cnn->context, "train"));
    TRY(capu_upload(cnn->context, cnn->images, images,
                    bytes_of(cnn, items(cnn, 3, cnn->shape.side))));
    TRY(capu_upload(cnn->context, cnn->labels, labels, cnn->shape.batch * sizeof(int32_t)));
    TRY(forward(cnn));
    TRY(backward(cnn));
    TRY(update_all(cnn));
    TRY(capu_download(cnn->context, loss, cnn->mean_loss, sizeof(*loss)));
    return capu_iteration_end(cnn->context);
}

/* The iterations: training, validation and the logits for a sample. */
#include "examples/train_gpt/gpt.h"

#include "examples/common/try.h"

static capu_status upload(struct gpt *gpt, const int32_t *tokens, const int32_t *targets)
{
    size_t bytes = gpt_rows(gpt) * sizeof(int32_t);

    TRY(capu_upload(gpt->context, gpt->tokens, tokens, bytes, 0));
    return targets != NULL ? capu_upload(gpt->context, gpt->targets, targets, bytes, 0) : CAPU_OK;
}

/* The gradient of one replica, over all micro-batches. With `asap` it is the last replica, and
   parameters are updated on the way. */
static capu_status train_replica(struct gpt *gpt, uint32_t replica, const int32_t *tokens,
                                 const int32_t *targets, const struct gpt_step *step,
                                 const struct gpt_step *asap, float *loss)
{
    const struct gpt_layout *layout = &gpt->layout;
    size_t rows = gpt_rows(gpt);

    gpt->gradient = gpt_gradient_of(gpt, replica);
    TRY(capu_zero(gpt->context, (float *)gpt->blob[gpt->gradient] + layout->begin,
                  (layout->end - layout->begin) * sizeof(float)));
    *loss = 0.0f;
    for (uint32_t micro = 0; micro < step->accumulate; micro++) {
        bool is_last = micro + 1 == step->accumulate;
        size_t at = ((size_t)micro * gpt->replicas.count + replica) * rows;
        float micro_loss = 0.0f;

        TRY(upload(gpt, tokens + at, targets + at));
        TRY(gpt_forward(gpt, true));
        TRY(gpt_backward(gpt, step->accumulate, is_last ? asap : NULL));
        if (gpt->graph == NULL) {
            TRY(capu_download(gpt->context, &micro_loss, gpt->shared.mean_loss, sizeof(micro_loss),
                              0));
        }
        *loss += micro_loss / (float)step->accumulate;
    }
    return asap == NULL ? gpt_merge(gpt) : CAPU_OK;
}

/* With a graph, captures the iteration where that is possible, and nothing is downloaded in it. */
static capu_status begin(struct gpt *gpt, bool *is_captured)
{
    *is_captured = gpt->graph != NULL && capu_graph_begin(gpt->graph, "train") == CAPU_OK;
    return *is_captured ? CAPU_OK : capu_iteration_begin(gpt->context, "train");
}

static capu_status end(struct gpt *gpt, bool is_captured, float *loss)
{
    capu_status status =
        is_captured ? capu_graph_end(gpt->graph) : capu_iteration_end(gpt->context);

    gpt->graph_steps += is_captured && status == CAPU_OK;
    /* NOT_READY: it has run, but not as a graph. */
    if (gpt->graph == NULL || (status != CAPU_OK && status != CAPU_NOT_READY)) {
        return status;
    }
    return capu_download(gpt->context, loss, gpt->shared.mean_loss, sizeof(*loss), 0);
}

capu_status gpt_train(struct gpt *gpt, const int32_t *tokens, const int32_t *targets,
                      const struct gpt_step *step, float *loss)
{
    const struct gpt_replicas *replicas = &gpt->replicas;
    bool is_captured;
    double sum = 0.0;

    TRY(begin(gpt, &is_captured));
    for (uint32_t replica = replicas->first; replica < replicas->end; replica++) {
        bool is_last = replica + 1 == replicas->end;
        float own = 0.0f;

        TRY(train_replica(gpt, replica, tokens, targets, step,
                          step->is_asap && is_last ? step : NULL, &own));
        sum += (double)own;
    }
    if (!step->is_asap) {
        TRY(gpt_update(gpt, step));
    }
    TRY(gpt_sum(gpt, &sum));
    *loss = (float)(sum / replicas->count);
    return end(gpt, is_captured, loss);
}

capu_status gpt_validate(struct gpt *gpt, const int32_t *tokens, const int32_t *targets,
                         float *loss)
{
    TRY(capu_iteration_begin(gpt->context, "validate"));
    TRY(upload(gpt, tokens, targets));
    TRY(gpt_forward(gpt, true));
    TRY(capu_download(gpt->context, loss, gpt->shared.mean_loss, sizeof(*loss), 0));
    return capu_iteration_end(gpt->context);
}

/* The rows of the vocabulary after the bytes are not needed. */
capu_status gpt_logits(struct gpt *gpt, const int32_t *tokens, uint32_t position,
                       float logits[GPT_BYTES])
{
    size_t item = element_bytes(gpt->shape.element);
    const char *from =
        (const char *)gpt->shared.logits + (size_t)position * gpt->shape.vocabulary * item;
    uint16_t rounded[GPT_BYTES];
    bool is_rounded = gpt->shape.element == ELEMENT_BF16;

    TRY(capu_iteration_begin(gpt->context, "sample"));
    TRY(upload(gpt, tokens, NULL));
    TRY(gpt_forward(gpt, false));
    TRY(capu_download(gpt->context, is_rounded ? (void *)rounded : logits, from, GPT_BYTES * item,
                      0));
    for (size_t i = 0; is_rounded && i < GPT_BYTES; i++) {
        logits[i] = element_widen(rounded[i]);
    }
    return capu_iteration_end(gpt->context);
}

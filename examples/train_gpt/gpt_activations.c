/*
 * Activations: one blob for all, made anew for each shape of a batch. It is cut up in two passes
 * over the same list: one that measures, one that splits.
 */
#include "examples/train_gpt/gpt.h"

#include "examples/common/try.h"

#include <stdio.h>
#include <stdlib.h>

/* The first buffer begins here, and the others without gaps: nothing is aligned. */
#define ODD_FLOATS ((size_t)3)

struct carver {
    struct gpt *gpt;
    float *blob; /* NULL: only measure */
    size_t used; /* floats */
    capu_status status;
};

static void carve(struct carver *carver, float **to, size_t count, const char *name,
                  const char *layer, capu_kind kind)
{
    capu_context *context = carver->gpt->context;
    char full[64];

    if (carver->status != CAPU_OK) {
        return;
    }
    carver->used = gpt_align(carver->used, carver->gpt->shape.align);
    if (carver->blob != NULL) {
        *to = carver->blob + carver->used;
        snprintf(full, sizeof(full), "%s%s", name, layer);
        carver->status = capu_split(context, *to, count * sizeof(float));
        if (carver->status == CAPU_OK) {
            carver->status = CAPU_DESCRIBE(context, *to, .name = full, .kind = kind);
        }
    }
    if (__builtin_add_overflow(carver->used, count, &carver->used) ||
        carver->used > SIZE_MAX / sizeof(float)) {
        carver->status = CAPU_TOO_LARGE;
    }
}

static void carve_layer(struct carver *carver, uint32_t index)
{
    const struct gpt *gpt = carver->gpt;
    struct gpt_layer *layer = &gpt->layers[index];
    size_t rows = (size_t)gpt->batch * gpt->length;
    size_t items = rows * gpt->shape.channels;
    size_t square = rows * gpt->shape.heads * gpt->length;
    char suffix[16];

    snprintf(suffix, sizeof(suffix), ".%u", index);
    carve(carver, &layer->norm1, items, "norm1", suffix, CAPU_ACTIVATION);
    carve(carver, &layer->norm1_mean, rows, "norm1.mean", suffix, CAPU_ACTIVATION);
    carve(carver, &layer->norm1_rstd, rows, "norm1.rstd", suffix, CAPU_ACTIVATION);
    carve(carver, &layer->parts, 3 * items, "parts", suffix, CAPU_ACTIVATION);
    carve(carver, &layer->weights, square, "weights", suffix, CAPU_ACTIVATION);
    carve(carver, &layer->attended, items, "attended", suffix, CAPU_ACTIVATION);
    carve(carver, &layer->residual1, items, "residual1", suffix, CAPU_ACTIVATION);
    carve(carver, &layer->norm2, items, "norm2", suffix, CAPU_ACTIVATION);
    carve(carver, &layer->norm2_mean, rows, "norm2.mean", suffix, CAPU_ACTIVATION);
    carve(carver, &layer->norm2_rstd, rows, "norm2.rstd", suffix, CAPU_ACTIVATION);
    carve(carver, &layer->hidden, 4 * items, "hidden", suffix, CAPU_ACTIVATION);
    carve(carver, &layer->activated, 4 * items, "activated", suffix, CAPU_ACTIVATION);
    carve(carver, &layer->residual2, items, "residual2", suffix, CAPU_ACTIVATION);
}

static void carve_shared(struct carver *carver)
{
    const struct gpt *gpt = carver->gpt;
    struct gpt_shared *shared = &carver->gpt->shared;
    size_t rows = (size_t)gpt->batch * gpt->length;
    size_t items = rows * gpt->shape.channels;
    size_t square = rows * gpt->shape.heads * gpt->length;
    size_t logits = rows * GPT_VOCABULARY;

    carve(carver, &shared->embedded, items, "embedded", "", CAPU_ACTIVATION);
    carve(carver, &shared->qkv, 3 * items, "qkv", "", CAPU_ACTIVATION);
    carve(carver, &shared->scores, square, "scores", "", CAPU_ACTIVATION);
    carve(carver, &shared->mixed, items, "mixed", "", CAPU_ACTIVATION);
    carve(carver, &shared->branch, items, "branch", "", CAPU_ACTIVATION);
    carve(carver, &shared->last, items, "last", "", CAPU_ACTIVATION);
    carve(carver, &shared->last_mean, rows, "last.mean", "", CAPU_ACTIVATION);
    carve(carver, &shared->last_rstd, rows, "last.rstd", "", CAPU_ACTIVATION);
    carve(carver, &shared->logits, logits, "logits", "", CAPU_ACTIVATION);
    carve(carver, &shared->probabilities, logits, "probabilities", "", CAPU_ACTIVATION);
    carve(carver, &shared->losses, rows, "losses", "", CAPU_ACTIVATION);
    carve(carver, &shared->mean_loss, 1, "mean_loss", "", CAPU_ACTIVATION);
    carve(carver, &shared->norm, 1, "norm", "", CAPU_ACTIVATION);
    carve(carver, &shared->stream_gradient, items, "stream.gradient", "", CAPU_GRADIENT);
    carve(carver, &shared->parts_gradient, 3 * items, "parts.gradient", "", CAPU_GRADIENT);
    carve(carver, &shared->weights_gradient, square, "weights.gradient", "", CAPU_GRADIENT);
    carve(carver, &shared->hidden_gradient, 4 * items, "hidden.gradient", "", CAPU_GRADIENT);
}

static capu_status carve_all(struct carver *carver)
{
    for (uint32_t i = 0; i < carver->gpt->shape.layers; i++) {
        carve_layer(carver, i);
    }
    carve_shared(carver);
    return carver->status;
}

/* Room for tokens and targets, in tensors of their own: they are inputs. */
static capu_status make_inputs(struct gpt *gpt)
{
    size_t bytes = (size_t)gpt->batch * gpt->length * sizeof(int32_t);
    void *tokens = NULL;
    void *targets = NULL;

    TRY(capu_malloc(gpt->context, bytes, &tokens));
    TRY(CAPU_DESCRIBE(gpt->context, tokens, .name = "input.tokens", .kind = CAPU_INPUT));
    TRY(capu_malloc(gpt->context, bytes, &targets));
    TRY(CAPU_DESCRIBE(gpt->context, targets, .name = "input.targets", .kind = CAPU_INPUT));
    gpt->tokens = tokens;
    gpt->targets = targets;
    return CAPU_OK;
}

capu_status gpt_resize(struct gpt *gpt, uint32_t batch, uint32_t length)
{
    struct carver carver = {.gpt = gpt, .used = ODD_FLOATS};
    void *blob = NULL;

    if (batch == gpt->batch && length == gpt->length) {
        return CAPU_OK;
    }
    if (gpt->layers == NULL) {
        gpt->layers = calloc(gpt->shape.layers, sizeof(*gpt->layers));
        if (gpt->layers == NULL) {
            return CAPU_NO_HOST_MEMORY;
        }
    }
    TRY(capu_free(gpt->context, gpt->activations));
    TRY(capu_free(gpt->context, gpt->tokens));
    TRY(capu_free(gpt->context, gpt->targets));
    /* Freed memory can go when the work on it has ended: wait, or two blobs are held for a while.
     */
    TRY(capu_synchronize(gpt->context));
    gpt->batch = batch;
    gpt->length = length;
    TRY(make_inputs(gpt));
    TRY(carve_all(&carver));
    TRY(capu_malloc(gpt->context, carver.used * sizeof(float), &blob));
    gpt->activations = blob;
    TRY(CAPU_DESCRIBE(gpt->context, blob, .name = "header", .kind = CAPU_ACTIVATION));
    carver = (struct carver){.gpt = gpt, .blob = blob, .used = ODD_FLOATS};
    return carve_all(&carver);
}

void gpt_finish(struct gpt *gpt)
{
    free(gpt->layers);
    gpt->layers = NULL;
}

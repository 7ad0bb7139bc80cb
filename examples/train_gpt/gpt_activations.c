/*
 * Activations: one blob for all of them, allocated anew for each shape of a batch. Two passes over
 * the same list divide it: the first one measures, the second one assigns addresses.
 */
#include "examples/train_gpt/gpt.h"

#include "examples/common/try.h"

#include <stdio.h>
#include <stdlib.h>

/* The first buffer begins at this odd offset and the others follow without gaps, so none is
 * aligned. */
#define ODD_ITEMS ((size_t)3)

struct carver {
    struct gpt *gpt;
    char *blob;  /* NULL: only measure */
    size_t used; /* bytes */
    capu_status status;
};

static struct carver begin(struct gpt *gpt, void *blob)
{
    return (struct carver){
        .gpt = gpt, .blob = blob, .used = ODD_ITEMS * element_bytes(gpt->shape.element)};
}

/* `count` items at the next suitably aligned place. NULL while measuring. */
static void *carve(struct carver *carver, size_t count, size_t item_bytes, const char *name,
                   const char *layer, capu_kind kind)
{
    capu_context *context = carver->gpt->context;
    size_t at = gpt_align((carver->used + item_bytes - 1) / item_bytes, carver->gpt->shape.align);
    void *address = NULL;
    size_t bytes;
    char full[64];

    if (carver->status != CAPU_OK) {
        return NULL;
    }
    if (__builtin_mul_overflow(count, item_bytes, &bytes) ||
        __builtin_add_overflow(at * item_bytes, bytes, &carver->used)) {
        carver->status = CAPU_TOO_LARGE;
        return NULL;
    }
    if (carver->blob != NULL) {
        address = carver->blob + at * item_bytes;
        snprintf(full, sizeof(full), "%s%s", name, layer);
        carver->status = capu_split(context, address, bytes);
        if (carver->status == CAPU_OK) {
            carver->status = CAPU_DESCRIBE(context, address, .name = full, .kind = kind);
        }
    }
    return address;
}

/* Of the model's element type. */
static void *items(struct carver *carver, size_t count, const char *name, const char *layer)
{
    return carve(carver, count, element_bytes(carver->gpt->shape.element), name, layer,
                 CAPU_ACTIVATION);
}

static void *gradients(struct carver *carver, size_t count, const char *name)
{
    return carve(carver, count, element_bytes(carver->gpt->shape.element), name, "", CAPU_GRADIENT);
}

/* Statistics and losses. */
static float *floats(struct carver *carver, size_t count, const char *name, const char *layer)
{
    return carve(carver, count, sizeof(float), name, layer, CAPU_ACTIVATION);
}

static void carve_layer(struct carver *carver, uint32_t index)
{
    const struct gpt *gpt = carver->gpt;
    struct gpt_layer *layer = &gpt->layers[index];
    size_t rows = (size_t)gpt->batch * gpt->length;
    size_t stream = rows * gpt->shape.channels;
    size_t square = rows * gpt->shape.heads * gpt->length;
    char suffix[16];

    snprintf(suffix, sizeof(suffix), ".%u", index);
    layer->norm1 = items(carver, stream, "norm1", suffix);
    layer->norm1_mean = floats(carver, rows, "norm1.mean", suffix);
    layer->norm1_rstd = floats(carver, rows, "norm1.rstd", suffix);
    layer->parts = items(carver, 3 * stream, "parts", suffix);
    if (gpt->shape.is_fused) {
        layer->log_sums = floats(carver, rows * gpt->shape.heads, "log_sums", suffix);
    } else {
        layer->weights = items(carver, square, "weights", suffix);
    }
    layer->attended = items(carver, stream, "attended", suffix);
    layer->residual1 = items(carver, stream, "residual1", suffix);
    layer->norm2 = items(carver, stream, "norm2", suffix);
    layer->norm2_mean = floats(carver, rows, "norm2.mean", suffix);
    layer->norm2_rstd = floats(carver, rows, "norm2.rstd", suffix);
    layer->hidden = items(carver, 4 * stream, "hidden", suffix);
    layer->activated = items(carver, 4 * stream, "activated", suffix);
    layer->residual2 = items(carver, stream, "residual2", suffix);
}

static void carve_shared(struct carver *carver)
{
    const struct gpt *gpt = carver->gpt;
    struct gpt_shared *shared = &carver->gpt->shared;
    size_t rows = (size_t)gpt->batch * gpt->length;
    size_t stream = rows * gpt->shape.channels;
    size_t square = rows * gpt->shape.heads * gpt->length;
    size_t logits = rows * gpt->shape.vocabulary;

    shared->embedded = items(carver, stream, "embedded", "");
    shared->qkv = items(carver, 3 * stream, "qkv", "");
    if (!gpt->shape.is_fused) {
        shared->scores = items(carver, square, "scores", "");
        shared->mixed = items(carver, stream, "mixed", "");
    }
    shared->branch = items(carver, stream, "branch", "");
    shared->last = items(carver, stream, "last", "");
    shared->last_mean = floats(carver, rows, "last.mean", "");
    shared->last_rstd = floats(carver, rows, "last.rstd", "");
    shared->logits = items(carver, logits, "logits", "");
    shared->probabilities = items(carver, logits, "probabilities", "");
    shared->losses = floats(carver, rows, "losses", "");
    shared->mean_loss = floats(carver, 1, "mean_loss", "");
    shared->norm = floats(carver, 1, "norm", "");
    shared->stream_gradient = gradients(carver, stream, "stream.gradient");
    if (gpt->shape.is_fused) {
        shared->products = floats(carver, rows * gpt->shape.heads, "products", "");
    } else {
        shared->parts_gradient = gradients(carver, 3 * stream, "parts.gradient");
        shared->weights_gradient = gradients(carver, square, "weights.gradient");
    }
    shared->hidden_gradient = gradients(carver, 4 * stream, "hidden.gradient");
}

static capu_status carve_all(struct carver *carver)
{
    for (uint32_t i = 0; i < carver->gpt->shape.layers; i++) {
        carve_layer(carver, i);
    }
    carve_shared(carver);
    return carver->status;
}

/* Tokens and targets are inputs, and tensors of their own. */
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
    struct carver carver = begin(gpt, NULL);
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
    /* Memory is released when the work on it has completed: wait, or two blobs exist for a while.
     */
    TRY(capu_synchronize(gpt->context));
    gpt->batch = batch;
    gpt->length = length;
    TRY(make_inputs(gpt));
    TRY(carve_all(&carver));
    TRY(capu_malloc(gpt->context, carver.used, &blob));
    gpt->activations = blob;
    TRY(CAPU_DESCRIBE(gpt->context, blob, .name = "header", .kind = CAPU_ACTIVATION));
    carver = begin(gpt, blob);
    return carve_all(&carver);
}

void gpt_finish(struct gpt *gpt)
{
    free(gpt->layers);
    gpt->layers = NULL;
}

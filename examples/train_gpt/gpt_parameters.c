/*
 * Parameters: a blob each for values, gradients and moments, and for masters if the values are
 * bf16. All have the same layout, which begins at an odd offset and has no gaps. A small parameter
 * is one tensor for all layers; a large one is a tensor per layer.
 */
#include "examples/train_gpt/gpt.h"

#include "examples/common/try.h"

#include "kernels/adamw.h"
#include "kernels/gradient_norm.h"
#include "kernels/initialise.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Nothing is aligned, as in a file that begins with a header. */
#define ODD_ITEMS ((size_t)7)

#define BETA1 0.9f
#define BETA2 0.95f
#define EPSILON 1e-8f
#define DECAY 0.1f
#define NORM_LIMIT 1.0f

enum size_kind { SIZE_CHANNELS, SIZE_SQUARE, SIZE_TOKENS, SIZE_POSITIONS };
enum start { START_ZERO, START_ONE, START_NORMAL, START_NARROW };

static const struct {
    const char *name;
    bool is_per_layer;
    bool is_split; /* a tensor per layer */
    enum size_kind size;
    size_t times; /* that size */
    enum start start;
} parameters[GPT_PARAMETERS] = {
    [GPT_NORM1_SCALE] = {"norm1.scale", true, false, SIZE_CHANNELS, 1, START_ONE},
    [GPT_NORM1_SHIFT] = {"norm1.shift", true, false, SIZE_CHANNELS, 1, START_ZERO},
    [GPT_QKV_BIAS] = {"qkv.bias", true, false, SIZE_CHANNELS, 3, START_ZERO},
    [GPT_ATTENTION_BIAS] = {"attention.bias", true, false, SIZE_CHANNELS, 1, START_ZERO},
    [GPT_NORM2_SCALE] = {"norm2.scale", true, false, SIZE_CHANNELS, 1, START_ONE},
    [GPT_NORM2_SHIFT] = {"norm2.shift", true, false, SIZE_CHANNELS, 1, START_ZERO},
    [GPT_HIDDEN_BIAS] = {"hidden.bias", true, false, SIZE_CHANNELS, 4, START_ZERO},
    [GPT_OUT_BIAS] = {"out.bias", true, false, SIZE_CHANNELS, 1, START_ZERO},
    [GPT_LAST_SCALE] = {"last.scale", false, false, SIZE_CHANNELS, 1, START_ONE},
    [GPT_LAST_SHIFT] = {"last.shift", false, false, SIZE_CHANNELS, 1, START_ZERO},
    [GPT_TOKENS] = {"tokens", false, true, SIZE_TOKENS, 1, START_NORMAL},
    [GPT_POSITIONS] = {"positions", false, true, SIZE_POSITIONS, 1, START_NORMAL},
    [GPT_QKV_WEIGHT] = {"qkv.weight", true, true, SIZE_SQUARE, 3, START_NORMAL},
    [GPT_ATTENTION_WEIGHT] = {"attention.weight", true, true, SIZE_SQUARE, 1, START_NARROW},
    [GPT_HIDDEN_WEIGHT] = {"hidden.weight", true, true, SIZE_SQUARE, 4, START_NORMAL},
    [GPT_OUT_WEIGHT] = {"out.weight", true, true, SIZE_SQUARE, 4, START_NARROW},
};

static const struct {
    const char *suffix;
    capu_kind kind;
} blobs[GPT_BLOBS] = {
    [GPT_VALUE] = {"", CAPU_PARAMETER},
    [GPT_GRADIENT] = {".gradient", CAPU_GRADIENT},
    [GPT_FIRST_MOMENT] = {".moment1", CAPU_OPTIMIZER},
    [GPT_SECOND_MOMENT] = {".moment2", CAPU_OPTIMIZER},
    [GPT_MASTER] = {".master", CAPU_OPTIMIZER},
    [GPT_REPLICA] = {".replica", CAPU_GRADIENT},
};

uint32_t gpt_layers_of(const struct gpt *gpt, enum gpt_parameter parameter)
{
    return parameters[parameter].is_per_layer ? gpt->shape.layers : 1;
}

bool gpt_is_split(enum gpt_parameter parameter)
{
    return parameters[parameter].is_split;
}

static uint32_t layers_of(const struct gpt *gpt, size_t parameter)
{
    return gpt_layers_of(gpt, (enum gpt_parameter)parameter);
}

static size_t unit(const struct gpt_shape *shape, enum size_kind size)
{
    size_t channels = shape->channels;

    switch (size) {
    case SIZE_CHANNELS:
        return channels;
    case SIZE_SQUARE:
        return channels * channels;
    case SIZE_TOKENS:
        return shape->vocabulary * channels;
    case SIZE_POSITIONS:
        return shape->length * channels;
    }
    return 0;
}

/* With the sizes that the options allow, products stay far below 2^60; sums are checked. */
static capu_status lay_out(struct gpt *gpt)
{
    struct gpt_layout *layout = &gpt->layout;
    size_t end = gpt_align(ODD_ITEMS, gpt->shape.align);
    size_t bytes;

    layout->begin = end;
    for (size_t i = 0; i < GPT_PARAMETERS; i++) {
        layout->offset[i] = end;
        layout->count[i] = parameters[i].times * unit(&gpt->shape, parameters[i].size);
        if (__builtin_add_overflow(end, layout->count[i] * layers_of(gpt, i), &end)) {
            return CAPU_TOO_LARGE;
        }
        end = gpt_align(end, gpt->shape.align);
    }
    layout->end = end;
    return __builtin_mul_overflow(end, sizeof(float), &bytes) ? CAPU_TOO_LARGE : CAPU_OK;
}

static bool has_masters(const struct gpt *gpt)
{
    return gpt->shape.element == ELEMENT_BF16;
}

/* What the optimizer updates. */
static enum gpt_blob learnt(const struct gpt *gpt)
{
    return has_masters(gpt) ? GPT_MASTER : GPT_VALUE;
}

static size_t item_bytes(const struct gpt *gpt, enum gpt_blob blob)
{
    return blob == GPT_VALUE ? element_bytes(gpt->shape.element) : sizeof(float);
}

static void *item_at(const struct gpt *gpt, enum gpt_blob blob, size_t index)
{
    return (char *)gpt->blob[blob] + index * item_bytes(gpt, blob);
}

void *gpt_parameter_at(const struct gpt *gpt, enum gpt_blob blob, enum gpt_parameter parameter,
                       uint32_t layer)
{
    return item_at(gpt, blob, gpt->layout.offset[parameter] + layer * gpt->layout.count[parameter]);
}

size_t gpt_parameter_count(const struct gpt *gpt)
{
    size_t count = 0;

    for (size_t i = 0; i < GPT_PARAMETERS; i++) {
        count += gpt->layout.count[i] * layers_of(gpt, i);
    }
    return count;
}

static capu_status split(struct gpt *gpt, enum gpt_blob blob, size_t parameter, uint32_t layer)
{
    void *address = gpt_parameter_at(gpt, blob, (enum gpt_parameter)parameter, layer);
    size_t count = gpt->layout.count[parameter];
    char name[64];

    if (parameters[parameter].is_split && parameters[parameter].is_per_layer) {
        snprintf(name, sizeof(name), "%s.%u%s", parameters[parameter].name, layer,
                 blobs[blob].suffix);
    } else {
        count *= layers_of(gpt, parameter);
        snprintf(name, sizeof(name), "%s%s", parameters[parameter].name, blobs[blob].suffix);
    }
    TRY(capu_split(gpt->context, address, count * item_bytes(gpt, blob)));
    return CAPU_DESCRIBE(gpt->context, address, .name = name, .kind = blobs[blob].kind);
}

capu_status gpt_make_blob(struct gpt *gpt, enum gpt_blob blob)
{
    void *address = NULL;

    TRY(capu_malloc(gpt->context, gpt->layout.end * item_bytes(gpt, blob), &address));
    gpt->blob[blob] = address;
    TRY(CAPU_DESCRIBE(gpt->context, address, .name = "header", .kind = blobs[blob].kind));
    for (size_t i = 0; i < GPT_PARAMETERS; i++) {
        uint32_t tensors = parameters[i].is_split ? layers_of(gpt, i) : 1;

        for (uint32_t layer = 0; layer < tensors; layer++) {
            TRY(split(gpt, blob, i, layer));
        }
    }
    return CAPU_OK;
}

/*
 * As in GPT-2, the weights of branches that add to the stream start the smaller, the more branches
 * there are. A master and its working weight start with the same values, the latter rounded.
 */
static capu_status start(struct gpt *gpt, size_t parameter, uint32_t layer, uint64_t seed)
{
    struct initialise arguments = {
        .output = gpt_parameter_at(gpt, GPT_VALUE, (enum gpt_parameter)parameter, layer),
        .count = gpt->layout.count[parameter],
        .seed = seed,
        .counter = (uint64_t)layer * GPT_PARAMETERS + parameter,
        .element = gpt->shape.element,
    };

    switch (parameters[parameter].start) {
    case START_ZERO:
        arguments.kind = INITIALISE_CONSTANT;
        break;
    case START_ONE:
        arguments.kind = INITIALISE_CONSTANT;
        arguments.a = 1.0f;
        break;
    case START_NORMAL:
        arguments.kind = INITIALISE_NORMAL;
        arguments.b = 0.02f;
        break;
    case START_NARROW:
        arguments.kind = INITIALISE_NORMAL;
        arguments.b = 0.02f / sqrtf(2.0f * (float)gpt->shape.layers);
        break;
    }
    TRY(initialise(gpt->context, &arguments));
    if (has_masters(gpt)) {
        arguments.element = ELEMENT_FP32;
        arguments.output = gpt_parameter_at(gpt, GPT_MASTER, (enum gpt_parameter)parameter, layer);
        TRY(initialise(gpt->context, &arguments));
    }
    return CAPU_OK;
}

static capu_status clear(struct gpt *gpt, enum gpt_blob blob)
{
    return capu_zero(gpt->context, item_at(gpt, blob, gpt->layout.begin),
                     (gpt->layout.end - gpt->layout.begin) * item_bytes(gpt, blob));
}

/*
 * A small parameter is one tensor for all layers, so writing one layer's part updates it and needs
 * contents before. Zeros that the library knows of count as contents and cost nothing.
 */
static capu_status start_all(struct gpt *gpt, uint64_t seed)
{
    TRY(clear(gpt, GPT_VALUE));
    TRY(clear(gpt, GPT_FIRST_MOMENT));
    TRY(clear(gpt, GPT_SECOND_MOMENT));
    if (has_masters(gpt)) {
        TRY(clear(gpt, GPT_MASTER));
    }
    for (size_t i = 0; i < GPT_PARAMETERS; i++) {
        for (uint32_t layer = 0; layer < layers_of(gpt, i); layer++) {
            TRY(start(gpt, i, layer, seed));
        }
    }
    return CAPU_OK;
}

capu_status gpt_init(struct gpt *gpt, capu_context *context, const struct gpt_shape *shape,
                     uint64_t seed)
{
    *gpt = (struct gpt){
        .context = context,
        .shape = *shape,
        .replicas = {.count = 1, .end = 1},
        .gradient = GPT_GRADIENT,
    };
    TRY(lay_out(gpt));
    for (size_t blob = 0; blob < GPT_REPLICA; blob++) {
        if (blob != GPT_MASTER || has_masters(gpt)) {
            TRY(gpt_make_blob(gpt, (enum gpt_blob)blob));
        }
    }
    return start_all(gpt, seed);
}

static capu_status update(struct gpt *gpt, const struct gpt_step *step, size_t offset, size_t count,
                          float gradient_scale)
{
    return adamw_update(gpt->context,
                        &(struct adamw){
                            .parameter = item_at(gpt, learnt(gpt), offset),
                            .first_moment = item_at(gpt, GPT_FIRST_MOMENT, offset),
                            .second_moment = item_at(gpt, GPT_SECOND_MOMENT, offset),
                            .gradient = item_at(gpt, GPT_GRADIENT, offset),
                            .count = count,
                            .rate = step->rate,
                            .beta1 = BETA1,
                            .beta2 = BETA2,
                            .epsilon = EPSILON,
                            .decay = DECAY,
                            .gradient_scale = gradient_scale,
                            .step = step->step,
                            .working = has_masters(gpt) ? item_at(gpt, GPT_VALUE, offset) : NULL,
                        });
}

capu_status gpt_update(struct gpt *gpt, const struct gpt_step *step)
{
    size_t count = gpt->layout.end - gpt->layout.begin;
    float norm = 0.0f;

    TRY(gradient_norm(gpt->context, &(struct gradient_norm){
                                        .gradient = item_at(gpt, GPT_GRADIENT, gpt->layout.begin),
                                        .count = count,
                                        .norm = gpt->shared.norm,
                                    }));
    TRY(capu_download(gpt->context, &norm, gpt->shared.norm, sizeof(norm), 0));
    return update(gpt, step, gpt->layout.begin, count,
                  norm > NORM_LIMIT ? NORM_LIMIT / norm : 1.0f);
}

capu_status gpt_update_one(struct gpt *gpt, const struct gpt_step *step,
                           enum gpt_parameter parameter, uint32_t layer)
{
    size_t count = gpt->layout.count[parameter];

    return update(gpt, step, gpt->layout.offset[parameter] + layer * count, count, 1.0f);
}

size_t gpt_weights(const struct gpt *gpt, struct weight *weights)
{
    size_t count = 0;

    for (size_t i = 0; i < GPT_PARAMETERS; i++) {
        for (uint32_t layer = 0; layer < layers_of(gpt, i); layer++, count++) {
            if (weights != NULL) {
                weights[count].name = parameters[i].name;
                weights[count].address =
                    gpt_parameter_at(gpt, learnt(gpt), (enum gpt_parameter)i, layer);
                weights[count].bytes = gpt->layout.count[i] * sizeof(float);
            }
        }
    }
    return count;
}

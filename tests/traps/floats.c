/* Tensors of floats, see floats.h. */
#include "tests/traps/floats.h"

#include "tests/support/suite.h"

capu_status floats_scale(capu_stream stream, const void *arguments)
{
    const struct floats_scaling *scaling = arguments;

    (void)stream;
    for (size_t i = 0; i < scaling->count; i++) {
        float value = scaling->offset;

        value += scaling->from != NULL ? scaling->scale * scaling->from[i] : 0.0f;
        scaling->to[i] = scaling->adds ? scaling->to[i] + value : value;
    }
    return CAPU_OK;
}

float *floats_make(struct rig *rig, const char *name, capu_kind kind, size_t floats)
{
    void *address = NULL;

    RIG_OK(rig, capu_malloc(rig->context, floats * sizeof(float), &address));
    RIG_OK(rig, CAPU_DESCRIBE(rig->context, address, .name = name, .kind = kind));
    return address;
}

void floats_set(struct rig *rig, float *tensor, size_t floats, float value)
{
    struct floats_scaling set = {.to = tensor, .count = floats, .offset = value};

    RIG_OK(rig, CAPU_RUN(rig->context, floats_scale, &set, capu_writes(tensor)));
}

void floats_expect(struct rig *rig, const float *tensor, size_t floats, float value)
{
    static float bytes[FLOATS_MOST];

    ck_assert_uint_le(floats, FLOATS_MOST);
    RIG_OK(rig, capu_download(rig->context, bytes, tensor, floats * sizeof(float), 0));
    for (size_t i = 0; i < floats; i++) {
        ck_assert_msg(bytes[i] == value, "float %zu is %g, not %g", i, (double)bytes[i],
                      (double)value);
    }
}

float floats_first(struct rig *rig, const float *tensor)
{
    float value = 0.0f;

    RIG_OK(rig, capu_download(rig->context, &value, tensor, sizeof(value), 0));
    return value;
}

void floats_press(struct rig *rig, float *const *others, size_t count)
{
    if (rig->context->settings.config.mode == CAPU_MODE_OFF) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        floats_set(rig, others[i], FLOATS, (float)i);
    }
}

void floats_make_others(struct rig *rig, float **others)
{
    for (size_t i = 0; i < FLOATS_OTHERS; i++) {
        others[i] = floats_make(rig, "other", CAPU_WORKSPACE, FLOATS);
    }
}

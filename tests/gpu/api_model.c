/* The training program of api_model.h. */
#include "tests/gpu/api_model.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

capu_context *context;

static uint64_t budget_pages;

enum { STRIPE = 64 }; /* bytes on either side of a middle */

void open_context(capu_mode mode, uint64_t pages, const char *planner)
{
    capu_config config = CAPU_CONFIG_INIT;
    char text[512] = "";
    capu_status status;

    config.device = "cuda";
    config.mode = (uint32_t)mode;
    config.budget_bytes = pages * API_PAGE;
    config.page_bytes = API_PAGE;
    (void)capu_config_set(&config, "planner", planner);
    (void)capu_config_set(&config, "effort", "quick");
    config.wait_for_plan = 1;
    config.error = text;
    config.error_bytes = sizeof(text);
    budget_pages = pages;
    status = capu_context_create(&config, &context);
    ck_assert_msg(status == CAPU_OK, "context: %s: %s", capu_status_name(status), text);
    ck_assert_str_eq(capu_context_device(context), "cuda");
}

void close_context(void)
{
    uint64_t peak = 0;

    OK(capu_synchronize(context));
    capu_memory_usage(context, NULL, &peak, NULL);
    ck_assert_uint_le(peak, budget_pages * API_PAGE);
    capu_context_destroy(context);
    context = NULL;
}

/* Bytes that repeat nowhere, and differ for each `seed`. */
void make_bytes(unsigned char *bytes, size_t count, uint64_t seed)
{
    uint64_t state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;

    for (size_t i = 0; i < count; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        bytes[i] = (unsigned char)(state >> 56);
    }
}

void tensor_upload(struct tensor *tensor, uint64_t seed)
{
    make_bytes(tensor->mirror, tensor->bytes, seed);
    OK(capu_upload(context, tensor->device, tensor->mirror, tensor->bytes, 0));
}

struct tensor tensor_make(size_t bytes, const char *name, capu_kind kind)
{
    struct tensor tensor = {NULL, malloc(bytes), bytes};
    void *address = NULL;

    ck_assert_ptr_nonnull(tensor.mirror);
    OK(capu_malloc(context, bytes, &address));
    ck_assert_uint_eq((uintptr_t)address % 256, 0);
    tensor.device = address;
    OK(CAPU_DESCRIBE(context, address, .name = name, .kind = (uint32_t)kind));
    return tensor;
}

void tensor_drop(struct tensor *tensor)
{
    OK(capu_free(context, tensor->device));
    free(tensor->mirror);
}

void tensor_expect(const struct tensor *tensor, const char *what)
{
    unsigned char *got = malloc(tensor->bytes);

    ck_assert_ptr_nonnull(got);
    OK(capu_download(context, got, tensor->device, tensor->bytes, 0));
    if (memcmp(got, tensor->mirror, tensor->bytes) != 0) {
        size_t first = 0;

        while (got[first] == tensor->mirror[first]) {
            first++;
        }
        ck_abort_msg("%s: byte %zu of %zu is %u, not %u", what, first, tensor->bytes, got[first],
                     tensor->mirror[first]);
    }
    free(got);
}

/* ------------------------------------------------------------------------------------------ ops */

struct fill {
    unsigned char *to;
    size_t bytes;
    unsigned char value;
};

static capu_status fill_run(capu_stream stream, const void *arguments)
{
    const struct fill *fill = arguments;

    return cudaMemsetAsync(fill->to, fill->value, fill->bytes, stream) == cudaSuccess
               ? CAPU_OK
               : CAPU_DEVICE_FAILED;
}

void tensor_fill(struct tensor *tensor, unsigned char value)
{
    const struct fill fill = {tensor->device, tensor->bytes, value};

    OK(CAPU_RUN(context, fill_run, &fill, capu_writes(tensor->device)));
    memset(tensor->mirror, value, tensor->bytes);
}

/* What both kinds of copying ops need. */
struct mix {
    unsigned char *to;
    const unsigned char *a;
    const unsigned char *b;
    size_t bytes;
    unsigned char value;
};

static bool copy(unsigned char *to, const unsigned char *from, size_t bytes, capu_stream stream)
{
    return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream) == cudaSuccess;
}

/* The end of a, then the beginning of b, with a stripe in the middle. */
static capu_status weave_run(capu_stream stream, const void *arguments)
{
    const struct mix *mix = arguments;
    size_t half = mix->bytes / 2;

    return copy(mix->to, mix->a + half, half, stream) &&
                   copy(mix->to + half, mix->b, half, stream) &&
                   cudaMemsetAsync(mix->to + half - STRIPE, mix->value, STRIPE + STRIPE, stream) ==
                       cudaSuccess
               ? CAPU_OK
               : CAPU_DEVICE_FAILED;
}

static void weave(struct tensor *to, const struct tensor *a, const struct tensor *b,
                  unsigned char value, bool on_mirror_only)
{
    const struct mix mix = {to->device, a->device, b->device, to->bytes, value};
    size_t half = to->bytes / 2;

    if (!on_mirror_only) {
        OK(CAPU_RUN(context, weave_run, &mix, capu_operand_of(mix.a, mix.bytes, CAPU_READ),
                    capu_operand_of(mix.b, mix.bytes, CAPU_READ), capu_writes(mix.to)));
    }
    memcpy(to->mirror, a->mirror + half, half);
    memcpy(to->mirror + half, b->mirror, half);
    memset(to->mirror + half - STRIPE, value, STRIPE + STRIPE);
}

/* Updates: its first quarter moves on, that of `a` comes in its place, with a stripe at the end. */
static capu_status stir_run(capu_stream stream, const void *arguments)
{
    const struct mix *mix = arguments;
    size_t quarter = mix->bytes / 4;

    return copy(mix->to + 2 * quarter, mix->to + quarter, quarter, stream) &&
                   copy(mix->to + quarter, mix->to, quarter, stream) &&
                   copy(mix->to, mix->a, quarter, stream) &&
                   cudaMemsetAsync(mix->to + mix->bytes - STRIPE, mix->value, STRIPE, stream) ==
                       cudaSuccess
               ? CAPU_OK
               : CAPU_DEVICE_FAILED;
}

static void stir(struct tensor *to, const struct tensor *from, unsigned char value,
                 bool on_mirror_only)
{
    const struct mix mix = {to->device, from->device, NULL, to->bytes, value};
    size_t quarter = to->bytes / 4;

    if (!on_mirror_only) {
        OK(CAPU_RUN(context, stir_run, &mix, capu_updates(mix.to), capu_reads(mix.a)));
    }
    memcpy(to->mirror + 2 * quarter, to->mirror + quarter, quarter);
    memcpy(to->mirror + quarter, to->mirror, quarter);
    memcpy(to->mirror, from->mirror, quarter);
    memset(to->mirror + to->bytes - STRIPE, value, STRIPE);
}

/* --------------------------------------------------------------------------- a training program */

void model_make(struct model *model)
{
    for (size_t i = 0; i < LAYERS; i++) {
        model->weights[i] = tensor_make(LAYER_BYTES, "weights", CAPU_PARAMETER);
        tensor_upload(&model->weights[i], i + 1);
    }
    for (size_t i = 0; i <= LAYERS; i++) {
        model->layers[i] = tensor_make(LAYER_BYTES, i == 0 ? "input" : "layer",
                                       i == 0 ? CAPU_INPUT : CAPU_ACTIVATION);
    }
    for (size_t i = 0; i < 2; i++) {
        model->gradients[i] = tensor_make(LAYER_BYTES, "gradient", CAPU_GRADIENT);
    }
    model->loss = tensor_make(SMALL, "loss", CAPU_PARAMETER);
}

void model_drop(struct model *model)
{
    for (size_t i = 0; i < LAYERS; i++) {
        tensor_drop(&model->weights[i]);
    }
    for (size_t i = 0; i <= LAYERS; i++) {
        tensor_drop(&model->layers[i]);
    }
    tensor_drop(&model->gradients[0]);
    tensor_drop(&model->gradients[1]);
    tensor_drop(&model->loss);
}

void model_forward(struct model *model, unsigned char value, bool on_mirror_only)
{
    for (size_t i = 0; i < LAYERS; i++) {
        weave(&model->layers[i + 1], &model->layers[i], &model->weights[i], value, on_mirror_only);
    }
}

void model_backward(struct model *model, unsigned char value, bool on_mirror_only)
{
    struct tensor *gradients = model->gradients;

    weave(&gradients[LAYERS % 2], &model->layers[LAYERS], &model->weights[0], value,
          on_mirror_only);
    for (size_t i = LAYERS; i-- > 0;) {
        weave(&gradients[i % 2], &gradients[(i + 1) % 2], &model->layers[i], value, on_mirror_only);
        stir(&model->weights[i], &gradients[i % 2], value, on_mirror_only);
    }
    weave(&model->loss, &gradients[0], &model->weights[0], value, on_mirror_only);
}

void model_work(struct model *model, unsigned char value)
{
    tensor_upload(&model->layers[0], value);
    model_forward(model, value, false);
    model_backward(model, value, false);
}

void model_iterate(struct model *model, unsigned char value)
{
    OK(capu_iteration_begin(context, "train"));
    model_work(model, value);
    OK(capu_iteration_end(context));
}

void model_expect(const struct model *model, const char *what)
{
    tensor_expect(&model->loss, what);
    for (size_t i = 0; i < LAYERS; i++) {
        tensor_expect(&model->weights[i], what);
    }
}

capu_report last_report(void)
{
    capu_report report = CAPU_REPORT_INIT;

    OK(capu_synchronize(context));
    OK(capu_report_get(context, &report));
    return report;
}

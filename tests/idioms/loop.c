/* A small training loop, see loop.h. */
#include "tests/api/loop.h"

/* The work of an op: *to = [5 * its old contents] + 3 * first + 7 * second + by + index. */
struct mix {
    uint64_t *to;
    const uint64_t *from[2]; /* NULL: none */
    size_t words;
    size_t from_words[2];
    uint64_t by;
    bool adds;
};

static void mix(const struct mix *it)
{
    for (size_t i = 0; i < it->words; i++) {
        uint64_t sum = it->by + i;

        sum += it->adds ? 5 * it->to[i] : 0;
        sum += it->from[0] != NULL ? 3 * it->from[0][i % it->from_words[0]] : 0;
        sum += it->from[1] != NULL ? 7 * it->from[1][i % it->from_words[1]] : 0;
        it->to[i] = sum;
    }
}

static capu_status run_mix(capu_stream stream, const void *arguments)
{
    (void)stream;
    mix(arguments);
    return CAPU_OK;
}

struct buffer *loop_make(struct loop *loop, const char *name, capu_kind kind,
                         capu_lifetime lifetime, size_t bytes)
{
    struct buffer *buffer = &loop->buffers[loop->buffer_count++];
    void *address = NULL;

    ck_assert_uint_le(loop->buffer_count, LOOP_BUFFERS);
    LOOP_OK(loop, capu_malloc(loop->rig.context, bytes, &address));
    LOOP_OK(loop, CAPU_DESCRIBE(loop->rig.context, address, .name = name, .kind = (uint32_t)kind,
                                .lifetime = (uint32_t)lifetime));
    *buffer = (struct buffer){.address = address, .bytes = bytes};
    buffer->expected = calloc(1, bytes);
    ck_assert_ptr_nonnull(buffer->expected);
    buffer->outlives =
        lifetime == CAPU_PERSISTENT ||
        (lifetime == CAPU_LIFETIME_DEFAULT &&
         (kind == CAPU_PARAMETER || kind == CAPU_OPTIMIZER || kind == CAPU_KIND_UNKNOWN));
    return buffer;
}

void loop_drop(struct loop *loop, struct buffer *newest)
{
    ck_assert_ptr_eq(newest, &loop->buffers[loop->buffer_count - 1]);
    LOOP_OK(loop, capu_free(loop->rig.context, newest->address));
    free(newest->expected);
    loop->buffer_count--;
}

void loop_apply(struct loop *loop, const char *name, capu_role role, struct buffer *to,
                const struct buffer *first, const struct buffer *second, uint64_t by)
{
    const struct buffer *from[2] = {first, second};
    capu_operand operands[3] = {capu_operand_of(to->address, 0, role)};
    struct mix it = {.words = to->bytes / sizeof(uint64_t), .by = by, .adds = role == CAPU_UPDATE};
    struct mix mirror;
    capu_op op = {.size = sizeof(op),
                  .name = name,
                  .run = run_mix,
                  .argument_bytes = sizeof(it),
                  .operands = operands,
                  .operand_count = 1};

    if (role == CAPU_WRITE_CLEARED) {
        it.words /= 2;
        memset(to->expected, 0, to->bytes);
    }
    mirror = it;
    it.to = (uint64_t *)(void *)to->address;
    mirror.to = to->expected;
    for (size_t i = 0; i < 2; i++) {
        if (from[i] != NULL) {
            it.from[i] = (const uint64_t *)(const void *)from[i]->address;
            mirror.from[i] = from[i]->expected;
            it.from_words[i] = mirror.from_words[i] = from[i]->bytes / sizeof(uint64_t);
            operands[op.operand_count++] = capu_reads(from[i]->address);
        }
    }
    op.arguments = &it;
    LOOP_OK(loop, capu_run(loop->rig.context, &op));
    mix(&mirror);
}

void loop_zero(struct loop *loop, struct buffer *buffer)
{
    LOOP_OK(loop, capu_zero(loop->rig.context, buffer->address, 0));
    memset(buffer->expected, 0, buffer->bytes);
}

void loop_copy(struct loop *loop, struct buffer *to, const struct buffer *from)
{
    LOOP_OK(loop, capu_copy(loop->rig.context, to->address, from->address, to->bytes));
    memcpy(to->expected, from->expected, to->bytes);
}

void loop_upload(struct loop *loop, struct buffer *buffer, uint64_t value)
{
    for (size_t i = 0; i < buffer->bytes / sizeof(uint64_t); i++) {
        buffer->expected[i] = value * 11 + i;
    }
    LOOP_OK(loop, capu_upload(loop->rig.context, buffer->address, buffer->expected, buffer->bytes));
}

void loop_check(struct loop *loop, const struct buffer *buffer)
{
    unsigned char *bytes = malloc(buffer->bytes);

    ck_assert_ptr_nonnull(bytes);
    LOOP_OK(loop, capu_download(loop->rig.context, bytes, buffer->address, buffer->bytes));
    ck_assert_msg(memcmp(bytes, buffer->expected, buffer->bytes) == 0,
                  "%s, %s in %u pages, iteration %u: buffer %u is wrong", loop->pattern->name,
                  loop->planner, (unsigned)loop->budget, (unsigned)loop->now,
                  (unsigned)(buffer - loop->buffers));
    free(bytes);
}

void loop_begin(struct loop *loop, const char *phase)
{
    const char *label = loop->pattern->label;

    LOOP_OK(loop, capu_iteration_begin(loop->rig.context,
                                       label != NULL && label[0] == '\0' ? phase : label));
}

void loop_end(struct loop *loop)
{
    capu_report report = CAPU_REPORT_INIT;

    LOOP_OK(loop, capu_iteration_end(loop->rig.context));
    LOOP_OK(loop, capu_synchronize(loop->rig.context));
    LOOP_OK(loop, capu_report_get(loop->rig.context, &report));
    loop->guided += report.mode == CAPU_MODE_GUIDED && report.diverged == 0;
    loop->unplanned += report.plan_error[0] != '\0';
    rig_check(&loop->rig);
}

void loop_forward(struct loop *loop, size_t layers)
{
    loop_apply(loop, "batch", CAPU_WRITE, loop->layers[0], NULL, NULL, loop->now);
    for (size_t i = 0; i < layers; i++) {
        loop_apply(loop, "forward", CAPU_WRITE, loop->layers[i + 1], loop->layers[i],
                   loop->weights[i], loop->now);
    }
}

void loop_backward(struct loop *loop, capu_role role)
{
    loop_apply(loop, "loss", CAPU_WRITE, loop->deltas[0], loop->layers[LOOP_LAYERS], NULL, 1);
    for (size_t i = LOOP_LAYERS; i-- > loop->frozen;) {
        struct buffer *delta = loop->deltas[(LOOP_LAYERS - 1 - i) % 2];

        loop_apply(loop, "gradient", role, loop->sums[i], loop->layers[i], delta, 0);
        if (i > loop->frozen) {
            loop_apply(loop, "backward", CAPU_WRITE, loop->deltas[(LOOP_LAYERS - i) % 2], delta,
                       loop->weights[i], 2);
        }
    }
}

void loop_optimize(struct loop *loop)
{
    for (size_t i = loop->frozen; i < LOOP_LAYERS; i++) {
        loop_apply(loop, "moments", CAPU_UPDATE, loop->moments[i], loop->sums[i], NULL, 3);
        loop_apply(loop, "optimize", CAPU_UPDATE, loop->weights[i], loop->moments[i], loop->rate,
                   0);
    }
}

void loop_train(struct loop *loop)
{
    loop_forward(loop, LOOP_LAYERS);
    loop_backward(loop, CAPU_WRITE);
    loop_optimize(loop);
}

void loop_init(struct loop *loop)
{
    uint32_t flags = loop->pattern->flags;
    capu_lifetime lifetime = (flags & KEEPS_SUMS) != 0 ? CAPU_PERSISTENT : CAPU_LIFETIME_DEFAULT;

    rig_init(&loop->rig, &(struct rig_options){.mode = CAPU_MODE_GUIDED,
                                               .budget_pages = loop->budget,
                                               .wait_for_plan = true,
                                               .planner = loop->planner,
                                               .strict = loop->is_strict,
                                               .clear_fresh = (flags & CLEARS_FRESH) != 0});
    loop->rate = loop_make(loop, "rate", CAPU_PARAMETER, CAPU_LIFETIME_DEFAULT, SMALL_BYTES);
    loop_upload(loop, loop->rate, 1);
    for (size_t i = 0; i < LOOP_LAYERS; i++) {
        loop->weights[i] =
            loop_make(loop, "weights", CAPU_PARAMETER, CAPU_LIFETIME_DEFAULT, PAGES(WEIGHT_PAGES));
        loop_upload(loop, loop->weights[i], i);
        loop->sums[i] = loop_make(loop, "sums", CAPU_GRADIENT, lifetime, PAGES(WEIGHT_PAGES));
        loop->moments[i] =
            loop_make(loop, "moments", CAPU_OPTIMIZER, CAPU_LIFETIME_DEFAULT, PAGES(WEIGHT_PAGES));
        loop_zero(loop, loop->moments[i]);
    }
    for (size_t i = 0; i <= LOOP_LAYERS; i++) {
        loop->layers[i] =
            loop_make(loop, "layer", CAPU_ACTIVATION, CAPU_LIFETIME_DEFAULT, PAGES(LAYER_PAGES));
    }
    for (size_t i = 0; i < 2; i++) {
        loop->deltas[i] =
            loop_make(loop, "delta", CAPU_GRADIENT, CAPU_LIFETIME_DEFAULT, PAGES(LAYER_PAGES));
    }
}

void loop_run(struct loop *loop)
{
    for (size_t round = 0; round < LOOP_ROUNDS; round++) {
        loop->now = round + 1;
        loop->pattern->round(loop, round);
    }
    for (size_t i = 0; i < loop->buffer_count; i++) {
        if (loop->buffers[i].outlives) {
            loop_check(loop, &loop->buffers[i]);
        }
        free(loop->buffers[i].expected);
    }
    rig_finish(&loop->rig);
}

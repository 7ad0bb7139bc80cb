/* A small training loop, see loop.h. */
#include "tests/idioms/loop.h"

#include <check.h>

struct buffer *loop_make(struct loop *loop, const char *name, capu_kind kind, size_t bytes)
{
    return buffers_make(&loop->buffers, name, kind, CAPU_LIFETIME_DEFAULT, bytes);
}

void loop_free(struct loop *loop, struct buffer *buffer)
{
    buffers_free(&loop->buffers, buffer);
}

void loop_zero(struct loop *loop, struct buffer *buffer)
{
    buffers_zero(&loop->buffers, buffer);
}

void loop_copy(struct loop *loop, struct buffer *to, struct buffer *from)
{
    buffers_copy(&loop->buffers, to, from);
}

void loop_upload(struct loop *loop, struct buffer *buffer, uint64_t value)
{
    buffers_upload(&loop->buffers, buffer, value);
}

uint64_t loop_check(struct loop *loop, struct buffer *buffer)
{
    return buffers_check(&loop->buffers, buffer);
}

uint64_t loop_draw(struct loop *loop, uint64_t below)
{
    return mixing_random(&loop->state) % below;
}

void loop_apply(struct loop *loop, const char *name, capu_role role, struct buffer *to,
                struct buffer *first, struct buffer *second, uint64_t by)
{
    struct buffer_use uses[3] = {{to, role}};
    size_t count = 1;

    if (first != NULL) {
        uses[count++] = (struct buffer_use){first, CAPU_READ};
    }
    if (second != NULL) {
        uses[count++] = (struct buffer_use){second, CAPU_READ};
    }
    buffers_run(&loop->buffers, name, by, uses, count);
}

/* Says which run and iteration a message is about. */
static void say_where(struct loop *loop)
{
    static const char *const modes[] = {"", "off", "passive", "guided"};
    const struct loop_setting *setting = &loop->setting;

    snprintf(loop->where, sizeof(loop->where), "%s, %s%s%s%s%s in %u pages, iteration %u",
             loop->idiom->name, modes[setting->mode], setting->waits ? ", waiting" : "",
             setting->is_strict ? ", strict" : "", setting->planner != NULL ? ", " : "",
             setting->planner != NULL ? setting->planner : "", (unsigned)setting->budget_pages,
             (unsigned)loop->now);
}

void loop_begin(struct loop *loop, const char *phase)
{
    const char *label = loop->idiom->label;

    buffers_begin(&loop->buffers, label != NULL && label[0] == '\0' ? phase : label);
}

static void take_report(struct loop *loop)
{
    capu_report report = CAPU_REPORT_INIT;
    capu_status status = capu_report_get(loop->rig.context, &report);

    if (status == CAPU_NOT_READY && !loop->setting.waits) {
        return;
    }
    BUFFERS_OK(&loop->buffers, status);
    loop->guided += report.mode == CAPU_MODE_GUIDED && report.diverged == 0;
    loop->unplanned += report.plan_error[0] != '\0';
    if (loop->live_peak_bytes < report.live_peak_bytes) {
        loop->live_peak_bytes = report.live_peak_bytes;
    }
    if (loop->floor_bytes < report.floor_bytes) {
        loop->floor_bytes = report.floor_bytes;
    }
}

void loop_end(struct loop *loop)
{
    buffers_end(&loop->buffers);
    if (loop->buffers.ended != CAPU_OK) {
        return;
    }
    if (loop->setting.waits) {
        BUFFERS_OK(&loop->buffers, capu_synchronize(loop->rig.context));
    }
    take_report(loop);
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

static void make_network(struct loop *loop)
{
    capu_lifetime lifetime =
        (loop->idiom->flags & KEEPS_SUMS) != 0 ? CAPU_PERSISTENT : CAPU_LIFETIME_DEFAULT;

    loop->rate = loop_make(loop, "rate", CAPU_PARAMETER, SMALL_BYTES);
    loop_upload(loop, loop->rate, 1);
    for (size_t i = 0; i < LOOP_LAYERS; i++) {
        loop->weights[i] = loop_make(loop, "weights", CAPU_PARAMETER, PAGES(WEIGHT_PAGES));
        loop_upload(loop, loop->weights[i], i);
        loop->sums[i] =
            buffers_make(&loop->buffers, "sums", CAPU_GRADIENT, lifetime, PAGES(WEIGHT_PAGES));
        loop->moments[i] = loop_make(loop, "moments", CAPU_OPTIMIZER, PAGES(WEIGHT_PAGES));
        loop_zero(loop, loop->moments[i]);
    }
    for (size_t i = 0; i <= LOOP_LAYERS; i++) {
        loop->layers[i] = loop_make(loop, "layer", CAPU_ACTIVATION, PAGES(LAYER_PAGES));
    }
    for (size_t i = 0; i < 2; i++) {
        loop->deltas[i] = loop_make(loop, "delta", CAPU_GRADIENT, PAGES(LAYER_PAGES));
    }
}

static void start(struct loop *loop, const struct idiom *idiom, const struct loop_setting *setting)
{
    /* With a report file, mode off keeps records, too. */
    const char *report_path = setting->mode == CAPU_MODE_OFF ? "/dev/null" : NULL;

    *loop = (struct loop){.idiom = idiom, .setting = *setting, .state = 1};
    say_where(loop);
    rig_init(&loop->rig, &(struct rig_options){.mode = setting->mode,
                                               .budget_pages = setting->budget_pages,
                                               .wait_for_plan = setting->waits,
                                               .planner = setting->planner,
                                               .strict = setting->is_strict,
                                               .keep_contents = setting->keeps_contents,
                                               .report_path = report_path,
                                               .clear_fresh = (idiom->flags & CLEARS_FRESH) != 0});
    loop->buffers.rig = &loop->rig;
    loop->buffers.where = loop->where;
    if ((idiom->flags & OWN_TENSORS) == 0) {
        make_network(loop);
    }
}

void loop_run(struct loop *loop, const struct idiom *idiom, const struct loop_setting *setting)
{
    size_t rounds = idiom->rounds > 0 ? idiom->rounds : LOOP_ROUNDS;

    start(loop, idiom, setting);
    for (size_t round = 0; round < rounds && loop->buffers.ended == CAPU_OK; round++) {
        loop->now = round + 1;
        say_where(loop);
        idiom->round(loop, round);
    }
    for (size_t i = 0; i < loop->buffers.count; i++) {
        struct buffer *buffer = &loop->buffers.items[i];

        if (buffer->address != NULL && buffer->is_persistent && buffer->is_defined) {
            loop_check(loop, buffer);
        }
    }
    buffers_finish(&loop->buffers);
    rig_finish(&loop->rig);
}

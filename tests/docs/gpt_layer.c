/*
 * The port of a GPT layer, as docs/gpt-layer.md quotes it: what each op declares, forward and
 * backward.
 *
 * It runs on the sim device, which checks declarations and calls no kernel; `kernel` stands for
 * all.
 */
#include <capuchin/capuchin.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { B = 4, T = 256, C = 256, HEADS = 8, STEPS = 3, MICRO_STEPS = 2 };
#define FLOATS(count) ((size_t)(count) * sizeof(float))

struct shape {
    int batch, length, channels, heads;
};

static const struct shape shape = {B, T, C, HEADS};

static capu_status kernel(capu_stream stream, const void *arguments)
{
    (void)stream;
    (void)arguments;
    return CAPU_OK;
}
#define layernorm_forward kernel
#define layernorm_backward kernel
#define matmul_forward kernel
#define matmul_backward kernel
#define scores_forward kernel
#define softmax_forward kernel
#define weigh_forward kernel
#define attention_backward kernel
#define gelu_forward kernel
#define gelu_backward kernel
#define residual_forward kernel
#define residual_backward kernel
#define loss_forward kernel
#define adamw kernel

static capu_context *context;

static void check(capu_status status)
{
    if (status != CAPU_OK) {
        fprintf(stderr, "%s: %s\n", capu_status_text(status), capu_last_error(context));
        exit(1);
    }
}

/* The same pieces for parameters, their gradients and AdamW's two moments. */
struct weights {
    float *norm, *qkv, *projection, *up, *down;
};

static const size_t weight_counts[] = {2 * C, 3 * C *C, C *C, 4 * C *C, 4 * C *C};

/* Trap 1: one allocation holds everything of a kind; capu_split makes separate tensors of it. */
static void make_weights(struct weights *weights, const char *const *names, capu_kind kind)
{
    float **pieces[] = {&weights->norm, &weights->qkv, &weights->projection, &weights->up,
                        &weights->down};
    size_t total = 0;
    float *next;
    void *blob;

    for (size_t i = 0; i < 5; i++) {
        total += weight_counts[i];
    }
    check(capu_malloc(context, FLOATS(total), &blob));
    next = blob;
    for (size_t i = 0; i < 5; i++) {
        *pieces[i] = next;
        check(capu_split(context, next, FLOATS(weight_counts[i])));
        check(CAPU_DESCRIBE(context, next, .name = names[i], .kind = kind,
                            .lifetime = CAPU_PERSISTENT));
        next += weight_counts[i];
    }
}

static float *make(const char *name, capu_kind kind, size_t count)
{
    void *address;

    check(capu_malloc(context, FLOATS(count), &address));
    check(CAPU_DESCRIBE(context, address, .name = name, .kind = kind));
    return address;
}

struct layer {
    struct weights w, g, m, v;
    float *x, *normed, *qkv, *scores, *mixed, *residual, *up, *gelu, *y, *loss;
    float *dy, *dwide, *dnarrow, *dscores, *scratch;
};

static void forward(const struct layer *l)
{
    const float *q = l->qkv;
    const float *v = l->qkv + (size_t)2 * B * T * C;

    check(CAPU_RUN(context, layernorm_forward, &shape, capu_reads(l->x), capu_reads(l->w.norm),
                   capu_writes(l->normed)));
    check(CAPU_RUN(context, matmul_forward, &shape, capu_reads(l->normed), capu_reads(l->w.qkv),
                   capu_writes(l->qkv)));
    /* Trap 2: q and k are one part of a buffer, v is another. */
    check(CAPU_RUN(context, scores_forward, &shape,
                   capu_operand_of(q, FLOATS(2 * B * T * C), CAPU_READ), capu_writes(l->dscores)));
    /* Trap 3: the softmax writes the lower triangle, the next op reads the whole square. */
    check(CAPU_RUN(context, softmax_forward, &shape, capu_reads(l->dscores),
                   capu_writes_rest_zero(l->scores)));
    check(CAPU_RUN(context, weigh_forward, &shape, capu_reads(l->scores),
                   capu_operand_of(v, FLOATS(B * T * C), CAPU_READ), capu_writes(l->mixed)));
    /* Trap 4: memory that is undefined before and after is scratch. */
    check(CAPU_RUN(context, matmul_forward, &shape, capu_reads(l->mixed),
                   capu_reads(l->w.projection), capu_scratch(l->scratch),
                   capu_writes(l->residual)));
    check(CAPU_RUN(context, residual_forward, &shape, capu_reads(l->x), capu_updates(l->residual)));
    check(CAPU_RUN(context, matmul_forward, &shape, capu_reads(l->residual), capu_reads(l->w.up),
                   capu_writes(l->up)));
    check(CAPU_RUN(context, gelu_forward, &shape, capu_reads(l->up), capu_writes(l->gelu)));
    check(CAPU_RUN(context, matmul_forward, &shape, capu_reads(l->gelu), capu_reads(l->w.down),
                   capu_writes(l->y)));
    check(CAPU_RUN(context, loss_forward, &shape, capu_reads(l->y), capu_writes(l->loss),
                   capu_writes(l->dy)));
}

static void backward(const struct layer *l)
{
    /* Trap 7: gradients accumulate, so their weights' gradients are updates, never writes. */
    check(CAPU_RUN(context, matmul_backward, &shape, capu_reads(l->dy), capu_reads(l->gelu),
                   capu_reads(l->w.down), capu_updates(l->g.down), capu_writes(l->dwide)));
    check(CAPU_RUN(context, gelu_backward, &shape, capu_reads(l->up), capu_updates(l->dwide)));
    check(CAPU_RUN(context, matmul_backward, &shape, capu_reads(l->dwide), capu_reads(l->residual),
                   capu_reads(l->w.up), capu_updates(l->g.up), capu_writes(l->dnarrow)));
    check(
        CAPU_RUN(context, residual_backward, &shape, capu_reads(l->dy), capu_updates(l->dnarrow)));
    check(CAPU_RUN(context, matmul_backward, &shape, capu_reads(l->dnarrow), capu_reads(l->mixed),
                   capu_reads(l->w.projection), capu_updates(l->g.projection), capu_writes(l->dy)));
    /* Trap 5: the gradient of qkv reuses gelu's memory. Its last quarter is not read again, so the
       whole is declared written: a partial write would be an update, and fetch the old contents. */
    check(CAPU_RUN(context, attention_backward, &shape, capu_reads(l->dy), capu_reads(l->qkv),
                   capu_reads(l->scores), capu_writes(l->dscores), capu_writes(l->gelu)));
    check(CAPU_RUN(context, matmul_backward, &shape,
                   capu_operand_of(l->gelu, FLOATS(3 * B * T * C), CAPU_READ),
                   capu_reads(l->normed), capu_reads(l->w.qkv), capu_updates(l->g.qkv),
                   capu_writes(l->dy)));
    check(CAPU_RUN(context, layernorm_backward, &shape, capu_reads(l->dy), capu_reads(l->x),
                   capu_updates(l->g.norm)));
}

/* Trap 9: one op over every parameter would make all four blobs the floor of the budget. */
static void optimise(const struct layer *l)
{
    const struct weights *w = &l->w, *g = &l->g, *m = &l->m, *v = &l->v;

#define UPDATE(part)                                                                   \
    check(CAPU_RUN(context, adamw, &shape, capu_updates(w->part), capu_reads(g->part), \
                   capu_updates(m->part), capu_updates(v->part)))
    UPDATE(norm);
    UPDATE(qkv);
    UPDATE(projection);
    UPDATE(up);
    UPDATE(down);
#undef UPDATE
}

static void train(const struct layer *l, float *tokens)
{
    float loss;

    for (int step = 0; step < STEPS; step++) {
        check(capu_iteration_begin(context, "train"));
        /* Trap 6: known zeros take no memory and no transfer until their first update. */
        check(capu_zero(context, l->g.norm, FLOATS(2 * C + 12 * C * C)));
        for (int micro = 0; micro < MICRO_STEPS; micro++) {
            /* Trap 8: the source is copied, so the loader may fill it again at once. */
            check(capu_upload(context, l->x, tokens, FLOATS(B * T * C), 0));
            forward(l);
            backward(l);
        }
        optimise(l);
        /* Trap 10: a host read waits for what it reads. */
        check(capu_download(context, &loss, l->loss, sizeof(loss), 0));
        check(capu_iteration_end(context));
    }
}

int main(void)
{
    static const char *const names[][5] = {{"w.norm", "w.qkv", "w.projection", "w.up", "w.down"},
                                           {"g.norm", "g.qkv", "g.projection", "g.up", "g.down"},
                                           {"m.norm", "m.qkv", "m.projection", "m.up", "m.down"},
                                           {"v.norm", "v.qkv", "v.projection", "v.up", "v.down"}};
    capu_config config = CAPU_CONFIG_INIT;
    capu_report report = CAPU_REPORT_INIT;
    struct layer l;
    float *tokens = calloc(B * T * C, sizeof(*tokens));

    config.device = "sim";
    config.page_bytes = 65536;
    config.budget_bytes = (uint64_t)26 << 20;
    check(capu_context_create(&config, &context));
    make_weights(&l.w, names[0], CAPU_PARAMETER);
    make_weights(&l.g, names[1], CAPU_GRADIENT);
    make_weights(&l.m, names[2], CAPU_OPTIMIZER);
    make_weights(&l.v, names[3], CAPU_OPTIMIZER);
    check(capu_zero(context, l.w.norm, FLOATS(2 * C + 12 * C * C)));
    check(capu_zero(context, l.m.norm, FLOATS(2 * C + 12 * C * C)));
    check(capu_zero(context, l.v.norm, FLOATS(2 * C + 12 * C * C)));
    l.x = make("x", CAPU_INPUT, B * T * C);
    l.normed = make("normed", CAPU_ACTIVATION, B * T * C);
    l.qkv = make("qkv", CAPU_ACTIVATION, 3 * B * T * C);
    l.scores = make("scores", CAPU_ACTIVATION, B * HEADS * T * T);
    l.mixed = make("mixed", CAPU_ACTIVATION, B * T * C);
    l.residual = make("residual", CAPU_ACTIVATION, B * T * C);
    l.up = make("up", CAPU_ACTIVATION, 4 * B * T * C);
    l.gelu = make("gelu", CAPU_ACTIVATION, 4 * B * T * C);
    l.y = make("y", CAPU_ACTIVATION, B * T * C);
    l.loss = make("loss", CAPU_ACTIVATION, 1);
    l.dy = make("dy", CAPU_GRADIENT, B * T * C);
    l.dwide = make("dwide", CAPU_GRADIENT, 4 * B * T * C);
    l.dnarrow = make("dnarrow", CAPU_GRADIENT, B * T * C);
    l.dscores = make("dscores", CAPU_GRADIENT, B * HEADS * T * T);
    l.scratch = make("scratch", CAPU_WORKSPACE, B * T * C);
    if (tokens != NULL) {
        train(&l, tokens);
    }
    check(capu_synchronize(context));
    check(capu_report_get(context, &report));
    capu_context_destroy(context);
    free(tokens);
    if (report.peak_bytes > report.budget_bytes || report.eviction_count == 0) {
        fprintf(stderr, "budget exceeded, or nothing was evicted\n");
        return 1;
    }
    return 0;
}

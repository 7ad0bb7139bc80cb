/* Optimizers that evaluate the network more than once per iteration, or remember vectors. */
#include "tests/idioms/idioms.h"

static void forward_with(struct loop *loop, struct buffer *const *weights, uint64_t batch)
{
    loop_upload(loop, loop->layers[0], batch);
    for (size_t i = 0; i < LOOP_LAYERS; i++) {
        loop_apply(loop, "forward", CAPU_WRITE, loop->layers[i + 1], loop->layers[i], weights[i],
                   0);
    }
}

/* Sharpness-aware minimisation: climbs, computes the gradients there, and climbs back. */
static void two_passes(struct loop *loop, size_t round)
{
    loop_begin(loop, "train");
    forward_with(loop, loop->weights, round);
    loop_backward(loop, CAPU_WRITE);
    for (size_t i = 0; i < LOOP_LAYERS; i++) {
        if (loop->extra[i] == NULL) {
            loop->extra[i] = loop_make(loop, "kept", CAPU_WORKSPACE, loop->weights[i]->bytes);
        }
        loop_copy(loop, loop->extra[i], loop->weights[i]);
        loop_apply(loop, "climb", CAPU_UPDATE, loop->weights[i], loop->sums[i], NULL, 0);
    }
    forward_with(loop, loop->weights, round);
    loop_backward(loop, CAPU_WRITE);
    for (size_t i = 0; i < LOOP_LAYERS; i++) {
        loop_copy(loop, loop->weights[i], loop->extra[i]);
    }
    loop_optimize(loop);
    loop_end(loop);
}

/* Line search: tries weights until the loss is good, with the batch uploaded again for each. */
static void line_search(struct loop *loop, size_t round)
{
    struct buffer **tried = loop->extra;
    uint64_t loss;

    for (size_t i = 0; round == 0 && i < LOOP_LAYERS; i++) {
        tried[i] = loop_make(loop, "tried", CAPU_WORKSPACE, loop->weights[i]->bytes);
    }
    loop_begin(loop, "train");
    forward_with(loop, loop->weights, round);
    loop_backward(loop, CAPU_WRITE);
    for (size_t step = 0; step < 4; step++) {
        loop_upload(loop, loop->rate, step);
        for (size_t i = 0; i < LOOP_LAYERS; i++) {
            LOOP_OP(loop, "step", step, {loop->weights[i], CAPU_READ}, {loop->sums[i], CAPU_READ},
                    {loop->rate, CAPU_READ}, {tried[i], CAPU_WRITE});
        }
        if (loop->idiom->way == 0) {
            forward_with(loop, tried, round);
        } else {
            loop_apply(loop, "again", CAPU_WRITE, loop->layers[LOOP_LAYERS], tried[0], tried[1],
                       step);
        }
        loop_apply(loop, "loss", CAPU_WRITE, loop->deltas[0], loop->layers[LOOP_LAYERS], NULL, 0);
        loss = loop_check(loop, loop->deltas[0]);
        if (loss % 2 == 0) {
            break;
        }
    }
    for (size_t i = 0; i < LOOP_LAYERS; i++) {
        loop_copy(loop, loop->weights[i], tried[i]);
    }
    loop_end(loop);
}

/* L-BFGS over one vector of weights, with the differences of the last iterations. */
enum {
    MEMORY = 3,
    STEPS = 0,          /* the differences of the weights */
    CHANGES = MEMORY,   /* the differences of the gradients */
    VECTOR = 2 * MEMORY /* the weights and what else has their size */
};
enum { WEIGHTS = VECTOR, OLD_WEIGHTS, GRADIENT, OLD_GRADIENT, DIRECTION, DOT, BATCH, OUTPUT };

static void make_vectors(struct loop *loop)
{
    static const struct {
        const char *name;
        capu_kind kind;
        capu_lifetime lifetime;
    } own[] = {{"w", CAPU_PARAMETER, CAPU_LIFETIME_DEFAULT},
               {"old w", CAPU_OPTIMIZER, CAPU_LIFETIME_DEFAULT},
               {"g", CAPU_GRADIENT, CAPU_LIFETIME_DEFAULT},
               {"old g", CAPU_OPTIMIZER, CAPU_LIFETIME_DEFAULT},
               {"d", CAPU_WORKSPACE, CAPU_LIFETIME_DEFAULT}};
    struct buffer **vectors = loop->extra;

    for (size_t i = 0; i < VECTOR; i++) {
        vectors[i] = loop_make(loop, "memory", CAPU_OPTIMIZER, PAGES(LAYER_PAGES));
    }
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
        vectors[VECTOR + i] = buffers_make(&loop->buffers, own[i].name, own[i].kind,
                                           own[i].lifetime, PAGES(LAYER_PAGES));
    }
    vectors[DOT] = loop_make(loop, "dot", CAPU_WORKSPACE, MEMORY * SMALL_BYTES);
    vectors[BATCH] = loop_make(loop, "batch", CAPU_INPUT, PAGES(LAYER_PAGES));
    vectors[OUTPUT] = loop_make(loop, "output", CAPU_ACTIVATION, PAGES(2 * LAYER_PAGES));
    loop_upload(loop, vectors[WEIGHTS], 1);
}

/* The two loops over the memory: from the newest to the oldest, and back. */
static void find_direction(struct loop *loop, size_t round)
{
    struct buffer **v = loop->extra;
    size_t known = round < MEMORY ? round : MEMORY;

    loop_copy(loop, v[DIRECTION], v[GRADIENT]);
    loop_apply(loop, "clear", CAPU_WRITE, v[DOT], NULL, NULL, 0);
    for (size_t i = 1; i <= known; i++) {
        size_t at = (round - i) % MEMORY;

        loop_apply(loop, "dot", CAPU_UPDATE, v[DOT], v[STEPS + at], v[DIRECTION], 0);
        loop_apply(loop, "less", CAPU_UPDATE, v[DIRECTION], v[CHANGES + at], v[DOT], 0);
    }
    for (size_t i = known; i >= 1; i--) {
        size_t at = (round - i) % MEMORY;

        loop_apply(loop, "dot", CAPU_UPDATE, v[DOT], v[CHANGES + at], v[DIRECTION], 0);
        loop_apply(loop, "more", CAPU_UPDATE, v[DIRECTION], v[STEPS + at], v[DOT], 0);
    }
}

static void find_gradient(struct loop *loop, uint64_t batch)
{
    struct buffer **v = loop->extra;

    loop_upload(loop, v[BATCH], batch);
    loop_apply(loop, "forward", CAPU_WRITE, v[OUTPUT], v[BATCH], v[WEIGHTS], 0);
    loop_apply(loop, "backward", CAPU_WRITE, v[GRADIENT], v[OUTPUT], v[BATCH], 0);
}

static void lbfgs(struct loop *loop, size_t round)
{
    struct buffer **v = loop->extra;
    size_t at = round % MEMORY;

    if (round == 0) {
        make_vectors(loop);
    }
    loop_begin(loop, "train");
    find_gradient(loop, round);
    find_direction(loop, round);
    loop_copy(loop, v[OLD_WEIGHTS], v[WEIGHTS]);
    loop_copy(loop, v[OLD_GRADIENT], v[GRADIENT]);
    loop_apply(loop, "step", CAPU_UPDATE, v[WEIGHTS], v[DIRECTION], NULL, 0);
    find_gradient(loop, round);
    loop_apply(loop, "differ", CAPU_WRITE, v[STEPS + at], v[WEIGHTS], v[OLD_WEIGHTS], 0);
    loop_apply(loop, "differ", CAPU_WRITE, v[CHANGES + at], v[GRADIENT], v[OLD_GRADIENT], 0);
    loop_end(loop);
}

const struct idiom idioms_search[] = {
    {"sharpness-aware", two_passes, "train", 0, 0, 0},
    {"line search", line_search, "train", 0, NEVER_GUIDED, 0},
    {"line search, no label", line_search, NULL, 0, NEVER_GUIDED, 0},
    {"line search, shallow", line_search, "train", 1, NEVER_GUIDED, 0},
    {"l-bfgs", lbfgs, "train", 0, OWN_TENSORS, 18},
    {"l-bfgs, no label", lbfgs, NULL, 0, OWN_TENSORS, 18},
    {.name = NULL},
};

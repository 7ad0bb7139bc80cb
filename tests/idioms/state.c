/* State besides weights: averages, copies, teachers, rates, optimizer state that appears late. */
#include "tests/idioms/idioms.h"

/* Allocates the optimizer's state in the third iteration, the first that needs it. */
static void lazy_state(struct loop *loop, size_t round)
{
    loop_begin(loop, "train");
    loop_forward(loop, LOOP_LAYERS);
    loop_backward(loop, CAPU_WRITE);
    if (round == 2) {
        for (size_t i = 0; i < LOOP_LAYERS; i++) {
            loop->extra[i] = loop_make(loop, "late", CAPU_OPTIMIZER, loop->weights[i]->bytes);
            if (loop->idiom->way == 1) {
                loop_apply(loop, "clear", CAPU_WRITE, loop->extra[i], NULL, NULL, 0);
            } else if (loop->idiom->way == 2) {
                loop_zero(loop, loop->extra[i]);
            }
        }
    }
    for (size_t i = 0; round >= 2 && i < LOOP_LAYERS; i++) {
        loop_apply(loop, "late", CAPU_UPDATE, loop->extra[i], loop->sums[i], NULL, 3);
        loop_apply(loop, "use", CAPU_UPDATE, loop->weights[i], loop->extra[i], loop->rate, 0);
    }
    loop_end(loop);
}

/* Uploads the learning rate, a small tensor, before each iteration or inside it. */
static void uploads(struct loop *loop, size_t round)
{
    if (loop->idiom->way == 0) {
        loop_upload(loop, loop->rate, round);
    }
    loop_begin(loop, "train");
    if (loop->idiom->way == 1) {
        loop_upload(loop, loop->rate, round);
    }
    loop_forward(loop, LOOP_LAYERS);
    loop_backward(loop, CAPU_WRITE);
    if (loop->idiom->way == 2) {
        loop_upload(loop, loop->rate, round);
    }
    loop_optimize(loop);
    loop_end(loop);
}

static void make_extra(struct loop *loop, capu_kind kind)
{
    for (size_t i = 0; i < LOOP_LAYERS; i++) {
        loop->extra[i] = loop_make(loop, "extra", kind, loop->weights[i]->bytes);
        loop_upload(loop, loop->extra[i], i);
    }
}

/* Averages or copies the weights in every third iteration, or copies them after it. */
static void averages(struct loop *loop, size_t round)
{
    bool is_due = round % 3 == 2;

    if (round == 0) {
        make_extra(loop, CAPU_PARAMETER);
    }
    loop_begin(loop, is_due ? "average" : "train");
    loop_train(loop);
    for (size_t i = 0; is_due && i < LOOP_LAYERS; i++) {
        if (loop->idiom->way == 0) {
            loop_apply(loop, "average", CAPU_UPDATE, loop->extra[i], loop->weights[i], NULL, 0);
        } else if (loop->idiom->way == 1) {
            loop_copy(loop, loop->extra[i], loop->weights[i]);
        }
    }
    loop_end(loop);
    for (size_t i = 0; is_due && loop->idiom->way == 2 && i < LOOP_LAYERS; i++) {
        loop_copy(loop, loop->extra[i], loop->weights[i]);
    }
}

/* Distillation: uses a teacher in every iteration, and gives it the weights in every fourth. */
static void teacher(struct loop *loop, size_t round)
{
    if (round == 0) {
        make_extra(loop, CAPU_PARAMETER);
    }
    loop_begin(loop, "train");
    loop_apply(loop, "teach", CAPU_WRITE, loop->layers[0], loop->extra[0],
               loop->extra[LOOP_LAYERS - 1], loop->now);
    loop_apply(loop, "teach", CAPU_WRITE, loop->deltas[1], loop->layers[0], loop->extra[1], 0);
    loop_apply(loop, "learn", CAPU_UPDATE, loop->weights[0], loop->deltas[1], NULL, 0);
    loop_train(loop);
    for (size_t i = 0; round % 4 == 3 && i < LOOP_LAYERS; i++) {
        loop_copy(loop, loop->extra[i], loop->weights[i]);
    }
    loop_end(loop);
}

/* Two buffers that swap roles: each iteration reads what the last one wrote. */
static void ping_pong(struct loop *loop, size_t round)
{
    static const char *const phases[] = {"ping", "pong"};
    struct buffer *from;
    struct buffer *to;

    if (round == 0) {
        make_extra(loop, loop->idiom->way == 0 ? CAPU_PARAMETER : CAPU_KIND_UNKNOWN);
    }
    from = loop->extra[round % 2];
    to = loop->extra[1 - round % 2];
    loop_begin(loop, phases[round % 2]);
    loop_forward(loop, LOOP_LAYERS);
    loop_backward(loop, CAPU_WRITE);
    loop_apply(loop, "turn", CAPU_WRITE, to, from, loop->sums[0], 0);
    loop_optimize(loop);
    loop_end(loop);
}

/* A moving average of the weights after each iteration. Every fourth iteration is followed by an
   evaluation of the average: it takes the place of the weights for as long. */
static void moving_average(struct loop *loop, size_t round)
{
    if (round == 0) {
        make_extra(loop, CAPU_PARAMETER);
        for (size_t i = 0; i < LOOP_LAYERS; i++) {
            loop->extra[LOOP_LAYERS + i] =
                loop_make(loop, "kept", CAPU_PARAMETER, loop->weights[i]->bytes);
        }
    }
    loop_begin(loop, "train");
    loop_train(loop);
    for (size_t i = 0; i < LOOP_LAYERS; i++) {
        loop_apply(loop, "average", CAPU_UPDATE, loop->extra[i], loop->weights[i], NULL, 0);
    }
    loop_end(loop);
    if (round % 4 != 3) {
        return;
    }
    for (size_t i = 0; i < LOOP_LAYERS; i++) {
        loop_copy(loop, loop->extra[LOOP_LAYERS + i], loop->weights[i]);
        loop_copy(loop, loop->weights[i], loop->extra[i]);
    }
    loop_begin(loop, "evaluate");
    loop_forward(loop, LOOP_LAYERS);
    loop_check(loop, loop->layers[LOOP_LAYERS]);
    loop_end(loop);
    for (size_t i = 0; i < LOOP_LAYERS; i++) {
        loop_copy(loop, loop->weights[i], loop->extra[LOOP_LAYERS + i]);
    }
}

/* Stochastic weight averaging: from the seventh iteration on, every second adds to the average. */
static void late_average(struct loop *loop, size_t round)
{
    if (round == 6) {
        make_extra(loop, CAPU_PARAMETER);
    }
    loop_begin(loop, "train");
    loop_train(loop);
    for (size_t i = 0; round >= 6 && round % 2 == 0 && i < LOOP_LAYERS; i++) {
        loop_apply(loop, "average", CAPU_UPDATE, loop->extra[i], loop->weights[i], NULL, round);
    }
    loop_end(loop);
}

const struct idiom idioms_state[] = {
    {"late state, clear fresh", lazy_state, "train", 0, KEEPS_SUMS | CLEARS_FRESH, 0},
    {"late state, by an op", lazy_state, "train", 1, KEEPS_SUMS, 0},
    {"late state, zeros", lazy_state, NULL, 2, KEEPS_SUMS, 0},
    {"rate before", uploads, "train", 0, 0, 0},
    {"rate first", uploads, "train", 1, 0, 0},
    {"rate later", uploads, "train", 2, 0, 0},
    {"average, no label", averages, NULL, 0, 0, 0},
    {"average", averages, "", 0, 0, 0},
    {"copy, no label", averages, NULL, 1, 0, 0},
    {"copy", averages, "", 1, 0, 0},
    {"copy between", averages, "train", 2, 0, 0},
    {"teacher", teacher, "train", 0, 0, 0},
    {"ping pong, no label", ping_pong, NULL, 0, 0, 0},
    {"ping pong", ping_pong, "", 0, 0, 0},
    {"ping pong, not described", ping_pong, NULL, 1, 0, 0},
    {"moving average", moving_average, "", 0, 0, 0},
    {"late average", late_average, "train", 0, 0, 0},
    {.name = NULL},
};

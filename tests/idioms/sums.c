/* Gradients that are summed over several ops or iterations, cleared in every possible way. */
#include "tests/idioms/idioms.h"

static void each_sum(struct loop *loop, void (*what)(struct loop *, struct buffer *))
{
    for (size_t i = 0; i < LOOP_LAYERS; i++) {
        what(loop, loop->sums[i]);
    }
}

static void clear_by_op(struct loop *loop, struct buffer *buffer)
{
    loop_apply(loop, "clear", CAPU_WRITE, buffer, NULL, NULL, 0);
}

enum { ZERO_FIRST, ZERO_LAST, ZERO_BETWEEN, CLEAR_FIRST, CLEAR_LAST, WRITE_FIRST, WRITE_REST_ZERO };

/* Sums gradients over three iterations; the optimizer runs in every third. */
static void accumulate(struct loop *loop, size_t round)
{
    static const char *const phases[] = {"first", "more", "last"};
    static void (*const clear[])(struct loop *, struct buffer *) = {
        [ZERO_FIRST] = loop_zero,    [ZERO_LAST] = loop_zero,    [ZERO_BETWEEN] = loop_zero,
        [CLEAR_FIRST] = clear_by_op, [CLEAR_LAST] = clear_by_op, [WRITE_REST_ZERO] = NULL,
    };
    uint32_t way = loop->idiom->way;
    bool is_first = round % 3 == 0;
    bool is_last = round % 3 == 2;
    capu_role role = CAPU_UPDATE;

    if (round == 0) {
        each_sum(loop, loop_zero);
    }
    if (is_first && way == ZERO_BETWEEN) {
        each_sum(loop, loop_zero);
    }
    loop_begin(loop, phases[round % 3]);
    if (is_first && (way == ZERO_FIRST || way == CLEAR_FIRST)) {
        each_sum(loop, clear[way]);
    }
    if (is_first && way >= WRITE_FIRST) {
        role = way == WRITE_FIRST ? CAPU_WRITE : CAPU_WRITE_REST_ZERO;
    }
    loop_forward(loop, LOOP_LAYERS);
    loop_backward(loop, role);
    if (is_last) {
        loop_optimize(loop);
    }
    if (is_last && (way == ZERO_LAST || way == CLEAR_LAST)) {
        each_sum(loop, clear[way]);
    }
    loop_end(loop);
}

/* The same with sums that start at zero: cleared by an op at the start of each iteration, or by
   capu_zero at its end. */
static void skips_of_sums(struct loop *loop, size_t round)
{
    if (round == 0) {
        each_sum(loop, loop_zero);
    }
    loop_begin(loop, "train");
    if (loop->idiom->way == CLEAR_FIRST) {
        each_sum(loop, clear_by_op);
    }
    loop_forward(loop, LOOP_LAYERS);
    loop_backward(loop, CAPU_UPDATE);
    if (round % 5 != 2) {
        loop_optimize(loop);
    }
    if (loop->idiom->way == ZERO_LAST) {
        each_sum(loop, loop_zero);
    }
    loop_end(loop);
}

/* Reads the gradients in every fourth iteration, after what is their last use in the others. */
static void norms(struct loop *loop, size_t round)
{
    loop_begin(loop, "train");
    loop_train(loop);
    for (size_t i = 0; round % 4 == 3 && i < LOOP_LAYERS; i++) {
        loop_apply(loop, "norm", CAPU_UPDATE, loop->rate, loop->sums[i], NULL, 0);
    }
    loop_end(loop);
}

/* Clears the gradients right before they are summed. Some iterations first look at what the last
   one has left. */
static void last_gradients(struct loop *loop, size_t round)
{
    if (round == 0) {
        each_sum(loop, loop_zero);
    }
    loop_begin(loop, "train");
    loop_forward(loop, LOOP_LAYERS);
    for (size_t i = 0; round % 4 == 3 && i < LOOP_LAYERS; i++) {
        loop_apply(loop, "norm", CAPU_UPDATE, loop->rate, loop->sums[i], NULL, 0);
    }
    each_sum(loop, loop->idiom->way == ZERO_FIRST ? loop_zero : clear_by_op);
    loop_backward(loop, CAPU_UPDATE);
    loop_optimize(loop);
    loop_end(loop);
}

/* Scales all gradients by their norm before the update. */
static void clipping(struct loop *loop, size_t round)
{
    (void)round;
    loop_begin(loop, "train");
    loop_forward(loop, LOOP_LAYERS);
    loop_backward(loop, CAPU_WRITE);
    LOOP_OP(loop, "norm", 0, {loop->sums[0], CAPU_READ}, {loop->sums[1], CAPU_READ},
            {loop->sums[2], CAPU_READ}, {loop->sums[3], CAPU_READ}, {loop->rate, CAPU_UPDATE});
    for (size_t i = 0; i < LOOP_LAYERS; i++) {
        loop_apply(loop, "clip", CAPU_UPDATE, loop->sums[i], loop->rate, NULL, 0);
    }
    loop_optimize(loop);
    loop_end(loop);
}

/* Several batches per update. All gradients are in one allocation, cleared by one call. */
static void micro_batches(struct loop *loop, size_t round)
{
    if (round == 0) {
        size_t bytes = loop->weights[0]->bytes;
        struct buffer *parts;

        loop->extra[0] = loop_make(loop, "gradients", CAPU_GRADIENT, LOOP_LAYERS * bytes);
        parts = buffers_split(&loop->buffers, loop->extra[0], LOOP_LAYERS, "gradient",
                              CAPU_GRADIENT, CAPU_LIFETIME_DEFAULT);
        for (size_t i = 0; i < LOOP_LAYERS; i++) {
            loop_free(loop, loop->sums[i]);
            loop->sums[i] = &parts[i];
        }
    }
    loop_begin(loop, "train");
    loop_zero(loop, loop->extra[0]);
    for (size_t batch = 0; batch < 3; batch++) {
        loop_upload(loop, loop->layers[0], 3 * round + batch);
        for (size_t i = 0; i < LOOP_LAYERS; i++) {
            loop_apply(loop, "forward", CAPU_WRITE, loop->layers[i + 1], loop->layers[i],
                       loop->weights[i], 0);
        }
        loop_backward(loop, CAPU_UPDATE);
    }
    loop_optimize(loop);
    loop_end(loop);
}

const struct idiom idioms_sums[] = {
    {"zeros first, no label", accumulate, NULL, ZERO_FIRST, KEEPS_SUMS, 0},
    {"zeros first", accumulate, "", ZERO_FIRST, KEEPS_SUMS, 0},
    {"zeros last, no label", accumulate, NULL, ZERO_LAST, KEEPS_SUMS, 0},
    {"zeros last", accumulate, "", ZERO_LAST, KEEPS_SUMS, 0},
    {"zeros between, no label", accumulate, NULL, ZERO_BETWEEN, KEEPS_SUMS, 0},
    {"zeros between", accumulate, "", ZERO_BETWEEN, KEEPS_SUMS, 0},
    {"clear first, no label", accumulate, NULL, CLEAR_FIRST, KEEPS_SUMS, 0},
    {"clear first", accumulate, "", CLEAR_FIRST, KEEPS_SUMS, 0},
    {"clear last, no label", accumulate, NULL, CLEAR_LAST, KEEPS_SUMS, 0},
    {"clear last", accumulate, "", CLEAR_LAST, KEEPS_SUMS, 0},
    {"write first, no label", accumulate, NULL, WRITE_FIRST, KEEPS_SUMS, 0},
    {"write first", accumulate, "", WRITE_FIRST, KEEPS_SUMS, 0},
    {"write, rest zero, no label", accumulate, NULL, WRITE_REST_ZERO, KEEPS_SUMS, 0},
    {"write, rest zero", accumulate, "", WRITE_REST_ZERO, KEEPS_SUMS, 0},
    {"skipped updates, cleared sums", skips_of_sums, "train", CLEAR_FIRST, KEEPS_SUMS, 0},
    {"skipped updates, zeroed sums", skips_of_sums, "train", ZERO_LAST, KEEPS_SUMS, 0},
    {"norms", norms, "train", 0, KEEPS_SUMS, 0},
    {"norms, transient", norms, "train", 0, 0, 0},
    {"last gradients, zeroed", last_gradients, "train", ZERO_FIRST, KEEPS_SUMS | NEVER_GUIDED, 0},
    {"last gradients, cleared", last_gradients, "train", CLEAR_FIRST, KEEPS_SUMS, 0},
    {"clipping", clipping, "train", 0, 0, 0},
    {"micro-batches", micro_batches, "train", 0, 0, 0},
    {.name = NULL},
};

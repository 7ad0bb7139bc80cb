/* Programs that leave something out in some iterations. */
#include "tests/idioms/idioms.h"

/* Skips the update in some iterations. */
static void skips(struct loop *loop, size_t round)
{
    loop_begin(loop, "train");
    loop_forward(loop, LOOP_LAYERS);
    loop_backward(loop, CAPU_WRITE);
    if (round % 5 != 2) {
        loop_optimize(loop);
    }
    loop_end(loop);
}

/* Ends some iterations early. */
static void early_ends(struct loop *loop, size_t round)
{
    loop_begin(loop, "train");
    if (round % 4 == 2) {
        loop_forward(loop, round == 2 ? LOOP_LAYERS / 2 : LOOP_LAYERS);
        if (round == 10) {
            loop_backward(loop, CAPU_WRITE);
        }
    } else {
        loop_train(loop);
    }
    loop_end(loop);
}

static void freezing(struct loop *loop, size_t round)
{
    loop->frozen = round < 6 ? 0 : LOOP_LAYERS / 2;
    loop_begin(loop, "train");
    loop_train(loop);
    loop_end(loop);
}

/* Weight tying: the last layer uses the weights of the first. */
static void tied(struct loop *loop, size_t round)
{
    struct buffer *own = loop->weights[LOOP_LAYERS - 1];

    loop_begin(loop, "train");
    loop->weights[LOOP_LAYERS - 1] = loop->weights[0];
    loop_forward(loop, LOOP_LAYERS);
    loop_backward(loop, CAPU_WRITE);
    loop_apply(loop, "tie", CAPU_UPDATE, loop->sums[0], loop->sums[LOOP_LAYERS - 1], NULL, round);
    loop->weights[LOOP_LAYERS - 1] = own;
    loop_optimize(loop);
    loop_end(loop);
}

/* The smallest program whose iterations come to read more: from the third on it also trains the
   first layer, whose update reads y after the update of w1 that y was made from. */
static void unfreeze_two(struct loop *loop, size_t round)
{
    enum { X, W0, W1, A, Y };
    struct buffer **tensors = loop->extra;

    if (round == 0) {
        tensors[X] = buffers_make(&loop->buffers, "x", CAPU_INPUT,
                                  loop->idiom->way == 0 ? CAPU_PERSISTENT : CAPU_LIFETIME_DEFAULT,
                                  PAGES(LAYER_PAGES));
        tensors[W0] = loop_make(loop, "w0", CAPU_PARAMETER, PAGES(LAYER_PAGES));
        tensors[W1] = loop_make(loop, "w1", CAPU_PARAMETER, PAGES(LAYER_PAGES));
        tensors[A] = loop_make(loop, "a", CAPU_ACTIVATION, PAGES(LAYER_PAGES));
        tensors[Y] = loop_make(loop, "y", CAPU_ACTIVATION, PAGES(LAYER_PAGES));
        for (size_t i = X; i <= W1; i++) {
            loop_upload(loop, tensors[i], i);
        }
    }
    loop_begin(loop, "train");
    if (loop->idiom->way == 1) {
        loop_upload(loop, tensors[X], round);
    }
    loop_apply(loop, "f0", CAPU_WRITE, tensors[A], tensors[X], tensors[W0], 0);
    loop_apply(loop, "f1", CAPU_WRITE, tensors[Y], tensors[A], tensors[W1], 0);
    loop_apply(loop, "u1", CAPU_UPDATE, tensors[W1], tensors[Y], tensors[A], 0);
    if (round >= 2) {
        loop_apply(loop, "u0", CAPU_UPDATE, tensors[W0], tensors[Y], tensors[X], 0);
    }
    loop_end(loop);
}

/* Trains one more layer after every third iteration, from the last to the first. */
static void unfreezing(struct loop *loop, size_t round)
{
    loop->frozen = round / 3 < LOOP_LAYERS ? LOOP_LAYERS - 1 - round / 3 : 0;
    loop_begin(loop, "train");
    loop_train(loop);
    loop_end(loop);
}

/* Loss scaling: skips the update if a number that is computed from the gradients says so. With way
   1 every layer has a gradient of its own, and nothing is overwritten before the update. */
static void loss_scaling(struct loop *loop, size_t round)
{
    struct buffer **deltas = loop->extra;
    struct buffer *found;
    uint64_t number;

    if (round == 0) {
        for (size_t i = 0; i < LOOP_LAYERS; i++) {
            deltas[i] = loop_make(loop, "delta", CAPU_GRADIENT, PAGES(LAYER_PAGES));
        }
        loop->extra[LOOP_LAYERS] = loop_make(loop, "found", CAPU_WORKSPACE, SMALL_BYTES);
    }
    found = loop->extra[LOOP_LAYERS];
    loop_begin(loop, "train");
    loop_upload(loop, loop->layers[0], round);
    for (size_t i = 0; i < LOOP_LAYERS; i++) {
        loop_apply(loop, "forward", CAPU_WRITE, loop->layers[i + 1], loop->layers[i],
                   loop->weights[i], 0);
    }
    if (loop->idiom->way == 0) {
        loop_backward(loop, CAPU_WRITE);
    } else {
        loop_apply(loop, "loss", CAPU_WRITE, deltas[LOOP_LAYERS - 1], loop->layers[LOOP_LAYERS],
                   loop->rate, 0);
        for (size_t i = LOOP_LAYERS; i-- > 0;) {
            loop_apply(loop, "gradient", CAPU_WRITE, loop->sums[i], loop->layers[i], deltas[i], 0);
            if (i > 0) {
                loop_apply(loop, "backward", CAPU_WRITE, deltas[i - 1], deltas[i], loop->weights[i],
                           0);
            }
        }
    }
    LOOP_OP(loop, "find", 0, {loop->sums[0], CAPU_READ}, {loop->sums[1], CAPU_READ},
            {loop->sums[2], CAPU_READ}, {loop->sums[3], CAPU_READ}, {found, CAPU_WRITE});
    number = loop_check(loop, found);
    if (number % 4 == 0) {
        loop_upload(loop, loop->rate, number); /* another scale */
    } else {
        loop_optimize(loop);
    }
    loop_end(loop);
}

/* Looks at the loss, and gives the iteration up if it is bad. */
static void gives_up(struct loop *loop, size_t round)
{
    (void)round;
    loop_begin(loop, "train");
    loop_forward(loop, LOOP_LAYERS);
    if (loop_check(loop, loop->layers[LOOP_LAYERS]) % 3 > 0) {
        loop_backward(loop, CAPU_WRITE);
        loop_optimize(loop);
    }
    loop_end(loop);
}

/* Stochastic depth: leaves out drawn layers. */
static void drawn_depth(struct loop *loop, size_t round)
{
    struct buffer *last = loop->layers[0];

    (void)round;
    loop_begin(loop, "train");
    loop_apply(loop, "batch", CAPU_WRITE, last, NULL, NULL, loop->now);
    for (size_t i = 0; i < LOOP_LAYERS; i++) {
        if (loop_draw(loop, 3) > 0) {
            loop_apply(loop, "forward", CAPU_WRITE, loop->layers[i + 1], last, loop->weights[i], 0);
            last = loop->layers[i + 1];
        }
    }
    loop_apply(loop, "loss", CAPU_WRITE, loop->deltas[0], last, NULL, 0);
    for (size_t i = 0; i < LOOP_LAYERS; i++) {
        loop_apply(loop, "learn", CAPU_UPDATE, loop->weights[i], loop->deltas[0], NULL, i);
    }
    loop_end(loop);
}

const struct idiom idioms_skips[] = {
    {"skipped updates", skips, "train", 0, KEEPS_SUMS, 0},
    {"early ends", early_ends, "train", 0, 0, 0},
    {"frozen layers", freezing, "train", 0, 0, 0},
    {"tied weights", tied, "train", 0, 0, 0},
    {"skipped updates, transient", skips, "train", 0, 0, 0},
    {"unfreezing, smallest", unfreeze_two, "train", 0, OWN_TENSORS, 0},
    {"unfreezing, smallest, uploaded", unfreeze_two, "train", 1, OWN_TENSORS, 0},
    {"unfreezing", unfreezing, "train", 0, 0, 18},
    {"loss scaling", loss_scaling, "train", 0, 0, 0},
    {"loss scaling, own gradients", loss_scaling, "train", 1, 0, 0},
    {"gives up", gives_up, "train", 0, 0, 0},
    {"drawn depth", drawn_depth, "train", 0, NEVER_GUIDED, 24},
    {.name = NULL},
};

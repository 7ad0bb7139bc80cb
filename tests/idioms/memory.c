/* Programs that allocate, free and split inside the loop. */
#include "tests/idioms/idioms.h"

/* Allocates activations inside the iteration; every fourth iteration has smaller ones. */
static void last_batch(struct loop *loop, size_t round)
{
    size_t bytes = PAGES(round % 4 == 3 ? LAYER_PAGES / 2 : LAYER_PAGES);
    struct buffer *kept[LOOP_LAYERS + 1];

    memcpy(kept, loop->layers, sizeof(kept));
    loop_begin(loop, "train");
    for (size_t i = 0; i <= LOOP_LAYERS; i++) {
        loop->layers[i] = loop_make(loop, "own", CAPU_ACTIVATION, bytes);
    }
    loop_train(loop);
    for (size_t i = LOOP_LAYERS + 1; i-- > 0;) {
        loop_free(loop, loop->layers[i]); /* the newest first */
    }
    memcpy(loop->layers, kept, sizeof(kept));
    loop_end(loop);
}

/* Allocates the gradients in each iteration, and frees them in the iteration or after it. The last
   iteration keeps them, unless they are persistent: plans expect that those are freed. */
static void set_to_none(struct loop *loop, size_t round)
{
    bool is_described = loop->idiom->way != 2;
    size_t bytes = loop->weights[0]->bytes;

    for (size_t i = LOOP_LAYERS; round == 0 && i-- > 0;) {
        loop_free(loop, loop->sums[i]);
    }
    loop_begin(loop, "train");
    for (size_t i = 0; i < LOOP_LAYERS; i++) {
        loop->sums[i] =
            loop_make(loop, "own", is_described ? CAPU_GRADIENT : CAPU_KIND_UNKNOWN, bytes);
    }
    loop_train(loop);
    if (loop->idiom->way == 1) {
        loop_end(loop);
    }
    for (size_t i = LOOP_LAYERS; (round + 1 < LOOP_ROUNDS || !is_described) && i-- > 0;) {
        loop_free(loop, loop->sums[i]);
    }
    if (loop->idiom->way != 1) {
        loop_end(loop);
    }
}

/* Puts all weights into one allocation; with way 1 they share pages. */
static void blobs(struct loop *loop, size_t round)
{
    size_t bytes = PAGES(WEIGHT_PAGES) + 512 * loop->idiom->way;

    if (round == 0) {
        struct buffer *parts;

        loop->extra[0] = loop_make(loop, "blob", CAPU_KIND_UNKNOWN, LOOP_LAYERS * bytes);
        parts = buffers_split(&loop->buffers, loop->extra[0], LOOP_LAYERS, "part", CAPU_PARAMETER,
                              CAPU_LIFETIME_DEFAULT);
        for (size_t i = 0; i < LOOP_LAYERS; i++) {
            loop_free(loop, loop->weights[i]);
            loop->weights[i] = &parts[i];
            loop_upload(loop, loop->weights[i], i);
        }
    }
    loop_begin(loop, "train");
    loop_train(loop);
    loop_end(loop);
}

/* Trains the parts of an allocation as one tensor, and splits it in the fifth iteration, between
   two iterations or inside one. */
static void late_split(struct loop *loop, size_t round)
{
    struct buffer *blob;

    if (round == 0) {
        loop->extra[0] = loop_make(loop, "blob", CAPU_PARAMETER, LOOP_LAYERS * PAGES(WEIGHT_PAGES));
        loop_upload(loop, loop->extra[0], 1);
    }
    blob = loop->extra[0];
    for (size_t way = 0; way < 2; way++) {
        if (way == 1) {
            loop_begin(loop, "train");
        }
        if (round == 4 && loop->idiom->way == way) {
            buffers_split(&loop->buffers, blob, LOOP_LAYERS, "part", CAPU_PARAMETER,
                          CAPU_LIFETIME_DEFAULT);
        }
    }
    loop_train(loop);
    if (blob->part_count > 0) {
        for (size_t i = 0; i < LOOP_LAYERS; i++) {
            loop_apply(loop, "learn", CAPU_UPDATE, &blob->parts[i], loop->sums[i], NULL, 0);
        }
    } else {
        loop_apply(loop, "learn", CAPU_UPDATE, blob, loop->sums[0], NULL, 0);
    }
    loop_end(loop);
}

/* Activations that are changed in place, and a workspace that every op uses. */
static void in_place(struct loop *loop, size_t round)
{
    (void)round;
    if (loop->extra[0] == NULL) {
        loop->extra[0] = loop_make(loop, "workspace", CAPU_WORKSPACE, PAGES(LAYER_PAGES));
    }
    loop_begin(loop, "train");
    loop_apply(loop, "batch", CAPU_WRITE, loop->layers[0], NULL, NULL, loop->now);
    for (size_t i = 0; i < LOOP_LAYERS; i++) {
        LOOP_OP(loop, "forward", i, {loop->extra[0], CAPU_SCRATCH}, {loop->layers[i], CAPU_READ},
                {loop->weights[i], CAPU_READ}, {loop->layers[i + 1], CAPU_WRITE});
        loop_apply(loop, "relu", CAPU_UPDATE, loop->layers[i + 1], NULL, NULL, 0);
    }
    loop_apply(loop, "loss", CAPU_UPDATE, loop->layers[LOOP_LAYERS], NULL, NULL, 0);
    for (size_t i = LOOP_LAYERS; i-- > 0;) {
        LOOP_OP(loop, "gradient", i, {loop->extra[0], CAPU_SCRATCH},
                {loop->layers[i + 1], CAPU_READ}, {loop->layers[i], CAPU_READ},
                {loop->sums[i], CAPU_WRITE});
        /* The activation becomes the gradient of the layer below. */
        loop_apply(loop, "backward", CAPU_UPDATE, loop->layers[i], loop->layers[i + 1],
                   loop->weights[i], 0);
    }
    loop_optimize(loop);
    loop_end(loop);
}

/* Describes a tensor as persistent when it has been transient for five iterations: before its first
   use in an iteration, after its last, or even after an update of what it was made from. From then
   on it is carried over. If the call says that it is too late, the program starts anew. */
static void persistent_late(struct loop *loop, size_t round)
{
    enum { BEFORE, AFTER, TOO_LATE };
    uint32_t way = loop->idiom->way;
    bool is_due = round == 5;
    struct buffer *source = way == TOO_LATE ? loop->weights[0] : NULL;
    struct buffer *carried;

    if (round == 0) {
        loop->extra[0] = loop_make(loop, "carried", CAPU_ACTIVATION, PAGES(LAYER_PAGES));
    }
    carried = loop->extra[0];
    loop_begin(loop, "train");
    if (is_due && way == BEFORE) {
        buffers_describe(&loop->buffers, carried, CAPU_ACTIVATION, CAPU_PERSISTENT);
    }
    loop_apply(loop, "carry", loop->is_carried ? CAPU_UPDATE : CAPU_WRITE, carried, source, NULL,
               loop->now);
    loop->is_carried = loop->is_carried || round > 5 || (is_due && way == BEFORE);
    loop_train(loop);
    if (is_due && way != BEFORE) {
        loop->is_carried =
            buffers_describe(&loop->buffers, carried, CAPU_ACTIVATION, CAPU_PERSISTENT);
    }
    loop_end(loop);
}

/* Activations that live inside the iteration, so that others take their place. In some iterations
   they are looked at once more before they are freed. */
static void freed_inside(struct loop *loop, size_t round)
{
    bool looks = round % 4 == 3;

    loop_begin(loop, "train");
    loop_train(loop);
    for (size_t i = 0; i < 2; i++) {
        struct buffer *own = loop_make(loop, "own", CAPU_ACTIVATION, PAGES(LAYER_PAGES + i));

        loop_apply(loop, "own", CAPU_WRITE, own, loop->weights[0], NULL, loop->now);
        loop_apply(loop, "use", CAPU_WRITE, loop->layers[i], own, NULL, 0);
        loop_apply(loop, "learn", CAPU_UPDATE, loop->weights[i], loop->layers[i], NULL, 0);
        if (looks) {
            loop_check(loop, own);
        }
        loop_free(loop, own);
    }
    if (looks) {
        loop_check(loop, loop->layers[0]);
    }
    loop_end(loop);
}

const struct idiom idioms_memory[] = {
    {"last batch", last_batch, "train", 0, 0, 0},
    {"gradients freed in iterations", set_to_none, "train", 0, 0, 0},
    {"gradients freed between", set_to_none, "train", 1, 0, 0},
    {"gradients freed, not described", set_to_none, "train", 2, 0, 0},
    {"blob", blobs, "train", 0, 0, 0},
    {"blob, shared pages", blobs, "train", 1, 0, 0},
    {"split between", late_split, "train", 0, 0, 0},
    {"split inside", late_split, "train", 1, 0, 0},
    {"in place", in_place, "train", 0, 0, 0},
    {"persistent late, before", persistent_late, "train", 0, 0, 0},
    {"persistent late, after", persistent_late, "train", 1, 0, 0},
    {"persistent too late", persistent_late, "train", 2, 0, 0},
    {"freed inside", freed_inside, "train", 0, 0, 0},
    {.name = NULL},
};

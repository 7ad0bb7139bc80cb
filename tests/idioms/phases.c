/* Programs that do more than train: they evaluate, sample, save and log. */
#include "tests/idioms/idioms.h"

/* Where training does not wait for plans, so many iterations follow several in turn. */
enum { STAGED_ROUNDS = 60 };

static void plain(struct loop *loop, size_t round)
{
    (void)round;
    loop_begin(loop, "train");
    loop_train(loop);
    loop_end(loop);
}

/* Sometimes runs only forward: as an iteration, outside of any, or as an iteration with the label
   of training. Looks at all layers after the last. */
static void evaluation(struct loop *loop, size_t round)
{
    loop_begin(loop, "train");
    loop_train(loop);
    loop_end(loop);
    if (round % 3 != 1) {
        return;
    }
    if (loop->idiom->way != 1) {
        loop_begin(loop, "evaluate");
    }
    loop_forward(loop, LOOP_LAYERS);
    for (size_t i = 0; i <= LOOP_LAYERS; i++) {
        loop_check(loop, loop->layers[i]);
    }
    if (loop->idiom->way != 1) {
        loop_end(loop);
    }
}

/* Saves the state between iterations, and once restores an earlier one. */
static void checkpoints(struct loop *loop, size_t round)
{
    loop_begin(loop, "train");
    loop_train(loop);
    loop_end(loop);
    for (size_t i = 0; round % 3 == 1 && i < LOOP_LAYERS; i++) {
        loop_check(loop, loop->weights[i]);
        loop_check(loop, loop->moments[i]);
    }
    for (size_t i = 0; round == 7 && i < LOOP_LAYERS; i++) {
        loop_upload(loop, loop->weights[i], i);
        loop_upload(loop, loop->moments[i], i + 1);
    }
}

/* Uploads the batches, so that nothing computed from them can be recomputed. */
static void uploaded_batches(struct loop *loop, size_t round)
{
    bool trains = round % 4 != 2;

    loop_begin(loop, trains ? "train" : "evaluate");
    loop_upload(loop, loop->layers[0], round);
    for (size_t i = 0; i < LOOP_LAYERS; i++) {
        loop_apply(loop, "forward", CAPU_WRITE, loop->layers[i + 1], loop->layers[i],
                   loop->weights[i], round);
    }
    if (trains) {
        loop_backward(loop, CAPU_WRITE);
        loop_optimize(loop);
    } else {
        loop_check(loop, loop->layers[LOOP_LAYERS]);
    }
    loop_end(loop);
}

/* Reads the output of the last layer in each iteration, after each, or after some. */
static void logits(struct loop *loop, size_t round)
{
    struct buffer *last = loop->layers[LOOP_LAYERS];

    if (round == 0 && loop->idiom->way > 0) {
        buffers_describe(&loop->buffers, last, CAPU_ACTIVATION, CAPU_PERSISTENT);
    }
    loop_begin(loop, "train");
    loop_train(loop);
    if (loop->idiom->way == 0) {
        loop_check(loop, last);
    }
    loop_end(loop);
    if (loop->idiom->way == 1 || (loop->idiom->way == 2 && round % 4 == 3)) {
        loop_check(loop, last);
    }
}

/* Downloads everything that must survive, inside every third iteration. */
static void snapshots(struct loop *loop, size_t round)
{
    loop_begin(loop, "train");
    loop_train(loop);
    for (size_t i = 0; round % 3 == 2 && i < LOOP_LAYERS; i++) {
        loop_check(loop, loop->weights[i]);
        loop_check(loop, loop->moments[i]);
        loop_check(loop, loop->sums[i]);
    }
    loop_end(loop);
}

/* Generates a sequence between two iterations: each step reads what all earlier ones left. */
static void sampling(struct loop *loop, size_t round)
{
    loop_begin(loop, "train");
    loop_train(loop);
    loop_end(loop);
    if (round % 3 != 2) {
        return;
    }
    if (loop->idiom->way == 1) {
        loop_begin(loop, "sample");
    }
    loop_apply(loop, "prompt", CAPU_WRITE, loop->layers[0], NULL, NULL, round);
    for (size_t i = 0; i < LOOP_LAYERS; i++) {
        for (size_t earlier = 0; earlier <= i; earlier++) {
            loop_apply(loop, "attend", earlier == 0 ? CAPU_WRITE : CAPU_UPDATE, loop->layers[i + 1],
                       loop->layers[earlier], loop->weights[i], 0);
        }
        loop_check(loop, loop->layers[i + 1]);
    }
    if (loop->idiom->way == 1) {
        loop_end(loop);
    }
}

/* Two networks that train against each other: layers 0 and 1 generate, 2 and 3 judge. */
static void judge(struct loop *loop, struct buffer *from, uint64_t by)
{
    loop_apply(loop, "judge", CAPU_WRITE, loop->layers[3], from, loop->weights[2], by);
    loop_apply(loop, "judge", CAPU_WRITE, loop->layers[4], loop->layers[3], loop->weights[3], by);
    loop_apply(loop, "loss", CAPU_WRITE, loop->deltas[0], loop->layers[4], NULL, by);
}

static void learn(struct loop *loop, size_t layer, struct buffer *layer_input, struct buffer *delta)
{
    loop_apply(loop, "gradient", CAPU_WRITE, loop->sums[layer], layer_input, delta, 0);
    loop_apply(loop, "learn", CAPU_UPDATE, loop->weights[layer], loop->sums[layer], loop->rate, 0);
}

static void gan(struct loop *loop, size_t round)
{
    bool trains_judge = round % 3 < 2;

    loop_begin(loop, trains_judge ? "judge" : "generate");
    loop_apply(loop, "noise", CAPU_WRITE, loop->layers[0], NULL, NULL, loop->now);
    for (size_t i = 0; i < 2; i++) {
        loop_apply(loop, "generate", CAPU_WRITE, loop->layers[i + 1], loop->layers[i],
                   loop->weights[i], 0);
    }
    judge(loop, loop->layers[2], 0);
    if (trains_judge) {
        learn(loop, 3, loop->layers[3], loop->deltas[0]);
        loop_upload(loop, loop->layers[0], round); /* a real picture */
        judge(loop, loop->layers[0], 1);
        learn(loop, 2, loop->layers[0], loop->deltas[0]);
    } else {
        loop_apply(loop, "backward", CAPU_WRITE, loop->deltas[1], loop->deltas[0], loop->weights[3],
                   0);
        loop_apply(loop, "backward", CAPU_WRITE, loop->deltas[0], loop->deltas[1], loop->weights[2],
                   0);
        learn(loop, 1, loop->layers[1], loop->deltas[0]);
        learn(loop, 0, loop->layers[0], loop->deltas[0]);
    }
    loop_end(loop);
}

/* Two halves of a network are trained in turn. Each reads layers that the other does not. */
static void two_halves(struct loop *loop, size_t round)
{
    size_t own = round % 2 * 2;

    loop_begin(loop, own == 0 ? "first" : "second");
    loop_forward(loop, LOOP_LAYERS);
    for (size_t i = own; i < own + 2; i++) {
        loop_apply(loop, "learn", CAPU_UPDATE, loop->weights[i], loop->layers[i],
                   loop->layers[LOOP_LAYERS], 1);
    }
    loop_end(loop);
}

/* Reinforcement learning: plays and remembers what happened, then learns from a drawn memory. The
   network that gives the targets is a copy, refreshed in every fourth iteration. */
static void replay_buffer(struct loop *loop, size_t round)
{
    enum { MEMORIES = 6 };
    struct buffer *memories;
    struct buffer *goal = loop->extra[1];

    if (round == 0) {
        loop->extra[0] =
            loop_make(loop, "memories", CAPU_KIND_UNKNOWN, MEMORIES * PAGES(LAYER_PAGES));
        buffers_split(&loop->buffers, loop->extra[0], MEMORIES, "memory", CAPU_KIND_UNKNOWN,
                      CAPU_LIFETIME_DEFAULT);
        goal = loop->extra[1] = loop_make(loop, "goal", CAPU_PARAMETER, PAGES(WEIGHT_PAGES));
        loop_copy(loop, goal, loop->weights[0]);
    }
    memories = loop->extra[0]->parts;
    loop_begin(loop, "play");
    loop_forward(loop, LOOP_LAYERS);
    loop_check(loop, loop->layers[LOOP_LAYERS]);
    loop_copy(loop, &memories[round % MEMORIES], loop->layers[LOOP_LAYERS]);
    loop_end(loop);
    if (round < 2) {
        return;
    }
    loop_begin(loop, "learn");
    loop_copy(loop, loop->layers[0],
              &memories[loop_draw(loop, round < MEMORIES ? round : MEMORIES)]);
    loop_apply(loop, "goal", CAPU_WRITE, loop->deltas[1], loop->layers[0], goal, 0);
    for (size_t i = 0; i < LOOP_LAYERS; i++) {
        loop_apply(loop, "forward", CAPU_WRITE, loop->layers[i + 1], loop->layers[i],
                   loop->weights[i], 0);
    }
    loop_backward(loop, CAPU_WRITE);
    loop_optimize(loop);
    if (round % 4 == 3) {
        loop_copy(loop, goal, loop->weights[0]);
    }
    loop_end(loop);
}

const struct idiom idioms_phases[] = {
    {"evaluation", evaluation, "", 0, 0, 0},
    {"evaluation, no label", evaluation, NULL, 0, 0, 0},
    {"evaluation outside", evaluation, "train", 1, 0, 0},
    {"checkpoints", checkpoints, "train", 0, 0, 0},
    {"uploaded batches", uploaded_batches, "", 0, 0, 0},
    {"logits inside", logits, "train", 0, 0, 0},
    {"logits after each", logits, "train", 1, 0, 0},
    {"logits after some", logits, "train", 2, 0, 0},
    {"plain", plain, "train", 0, 0, 0},
    {"plain, no label", plain, NULL, 0, 0, 0},
    {"plans in stages", plain, "train", 0, 0, STAGED_ROUNDS},
    {"plans of two labels in stages", evaluation, "", 0, 0, STAGED_ROUNDS},
    {"evaluation, same label", evaluation, "train", 2, 0, 0},
    {"snapshots", snapshots, "train", 0, KEEPS_SUMS, 0},
    {"snapshots, transient", snapshots, "train", 0, 0, 0},
    {"sampling", sampling, "", 1, 0, 0},
    {"sampling outside", sampling, "train", 0, 0, 0},
    {"gan", gan, "", 0, 0, 0},
    {"gan, no label", gan, NULL, 0, 0, 0},
    {"two halves", two_halves, "", 0, 0, 0},
    {"two halves, no label", two_halves, NULL, 0, 0, 0},
    {"replay buffer", replay_buffer, "", 0, NEVER_GUIDED, 0},
    {"replay buffer, no label", replay_buffer, NULL, 0, NEVER_GUIDED, 0},
    {.name = NULL},
};

/*
 * Guided mode with loops whose iterations differ: sums that are zeroed in some iterations, state
 * that appears late, copies, early ends. Every loop runs with every planner, in budgets from tight
 * to comfortable, and each byte that outlives the loop is compared with plain arrays.
 */
#include "tests/api/loop.h"

#include "tests/support/effort.h"

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

enum { ZERO_FIRST, ZERO_LAST, ZERO_BETWEEN, CLEAR_FIRST, CLEAR_LAST, WRITE_FIRST, WRITE_CLEARED };

/* Sums gradients over three iterations; the optimizer runs in every third. */
static void accumulate(struct loop *loop, size_t round)
{
    static const char *const phases[] = {"first", "more", "last"};
    static void (*const clear[])(struct loop *, struct buffer *) = {
        [ZERO_FIRST] = loop_zero,    [ZERO_LAST] = loop_zero,    [ZERO_BETWEEN] = loop_zero,
        [CLEAR_FIRST] = clear_by_op, [CLEAR_LAST] = clear_by_op, [WRITE_CLEARED] = NULL,
    };
    uint32_t way = loop->pattern->way;
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
        role = way == WRITE_FIRST ? CAPU_WRITE : CAPU_WRITE_CLEARED;
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

/* Allocates the optimizer's state in the third iteration, the first that needs it. */
static void lazy_state(struct loop *loop, size_t round)
{
    loop_begin(loop, "train");
    loop_forward(loop, LOOP_LAYERS);
    loop_backward(loop, CAPU_WRITE);
    if (round == 2) {
        for (size_t i = 0; i < LOOP_LAYERS; i++) {
            loop->extra[i] = loop_make(loop, "late", CAPU_OPTIMIZER, CAPU_LIFETIME_DEFAULT,
                                       loop->weights[i]->bytes);
            if (loop->pattern->way == 1) {
                clear_by_op(loop, loop->extra[i]);
            } else if (loop->pattern->way == 2) {
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
    if (loop->pattern->way == 0) {
        loop_upload(loop, loop->rate, round);
    }
    loop_begin(loop, "train");
    if (loop->pattern->way == 1) {
        loop_upload(loop, loop->rate, round);
    }
    loop_forward(loop, LOOP_LAYERS);
    loop_backward(loop, CAPU_WRITE);
    if (loop->pattern->way == 2) {
        loop_upload(loop, loop->rate, round);
    }
    loop_optimize(loop);
    loop_end(loop);
}

static void make_extra(struct loop *loop, capu_kind kind)
{
    for (size_t i = 0; i < LOOP_LAYERS; i++) {
        loop->extra[i] =
            loop_make(loop, "extra", kind, CAPU_LIFETIME_DEFAULT, loop->weights[i]->bytes);
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
        if (loop->pattern->way == 0) {
            loop_apply(loop, "average", CAPU_UPDATE, loop->extra[i], loop->weights[i], NULL, 0);
        } else if (loop->pattern->way == 1) {
            loop_copy(loop, loop->extra[i], loop->weights[i]);
        }
    }
    loop_end(loop);
    for (size_t i = 0; is_due && loop->pattern->way == 2 && i < LOOP_LAYERS; i++) {
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

/* Sometimes runs only forward, as an iteration or outside of any. */
static void evaluation(struct loop *loop, size_t round)
{
    loop_begin(loop, "train");
    loop_train(loop);
    loop_end(loop);
    if (round % 3 != 1) {
        return;
    }
    if (loop->pattern->way == 0) {
        loop_begin(loop, "evaluate");
    }
    loop_forward(loop, LOOP_LAYERS);
    loop_check(loop, loop->layers[LOOP_LAYERS]);
    if (loop->pattern->way == 0) {
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

/* The same with sums that start at zero: cleared by an op at the start of each iteration, or by
   capu_zero at its end. */
static void skips_of_sums(struct loop *loop, size_t round)
{
    if (round == 0) {
        each_sum(loop, loop_zero);
    }
    loop_begin(loop, "train");
    if (loop->pattern->way == CLEAR_FIRST) {
        each_sum(loop, clear_by_op);
    }
    loop_forward(loop, LOOP_LAYERS);
    loop_backward(loop, CAPU_UPDATE);
    if (round % 5 != 2) {
        loop_optimize(loop);
    }
    if (loop->pattern->way == ZERO_LAST) {
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

/* Allocates activations inside the iteration; every fourth iteration has smaller ones. */
static void last_batch(struct loop *loop, size_t round)
{
    size_t bytes = PAGES(round % 4 == 3 ? LAYER_PAGES / 2 : LAYER_PAGES);
    struct buffer *kept[LOOP_LAYERS + 1];

    memcpy(kept, loop->layers, sizeof(kept));
    loop_begin(loop, "train");
    for (size_t i = 0; i <= LOOP_LAYERS; i++) {
        loop->layers[i] = loop_make(loop, "own", CAPU_ACTIVATION, CAPU_LIFETIME_DEFAULT, bytes);
    }
    loop_train(loop);
    for (size_t i = LOOP_LAYERS + 1; i-- > 0;) {
        loop_drop(loop, loop->layers[i]); /* the newest first */
    }
    memcpy(loop->layers, kept, sizeof(kept));
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

/* Two buffers that swap roles: each iteration reads what the last one wrote. */
static void ping_pong(struct loop *loop, size_t round)
{
    static const char *const phases[] = {"ping", "pong"};
    struct buffer *from;
    struct buffer *to;

    if (round == 0) {
        make_extra(loop, loop->pattern->way == 0 ? CAPU_PARAMETER : CAPU_KIND_UNKNOWN);
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

/* Allocates the gradients in each iteration, and frees them in the iteration or after it. */
static void set_to_none(struct loop *loop, size_t round)
{
    if (round == 0) {
        for (size_t i = LOOP_LAYERS; i-- > 0;) {
            LOOP_OK(loop, capu_free(loop->rig.context, loop->sums[i]->address));
        }
    }
    loop_begin(loop, "train");
    for (size_t i = 0; i < LOOP_LAYERS; i++) {
        void *address = NULL;

        LOOP_OK(loop, capu_malloc(loop->rig.context, loop->sums[i]->bytes, &address));
        loop->sums[i]->address = address;
        loop->sums[i]->outlives = false;
        if (loop->pattern->way != 2) {
            LOOP_OK(loop, CAPU_DESCRIBE(loop->rig.context, address, .kind = CAPU_GRADIENT));
        }
    }
    loop_train(loop);
    if (loop->pattern->way == 1) {
        loop_end(loop);
    }
    for (size_t i = LOOP_LAYERS; round + 1 < LOOP_ROUNDS && i-- > 0;) {
        LOOP_OK(loop, capu_free(loop->rig.context, loop->sums[i]->address));
    }
    if (loop->pattern->way != 1) {
        loop_end(loop);
    }
}

/* Puts all weights into one allocation. */
static void blobs(struct loop *loop, size_t round)
{
    size_t bytes = loop->weights[0]->bytes + 512 * loop->pattern->way;

    if (round == 0) {
        unsigned char *blob = step_malloc(&loop->rig, LOOP_LAYERS * bytes);

        for (size_t i = 0; i < LOOP_LAYERS; i++) {
            struct buffer *part = loop->weights[i];

            LOOP_OK(loop, capu_free(loop->rig.context, part->address));
            part->address = blob + i * bytes;
            part->bytes = bytes;
            free(part->expected);
            part->expected = calloc(1, bytes);
            LOOP_OK(loop, capu_split(loop->rig.context, part->address, bytes));
            LOOP_OK(loop, CAPU_DESCRIBE(loop->rig.context, part->address, .name = "part",
                                        .kind = CAPU_PARAMETER));
            loop_upload(loop, part, i);
        }
    }
    loop_begin(loop, "train");
    loop_train(loop);
    loop_end(loop);
}

/* Reads the output of the last layer in each iteration, after each, or after some. */
static void logits(struct loop *loop, size_t round)
{
    struct buffer *last = loop->layers[LOOP_LAYERS];

    if (round == 0 && loop->pattern->way > 0) {
        LOOP_OK(loop, CAPU_DESCRIBE(loop->rig.context, last->address, .kind = CAPU_ACTIVATION,
                                    .lifetime = CAPU_PERSISTENT));
    }
    loop_begin(loop, "train");
    loop_train(loop);
    if (loop->pattern->way == 0) {
        loop_check(loop, last);
    }
    loop_end(loop);
    if (loop->pattern->way == 1 || (loop->pattern->way == 2 && round % 4 == 3)) {
        loop_check(loop, last);
    }
}

static const struct pattern patterns[] = {
    {"zeros first, no label", accumulate, NULL, ZERO_FIRST, KEEPS_SUMS},
    {"zeros first", accumulate, "", ZERO_FIRST, KEEPS_SUMS},
    {"zeros last, no label", accumulate, NULL, ZERO_LAST, KEEPS_SUMS},
    {"zeros last", accumulate, "", ZERO_LAST, KEEPS_SUMS},
    {"zeros between, no label", accumulate, NULL, ZERO_BETWEEN, KEEPS_SUMS},
    {"zeros between", accumulate, "", ZERO_BETWEEN, KEEPS_SUMS},
    {"clear first, no label", accumulate, NULL, CLEAR_FIRST, KEEPS_SUMS},
    {"clear first", accumulate, "", CLEAR_FIRST, KEEPS_SUMS},
    {"clear last, no label", accumulate, NULL, CLEAR_LAST, KEEPS_SUMS},
    {"clear last", accumulate, "", CLEAR_LAST, KEEPS_SUMS},
    {"write first, no label", accumulate, NULL, WRITE_FIRST, KEEPS_SUMS},
    {"write first", accumulate, "", WRITE_FIRST, KEEPS_SUMS},
    {"write cleared, no label", accumulate, NULL, WRITE_CLEARED, KEEPS_SUMS},
    {"write cleared", accumulate, "", WRITE_CLEARED, KEEPS_SUMS},
    {"late state, clear fresh", lazy_state, "train", 0, KEEPS_SUMS | CLEARS_FRESH},
    {"late state, by an op", lazy_state, "train", 1, KEEPS_SUMS},
    {"late state, zeros", lazy_state, NULL, 2, KEEPS_SUMS},
    {"rate before", uploads, "train", 0, 0},
    {"rate first", uploads, "train", 1, 0},
    {"rate later", uploads, "train", 2, 0},
    {"average, no label", averages, NULL, 0, 0},
    {"average", averages, "", 0, 0},
    {"copy, no label", averages, NULL, 1, 0},
    {"copy", averages, "", 1, 0},
    {"copy between", averages, "train", 2, 0},
    {"teacher", teacher, "train", 0, 0},
    {"evaluation", evaluation, "", 0, 0},
    {"evaluation, no label", evaluation, NULL, 0, 0},
    {"evaluation outside", evaluation, "train", 1, 0},
    {"checkpoints", checkpoints, "train", 0, 0},
    {"skipped updates", skips, "train", 0, KEEPS_SUMS},
    {"skipped updates, cleared sums", skips_of_sums, "train", CLEAR_FIRST, KEEPS_SUMS},
    {"skipped updates, zeroed sums", skips_of_sums, "train", ZERO_LAST, KEEPS_SUMS},
    {"norms", norms, "train", 0, KEEPS_SUMS},
    {"uploaded batches", uploaded_batches, "", 0, 0},
    {"last batch", last_batch, "train", 0, 0},
    {"early ends", early_ends, "train", 0, 0},
    {"frozen layers", freezing, "train", 0, 0},
    {"tied weights", tied, "train", 0, 0},
    {"ping pong, no label", ping_pong, NULL, 0, 0},
    {"ping pong", ping_pong, "", 0, 0},
    {"ping pong, not described", ping_pong, NULL, 1, 0},
    {"gradients freed in iterations", set_to_none, "train", 0, 0},
    {"gradients freed between", set_to_none, "train", 1, 0},
    {"gradients freed, not described", set_to_none, "train", 2, 0},
    {"blob", blobs, "train", 0, 0},
    {"blob, shared pages", blobs, "train", 1, 0},
    {"logits inside", logits, "train", 0, 0},
    {"logits after each", logits, "train", 1, 0},
    {"logits after some", logits, "train", 2, 0},
};

static const char *const planners[] = {"hybrid", "capuchin",   "swap", "recompute", "lru",
                                       "dtr",    "checkpoint", "vdnn", "speed"};
static const uint64_t budgets[] = {15, 24, 60};

enum {
    PLANNERS = sizeof(planners) / sizeof(planners[0]),
    BUDGETS = sizeof(budgets) / sizeof(budgets[0]),
    PATTERNS = sizeof(patterns) / sizeof(patterns[0]),
    /* Of twelve iterations; a pattern that changes has to be learnt first. */
    LEAST_GUIDED = 6
};

/* A quarter of the loops runs in strict mode, spread over planners and budgets. In the largest
   budget everything fits and the planners hardly differ, so one planner is enough. */
/* A sample gives each pattern a few of the planners, and each planner a few of the patterns. */
static bool is_sampled(size_t pattern, size_t planner)
{
    uint64_t distance = 100 / effort_percent();

    return (pattern + planner) % (distance < PLANNERS ? distance : PLANNERS) == 0;
}

START_TEST(every_byte_is_right)
{
    static struct loop loop;

    if (!is_sampled(_i / PLANNERS, _i % PLANNERS)) {
        return;
    }
    for (size_t i = 0; i < BUDGETS - (_i % PLANNERS > 0); i++) {
        loop = (struct loop){.pattern = &patterns[_i / PLANNERS],
                             .planner = planners[_i % PLANNERS],
                             .budget = budgets[i],
                             .is_strict = ((size_t)_i + i) % 4 == 0};
        loop_init(&loop);
        loop_run(&loop);
        ck_assert_msg(loop.guided >= LEAST_GUIDED || loop.unplanned > 0,
                      "%s, %s in %u pages: %u iterations were guided", loop.pattern->name,
                      loop.planner, (unsigned)loop.budget, (unsigned)loop.guided);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("patterns");
    TCase *cases = tcase_create("patterns");

    tcase_add_loop_test(cases, every_byte_is_right, 0, PATTERNS * PLANNERS);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}

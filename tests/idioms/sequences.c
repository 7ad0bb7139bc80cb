/* Programs whose shape is drawn or changes: sequences, experts, many labels. */
#include "tests/idioms/idioms.h"

enum { LONGEST = 6 };

/* Runs a recurrent network over `length` steps and back. Its state is carried from one iteration to
   the next. */
static void unroll(struct loop *loop, size_t length, uint64_t batch)
{
    struct buffer **states = loop->extra;
    struct buffer *carried = loop->extra[LONGEST];
    struct buffer *from = carried;

    if (carried == NULL) {
        for (size_t i = 0; i < LONGEST; i++) {
            states[i] = loop_make(loop, "state", CAPU_ACTIVATION, PAGES(LAYER_PAGES));
        }
        carried = from = loop->extra[LONGEST] =
            loop_make(loop, "carried", CAPU_OPTIMIZER, PAGES(LAYER_PAGES));
        loop_zero(loop, carried);
    }
    loop_upload(loop, loop->layers[0], batch);
    for (size_t i = 0; i < length; i++) {
        LOOP_OP(loop, "cell", i, {from, CAPU_READ}, {loop->layers[0], CAPU_READ},
                {loop->weights[0], CAPU_READ}, {states[i], CAPU_WRITE});
        from = states[i];
    }
    loop_apply(loop, "loss", CAPU_WRITE, loop->deltas[0], from, loop->weights[1], 0);
    for (size_t i = length; i-- > 0;) {
        loop_apply(loop, "gradient", i + 1 == length ? CAPU_WRITE : CAPU_UPDATE, loop->sums[0],
                   i > 0 ? states[i - 1] : carried, loop->deltas[(length - 1 - i) % 2], 0);
        loop_apply(loop, "backward", CAPU_WRITE, loop->deltas[(length - i) % 2],
                   loop->deltas[(length - 1 - i) % 2], loop->weights[0], 0);
    }
    loop_copy(loop, carried, states[length - 1]);
    loop_apply(loop, "learn", CAPU_UPDATE, loop->weights[0], loop->sums[0], loop->rate, 0);
    loop_apply(loop, "learn", CAPU_UPDATE, loop->weights[1], loop->deltas[0], loop->rate, 0);
}

/* Truncated backpropagation through time. */
static void truncated(struct loop *loop, size_t round)
{
    loop_begin(loop, "train");
    unroll(loop, 4, round);
    loop_end(loop);
}

static const char *const labels[] = {"1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12"};
enum { LABELS = sizeof(labels) / sizeof(labels[0]) };

/* Sequences of drawn length, with a label per length or with one label. */
static void drawn_lengths(struct loop *loop, size_t round)
{
    size_t length = 2 + loop_draw(loop, LONGEST - 1);

    loop_begin(loop, labels[length - 1]);
    unroll(loop, length, round);
    loop_end(loop);
}

/* More labels than eight in turn: batches of as many sizes, allocated inside the iteration. */
static void many_labels(struct loop *loop, size_t round)
{
    size_t shape = round % LABELS;
    struct buffer *kept[LOOP_LAYERS + 1];

    memcpy(kept, loop->layers, sizeof(kept));
    loop_begin(loop, labels[shape]);
    for (size_t i = 0; i <= LOOP_LAYERS; i++) {
        loop->layers[i] = loop_make(loop, "own", CAPU_ACTIVATION, PAGES(LAYER_PAGES) - 256 * shape);
    }
    loop_train(loop);
    for (size_t i = LOOP_LAYERS + 1; i-- > 0;) {
        loop_free(loop, loop->layers[i]);
    }
    memcpy(loop->layers, kept, sizeof(kept));
    loop_end(loop);
}

/* Mixture of experts: two drawn experts compute and learn. */
static void experts(struct loop *loop, size_t round)
{
    enum { EXPERTS = 6 };
    struct buffer **all = loop->extra;
    struct buffer *chosen[2];

    for (size_t i = 0; round == 0 && i < EXPERTS; i++) {
        all[i] = loop_make(loop, "expert", CAPU_PARAMETER, PAGES(WEIGHT_PAGES));
        loop_upload(loop, all[i], i);
    }
    for (size_t i = 0; i < 2; i++) {
        chosen[i] = all[2 * loop_draw(loop, EXPERTS / 2) + i];
    }
    loop_begin(loop, "train");
    loop_upload(loop, loop->layers[0], round);
    loop_apply(loop, "router", CAPU_WRITE, loop->layers[1], loop->layers[0], loop->weights[0], 0);
    for (size_t i = 0; i < 2; i++) {
        loop_apply(loop, "expert", CAPU_WRITE, loop->layers[2 + i], loop->layers[1], chosen[i], 0);
    }
    loop_apply(loop, "gather", CAPU_WRITE, loop->layers[4], loop->layers[2], loop->layers[3], 0);
    loop_apply(loop, "loss", CAPU_WRITE, loop->deltas[0], loop->layers[4], NULL, 0);
    for (size_t i = 0; i < 2; i++) {
        loop_apply(loop, "gradient", CAPU_WRITE, loop->sums[1 + i], loop->deltas[0],
                   loop->layers[1], 0);
    }
    loop_apply(loop, "gradient", CAPU_WRITE, loop->sums[0], loop->deltas[0], loop->layers[0], 0);
    for (size_t i = 0; i < 2; i++) {
        loop_apply(loop, "learn", CAPU_UPDATE, chosen[i], loop->sums[1 + i], loop->rate, 0);
    }
    loop_apply(loop, "learn", CAPU_UPDATE, loop->weights[0], loop->sums[0], loop->rate, 0);
    loop_end(loop);
}

const struct idiom idioms_sequences[] = {
    {"truncated", truncated, "train", 0, 0, 0},
    {"drawn lengths", drawn_lengths, "train", 0, NEVER_GUIDED, 24},
    {"drawn lengths, a label each", drawn_lengths, "", 0, 0, 24},
    {"many labels", many_labels, "", 0, 0, 3 * LABELS},
    {"many shapes, no label", many_labels, NULL, 0, NEVER_GUIDED, 3 * LABELS},
    {"experts", experts, "train", 0, NEVER_GUIDED, 24},
    {.name = NULL},
};

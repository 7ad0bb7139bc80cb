/*
 * A small training loop, for tests of what becomes of loops whose iterations are not all alike.
 * What every op and call does to device memory is done to plain arrays as well.
 */
#ifndef CAPU_TESTS_API_LOOP_H
#define CAPU_TESTS_API_LOOP_H

#include "tests/api/steps.h"

enum {
    LOOP_LAYERS = 4,
    LOOP_ROUNDS = 12,
    WEIGHT_PAGES = 2,
    LAYER_PAGES = 4,
    SMALL_BYTES = 128,
    LOOP_BUFFERS = 48
};

/* Device memory, and what should be in it. */
struct buffer {
    unsigned char *address;
    size_t bytes;
    uint64_t *expected;
    bool outlives; /* checked when the loop is over */
};

struct loop;

struct pattern {
    const char *name;
    void (*round)(struct loop *loop, size_t round);
    const char *label; /* of its iterations; "": by their phase */
    uint32_t way;      /* what it means is the pattern's */
    uint32_t flags;    /* enum loop_flag */
};

enum loop_flag {
    KEEPS_SUMS = 1, /* over iterations, else gradients are transient */
    CLEARS_FRESH = 2
};

struct loop {
    struct rig rig;
    const struct pattern *pattern;
    const char *planner;
    uint64_t budget; /* in pages */
    bool is_strict;
    size_t now; /* the iteration, from 1 */

    struct buffer buffers[LOOP_BUFFERS];
    size_t buffer_count;
    struct buffer *weights[LOOP_LAYERS];
    struct buffer *sums[LOOP_LAYERS];
    struct buffer *moments[LOOP_LAYERS];
    struct buffer *layers[LOOP_LAYERS + 1];
    struct buffer *deltas[2];
    struct buffer *rate;
    struct buffer *extra[LOOP_LAYERS]; /* the pattern's own */
    size_t frozen;                     /* layers below are not trained */
    size_t guided;                     /* iterations carried out to their end */
    size_t unplanned;                  /* iterations that no plan was found for */
};

#define LOOP_OK(loop_, call_)                                                              \
    do {                                                                                   \
        capu_status status_ = (call_);                                                     \
        ck_assert_msg(status_ == CAPU_OK, "%s, %s in %u pages, iteration %u: %s: %s: %s",  \
                      (loop_)->pattern->name, (loop_)->planner, (unsigned)(loop_)->budget, \
                      (unsigned)(loop_)->now, #call_, capu_status_name(status_),           \
                      capu_last_error((loop_)->rig.context));                              \
    } while (0)

/* What the pattern and the other fields that tell the loops apart ask for; they are set before. */
void loop_init(struct loop *loop);

/* All iterations, and the check of what outlives them. */
void loop_run(struct loop *loop);

/* Allocates. The newest buffer can be freed again. */
struct buffer *loop_make(struct loop *loop, const char *name, capu_kind kind,
                         capu_lifetime lifetime, size_t bytes);
void loop_drop(struct loop *loop, struct buffer *newest);

/* Runs an op that makes `to` of its old contents (update), up to two others and a number; half of
   it where the rest is cleared. */
void loop_apply(struct loop *loop, const char *name, capu_role role, struct buffer *to,
                const struct buffer *first, const struct buffer *second, uint64_t by);

void loop_zero(struct loop *loop, struct buffer *buffer);
void loop_copy(struct loop *loop, struct buffer *to, const struct buffer *from);
void loop_upload(struct loop *loop, struct buffer *buffer, uint64_t value);

/* Fails the test unless the buffer holds what it should. */
void loop_check(struct loop *loop, const struct buffer *buffer);

/* `phase`: the label where the pattern has its iterations labelled so. */
void loop_begin(struct loop *loop, const char *phase);
void loop_end(struct loop *loop);

/* The parts of training: a batch and so many layers; gradients into the sums; moments and weights.
   What forward drops by chance depends on the iteration, as the batch does. */
void loop_forward(struct loop *loop, size_t layers);
void loop_backward(struct loop *loop, capu_role role);
void loop_optimize(struct loop *loop);
void loop_train(struct loop *loop);

#endif

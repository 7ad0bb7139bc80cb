/*
 * A small training loop, for tests in which iterations differ from each other. Every op and call is
 * mirrored in plain arrays, which give the expected contents of device memory.
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

/* Device memory and its expected contents. */
struct buffer {
    unsigned char *address;
    size_t bytes;
    uint64_t *expected;
    bool outlives; /* persistent: checked after the loop */
};

struct loop;

struct pattern {
    const char *name;
    void (*round)(struct loop *loop, size_t round);
    const char *label; /* of its iterations; "": each uses its phase as the label */
    uint32_t way;      /* variant, with a meaning defined by the pattern */
    uint32_t flags;    /* enum loop_flag */
};

enum loop_flag {
    KEEPS_SUMS = 1, /* gradients are persistent instead of transient */
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
    struct buffer *extra[LOOP_LAYERS]; /* for use by the pattern */
    size_t frozen;                     /* layers below this one are not trained */
    size_t guided;                     /* iterations that followed a plan to the end */
    size_t unplanned;                  /* iterations for which no plan was found */
};

#define LOOP_OK(loop_, call_)                                                              \
    do {                                                                                   \
        capu_status status_ = (call_);                                                     \
        ck_assert_msg(status_ == CAPU_OK, "%s, %s in %u pages, iteration %u: %s: %s: %s",  \
                      (loop_)->pattern->name, (loop_)->planner, (unsigned)(loop_)->budget, \
                      (unsigned)(loop_)->now, #call_, capu_status_name(status_),           \
                      capu_last_error((loop_)->rig.context));                              \
    } while (0)

/* Creates the context and the buffers. Pre: pattern, planner, budget and is_strict are set. */
void loop_init(struct loop *loop);

/* All iterations, and the check of what outlives them. */
void loop_run(struct loop *loop);

/* Allocates and describes a buffer; only the newest buffer can be freed. */
struct buffer *loop_make(struct loop *loop, const char *name, capu_kind kind,
                         capu_lifetime lifetime, size_t bytes);
void loop_drop(struct loop *loop, struct buffer *newest);

/* Runs an op that computes `to` from its old contents (if the role is an update), up to two other
   buffers and a number. With CAPU_WRITE_CLEARED it writes only the first half. */
void loop_apply(struct loop *loop, const char *name, capu_role role, struct buffer *to,
                const struct buffer *first, const struct buffer *second, uint64_t by);

void loop_zero(struct loop *loop, struct buffer *buffer);
void loop_copy(struct loop *loop, struct buffer *to, const struct buffer *from);
void loop_upload(struct loop *loop, struct buffer *buffer, uint64_t value);

/* Fails the test unless the buffer has the expected contents. */
void loop_check(struct loop *loop, const struct buffer *buffer);

/* Begins an iteration. `phase` is its label if the pattern labels iterations by phase. */
void loop_begin(struct loop *loop, const char *phase);
void loop_end(struct loop *loop);

/* The phases of training. Forward makes a batch and the first `layers` layers, backward computes
   the gradients with the given role, and optimize updates moments and weights. The batch and the
   result of forward depend on the iteration, as with dropout. */
void loop_forward(struct loop *loop, size_t layers);
void loop_backward(struct loop *loop, capu_role role);
void loop_optimize(struct loop *loop);
void loop_train(struct loop *loop);

#endif

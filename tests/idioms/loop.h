/*
 * A small training loop, from which the programs of this room are made. It has a network of layers
 * with weights, gradients and moments; every tensor and op is mirrored (tests/support/buffers.h).
 * An idiom is a table entry: what one iteration does, given its number.
 */
#ifndef CAPU_TESTS_IDIOMS_LOOP_H
#define CAPU_TESTS_IDIOMS_LOOP_H

#include "tests/support/buffers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGES(count_) ((size_t)(count_) * (size_t)RIG_PAGE)

enum {
    LOOP_LAYERS = 4,
    LOOP_ROUNDS = 12,
    WEIGHT_PAGES = 2,
    LAYER_PAGES = 4,
    SMALL_BYTES = 128,
    LOOP_EXTRAS = 24
};

struct loop;

struct idiom {
    const char *name;
    void (*round)(struct loop *loop, size_t round);
    const char *label; /* of its iterations; "": each uses its phase as the label */
    uint32_t way;      /* variant, with a meaning defined by the idiom */
    uint32_t flags;    /* enum idiom_flag */
    size_t rounds;     /* 0: LOOP_ROUNDS */
};

enum idiom_flag {
    KEEPS_SUMS = 1,   /* gradients are persistent instead of transient */
    CLEARS_FRESH = 2, /* the context clears new memory */
    OWN_TENSORS = 4,  /* the program makes all of its tensors itself */
    NEVER_GUIDED = 8  /* its iterations cannot be predicted, or leave their plans */
};

/* How a program is run. */
struct loop_setting {
    capu_mode mode;
    uint64_t budget_pages;
    const char *planner; /* NULL: the default */
    bool waits;          /* for plans and, after each iteration, for its work */
    bool is_strict;
    bool keeps_contents; /* plans copy out what could not be recomputed */
};

struct loop {
    const struct idiom *idiom;
    struct loop_setting setting;
    struct rig rig;
    struct buffers buffers;
    char where[256]; /* the run and the iteration, for messages */
    size_t now;      /* the iteration, from 1 */
    uint64_t state;  /* of the random numbers */

    struct buffer *weights[LOOP_LAYERS];
    struct buffer *sums[LOOP_LAYERS];
    struct buffer *moments[LOOP_LAYERS];
    struct buffer *layers[LOOP_LAYERS + 1];
    struct buffer *deltas[2];
    struct buffer *rate;
    struct buffer *extra[LOOP_EXTRAS]; /* for use by the idiom */
    bool is_carried;                   /* for use by the idiom, too */
    size_t frozen;                     /* layers below this one are not trained */

    size_t guided;            /* iterations that followed a plan to the end */
    size_t unplanned;         /* iterations for which no plan was found */
    uint64_t live_peak_bytes; /* of all iterations */
    uint64_t floor_bytes;
};

/* All iterations of an idiom, and the check of what outlives them. The results are in `buffers` and
   the counters of *loop. */
void loop_run(struct loop *loop, const struct idiom *idiom, const struct loop_setting *setting);

/* The next random number below `below`; the same in all runs. */
uint64_t loop_draw(struct loop *loop, uint64_t below);

/* Shorthands for tests/support/buffers.h. */
struct buffer *loop_make(struct loop *loop, const char *name, capu_kind kind, size_t bytes);
void loop_free(struct loop *loop, struct buffer *buffer);
void loop_zero(struct loop *loop, struct buffer *buffer);
void loop_copy(struct loop *loop, struct buffer *to, struct buffer *from);
void loop_upload(struct loop *loop, struct buffer *buffer, uint64_t value);
uint64_t loop_check(struct loop *loop, struct buffer *buffer);

/* Runs an op on any number of buffers: LOOP_OP(loop, "add", 0, {a, CAPU_READ}, {b, CAPU_WRITE}). */
#define LOOP_OP(loop_, name_, by_, ...)                                                  \
    buffers_run(&(loop_)->buffers, name_, by_, (const struct buffer_use[]){__VA_ARGS__}, \
                sizeof((const struct buffer_use[]){__VA_ARGS__}) / sizeof(struct buffer_use))

/* The usual op: computes `to` from its old contents (if the role is an update), up to two other
   buffers and a number. */
void loop_apply(struct loop *loop, const char *name, capu_role role, struct buffer *to,
                struct buffer *first, struct buffer *second, uint64_t by);

/* Begins an iteration. `phase` is its label if the idiom labels iterations by phase. */
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

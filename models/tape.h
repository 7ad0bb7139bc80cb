/*
 * A tape turns a model that is written once, as a forward pass, into the trace of an iteration. It
 * works like automatic differentiation: layers add their forward ops and leave one step each, which
 * knows the backward pass of the layer. tape_finish_iteration walks the steps in reverse and adds
 * the updates of the parameters. So a model cannot have a backward pass that does not fit its
 * forward pass, and what is saved in between follows from the layers.
 *
 * Errors are sticky: after the first one every function does nothing, and the status is checked
 * once, at the end. That keeps models free of error handling.
 *
 * A ref names a tensor: its id in the trace plus one, so that 0 means none. Owned by one thread.
 */
#ifndef CAPU_MODELS_TAPE_H
#define CAPU_MODELS_TAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error_text.h"
#include "capuchin/status.h"
#include "models/hardware.h"
#include "policy/format/trace.h"

#define TAPE_NAME_MAX 64
#define TAPE_OPERANDS_MAX 8
#define TAPE_SAVED_MAX 8

enum phase { PHASE_FORWARD, PHASE_BACKWARD, PHASE_UPDATE };

enum optimizer { OPTIMIZER_MOMENTUM, OPTIMIZER_ADAM };

struct tape_options {
    enum dtype dtype;
    enum optimizer optimizer;
    bool updates_asap; /* update each parameter as soon as its gradient is complete, instead of at
                          the end */
};

/* What layers pass on: `rows` (samples or tokens) of channels x height x width elements. */
struct value {
    uint32_t ref;
    uint32_t gradient; /* ref of the sum that the backward pass has so far; 0: none yet */
    uint64_t rows;
    uint64_t channels;
    uint64_t height;
    uint64_t width;
    bool wants_gradient;
};

struct weight {
    uint32_t ref;
    uint32_t state;    /* of the optimizer */
    uint32_t gradient; /* 0: not yet */
    uint32_t uses;     /* in the forward pass whose backward ops are still to come */
    uint32_t layer;
    bool is_due; /* its gradient is complete, but the update has not been added */
    char name[TAPE_NAME_MAX];
};

struct tape;

/* A layer's part of the backward pass. Values and weights are indices. */
struct step {
    void (*backward)(struct tape *tape, const struct step *step);
    uint32_t in;
    uint32_t second;
    uint32_t out;
    uint32_t weight;
    uint32_t first_input; /* of several inputs: index into the tape's inputs */
    uint32_t input_count;
    uint32_t saved[TAPE_SAVED_MAX]; /* refs */
    double flops;                   /* of the forward pass */
    uint64_t sizes[TAPE_SAVED_MAX]; /* anything the backward pass must know */
    uint32_t layer;
    char name[TAPE_NAME_MAX];
};

/* Which layer and phase an op belongs to, for merging. */
struct label {
    uint32_t layer;
    enum phase phase;
};

struct tape {
    struct trace *trace;
    const struct hardware *hardware;
    struct tape_options options;
    capu_status status;
    struct error_text *error;

    struct value *values;
    struct weight *weights;
    struct step *steps;
    struct label *labels; /* one per op */
    char (*layers)[TAPE_NAME_MAX];
    uint32_t *inputs;
    uint32_t value_count, value_capacity;
    uint32_t weight_count, weight_capacity;
    uint32_t step_count, step_capacity;
    uint32_t label_count, label_capacity;
    uint32_t layer_count, layer_capacity;
    uint32_t input_count, input_capacity;
    uint32_t layer; /* the current one */
    enum phase phase;

    uint64_t parameter_count; /* trained elements */
    double flops;             /* of all products */
};

/* An op to add. Operands are refs, and 0 is skipped. Its time is that of the products or of one
   pass over all operands, whichever is longer, plus further passes of what is fused into it. */
struct tape_op {
    const char *name; /* NAME.SUFFIX */
    const char *suffix;
    uint32_t reads[TAPE_OPERANDS_MAX];
    uint32_t writes[TAPE_OPERANDS_MAX];
    uint32_t updates[TAPE_OPERANDS_MAX];
    const uint32_t *more_reads; /* values whose tensors are read */
    uint32_t more_count;
    double flops;
    double saved_flops; /* how many of them a faster algorithm saves */
    double extra_bytes; /* of further passes; negative: an operand is not read completely */
    unsigned extra_launches;
    bool is_random; /* a replay would give other contents */
};

void tape_init(struct tape *tape, struct trace *trace, const struct hardware *hardware,
               const struct tape_options *options, struct error_text *error);
void tape_finish(struct tape *tape);

/* Records the first error and its text. */
void tape_fail(struct tape *tape, capu_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* What follows belongs to a layer of that name, until the next call. */
void tape_layer(struct tape *tape, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The number of elements; TOO_LARGE on overflow. */
uint64_t tape_elements(struct tape *tape, uint64_t rows, uint64_t channels, uint64_t height,
                       uint64_t width);
/* The size of an element of a value. */
uint64_t tape_element_bytes(const struct tape *tape);

/* Adds a transient tensor of `elements` times `element_bytes`, NAME.SUFFIX. Returns its ref. */
uint32_t tape_tensor(struct tape *tape, capu_kind kind, uint64_t elements, uint64_t element_bytes,
                     const char *name, const char *suffix);
/* Adds a persistent tensor that is not a weight, such as running statistics. */
uint32_t tape_buffer(struct tape *tape, uint64_t elements, const char *name, const char *suffix);
/* Adds a workspace of `bytes`, but at most `most`; 0: none. */
uint32_t tape_workspace(struct tape *tape, uint64_t bytes, uint64_t most, const char *name);
uint64_t tape_bytes(const struct tape *tape, uint32_t ref);

/* Adds a value and its tensor. Returns an index. */
uint32_t tape_value(struct tape *tape, uint64_t rows, uint64_t channels, uint64_t height,
                    uint64_t width, const char *name);
/* Adds an input: its tensor, and the op that copies it from the host. It gets no gradient. */
uint32_t tape_input(struct tape *tape, uint64_t rows, uint64_t channels, uint64_t height,
                    uint64_t width, uint64_t element_bytes, const char *name);
/* Returns a copy, because the array may move; zeroed after an error. */
struct value tape_at(const struct tape *tape, uint32_t value);

/* Adds a parameter of that many elements and its optimizer state. Returns an index. */
uint32_t tape_weight(struct tape *tape, uint64_t elements, const char *name, const char *suffix);
/* The weight's tensor for a forward op that uses it; counts the use. */
uint32_t tape_use(struct tape *tape, uint32_t weight);
uint32_t tape_weight_ref(const struct tape *tape, uint32_t weight);

void tape_op(struct tape *tape, const struct tape_op *op);
/* Adds the step for the backward pass of what was just added, in the current layer. */
void tape_step(struct tape *tape, const struct step *step, const char *name);

/* Stores a list of values for a step. Returns its start. */
uint32_t tape_add_inputs(struct tape *tape, const uint32_t *values, uint32_t count);

/* For the backward pass: the gradient of the value so far, a ref; 0: none. */
uint32_t tape_gradient(const struct tape *tape, uint32_t value);
/* Adds a tensor for a gradient of the value. */
uint32_t tape_new_gradient(struct tape *tape, uint32_t value, const char *name);
/* The gradient has been computed: it becomes the value's, or is added to the previous one. */
void tape_give_gradient(struct tape *tape, uint32_t value, uint32_t gradient, const char *name);
/* Adds the op, which writes the weight's gradient, or updates it if another use has written it. */
void tape_weight_op(struct tape *tape, struct tape_op *op, uint32_t weight);

/* Adds the backward pass and the updates. */
void tape_finish_iteration(struct tape *tape);

#endif

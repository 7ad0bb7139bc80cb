/*
 * A model written down once, forward: the tape makes its trace. Layers add ops of forward and
 * leave a step each, which knows the backward of it; tape_finish_iteration walks the steps in
 * reverse and adds the updates of the parameters.
 *
 * Failures stick: after the first, every function does nothing, and the status tells at the end.
 * Tensors are named by ref, their id in the trace plus one, so that 0 is none. Owned by one thread.
 */
#ifndef CAPU_MODELS_TAPE_H
#define CAPU_MODELS_TAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "models/hardware.h"
#include "policy/error_text.h"
#include "policy/trace.h"

#define TAPE_NAME_MAX 64
#define TAPE_OPERANDS_MAX 8
#define TAPE_SAVED_MAX 8

enum phase { PHASE_FORWARD, PHASE_BACKWARD, PHASE_UPDATE };

enum optimizer { OPTIMIZER_MOMENTUM, OPTIMIZER_ADAM };

struct tape_options {
    enum dtype dtype;
    enum optimizer optimizer;
    bool updates_asap; /* each parameter as soon as its gradient is complete; else at the end */
};

/* What layers hand on: `rows` (samples, or tokens) of channels x height x width elements. */
struct value {
    uint32_t ref;
    uint32_t gradient; /* ref of what backward has summed up so far; 0: nothing yet */
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
    uint32_t uses;     /* in forward, of which backward has not come by yet */
    uint32_t layer;
    bool is_due; /* its gradient is complete, its update is not made */
    char name[TAPE_NAME_MAX];
};

struct tape;

/* One layer's part of backward. Values and weights by index. */
struct step {
    void (*backward)(struct tape *tape, const struct step *step);
    uint32_t in;
    uint32_t second;
    uint32_t out;
    uint32_t weight;
    uint32_t first_input; /* of several: into the tape's inputs */
    uint32_t input_count;
    uint32_t saved[TAPE_SAVED_MAX]; /* refs */
    double flops;                   /* of forward */
    uint64_t sizes[TAPE_SAVED_MAX]; /* whatever the layer needs to know again */
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
    struct label *labels; /* one an op */
    char (*layers)[TAPE_NAME_MAX];
    uint32_t *inputs;
    uint32_t value_count, value_capacity;
    uint32_t weight_count, weight_capacity;
    uint32_t step_count, step_capacity;
    uint32_t label_count, label_capacity;
    uint32_t layer_count, layer_capacity;
    uint32_t input_count, input_capacity;
    uint32_t layer; /* at hand */
    enum phase phase;

    uint64_t parameter_count; /* elements that are trained */
    double flops;             /* of all products */
};

/* An op to be added. Refs; 0 is skipped. Time: products or one pass over all operands, whichever is
   slower, then the further passes of what is folded in. */
struct tape_op {
    const char *name; /* NAME.SUFFIX */
    const char *suffix;
    uint32_t reads[TAPE_OPERANDS_MAX];
    uint32_t writes[TAPE_OPERANDS_MAX];
    uint32_t updates[TAPE_OPERANDS_MAX];
    const uint32_t *more_reads; /* values, of which the tensors are read */
    uint32_t more_count;
    double flops;
    double saved_flops; /* of these, what a faster algorithm does without */
    double extra_bytes; /* of further passes; negative: an operand is not read whole */
    unsigned extra_launches;
    bool is_random; /* not the same when run again */
};

void tape_init(struct tape *tape, struct trace *trace, const struct hardware *hardware,
               const struct tape_options *options, struct error_text *error);
void tape_finish(struct tape *tape);

/* Says why and sticks. */
void tape_fail(struct tape *tape, capu_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* What follows belongs to a layer of that name, until the next. */
void tape_layer(struct tape *tape, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Elements in a tensor of those extents; checked. */
uint64_t tape_elements(struct tape *tape, uint64_t rows, uint64_t channels, uint64_t height,
                       uint64_t width);
/* Bytes of an element of a value. */
uint64_t tape_element_bytes(const struct tape *tape);

/* A transient tensor of `elements` times `element_bytes`: NAME.SUFFIX. A ref. */
uint32_t tape_tensor(struct tape *tape, enum tensor_kind kind, uint64_t elements,
                     uint64_t element_bytes, const char *name, const char *suffix);
/* A persistent one that is no weight, such as running statistics. */
uint32_t tape_buffer(struct tape *tape, uint64_t elements, const char *name, const char *suffix);
/* Scratch of at most `most` bytes; 0 bytes: none. */
uint32_t tape_workspace(struct tape *tape, uint64_t bytes, uint64_t most, const char *name);
uint64_t tape_bytes(const struct tape *tape, uint32_t ref);

/* A value of those extents, with its tensor. An index. */
uint32_t tape_value(struct tape *tape, uint64_t rows, uint64_t channels, uint64_t height,
                    uint64_t width, const char *name);
/* What the host fills: its tensor and the op that copies it in. No gradient. */
uint32_t tape_input(struct tape *tape, uint64_t rows, uint64_t channels, uint64_t height,
                    uint64_t width, uint64_t element_bytes, const char *name);
/* By value: the array may move. A zeroed one after a failure. */
struct value tape_at(const struct tape *tape, uint32_t value);

/* A parameter of that many elements, its optimizer state. An index. */
uint32_t tape_weight(struct tape *tape, uint64_t elements, const char *name, const char *suffix);
/* The weight's tensor, for an op of forward that uses it: counts the use. */
uint32_t tape_use(struct tape *tape, uint32_t weight);
uint32_t tape_weight_ref(const struct tape *tape, uint32_t weight);

void tape_op(struct tape *tape, const struct tape_op *op);
/* The step whose backward belongs to what was just added; in the layer at hand. */
void tape_step(struct tape *tape, const struct step *step, const char *name);

/* Keeps a list of values for a step. Where it begins. */
uint32_t tape_add_inputs(struct tape *tape, const uint32_t *values, uint32_t count);

/* For backward. What has come to the value so far: a ref; 0: nothing. */
uint32_t tape_gradient(const struct tape *tape, uint32_t value);
/* A tensor for a gradient of the value. */
uint32_t tape_new_gradient(struct tape *tape, uint32_t value, const char *name);
/* The gradient is made: it is the value's, or added to what has come before. */
void tape_give_gradient(struct tape *tape, uint32_t value, uint32_t gradient, const char *name);
/* Adds the weight's gradient to what the op writes, or updates where another use has made it, and
   then the op. */
void tape_weight_op(struct tape *tape, struct tape_op *op, uint32_t weight);

/* Backward from the end, and the updates. */
void tape_finish_iteration(struct tape *tape);

#endif

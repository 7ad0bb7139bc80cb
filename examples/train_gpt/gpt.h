/*
 * A GPT over bytes, in fp32 or bf16, written as real C programs are: all parameters are in one
 * blob, gradients and moments are in blobs of the same layout, all activations are in another one;
 * tensors begin at arbitrary offsets; query, key and value are parts of one buffer; buffers have
 * one use in the forward pass and another one in the backward pass; and the token embedding is also
 * the last layer.
 *
 * In bf16, activations, their gradients and the working weights are stored in bf16. Gradients of
 * parameters and moments are fp32, and so is a master copy of each weight: the optimizer updates it
 * and rounds the working weight from it.
 */
#ifndef CAPU_EXAMPLES_TRAIN_GPT_GPT_H
#define CAPU_EXAMPLES_TRAIN_GPT_GPT_H

#include "capuchin/capuchin.h"

#include "examples/common/files.h"

#include "kernels/element.h"

#include <stdbool.h>

/* The tokens of the text are its bytes. A vocabulary may have more; their rows are trained as well,
   because every loss is over all tokens. */
#define GPT_BYTES 256u

struct gpt_shape {
    uint32_t layers;
    uint32_t channels;
    uint32_t heads;
    uint32_t length;     /* of a sequence, at most */
    uint32_t align;      /* tensors begin at multiples of that many items; 0 or 1: anywhere */
    uint32_t vocabulary; /* GPT_BYTES or more */
    enum element element;
    bool is_fused; /* attention in one op that keeps no scores (kernels/fused_attention.h) */
};

enum gpt_parameter {
    GPT_NORM1_SCALE,
    GPT_NORM1_SHIFT,
    GPT_QKV_BIAS,
    GPT_ATTENTION_BIAS,
    GPT_NORM2_SCALE,
    GPT_NORM2_SHIFT,
    GPT_HIDDEN_BIAS,
    GPT_OUT_BIAS,
    GPT_LAST_SCALE,
    GPT_LAST_SHIFT,
    GPT_TOKENS,
    GPT_POSITIONS,
    GPT_QKV_WEIGHT,
    GPT_ATTENTION_WEIGHT,
    GPT_HIDDEN_WEIGHT,
    GPT_OUT_WEIGHT,
    GPT_PARAMETERS
};

/* Blobs with the same layout. Values have the element type of the shape, all others are fp32. */
enum gpt_blob {
    GPT_VALUE,
    GPT_GRADIENT,
    GPT_FIRST_MOMENT,
    GPT_SECOND_MOMENT,
    GPT_MASTER,  /* with bf16 values only */
    GPT_REPLICA, /* the gradient of a replica after the first; with several only */
    GPT_BLOBS
};

/* Where the parameters lie in a blob, in items. */
struct gpt_layout {
    size_t offset[GPT_PARAMETERS];
    size_t count[GPT_PARAMETERS]; /* of one layer's */
    size_t begin;                 /* of the first parameter */
    size_t end;
};

/* What a layer keeps for its backward pass. */
struct gpt_layer {
    void *norm1;
    float *norm1_mean;
    float *norm1_rstd;
    void *parts;     /* query, key, value; fused: side by side in each row */
    void *weights;   /* fused: none */
    float *log_sums; /* fused only */
    void *attended;
    void *residual1;
    void *norm2;
    float *norm2_mean;
    float *norm2_rstd;
    void *hidden;
    void *activated;
    void *residual2;
};

/* What all layers share. Some buffers have unrelated uses in the forward and the backward pass. */
struct gpt_shared {
    void *embedded;
    void *qkv;    /* backward: its gradient */
    void *scores; /* backward: their gradient; fused: none */
    void *mixed;  /* backward: its gradient; fused: none */
    void *branch; /* what a branch adds to the stream; backward: gradients on the way */
    void *last;
    float *last_mean;
    float *last_rstd;
    void *logits; /* backward: their gradient */
    void *probabilities;
    float *losses;
    float *mean_loss;
    float *norm; /* of all gradients */
    void *stream_gradient;
    void *parts_gradient;   /* fused: none */
    void *weights_gradient; /* fused: none */
    float *products;        /* fused only: scratch memory of its backward pass */
    void *hidden_gradient;
};

struct ranks; /* examples/common/ranks.h */

/* Equal parts of a batch, each with a gradient of its own: of `count`, those from `first` to before
   `end` are computed here, the others by other ranks. */
struct gpt_replicas {
    uint32_t count;
    uint32_t first;
    uint32_t end;
    struct ranks *ranks; /* NULL: there are no others. The caller's */
    double *sum;         /* with ranks, on the device: what gpt_sum adds up */
};

struct gpt {
    capu_context *context;
    struct gpt_shape shape;
    struct gpt_layout layout;
    void *blob[GPT_BLOBS];
    int32_t *tokens;
    int32_t *targets;
    uint32_t segment_layers; /* of a checkpointed segment; 0: none. The caller's to set */
    capu_graph *graph;       /* captures training iterations; NULL: none does. The context's */
    uint32_t graph_steps;    /* so many were */
    struct gpt_replicas replicas;
    enum gpt_blob gradient; /* to which the backward pass adds */
    uint32_t batch;         /* of a replica; 0: nothing allocated for a batch */
    uint32_t length;
    void *activations;
    struct gpt_layer *layers;
    struct gpt_shared shared;
};

struct gpt_step {
    uint32_t step; /* counted from 1 */
    uint32_t accumulate;
    bool is_asap; /* update each parameter as soon as its gradient is complete */
    float rate;
};

/*
 * Allocates and initialises. Device memory belongs to the context and is freed with it; gpt_finish
 * frees host memory. TOO_LARGE: the size of the shape overflows.
 */
capu_status gpt_init(struct gpt *gpt, capu_context *context, const struct gpt_shape *shape,
                     uint64_t seed);
void gpt_finish(struct gpt *gpt);

/*
 * Divides each batch into `count` replicas, whose gradients are computed one after the other and
 * added in order: the bits are those of `count` processes that add theirs in the order of the
 * ranks. Without this call there is one. Call it once, before the first iteration.
 */
capu_status gpt_replicate(struct gpt *gpt, uint32_t count);

/*
 * The same with a rank for each replica; all ranks call it. Copies the parameters of rank 0 to the
 * others. The ranks have the context as a member, and stay until the last call here.
 */
capu_status gpt_join(struct gpt *gpt, struct ranks *ranks);

/* Replaces a sum over the replicas of this process by that over all. */
capu_status gpt_sum(struct gpt *gpt, double *sum);

/* The blob in which the gradient of a replica is accumulated. */
enum gpt_blob gpt_gradient_of(const struct gpt *gpt, uint32_t replica);

/* Adds the gradient of the newest replica to that of the ones before: all of it, or of one
   parameter in `layers` layers. Does nothing for the first replica. With ranks, adds up those of
   all ranks. */
capu_status gpt_merge(struct gpt *gpt);
capu_status gpt_merge_one(struct gpt *gpt, enum gpt_parameter parameter, uint32_t layer,
                          uint32_t layers);

/* Replaces the blob of activations by one for batches of this shape, a replica's. Call it outside
 * iterations. */
capu_status gpt_resize(struct gpt *gpt, uint32_t batch, uint32_t length);

/* The next multiple of `align` items; 0 and 1 leave `count` as it is. */
static inline size_t gpt_align(size_t count, uint32_t align)
{
    return align > 1 ? (count + align - 1) / align * align : count;
}

/* Of a batch: one per token. */
static inline uint32_t gpt_rows(const struct gpt *gpt)
{
    return gpt->batch * gpt->length;
}

/* How many layers have this parameter, and whether it is a tensor for each of them. */
uint32_t gpt_layers_of(const struct gpt *gpt, enum gpt_parameter parameter);
bool gpt_is_split(enum gpt_parameter parameter);

/* Allocates a blob. All but GPT_REPLICA exist already. */
capu_status gpt_make_blob(struct gpt *gpt, enum gpt_blob blob);

/* The address of layer `layer`'s part of a parameter, in one of the blobs. */
void *gpt_parameter_at(const struct gpt *gpt, enum gpt_blob blob, enum gpt_parameter parameter,
                       uint32_t layer);

/* Pieces of a training iteration; the batch has been uploaded. */
capu_status gpt_forward(struct gpt *gpt, bool with_loss);
/* `asap` NULL: gradients only. Else each parameter is merged and updated when its gradient is
   complete. */
capu_status gpt_backward(struct gpt *gpt, uint32_t accumulate, const struct gpt_step *asap);
/* Everything in one op; clips the norm of all gradients to 1. Waits for the norm. */
capu_status gpt_update(struct gpt *gpt, const struct gpt_step *step);
/* One parameter of one layer. */
capu_status gpt_update_one(struct gpt *gpt, const struct gpt_step *step,
                           enum gpt_parameter parameter, uint32_t layer);

/* The host arrays hold step->accumulate batches, one after the other, each with its replicas one
   after the other. The loss is the mean over all of them. Waits. */
capu_status gpt_train(struct gpt *gpt, const int32_t *tokens, const int32_t *targets,
                      const struct gpt_step *step, float *loss);
/* The mean loss of one batch of the current shape. Waits. */
capu_status gpt_validate(struct gpt *gpt, const int32_t *tokens, const int32_t *targets,
                         float *loss);
/* The logits of all bytes that follow position `position` of one sequence. Waits. */
capu_status gpt_logits(struct gpt *gpt, const int32_t *tokens, uint32_t position,
                       float logits[GPT_BYTES]);

/* The number of trained parameters. */
size_t gpt_parameter_count(const struct gpt *gpt);

/* All parameters, to save, in fp32. Gives their number; `weights` NULL: only that. */
size_t gpt_weights(const struct gpt *gpt, struct weight *weights);

#endif

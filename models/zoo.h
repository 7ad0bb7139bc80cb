/*
 * Traces of known networks, computed from the shapes of their layers: forward, loss, backward and
 * optimizer of one iteration, with times from the rates of a machine. So planners can be tried on
 * networks and machines that are not at hand.
 */
#ifndef CAPU_MODELS_ZOO_H
#define CAPU_MODELS_ZOO_H

#include "models/tape.h"

#define ZOO_BATCH_MAX ((uint64_t)1 << 24)

struct zoo_options {
    uint64_t batch;
    enum dtype dtype;
    bool updates_asap; /* update each parameter as soon as its gradient is complete, instead of at
                          the end */
    bool by_layer;     /* merge the ops of a layer */
    bool saves_matrix; /* attention as single ops that keep their matrices for the backward pass */
    uint64_t sequence; /* tokens per sample; 0: the network's default */
    uint64_t image;    /* width and height in pixels; 0: the network's default */
};

struct zoo_model {
    const char *name;
    const char *text; /* for people */
    enum optimizer optimizer;
    uint64_t sequence; /* the default; 0: the network takes images */
    uint64_t image;    /* the default; 0: the network takes tokens */
    /* Adds the forward pass and the loss. The sizes in the options are set. */
    void (*forward)(struct tape *tape, const struct zoo_model *model,
                    const struct zoo_options *options);
    const void *shape; /* defined by the family */
};

struct zoo_summary {
    uint64_t parameter_count; /* trained elements */
    double flops;             /* of the products of an iteration */
};

/* The models; the last name is NULL. */
extern const struct zoo_model zoo_models[];

/* NULL: there is no such model. */
const struct zoo_model *zoo_find(const char *name);

/*
 * Builds the trace. `summary` may be NULL. On failure the trace is zeroed.
 * Errors: INVALID (an option that the model does not have, no batch, an image that is too small, a
 * machine without rates), TOO_LARGE (beyond the limits of traces), NO_HOST_MEMORY.
 */
capu_status zoo_build(const struct zoo_model *model, const struct zoo_options *options,
                      const struct hardware *hardware, struct trace *trace,
                      struct zoo_summary *summary, struct error_text *error);

/* The families. */
void vgg_forward(struct tape *tape, const struct zoo_model *model,
                 const struct zoo_options *options);
void resnet_forward(struct tape *tape, const struct zoo_model *model,
                    const struct zoo_options *options);
void densenet_forward(struct tape *tape, const struct zoo_model *model,
                      const struct zoo_options *options);
void inception_forward(struct tape *tape, const struct zoo_model *model,
                       const struct zoo_options *options);
void inception4_forward(struct tape *tape, const struct zoo_model *model,
                        const struct zoo_options *options);
void unet_forward(struct tape *tape, const struct zoo_model *model,
                  const struct zoo_options *options);
void lstm_forward(struct tape *tape, const struct zoo_model *model,
                  const struct zoo_options *options);
void transformer_forward(struct tape *tape, const struct zoo_model *model,
                         const struct zoo_options *options);

extern const uint32_t resnet50_blocks[4];
extern const uint32_t resnet152_blocks[4];

enum transformer_kind { TRANSFORMER_BERT, TRANSFORMER_GPT, TRANSFORMER_LLAMA };

struct transformer {
    enum transformer_kind kind;
    uint64_t layers;
    uint64_t channels;
    uint64_t heads;
    uint64_t key_heads; /* of keys and values */
    uint64_t inner;     /* channels between the two products of a block */
    uint64_t words;
    uint64_t positions; /* rows of the table of positions, and of types; 0: none */
    bool is_tied;       /* the last product's weight is the embedding's */
};

#endif

/*
 * Traces of known networks, from the shapes of their layers: forward, loss, backward and optimizer
 * of one iteration, timed by the rates of a machine. For planning without recording anything.
 */
#ifndef CAPU_MODELS_ZOO_H
#define CAPU_MODELS_ZOO_H

#include "models/tape.h"

#define ZOO_BATCH_MAX ((uint64_t)1 << 24)

struct zoo_options {
    uint64_t batch;
    enum dtype dtype;
    bool updates_asap; /* each parameter as soon as its gradient is complete; else at the end */
    bool by_layer;     /* ops merged to whole layers */
    bool saves_matrix; /* attention as single ops, which keep their matrices for backward */
    uint64_t sequence; /* tokens a sample; 0: the network's own */
    uint64_t image;    /* pixels of an edge; 0: the network's own */
};

struct zoo_model {
    const char *name;
    const char *text; /* for people */
    enum optimizer optimizer;
    uint64_t sequence; /* the network's own; 0: it takes images */
    uint64_t image;    /* 0: it takes tokens */
    /* Forward and loss. Sizes of the options are filled in. */
    void (*forward)(struct tape *tape, const struct zoo_model *model,
                    const struct zoo_options *options);
    const void *shape; /* of the family's own kind */
};

struct zoo_summary {
    uint64_t parameter_count; /* elements trained */
    double flops;             /* of an iteration's products */
};

/* The list, ended by a NULL name. */
extern const struct zoo_model zoo_models[];

/* NULL: no such model. */
const struct zoo_model *zoo_find(const char *name);

/*
 * Builds the trace. `summary` may be NULL. On failure the trace is zeroed.
 * Errors: INVALID (an option that the model has not, no batch, an image too small, a machine
 * without rates), TOO_LARGE (a limit of traces), NO_HOST_MEMORY.
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

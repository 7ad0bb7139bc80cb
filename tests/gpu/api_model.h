/*
 * A training program whose run functions enqueue fills and copies on the stream, and the same
 * program on plain memory, the mirror. There is one at a time.
 */
#ifndef CAPU_TESTS_GPU_API_MODEL_H
#define CAPU_TESTS_GPU_API_MODEL_H

#include "capuchin/capuchin.h"

#include <check.h>
#include <stdbool.h>

/* The page size. Tests without a GPU use a smaller one. */
#ifndef API_PAGE
#define API_PAGE ((size_t)2 << 20)
#endif

enum { LAYERS = 8, LAYER_PAGES = 4, SMALL = 256 };
#define LAYER_BYTES ((size_t)LAYER_PAGES * API_PAGE)
/* Weights, activations, two gradients, and a page for what is small. */
#define ALL_PAGES (LAYER_PAGES * (LAYERS + (LAYERS + 1) + 2) + 1)
#define HALF_PAGES (ALL_PAGES / 2)

/* Device memory and what it must contain. */
struct tensor {
    unsigned char *device;
    unsigned char *mirror;
    size_t bytes;
};

struct model {
    struct tensor weights[LAYERS];
    struct tensor layers[LAYERS + 1]; /* the first is the input */
    struct tensor gradients[2];
    struct tensor loss; /* small, so it is always resident */
};

extern capu_context *context;

/* Fails the test, with the context's error, unless the call returns OK. */
#define OK(call_)                                                                          \
    do {                                                                                   \
        capu_status status_ = (call_);                                                     \
        ck_assert_msg(status_ == CAPU_OK, "%s: %s: %s", #call_, capu_status_name(status_), \
                      capu_last_error(context));                                           \
    } while (0)

/* Creates the context with a budget of so many pages; waits for plans. NULL: the default planner.
 */
void open_context(capu_mode mode, uint64_t pages, const char *planner);
/* Checks that no more than the budget was held, and destroys the context. */
void close_context(void);
/* The report of the last iteration, which is waited for. */
capu_report last_report(void);

/* Bytes that repeat nowhere and differ for each seed. */
void make_bytes(unsigned char *bytes, size_t count, uint64_t seed);

struct tensor tensor_make(size_t bytes, const char *name, capu_kind kind);
void tensor_drop(struct tensor *tensor);
/* Uploads the bytes of a seed. */
void tensor_upload(struct tensor *tensor, uint64_t seed);
/* An op that writes `value` to every byte. */
void tensor_fill(struct tensor *tensor, unsigned char value);
/* Downloads the tensor, and fails the test unless it has the bytes of its mirror. */
void tensor_expect(const struct tensor *tensor, const char *what);

void model_make(struct model *model);
void model_drop(struct model *model);
/* The two halves of an iteration after its upload; `value` goes into the arguments of ops. With
   `on_mirror_only`, a graph repeats the ops. */
void model_forward(struct model *model, unsigned char value, bool on_mirror_only);
void model_backward(struct model *model, unsigned char value, bool on_mirror_only);
/* All work of an iteration, and a whole iteration. */
void model_work(struct model *model, unsigned char value);
void model_iterate(struct model *model, unsigned char value);
/* Compares what outlives iterations. */
void model_expect(const struct model *model, const char *what);

#endif

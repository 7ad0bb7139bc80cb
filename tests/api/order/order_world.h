/*
 * A small program whose tensors the tests of order.md bring into each state: what it computes is
 * known byte by byte, since plain memory goes through the same operations. Nothing in it waits for
 * the device by itself, and the host learns that work has completed only where the library waits.
 */
#ifndef CAPU_TESTS_API_ORDER_WORLD_H
#define CAPU_TESTS_API_ORDER_WORLD_H

#include "tests/api/steps.h"
#include "tests/support/mixing.h"

#include "capuchin/graph.h"

/* Most tensors end somewhat before their last page does, so that they can be lengthened. */
enum { ITEM_PAGES = 3, ITEM_SLACK = 96, SMALL_BYTES = 64, ITEM_MOST = 24 };

#define ITEM_BYTES (PAGES(ITEM_PAGES) - ITEM_SLACK)

/* The items of each world, and those of training. */
enum {
    WORLD_SMALL, /* always resident */
    WORLD_TABLE, /* only read, at the start of an iteration */
    WORLD_MADE,  /* made of it, and needed again at the end */
    WORLD_WEIGHT,
    WORLD_ROW,  /* only read, once */
    WORLD_USED, /* used some ops after it was made */
    WORLD_SCRATCH,
    WORLD_END, /* not used again */
    WORLD_MOMENT,
    WORLD_SUM /* zero at the start */
};

/* One tensor, or several that were one. */
struct item {
    unsigned char *address; /* NULL: it was freed */
    unsigned char *plain;   /* what it must contain */
    uint64_t bytes;
    bool is_defined;
    bool is_transient;
    bool may_be_lost; /* a plan had given it up before it was read */
    bool is_piece;    /* of plain memory that another item owns */
    void *home;       /* its allocation */
};

struct world {
    struct rig rig;
    struct item items[ITEM_MOST];
    size_t count;
    size_t other; /* an item that is defined, for copies */
    uint64_t seed;
    bool is_training;
    size_t step;       /* of the iteration under way, to come */
    capu_graph *graph; /* NULL: none */
    bool is_capturing;
    uint64_t captured_seed;  /* when the capture began */
    unsigned char *download; /* of the call under test, with what it must contain */
    unsigned char *expected;
    uint64_t download_bytes;
};

struct use {
    size_t item;
    uint32_t role;
    uint64_t from;
    uint64_t bytes; /* 0: all */
};

/* Creates a context that is late (rig.h), and one small tensor. */
void world_init(struct world *world, struct rig_options options);

/* Allocates; the item is undefined. */
size_t world_add(struct world *world, uint64_t bytes, bool is_transient);

/* The item has been split into pieces of these sizes: each becomes an item, after all others. */
void world_divide(struct world *world, size_t item, const size_t *sizes, size_t count);

struct tensor *world_tensor(const struct world *world, size_t item);

/* An op on the device and, if it succeeds, on plain memory. `waits`: it says that it has waited, as
   the ops of capuchin/parallel.h do. */
capu_status world_try_run(struct world *world, const char *name, const struct use *uses,
                          size_t count, bool waits);
void world_run(struct world *world, const char *name, const struct use *uses, size_t count);

/* The same for a tensor that becomes zero. */
capu_status world_zero(struct world *world, size_t item, uint64_t from, uint64_t bytes);

/* Bytes for uploads and for the host to write. */
void world_fill(struct world *world, unsigned char *to, uint64_t bytes);

/* Makes the program one of training iterations, lets it run some and gives it a plan. `shares`: ROW
   shares pages with two neighbours. */
void world_make_training(struct world *world, bool is_placed, bool shares);

/* Begins an iteration, takes its next step and ends it. No step is left: false. Steps on what was
   freed, or is not defined, are skipped. */
void world_begin(struct world *world);
bool world_step(struct world *world);
bool world_step_uses(const struct world *world, size_t item);
void world_end(struct world *world);
void world_iterate(struct world *world);

/* Iterates until one can be captured, and begins to capture it. world_end ends it. */
void world_begin_capture(struct world *world);

/* Launches what was captured. */
capu_status world_try_launch(struct world *world);

/* Fails the test unless these items contain what they must, and the context is consistent. */
void world_check(struct world *world, size_t first, size_t count);
void world_finish(struct world *world);

#endif

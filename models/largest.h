/* Finds the largest batch of a model that a planner can train within a budget at an acceptable loss
   of time. */
#ifndef CAPU_MODELS_LARGEST_H
#define CAPU_MODELS_LARGEST_H

#include <stdbool.h>

#include "models/zoo.h"
#include "policy/search/planner.h"

struct largest_request {
    const struct zoo_model *model;
    const struct zoo_options *options; /* the batch in them is ignored */
    const struct hardware *hardware;
    uint64_t budget_bytes;
    const struct planner *planner; /* NULL: without a plan */
    enum plan_effort effort;
    double overhead; /* the most that is acceptable, over the ideal */
    double slack;    /* the answer may be too small by this fraction; 0: exact */
    /* Called after each batch; `overhead` below 0: no plan. May be NULL. */
    void (*tried)(uint64_t batch, double overhead, void *user);
    /* Called before each batch of a phase whose length is known: at most so many will be tried in
       it, this one included. May be NULL. */
    void (*trying)(uint64_t left, void *user);
    /* Asked from time to time; true ends the search with the largest batch so far. NULL: never. */
    bool (*should_stop)(void *user);
    void *user; /* of all three */
};

struct largest {
    uint64_t batch; /* 0: not even one sample is possible */
    double overhead;
    uint64_t iteration_ns;
};

/* What one batch costs: its overhead, or a negative number if there is no plan. */
capu_status largest_try(const struct largest_request *request, uint64_t batch,
                        struct largest *result, struct error_text *error);

/*
 * Doubles the batch while that works, then bisects, then tries larger batches in steps of an
 * eighth. Overhead is not monotone in the batch, so a larger batch between those tried may work as
 * well. Errors: INVALID (as zoo_build), NO_HOST_MEMORY.
 */
capu_status largest_batch(const struct largest_request *request, struct largest *result,
                          struct error_text *error);

/* The largest batch whose largest op fits: no plan exists for a larger one. */
capu_status largest_possible(const struct largest_request *request, uint64_t *batch,
                             struct error_text *error);

#endif

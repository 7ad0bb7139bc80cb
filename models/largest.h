/* The largest batch of a model that a planner can train in a budget without losing more than so
   much time. */
#ifndef CAPU_MODELS_LARGEST_H
#define CAPU_MODELS_LARGEST_H

#include "models/zoo.h"
#include "policy/planner.h"

struct largest_request {
    const struct zoo_model *model;
    const struct zoo_options *options; /* but for the batch */
    const struct hardware *hardware;
    uint64_t budget_bytes;
    const struct planner *planner; /* NULL: without a plan */
    enum planner_effort effort;
    double overhead; /* at most, over the ideal */
    double slack;    /* the answer may fall short by that part of it; 0: by nothing */
    /* After each batch tried; `overhead` below 0: no plan. May be NULL. */
    void (*tried)(uint64_t batch, double overhead, void *user);
    void *user;
};

struct largest {
    uint64_t batch; /* 0: none, not even of one sample */
    double overhead;
    uint64_t iteration_ns;
};

/* What one batch costs: its overhead, below 0 without a plan. */
capu_status largest_try(const struct largest_request *request, uint64_t batch,
                        struct largest *result, struct error_text *error);

/*
 * Doubles the batch while it can be done, then halves the step, then looks further up in steps of
 * an eighth. Overhead is not monotone in the batch: one between those tried might do as well.
 * Errors: INVALID (as zoo_build), NO_HOST_MEMORY.
 */
capu_status largest_batch(const struct largest_request *request, struct largest *result,
                          struct error_text *error);

/* The largest batch whose largest op fits: beyond it no plan exists at all. */
capu_status largest_possible(const struct largest_request *request, uint64_t *batch,
                             struct error_text *error);

#endif

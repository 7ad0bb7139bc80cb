/*
 * Which iteration is under way.
 *
 * Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_ITERATION_STATE_H
#define CAPU_RUNTIME_ITERATION_STATE_H

#include <stdbool.h>
#include <stdint.h>

struct iteration_state {
    uint64_t number; /* counts capu_iteration_begin */
    bool is_open;    /* the iteration of this number is under way */
    uint64_t mark;   /* of it, for profilers: device/marks.h */
};

#endif

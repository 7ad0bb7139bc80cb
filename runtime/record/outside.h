/*
 * What the ops outside iterations need at once: the set-up of a program, evaluation between
 * iterations, uploads. No record has them, but a budget for the program must hold their operands,
 * too. In pages of every size of the census, as the floors of iterations are.
 *
 * Most ops are far below the largest, and cost a comparison. Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_OUTSIDE_H
#define CAPU_RUNTIME_OUTSIDE_H

#include "runtime/op/op.h"
#include "runtime/tensor/page_census.h"

struct records;

struct outside {
    uint64_t least_bytes;          /* of the op with the most: its operands and all small tensors */
    uint64_t own_bytes;            /* needed in pages of the device */
    uint64_t bytes[CENSUS_LEVELS]; /* in those of each level */
    const char *op;                /* interned: the op that needed most; NULL: there was none */
    uint64_t iteration_bytes;      /* the largest floor of an iteration */
};

/* The op at hand runs outside an iteration. */
void outside_note(struct records *records, const struct op *op);

/* In pages of this size. */
uint64_t outside_bytes(const struct records *records, uint64_t page_bytes);

#endif

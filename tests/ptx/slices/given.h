/* Launches of a program, with its grids and operands, compared with their slices: the same
   comparison as in compare.h, where launches are random. */
#ifndef CAPU_TESTS_PTX_SLICES_GIVEN_H
#define CAPU_TESTS_PTX_SLICES_GIVEN_H

#include "tests/ptx/slices/compare.h"

struct given_allocation {
    uint64_t base;
    uint64_t bytes; /* 0: the address lies in none */
};

/* The allocation that an address lies in. */
typedef struct given_allocation (*given_find)(uint64_t address);

/*
 * Runs the slice of a kernel, and then the kernel, once, which has the effects that the program
 * expects. Fails the test if the kernel fails, or accesses more than its slice says, or less where
 * that says so exactly. Pre: the kernel has a slice; call->parameters are those of the kernel.
 */
void given_launch(const struct comparison *comparison, size_t kernel,
                  const struct machine_launch *call, given_find find);

#endif

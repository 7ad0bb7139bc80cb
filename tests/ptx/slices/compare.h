/*
 * Compares the slices of a module's kernels with the kernels: both run on the machine, with the
 * same grids, blocks and parameters, and the addresses that the slice reports have to be those that
 * an observer of the kernel's accesses sees. So do the bytes that the coverage slice sets.
 *
 * Launches are random. Each pointer gets memory of its own, so large that addresses computed from
 * small numbers stay in it, and which is filled with small numbers. A launch that fails, since its
 * numbers do not fit together, is left out, and counted.
 */
#ifndef CAPU_TESTS_PTX_SLICES_COMPARE_H
#define CAPU_TESTS_PTX_SLICES_COMPARE_H

#include "interpose/slice/slice.h"
#include "tests/ptx/machine/machine.h"

struct comparison {
    struct ptx_module module;
    struct kernels kernels;
    struct slice *slices; /* of each kernel; text is NULL where there is none */
    struct error_text *refusals;
    struct machine_module *full;
    struct machine_module *sliced;
    struct machine_module *covered; /* the coverage slices */
};

struct compared {
    unsigned launches;
    unsigned left_out;
    uint64_t accesses;    /* of launches that were compared, to memory of the parameters */
    uint64_t covered;     /* bits that coverage slices have set */
    char difference[512]; /* the first one; empty: none */
};

/* Changes the text of slices before they are opened, within its size. */
typedef void (*compare_edit)(char *text);

struct compare_edits {
    compare_edit slices; /* NULL: none */
    compare_edit covers; /* of the coverage slices */
};

/* Makes the slices of all kernels of a text that is kept until the end. `edits` may be NULL. Fails
   the test if the PTX cannot be read or a slice is no PTX. */
void compare_open(const char *text, size_t count, const struct compare_edits *edits,
                  struct comparison *comparison);
void compare_close(struct comparison *comparison);

/* All slices, or all coverage slices, as one module. The caller frees it. */
char *compare_slices(const struct comparison *comparison, bool is_cover);

/* Whether an address lies in a variable of the module. */
bool compare_is_variable(const struct comparison *comparison, uint64_t address);

/* Compares launches of one kernel that has a slice. */
struct compared compare_kernel(const struct comparison *comparison, size_t kernel,
                               unsigned launches, uint64_t seed);

#endif

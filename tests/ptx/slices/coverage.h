/*
 * Compares what a coverage slice sets with what its kernel stores: no bit may be set whose granule
 * the kernel does not store to, and, where all stores from the report's pointers count, no other
 * may be missing. The slice must access nothing but its windows and bitmaps.
 */
#ifndef CAPU_TESTS_PTX_SLICES_COVERAGE_H
#define CAPU_TESTS_PTX_SLICES_COVERAGE_H

#include "interpose/slice/slice.h"
#include "tests/ptx/machine/machine.h"

struct coverage_store {
    uint64_t address;
    uint32_t bytes;
};

/* What a launch of the kernel has stored to, and what its slice of ranges has found. */
struct coverage_launch {
    const struct slice *slice;
    const struct slice_result *results;
    const struct coverage_store *stores;
    size_t store_count;
    const struct machine_function *function; /* the coverage slice */
    struct machine_launch call;
    unsigned char *parameters; /* of the call; the address of the windows is written there */
};

/* Whether all stores from a report's pointers are its own. */
bool coverage_is_complete(const struct slice *slice, size_t report);

/* Runs the slice with windows of its choice. A difference becomes a text; otherwise it stays as it
   is. Returns how many bits were set. */
uint64_t coverage_compare(const struct coverage_launch *launch, uint64_t *random, char *difference,
                          size_t bytes);

/* Runs the slice with these windows, one per report. False: it failed, or accessed other memory. */
bool coverage_run(const struct coverage_launch *launch, const struct slice_window *windows,
                  struct error_text *problem);

static inline bool coverage_bit(const uint32_t *words, uint64_t index)
{
    return (words[index / 32] >> index % 32 & 1) != 0;
}

#endif

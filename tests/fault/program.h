/*
 * A small training program with a tight budget that exercises most of the runtime: small tensors, a
 * split blob, uploads, zeros, updates, cleared writes, evictions and returns, frees inside
 * iterations, downloads. Every call may fail, and is repeated as often as the caller allows.
 */
#ifndef CAPU_TESTS_FAULT_PROGRAM_H
#define CAPU_TESTS_FAULT_PROGRAM_H

#include "tests/support/rig.h"

struct program {
    capu_context *context;
    unsigned retries;      /* how often a failed call is repeated */
    bool keeps_input;      /* the input is persistent: it is read after the last iteration, and a
                              plan may discard a transient one */
    capu_status status;    /* of the call that failed in the end, or OK */
    uint64_t failures;     /* calls that returned an error */
    bool is_wrong;         /* the library's state, or bytes that were read, are wrong */
    const char *what;      /* if is_wrong: what is wrong */
    unsigned char sums[3]; /* the results */
};

/* Runs the program to its end, or to the first call that still fails after all retries. */
void program_run(struct program *program);

/* The host budget is more than enough for all host copies. Without one, each of thousands of
   contexts would pin 16 MiB, which would take most of the time of the sweeps. */
enum { PROGRAM_BUDGET_PAGES = 10, PROGRAM_HOST_PAGES = 64 };

/* The results of a run without failures. */
extern const unsigned char program_sums[3];

#endif

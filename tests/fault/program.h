/*
 * A small training program under a tight budget that passes through most of the runtime: small
 * tensors, a split blob, uploads, zeros, updates, cleared writes, evictions and returns, frees
 * inside iterations, downloads. Every call may fail and is tried again as often as the caller says.
 */
#ifndef CAPU_TESTS_FAULT_PROGRAM_H
#define CAPU_TESTS_FAULT_PROGRAM_H

#include "tests/support/rig.h"

struct program {
    capu_context *context;
    unsigned retries;      /* of each failing call */
    capu_status status;    /* of the call that failed for good; OK */
    uint64_t failures;     /* calls that answered an error */
    bool is_wrong;         /* the books, or bytes that were read, are not right */
    const char *what;      /* then: which */
    unsigned char sums[3]; /* what the program computed */
};

/* Runs it to its end, or to the first call that fails for good. */
void program_run(struct program *program);

/* Host copies of it all, and more. Without a limit each of thousands of contexts pins 16 MiB, and
   the sweeps do little else. */
enum { PROGRAM_BUDGET_PAGES = 10, PROGRAM_HOST_PAGES = 64 };

/* The sums of a run where nothing fails. */
extern const unsigned char program_sums[3];

#endif

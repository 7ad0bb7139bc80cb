/*
 * What `capuchin run` has asked for: environment variables whose names begin with CAPU_RUN_. They
 * are private to the command and this library.
 */
#ifndef CAPU_SHIM_SETTINGS_H
#define CAPU_SHIM_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

struct settings {
    bool is_managed;        /* CAPU_RUN_MODE is set; else calls are only forwarded */
    uint32_t mode;          /* a capu_mode: CAPU_RUN_MODE "off", "passive" or "guided" */
    bool is_strict;         /* CAPU_RUN_STRICT=1, see launch.h */
    bool compiles;          /* CAPU_RUN_JIT=1: PTX where machine code is of another architecture */
    bool trusts_parameters; /* CAPU_RUN_TRUST=1: the user vouches for open kernels' parameters */
    bool recomputes;        /* CAPU_RUN_RECOMPUTE=1, see launch.h */
    uint64_t budget_bytes;  /* CAPU_RUN_BUDGET; 0: not given, or a share */
    double budget_share;    /* of the device's memory, if CAPU_RUN_BUDGET is a percentage; else 0 */
    uint64_t host_bytes;    /* CAPU_RUN_HOST_BUDGET; 0: not given */
    uint64_t pretend_bytes; /* CAPU_RUN_PRETEND: what the program is told that the device has; 0 */
    const char *report_path;      /* CAPU_RUN_REPORT; NULL: none */
    const char *iterations_path;  /* CAPU_RUN_ITERATIONS; NULL: none */
    const char *iteration_kernel; /* CAPU_RUN_ITERATION_KERNEL, a regular expression; NULL: none */
    const char *iteration_range;  /* CAPU_RUN_ITERATION_RANGE, of NVTX; NULL: none */
    const char *operands_path;    /* CAPU_RUN_OPERANDS; NULL: none */
    bool is_wrong;                /* a variable has another value than the command writes */
};

/* Read once; constant after that. Thread: any. */
const struct settings *settings_get(void);

#endif

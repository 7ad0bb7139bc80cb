/*
 * The machines known by name: memory and link as a trace's machine line holds them, and the rates
 * from which the zoo estimates how long an op takes. Data: machines.jsonl, built in.
 */
#ifndef CAPU_MODELS_HARDWARE_H
#define CAPU_MODELS_HARDWARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/error_text.h"
#include "policy/trace.h"

/* What products (convolutions and matrix products) are computed in. */
enum dtype { DTYPE_FP32, DTYPE_TF32, DTYPE_FP16, DTYPE_BF16, DTYPE_COUNT };

struct hardware {
    struct machine machine;
    char text[128];                    /* for people */
    uint64_t flops_per_s[DTYPE_COUNT]; /* peak, dense; 0: the machine has no such units */
    uint64_t memory_bytes_per_s;       /* peak */
    uint64_t product_percent;          /* of the peak that products reach */
    uint64_t memory_percent;           /* of the peak that element-wise ops reach */
    uint64_t launch_ns;
};

const char *dtype_name(enum dtype dtype);

/* A name of the built-in list, or a file whose first line is a machine line. Errors: INVALID (no
   such name or file), BAD_FILE, FILE_FAILED, NO_HOST_MEMORY. */
capu_status hardware_load(struct hardware *hardware, const char *name, struct error_text *error);

/* The built-in list by number. False: there are no more, or its line is bad. */
bool hardware_builtin(struct hardware *hardware, unsigned number);

/* Can ops be timed on it? Errors: INVALID (no rates, or none for the type; the text names those it
   has). */
capu_status hardware_check(const struct hardware *hardware, enum dtype dtype,
                           struct error_text *error);

/* Products at their rate or memory at its, whichever is slower, and the launches. */
uint64_t hardware_op_ns(const struct hardware *hardware, enum dtype dtype, double flops,
                        double bytes, unsigned launches);

#endif

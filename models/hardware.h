/*
 * The machines known by name: memory and link as in the machine line of a trace, and the rates from
 * which the zoo estimates the times of ops. The data is machines.jsonl, which is built in.
 */
#ifndef CAPU_MODELS_HARDWARE_H
#define CAPU_MODELS_HARDWARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error_text.h"
#include "capuchin/status.h"
#include "policy/format/trace.h"

/* The type in which products (convolutions and matrix products) are computed. */
enum dtype { DTYPE_FP32, DTYPE_TF32, DTYPE_FP16, DTYPE_BF16, DTYPE_COUNT };

struct hardware {
    struct machine machine;
    char text[128];                    /* for people */
    uint64_t flops_per_s[DTYPE_COUNT]; /* peak, dense; 0: no rate for this type */
    uint64_t memory_bytes_per_s;       /* peak */
    uint64_t product_percent;          /* share of the peak that products reach */
    uint64_t memory_percent;           /* share of the peak that elementwise ops reach */
    uint64_t launch_ns;
};

const char *dtype_name(enum dtype dtype);

/* Loads a machine by its name, or from a file whose first line is a machine line. Errors: INVALID
   (no such name or file), FILE_FAILED, NO_HOST_MEMORY. */
capu_status hardware_load(struct hardware *hardware, const char *name, struct error_text *error);

/* Loads a built-in machine by its name. False: there is none of that name. */
bool hardware_find(struct hardware *hardware, const char *name);

/* Loads the built-in machine of that number. False: there is none, or its line is malformed. */
bool hardware_builtin(struct hardware *hardware, unsigned number);

/* Checks that ops can be timed. Errors: INVALID (no rates, or none for the type; the text names the
   types that have one). */
capu_status hardware_check(const struct hardware *hardware, enum dtype dtype,
                           struct error_text *error);

/* A roofline estimate: products at their rate or memory traffic at its rate, whichever takes
   longer, plus the launches. */
uint64_t hardware_op_ns(const struct hardware *hardware, enum dtype dtype, double flops,
                        double bytes, unsigned launches);

#endif

/* What the files of reach share. */
#ifndef CAPU_INTERPOSE_SHIM_REACH_PARTS_H
#define CAPU_INTERPOSE_SHIM_REACH_PARTS_H

#include "interpose/shim/reach.h"

#include "interpose/slice.h"

enum { REACH_REPORTS_MOST = 256 }; /* of a slice: loads and stores, may or not, of 64 words */

/* A piece of the parameters on which the results of a slice depend. */
struct reach_input {
    uint32_t parameter;
    uint32_t offset; /* in the parameter */
    uint32_t bytes;
};

/* Of a kernel. Complete when it is published; then only the counters change, under the core's
   lock. */
struct reach {
    struct slice slice;
    CUmodule module;
    CUfunction function;       /* the slice; NULL: there is none */
    struct error_text problem; /* why */
    uint64_t whole;            /* bit i: words[i] reaches over its allocation */
    struct reach_input *inputs;
    size_t input_count, input_capacity;
    uint64_t run_count, repeat_count, whole_count;
};

/* The range of one report, relative to the first pointer of its first word. */
struct reach_result {
    uint64_t lowest; /* less the pointer, modulo 2^64 */
    uint64_t bytes;  /* 0: no access; UINT64_MAX: all pointers reach over their allocations */
};

/* reach_run.c. For the thread that has entered the core, but for loading. */

/* Loads what slice_emit has made. Errors: those of the driver. */
CUresult reach_load(const struct ptx_module *module, const struct kernel *roles,
                    struct reach *reach);

/* Launches the slice, and waits for its results, one per report. */
CUresult reach_run(const struct reach *reach, const struct kernel *roles,
                   const struct launch *launch, struct slice_result *results);

/* reach_key.c */

enum { REACH_KEY_BYTES_MOST = 8192 };

/* Finds what the results of a slice depend on. Errors: NO_HOST_MEMORY. */
capu_status reach_find_inputs(const struct kernel *roles, struct reach *reach);

/* Writes what this launch's results depend on. 0: parameters are missing. */
size_t reach_key(const struct code_kernel *kernel, const struct launch *launch,
                 unsigned char key[REACH_KEY_BYTES_MOST]);

/* reach_operands.c */

/* Adds the operands of all reports and of what reaches over whole allocations. Errors: those of
   reach_add. `results` NULL: everything does. */
CUresult reach_add_results(const struct code_kernel *kernel, const struct launch *launch,
                           const struct reach_result *results, struct operands *operands);

#endif

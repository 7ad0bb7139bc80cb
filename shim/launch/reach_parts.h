/* What the files of reach share. */
#ifndef CAPU_SHIM_REACH_PARTS_H
#define CAPU_SHIM_REACH_PARTS_H

#include "shim/launch/reach.h"

#include "interpose/slice/cover.h"
#include "interpose/slice/slice.h"

enum {
    REACH_REPORTS_MOST = 256, /* of a slice: loads and stores, may or not, of 64 words */
    REACH_INTERVALS_MOST = 256,
};

/* A source of a slice, if it is a variable. */
struct reach_variable {
    CUdeviceptr address;
    size_t bytes;
    CUdeviceptr copy; /* from which the slice reads it; 0: it reads the variable itself */
};

/* Which tensors a data slice has found at its last run for a launch. */
struct reach_site {
    uint64_t pointers; /* the launch: a hash of where its pointers lead; 0: there was none */
    uint64_t cuts;     /* cut_generation() then */
    uint64_t tensors;  /* a hash of what was found */
};

enum { REACH_SITES = 32 };

/* Of a kernel. Complete when it is published; then only the counters change, under the core's
   lock. */
struct reach {
    struct slice slice;
    CUmodule module;
    CUfunction function;              /* the slice; NULL: there is none */
    CUfunction cover;                 /* the coverage slice; NULL: there is none */
    struct error_text problem;        /* why */
    struct reach_variable *variables; /* of each source of the slice */
    uint64_t whole;                   /* bit i: words[i] reaches over its allocation */
    uint64_t known;                   /* bit i: the slice reports all accesses from words[i] */
    struct reach *data;               /* the second slice, with data; NULL: there is none */
    unsigned useless_count;           /* of its last runs in a row have spared little */
    unsigned varied_count;            /* runs that have found other tensors than the one before */
    struct reach_site sites[REACH_SITES];
    size_t row_bytes; /* slice_key_bytes() */
    uint64_t run_count, repeat_count, whole_count;
    uint64_t written_bytes; /* of tensors that launches have written as a whole */
    bool has_failed;        /* a launch of the kernel was not carried out */
};

/* The range of one report, relative to slice_base(). */
struct reach_result {
    uint64_t lowest; /* less the base, modulo 2^64 */
    uint64_t bytes;  /* 0: no access; UINT64_MAX: all pointers reach over their allocations */
};

/* Memory that a launch stores to for certain, through the pointers of a report. */
struct reach_interval {
    uint32_t report;
    uint64_t first; /* as `lowest` above */
    uint64_t bytes;
};

/* reach_run.c. For the thread that has entered the core, but for loading. */

/* Loads what slice_emit has made. Errors: those of the driver. */
CUresult reach_load(const struct ptx_module *module, const struct kernel *roles,
                    struct reach *reach);

/* Launches the slice, and waits for its results, one per report. `block`: the launch's parameters,
   to which the address of the results and those of variables are added. */
CUresult reach_run(const struct reach *reach, const struct launch *launch,
                   unsigned char block[PARAMETERS_BYTES_MOST], struct slice_result *results);

/* The stream on which a slice runs. Pre: reach_run has succeeded. */
CUstream reach_stream(const struct reach *reach);

/* Enqueues a slice there, or its coverage slice; `address`, which is added to the parameters: of
   its results or windows. */
CUresult reach_launch(CUfunction function, const struct reach *reach, const struct launch *launch,
                      unsigned char block[PARAMETERS_BYTES_MOST], uint64_t address);

/* Finds the variables that a slice reads. Errors, after which nothing is held: those of the
   driver. */
CUresult reach_find_variables(const struct code_kernel *kernel, struct reach *reach);

/* Adds them to the slice's parameters, and enqueues copies of constants. */
CUresult reach_set_variables(const struct reach *reach, CUstream stream, unsigned char *block);

/* Whether a launch may store to variables of modules: by their names, or by pointers to other
   memory than the program's allocations. */
bool reach_stores_elsewhere(const struct kernel *roles, const unsigned char *block);

enum { REACH_KEY_BYTES_MOST = 16384 };

/* What a launch's operands depend on, as bytes. */
struct reach_key {
    size_t results_bytes; /* from the start: what the slice's results depend on */
    size_t bytes;         /* all: and where its pointers lead */
    unsigned char key[REACH_KEY_BYTES_MOST];
};

/* Whether all of it has room. Pre: the slice is there, or empty. */
bool reach_key_fits(const struct kernel *roles, const struct reach *reach);

/* Pre: reach_key_fits. */
void reach_find_key(const struct code_kernel *kernel, const struct launch *launch,
                    const unsigned char *block, struct reach_key *key);

/* reach_operands.c */

/* Adds the operands of all reports and of what reaches over whole allocations, and to `reads` all
   that may be read. Notes nothing of them. Cuts what the launch is the first to touch, if asked to.
   Errors: those of reach_add. `results` NULL: everything does. */
CUresult reach_list_operands(const struct code_kernel *kernel, const struct launch *launch,
                             const unsigned char *block, const struct reach_result *results,
                             struct operands *operands, struct operands *reads, bool cuts);

/* reach_write.c */

/* Launches the coverage slice for a launch with these results, and waits for it. Stores intervals
   that are stored to for certain, as far as they are of use, with their addresses; returns how
   many. Pre: reach_run has succeeded. */
size_t reach_cover(const struct reach *reach, const struct launch *launch,
                   unsigned char block[PARAMETERS_BYTES_MOST], const struct slice_result *results,
                   struct reach_interval intervals[REACH_INTERVALS_MOST]);

/* Makes writes of the updates of those tensors that are covered and that no read meets. Puts
   `covered` in order. Returns the bytes of the writes. */
uint64_t reach_find_writes(struct operands *operands, const struct operands *reads,
                           struct operands *covered);

/* reach_data.c */

/* Reads the data on which addresses of a launch depend, if that pays: the result of each report of
   the second slice, given those of the first and the operands that follow from them. Returns the
   words of which these are all accesses, as bits; 0: it was not done. *widens: operands should be
   the tensors that these meet, so that they are the same in the next iteration. */
uint64_t reach_read_data(const struct code_kernel *kernel, const struct launch *launch,
                         const unsigned char *block, const struct operands *operands,
                         const struct reach_result *results,
                         struct reach_result read[REACH_REPORTS_MOST], bool *widens);

#endif

/*
 * How far the launches of a closed kernel reach. Its address slice (interpose/slice/slice.h) is
 * launched with what the launch depends on, and says which range is accessed from each pointer.
 * What it has found is kept, relative to the pointers: a launch that depends on the same runs no
 * slice.
 *
 * A kernel without a slice, and a pointer that the slice knows nothing of, reaches over whole
 * allocations.
 */
#ifndef CAPU_SHIM_REACH_H
#define CAPU_SHIM_REACH_H

#include "shim/core/code.h"
#include "shim/core/operands.h"
#include "shim/driver/driver.h"
#include "shim/launch/launch.h"

/* Whether reach_prepare has not been called for a kernel whose slices would be of use. Pre: the
   core was entered. */
bool reach_is_due(const struct code_kernel *kernel);

/* Makes and loads the slice of a closed kernel, unless that was done. Pre: the core was not
   entered: loading may take long, and may wait for the device. Thread: any. */
void reach_prepare(struct code_kernel *kernel);

/* Unloads the slices of kernels whose code is gone. Pre: the core was not entered: the driver may
   wait for the device. Thread: any. */
void reach_unload(void);

/*
 * Finds the operands of a launch of a closed kernel, and cuts what the launch is the first to
 * touch. Pre: the core was entered; there are no operands yet. Errors: INVALID_VALUE: the launch
 * lacks parameters; ILLEGAL_ADDRESS: the kernel would store outside an allocation, and a line says
 * so.
 */
CUresult reach_add(struct code_kernel *kernel, const struct launch *launch,
                   struct operands *operands);

/* Notes that a launch was not begun, or was and was refused by the driver. From then on launches of
   the kernel fetch what they write. `has_lost`: it was begun, and was to write whole tensors, which
   were not fetched. Pre: the core was entered. */
void reach_note_failure(const struct code_kernel *kernel, bool has_lost);

/* What the report says of a kernel's slices. */
struct reach_summary {
    uint64_t run_count;     /* launches of the slice */
    uint64_t repeat_count;  /* launches of the kernel that needed none */
    uint64_t whole_count;   /* launches that took whole allocations, since the slice had failed */
    uint64_t read_count;    /* launches of the kernel for which data was read */
    uint64_t written_bytes; /* of tensors that launches have written as a whole */
    const char *reason;     /* why there is no slice; NULL: there is one */
    bool is_loaded;
};

/* False: no launch of the kernel has asked for a slice. Pre: no launch is being begun. */
bool reach_summarise(const struct code_kernel *kernel, struct reach_summary *summary);

/* Why a word of the kernel always reaches over its whole allocation although there is a slice;
   NULL: it does not. */
const char *reach_whole_reason(const struct code_kernel *kernel, size_t word);

#endif

/*
 * Iterations of the program, in guided mode: each launch, copy, memset and library call is an event
 * for interpose/period/period.h, which says where an iteration begins. Then the library's iteration
 * ends and the next one begins (capuchin/iteration.h), before the work of that event. They have no
 * label: the library tells training from validation by what preceded them.
 *
 * For the thread that has entered the core, except what says otherwise. In other modes nothing
 * happens.
 */
#ifndef CAPU_SHIM_ITERATION_H
#define CAPU_SHIM_ITERATION_H

#include "capuchin/capuchin.h"

#include "interpose/period/period.h"

#include <stdbool.h>
#include <stdint.h>

/* The hash of pointers and one more: which allocation it lies in, and where. Of none it is 0. */
uint64_t iteration_mix_pointer(uint64_t pointers, uint64_t ordinal, uint64_t offset);

/* Whether it no longer counts where in data (alloc_find_data) a pointer lies: steps that each take
   another part of it have no period otherwise. */
bool iteration_is_loose(void);

/* The hash of pointers and of more pointers, given by their own hash. */
uint64_t iteration_join_pointers(uint64_t pointers, uint64_t more);

/* An event, before its access begins. `name`: of the kernel or function; the same address for the
   same name. `pointers`: the hash of the call's pointers. */
void iteration_event(capu_context *context, const char *name, enum period_kind kind,
                     uint64_t pointers);

/* The next event begins an iteration, because the user says so. Thread: any, entered or not. */
void iteration_name_next(void);

/* Memory is about to be allocated, which may be what the next iteration begins with. Returns when:
   for iteration_free. */
uint64_t iteration_allocate(capu_context *context);

/* An allocation is about to be freed. Plans rely on that, so it is part of the iteration. */
void iteration_free(capu_context *context, uint64_t ordinal, uint64_t born);

/* Ends the open iteration. */
void iteration_close(capu_context *context);

/* How long the host waits for the device, which is often between two iterations: the time before a
   wait, and after it the note of that. Thread: any, entered or not. */
uint64_t iteration_wait_begin(void);
void iteration_wait_end(uint64_t begun_ns);

/* For the report. What became of iterations is counted from the library's reports as the next ones
   begin, so that of the last ones is missing. */
struct iteration_figures {
    uint64_t count;           /* iterations that have begun */
    uint64_t guided_count;    /* that followed a plan to the end */
    uint64_t unplaced_count;  /* of these, by a plan without places */
    uint64_t diverged_count;  /* that left their plan */
    uint64_t unplanned_count; /* without a plan */
    uint64_t stall_ns;        /* of those that were timed */
    uint64_t timed_count;
    const char *name;          /* of the event that begins iterations; NULL: none was found */
    struct period_state state; /* how it was found */
};

struct iteration_figures iteration_figures(void);

#endif

/*
 * Drives the library with a trace: the runtime as programs use it, on the sim device, whose clock
 * is the execution model's. Every tensor is an allocation, every op a capu_run that takes its time.
 *
 * The context gets the budget less what it does not hold. Tensors of the trace that are not managed
 * lie in slabs if they are small enough; of larger ones there is one byte, so that ops may name it.
 * Persistent tensors that no op names are left out. A plan holds all of them all the time: what of
 * it is not in the context's slabs is set aside.
 *
 * Owned by one thread.
 */
#ifndef CAPU_MODELS_DRIVER_H
#define CAPU_MODELS_DRIVER_H

#include <stdint.h>

#include "capuchin/context.h"
#include "capuchin/report.h"
#include "policy/error_text.h"
#include "policy/plan.h"
#include "policy/timeline.h"
#include "policy/trace_index.h"

struct driver_options {
    const struct machine *machine; /* NULL: the trace's own */
    uint64_t budget_bytes;         /* of the plan, what is set aside included */
    uint64_t host_bytes;           /* 0: no limit */
    uint64_t slab_bytes;           /* smaller tensors lie in slabs; 0: half a page; at least 2 */
    const char *planner;           /* NULL: the default */
    uint32_t effort;               /* capu_effort */
    uint32_t mode;                 /* capu_mode */
    const char *report_path;       /* a JSON line an iteration; must not be NULL */
    const char *plan_path;         /* the runtime's plan, with its own ids; NULL: none */
    const char *trace_path;        /* the second iteration as recorded; NULL: none */
};

struct driver;

/*
 * A context with every tensor allocated and described, and contents in what is persistent.
 * `trace_index` was made with the page of the device, and outlives the driver. On failure *out is
 * untouched. Errors: OVER_BUDGET, INVALID (the page, or a machine that sim cannot be), and those of
 * creating a context and of running an op.
 */
capu_status driver_create(const struct trace_index *trace_index,
                          const struct driver_options *options, struct driver **out,
                          struct error_text *error);
/* NULL is fine. */
void driver_destroy(struct driver *driver);

/* One iteration. Does not wait for it: waiting in between would change what the next one takes.
   Errors: those of running an op. */
capu_status driver_iterate(struct driver *driver, struct error_text *error);

/* Waits until all iterations are done and all files written. */
capu_status driver_settle(struct driver *driver, struct error_text *error);

/* After driver_settle: mode and counters of the iterations so far, `count` at most, in order; the
   strings and evictions of the reports are empty. Errors: those of reading the file. */
capu_status driver_reports(struct driver *driver, capu_report *reports, size_t count,
                           struct error_text *error);

/* After driver_settle: the newest plan in the trace's own terms, to be finished by the caller.
   Errors: NOT_READY (there is none), those of reading the file, INVALID (not of this trace). */
capu_status driver_plan(struct driver *driver, struct plan *plan, struct error_text *error);

/* Validates and times such a plan; the timeline is to be finished by the caller. Errors: those of
   validate_plan and timeline_init. */
capu_status driver_simulate(const struct driver *driver, const struct plan *plan,
                            struct timeline *timeline, struct error_text *error);

#endif

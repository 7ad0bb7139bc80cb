/*
 * Runs a trace through the library, used as programs use it, on the sim device, whose clock follows
 * the execution model. Every tensor is an allocation, and every op is a capu_run that takes the
 * op's time. So the times of the runtime and of the model can be compared to the nanosecond.
 *
 * That needs the same memory on both sides. In a plan, tensors that are not managed take their
 * place all the time. In the context, small ones lie in slabs; larger ones are represented by a
 * single byte, so that ops can name them; and persistent ones that no op names do not exist. What
 * the plan counts and the context does not hold is set aside: the context gets the budget without
 * it.
 *
 * Owned by one thread.
 */
#ifndef CAPU_MODELS_DRIVER_H
#define CAPU_MODELS_DRIVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error_text.h"
#include "capuchin/context.h"
#include "capuchin/status.h"
#include "policy/format/plan.h"
#include "policy/format/report.h"
#include "policy/model/timeline.h"
#include "policy/model/trace_index.h"

struct driver_options {
    const struct machine *machine; /* NULL: the trace's own */
    uint64_t budget_bytes;         /* of the plan, including what is set aside */
    uint64_t host_bytes;           /* 0: no limit */
    uint64_t slab_bytes;           /* smaller tensors lie in slabs; 0: half a page; at least 2 */
    const char *planner;           /* NULL: the default */
    uint32_t effort;               /* enum plan_effort */
    uint32_t mode;                 /* capu_mode */
    bool trains_on;                /* guided mode: iterations do not wait for plans */
    bool has_timelines; /* all iterations are timed, and the report has their timelines */
    /* Files of the run; they must not hold anything of an earlier run. */
    const char *report_path; /* one JSON line per iteration; must not be NULL */
    const char *plan_path;   /* the runtime's plan, with its own ids; NULL: none */
    const char *trace_path;  /* the second iteration as recorded; NULL: none */
};

struct driver;

/*
 * Creates a context, allocates and describes every tensor, and writes contents to persistent ones.
 * `trace_index` must have been made with the page size of the device and must outlive the driver.
 * On failure *out is unchanged. Errors: OVER_BUDGET, INVALID (the page, or a machine that sim
 * cannot be), and those of creating a context and of running an op.
 */
capu_status driver_create(const struct trace_index *trace_index,
                          const struct driver_options *options, struct driver **out,
                          struct error_text *error);
/* NULL does nothing. */
void driver_destroy(struct driver *driver);

/* Runs one iteration. It does not wait for it, because that would change the time of the next one.
   Errors: those of running an op. */
capu_status driver_iterate(struct driver *driver, struct error_text *error);

/* Waits until all iterations have completed and all files are written. */
capu_status driver_settle(struct driver *driver, struct error_text *error);

/* After driver_settle: mode and counters of the iterations so far, `count` at most, in order; the
   strings and evictions of the reports are empty. Errors: those of reading the file. */
capu_status driver_reports(struct driver *driver, struct report *reports, size_t count,
                           struct error_text *error);

/* After driver_settle: the newest plan, with the ids of the trace; the caller finishes it. Errors:
   NOT_READY (there is none), those of reading the file, INVALID (it is not for this trace). */
capu_status driver_plan(struct driver *driver, struct plan *plan, struct error_text *error);

/* Validates and times such a plan; the caller finishes the timeline. Errors: those of validate_plan
   and timeline_init. */
capu_status driver_simulate(const struct driver *driver, const struct plan *plan,
                            struct timeline *timeline, struct error_text *error);

#endif

/*
 * Reports: what an iteration did with memory, and why it was slow.
 *
 * A report describes a finished iteration. Under a steady plan of mode guided most iterations do
 * not have their ops timed (capu_config.sample_every): then `timed` is 0, and compute_ns, stall_ns,
 * recompute_ns and what was waited for are CAPU_NOT_TIMED. The same counters appear in the struct,
 * in the JSON line of the report file and in the printed table.
 */
#ifndef CAPU_INCLUDE_REPORT_H
#define CAPU_INCLUDE_REPORT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "capuchin/context.h"
#include "capuchin/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CAPU_REPORT_VERSION 1

/*
 * X(name, unit, text). One list makes the struct's fields, the JSON keys and the table's lines.
 * Grown at the end only.
 */
#define CAPU_REPORT_COUNTERS(X)                                                                    \
    X(iteration, count, "iteration, counted from 1")                                               \
    X(op_count, count, "ops")                                                                      \
    X(access_count, count, "tensor accesses")                                                      \
    X(time_ns, ns, "from the iteration's first work to its last, on the device")                   \
    X(compute_ns, ns, "sum of the ops' own times")                                                 \
    X(stall_ns, ns, "compute stood still for memory: waits for room and for tensors to come back") \
    X(host_wait_ns, ns,                                                                            \
      "of the host: waits for an eviction to finish before memory can be reused")                  \
    X(budget_bytes, bytes, "the limit")                                                            \
    X(peak_bytes, bytes, "most device memory held: pages in use and always-resident ones")         \
    X(fixed_bytes, bytes, "of it always resident: slabs and edge pages, at the iteration's end")   \
    X(live_peak_bytes, bytes, "what an unlimited run needs: page-rounded live tensors and fixed")  \
    X(floor_bytes, bytes, "the smallest budget this iteration can run in")                         \
    X(next_floor_bytes, bytes, "the floor were it not for that op: what splitting it can give")    \
    X(host_bytes, bytes, "host memory in use for evicted tensors, at the most")                    \
    X(evicted_bytes, bytes, "copied out to host memory")                                           \
    X(prefetched_bytes, bytes, "copied back to the device")                                        \
    X(dropped_bytes, bytes,                                                                        \
      "given up without a copy: a clean host copy was there, or no contents")                      \
    X(evict_count, count, "evictions, with and without a copy")                                    \
    X(prefetch_count, count, "tensors brought back")                                               \
    X(recompute_ns, ns, "replays")                                                                 \
    X(map_count, count, "calls that mapped memory")                                                \
    X(unmap_count, count, "calls that unmapped memory")                                            \
    X(replay_count, count, "ops run again to recompute what was dropped")                          \
    X(predicted_ns, ns, "how long the plan in force says the iteration takes; 0: no plan")         \
    X(install_ns, ns, "of the host: waits and mapping to put a plan in force before it")           \
    X(diverged, count, "1: the iteration left its plan, and went on without")                      \
    X(diverged_at, count, "the op that was not the planned one")                                   \
    X(timed, count, "1: each op was timed; 0: compute_ns, stall_ns and recompute_ns are not known")

/* In place of a time in the report of an iteration whose ops were not timed. JSON: null. */
#define CAPU_NOT_TIMED UINT64_MAX

/* How a tensor left. */
typedef enum capu_method {
    CAPU_METHOD_SWAP = 1,     /* copied out */
    CAPU_METHOD_CLEAN = 2,    /* a valid host copy was there already */
    CAPU_METHOD_EMPTY = 3,    /* nothing in it worth keeping */
    CAPU_METHOD_RECOMPUTE = 4 /* given up, and recomputed by running earlier ops again */
} capu_method;

/* One tensor leaving the device, and its return if that was in the same iteration. */
typedef struct capu_eviction {
    const char *tensor; /* name */
    uint64_t bytes;
    uint32_t method;         /* capu_method */
    uint32_t is_hidden;      /* it came back in time: nothing waited for it, as far as is known */
    uint64_t evicted_access; /* op after which it left, from 0; UINT64_MAX: before the first */
    const char *evicted_op;  /* that op's name, or "" */
    uint64_t back_access;    /* op that touched it next; UINT64_MAX: not in this iteration */
    const char *back_op;     /* that op's name, or "" */
    uint64_t in_trigger;     /* op before which bringing back began; UINT64_MAX: none */
    uint64_t wait_ns; /* how long the back-access stood still for it and others, or NOT_TIMED */
} capu_eviction;

/* A place where compute stood still: for tensors to come back, or for room to be made. Before an
   op, or before an earlier op that was run again for it. */
typedef struct capu_stall {
    uint64_t access; /* op, from 0; UINT64_MAX: behind the last one */
    const char *op;  /* its name, or "" */
    uint64_t wait_ns;
    const char *replay; /* the op whose replay waited, by name; "": the op itself did */
} capu_stall;

#define CAPU_REPORT_FIELD(name, unit, text) uint64_t name;
typedef struct capu_report {
    size_t size; /* sizeof(capu_report), as the caller was compiled */
    uint32_t version;
    uint32_t mode;        /* capu_mode in force */
    const char *label;    /* of the iteration, or "" */
    const char *floor_op; /* the op that sets the floor, or "" */
    const capu_eviction *evictions;
    size_t eviction_count;
    CAPU_REPORT_COUNTERS(CAPU_REPORT_FIELD)
    const char *plan_error; /* mode guided: why no plan was found for iterations like this; or "" */
    const capu_stall *stalls; /* in their order; stall_ns is their sum */
    size_t stall_count;
} capu_report;
#undef CAPU_REPORT_FIELD

#ifndef __cplusplus
#define CAPU_REPORT_INIT            \
    {                               \
        .size = sizeof(capu_report) \
    }
#else
static inline capu_report capu_report_init(void)
{
    capu_report report = capu_report();
    report.size = sizeof(report);
    return report;
}
#define CAPU_REPORT_INIT capu_report_init()
#endif

/*
 * Gives the report of the newest finished iteration. Does not wait: call capu_synchronize before to
 * have the last one. The pointers in it stay valid until the next capu_iteration_begin,
 * capu_synchronize or capu_report_get.
 * Errors: INVALID, WRONG_STRUCT, NOT_READY (no iteration has finished), UNSUPPORTED (mode off
 * without a trace or report file keeps no records).
 */
CAPU_API capu_status capu_report_get(capu_context *context, capu_report *report);

/*
 * Prints a report as a table for people: the counters, then the ops that waited longest and the
 * evictions that cost most.
 * Errors: INVALID, WRONG_STRUCT, NO_HOST_MEMORY, FILE_FAILED.
 */
CAPU_API capu_status capu_report_print(const capu_report *report, FILE *file);

/*
 * Prints who holds device and host memory now, largest first: what to read after OVER_BUDGET.
 * Errors: INVALID, NO_HOST_MEMORY, FILE_FAILED.
 */
CAPU_API capu_status capu_memory_print(capu_context *context, FILE *file);

/*
 * Device and host bytes now, and at most since the context was created. The device bytes are those
 * the budget limits. Any pointer may be NULL.
 */
CAPU_API void capu_memory_usage(const capu_context *context, uint64_t *held_bytes,
                                uint64_t *peak_bytes, uint64_t *host_bytes);

#ifdef __cplusplus
}
#endif

#endif

/*
 * Reports: what an iteration did with memory, and why it was slow.
 *
 * A report describes a finished iteration. In guided mode under a steady plan, the ops of most
 * iterations are not timed (the setting sample_every): then `timed` is 0, and compute_ns, stall_ns,
 * recompute_ns and the waits of evictions are CAPU_NOT_TIMED. The struct and the printed table have
 * the counters below. The JSON line of the report file has them, too, and more. docs/report.md
 * lists all, and explains how to read them.
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
 * X(name, unit, text). One list generates the struct's fields and the table's lines. New counters
 * are only ever appended. Times are device time unless the text says host.
 */
#define CAPU_REPORT_COUNTERS(X)                                                                \
    X(iteration, count, "iteration, counted from 1")                                           \
    X(time_ns, ns, "from the iteration's first work to its last, on the device")               \
    X(compute_ns, ns, "sum of the ops' own times")                                             \
    X(stall_ns, ns, "compute waited for memory: for room, or for tensors to be copied back")   \
    X(recompute_ns, ns, "time of replays")                                                     \
    X(waited_ns, ns,                                                                           \
      "ops waited for others, as they said; in time_ns, not in compute_ns or stall_ns")        \
    X(install_ns, ns, "host time: waiting and mapping to install a plan before the iteration") \
    X(predicted_ns, ns, "how long the planner says an iteration takes; 0: no plan")            \
    X(timed, count, "1: each op was timed; 0: compute_ns, stall_ns, recompute_ns are unknown") \
    X(diverged, count, "1: the iteration left its plan and continued in passive mode")         \
    X(unplaced, count,                                                                         \
      "1: a plan without places for tensors: the iteration maps and unmaps memory")            \
    X(budget_bytes, bytes, "the limit")                                                        \
    X(peak_bytes, bytes,                                                                       \
      "most device memory held at once: pages in use, always-resident included")               \
    X(live_peak_bytes, bytes,                                                                  \
      "what an unlimited run needs: live tensors in whole pages, slabs and edge pages")        \
    X(floor_bytes, bytes, "the smallest budget this iteration can run in")                     \
    X(evicted_bytes, bytes, "copied out to host memory")                                       \
    X(prefetched_bytes, bytes, "copied back to the device")                                    \
    X(replay_count, count, "ops run again to recompute what was dropped")                      \
    X(map_count, count,                                                                        \
      "calls that mapped memory; none in a steady iteration whose plan has places")

/* Stands for a time that is unknown because the iteration's ops were not timed. JSON: null. */
#define CAPU_NOT_TIMED UINT64_MAX

/* How a tensor was evicted. */
typedef enum capu_method {
    CAPU_METHOD_SWAP = 1,     /* copied out */
    CAPU_METHOD_CLEAN = 2,    /* not copied: a valid host copy already existed */
    CAPU_METHOD_EMPTY = 3,    /* not copied: it had no contents worth keeping */
    CAPU_METHOD_RECOMPUTE = 4 /* discarded, and recomputed by running earlier ops again */
} capu_method;

/* One eviction of a tensor, and the tensor's return if that was in the same iteration. Ops are
   counted from 0. */
typedef struct capu_eviction {
    const char *tensor; /* name */
    uint64_t bytes;
    uint32_t method;         /* capu_method */
    uint32_t is_hidden;      /* nothing waited for its return, as far as is known */
    uint64_t evicted_access; /* op after which it was evicted; UINT64_MAX: before the first */
    const char *evicted_op;  /* that op's name, or "" */
    uint64_t back_access;    /* op that accessed it next; UINT64_MAX: none in this iteration */
    const char *back_op;     /* that op's name, or "" */
    uint64_t in_trigger;     /* op before which its return was started; UINT64_MAX: none */
    uint64_t wait_ns; /* how long compute waited at the back-access, for this tensor and others, or
                         CAPU_NOT_TIMED */
} capu_eviction;

/* A place where compute waited for tensors to be copied back or for room to be made: before an op,
   or before the replay of an earlier op on its behalf. */
typedef struct capu_stall {
    uint64_t access; /* op, counted from 0; UINT64_MAX: after the last one */
    const char *op;  /* its name, or "" */
    uint64_t wait_ns;
    const char *replay; /* name of the op whose replay waited; "": the op itself waited */
} capu_stall;

#define CAPU_REPORT_FIELD(name, unit, text) uint64_t name;
typedef struct capu_report {
    size_t size; /* sizeof(capu_report), as the caller was compiled */
    uint32_t version;
    uint32_t mode;        /* capu_mode: guided if a plan was active, else passive or off */
    const char *label;    /* of the iteration, or "" */
    const char *floor_op; /* the op that sets the floor, or "" */
    const capu_eviction *evictions;
    size_t eviction_count;
    const char *plan_error;   /* guided mode: why there was no plan for this iteration, or "" */
    const capu_stall *stalls; /* in the order of the ops; stall_ns is their sum */
    size_t stall_count;
    CAPU_REPORT_COUNTERS(CAPU_REPORT_FIELD) /* last, so that a new counter moves no field */
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
 * Stores the report of the newest finished iteration in *report. The caller sets report->size. Does
 * not wait: call capu_synchronize first to get the last iteration. The pointers in the report
 * belong to the context and stay valid until the next capu_iteration_begin, capu_synchronize or
 * capu_report_get.
 * Errors: INVALID (`report` is NULL), WRONG_STRUCT, NOT_READY (no iteration has finished),
 * UNSUPPORTED (mode off keeps no records unless strict mode, a report file or a trace file asks for
 * them), NO_HOST_MEMORY.
 */
CAPU_API capu_status capu_report_get(capu_context *context, capu_report *report);

/*
 * Prints a report as a readable table: the counters, then the ops that waited longest and the most
 * expensive evictions. Control characters in names are escaped ("\x1b"). Thread: any, while the
 * report's pointers are valid.
 * Errors: INVALID (NULL), WRONG_STRUCT, NO_HOST_MEMORY, FILE_FAILED.
 */
CAPU_API capu_status capu_report_print(const capu_report *report, FILE *file);

/*
 * Prints which tensors hold device and host memory now, largest first, and how much of the slabs
 * small tensors take. Small tensors of one kind whose names differ in numbers only, or that have
 * none, share a line. Control characters in names are escaped. Useful after OVER_BUDGET.
 * Does not wait; works after any failure.
 * Errors: INVALID (NULL), NO_HOST_MEMORY, FILE_FAILED.
 */
CAPU_API capu_status capu_memory_print(capu_context *context, FILE *file);

/*
 * What the library has copied since the context was created, in iterations and outside them, in
 * every mode. Copies that the program asks for (capu_upload, capu_download, capu_copy) are not
 * among them.
 */
typedef struct capu_traffic {
    size_t size;                /* sizeof(capu_traffic), as the caller was compiled */
    uint64_t out_bytes;         /* copied to host memory */
    uint64_t out_count;         /* these copies, each of one tensor */
    uint64_t back_bytes;        /* copied back to the device */
    uint64_t back_count;        /* these copies, each of one tensor */
    uint64_t clean_bytes;       /* evicted without a copy: a valid host copy existed */
    uint64_t empty_bytes;       /* evicted without a copy: there were no contents worth keeping */
    uint64_t discarded_bytes;   /* evicted without a copy: a plan recomputed the contents */
    uint64_t overwritten_bytes; /* not copied back without a plan: ops overwrote them as a whole */
    uint64_t host_wait_ns;      /* host time: the calling thread waited for evictions */
    uint64_t stall_ns; /* device time: compute waited for memory, before ops and replays. Not in
                          iterations without times (capu_report.timed), nor where that is not known
                          yet: the newest iterations, and about the newest op outside of them */
} capu_traffic;

/*
 * Stores these totals in *traffic. The caller sets traffic->size. Does not wait; works after any
 * failure, and between capu_access_begin and capu_access_end. They only grow, so a part of a run is
 * the difference of two calls.
 * Errors: INVALID (`traffic` is NULL), WRONG_STRUCT.
 */
CAPU_API capu_status capu_traffic_get(capu_context *context, capu_traffic *traffic);

/*
 * Device bytes in use now, the most device bytes in use since the context was created (both count
 * against the budget), and the bytes of pinned host memory taken for evicted tensors, which count
 * against the host budget and are kept until the context is destroyed. Any pointer may be NULL.
 * Does nothing if there is no context.
 */
CAPU_API void capu_memory_usage(const capu_context *context, uint64_t *held_bytes,
                                uint64_t *peak_bytes, uint64_t *host_bytes);

#ifdef __cplusplus
}
#endif

#endif

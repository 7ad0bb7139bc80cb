/*
 * The report of an iteration with all its counters: as the library keeps it, and as its line in the
 * report file has it (docs/report.md). The struct that programs read (capuchin/report.h) has only
 * the counters that they decide by.
 */
#ifndef CAPU_POLICY_REPORT_H
#define CAPU_POLICY_REPORT_H

#include "capuchin/report.h"

#include <stddef.h>
#include <stdint.h>

/* X(name, unit, text), as CAPU_REPORT_COUNTERS. One list generates fields and JSON keys; new
   counters are only ever appended. */
#define REPORT_COUNTERS(X)                                                                        \
    CAPU_REPORT_COUNTERS(X)                                                                       \
    X(op_count, count, "ops")                                                                     \
    X(access_count, count, "tensor accesses")                                                     \
    X(host_wait_ns, ns, "host time: the calling thread waited for an eviction to free memory")    \
    X(fixed_bytes, bytes, "always-resident part of peak_bytes: slabs and edge pages, at the end") \
    X(next_floor_bytes, bytes,                                                                    \
      "the floor without the op that sets it: what splitting it can give")                        \
    X(host_bytes, bytes, "host memory taken for evicted tensors")                                 \
    X(dropped_bytes, bytes,                                                                       \
      "evicted without a copy: a valid host copy existed, or there were no contents")             \
    X(evict_count, count, "evictions, with and without a copy")                                   \
    X(prefetch_count, count, "tensors copied back")                                               \
    X(unmap_count, count, "calls that unmapped memory")                                           \
    X(diverged_at, count, "the op that differed from the plan, counted from 0")                   \
    X(guided_mode, count, "1: the context is in guided mode, with or without a plan")             \
    X(plan_bytes, bytes, "host memory of the plans that are kept")                                \
    X(retry_in, count, "iterations left of a pause of guided mode under this label; 0: none")     \
    X(page_bytes, bytes, "the page size")                                                         \
    X(floor_page_bytes, bytes,                                                                    \
      "the page size for which live_peak_bytes and the floor are computed")                       \
    X(floor_operands_bytes, bytes, "part of the floor: the operands of the op that sets it")      \
    X(floor_edges_bytes, bytes, "part of the floor: edge pages, which split tensors share")       \
    X(floor_slabs_bytes, bytes, "part of the floor: slabs, which hold small tensors")             \
    X(better_page_bytes, bytes,                                                                   \
      "a page size with a floor that is lower by a twentieth or more; 0: none is known")          \
    X(better_floor_bytes, bytes, "the floor with that page size; 0: none is known")               \
    X(guided_floor_bytes, bytes,                                                                  \
      "the smallest budget known to have a plan with places; 0: not planned for yet")             \
    X(plan_stage, count, "which of the plans for such iterations was active, from 1; 0: none")    \
    X(planning_ns, ns, "host time: a plan had been in the making for so long; 0: none was")       \
    X(effort, count, "how long planners may search, an enum plan_effort; 0: not in guided mode")  \
    X(exchange_ns, ns, "ops exchanged data with others, as they said; in compute_ns")             \
    X(exchanged_bytes, bytes, "of tensors, that ops exchanged with others, as they said")         \
    X(rank, count, "of the process among rank_count processes, from 0")                           \
    X(rank_count, count, "processes that train together; 0: there are no others")                 \
    X(plan_d2h_bytes_per_s, bytes, "rate of copies out that the plan was made for; 0: no plan")   \
    X(plan_h2d_bytes_per_s, bytes, "rate of copies back that the plan was made for")              \
    X(seen_d2h_bytes_per_s, bytes, "rate that timed copies out had; 0: none was timed")           \
    X(seen_h2d_bytes_per_s, bytes, "rate that timed copies back had; 0: none was timed")          \
    X(graph, count, "1: the iteration was launched as a graph")                                   \
    X(hints_ignored, count, "evictions by a plan against the hint of the tensor")                 \
    X(slab_bytes, bytes, "pages of slabs that hold anything, at the end")                         \
    X(slab_used_bytes, bytes, "what small tensors take of them")                                  \
    X(program_floor_bytes, bytes,                                                                 \
      "the smallest budget for the program so far, with its ops outside iterations")

/* All but the counters is as in capu_report. */
struct report {
    uint32_t mode;
    const char *label;
    const char *floor_op;
    const capu_eviction *evictions;
    size_t eviction_count;
    const char *plan_error;
    const capu_stall *stalls;
    size_t stall_count;
#define REPORT_FIELD(name, unit, text) uint64_t name;
    REPORT_COUNTERS(REPORT_FIELD)
#undef REPORT_FIELD
};

#endif

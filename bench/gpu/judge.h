/*
 * What the library claims of a GPU, and whether the outcomes of training runs bear it out. Pure:
 * claims.c trains, and prints what is decided here.
 */
#ifndef CAPU_BENCH_GPU_JUDGE_H
#define CAPU_BENCH_GPU_JUDGE_H

#include "capuchin/capuchin.h"

#include <stdbool.h>
#include <stdint.h>

#define JUDGE_MIB ((double)(1 << 20))

/* What is required of all runs. */
struct judge {
    unsigned steps;  /* steady iterations in a row */
    unsigned settle; /* within so many iterations */
    bool is_untimed; /* times are reported but not judged */
};

/* Medians over the counted iterations, or sums where noted. In guided mode only steady iterations
   are counted: nothing is installed before them, and their ops are not timed. */
struct outcome {
    bool is_steady;  /* there were enough of them in a row; otherwise the rest says nothing */
    unsigned steady; /* how many there were */
    unsigned begun;  /* iterations until then */
    double wall_ns;
    double compute_ns; /* of the last iteration whose ops were timed, as is: */
    double stall_ns;
    double predicted_ns;
    double evicted_bytes;
    double prefetched_bytes;
    uint64_t live_peak_bytes;
    uint64_t map_count;   /* sum */
    uint64_t evict_count; /* sum */
    uint64_t host_bytes;  /* of pinned memory, which is never given back */
    int64_t grown_bytes;  /* of device memory, from the first counted iteration to the last */
    int64_t used_bytes;   /* the maximum, if sampled */
    uint64_t samples;     /* how often; 0: never, or the driver did not say */
};

/* The value of a claim whose figures are missing: no limit allows it. */
#define JUDGE_UNKNOWN 1e9

/* `value` must be at most (with `wants_more`, at least) `limit`. */
struct claim {
    const char *name;
    double value;
    double limit;
    const char *unit;
    bool wants_more;
    bool is_judged; /* false: of times that mean nothing, or of steady iterations that a run did not
                       have, for which another claim is broken */
    char detail[200];
};

/* Whether a guided iteration counts as steady. Events around each op, and installing a plan, are
   not what a steady iteration costs; one that left its plan, or had none, is not guided. */
bool judge_is_steady(const capu_report *report);

/* A claim that is not judged holds. */
bool judge_holds(const struct claim *claim);
const char *judge_verdict(const struct claim *claim);

/* A plan that is made again and again, because its iterations do not take the times that it was
   planned with, never becomes steady. */
struct claim judge_steady(const struct judge *judge, const char *name,
                          const struct outcome *guided);

/* Device memory as the driver reports it, at any time of the run. */
struct claim judge_memory(uint64_t budget_bytes, const struct outcome *sampled);

struct claim judge_calls(const struct outcome *planned);
struct claim judge_growth(const struct outcome *planned);

/* `off`, here and below: two runs without a limit, one before and one after the other. */
struct claim judge_no_overhead(const struct judge *judge, const struct outcome off[2],
                               const struct outcome *roomy);

/* Copies that overlapped nothing would make an iteration longer by their whole time. The rates are
   those that the library measured, in bytes per second. */
struct claim judge_overlap(const struct judge *judge, const struct outcome off[2],
                           const struct outcome *swapped, double d2h, double h2d);

/* Measured: wall time against that without a limit. Predicted: against the ops' own times, which
   the plan was made with. */
struct claim judge_prediction(const struct judge *judge, const char *name,
                              const struct outcome off[2], const struct outcome *planned);

#endif

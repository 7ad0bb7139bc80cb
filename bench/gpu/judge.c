/* Claims about a GPU, see judge.h. */
#include "bench/gpu/judge.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#define MIB JUDGE_MIB
/* What the driver may allocate in addition to the budget: page tables, events, streams, pinned
   rings. Modules and cuBLAS are loaded before anything is counted. */
#define BESIDE_BYTES ((int64_t)64 << 20)
/* Bytes of pinned memory that take one byte of page tables, if they are mapped in 4 KiB pages. */
#define BESIDE_PINNED 256
#define STEADY_BYTES (4.0 * MIB) /* what the driver may take in steady iterations */
#define OVERHEAD_LIMIT 1.0       /* percent, if nothing is evicted */
#define PREDICTION_LIMIT 5.0     /* percentage points */
#define HIDDEN_LIMIT 50.0        /* percent of the time of copies */

bool judge_is_steady(const capu_report *report)
{
    return report->mode == CAPU_MODE_GUIDED && report->predicted_ns > 0 && report->diverged == 0 &&
           report->timed == 0 && report->install_ns == 0;
}

static bool meets_limit(const struct claim *claim)
{
    /* In this form, a value that is no number meets neither. */
    return claim->wants_more ? claim->value >= claim->limit : claim->value <= claim->limit;
}

bool judge_holds(const struct claim *claim)
{
    return !claim->is_judged || meets_limit(claim);
}

const char *judge_verdict(const struct claim *claim)
{
    return !claim->is_judged ? "not judged" : meets_limit(claim) ? "holds" : "BROKEN";
}

static double percent_more(double value, double than)
{
    return value > 0.0 && than > 0.0 ? (value / than - 1.0) * 100.0 : JUDGE_UNKNOWN;
}

static double mean_wall_ns(const struct outcome off[2])
{
    return (off[0].wall_ns + off[1].wall_ns) / 2.0;
}

struct claim judge_steady(const struct judge *judge, const char *name, const struct outcome *guided)
{
    struct claim claim = {.name = name,
                          .value = guided->steady,
                          .limit = judge->steps,
                          .unit = "steady iterations in a row",
                          .wants_more = true,
                          .is_judged = !judge->is_untimed};

    snprintf(claim.detail, sizeof(claim.detail), "after %u iterations; %u allowed", guided->begun,
             judge->settle);
    return claim;
}

struct claim judge_memory(uint64_t budget_bytes, const struct outcome *sampled)
{
    double beside = (double)BESIDE_BYTES + (double)sampled->host_bytes / BESIDE_PINNED;
    double above = ((double)sampled->used_bytes - (double)budget_bytes) / MIB;
    struct claim claim = {.name = "memory seen by cudaMemGetInfo above the budget",
                          .value = sampled->samples > 0 ? above : JUDGE_UNKNOWN,
                          .limit = beside / MIB,
                          .unit = "MiB",
                          .is_judged = true};

    snprintf(claim.detail, sizeof(claim.detail),
             "budget %.1f MiB, at most %.1f MiB less free than before the context, %.1f MiB pinned",
             (double)budget_bytes / MIB, (double)sampled->used_bytes / MIB,
             (double)sampled->host_bytes / MIB);
    return claim;
}

static void describe_steady(const struct outcome *planned, struct claim *claim)
{
    snprintf(claim->detail, sizeof(claim->detail), "%u iterations, %" PRIu64 " evictions",
             planned->steady, planned->evict_count);
}

struct claim judge_calls(const struct outcome *planned)
{
    struct claim claim = {.name = "calls that map memory in steady iterations",
                          .value = (double)planned->map_count,
                          .limit = 0.0,
                          .unit = "calls",
                          .is_judged = planned->is_steady};

    describe_steady(planned, &claim);
    return claim;
}

struct claim judge_growth(const struct outcome *planned)
{
    struct claim claim = {.name = "device memory taken in steady iterations",
                          .value = (double)planned->grown_bytes / MIB,
                          .limit = STEADY_BYTES / MIB,
                          .unit = "MiB",
                          .is_judged = planned->is_steady};

    describe_steady(planned, &claim);
    return claim;
}

struct claim judge_no_overhead(const struct judge *judge, const struct outcome off[2],
                               const struct outcome *roomy)
{
    struct claim claim = {.name = "guided with nothing evicted, against off",
                          .value = percent_more(roomy->wall_ns, mean_wall_ns(off)),
                          .limit = OVERHEAD_LIMIT,
                          .unit = "% slower",
                          .is_judged = roomy->is_steady && !judge->is_untimed};

    snprintf(claim.detail, sizeof(claim.detail),
             "%.3f ms per guided iteration with %" PRIu64
             " evictions, %.3f and %.3f ms off before and after",
             roomy->wall_ns / 1e6, roomy->evict_count, off[0].wall_ns / 1e6, off[1].wall_ns / 1e6);
    return claim;
}

struct claim judge_overlap(const struct judge *judge, const struct outcome off[2],
                           const struct outcome *swapped, double d2h, double h2d)
{
    double base = mean_wall_ns(off);
    double copies_ns = swapped->evicted_bytes / d2h * 1e9 + swapped->prefetched_bytes / h2d * 1e9;
    double beyond_ns = swapped->wall_ns - base;
    struct claim claim = {.name = "time of copies hidden by kernels, planner swap",
                          .value = copies_ns > 0.0 ? (1.0 - beyond_ns / copies_ns) * 100.0 : 0.0,
                          .limit = HIDDEN_LIMIT,
                          .unit = "%",
                          .wants_more = true,
                          .is_judged = swapped->is_steady && !judge->is_untimed};

    snprintf(claim.detail, sizeof(claim.detail),
             "%.1f ms without copies; with %.1f ms of them (%.0f MiB out, %.0f in) %.1f ms, of "
             "which %.1f stalls",
             base / 1e6, copies_ns / 1e6, swapped->evicted_bytes / MIB,
             swapped->prefetched_bytes / MIB, swapped->wall_ns / 1e6, swapped->stall_ns / 1e6);
    return claim;
}

struct claim judge_prediction(const struct judge *judge, const char *name,
                              const struct outcome off[2], const struct outcome *planned)
{
    double base = mean_wall_ns(off);
    double measured = percent_more(planned->wall_ns, base);
    double predicted = percent_more(planned->predicted_ns, planned->compute_ns);
    bool is_known = measured < JUDGE_UNKNOWN && predicted < JUDGE_UNKNOWN;
    struct claim claim = {.name = name,
                          .value = is_known ? fabs(measured - predicted) : JUDGE_UNKNOWN,
                          .limit = PREDICTION_LIMIT,
                          .unit = "points",
                          .is_judged = planned->is_steady && !judge->is_untimed};

    snprintf(claim.detail, sizeof(claim.detail),
             "measured %+.1f %% (%.2f ms, off %.2f ms), predicted %+.1f %% (%.2f ms, ops %.2f ms)",
             measured, planned->wall_ns / 1e6, base / 1e6, predicted, planned->predicted_ns / 1e6,
             planned->compute_ns / 1e6);
    return claim;
}

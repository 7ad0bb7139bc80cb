/*
 * How long an iteration takes under a plan: the execution model over the whole program. And which
 * rates a plan is to be made for where links slow each other down.
 *
 * Four iterations run on one clock, and the result is the time between the ends of the third and
 * the fourth: the first starts with idle engines and without copies from an iteration before it,
 * which is not what a steady iteration sees.
 */
#ifndef CAPU_POLICY_TIMELINE_H
#define CAPU_POLICY_TIMELINE_H

#include "base/error_text.h"
#include "capuchin/status.h"
#include "policy/format/plan.h"
#include "policy/model/clock.h"
#include "policy/model/program.h"
#include "policy/model/trace_index.h"

enum timeline_engine { ENGINE_NONE, ENGINE_COMPUTE, ENGINE_D2H, ENGINE_H2D };

/* One item of the fourth iteration. Items that take no time (drops, clean evictions) have no
   engine; their span is the moment from which the memory is usable. */
struct timeline_record {
    struct item item;
    enum timeline_engine engine;
    struct clock_span span;
    uint64_t held_bytes; /* after it was issued, fixed_bytes included */
};

struct timeline {
    uint64_t iteration_ns;
    uint64_t ideal_ns;
    uint64_t peak_bytes; /* held at most, fixed_bytes included */
    uint64_t budget_bytes;
    uint64_t evicted_bytes; /* copied out, saves included */
    uint64_t prefetched_bytes;
    uint64_t replay_ns;
    uint64_t stall_ns;               /* the rest: neither ideal nor replay */
    uint64_t begin_ns;               /* of the fourth iteration: the end of the third */
    struct timeline_record *records; /* NULL unless asked for */
    uint32_t record_count;
    struct clock_tensor *at_begin; /* with the records: per tensor, its times when the fourth
                                      iteration begins. Those after begin_ns are of copies of the
                                      third one that are still under way */
};

/*
 * `machine` NULL: the trace's own. Pre: the plan is valid, except that it may hold more than its
 * budget allows.
 * Errors: INVALID (no machine), TOO_LARGE (times beyond 2^62 ns), NO_HOST_MEMORY. On failure
 * zeroed.
 */
capu_status timeline_of(struct timeline *timeline, const struct program *program,
                        const struct machine *machine, bool with_records, struct error_text *error);
void timeline_finish(struct timeline *timeline);

/* The same for a plan whose program is wanted for nothing else. */
capu_status timeline_init(struct timeline *timeline, const struct trace_index *trace_index,
                          const struct plan *plan, const struct machine *machine, bool with_records,
                          struct error_text *error);

/*
 * The same with computation and copies coupled, as in systems without delayed synchronisation: an
 * op that starts a layer (`layer_starts`, one per op) waits for all copies that were issued up to
 * the start of the previous layer, so that each copy is hidden by one layer at most. For
 * comparisons; not part of the execution model.
 */
capu_status timeline_of_coupled(struct timeline *timeline, const struct program *program,
                                const struct machine *machine, const uint8_t *layer_starts,
                                struct error_text *error);

/*
 * Only the iteration time, and only if it matters: *ns is UINT64_MAX if the second iteration shows
 * that it will be `cutoff_ns` or more (0: no cutoff). For searches. Pre and errors: as above, and
 * `machine` is not NULL.
 */
capu_status timeline_time(const struct program *program, const struct machine *machine,
                          uint64_t cutoff_ns, uint64_t *ns);

/* iteration / ideal - 1; 0 for an empty trace. */
double timeline_overhead(const struct timeline *timeline);

/*
 * Links that slow each other down: which rates a plan is to be made for.
 *
 * The execution model has one rate per direction. Where a direction is slower while the other one
 * is busy, too, what a plan's copies take on average depends on how often the plan has both busy at
 * once. So the plan is timed, and each direction gets the mean of its two rates, weighted by the
 * share of its time in which the other direction also copies. With these rates the shares are a
 * little different, so this is repeated a few times. A plan made for these rates is then likely to
 * have similar shares.
 */

/* Rates while the other direction is busy, in bytes per second; 0: not known. */
struct duplex {
    uint64_t d2h_bytes_per_s;
    uint64_t h2d_bytes_per_s;
};

/* Whether a direction of the machine is known to be slower then. */
bool duplex_matters(const struct duplex *duplex, const struct machine *solo);

/*
 * *machine becomes `solo` with the rates that the plan's copies have on average. They are solo's if
 * that does not matter. Pre: solo has rates; the plan is valid. Errors: those of timeline_of.
 */
capu_status duplex_rates(const struct program *program, const struct machine *solo,
                         const struct duplex *duplex, struct machine *machine,
                         struct error_text *error);

#endif

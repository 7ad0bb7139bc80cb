/*
 * From decisions to a plan that is always valid. What every planner shares.
 *
 * The unit of decision is a gap: what happens to a tensor between one access and its next. A gap is
 * named by the access it follows (an index into uses->op); the gap after a persistent tensor's last
 * access wraps into the next iteration. Everything else is derived here, in one pass over the ops:
 * when copies are issued, what is replayed in which order, what is kept of a replay, and what has
 * to leave when an op would still not fit. Because that last step always finds room if the op alone
 * fits, any decisions lower to a valid plan, and a search may try anything.
 */
#ifndef CAPU_POLICY_LOWER_H
#define CAPU_POLICY_LOWER_H

#include <stdbool.h>
#include <stdint.h>

#include "capuchin/status.h"
#include "policy/clock.h"
#include "policy/plan.h"
#include "policy/segment_tree.h"
#include "policy/trace_index.h"

enum decision { DECIDE_KEEP, DECIDE_SWAP, DECIDE_DROP };

/* Who leaves when an op does not fit. */
enum victim_order { VICTIM_FARTHEST_USE, VICTIM_LEAST_RECENT };

struct lower_options {
    uint64_t limit_bytes; /* of the pool: the budget without fixed_bytes */
    uint64_t host_bytes;
    enum victim_order victims;
    bool is_soft;         /* nobody is forced out: shows by how much decisions fall short */
    bool with_collective; /* keep what a replay makes and somebody needs later */
    bool is_cautious;     /* of that, only what leaves its own size free besides */
    bool with_save;       /* copy out ahead, where the link is idle */
    bool with_prefetch;   /* bring back ahead of the access */
    double safety;        /* copies are expected to take this many times as long */
    double lead;          /* a prefetch may be this many times its copy earlier than it must be */
    /* Not 0: a walk that is sure to take this long or longer is given up. */
    uint64_t cutoff_ns;
    /* When each op is expected to start, one more at the end; NULL: as if nothing cost time. */
    const uint64_t *estimate_ns;
};

/* What the last lowering found out, per op. */
struct lower_result {
    uint64_t *start_ns; /* when the op starts; one more at the end: when all ops have ended */
    int64_t *profile;   /* bytes of the pool in use at the op: held, draining, or for its replays */
    uint64_t *out_busy; /* per op, in ns, up to the next op's start: how long the link is busy */
    uint64_t *in_busy;
    uint32_t *replays;   /* per op: how often it is replayed */
    int64_t excess_most; /* of profile over the limit */
};

struct lower;

/* A frugal lowering replays no op that touches a transient that is not managed: its life, and with
   it fixed_bytes, stays as the trace has it. Not frugal at first. */
void lower_set_frugal(struct lower *lower, bool is_frugal);

/* Errors: NO_HOST_MEMORY. The clock runs on `machine`. `trace_index` is borrowed and outlives it.
 */
capu_status lower_create(const struct trace_index *trace_index, const struct machine *machine,
                         struct lower **out);
void lower_destroy(struct lower *lower);

/*
 * Pre: the decisions are of enum decision, and no extended life ends after the last op.
 *
 * Lowers the decisions (one per gap) into the plan, whose actions are replaced; the header is the
 * caller's. A swap or drop that cannot be is lowered as a keep. `extended_life` is, per tensor, the
 * op up to which a transient is kept beyond its last access for the sake of replays (0: not; may be
 * NULL).
 *
 * Errors: OVER_BUDGET (an op does not fit alone, or the cutoff was reached), HOST_OVER_BUDGET
 * (nothing more may leave), TOO_LARGE (an iteration beyond 2^62 ns), NO_HOST_MEMORY.
 */
capu_status lower_run(struct lower *lower, const uint8_t *decisions, const uint32_t *extended_life,
                      const struct lower_options *options, struct plan *plan);

const struct lower_result *lower_result_of(const struct lower *lower);

/* Ops that lowerings walked over so far: a measure of effort that is the same everywhere. */
uint64_t lower_work(const struct lower *lower);

/* Per gap: 1 where the last lowering had to evict for want of room, though the gap was to be kept.
 */
const uint8_t *lower_forced(const struct lower *lower);

/* In all that follow, pre: the gap exists. Can it be bridged by replays, whatever else was decided?
 */
bool lower_can_drop(struct lower *lower, uint32_t gap);
/* The op at which the gap ends; op_count plus the first access where it wraps; USES_NONE where it
   has no end (a transient's last access) or its end overwrites the contents. */
uint32_t lower_gap_end(const struct lower *lower, uint32_t gap);
uint32_t lower_gap_tensor(const struct lower *lower, uint32_t gap);

/*
 * What bridging the gap by replays costs under these decisions: ns of the ops that would have to be
 * replayed and are not yet (by the last lowering). Who is wary counts two things more: copies of
 * inputs that are on the host then, and the replay of what was made again once before, but for
 * another gap. UINT64_MAX: it cannot be.
 */
uint64_t lower_drop_cost(struct lower *lower, const uint8_t *decisions, uint32_t gap, bool is_wary);
/* How many chains of replays read what the gap holds, by the last lowering and by the drops noted
   since then: if it were swapped, each would have to fetch it. */
uint32_t lower_chain_reads(const struct lower *lower, uint32_t gap);
void lower_note_drop(struct lower *lower, const uint8_t *decisions, uint32_t gap);
/* What one replay of the op that made what the gap holds costs; 0: no one op did. */
uint64_t lower_replay_ns(const struct lower *lower, uint32_t gap);

#endif

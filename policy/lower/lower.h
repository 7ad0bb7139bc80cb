/*
 * Lowering: turns any set of decisions into a valid plan. All planners share it.
 *
 * The unit of decision is a gap: what happens to a tensor between one access and its next (keep,
 * swap or drop). A gap is named by the access that precedes it, an index into trace_index->op; the
 * gap after a persistent tensor's last access wraps into the next iteration. Virtual reads (below)
 * are accesses, too; their numbers follow those of the trace. Everything else follows from the
 * decisions in one walk over the ops: when copies are issued, which ops are replayed and in which
 * order, which results of a replay are kept, and what is evicted when an op would still not fit.
 *
 * That last step always finds room if the op alone fits. So every set of decisions lowers to a
 * valid plan, and a search needs no repair step: it may try anything and only has to compare times.
 */
#ifndef CAPU_POLICY_LOWER_H
#define CAPU_POLICY_LOWER_H

#include <stdbool.h>
#include <stdint.h>

#include "capuchin/status.h"
#include "policy/format/plan.h"
#include "policy/lower/op_trees.h"
#include "policy/model/clock.h"
#include "policy/model/trace_index.h"

/*
 * Virtual reads: accesses that only planning sees, of tensors that are dead.
 *
 * A transient tensor after its last access carries no decision, although replays may start from
 * it. A virtual read at an op that may need such replays ends one more gap, in which the tensor can
 * be kept, swapped or dropped like any other. It demands nothing: if the tensor is not there, the
 * op runs all the same.
 */
struct virtual_read {
    uint32_t tensor;
    uint32_t op;
};

struct virtual_reads {
    struct virtual_read *list; /* by tensor, then by op */
    uint32_t count;
    /* Keeping a tensor for them is obeyed even where no replay is seen that needs it. */
    bool is_unconditional;
};

/* Which dead tensors are worth a decision, and where. Errors: NO_HOST_MEMORY. On failure zeroed. */
capu_status virtual_reads_choose(const struct trace_index *trace_index,
                                 struct virtual_reads *reads);
void virtual_reads_finish(struct virtual_reads *reads);

enum decision {
    DECIDE_KEEP,
    DECIDE_SWAP,
    DECIDE_DROP,
    /* Where the gap wraps: a swap, but fetched again before the iteration ends. The host copy then
       stays valid until the next write, so that the tensor may leave again for nothing. */
    DECIDE_RETURN
};

/* Which tensor is evicted when an op does not fit. */
enum victim_order { VICTIM_FARTHEST_USE, VICTIM_LEAST_RECENT };

struct lower_options {
    uint64_t limit_bytes; /* of the pool: the budget without fixed_bytes */
    uint64_t host_bytes;
    enum victim_order victims;
    bool is_soft; /* nothing is evicted for want of room: shows by how much decisions fall short */
    bool with_collective; /* collective recomputation: keep results of a replay that a later op
                             needs */
    bool is_cautious;     /* of those, only what leaves its own size free besides */
    bool with_save;       /* save: copy out ahead of the eviction, while the link is idle */
    bool with_prefetch;   /* fetch ahead of the access */
    double safety;        /* copies are expected to take this many times as long */
    double lead;          /* a prefetch may be this many times its copy earlier than it must be */
    /* Not 0: a walk that is certain to take this long or longer is abandoned. */
    uint64_t cutoff_ns;
    /* When each op is expected to start, one more at the end; NULL: as if nothing cost time. */
    const uint64_t *estimate_ns;
};

/* What the last lowering measured, per op. */
struct lower_result {
    uint64_t *start_ns; /* when the op starts; one more at the end: when all ops have ended */
    int64_t *profile;   /* bytes of the pool in use at the op: held, draining, or for its replays */
    uint64_t *out_busy; /* per op, in ns, up to the next op's start: how long the link is busy */
    uint64_t *in_busy;
    uint32_t *replays;   /* per op: how often it is replayed */
    int64_t excess_most; /* of profile over the limit */
};

struct lower;

/* A frugal lowering replays no op that touches an unmanaged transient, because the replay would
   extend its life and raise fixed_bytes. Off at first. */
void lower_set_frugal(struct lower *lower, bool is_frugal);
bool lower_is_frugal(const struct lower *lower);

/* Virtual reads count from now on, or they do not. Off at first. */
void lower_use_virtual_reads(struct lower *lower, bool has_virtual);

/* Errors: NO_HOST_MEMORY. The clock runs on `machine`. `trace_index` is borrowed and outlives it;
   the virtual reads (NULL: there are none) are copied. Pre: each is of a managed transient tensor,
   after its last access. */
capu_status lower_create(const struct trace_index *trace_index, const struct machine *machine,
                         const struct virtual_reads *reads, struct lower **out);
void lower_destroy(struct lower *lower);

/*
 * Pre: the decisions are of enum decision, one per gap.
 *
 * Lowers the decisions into the plan, whose actions are replaced; the header is the caller's. A
 * swap or drop that cannot be is lowered as a keep. In a gap that ends in a virtual read, a drop is
 * the end of the tensor, unless a replay makes it again.
 *
 * Errors: OVER_BUDGET (an op does not fit alone, or the cutoff was reached), HOST_OVER_BUDGET
 * (nothing more may leave), TOO_LARGE (an iteration beyond 2^62 ns), NO_HOST_MEMORY.
 */
capu_status lower_run(struct lower *lower, const uint8_t *decisions,
                      const struct lower_options *options, struct plan *plan);

const struct lower_result *lower_result_of(const struct lower *lower);

/* Ops walked over so far: a measure of effort that does not depend on the machine. */
uint64_t lower_work(const struct lower *lower);

/* Per gap: 1 if the last lowering had to evict the tensor for want of room although the gap was to
   be kept. */
const uint8_t *lower_forced(const struct lower *lower);

/* Replaces returns for which the last lowering had no room by swaps, which lower to the same plan
   without a second walk. Pre: it was given these decisions. */
void lower_settle_returns(const struct lower *lower, uint8_t *decisions);

/* Gaps: one per access of the trace, then one per virtual read. While those are not in use, theirs
   have no end, and decisions for them are not looked at. */
uint32_t lower_gap_count(const struct lower *lower);

/* Pre, here and below: the gap exists. Can replays bridge the gap, whatever else was decided? */
bool lower_can_drop(struct lower *lower, uint32_t gap);
/* The op that the gap follows. */
uint32_t lower_gap_start(const struct lower *lower, uint32_t gap);
/* The op at which the gap ends; op_count plus the first access where it wraps; TRACE_INDEX_NONE
   where it has no end (a transient's last access) or the next access overwrites the contents. */
uint32_t lower_gap_end(const struct lower *lower, uint32_t gap);
uint32_t lower_gap_tensor(const struct lower *lower, uint32_t gap);
/* Is there time within the gap to leave and to return before the iteration ends? */
bool lower_can_return(const struct lower *lower, uint32_t gap);
/* How many gaps the tensor has before this one. */
uint32_t lower_gap_rank(const struct lower *lower, uint32_t gap);
/* Does it end in a virtual read that is in use? */
bool lower_gap_is_virtual(const struct lower *lower, uint32_t gap);
/* Did the last lowering expect the tensor to be gone, although the decision is to keep it? */
bool lower_gap_is_idle(const struct lower *lower, uint32_t gap);

/*
 * What bridging the gap by replays costs under these decisions: the time of the ops that would have
 * to be replayed and are not replayed yet, by the last lowering. If `is_wary`, two more things
 * count: copies of inputs that are on the host at that point, and the replay of contents that are
 * also made again for another gap. UINT64_MAX: it is impossible.
 */
uint64_t lower_drop_cost(struct lower *lower, const uint8_t *decisions, uint32_t gap, bool is_wary);
/* How many chains of replays read what the gap holds, by the last lowering and by the drops noted
   since: if it were swapped, each of them would have to fetch it. */
uint32_t lower_chain_reads(const struct lower *lower, uint32_t gap);
void lower_note_drop(struct lower *lower, const uint8_t *decisions, uint32_t gap);
/* The time of one replay of the op that made what the gap holds; 0 if no single op did. */
uint64_t lower_replay_ns(const struct lower *lower, uint32_t gap);

#endif

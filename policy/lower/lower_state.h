/* Internals of the lowering, shared by lower.c (the index and the loop), lower_begin.c and
   lower_walk.c (one walk), lower_chain.c (replay chains and their prices) and lower_state.c (what
   all of them call: victims and due copies, too). Owned by one thread. */
#ifndef CAPU_POLICY_LOWER_STATE_H
#define CAPU_POLICY_LOWER_STATE_H

#include "base/bits.h"
#include "policy/lower/lower.h"

#define NO_OP UINT32_MAX
/* Most replays for one access: a longer chain never pays, and the stack of the walk stays small. */
#define CHAIN_MAX 1024

struct span {
    uint64_t start;
    uint64_t end;
};

struct spans {
    struct span *list;
    uint32_t count;
    size_t capacity;
};

struct victim {
    uint64_t key; /* larger leaves first */
    uint32_t tensor;
};

/* Of a slot, or the gap after it. Slots are the accesses, numbered as in the trace index, and after
   them the virtual reads. */
enum slot_flag {
    SLOT_FIRST = 1,
    SLOT_WRAPS = 2, /* the last, of a persistent tensor */
};

/* What is read together lies in one cache line. Up to `is_persistent` it is as in the trace. */
struct lower_tensor {
    uint64_t rounded; /* as in the trace index; 0: not of the pool */
    uint32_t first;   /* its accesses are slots from here */
    uint32_t end;     /* up to here */
    bool is_persistent;
    bool is_resident;
    bool has_host;          /* a current copy is on the host */
    bool starts_on_host;    /* grows over the walks of one lowering */
    bool returns;           /* before the iteration ends: starts resident, with a host copy */
    bool is_due;            /* is in a due list; then these are its neighbours and its time: */
    uint32_t due_next;      /* or NO_OP */
    uint32_t due_prev;      /* the same */
    int64_t due_latest;     /* when its copy should start */
    uint32_t gap;           /* the last access so far, or TRACE_INDEX_NONE */
    uint32_t guard;         /* number of the op that forbids its eviction, plus one */
    uint32_t last_replay;   /* the last op before which a replay touched it, plus one */
    uint32_t virtual_first; /* its first virtual read, or TRACE_INDEX_NONE */
    uint64_t key;           /* its current key among the victims; 0: not a victim */
};

/* A heap of the tensors that may be evicted. */
struct victims {
    struct victim *heap; /* an entry whose key is not its tensor's is stale */
    uint32_t count;
    size_t capacity;
    struct victim *stash;
};

/* The tensors that must be back before an op, or before the end. */
struct due_copies {
    uint32_t *head;  /* per op, and for the end: the first of its list */
    struct bits ops; /* those whose list is not empty */
};

/* The copies of a walk so far. */
struct walk_copies {
    struct spans out;
    struct spans in;
    struct spans draining; /* start: bytes; end: when their copy has ended */
    uint32_t draining_first;
    uint64_t draining_bytes;
};

/* A depth-first search over producers; `stamp` marks what this search has seen. */
struct producer_search {
    uint32_t *stack;
    uint32_t *op_stamp;
    uint32_t *tensor_stamp;
    uint32_t stamp;
};

/* What has to run again so that an op finds its operands. */
struct replay_chain {
    uint32_t *ops; /* in order */
    uint32_t count;
    uint32_t *reads; /* per gap: see lower_chain_reads */
    uint64_t *bytes; /* per replay: over what is held before it */
    uint32_t *fetch;
    uint32_t fetch_count;
    uint32_t *last;    /* per tensor: index of its last use in the chain */
    uint8_t *state;    /* per tensor: see lower_chain.c */
    uint32_t *tensors; /* those with a state */
    uint32_t tensor_count;
};

struct lower {
    const struct trace_index *trace_index;
    const struct trace *trace;
    struct clock clock;
    struct segment_tree tree; /* bytes that every op is expected to see held */
    struct lower_result result;
    void *blocks[64]; /* everything below, for freeing */
    uint32_t block_count;
    bool has_failed; /* an allocation failed */

    bool is_frugal;
    bool has_virtual; /* the virtual reads are in use */
    bool is_unconditional;
    uint32_t slot_count; /* with them */

    /* What the trace says. */
    uint32_t *gap_start; /* the op of the slot */
    uint32_t *gap_end;
    uint32_t *gap_tensor;
    uint8_t *slot_flags; /* of enum slot_flag */
    uint32_t *gap_maker; /* the op that made the contents; NO_OP: no single op */
    uint32_t *slot_of;   /* per operand: its access */
    uint32_t *until;     /* per op: its replay is legal before ops up to this one */
    uint8_t *droppable;  /* per gap: 0 not known yet, 1 yes, 2 no */

    struct producer_search search;

    /* The walk. */
    const uint8_t *decisions;
    struct lower_options options; /* with an estimate even if the caller gave none */
    uint64_t *ideal_ns;           /* the estimate of a caller without one */
    struct plan *plan;
    struct lower_tensor *tensors;
    uint8_t *forced;  /* per gap: evicted for want of room */
    uint8_t *no_drop; /* per gap: dropping it led to a chain that did not fit */
    uint8_t *means;   /* per gap: the decision as far as it can be, in this walk */
    struct victims victims;
    int64_t *base;   /* what the tree is filled with */
    int64_t *latest; /* per gap: when its prefetch must start at the latest */
    uint8_t *saves;  /* per gap: a later gap of the same contents is swapped */
    struct due_copies due;
    uint32_t *virtual_head; /* per op: its first virtual read, or TRACE_INDEX_NONE */
    uint32_t *virtual_next; /* per slot: the next virtual read of its op */
    uint8_t *reached;       /* per slot: no gap since the tensor's death is a drop */
    uint32_t *changed;      /* per tensor: scratch of the index */
    struct replay_chain chain;
    struct walk_copies copies;
    uint64_t held;
    uint64_t host_held;
    uint64_t work;      /* ops walked over, ever */
    bool must_restart;  /* more starts on the host than this walk began with, or: */
    bool has_given_up;  /* a chain could not be; the walk ended there */
    bool has_returns;   /* some tensor returns before the iteration ends */
    capu_status status; /* of the walk: the first failure */
};

/* A slack from a factor and a user's rates: at most a quarter of what the clock can hold, so that
   differences of such times stay within 64 bits. */
#define LOWER_SPARE_NS ((int64_t)1 << 61)

static inline int64_t lower_spare_ns(double ns)
{
    return ns < (double)LOWER_SPARE_NS ? (int64_t)ns : LOWER_SPARE_NS;
}

/* Is the slot a virtual read? */
static inline bool lower_is_virtual(const struct lower *lower, uint32_t slot)
{
    return slot >= lower->trace->operand_count;
}

/* The tensor's slot after this one; TRACE_INDEX_NONE: it is the last. */
static inline uint32_t lower_slot_after(const struct lower *lower, uint32_t tensor, uint32_t slot)
{
    uint32_t next = slot + 1;

    if (next < lower->tensors[tensor].end) {
        return next;
    }
    if (!lower_is_virtual(lower, slot)) {
        return lower->tensors[tensor].virtual_first;
    }
    return next < lower->slot_count && lower->gap_tensor[next] == tensor ? next : TRACE_INDEX_NONE;
}

/* The first virtual read of an op, if they are in use; or TRACE_INDEX_NONE. */
static inline uint32_t lower_virtual_at(const struct lower *lower, uint32_t op)
{
    return lower->has_virtual ? lower->virtual_head[op] : TRACE_INDEX_NONE;
}

/* The tensor's slot before this virtual read. */
static inline uint32_t lower_slot_before(const struct lower *lower, uint32_t slot)
{
    const struct lower_tensor *state = &lower->tensors[lower->gap_tensor[slot]];

    return slot == state->virtual_first ? state->end - 1 : slot - 1;
}

/* Does the gap end in a virtual read? Then the tensor may always be dropped in it. */
static inline bool lower_ends_virtually(const struct lower *lower, uint32_t gap)
{
    uint32_t next = lower_slot_after(lower, lower->gap_tensor[gap], gap);

    return next != TRACE_INDEX_NONE && lower_is_virtual(lower, next);
}

/* lower_state.c */
uint32_t lower_next_stamp(struct lower *lower);
/* Records the first failure of the walk. */
void lower_fail(struct lower *lower, capu_status status);
/* The op of the tensor's next slot; op_count plus the first where it wraps; NO_OP: none, or a
   virtual read before which it is dropped. */
uint32_t lower_next_use(const struct lower *lower, uint32_t tensor);
/* The op before which it has to be fetched again, as for lower_due_add; NO_OP: within this
   iteration it has not. */
uint32_t lower_due_op(const struct lower *lower, uint32_t tensor);
/* Does that access need the contents? */
bool lower_next_needs(const struct lower *lower, uint32_t tensor);
/* Pre: it is not resident. */
void lower_set_resident(struct lower *lower, uint32_t tensor);
/* Pre: it is resident. */
void lower_release(struct lower *lower, uint32_t tensor, uint64_t usable_ns);
/* Is there room on the host for a copy of it? */
bool lower_fits_host(const struct lower *lower, uint32_t tensor);

/* lower_state.c: victims and due copies */
void lower_push_victim(struct lower *lower, uint32_t tensor, uint32_t now);
void lower_heap_push(struct lower *lower, struct victim victim);
/* Pre: there is one. */
struct victim lower_heap_pop(struct lower *lower);
/* The tensor must be resident again before the op (op_count: before the iteration ends), and its
   copy should start by `latest`. Pre: it is not due. */
void lower_due_add(struct lower *lower, uint32_t tensor, uint32_t op, int64_t latest);
void lower_due_remove(struct lower *lower, uint32_t tensor, uint32_t op);
/* It is on the host after all: its next use has to fetch it. */
void lower_due_again(struct lower *lower, uint32_t tensor);
/* The first op from `from` on that a tensor is due for; NO_OP: none. */
uint32_t lower_due_next_op(const struct lower *lower, uint32_t from);

/* lower_begin.c: everything of the walk is as before the first op. */
void lower_begin(struct lower *lower);

/* lower_walk.c */
capu_status lower_walk(struct lower *lower);

/* lower_chain.c: the ops to replay so that `op` finds its operands. False: impossible, and the walk
   has given up. */
bool lower_chain_build(struct lower *lower, uint32_t op);
/* Bytes on top of what is held now while the chain runs, and after it, besides what is fetched for
   the op itself. Decides which results are kept. */
void lower_chain_measure(struct lower *lower, uint32_t op, uint64_t fetched, uint64_t *peak,
                         uint64_t *after);
/* Pre: a chain was built and measured. */
void lower_chain_issue(struct lower *lower, uint32_t op);
/* Forbids the drops that made this chain necessary; the walk has to be repeated. */
void lower_chain_give_up(struct lower *lower, uint32_t op);

#endif

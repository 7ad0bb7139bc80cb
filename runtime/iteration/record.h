/*
 * A record: what one iteration did, op by op, in little memory.
 *
 * Large programs have a million ops per iteration, and three records exist (tracker.h). So an op
 * takes 40 bytes, an access and a usual operand 4 each, and a tensor 56. What many ops share (the
 * functions, the segment) is stored once, as a site. An operand that names all of a tensor is the
 * number of the tensor; any other range is spelled out. What few ops have, such as waits, is in
 * lists of its own, sorted by op. Numbers of ops, tensors and pages have 32 bits; record_reserve
 * refuses what would exceed them.
 *
 * Only the tracker writes records; everything else reads them, through the functions below where
 * something is packed. Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_RECORD_H
#define CAPU_RUNTIME_RECORD_H

#include "base/assert.h"
#include "capuchin/op.h"
#include "device/lane.h"
#include "policy/format/report.h"
#include "runtime/op/op.h"
#include "runtime/tensor/page_census.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RECORD_RECENT_BITS = 8 };

/* What ops have in common besides their names. */
struct record_site {
    enum call_kind kind;
    bool is_replayable; /* as the call says */
    capu_run_function run;
    capu_run_function replay;
    uint64_t key;
    const char *segment; /* the outermost segment; NULL: none */
    uint64_t signature;  /* of all of it but the segment */
};

struct record_op {
    const char *name;
    uint64_t ns;        /* its duration; if it was not timed, the duration in the plan */
    uint32_t site : 30; /* index into sites */
    uint32_t is_once : 1;
    uint32_t is_replayable : 1;
    uint32_t first_access;  /* its accesses end where those of the next op begin */
    uint32_t first_operand; /* the same */
    uint32_t start;         /* its marks on the compute lane, see record_position; 0: not timed */
    uint32_t end;
};

/* A tensor's number, a role and is_partial, packed: record_access_.... */
typedef uint32_t record_access;

/* An operand, packed: record_operand. */
typedef uint32_t record_operand_code;

/* A range that the library clears before an op. */
struct record_range {
    void *address;
    uint64_t bytes;
};

struct record_cleared {
    struct record_range range;
    size_t op;
};

/* How long compute was idle before an op, because the host or the compute lane waited for memory.
 */
struct record_wait {
    size_t op;
    uint64_t ns; /* 0 until the iteration has finished, and if it was not timed */
};

struct record_tensor {
    const char *name; /* NULL: identified by its address */
    const void *address;
    uint64_t bytes;        /* of its span; of the whole tensor if it has no span */
    uint64_t tensor_bytes; /* of the whole tensor */
    uint32_t extent;       /* its pages, 0: always resident; or, if its allocation is small, where
                              it begins there: record_tensor_pages */
    uint32_t first_op;
    uint32_t last_op;
    uint32_t zeroed_op; /* capu_zero last cleared it before this op; 0: never */
    uint32_t freed_op;  /* the program freed it before this op; UINT32_MAX: not in this iteration */
    uint8_t size_log2;  /* of its allocation, rounded down */
    uint8_t kind;
    uint8_t hint;
    bool is_split : 1;      /* one of several tensors in its allocation */
    bool is_small : 1;      /* its allocation has a slot in a slab */
    bool is_last : 1;       /* its end is the end of its allocation */
    bool is_held : 1;       /* an unlimited run holds it all the time: persistent, with contents */
    bool is_live_in : 1;    /* its first access read contents from before the iteration */
    bool is_persistent : 1; /* its contents are carried into the iteration or out of it */
    bool is_transient : 1;  /* the tensor was transient at its first access; never changed later */
    bool is_cut : 1;        /* split after its last access here: the pieces hold its contents */
};

struct record_eviction {
    const char *name;
    uint64_t bytes;
    uint32_t method;
    size_t evicted_op;     /* the op after which it left; SIZE_MAX: before its first access */
    size_t trigger_op;     /* the op before which its return began; SIZE_MAX: at its back-access */
    size_t back_op;        /* its back-access; SIZE_MAX: not in this iteration */
    uint32_t ignored_hint; /* capu_hint of the tensor, which the plan did not follow; or 0 */
    uint32_t obstacle;     /* enum hint_obstacle: why */
    const char *obstacle_op; /* the name of its op, or "" */
};

/* A replay: an op that was run again, between two marks, before the op `before`. */
struct record_replay {
    size_t before; /* op_count of the finished record: after the last op */
    const char *name;
    bool has_waited; /* as for record_wait; true also if an earlier replay for the same op waited */
    uint64_t start;
    uint64_t end;
    uint64_t wait_ns;
};

/* The copies of one direction that were timed, and how fast they were. */
enum copy_way { COPY_OUT, COPY_IN, COPY_WAYS };

struct copy_sums {
    uint64_t count;
    uint64_t bytes;
    uint64_t ns;
};

/* Bytes per second beside the latency of each copy; 0: there was no copy. */
static inline uint64_t copy_sums_rate(const struct copy_sums *sums, uint64_t latency_ns)
{
    uint64_t latency = sums->count * latency_ns;
    double ns = sums->ns > latency ? (double)(sums->ns - latency) : 1.0;

    return sums->bytes == 0 ? 0 : (uint64_t)((double)sums->bytes * 1e9 / ns);
}

/* Open: being written. Running: ended, but its work may be unfinished. Finished: complete. */
enum record_state { RECORD_UNUSED, RECORD_OPEN, RECORD_RUNNING, RECORD_FINISHED };

struct record {
    enum record_state state;
    uint64_t stamp; /* the iteration's number; equals in_record.stamp of every tensor in it */
    const char *label;
    uint64_t signature; /* of all ops except those that happen only once */
    bool is_timed;      /* every op was timed */
    bool is_launch;     /* of a graph: only the report is filled in */
    struct lane_position begin;
    struct lane_position end;

    struct record_op *ops;
    size_t op_count;
    size_t op_capacity;
    struct record_site *sites;
    size_t site_count;
    size_t site_capacity;
    uint32_t recent_sites[1 << RECORD_RECENT_BITS]; /* by hash; may be outdated */
    record_access *accesses;
    size_t access_count;
    size_t access_capacity;
    record_operand_code *operands;
    size_t operand_count;
    size_t operand_capacity;
    capu_operand *spelled; /* operands that are not all of one tensor, as the caller gave them */
    size_t spelled_count;
    size_t spelled_capacity;
    struct record_cleared *cleared; /* by op */
    size_t cleared_count;
    size_t cleared_capacity;
    struct record_wait *waits; /* by op */
    size_t wait_count;
    size_t wait_capacity;
    struct record_tensor *tensors;
    size_t tensor_count;
    size_t tensor_capacity;
    struct record_eviction *evictions;
    size_t eviction_count;
    size_t eviction_capacity;

    struct record_replay *replays;
    size_t replay_count;
    size_t replay_capacity;

    uint64_t touched_pages;       /* pages of the persistent tensors with contents in `tensors` */
    size_t fixed_pages;           /* always-resident pages when the iteration ended */
    size_t kept_pages;            /* what a plan leaves to them */
    const char *program_floor_op; /* outside iterations; "": an iteration sets the floor */
    size_t edge_pages;            /* the part of them that tensors share; the rest is slabs */
    uint64_t untouched_pages;     /* pages of the other persistent tensors with contents */
    uint64_t page_bytes;
    struct page_sums sums[CENSUS_LEVELS]; /* in smaller pages, when the iteration ended */
    struct record_tensor *untouched; /* those tensors; listed only if a trace is to be written */
    size_t untouched_count;
    size_t untouched_capacity;

    struct copy_sums copies[COPY_WAYS]; /* timed ones that have ended by the time it is finished */
    struct report report;               /* only counters until then */
    capu_eviction *report_evictions;
    size_t report_eviction_capacity;
    capu_stall *report_stalls;
    size_t report_stall_capacity;
};

/* Frees the arrays. A zeroed record is fine. */
void record_finish(struct record *record);

/* Empties the lists; their capacity stays. */
void record_clear(struct record *record);

/* Makes room for this many ops with this many accesses, operands and cleared ranges in all. False:
   no host memory, or a number would exceed 32 bits. */
bool record_reserve(struct record *record, size_t op_count, size_t access_count,
                    size_t operand_count, size_t cleared_count);

/* Adds an op without accesses and operands. Pre, here and below: there is room. */
struct record_op *record_add_op(struct record *record, const struct call *call,
                                const char *segment);

/* Notes that the newest access, added by record_add_access, is partial. */
void record_set_partial(struct record *record);

/* Adds the operands of the newest op. Pre: its accesses are complete. */
void record_add_operands(struct record *record, const capu_operand *operands, size_t count);

/* The call of an op, without its operands. */
struct call record_call(const struct record *record, size_t op);

/* How many accesses and operands an op has, from its first_access and first_operand on. */
size_t record_access_count(const struct record *record, size_t op);
size_t record_operand_count(const struct record *record, size_t op);

/* An operand as the caller gave it. */
capu_operand record_operand(const struct record *record, size_t index);

/* How long compute waited for memory before an op; 0: it did not. */
uint64_t record_wait_ns(const struct record *record, size_t op);

/* The bytes that the lists of ops, accesses, operands and tensors take, without unused capacity. */
size_t record_bytes(const struct record *record);

/* A mark on the compute lane as an op stores it, and back. */
uint32_t record_mark(const struct record *record, struct lane_position position);
struct lane_position record_position(const struct record *record, uint32_t mark);

enum { RECORD_ACCESS_TENSOR_BITS = 28 };

/* Whether the op fills in zeros known for long, so that the next iteration will not have it. */
static inline bool record_is_once(const struct record *record, size_t op)
{
    return record->ops[op].is_once;
}

/* The first op from `op` on that plans are for: all but those that happen once. op_count: there is
   none. Guides and traces for plans have these ops in this order, and the record's tensors in its
   order, so a number means the same in both. */
static inline size_t record_planned(const struct record *record, size_t op)
{
    while (op < record->op_count && record->ops[op].is_once) {
        op++;
    }
    return op;
}

/* Adds an access to the newest op. */
static inline void record_add_access(struct record *record, size_t tensor, uint32_t role)
{
    ASSERT(record->op_count > 0 && record->access_count < record->access_capacity);
    record->accesses[record->access_count++] = (uint32_t)tensor | role << RECORD_ACCESS_TENSOR_BITS;
}

/* Its pages; 0: it is always resident. */
static inline uint32_t record_tensor_pages(const struct record_tensor *tensor)
{
    return tensor->is_small ? 0 : tensor->extent;
}

static inline uint32_t record_access_tensor(record_access access)
{
    return access & ((UINT32_C(1) << RECORD_ACCESS_TENSOR_BITS) - 1);
}

static inline uint32_t record_access_role(record_access access)
{
    return access >> RECORD_ACCESS_TENSOR_BITS & 7;
}

/* Only part was written; of a write (not an update): it found no contents. */
static inline bool record_access_is_partial(record_access access)
{
    return access >> 31 != 0;
}

#endif

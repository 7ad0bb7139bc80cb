/*
 * The tracker: what each iteration did.
 *
 * A record holds every op and access of one iteration, with versions, and every eviction. Three
 * records go round: one open, one whose work is still running, one finished that reports are read
 * from. Times are read from the compute lane's marks when an iteration has finished, so recording
 * never waits. Under a
 * steady plan most iterations are recorded without their ops' times. Arrays keep their capacity: a
 * steady iteration allocates nothing.
 *
 * Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_TRACKER_H
#define CAPU_RUNTIME_TRACKER_H

#include "capuchin/op.h"
#include "capuchin/report.h"
#include "runtime/call.h"
#include "runtime/tensors.h"

enum { RECORD_COUNT = 3 };

struct record_op {
    struct call call; /* its operand list is first_operand up */
    const char *name;
    const char *segment; /* outermost, NULL: none */
    size_t first_access;
    size_t access_count;
    size_t first_operand;
    size_t operand_count;
    size_t first_cleared;
    size_t cleared_count;
    bool is_replayable;
    bool has_waited;   /* the host or the compute lane waited for memory before it */
    size_t page_count; /* its operands' pages */
    uint64_t start;    /* sequences of the compute lane's marks; 0: it was not timed */
    uint64_t end;
    uint64_t ns;      /* if it was not timed, what the plan was made with */
    uint64_t wait_ns; /* compute stood still before it, if has_waited */
};

/* A range that the library clears before an op. */
struct record_range {
    void *address;
    uint64_t bytes;
};

struct record_access {
    uint32_t tensor; /* index into tensors */
    uint32_t role;
    uint64_t version; /* that it read, or that it made */
    bool is_partial;  /* a part was written: of nothing, if its role is a write */
};

struct record_tensor {
    const char *name; /* NULL: it goes by its address */
    const void *address;
    uint64_t bytes;        /* of its span; of the whole tensor if it has none */
    uint64_t tensor_bytes; /* of the whole tensor */
    size_t page_count;     /* 0: always resident */
    bool is_split;         /* one of several in its allocation */
    uint32_t kind;
    uint32_t hint;
    bool is_carried;    /* its first access read what was there before the iteration */
    bool is_persistent; /* contents are carried into the iteration or out of it */
    bool is_transient;  /* as described when it was first accessed, whatever became of it */
    bool is_cut;        /* split since: its pieces hold what it held */
    size_t first_op;
    size_t last_op;
    size_t zeroed_op; /* capu_zero ended its contents before this op; 0: it did not */
};

struct record_eviction {
    const char *name;
    uint64_t bytes;
    uint32_t method;
    size_t evicted_op; /* SIZE_MAX: before its first access */
    size_t trigger_op; /* before which bringing back began; SIZE_MAX: at its back-access */
    size_t back_op;    /* SIZE_MAX: not in this iteration */
};

/* An op that was run again, between two marks, before the op `before`. */
struct record_replay {
    size_t before; /* op_count of the finished record: behind all of them */
    const char *name;
    bool has_waited; /* as of an op; what earlier replays for the same op waited for included */
    uint64_t start;
    uint64_t end;
    uint64_t wait_ns;
};

/* Open: being written. Running: ended, its work is not known to be finished. Finished: complete. */
enum record_state { RECORD_UNUSED, RECORD_OPEN, RECORD_RUNNING, RECORD_FINISHED };

struct record {
    enum record_state state;
    uint64_t stamp; /* the iteration's number; tensor.record_stamp equals it for tensors in it */
    const char *label;
    uint64_t signature; /* of all its ops, those that happen once left out */
    bool is_timed;      /* each op was */
    struct lane_position begin;
    struct lane_position end;

    struct record_op *ops;
    size_t op_count;
    size_t op_capacity;
    struct record_access *accesses;
    size_t access_count;
    size_t access_capacity;
    capu_operand *operands; /* as the caller gave them */
    size_t operand_count;
    size_t operand_capacity;
    struct record_range *cleared;
    size_t cleared_count;
    size_t cleared_capacity;
    struct record_tensor *tensors;
    size_t tensor_count;
    size_t tensor_capacity;
    struct record_eviction *evictions;
    size_t eviction_count;
    size_t eviction_capacity;

    struct record_replay *replays;
    size_t replay_count;
    size_t replay_capacity;

    uint64_t touched_pages;   /* of persistent tensors with contents that are in `tensors` */
    size_t fixed_pages;       /* when the iteration ended */
    uint64_t untouched_pages; /* of persistent tensors with contents that it did not touch */
    uint64_t page_bytes;
    struct record_tensor *untouched; /* those tensors, listed for the iteration that is traced */
    size_t untouched_count;
    size_t untouched_capacity;

    capu_report report; /* counters while it runs, complete when finished */
    capu_eviction *report_evictions;
    size_t report_eviction_capacity;
    capu_stall *report_stalls;
    size_t report_stall_capacity;
    int64_t *profile; /* of the live peak, op_count + 1 */
    size_t profile_capacity;
};

struct tracker {
    struct record records[RECORD_COUNT];
    struct record *open;   /* NULL outside an iteration */
    struct record *newest; /* finished; NULL: none yet */
    const char *segment;   /* outermost open one, NULL: none */
    size_t segment_depth;
};

void tracker_finish(struct tracker *tracker);

/* Opens a record. Pre: at most one is running. NO_HOST_MEMORY never. */
struct record *tracker_open(capu_context *context, const char *label, bool is_timed);

/* Whether ops are timed now: always, but under a plan in an iteration that is not. */
bool tracker_is_timing(const capu_context *context);

/* Marks the compute lane where work begins; the zero position, which is past, where it is not
   timed: nothing waits for a beginning. */
capu_status tracker_mark_begin(capu_context *context, struct lane_position *begin);

/* Marks the compute lane behind work; with a time only if it is timed. */
capu_status tracker_mark_end(capu_context *context, struct lane_position *end);

/* Takes an open record back: the iteration did not begin. */
void tracker_cancel(capu_context *context);

/* Closes the open record behind the position `end`. */
void tracker_close(capu_context *context, struct lane_position end);

/* Completes every running record whose end is past: times, counters, report; hands them to the
   agent. What keeps a report line or a trace from its file is the agent's to tell. NO_HOST_MEMORY.
 */
capu_status tracker_settle(capu_context *context);

/* Makes room for one op with these accesses and operands, whose operands lie in so many pieces, so
   that recording it cannot fail. NO_HOST_MEMORY. */
capu_status tracker_reserve(capu_context *context, size_t access_count, size_t operand_count,
                            size_t piece_count);

/* An op begins: opens its entry and returns its number; SIZE_MAX outside iterations. The op's
   accesses follow, each perhaps said to be partial, then its marks. Pre: tracker_reserve. */
size_t tracker_op(capu_context *context, const struct call *call, bool is_replayable);
void tracker_access(capu_context *context, struct tensor *tensor, uint32_t role);
void tracker_partial(capu_context *context);
void tracker_cleared(capu_context *context, void *address, uint64_t bytes);
void tracker_marks(capu_context *context, size_t op, struct lane_position start,
                   struct lane_position end);

/* A tensor left (method); its next access ends the eviction. Outside iterations nothing is
 * recorded.
 */
void tracker_evicted(capu_context *context, struct tensor *tensor, uint32_t method);

/* A tensor starts to come back ahead of its access. */
void tracker_triggered(capu_context *context, const struct tensor *tensor);

/* The op of this name was run again between two marks of the compute lane. */
void tracker_replay(capu_context *context, const char *name, struct lane_position start,
                    struct lane_position end);

/* capu_zero ends a tensor's contents without an op. */
void tracker_zeroed(capu_context *context, const struct tensor *tensor);

/* A tensor is about to be gone: nothing of it is carried out of the iteration. */
void tracker_gone(capu_context *context, const struct tensor *tensor);

/* The same of one that is split. */
void tracker_cut(capu_context *context, const struct tensor *tensor);

/* Keeps count of a persistent tensor that gets contents (1) or loses them (-1). */
void tracker_persistent(capu_context *context, const struct tensor *tensor, int change);

/* Adds to a counter of the open report; `counter` is a field of capu_report. */
#define TRACKER_ADD(context_, counter_, amount_)                    \
    do {                                                            \
        if ((context_)->tracker.open != NULL) {                     \
            (context_)->tracker.open->report.counter_ += (amount_); \
        }                                                           \
    } while (0)

/* tracker_complete.c: completes the report of a record whose work is past. NO_HOST_MEMORY. */
capu_status tracker_complete(capu_context *context, struct record *record);

/* Grows an array of `*capacity` elements to hold `needed`. NO_HOST_MEMORY. */
capu_status tracker_grow_to(void *array, size_t *capacity, size_t needed, size_t element_bytes);
static inline capu_status tracker_grow(void *array, size_t *capacity, size_t needed,
                                       size_t element_bytes)
{
    return needed <= *capacity ? CAPU_OK : tracker_grow_to(array, capacity, needed, element_bytes);
}

struct trace;
struct error_text;

/* trace_record.c: a finished record as a trace; tensor ids are indices of the record's. `for_plan`:
   without the ops that happen once and without the tensors that no op touches, which a plan leaves
   where they are. On failure *trace is zeroed. */
capu_status trace_build(capu_context *context, const struct record *record, bool for_plan,
                        struct trace *trace, struct error_text *error);

/* trace_record.c: the record as a trace, JSON lines in *text (malloc, the caller's). On failure
 *why tells. */
capu_status trace_record(capu_context *context, const struct record *record, char **text,
                         size_t *bytes, char *why, size_t why_bytes);

/* report_json.c: the report as one line, malloc, the caller's. NULL: host memory is full. */
char *report_json(const capu_report *report);

/* The words that JSON and the printed table use for a capu_method and a capu_mode. Constants. */
const char *report_method_name(uint32_t method);
const char *report_mode_name(uint32_t mode);

#endif

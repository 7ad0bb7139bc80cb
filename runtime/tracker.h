/*
 * The tracker: records what each iteration does.
 *
 * A record holds every op and access of one iteration, with versions, and every eviction. Three
 * records are used in turn: one is open, one waits for its work to finish, and one is finished and
 * serves reports. Times are read from the marks on the compute lane once an iteration has finished,
 * so recording never waits. Under a steady plan most iterations are recorded without op times,
 * since timed events are expensive. Arrays keep their capacity: a steady iteration allocates
 * nothing.
 *
 * Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_TRACKER_H
#define CAPU_RUNTIME_TRACKER_H

#include "base/array.h"
#include "capuchin/op.h"
#include "capuchin/report.h"
#include "runtime/call.h"
#include "runtime/tensors.h"

enum { RECORD_COUNT = 3 };

struct record_op {
    struct call call; /* its operands start at first_operand */
    const char *name;
    const char *segment; /* the outermost segment; NULL: none */
    size_t first_access;
    size_t access_count;
    size_t first_operand;
    size_t operand_count;
    size_t first_cleared;
    size_t cleared_count;
    bool is_replayable;
    bool has_waited;   /* the host or the compute lane waited for memory before the op */
    size_t page_count; /* pages of its operands */
    uint64_t start;    /* sequence of its mark on the compute lane; 0: not timed */
    uint64_t end;
    uint64_t ns;      /* its duration; if it was not timed, the duration in the plan */
    uint64_t wait_ns; /* how long compute was idle before it, if has_waited */
};

/* A range that the library clears before an op. */
struct record_range {
    void *address;
    uint64_t bytes;
};

struct record_access {
    uint32_t tensor; /* index into tensors */
    uint32_t role;
    uint64_t version; /* the version that it read or made */
    bool is_partial;  /* only part was written; a write (not an update) found no contents */
};

struct record_tensor {
    const char *name; /* NULL: identified by its address */
    const void *address;
    uint64_t bytes;        /* of its span; of the whole tensor if it has no span */
    uint64_t tensor_bytes; /* of the whole tensor */
    size_t page_count;     /* 0: always resident */
    bool is_split;         /* one of several tensors in its allocation */
    uint32_t kind;
    uint32_t hint;
    bool is_carried;    /* its first access read contents from before the iteration */
    bool is_persistent; /* its contents are carried into the iteration or out of it */
    bool is_transient;  /* the tensor was transient at its first access; never changed later */
    bool is_cut;        /* split after its last access here: the pieces hold its contents */
    size_t first_op;
    size_t last_op;
    size_t zeroed_op; /* capu_zero last cleared it before this op; 0: never */
};

struct record_eviction {
    const char *name;
    uint64_t bytes;
    uint32_t method;
    size_t evicted_op; /* the op after which it left; SIZE_MAX: before its first access */
    size_t trigger_op; /* the op before which its return began; SIZE_MAX: at its back-access */
    size_t back_op;    /* its back-access; SIZE_MAX: not in this iteration */
};

/* A replay: an op that was run again, between two marks, before the op `before`. */
struct record_replay {
    size_t before; /* op_count of the finished record: after the last op */
    const char *name;
    bool has_waited; /* as in record_op; true also if an earlier replay for the same op waited */
    uint64_t start;
    uint64_t end;
    uint64_t wait_ns;
};

/* Open: being written. Running: ended, but its work may be unfinished. Finished: complete. */
enum record_state { RECORD_UNUSED, RECORD_OPEN, RECORD_RUNNING, RECORD_FINISHED };

struct record {
    enum record_state state;
    uint64_t stamp; /* the iteration's number; equals in_record.stamp of every tensor in it */
    const char *label;
    uint64_t signature; /* of all ops except those that happen only once */
    bool is_timed;      /* every op was timed */
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

    uint64_t touched_pages;   /* pages of the persistent tensors with contents in `tensors` */
    size_t fixed_pages;       /* always-resident pages when the iteration ended */
    uint64_t untouched_pages; /* pages of the other persistent tensors with contents */
    uint64_t page_bytes;
    struct record_tensor *untouched; /* those tensors; listed only if a trace is to be written */
    size_t untouched_count;
    size_t untouched_capacity;

    capu_report report; /* only counters until the record is finished */
    capu_eviction *report_evictions;
    size_t report_eviction_capacity;
    capu_stall *report_stalls;
    size_t report_stall_capacity;
    int64_t *profile; /* scratch space to compute the live peak, op_count + 1 elements */
    size_t profile_capacity;
};

struct tracker {
    struct record records[RECORD_COUNT];
    struct record *open;   /* NULL outside an iteration */
    struct record *newest; /* the newest finished record; NULL: none yet */
    const char *segment;   /* the outermost open segment; NULL: none */
    size_t segment_depth;
};

void tracker_finish(struct tracker *tracker);

/* Opens a record. `plan_error` is for the report: why no plan is active, or "". Never fails. Pre:
   at most one record is running. */
struct record *tracker_open(capu_context *context, const char *label, const char *plan_error,
                            bool is_timed);

/* Whether ops are timed now. They always are, except while a plan is active in an iteration that is
   not to be timed. */
bool tracker_is_timing(const capu_context *context);

/* Marks the compute lane before work. If the work is not timed, *begin is the zero position, which
   always counts as passed: nothing waits for a beginning. */
capu_status tracker_mark_begin(capu_context *context, struct lane_position *begin);

/* Marks the compute lane after work, with a time only if the work is timed. */
capu_status tracker_mark_end(capu_context *context, struct lane_position *end);

/* Discards the open record, because the iteration could not begin. */
void tracker_cancel(capu_context *context);

/* Closes the open record; its work ends at the position `end`. */
void tracker_close(capu_context *context, struct lane_position end);

/* Completes every running record whose end has passed: reads its times, fills in its report, and
   passes report and trace to the agent, which also reports what prevents their writing.
   NO_HOST_MEMORY. */
capu_status tracker_settle(capu_context *context);

/* The oldest finished record of an iteration after that one; NULL: there is none. */
const struct record *tracker_finished_after(const struct tracker *tracker, uint64_t iteration);

/* Reserves room for one op with this many accesses, operands, and pieces of operands, so that
   recording it cannot fail. NO_HOST_MEMORY. */
capu_status tracker_reserve(capu_context *context, size_t access_count, size_t operand_count,
                            size_t piece_count);

/* Starts the record of an op and returns its number; SIZE_MAX outside iterations. Its accesses
   follow with tracker_access, each followed by tracker_partial if it is partial, and by
   tracker_cleared for ranges to clear; then its marks. Pre: tracker_reserve. */
size_t tracker_op(capu_context *context, const struct call *call, bool is_replayable);
void tracker_access(capu_context *context, struct tensor *tensor, uint32_t role);
void tracker_partial(capu_context *context);
void tracker_cleared(capu_context *context, void *address, uint64_t bytes);
void tracker_marks(capu_context *context, size_t op, struct lane_position start,
                   struct lane_position end);

/* Records that a tensor left the device, by a capu_method. Its next access ends the eviction.
   Nothing is recorded outside iterations, here and below. */
void tracker_evicted(capu_context *context, struct tensor *tensor, uint32_t method);

/* Records that a tensor starts to return ahead of its access. */
void tracker_triggered(capu_context *context, const struct tensor *tensor);

/* Records that the op of this name was replayed between two marks on the compute lane. */
void tracker_replay(capu_context *context, const char *name, struct lane_position start,
                    struct lane_position end);

/* Records that capu_zero ended a tensor's contents, without an op. */
void tracker_zeroed(capu_context *context, const struct tensor *tensor);

/* Records that a tensor is about to be freed: it carries nothing out of the iteration. */
void tracker_gone(capu_context *context, const struct tensor *tensor);

/* Records that a tensor is about to be replaced by its pieces. */
void tracker_cut(capu_context *context, const struct tensor *tensor);

/* Updates the page counts when a persistent tensor gets contents (1) or loses them (-1). */
void tracker_persistent(capu_context *context, const struct tensor *tensor, int change);

/* Adds to a counter of the open report; `counter` is a field of capu_report. */
#define TRACKER_ADD(context_, counter_, amount_)                    \
    do {                                                            \
        if ((context_)->tracker.open != NULL) {                     \
            (context_)->tracker.open->report.counter_ += (amount_); \
        }                                                           \
    } while (0)

/* tracker_complete.c: completes the report of a record whose work has finished. NO_HOST_MEMORY. */
capu_status tracker_complete(capu_context *context, struct record *record);

/* array_reserve with a status: NO_HOST_MEMORY. */
static inline capu_status tracker_grow(void *array, size_t *capacity, size_t needed,
                                       size_t element_bytes)
{
    return array_reserve(array, capacity, needed, element_bytes) ? CAPU_OK : CAPU_NO_HOST_MEMORY;
}

struct trace;
struct error_text;

/* trace_record.c: builds a trace from a finished record. Tensor ids are indices into the record's
   tensors. `for_plan` leaves out the ops that happen only once and the tensors that no op touches,
   which a plan leaves where they are. On failure *trace is zeroed. */
capu_status trace_record_build(capu_context *context, const struct record *record, bool for_plan,
                               struct trace *trace, struct error_text *error);

/* trace_record.c: writes the record as a trace in JSON lines. The caller frees *text. On failure
   `why` receives the reason. */
capu_status trace_record_write(capu_context *context, const struct record *record, char **text,
                               size_t *bytes, char *why, size_t why_bytes);

/* report_json.c: returns the report as one line of JSON, which the caller frees. NULL: host memory
   is full. */
char *report_json(const capu_report *report);

/* The words for a capu_method and a capu_mode in JSON and in the printed table. Constants. */
const char *report_method_name(uint32_t method);
const char *report_mode_name(uint32_t mode);

#endif

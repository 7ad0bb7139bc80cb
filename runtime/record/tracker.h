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
 * The trace of a finished record and its file are declared here, too (trace_record.c); the line of
 * its report is in report_json.h.
 *
 * Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_TRACKER_H
#define CAPU_RUNTIME_TRACKER_H

#include "base/array.h"
#include "runtime/iteration/record.h"
#include "runtime/op/op.h"
#include "runtime/record/ahead.h"
#include "runtime/tensor/tensors.h"

struct records;

enum { RECORD_COUNT = 3 };

struct tracker {
    struct record records[RECORD_COUNT];
    struct record *open;   /* NULL outside an iteration */
    struct record *newest; /* the newest finished record; NULL: none yet */
    const char *segment;   /* the outermost open segment; NULL: none */
    size_t segment_depth;
    struct ahead ahead; /* of the open record */
    int64_t *profile;   /* scratch space to compute the live peak: one more than the ops */
    size_t profile_capacity;
    uint32_t *pages; /* the same: one per tensor */
    size_t page_capacity;
    uint32_t *births; /* the same */
    size_t birth_capacity;
};

void tracker_finish(struct tracker *tracker);

/* Opens a record. `plan_error` is for the report: why no plan is active, or "". Never fails. Pre:
   at most one record is running. */
struct record *tracker_open(struct records *records, const char *label, const char *plan_error,
                            bool is_timed);

/* Whether ops are timed now. They always are, except while a plan is active in an iteration that is
   not to be timed. */
bool tracker_is_timing(const struct records *records);

/* Marks the compute lane before work. If the work is not timed, *begin is the zero position, which
   always counts as passed: nothing waits for a beginning. */
capu_status tracker_mark_begin(struct records *records, struct lane_position *begin);

/* Marks the compute lane after work, with a time only if the work is timed. */
capu_status tracker_mark_end(struct records *records, struct lane_position *end);

/* Discards the open record, because the iteration could not begin. */
void tracker_cancel(struct records *records);

/* Closes the open record; its work ends at the position `end`. */
void tracker_close(struct records *records, struct lane_position end);

/* Completes every running record whose end has passed: reads its times, fills in its report, and
   passes report and trace to the agent, which also reports what prevents their writing.
   NO_HOST_MEMORY. */
capu_status tracker_settle(struct records *records);

/* The oldest finished record of an iteration after that one; NULL: there is none. */
const struct record *tracker_finished_after(const struct tracker *tracker, uint64_t iteration);

/* Reserves room for one op with this many accesses, operands, and pieces of operands, so that
   recording it cannot fail. NO_HOST_MEMORY. */
capu_status tracker_reserve(struct records *records, size_t access_count, size_t operand_count,
                            size_t piece_count);

/* Starts the record of an op and returns its number; SIZE_MAX outside iterations. Its accesses
   follow, with tracker_accesses those of the op at hand, with tracker_access one of another op;
   then tracker_cleared for ranges to clear; then its marks and its operands, with the same call.
   Pre: tracker_reserve. */
size_t tracker_op(struct records *records, const struct call *call, bool is_replayable);
void tracker_access(struct records *records, struct tensor *tensor, uint32_t role);
void tracker_accesses(struct records *records, const struct op *op);
void tracker_cleared(struct records *records, void *address, uint64_t bytes);
void tracker_marks(struct records *records, size_t op, const struct call *call,
                   struct lane_position start, struct lane_position end);

/* Records that a tensor left the device, by a capu_method. Its next access ends the eviction.
   Nothing is recorded outside iterations, here and below. */
void tracker_evicted(struct records *records, struct tensor *tensor, uint32_t method);

/* Records that a tensor starts to return ahead of its access. */
void tracker_triggered(struct records *records, const struct tensor *tensor);

/* Records that the op of this name, `number` in the guide, was replayed between two marks on the
   compute lane. */
void tracker_replay(struct records *records, const char *name, uint32_t number,
                    struct lane_position start, struct lane_position end);

/* Records that capu_zero ended a tensor's contents, without an op. */
void tracker_zeroed(struct records *records, const struct tensor *tensor);

/* Records that a tensor is about to be freed: it carries nothing out of the iteration. */
void tracker_gone(struct records *records, const struct tensor *tensor);

/* Records that a tensor is about to be replaced by its pieces. */
void tracker_cut(struct records *records, const struct tensor *tensor);

/* Updates the page counts when a persistent tensor gets contents (1) or loses them (-1). */
void tracker_persistent(struct records *records, const struct tensor *tensor, int change);

/* Adds to a counter of the open report; `counter` is a field of struct report. */
#define TRACKER_ADD(records_, counter_, amount_)                    \
    do {                                                            \
        if ((records_)->tracker.open != NULL) {                     \
            (records_)->tracker.open->report.counter_ += (amount_); \
        }                                                           \
    } while (0)

/* tracker_complete.c: completes the report of a record whose work has finished. NO_HOST_MEMORY. */
capu_status tracker_complete(struct records *records, struct record *record);

/* The same for all but times, as soon as a record that was not timed has been closed. */
capu_status tracker_foresee(struct records *records, struct record *record);

/* array_reserve with a status: NO_HOST_MEMORY. */
static inline capu_status tracker_grow(void *array, size_t *capacity, size_t needed,
                                       size_t element_bytes)
{
    return array_reserve(array, capacity, needed, element_bytes) ? CAPU_OK : CAPU_NO_HOST_MEMORY;
}

/* The end of the work that the device still has of iterations; a position that has passed: none. */
struct lane_position tracker_newest_end(const struct tracker *tracker);

struct trace;
struct error_text;

/* trace_record.c: builds a trace from a finished record. Tensor ids are indices into the record's
   tensors. `for_plan` leaves out the ops that happen only once and the tensors that no op touches,
   which a plan leaves where they are. On failure *trace is zeroed. */
capu_status trace_record_build(struct records *records, const struct record *record, bool for_plan,
                               struct trace *trace, struct error_text *error);

/* trace_record.c: writes the record as a trace in JSON lines. The caller frees *text. On failure
   `why` receives the reason. */
capu_status trace_record_write(struct records *records, const struct record *record, char **text,
                               size_t *bytes, char *why, size_t why_bytes);

#endif

/*
 * Completes the report of a finished iteration: times, what it needs, evictions, stalls.
 *
 * All of this happens after the iteration has finished on the device. While it runs, only marks and
 * counters are kept, so that recording costs little and never waits.
 *
 * Which gaps count as stalls: a gap on the compute lane before an op is attributed to memory only
 * if the runtime made the op wait (has_waited). Other gaps are the program's own, such as a slow
 * data loader.
 */
#include "base/assert.h"
#include "runtime/record/page_figures.h"
#include "runtime/record/records.h"

#include <string.h>

/* The time of an op or a replay: without what its function waited for others. */
static capu_status read_own_time(const struct record *record, struct lane_position start,
                                 struct lane_position end, uint64_t *ns)
{
    struct device_tally tally = {0};
    capu_status status = lane_elapsed_ns(start, end, ns);

    if (status == CAPU_OK && record->report.waited_ns > 0) {
        status = lane_tally(start, end, &tally);
    }
    if (status == CAPU_OK) {
        *ns -= tally.waited_ns < *ns ? tally.waited_ns : *ns;
    }
    return status;
}

/* Reads the times of the replays before an op, and moves *before to the end of the last one. */
static capu_status read_replays(struct records *records, struct record *record, size_t op,
                                size_t *next, struct lane_position *before)
{
    while (*next < record->replay_count && record->replays[*next].before <= op) {
        struct record_replay *replay = &record->replays[(*next)++];
        struct lane_position start = {.lane = &records->lanes->compute, .sequence = replay->start};
        struct lane_position end = {.lane = &records->lanes->compute, .sequence = replay->end};
        uint64_t ns;
        capu_status status = read_own_time(record, start, end, &ns);

        replay->wait_ns = 0;
        if (status == CAPU_OK && replay->has_waited) {
            status = lane_elapsed_ns(*before, start, &replay->wait_ns);
        }
        if (status != CAPU_OK) {
            return status;
        }
        record->report.recompute_ns += ns;
        record->report.stall_ns += replay->wait_ns;
        *before = end;
    }
    return CAPU_OK;
}

/* Reads the times of an iteration that was not timed. If it left its plan, the ops after that point
   were still timed, and planning for the new sequence needs their times. */
static capu_status read_last_times(struct record *record)
{
    struct report *report = &record->report;
    capu_status status = CAPU_OK;

    report->compute_ns = CAPU_NOT_TIMED;
    report->stall_ns = CAPU_NOT_TIMED;
    report->recompute_ns = CAPU_NOT_TIMED;
    for (size_t i = 0; i < record->op_count && status == CAPU_OK; i++) {
        struct record_op *op = &record->ops[i];

        if (op->start != 0) {
            status = read_own_time(record, record_position(record, op->start),
                                   record_position(record, op->end), &op->ns);
        }
    }
    return status;
}

/* Reads the times of ops and replays from the marks on the compute lane. */
static capu_status read_op_times(struct records *records, struct record *record)
{
    struct lane_position before = record->begin;
    struct report *report = &record->report;
    size_t next_replay = 0;
    size_t next_wait = 0;
    capu_status status;

    report->compute_ns = 0;
    report->stall_ns = 0;
    report->recompute_ns = 0;
    for (size_t i = 0; i < record->op_count; i++) {
        struct record_op *op = &record->ops[i];
        struct lane_position start = record_position(record, op->start);
        struct lane_position end = record_position(record, op->end);

        status = read_replays(records, record, i, &next_replay, &before);
        if (status == CAPU_OK) {
            status = read_own_time(record, start, end, &op->ns);
        }
        if (status == CAPU_OK && next_wait < record->wait_count &&
            record->waits[next_wait].op == i) {
            struct record_wait *wait = &record->waits[next_wait++];

            status = lane_elapsed_ns(before, start, &wait->ns);
            report->stall_ns += wait->ns;
        }
        if (status != CAPU_OK) {
            return status;
        }
        report->compute_ns += op->ns;
        before = end;
    }
    return read_replays(records, record, record->op_count, &next_replay, &before);
}

/* The times of the iteration as a whole. */
static capu_status read_whole(struct record *record)
{
    struct report *report = &record->report;
    struct device_tally tally = {0};
    capu_status status = lane_elapsed_ns(record->begin, record->end, &report->time_ns);

    if (status == CAPU_OK) {
        status = lane_tally(record->begin, record->end, &tally);
    }
    report->waited_ns = tally.waited_ns;
    report->exchange_ns = tally.exchange_ns;
    report->exchanged_bytes = tally.exchanged_bytes;
    return status;
}

static capu_status read_times(struct records *records, struct record *record)
{
    capu_status status = read_whole(record);

    if (status != CAPU_OK) {
        return status;
    }
    return record->is_timed ? read_op_times(records, record) : read_last_times(record);
}

static capu_status list_evictions(struct record *record)
{
    capu_status status = tracker_grow(&record->report_evictions, &record->report_eviction_capacity,
                                      record->eviction_count, sizeof(*record->report_evictions));

    if (status != CAPU_OK) {
        return status;
    }
    for (size_t i = 0; i < record->eviction_count; i++) {
        const struct record_eviction *from = &record->evictions[i];
        const struct record_op *left =
            from->evicted_op < record->op_count ? &record->ops[from->evicted_op] : NULL;
        const struct record_op *back =
            from->back_op < record->op_count ? &record->ops[from->back_op] : NULL;
        /* A tensor that left empty needs no copy back, so the op waited for something else. */
        bool may_wait = back != NULL && from->method != CAPU_METHOD_EMPTY;
        uint64_t wait_ns = !may_wait          ? 0
                           : record->is_timed ? record_wait_ns(record, from->back_op)
                                              : CAPU_NOT_TIMED;

        record->report_evictions[i] = (capu_eviction){
            .tensor = from->name,
            .bytes = from->bytes,
            .method = from->method,
            .is_hidden = back != NULL && wait_ns == 0,
            .evicted_access = left != NULL ? from->evicted_op : UINT64_MAX,
            .evicted_op = left != NULL ? left->name : "",
            .back_access = back != NULL ? from->back_op : UINT64_MAX,
            .back_op = back != NULL ? back->name : "",
            .in_trigger = back == NULL                   ? UINT64_MAX
                          : from->trigger_op != SIZE_MAX ? from->trigger_op
                                                         : from->back_op,
            .wait_ns = wait_ns,
        };
    }
    return CAPU_OK;
}

static void add_stall(struct record *record, size_t op, const char *replay, uint64_t wait_ns)
{
    bool is_op = op < record->op_count;

    if (wait_ns > 0) {
        record->report_stalls[record->report.stall_count++] =
            (capu_stall){.access = is_op ? op : UINT64_MAX,
                         .op = is_op ? record->ops[op].name : "",
                         .wait_ns = wait_ns,
                         .replay = replay};
    }
}

/* Lists what waited: for each op first the replays it needed, then the op itself. The list of an
   iteration that was not timed is empty. */
static capu_status list_stalls(struct record *record)
{
    size_t next = 0;
    capu_status status =
        tracker_grow(&record->report_stalls, &record->report_stall_capacity,
                     record->wait_count + record->replay_count, sizeof(*record->report_stalls));

    if (status != CAPU_OK) {
        return status;
    }
    record->report.stall_count = 0;
    for (size_t i = 0; i <= record->wait_count && record->is_timed; i++) {
        size_t op = i < record->wait_count ? record->waits[i].op : record->op_count;

        for (; next < record->replay_count && record->replays[next].before <= op; next++) {
            const struct record_replay *replay = &record->replays[next];

            add_stall(record, replay->before, replay->name, replay->wait_ns);
        }
        if (i < record->wait_count) {
            add_stall(record, op, "", record->waits[i].ns);
        }
    }
    return CAPU_OK;
}

/* What the record says of the iteration without times. */
static capu_status complete_figures(struct records *records, struct record *record)
{
    struct report *report = &record->report;
    capu_status status = page_figures_report(records, record);

    if (status == CAPU_OK) {
        status = list_evictions(record);
    }
    report->op_count = record->op_count;
    report->access_count = record->access_count;
    report->evictions = record->report_evictions;
    report->eviction_count = record->eviction_count;
    return status;
}

capu_status tracker_foresee(struct records *records, struct record *record)
{
    ASSERT(record->state == RECORD_RUNNING && !record->is_timed);
    record->report.compute_ns = CAPU_NOT_TIMED;
    record->report.stall_ns = CAPU_NOT_TIMED;
    record->report.recompute_ns = CAPU_NOT_TIMED;
    return complete_figures(records, record);
}

capu_status tracker_complete(struct records *records, struct record *record)
{
    capu_status status = CAPU_OK;

    copy_times_read(records, record);
    if (record->is_launch) {
        status = lane_elapsed_ns(record->begin, record->end, &record->report.time_ns);
        if (status == CAPU_OK) {
            record->state = RECORD_FINISHED;
        }
        return status;
    }
    status = read_times(records, record);
    if (status == CAPU_OK && record->report.stall_ns != CAPU_NOT_TIMED) {
        records->traffic.totals.stall_ns += record->report.stall_ns;
    }
    if (status == CAPU_OK) {
        timeline_log_read(records, record);
        status = complete_figures(records, record);
    }
    if (status == CAPU_OK) {
        status = list_stalls(record);
    }
    if (status != CAPU_OK) {
        return status;
    }
    record->report.stalls = record->report_stalls;
    record->state = RECORD_FINISHED;
    return CAPU_OK;
}

/* Recording iterations and completing their reports, see tracker.h. */
#include "base/assert.h"
#include "base/hash.h"
#include "runtime/context/agent.h"
#include "runtime/context/failure.h"
#include "runtime/record/page_figures.h"
#include "runtime/record/records.h"
#include "runtime/record/report_json.h"
#include "runtime/tensor/memory.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define KINDS_EVERY_NS UINT64_C(100000000)

void tracker_finish(struct tracker *tracker)
{
    for (size_t i = 0; i < RECORD_COUNT; i++) {
        record_finish(&tracker->records[i]);
    }
    free(tracker->profile);
    free(tracker->pages);
    free(tracker->births);
    *tracker = (struct tracker){0};
}

/* A record to write into: not the newest finished one, since reports are read from that. */
static struct record *unused_record(struct tracker *tracker)
{
    struct record *oldest = NULL;

    for (size_t i = 0; i < RECORD_COUNT; i++) {
        struct record *record = &tracker->records[i];

        if (record->state == RECORD_RUNNING || record == tracker->newest) {
            continue;
        }
        if (oldest == NULL || record->stamp < oldest->stamp) {
            oldest = record;
        }
    }
    return oldest;
}

/* The newest record of the same label; NULL: there is none. It is not reused before the next record
   is opened. */
static const struct record *record_before(const struct tracker *tracker, const struct record *open)
{
    const struct record *before = NULL;

    for (size_t i = 0; i < RECORD_COUNT; i++) {
        const struct record *record = &tracker->records[i];

        if (record != open && record->label == open->label && record->state >= RECORD_RUNNING &&
            (before == NULL || record->stamp > before->stamp)) {
            before = record;
        }
    }
    return before;
}

bool tracker_is_timing(const struct records *records)
{
    const struct record *record = records->tracker.open;

    return record == NULL || record->is_timed ||
           (records->guided->active == NULL && records->settings->config.mode != CAPU_MODE_OFF);
}

capu_status tracker_mark_begin(struct records *records, struct lane_position *begin)
{
    if (tracker_is_timing(records)) {
        return lane_mark(&records->lanes->compute, begin);
    }
    *begin = (struct lane_position){0};
    return CAPU_OK;
}

capu_status tracker_mark_end(struct records *records, struct lane_position *end)
{
    return tracker_is_timing(records) ? lane_mark(&records->lanes->compute, end)
                                      : lane_mark_untimed(&records->lanes->compute, end);
}

struct record *tracker_open(struct records *records, const char *label, const char *plan_error,
                            bool is_timed)
{
    struct record *record = unused_record(&records->tracker);

    ASSERT(record != NULL && records->tracker.open == NULL);
    record->state = RECORD_OPEN;
    record->stamp = records->iteration->number;
    record->label = label;
    record->is_timed = is_timed;
    record->is_launch = false;
    record->signature = 0;
    record->touched_pages = 0;
    record_clear(record);
    record->report = (struct report){
        .mode = records->guided->active != NULL ? CAPU_MODE_GUIDED
                : records->settings->config.mode == CAPU_MODE_GUIDED
                    ? CAPU_MODE_PASSIVE
                    : records->settings->config.mode,
        .predicted_ns =
            records->guided->active != NULL ? records->guided->active->feedback.predicted_ns : 0,
        .plan_d2h_bytes_per_s = records->guided->active != NULL
                                    ? records->guided->active->feedback.link.d2h_bytes_per_s
                                    : 0,
        .plan_h2d_bytes_per_s = records->guided->active != NULL
                                    ? records->guided->active->feedback.link.h2d_bytes_per_s
                                    : 0,
        .unplaced = records->guided->active != NULL && records->guided->active->guide->is_unplaced,
        .install_ns = records->install_ns,
        .plan_error = plan_error,
        .label = label,
        .floor_op = "",
        .iteration = records->iteration->number,
        .timed = is_timed,
        .rank = records->settings->config.rank,
        .rank_count = records->settings->config.rank_count,
    };
    records->tracker.open = record;
    records->tracker.ahead = (struct ahead){.before = record_before(&records->tracker, record)};
    records->install_ns = 0;
    return record;
}

void tracker_cancel(struct records *records)
{
    records->tracker.open->state = RECORD_UNUSED;
    records->tracker.open = NULL;
}

static struct record_tensor describe(const struct tensor *tensor)
{
    const struct allocation *allocation = tensor->allocation;
    bool is_small = allocation->page_count == 0;
    uint64_t offset =
        (uint64_t)((unsigned char *)tensor->address - (unsigned char *)allocation->address);

    return (struct record_tensor){
        .name = tensor->name,
        .address = tensor->address,
        .bytes = tensor_is_managed(tensor) ? tensor->span_bytes : tensor->bytes,
        .tensor_bytes = tensor->bytes,
        .extent = (uint32_t)(is_small ? offset : tensor->page_count),
        .size_log2 = (uint8_t)(63 - __builtin_clzll(allocation->bytes)),
        .is_split = tensor->previous != NULL || tensor->next != NULL,
        .is_small = is_small,
        .is_last = offset + tensor->bytes == allocation->bytes,
        .kind = (uint8_t)tensor->kind,
        .hint = (uint8_t)tensor->hint,
        .is_persistent = tensor->is_persistent,
        .is_transient = !tensor->is_persistent,
        .freed_op = UINT32_MAX,
    };
}

/* An unlimited run holds persistent tensors also in an iteration that does not touch them. */
static void list_untouched(struct records *records, struct record *record)
{
    for (struct tensor *at = records->memory->persistent.head; at != NULL; at = at->contents.next) {
        if (at->in_record.stamp == record->stamp) {
            continue;
        }
        if (tracker_grow(&record->untouched, &record->untouched_capacity,
                         record->untouched_count + 1, sizeof(*record->untouched)) != CAPU_OK) {
            agent_fail(records->agent, "no memory to list a trace's tensors");
            return;
        }
        record->untouched[record->untouched_count++] = describe(at);
    }
}

void tracker_close(struct records *records, struct lane_position end)
{
    struct record *record = records->tracker.open;

    record->end = end;
    record->fixed_pages = memory_fixed_pages(records->memory);
    record->kept_pages = memory_kept_pages(records->memory);
    record->report.slab_bytes =
        slabs_used_count(records->memory->slabs) * pages_bytes_each(records->memory->pages);
    record->report.slab_used_bytes = slabs_used_bytes(records->memory->slabs);
    record->edge_pages = records->memory->edge_page_count;
    record->untouched_pages = records->memory->persistent_pages - record->touched_pages;
    record->page_bytes = pages_bytes_each(records->memory->pages);
    page_census_read(&records->memory->census, record->sums);
    if (record->report.budget_bytes < records->settings->config.budget_bytes) {
        record->report.budget_bytes =
            records->settings->config.budget_bytes; /* the largest there was */
    }
    record->report.host_bytes =
        host_arena_chunk_bytes(records->memory->arena); /* it never shrinks */
    record->report.peak_bytes = pages_out_peak(records->memory->pages) * record->page_bytes;
    if (records->settings->config.trace_path != NULL &&
        record->stamp == records->settings->config.trace_iteration) {
        list_untouched(records, record);
    }
    record->state = RECORD_RUNNING;
    records->tracker.open = NULL;
    timeline_log_close(records);
}

capu_status tracker_reserve(struct records *records, size_t access_count, size_t operand_count,
                            size_t piece_count)
{
    struct record *record = records->tracker.open;

    if (record != NULL) {
        ahead_look(&records->tracker.ahead, &records->memory->tensors, record, access_count);
    }
    /* Every operand may first be filled with zeros, by an op of its own. */
    return record == NULL || record_reserve(record, access_count + 1, 2 * access_count + 1,
                                            access_count + operand_count, piece_count)
               ? CAPU_OK
               : CAPU_NO_HOST_MEMORY;
}

static uint64_t sign(uint64_t signature, const struct record_site *site, const struct call *call)
{
    signature = hash_mix_two(signature, (uintptr_t)call->name, site->signature);
    for (size_t i = 0; i < call->operand_count; i++) {
        const capu_operand *operand = &call->operands[i];

        signature = hash_mix_two(signature, (uintptr_t)operand->address,
                                 operand->bytes << 3 | operand->role);
    }
    return signature;
}

/* A plan is for tensors as they are: another one at the address needs another plan. */
static uint64_t sign_access(uint64_t signature, const struct tensor *tensor, uint32_t role)
{
    return hash_mix_two(signature, (uintptr_t)tensor->address,
                        tensor->bytes << 4 | (uint64_t)tensor_is_managed(tensor) << 3 | role);
}

/* How long the active plan assumes that the op at hand takes, if the op is not timed; otherwise 0.
 */
static uint64_t planned_ns(const struct records *records)
{
    uint32_t next = records->guided->binding.next;

    return !tracker_is_timing(records) && records->guided->active != NULL &&
                   next < records->guided->active->feedback.op_count
               ? records->guided->active->feedback.planned_ns[next]
               : 0;
}

size_t tracker_op(struct records *records, const struct call *call, bool is_replayable)
{
    struct record *record = records->tracker.open;
    struct record_op *op;

    if (record == NULL) {
        return SIZE_MAX;
    }
    op = record_add_op(record, call, records->tracker.segment);
    op->is_replayable = is_replayable;
    op->ns = planned_ns(records);
    if (records->traffic.has_waited) {
        record->waits[record->wait_count++] = (struct record_wait){.op = record->op_count - 1};
    }
    if (!call->is_once) {
        record->signature = sign(record->signature, &record->sites[op->site], call);
    }
    return record->op_count - 1;
}

/* Makes the tensor's entry in the open record, at its first access. */
static void add_entry(struct records *records, struct record *record, struct tensor *tensor,
                      uint32_t role)
{
    struct record_tensor *entry;

    ASSERT(record->tensor_count < record->tensor_capacity);
    tensor->in_record.stamp = record->stamp;
    tensor->in_record.index = record->tensor_count++;
    entry = &record->tensors[tensor->in_record.index];
    *entry = describe(tensor);
    entry->is_live_in = role == CAPU_READ || role == CAPU_UPDATE;
    entry->is_persistent = entry->is_persistent || entry->is_live_in;
    tensor->is_live_in = tensor->is_live_in || entry->is_live_in;
    tensor->overwrites++;
    entry->first_op = (uint32_t)record->op_count - 1;
    if (tensor->contents.list == &records->memory->persistent) {
        record->touched_pages += tensor->page_count;
        entry->is_held = true;
    }
    timeline_log_meet(records, tensor, tensor->in_record.index);
}

/* The op being recorded touches a tensor that had left: it is back. */
static inline void end_eviction(struct record *record, struct tensor *tensor)
{
    if (record->eviction_count > 0 && tensor->in_eviction.stamp == record->stamp &&
        tensor->in_eviction.index != SIZE_MAX && tensor_is_mapped(tensor)) {
        record->evictions[tensor->in_eviction.index].back_op = record->op_count - 1;
        tensor->in_eviction.index = SIZE_MAX;
    }
}

/* Adds an access to the newest op. */
static inline void add_access(struct records *records, struct record *record, struct tensor *tensor,
                              uint32_t role, bool is_once)
{
    if (tensor->in_record.stamp != record->stamp) {
        add_entry(records, record, tensor, role);
    }
    record->tensors[tensor->in_record.index].last_op = (uint32_t)record->op_count - 1;
    end_eviction(record, tensor);
    record_add_access(record, tensor->in_record.index, role);
    if (!is_once) {
        record->signature = sign_access(record->signature, tensor, role);
    }
}

void tracker_access(struct records *records, struct tensor *tensor, uint32_t role)
{
    struct record *record = records->tracker.open;

    if (record != NULL) {
        add_access(records, record, tensor, role, record_is_once(record, record->op_count - 1));
    }
}

void tracker_accesses(struct records *records, const struct op *op)
{
    struct record *record = records->tracker.open;
    bool is_once = record != NULL && record_is_once(record, record->op_count - 1);

    for (size_t i = 0; record != NULL && i < op->access_count; i++) {
        const struct access *access = &op->accesses[i];

        add_access(records, record, access->tensor, access->recorded, is_once);
        if (access->is_partial) {
            record_set_partial(record);
        }
    }
}

void tracker_cleared(struct records *records, void *address, uint64_t bytes)
{
    struct record *record = records->tracker.open;

    if (record != NULL) {
        ASSERT(record->op_count > 0 && record->cleared_count < record->cleared_capacity);
        record->cleared[record->cleared_count++] = (struct record_cleared){
            .range = {.address = address, .bytes = bytes}, .op = record->op_count - 1};
    }
}

void tracker_marks(struct records *records, size_t op, const struct call *call,
                   struct lane_position start, struct lane_position end)
{
    struct record *record = records->tracker.open;

    if (record != NULL && op != SIZE_MAX) {
        record->ops[op].start = record_mark(record, start);
        record->ops[op].end = record_mark(record, end);
        record_add_operands(record, call->operands, call->operand_count);
    }
}

/* Whether a tensor with this hint is not meant to leave so. */
static bool is_against(uint32_t hint, uint32_t method)
{
    return (hint == CAPU_HINT_KEEP && method != CAPU_METHOD_EMPTY) ||
           (hint == CAPU_HINT_SWAP && method == CAPU_METHOD_RECOMPUTE) ||
           (hint == CAPU_HINT_RECOMPUTE &&
            (method == CAPU_METHOD_SWAP || method == CAPU_METHOD_CLEAN));
}

/* Passive mode has no plan that could follow hints. */
static void note_hint(const struct records *records, const struct tensor *tensor,
                      struct record *record, struct record_eviction *eviction)
{
    const struct guide *guide =
        records->guided->active != NULL ? records->guided->active->guide : NULL;
    struct hint_reason reason;

    if (guide == NULL || !is_against(tensor->hint, eviction->method) ||
        tensor->guide_index >= guide->tensor_count) {
        return;
    }
    reason = guide->tensors[tensor->guide_index].hint_reason;
    record->report.hints_ignored++;
    eviction->ignored_hint = tensor->hint;
    eviction->obstacle = reason.obstacle;
    eviction->obstacle_op = reason.op < guide->op_count ? guide->ops[reason.op].call.name : "";
}

void tracker_evicted(struct records *records, struct tensor *tensor, uint32_t method)
{
    struct record *record = records->tracker.open;
    struct record_eviction *eviction;
    bool is_known;

    if (record == NULL) {
        return;
    }
    record->report.evict_count++;
    timeline_log_give(records, tensor, method);
    /* A list of evictions that cannot grow costs the user a line of the report, not the training.
     */
    if (tracker_grow(&record->evictions, &record->eviction_capacity, record->eviction_count + 1,
                     sizeof(*record->evictions)) != CAPU_OK) {
        return;
    }
    is_known = tensor->in_record.stamp == record->stamp;
    tensor->in_eviction.stamp = record->stamp;
    tensor->in_eviction.index = record->eviction_count;
    eviction = &record->evictions[record->eviction_count++];
    *eviction = (struct record_eviction){
        .name = lookup_name(records->memory, tensor),
        .bytes = tensor->span_bytes,
        .method = method,
        .evicted_op = is_known ? record->tensors[tensor->in_record.index].last_op : SIZE_MAX,
        .back_op = SIZE_MAX,
        .trigger_op = SIZE_MAX,
    };
    note_hint(records, tensor, record, eviction);
}

void tracker_triggered(struct records *records, const struct tensor *tensor)
{
    struct record *record = records->tracker.open;

    if (record != NULL && tensor->in_eviction.stamp == record->stamp &&
        tensor->in_eviction.index != SIZE_MAX) {
        record->evictions[tensor->in_eviction.index].trigger_op = record->op_count;
    }
}

void tracker_replay(struct records *records, const char *name, uint32_t number,
                    struct lane_position start, struct lane_position end)
{
    struct record *record = records->tracker.open;

    if (record == NULL) {
        return;
    }
    record->report.replay_count++;
    /* As with evictions: what cannot be listed is missing from the report's times, no more. */
    if (tracker_grow(&record->replays, &record->replay_capacity, record->replay_count + 1,
                     sizeof(*record->replays)) == CAPU_OK) {
        record->replays[record->replay_count++] =
            (struct record_replay){.before = record->op_count,
                                   .name = name,
                                   .has_waited = records->traffic.has_waited,
                                   .start = start.sequence,
                                   .end = end.sequence};
        timeline_log_replay(records, number);
    }
}

void tracker_zeroed(struct records *records, const struct tensor *tensor)
{
    struct record *record = records->tracker.open;

    if (record != NULL && tensor->in_record.stamp == record->stamp) {
        record->tensors[tensor->in_record.index].zeroed_op = (uint32_t)record->op_count;
    }
}

/* The tensor's entry in the open record if it will not be accessed again: it carries nothing out of
   the iteration. NULL: the record does not have it. */
static struct record_tensor *end_entry(struct records *records, const struct tensor *tensor)
{
    struct record *record = records->tracker.open;
    struct record_tensor *entry = NULL;

    if (record != NULL && tensor->in_record.stamp == record->stamp) {
        entry = &record->tensors[tensor->in_record.index];
        entry->is_persistent = entry->is_live_in;
    }
    return entry;
}

void tracker_gone(struct records *records, const struct tensor *tensor)
{
    struct record_tensor *entry = end_entry(records, tensor);

    if (entry != NULL) {
        entry->freed_op = (uint32_t)records->tracker.open->op_count;
    }
}

void tracker_cut(struct records *records, const struct tensor *tensor)
{
    struct record_tensor *entry = end_entry(records, tensor);

    if (entry != NULL) {
        entry->is_cut = true;
    }
}

void tracker_persistent(struct records *records, const struct tensor *tensor, int change)
{
    struct record *record = records->tracker.open;
    uint64_t pages = change > 0 ? tensor->page_count : -(uint64_t)tensor->page_count;

    records->memory->persistent_pages += pages;
    page_census_persistent(&records->memory->census, tensor, change);
    if (record != NULL && tensor->in_record.stamp == record->stamp) {
        record->touched_pages += pages;
        record->tensors[tensor->in_record.index].is_held = change > 0;
    }
}

/* What `capuchin top` shows. Reading the clock is no system call. */
static void publish_live(struct records *records, const struct record *record)
{
    struct live *live = records->live;
    struct timespec now;
    uint64_t now_ns;

    clock_gettime(CLOCK_MONOTONIC, &now);
    now_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    live_note_report(live, &record->report);
    /* The only part that takes time per op; so often is enough for people. */
    if (now_ns - live->kinds_ns >= KINDS_EVERY_NS) {
        page_figures_kinds(&records->tracker, record, live->own.kind_bytes);
        live->kinds_ns = now_ns;
    }
    live->own.held_bytes = pages_out(records->memory->pages) * record->page_bytes;
    live->own.published_ns = now_ns;
    live_publish(live);
}

/* Report line and trace, for the agent to write. Training goes on if that fails, and capu_flush
   tells. */
static void publish(struct records *records, struct record *record)
{
    if (records->live != NULL) {
        publish_live(records, record);
    }
    if (records->settings->config.report_path != NULL) {
        char *line = report_json(&record->report, record);

        if (line == NULL || agent_report(records->agent, line) != CAPU_OK) {
            agent_fail(records->agent, "no memory for a line of the report file");
        }
    }
    if (records->settings->config.trace_path != NULL &&
        record->stamp == records->settings->config.trace_iteration) {
        char error[AGENT_TEXT_BYTES / 2];
        size_t bytes;
        char *text;

        if (trace_record_write(records, record, &text, &bytes, error, sizeof(error)) != CAPU_OK) {
            agent_fail(records->agent, error);
        } else if (agent_trace(records->agent, text, bytes) != CAPU_OK) {
            agent_fail(records->agent, "no memory to hand on the trace");
        }
    }
}

static struct record *oldest_running(struct tracker *tracker)
{
    struct record *oldest = NULL;

    for (size_t i = 0; i < RECORD_COUNT; i++) {
        struct record *record = &tracker->records[i];

        if (record->state == RECORD_RUNNING && (oldest == NULL || record->stamp < oldest->stamp)) {
            oldest = record;
        }
    }
    return oldest;
}

capu_status tracker_settle(struct records *records)
{
    struct record *record = oldest_running(&records->tracker);

    while (record != NULL && lane_has_passed(record->end)) {
        capu_status status = tracker_complete(records, record);

        if (status != CAPU_OK) {
            return failure_check(records->failure, status, "completing an iteration's report");
        }
        records->tracker.newest = record;
        traffic_settle(records);
        lane_retire(record->end);
        publish(records, record);
        record = oldest_running(&records->tracker);
    }
    timeline_logs_settle(records);
    return CAPU_OK;
}

const struct record *tracker_finished_after(const struct tracker *tracker, uint64_t iteration)
{
    const struct record *next = NULL;

    for (size_t i = 0; i < RECORD_COUNT; i++) {
        const struct record *record = &tracker->records[i];

        if (record->state == RECORD_FINISHED && record->stamp > iteration &&
            (next == NULL || record->stamp < next->stamp)) {
            next = record;
        }
    }
    return next;
}

struct lane_position tracker_newest_end(const struct tracker *tracker)
{
    const struct record *newest = NULL;

    for (size_t i = 0; i < RECORD_COUNT; i++) {
        const struct record *record = &tracker->records[i];

        if (record->state == RECORD_RUNNING && (newest == NULL || record->stamp > newest->stamp)) {
            newest = record;
        }
    }
    return newest != NULL ? newest->end : (struct lane_position){0};
}

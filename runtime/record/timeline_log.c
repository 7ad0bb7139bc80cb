/* Keeping timeline logs, see timeline_log.h. */
#include "runtime/record/timeline_log.h"

#include "base/array.h"
#include "runtime/context/agent.h"
#include "runtime/record/records.h"
#include "runtime/record/report_json.h"
#include "runtime/tensor/memory.h"

#include <stdlib.h>

static struct timeline_log *open_log(const struct records *records)
{
    return records->timeline_logs.open;
}

/* Without it the iteration has no timeline in the report file. */
static void give_up(struct records *records, struct timeline_log *log, const char *why)
{
    if (log == records->timeline_logs.open) {
        records->timeline_logs.open = NULL;
    }
    string_buffer_finish(&log->text);
    log->stage = TIMELINE_FREE;
    agent_fail(records->agent, why);
}

static void give_up_short(struct records *records, struct timeline_log *log)
{
    give_up(records, log, "no memory for the timeline of an iteration");
}

void timeline_logs_finish(struct records *records)
{
    for (size_t i = 0; i < TIMELINE_LOG_COUNT; i++) {
        struct timeline_log *log = &records->timeline_logs.logs[i];

        device_event_destroy(records->lanes->device, log->begin);
        for (size_t k = 0; k < log->made_count; k++) {
            device_event_destroy(records->lanes->device, log->marks[k]);
        }
        free(log->marks);
        free(log->events);
        free(log->tensors);
        string_buffer_finish(&log->text);
        *log = (struct timeline_log){0};
    }
    records->timeline_logs.open = NULL;
}

/* Its copies have completed. False too if the device has failed. */
static bool has_passed(struct records *records, const struct timeline_log *log)
{
    return (log->last_out == SIZE_MAX ||
            device_event_query(records->lanes->device, log->marks[log->last_out]) == CAPU_OK) &&
           (log->last_in == SIZE_MAX ||
            device_event_query(records->lanes->device, log->marks[log->last_in]) == CAPU_OK);
}

static capu_status wait_for_copies(struct records *records, const struct timeline_log *log)
{
    capu_status status = log->last_out == SIZE_MAX
                             ? CAPU_OK
                             : device_event_wait(records->lanes->device, log->marks[log->last_out]);

    return status != CAPU_OK || log->last_in == SIZE_MAX
               ? status
               : device_event_wait(records->lanes->device, log->marks[log->last_in]);
}

/* When an event was reached, from the beginning of the iteration; it may have been before. */
static capu_status read_time(struct records *records, const struct timeline_log *log, size_t mark,
                             int64_t *ns)
{
    uint64_t after = 0;
    uint64_t before = 0;
    capu_status status =
        device_event_elapsed(records->lanes->device, log->begin, log->marks[mark], &after);

    if (status == CAPU_OK && after == 0) {
        status =
            device_event_elapsed(records->lanes->device, log->marks[mark], log->begin, &before);
    }
    *ns = (int64_t)after - (int64_t)before;
    return status;
}

/* The log of the iteration after this one; NULL: there is none yet. */
static struct timeline_log *log_after(struct records *records, const struct timeline_log *log)
{
    for (size_t i = 0; i < TIMELINE_LOG_COUNT; i++) {
        struct timeline_log *other = &records->timeline_logs.logs[i];

        if (other->stage != TIMELINE_FREE && other->stamp == log->stamp + 1) {
            return other;
        }
    }
    return NULL;
}

static void carry_copy(struct timeline_log *next, const void *address, bool is_out, uint64_t ns)
{
    for (size_t i = 0; i < next->tensor_count; i++) {
        struct timeline_tensor *tensor = &next->tensors[i];
        uint64_t *end = !tensor->is_on_device ? &tensor->free_ns
                        : is_out              ? &tensor->saved_ns
                                              : &tensor->ready_ns;

        if (tensor->address == address) {
            *end = ns > *end ? ns : *end;
            return;
        }
    }
}

/* Copies that were still under way when the next iteration began say in its log when they ended.
   If that has not begun on the device, none was. */
static capu_status carry_copies(struct records *records, const struct timeline_log *log)
{
    struct timeline_log *next = log_after(records, log);
    uint64_t gap = 0;
    capu_status status;

    if (next == NULL || device_event_query(records->lanes->device, next->begin) != CAPU_OK) {
        return CAPU_OK;
    }
    status = device_event_elapsed(records->lanes->device, log->begin, next->begin, &gap);
    for (size_t i = 0; i < log->event_count && status == CAPU_OK; i++) {
        const struct timeline_event *event = &log->events[i];

        if ((event->kind == TIMELINE_OUT || event->kind == TIMELINE_IN) &&
            event->end_ns > (int64_t)gap) {
            carry_copy(next, log->tensors[event->subject].address, event->kind == TIMELINE_OUT,
                       (uint64_t)event->end_ns - gap);
        }
    }
    return status;
}

/* Pre: its copies have completed. */
static void publish(struct records *records, struct timeline_log *log)
{
    capu_status status = CAPU_OK;
    char *line;

    for (size_t i = 0; i < log->event_count && status == CAPU_OK; i++) {
        struct timeline_event *event = &log->events[i];

        if (event->kind == TIMELINE_OUT || event->kind == TIMELINE_IN) {
            status = read_time(records, log, event->detail, &event->begin_ns);
            if (status == CAPU_OK) {
                status = read_time(records, log, event->detail + 1, &event->end_ns);
            }
        }
    }
    if (status == CAPU_OK) {
        status = carry_copies(records, log);
    }
    if (status != CAPU_OK) {
        give_up(records, log, "the times of an iteration cannot be read for its timeline");
        return;
    }
    line = timeline_json_end(log);
    log->stage = TIMELINE_FREE;
    if (line == NULL || agent_report(records->agent, line) != CAPU_OK) {
        agent_fail(records->agent, "no memory for a timeline line of the report file");
    }
}

/* The oldest log that only waits for its copies; NULL: there is none. */
static struct timeline_log *oldest_read(struct records *records)
{
    struct timeline_log *oldest = NULL;

    for (size_t i = 0; i < TIMELINE_LOG_COUNT; i++) {
        struct timeline_log *log = &records->timeline_logs.logs[i];

        if (log->stage == TIMELINE_READ && (oldest == NULL || log->stamp < oldest->stamp)) {
            oldest = log;
        }
    }
    return oldest;
}

/* In order, since each log may add to the next one. */
void timeline_logs_settle(struct records *records)
{
    struct timeline_log *next = oldest_read(records);

    while (next != NULL && has_passed(records, next)) {
        publish(records, next);
        next = oldest_read(records);
    }
}

/* A log that is free. If none is, waits for the copies of the oldest one. NULL: the device failed.
 */
static struct timeline_log *free_log(struct records *records)
{
    struct timeline_log *oldest = oldest_read(records);

    for (size_t i = 0; i < TIMELINE_LOG_COUNT; i++) {
        if (records->timeline_logs.logs[i].stage == TIMELINE_FREE) {
            return &records->timeline_logs.logs[i];
        }
    }
    if (oldest == NULL || wait_for_copies(records, oldest) != CAPU_OK) {
        return NULL;
    }
    publish(records, oldest);
    return oldest;
}

/* The tensor's entry in the log; NULL: there is no memory, and the log is given up. `is_start`: the
   iteration begins. */
static struct timeline_tensor *entry_of(struct records *records, struct tensor *tensor,
                                        bool is_start)
{
    struct timeline_log *log = open_log(records);
    struct timeline_tensor *entry;
    bool is_here = tensor_is_mapped(tensor) && tensor->state.pages != PAGES_LEAVING;

    if (tensor->in_timeline.stamp == log->stamp) {
        return &log->tensors[tensor->in_timeline.index];
    }
    if (log->tensor_count == UINT32_MAX ||
        !array_reserve(&log->tensors, &log->tensor_capacity, log->tensor_count + 1,
                       sizeof(*log->tensors))) {
        give_up_short(records, log);
        return NULL;
    }
    tensor->in_timeline.stamp = log->stamp;
    tensor->in_timeline.index = log->tensor_count;
    entry = &log->tensors[log->tensor_count++];
    *entry = (struct timeline_tensor){
        .name = lookup_name(records->memory, tensor),
        .address = tensor->address,
        .bytes = tensor_is_managed(tensor) ? tensor->span_bytes : tensor->bytes,
        .held_bytes = tensor->page_count * pages_bytes_each(records->memory->pages),
        .kind = tensor->kind,
        .is_persistent = tensor->is_persistent || !tensor_is_managed(tensor),
        .is_on_device = is_start && is_here,
        .is_on_host = is_start && !is_here && tensor_on_host(tensor),
        .record_index = SIZE_MAX,
    };
    return entry;
}

static void add_event(struct records *records, enum timeline_event_kind kind, size_t subject,
                      uint32_t detail)
{
    struct timeline_log *log = open_log(records);

    if (!array_reserve(&log->events, &log->event_capacity, log->event_count + 1,
                       sizeof(*log->events))) {
        give_up_short(records, log);
        return;
    }
    log->events[log->event_count++] =
        (struct timeline_event){.kind = kind,
                                .subject = (uint32_t)subject,
                                .before = (uint32_t)records->tracker.open->op_count,
                                .detail = detail};
}

static void add_tensor_event(struct records *records, struct tensor *tensor,
                             enum timeline_event_kind kind, uint32_t detail)
{
    if (open_log(records) != NULL && entry_of(records, tensor, false) != NULL) {
        add_event(records, kind, tensor->in_timeline.index, detail);
    }
}

static void note_start(struct tensor *tensor, void *data)
{
    struct records *records = data;

    if (open_log(records) != NULL && tensor_is_managed(tensor)) {
        (void)entry_of(records, tensor, true);
    }
}

void timeline_log_open(struct records *records)
{
    const struct record *record = records->tracker.open;
    struct timeline_log *log;
    capu_status status = CAPU_OK;

    if (records->settings->config.timeline == 0 || records->settings->config.report_path == NULL ||
        !record->is_timed) {
        return;
    }
    log = free_log(records);
    if (log == NULL) {
        return; /* the next call reports the device's failure */
    }
    log->stage = TIMELINE_OPEN;
    log->stamp = record->stamp;
    log->mark_count = 0;
    log->last_out = SIZE_MAX;
    log->last_in = SIZE_MAX;
    log->event_count = 0;
    log->tensor_count = 0;
    records->timeline_logs.open = log;
    if (log->begin == NULL) {
        status = device_event_create(records->lanes->device, true, &log->begin);
    }
    if (status == CAPU_OK) {
        status =
            device_event_record(records->lanes->device, log->begin, records->lanes->compute.stream);
    }
    if (status != CAPU_OK) {
        give_up(records, log, "the beginning of an iteration cannot be timed for its timeline");
        return;
    }
    tensors_each(&records->memory->tensors, note_start, records);
}

void timeline_log_close(struct records *records)
{
    if (open_log(records) != NULL) {
        open_log(records)->stage = TIMELINE_ENDED;
        records->timeline_logs.open = NULL;
    }
}

void timeline_log_take(struct records *records, struct tensor *tensor)
{
    add_tensor_event(records, tensor, TIMELINE_TAKE, 0);
}

void timeline_log_give(struct records *records, struct tensor *tensor, uint32_t method)
{
    add_tensor_event(records, tensor, TIMELINE_GIVE, method);
}

void timeline_log_end(struct records *records, struct tensor *tensor)
{
    if (tensor_is_managed(tensor)) {
        add_tensor_event(records, tensor, TIMELINE_END, 0);
    }
}

/* Records the log's next mark. False: the log is given up. */
static bool mark(struct records *records, struct timeline_log *log, bool is_out)
{
    const struct lane *lane = is_out ? &records->lanes->d2h : &records->lanes->h2d;
    capu_status status = CAPU_OK;

    if (!array_reserve(&log->marks, &log->mark_capacity, log->mark_count + 1,
                       sizeof(*log->marks))) {
        give_up_short(records, log);
        return false;
    }
    if (log->mark_count == log->made_count) {
        status = device_event_create(records->lanes->device, true, &log->marks[log->made_count]);
        log->made_count += status == CAPU_OK;
    }
    if (status == CAPU_OK) {
        status =
            device_event_record(records->lanes->device, log->marks[log->mark_count], lane->stream);
    }
    if (status != CAPU_OK) {
        give_up(records, log, "a copy cannot be timed for the timeline of an iteration");
        return false;
    }
    log->mark_count++;
    return true;
}

void timeline_log_copy_begin(struct records *records, struct tensor *tensor, bool is_out)
{
    struct timeline_log *log = open_log(records);

    if (log != NULL && entry_of(records, tensor, false) != NULL && mark(records, log, is_out)) {
        add_event(records, is_out ? TIMELINE_OUT : TIMELINE_IN, tensor->in_timeline.index,
                  (uint32_t)log->mark_count - 1);
    }
}

void timeline_log_copy_end(struct records *records, bool is_out)
{
    struct timeline_log *log = open_log(records);

    if (log != NULL && mark(records, log, is_out)) {
        *(is_out ? &log->last_out : &log->last_in) = log->mark_count - 1;
    }
}

void timeline_log_replay(struct records *records, uint32_t number)
{
    if (open_log(records) != NULL) {
        add_event(records, TIMELINE_REPLAY, number,
                  (uint32_t)records->tracker.open->replay_count - 1);
    }
}

void timeline_log_meet(struct records *records, struct tensor *tensor, size_t record_index)
{
    struct timeline_log *log = open_log(records);
    bool is_new;

    if (log == NULL) {
        return;
    }
    is_new = tensor->in_timeline.stamp != log->stamp;
    if (entry_of(records, tensor, false) == NULL) {
        return;
    }
    log->tensors[tensor->in_timeline.index].record_index = record_index;
    /* A piece of a tensor that was split has its pages from there. */
    if (is_new && tensor_is_managed(tensor) && tensor_is_mapped(tensor)) {
        add_event(records, TIMELINE_TAKE, tensor->in_timeline.index, 0);
    }
}

/* Replays get the numbers that their ops have in the record, and their times. NO_HOST_MEMORY;
   INVALID (the guide has an op that the record does not have); errors of reading times. */
static capu_status read_replays(struct records *records, struct timeline_log *log,
                                const struct record *record)
{
    uint32_t *numbers = malloc((record->op_count + 1) * sizeof(*numbers));
    size_t count = 0;
    capu_status status = numbers != NULL ? CAPU_OK : CAPU_NO_HOST_MEMORY;

    for (size_t i = record_planned(record, 0); i < record->op_count && status == CAPU_OK;
         i = record_planned(record, i + 1)) {
        numbers[count++] = (uint32_t)i;
    }
    for (size_t i = 0; i < log->event_count && status == CAPU_OK; i++) {
        struct timeline_event *event = &log->events[i];
        const struct record_replay *replay;
        struct lane_position start;
        struct lane_position end;
        uint64_t begin_ns = 0;
        uint64_t ns = 0;

        if (event->kind != TIMELINE_REPLAY) {
            continue;
        }
        replay = &record->replays[event->detail];
        start = (struct lane_position){&records->lanes->compute, replay->start};
        end = (struct lane_position){&records->lanes->compute, replay->end};
        if (event->subject >= count) {
            status = CAPU_INVALID;
            break;
        }
        status = lane_elapsed_ns(record->begin, start, &begin_ns);
        status = status == CAPU_OK ? lane_elapsed_ns(start, end, &ns) : status;
        event->subject = numbers[event->subject];
        event->begin_ns = (int64_t)begin_ns;
        event->end_ns = (int64_t)(begin_ns + ns);
        event->wait_ns = replay->wait_ns;
    }
    free(numbers);
    return status;
}

/* What the iteration has carried in or out lasts, however it was described. */
static void note_persistent(struct timeline_log *log, const struct record *record)
{
    for (size_t i = 0; i < log->tensor_count; i++) {
        struct timeline_tensor *tensor = &log->tensors[i];

        tensor->is_persistent =
            tensor->is_persistent || (tensor->record_index != SIZE_MAX &&
                                      record->tensors[tensor->record_index].is_persistent);
    }
}

void timeline_log_read(struct records *records, const struct record *record)
{
    for (size_t i = 0; i < TIMELINE_LOG_COUNT; i++) {
        struct timeline_log *log = &records->timeline_logs.logs[i];
        capu_status status;

        if (log->stage != TIMELINE_ENDED || log->stamp != record->stamp) {
            continue;
        }
        note_persistent(log, record);
        status = read_replays(records, log, record);
        status = status == CAPU_OK ? timeline_json_begin(records, log, record) : status;
        if (status == CAPU_OK) {
            log->stage = TIMELINE_READ;
        } else if (status == CAPU_NO_HOST_MEMORY) {
            give_up_short(records, log);
        } else {
            give_up(records, log, "the times of an iteration cannot be read for its timeline");
        }
    }
}

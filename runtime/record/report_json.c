/*
 * The lines of a report file, see report_json.h. A report: the counters of the struct under the
 * same names, then evictions and stalls. A timeline log.
 */
#include "runtime/record/report_json.h"

#include "policy/format/string_buffer.h"
#include "policy/format/trace.h"
#include "policy/model/hints.h"
#include "runtime/record/records.h"
#include "runtime/record/tracker.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>

const char *report_method_name(uint32_t method)
{
    switch (method) {
    case CAPU_METHOD_SWAP:
        return "swap";
    case CAPU_METHOD_RECOMPUTE:
        return "recompute";
    case CAPU_METHOD_CLEAN:
        return "clean";
    default:
        return "empty";
    }
}

/* An access number, or null if there is none. */
static json_t *access_number(uint64_t access)
{
    return access == UINT64_MAX ? json_null() : json_integer((json_int_t)access);
}

/* A number, or null if it was not timed. */
static json_t *number(uint64_t value)
{
    return value == CAPU_NOT_TIMED ? json_null() : json_integer((json_int_t)value);
}

static json_t *eviction_json(const capu_eviction *eviction)
{
    bool is_timed = eviction->wait_ns != CAPU_NOT_TIMED;

    return json_pack("{s:s, s:I, s:s, s:o, s:s, s:o, s:s, s:o, s:o, s:o}", "tensor",
                     eviction->tensor, "bytes", (json_int_t)eviction->bytes, "method",
                     report_method_name(eviction->method), "evicted_access",
                     access_number(eviction->evicted_access), "evicted_op", eviction->evicted_op,
                     "back_access", access_number(eviction->back_access), "back_op",
                     eviction->back_op, "in_trigger", access_number(eviction->in_trigger),
                     "wait_ns", number(eviction->wait_ns), "hidden",
                     is_timed ? json_boolean(eviction->is_hidden) : json_null());
}

/* Adds to an eviction which hint it ignores, and why. */
static int add_hint(json_t *object, const struct record_eviction *eviction)
{
    capu_hint hint = (capu_hint)eviction->ignored_hint;
    char why[256];

    hint_reason_text(hint, (enum hint_obstacle)eviction->obstacle, eviction->obstacle_op, why,
                     sizeof(why));
    return json_object_set_new(object, "ignored_hint", json_string(tensor_hint_name(hint))) ||
           json_object_set_new(object, "ignored_because", json_string(why));
}

static json_t *stall_json(const capu_stall *stall)
{
    return json_pack("{s:o, s:s, s:I, s:s}", "access", access_number(stall->access), "op",
                     stall->op, "wait_ns", (json_int_t)stall->wait_ns, "replay", stall->replay);
}

const char *report_mode_name(uint32_t mode)
{
    return mode == CAPU_MODE_OFF ? "off" : mode == CAPU_MODE_PASSIVE ? "passive" : "guided";
}

json_t *report_json_counters(const struct report *report)
{
    json_t *object =
        json_pack("{s:s, s:i, s:s, s:s}", "type", "report", "version", CAPU_REPORT_VERSION, "mode",
                  report_mode_name(report->mode), "label", report->label);
    int failed = object == NULL;

#define SET_COUNTER(name, unit, text) \
    failed = failed || json_object_set_new(object, #name, number(report->name));
    REPORT_COUNTERS(SET_COUNTER)
#undef SET_COUNTER
    failed = failed || json_object_set_new(object, "floor_op", json_string(report->floor_op));
    failed = failed ||
             json_object_set_new(object, "plan_error",
                                 json_string(report->plan_error != NULL ? report->plan_error : ""));
    if (failed) {
        json_decref(object);
        return NULL;
    }
    return object;
}

char *report_json(const struct report *report, const struct record *record)
{
    /* A graph repeats the evictions of its capture. */
    const struct record_eviction *from =
        record != NULL && record->eviction_count == report->eviction_count ? record->evictions
                                                                           : NULL;
    json_t *object = report_json_counters(report);
    json_t *evictions = json_array();
    json_t *stalls = json_array();
    struct string_buffer line = {0};
    int failed = object == NULL || evictions == NULL || stalls == NULL;

    failed = failed || (record != NULL && record->program_floor_op != NULL &&
                        json_object_set_new(object, "program_floor_op",
                                            json_string(record->program_floor_op)));
    for (size_t i = 0; i < report->eviction_count && !failed; i++) {
        json_t *eviction = eviction_json(&report->evictions[i]);

        failed = eviction == NULL ||
                 (from != NULL && from[i].ignored_hint != 0 && add_hint(eviction, &from[i])) ||
                 json_array_append(evictions, eviction);
        json_decref(eviction);
    }
    for (size_t i = 0; i < report->stall_count && !failed; i++) {
        failed = json_array_append_new(stalls, stall_json(&report->stalls[i]));
    }
    failed = failed || json_object_set(object, "evictions", evictions) ||
             json_object_set(object, "stalls", stalls);
    if (!failed &&
        string_buffer_append_json(&line, object, JSON_COMPACT | JSON_ENSURE_ASCII) != CAPU_OK) {
        string_buffer_finish(&line);
    }
    json_decref(stalls);
    json_decref(evictions);
    json_decref(object);
    return line.data;
}

/* Timeline lines are written piece by piece: one has many numbers. */

/* A line in the making; after a failure nothing more is added. */
struct line {
    struct string_buffer *text;
    capu_status status;
};

#define PUT(line_, ...)                                                         \
    do {                                                                        \
        if ((line_)->status == CAPU_OK) {                                       \
            (line_)->status = string_buffer_format((line_)->text, __VA_ARGS__); \
        }                                                                       \
    } while (0)

static void put_text(struct line *line, const char *text)
{
    json_t *value = json_string(text);

    if (line->status == CAPU_OK) {
        line->status =
            value != NULL
                ? string_buffer_append_json(line->text, value, JSON_ENCODE_ANY | JSON_ENSURE_ASCII)
                : CAPU_NO_HOST_MEMORY;
    }
    json_decref(value);
}

static const char *kind_name(uint32_t kind, bool is_persistent)
{
    bool is_state = kind == CAPU_PARAMETER || kind == CAPU_OPTIMIZER;

    return tensor_kind_name(is_state && !is_persistent ? CAPU_ACTIVATION : (capu_kind)kind);
}

static void put_head(struct line *line, struct records *records, const struct record *record)
{
    const struct report *report = &record->report;
    const struct device_link *from = &records->lanes->device->capabilities.link;
    bool is_known = from->d2h_bytes_per_s != 0 && from->h2d_bytes_per_s != 0;
    const struct device_link *link = is_known ? from : &records->lanes->link;

    PUT(line,
        "{\"type\":\"timeline\",\"version\":1,\"iteration\":%" PRIu64 ",\"label\":", record->stamp);
    put_text(line, record->label);
    PUT(line,
        ",\"mode\":\"%s\",\"time_ns\":%" PRIu64 ",\"budget_bytes\":%" PRIu64
        ",\"peak_bytes\":%" PRIu64 ",\"fixed_bytes\":%" PRIu64 ",\"page_bytes\":%" PRIu64
        ",\"d2h_bytes_per_s\":%" PRIu64 ",\"h2d_bytes_per_s\":%" PRIu64
        ",\"copy_latency_ns\":%" PRIu64,
        report_mode_name(report->mode), report->time_ns, report->budget_bytes, report->peak_bytes,
        record->fixed_pages * record->page_bytes, record->page_bytes, link->d2h_bytes_per_s,
        link->h2d_bytes_per_s, link->copy_latency_ns);
}

/* The op's tensors that it accesses in one of these ways. */
static void put_accesses(struct line *line, const char *key, const struct record *record,
                         const uint32_t *numbers, size_t op, unsigned roles)
{
    bool is_first = true;

    PUT(line, ",\"%s\":[", key);
    for (size_t i = 0; i < record_access_count(record, op); i++) {
        record_access access = record->accesses[record->ops[op].first_access + i];

        if ((roles >> record_access_role(access) & 1) != 0) {
            PUT(line, "%s%" PRIu32, is_first ? "" : ",", numbers[record_access_tensor(access)]);
            is_first = false;
        }
    }
    PUT(line, "]");
}

static void put_op(struct line *line, const struct record *record, const uint32_t *numbers,
                   size_t number)
{
    const struct record_op *op = &record->ops[number];
    const char *segment = record->sites[op->site].segment;
    uint64_t begin = 0;
    uint64_t ns = op->ns;
    capu_status status = lane_elapsed_ns(record->begin, record_position(record, op->start), &begin);

    if (status == CAPU_OK && record->report.waited_ns > 0) {
        status = lane_elapsed_ns(record_position(record, op->start),
                                 record_position(record, op->end), &ns);
    }

    line->status = line->status == CAPU_OK ? status : line->status;
    PUT(line, "%s{\"name\":", number > 0 ? "," : "");
    put_text(line, op->name);
    if (segment != NULL) {
        PUT(line, ",\"segment\":");
        put_text(line, segment);
    }
    PUT(line, ",\"begin_ns\":%" PRIu64 ",\"end_ns\":%" PRIu64 ",\"wait_ns\":%" PRIu64, begin,
        begin + ns, record_wait_ns(record, number));
    if (ns > op->ns) {
        PUT(line, ",\"waited_ns\":%" PRIu64, ns - op->ns);
    }
    put_accesses(line, "reads", record, numbers, number, 1u << CAPU_READ);
    put_accesses(line, "writes", record, numbers, number, 1u << CAPU_WRITE | 1u << CAPU_SCRATCH);
    put_accesses(line, "updates", record, numbers, number, 1u << CAPU_UPDATE);
    PUT(line, "}");
}

static void put_ops(struct line *line, const struct timeline_log *log, const struct record *record)
{
    uint32_t *numbers = calloc(record->tensor_count + 1, sizeof(*numbers));

    if (numbers == NULL) {
        line->status = CAPU_NO_HOST_MEMORY;
        return;
    }
    for (size_t i = 0; i < log->tensor_count; i++) {
        if (log->tensors[i].record_index != SIZE_MAX) {
            numbers[log->tensors[i].record_index] = (uint32_t)i;
        }
    }
    PUT(line, ",\"ops\":[");
    for (size_t i = 0; i < record->op_count && line->status == CAPU_OK; i++) {
        put_op(line, record, numbers, i);
    }
    PUT(line, "]");
    free(numbers);
}

capu_status timeline_json_begin(struct records *records, struct timeline_log *log,
                                const struct record *record)
{
    struct line line = {.text = &log->text};

    put_head(&line, records, record);
    put_ops(&line, log, record);
    return line.status;
}

static void put_event(struct line *line, const struct timeline_event *event)
{
    static const char *const kinds[] = {
        [TIMELINE_TAKE] = "take", [TIMELINE_GIVE] = "evict", [TIMELINE_END] = "end",
        [TIMELINE_OUT] = "out",   [TIMELINE_IN] = "in",      [TIMELINE_REPLAY] = "replay",
    };
    bool is_replay = event->kind == TIMELINE_REPLAY;

    PUT(line, "{\"kind\":\"%s\",\"%s\":%" PRIu32 ",\"before\":%" PRIu32, kinds[event->kind],
        is_replay ? "op" : "tensor", event->subject, event->before);
    if (event->kind >= TIMELINE_OUT) {
        PUT(line, ",\"begin_ns\":%" PRId64 ",\"end_ns\":%" PRId64, event->begin_ns, event->end_ns);
    }
    if (is_replay) {
        PUT(line, ",\"wait_ns\":%" PRIu64, event->wait_ns);
    }
    if (event->kind == TIMELINE_GIVE) {
        PUT(line, ",\"method\":\"%s\"", report_method_name(event->detail));
    }
    PUT(line, "}");
}

/* When a copy ended that was under way; nothing if there was none. */
static void put_end(struct line *line, const char *key, uint64_t ns)
{
    if (ns > 0) {
        PUT(line, ",\"%s\":%" PRIu64, key, ns);
    }
}

static void put_tensors(struct line *line, const struct timeline_log *log)
{
    PUT(line, ",\"tensors\":[");
    for (size_t i = 0; i < log->tensor_count; i++) {
        const struct timeline_tensor *tensor = &log->tensors[i];

        PUT(line, "%s{\"name\":", i > 0 ? "," : "");
        put_text(line, tensor->name);
        PUT(line,
            ",\"bytes\":%" PRIu64 ",\"held_bytes\":%" PRIu64
            ",\"kind\":\"%s\",\"persistent\":%s,\"start\":\"%s\"",
            tensor->bytes, tensor->held_bytes, kind_name(tensor->kind, tensor->is_persistent),
            tensor->is_persistent ? "true" : "false",
            tensor->is_on_device ? "device"
            : tensor->is_on_host ? "host"
                                 : "none");
        put_end(line, "ready_ns", tensor->ready_ns);
        put_end(line, "saved_ns", tensor->saved_ns);
        put_end(line, "free_ns", tensor->free_ns);
        PUT(line, "}");
    }
    PUT(line, "]");
}

char *timeline_json_end(struct timeline_log *log)
{
    struct line line = {.text = &log->text};
    char *text;

    put_tensors(&line, log);
    PUT(&line, ",\"events\":[");
    for (size_t i = 0; i < log->event_count; i++) {
        PUT(&line, "%s", i > 0 ? "," : "");
        put_event(&line, &log->events[i]);
    }
    PUT(&line, "]}");
    if (line.status != CAPU_OK) {
        string_buffer_finish(&log->text);
    }
    text = log->text.data;
    log->text = (struct string_buffer){0};
    return text;
}

/* A report as one line of JSON: the counters of the struct under the same names, then evictions
   and stalls. */
#include "policy/format/string_buffer.h"
#include "policy/model/hints.h"
#include "runtime/record/tracker.h"

#include <jansson.h>

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

json_t *report_json_counters(const capu_report *report)
{
    json_t *object =
        json_pack("{s:s, s:i, s:s, s:s}", "type", "report", "version", (int)report->version, "mode",
                  report_mode_name(report->mode), "label", report->label);
    int failed = object == NULL;

#define SET_COUNTER(name, unit, text) \
    failed = failed || json_object_set_new(object, #name, number(report->name));
    CAPU_REPORT_COUNTERS(SET_COUNTER)
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

char *report_json(const capu_report *report, const struct record *record)
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

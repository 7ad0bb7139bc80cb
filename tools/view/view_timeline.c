/*
 * The view of a measured iteration: the timeline line of a report becomes a trace and events. Every
 * field is checked, since the file may come from anywhere.
 */
#include "tools/view/view_events.h"

#include "base/array.h"
#include "policy/format/json_lines.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define VERSION 1
#define NS_MAX ((int64_t)1 << 60)

struct reader {
    struct json_lines lines;
    struct trace trace;
    struct trace_index trace_index;
    struct view_events events;
    struct view_event *runs; /* the ops */
    uint32_t run_count;
    uint64_t iteration;
    uint64_t time_ns;
    uint64_t budget_bytes;
    uint64_t peak_bytes;
    uint64_t page_bytes;
    struct machine link;
    const char *mode;
};

static capu_status reject_entry(struct reader *reader, const char *list, size_t index,
                                const char *what)
{
    char text[160];

    snprintf(text, sizeof(text), "%s %zu: %s", list, index, what);
    return json_lines_refuse(&reader->lines, text);
}

/* A time, which may be before the iteration. */
static bool read_time(const json_t *object, const char *key, int64_t *ns)
{
    const json_t *value = json_object_get(object, key);

    *ns = (int64_t)json_integer_value(value);
    return json_is_integer(value) && *ns > -NS_MAX && *ns < NS_MAX;
}

static capu_status read_span(struct reader *reader, const char *list, size_t index,
                             const json_t *object, struct view_event *event)
{
    if (!read_time(object, "begin_ns", &event->begin_ns) ||
        !read_time(object, "end_ns", &event->end_ns) || event->end_ns < event->begin_ns) {
        return reject_entry(reader, list, index, "begin_ns and end_ns are not times in order");
    }
    return CAPU_OK;
}

static capu_status read_wait(struct reader *reader, const json_t *object, struct view_event *event)
{
    capu_status status = json_lines_number(&reader->lines, object, "wait_ns", true,
                                           (uint64_t)NS_MAX, &event->wait_ns);

    event->wait = event->wait_ns > 0 ? VIEW_WAIT_UNKNOWN : VIEW_WAIT_NOTHING;
    return status;
}

static capu_status read_head(struct reader *reader)
{
    struct json_lines *lines = &reader->lines;
    const char *label = "";
    uint64_t version = 0;
    const struct {
        const char *key;
        uint64_t limit;
        uint64_t *value;
    } numbers[] = {
        {"iteration", INT64_MAX, &reader->iteration},
        {"time_ns", (uint64_t)NS_MAX, &reader->time_ns},
        {"budget_bytes", INT64_MAX, &reader->budget_bytes},
        {"peak_bytes", INT64_MAX, &reader->peak_bytes},
        {"fixed_bytes", TRACE_BYTES_MAX, &reader->events.fixed_bytes},
        {"page_bytes", TRACE_INDEX_PAGE_MAX, &reader->page_bytes},
        {"d2h_bytes_per_s", TRACE_RATE_MAX, &reader->link.d2h_bytes_per_s},
        {"h2d_bytes_per_s", TRACE_RATE_MAX, &reader->link.h2d_bytes_per_s},
        {"copy_latency_ns", (uint64_t)NS_MAX, &reader->link.copy_latency_ns},
    };
    capu_status status = json_lines_number(lines, lines->value, "version", true, 1000, &version);

    if (status == CAPU_OK && version != VERSION) {
        return json_lines_refuse(lines, "a timeline of a version that this command does not read");
    }
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]) && status == CAPU_OK; i++) {
        status = json_lines_number(lines, lines->value, numbers[i].key, true, numbers[i].limit,
                                   numbers[i].value);
    }
    status =
        status == CAPU_OK ? json_lines_string(lines, lines->value, "label", true, &label) : status;
    status = status == CAPU_OK ? json_lines_string(lines, lines->value, "mode", true, &reader->mode)
                               : status;
    if (status != CAPU_OK) {
        return status;
    }
    reader->mode = strcmp(reader->mode, "guided") == 0    ? "guided"
                   : strcmp(reader->mode, "passive") == 0 ? "passive"
                                                          : "off";
    reader->events.time_ns = reader->time_ns;
    status = trace_init(&reader->trace, label, lines->error);
    return status == CAPU_OK ? CAPU_OK : json_lines_refuse_built(lines, status);
}

static const json_t *list_of(const struct reader *reader, const char *key)
{
    const json_t *list = json_object_get(reader->lines.value, key);

    return json_is_array(list) && json_array_size(list) < TRACE_OPERANDS_MAX ? list : NULL;
}

static capu_status read_kind(struct reader *reader, const json_t *object, capu_kind *kind)
{
    const char *name = "";
    capu_status status = json_lines_string(&reader->lines, object, "kind", true, &name);

    for (int i = 0; status == CAPU_OK && i < TRACE_KINDS; i++) {
        if (strcmp(name, tensor_kind_name((capu_kind)i)) == 0) {
            *kind = (capu_kind)i;
            return CAPU_OK;
        }
    }
    return status != CAPU_OK ? status : json_lines_refuse(&reader->lines, "no kind of tensor");
}

static capu_status read_start(struct reader *reader, const json_t *object, struct view_start *start)
{
    const char *name = "";
    capu_status status = json_lines_string(&reader->lines, object, "start", true, &name);

    const struct {
        const char *key;
        int64_t *ns;
    } ends[] = {{"ready_ns", &start->ready_ns},
                {"saved_ns", &start->saved_ns},
                {"free_ns", &start->free_ns}};

    start->is_on_device = strcmp(name, "device") == 0;
    start->is_on_host = strcmp(name, "host") == 0;
    if (status == CAPU_OK && !start->is_on_device && !start->is_on_host &&
        strcmp(name, "none") != 0) {
        return json_lines_refuse(&reader->lines, "start is not device, host or none");
    }
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]) && status == CAPU_OK; i++) {
        uint64_t ns = 0;

        status =
            json_lines_number(&reader->lines, object, ends[i].key, false, (uint64_t)NS_MAX, &ns);
        *ends[i].ns = (int64_t)ns;
    }
    return status;
}

static capu_status read_tensor(struct reader *reader, size_t index, const json_t *object)
{
    struct json_lines *lines = &reader->lines;
    struct tensor_description tensor = {.name = ""};
    uint64_t held = 0;
    capu_status status = json_lines_string(lines, object, "name", true, &tensor.name);

    if (status == CAPU_OK) {
        status = json_lines_number(lines, object, "bytes", true, TRACE_BYTES_MAX, &tensor.bytes);
    }
    if (status == CAPU_OK) {
        status = json_lines_number(lines, object, "held_bytes", true, TRACE_BYTES_MAX, &held);
    }
    if (status == CAPU_OK) {
        status = json_lines_boolean(lines, object, "persistent", &tensor.persistent);
    }
    if (status == CAPU_OK) {
        status = read_kind(reader, object, &tensor.kind);
    }
    if (status == CAPU_OK) {
        status = read_start(reader, object, &reader->events.starts[index]);
    }
    if (status != CAPU_OK) {
        return status;
    }
    tensor.unmanaged = held == 0;
    tensor.persistent = tensor.persistent || tensor.unmanaged;
    reader->events.held_bytes[index] = held;
    status = trace_add_tensor(&reader->trace, &tensor, NULL, lines->error);
    return status == CAPU_OK ? CAPU_OK : json_lines_refuse_built(lines, status);
}

static capu_status read_tensors(struct reader *reader)
{
    const json_t *list = list_of(reader, "tensors");
    size_t count = json_array_size(list);
    capu_status status = CAPU_OK;

    if (list == NULL) {
        return json_lines_refuse(&reader->lines, "no list of tensors");
    }
    reader->events.starts = calloc(count + 1, sizeof(*reader->events.starts));
    reader->events.held_bytes = calloc(count + 1, sizeof(*reader->events.held_bytes));
    if (reader->events.starts == NULL || reader->events.held_bytes == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    for (size_t i = 0; i < count && status == CAPU_OK; i++) {
        status = read_tensor(reader, i, json_array_get(list, i));
    }
    return status;
}

static capu_status read_op(struct reader *reader, size_t index, const json_t *object,
                           struct json_lines_ids ids[3])
{
    static const char *const keys[3] = {"reads", "writes", "updates"};
    struct json_lines *lines = &reader->lines;
    struct op_description op = {.name = ""};
    struct view_event *event = &reader->runs[reader->run_count++];
    capu_status status = json_lines_string(lines, object, "name", true, &op.name);

    *event =
        (struct view_event){.kind = EVENT_OP, .subject = (uint32_t)index, .point = (uint32_t)index};
    if (status == CAPU_OK) {
        status = json_lines_string(lines, object, "segment", false, &op.segment);
    }
    if (status == CAPU_OK) {
        status = read_span(reader, "op", index, object, event);
    }
    if (status == CAPU_OK) {
        status = read_wait(reader, object, event);
    }
    if (status == CAPU_OK) {
        status = json_lines_number(lines, object, "waited_ns", false,
                                   (uint64_t)(event->end_ns - event->begin_ns), &event->waited_ns);
    }
    for (size_t i = 0; i < 3 && status == CAPU_OK; i++) {
        status = json_lines_list(lines, object, keys[i], &ids[i]);
    }
    if (status != CAPU_OK) {
        return status;
    }
    op.ns = (uint64_t)(event->end_ns - event->begin_ns) - event->waited_ns;
    op.reads = ids[0].ids;
    op.read_count = ids[0].count;
    op.writes = ids[1].ids;
    op.write_count = ids[1].count;
    op.updates = ids[2].ids;
    op.update_count = ids[2].count;
    status = trace_add_op(&reader->trace, &op, lines->error);
    return status == CAPU_OK ? CAPU_OK : json_lines_refuse_built(lines, status);
}

static capu_status read_ops(struct reader *reader)
{
    const json_t *list = list_of(reader, "ops");
    struct json_lines_ids ids[3] = {{0}};
    size_t count = json_array_size(list);
    capu_status status = CAPU_OK;

    if (list == NULL) {
        return json_lines_refuse(&reader->lines, "no list of ops");
    }
    reader->runs = malloc((count + 1) * sizeof(*reader->runs));
    if (reader->runs == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    for (size_t i = 0; i < count && status == CAPU_OK; i++) {
        status = read_op(reader, i, json_array_get(list, i), ids);
    }
    for (size_t i = 0; i < 3; i++) {
        free(ids[i].ids);
    }
    return status;
}

static bool read_event_kind(const char *name, enum view_event_kind *kind)
{
    static const struct {
        const char *name;
        enum view_event_kind kind;
    } kinds[] = {{"take", EVENT_TAKE}, {"evict", EVENT_GIVE}, {"end", EVENT_END},
                 {"out", EVENT_OUT},   {"in", EVENT_IN},      {"replay", EVENT_REPLAY}};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(name, kinds[i].name) == 0) {
            *kind = kinds[i].kind;
            return true;
        }
    }
    return false;
}

static capu_status read_method(struct reader *reader, const json_t *object,
                               struct view_event *event)
{
    const char *name = "";
    capu_status status = json_lines_string(&reader->lines, object, "method", true, &name);

    for (event->method = CAPU_METHOD_SWAP; event->method <= CAPU_METHOD_RECOMPUTE;
         event->method++) {
        if (strcmp(name, view_method_name(event->method)) == 0) {
            return status;
        }
    }
    return status != CAPU_OK ? status : json_lines_refuse(&reader->lines, "no method of eviction");
}

static capu_status read_event(struct reader *reader, size_t index, const json_t *object,
                              struct view_event *event)
{
    struct json_lines *lines = &reader->lines;
    const char *name = "";
    uint64_t subject = 0;
    uint64_t before = 0;
    bool is_replay;
    uint64_t count;
    capu_status status = json_lines_string(lines, object, "kind", true, &name);

    *event = (struct view_event){0};
    if (status == CAPU_OK && !read_event_kind(name, &event->kind)) {
        return reject_entry(reader, "event", index, "of no known kind");
    }
    is_replay = event->kind == EVENT_REPLAY;
    count = is_replay ? reader->trace.op_count : reader->trace.tensor_count;
    if (status == CAPU_OK) {
        status = json_lines_number(lines, object, is_replay ? "op" : "tensor", true, UINT32_MAX,
                                   &subject);
    }
    if (status == CAPU_OK) {
        status = json_lines_number(lines, object, "before", true, reader->trace.op_count, &before);
    }
    if (status == CAPU_OK && subject >= count) {
        return reject_entry(reader, "event", index, "of a tensor or an op that is not listed");
    }
    event->subject = (uint32_t)subject;
    event->point = (uint32_t)before;
    if (status == CAPU_OK && (event->kind == EVENT_OUT || event->kind == EVENT_IN || is_replay)) {
        status = read_span(reader, "event", index, object, event);
    }
    if (status == CAPU_OK && is_replay) {
        status = read_wait(reader, object, event);
    }
    if (status == CAPU_OK && event->kind == EVENT_GIVE) {
        status = read_method(reader, object, event);
    }
    return status;
}

/* Events and ops in order of issue: an event is before the op that it names. */
static capu_status read_events(struct reader *reader)
{
    const json_t *list = list_of(reader, "events");
    struct view_events *events = &reader->events;
    size_t count = json_array_size(list);
    uint32_t next_op = 0;
    capu_status status = CAPU_OK;

    if (list == NULL) {
        return json_lines_refuse(&reader->lines, "no list of events");
    }
    events->events = malloc((count + reader->run_count + 1) * sizeof(*events->events));
    if (events->events == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    for (size_t i = 0; i < count && status == CAPU_OK; i++) {
        struct view_event event;

        status = read_event(reader, i, json_array_get(list, i), &event);
        if (status == CAPU_OK && event.point < next_op) {
            return reject_entry(reader, "event", i, "before an op that is before the last event's");
        }
        while (status == CAPU_OK && next_op < event.point) {
            events->events[events->count++] = reader->runs[next_op++];
        }
        events->events[events->count++] = event;
    }
    while (status == CAPU_OK && next_op < reader->run_count) {
        events->events[events->count++] = reader->runs[next_op++];
    }
    return status;
}

static capu_status read_timeline_line(struct reader *reader, size_t number)
{
    struct json_lines *lines = &reader->lines;
    bool more = false;
    capu_status status;

    lines->number = number - 1;
    status = json_lines_next(lines, &more);
    if (status == CAPU_OK &&
        (!more || lines->type == NULL || strcmp(lines->type, "timeline") != 0)) {
        return json_lines_refuse(lines, "not a timeline");
    }
    status = status == CAPU_OK ? read_head(reader) : status;
    status = status == CAPU_OK ? read_tensors(reader) : status;
    status = status == CAPU_OK ? read_ops(reader) : status;
    status = status == CAPU_OK ? read_events(reader) : status;
    if (status != CAPU_OK) {
        return status;
    }
    status =
        trace_index_init(&reader->trace_index, &reader->trace, reader->page_bytes, lines->error);
    if (status != CAPU_OK) {
        return json_lines_refuse_built(lines, status);
    }
    trace_index_raise_fixed(&reader->trace_index, reader->events.fixed_bytes);
    reader->events.trace_index = &reader->trace_index;
    return CAPU_OK;
}

capu_status view_of_timeline(struct view *view, const char *file, size_t number, const char *text,
                             size_t length, struct error_text *error)
{
    struct reader reader = {0};
    capu_status status;

    *view = (struct view){0};
    json_lines_init(&reader.lines, file, text, length, error);
    status = read_timeline_line(&reader, number);
    if (status == CAPU_OK) {
        status = view_build(view, &reader.events, error);
    }
    if (status == CAPU_OK) {
        view->source = VIEW_MEASURED;
        view->iteration = reader.iteration;
        view->mode = reader.mode;
        view->budget_bytes = reader.budget_bytes;
        view->peak_bytes = reader.peak_bytes;
        view->d2h_bytes_per_s = reader.link.d2h_bytes_per_s;
        view->h2d_bytes_per_s = reader.link.h2d_bytes_per_s;
    } else if (status == CAPU_NO_HOST_MEMORY && error != NULL && error->text[0] == '\0') {
        error_text_set(error, status, "%s: no memory for a timeline", file);
    }
    free(reader.runs);
    free(reader.events.starts);
    free(reader.events.held_bytes);
    free(reader.events.events);
    trace_index_finish(&reader.trace_index);
    trace_finish(&reader.trace);
    json_lines_finish(&reader.lines);
    return status;
}

/*
 * A trace as JSON lines: header, machine, tensors, ops, end. Jansson makes each line. Reading finds
 * the fields; the functions of trace.c check the values.
 */
#include "policy/format/trace.h"

#include "policy/format/json_lines.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Writing. */

/* A line that is being made. Nothing is added to one that failed, so that none is written that
   lacks a field. */
struct line {
    json_t *object; /* NULL: making it failed */
    json_error_t problem;
    const char *what; /* with its number, for messages */
    uint32_t number;
};

/* Takes the reference to `value`, which may be NULL where making it failed. */
static void set_field(struct line *line, const char *key, json_t *value)
{
    if (line->object == NULL) {
        json_decref(value);
    } else if (json_object_set_new(line->object, key, value) != 0) {
        json_decref(line->object);
        line->object = NULL;
    }
}

static void set_number(struct line *line, const char *key, uint64_t number)
{
    set_field(line, key, json_integer((json_int_t)number));
}

/* Appends the line, which is gone then. */
static capu_status put_line(struct string_buffer *text, struct line *line, struct error_text *error)
{
    capu_status status;

    if (line->object == NULL) {
        return json_error_code(&line->problem) == json_error_invalid_utf8
                   ? error_text_set(error, CAPU_INVALID, "%s %" PRIu32 ": its name is not UTF-8",
                                    line->what, line->number)
                   : CAPU_NO_HOST_MEMORY;
    }
    status = string_buffer_append_json(text, line->object, JSON_COMPACT);
    json_decref(line->object);
    return status == CAPU_OK ? string_buffer_append(text, "\n", 1) : status;
}

static capu_status put_header(const struct trace *trace, struct string_buffer *text,
                              struct error_text *error)
{
    struct line line = {.what = "trace"};

    line.object = json_pack_ex(&line.problem, 0, "{s:s,s:i,s:s}", "type", "trace", "version", 1,
                               "name", trace_text(trace, trace->name));
    if (trace->batch > 0) {
        set_number(&line, "batch", trace->batch);
    }
    return put_line(text, &line, error);
}

static capu_status put_machine(const struct machine *machine, struct string_buffer *text,
                               struct error_text *error)
{
    struct line line = {.what = "machine"};

    line.object =
        json_pack_ex(&line.problem, 0, "{s:s,s:s}", "type", "machine", "name", machine->name);
    set_number(&line, "memory_bytes", machine->memory_bytes);
    set_number(&line, "d2h_bytes_per_s", machine->d2h_bytes_per_s);
    set_number(&line, "h2d_bytes_per_s", machine->h2d_bytes_per_s);
    set_number(&line, "copy_latency_ns", machine->copy_latency_ns);
    return put_line(text, &line, error);
}

static capu_status put_tensor(const struct trace *trace, uint32_t id, struct string_buffer *text,
                              struct error_text *error)
{
    const struct trace_tensor *tensor = &trace->tensors[id];
    struct line line = {.what = "tensor", .number = id};

    line.object =
        json_pack_ex(&line.problem, 0, "{s:s,s:I,s:s,s:I,s:s}", "type", "tensor", "id",
                     (json_int_t)id, "name", trace_tensor_name(trace, id), "bytes",
                     (json_int_t)tensor->bytes, "kind", tensor_kind_name((capu_kind)tensor->kind));
    if (tensor->persistent && tensor->kind != CAPU_PARAMETER && tensor->kind != CAPU_OPTIMIZER) {
        set_field(&line, "persistent", json_true());
    }
    if (!tensor->managed) {
        set_field(&line, "managed", json_false());
    }
    if (tensor->hint != CAPU_HINT_NONE) {
        set_field(&line, "hint", json_string(tensor_hint_name((capu_hint)tensor->hint)));
    }
    if (tensor->scales) {
        set_field(&line, "scales", json_true());
    }
    if (tensor->fixed_bytes > 0) {
        set_number(&line, "fixed_bytes", tensor->fixed_bytes);
    }
    return put_line(text, &line, error);
}

/* NULL where host memory is full. */
static json_t *list_of(const uint32_t *tensors, uint32_t count)
{
    json_t *list = json_array();

    for (uint32_t i = 0; list != NULL && i < count; i++) {
        if (json_array_append_new(list, json_integer((json_int_t)tensors[i])) != 0) {
            json_decref(list);
            list = NULL;
        }
    }
    return list;
}

static capu_status put_op(const struct trace *trace, uint32_t number, struct string_buffer *text,
                          struct error_text *error)
{
    const struct trace_op *op = &trace->ops[number];
    struct line line = {.what = "op", .number = number};

    line.object = json_pack_ex(&line.problem, 0, "{s:s,s:s,s:I}", "type", "op", "name",
                               trace_op_name(trace, number), "ns", (json_int_t)op->ns);
    set_field(&line, "reads", list_of(trace_reads(trace, op), op->read_count));
    set_field(&line, "writes", list_of(trace_writes(trace, op), op->write_count));
    set_field(&line, "updates", list_of(trace_updates(trace, op), op->update_count));
    set_field(&line, "replayable", json_boolean(op->replayable));
    if (op->scales) {
        set_field(&line, "scales", json_true());
    }
    if (op->segment != 0) {
        set_field(&line, "segment",
                  json_pack_ex(&line.problem, 0, "s", trace_text(trace, op->segment)));
    }
    return put_line(text, &line, error);
}

static capu_status put_end(const struct trace *trace, struct string_buffer *text)
{
    return string_buffer_format(text,
                                "{\"type\":\"end\",\"tensors\":%" PRIu32 ",\"ops\":%" PRIu32 "}\n",
                                trace->tensor_count, trace->op_count);
}

capu_status trace_write(const struct trace *trace, struct string_buffer *text,
                        struct error_text *error)
{
    capu_status status = put_header(trace, text, error);

    if (status == CAPU_OK && trace->has_machine) {
        status = put_machine(&trace->machine, text, error);
    }
    for (uint32_t id = 0; status == CAPU_OK && id < trace->tensor_count; id++) {
        status = put_tensor(trace, id, text, error);
    }
    for (uint32_t number = 0; status == CAPU_OK && number < trace->op_count; number++) {
        status = put_op(trace, number, text, error);
    }
    return status == CAPU_OK ? put_end(trace, text) : status;
}

/* Reading. */

struct reader {
    struct json_lines lines;
    struct trace *trace;
    bool has_ended; /* the end line has been read */
    struct json_lines_ids reads;
    struct json_lines_ids writes;
    struct json_lines_ids updates;
};

static capu_status read_header(struct reader *reader)
{
    struct json_lines *lines = &reader->lines;
    const char *name = "";
    uint64_t version = 0;
    uint64_t batch = 0;
    capu_status status =
        json_lines_number(lines, lines->value, "version", true, UINT32_MAX, &version);

    if (status == CAPU_OK && version != 1) {
        status = json_lines_refuse(lines, "only version 1 is known");
    }
    if (status == CAPU_OK) {
        status = json_lines_string(lines, lines->value, "name", false, &name);
    }
    if (status == CAPU_OK) {
        status = json_lines_number(lines, lines->value, "batch", false, TRACE_BYTES_MAX, &batch);
    }
    if (status != CAPU_OK) {
        return status;
    }
    status = trace_init(reader->trace, name, lines->error);
    if (status != CAPU_OK) {
        return json_lines_refuse_built(lines, status);
    }
    reader->trace->batch = batch;
    return CAPU_OK;
}

/* As much of a name as there is room for, cut between characters: half a character is not UTF-8. */
static void copy_name(char *to, size_t room, const char *name)
{
    size_t length = strnlen(name, room);

    if (length == room) {
        length--;
        while (length > 0 && ((unsigned char)name[length] & 0xC0) == 0x80) {
            length--;
        }
    }
    memcpy(to, name, length);
    to[length] = '\0';
}

static capu_status read_machine(struct reader *reader)
{
    struct json_lines *lines = &reader->lines;
    struct machine machine = {.name = ""};
    struct {
        const char *key;
        uint64_t *value;
        bool required;
    } fields[] = {{"memory_bytes", &machine.memory_bytes, false},
                  {"d2h_bytes_per_s", &machine.d2h_bytes_per_s, true},
                  {"h2d_bytes_per_s", &machine.h2d_bytes_per_s, true},
                  {"copy_latency_ns", &machine.copy_latency_ns, false}};
    const char *name = "";
    capu_status status = json_lines_string(lines, lines->value, "name", false, &name);

    for (size_t i = 0; status == CAPU_OK && i < sizeof(fields) / sizeof(fields[0]); i++) {
        status = json_lines_number(lines, lines->value, fields[i].key, fields[i].required,
                                   INT64_MAX, fields[i].value);
    }
    if (status != CAPU_OK) {
        return status;
    }
    if (reader->trace->has_machine) {
        return json_lines_refuse(lines, "a second machine");
    }
    copy_name(machine.name, sizeof(machine.name), name);
    status = trace_set_machine(reader->trace, &machine, lines->error);
    return status == CAPU_OK ? CAPU_OK : json_lines_refuse_built(lines, status);
}

/* Finds a name in a list of names. */
static capu_status find_name(struct json_lines *lines, const char *text,
                             const char *(*name_of)(unsigned), unsigned count, const char *what,
                             unsigned *found)
{
    for (unsigned i = 0; i < count; i++) {
        if (strcmp(text, name_of(i)) == 0) {
            *found = i;
            return CAPU_OK;
        }
    }
    return json_lines_refuse(lines, what);
}

static const char *kind_name(unsigned kind)
{
    return tensor_kind_name((capu_kind)kind);
}

static const char *hint_name(unsigned hint)
{
    return tensor_hint_name((capu_hint)hint);
}

static capu_status read_tensor_names(struct reader *reader, struct tensor_description *description)
{
    struct json_lines *lines = &reader->lines;
    const char *kind = NULL;
    const char *hint = "";
    unsigned found = 0;
    capu_status status = json_lines_string(lines, lines->value, "name", false, &description->name);

    if (status == CAPU_OK) {
        status = json_lines_string(lines, lines->value, "kind", true, &kind);
    }
    if (status == CAPU_OK) {
        status = json_lines_string(lines, lines->value, "hint", false, &hint);
    }
    if (status == CAPU_OK) {
        status = find_name(lines, kind, kind_name, TRACE_KINDS, "unknown \"kind\"", &found);
        description->kind = (capu_kind)found;
    }
    if (status == CAPU_OK) {
        status = find_name(lines, hint, hint_name, TRACE_HINTS, "unknown \"hint\"", &found);
        description->hint = (capu_hint)found;
    }
    return status;
}

static capu_status read_tensor(struct reader *reader)
{
    struct json_lines *lines = &reader->lines;
    struct tensor_description description = {.name = ""};
    uint64_t id = 0;
    bool managed = true;
    capu_status status = read_tensor_names(reader, &description);

    if (status == CAPU_OK) {
        status = json_lines_number(lines, lines->value, "id", true, UINT32_MAX, &id);
    }
    if (status == CAPU_OK && id != reader->trace->tensor_count) {
        return json_lines_refuse(lines, "\"id\" is not the next one (ids are dense from 0)");
    }
    if (status == CAPU_OK) {
        status = json_lines_number(lines, lines->value, "bytes", true, TRACE_BYTES_MAX,
                                   &description.bytes);
    }
    if (status == CAPU_OK) {
        status = json_lines_number(lines, lines->value, "fixed_bytes", false, TRACE_BYTES_MAX,
                                   &description.fixed_bytes);
    }
    if (status == CAPU_OK) {
        status = json_lines_boolean(lines, lines->value, "persistent", &description.persistent);
    }
    if (status == CAPU_OK) {
        status = json_lines_boolean(lines, lines->value, "managed", &managed);
    }
    if (status == CAPU_OK) {
        status = json_lines_boolean(lines, lines->value, "scales", &description.scales);
    }
    if (status != CAPU_OK) {
        return status;
    }
    description.unmanaged = !managed;
    status = trace_add_tensor(reader->trace, &description, NULL, lines->error);
    return status == CAPU_OK ? CAPU_OK : json_lines_refuse_built(lines, status);
}

static capu_status read_op(struct reader *reader)
{
    struct json_lines *lines = &reader->lines;
    struct op_description description = {.name = ""};
    capu_status status = json_lines_string(lines, lines->value, "name", false, &description.name);

    if (status == CAPU_OK) {
        status = json_lines_string(lines, lines->value, "segment", false, &description.segment);
    }
    if (status == CAPU_OK) {
        status = json_lines_number(lines, lines->value, "ns", true, TRACE_NS_MAX, &description.ns);
    }
    if (status == CAPU_OK) {
        status = json_lines_boolean(lines, lines->value, "replayable", &description.replayable);
    }
    if (status == CAPU_OK) {
        status = json_lines_boolean(lines, lines->value, "scales", &description.scales);
    }
    if (status == CAPU_OK) {
        status = json_lines_list(lines, lines->value, "reads", &reader->reads);
    }
    if (status == CAPU_OK) {
        status = json_lines_list(lines, lines->value, "writes", &reader->writes);
    }
    if (status == CAPU_OK) {
        status = json_lines_list(lines, lines->value, "updates", &reader->updates);
    }
    if (status != CAPU_OK) {
        return status;
    }
    description.reads = reader->reads.ids;
    description.read_count = reader->reads.count;
    description.writes = reader->writes.ids;
    description.write_count = reader->writes.count;
    description.updates = reader->updates.ids;
    description.update_count = reader->updates.count;
    status = trace_add_op(reader->trace, &description, lines->error);
    return status == CAPU_OK ? CAPU_OK : json_lines_refuse_built(lines, status);
}

/* The line counts what comes before it, so that a trace of which a part is missing is recognised.
 */
static capu_status read_end(struct reader *reader)
{
    struct json_lines *lines = &reader->lines;
    const struct trace *trace = reader->trace;
    uint64_t tensors = 0;
    uint64_t ops = 0;
    char what[160];
    capu_status status =
        json_lines_number(lines, lines->value, "tensors", true, INT64_MAX, &tensors);

    if (status == CAPU_OK) {
        status = json_lines_number(lines, lines->value, "ops", true, INT64_MAX, &ops);
    }
    if (status != CAPU_OK) {
        return status;
    }
    reader->has_ended = true;
    if (tensors == trace->tensor_count && ops == trace->op_count) {
        return CAPU_OK;
    }
    snprintf(what, sizeof(what),
             "the end line counts %" PRIu64 " tensors and %" PRIu64 " ops, but there are %" PRIu32
             " and %" PRIu32,
             tensors, ops, trace->tensor_count, trace->op_count);
    return json_lines_refuse(lines, what);
}

static capu_status read_line(void *user, bool is_first)
{
    struct reader *reader = user;
    const char *type = reader->lines.type;

    if (reader->has_ended) {
        return json_lines_refuse(&reader->lines, "a line after the end line");
    }
    if (is_first != (strcmp(type, "trace") == 0)) {
        return json_lines_refuse(&reader->lines,
                                 is_first ? "a trace begins with a line of type \"trace\""
                                          : "a second line of type \"trace\"");
    }
    if (is_first) {
        return read_header(reader);
    }
    if (strcmp(type, "tensor") == 0) {
        return read_tensor(reader);
    }
    if (strcmp(type, "op") == 0) {
        return read_op(reader);
    }
    if (strcmp(type, "machine") == 0) {
        return read_machine(reader);
    }
    if (strcmp(type, "end") == 0) {
        return read_end(reader);
    }
    return json_lines_refuse(&reader->lines, "unknown \"type\"");
}

capu_status trace_read(struct trace *trace, const char *file, const char *data, size_t length,
                       struct error_text *error)
{
    struct error_text own = {""};
    struct reader reader = {.trace = trace};
    capu_status status;

    /* json_lines_refuse_built reads the message back, so there has to be a place for it. */
    json_lines_init(&reader.lines, file, data, length, error != NULL ? error : &own);
    *trace = (struct trace){0};
    status = json_lines_each(&reader.lines, read_line, &reader);
    json_lines_finish(&reader.lines);
    free(reader.reads.ids);
    free(reader.writes.ids);
    free(reader.updates.ids);
    trace->may_be_cut = !reader.has_ended;
    if (status != CAPU_OK) {
        trace_finish(trace);
    }
    return status;
}

capu_status trace_load(struct trace *trace, const char *path, struct error_text *error)
{
    struct string_buffer text = {0};
    capu_status status = json_lines_load(path, &text, error);

    *trace = (struct trace){0};
    if (status == CAPU_OK) {
        status = trace_read(trace, path, text.data != NULL ? text.data : "", text.length, error);
    }
    string_buffer_finish(&text);
    return status;
}

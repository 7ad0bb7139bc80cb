/* Reads a trace. This file finds the fields; the functions of trace.c check the values. */
#include "policy/format/trace.h"

#include "policy/format/json_lines.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

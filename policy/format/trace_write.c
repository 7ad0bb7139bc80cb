/* A trace as JSON lines: header, machine, tensors, ops, end. Jansson makes each line. */
#include "policy/format/trace.h"

#include <jansson.h>

#include <inttypes.h>

/* A line that is being made. Nothing is added to one that failed, so that none is written that
   lacks a field. */
struct line {
    json_t *object; /* NULL: making it failed */
    json_error_t problem;
    const char *what; /* with its number, for messages */
    uint32_t number;
};

/* Takes the reference to `value`, which may be NULL where making it failed. */
static void set(struct line *line, const char *key, json_t *value)
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
    set(line, key, json_integer((json_int_t)number));
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
        set(&line, "persistent", json_true());
    }
    if (!tensor->managed) {
        set(&line, "managed", json_false());
    }
    if (tensor->hint != CAPU_HINT_NONE) {
        set(&line, "hint", json_string(tensor_hint_name((capu_hint)tensor->hint)));
    }
    if (tensor->scales) {
        set(&line, "scales", json_true());
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
    set(&line, "reads", list_of(trace_reads(trace, op), op->read_count));
    set(&line, "writes", list_of(trace_writes(trace, op), op->write_count));
    set(&line, "updates", list_of(trace_updates(trace, op), op->update_count));
    set(&line, "replayable", json_boolean(op->replayable));
    if (op->scales) {
        set(&line, "scales", json_true());
    }
    if (op->segment != 0) {
        set(&line, "segment", json_pack_ex(&line.problem, 0, "s", trace_text(trace, op->segment)));
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

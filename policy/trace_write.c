/* A trace as JSON lines, header, machine, tensors, ops. Jansson makes each line. */
#include "policy/trace.h"

#include <jansson.h>

#include <inttypes.h>

/* Takes the reference to `line`, which may be NULL where making it failed. */
static capu_status put_line(struct text *text, json_t *line, const char *what, uint32_t number,
                            struct error_text *error)
{
    char *dump;
    capu_status status;

    if (line == NULL) {
        return error_text_set(error, CAPU_INVALID, "%s %" PRIu32 ": its name is not UTF-8", what,
                              number);
    }
    dump = json_dumps(line, JSON_COMPACT);
    json_decref(line);
    if (dump == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    status = text_format(text, "%s\n", dump);
    free(dump);
    return status;
}

static capu_status put_header(const struct trace *trace, struct text *text,
                              struct error_text *error)
{
    json_t *line = json_pack("{s:s,s:i,s:s}", "type", "trace", "version", 1, "name",
                             trace_text(trace, trace->name));

    if (line != NULL && trace->batch > 0) {
        json_object_set_new(line, "batch", json_integer((json_int_t)trace->batch));
    }
    return put_line(text, line, "trace", 0, error);
}

static capu_status put_machine(const struct machine *machine, struct text *text,
                               struct error_text *error)
{
    json_t *line = json_pack("{s:s,s:s,s:I,s:I,s:I,s:I}", "type", "machine", "name", machine->name,
                             "memory_bytes", (json_int_t)machine->memory_bytes, "d2h_bytes_per_s",
                             (json_int_t)machine->d2h_bytes_per_s, "h2d_bytes_per_s",
                             (json_int_t)machine->h2d_bytes_per_s, "copy_latency_ns",
                             (json_int_t)machine->copy_latency_ns);

    return put_line(text, line, "machine", 0, error);
}

static capu_status put_tensor(const struct trace *trace, uint32_t id, struct text *text,
                              struct error_text *error)
{
    const struct trace_tensor *tensor = &trace->tensors[id];
    json_t *line =
        json_pack("{s:s,s:I,s:s,s:I,s:s}", "type", "tensor", "id", (json_int_t)id, "name",
                  trace_tensor_name(trace, id), "bytes", (json_int_t)tensor->bytes, "kind",
                  tensor_kind_name((enum tensor_kind)tensor->kind));

    if (line != NULL) {
        if (tensor->persistent && tensor->kind != TENSOR_PARAMETER &&
            tensor->kind != TENSOR_OPTIMIZER) {
            json_object_set_new(line, "persistent", json_true());
        }
        if (!tensor->managed) {
            json_object_set_new(line, "managed", json_false());
        }
        if (tensor->hint != HINT_NONE) {
            json_object_set_new(line, "hint",
                                json_string(tensor_hint_name((enum tensor_hint)tensor->hint)));
        }
        if (tensor->scales) {
            json_object_set_new(line, "scales", json_true());
        }
        if (tensor->fixed_bytes > 0) {
            json_object_set_new(line, "fixed_bytes", json_integer((json_int_t)tensor->fixed_bytes));
        }
    }
    return put_line(text, line, "tensor", id, error);
}

static json_t *list_of(const uint32_t *tensors, uint32_t count)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < count; i++) {
        json_array_append_new(list, json_integer((json_int_t)tensors[i]));
    }
    return list;
}

static capu_status put_op(const struct trace *trace, uint32_t number, struct text *text,
                          struct error_text *error)
{
    const struct trace_op *op = &trace->ops[number];
    json_t *line = json_pack(
        "{s:s,s:s,s:I,s:o,s:o,s:o,s:b}", "type", "op", "name", trace_op_name(trace, number), "ns",
        (json_int_t)op->ns, "reads", list_of(trace_reads(trace, op), op->read_count), "writes",
        list_of(trace_writes(trace, op), op->write_count), "updates",
        list_of(trace_updates(trace, op), op->update_count), "replayable", (int)op->replayable);

    if (line != NULL) {
        if (op->scales) {
            json_object_set_new(line, "scales", json_true());
        }
        if (op->segment != 0 &&
            json_object_set_new(line, "segment", json_string(trace_text(trace, op->segment))) !=
                0) {
            json_decref(line);
            line = NULL;
        }
    }
    return put_line(text, line, "op", number, error);
}

capu_status trace_write(const struct trace *trace, struct text *text, struct error_text *error)
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
    return status;
}

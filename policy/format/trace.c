/*
 * Building a trace. Every addition checks first, then reserves, then fills in: a failed one leaves
 * the trace as it was.
 */
#include "policy/format/trace.h"

#include "base/array.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const char *tensor_kind_name(capu_kind kind)
{
    static const char *const names[TRACE_KINDS] = {
        "activation", "parameter", "optimizer", "gradient", "activation", "workspace", "input"};

    return (unsigned)kind < TRACE_KINDS ? names[kind] : "?";
}

const char *tensor_hint_name(capu_hint hint)
{
    static const char *const names[TRACE_HINTS] = {"", "keep", "swap", "recompute"};

    return (unsigned)hint < TRACE_HINTS ? names[hint] : "?";
}

/* Makes room for `more` elements, up to `limit` in all. */
static capu_status grow_within(void *array, size_t *capacity, uint32_t count, uint32_t more,
                               uint32_t limit, size_t element_bytes)
{
    uint64_t wanted = (uint64_t)count + more;

    if (wanted > limit && wanted > *capacity) {
        return CAPU_TOO_LARGE;
    }
    return array_reserve(array, capacity, (size_t)wanted, element_bytes) ? CAPU_OK
                                                                         : CAPU_NO_HOST_MEMORY;
}

/* Room for a name of that length, terminator included. */
static capu_status reserve_name(struct trace *trace, size_t length)
{
    size_t wanted = trace->names_bytes + length + 1;

    if (wanted > TRACE_NAMES_MAX && wanted > trace->names_capacity) {
        return CAPU_TOO_LARGE;
    }
    return array_reserve(&trace->names, &trace->names_capacity, wanted, 1) ? CAPU_OK
                                                                           : CAPU_NO_HOST_MEMORY;
}

/* Room must have been reserved. The empty name is offset 0. */
static uint32_t put_name(struct trace *trace, const char *name, size_t length)
{
    size_t offset = trace->names_bytes;

    if (length == 0) {
        return 0;
    }
    memcpy(trace->names + offset, name, length + 1);
    trace->names_bytes += length + 1;
    return (uint32_t)offset;
}

static capu_status refuse_size(struct error_text *error, capu_status status, const char *what)
{
    return error_text_set(error, status, "%s: %s", what,
                          status == CAPU_TOO_LARGE ? "more than a trace may have"
                                                   : "host memory is full");
}

capu_status trace_init(struct trace *trace, const char *name, struct error_text *error)
{
    size_t length = strnlen(name, TRACE_NAME_MAX + 1);
    capu_status status;

    *trace = (struct trace){0};
    if (length > TRACE_NAME_MAX) {
        return error_text_set(error, CAPU_INVALID, "a name is longer than %zu bytes",
                              TRACE_NAME_MAX);
    }
    status = reserve_name(trace, length + 1);
    if (status == CAPU_OK) {
        /* Never NULL, so that an op without operands may point into it. */
        status = grow_within(&trace->operands, &trace->operand_capacity, 0, 1, TRACE_OPERANDS_MAX,
                             sizeof(*trace->operands));
    }
    if (status != CAPU_OK) {
        trace_finish(trace);
        return refuse_size(error, status, "names");
    }
    trace->names[0] = '\0';
    trace->names_bytes = 1;
    trace->name = put_name(trace, name, length);
    return CAPU_OK;
}

void trace_finish(struct trace *trace)
{
    if (trace == NULL) {
        return;
    }
    free(trace->names);
    free(trace->tensors);
    free(trace->ops);
    free(trace->operands);
    free(trace->named_by);
    *trace = (struct trace){0};
}

capu_status trace_set_machine(struct trace *trace, const struct machine *machine,
                              struct error_text *error)
{
    if (machine->d2h_bytes_per_s < TRACE_RATE_MIN || machine->d2h_bytes_per_s > TRACE_RATE_MAX ||
        machine->h2d_bytes_per_s < TRACE_RATE_MIN || machine->h2d_bytes_per_s > TRACE_RATE_MAX) {
        return error_text_set(error, CAPU_INVALID,
                              "machine \"%.64s\": a link rate is outside %" PRIu64 " to %" PRIu64
                              " bytes per second",
                              machine->name, TRACE_RATE_MIN, TRACE_RATE_MAX);
    }
    if (machine->copy_latency_ns > TRACE_NS_MAX || machine->memory_bytes > TRACE_BYTES_MAX) {
        return error_text_set(error, CAPU_INVALID,
                              "machine \"%.64s\": memory or copy latency is too large",
                              machine->name);
    }
    trace->machine = *machine;
    trace->machine.name[sizeof(trace->machine.name) - 1] = '\0';
    trace->has_machine = true;
    return CAPU_OK;
}

static capu_status check_tensor(const struct trace *trace,
                                const struct tensor_description *description,
                                struct error_text *error)
{
    if (strnlen(description->name, TRACE_NAME_MAX + 1) > TRACE_NAME_MAX) {
        return error_text_set(error, CAPU_INVALID, "tensor %" PRIu32 ": its name is too long",
                              trace->tensor_count);
    }
    if ((unsigned)description->kind >= TRACE_KINDS || (unsigned)description->hint >= TRACE_HINTS) {
        return error_text_set(error, CAPU_INVALID, "tensor %" PRIu32 " (%s): no such kind or hint",
                              trace->tensor_count, description->name);
    }
    if (description->fixed_bytes > description->bytes) {
        return error_text_set(error, CAPU_INVALID,
                              "tensor %" PRIu32 " (%s): fixed_bytes is more than bytes",
                              trace->tensor_count, description->name);
    }
    if (description->bytes > TRACE_BYTES_MAX - trace->total_bytes) {
        return error_text_set(error, CAPU_TOO_LARGE,
                              "tensor %" PRIu32 " (%s): all tensors together exceed %" PRIu64
                              " bytes",
                              trace->tensor_count, description->name, TRACE_BYTES_MAX);
    }
    return CAPU_OK;
}

/* named_by grows with the tensors, but apart from them: both fit whichever succeeded alone. */
static capu_status reserve_tensor(struct trace *trace)
{
    size_t named_capacity = trace->tensor_capacity;
    capu_status status = grow_within(&trace->named_by, &named_capacity, trace->tensor_count, 1,
                                     TRACE_TENSORS_MAX, sizeof(*trace->named_by));

    if (status != CAPU_OK) {
        return status;
    }
    return grow_within(&trace->tensors, &trace->tensor_capacity, trace->tensor_count, 1,
                       TRACE_TENSORS_MAX, sizeof(*trace->tensors));
}

capu_status trace_add_tensor(struct trace *trace, const struct tensor_description *description,
                             uint32_t *id, struct error_text *error)
{
    capu_status status = check_tensor(trace, description, error);
    size_t length;
    bool carries = description->persistent || description->kind == CAPU_PARAMETER ||
                   description->kind == CAPU_OPTIMIZER;

    if (status != CAPU_OK) {
        return status;
    }
    length = strlen(description->name);
    status = reserve_name(trace, length);
    if (status == CAPU_OK) {
        status = reserve_tensor(trace);
    }
    if (status != CAPU_OK) {
        return refuse_size(error, status, "tensors");
    }
    trace->tensors[trace->tensor_count] = (struct trace_tensor){
        .name = put_name(trace, description->name, length),
        .kind =
            (uint8_t)(description->kind != CAPU_KIND_UNKNOWN ? description->kind : CAPU_ACTIVATION),
        .hint = (uint8_t)description->hint,
        .persistent = carries,
        .managed = !description->unmanaged,
        .scales = description->scales,
        .bytes = description->bytes,
        .fixed_bytes = description->fixed_bytes,
    };
    trace->named_by[trace->tensor_count] = 0;
    trace->total_bytes += description->bytes;
    if (id != NULL) {
        *id = trace->tensor_count;
    }
    trace->tensor_count++;
    return CAPU_OK;
}

/* Marks the tensors of one list as named by the op to come. */
static capu_status name_operands(struct trace *trace, const struct op_description *description,
                                 const uint32_t *tensors, size_t count, struct error_text *error)
{
    for (size_t i = 0; i < count; i++) {
        if (tensors[i] >= trace->tensor_count) {
            return error_text_set(error, CAPU_INVALID,
                                  "op %" PRIu32 " (%s): there is no tensor %" PRIu32,
                                  trace->op_count, description->name, tensors[i]);
        }
        if (trace->named_by[tensors[i]] == trace->op_count + 1) {
            return error_text_set(error, CAPU_INVALID,
                                  "op %" PRIu32 " (%s): names tensor %" PRIu32 " (%s) twice",
                                  trace->op_count, description->name, tensors[i],
                                  trace_tensor_name(trace, tensors[i]));
        }
        trace->named_by[tensors[i]] = trace->op_count + 1;
    }
    return CAPU_OK;
}

/* After a refused op: nothing counts as named by its number, which the next op will have. */
static void unname_operands(struct trace *trace, const uint32_t *tensors, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (tensors[i] < trace->tensor_count) {
            trace->named_by[tensors[i]] = 0;
        }
    }
}

static capu_status check_op(struct trace *trace, const struct op_description *description,
                            struct error_text *error)
{
    capu_status status;

    if (strnlen(description->name, TRACE_NAME_MAX + 1) > TRACE_NAME_MAX ||
        (description->segment != NULL &&
         strnlen(description->segment, TRACE_NAME_MAX + 1) > TRACE_NAME_MAX)) {
        return error_text_set(error, CAPU_INVALID, "op %" PRIu32 ": a name is too long",
                              trace->op_count);
    }
    if (description->replayable && description->update_count > 0) {
        return error_text_set(error, CAPU_INVALID,
                              "op %" PRIu32 " (%s): an op with updates is not replayable",
                              trace->op_count, description->name);
    }
    if (description->ns > TRACE_NS_MAX - trace->total_ns) {
        return error_text_set(error, CAPU_TOO_LARGE,
                              "op %" PRIu32 " (%s): all ops together take more than %" PRIu64 " ns",
                              trace->op_count, description->name, TRACE_NS_MAX);
    }
    status = name_operands(trace, description, description->reads, description->read_count, error);
    if (status == CAPU_OK) {
        status =
            name_operands(trace, description, description->writes, description->write_count, error);
    }
    if (status == CAPU_OK) {
        status = name_operands(trace, description, description->updates, description->update_count,
                               error);
    }
    return status;
}

static uint32_t put_operands(struct trace *trace, const uint32_t *tensors, size_t count)
{
    if (count > 0) {
        memcpy(trace->operands + trace->operand_count, tensors, count * sizeof(*tensors));
        trace->operand_count += (uint32_t)count;
    }
    return (uint32_t)count;
}

/* Consecutive ops of one segment share its name. */
static uint32_t put_segment(struct trace *trace, const char *segment)
{
    uint32_t before = trace->op_count > 0 ? trace->ops[trace->op_count - 1].segment : 0;

    if (segment == NULL || segment[0] == '\0') {
        return 0;
    }
    if (before != 0 && strcmp(trace_text(trace, before), segment) == 0) {
        return before;
    }
    return put_name(trace, segment, strlen(segment));
}

capu_status trace_add_op(struct trace *trace, const struct op_description *description,
                         struct error_text *error)
{
    size_t operand_count =
        description->read_count + description->write_count + description->update_count;
    size_t segment_length;
    struct trace_op *op;
    capu_status status = check_op(trace, description, error);

    if (status != CAPU_OK) {
        goto unname;
    }
    segment_length = description->segment == NULL ? 0 : strlen(description->segment);
    status = reserve_name(trace, strlen(description->name) + 1 + segment_length);
    if (status == CAPU_OK) {
        /* At most one operand a tensor, so the count fits 32 bits. */
        status = grow_within(&trace->operands, &trace->operand_capacity, trace->operand_count,
                             (uint32_t)operand_count, TRACE_OPERANDS_MAX, sizeof(*trace->operands));
    }
    if (status == CAPU_OK) {
        status = grow_within(&trace->ops, &trace->op_capacity, trace->op_count, 1, TRACE_OPS_MAX,
                             sizeof(*trace->ops));
    }
    if (status != CAPU_OK) {
        refuse_size(error, status, "ops");
        goto unname;
    }
    op = &trace->ops[trace->op_count];
    *op = (struct trace_op){
        .ns = description->ns,
        .replayable = description->replayable,
        .scales = description->scales,
        .first = trace->operand_count,
    };
    op->name = put_name(trace, description->name, strlen(description->name));
    op->segment = put_segment(trace, description->segment);
    op->read_count = put_operands(trace, description->reads, description->read_count);
    op->write_count = put_operands(trace, description->writes, description->write_count);
    op->update_count = put_operands(trace, description->updates, description->update_count);
    trace->total_ns += description->ns;
    trace->op_count++;
    return CAPU_OK;

unname:
    unname_operands(trace, description->reads, description->read_count);
    unname_operands(trace, description->writes, description->write_count);
    unname_operands(trace, description->updates, description->update_count);
    return status;
}

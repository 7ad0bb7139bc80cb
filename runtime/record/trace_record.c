/*
 * Turns the record of an iteration into a trace, for the planner or for a trace file.
 *
 * The trace lists the tensors that the iteration touched, in order of first access. In a trace file
 * the persistent tensors with contents that it did not touch come last, since a run without a limit
 * holds those too: a plan of the run is for the tensors before them.
 *
 * The size of a managed tensor is the size of its span, because a plan can move only that. All
 * always-resident pages that belong to no tensor in the trace are written as one unmanaged tensor.
 * So the peak of the trace, with sizes rounded up to pages, equals live_peak_bytes in the report. A
 * trace file has the sizes of the page that those figures are for, which need not be the device's
 * (page_figures.h).
 *
 * A trace expresses less than the runtime knows: it has no capu_zero, and no ops whose replays skip
 * some of their updates. Where that could mislead a planner, the op is written as not replayable,
 * which costs speed at worst.
 */
#include "runtime/record/page_figures.h"
#include "runtime/record/records.h"

#include "policy/format/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The bytes of a tensor in pages of its own; 0: it is always resident. */
static uint64_t span_of(const struct records *records, const struct record *record,
                        const struct record_tensor *tensor, uint64_t page_bytes)
{
    if (page_bytes != record->page_bytes) {
        return page_figures_span(records, tensor, page_bytes);
    }
    return record_tensor_pages(tensor) > 0 ? tensor->bytes : 0;
}

/* In a trace, parameters and optimizer state are always persistent, so one that is not carried over
   is written as an activation. Always-resident tensors occupy their memory all the time, so they
   are persistent whatever they hold. For a plan, so is a tensor that is split later in the
   iteration: its contents live on in the pieces, and no plan may treat them as dead. */
static capu_status add_tensor(struct records *records, struct trace *trace,
                              const struct record_tensor *tensor, uint64_t span_bytes,
                              bool for_plan, struct error_text *error)
{
    const struct tensor *live = tensors_find(&records->memory->tensors, tensor->address);
    bool is_read_after = live != NULL && live->address == tensor->address && live->is_read_after;
    char address[32];
    struct tensor_description description = {
        .name = tensor->name != NULL ? tensor->name : address,
        .bytes = span_bytes > 0 ? span_bytes : tensor->tensor_bytes,
        .kind = (capu_kind)tensor->kind,
        .hint = (capu_hint)tensor->hint,
        .persistent = tensor->is_persistent || span_bytes == 0 || is_read_after ||
                      (for_plan && tensor->is_cut),
        .unmanaged = span_bytes == 0,
    };

    snprintf(address, sizeof(address), "%p", tensor->address);
    if (!description.persistent &&
        (description.kind == CAPU_PARAMETER || description.kind == CAPU_OPTIMIZER)) {
        description.kind = CAPU_ACTIVATION;
    }
    return trace_add_tensor(trace, &description, NULL, error);
}

/* For a plan: what was always resident at some time in the last iterations, until now. */
static uint64_t fixed_bytes(const struct records *records, const struct record *record,
                            bool for_plan)
{
    size_t now = memory_kept_pages(records->memory);

    if (for_plan) {
        return (now > record->kept_pages ? now : record->kept_pages) * record->page_bytes;
    }
    return record->report.floor_edges_bytes + record->report.floor_slabs_bytes;
}

/* Adds the rest of the always-resident pages, beyond the small tensors that the trace names. */
static capu_status add_fixed(const struct records *records, const struct record *record,
                             uint64_t page_bytes, bool for_plan, struct trace *trace,
                             struct error_text *error)
{
    struct tensor_description fixed = {
        .name = "always-resident pages",
        .bytes = fixed_bytes(records, record, for_plan),
        .kind = CAPU_WORKSPACE,
        .persistent = true,
        .unmanaged = true,
    };
    uint64_t named = 0;

    for (size_t i = 0; i < record->tensor_count; i++) {
        const struct record_tensor *tensor = &record->tensors[i];

        named += span_of(records, record, tensor, page_bytes) == 0 ? tensor->tensor_bytes : 0;
    }
    if (named >= fixed.bytes) {
        return CAPU_OK;
    }
    fixed.bytes -= named;
    return trace_add_tensor(trace, &fixed, NULL, error);
}

/* The tensor ids of one op, sorted by role: reads, writes, updates. */
struct op_operands {
    uint32_t *ids; /* three stretches of `room` ids each */
    size_t room;
    size_t counts[3];
    bool *is_spared; /* per tensor: an op updates it, but replays of that op do not */
};

static size_t stretch_of(uint32_t role)
{
    return role == CAPU_READ ? 0 : role == CAPU_WRITE ? 1 : 2;
}

/* Whether a replayable op updates this tensor. Replays of the op do not touch it, which a trace
   cannot express, so the access is left out. The tensor is always resident, so a plan does not need
   the access. */
static bool is_spared_by(const struct record_op *op, record_access access)
{
    return op->is_replayable && record_access_role(access) == CAPU_UPDATE;
}

static void find_spared(const struct record *record, struct op_operands *operands)
{
    for (size_t i = 0; i < record->op_count; i++) {
        const struct record_op *op = &record->ops[i];

        for (size_t k = 0; k < record_access_count(record, i); k++) {
            record_access access = record->accesses[op->first_access + k];

            if (is_spared_by(op, access)) {
                operands->is_spared[record_access_tensor(access)] = true;
            }
        }
    }
}

/* Whether capu_zero clears the tensor after this op, so that a replay would be wrong: it would read
   zeros in place of what the op read, or overwrite zeros in the tensor's always-resident pages.
   capu_zero is not an op, so a plan cannot see this. */
static bool is_zeroed_after(const struct record *record, size_t op, record_access access)
{
    const struct record_tensor *tensor = &record->tensors[record_access_tensor(access)];
    bool has_fixed_part = record_tensor_pages(tensor) > 0 && tensor->bytes != tensor->tensor_bytes;

    return tensor->zeroed_op > op && (record_access_role(access) == CAPU_READ || has_fixed_part);
}

static capu_status add_op(const struct record *record, size_t number, struct op_operands *operands,
                          struct trace *trace, struct error_text *error)
{
    const struct record_op *op = &record->ops[number];
    struct op_description description = {
        .name = op->name,
        .segment = record->sites[op->site].segment,
        .ns = op->ns,
        .replayable = op->is_replayable,
    };

    memset(operands->counts, 0, sizeof(operands->counts));
    for (size_t i = 0; i < record_access_count(record, number); i++) {
        record_access access = record->accesses[op->first_access + i];
        uint32_t tensor = record_access_tensor(access);
        size_t stretch = stretch_of(record_access_role(access));

        if (is_spared_by(op, access)) {
            continue;
        }
        /* The plan does not see the update, so it cannot know which version a replay would read. */
        if (operands->is_spared[tensor]) {
            description.replayable = false;
        }
        operands->ids[stretch * operands->room + operands->counts[stretch]++] = tensor;
        if (is_zeroed_after(record, number, access)) {
            description.replayable = false;
        }
    }
    description.reads = operands->ids;
    description.writes = operands->ids + operands->room;
    description.updates = operands->ids + 2 * operands->room;
    description.read_count = operands->counts[0];
    description.write_count = operands->counts[1];
    description.update_count = operands->counts[2];
    return trace_add_op(trace, &description, error);
}

static capu_status add_ops(const struct record *record, bool for_plan, struct trace *trace,
                           struct error_text *error)
{
    struct op_operands operands = {0};
    capu_status status = CAPU_OK;

    for (size_t i = 0; i < record->op_count; i++) {
        if (record_access_count(record, i) > operands.room) {
            operands.room = record_access_count(record, i);
        }
    }
    operands.ids = calloc(3 * operands.room + 1, sizeof(*operands.ids));
    operands.is_spared = calloc(record->tensor_count + 1, sizeof(*operands.is_spared));
    if (operands.ids == NULL || operands.is_spared == NULL) {
        free(operands.ids);
        free(operands.is_spared);
        return CAPU_NO_HOST_MEMORY;
    }
    find_spared(record, &operands);
    for (size_t i = for_plan ? record_planned(record, 0) : 0;
         i < record->op_count && status == CAPU_OK;
         i = for_plan ? record_planned(record, i + 1) : i + 1) {
        status = add_op(record, i, &operands, trace, error);
    }
    free(operands.ids);
    free(operands.is_spared);
    return status;
}

static capu_status set_machine(struct records *records, struct trace *trace,
                               struct error_text *error)
{
    const struct device_link *from = &records->lanes->device->capabilities.link;
    bool is_known = from->d2h_bytes_per_s != 0 && from->h2d_bytes_per_s != 0;
    const struct device_link *link = is_known ? from : &records->lanes->link;
    struct machine machine = {
        .memory_bytes = records->settings->config.budget_bytes,
        .d2h_bytes_per_s = link->d2h_bytes_per_s,
        .h2d_bytes_per_s = link->h2d_bytes_per_s,
        .copy_latency_ns = link->copy_latency_ns,
    };

    /* Without known link rates the trace gets no machine line; its reader must supply a machine. */
    if (machine.d2h_bytes_per_s == 0 || machine.h2d_bytes_per_s == 0) {
        return CAPU_OK;
    }
    strncpy(machine.name, records->lanes->device->capabilities.name, sizeof(machine.name) - 1);
    return trace_set_machine(trace, &machine, error);
}

capu_status trace_record_build(struct records *records, const struct record *record, bool for_plan,
                               struct trace *trace, struct error_text *error)
{
    uint64_t page_bytes = for_plan ? record->page_bytes : record->report.floor_page_bytes;
    capu_status status =
        trace_init(trace, record->label[0] != '\0' ? record->label : "iteration", error);

    if (status == CAPU_OK) {
        status = set_machine(records, trace, error);
    }
    for (size_t i = 0; i < record->tensor_count && status == CAPU_OK; i++) {
        const struct record_tensor *tensor = &record->tensors[i];

        status = add_tensor(records, trace, tensor, span_of(records, record, tensor, page_bytes),
                            for_plan, error);
    }
    if (status == CAPU_OK) {
        status = add_fixed(records, record, page_bytes, for_plan, trace, error);
    }
    for (size_t i = 0; !for_plan && i < record->untouched_count && status == CAPU_OK; i++) {
        const struct record_tensor *tensor = &record->untouched[i];
        uint64_t span_bytes = span_of(records, record, tensor, page_bytes);

        if (span_bytes > 0) {
            status = add_tensor(records, trace, tensor, span_bytes, for_plan, error);
        }
    }
    if (status == CAPU_OK) {
        status = add_ops(record, for_plan, trace, error);
    }
    if (status != CAPU_OK) {
        trace_finish(trace);
    }
    return status;
}

capu_status trace_record_write(struct records *records, const struct record *record, char **out,
                               size_t *bytes, char *why, size_t why_bytes)
{
    struct error_text error = {0};
    struct trace trace = {0};
    struct string_buffer text = {0};
    capu_status status = trace_record_build(records, record, false, &trace, &error);

    if (status == CAPU_OK) {
        status = trace_write(&trace, &text, &error);
    }
    trace_finish(&trace);
    if (status != CAPU_OK) {
        string_buffer_finish(&text);
        snprintf(why, why_bytes, "making the trace: %s",
                 error.text[0] != '\0' ? error.text : capu_status_text(status));
        return status;
    }
    *out = text.data;
    *bytes = text.length;
    return CAPU_OK;
}

/* The index is built in a few linear walks over the trace: a counting sort of the operands by
   tensor, the versions, the unconstrained peak and the floor. */
#include "policy/model/trace_index.h"

#include <inttypes.h>
#include <stdlib.h>

static enum use_role role_of(const struct trace_op *op, uint32_t operand)
{
    return operand < op->read_count                     ? USE_READ
           : operand < op->read_count + op->write_count ? USE_WRITE
                                                        : USE_UPDATE;
}

static capu_status allocate_index(struct trace_index *trace_index)
{
    const struct trace *trace = trace_index->trace;
    size_t tensors = (size_t)trace->tensor_count + 1;
    size_t operands = (size_t)trace->operand_count + 1;

    trace_index->first = calloc(tensors, sizeof(*trace_index->first));
    trace_index->op = calloc(operands, sizeof(*trace_index->op));
    trace_index->role = calloc(operands, sizeof(*trace_index->role));
    trace_index->version = calloc(operands, sizeof(*trace_index->version));
    trace_index->final_version = calloc(tensors, sizeof(*trace_index->final_version));
    trace_index->rounded = calloc(tensors, sizeof(*trace_index->rounded));
    return trace_index->first != NULL && trace_index->op != NULL && trace_index->role != NULL &&
                   trace_index->version != NULL && trace_index->final_version != NULL &&
                   trace_index->rounded != NULL
               ? CAPU_OK
               : CAPU_NO_HOST_MEMORY;
}

/* Counting sort of the operands by tensor; the program order within a tensor stays. */
static void index_accesses(struct trace_index *trace_index)
{
    const struct trace *trace = trace_index->trace;
    uint32_t *first = trace_index->first;

    for (uint32_t i = 0; i < trace->operand_count; i++) {
        first[trace->operands[i]]++;
    }
    for (uint32_t t = 1; t <= trace->tensor_count; t++) {
        first[t] += first[t - 1];
    }
    for (uint32_t k = trace->op_count; k-- > 0;) {
        const struct trace_op *op = &trace->ops[k];

        for (uint32_t i = 0; i < trace_operand_count(op); i++) {
            uint32_t slot = --first[trace->operands[op->first + i]];

            trace_index->op[slot] = k;
            trace_index->role[slot] = (uint8_t)role_of(op, i);
        }
    }
}

static capu_status number_versions(struct trace_index *trace_index, struct error_text *error)
{
    const struct trace *trace = trace_index->trace;

    for (uint32_t k = 0; k < trace->op_count; k++) {
        const struct trace_op *op = &trace->ops[k];

        for (uint32_t i = 0; i < trace_operand_count(op); i++) {
            uint32_t tensor = trace->operands[op->first + i];
            enum use_role role = role_of(op, i);
            uint32_t *version = &trace_index->final_version[tensor];

            if (role != USE_WRITE && *version == 0 && !trace->tensors[tensor].persistent) {
                return error_text_set(error, CAPU_INVALID,
                                      "op %" PRIu32 " (%.80s) reads tensor %" PRIu32
                                      " (%.80s), which nothing has written",
                                      k, trace_op_name(trace, k), tensor,
                                      trace_tensor_name(trace, tensor));
            }
            *version += role == USE_WRITE;
            trace_index->version[op->first + i] = *version;
            *version += role == USE_UPDATE;
        }
    }
    return CAPU_OK;
}

static void measure_floor(struct trace_index *trace_index)
{
    const struct trace *trace = trace_index->trace;

    for (uint32_t k = 0; k < trace->op_count; k++) {
        const struct trace_op *op = &trace->ops[k];
        uint64_t bytes = 0;

        for (uint32_t i = 0; i < trace_operand_count(op); i++) {
            bytes += trace_index->rounded[trace->operands[op->first + i]];
        }
        if (bytes > trace_index->floor_bytes) {
            trace_index->floor_bytes = bytes;
            trace_index->floor_op = k;
        }
    }
    trace_index->floor_bytes += trace_index->fixed_bytes;
}

/* Adds a live tensor to the pool, or to what is fixed. */
static void count_alive(const struct trace_index *trace_index, uint32_t tensor, uint64_t *managed,
                        uint64_t *fixed)
{
    if (trace_index->trace->tensors[tensor].managed) {
        *managed += trace_index->rounded[tensor];
    } else {
        *fixed += trace_index->trace->tensors[tensor].bytes;
    }
}

static void measure_peak(struct trace_index *trace_index)
{
    const struct trace *trace = trace_index->trace;
    uint64_t managed = 0;
    uint64_t fixed = 0;
    uint64_t managed_peak = 0;

    for (uint32_t t = 0; t < trace->tensor_count; t++) {
        if (trace->tensors[t].persistent) {
            count_alive(trace_index, t, &managed, &fixed);
            trace_index->idle_bytes +=
                trace_index->first[t] == trace_index->first[t + 1] ? trace_index->rounded[t] : 0;
        }
        if (!trace->tensors[t].managed) {
            trace_index->unmanaged_bytes += trace->tensors[t].bytes;
        }
    }
    managed_peak = managed;
    trace_index->fixed_bytes = fixed;
    for (uint32_t k = 0; k < trace->op_count; k++) {
        const struct trace_op *op = &trace->ops[k];

        for (uint32_t i = 0; i < trace_operand_count(op); i++) {
            uint32_t t = trace->operands[op->first + i];

            if (!trace->tensors[t].persistent && trace_index->op[trace_index->first[t]] == k) {
                count_alive(trace_index, t, &managed, &fixed);
            }
        }
        if (managed > managed_peak) {
            managed_peak = managed;
            trace_index->peak_op = k;
        }
        trace_index->fixed_bytes =
            fixed > trace_index->fixed_bytes ? fixed : trace_index->fixed_bytes;
        for (uint32_t i = 0; i < trace_operand_count(op); i++) {
            uint32_t t = trace->operands[op->first + i];
            uint64_t gone = 0;

            if (!trace->tensors[t].persistent &&
                trace_index->op[trace_index->first[t + 1] - 1] == k) {
                count_alive(trace_index, t, &gone, &gone);
                managed -= trace->tensors[t].managed ? gone : 0;
                fixed -= trace->tensors[t].managed ? 0 : gone;
            }
        }
    }
    trace_index->peak_bytes = managed_peak + trace_index->fixed_bytes;
}

capu_status trace_index_init(struct trace_index *trace_index, const struct trace *trace,
                             uint64_t page_bytes, struct error_text *error)
{
    capu_status status;

    *trace_index = (struct trace_index){.trace = trace, .page_bytes = page_bytes};
    if (page_bytes == 0 || page_bytes > TRACE_INDEX_PAGE_MAX) {
        return error_text_set(error, CAPU_INVALID, "a page of %" PRIu64 " bytes", page_bytes);
    }
    status = allocate_index(trace_index);
    if (status != CAPU_OK) {
        goto finish;
    }
    for (uint32_t t = 0; t < trace->tensor_count; t++) {
        uint64_t pages = (trace->tensors[t].bytes + page_bytes - 1) / page_bytes;

        trace_index->rounded[t] = trace->tensors[t].managed ? pages * page_bytes : 0;
    }
    index_accesses(trace_index);
    status = number_versions(trace_index, error);
    if (status != CAPU_OK) {
        goto finish;
    }
    measure_peak(trace_index);
    measure_floor(trace_index);
    return CAPU_OK;

finish:
    trace_index_finish(trace_index);
    return status;
}

void trace_index_raise_fixed(struct trace_index *trace_index, uint64_t bytes)
{
    /* Beyond any budget already; keeps the sums inside 63 bits. */
    uint64_t most = bytes < TRACE_BYTES_MAX ? bytes : TRACE_BYTES_MAX;

    if (most > trace_index->fixed_bytes) {
        trace_index->peak_bytes += most - trace_index->fixed_bytes;
        trace_index->floor_bytes += most - trace_index->fixed_bytes;
        trace_index->fixed_bytes = most;
    }
    trace_index->unmanaged_bytes =
        most > trace_index->unmanaged_bytes ? most : trace_index->unmanaged_bytes;
}

void trace_index_finish(struct trace_index *trace_index)
{
    free(trace_index->first);
    free(trace_index->op);
    free(trace_index->role);
    free(trace_index->version);
    free(trace_index->final_version);
    free(trace_index->rounded);
    *trace_index = (struct trace_index){0};
}

/* The access lists, versions, the unconstrained peak and the floor. Linear in the trace. */
#include "policy/uses.h"

#include <inttypes.h>
#include <stdlib.h>

static enum use_role role_of(const struct trace_op *op, uint32_t operand)
{
    return operand < op->read_count                     ? USE_READ
           : operand < op->read_count + op->write_count ? USE_WRITE
                                                        : USE_UPDATE;
}

static capu_status allocate(struct uses *uses)
{
    const struct trace *trace = uses->trace;
    size_t tensors = (size_t)trace->tensor_count + 1;
    size_t operands = (size_t)trace->operand_count + 1;

    uses->first = calloc(tensors, sizeof(*uses->first));
    uses->op = calloc(operands, sizeof(*uses->op));
    uses->role = calloc(operands, sizeof(*uses->role));
    uses->version = calloc(operands, sizeof(*uses->version));
    uses->final_version = calloc(tensors, sizeof(*uses->final_version));
    uses->rounded = calloc(tensors, sizeof(*uses->rounded));
    return uses->first != NULL && uses->op != NULL && uses->role != NULL && uses->version != NULL &&
                   uses->final_version != NULL && uses->rounded != NULL
               ? CAPU_OK
               : CAPU_NO_HOST_MEMORY;
}

/* Counting sort of the operands by tensor; the program order within a tensor stays. */
static void index_accesses(struct uses *uses)
{
    const struct trace *trace = uses->trace;
    uint32_t *first = uses->first;

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

            uses->op[slot] = k;
            uses->role[slot] = (uint8_t)role_of(op, i);
        }
    }
}

static capu_status number_versions(struct uses *uses, struct error_text *error)
{
    const struct trace *trace = uses->trace;

    for (uint32_t k = 0; k < trace->op_count; k++) {
        const struct trace_op *op = &trace->ops[k];

        for (uint32_t i = 0; i < trace_operand_count(op); i++) {
            uint32_t tensor = trace->operands[op->first + i];
            enum use_role role = role_of(op, i);
            uint32_t *version = &uses->final_version[tensor];

            if (role != USE_WRITE && *version == 0 && !trace->tensors[tensor].persistent) {
                return error_text_set(error, CAPU_INVALID,
                                      "op %" PRIu32 " (%.80s) reads tensor %" PRIu32
                                      " (%.80s), which nothing has written",
                                      k, trace_op_name(trace, k), tensor,
                                      trace_tensor_name(trace, tensor));
            }
            *version += role == USE_WRITE;
            uses->version[op->first + i] = *version;
            *version += role == USE_UPDATE;
        }
    }
    return CAPU_OK;
}

static void measure_floor(struct uses *uses)
{
    const struct trace *trace = uses->trace;

    for (uint32_t k = 0; k < trace->op_count; k++) {
        const struct trace_op *op = &trace->ops[k];
        uint64_t bytes = 0;

        for (uint32_t i = 0; i < trace_operand_count(op); i++) {
            bytes += uses->rounded[trace->operands[op->first + i]];
        }
        if (bytes > uses->floor_bytes) {
            uses->floor_bytes = bytes;
            uses->floor_op = k;
        }
    }
    uses->floor_bytes += uses->fixed_bytes;
}

/* What a tensor adds while it is alive: to the pool, or to what is fixed. */
static void count_alive(const struct uses *uses, uint32_t tensor, uint64_t *managed,
                        uint64_t *fixed)
{
    if (uses->trace->tensors[tensor].managed) {
        *managed += uses->rounded[tensor];
    } else {
        *fixed += uses->trace->tensors[tensor].bytes;
    }
}

static void measure_peak(struct uses *uses)
{
    const struct trace *trace = uses->trace;
    uint64_t managed = 0;
    uint64_t fixed = 0;
    uint64_t managed_peak = 0;

    for (uint32_t t = 0; t < trace->tensor_count; t++) {
        if (trace->tensors[t].persistent) {
            count_alive(uses, t, &managed, &fixed);
            uses->idle_bytes += uses->first[t] == uses->first[t + 1] ? uses->rounded[t] : 0;
        }
        if (!trace->tensors[t].managed) {
            uses->unmanaged_bytes += trace->tensors[t].bytes;
        }
    }
    managed_peak = managed;
    uses->fixed_bytes = fixed;
    for (uint32_t k = 0; k < trace->op_count; k++) {
        const struct trace_op *op = &trace->ops[k];

        for (uint32_t i = 0; i < trace_operand_count(op); i++) {
            uint32_t t = trace->operands[op->first + i];

            if (!trace->tensors[t].persistent && uses->op[uses->first[t]] == k) {
                count_alive(uses, t, &managed, &fixed);
            }
        }
        if (managed > managed_peak) {
            managed_peak = managed;
            uses->peak_op = k;
        }
        uses->fixed_bytes = fixed > uses->fixed_bytes ? fixed : uses->fixed_bytes;
        for (uint32_t i = 0; i < trace_operand_count(op); i++) {
            uint32_t t = trace->operands[op->first + i];
            uint64_t gone = 0;

            if (!trace->tensors[t].persistent && uses->op[uses->first[t + 1] - 1] == k) {
                count_alive(uses, t, &gone, &gone);
                managed -= trace->tensors[t].managed ? gone : 0;
                fixed -= trace->tensors[t].managed ? 0 : gone;
            }
        }
    }
    uses->peak_bytes = managed_peak + uses->fixed_bytes;
}

capu_status uses_init(struct uses *uses, const struct trace *trace, uint64_t page_bytes,
                      struct error_text *error)
{
    capu_status status;

    *uses = (struct uses){.trace = trace, .page_bytes = page_bytes};
    if (page_bytes == 0 || page_bytes > USES_PAGE_MAX) {
        return error_text_set(error, CAPU_INVALID, "a page of %" PRIu64 " bytes", page_bytes);
    }
    status = allocate(uses);
    if (status != CAPU_OK) {
        goto finish;
    }
    for (uint32_t t = 0; t < trace->tensor_count; t++) {
        uint64_t pages = (trace->tensors[t].bytes + page_bytes - 1) / page_bytes;

        uses->rounded[t] = trace->tensors[t].managed ? pages * page_bytes : 0;
    }
    index_accesses(uses);
    status = number_versions(uses, error);
    if (status != CAPU_OK) {
        goto finish;
    }
    measure_peak(uses);
    measure_floor(uses);
    return CAPU_OK;

finish:
    uses_finish(uses);
    return status;
}

void uses_raise_fixed(struct uses *uses, uint64_t bytes)
{
    /* Beyond any budget already; keeps the sums inside 63 bits. */
    uint64_t most = bytes < TRACE_BYTES_MAX ? bytes : TRACE_BYTES_MAX;

    if (most > uses->fixed_bytes) {
        uses->peak_bytes += most - uses->fixed_bytes;
        uses->floor_bytes += most - uses->fixed_bytes;
        uses->fixed_bytes = most;
    }
    uses->unmanaged_bytes = most > uses->unmanaged_bytes ? most : uses->unmanaged_bytes;
}

void uses_finish(struct uses *uses)
{
    free(uses->first);
    free(uses->op);
    free(uses->role);
    free(uses->version);
    free(uses->final_version);
    free(uses->rounded);
    *uses = (struct uses){0};
}

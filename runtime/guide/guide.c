/* What a recorded iteration did, as guides have it, see guide.h. */
#include "runtime/guide/guide.h"

#include <stdlib.h>
#include <string.h>

void guide_destroy(struct guide *guide)
{
    if (guide == NULL) {
        return;
    }
    free(guide->tensors);
    free(guide->ops);
    free(guide->accesses);
    free(guide->operands);
    free(guide->cleared);
    free(guide->items);
    free(guide->previous);
    free(guide->runs);
    free(guide);
}

void *guide_array(struct guide *guide, size_t count, size_t bytes)
{
    guide->bytes += (uint64_t)count * bytes;
    return calloc(count > 0 ? count : 1, bytes);
}

static void copy_tensors(struct guide *guide, const struct record *record)
{
    for (uint32_t i = 0; i < guide->tensor_count; i++) {
        const struct record_tensor *from = &record->tensors[i];

        guide->tensors[i] = (struct guide_tensor){
            .address = from->address,
            .bytes = from->tensor_bytes,
            .page_count = record_tensor_pages(from),
            .name = from->name,
            .is_split = from->is_split,
            .is_transient = from->is_transient,
        };
    }
}

/* How many operands, accesses and cleared ranges have been copied. */
struct copied {
    uint32_t operands;
    uint32_t accesses;
    uint32_t cleared;
};

static void copy_op(struct guide *guide, const struct record *record, size_t number,
                    struct copied *copied)
{
    const struct record_op *from = &record->ops[number];
    struct guide_op *op = &guide->ops[guide->op_count++];

    op->call = record_call(record, number);
    op->call.operands = guide->operands + copied->operands;
    op->call.operand_count = record_operand_count(record, number);
    op->is_replayable = from->is_replayable;
    op->accesses = (struct guide_part){.first = copied->accesses,
                                       .count = (uint32_t)record_access_count(record, number)};
    for (size_t i = 0; i < op->call.operand_count; i++) {
        guide->operands[copied->operands++] = record_operand(record, from->first_operand + i);
    }
    for (size_t i = 0; i < op->accesses.count; i++) {
        record_access access = record->accesses[from->first_access + i];

        guide->accesses[copied->accesses++] = (struct guide_access){
            .tensor = record_access_tensor(access),
            .role = record_access_role(access),
            .needs_contents = record_access_role(access) != CAPU_WRITE,
            .is_partial = record_access_is_partial(access),
            .is_managed = record_tensor_pages(&record->tensors[record_access_tensor(access)]) > 0,
        };
    }
}

/* The ranges that are cleared before an op: *next is the record's next one. */
static void copy_cleared(struct guide *guide, const struct record *record, size_t number,
                         size_t *next, struct copied *copied)
{
    bool is_copied = !record_is_once(record, number);
    struct guide_op *op = is_copied ? &guide->ops[guide->op_count - 1] : NULL;

    if (is_copied) {
        op->cleared.first = copied->cleared;
    }
    for (; *next < record->cleared_count && record->cleared[*next].op == number; (*next)++) {
        if (is_copied) {
            guide->cleared[copied->cleared++] = record->cleared[*next].range;
            op->cleared.count++;
        }
    }
}

/* Copies all ops except those that happen once, and notes before which of them tensors were zeroed.
 */
static capu_status copy_ops(struct guide *guide, const struct record *record)
{
    uint32_t *number = calloc(record->op_count + 1, sizeof(*number));
    struct copied copied = {0};
    size_t next_cleared = 0;

    if (number == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    for (size_t i = 0; i < record->op_count; i++) {
        number[i] = guide->op_count;
        if (!record_is_once(record, i)) {
            copy_op(guide, record, i, &copied);
        }
        copy_cleared(guide, record, i, &next_cleared, &copied);
    }
    number[record->op_count] = guide->op_count;
    for (uint32_t i = 0; i < guide->tensor_count; i++) {
        guide->tensors[i].zeroed_op = number[record->tensors[i].zeroed_op];
        guide->tensors[i].freed_op = record->tensors[i].freed_op != UINT32_MAX
                                         ? number[record->tensors[i].freed_op]
                                         : UINT32_MAX;
    }
    free(number);
    return CAPU_OK;
}

/* Allocates the arrays of what the iteration did, as long as the guide's counts say. */
static bool allocate(struct guide *guide)
{
    guide->bytes = sizeof(*guide);
    guide->tensors = guide_array(guide, guide->tensor_count, sizeof(*guide->tensors));
    guide->ops = guide_array(guide, guide->op_count, sizeof(*guide->ops));
    guide->accesses = guide_array(guide, guide->access_count, sizeof(*guide->accesses));
    guide->operands = guide_array(guide, guide->operand_count, sizeof(*guide->operands));
    guide->cleared = guide_array(guide, guide->cleared_count, sizeof(*guide->cleared));
    return guide->tensors != NULL && guide->ops != NULL && guide->accesses != NULL &&
           guide->operands != NULL && guide->cleared != NULL;
}

capu_status guide_create(const struct record *record, struct guide **out)
{
    struct guide *guide = calloc(1, sizeof(*guide));

    if (guide == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    if (record->tensor_count >= TRACE_TENSORS_MAX || record->op_count >= TRACE_OPS_MAX) {
        guide_destroy(guide);
        return CAPU_TOO_LARGE;
    }
    guide->label = record->label;
    guide->signature = record->signature;
    guide->tensor_count = (uint32_t)record->tensor_count;
    guide->op_count = (uint32_t)record->op_count;
    guide->access_count = (uint32_t)record->access_count;
    guide->operand_count = (uint32_t)record->operand_count;
    guide->cleared_count = (uint32_t)record->cleared_count;
    if (!allocate(guide)) {
        guide_destroy(guide);
        return CAPU_NO_HOST_MEMORY;
    }
    guide->op_count = 0; /* counts those that are copied */
    copy_tensors(guide, record);
    if (copy_ops(guide, record) != CAPU_OK) {
        guide_destroy(guide);
        return CAPU_NO_HOST_MEMORY;
    }
    *out = guide;
    return CAPU_OK;
}

/* memcpy that accepts an array without elements. */
static void copy_array(void *to, const void *from, size_t count, size_t bytes)
{
    if (count > 0) {
        memcpy(to, from, count * bytes);
    }
}

capu_status guide_copy(const struct guide *guide, struct guide **out)
{
    struct guide *copy = calloc(1, sizeof(*copy));

    if (copy == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    copy->label = guide->label;
    copy->signature = guide->signature;
    copy->tensor_count = guide->tensor_count;
    copy->op_count = guide->op_count;
    copy->access_count = guide->access_count;
    copy->operand_count = guide->operand_count;
    copy->cleared_count = guide->cleared_count;
    if (!allocate(copy)) {
        guide_destroy(copy);
        return CAPU_NO_HOST_MEMORY;
    }
    copy_array(copy->tensors, guide->tensors, guide->tensor_count, sizeof(*copy->tensors));
    copy_array(copy->ops, guide->ops, guide->op_count, sizeof(*copy->ops));
    copy_array(copy->accesses, guide->accesses, guide->access_count, sizeof(*copy->accesses));
    copy_array(copy->operands, guide->operands, guide->operand_count, sizeof(*copy->operands));
    copy_array(copy->cleared, guide->cleared, guide->cleared_count, sizeof(*copy->cleared));
    for (uint32_t k = 0; k < copy->op_count; k++) {
        copy->ops[k].call.operands =
            copy->operands + (guide->ops[k].call.operands - guide->operands);
    }
    *out = copy;
    return CAPU_OK;
}

bool guide_has_tensor(const struct guide *guide, const void *address)
{
    for (uint32_t i = 0; i < guide->tensor_count; i++) {
        if (guide->tensors[i].address == address) {
            return true;
        }
    }
    return false;
}

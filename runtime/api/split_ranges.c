/* capu_split and capu_split_list: which tensors become which. See capuchin/memory.h. */
#include "runtime/api/split.h"
#include "runtime/context/failure.h"
#include "runtime/tensor/memory.h"

#include <stdlib.h>

/* Splits a tensor into what is before `address`, ranges of these sizes and what is after them. Does
   nothing if that is the tensor as it is. Pre: no range is empty, and all lie in the tensor. */
static capu_status split_at(capu_context *context, struct tensor *tensor, void *address,
                            const size_t *sizes, size_t count)
{
    const unsigned char *start = tensor->allocation->address;
    uint64_t at = (uint64_t)((unsigned char *)address - start);
    uint64_t first = (uint64_t)((unsigned char *)tensor->address - start);
    uint64_t *starts = calloc(count + 3, sizeof(*starts));
    struct split_parts into = {.starts = starts};
    capu_status status = CAPU_OK;

    if (starts == NULL) {
        return failure_set(&context->failure, CAPU_NO_HOST_MEMORY,
                           "capu_split: no memory for the pieces");
    }
    if (at > first) {
        starts[into.count++] = first;
    }
    into.named = into.count;
    for (size_t i = 0; i < count; i++) {
        starts[into.count++] = at;
        at += sizes[i];
    }
    into.named_end = into.count;
    if (at < first + tensor->bytes) {
        starts[into.count++] = at;
    }
    starts[into.count] = first + tensor->bytes;
    if (into.count > 1) {
        status = split_tensor(context, tensor, into);
    }
    free(starts);
    return status;
}

/* What a call names: `count` ranges, one after the other. */
struct ranges_named {
    const char *call;
    unsigned char *address;
    const size_t *sizes;
    size_t count;
};

static capu_status fail_crossing(capu_context *context, const struct ranges_named *named,
                                 size_t index, const void *address, struct tensor *tensor)
{
    return failure_set(&context->failure, CAPU_OUT_OF_RANGE,
                       "%s: %zu bytes at %p cross the end of '%s'", named->call,
                       named->sizes[index], address, lookup_name(&context->memory, tensor));
}

/* Whether there are ranges, none of them is empty, and all lie in one allocation. */
static capu_status check_ranges(capu_context *context, const struct ranges_named *named)
{
    const struct allocation *allocation;
    struct tensor *tensor;
    uint64_t left;
    capu_status status;

    if (named->count == 0 || named->sizes == NULL) {
        return failure_set(&context->failure, CAPU_INVALID, "%s: no sizes were given", named->call);
    }
    status = lookup_tensor(&context->memory, named->address, named->call, &tensor);
    if (status != CAPU_OK) {
        return status;
    }
    allocation = tensor->allocation;
    left = allocation->bytes - (uint64_t)(named->address - (unsigned char *)allocation->address);
    for (size_t i = 0; i < named->count; i++) {
        if (named->sizes[i] == 0) {
            return failure_set(&context->failure, CAPU_ZERO_BYTES,
                               "%s of zero bytes (size %zu of %zu)", named->call, i + 1,
                               named->count);
        }
        if (named->sizes[i] > left) {
            const unsigned char *end = (unsigned char *)allocation->address + allocation->bytes;

            while (tensor->next != NULL) {
                tensor = tensor->next;
            }
            return fail_crossing(context, named, i, end - left, tensor);
        }
        left -= named->sizes[i];
    }
    return CAPU_OK;
}

/* Works off the ranges tensor by tensor: checks that none crosses the end of a tensor, or splits.
 */
static capu_status visit_ranges(capu_context *context, const struct ranges_named *named,
                                bool splits)
{
    unsigned char *address = named->address;
    capu_status status = CAPU_OK;
    size_t end;

    for (size_t i = 0; i < named->count && status == CAPU_OK; i = end) {
        struct tensor *tensor = tensors_find(&context->memory.tensors, address);
        unsigned char *from = address;

        for (end = i; end < named->count && address < tensor_end(tensor); end++) {
            if (named->sizes[end] > (uint64_t)(tensor_end(tensor) - address)) {
                return fail_crossing(context, named, end, address, tensor);
            }
            address += named->sizes[end];
        }
        if (splits) {
            status = split_at(context, tensor, from, &named->sizes[i], end - i);
        }
    }
    return status;
}

static capu_status split_ranges(capu_context *context, const struct ranges_named *named)
{
    capu_status status = context_uncaptured(context, named->call);

    if (status == CAPU_OK) {
        status = check_ranges(context, named);
    }
    if (status == CAPU_OK) {
        status = visit_ranges(context, named, false);
    }
    return status != CAPU_OK ? status : visit_ranges(context, named, true);
}

capu_status capu_split(capu_context *context, void *address, size_t bytes)
{
    return split_ranges(context,
                        &(struct ranges_named){
                            .call = "capu_split", .address = address, .sizes = &bytes, .count = 1});
}

capu_status capu_split_list(capu_context *context, void *address, const size_t *sizes, size_t count)
{
    return split_ranges(context, &(struct ranges_named){.call = "capu_split_list",
                                                        .address = address,
                                                        .sizes = sizes,
                                                        .count = count});
}

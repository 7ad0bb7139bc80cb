/*
 * capu_realloc, see capuchin/memory.h. Plans know tensors by address and size. So an allocation
 * never becomes smaller, and becomes longer in place where its pages or its slot have room.
 */
#include "runtime/api/context.h"
#include "runtime/api/split.h"
#include "runtime/context/failure.h"
#include "runtime/residency/swap.h"
#include "runtime/tensor/memory.h"
#include "runtime/tensor/order.h"

#include <stdlib.h>

/* How large an allocation can become where it is. */
static uint64_t reserved_bytes(const capu_context *context, const struct allocation *allocation)
{
    return allocation->page_count > 0
               ? allocation->page_count * pages_bytes_each(context->memory.pages)
               : slabs_slot_bytes(context->memory.slabs, allocation->address);
}

static struct tensor *last_tensor(const struct allocation *allocation)
{
    struct tensor *last = allocation->first;

    while (last->next != NULL) {
        last = last->next;
    }
    return last;
}

/* With clear_fresh, what is added to a tensor reads as zeros. Where it has no memory, that is so
   already, or there are no contents. */
static capu_status clear_added(capu_context *context, struct tensor *tensor, uint64_t added)
{
    bool is_there = tensor_is_mapped(tensor) || !tensor_is_managed(tensor);
    capu_status status;

    if (context->settings.config.clear_fresh == 0 || !is_there) {
        return CAPU_OK;
    }
    status = order_access(&context->lanes.compute, tensor, CAPU_WRITE);
    if (status == CAPU_OK) {
        status = device_fill(context->lanes.device, context->lanes.compute.stream,
                             tensor_end(tensor) - added, 0, added);
    }
    if (status == CAPU_OK) {
        status = tracker_mark_end(&context->records, &tensor->written);
    }
    if (status == CAPU_OK) {
        order_used(tensor, tensor->written);
    }
    return failure_check(&context->failure, status, "clearing fresh memory");
}

static void set_bytes(capu_context *context, struct allocation *allocation, uint64_t bytes)
{
    page_census_whole(&context->memory.census, allocation, &context->memory.persistent, -1);
    allocation->bytes = bytes;
    page_census_whole(&context->memory.census, allocation, &context->memory.persistent, 1);
}

/* Lengthens the last tensor. Pre: there is room for so many bytes. */
static capu_status lengthen(capu_context *context, struct allocation *allocation, uint64_t bytes)
{
    struct tensor *last = last_tensor(allocation);
    uint64_t before = allocation->bytes;
    uint64_t starts[] = {
        (uint64_t)((unsigned char *)last->address - (unsigned char *)allocation->address), bytes};
    capu_status status;

    set_bytes(context, allocation, bytes);
    status = split_tensor(context, last, (struct split_parts){.starts = starts, .count = 1});
    if (status != CAPU_OK) {
        set_bytes(context, allocation, before);
        return status;
    }
    return clear_added(context, last_tensor(allocation), bytes - before);
}

/* Divides a new allocation as the old one is. */
static capu_status divide(capu_context *context, const struct allocation *old, void *fresh,
                          size_t bytes)
{
    size_t count = 0;
    size_t *sizes;
    capu_status status;

    for (const struct tensor *tensor = old->first; tensor != NULL; tensor = tensor->next) {
        count++;
    }
    sizes = calloc(count, sizeof(*sizes));
    if (sizes == NULL) {
        return failure_set(&context->failure, CAPU_NO_HOST_MEMORY,
                           "capu_realloc: no memory for the pieces");
    }
    count = 0;
    for (const struct tensor *tensor = old->first; tensor != NULL; tensor = tensor->next) {
        sizes[count] = tensor->next != NULL ? tensor->bytes : bytes;
        bytes -= sizes[count++];
    }
    status = capu_split_list(context, fresh, sizes, count);
    free(sizes);
    return status;
}

static void copy_description(capu_context *context, struct tensor *to, struct tensor *from)
{
    to->name = lookup_is_named(from) ? from->name : NULL;
    to->kind = from->kind;
    to->hint = from->hint;
    to->is_persistent = from->is_persistent;
    if (tensor_is_defined(to)) {
        contents_define(&context->residency, to); /* the zeros of clear_fresh */
    }
}

/* Reading a transient tensor between iterations would make plans keep it from then on. Without
   records it is not known what is defined. */
static bool has_contents_to_keep(const capu_context *context, const struct tensor *tensor)
{
    return !context->settings.is_tracking ||
           (tensor_is_defined(tensor) && (tensor->is_persistent || context->iteration.is_open));
}

static capu_status copy_contents(capu_context *context, struct tensor *to, struct tensor *from)
{
    if (!has_contents_to_keep(context, from)) {
        return CAPU_OK;
    }
    return tensor_is_zero(from) ? capu_zero(context, to->address, from->bytes)
                                : capu_copy(context, to->address, from->address, from->bytes);
}

/* Moves everything to a new allocation. */
static capu_status move(capu_context *context, struct allocation *old, size_t bytes, void **address)
{
    struct tensor *from = old->first;
    void *fresh;
    capu_status status = capu_malloc(context, bytes, &fresh);

    if (status != CAPU_OK) {
        return status;
    }
    status = divide(context, old, fresh, bytes);
    for (struct tensor *to = tensors_find(&context->memory.tensors, fresh);
         from != NULL && status == CAPU_OK; to = to->next, from = from->next) {
        copy_description(context, to, from);
        status = copy_contents(context, to, from);
    }
    if (status == CAPU_OK) {
        status = capu_free(context, old->address);
    }
    if (status != CAPU_OK) {
        capu_free(context, fresh);
        return status;
    }
    *address = fresh;
    return CAPU_OK;
}

capu_status capu_realloc(capu_context *context, void *old, size_t bytes, void **address)
{
    capu_status status = context_uncaptured(context, "capu_realloc");
    struct allocation *allocation;

    if (status != CAPU_OK) {
        return status;
    }
    if (address == NULL) {
        return failure_set(&context->failure, CAPU_INVALID,
                           "capu_realloc: no place for the address");
    }
    if (old == NULL) {
        return capu_malloc(context, bytes, address);
    }
    if (bytes == 0) {
        return failure_set(&context->failure, CAPU_ZERO_BYTES, "capu_realloc to zero bytes");
    }
    status = lookup_allocation(&context->memory, old, "capu_realloc", &allocation);
    if (status != CAPU_OK) {
        return status;
    }
    if (bytes > reserved_bytes(context, allocation)) {
        return move(context, allocation, bytes, address);
    }
    if (bytes > allocation->bytes) {
        status = lengthen(context, allocation, bytes);
    }
    if (status == CAPU_OK) {
        *address = old;
    }
    return status;
}

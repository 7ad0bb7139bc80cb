/* Parking allocations, see parked.h. */
#include "runtime/residency/parked.h"

#include "runtime/context/failure.h"
#include "runtime/context/internal.h"
#include "runtime/residency/contents.h"
#include "runtime/tensor/allocation.h"

void parked_add(capu_context *context, struct allocation *allocation)
{
    allocation->is_parked = true;
    allocation->next_parked = context->residency.parked;
    context->residency.parked = allocation;
}

void parked_remove(capu_context *context, struct allocation *allocation)
{
    struct allocation **at = &context->residency.parked;

    while (*at != allocation) {
        at = &(*at)->next_parked;
    }
    *at = allocation->next_parked;
    allocation->is_parked = false;
}

capu_status parked_create(capu_context *context, const void *address, uint64_t bytes,
                          size_t page_count, struct allocation **out)
{
    void *at = (void *)(uintptr_t)address;
    capu_status status = ranges_take_at(context->memory.ranges, at, page_count);

    if (status != CAPU_OK) {
        return failure_set(&context->failure, CAPU_NOT_READY, "the addresses at %p are in use",
                           address);
    }
    status = allocation_create(&context->memory, at, bytes, page_count, out);
    if (status != CAPU_OK) {
        ranges_give(context->memory.ranges, at, page_count, false);
        return failure_set(&context->failure, status, "no memory to note an allocation");
    }
    tensors_remove(&context->memory.tensors, (*out)->first);
    (*out)->is_freed = true;
    parked_add(context, *out);
    return CAPU_OK;
}

/* Starts the departure of a freed allocation that was parked. Pre: departure_reserve. */
static void depart(capu_context *context, struct allocation *allocation)
{
    struct lane_position used = {0};

    for (struct tensor *tensor = allocation->first; tensor != NULL; tensor = tensor->next) {
        contents_forget(context, tensor);
        used = tensor->used.sequence > used.sequence ? tensor->used : used;
    }
    if (allocation->edge_pages != NULL) {
        used = lane_promise(
            &context->lanes
                 .compute); /* replays may have written small tensors after they were freed */
    }
    departure_bury(context, allocation, used);
}

bool parked_is_in_use(const capu_context *context, const struct allocation *allocation)
{
    return context->iteration.is_open && allocation->freed_iteration == context->iteration.number;
}

void parked_clear(capu_context *context)
{
    struct allocation *next;

    for (struct allocation *allocation = context->residency.parked; allocation != NULL;
         allocation = next) {
        next = allocation->next_parked;
        /* Without host memory for its departure it stays parked, and the next call tries again. */
        if (!tensor_is_placed(allocation->first) && !parked_is_in_use(context, allocation) &&
            departure_reserve(context) == CAPU_OK) {
            parked_remove(context, allocation);
            depart(context, allocation);
        }
    }
}

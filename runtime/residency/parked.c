/* Parking allocations, see parked.h. */
#include "runtime/residency/parked.h"

#include "runtime/context/failure.h"
#include "runtime/residency/contents.h"
#include "runtime/residency/residency.h"
#include "runtime/tensor/memory.h"

void parked_add(struct residency *residency, struct allocation *allocation)
{
    allocation->is_parked = true;
    allocation->next_parked = residency->parked;
    residency->parked = allocation;
}

void parked_remove(struct residency *residency, struct allocation *allocation)
{
    struct allocation **at = &residency->parked;

    while (*at != allocation) {
        at = &(*at)->next_parked;
    }
    *at = allocation->next_parked;
    allocation->is_parked = false;
}

capu_status parked_create(struct residency *residency, const void *address, uint64_t bytes,
                          size_t page_count, struct allocation **out)
{
    void *at = (void *)(uintptr_t)address;
    capu_status status = ranges_take_at(residency->memory->ranges, at, page_count);

    if (status != CAPU_OK) {
        return failure_set(residency->failure, CAPU_NOT_READY, "the addresses at %p are in use",
                           address);
    }
    status = allocation_create(residency->memory, at, bytes, page_count, out);
    if (status != CAPU_OK) {
        ranges_give(residency->memory->ranges, at, page_count, false);
        return failure_set(residency->failure, status, "no memory to note an allocation");
    }
    tensors_remove(&residency->memory->tensors, (*out)->first);
    (*out)->is_freed = true;
    parked_add(residency, *out);
    return CAPU_OK;
}

/* Starts the departure of a freed allocation that was parked. Pre: departure_reserve. */
static void depart(struct residency *residency, struct allocation *allocation)
{
    struct lane_position used = {0};

    for (struct tensor *tensor = allocation->first; tensor != NULL; tensor = tensor->next) {
        contents_forget(residency, tensor);
        used = tensor->used.sequence > used.sequence ? tensor->used : used;
    }
    if (allocation->edge_pages != NULL) {
        /* Replays may have written small tensors after they were freed. */
        used = lane_promise(&residency->lanes->compute);
    }
    departure_bury(residency, allocation, used);
}

bool parked_is_in_use(const struct residency *residency, const struct allocation *allocation)
{
    return residency->iteration->is_open &&
           allocation->freed_iteration == residency->iteration->number;
}

void parked_clear(struct residency *residency)
{
    struct allocation *next;

    for (struct allocation *allocation = residency->parked; allocation != NULL; allocation = next) {
        next = allocation->next_parked;
        /* Without host memory for its departure it stays parked, and the next call tries again. */
        if (!tensor_is_placed(allocation->first) && !parked_is_in_use(residency, allocation) &&
            departure_reserve(residency) == CAPU_OK) {
            parked_remove(residency, allocation);
            depart(residency, allocation);
        }
    }
}

/*
 * Allocating: see capuchin/memory.h.
 *
 * Small allocations get a slot in a slab, and are always resident. Others get whole pages of
 * address space and no memory: that comes when an op first writes them. Inside an iteration, the
 * n-th allocation gets the address of the n-th one before if the sizes are equal (struct
 * address_memo), and where that allocation is still departing or parked, it is taken back with its
 * pages.
 */
#include "runtime/tensor/memory.h"

#include "base/size_text.h"
#include "runtime/api/context.h"
#include "runtime/api/release.h"
#include "runtime/context/failure.h"
#include "runtime/follow/recovery.h"
#include "runtime/residency/departure.h"
#include "runtime/residency/pager.h"
#include "runtime/residency/residency.h"
#include "runtime/residency/swap.h"

/* With clear_fresh, new memory reads as zeros. */
static capu_status clear_fresh(capu_context *context, struct tensor *tensor)
{
    capu_status status = CAPU_OK;

    if (context->settings.config.clear_fresh == 0) {
        return CAPU_OK;
    }
    tensor->zeroed = context->iteration.number;
    if (tensor_is_managed(tensor) && context->settings.is_paging) {
        tensor_state_zeroed(tensor);
    } else {
        tensor_state_written(tensor);
        status = device_fill(context->lanes.device, context->lanes.compute.stream, tensor->address,
                             0, tensor->bytes);
    }
    if (status == CAPU_OK) {
        status = tracker_mark_end(&context->records, &tensor->used);
    }
    contents_define(&context->residency, tensor);
    return failure_check(&context->failure, status, "clearing fresh memory");
}

/* The address that the previous iteration under this label gave to this allocation; NULL: none. */
static void *propose(const capu_context *context, uint64_t bytes)
{
    return context->plans.label != NULL
               ? address_memo_propose(&context->plans.label->addresses, bytes)
               : NULL;
}

/* The active plan has left no page for a small tensor. The next one leaves it, so it is planned
   again, but once: iterations of other kinds may need more small tensors than those that are
   planned. */
static void note_short(capu_context *context)
{
    struct label_record *label =
        label_records_find(&context->plans.labels, context->guided.active->guide->label);

    if (label != NULL && !label->was_short) {
        label->was_short = true;
        context->guided.active->feedback.is_wrong = true;
    }
}

static capu_status make_room_for_slab(capu_context *context)
{
    capu_status status;

    if (context->guided.active != NULL && pages_available(context->memory.pages) == 0) {
        note_short(context);
    }
    status = pager_leave_guide_for(&context->residency, 1);
    if (status == CAPU_OK) {
        status = recovery_before_fixed(&context->following, 1);
    }
    victims_spare(&context->residency.victims);
    return status != CAPU_OK ? status : pager_make_room(&context->residency, 1);
}

/* Takes a slot in a slab, making room for a page if one is needed. */
static capu_status take_slot(capu_context *context, size_t bytes, void **address)
{
    void *proposed = propose(context, bytes);
    capu_status status;

    if (proposed != NULL && slabs_take_at(context->memory.slabs, proposed, bytes) == CAPU_OK) {
        *address = proposed;
        return CAPU_OK;
    }
    if (slabs_needs_page(context->memory.slabs, bytes)) {
        status = make_room_for_slab(context);
        if (status != CAPU_OK) {
            return status;
        }
    }
    status = slabs_take(context->memory.slabs, bytes, address);
    if (status == CAPU_OVER_BUDGET) {
        /* The device has less memory than the budget, which is known only now. */
        status = pager_make_room(&context->residency, 1);
        if (status != CAPU_OK) {
            return status;
        }
        status = slabs_take(context->memory.slabs, bytes, address);
    }
    return failure_check(&context->failure, status, "taking memory for a small tensor");
}

/* Makes a freed allocation of one tensor a new one, without a description. */
static capu_status revive(capu_context *context, struct allocation *allocation)
{
    struct tensor *tensor = allocation->first;

    if (tensors_add(&context->memory.tensors, tensor) != CAPU_OK) {
        return failure_set(&context->failure, CAPU_NO_HOST_MEMORY,
                           "no memory to note an allocation");
    }
    allocation->is_freed = false;
    tensor->name = NULL;
    tensor->kind = CAPU_KIND_UNKNOWN;
    tensor->hint = CAPU_HINT_NONE;
    tensor->is_persistent = true;
    tensor->is_live_in = false;
    tensor->overwrites = 0;
    tensor->in_record.stamp = 0;
    return CAPU_OK;
}

static capu_status unpark(capu_context *context, struct allocation *allocation,
                          struct allocation **out)
{
    capu_status status = revive(context, allocation);

    if (status == CAPU_OK) {
        contents_forget(&context->residency, allocation->first);
        parked_remove(&context->residency, allocation);
        *out = allocation;
    }
    return status;
}

/* Takes back the freed allocation that the previous iteration had at this address, if it is still
   mapped. *out is NULL if there is none; the address may be free nevertheless. */
static capu_status take_back(capu_context *context, void *address, uint64_t bytes,
                             struct allocation **out)
{
    struct tensor *tensor = tensors_find_freed(&context->memory.tensors, address);
    struct allocation *allocation;
    bool is_alike;
    capu_status status;

    *out = NULL;
    if (tensor == NULL ||
        (tensor->allocation->departure == NULL && !tensor->allocation->is_parked) ||
        tensor->allocation->freed_iteration >= context->iteration.number) {
        return CAPU_OK;
    }
    allocation = tensor->allocation;
    is_alike = allocation->bytes == bytes && allocation->edge_pages == NULL &&
               allocation->first->next == NULL;
    if (allocation->is_parked) {
        /* One of another size stays parked, since the guide needs its addresses. */
        return is_alike ? unpark(context, allocation, out) : CAPU_OK;
    }
    if (!is_alike) {
        return departure_wait_buried(&context->residency, allocation);
    }
    status = revive(context, allocation);
    if (status == CAPU_OK) {
        departure_unbury(&context->residency, allocation);
        *out = allocation;
    }
    return status;
}

static capu_status take_range(capu_context *context, uint64_t bytes, size_t page_count,
                              struct allocation **allocation)
{
    void *proposed = propose(context, bytes);
    void *address = proposed;
    capu_status status = CAPU_NOT_READY;

    if (proposed != NULL) {
        status = take_back(context, proposed, bytes, allocation);
        if (status != CAPU_OK || *allocation != NULL) {
            return status;
        }
        status = ranges_take_at(context->memory.ranges, proposed, page_count);
    }
    if (status != CAPU_OK) {
        status = ranges_take(context->memory.ranges, page_count, &address);
    }
    if (status != CAPU_OK) {
        return failure_set(&context->failure, status, "no addresses for %s", size_text(bytes).text);
    }
    status = allocation_create(&context->memory, address, bytes, page_count, allocation);
    if (status != CAPU_OK) {
        ranges_give(context->memory.ranges, address, page_count, false);
        return failure_set(&context->failure, status, "no memory to note an allocation");
    }
    return CAPU_OK;
}

/* Mode off: everything is resident from the start. */
static capu_status map_at_once(capu_context *context, struct allocation *allocation)
{
    capu_status status = pager_make_room(&context->residency, allocation->page_count);

    if (status == CAPU_OVER_BUDGET) {
        failure_set(&context->failure, status,
                    "%s do not fit: %zu of %zu pages are taken, and mode off evicts nothing",
                    size_text(allocation->bytes).text, pages_out(context->memory.pages),
                    pages_limit(context->memory.pages));
    }
    return status != CAPU_OK ? status : pager_bring(&context->residency, allocation->first, false);
}

capu_status capu_malloc(capu_context *context, size_t bytes, void **address)
{
    uint64_t page_bytes;
    struct allocation *allocation = NULL;
    capu_status status = context_uncaptured(context, "capu_malloc");
    void *slot;

    if (status != CAPU_OK) {
        return status;
    }
    page_bytes = pages_bytes_each(context->memory.pages);
    if (address == NULL) {
        return failure_set(&context->failure, CAPU_INVALID,
                           "capu_malloc: no place for the address");
    }
    if (bytes == 0) {
        return failure_set(&context->failure, CAPU_ZERO_BYTES, "capu_malloc of zero bytes");
    }
    if (bytes > INT64_MAX / 2) {
        return failure_set(&context->failure, CAPU_TOO_LARGE, "capu_malloc of %zu bytes", bytes);
    }
    if (bytes < context->settings.config.slab_threshold_bytes) {
        status = take_slot(context, bytes, &slot);
        if (status == CAPU_OK) {
            status = allocation_create(&context->memory, slot, bytes, 0, &allocation);
            if (status != CAPU_OK) {
                slabs_give(context->memory.slabs, slot);
                failure_set(&context->failure, status, "no memory to note an allocation");
            }
        }
    } else {
        status = take_range(context, bytes, (size_t)((bytes + page_bytes - 1) / page_bytes),
                            &allocation);
    }
    if (status == CAPU_OK && !context->settings.is_paging && allocation->page_count > 0 &&
        !tensor_is_mapped(allocation->first)) {
        status = map_at_once(context, allocation);
    }
    if (status == CAPU_OK) {
        status = clear_fresh(context, allocation->first);
    }
    if (status != CAPU_OK) {
        if (allocation != NULL) {
            release_allocation(context, allocation);
        }
        return status;
    }
    if (context->plans.label != NULL) {
        address_memo_note(&context->plans.label->addresses, allocation->address, bytes);
    }
    *address = allocation->address;
    return CAPU_OK;
}

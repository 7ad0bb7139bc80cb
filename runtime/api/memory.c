/*
 * Allocating and freeing: see capuchin/memory.h.
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
#include "runtime/context/failure.h"
#include "runtime/follow/recovery.h"
#include "runtime/issue/issue.h"
#include "runtime/residency/departure.h"
#include "runtime/residency/pager.h"
#include "runtime/residency/residency.h"
#include "runtime/residency/swap.h"
#include "runtime/tensor/order.h"

#include <stdlib.h>

/*
 * Freeing.
 */

/* The position at which the last use of any of its tensors ends. */
static capu_status last_use(capu_context *context, const struct allocation *allocation,
                            struct lane_position *used)
{
    *used = (struct lane_position){0};
    if (!context->settings.is_tracking || allocation->edge_pages != NULL) {
        return failure_check(&context->failure, tracker_mark_end(&context->records, used),
                             "marking the compute stream");
    }
    for (const struct tensor *tensor = allocation->first; tensor != NULL; tensor = tensor->next) {
        if (tensor->used.sequence > used->sequence) {
            *used = tensor->used;
        }
    }
    return CAPU_OK;
}

/* Whether the active guide keeps the allocation when it is freed: it does if the allocation was not
   split and is freed inside an iteration. For any other allocation of the guide, the guide is left,
   and also if parts share pages, because replays may still write those. */
static capu_status leave_guide_of(capu_context *context, struct allocation *allocation,
                                  bool *is_kept)
{
    bool shares_pages = allocation->edge_pages != NULL && allocation->first->next != NULL;
    bool is_placed = false;

    for (struct tensor *tensor = allocation->first; tensor != NULL; tensor = tensor->next) {
        is_placed = is_placed || tensor_is_placed(tensor);
    }
    *is_kept = is_placed && context->iteration.is_open && allocation->first->next == NULL;
    if ((is_placed && !*is_kept) || (shares_pages && context->iteration.is_open)) {
        return leave_guide(&context->residency);
    }
    return CAPU_OK;
}

/* Whether the active guide has its pages for other tensors from now on. */
static bool is_passed_on(const capu_context *context, const struct tensor *tensor)
{
    return context->guided.active->guide->tensors[tensor->guide_index].passes_pages_on;
}

/* Takes an allocation away from its user: it departs, or its slot rests. On failure it is
   as before. */
static capu_status release_allocation(capu_context *context, struct allocation *allocation)
{
    struct lane_position used;
    bool is_kept;
    capu_status status = leave_guide_of(context, allocation, &is_kept);

    if (status == CAPU_OK) {
        status = last_use(context, allocation, &used);
    }
    if (status != CAPU_OK) {
        return status;
    }
    status = allocation->page_count > 0 ? departure_reserve(&context->residency) : CAPU_OK;
    if (status != CAPU_OK) {
        return status;
    }
    for (struct tensor *tensor = allocation->first; tensor != NULL; tensor = tensor->next) {
        recovery_note_freed(&context->following, tensor);
        tracker_gone(&context->records, tensor);
        timeline_log_end(&context->records, tensor);
        tensors_remove(&context->memory.tensors, tensor);
    }
    allocation->is_freed = true;
    allocation->freed_iteration = context->iteration.number;
    if (is_kept) {
        context->guided.binding.free_count += is_passed_on(context, allocation->first);
    }
    if (is_kept || recovery_has(&context->following, allocation)) {
        parked_add(&context->residency, allocation); /* replays may still need its contents */
        return CAPU_OK;
    }
    for (struct tensor *tensor = allocation->first; tensor != NULL; tensor = tensor->next) {
        contents_forget(&context->residency, tensor);
    }
    if (allocation->page_count > 0) {
        departure_bury(&context->residency, allocation, used);
        return CAPU_OK;
    }
    slabs_give(context->memory.slabs, allocation->address);
    if (!context->iteration.is_open) {
        slabs_settle(context->memory.slabs);
    }
    allocation_destroy(&context->memory, allocation, context->iteration.is_open);
    return CAPU_OK;
}

capu_status capu_free(capu_context *context, void *address)
{
    capu_status status = context_uncaptured(&context, "capu_free");
    struct allocation *allocation;

    if (status != CAPU_OK || address == NULL) {
        return status;
    }
    status = lookup_allocation(&context->memory, address, "capu_free", &allocation);
    if (status == CAPU_OK) {
        context_note_layout(context, allocation->first);
        status = release_allocation(context, allocation);
    }
    return status != CAPU_OK ? status : settle_call(context);
}

/*
 * Allocating.
 */

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
static void *propose_address(const capu_context *context, uint64_t bytes)
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
    void *proposed = propose_address(context, bytes);
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
static capu_status revive_allocation(capu_context *context, struct allocation *allocation)
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

static capu_status unpark_allocation(capu_context *context, struct allocation *allocation,
                                     struct allocation **out)
{
    capu_status status = revive_allocation(context, allocation);

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
        return is_alike ? unpark_allocation(context, allocation, out) : CAPU_OK;
    }
    if (!is_alike) {
        return departure_wait_buried(&context->residency, allocation);
    }
    status = revive_allocation(context, allocation);
    if (status == CAPU_OK) {
        departure_unbury(&context->residency, allocation);
        *out = allocation;
    }
    return status;
}

static capu_status take_range(capu_context *context, uint64_t bytes, size_t page_count,
                              struct allocation **allocation)
{
    void *proposed = propose_address(context, bytes);
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
    capu_status status = context_uncaptured(&context, "capu_malloc");
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
        return failure_set(&context->failure, CAPU_INVALID, "capu_malloc of zero bytes");
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

/*
 * capu_realloc. Plans know tensors by address and size. So an allocation never becomes smaller, and
 * becomes longer in place where its pages or its slot have room.
 */

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
static capu_status lengthen_allocation(capu_context *context, struct allocation *allocation,
                                       uint64_t bytes)
{
    struct tensor *last = last_tensor(allocation);
    uint64_t before = allocation->bytes;
    capu_status status;

    set_bytes(context, allocation, bytes);
    status = split_lengthen(context, last, bytes);
    if (status != CAPU_OK) {
        set_bytes(context, allocation, before);
        return status;
    }
    return clear_added(context, last_tensor(allocation), bytes - before);
}

/* Divides a new allocation as the old one is. */
static capu_status divide_allocation(capu_context *context, const struct allocation *old,
                                     void *fresh, size_t bytes)
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
static capu_status move_allocation(capu_context *context, struct allocation *old, size_t bytes,
                                   void **address)
{
    struct tensor *from = old->first;
    void *fresh;
    capu_status status = capu_malloc(context, bytes, &fresh);

    if (status != CAPU_OK) {
        return status;
    }
    status = divide_allocation(context, old, fresh, bytes);
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
    capu_status status = context_uncaptured(&context, "capu_realloc");
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
        return failure_set(&context->failure, CAPU_INVALID, "capu_realloc to zero bytes");
    }
    status = lookup_allocation(&context->memory, old, "capu_realloc", &allocation);
    if (status != CAPU_OK) {
        return status;
    }
    if (bytes > reserved_bytes(context, allocation)) {
        return move_allocation(context, allocation, bytes, address);
    }
    if (bytes > allocation->bytes) {
        status = lengthen_allocation(context, allocation, bytes);
    }
    if (status == CAPU_OK) {
        *address = old;
    }
    return status;
}

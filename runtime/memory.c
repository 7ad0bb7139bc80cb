/* Allocations and tensors: see capuchin/memory.h. */
#include "runtime/allocation.h"
#include "runtime/contents.h"
#include "runtime/failure.h"
#include "runtime/internal.h"
#include "runtime/leave.h"
#include "runtime/lookup.h"
#include "runtime/parked.h"
#include "runtime/planning.h"
#include "runtime/recovery.h"
#include "runtime/settle.h"

/* Fresh memory reads as zeros, if the user wants that. */
static capu_status clear_fresh(capu_context *context, struct tensor *tensor)
{
    capu_status status = CAPU_OK;

    if (context->config.clear_fresh == 0) {
        return CAPU_OK;
    }
    tensor->zeroed = context->iteration;
    if (tensor_is_managed(tensor) && context->is_paging) {
        tensor_state_zeroed(tensor);
    } else {
        tensor_state_written(tensor);
        status = device_fill(context->device, context->compute.stream, tensor->address, 0,
                             tensor->bytes);
    }
    if (status == CAPU_OK) {
        status = tracker_mark_end(context, &tensor->used);
    }
    contents_define(context, tensor);
    return failure_check(context, status, "clearing fresh memory");
}

/* The address that the iteration before gave such an allocation; NULL: none. */
static void *propose(const capu_context *context, uint64_t bytes)
{
    return context->label != NULL ? address_memo_propose(&context->label->addresses, bytes) : NULL;
}

/* Takes a slot in a slab, making room for a page if one is needed. */
static capu_status take_slot(capu_context *context, size_t bytes, void **address)
{
    void *proposed = propose(context, bytes);
    capu_status status;

    if (proposed != NULL && slabs_take_at(context->slabs, proposed, bytes) == CAPU_OK) {
        *address = proposed;
        return CAPU_OK;
    }
    if (slabs_needs_page(context->slabs, bytes)) {
        context->operands.stamp++;
        status = pager_make_room(context, 1);
        if (status != CAPU_OK) {
            return status;
        }
    }
    status = slabs_take(context->slabs, bytes, address);
    if (status == CAPU_OVER_BUDGET) {
        /* The device has less than the budget, as is known now. */
        status = pager_make_room(context, 1);
        if (status != CAPU_OK) {
            return status;
        }
        status = slabs_take(context->slabs, bytes, address);
    }
    return failure_check(context, status, "taking memory for a small tensor");
}

/* Gives a freed allocation of one tensor to the user again, undescribed. */
static capu_status revive(capu_context *context, struct allocation *allocation)
{
    struct tensor *tensor = allocation->first;

    if (tensors_add(&context->tensors, tensor) != CAPU_OK) {
        return failure_set(context, CAPU_NO_HOST_MEMORY, "no memory to note an allocation");
    }
    allocation->is_freed = false;
    tensor->name = NULL;
    tensor->kind = CAPU_KIND_UNKNOWN;
    tensor->hint = CAPU_HINT_NONE;
    tensor->is_persistent = true;
    tensor->is_carried = false;
    tensor->overwrites = 0;
    tensor->record_stamp = 0;
    return CAPU_OK;
}

static capu_status unpark(capu_context *context, struct allocation *allocation,
                          struct allocation **out)
{
    capu_status status = revive(context, allocation);

    if (status == CAPU_OK) {
        contents_forget(context, allocation->first);
        parked_remove(context, allocation);
        *out = allocation;
    }
    return status;
}

/* The allocation that had this address when the last iteration allocated it, still mapped. NULL if
   there is none; then the address may be free all the same. */
static capu_status take_back(capu_context *context, void *address, uint64_t bytes,
                             struct allocation **out)
{
    struct tensor *tensor = tensors_find_freed(&context->tensors, address);
    struct allocation *allocation;
    bool is_alike;
    capu_status status;

    *out = NULL;
    if (tensor == NULL ||
        (tensor->allocation->departure == NULL && !tensor->allocation->is_parked) ||
        tensor->allocation->freed_iteration >= context->iteration) {
        return CAPU_OK;
    }
    allocation = tensor->allocation;
    is_alike = allocation->bytes == bytes && allocation->edge_pages == NULL &&
               allocation->first->next == NULL;
    if (allocation->is_parked) {
        /* The guide needs the addresses of any other as they are. */
        return is_alike ? unpark(context, allocation, out) : CAPU_OK;
    }
    if (!is_alike) {
        return departure_wait_buried(context, allocation);
    }
    status = revive(context, allocation);
    if (status == CAPU_OK) {
        departure_unbury(context, allocation);
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
        status = ranges_take_at(context->ranges, proposed, page_count);
    }
    if (status != CAPU_OK) {
        status = ranges_take(context->ranges, page_count, &address);
    }
    if (status != CAPU_OK) {
        return failure_set(context, status, "no addresses for %llu bytes",
                           (unsigned long long)bytes);
    }
    status = allocation_create(context, address, bytes, page_count, allocation);
    if (status != CAPU_OK) {
        ranges_give(context->ranges, address, page_count, false);
        return failure_set(context, status, "no memory to note an allocation");
    }
    return CAPU_OK;
}

/* Mode off: everything is resident from the start. */
static capu_status map_at_once(capu_context *context, struct allocation *allocation)
{
    capu_status status = pager_make_room(context, allocation->page_count);

    if (status == CAPU_OVER_BUDGET) {
        failure_set(context, status,
                    "%llu bytes do not fit: %zu of %zu pages are taken, and mode off evicts "
                    "nothing",
                    (unsigned long long)allocation->bytes, pages_out(context->pages),
                    pages_limit(context->pages));
    }
    return status != CAPU_OK ? status : pager_bring(context, allocation->first, false);
}

capu_status capu_malloc(capu_context *context, size_t bytes, void **address)
{
    uint64_t page_bytes;
    struct allocation *allocation = NULL;
    capu_status status = context_ready(context, "capu_malloc");
    void *slot;

    if (status != CAPU_OK) {
        return status;
    }
    page_bytes = pages_bytes_each(context->pages);
    if (address == NULL) {
        return failure_set(context, CAPU_INVALID, "capu_malloc: no place for the address");
    }
    if (bytes == 0) {
        return failure_set(context, CAPU_ZERO_BYTES, "capu_malloc of zero bytes");
    }
    if (bytes > INT64_MAX / 2) {
        return failure_set(context, CAPU_TOO_LARGE, "capu_malloc of %zu bytes", bytes);
    }
    if (bytes < context->config.slab_threshold_bytes) {
        status = take_slot(context, bytes, &slot);
        if (status == CAPU_OK) {
            status = allocation_create(context, slot, bytes, 0, &allocation);
            if (status != CAPU_OK) {
                slabs_give(context->slabs, slot);
                failure_set(context, status, "no memory to note an allocation");
            }
        }
    } else {
        status = take_range(context, bytes, (size_t)((bytes + page_bytes - 1) / page_bytes),
                            &allocation);
    }
    if (status == CAPU_OK && !context->is_paging && allocation->page_count > 0 &&
        !tensor_is_mapped(allocation->first)) {
        status = map_at_once(context, allocation);
    }
    if (status == CAPU_OK) {
        status = clear_fresh(context, allocation->first);
    }
    if (status != CAPU_OK) {
        if (allocation != NULL) {
            allocation_release(context, allocation);
        }
        return status;
    }
    if (context->label != NULL) {
        address_memo_note(&context->label->addresses, allocation->address, bytes);
    }
    *address = allocation->address;
    return CAPU_OK;
}

/* The position behind the last use of any of its tensors. */
static capu_status last_use(capu_context *context, const struct allocation *allocation,
                            struct lane_position *used)
{
    *used = (struct lane_position){0};
    if (!context->is_tracking || allocation->edge_pages != NULL) {
        return failure_check(context, tracker_mark_end(context, used),
                             "marking the compute stream");
    }
    for (const struct tensor *tensor = allocation->first; tensor != NULL; tensor = tensor->next) {
        if (tensor->used.sequence > used->sequence) {
            *used = tensor->used;
        }
    }
    return CAPU_OK;
}

/* Whether the guide in force keeps the allocation when it is freed: a whole one, freed where its
   iteration frees it. Any other that it knows ends the guide's force; where parts share pages,
   replays may still write those. */
static capu_status leave_guide_of(capu_context *context, struct allocation *allocation,
                                  bool *is_kept)
{
    bool shares_pages = allocation->edge_pages != NULL && allocation->first->next != NULL;
    bool is_placed = false;

    for (struct tensor *tensor = allocation->first; tensor != NULL; tensor = tensor->next) {
        is_placed = is_placed || tensor_is_placed(tensor);
    }
    *is_kept = is_placed && context->in_iteration && allocation->first->next == NULL;
    if ((is_placed && !*is_kept) || (shares_pages && context->in_iteration)) {
        return leave_guide(context);
    }
    return CAPU_OK;
}

capu_status allocation_release(capu_context *context, struct allocation *allocation)
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
    status = allocation->page_count > 0 ? departure_reserve(context) : CAPU_OK;
    if (status != CAPU_OK) {
        return status;
    }
    for (struct tensor *tensor = allocation->first; tensor != NULL; tensor = tensor->next) {
        recovery_note_freed(context, tensor);
        tracker_gone(context, tensor);
        tensors_remove(&context->tensors, tensor);
    }
    allocation->is_freed = true;
    allocation->freed_iteration = context->iteration;
    if (is_kept || recovery_has(context, allocation)) {
        parked_add(context, allocation); /* replays may still need what is in it */
        return CAPU_OK;
    }
    for (struct tensor *tensor = allocation->first; tensor != NULL; tensor = tensor->next) {
        contents_forget(context, tensor);
    }
    if (allocation->page_count > 0) {
        departure_bury(context, allocation, used);
        return CAPU_OK;
    }
    slabs_give(context->slabs, allocation->address);
    if (!context->in_iteration) {
        slabs_settle(context->slabs);
    }
    allocation_destroy(context, allocation);
    return CAPU_OK;
}

capu_status capu_free(capu_context *context, void *address)
{
    capu_status status = context_ready(context, "capu_free");
    struct tensor *tensor;

    if (status != CAPU_OK || address == NULL) {
        return status;
    }
    status = lookup_tensor(context, address, "capu_free", &tensor);
    if (status != CAPU_OK) {
        return status;
    }
    if (tensor->allocation->address != address) {
        return failure_set(context, CAPU_UNKNOWN_ADDRESS,
                           "capu_free: %p lies inside the allocation at %p", address,
                           tensor->allocation->address);
    }
    status = allocation_release(context, tensor->allocation);
    return status != CAPU_OK ? status : settle_unrecorded(context);
}

static capu_status check_info(capu_context *context, const capu_tensor_info *info)
{
    const struct {
        const char *name;
        uint32_t value;
        uint32_t most;
    } fields[] = {{"kind", info->kind, CAPU_INPUT},
                  {"lifetime", info->lifetime, CAPU_TRANSIENT},
                  {"hint", info->hint, CAPU_HINT_RECOMPUTE},
                  {"reserved", info->reserved, 0}};

    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        if (fields[i].value > fields[i].most) {
            return failure_set(context, CAPU_INVALID,
                               "capu_tensor_describe as '%s': %s is %u, and at most %u",
                               info->name != NULL ? info->name : "", fields[i].name,
                               fields[i].value, fields[i].most);
        }
    }
    return CAPU_OK;
}

/* Reads a caller's info and says what is wrong with it. */
static capu_status read_info(capu_context *context, const capu_tensor_info *from,
                             capu_tensor_info *info)
{
    if (from == NULL) {
        return failure_set(context, CAPU_INVALID, "no tensor info was given");
    }
    if (!struct_read(info, sizeof(*info), from, from->size)) {
        return failure_set(context, CAPU_WRONG_STRUCT,
                           "a capu_tensor_info of %zu bytes; this library's is %zu", from->size,
                           sizeof(*info));
    }
    return check_info(context, info);
}

static bool is_persistent(const capu_tensor_info *info)
{
    return info->lifetime == CAPU_PERSISTENT ||
           (info->lifetime == CAPU_LIFETIME_DEFAULT &&
            (info->kind == CAPU_KIND_UNKNOWN || info->kind == CAPU_PARAMETER ||
             info->kind == CAPU_OPTIMIZER));
}

capu_status capu_tensor_describe(capu_context *context, const void *address,
                                 const capu_tensor_info *info)
{
    capu_status status = context_ready(context, "capu_tensor_describe");
    struct tensor *tensor;
    capu_tensor_info copy;
    const char *name = NULL;
    bool becomes_persistent;

    if (status == CAPU_OK) {
        status = read_info(context, info, &copy);
    }
    if (status == CAPU_OK) {
        status = lookup_tensor(context, address, "capu_tensor_describe", &tensor);
    }
    if (status != CAPU_OK) {
        return status;
    }
    if (copy.name != NULL) {
        name = names_intern(&context->names, copy.name);
        if (name == NULL) {
            return failure_set(context, CAPU_NO_HOST_MEMORY, "no memory for a tensor's name");
        }
        tensor->name = name;
    }
    tensor->kind = copy.kind;
    tensor->hint = copy.hint;
    becomes_persistent = !tensor->is_persistent && is_persistent(&copy);
    tensor->is_persistent = is_persistent(&copy);
    if (tensor_is_defined(tensor)) {
        contents_define(context, tensor);
    }
    if (becomes_persistent && !tensor->is_read_after) {
        /* Plans, and records to plan for, take it for dead behind its last access. */
        tensor->is_read_after = true;
        return planning_forget(context, tensor->address);
    }
    return CAPU_OK;
}

capu_status capu_tensor_query(capu_context *context, const void *address, capu_tensor_state *state)
{
    capu_status status = context_usable(context);
    struct tensor *tensor;
    capu_tensor_state now = {0};

    if (status != CAPU_OK) {
        return status;
    }
    if (state == NULL) {
        return failure_set(context, CAPU_INVALID, "capu_tensor_query: no place for the state");
    }
    status = lookup_tensor(context, address, "capu_tensor_query", &tensor);
    if (status != CAPU_OK) {
        return status;
    }
    now.name = lookup_name(context, tensor);
    now.address = tensor->address;
    now.bytes = tensor->bytes;
    now.fixed_bytes = tensor->bytes - tensor->span_bytes;
    now.kind = tensor->kind;
    now.hint = tensor->hint;
    now.is_persistent = tensor->is_persistent;
    now.is_resident = tensor_is_mapped(tensor) || !tensor_is_managed(tensor);
    now.is_defined = tensor_is_defined(tensor);
    now.has_host_copy = tensor_on_host(tensor);
    now.version = tensor->version;
    if (!struct_write(state, state->size, &now, sizeof(now))) {
        return failure_set(context, CAPU_WRONG_STRUCT,
                           "a capu_tensor_state of %zu bytes; this library's is %zu", state->size,
                           sizeof(now));
    }
    return CAPU_OK;
}

/* Freeing: takes allocations away from their users. See capuchin/memory.h. */
#include "runtime/api/release.h"

#include "runtime/api/context.h"
#include "runtime/context/failure.h"
#include "runtime/follow/recovery.h"
#include "runtime/issue/settle.h"
#include "runtime/residency/departure.h"
#include "runtime/residency/leave.h"
#include "runtime/residency/swap.h"
#include "runtime/tensor/memory.h"

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

capu_status release_allocation(capu_context *context, struct allocation *allocation)
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
    capu_status status = context_uncaptured(context, "capu_free");
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

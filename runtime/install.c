/* From the tensors' own pages to the guide's and back, see install.h. */
#include "runtime/install.h"

#include "runtime/failure.h"
#include "runtime/feedback.h"
#include "runtime/internal.h"
#include "runtime/leave.h"
#include "runtime/page_walk.h"
#include "runtime/parked.h"
#include "runtime/swap.h"

#include <stdlib.h>

static capu_status drain(capu_context *context)
{
    struct lane *lanes[] = {&context->compute, &context->d2h, &context->h2d};
    capu_status status = CAPU_OK;

    for (size_t i = 0; i < sizeof(lanes) / sizeof(lanes[0]) && status == CAPU_OK; i++) {
        status = failure_check(context, lane_synchronize(lanes[i]), "waiting to change plans");
    }
    while (status == CAPU_OK && departures_any(context)) {
        status = departures_wait_oldest(context);
    }
    return status;
}

/* The tensor as it was recorded, live or parked; NULL: there is none. */
static struct tensor *find_tensor(capu_context *context, const struct guide_tensor *planned)
{
    struct tensor *tensor = tensors_find(&context->tensors, planned->address);

    if (tensor == NULL) {
        tensor = tensors_find_freed(&context->tensors, planned->address);
        if (tensor != NULL && !tensor->allocation->is_parked) {
            tensor = NULL;
        }
    }
    if (tensor == NULL || tensor->address != planned->address || tensor->bytes != planned->bytes ||
        tensor->page_count != planned->page_count) {
        return NULL;
    }
    return tensor;
}

/* A guide that is not in force knows no tensors and no pages. */
static void forget_bindings(struct guide *guide)
{
    for (uint32_t i = 0; i < guide->tensor_count; i++) {
        guide->tensors[i].tensor = NULL;
    }
    for (uint32_t page = 0; page < guide->page_count; page++) {
        guide->pages[page] = DEVICE_NO_PAGE;
    }
}

/* Another tensor may have taken the place of the one that was recorded, and is to be kept where the
   plan takes it for dead behind its last access. */
static bool is_kept_too_short(const struct guide_tensor *planned)
{
    const struct tensor *tensor = planned->tensor;

    return !planned->is_kept && !tensor->allocation->is_freed &&
           (tensor->is_persistent || tensor->is_read_after);
}

/* Every planned tensor, and a parked allocation for each that only lives inside iterations. */
static capu_status find_tensors(capu_context *context, struct guide *guide)
{
    for (uint32_t i = 0; i < guide->tensor_count; i++) {
        struct guide_tensor *planned = &guide->tensors[i];
        struct allocation *allocation;
        capu_status status;

        if (planned->page_count == 0) {
            continue;
        }
        planned->tensor = find_tensor(context, planned);
        if (planned->tensor == NULL && !planned->is_split) {
            status = parked_create(context, planned->address, planned->bytes, planned->page_count,
                                   &allocation);
            if (status == CAPU_OK) {
                planned->tensor = allocation->first;
            }
        }
        if (planned->tensor == NULL || is_kept_too_short(planned)) {
            return failure_set(context, CAPU_NOT_READY, "the plan's tensor '%s' is gone",
                               planned->name != NULL ? planned->name : "");
        }
        planned->tensor->guide_index = i;
        planned->tensor->is_owed = false;
    }
    return CAPU_OK;
}

static capu_status take_blocks(capu_context *context, struct guide *guide)
{
    capu_status status = CAPU_OK;

    for (uint32_t i = 0; i < guide->tensor_count && status == CAPU_OK; i++) {
        struct tensor *tensor = guide->tensors[i].tensor;

        if (tensor == NULL || !guide->tensors[i].is_copied) {
            continue;
        }
        if (tensor->host.extent_count == 0) {
            status = swap_take_block(context, tensor);
        }
        tensor->keeps_block = status == CAPU_OK;
    }
    return status;
}

/* What the plan starts without, or on the host, leaves its pages; what it starts with is out of the
   pager's reach. */
static capu_status clear_stage(capu_context *context, struct guide *guide)
{
    capu_status status = CAPU_OK;

    for (uint32_t i = 0; i < guide->tensor_count && status == CAPU_OK; i++) {
        struct tensor *tensor = guide->tensors[i].tensor;

        if (tensor == NULL || !tensor->is_mapped) {
            continue;
        }
        if (guide->tensors[i].starts_resident) {
            tensor_list_remove(tensor, RESIDENCY);
        } else {
            status = pager_evict(context, tensor);
        }
    }
    while (status == CAPU_OK && departures_any(context)) {
        status = departures_wait_oldest(context);
    }
    return status;
}

/* Numbers of tensors that are where they should be get those pages, the others fresh ones. */
static capu_status bind_pages(capu_context *context, struct guide *guide)
{
    size_t missing = guide->page_count;
    device_page *fresh;
    size_t next = 0;
    capu_status status;

    for (uint32_t i = 0; i < guide->tensor_count; i++) {
        struct tensor *tensor = guide->tensors[i].tensor;
        struct page_walk walk = page_walk_start(guide, i);

        for (size_t p = 0; tensor != NULL && tensor->is_mapped && p < tensor->page_count; p++) {
            guide->pages[page_walk_next(&walk)] = tensor->pages[p];
            missing--;
        }
    }
    fresh = malloc((missing + 1) * sizeof(*fresh));
    if (fresh == NULL) {
        return failure_set(context, CAPU_NO_HOST_MEMORY, "no memory to place a plan");
    }
    context->operands.stamp++;
    status = pager_make_room(context, missing);
    if (status == CAPU_OK) {
        status = failure_check(context, pages_take(context->pages, missing, fresh),
                               "taking the plan's pages");
    }
    for (uint32_t page = 0; page < guide->page_count && status == CAPU_OK; page++) {
        if (guide->pages[page] == DEVICE_NO_PAGE) {
            guide->pages[page] = fresh[next++];
        }
    }
    free(fresh);
    return status;
}

static capu_status map_tensor(capu_context *context, struct guide *guide, uint32_t index)
{
    struct guide_tensor *planned = &guide->tensors[index];
    struct tensor *tensor = planned->tensor;
    bool holds = tensor->is_mapped;
    capu_status status = CAPU_OK;

    if (!holds) {
        struct page_walk walk = page_walk_start(guide, index);

        for (size_t p = 0; p < tensor->page_count; p++) {
            tensor->pages[p] = guide->pages[page_walk_next(&walk)];
        }
        if (planned->starts_resident || context->config.strict == 0) {
            status = device_map(context->device, tensor->span, tensor->pages, tensor->page_count);
        }
    }
    if (status != CAPU_OK) {
        return failure_check(context, status, "mapping a plan's tensor");
    }
    tensor->is_placed = true;
    tensor->is_mapped = planned->starts_resident;
    planned->is_arriving = !holds && tensor->is_mapped && tensor->is_defined && tensor->on_host;
    if (planned->is_arriving) {
        status = swap_in(context, tensor);
    }
    return status;
}

capu_status guide_install(capu_context *context, struct guide *guide)
{
    uint64_t start = device_now_ns(context->device);
    capu_status status = drain(context);

    forget_bindings(guide);
    if (status == CAPU_OK) {
        parked_clear(context);
        status = drain(context);
    }
    if (status == CAPU_OK) {
        status = find_tensors(context, guide);
    }
    if (status == CAPU_OK) {
        status = take_blocks(context, guide);
    }
    if (status == CAPU_OK) {
        status = clear_stage(context, guide);
    }
    if (status == CAPU_OK) {
        status = bind_pages(context, guide);
    }
    context->guide = guide;
    for (uint32_t i = 0; i < guide->tensor_count && status == CAPU_OK; i++) {
        if (guide->tensors[i].tensor != NULL) {
            status = map_tensor(context, guide, i);
        }
    }
    if (status != CAPU_OK) {
        leave_uninstall(context);
        return status;
    }
    guide->next = 0;
    feedback_start(guide);
    context->install_ns += device_now_ns(context->device) - start;
    return CAPU_OK;
}

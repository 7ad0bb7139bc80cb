/* Leaving guides, see leave.h. */
#include "runtime/residency/leave.h"

#include "base/assert.h"
#include "runtime/context/failure.h"
#include "runtime/context/internal.h"
#include "runtime/guide/owed.h"
#include "runtime/guide/page_walk.h"
#include "runtime/residency/parked.h"
#include "runtime/residency/stock.h"
#include "runtime/residency/swap.h"
#include "runtime/residency/victims.h"
#include "runtime/strict/strict.h"

/* Notes for each page which tensor took it last. */
static void note_newest(capu_context *context, const struct guide *guide)
{
    struct binding *binding = &context->guided.binding;

    for (uint32_t page = 0; page < guide->page_count; page++) {
        binding->newest[page] = 0;
    }
    for (uint32_t i = 0; i < guide->tensor_count; i++) {
        const struct bound_tensor *bound = &binding->tensors[i];
        struct page_walk walk = page_walk_start(guide, i);

        for (size_t p = 0;
             !guide->is_unplaced && bound->taken > 0 && p < guide->tensors[i].page_count; p++) {
            uint32_t page = page_walk_next(&walk);

            if (bound->taken > binding->newest[page]) {
                binding->newest[page] = bound->taken;
            }
        }
    }
}

/* Whether the pages that a tensor gave up still have its newest contents. What the program has
   freed is of use only if it is owed. */
static bool has_contents_left(const capu_context *context, const struct guide *guide,
                              uint32_t index)
{
    const struct bound_tensor *bound = &context->guided.binding.tensors[index];
    const struct tensor *tensor = bound->tensor;
    struct page_walk walk = page_walk_start(guide, index);

    if (tensor->state.pages != PAGES_PLACED_OUT || !tensor_is_lost(tensor) ||
        !bound->has_left_newest || (tensor->allocation->is_freed && !tensor_is_owed(tensor))) {
        return false;
    }
    if (guide->is_unplaced) {
        return stock_has_left(context, index);
    }
    for (size_t p = 0; p < tensor->page_count; p++) {
        if (context->guided.binding.newest[page_walk_next(&walk)] > bound->taken) {
            return false;
        }
    }
    return true;
}

/* Gives a tensor its contents back if they are still there. Nothing is lost if that fails which was
   not given up before. */
static void regain(capu_context *context, const struct guide *guide, uint32_t index)
{
    struct tensor *tensor = context->guided.binding.tensors[index].tensor;

    if (has_contents_left(context, guide, index) &&
        (guide->is_unplaced || strict_map(&context->strict, tensor) == CAPU_OK)) {
        stock_keep(context, index);
        tensor_state_regains(tensor);
    }
}

/* Unmaps a tensor that does not hold its pages, if it is mapped. */
static capu_status unmap_tensor(capu_context *context, const struct guide *guide, uint32_t index)
{
    struct tensor *tensor = context->guided.binding.tensors[index].tensor;
    capu_status status;

    if (guide->is_unplaced) {
        return stock_has_left(context, index) ? stock_unmap(context, index) : CAPU_OK;
    }
    if (!tensor_is_placed(tensor) || tensor_is_mapped(tensor) || strict_is_on(&context->settings)) {
        return CAPU_OK;
    }
    status = device_unmap(context->lanes.device, tensor->span, tensor->page_count);
    TRACKER_ADD(&context->records, unmap_count, status == CAPU_OK);
    return status;
}

/* A tensor that does not hold its pages is unmapped. The pages of one that does are its own now,
   and are taken out of the binding. */
static void release_tensor(capu_context *context, const struct guide *guide, uint32_t index,
                           capu_status *status)
{
    struct tensor *tensor = context->guided.binding.tensors[index].tensor;
    struct page_walk walk = page_walk_start(guide, index);
    capu_status now = unmap_tensor(context, guide, index);

    /* Tried twice, because a range that stays mapped to pages of other tensors ends the context. */
    if (now != CAPU_OK) {
        now = unmap_tensor(context, guide, index);
    }
    *status = *status != CAPU_OK ? *status : now;
    tensor_state_unplaced(tensor);
    for (size_t p = 0; !guide->is_unplaced && tensor_is_mapped(tensor) && p < tensor->page_count;
         p++) {
        context->guided.binding.pages[page_walk_next(&walk)] = DEVICE_NO_PAGE;
    }
    victims_touch(context, tensor);
}

/* Blocks that hold a copy stay with it. */
static void give_blocks(capu_context *context, const struct guide *guide)
{
    for (uint32_t i = 0; i < guide->tensor_count; i++) {
        struct tensor *tensor = context->guided.binding.tensors[i].tensor;

        if (tensor != NULL && tensor->keeps_block) {
            swap_unreserve_block(context, tensor);
        }
    }
}

/* Parked allocations that this iteration has not asked for are freed next, so recovery must not
   find them. */
static void forget_parked(capu_context *context, const struct guide *guide)
{
    for (uint32_t i = 0; i < guide->tensor_count; i++) {
        const struct tensor *tensor = context->guided.binding.tensors[i].tensor;

        if (tensor != NULL && tensor->allocation->is_parked &&
            !parked_is_in_use(context, tensor->allocation)) {
            context->guided.binding.tensors[i].tensor = NULL;
        }
    }
}

capu_status leave_uninstall(capu_context *context)
{
    const struct guide *guide;
    capu_status status = CAPU_OK;

    ASSERT(context->guided.active != NULL);
    guide = context->guided.active->guide;
    capture_give_up(&context->lanes, "the iteration has left its plan");
    lanes_quiesce_all(&context->lanes);
    context->guided.active = NULL;
    note_newest(context, guide);
    for (uint32_t i = 0; i < guide->tensor_count; i++) {
        if (context->guided.binding.tensors[i].tensor != NULL) {
            regain(context, guide, i);
            release_tensor(context, guide, i, &status);
        }
    }
    for (uint32_t page = 0; page < guide->page_count; page++) {
        if (context->guided.binding.pages[page] != DEVICE_NO_PAGE) {
            pages_give(context->memory.pages, &context->guided.binding.pages[page], 1);
        }
    }
    stock_empty(context);
    give_blocks(context, guide);
    forget_parked(context, guide);
    parked_clear(context);
    status = failure_check(&context->failure, status, "unmapping a plan's tensor");
    if (status != CAPU_OK && context->failure.lost == CAPU_OK) {
        context->failure.lost = CAPU_DEVICE_LOST;
    }
    return context->failure.lost;
}

capu_status leave_guide(capu_context *context)
{
    const struct guide *guide;
    uint32_t executed = context->guided.binding.next;
    bool keeps_contents;
    capu_status status;

    if (context->guided.active == NULL) {
        return CAPU_OK;
    }
    guide = context->guided.active->guide;
    keeps_contents = context->guided.active->keeps_contents;
    status = leave_uninstall(context);
    if (status == CAPU_OK && context->iteration.is_open) {
        if (context->records.tracker.open != NULL) {
            context->records.tracker.open->report.diverged = 1;
            context->records.tracker.open->report.diverged_at = executed;
        }
        owed_start(&context->guided, guide, executed, keeps_contents);
    }
    return status;
}

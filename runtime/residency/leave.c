/* Leaving guides, see residency.h. */
#include "runtime/residency/residency.h"

#include "base/assert.h"
#include "runtime/context/failure.h"
#include "runtime/guide/guide.h"
#include "runtime/guide/owed.h"
#include "runtime/residency/departure.h"
#include "runtime/residency/free_list.h"
#include "runtime/residency/swap.h"
#include "runtime/strict/strict.h"

/* Notes for each page which tensor took it last. */
static void note_newest(struct residency *residency, const struct guide *guide)
{
    struct binding *binding = &residency->guided->binding;

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
static bool has_contents_left(const struct residency *residency, const struct guide *guide,
                              uint32_t index)
{
    const struct bound_tensor *bound = &residency->guided->binding.tensors[index];
    const struct tensor *tensor = bound->tensor;
    struct page_walk walk = page_walk_start(guide, index);

    if (tensor->state.pages != PAGES_PLACED_OUT || !tensor_is_lost(tensor) ||
        !bound->has_left_newest || (tensor->allocation->is_freed && !tensor_is_owed(tensor))) {
        return false;
    }
    if (guide->is_unplaced) {
        return free_list_has_left(residency, index);
    }
    for (size_t p = 0; p < tensor->page_count; p++) {
        if (residency->guided->binding.newest[page_walk_next(&walk)] > bound->taken) {
            return false;
        }
    }
    return true;
}

/* Gives a tensor its contents back if they are still there. Nothing is lost if that fails which was
   not given up before. */
static void regain_contents(struct residency *residency, const struct guide *guide, uint32_t index)
{
    struct tensor *tensor = residency->guided->binding.tensors[index].tensor;

    if (has_contents_left(residency, guide, index) &&
        (guide->is_unplaced || strict_map(residency->strict, tensor) == CAPU_OK)) {
        free_list_keep(residency, index);
        tensor_state_regains(tensor);
    }
}

/* Unmaps a tensor that does not hold its pages, if it is mapped. */
static capu_status unmap_tensor(struct residency *residency, const struct guide *guide,
                                uint32_t index)
{
    struct tensor *tensor = residency->guided->binding.tensors[index].tensor;
    capu_status status;

    if (guide->is_unplaced) {
        return free_list_has_left(residency, index) ? free_list_unmap(residency, index) : CAPU_OK;
    }
    if (!tensor_is_placed(tensor) || tensor_is_mapped(tensor) ||
        strict_is_on(residency->settings)) {
        return CAPU_OK;
    }
    status = device_unmap(residency->lanes->device, tensor->span, tensor->page_count);
    TRACKER_ADD(residency->records, unmap_count, status == CAPU_OK);
    return status;
}

/* A tensor that does not hold its pages is unmapped. The pages of one that does are its own now,
   and are taken out of the binding. */
static void release_tensor(struct residency *residency, const struct guide *guide, uint32_t index,
                           capu_status *status)
{
    struct tensor *tensor = residency->guided->binding.tensors[index].tensor;
    struct page_walk walk = page_walk_start(guide, index);
    capu_status now = unmap_tensor(residency, guide, index);

    /* Tried twice, because a range that stays mapped to pages of other tensors ends the context. */
    if (now != CAPU_OK) {
        now = unmap_tensor(residency, guide, index);
    }
    *status = *status != CAPU_OK ? *status : now;
    tensor_state_unplaced(tensor);
    for (size_t p = 0; !guide->is_unplaced && tensor_is_mapped(tensor) && p < tensor->page_count;
         p++) {
        residency->guided->binding.pages[page_walk_next(&walk)] = DEVICE_NO_PAGE;
    }
    victims_touch(residency, tensor);
}

/* Blocks that hold a copy stay with it. */
static void give_blocks(struct residency *residency, const struct guide *guide)
{
    for (uint32_t i = 0; i < guide->tensor_count; i++) {
        struct tensor *tensor = residency->guided->binding.tensors[i].tensor;

        if (tensor != NULL && tensor->keeps_block) {
            swap_unreserve_block(residency, tensor);
        }
    }
}

/* Parked allocations that this iteration has not asked for are freed next, so recovery must not
   find them. */
static void forget_parked(struct residency *residency, const struct guide *guide)
{
    for (uint32_t i = 0; i < guide->tensor_count; i++) {
        const struct tensor *tensor = residency->guided->binding.tensors[i].tensor;

        if (tensor != NULL && tensor->allocation->is_parked &&
            !parked_is_in_use(residency, tensor->allocation)) {
            residency->guided->binding.tensors[i].tensor = NULL;
        }
    }
}

capu_status leave_uninstall(struct residency *residency)
{
    const struct guide *guide;
    capu_status status = CAPU_OK;

    ASSERT(residency->guided->active != NULL);
    guide = residency->guided->active->guide;
    capture_give_up(residency->lanes, "the iteration has left its plan");
    lanes_quiesce_all(residency->lanes);
    residency->guided->active = NULL;
    note_newest(residency, guide);
    for (uint32_t i = 0; i < guide->tensor_count; i++) {
        if (residency->guided->binding.tensors[i].tensor != NULL) {
            regain_contents(residency, guide, i);
            release_tensor(residency, guide, i, &status);
        }
    }
    for (uint32_t page = 0; page < guide->page_count; page++) {
        if (residency->guided->binding.pages[page] != DEVICE_NO_PAGE) {
            pages_give(residency->memory->pages, &residency->guided->binding.pages[page], 1);
        }
    }
    free_list_empty(residency);
    give_blocks(residency, guide);
    forget_parked(residency, guide);
    parked_clear(residency);
    status = failure_check(residency->failure, status, "unmapping a plan's tensor");
    if (status != CAPU_OK && residency->failure->lost == CAPU_OK) {
        residency->failure->lost = CAPU_DEVICE_LOST;
    }
    return residency->failure->lost;
}

capu_status leave_guide(struct residency *residency)
{
    const struct guide *guide;
    uint32_t executed = residency->guided->binding.next;
    bool keeps_contents;
    capu_status status;

    if (residency->guided->active == NULL) {
        return CAPU_OK;
    }
    guide = residency->guided->active->guide;
    keeps_contents = residency->guided->active->keeps_contents;
    status = leave_uninstall(residency);
    if (status == CAPU_OK && residency->iteration->is_open) {
        if (residency->records->tracker.open != NULL) {
            residency->records->tracker.open->report.diverged = 1;
            residency->records->tracker.open->report.diverged_at = executed;
        }
        owed_start(residency->guided, guide, executed, keeps_contents);
    }
    return status;
}

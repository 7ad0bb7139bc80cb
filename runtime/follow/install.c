/* From the tensors' own pages to the guide's and back, see following.h. */
#include "runtime/follow/following.h"

#include "base/assert.h"
#include "runtime/context/failure.h"
#include "runtime/follow/following.h"
#include "runtime/guide/guide.h"
#include "runtime/residency/departure.h"
#include "runtime/residency/free_list.h"
#include "runtime/residency/pager.h"
#include "runtime/residency/residency.h"
#include "runtime/residency/swap.h"
#include "runtime/strict/strict.h"

#include <stdlib.h>

static capu_status drain_lanes(struct following *following)
{
    struct lane *lanes[] = {&following->lanes->compute, &following->lanes->d2h,
                            &following->lanes->h2d};
    capu_status status = CAPU_OK;

    for (size_t i = 0; i < sizeof(lanes) / sizeof(lanes[0]) && status == CAPU_OK; i++) {
        status = failure_check(following->failure, lane_synchronize(lanes[i]),
                               "waiting to change plans");
    }
    while (status == CAPU_OK && departures_any(following->residency)) {
        status = departures_wait_oldest(following->residency);
    }
    return status;
}

/* The tensor as it was recorded, live or parked; NULL: there is none. */
static struct tensor *find_tensor(struct following *following, const struct guide_tensor *planned)
{
    struct tensor *tensor = tensors_find(&following->memory->tensors, planned->address);

    if (tensor == NULL) {
        tensor = tensors_find_freed(&following->memory->tensors, planned->address);
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

/* Whether the plan would discard the tensor too early. Another tensor may have taken the place of
   the recorded one, and may have to outlive its last access in the iteration. */
static bool is_kept_too_short(const struct guide_tensor *planned, const struct tensor *tensor)
{
    return !planned->is_kept && !tensor->allocation->is_freed &&
           (tensor->is_persistent || tensor->is_read_after);
}

/* The tensor of this number, and where it only lives inside iterations, a parked allocation for it.
   NULL: it is gone. */
static struct tensor *provide_tensor(struct following *following,
                                     const struct guide_tensor *planned)
{
    struct tensor *tensor = find_tensor(following, planned);
    struct allocation *allocation;

    if (tensor == NULL && !planned->is_split &&
        parked_create(following->residency, planned->address, planned->bytes, planned->page_count,
                      &allocation) == CAPU_OK) {
        tensor = allocation->first;
    }
    return tensor;
}

/* Binds every tensor that is managed. */
static capu_status bind_tensors(struct following *following, const struct guide *guide)
{
    for (uint32_t i = 0; i < guide->tensor_count; i++) {
        const struct guide_tensor *planned = &guide->tensors[i];
        struct tensor *tensor;

        if (planned->page_count == 0) {
            continue;
        }
        tensor = provide_tensor(following, planned);
        following->guided->binding.tensors[i].tensor = tensor;
        if (tensor == NULL || is_kept_too_short(planned, tensor)) {
            return failure_set(following->failure, CAPU_NOT_READY, "the plan's tensor '%s' is gone",
                               planned->name != NULL ? planned->name : "");
        }
        tensor->guide_index = i;
        tensor_state_not_owed(tensor);
    }
    return CAPU_OK;
}

static capu_status take_blocks(struct following *following, const struct guide *guide)
{
    capu_status status = CAPU_OK;

    for (uint32_t i = 0; i < guide->tensor_count && status == CAPU_OK; i++) {
        struct tensor *tensor = following->guided->binding.tensors[i].tensor;

        if (tensor == NULL || !guide->tensors[i].is_copied) {
            continue;
        }
        status = swap_reserve_block(following->residency, tensor);
    }
    return status;
}

/* Evicts planned tensors that the plan does not start with. Those that it does start with leave the
   pager's lists, so that they keep their pages. */
static capu_status clear_stage(struct following *following, const struct guide *guide)
{
    capu_status status = CAPU_OK;

    for (uint32_t i = 0; i < guide->tensor_count && status == CAPU_OK; i++) {
        struct tensor *tensor = following->guided->binding.tensors[i].tensor;

        if (tensor == NULL || !tensor_is_mapped(tensor)) {
            continue;
        }
        if (guide->tensors[i].starts_resident) {
            tensor_list_remove(tensor, RESIDENCY);
        } else {
            status = pager_evict(following->residency, tensor);
        }
    }
    while (status == CAPU_OK && departures_any(following->residency)) {
        status = departures_wait_oldest(following->residency);
    }
    return status;
}

/* Binds the page numbers of resident tensors to the pages they have. Returns how many pages they
   have, with or without numbers. */
static size_t bind_resident(struct following *following, const struct guide *guide)
{
    size_t count = 0;

    for (uint32_t i = 0; i < guide->tensor_count; i++) {
        struct tensor *tensor = following->guided->binding.tensors[i].tensor;
        struct page_walk walk = page_walk_start(guide, i);

        if (tensor == NULL || !tensor_is_mapped(tensor)) {
            continue;
        }
        for (size_t p = 0; !guide->is_unplaced && p < tensor->page_count; p++) {
            following->guided->binding.pages[page_walk_next(&walk)] = tensor->pages[p];
        }
        count += tensor->page_count;
    }
    return count;
}

/* Binds all other page numbers to fresh pages, or puts these in the free list. */
static capu_status bind_pages(struct following *following, const struct guide *guide)
{
    size_t missing = guide->page_count - bind_resident(following, guide);
    device_page *fresh;
    size_t next = 0;
    capu_status status;

    fresh = malloc((missing + 1) * sizeof(*fresh));
    if (fresh == NULL) {
        return failure_set(following->failure, CAPU_NO_HOST_MEMORY, "no memory to place a plan");
    }
    victims_spare(&following->residency->victims);
    status = pager_make_room(following->residency, missing);
    if (status == CAPU_OK) {
        status =
            failure_check(following->failure, pages_take(following->memory->pages, missing, fresh),
                          "taking the plan's pages");
    }
    if (status == CAPU_OK && guide->is_unplaced) {
        free_list_fill(following->residency, fresh, missing);
        next = missing;
    }
    for (uint32_t page = 0; page < guide->page_count && next < missing && status == CAPU_OK;
         page++) {
        if (following->guided->binding.pages[page] == DEVICE_NO_PAGE) {
            following->guided->binding.pages[page] = fresh[next++];
        }
    }
    free(fresh);
    return status;
}

/* Maps a tensor to its pages. One that does not start resident is only mapped if its pages are
   placed, and not in strict mode. */
static capu_status map_pages(struct following *following, const struct guide *guide, uint32_t index)
{
    struct tensor *tensor = following->guided->binding.tensors[index].tensor;
    bool starts_resident = guide->tensors[index].starts_resident;
    struct page_walk walk = page_walk_start(guide, index);
    capu_status status = CAPU_OK;

    if (guide->is_unplaced) {
        return starts_resident ? free_list_take(following->residency, tensor) : CAPU_OK;
    }
    for (size_t p = 0; p < tensor->page_count; p++) {
        tensor->pages[p] = following->guided->binding.pages[page_walk_next(&walk)];
    }
    if (starts_resident || !strict_is_on(following->settings)) {
        status =
            device_map(following->lanes->device, tensor->span, tensor->pages, tensor->page_count);
    }
    return failure_check(following->failure, status, "mapping a plan's tensor");
}

static capu_status map_tensor(struct following *following, const struct guide *guide,
                              uint32_t index)
{
    struct bound_tensor *bound = &following->guided->binding.tensors[index];
    struct tensor *tensor = bound->tensor;
    bool starts_resident = guide->tensors[index].starts_resident;
    bool holds = tensor_is_mapped(tensor);
    capu_status status = CAPU_OK;

    if (!holds) {
        status = map_pages(following, guide, index);
    }
    if (status != CAPU_OK) {
        return status;
    }
    tensor_state_placed(tensor, starts_resident);
    bound->is_arriving = !holds && tensor_is_mapped(tensor) && tensor_on_host(tensor);
    if (bound->is_arriving) {
        status = swap_in(following->residency, tensor);
    }
    return status;
}

/* Maps every bound tensor. From here on the guide is active, and undone as such. */
static capu_status map_tensors(struct following *following, struct plan_entry *entry)
{
    capu_status status = CAPU_OK;

    following->guided->active = entry;
    for (uint32_t i = 0; i < entry->guide->tensor_count && status == CAPU_OK; i++) {
        if (following->guided->binding.tensors[i].tensor != NULL) {
            status = map_tensor(following, entry->guide, i);
        }
    }
    return status;
}

capu_status install_guide(struct following *following, struct plan_entry *entry)
{
    const struct guide *guide = entry->guide;
    uint64_t start = device_now_ns(following->lanes->device);
    uint64_t drained;
    capu_status status;

    ASSERT(following->guided->active == NULL && !following->iteration->is_open);
    if (binding_start(&following->guided->binding, guide) != CAPU_OK ||
        owed_reserve(&following->guided->owed, guide) != CAPU_OK) {
        return failure_set(following->failure, CAPU_NO_HOST_MEMORY, "no memory to install a plan");
    }
    status = drain_lanes(following);
    drained = device_now_ns(following->lanes->device);
    if (status == CAPU_OK) {
        parked_clear(following->residency);
        status = drain_lanes(following);
    }
    if (status == CAPU_OK) {
        status = bind_tensors(following, guide);
    }
    if (status == CAPU_OK) {
        status = take_blocks(following, guide);
    }
    if (status == CAPU_OK) {
        status = clear_stage(following, guide);
    }
    if (status == CAPU_OK) {
        status = bind_pages(following, guide);
    }
    if (status == CAPU_OK) {
        status = map_tensors(following, entry);
    }
    if (status != CAPU_OK) {
        following->guided->active = entry;
        leave_uninstall(following->residency);
        return status;
    }
    following->guided->placement++;
    feedback_start(&entry->feedback);
    entry->change_ns += device_now_ns(following->lanes->device) - drained;
    following->records->install_ns += device_now_ns(following->lanes->device) - start;
    return CAPU_OK;
}

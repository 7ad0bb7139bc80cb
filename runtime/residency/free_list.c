/* Pages of unplaced guides, see free_list.h. */
#include "runtime/residency/free_list.h"

#include "base/assert.h"
#include "runtime/context/failure.h"
#include "runtime/strict/strict.h"
#include "runtime/tensor/order.h"

static struct bound_tensor *bound_at(struct residency *residency, uint32_t index)
{
    return &residency->guided->binding.tensors[index];
}

static void append_bound(struct residency *residency, struct bound_queue *queue, uint32_t index)
{
    struct bound_tensor *bound = bound_at(residency, index);

    ASSERT(bound->queue == NULL);
    bound->queue = queue;
    bound->previous = queue->tail;
    bound->next = 0;
    if (queue->tail != 0) {
        bound_at(residency, queue->tail - 1)->next = index + 1;
    } else {
        queue->head = index + 1;
    }
    queue->tail = index + 1;
}

/* Takes a tensor out of the queue that it is in, if it is in one. */
static void leave_queue(struct residency *residency, uint32_t index)
{
    struct bound_tensor *bound = bound_at(residency, index);
    struct bound_queue *queue = bound->queue;

    if (queue == NULL) {
        return;
    }
    if (bound->previous != 0) {
        bound_at(residency, bound->previous - 1)->next = bound->next;
    } else {
        queue->head = bound->next;
    }
    if (bound->next != 0) {
        bound_at(residency, bound->next - 1)->previous = bound->previous;
    } else {
        queue->tail = bound->previous;
    }
    bound->queue = NULL;
}

void free_list_fill(struct residency *residency, const device_page *pages, size_t count)
{
    pages_put_aside(residency->memory->pages, pages, count);
    residency->guided->binding.free_pages += count;
}

void free_list_empty(struct residency *residency)
{
    pages_give_aside(residency->memory->pages, residency->guided->binding.free_pages);
    residency->guided->binding.free_pages = 0;
}

capu_status free_list_unmap(struct residency *residency, uint32_t index)
{
    struct tensor *tensor = bound_at(residency, index)->tensor;
    capu_status status = device_unmap(residency->lanes->device, tensor->span, tensor->page_count);

    if (status != CAPU_OK) {
        return failure_check(residency->failure, status, "unmapping memory");
    }
    TRACKER_ADD(residency->records, unmap_count, 1);
    leave_queue(residency, index);
    free_list_fill(residency, tensor->pages, tensor->page_count);
    return CAPU_OK;
}

/* Unmaps tensors that are leaving and whose work has completed, until the free list has so many
 * pages.
 */
static capu_status reap_leaving(struct residency *residency, size_t page_count)
{
    uint32_t next = residency->guided->binding.leaving.head;
    capu_status status = CAPU_OK;

    while (next != 0 && residency->guided->binding.free_pages < page_count && status == CAPU_OK) {
        uint32_t index = next - 1;

        next = bound_at(residency, index)->next;
        if (order_is_over(bound_at(residency, index)->tensor)) {
            status = free_list_unmap(residency, index);
        }
    }
    return status;
}

static capu_status wait_for_tensor(struct residency *residency, const struct tensor *tensor)
{
    uint64_t start = device_now_ns(residency->lanes->device);
    capu_status status = order_wait(tensor);

    traffic_host_waited(residency->records, start);
    return failure_check(residency->failure, status, "waiting for pages");
}

capu_status free_list_check(struct residency *residency, const struct tensor *tensor,
                            bool *has_room)
{
    capu_status status = CAPU_OK;

    *has_room = free_list_has_left(residency, tensor->guide_index);
    if (!*has_room) {
        status = reap_leaving(residency, tensor->page_count);
        *has_room = residency->guided->binding.free_pages >= tensor->page_count;
    }
    return status;
}

capu_status free_list_take(struct residency *residency, struct tensor *tensor)
{
    struct binding *binding = &residency->guided->binding;
    bool is_mapped = free_list_has_left(residency, tensor->guide_index);
    capu_status status = CAPU_OK;

    leave_queue(residency, tensor->guide_index);
    if (is_mapped) {
        return CAPU_OK;
    }
    status = reap_leaving(residency, tensor->page_count);
    while (status == CAPU_OK && binding->free_pages < tensor->page_count) {
        if (binding->leaving.head == 0) {
            return CAPU_NOT_READY;
        }
        status = wait_for_tensor(residency, bound_at(residency, binding->leaving.head - 1)->tensor);
        status = status == CAPU_OK ? reap_leaving(residency, tensor->page_count) : status;
    }
    if (status != CAPU_OK) {
        return status;
    }
    pages_take_aside(residency->memory->pages, tensor->page_count, tensor->pages);
    binding->free_pages -= tensor->page_count;
    status = device_map(residency->lanes->device, tensor->span, tensor->pages, tensor->page_count);
    if (status != CAPU_OK) {
        free_list_fill(residency, tensor->pages, tensor->page_count);
        return failure_check(residency->failure, status, "mapping device memory");
    }
    TRACKER_ADD(residency->records, map_count, 1);
    return CAPU_OK;
}

capu_status free_list_give(struct residency *residency, struct tensor *tensor)
{
    capu_status status = CAPU_OK;

    leave_queue(residency, tensor->guide_index);
    if (!tensor_is_mapped(tensor)) {
        return CAPU_OK;
    }
    if (strict_is_on(residency->settings)) {
        status = wait_for_tensor(residency, tensor);
        return status == CAPU_OK ? free_list_unmap(residency, tensor->guide_index) : status;
    }
    append_bound(residency, &residency->guided->binding.leaving, tensor->guide_index);
    return CAPU_OK;
}

void free_list_expect(struct residency *residency, const struct tensor *tensor)
{
    append_bound(residency, &residency->guided->binding.expected, tensor->guide_index);
}

struct tensor *free_list_expected(const struct residency *residency)
{
    uint32_t head = residency->guided->binding.expected.head;

    return head != 0 ? residency->guided->binding.tensors[head - 1].tensor : NULL;
}

bool free_list_is_expected(const struct residency *residency, const struct tensor *tensor)
{
    return residency->guided->binding.tensors[tensor->guide_index].queue ==
           &residency->guided->binding.expected;
}

bool free_list_has_left(const struct residency *residency, uint32_t index)
{
    return residency->guided->binding.tensors[index].queue == &residency->guided->binding.leaving;
}

void free_list_keep(struct residency *residency, uint32_t index)
{
    leave_queue(residency, index);
}

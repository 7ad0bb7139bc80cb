/* Pages of unplaced guides, see stock.h. */
#include "runtime/residency/stock.h"

#include "base/assert.h"
#include "runtime/context/failure.h"
#include "runtime/strict/strict.h"
#include "runtime/tensor/order.h"

static struct bound_tensor *bound_at(capu_context *context, uint32_t index)
{
    return &context->guided.binding.tensors[index];
}

static void append(capu_context *context, struct bound_queue *queue, uint32_t index)
{
    struct bound_tensor *bound = bound_at(context, index);

    ASSERT(bound->queue == NULL);
    bound->queue = queue;
    bound->previous = queue->tail;
    bound->next = 0;
    if (queue->tail != 0) {
        bound_at(context, queue->tail - 1)->next = index + 1;
    } else {
        queue->head = index + 1;
    }
    queue->tail = index + 1;
}

/* Takes a tensor out of the queue that it is in, if it is in one. */
static void leave_queue(capu_context *context, uint32_t index)
{
    struct bound_tensor *bound = bound_at(context, index);
    struct bound_queue *queue = bound->queue;

    if (queue == NULL) {
        return;
    }
    if (bound->previous != 0) {
        bound_at(context, bound->previous - 1)->next = bound->next;
    } else {
        queue->head = bound->next;
    }
    if (bound->next != 0) {
        bound_at(context, bound->next - 1)->previous = bound->previous;
    } else {
        queue->tail = bound->previous;
    }
    bound->queue = NULL;
}

void stock_fill(capu_context *context, const device_page *pages, size_t count)
{
    pages_put_aside(context->memory.pages, pages, count);
    context->guided.binding.stock_count += count;
}

void stock_empty(capu_context *context)
{
    pages_give_aside(context->memory.pages, context->guided.binding.stock_count);
    context->guided.binding.stock_count = 0;
}

capu_status stock_unmap(capu_context *context, uint32_t index)
{
    struct tensor *tensor = bound_at(context, index)->tensor;
    capu_status status = device_unmap(context->lanes.device, tensor->span, tensor->page_count);

    if (status != CAPU_OK) {
        return failure_check(&context->failure, status, "unmapping memory");
    }
    TRACKER_ADD(&context->records, unmap_count, 1);
    leave_queue(context, index);
    stock_fill(context, tensor->pages, tensor->page_count);
    return CAPU_OK;
}

/* Unmaps tensors that are leaving and whose work has completed, until the stock has so many pages.
 */
static capu_status reap(capu_context *context, size_t page_count)
{
    uint32_t next = context->guided.binding.leaving.head;
    capu_status status = CAPU_OK;

    while (next != 0 && context->guided.binding.stock_count < page_count && status == CAPU_OK) {
        uint32_t index = next - 1;

        next = bound_at(context, index)->next;
        if (order_is_over(bound_at(context, index)->tensor)) {
            status = stock_unmap(context, index);
        }
    }
    return status;
}

static capu_status wait_for(capu_context *context, const struct tensor *tensor)
{
    uint64_t start = device_now_ns(context->lanes.device);
    capu_status status = order_wait(tensor);

    traffic_host_waited(&context->records, start);
    context->operands.has_waited = true;
    return failure_check(&context->failure, status, "waiting for pages");
}

capu_status stock_check(capu_context *context, const struct tensor *tensor, bool *has_room)
{
    capu_status status = CAPU_OK;

    *has_room = stock_has_left(context, tensor->guide_index);
    if (!*has_room) {
        status = reap(context, tensor->page_count);
        *has_room = context->guided.binding.stock_count >= tensor->page_count;
    }
    return status;
}

capu_status stock_take(capu_context *context, struct tensor *tensor)
{
    struct binding *binding = &context->guided.binding;
    bool is_mapped = stock_has_left(context, tensor->guide_index);
    capu_status status = CAPU_OK;

    leave_queue(context, tensor->guide_index);
    if (is_mapped) {
        return CAPU_OK;
    }
    status = reap(context, tensor->page_count);
    while (status == CAPU_OK && binding->stock_count < tensor->page_count) {
        if (binding->leaving.head == 0) {
            return CAPU_NOT_READY;
        }
        status = wait_for(context, bound_at(context, binding->leaving.head - 1)->tensor);
        status = status == CAPU_OK ? reap(context, tensor->page_count) : status;
    }
    if (status != CAPU_OK) {
        return status;
    }
    pages_take_aside(context->memory.pages, tensor->page_count, tensor->pages);
    binding->stock_count -= tensor->page_count;
    status = device_map(context->lanes.device, tensor->span, tensor->pages, tensor->page_count);
    if (status != CAPU_OK) {
        stock_fill(context, tensor->pages, tensor->page_count);
        return failure_check(&context->failure, status, "mapping device memory");
    }
    TRACKER_ADD(&context->records, map_count, 1);
    return CAPU_OK;
}

capu_status stock_give(capu_context *context, struct tensor *tensor)
{
    capu_status status = CAPU_OK;

    leave_queue(context, tensor->guide_index);
    if (!tensor_is_mapped(tensor)) {
        return CAPU_OK;
    }
    if (strict_is_on(&context->settings)) {
        status = wait_for(context, tensor);
        return status == CAPU_OK ? stock_unmap(context, tensor->guide_index) : status;
    }
    append(context, &context->guided.binding.leaving, tensor->guide_index);
    return CAPU_OK;
}

void stock_expect(capu_context *context, const struct tensor *tensor)
{
    append(context, &context->guided.binding.expected, tensor->guide_index);
}

struct tensor *stock_expected(const capu_context *context)
{
    uint32_t head = context->guided.binding.expected.head;

    return head != 0 ? context->guided.binding.tensors[head - 1].tensor : NULL;
}

bool stock_is_expected(const capu_context *context, const struct tensor *tensor)
{
    return context->guided.binding.tensors[tensor->guide_index].queue ==
           &context->guided.binding.expected;
}

bool stock_has_left(const capu_context *context, uint32_t index)
{
    return context->guided.binding.tensors[index].queue == &context->guided.binding.leaving;
}

void stock_keep(capu_context *context, uint32_t index)
{
    leave_queue(context, index);
}

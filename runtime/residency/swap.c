/* Copying tensors to host memory and back, see swap.h. */
#include "runtime/residency/swap.h"

#include "base/assert.h"
#include "base/size_text.h"
#include "device/marks.h"
#include "runtime/context/failure.h"
#include "runtime/context/internal.h"
#include "runtime/residency/victims.h"
#include "runtime/tensor/lookup.h"
#include "runtime/tensor/order.h"

void swap_give_block(capu_context *context, struct tensor *tensor)
{
    /* If compute has used it since the copy back, `ready` is clear and its last use is later. */
    struct lane_position last = tensor->ready.lane != NULL ? tensor->ready : tensor->used;

    if (tensor->keeps_block || tensor->host.extent_count == 0) {
        return;
    }
    /* A copy back is only issued after the copy out has finished, so one of the two is last. */
    if (!lane_has_passed(tensor->left)) {
        last = tensor->left;
    }
    host_arena_give(context->memory.arena, &tensor->host, last);
}

void swap_drop(capu_context *context, struct tensor *tensor)
{
    if (tensor_on_host(tensor)) {
        tensor_state_copy_dropped(tensor);
        swap_give_block(context, tensor);
    }
}

/* Gives up the host copy of one resident tensor, which becomes dirty. False: there is none. */
static bool drop_clean_copy(capu_context *context)
{
    struct tensor *tensor = context->residency.victims.clean.head;

    /* A tensor whose copy back failed has its contents on the host only. */
    while (tensor != NULL && !tensor_on_device(tensor)) {
        tensor = tensor->residency.next;
    }
    if (tensor == NULL) {
        return false;
    }
    swap_drop(context, tensor);
    victims_touch(context, tensor);
    return true;
}

/* Reports what is short, the memory of the machine or the budget, and how much of it is used. */
static capu_status no_host_room(capu_context *context, struct tensor *tensor, capu_status status)
{
    struct size_text used = size_text(host_arena_used_bytes(context->memory.arena));
    struct size_text bytes = size_text(tensor->span_bytes);

    if (status == CAPU_HOST_OVER_BUDGET) {
        return failure_set(&context->failure, status,
                           "no host memory to evict '%s' to, which has %s: %s of a host budget of "
                           "%s are in use; raise it (CAPUCHIN_HOST_BUDGET), or the device budget",
                           lookup_name(&context->memory, tensor), bytes.text, used.text,
                           size_text(context->settings.config.host_budget_bytes).text);
    }
    return failure_set(&context->failure, status,
                       "no host memory to evict '%s' to, which has %s: %s are in use",
                       lookup_name(&context->memory, tensor), bytes.text, used.text);
}

/* Makes room in the arena after a take has failed. It tries, in this order: waiting for blocks that
   copies still use, if much of the arena is free but for them; growing the arena; dropping the host
   copies of resident tensors; waiting for what blocks there are; the memory of kept uploads. OK:
   take again. */
static capu_status make_block_room(capu_context *context, const struct tensor *tensor)
{
    bool is_wasteful = host_arena_is_wasteful(context->memory.arena);
    struct lane_position oldest;
    capu_status status = CAPU_NOT_READY;

    if (!is_wasteful || !host_arena_oldest(context->memory.arena, &oldest)) {
        status = agent_grow(context->agent, tensor->span_bytes);
        if (status == CAPU_OK || drop_clean_copy(context)) {
            return CAPU_OK;
        }
        if (!host_arena_oldest(context->memory.arena, &oldest)) {
            return uploads_give_way(context) ? CAPU_OK : status;
        }
    }
    return failure_check(&context->failure, lane_wait(oldest), "waiting for host memory");
}

/* Takes host memory for a tensor's span. Plans count the latency of a copy once and keep their
   blocks, so in guided mode the arena grows before a block is taken in several extents. */
static capu_status take_block(capu_context *context, struct tensor *tensor)
{
    bool is_whole = context->plans.keeper != NULL;
    capu_status status;

    for (;;) {
        status =
            is_whole
                ? host_arena_take_whole(context->memory.arena, tensor->span_bytes, &tensor->host)
                : host_arena_take(context->memory.arena, tensor->span_bytes, &tensor->host);
        if (status != CAPU_NOT_READY) {
            break;
        }
        if (is_whole && agent_grow(context->agent, tensor->span_bytes) != CAPU_OK) {
            is_whole = false;
        } else if (!is_whole) {
            status = make_block_room(context, tensor);
            if (status != CAPU_OK) {
                break;
            }
        }
    }
    if (status != CAPU_OK && device_failure(context->lanes.device, NULL, 0) != CAPU_OK) {
        return failure_check(&context->failure, status, "taking host memory");
    }
    if (status != CAPU_OK) {
        return no_host_room(context, tensor, status);
    }
    agent_grow_ahead(context->agent, tensor->span_bytes);
    return CAPU_OK;
}

capu_status swap_reserve_block(capu_context *context, struct tensor *tensor)
{
    capu_status status = tensor->host.extent_count > 0 ? CAPU_OK : take_block(context, tensor);

    tensor->keeps_block = status == CAPU_OK;
    return status;
}

void swap_unreserve_block(capu_context *context, struct tensor *tensor)
{
    ASSERT(tensor->keeps_block);
    tensor->keeps_block = false;
    if (!tensor_on_host(tensor)) {
        host_arena_give(context->memory.arena, &tensor->host, (struct lane_position){0});
    }
}

static struct host_extent *extent_at(struct host_block *block, size_t index)
{
    return index == 0 ? &block->first : &block->more[index - 1];
}

/* Copies a span to its host block or back, extent by extent, and marks the lane after it. */
static capu_status copy_span(capu_context *context, struct tensor *tensor, struct lane *lane,
                             bool is_out, struct lane_position *position)
{
    unsigned char *at = tensor->span;
    capu_status status = CAPU_OK;

    copy_times_begin(&context->records, is_out ? COPY_OUT : COPY_IN, tensor->span_bytes);
    timeline_log_copy_begin(&context->records, tensor, is_out);
    marks_begin(is_out ? MARK_SWAP_OUT : MARK_SWAP_IN, tensor->name, tensor->span_bytes);
    for (size_t i = 0; i < tensor->host.extent_count && status == CAPU_OK; i++) {
        struct host_extent *extent = extent_at(&tensor->host, i);

        if (is_out) {
            status = device_copy_out(context->lanes.device, lane->stream, extent->address, at,
                                     extent->bytes);
        } else {
            status = device_copy_in(context->lanes.device, lane->stream, at, extent->address,
                                    extent->bytes);
        }
        at += extent->bytes;
    }
    marks_end();
    timeline_log_copy_end(&context->records, is_out);
    if (status == CAPU_OK) {
        copy_times_end(&context->records, is_out ? COPY_OUT : COPY_IN);
    }
    return status == CAPU_OK ? lane_mark(lane, position) : status;
}

capu_status swap_out(capu_context *context, struct tensor *tensor, bool after_reads)
{
    capu_status status;

    if (!tensor->keeps_block) {
        capture_give_up(&context->lanes, "contents that the plan would discard may still be read");
    }
    status = tensor->keeps_block ? CAPU_OK : take_block(context, tensor);
    if (status != CAPU_OK) {
        return status;
    }
    status = order_copy_out(&context->lanes.d2h, tensor, after_reads);
    if (status == CAPU_OK) {
        status = copy_span(context, tensor, &context->lanes.d2h, true, &tensor->left);
    }
    if (status != CAPU_OK) {
        /* A part of the copy may be under way, so the block is given back after the lane has
         * passed. */
        lanes_quiesce(&context->lanes, &context->lanes.d2h);
        if (!tensor->keeps_block) {
            host_arena_give(context->memory.arena, &tensor->host, (struct lane_position){0});
        }
        return failure_check(&context->failure, status, "copying a tensor to host memory");
    }
    tensor_state_copied_out(tensor);
    traffic_out(&context->records, tensor);
    return CAPU_OK;
}

capu_status swap_in(capu_context *context, struct tensor *tensor)
{
    capu_status status = copy_span(context, tensor, &context->lanes.h2d, false, &tensor->ready);

    if (status != CAPU_OK) {
        lanes_quiesce(&context->lanes, &context->lanes.h2d); /* a part may be under way */
        return failure_check(&context->failure, status, "copying a tensor back");
    }
    tensor_state_copied_in(tensor);
    traffic_back(&context->records, tensor);
    return CAPU_OK;
}

/* Copying tensors to host memory and back, and giving up what they contain: see swap.h. */
#include "runtime/residency/swap.h"

#include "base/assert.h"
#include "base/size_text.h"
#include "device/marks.h"
#include "runtime/context/failure.h"
#include "runtime/residency/residency.h"
#include "runtime/tensor/memory.h"
#include "runtime/tensor/order.h"

void swap_give_block(struct residency *residency, struct tensor *tensor)
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
    host_arena_give(residency->memory->arena, &tensor->host, last);
}

void swap_drop(struct residency *residency, struct tensor *tensor)
{
    if (tensor_on_host(tensor)) {
        tensor_state_copy_dropped(tensor);
        swap_give_block(residency, tensor);
    }
}

/* Gives up the host copy of one resident tensor, which becomes dirty. False: there is none. */
static bool drop_clean_copy(struct residency *residency)
{
    struct tensor *tensor = residency->victims.clean.head;

    /* A tensor whose copy back failed has its contents on the host only. */
    while (tensor != NULL && !tensor_on_device(tensor)) {
        tensor = tensor->residency.next;
    }
    if (tensor == NULL) {
        return false;
    }
    swap_drop(residency, tensor);
    victims_touch(residency, tensor);
    return true;
}

/* Reports what is short, the memory of the machine or the budget, and how much of it is used. */
static capu_status no_host_room(struct residency *residency, struct tensor *tensor,
                                capu_status status)
{
    struct size_text used = size_text(host_arena_used_bytes(residency->memory->arena));
    struct size_text bytes = size_text(tensor->span_bytes);

    if (status == CAPU_HOST_OVER_BUDGET) {
        return failure_set(residency->failure, status,
                           "no host memory to evict '%s' to, which has %s: %s of a host budget of "
                           "%s are in use; raise it (host_budget), or the device budget",
                           lookup_name(residency->memory, tensor), bytes.text, used.text,
                           size_text(residency->settings->config.host_budget_bytes).text);
    }
    return failure_set(residency->failure, status,
                       "no host memory to evict '%s' to, which has %s: %s are in use",
                       lookup_name(residency->memory, tensor), bytes.text, used.text);
}

/* Makes room in the arena after a take has failed. It tries, in this order: waiting for blocks that
   copies still use, if much of the arena is free but for them; growing the arena; dropping the host
   copies of resident tensors; waiting for what blocks there are; the memory of kept uploads. OK:
   take again. */
static capu_status make_block_room(struct residency *residency, const struct tensor *tensor)
{
    bool is_wasteful = host_arena_is_wasteful(residency->memory->arena);
    struct lane_position oldest;
    capu_status status = CAPU_NOT_READY;

    if (!is_wasteful || !host_arena_oldest(residency->memory->arena, &oldest)) {
        status = agent_grow(residency->agent, tensor->span_bytes);
        if (status == CAPU_OK || drop_clean_copy(residency)) {
            return CAPU_OK;
        }
        if (!host_arena_oldest(residency->memory->arena, &oldest)) {
            return uploads_give_way(residency) ? CAPU_OK : status;
        }
    }
    return failure_check(residency->failure, lane_wait(oldest), "waiting for host memory");
}

/* Takes host memory for a tensor's span. Plans count the latency of a copy once and keep their
   blocks, so in guided mode the arena grows before a block is taken in several extents. */
static capu_status take_host_block(struct residency *residency, struct tensor *tensor)
{
    bool is_whole = residency->settings->config.mode == CAPU_MODE_GUIDED;
    capu_status status;

    for (;;) {
        status =
            is_whole
                ? host_arena_take_whole(residency->memory->arena, tensor->span_bytes, &tensor->host)
                : host_arena_take(residency->memory->arena, tensor->span_bytes, &tensor->host);
        if (status != CAPU_NOT_READY) {
            break;
        }
        if (is_whole && agent_grow(residency->agent, tensor->span_bytes) != CAPU_OK) {
            is_whole = false;
        } else if (!is_whole) {
            status = make_block_room(residency, tensor);
            if (status != CAPU_OK) {
                break;
            }
        }
    }
    if (status != CAPU_OK && device_failure(residency->lanes->device, NULL, 0) != CAPU_OK) {
        return failure_check(residency->failure, status, "taking host memory");
    }
    if (status != CAPU_OK) {
        return no_host_room(residency, tensor, status);
    }
    agent_grow_ahead(residency->agent, tensor->span_bytes);
    return CAPU_OK;
}

capu_status swap_reserve_block(struct residency *residency, struct tensor *tensor)
{
    capu_status status =
        tensor->host.extent_count > 0 ? CAPU_OK : take_host_block(residency, tensor);

    tensor->keeps_block = status == CAPU_OK;
    return status;
}

void swap_unreserve_block(struct residency *residency, struct tensor *tensor)
{
    ASSERT(tensor->keeps_block);
    tensor->keeps_block = false;
    if (!tensor_on_host(tensor)) {
        host_arena_give(residency->memory->arena, &tensor->host, (struct lane_position){0});
    }
}

static struct host_extent *extent_at(struct host_block *block, size_t index)
{
    return index == 0 ? &block->first : &block->more[index - 1];
}

/* Copies a span to its host block or back, extent by extent, and marks the lane after it. */
static capu_status copy_span(struct residency *residency, struct tensor *tensor, struct lane *lane,
                             bool is_out, struct lane_position *position)
{
    unsigned char *at = tensor->span;
    capu_status status = CAPU_OK;

    copy_times_begin(residency->records, is_out ? COPY_OUT : COPY_IN, tensor->span_bytes);
    timeline_log_copy_begin(residency->records, tensor, is_out);
    marks_begin(is_out ? MARK_SWAP_OUT : MARK_SWAP_IN, tensor->name, tensor->span_bytes);
    for (size_t i = 0; i < tensor->host.extent_count && status == CAPU_OK; i++) {
        struct host_extent *extent = extent_at(&tensor->host, i);

        if (is_out) {
            status = device_copy_out(residency->lanes->device, lane->stream, extent->address, at,
                                     extent->bytes);
        } else {
            status = device_copy_in(residency->lanes->device, lane->stream, at, extent->address,
                                    extent->bytes);
        }
        at += extent->bytes;
    }
    marks_end();
    timeline_log_copy_end(residency->records, is_out);
    if (status == CAPU_OK) {
        copy_times_end(residency->records, is_out ? COPY_OUT : COPY_IN);
    }
    return status == CAPU_OK ? lane_mark(lane, position) : status;
}

capu_status swap_out(struct residency *residency, struct tensor *tensor, bool after_reads)
{
    capu_status status;

    if (!tensor->keeps_block) {
        capture_give_up(residency->lanes, "contents that the plan would discard may still be read");
    }
    status = tensor->keeps_block ? CAPU_OK : take_host_block(residency, tensor);
    if (status != CAPU_OK) {
        return status;
    }
    status = order_copy_out(&residency->lanes->d2h, tensor, after_reads);
    if (status == CAPU_OK) {
        status = copy_span(residency, tensor, &residency->lanes->d2h, true, &tensor->left);
    }
    if (status != CAPU_OK) {
        /* A part of the copy may be under way, so the block is given back after the lane has
         * passed. */
        lanes_quiesce(residency->lanes, &residency->lanes->d2h);
        if (!tensor->keeps_block) {
            host_arena_give(residency->memory->arena, &tensor->host, (struct lane_position){0});
        }
        return failure_check(residency->failure, status, "copying a tensor to host memory");
    }
    tensor_state_copied_out(tensor);
    traffic_out(residency->records, tensor);
    return CAPU_OK;
}

capu_status swap_in(struct residency *residency, struct tensor *tensor)
{
    capu_status status =
        copy_span(residency, tensor, &residency->lanes->h2d, false, &tensor->ready);

    if (status != CAPU_OK) {
        lanes_quiesce(residency->lanes, &residency->lanes->h2d); /* a part may be under way */
        return failure_check(residency->failure, status, "copying a tensor back");
    }
    tensor_state_copied_in(tensor);
    traffic_back(residency->records, tensor);
    return CAPU_OK;
}

/*
 * The tensors with contents.
 */

void contents_define(struct residency *residency, struct tensor *tensor)
{
    struct tensor_list *list =
        tensor->is_persistent ? &residency->memory->persistent : &residency->memory->transient;

    ASSERT(tensor_is_defined(tensor));
    if (tensor->contents.list == list) {
        return;
    }
    if (tensor->contents.list == &residency->memory->persistent) {
        tracker_persistent(residency->records, tensor, -1);
    }
    tensor_list_remove(tensor, CONTENTS);
    tensor_list_append(list, tensor, CONTENTS);
    if (tensor->is_persistent) {
        tracker_persistent(residency->records, tensor, 1);
    }
}

void contents_forget(struct residency *residency, struct tensor *tensor)
{
    if (tensor->contents.list == &residency->memory->persistent) {
        tracker_persistent(residency->records, tensor, -1);
    }
    tensor_list_remove(tensor, CONTENTS);
    tensor_state_undefined(tensor);
    swap_give_block(residency, tensor);
    if (residency->settings->is_paging) {
        victims_touch(residency, tensor);
    }
}

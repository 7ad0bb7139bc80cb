/* Demand paging of tensors, see pager.h. */
#include "runtime/executor.h"
#include "runtime/failure.h"
#include "runtime/internal.h"
#include "runtime/lookup.h"
#include "runtime/victims.h"

#include <stdlib.h>

static void note_host_bytes(capu_context *context)
{
    uint64_t used = host_arena_used_bytes(context->arena);

    if (context->tracker.open != NULL && used > context->tracker.open->report.host_bytes) {
        context->tracker.open->report.host_bytes = used;
    }
}

/* Gives up the host copy of one resident tensor, which becomes dirty. False: there is none. */
static bool drop_clean_copy(capu_context *context)
{
    struct tensor *tensor = context->pager.clean.head;

    /* A tensor whose way back failed has its contents on the host only. */
    while (tensor != NULL && !tensor->on_device) {
        tensor = tensor->residency.next;
    }
    if (tensor == NULL) {
        return false;
    }
    pager_drop_host_copy(context, tensor);
    victims_touch(context, tensor);
    return true;
}

/* Says what is short, the machine's memory or the budget, and how much there is of it. */
static capu_status no_host_room(capu_context *context, struct tensor *tensor, capu_status status)
{
    unsigned long long used = host_arena_used_bytes(context->arena);
    unsigned long long bytes = tensor->span_bytes;

    if (status == CAPU_HOST_OVER_BUDGET) {
        return failure_set(context, status,
                           "no host memory to evict '%s' (%llu bytes) to: %llu bytes of a host "
                           "budget of %llu are in use; raise it, or the device budget",
                           lookup_name(context, tensor), bytes, used,
                           (unsigned long long)context->config.host_budget_bytes);
    }
    return failure_set(context, status,
                       "no host memory to evict '%s' (%llu bytes) to: %llu bytes are in use",
                       lookup_name(context, tensor), bytes, used);
}

/* Host memory for a tensor's span: from the arena as it is, or grown, or from the host copies of
   tensors that are resident anyway, or once a copy is past. Plans count a copy's latency once, and
   keep their blocks, so where there are plans the arena grows before a block is cut in pieces. */
capu_status pager_take_block(capu_context *context, struct tensor *tensor)
{
    bool is_whole = context->planning != NULL;
    struct lane_position oldest;
    capu_status status;

    for (;;) {
        status = is_whole ? host_arena_take_whole(context->arena, tensor->span_bytes, &tensor->host)
                          : host_arena_take(context->arena, tensor->span_bytes, &tensor->host);
        if (status != CAPU_NOT_READY) {
            break;
        }
        status = agent_grow(context->agent, tensor->span_bytes);
        if (status == CAPU_OK) {
            continue;
        }
        if (is_whole) {
            is_whole = false;
            continue;
        }
        if (drop_clean_copy(context)) {
            continue;
        }
        if (!host_arena_oldest(context->arena, &oldest)) {
            break;
        }
        status = lane_wait(oldest);
        if (status != CAPU_OK) {
            return failure_check(context, status, "waiting for host memory");
        }
    }
    if (status != CAPU_OK && device_failure(context->device, NULL, 0) != CAPU_OK) {
        return failure_check(context, status, "taking host memory");
    }
    if (status != CAPU_OK) {
        return no_host_room(context, tensor, status);
    }
    agent_grow_ahead(context->agent, tensor->span_bytes);
    note_host_bytes(context);
    return CAPU_OK;
}

static struct host_extent *extent_at(struct host_block *block, size_t index)
{
    return index == 0 ? &block->first : &block->more[index - 1];
}

/* Copies a span to its host block or back, extent by extent, and marks the lane behind it. */
static capu_status copy_span(capu_context *context, struct tensor *tensor, struct lane *lane,
                             bool is_out, struct lane_position *position)
{
    unsigned char *at = tensor->span;
    capu_status status = CAPU_OK;

    marks_begin(is_out ? MARK_SWAP_OUT : MARK_SWAP_IN, tensor->name, tensor->span_bytes);
    for (size_t i = 0; i < tensor->host.extent_count && status == CAPU_OK; i++) {
        struct host_extent *extent = extent_at(&tensor->host, i);

        if (is_out) {
            status =
                device_copy_out(context->device, lane->stream, extent->address, at, extent->bytes);
        } else {
            status =
                device_copy_in(context->device, lane->stream, at, extent->address, extent->bytes);
        }
        at += extent->bytes;
    }
    marks_end();
    return status == CAPU_OK ? lane_mark(lane, position) : status;
}

capu_status pager_copy_out(capu_context *context, struct tensor *tensor, bool behind_reads)
{
    capu_status status = tensor->keeps_block ? CAPU_OK : pager_take_block(context, tensor);

    if (status != CAPU_OK) {
        return status;
    }
    status = lane_follow(&context->d2h, behind_reads ? tensor->used : tensor->written);
    if (status == CAPU_OK) {
        status = lane_follow(&context->d2h, tensor->ready);
    }
    if (status == CAPU_OK) {
        status = copy_span(context, tensor, &context->d2h, true, &tensor->left);
    }
    if (status != CAPU_OK) {
        /* A part may be under way: the block rests until the lane has passed it. */
        failure_quiesce(context, &context->d2h);
        if (!tensor->keeps_block) {
            host_arena_give(context->arena, &tensor->host, (struct lane_position){0});
        }
        return failure_check(context, status, "copying a tensor to host memory");
    }
    tensor->on_host = true;
    TRACKER_ADD(context, evicted_bytes, tensor->span_bytes);
    return CAPU_OK;
}

capu_status pager_evict(capu_context *context, struct tensor *tensor)
{
    struct departure *departure = departure_take(&context->departures);
    bool is_copied = !tensor_is_empty(tensor) && !tensor->on_host;
    uint32_t method = tensor_is_empty(tensor)         ? CAPU_METHOD_EMPTY
                      : is_copied || tensor->is_saved ? CAPU_METHOD_SWAP
                                                      : CAPU_METHOD_CLEAN;
    struct departure_queue *queue = &context->departures.leaving;
    capu_status status;

    if (departure == NULL) {
        return failure_set(context, CAPU_NO_HOST_MEMORY, "no memory to note an eviction");
    }
    if (is_copied) {
        status = pager_copy_out(context, tensor, true);
        if (status != CAPU_OK) {
            departure_recycle(&context->departures, departure);
            return status;
        }
        queue = &context->departures.copying;
    }
    if (method != CAPU_METHOD_SWAP) {
        TRACKER_ADD(context, dropped_bytes, tensor->span_bytes);
    }
    tensor->is_saved = false;
    departure->tensor = tensor;
    departure->page_count = tensor->page_count;
    departure->after[0] = tensor->used;
    departure->after[1] = tensor->left;
    departure->after[2] = tensor->ready;
    tensor->departure = departure;
    tensor_list_remove(tensor, RESIDENCY);
    departure_append(&context->departures, queue, departure);
    tracker_evicted(context, tensor, method);
    return context->config.strict != 0 ? departure_wait(context, departure) : CAPU_OK;
}

/* Gives back the pages of slabs nobody uses, once the work that did is past. False: none. */
static bool trim_slabs(capu_context *context, capu_status *status)
{
    *status = failure_check(context, lane_synchronize(&context->compute),
                            "waiting for the last use of small tensors");
    return *status == CAPU_OK && slabs_trim(context->slabs) > 0;
}

capu_status pager_trim(capu_context *context)
{
    capu_status status;

    trim_slabs(context, &status);
    return status;
}

capu_status pager_make_room(capu_context *context, size_t page_count)
{
    capu_status status = CAPU_OK;

    /* A guide in force has its pages for good: who needs more than it leaves ends it. */
    if (context->guide != NULL && pages_available(context->pages) < page_count) {
        status = executor_leave(context);
    }
    while (status == CAPU_OK && pages_available(context->pages) < page_count) {
        struct tensor *victim = NULL;

        status = departures_reap(context);
        if (status != CAPU_OK || pages_available(context->pages) >= page_count) {
            break;
        }
        if (pages_available(context->pages) + context->departures.leaving_pages < page_count) {
            victim = victims_choose(context);
        }
        if (victim != NULL) {
            status = pager_evict(context, victim);
        } else if (departures_any(context)) {
            status = departures_wait_oldest(context);
        } else if (!trim_slabs(context, &status) && status == CAPU_OK) {
            status = failure_set(context, CAPU_OVER_BUDGET,
                                 "%zu more pages are needed, and nothing is left to evict: "
                                 "%zu of %zu pages are always resident",
                                 page_count - pages_available(context->pages),
                                 context_fixed_pages(context), pages_limit(context->pages));
        }
    }
    return status;
}

void pager_claim(capu_context *context, struct tensor *tensor)
{
    if (tensor->departure != NULL) {
        departure_cancel(&context->departures, tensor->departure);
    }
    victims_touch(context, tensor);
}

/* Pages for a span. Where the device has fewer than the budget, as others hold some, that is known
   when it refuses one: then room is made in what there is. */
static capu_status take_pages(capu_context *context, struct tensor *tensor)
{
    capu_status status = pages_take(context->pages, tensor->page_count, tensor->pages);

    if (status == CAPU_OVER_BUDGET) {
        status = pager_make_room(context, tensor->page_count);
        if (status != CAPU_OK) {
            return status;
        }
        status = pages_take(context->pages, tensor->page_count, tensor->pages);
    }
    return failure_check(context, status, "taking device memory");
}

/* Maps fresh pages behind a span. */
static capu_status map_span(capu_context *context, struct tensor *tensor)
{
    capu_status status = take_pages(context, tensor);

    if (status != CAPU_OK) {
        return status;
    }
    status = device_map(context->device, tensor->span, tensor->pages, tensor->page_count);
    if (status != CAPU_OK) {
        pages_give(context->pages, tensor->pages, tensor->page_count);
        return failure_check(context, status, "mapping device memory");
    }
    TRACKER_ADD(context, map_count, 1);
    tensor->is_mapped = true;
    return CAPU_OK;
}

static capu_status fill_span(capu_context *context, struct tensor *tensor, unsigned char byte)
{
    capu_status status = lane_follow(&context->compute, tensor->left);

    if (status == CAPU_OK) {
        status = device_fill(context->device, context->compute.stream, tensor->span, byte,
                             tensor->span_bytes);
    }
    if (status == CAPU_OK) {
        status = tracker_mark_end(context, &tensor->used);
    }
    tensor->written = tensor->used;
    if (status != CAPU_OK) {
        failure_quiesce(context, &context->compute); /* no position says when the fill is past */
    }
    return failure_check(context, status, "filling device memory");
}

/* Makes a tensor that is known to be zero hold its zeros: an op of its own in the record. */
static capu_status materialise_zeros(capu_context *context, struct tensor *tensor)
{
    capu_operand operand = capu_operand_of(tensor->span, tensor->span_bytes, CAPU_WRITE);
    struct call call = {.kind = CALL_FILL,
                        .name = "capu_zero",
                        .is_once = tensor->zeroed == 0 || tensor->zeroed + 1 < context->iteration,
                        .is_replayable = true,
                        .operands = &operand,
                        .operand_count = 1};
    struct lane_position start;
    capu_status status = tracker_mark_begin(context, &start);
    size_t op;

    if (status != CAPU_OK) {
        return failure_check(context, status, "marking the compute stream");
    }
    status = fill_span(context, tensor, 0);
    if (status != CAPU_OK) {
        return status;
    }
    op = tracker_op(context, &call, true);
    tracker_access(context, tensor, CAPU_WRITE);
    tracker_marks(context, op, start, tensor->used);
    tensor->is_zero = false;
    tensor->on_device = true;
    return CAPU_OK;
}

capu_status pager_copy_in(capu_context *context, struct tensor *tensor)
{
    capu_status status = copy_span(context, tensor, &context->h2d, false, &tensor->ready);

    if (status != CAPU_OK) {
        failure_quiesce(context, &context->h2d); /* a part may be under way */
        return failure_check(context, status, "copying a tensor back");
    }
    tensor->on_device = true;
    TRACKER_ADD(context, prefetch_count, 1);
    TRACKER_ADD(context, prefetched_bytes, tensor->span_bytes);
    return CAPU_OK;
}

/* Contents for a span that was just mapped. */
static capu_status fetch(capu_context *context, struct tensor *tensor)
{
    capu_status status =
        failure_check(context, lane_follow(&context->h2d, tensor->used), "ordering a copy");

    if (status == CAPU_OK) {
        status = pager_copy_in(context, tensor);
    }
    if (status == CAPU_OK) {
        status = failure_check(context, lane_follow(&context->compute, tensor->ready),
                               "ordering an op behind a copy");
        if (status != CAPU_OK) {
            failure_quiesce(context, &context->h2d);
        }
    }
    context->pager.has_waited = context->pager.has_waited || status == CAPU_OK;
    return status;
}

capu_status pager_bring(capu_context *context, struct tensor *tensor, bool needs_contents)
{
    capu_status status = CAPU_OK;

    if (!tensor->is_mapped) {
        status = map_span(context, tensor);
        if (status == CAPU_OK && context->config.strict != 0) {
            status = fill_span(context, tensor, PAGER_POISON);
        }
    }
    if (status == CAPU_OK && needs_contents && tensor->is_zero) {
        status = materialise_zeros(context, tensor);
    } else if (status == CAPU_OK && needs_contents && tensor->is_defined && !tensor->on_device) {
        status = fetch(context, tensor);
    }
    victims_touch(context, tensor);
    return status;
}

void pager_drop_host_copy(capu_context *context, struct tensor *tensor)
{
    /* Where a plan had compute follow the copy back, what compute has done since is behind it. */
    struct lane_position last = tensor->ready.lane != NULL ? tensor->ready : tensor->used;

    if (!tensor->on_host) {
        return;
    }
    tensor->on_host = false;
    tensor->is_saved = false;
    if (tensor->keeps_block) {
        return;
    }
    /* A copy back is only ever issued after the copy out is past, so one of the two is last. */
    if (!lane_is_past(tensor->left)) {
        last = tensor->left;
    }
    host_arena_give(context->arena, &tensor->host, last);
}

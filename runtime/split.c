/*
 * Splitting: one tensor becomes up to three, each with the whole pages that are its alone. A page
 * that two of them share becomes an edge page: always resident, owned by the allocation.
 */
#include "runtime/executor.h"
#include "runtime/internal.h"

#include <stdlib.h>

enum { PARTS = 3, EDGE = PARTS };

struct split {
    struct allocation *allocation;
    struct tensor *old;
    uint64_t page_bytes;
    struct tensor *parts[PARTS]; /* by address; NULL: not there */
    uint64_t starts[PARTS + 1];  /* offsets into the allocation */
};

/* First page wholly inside a part, and the one behind the last; the allocation's last page belongs
   to its last part, since nobody else uses the rest of it. */
static void span_of(const struct split *split, size_t part, size_t *first, size_t *end)
{
    uint64_t from = split->starts[part];
    uint64_t to = split->starts[part + 1];

    *first = (size_t)((from + split->page_bytes - 1) / split->page_bytes);
    *end = to == split->allocation->bytes ? split->allocation->page_count
                                          : (size_t)(to / split->page_bytes);
    if (*end < *first) {
        *end = *first;
    }
}

static void discard_parts(struct split *split)
{
    for (size_t i = 0; i < PARTS; i++) {
        if (split->parts[i] != NULL) {
            free(split->parts[i]->pages);
            free(split->parts[i]);
        }
    }
}

/* A part with its span; state is copied from the old tensor later. */
static capu_status make_part(struct split *split, size_t index)
{
    struct allocation *allocation = split->allocation;
    struct tensor *part;
    size_t first;
    size_t end;

    if (split->starts[index] == split->starts[index + 1]) {
        return CAPU_OK;
    }
    part = calloc(1, sizeof(*part));
    if (part == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    split->parts[index] = part;
    part->allocation = allocation;
    part->address = (unsigned char *)allocation->address + split->starts[index];
    part->bytes = split->starts[index + 1] - split->starts[index];
    part->is_persistent = true;
    if (allocation->page_count == 0) {
        return CAPU_OK;
    }
    span_of(split, index, &first, &end);
    if (end == first) {
        return CAPU_OK;
    }
    part->page_count = end - first;
    part->span = (unsigned char *)allocation->address + first * split->page_bytes;
    part->span_bytes = end * split->page_bytes > split->starts[index + 1]
                           ? split->starts[index + 1] - first * split->page_bytes
                           : part->page_count * split->page_bytes;
    part->pages = calloc(part->page_count, sizeof(*part->pages));
    return part->pages != NULL ? CAPU_OK : CAPU_NO_HOST_MEMORY;
}

/* Which part owns a page of the range that was the old tensor's: its index, or EDGE. */
static size_t owner_of(const struct split *split, size_t page)
{
    for (size_t i = 0; i < PARTS; i++) {
        size_t first;
        size_t end;

        span_of(split, i, &first, &end);
        if (split->parts[i] != NULL && page >= first && page < end) {
            return i;
        }
    }
    return EDGE;
}

/* The old tensor's pages within its allocation's range. */
static size_t first_page(const struct split *split)
{
    return (
        size_t)(((unsigned char *)split->old->span - (unsigned char *)split->allocation->address) /
                (int64_t)split->page_bytes);
}

static unsigned char *page_address(const struct split *split, size_t page)
{
    return (unsigned char *)split->allocation->address + page * split->page_bytes;
}

static capu_status map_edge(capu_context *context, struct split *split, size_t page)
{
    device_page *edge = &split->allocation->edge_pages[page];
    device_page taken;
    capu_status status = pager_make_room(context, 1);

    if (status != CAPU_OK) {
        return status;
    }
    status = pages_take(context->pages, 1, &taken);
    if (status != CAPU_OK) {
        return context_check(context, status, "taking a page that two tensors share");
    }
    status = device_map(context->device, page_address(split, page), &taken, 1);
    if (status != CAPU_OK) {
        pages_give(context->pages, &taken, 1);
        return context_check(context, status, "mapping a page that two tensors share");
    }
    TRACKER_ADD(context, map_count, 1);
    *edge = taken;
    context->edge_page_count++;
    if (split->old->is_zero) {
        status = device_fill(context->device, context->compute.stream, page_address(split, page), 0,
                             split->page_bytes);
    }
    return context_check(context, status, "clearing a page that two tensors share");
}

/* An unmapped tensor's new edge pages are taken and mapped; on failure none is. */
static capu_status map_edges(capu_context *context, struct split *split)
{
    size_t from = first_page(split);
    size_t end = from + split->old->page_count;
    capu_status status = CAPU_OK;

    for (size_t page = from; page < end && status == CAPU_OK; page++) {
        if (owner_of(split, page) == EDGE) {
            status = map_edge(context, split, page);
        }
    }
    if (status == CAPU_OK) {
        return CAPU_OK;
    }
    context_quiesce(context, &context->compute);
    for (size_t page = from; page < end; page++) {
        device_page *edge = &split->allocation->edge_pages[page];

        if (*edge != DEVICE_NO_PAGE &&
            device_unmap(context->device, page_address(split, page), 1) == CAPU_OK) {
            pages_give(context->pages, edge, 1);
            *edge = DEVICE_NO_PAGE;
            context->edge_page_count--;
        }
    }
    return status;
}

/* How many of the old tensor's pages from its `index`-th on will be one mapping: those of one part,
   or a single edge. */
static size_t run_length(const struct split *split, size_t index)
{
    size_t from = first_page(split);
    size_t owner = owner_of(split, from + index);
    size_t end = index + 1;

    while (owner != EDGE && end < split->old->page_count && owner_of(split, from + end) == owner) {
        end++;
    }
    return end - index;
}

/* A mapped tensor's pages stay where they are, but a device unmaps whole mappings only: so they
   become a mapping for each part and edge. On failure the old mapping is back. */
static capu_status remap(capu_context *context, struct split *split)
{
    struct tensor *old = split->old;
    size_t done = 0;
    capu_status status = lane_synchronize(&context->compute);

    if (status == CAPU_OK) {
        status = lane_wait(old->left);
    }
    if (status == CAPU_OK) {
        status = device_unmap(context->device, old->span, old->page_count);
    }
    if (status != CAPU_OK) {
        return context_check(context, status, "splitting a tensor");
    }
    while (done < old->page_count) {
        size_t count = run_length(split, done);

        status = device_map(context->device, page_address(split, first_page(split) + done),
                            &old->pages[done], count);
        if (status != CAPU_OK) {
            break;
        }
        done += count;
    }
    if (status == CAPU_OK) {
        return CAPU_OK;
    }
    status = context_check(context, status, "splitting a tensor");
    if ((done > 0 && device_unmap(context->device, old->span, done) != CAPU_OK) ||
        device_map(context->device, old->span, old->pages, old->page_count) != CAPU_OK) {
        context->lost = CAPU_DEVICE_LOST;
        return context_fail(context, CAPU_DEVICE_LOST,
                            "splitting '%s': its memory could not be mapped again",
                            context_tensor_name(context, old));
    }
    return status;
}

/* The pages of a mapped tensor go to the parts and to the edges. */
static void hand_over_pages(capu_context *context, struct split *split)
{
    size_t from = first_page(split);

    for (size_t i = 0; i < split->old->page_count; i++) {
        size_t owner = owner_of(split, from + i);
        size_t first;
        size_t end;

        if (owner == EDGE) {
            split->allocation->edge_pages[from + i] = split->old->pages[i];
            context->edge_page_count++;
        } else {
            span_of(split, owner, &first, &end);
            split->parts[owner]->pages[from + i - first] = split->old->pages[i];
        }
    }
}

/* The parts take over what the old tensor was. */
static void inherit(struct split *split)
{
    const struct tensor *old = split->old;

    for (size_t i = 0; i < PARTS; i++) {
        struct tensor *part = split->parts[i];

        if (part == NULL) {
            continue;
        }
        if (i != 1) {
            part->name = old->name;
            part->kind = old->kind;
            part->hint = old->hint;
            part->is_persistent = old->is_persistent;
        }
        part->is_zero = old->is_zero && tensor_is_managed(part);
        part->zeroed = old->zeroed;
        part->is_mapped = old->is_mapped && tensor_is_managed(part);
        part->on_device = old->on_device && tensor_is_managed(part);
        part->version = old->version;
        part->used = old->used;
        part->written = old->written;
        part->ready = old->ready;
        part->left = old->left;
    }
}

static struct tensor *first_part(const struct split *split)
{
    return split->parts[0] != NULL ? split->parts[0] : split->parts[1];
}

/* Takes parts out of the index again; the old tensor is back in its place. Cannot fail. */
static void reindex_old(capu_context *context, struct split *split, size_t part_count)
{
    for (size_t i = 0; i < part_count; i++) {
        if (split->parts[i] != NULL && split->parts[i] != first_part(split)) {
            tensors_remove(&context->tensors, split->parts[i]);
            tensors_forget(&context->tensors, split->parts[i]);
        }
    }
    tensors_replace(&context->tensors, first_part(split), split->old);
}

/* Puts the parts into the index in the old tensor's place: the first takes its entry over. */
static capu_status index_parts(capu_context *context, struct split *split)
{
    tensors_replace(&context->tensors, split->old, first_part(split));
    for (size_t i = 0; i < PARTS; i++) {
        if (split->parts[i] != NULL && split->parts[i] != first_part(split) &&
            tensors_add(&context->tensors, split->parts[i]) != CAPU_OK) {
            reindex_old(context, split, i);
            return context_fail(context, CAPU_NO_HOST_MEMORY, "no memory to note a split");
        }
    }
    return CAPU_OK;
}

/* Links the parts into the allocation and the lists where the old tensor was. */
static void replace(capu_context *context, struct split *split)
{
    struct tensor *old = split->old;
    struct tensor *last = old->previous;
    bool is_lost = tensor_is_lost(old);

    for (size_t i = 0; i < PARTS; i++) {
        struct tensor *part = split->parts[i];

        if (part == NULL) {
            continue;
        }
        part->previous = last;
        if (last != NULL) {
            last->next = part;
        } else {
            split->allocation->first = part;
        }
        last = part;
        /* What is lost stays so, and its reader is told; always-resident parts cannot be lost. */
        if (old->is_defined && (tensor_is_managed(part) || !is_lost)) {
            contents_define(context, part);
        }
        if (context->is_paging) {
            pager_touch(context, part);
        }
    }
    pager_drop_host_copy(context, old);
    last->next = old->next;
    if (old->next != NULL) {
        old->next->previous = last;
    }
    tensor_list_remove(old, RESIDENCY);
    if (old->contents.list == &context->persistent) {
        tracker_persistent(context, old, -1);
    }
    tracker_cut(context, old);
    tensor_list_remove(old, CONTENTS);
    free(old->pages);
    free(old);
}

/* Room for the allocation's edge pages, none of them mapped yet. */
static capu_status prepare_edges(struct allocation *allocation)
{
    if (allocation->edge_pages != NULL || allocation->page_count == 0) {
        return CAPU_OK;
    }
    allocation->edge_pages = malloc(allocation->page_count * sizeof(device_page));
    if (allocation->edge_pages == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    for (size_t i = 0; i < allocation->page_count; i++) {
        allocation->edge_pages[i] = DEVICE_NO_PAGE;
    }
    return CAPU_OK;
}

/* Contents that are out, or on their way out, come back first: pages can only be shared out when
   they are there. */
static capu_status recall(capu_context *context, struct tensor *tensor)
{
    bool has_bytes = tensor->is_defined && !tensor->is_zero && !tensor_is_lost(tensor);
    capu_status status = CAPU_OK;

    if (!tensor_is_managed(tensor)) {
        return CAPU_OK;
    }
    context->operands.stamp++;
    tensor->operand_stamp = context->operands.stamp;
    tensor->operand_index = 0;
    if (context->is_paging) {
        pager_claim(context, tensor);
        if (has_bytes && !tensor->is_mapped) {
            status = pager_make_room(context, tensor->page_count);
        }
    }
    if (status == CAPU_OK && has_bytes) {
        status = pager_bring(context, tensor, true);
    }
    if (status == CAPU_OK && tensor->is_mapped && tensor->is_zero) {
        /* Filling in zeros is an op of its own in the record. */
        status = tracker_reserve(context, 1, 0, 0);
        status = status == CAPU_OK ? pager_bring(context, tensor, true)
                                   : context_fail(context, status, "no memory to record a split");
    }
    return status;
}

/* Everything that can fail comes first; then the parts take over. */
static capu_status split_tensor(capu_context *context, struct split *split)
{
    capu_status status = prepare_edges(split->allocation);

    for (size_t i = 0; i < 3 && status == CAPU_OK; i++) {
        status = make_part(split, i);
    }
    if (status != CAPU_OK) {
        discard_parts(split);
        return context_fail(context, status, "no memory to note a split");
    }
    status = recall(context, split->old);
    if (status == CAPU_OK) {
        status = index_parts(context, split);
    }
    if (status == CAPU_OK && tensor_is_managed(split->old)) {
        status = split->old->is_mapped ? remap(context, split) : map_edges(context, split);
        if (status != CAPU_OK) {
            reindex_old(context, split, PARTS);
        }
    }
    if (status != CAPU_OK) {
        discard_parts(split);
        return status;
    }
    if (split->old->is_mapped) {
        hand_over_pages(context, split);
    }
    inherit(split);
    replace(context, split);
    return CAPU_OK;
}

capu_status capu_split(capu_context *context, void *address, size_t bytes)
{
    capu_status status = context_ready(context, "capu_split");
    struct split split = {0};
    uint64_t offset;

    if (status != CAPU_OK) {
        return status;
    }
    if (bytes == 0) {
        return context_fail(context, CAPU_ZERO_BYTES, "capu_split of zero bytes");
    }
    status = operands_find(context, address, "capu_split", &split.old);
    if (status != CAPU_OK) {
        return status;
    }
    if (bytes > (uint64_t)(tensor_end(split.old) - (unsigned char *)address)) {
        return context_fail(context, CAPU_OUT_OF_RANGE,
                            "capu_split: %zu bytes at %p cross the end of '%s'", bytes, address,
                            context_tensor_name(context, split.old));
    }
    if (address == split.old->address && bytes == split.old->bytes) {
        return CAPU_OK;
    }
    /* Replays of a plan know a small tensor by its address, and would find a piece of it there. */
    if (split.old->is_placed || (context->in_iteration && !tensor_is_managed(split.old))) {
        status = executor_leave(context);
    }
    if (status == CAPU_OK) {
        status = recovery_end_early(context, split.old);
    }
    if (status != CAPU_OK) {
        return status;
    }
    split.allocation = split.old->allocation;
    split.page_bytes = pages_bytes_each(context->pages);
    offset = (uint64_t)((unsigned char *)address - (unsigned char *)split.allocation->address);
    split.starts[0] = (uint64_t)((unsigned char *)split.old->address -
                                 (unsigned char *)split.allocation->address);
    split.starts[1] = offset;
    split.starts[2] = offset + bytes;
    split.starts[3] = split.starts[0] + split.old->bytes;
    return split_tensor(context, &split);
}

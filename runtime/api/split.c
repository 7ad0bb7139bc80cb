/*
 * Splitting: one tensor becomes several, without a change of address or contents. Each part manages
 * the pages that lie wholly inside it. A page that two parts share becomes an edge page: always
 * resident and owned by the allocation, since it can leave only when neither part needs it.
 *
 * The contents must survive, and on failure the old tensor must be as it was. So the order is:
 * allocate everything; bring contents that are out back to the device, since pages can be
 * distributed only while the tensor holds them; put the parts into the index; remap. Only after the
 * last step that can fail do the parts take over its pages, lists and state.
 *
 * Remapping is necessary although no page moves: a device unmaps only whole mappings, and from now
 * on the parts leave separately.
 */
#include "runtime/api/context.h"
#include "runtime/context/failure.h"
#include "runtime/follow/recovery.h"
#include "runtime/residency/pager.h"
#include "runtime/residency/residency.h"
#include "runtime/residency/swap.h"
#include "runtime/tensor/memory.h"
#include "runtime/tensor/order.h"

#include <stdlib.h>

/* What a tensor becomes. Parts that the caller names get no description; others inherit the
   tensor's. */
struct split_parts {
    const uint64_t *starts; /* where each part starts, and the end: offsets into the allocation */
    size_t count;           /* of the parts, at least one */
    size_t named;           /* the first part that is named, */
    size_t named_end;       /* and the one after the last */
};

/* Stands for a part: the page is an edge page. */
#define EDGE SIZE_MAX

struct split {
    struct allocation *allocation;
    struct tensor *old;
    uint64_t page_bytes;
    struct split_parts into;
    struct tensor **parts; /* by address; NULL: not created yet */
};

/* The first page wholly inside a part, and the page after the last one. The last page of the
   allocation belongs to the last part even if that does not fill it, since nothing else uses the
   rest. */
static void span_of(const struct split *split, size_t part, size_t *first, size_t *end)
{
    uint64_t from = split->into.starts[part];
    uint64_t to = split->into.starts[part + 1];

    *first = (size_t)((from + split->page_bytes - 1) / split->page_bytes);
    *end = to == split->allocation->bytes ? split->allocation->page_count
                                          : (size_t)(to / split->page_bytes);
    if (*end < *first) {
        *end = *first;
    }
}

static void discard_parts(struct split *split)
{
    for (size_t i = 0; i < split->into.count; i++) {
        if (split->parts[i] != NULL) {
            free(split->parts[i]->pages);
            free(split->parts[i]);
        }
    }
}

/* Creates a part and its span. inherit_state() copies the state of the old tensor later. */
static capu_status make_part(struct split *split, size_t index)
{
    struct allocation *allocation = split->allocation;
    struct tensor *part;
    size_t first;
    size_t end;

    part = calloc(1, sizeof(*part));
    if (part == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    split->parts[index] = part;
    part->allocation = allocation;
    part->address = (unsigned char *)allocation->address + split->into.starts[index];
    part->bytes = split->into.starts[index + 1] - split->into.starts[index];
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
    part->span_bytes = end * split->page_bytes > split->into.starts[index + 1]
                           ? split->into.starts[index + 1] - first * split->page_bytes
                           : part->page_count * split->page_bytes;
    part->pages = calloc(part->page_count, sizeof(*part->pages));
    return part->pages != NULL ? CAPU_OK : CAPU_NO_HOST_MEMORY;
}

/* The index of the part that owns a page of the old tensor, or EDGE. */
static size_t owner_of(const struct split *split, size_t page)
{
    size_t low = 0;
    size_t high = split->into.count;
    size_t first;
    size_t end;

    /* The part in which the page starts is the only one that can contain all of it. */
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;

        if (split->into.starts[middle] <= page * split->page_bytes) {
            low = middle;
        } else {
            high = middle;
        }
    }
    span_of(split, low, &first, &end);
    return page >= first && page < end ? low : EDGE;
}

/* The index, within the allocation, of the old tensor's first page. */
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
    capu_status status = pager_make_room(&context->residency, 1);

    if (status != CAPU_OK) {
        return status;
    }
    status = pages_take(context->memory.pages, 1, &taken);
    if (status != CAPU_OK) {
        return failure_check(&context->failure, status, "taking a page that two tensors share");
    }
    status = device_map(context->lanes.device, page_address(split, page), &taken, 1);
    if (status != CAPU_OK) {
        pages_give(context->memory.pages, &taken, 1);
        return failure_check(&context->failure, status, "mapping a page that two tensors share");
    }
    TRACKER_ADD(&context->records, map_count, 1);
    *edge = taken;
    context->memory.edge_page_count++;
    if (tensor_is_zero(split->old)) {
        status = device_fill(context->lanes.device, context->lanes.compute.stream,
                             page_address(split, page), 0, split->page_bytes);
    }
    return failure_check(&context->failure, status, "clearing a page that two tensors share");
}

/* Takes and maps the new edge pages of a tensor that is not mapped. On failure none is mapped. */
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
    lanes_quiesce(&context->lanes, &context->lanes.compute);
    for (size_t page = from; page < end; page++) {
        device_page *edge = &split->allocation->edge_pages[page];

        if (*edge != DEVICE_NO_PAGE &&
            device_unmap(context->lanes.device, page_address(split, page), 1) == CAPU_OK) {
            pages_give(context->memory.pages, edge, 1);
            *edge = DEVICE_NO_PAGE;
            context->memory.edge_page_count--;
        }
    }
    return status;
}

/* How many of the old tensor's pages, starting at its `index`-th, become one mapping: the pages of
   one part, or a single edge page. */
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

/* Replaces the mapping of a mapped tensor with one mapping per part and per edge page. The pages
   stay where they are, but a device can only unmap a whole mapping. On failure the old mapping is
   restored. */
static capu_status remap_parts(capu_context *context, struct split *split)
{
    struct tensor *old = split->old;
    size_t done = 0;
    capu_status status = lane_synchronize(&context->lanes.compute);

    if (status == CAPU_OK) {
        status = order_wait(old);
    }
    if (status == CAPU_OK) {
        status = device_unmap(context->lanes.device, old->span, old->page_count);
    }
    if (status != CAPU_OK) {
        return failure_check(&context->failure, status, "splitting a tensor");
    }
    while (done < old->page_count) {
        size_t count = run_length(split, done);

        status = device_map(context->lanes.device, page_address(split, first_page(split) + done),
                            &old->pages[done], count);
        if (status != CAPU_OK) {
            break;
        }
        done += count;
    }
    if (status == CAPU_OK) {
        return CAPU_OK;
    }
    status = failure_check(&context->failure, status, "splitting a tensor");
    if ((done > 0 && device_unmap(context->lanes.device, old->span, done) != CAPU_OK) ||
        device_map(context->lanes.device, old->span, old->pages, old->page_count) != CAPU_OK) {
        context->failure.lost = CAPU_DEVICE_LOST;
        return failure_set(&context->failure, CAPU_DEVICE_LOST,
                           "capu_split: the memory of '%s' could not be mapped again; the context "
                           "is lost",
                           lookup_name(&context->memory, old));
    }
    return status;
}

/* Distributes the pages of a mapped tensor among the parts and the edges. */
static void hand_over_pages(capu_context *context, struct split *split)
{
    size_t from = first_page(split);

    for (size_t i = 0; i < split->old->page_count; i++) {
        size_t owner = owner_of(split, from + i);
        size_t first;
        size_t end;

        if (owner == EDGE) {
            split->allocation->edge_pages[from + i] = split->old->pages[i];
            context->memory.edge_page_count++;
        } else {
            span_of(split, owner, &first, &end);
            split->parts[owner]->pages[from + i - first] = split->old->pages[i];
        }
    }
}

/* Copies the state of the old tensor to the parts. The named ranges get no name, kind or hint: they
   are new tensors, which the caller describes. */
static void inherit_state(struct split *split)
{
    const struct tensor *old = split->old;

    for (size_t i = 0; i < split->into.count; i++) {
        struct tensor *part = split->parts[i];

        if (i < split->into.named || i >= split->into.named_end) {
            part->name = old->name;
            part->kind = old->kind;
            part->hint = old->hint;
            part->is_persistent = old->is_persistent;
        }
        tensor_state_split(part, old);
        part->zeroed = old->zeroed;
        part->version = old->version;
        part->used = old->used;
        part->written = old->written;
        part->ready = old->ready;
        part->left = old->left;
    }
    split->parts[0]->out_bytes = old->out_bytes;
    split->parts[0]->back_bytes = old->back_bytes;
}

/* Takes the parts out of the index and puts the old tensor back. Cannot fail. */
static void reindex_old(capu_context *context, struct split *split, size_t part_count)
{
    for (size_t i = 1; i < part_count; i++) {
        tensors_remove(&context->memory.tensors, split->parts[i]);
        tensors_forget(&context->memory.tensors, split->parts[i]);
    }
    tensors_replace(&context->memory.tensors, split->parts[0], split->old);
}

/* Puts the parts into the index in place of the old tensor. The first one takes over its entry. */
static capu_status index_parts(capu_context *context, struct split *split)
{
    tensors_replace(&context->memory.tensors, split->old, split->parts[0]);
    for (size_t i = 1; i < split->into.count; i++) {
        if (tensors_add(&context->memory.tensors, split->parts[i]) != CAPU_OK) {
            reindex_old(context, split, i);
            return failure_set(&context->failure, CAPU_NO_HOST_MEMORY,
                               "capu_split: no memory for the index");
        }
    }
    return CAPU_OK;
}

/* Links the parts into the allocation and the lists in place of the old tensor, and frees it. */
static void replace_tensor(capu_context *context, struct split *split)
{
    struct tensor *old = split->old;
    struct tensor *last = old->previous;

    for (size_t i = 0; i < split->into.count; i++) {
        struct tensor *part = split->parts[i];

        part->previous = last;
        if (last != NULL) {
            last->next = part;
        } else {
            split->allocation->first = part;
        }
        last = part;
        page_census_tensor(&context->memory.census, part, 1);
        /* Lost contents stay lost, so that reading them fails. A part that is always resident
           cannot be lost; it becomes undefined instead. */
        if (tensor_is_defined(part)) {
            contents_define(&context->residency, part);
        }
        if (context->settings.is_paging) {
            victims_touch(&context->residency, part);
        }
    }
    swap_drop(&context->residency, old);
    last->next = old->next;
    if (old->next != NULL) {
        old->next->previous = last;
    }
    tensor_list_remove(old, RESIDENCY);
    if (old->contents.list == &context->memory.persistent) {
        tracker_persistent(&context->records, old, -1);
    }
    tracker_cut(&context->records, old);
    timeline_log_end(&context->records, old);
    tensor_list_remove(old, CONTENTS);
    page_census_tensor(&context->memory.census, old, -1);
    free(old->pages);
    free(old);
}

/* Allocates the list of the allocation's edge pages; none is mapped yet. */
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

/* Brings contents that are out, or leaving, back to the device: pages can be distributed only while
   the tensor holds them. */
static capu_status recall_contents(capu_context *context, struct tensor *tensor)
{
    bool has_bytes = !tensor_is_empty(tensor);
    capu_status status = CAPU_OK;

    if (!tensor_is_managed(tensor)) {
        return CAPU_OK;
    }
    tensor->in_op.stamp = victims_spare(&context->residency.victims);
    if (context->settings.is_paging) {
        pager_claim(&context->residency, tensor);
        if (has_bytes && !tensor_is_mapped(tensor)) {
            status = pager_make_room(&context->residency, tensor->page_count);
        }
    }
    if (status == CAPU_OK && has_bytes) {
        status = pager_bring(&context->residency, tensor, true);
    }
    if (status == CAPU_OK && tensor_is_mapped(tensor) && tensor_is_zero(tensor)) {
        /* In the record, filling in zeros is an op of its own. */
        status = tracker_reserve(&context->records, 1, 0, 0);
        status = status == CAPU_OK
                     ? pager_bring(&context->residency, tensor, true)
                     : failure_set(&context->failure, status, "capu_split: no memory to record it");
    }
    return status;
}

/* The parts get their edge pages beside whatever recovery may still have to make resident. */
static capu_status prepare_recovery(capu_context *context, struct split *split)
{
    struct tensor *old = split->old;
    size_t from = tensor_is_managed(old) ? first_page(split) : 0;
    size_t edges = 0;
    capu_status status = CAPU_OK;

    for (size_t page = from; page < from + old->page_count; page++) {
        edges += owner_of(split, page) == EDGE;
    }
    /* Replays of a plan find a small tensor by its address, and would now find a piece of it. */
    if (tensor_is_placed(old) || (context->iteration.is_open && !tensor_is_managed(old))) {
        status = leave_guide(&context->residency);
    } else if (!tensor_is_mapped(old)) {
        status = pager_leave_guide_for(&context->residency,
                                       tensor_is_empty(old) ? edges : old->page_count);
    }
    if (status == CAPU_OK) {
        status = recovery_end_early(&context->following, old);
    }
    return status != CAPU_OK ? status : recovery_before_fixed(&context->following, edges);
}

/* First does everything that can fail; then the parts take over. */
static capu_status carry_out_split(capu_context *context, struct split *split)
{
    capu_status status = split->into.count > 1 ? prepare_edges(split->allocation) : CAPU_OK;

    for (size_t i = 0; i < split->into.count && status == CAPU_OK; i++) {
        status = make_part(split, i);
    }
    if (status != CAPU_OK) {
        discard_parts(split);
        return failure_set(&context->failure, status, "capu_split: no memory for the pieces");
    }
    status = prepare_recovery(context, split);
    if (status == CAPU_OK) {
        status = recall_contents(context, split->old);
    }
    if (status == CAPU_OK) {
        status = index_parts(context, split);
    }
    if (status == CAPU_OK && tensor_is_managed(split->old)) {
        status =
            tensor_is_mapped(split->old) ? remap_parts(context, split) : map_edges(context, split);
        if (status != CAPU_OK) {
            reindex_old(context, split, split->into.count);
        }
    }
    if (status != CAPU_OK) {
        discard_parts(split);
        return status;
    }
    if (tensor_is_mapped(split->old)) {
        hand_over_pages(context, split);
    }
    inherit_state(split);
    replace_tensor(context, split);
    return CAPU_OK;
}

/* Replaces a tensor by these parts. Pre: they are not empty, and cover the tensor; the last one may
   be longer than what is there if it ends with the allocation. Errors are those of capu_split,
   after which nothing has changed. */
static capu_status split_tensor(capu_context *context, struct tensor *tensor,
                                struct split_parts into)
{
    struct split split = {.allocation = tensor->allocation,
                          .old = tensor,
                          .page_bytes = pages_bytes_each(context->memory.pages),
                          .into = into,
                          .parts = calloc(into.count, sizeof(*split.parts))};
    capu_status status;

    context_note_layout(context, tensor);
    status = split.parts != NULL ? carry_out_split(context, &split)
                                 : failure_set(&context->failure, CAPU_NO_HOST_MEMORY,
                                               "capu_split: no memory for the pieces");

    free(split.parts);
    return status;
}

capu_status split_lengthen(capu_context *context, struct tensor *last, uint64_t end)
{
    uint64_t starts[] = {
        (uint64_t)((unsigned char *)last->address - (unsigned char *)last->allocation->address),
        end};

    return split_tensor(context, last, (struct split_parts){.starts = starts, .count = 1});
}

/*
 * capu_split and capu_split_list: which tensors become which.
 */

/* Splits a tensor into what is before `address`, ranges of these sizes and what is after them. Does
   nothing if that is the tensor as it is. Pre: no range is empty, and all lie in the tensor. */
static capu_status split_at(capu_context *context, struct tensor *tensor, void *address,
                            const size_t *sizes, size_t count)
{
    const unsigned char *start = tensor->allocation->address;
    uint64_t at = (uint64_t)((unsigned char *)address - start);
    uint64_t first = (uint64_t)((unsigned char *)tensor->address - start);
    uint64_t *starts = calloc(count + 3, sizeof(*starts));
    struct split_parts into = {.starts = starts};
    capu_status status = CAPU_OK;

    if (starts == NULL) {
        return failure_set(&context->failure, CAPU_NO_HOST_MEMORY,
                           "capu_split: no memory for the pieces");
    }
    if (at > first) {
        starts[into.count++] = first;
    }
    into.named = into.count;
    for (size_t i = 0; i < count; i++) {
        starts[into.count++] = at;
        at += sizes[i];
    }
    into.named_end = into.count;
    if (at < first + tensor->bytes) {
        starts[into.count++] = at;
    }
    starts[into.count] = first + tensor->bytes;
    if (into.count > 1) {
        status = split_tensor(context, tensor, into);
    }
    free(starts);
    return status;
}

/* What a call names: `count` ranges, one after the other. */
struct ranges_named {
    const char *call;
    unsigned char *address;
    const size_t *sizes;
    size_t count;
};

static capu_status fail_crossing(capu_context *context, const struct ranges_named *named,
                                 size_t index, const void *address, struct tensor *tensor)
{
    return failure_set(&context->failure, CAPU_WRONG_ADDRESS,
                       "%s: %zu bytes at %p cross the end of '%s'", named->call,
                       named->sizes[index], address, lookup_name(&context->memory, tensor));
}

/* Whether there are ranges, none of them is empty, and all lie in one allocation. */
static capu_status check_ranges(capu_context *context, const struct ranges_named *named)
{
    const struct allocation *allocation;
    struct tensor *tensor;
    uint64_t left;
    capu_status status;

    if (named->count == 0 || named->sizes == NULL) {
        return failure_set(&context->failure, CAPU_INVALID, "%s: no sizes were given", named->call);
    }
    status = lookup_tensor(&context->memory, named->address, named->call, &tensor);
    if (status != CAPU_OK) {
        return status;
    }
    allocation = tensor->allocation;
    left = allocation->bytes - (uint64_t)(named->address - (unsigned char *)allocation->address);
    for (size_t i = 0; i < named->count; i++) {
        if (named->sizes[i] == 0) {
            return failure_set(&context->failure, CAPU_INVALID,
                               "%s of zero bytes (size %zu of %zu)", named->call, i + 1,
                               named->count);
        }
        if (named->sizes[i] > left) {
            const unsigned char *end = (unsigned char *)allocation->address + allocation->bytes;

            while (tensor->next != NULL) {
                tensor = tensor->next;
            }
            return fail_crossing(context, named, i, end - left, tensor);
        }
        left -= named->sizes[i];
    }
    return CAPU_OK;
}

/* Works off the ranges tensor by tensor: checks that none crosses the end of a tensor, or splits.
 */
static capu_status visit_ranges(capu_context *context, const struct ranges_named *named,
                                bool splits)
{
    unsigned char *address = named->address;
    capu_status status = CAPU_OK;
    size_t end;

    for (size_t i = 0; i < named->count && status == CAPU_OK; i = end) {
        struct tensor *tensor = tensors_find(&context->memory.tensors, address);
        unsigned char *from = address;

        for (end = i; end < named->count && address < tensor_end(tensor); end++) {
            if (named->sizes[end] > (uint64_t)(tensor_end(tensor) - address)) {
                return fail_crossing(context, named, end, address, tensor);
            }
            address += named->sizes[end];
        }
        if (splits) {
            status = split_at(context, tensor, from, &named->sizes[i], end - i);
        }
    }
    return status;
}

static capu_status split_ranges(capu_context *context, const struct ranges_named *named)
{
    capu_status status = context_uncaptured(&context, named->call);

    if (status == CAPU_OK) {
        status = check_ranges(context, named);
    }
    if (status == CAPU_OK) {
        status = visit_ranges(context, named, false);
    }
    return status != CAPU_OK ? status : visit_ranges(context, named, true);
}

capu_status capu_split(capu_context *context, void *address, size_t bytes)
{
    return split_ranges(context,
                        &(struct ranges_named){
                            .call = "capu_split", .address = address, .sizes = &bytes, .count = 1});
}

capu_status capu_split_list(capu_context *context, void *address, const size_t *sizes, size_t count)
{
    return split_ranges(context, &(struct ranges_named){.call = "capu_split_list",
                                                        .address = address,
                                                        .sizes = sizes,
                                                        .count = count});
}

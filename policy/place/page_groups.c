/* Where tensors are when: their residencies. Then the groups of pages that they hold. */
#include "policy/place/page_groups.h"

#include "base/array.h"
#include "base/assert.h"
#include "base/heap.h"
#include "policy/model/program.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/*
 * Two walks over the records: one counts the residencies of each tensor, one fills them in. Before
 * them, one walk backwards finds how late each prefetch may start: a prefetch that comes long
 * before its use does no harm by waiting for its pages, so placement may let it wait.
 */

struct pass {
    struct residencies *residencies;
    const struct program *program;
    const struct trace_index *trace_index;
    const struct timeline *timeline;
    struct program_walk walk;
    uint32_t at;                /* the record at hand */
    uint32_t *next;             /* per tensor: where its next residency goes */
    struct residency *leftover; /* per tensor: the end of what was resident at the start; to
                              UINT32_MAX: it has not ended yet */
    int64_t *start;             /* per record of a prefetch: when it is counted from */
    bool is_counting;
};

/*
 * No op starts later if no prefetch ends after the next op that accesses its tensor starts, or
 * after the next prefetch has to start. Of that time only half is used: nothing measured is exact.
 * Twice round, since what is fetched for the next iteration is needed in that.
 */
static void find_starts(const struct pass *pass, int64_t *needed)
{
    const struct timeline *timeline = pass->timeline;
    const struct trace *trace = pass->trace_index->trace;
    uint32_t count = timeline->record_count;
    int64_t link = INT64_MAX; /* when the next prefetch has to start */

    for (uint32_t t = 0; t < trace->tensor_count; t++) {
        needed[t] = INT64_MAX;
    }
    for (uint32_t i = count * 2; i-- > 0;) {
        const struct timeline_record *record = &timeline->records[i % count];
        int64_t start = (int64_t)record->span.start - (int64_t)timeline->begin_ns +
                        (i >= count ? pass->residencies->turn_ns : 0);

        if (record->item.kind == ACTION_PREFETCH) {
            int64_t end = needed[record->item.subject];
            int64_t latest = start;

            end = end < link ? end : link;
            if (end != INT64_MAX) {
                latest = end - (int64_t)(record->span.end - record->span.start);
            }
            link = latest > start ? latest : start;
            pass->start[i % count] = start + (link - start) / 2;
        } else if (item_is_run(&record->item)) {
            const struct trace_op *op = &trace->ops[record->item.subject];

            for (uint32_t j = 0; j < trace_operand_count(op); j++) {
                needed[trace->operands[op->first + j]] = start;
            }
        } else if (record->engine == ENGINE_D2H) {
            needed[record->item.subject] = start;
        }
    }
}

static capu_status note_arrival(void *user, const struct item *item, uint32_t tensor)
{
    struct pass *pass = user;
    const struct timeline_record *record = &pass->timeline->records[pass->at];

    if (pass->is_counting) {
        pass->residencies->first[tensor + 1]++;
        return CAPU_OK;
    }
    pass->residencies->list[pass->next[tensor]] =
        (struct residency){.from = pass->at,
                           .start = item->kind == ACTION_PREFETCH
                                        ? pass->start[pass->at]
                                        : (int64_t)(record->span.start - pass->timeline->begin_ns)};
    return CAPU_OK;
}

static capu_status note_departure(void *user, const struct item *item, uint32_t tensor)
{
    struct pass *pass = user;
    uint64_t end = pass->timeline->records[pass->at].span.end;
    uint32_t slot = pass->next[tensor];
    /* What was not used since the previous iteration is usable from before this one began. */
    int64_t after = (int64_t)end - (int64_t)pass->timeline->begin_ns;

    (void)item;
    if (pass->leftover[tensor].to == UINT32_MAX) {
        pass->leftover[tensor] = (struct residency){.to = pass->at, .end = after};
        return CAPU_OK;
    }
    if (!pass->is_counting) {
        pass->residencies->list[slot].to = pass->at;
        pass->residencies->list[slot].end = after;
        pass->next[tensor]++;
    }
    return CAPU_OK;
}

static const struct program_visitor no_visitor = {0};

/* The records are those of an iteration after others, so what was copied out before is on the host.
 */
static capu_status walk_earlier(struct pass *pass)
{
    const struct program *program = pass->program;
    capu_status status = program_walk_init(&pass->walk, program);

    for (uint32_t i = 0; i < program->count && status == CAPU_OK; i++) {
        status = program_walk_item(&pass->walk, &no_visitor, NULL, &program->items[i]);
    }
    return status;
}

/* Another iteration. */
static capu_status walk_iteration(struct pass *pass)
{
    static const struct program_visitor visitor = {.take = note_arrival, .give = note_departure};
    capu_status status = CAPU_OK;

    program_walk_turn(&pass->walk, &no_visitor, NULL);
    for (uint32_t t = 0; t < pass->trace_index->trace->tensor_count && status == CAPU_OK; t++) {
        pass->leftover[t].to = program_walk_is_resident(&pass->walk, t) ? UINT32_MAX : 0;
    }
    for (pass->at = 0; pass->at < pass->timeline->record_count && status == CAPU_OK; pass->at++) {
        status =
            program_walk_item(&pass->walk, &visitor, pass, &pass->timeline->records[pass->at].item);
    }
    return status;
}

/* What is resident at the end of the iteration is resident at the start of the next. */
static void close_round(struct pass *pass)
{
    struct residencies *residencies = pass->residencies;

    for (uint32_t t = 0; t < pass->trace_index->trace->tensor_count; t++) {
        if (pass->leftover[t].to == UINT32_MAX) {
            residencies->is_always[t] = 1;
        } else if (program_walk_is_resident(&pass->walk, t)) {
            struct residency *last = &residencies->list[pass->next[t]];

            last->to = pass->leftover[t].to + residencies->turn;
            last->end = pass->leftover[t].end + residencies->turn_ns;
        }
    }
}

capu_status residencies_init(struct residencies *residencies, const struct program *program,
                             const struct timeline *timeline)
{
    const struct trace_index *trace_index = program->trace_index;
    size_t tensors = (size_t)trace_index->trace->tensor_count + 1;
    struct pass pass = {.residencies = residencies,
                        .program = program,
                        .trace_index = trace_index,
                        .timeline = timeline,
                        .is_counting = true};
    int64_t *needed = malloc(tensors * sizeof(*needed));
    capu_status status = CAPU_NO_HOST_MEMORY;

    ASSERT(timeline->records != NULL);
    *residencies = (struct residencies){.turn = timeline->record_count,
                                        .turn_ns = (int64_t)timeline->iteration_ns};
    residencies->first = calloc(tensors + 1, sizeof(*residencies->first));
    residencies->is_always = calloc(tensors, sizeof(*residencies->is_always));
    pass.next = malloc(tensors * sizeof(*pass.next));
    pass.leftover = calloc(tensors, sizeof(*pass.leftover));
    pass.start = malloc(((size_t)timeline->record_count + 1) * sizeof(*pass.start));
    if (needed == NULL || pass.start == NULL || residencies->first == NULL ||
        residencies->is_always == NULL || pass.next == NULL || pass.leftover == NULL) {
        goto finish;
    }
    find_starts(&pass, needed);
    status = walk_earlier(&pass);
    status = status == CAPU_OK ? walk_iteration(&pass) : status;
    if (status != CAPU_OK) {
        goto finish;
    }
    for (uint32_t t = 0; t + 1 < tensors; t++) {
        residencies->first[t + 1] += residencies->first[t];
        pass.next[t] = residencies->first[t];
    }
    residencies->list =
        calloc((size_t)residencies->first[tensors - 1] + 1, sizeof(*residencies->list));
    if (residencies->list == NULL) {
        status = CAPU_NO_HOST_MEMORY;
        goto finish;
    }
    pass.is_counting = false;
    status = walk_iteration(&pass);
    if (status == CAPU_OK) {
        close_round(&pass);
    }

finish:
    free(needed);
    free(pass.start);
    free(pass.next);
    free(pass.leftover);
    program_walk_finish(&pass.walk);
    if (status != CAPU_OK) {
        residencies_finish(residencies);
    }
    return status;
}

void residencies_finish(struct residencies *residencies)
{
    free(residencies->first);
    free(residencies->list);
    free(residencies->is_always);
    *residencies = (struct residencies){0};
}

/*
 * Groups of pages: the heap of the busy ones, the lists of the free ones, and whether a tensor fits
 * into a group. A group keeps the residencies of its holders in issue order, so that this is a
 * binary search per residency of the tensor. The iteration is a circle: the last residency is also
 * before the first one.
 */

/* A group in no list. */
static capu_status new_group(struct page_groups *groups, uint32_t first, uint32_t count)
{
    struct page_group *group;

    if (!array_reserve(&groups->list, &groups->capacity, (size_t)groups->count + 1,
                       sizeof(*groups->list)) ||
        !array_reserve(&groups->busy, &groups->busy_capacity, (size_t)groups->count + 1,
                       sizeof(*groups->busy))) {
        return CAPU_NO_HOST_MEMORY;
    }
    group = &groups->list[groups->count++];
    if (groups->count > groups->made) {
        groups->made++;
        *group = (struct page_group){0};
    }
    group->first = first;
    group->count = count;
    group->residency_count = 0;
    group->begun = 0;
    return CAPU_OK;
}

static capu_status reserve_holders(struct page_group *group, uint32_t count)
{
    return array_reserve(&group->residencies, &group->residency_capacity, count,
                         sizeof(*group->residencies))
               ? CAPU_OK
               : CAPU_NO_HOST_MEMORY;
}

/* The group keeps `count` pages; the rest becomes a group with the same holders. Of those that have
   begun only the first, which the next iteration begins with, and the latest matter. */
static capu_status split_group(struct page_groups *groups, uint32_t index, uint32_t count)
{
    const struct page_group *old = &groups->list[index];
    capu_status status = new_group(groups, old->first + count, old->count - count);
    struct page_group *rest;
    uint32_t skipped;

    if (status != CAPU_OK) {
        return status;
    }
    old = &groups->list[index];
    rest = &groups->list[groups->count - 1];
    skipped = old->begun > 2 ? old->begun - 2 : 0;
    status = reserve_holders(rest, old->residency_count - skipped);
    if (status != CAPU_OK) {
        return status;
    }
    if (old->residency_count > 0) {
        rest->residencies[0] = old->residencies[0];
        memcpy(rest->residencies + 1, old->residencies + 1 + skipped,
               (old->residency_count - skipped - 1) * sizeof(*rest->residencies));
    }
    rest->residency_count = old->residency_count - skipped;
    rest->begun = old->begun - skipped;
    groups->list[index].count = count;
    return CAPU_OK;
}

/* The tensor's residencies into the group's, from the back. */
static capu_status hold(struct page_groups *groups, struct page_group *group, uint32_t tensor)
{
    const struct residency *own = groups->residencies->list + groups->residencies->first[tensor];
    uint32_t count = residencies_count(groups->residencies, tensor);
    uint32_t old = group->residency_count;
    capu_status status = reserve_holders(group, old + count);

    if (status != CAPU_OK) {
        return status;
    }
    group->residency_count = old + count;
    while (count > 0) {
        if (old > 0 && group->residencies[old - 1].from > own[count - 1].from) {
            group->residencies[old + count - 1] = group->residencies[old - 1];
            old--;
        } else {
            group->residencies[old + count - 1] = own[count - 1];
            count--;
        }
    }
    return CAPU_OK;
}

static bool is_released_before(const void *a, const void *b, const void *context)
{
    (void)context;
    return ((const struct page_groups_busy *)a)->to < ((const struct page_groups_busy *)b)->to;
}

static const struct heap_order by_release = {.element_bytes = sizeof(struct page_groups_busy),
                                             .is_before = is_released_before};

static void push_busy(struct page_groups *groups, uint32_t to, uint32_t group)
{
    struct page_groups_busy busy = {.to = to, .group = group};

    heap_push(groups->busy, groups->busy_count++, &busy, by_release);
}

static uint32_t pop_busy(struct page_groups *groups)
{
    uint32_t group = groups->busy[0].group;

    heap_pop(groups->busy, groups->busy_count--, by_release);
    return group;
}

/* The list for a group: where the next holder comes, in this iteration or the next; the last list
   is for groups without any. */
static uint32_t list_of(const struct page_groups *groups, const struct page_group *group)
{
    if (group->begun < group->residency_count) {
        return group->residencies[group->begun].from;
    }
    return group->residency_count > 0 ? groups->residencies->turn + group->residencies[0].from
                                      : groups->list_count - 1;
}

/* The first list from this one on that is not empty; list_count if there is none. */
uint32_t page_groups_find(const struct page_groups *groups, uint32_t list)
{
    size_t found = bits_next(&groups->filled, list);

    return found == BITS_NONE ? groups->list_count : (uint32_t)found;
}

static void set_free(struct page_groups *groups, uint32_t index)
{
    struct page_group *group = &groups->list[index];
    uint32_t list = list_of(groups, group);

    group->previous = NO_GROUP;
    group->next = groups->free[list];
    if (group->next != NO_GROUP) {
        groups->list[group->next].previous = index;
    } else {
        bits_add(&groups->filled, list);
    }
    groups->free[list] = index;
}

static void unset_free(struct page_groups *groups, uint32_t index)
{
    struct page_group *group = &groups->list[index];
    uint32_t list = list_of(groups, group);

    if (group->next != NO_GROUP) {
        groups->list[group->next].previous = group->previous;
    }
    if (group->previous != NO_GROUP) {
        groups->list[group->previous].next = group->next;
        return;
    }
    groups->free[list] = group->next;
    if (group->next == NO_GROUP) {
        bits_remove(&groups->filled, list);
    }
}

void page_groups_begin_sweep(struct page_groups *groups)
{
    ASSERT(!groups->is_sweeping);
    groups->is_sweeping = true;
    for (uint32_t g = 0; g < groups->count; g++) {
        const struct page_group *group = &groups->list[g];
        uint32_t to =
            group->residency_count > 0 ? group->residencies[group->residency_count - 1].to : 0;

        if (group->residency_count > 0 && to >= groups->residencies->turn) {
            unset_free(groups, g);
            push_busy(groups, to - groups->residencies->turn, g);
        }
    }
}

void page_groups_advance(struct page_groups *groups, uint32_t now)
{
    ASSERT(groups->is_sweeping);
    for (;;) {
        uint32_t list = page_groups_find(groups, 0);

        if (list <= now) {
            uint32_t index = groups->free[list];
            struct page_group *group = &groups->list[index];

            unset_free(groups, index);
            push_busy(groups, group->residencies[group->begun].to, index);
            group->begun++;
        } else if (groups->busy_count > 0 && groups->busy[0].to < now) {
            set_free(groups, pop_busy(groups));
        } else {
            return;
        }
    }
}

/* Whether one residency of a tensor fits between those before and after it, and how long either
   would wait. The one before may belong to the previous iteration, hence signed. */
static bool fits_between(const struct page_groups *groups, const struct page_group *group,
                         uint32_t next, const struct residency *own, int64_t *late)
{
    int64_t turn = groups->residencies->turn;
    int64_t turn_ns = groups->residencies->turn_ns;
    bool wraps_before = next == 0;
    bool wraps_after = next == group->residency_count;
    const struct residency *before =
        &group->residencies[wraps_before ? group->residency_count - 1 : next - 1];
    const struct residency *after = &group->residencies[wraps_after ? 0 : next];
    int64_t idle_before = own->start - before->end + (wraps_before ? turn_ns : 0);
    int64_t idle_after = after->start - own->end + (wraps_after ? turn_ns : 0);

    if ((int64_t)before->to - (wraps_before ? turn : 0) >= (int64_t)own->from ||
        (int64_t)own->to >= (int64_t)after->from + (wraps_after ? turn : 0)) {
        return false;
    }
    *late -= (idle_before < 0 ? idle_before : 0) + (idle_after < 0 ? idle_after : 0);
    return true;
}

bool page_groups_fit(const struct page_groups *groups, uint32_t index, uint32_t tensor,
                     int64_t *late, uint32_t *gap)
{
    const struct page_group *group = &groups->list[index];
    const struct residency *own = groups->residencies->list + groups->residencies->first[tensor];
    uint32_t count = residencies_count(groups->residencies, tensor);
    uint32_t next = group->begun;

    ASSERT(index < groups->made);
    *late = 0;
    *gap = UINT32_MAX;
    for (uint32_t i = 0; group->residency_count > 0 && i < count; i++) {
        uint32_t high = group->residency_count;

        while ((i > 0 || !groups->is_sweeping) && next < high) {
            uint32_t middle = next + (high - next) / 2;

            if (group->residencies[middle].from > own[i].from) {
                high = middle;
            } else {
                next = middle + 1;
            }
        }
        if (!fits_between(groups, group, next, &own[i], late)) {
            return false;
        }
        if (i == 0) {
            *gap = next < group->residency_count
                       ? group->residencies[next].from
                       : groups->residencies->turn + group->residencies[0].from;
            *gap -= own->to;
        }
    }
    return true;
}

capu_status page_groups_reset(struct page_groups *groups, const struct residencies *residencies)
{
    uint32_t lists = residencies->turn * 2 + 1;

    groups->residencies = residencies;
    groups->count = 0;
    groups->busy_count = 0;
    groups->is_sweeping = false;
    groups->list_count = lists;
    if (!array_reserve(&groups->free, &groups->free_capacity, lists, sizeof(*groups->free)) ||
        !(groups->filled.count == 0 ? bits_init(&groups->filled, lists)
                                    : bits_grow(&groups->filled, lists))) {
        return CAPU_NO_HOST_MEMORY;
    }
    memset(groups->free, 0xFF, lists * sizeof(*groups->free));
    bits_clear(&groups->filled);
    return CAPU_OK;
}

void page_groups_finish(struct page_groups *groups)
{
    for (uint32_t g = 0; g < groups->made; g++) {
        free(groups->list[g].residencies);
    }
    free(groups->list);
    free(groups->busy);
    free(groups->free);
    bits_finish(&groups->filled);
    *groups = (struct page_groups){0};
}

capu_status page_groups_add(struct page_groups *groups, uint32_t first, uint32_t count)
{
    capu_status status = new_group(groups, first, count);

    if (status == CAPU_OK) {
        set_free(groups, groups->count - 1);
    }
    return status;
}

capu_status page_groups_add_held(struct page_groups *groups, uint32_t first, uint32_t count,
                                 uint32_t tensor)
{
    capu_status status = new_group(groups, first, count);

    if (status == CAPU_OK) {
        status = hold(groups, &groups->list[groups->count - 1], tensor);
    }
    if (status == CAPU_OK) {
        set_free(groups, groups->count - 1);
    }
    return status;
}

capu_status page_groups_take(struct page_groups *groups, uint32_t index, uint32_t count,
                             uint32_t tensor)
{
    capu_status status = CAPU_OK;

    ASSERT(index < groups->count);
    ASSERT(count > 0 && count <= groups->list[index].count);
    unset_free(groups, index);
    if (count < groups->list[index].count) {
        status = split_group(groups, index, count);
        if (status != CAPU_OK) {
            return status;
        }
        set_free(groups, groups->count - 1);
    }
    status = hold(groups, &groups->list[index], tensor);
    if (status == CAPU_OK) {
        /* Busy as soon as the sweep goes on. */
        set_free(groups, index);
    }
    return status;
}

uint64_t page_groups_untouched(const struct page_groups *groups)
{
    uint64_t pages = 0;

    for (uint32_t g = 0; g < groups->count; g++) {
        pages += groups->list[g].residency_count == 0 ? groups->list[g].count : 0;
    }
    return pages;
}

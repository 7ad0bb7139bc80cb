/*
 * Colouring by a sweep over the issue order. Pages with the same holders so far form a group. What
 * is resident at the iteration border holds pages of its own there. All other tensors are taken by
 * the first residency: each is offered the groups that nobody holds now or during its later
 * residencies, takes those that fit it best in time, and splits the last.
 *
 * Busy groups wait in a heap for the release of their holder; a group that is free stays in a list
 * until a scan finds that the next of its holders has come. So each tensor looks at the free groups
 * alone, which are few where memory is short.
 */
#include "policy/place.h"

#include "policy/stays.h"
#include "policy/timeline.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct group {
    uint32_t first; /* page */
    uint32_t count;
    struct stay *stays; /* of its holders, by `from`; owned, kept from run to run */
    uint32_t stay_count;
    uint32_t stay_capacity;
    uint32_t begun; /* how many of them have begun */
};

struct busy {
    uint32_t to;
    uint32_t group;
};

/* A group that a tensor could have. */
struct offer {
    int64_t late; /* ns that somebody would wait */
    int64_t gap;  /* ns that it would lie idle before and after */
    uint32_t group;
    uint32_t first; /* page: decides between equals */
};

struct turn_order {
    uint32_t from;
    uint32_t tensor;
};

struct placer {
    const struct uses *uses;
    const struct machine *machine;
    struct stays stays; /* of the plan at hand */
    struct plan *plan;
    uint64_t page_count; /* handed out, or in groups */
    struct turn_order *order;
    uint32_t order_count;

    struct group *groups;
    uint32_t group_count;
    uint32_t group_capacity; /* of all that follow, too */
    uint32_t group_made;     /* slots that have been in use, with their `stays` */
    struct busy *busy;       /* a heap by `to` */
    uint32_t busy_count;
    uint32_t *free;
    uint32_t free_count;
    struct offer *offers;  /* a heap once they are all there */
    struct plan_run *runs; /* of the tensor at hand */
    uint32_t run_count;
};

static uint32_t pages_of(const struct placer *placer, uint32_t tensor)
{
    return (uint32_t)(placer->uses->rounded[tensor] / placer->uses->page_bytes);
}

static bool grow(void **array, size_t count, size_t size)
{
    void *grown = realloc(*array, count * size);

    if (grown != NULL) {
        *array = grown;
    }
    return grown != NULL;
}

static capu_status new_group(struct placer *placer, uint32_t first, uint32_t count)
{
    struct group *group;

    if (placer->group_count == placer->group_capacity) {
        size_t capacity = (size_t)placer->group_capacity * 2 + 64;

        if (!grow((void **)&placer->groups, capacity, sizeof(*placer->groups)) ||
            !grow((void **)&placer->busy, capacity, sizeof(*placer->busy)) ||
            !grow((void **)&placer->free, capacity, sizeof(*placer->free)) ||
            !grow((void **)&placer->offers, capacity, sizeof(*placer->offers)) ||
            !grow((void **)&placer->runs, capacity, sizeof(*placer->runs))) {
            return CAPU_NO_HOST_MEMORY;
        }
        placer->group_capacity = (uint32_t)capacity;
    }
    group = &placer->groups[placer->group_count++];
    if (placer->group_count > placer->group_made) {
        placer->group_made++;
        *group = (struct group){0};
    }
    group->first = first;
    group->count = count;
    group->stay_count = 0;
    group->begun = 0;
    return CAPU_OK;
}

static capu_status reserve(struct group *group, uint32_t count)
{
    uint32_t capacity = count * 2;

    if (count <= group->stay_capacity) {
        return CAPU_OK;
    }
    if (!grow((void **)&group->stays, capacity, sizeof(*group->stays))) {
        return CAPU_NO_HOST_MEMORY;
    }
    group->stay_capacity = capacity;
    return CAPU_OK;
}

/* The group keeps `count` pages; the rest becomes a group with the same holders. Of those that have
   begun only the first, which the next iteration begins with, and the latest matter. */
static capu_status split(struct placer *placer, uint32_t index, uint32_t count)
{
    const struct group *old = &placer->groups[index];
    capu_status status = new_group(placer, old->first + count, old->count - count);
    struct group *rest;
    uint32_t skipped;

    if (status != CAPU_OK) {
        return status;
    }
    old = &placer->groups[index];
    rest = &placer->groups[placer->group_count - 1];
    skipped = old->begun > 2 ? old->begun - 2 : 0;
    status = reserve(rest, old->stay_count - skipped);
    if (status != CAPU_OK) {
        return status;
    }
    if (old->stay_count > 0) {
        rest->stays[0] = old->stays[0];
        memcpy(rest->stays + 1, old->stays + 1 + skipped,
               (old->stay_count - skipped - 1) * sizeof(*rest->stays));
    }
    rest->stay_count = old->stay_count - skipped;
    rest->begun = old->begun - skipped;
    placer->groups[index].count = count;
    return CAPU_OK;
}

/* The tensor's stays into the group's, from the back. */
static capu_status hold(struct placer *placer, struct group *group, uint32_t tensor)
{
    const struct stay *own = placer->stays.list + placer->stays.first[tensor];
    uint32_t count = stays_count(&placer->stays, tensor);
    uint32_t old = group->stay_count;
    capu_status status = reserve(group, old + count);

    if (status != CAPU_OK) {
        return status;
    }
    group->stay_count = old + count;
    while (count > 0) {
        if (old > 0 && group->stays[old - 1].from > own[count - 1].from) {
            group->stays[old + count - 1] = group->stays[old - 1];
            old--;
        } else {
            group->stays[old + count - 1] = own[count - 1];
            count--;
        }
    }
    return CAPU_OK;
}

static void push_busy(struct placer *placer, uint32_t to, uint32_t group)
{
    uint32_t hole = placer->busy_count++;

    while (hole > 0 && placer->busy[(hole - 1) / 2].to > to) {
        placer->busy[hole] = placer->busy[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    placer->busy[hole] = (struct busy){.to = to, .group = group};
}

static uint32_t pop_busy(struct placer *placer)
{
    uint32_t group = placer->busy[0].group;
    struct busy moving = placer->busy[--placer->busy_count];
    uint32_t hole = 0;

    for (;;) {
        uint32_t child = hole * 2 + 1;

        if (child >= placer->busy_count) {
            break;
        }
        child +=
            child + 1 < placer->busy_count && placer->busy[child + 1].to < placer->busy[child].to;
        if (moving.to <= placer->busy[child].to) {
            break;
        }
        placer->busy[hole] = placer->busy[child];
        hole = child;
    }
    placer->busy[hole] = moving;
    return group;
}

static bool is_better(const struct offer *a, const struct offer *b)
{
    if (a->late != b->late) {
        return a->late < b->late;
    }
    return a->gap != b->gap ? a->gap < b->gap : a->first < b->first;
}

static void sift_offer(struct offer *offers, uint32_t count, uint32_t hole)
{
    struct offer moving = offers[hole];

    for (;;) {
        uint32_t child = hole * 2 + 1;

        if (child >= count) {
            break;
        }
        child += child + 1 < count && is_better(&offers[child + 1], &offers[child]);
        if (!is_better(&offers[child], &moving)) {
            break;
        }
        offers[hole] = offers[child];
        hole = child;
    }
    offers[hole] = moving;
}

/* What one stay of a tensor would cost between those before and after it; false: it cannot be. The
   stay before may be of the iteration before, hence signed. */
static bool fits_between(const struct placer *placer, const struct group *group, uint32_t next,
                         const struct stay *own, struct offer *offer)
{
    int64_t turn = placer->stays.turn;
    int64_t turn_ns = placer->stays.turn_ns;
    bool wraps_before = next == 0;
    bool wraps_after = next == group->stay_count;
    const struct stay *before = &group->stays[wraps_before ? group->stay_count - 1 : next - 1];
    const struct stay *after = &group->stays[wraps_after ? 0 : next];
    int64_t idle_before = own->start - before->end + (wraps_before ? turn_ns : 0);
    int64_t idle_after = after->start - own->end + (wraps_after ? turn_ns : 0);

    if ((int64_t)before->to - (wraps_before ? turn : 0) >= (int64_t)own->from ||
        (int64_t)own->to >= (int64_t)after->from + (wraps_after ? turn : 0)) {
        return false;
    }
    offer->late -= (idle_before < 0 ? idle_before : 0) + (idle_after < 0 ? idle_after : 0);
    offer->gap += idle_before + idle_after;
    return true;
}

/* Can the tensor have the group, which nobody holds at its first stay? */
static bool fits(const struct placer *placer, const struct group *group, uint32_t tensor,
                 struct offer *offer)
{
    const struct stay *own = placer->stays.list + placer->stays.first[tensor];
    uint32_t count = stays_count(&placer->stays, tensor);
    uint32_t next = group->begun;

    offer->late = 0;
    offer->gap = 0;
    if (group->stay_count == 0) {
        offer->gap = INT64_MAX;
        return true;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t high = group->stay_count;

        while (i > 0 && next < high) {
            uint32_t middle = next + (high - next) / 2;

            if (group->stays[middle].from > own[i].from) {
                high = middle;
            } else {
                next = middle + 1;
            }
        }
        if (!fits_between(placer, group, next, &own[i], offer)) {
            return false;
        }
    }
    return true;
}

/* Offers of all groups that are free now; those whose next holder has come move to the busy ones.
 */
static uint32_t collect_offers(struct placer *placer, uint32_t tensor, uint32_t now)
{
    uint32_t kept = 0;
    uint32_t count = 0;

    while (placer->busy_count > 0 && placer->busy[0].to < now) {
        placer->free[placer->free_count++] = pop_busy(placer);
    }
    for (uint32_t i = 0; i < placer->free_count; i++) {
        uint32_t index = placer->free[i];
        struct group *group = &placer->groups[index];
        struct offer *offer = &placer->offers[count];

        while (group->begun < group->stay_count && group->stays[group->begun].from < now) {
            group->begun++;
        }
        if (group->begun > 0 && group->stays[group->begun - 1].to >= now) {
            push_busy(placer, group->stays[group->begun - 1].to, index);
            continue;
        }
        placer->free[kept++] = index;
        offer->group = index;
        offer->first = group->first;
        count += fits(placer, group, tensor, offer);
    }
    placer->free_count = kept;
    return count;
}

static capu_status take(struct placer *placer, uint32_t index, uint32_t tensor, uint32_t count)
{
    capu_status status = CAPU_OK;

    if (count < placer->groups[index].count) {
        status = split(placer, index, count);
        if (status != CAPU_OK) {
            return status;
        }
        placer->free[placer->free_count++] = placer->group_count - 1;
    }
    placer->runs[placer->run_count++] = (struct plan_run){.first = placer->groups[index].first,
                                                          .count = placer->groups[index].count};
    return hold(placer, &placer->groups[index], tensor);
}

static int compare_runs(const void *a, const void *b)
{
    uint32_t x = ((const struct plan_run *)a)->first;
    uint32_t y = ((const struct plan_run *)b)->first;

    return x < y ? -1 : x > y;
}

/* The runs at hand, neighbours joined, as the tensor's place line. */
static capu_status write_line(struct placer *placer, uint32_t tensor)
{
    struct plan_run *runs = placer->runs;
    capu_status status = plan_add_place(placer->plan, tensor);

    qsort(runs, placer->run_count, sizeof(*runs), compare_runs);
    for (uint32_t i = 0; status == CAPU_OK && i < placer->run_count;) {
        struct plan_run run = runs[i++];

        while (i < placer->run_count && runs[i].first == run.first + run.count) {
            run.count += runs[i++].count;
        }
        status = plan_add_run(placer->plan, run.first, run.count);
    }
    placer->run_count = 0;
    return status;
}

/* Pages of its own for what is resident at the border. */
static capu_status place_at_border(struct placer *placer, uint32_t tensor)
{
    uint32_t count = pages_of(placer, tensor);
    uint32_t stays = stays_count(&placer->stays, tensor);
    uint32_t index = placer->group_count;
    capu_status status = new_group(placer, (uint32_t)placer->page_count, count);

    if (status != CAPU_OK) {
        return status;
    }
    placer->page_count += count;
    placer->runs[placer->run_count++] =
        (struct plan_run){.first = placer->groups[index].first, .count = count};
    if (stays == 0) {
        placer->group_count--; /* nobody else ever has them */
    } else {
        status = hold(placer, &placer->groups[index], tensor);
        push_busy(placer, placer->groups[index].stays[stays - 1].to - placer->stays.turn, index);
    }
    return status == CAPU_OK ? write_line(placer, tensor) : status;
}

static capu_status place_tensor(struct placer *placer, uint32_t tensor, uint32_t now)
{
    uint32_t need = pages_of(placer, tensor);
    uint32_t count = collect_offers(placer, tensor, now);
    capu_status status = CAPU_OK;

    for (uint32_t i = count / 2; i-- > 0;) {
        sift_offer(placer->offers, count, i);
    }
    while (status == CAPU_OK && need > 0 && count > 0) {
        uint32_t group = placer->offers[0].group;
        uint32_t pages = placer->groups[group].count;

        placer->offers[0] = placer->offers[--count];
        sift_offer(placer->offers, count > 0 ? count : 1, 0);
        pages = pages < need ? pages : need;
        status = take(placer, group, tensor, pages);
        need -= pages;
    }
    if (status == CAPU_OK && need > 0) {
        /* More than there are: how many it takes is still to be found out. */
        status = new_group(placer, (uint32_t)placer->page_count, need);
        placer->page_count += need;
        if (status == CAPU_OK) {
            placer->free[placer->free_count++] = placer->group_count - 1;
            status = take(placer, placer->group_count - 1, tensor, need);
        }
    }
    return status == CAPU_OK ? write_line(placer, tensor) : status;
}

static int compare_order(const void *a, const void *b)
{
    const struct turn_order *x = a;
    const struct turn_order *y = b;

    if (x->from != y->from) {
        return x->from < y->from ? -1 : 1;
    }
    return x->tensor < y->tensor ? -1 : x->tensor > y->tensor;
}

/* Whoever is resident at the border gets pages, the others get into the order of the sweep. */
static capu_status begin(struct placer *placer)
{
    const struct stays *stays = &placer->stays;
    uint32_t tensors = placer->uses->trace->tensor_count;
    capu_status status = CAPU_OK;

    placer->page_count = 0;
    placer->order_count = 0;
    placer->group_count = 0;
    placer->busy_count = 0;
    placer->free_count = 0;
    placer->run_count = 0;
    for (uint32_t t = 0; status == CAPU_OK && t < tensors; t++) {
        bool has_stays = stays_count(stays, t) > 0;

        if (placer->uses->rounded[t] == 0 || (!has_stays && !stays->is_always[t])) {
            continue;
        }
        if (!has_stays || stays->list[stays->first[t + 1] - 1].to >= stays->turn) {
            status = place_at_border(placer, t);
        } else {
            placer->order[placer->order_count++] =
                (struct turn_order){.from = stays->list[stays->first[t]].from, .tensor = t};
        }
    }
    qsort(placer->order, placer->order_count, sizeof(*placer->order), compare_order);
    return status;
}

static capu_status colour(struct placer *placer, uint64_t limit)
{
    capu_status status = begin(placer);

    if (status == CAPU_OK && placer->page_count < limit) {
        status =
            new_group(placer, (uint32_t)placer->page_count, (uint32_t)(limit - placer->page_count));
        if (status == CAPU_OK) {
            placer->free[placer->free_count++] = placer->group_count - 1;
            placer->page_count = limit;
        }
    }
    for (uint32_t i = 0; status == CAPU_OK && i < placer->order_count; i++) {
        status = place_tensor(placer, placer->order[i].tensor, placer->order[i].from);
    }
    return status;
}

/* What was used of the pages that there are: the last group may be untouched. */
static uint64_t count_used(const struct placer *placer)
{
    uint64_t used = placer->page_count;

    for (uint32_t g = 0; g < placer->group_count; g++) {
        used -= placer->groups[g].stay_count == 0 ? placer->groups[g].count : 0;
    }
    return used;
}

/*
 * With all pages there are from the start, so that nobody waits where it can be avoided; if they
 * run out, with pages added only where there is no other way.
 */
static capu_status colour_within(struct placer *placer, struct place_result *result)
{
    capu_status status = colour(placer, result->pages);

    result->needed = count_used(placer);
    if (status == CAPU_OK && result->needed > result->pages) {
        plan_clear_places(placer->plan);
        status = colour(placer, 0);
        result->needed = placer->page_count;
    }
    return status;
}

capu_status placer_run(struct placer *placer, struct plan *plan, struct place_result *result,
                       struct error_text *error)
{
    const struct uses *uses = placer->uses;
    struct timeline timeline = {0};
    capu_status status;

    *result = (struct place_result){.placed_ns = UINT64_MAX};
    plan_clear_places(plan);
    placer->plan = plan;
    result->pages = (plan->budget_bytes - plan->fixed_bytes) / uses->page_bytes;
    if (result->pages > PLAN_PAGES_MAX) {
        result->pages = PLAN_PAGES_MAX;
    }
    status = timeline_init(&timeline, uses, plan, placer->machine, true, error);
    if (status == CAPU_OK) {
        result->unplaced_ns = timeline.iteration_ns;
        status = stays_init(&placer->stays, uses, &timeline);
        timeline_finish(&timeline);
    }
    if (status == CAPU_OK) {
        status = colour_within(placer, result);
    }
    stays_finish(&placer->stays);
    if (status == CAPU_OK && result->needed > result->pages) {
        status = error_text_set(error, CAPU_OVER_BUDGET,
                                "the plan needs %" PRIu64 " pages, there are %" PRIu64,
                                result->needed, result->pages);
    }
    if (status == CAPU_OK) {
        status = timeline_init(&timeline, uses, plan, placer->machine, false, error);
        result->placed_ns = timeline.iteration_ns;
        timeline_finish(&timeline);
    }
    if (status != CAPU_OK) {
        plan_clear_places(plan);
    }
    return status;
}

capu_status placer_create(const struct uses *uses, const struct machine *machine,
                          struct placer **out, struct error_text *error)
{
    size_t tensors = (size_t)uses->trace->tensor_count + 1;
    struct placer *placer;
    uint64_t pages = 0;

    if (machine == NULL && !uses->trace->has_machine) {
        return error_text_set(error, CAPU_INVALID, "the trace names no machine");
    }
    for (uint32_t t = 0; t < uses->trace->tensor_count; t++) {
        pages += uses->rounded[t] / uses->page_bytes;
    }
    if (pages > PLAN_PAGES_MAX) {
        return error_text_set(error, CAPU_TOO_LARGE,
                              "pages of %" PRIu64 " bytes: the tensors need %" PRIu64
                              " of them, and %d is the most",
                              uses->page_bytes, pages, PLAN_PAGES_MAX);
    }
    placer = calloc(1, sizeof(*placer));
    if (placer == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    placer->uses = uses;
    placer->machine = machine;
    placer->order = malloc(tensors * sizeof(*placer->order));
    if (placer->order == NULL) {
        free(placer);
        return CAPU_NO_HOST_MEMORY;
    }
    *out = placer;
    return CAPU_OK;
}

void placer_destroy(struct placer *placer)
{
    if (placer == NULL) {
        return;
    }
    for (uint32_t g = 0; g < placer->group_made; g++) {
        free(placer->groups[g].stays);
    }
    free(placer->groups);
    free(placer->busy);
    free(placer->free);
    free(placer->offers);
    free(placer->runs);
    free(placer->order);
    free(placer);
}

capu_status place_plan(const struct uses *uses, const struct machine *machine, struct plan *plan,
                       struct place_result *result, struct error_text *error)
{
    struct placer *placer = NULL;
    capu_status status = placer_create(uses, machine, &placer, error);

    if (status == CAPU_OK) {
        status = placer_run(placer, plan, result, error);
    }
    placer_destroy(placer);
    return status;
}

/*
 * Colouring by a sweep over the issue order. Pages with the same holders so far form a group. What
 * is resident at the iteration border holds pages of its own there. All other tensors are taken by
 * the first residency: each looks for groups that nobody holds now or during its later residencies
 * and for which nobody would have to wait, takes those that the next holder needs soonest, and
 * splits the last. Pages that nobody has had yet come last; the less they suffice, the longer waits
 * are put up with for others: the shortest tolerance with which they do is looked for.
 *
 * Busy groups are in a heap until the release of their holder. Free ones are in one list for each
 * record of the timeline at which a next holder comes (of the next iteration, where none comes in
 * this one), and a bit set tells which lists are not empty. So a tensor finds the groups that fit
 * it best first, and mostly no others.
 */
#include "policy/place.h"

#include "policy/stays.h"
#include "policy/timeline.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define NO_GROUP UINT32_MAX
#define LEVELS 5 /* of the bit set: 2^30 lists, more than a trace can have records for */

struct group {
    uint32_t first; /* page */
    uint32_t count;
    struct stay *stays; /* of its holders, by `from`; owned, kept from run to run */
    uint32_t stay_count;
    uint32_t stay_capacity;
    uint32_t begun;    /* how many of them have begun */
    uint32_t next;     /* in the list of free groups, or NO_GROUP */
    uint32_t previous; /* the same */
};

struct busy {
    uint32_t to;
    uint32_t group;
};

/* A group that a tensor could have. */
struct offer {
    int64_t late; /* ns that somebody would wait */
    uint32_t group;
    uint32_t rank; /* in the order found: decides between equals */
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
    uint64_t limit;      /* of pages */
    int64_t tolerance;   /* ns to wait rather than take pages that nobody has had yet */
    bool must_fit;       /* gives up where the pages run out; else it adds some */
    struct turn_order *order;
    uint32_t order_count;

    uint32_t *free;  /* per record of two iterations, and one more: the first group of its list */
    uint64_t *words; /* which lists are not empty, one bit each; above it, which words are not 0 */
    uint32_t level_first[LEVELS + 1]; /* where each level of them begins */
    uint32_t list_count;
    uint32_t list_capacity;

    struct group *groups;
    uint32_t group_count;
    uint32_t group_capacity; /* of all that follow, too */
    uint32_t group_made;     /* slots that have been in use, with their `stays` */
    struct busy *busy;       /* a heap by `to` */
    uint32_t busy_count;
    struct offer *offers;
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

/* The list for a group: where the next holder comes, in this iteration or the next; the last list
   is for groups without any. */
static uint32_t list_of(const struct placer *placer, const struct group *group)
{
    if (group->begun < group->stay_count) {
        return group->stays[group->begun].from;
    }
    return group->stay_count > 0 ? placer->stays.turn + group->stays[0].from
                                 : placer->list_count - 1;
}

static void set_bit(struct placer *placer, uint32_t list)
{
    for (uint32_t level = 0; level < LEVELS; level++) {
        uint64_t *word = &placer->words[placer->level_first[level] + list / 64];
        bool was_empty = *word == 0;

        *word |= (uint64_t)1 << (list % 64);
        if (!was_empty) {
            break;
        }
        list /= 64;
    }
}

static void clear_bit(struct placer *placer, uint32_t list)
{
    for (uint32_t level = 0; level < LEVELS; level++) {
        uint64_t *word = &placer->words[placer->level_first[level] + list / 64];

        *word &= ~((uint64_t)1 << (list % 64));
        if (*word != 0) {
            break;
        }
        list /= 64;
    }
}

/* The first list from this one on that is not empty; list_count if there is none. */
static uint32_t find_list(const struct placer *placer, uint32_t list)
{
    uint32_t level = 0;
    uint64_t rest = 0;

    for (; level < LEVELS; level++) {
        uint32_t word = list / 64;

        if (word >= placer->level_first[level + 1] - placer->level_first[level]) {
            return placer->list_count;
        }
        rest = placer->words[placer->level_first[level] + word] & (~(uint64_t)0 << (list % 64));
        if (rest != 0) {
            list = word * 64 + (uint32_t)__builtin_ctzll(rest);
            break;
        }
        list = word + 1;
    }
    if (rest == 0) {
        return placer->list_count;
    }
    while (level-- > 0) {
        rest = placer->words[placer->level_first[level] + list];
        list = list * 64 + (uint32_t)__builtin_ctzll(rest);
    }
    return list;
}

static void set_free(struct placer *placer, uint32_t index)
{
    struct group *group = &placer->groups[index];
    uint32_t list = list_of(placer, group);

    group->previous = NO_GROUP;
    group->next = placer->free[list];
    if (group->next != NO_GROUP) {
        placer->groups[group->next].previous = index;
    } else {
        set_bit(placer, list);
    }
    placer->free[list] = index;
}

static void unset_free(struct placer *placer, uint32_t index)
{
    struct group *group = &placer->groups[index];
    uint32_t list = list_of(placer, group);

    if (group->next != NO_GROUP) {
        placer->groups[group->next].previous = group->previous;
    }
    if (group->previous != NO_GROUP) {
        placer->groups[group->previous].next = group->next;
        return;
    }
    placer->free[list] = group->next;
    if (group->next == NO_GROUP) {
        clear_bit(placer, list);
    }
}

/* Groups whose holder has left by now become free, those whose next holder has come busy. */
static void advance(struct placer *placer, uint32_t now)
{
    for (;;) {
        uint32_t list = find_list(placer, 0);

        if (list <= now) {
            uint32_t index = placer->free[list];
            struct group *group = &placer->groups[index];

            unset_free(placer, index);
            push_busy(placer, group->stays[group->begun].to, index);
            group->begun++;
        } else if (placer->busy_count > 0 && placer->busy[0].to < now) {
            set_free(placer, pop_busy(placer));
        } else {
            return;
        }
    }
}

/* Whether one stay of a tensor fits between those before and after it, and who would wait then. The
   one before may be of the iteration before, hence signed. */
static bool fits_between(const struct placer *placer, const struct group *group, uint32_t next,
                         const struct stay *own, int64_t *late)
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
    *late -= (idle_before < 0 ? idle_before : 0) + (idle_after < 0 ? idle_after : 0);
    return true;
}

/* Can the tensor have the group, which nobody holds at its first stay? */
static bool fits(const struct placer *placer, const struct group *group, uint32_t tensor,
                 int64_t *late)
{
    const struct stay *own = placer->stays.list + placer->stays.first[tensor];
    uint32_t count = stays_count(&placer->stays, tensor);
    uint32_t next = group->begun;

    *late = 0;
    for (uint32_t i = 0; group->stay_count > 0 && i < count; i++) {
        uint32_t high = group->stay_count;

        while (i > 0 && next < high) {
            uint32_t middle = next + (high - next) / 2;

            if (group->stays[middle].from > own[i].from) {
                high = middle;
            } else {
                next = middle + 1;
            }
        }
        if (!fits_between(placer, group, next, &own[i], late)) {
            return false;
        }
    }
    return true;
}

static int compare_offers(const void *a, const void *b)
{
    const struct offer *x = a;
    const struct offer *y = b;

    if (x->late != y->late) {
        return x->late < y->late ? -1 : 1;
    }
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* Adds groups from the list of those that nobody has had. */
static uint32_t choose_fresh(struct placer *placer, uint32_t chosen, uint32_t *need)
{
    for (uint32_t g = placer->free[placer->list_count - 1]; *need > 0 && g != NO_GROUP;
         g = placer->groups[g].next) {
        placer->offers[chosen++] = (struct offer){.group = g};
        *need -= placer->groups[g].count < *need ? placer->groups[g].count : *need;
    }
    return chosen;
}

/*
 * Groups for so many pages of the tensor: those without waiting first, as soon as they suffice no
 * others. The number of groups; *need is what they fall short of.
 */
static uint32_t choose(struct placer *placer, uint32_t tensor, uint32_t *need)
{
    const struct stay *own = &placer->stays.list[placer->stays.first[tensor]];
    struct offer *offers = placer->offers;
    uint32_t chosen = 0;
    uint32_t late = placer->group_count; /* the late ones, from the back */
    bool has_fresh = true;

    for (uint32_t list = find_list(placer, own->to + 1); *need > 0 && list < placer->list_count - 1;
         list = find_list(placer, list + 1)) {
        for (uint32_t g = placer->free[list]; *need > 0 && g != NO_GROUP;
             g = placer->groups[g].next) {
            struct offer offer = {.group = g, .rank = placer->group_count - late};

            if (!fits(placer, &placer->groups[g], tensor, &offer.late)) {
                continue;
            }
            if (offer.late > 0) {
                offers[--late] = offer;
                continue;
            }
            offers[chosen++] = offer;
            *need -= placer->groups[g].count < *need ? placer->groups[g].count : *need;
        }
    }
    if (*need > 0) {
        qsort(offers + late, placer->group_count - late, sizeof(*offers), compare_offers);
    }
    while (*need > 0 && (has_fresh || late < placer->group_count)) {
        uint32_t pages;

        if (has_fresh && (late == placer->group_count || offers[late].late > placer->tolerance)) {
            has_fresh = false;
            chosen = choose_fresh(placer, chosen, need);
            continue;
        }
        pages = placer->groups[offers[late].group].count;
        offers[chosen++] = offers[late++];
        *need -= pages < *need ? pages : *need;
    }
    return chosen;
}

static capu_status take(struct placer *placer, uint32_t index, uint32_t tensor, uint32_t count)
{
    capu_status status = CAPU_OK;

    unset_free(placer, index);
    if (count < placer->groups[index].count) {
        status = split(placer, index, count);
        if (status != CAPU_OK) {
            return status;
        }
        set_free(placer, placer->group_count - 1);
    }
    placer->runs[placer->run_count++] = (struct plan_run){.first = placer->groups[index].first,
                                                          .count = placer->groups[index].count};
    status = hold(placer, &placer->groups[index], tensor);
    if (status == CAPU_OK) {
        set_free(placer, index);
    }
    return status;
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
    uint32_t pages = pages_of(placer, tensor);
    uint32_t missing = pages;
    uint32_t count;
    capu_status status = CAPU_OK;

    advance(placer, now);
    count = choose(placer, tensor, &missing);
    pages -= missing;
    for (uint32_t i = 0; status == CAPU_OK && i < count; i++) {
        uint32_t group = placer->offers[i].group;
        uint32_t own = placer->groups[group].count;

        own = own < pages ? own : pages;
        status = take(placer, group, tensor, own);
        pages -= own;
    }
    if (status == CAPU_OK && missing > 0) {
        /* More than there are. */
        status = new_group(placer, (uint32_t)placer->page_count, missing);
        placer->page_count += missing;
        if (status == CAPU_OK) {
            set_free(placer, placer->group_count - 1);
            status = take(placer, placer->group_count - 1, tensor, missing);
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

/* Empty lists for the records of the plan at hand. */
static capu_status clear_lists(struct placer *placer)
{
    uint32_t lists = placer->stays.turn * 2 + 1;
    uint32_t words = 0;
    uint32_t own = lists;

    for (uint32_t level = 0; level < LEVELS; level++) {
        placer->level_first[level] = words;
        own = own / 64 + 1;
        words += own;
    }
    placer->level_first[LEVELS] = words;
    placer->list_count = lists;
    if (lists > placer->list_capacity) {
        if (!grow((void **)&placer->free, lists, sizeof(*placer->free)) ||
            !grow((void **)&placer->words, words, sizeof(*placer->words))) {
            return CAPU_NO_HOST_MEMORY;
        }
        placer->list_capacity = lists;
    }
    memset(placer->free, 0xFF, lists * sizeof(*placer->free));
    memset(placer->words, 0, words * sizeof(*placer->words));
    return CAPU_OK;
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

/* Places everything. Where it must fit and does not: OVER_BUDGET, half done. */
static capu_status colour(struct placer *placer)
{
    capu_status status = clear_lists(placer);

    plan_clear_places(placer->plan);
    if (status == CAPU_OK) {
        status = begin(placer);
    }
    if (status == CAPU_OK && placer->page_count < placer->limit) {
        status = new_group(placer, (uint32_t)placer->page_count,
                           (uint32_t)(placer->limit - placer->page_count));
        if (status == CAPU_OK) {
            set_free(placer, placer->group_count - 1);
            placer->page_count = placer->limit;
        }
    }
    for (uint32_t i = 0; status == CAPU_OK && i < placer->order_count; i++) {
        if (placer->must_fit && placer->page_count > placer->limit) {
            return CAPU_OVER_BUDGET;
        }
        status = place_tensor(placer, placer->order[i].tensor, placer->order[i].from);
    }
    return status == CAPU_OK && placer->page_count > placer->limit ? CAPU_OVER_BUDGET : status;
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
 * With the least tolerance for which the pages suffice. Without any, nobody waits; with all of it
 * the pages are used most sparingly.
 */
static capu_status colour_within(struct placer *placer, uint64_t limit, uint64_t *needed)
{
    /* As parts of an iteration: where plans were measured to begin to fit, and to begin to hurt. */
    static const int64_t parts[] = {0, 200, 100, 50, 20, 5, 1};
    size_t low = 1;
    size_t high = sizeof(parts) / sizeof(parts[0]) - 1;
    capu_status status;

    placer->limit = limit;
    placer->tolerance = 0;
    placer->must_fit = true;
    status = colour(placer);
    if (status == CAPU_OVER_BUDGET) {
        placer->tolerance = INT64_MAX;
        placer->must_fit = false;
        status = colour(placer);
    } else {
        high = 0;
    }
    *needed = count_used(placer);
    placer->must_fit = true;
    while (low < high && (status == CAPU_OK || status == CAPU_OVER_BUDGET)) {
        size_t middle = low + (high - low) / 2;

        if (*needed > limit) {
            return CAPU_OVER_BUDGET;
        }
        placer->tolerance = placer->stays.turn_ns / parts[middle];
        status = colour(placer);
        if (status == CAPU_OK) {
            high = middle;
            *needed = count_used(placer);
        } else {
            low = middle + 1;
        }
    }
    if (status == CAPU_OVER_BUDGET && *needed <= limit) {
        placer->tolerance = parts[high] > 1 ? placer->stays.turn_ns / parts[high] : INT64_MAX;
        status = colour(placer);
        *needed = count_used(placer);
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
        status = colour_within(placer, result->pages, &result->needed);
    }
    stays_finish(&placer->stays);
    if (status == CAPU_OVER_BUDGET) {
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
    free(placer->words);
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

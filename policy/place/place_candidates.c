/*
 * Which pages a tensor gets. Groups that need no wait are taken as they are found, in the order in
 * which their next holders come (best fit in time). Only if they do not suffice, the others are
 * ordered by the wait that they cost, in a heap, as mostly few of many are taken; unused pages are
 * taken before any wait beyond the tolerance.
 */
#include "policy/place/place_state.h"

#include "base/array.h"
#include "base/heap.h"

#include <stdlib.h>

static bool is_sooner(const void *left, const void *right, const void *context)
{
    const struct place_candidate *a = left;
    const struct place_candidate *b = right;

    (void)context;
    return a->late != b->late ? a->late < b->late : a->rank < b->rank;
}

/* Late candidates are a heap, the soonest first: mostly few of many are taken. */
static const struct heap_order soonest_first = {.element_bytes = sizeof(struct place_candidate),
                                                .is_before = is_sooner};

static void choose(struct placer *placer, uint32_t group, uint32_t *need)
{
    uint32_t pages = placer->groups.list[group].count;

    placer->chosen[placer->chosen_count++] = group;
    *need -= pages < *need ? pages : *need;
}

/* Used groups that fit: those that need no wait into `chosen` until they suffice, the others into
   `late`. */
static void collect(struct placer *placer, uint32_t tensor, uint32_t *need)
{
    const struct page_groups *groups = &placer->groups;
    const struct residency *own = &placer->residencies.list[placer->residencies.first[tensor]];

    for (uint32_t list = page_groups_find(groups, own->to + 1);
         *need > 0 && list < groups->list_count - 1; list = page_groups_find(groups, list + 1)) {
        for (uint32_t g = groups->free[list]; *need > 0 && g != NO_GROUP;
             g = groups->list[g].next) {
            struct place_candidate candidate = {.group = g};

            if (!page_groups_fit(groups, g, tensor, &candidate.late, &candidate.rank)) {
                continue;
            }
            candidate.rank = placer->late_count;
            if (candidate.late > 0) {
                placer->late[placer->late_count++] = candidate;
            } else {
                choose(placer, g, need);
            }
        }
    }
}

/* The same before the sweep: all of them into `late`; among those without a wait, the closest fit
   comes first. */
static void collect_unordered(struct placer *placer, uint32_t tensor)
{
    const struct page_groups *groups = &placer->groups;

    for (uint32_t g = 0; g < groups->count; g++) {
        struct place_candidate candidate = {.group = g};

        if (groups->list[g].residency_count > 0 &&
            page_groups_fit(groups, g, tensor, &candidate.late, &candidate.rank)) {
            placer->late[placer->late_count++] = candidate;
        }
    }
}

void place_candidates_choose(struct placer *placer, uint32_t tensor, uint32_t *need)
{
    const struct page_groups *groups = &placer->groups;
    struct place_candidate *late = placer->late;
    bool has_fresh = true;

    placer->chosen_count = 0;
    placer->late_count = 0;
    if (groups->is_sweeping) {
        collect(placer, tensor, need);
    } else {
        collect_unordered(placer, tensor);
    }
    if (*need > 0) {
        heap_build(late, placer->late_count, soonest_first);
    }
    while (*need > 0 && (has_fresh || placer->late_count > 0)) {
        if (has_fresh && (placer->late_count == 0 || late[0].late > placer->tolerance)) {
            has_fresh = false;
            for (uint32_t g = groups->free[groups->list_count - 1]; *need > 0 && g != NO_GROUP;
                 g = groups->list[g].next) {
                choose(placer, g, need);
            }
            continue;
        }
        placer->late_ns += late[0].late;
        choose(placer, late[0].group, need);
        heap_pop(late, placer->late_count--, soonest_first);
    }
}

static int compare_runs(const void *a, const void *b)
{
    uint32_t x = ((const struct plan_run *)a)->first;
    uint32_t y = ((const struct plan_run *)b)->first;

    return x < y ? -1 : x > y;
}

capu_status place_candidates_write(struct placer *placer, uint32_t tensor)
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

capu_status place_candidates_reserve(struct placer *placer)
{
    size_t needed = (size_t)placer->groups.count + 1;

    return array_reserve(&placer->late, &placer->late_capacity, needed, sizeof(*placer->late)) &&
                   array_reserve(&placer->chosen, &placer->chosen_capacity, needed,
                                 sizeof(*placer->chosen)) &&
                   array_reserve(&placer->runs, &placer->run_capacity, needed,
                                 sizeof(*placer->runs))
               ? CAPU_OK
               : CAPU_NO_HOST_MEMORY;
}

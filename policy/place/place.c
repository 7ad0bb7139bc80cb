/*
 * Placement as colouring of an interval graph by a sweep over the issue order: tensors are
 * intervals (several each, on a circle), pages are colours. A tensor needs many pages, and they
 * need not be adjacent, so there is no fragmentation; the question is only which free pages to
 * take.
 *
 * What is resident at the iteration border holds pages of its own there. All other tensors are
 * placed in the order of their first residency. Each takes pages that no tensor holds now or during
 * its later residencies and that need no wait, first those that their next holder needs soonest
 * (best fit in time). Unused pages come last. If they do not suffice, waiting for pages is
 * tolerated; a search finds the shortest tolerance with which the pages suffice.
 *
 * If a tensor has to wait, the sweep is also tried with long tensors placed before it, the longest
 * first: what comes between them is then known to them. Neither order is always better.
 */
#include "policy/place/place.h"

#include "base/array.h"
#include "base/assert.h"
#include "base/heap.h"
#include "policy/model/timeline.h"
#include "policy/model/validate.h"
#include "policy/place/page_groups.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A group that a tensor could have. */
struct place_candidate {
    int64_t late; /* ns that tensors would wait */
    uint32_t group;
    uint32_t rank; /* in the order found, or by how well it fits: decides between equals */
};

struct turn_order {
    uint32_t rank; /* record at which it comes, or how much shorter than all it is */
    uint32_t tensor;
};

struct placer {
    const struct trace_index *trace_index;
    const struct machine *machine;
    struct residencies residencies; /* of the current plan */
    struct plan *plan;
    const struct plan *kept; /* place lines to keep; NULL: none */
    uint8_t *is_kept;        /* per page below the limit; not without `kept` */
    size_t kept_capacity;
    uint8_t *has_kept;   /* per tensor: it has the pages of `kept` */
    uint64_t page_count; /* handed out, or in groups; more than the limit: they did not suffice */
    uint64_t limit;      /* of pages */
    int64_t tolerance;   /* ns to wait rather than take unused pages */
    bool must_fit;       /* gives up if the pages run out; else it adds some */
    bool is_long_first;
    int64_t late_ns;          /* all waits together */
    struct turn_order *order; /* long tensors, if they come first, and the others */
    uint32_t long_count;
    uint32_t order_count;

    struct page_groups groups;
    struct place_candidate *late; /* of the current tensor, as all that follow */
    uint32_t late_count;
    size_t late_capacity;
    uint32_t *chosen;
    uint32_t chosen_count;
    size_t chosen_capacity;
    struct plan_run *runs;
    uint32_t run_count;
    size_t run_capacity;
};

static uint32_t pages_of(const struct placer *placer, uint32_t tensor)
{
    return (uint32_t)(placer->trace_index->rounded[tensor] / placer->trace_index->page_bytes);
}

/*
 * Which pages a tensor gets. Groups that need no wait are taken as they are found, in the order in
 * which their next holders come (best fit in time). Only if they do not suffice, the others are
 * ordered by the wait that they cost, in a heap, as mostly few of many are taken; unused pages are
 * taken before any wait beyond the tolerance.
 */

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

static void choose_group(struct placer *placer, uint32_t group, uint32_t *need)
{
    uint32_t pages = placer->groups.list[group].count;

    placer->chosen[placer->chosen_count++] = group;
    *need -= pages < *need ? pages : *need;
}

/* Used groups that fit: those that need no wait into `chosen` until they suffice, the others into
   `late`. */
static void collect_fitting(struct placer *placer, uint32_t tensor, uint32_t *need)
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
                choose_group(placer, g, need);
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

/* Chooses groups with so many pages for the tensor, into `chosen`; *need becomes the number of
   pages that are missing. */
static void choose_groups(struct placer *placer, uint32_t tensor, uint32_t *need)
{
    const struct page_groups *groups = &placer->groups;
    struct place_candidate *late = placer->late;
    bool has_fresh = true;

    placer->chosen_count = 0;
    placer->late_count = 0;
    if (groups->is_sweeping) {
        collect_fitting(placer, tensor, need);
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
                choose_group(placer, g, need);
            }
            continue;
        }
        placer->late_ns += late[0].late;
        choose_group(placer, late[0].group, need);
        heap_pop(late, placer->late_count--, soonest_first);
    }
}

static int compare_runs(const void *a, const void *b)
{
    uint32_t x = ((const struct plan_run *)a)->first;
    uint32_t y = ((const struct plan_run *)b)->first;

    return x < y ? -1 : x > y;
}

/* Writes the current runs, neighbours joined, as the tensor's place line. */
static capu_status write_place(struct placer *placer, uint32_t tensor)
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

/* Room for one candidate, choice and run per group, and one more. */
static capu_status reserve_choices(struct placer *placer)
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

/* Which tensor comes when. */

/* Gives the pages of a run to a tensor that is resident at the border. */
static capu_status hold_at_border(struct placer *placer, uint32_t tensor, struct plan_run run)
{
    capu_status status = reserve_choices(placer);

    if (status == CAPU_OK) {
        placer->runs[placer->run_count++] = run;
    }
    if (status == CAPU_OK && !placer->residencies.is_always[tensor]) {
        status = page_groups_add_held(&placer->groups, run.first, run.count, tensor);
    }
    return status;
}

static void skip_kept(struct placer *placer)
{
    while (placer->kept != NULL && placer->page_count < placer->limit &&
           placer->is_kept[placer->page_count]) {
        placer->page_count++;
    }
}

/* The next unused pages that are not reserved for kept lines, at most so many in a row. */
static struct plan_run next_run(struct placer *placer, uint64_t most)
{
    struct plan_run run = {.count = 0};

    skip_kept(placer);
    run.first = (uint32_t)placer->page_count;
    while (run.count < most && (placer->kept == NULL || placer->page_count >= placer->limit ||
                                !placer->is_kept[placer->page_count])) {
        run.count++;
        placer->page_count++;
    }
    return run;
}

static capu_status place_at_border(struct placer *placer, uint32_t tensor)
{
    uint64_t need = pages_of(placer, tensor);
    capu_status status = CAPU_OK;

    while (status == CAPU_OK && need > 0) {
        struct plan_run run = next_run(placer, need);

        need -= run.count;
        status = hold_at_border(placer, tensor, run);
    }
    return status == CAPU_OK ? write_place(placer, tensor) : status;
}

static capu_status place_tensor(struct placer *placer, uint32_t tensor)
{
    struct page_groups *groups = &placer->groups;
    uint32_t pages = pages_of(placer, tensor);
    uint32_t missing = pages;
    capu_status status = reserve_choices(placer);

    if (status != CAPU_OK) {
        return status;
    }
    if (groups->is_sweeping) {
        page_groups_advance(groups,
                            placer->residencies.list[placer->residencies.first[tensor]].from);
    }
    choose_groups(placer, tensor, &missing);
    pages -= missing;
    if (missing > 0) {
        /* More than there are. */
        placer->chosen[placer->chosen_count++] = groups->count;
        status = page_groups_add(groups, (uint32_t)placer->page_count, missing);
        placer->page_count += missing;
        pages += missing;
    }
    for (uint32_t i = 0; status == CAPU_OK && i < placer->chosen_count; i++) {
        const struct page_group *group = &groups->list[placer->chosen[i]];
        uint32_t count = group->count < pages ? group->count : pages;

        placer->runs[placer->run_count++] =
            (struct plan_run){.first = group->first, .count = count};
        status = page_groups_take(groups, placer->chosen[i], count, tensor);
        pages -= count;
    }
    return status == CAPU_OK ? write_place(placer, tensor) : status;
}

static int compare_order(const void *a, const void *b)
{
    const struct turn_order *x = a;
    const struct turn_order *y = b;

    if (x->rank != y->rank) {
        return x->rank < y->rank ? -1 : 1;
    }
    return x->tensor < y->tensor ? -1 : x->tensor > y->tensor;
}

static bool is_at_border(const struct residencies *residencies, uint32_t tensor)
{
    return residencies->is_always[tensor] ||
           (residencies_count(residencies, tensor) > 0 &&
            residencies->list[residencies->first[tensor + 1] - 1].to >= residencies->turn);
}

/* Can the line keep its pages: do they exist, are they as many as the tensor needs, and still free?
 */
static bool can_keep(const struct placer *placer, const struct plan_place *place)
{
    uint64_t pages = 0;

    if (place->tensor >= placer->trace_index->trace->tensor_count ||
        pages_of(placer, place->tensor) == 0 ||
        !is_at_border(&placer->residencies, place->tensor) || placer->has_kept[place->tensor]) {
        return false;
    }
    for (uint32_t r = 0; r < place->count; r++) {
        const struct plan_run *run = &placer->kept->runs[place->first + r];

        if (run->first >= placer->limit || run->count > placer->limit - run->first) {
            return false;
        }
        pages += run->count;
        for (uint32_t p = 0; p < run->count; p++) {
            if (placer->is_kept[run->first + p]) {
                return false;
            }
        }
    }
    return pages == pages_of(placer, place->tensor);
}

/* Gives kept pages to the tensors that are resident at the border; the others have no contents to
   keep there. */
static capu_status keep_pages(struct placer *placer)
{
    capu_status status = CAPU_OK;

    if (!array_reserve(&placer->is_kept, &placer->kept_capacity, placer->limit, 1)) {
        return CAPU_NO_HOST_MEMORY;
    }
    memset(placer->is_kept, 0, placer->kept_capacity);
    memset(placer->has_kept, 0, placer->trace_index->trace->tensor_count);
    for (uint32_t i = 0; status == CAPU_OK && i < placer->kept->place_count; i++) {
        const struct plan_place *place = &placer->kept->places[i];

        if (!can_keep(placer, place)) {
            continue;
        }
        for (uint32_t r = 0; status == CAPU_OK && r < place->count; r++) {
            const struct plan_run *run = &placer->kept->runs[place->first + r];

            memset(placer->is_kept + run->first, 1, run->count);
            status = hold_at_border(placer, place->tensor, *run);
        }
        placer->has_kept[place->tensor] = 1;
        if (status == CAPU_OK) {
            status = write_place(placer, place->tensor);
        }
    }
    return status;
}

/* Tensors that are resident for at least half of the iteration are long. */
static void put_in_order(struct placer *placer)
{
    const struct residencies *residencies = &placer->residencies;
    uint32_t tensors = placer->trace_index->trace->tensor_count;

    placer->long_count = 0;
    placer->order_count = 0;
    for (int is_second = !placer->is_long_first; is_second < 2; is_second++) {
        struct turn_order *order = placer->order + placer->order_count;
        uint32_t count = 0;

        for (uint32_t t = 0; t < tensors; t++) {
            uint32_t held = 0;
            bool is_long;

            if (pages_of(placer, t) == 0 || residencies_count(residencies, t) == 0 ||
                is_at_border(residencies, t)) {
                continue;
            }
            for (uint32_t i = residencies->first[t]; i < residencies->first[t + 1]; i++) {
                held += residencies->list[i].to - residencies->list[i].from;
            }
            is_long = placer->is_long_first && held >= residencies->turn / 2;
            if (is_long != (is_second != 0)) {
                order[count++] = (struct turn_order){
                    .rank =
                        is_long ? UINT32_MAX - held : residencies->list[residencies->first[t]].from,
                    .tensor = t};
            }
        }
        qsort(order, count, sizeof(*order), compare_order);
        placer->order_count += count;
        placer->long_count += is_second == 0 ? count : 0;
    }
}

/* Gives pages to the tensors that are resident at the border, puts the others in the order of the
   sweep, and the remaining pages into groups. */
static capu_status begin_colouring(struct placer *placer)
{
    const struct residencies *residencies = &placer->residencies;
    uint32_t tensors = placer->trace_index->trace->tensor_count;
    capu_status status = page_groups_reset(&placer->groups, residencies);

    plan_clear_places(placer->plan);
    placer->page_count = 0;
    placer->late_ns = 0;
    placer->run_count = 0;
    if (status == CAPU_OK && placer->kept != NULL) {
        status = keep_pages(placer);
    }
    for (uint32_t t = 0; status == CAPU_OK && t < tensors; t++) {
        if (pages_of(placer, t) == 0 || (placer->kept != NULL && placer->has_kept[t])) {
            continue;
        }
        if (is_at_border(residencies, t)) {
            status = place_at_border(placer, t);
        }
    }
    skip_kept(placer);
    while (status == CAPU_OK && placer->page_count < placer->limit) {
        struct plan_run run = next_run(placer, placer->limit - placer->page_count);

        status = page_groups_add(&placer->groups, run.first, run.count);
        skip_kept(placer);
    }
    put_in_order(placer);
    return status;
}

/* Places everything. If it must fit and does not: OVER_BUDGET, half done. */
static capu_status colour(struct placer *placer)
{
    capu_status status = begin_colouring(placer);

    for (uint32_t i = 0; status == CAPU_OK && i < placer->order_count; i++) {
        if (placer->must_fit && placer->page_count > placer->limit) {
            return CAPU_OVER_BUDGET;
        }
        if (i == placer->long_count) {
            page_groups_begin_sweep(&placer->groups);
        }
        status = place_tensor(placer, placer->order[i].tensor);
    }
    return status == CAPU_OK && placer->page_count > placer->limit ? CAPU_OVER_BUDGET : status;
}

/* Places within the limit, waiting only where no unused pages are left. */
static capu_status colour_strictly(struct placer *placer, bool is_long_first)
{
    placer->tolerance = 0;
    placer->must_fit = true;
    placer->is_long_first = is_long_first;
    return colour(placer);
}

static uint64_t pages_used(const struct placer *placer)
{
    return placer->page_count - page_groups_untouched(&placer->groups);
}

/*
 * Places with the least tolerance for which the pages suffice. With none, no tensor waits while
 * unused pages are left; with the largest, the fewest pages are used.
 */
static capu_status colour_sparingly(struct placer *placer, uint64_t *needed)
{
    /* As parts of an iteration; measured: where plans begin to fit, and where waits begin to hurt.
     */
    static const int64_t parts[] = {10000, 3000, 1000, 400, 200, 100, 50, 20, 5, 1};
    size_t low = 0;
    size_t high = sizeof(parts) / sizeof(parts[0]) - 1;
    capu_status status;

    placer->tolerance = INT64_MAX;
    placer->must_fit = false;
    placer->is_long_first = false;
    status = colour(placer);
    *needed = pages_used(placer);
    placer->must_fit = true;
    while (low < high && (status == CAPU_OK || status == CAPU_OVER_BUDGET)) {
        size_t middle = low + (high - low) / 2;

        if (*needed > placer->limit) {
            return CAPU_OVER_BUDGET;
        }
        placer->tolerance = placer->residencies.turn_ns / parts[middle];
        status = colour(placer);
        if (status == CAPU_OK) {
            high = middle;
            *needed = pages_used(placer);
        } else {
            low = middle + 1;
        }
    }
    if (status == CAPU_OVER_BUDGET && *needed <= placer->limit) {
        placer->tolerance = parts[high] > 1 ? placer->residencies.turn_ns / parts[high] : INT64_MAX;
        status = colour(placer);
        *needed = pages_used(placer);
    }
    return status;
}

/* Without waits if possible; else with the shortest total wait. */
static capu_status colour_within(struct placer *placer, uint64_t limit, uint64_t *needed)
{
    int64_t late_ns[2];
    capu_status status = CAPU_OVER_BUDGET;

    placer->limit = limit;
    for (int i = 0; i < 2; i++) {
        status = colour_strictly(placer, i > 0);
        *needed = pages_used(placer);
        late_ns[i] = status == CAPU_OK ? placer->late_ns : INT64_MAX;
        if (late_ns[i] == 0 || (status != CAPU_OK && status != CAPU_OVER_BUDGET)) {
            return status;
        }
    }
    if (late_ns[0] == INT64_MAX) {
        status = colour_sparingly(placer, needed);
        late_ns[0] = status == CAPU_OK ? placer->late_ns : INT64_MAX;
        if (late_ns[0] <= late_ns[1] || (status != CAPU_OK && status != CAPU_OVER_BUDGET)) {
            return status;
        }
    } else if (late_ns[0] > late_ns[1]) {
        return status;
    }
    status = colour_strictly(placer, late_ns[1] < late_ns[0]);
    *needed = pages_used(placer);
    return status;
}

capu_status placer_run(struct placer *placer, struct plan *plan, struct program *program,
                       struct place_result *result, struct error_text *error)
{
    const struct trace_index *trace_index = placer->trace_index;
    struct timeline timeline = {0};
    capu_status status;

    *result = (struct place_result){.placed_ns = UINT64_MAX};
    plan_clear_places(plan);
    ASSERT(program->plan == plan && plan->budget_bytes >= plan->fixed_bytes);
    ASSERT_EXPENSIVE(validate_is_sound(trace_index, plan));
    placer->plan = plan;
    result->pages = (plan->budget_bytes - plan->fixed_bytes) / trace_index->page_bytes;
    if (result->pages > PLAN_PAGES_MAX) {
        result->pages = PLAN_PAGES_MAX;
    }
    status = program_place(program, error);
    if (status == CAPU_OK) {
        status = timeline_of(&timeline, program, placer->machine, true, error);
    }
    if (status == CAPU_OK) {
        result->unplaced_ns = timeline.iteration_ns;
        status = residencies_init(&placer->residencies, program, &timeline);
        timeline_finish(&timeline);
    }
    if (status == CAPU_OK) {
        status = colour_within(placer, result->pages, &result->needed);
    }
    residencies_finish(&placer->residencies);
    if (status == CAPU_OVER_BUDGET) {
        status = error_text_set(error, CAPU_OVER_BUDGET,
                                "the plan needs %" PRIu64 " pages, there are %" PRIu64,
                                result->needed, result->pages);
    }
    if (status == CAPU_OK) {
        status = program_place(program, error);
    }
    if (status == CAPU_OK) {
        status = timeline_of(&timeline, program, placer->machine, false, error);
        result->placed_ns = timeline.iteration_ns;
        timeline_finish(&timeline);
    }
    if (status != CAPU_OK) {
        plan_clear_places(plan);
        placement_finish(&program->placement);
    }
    return status;
}

void placer_destroy(struct placer *placer)
{
    if (placer == NULL) {
        return;
    }
    page_groups_finish(&placer->groups);
    free(placer->is_kept);
    free(placer->has_kept);
    free(placer->late);
    free(placer->chosen);
    free(placer->runs);
    free(placer->order);
    free(placer);
}

capu_status placer_create(const struct trace_index *trace_index, const struct machine *machine,
                          const struct plan *kept, struct placer **out, struct error_text *error)
{
    size_t tensors = (size_t)trace_index->trace->tensor_count + 1;
    struct placer *placer;
    uint64_t pages = 0;

    if (machine == NULL && !trace_index->trace->has_machine) {
        return error_text_set(error, CAPU_INVALID, "the trace names no machine");
    }
    for (uint32_t t = 0; t < trace_index->trace->tensor_count; t++) {
        pages += trace_index->rounded[t] / trace_index->page_bytes;
    }
    if (pages > PLAN_PAGES_MAX) {
        return error_text_set(error, CAPU_TOO_LARGE,
                              "pages of %" PRIu64 " bytes: the tensors need %" PRIu64
                              " of them, and %d is the most",
                              trace_index->page_bytes, pages, PLAN_PAGES_MAX);
    }
    placer = calloc(1, sizeof(*placer));
    if (placer == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    placer->trace_index = trace_index;
    placer->machine = machine;
    placer->kept = kept;
    placer->order = malloc(tensors * sizeof(*placer->order));
    placer->has_kept = calloc(tensors, 1);
    if (placer->order == NULL || placer->has_kept == NULL) {
        placer_destroy(placer);
        return CAPU_NO_HOST_MEMORY;
    }
    *out = placer;
    return CAPU_OK;
}

capu_status place_plan(const struct trace_index *trace_index, const struct machine *machine,
                       struct plan *plan, struct place_result *result, struct error_text *error)
{
    struct placer *placer = NULL;
    struct program program = {0};
    capu_status status = placer_create(trace_index, machine, NULL, &placer, error);

    *result = (struct place_result){.placed_ns = UINT64_MAX};
    if (status == CAPU_OK) {
        plan_clear_places(plan);
        status = program_init(&program, trace_index, plan, error);
    }
    if (status == CAPU_OK) {
        status = placer_run(placer, plan, &program, result, error);
    }
    program_finish(&program);
    placer_destroy(placer);
    return status;
}

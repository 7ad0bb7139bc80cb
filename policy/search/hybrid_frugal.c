/*
 * A start of planner hybrid for budgets in which pages are scarce. A tensor has the same pages in
 * all its residencies, so close to the floor nothing that the greedy decides may find a placement.
 * With every tensor away between its accesses there is one, but at a multiple of the copies. So
 * this start begins there, and keeps tensors in gaps as long as the plan can be placed and takes no
 * longer: the shortest gaps first, which keep their pages from the fewest others. Many gaps are
 * tried at once, and half as many where that fails.
 */
#include "policy/search/hybrid_state.h"

#include <stdlib.h>
#include <string.h>

/* Plans that are placed: at most so many, and fewer on many ops, so that they take about as long as
   a scan; but so many in any case, which is enough for large parts of the gaps. */
#define TRIES_MAX 400
#define TRIES_MIN 12
/* As many as walk over so many ops; with quick effort, a part of it. */
#define TRIED_OPS 20000
#define QUICK_PART 4

struct frugal {
    struct hybrid *hybrid;
    struct lower_options options;
    struct plan plan; /* the one tried last */
    struct frugal_gap *gaps;
    uint32_t gap_count;
    uint32_t tries_left;
    uint64_t best_ns; /* UINT64_MAX: there is no placement */
};

struct frugal_gap {
    uint32_t gap;
    uint32_t length; /* in ops */
};

static int compare_gaps(const void *a, const void *b)
{
    const struct frugal_gap *x = a;
    const struct frugal_gap *y = b;

    if (x->length != y->length) {
        return x->length < y->length ? -1 : 1;
    }
    return x->gap < y->gap ? -1 : x->gap > y->gap;
}

/* Lists the gaps in which tensors may be kept, the shortest first. */
static capu_status list_gaps(struct frugal *frugal)
{
    const struct lower *lower = frugal->hybrid->planning->lower;
    const struct trace *trace = frugal->hybrid->planning->request->trace_index->trace;

    frugal->gaps = malloc(((size_t)trace->operand_count + 1) * sizeof(*frugal->gaps));
    if (frugal->gaps == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    for (uint32_t gap = 0; gap < trace->operand_count; gap++) {
        capu_hint hint = (capu_hint)trace->tensors[lower_gap_tensor(lower, gap)].hint;
        uint32_t start = lower_gap_start(lower, gap);
        uint32_t end = lower_gap_end(lower, gap);

        if (end != TRACE_INDEX_NONE && end > start + 1 && hint != CAPU_HINT_SWAP &&
            hint != CAPU_HINT_RECOMPUTE) {
            frugal->gaps[frugal->gap_count++] = (struct frugal_gap){gap, end - start};
        }
    }
    qsort(frugal->gaps, frugal->gap_count, sizeof(*frugal->gaps), compare_gaps);
    return CAPU_OK;
}

/* Is there a placed plan of the decisions that takes no longer than the best? */
static capu_status try_decisions(struct frugal *frugal, bool *is_good)
{
    struct planning *planning = frugal->hybrid->planning;
    struct place_result result;
    capu_status status =
        lower_run(planning->lower, frugal->hybrid->decisions, &frugal->options, &frugal->plan);

    if (status == CAPU_OK) {
        status = planner_place(planning, &frugal->plan, &result, NULL);
    }
    *is_good = status == CAPU_OK && result.placed_ns <= frugal->best_ns;
    if (*is_good) {
        frugal->best_ns = result.placed_ns;
    }
    return status == CAPU_NO_HOST_MEMORY ? status : CAPU_OK;
}

static void decide(struct frugal *frugal, uint32_t from, uint32_t to, enum decision decision)
{
    for (uint32_t i = from; i < to; i++) {
        frugal->hybrid->decisions[frugal->gaps[i].gap] = (uint8_t)decision;
    }
}

/* Keeps tensors in as many gaps as it can. */
static capu_status keep_in_gaps(struct frugal *frugal)
{
    uint32_t from = 0;
    uint32_t width = frugal->gap_count;
    capu_status status = CAPU_OK;

    while (status == CAPU_OK && from < frugal->gap_count && frugal->tries_left > 0) {
        uint32_t left = frugal->gap_count - from;
        bool is_good;

        width = width < left ? width : left;
        decide(frugal, from, from + width, DECIDE_KEEP);
        status = try_decisions(frugal, &is_good);
        frugal->tries_left--;
        if (is_good) {
            from += width;
            width *= 2;
            continue;
        }
        decide(frugal, from, from + width, DECIDE_SWAP);
        from += width == 1;
        width -= width / 2;
    }
    return status;
}

static uint32_t count_tries(const struct planner_request *request)
{
    uint32_t tries = TRIED_OPS / (request->trace_index->trace->op_count + 1);

    tries /= request->effort == CAPU_EFFORT_QUICK ? QUICK_PART : 1;
    tries = tries > TRIES_MIN ? tries : TRIES_MIN;
    return tries < TRIES_MAX ? tries : TRIES_MAX;
}

/* The decisions, if there is a placed plan of them at the planning's limit. */
static capu_status find_decisions(struct frugal *frugal)
{
    struct planning *planning = frugal->hybrid->planning;
    bool is_good;
    capu_status status = plan_init_like(&frugal->plan, planning->plan);

    if (status == CAPU_OK) {
        status = list_gaps(frugal);
    }
    memset(frugal->hybrid->decisions, DECIDE_SWAP, lower_gap_count(planning->lower));
    if (status == CAPU_OK) {
        status = try_decisions(frugal, &is_good);
    }
    if (status == CAPU_OK && is_good) {
        status = keep_in_gaps(frugal);
    }
    return status;
}

capu_status hybrid_scan_frugal(struct hybrid *hybrid)
{
    struct planning *planning = hybrid->planning;
    struct search *search = &hybrid->starts[hybrid->start_count];
    struct frugal frugal = {
        .hybrid = hybrid, .tries_left = count_tries(planning->request), .best_ns = UINT64_MAX};
    uint64_t ns;
    capu_status status;

    lower_use_virtual_reads(planning->lower, false);
    frugal.options = planner_paging_options(planning);
    frugal.options.victims = VICTIM_FARTHEST_USE;
    status = find_decisions(&frugal);
    plan_finish(&frugal.plan);
    free(frugal.gaps);
    if (status != CAPU_OK || frugal.best_ns == UINT64_MAX ||
        (hybrid->start_count > 0 && frugal.best_ns >= hybrid->starts[0].best_ns)) {
        return status;
    }
    status = search_init(search, planning);
    hybrid->start_count++;
    hybrid_select(hybrid, search);
    search->floor_ns = hybrid->floor_ns;
    return status == CAPU_OK ? search_try(search, hybrid->decisions, &frugal.options, &ns) : status;
}

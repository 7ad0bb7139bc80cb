/*
 * The starts of planner hybrid. The scan: one greedy run per price, and each result lowered in
 * several ways. The right lead and the use of saves depend on how busy the links are, which is
 * known only after lowering; a few variants are cheaper than a model of that. Then two more kinds
 * of starts: with returns, and from the plan that copies most.
 */
#include "policy/model/timeline.h"
#include "policy/search/hybrid_state.h"

#include <stdlib.h>
#include <string.h>

#define ABSORB_MAX 3

/* Plans the evictions that the lowering was forced to as swaps, so that the next lowering
   prefetches them. */
capu_status hybrid_absorb(struct hybrid *hybrid, const struct lower_options *options, uint64_t *ns)
{
    uint32_t gaps = lower_gap_count(hybrid->planning->lower);
    uint64_t best = *ns;
    capu_status status = CAPU_OK;

    for (uint32_t i = 0; status == CAPU_OK && i < ABSORB_MAX; i++) {
        const uint8_t *forced = lower_forced(hybrid->planning->lower);
        bool has_changed = false;

        for (uint32_t gap = 0; gap < gaps; gap++) {
            if (forced[gap] && hybrid->decisions[gap] == DECIDE_KEEP) {
                hybrid->decisions[gap] = DECIDE_SWAP;
                has_changed = true;
            }
        }
        if (!has_changed) {
            break;
        }
        status = search_try(hybrid->search, hybrid->decisions, options, ns);
        if (*ns >= best) {
            break;
        }
        best = *ns;
    }
    *ns = best;
    return status;
}

/* Lowers the current decisions with several leads, with and without saves. *best: the best time. */
static capu_status try_variants(struct hybrid *hybrid, const struct greedy_options *greedy,
                                uint64_t *best)
{
    static const struct {
        double lead;
        bool with_save;
        bool is_cautious;
    } variants[] = {{1000.0, true, false}, {2.0, true, false},    {1000.0, true, true},
                    {0.0, true, false},    {1000.0, false, true}, {2.0, false, false},
                    {8.0, true, false},    {0.0, false, true}};
    size_t count = hybrid->effort->variants;
    struct lower_options options = planner_full_options(hybrid->planning);
    capu_status status = CAPU_OK;

    *best = UINT64_MAX;
    options.estimate_ns = greedy_estimate(hybrid->greedy);
    options.safety = greedy->safety;
    for (size_t i = 0; status == CAPU_OK && i < count; i++) {
        uint64_t ns;

        options.lead = variants[i].lead;
        options.with_save = variants[i].with_save;
        options.is_cautious = variants[i].is_cautious;
        status = search_try(hybrid->search, hybrid->decisions, &options, &ns);
        if (status == CAPU_OK && i == 0) {
            status = hybrid_absorb(hybrid, &options, &ns);
        }
        *best = ns < *best ? ns : *best;
    }
    return status;
}

/* The kinds of starts. Where dead tensors are kept, chains read much: most of these price that. */
static const struct {
    double theta;
    uint32_t first_round;
    bool is_wary;
    bool has_virtual;
} kinds[] = {{0.02, 8, false, false}, {0.1, 16, false, false}, {0.05, 16, false, false},
             {0.3, 24, false, false}, {0.1, 16, true, true},   {0.05, 16, true, true},
             {0.1, 16, false, true},  {0.02, 8, false, true}};

bool hybrid_has_virtual(const struct hybrid *hybrid)
{
    return lower_gap_count(hybrid->planning->lower) >
           hybrid->planning->request->trace_index->trace->operand_count;
}

/* The first start is seldom far off. Where there are virtual reads, the first are one without and
   two with them, at different prices; the others are mostly of the better kind, since a larger
   space costs effort. */
uint32_t hybrid_kind(const struct hybrid *hybrid, uint32_t start)
{
    static const uint32_t usual[] = {1, 2, 0, 3};
    static const uint32_t first[] = {1, 5, 4};
    static const uint32_t plain[] = {0, 3, 2};
    static const uint32_t with_virtual[] = {6, 3, 7};
    const struct search *starts = hybrid->starts;

    if (!hybrid_has_virtual(hybrid)) {
        return usual[start];
    }
    if (start < 3) {
        return first[start];
    }
    return starts[1].best_ns < starts[0].best_ns || starts[2].best_ns < starts[0].best_ns
               ? with_virtual[start - 3]
               : plain[start - 3];
}

void hybrid_select(struct hybrid *hybrid, struct search *search)
{
    hybrid->search = search;
    lower_use_virtual_reads(hybrid->planning->lower, search->has_virtual);
}

/* A greedy run from scratch, and its variants. */
capu_status hybrid_scan_one(struct hybrid *hybrid, uint32_t kind)
{
    struct greedy_options options = {.theta = kinds[kind].theta,
                                     .safety = 1.0,
                                     .margin = 1.0,
                                     .with_swap = true,
                                     .with_drop = true,
                                     .is_wary = kinds[kind].is_wary,
                                     .first_round = kinds[kind].first_round,
                                     .rounds_max = hybrid->effort->rounds_max};
    uint32_t gaps = lower_gap_count(hybrid->planning->lower);
    uint64_t ns;
    capu_status status;

    hybrid->search->has_virtual = kinds[kind].has_virtual;
    hybrid_select(hybrid, hybrid->search);
    memset(hybrid->decisions, DECIDE_KEEP, gaps);
    status = greedy_run(hybrid->greedy, &options, hybrid->decisions, &hybrid->search->scratch);
    return status == CAPU_OK ? try_variants(hybrid, &options, &ns) : status;
}

/*
 * Returns before the border. Where parameters are swapped, the links are often
 * busy when an iteration begins, and idle when it ends, while memory is emptiest. The greedy prices
 * the gap across the border as a whole; here some of those swaps are turned into returns, chosen by
 * the timeline of the finished plan: what is fetched before the ops that wait in the first half of
 * the iteration, in this order, until their copies take as long as the waits, and twice and half as
 * much, and all of it. What makes the iteration faster is kept.
 */

/* The choice is made again so often while it gains something. */
#define ROUNDS_MAX 3

/* What could return, in the order in which it is fetched. */
struct returning {
    uint32_t *gaps;
    uint64_t *ends_ns; /* what all copies up to this one take together */
    uint32_t count;    /* up to the last op that waits */
    uint64_t waited_ns;
};

/* The gap of the tensor that crosses the border; TRACE_INDEX_NONE: it cannot return. */
static uint32_t border_gap(const struct search *search, uint32_t tensor)
{
    const struct trace_index *trace_index = search->planning->request->trace_index;
    uint32_t last = trace_index->first[tensor + 1] - 1;

    return trace_index->trace->tensors[tensor].persistent &&
                   lower_can_return(search->planning->lower, last)
               ? last
               : TRACE_INDEX_NONE;
}

/* Is there a tensor that may start on the host? Decisions of another planner's plan are unknown. */
static bool can_gain(const struct search *search)
{
    bool result = false;

    for (uint32_t i = 0; search->best_ns != UINT64_MAX && i < search->best.action_count; i++) {
        const struct plan_action *action = &search->best.actions[i];

        result = result || (action->kind == ACTION_PREFETCH && search->options.limit_bytes > 0 &&
                            border_gap(search, action->tensor) != TRACE_INDEX_NONE);
    }
    return result;
}

/* What is first fetched before an op that waits, in order. */
static void list_returning(const struct hybrid *hybrid, const struct timeline *timeline,
                           uint8_t *seen, struct returning *returning)
{
    const struct trace_index *trace_index = hybrid->planning->request->trace_index;
    uint64_t copied_ns = 0;
    uint32_t listed = 0;

    for (uint32_t i = 0; i < timeline->record_count; i++) {
        const struct timeline_record *record = &timeline->records[i];
        uint32_t subject = record->item.subject;
        uint32_t gap;

        if (record->item.point > trace_index->trace->op_count / 2) {
            break;
        }
        if (item_is_run(&record->item) && record->span.wait == WAIT_TENSOR && listed > 0) {
            returning->waited_ns += record->span.start - record->span.idle_from;
            returning->count = listed;
        }
        if (item_is_run(&record->item) || seen[subject]) {
            continue;
        }
        seen[subject] = 1;
        gap = border_gap(hybrid->search, subject);
        if (record->item.kind == ACTION_PREFETCH && gap != TRACE_INDEX_NONE) {
            copied_ns += record->span.end - record->span.start;
            returning->gaps[listed] = gap;
            returning->ends_ns[listed++] = copied_ns;
        }
    }
}

/* Up to where their copies take this long. */
static uint32_t count_until(const struct returning *returning, uint64_t ns)
{
    uint32_t count = 1;

    while (count < returning->count && returning->ends_ns[count - 1] < ns) {
        count++;
    }
    return count;
}

/* The first so many return. */
static capu_status try_first(struct hybrid *hybrid, const struct returning *returning,
                             uint32_t count)
{
    struct search *search = hybrid->search;
    struct lower_options options = search->options;
    uint64_t ns;

    memcpy(hybrid->decisions, search->decisions, lower_gap_count(hybrid->planning->lower));
    for (uint32_t i = 0; i < count; i++) {
        hybrid->decisions[returning->gaps[i]] = DECIDE_RETURN;
    }
    options.cutoff_ns = search->best_ns;
    return search_try(search, hybrid->decisions, &options, &ns);
}

/* One round: the best of the four sets. */
static capu_status try_sets(struct hybrid *hybrid, const struct returning *returning)
{
    uint64_t waited_ns = returning->waited_ns;
    uint32_t counts[] = {count_until(returning, waited_ns), count_until(returning, waited_ns / 2),
                         count_until(returning, waited_ns * 2), returning->count};
    capu_status status = CAPU_OK;

    for (size_t i = 0; status == CAPU_OK && i < sizeof(counts) / sizeof(counts[0]); i++) {
        bool is_new = returning->count > 0;

        for (size_t j = 0; j < i; j++) {
            is_new = is_new && counts[j] != counts[i];
        }
        if (is_new) {
            status = try_first(hybrid, returning, counts[i]);
        }
    }
    return status;
}

static capu_status try_round(struct hybrid *hybrid)
{
    struct planning *planning = hybrid->planning;
    const struct trace_index *trace_index = planning->request->trace_index;
    size_t tensors = (size_t)trace_index->trace->tensor_count + 1;
    struct returning returning = {.gaps = malloc(tensors * sizeof(*returning.gaps)),
                                  .ends_ns = malloc(tensors * sizeof(*returning.ends_ns))};
    uint8_t *seen = calloc(tensors, 1);
    struct timeline timeline = {0};
    capu_status status = CAPU_NO_HOST_MEMORY;

    if (returning.gaps != NULL && returning.ends_ns != NULL && seen != NULL) {
        status = timeline_init(&timeline, trace_index, &hybrid->search->best, planning->machine,
                               true, NULL);
    }
    if (status == CAPU_OK) {
        list_returning(hybrid, &timeline, seen, &returning);
        status = try_sets(hybrid, &returning);
    }
    timeline_finish(&timeline);
    free(returning.gaps);
    free(returning.ends_ns);
    free(seen);
    return status;
}

static capu_status try_returns(struct hybrid *hybrid)
{
    struct search *search = hybrid->search;
    uint64_t before = UINT64_MAX;
    capu_status status = CAPU_OK;

    for (uint32_t round = 0; status == CAPU_OK && round < ROUNDS_MAX && search->best_ns < before &&
                             !search_should_stop(search);
         round++) {
        before = search->best_ns;
        status = try_round(hybrid);
        search->has_returns |= search->best_ns < before;
    }
    return status;
}

/* A copy of the start, with returns where they gain something. */
static capu_status copy_with_returns(struct hybrid *hybrid, const struct search *start,
                                     struct search *copy)
{
    struct lower_options options = start->options;
    capu_status status = search_init(copy, hybrid->planning);
    uint64_t ns;

    copy->floor_ns = start->floor_ns;
    copy->is_unplaced = start->is_unplaced;
    copy->has_virtual = start->has_virtual;
    hybrid_select(hybrid, copy);
    if (status == CAPU_OK) {
        options.cutoff_ns = 0;
        status = search_try(copy, start->decisions, &options, &ns);
    }
    return status == CAPU_OK ? try_returns(hybrid) : status;
}

capu_status hybrid_scan_returns(struct hybrid *hybrid)
{
    uint32_t starts = hybrid->start_count;
    struct search *best = &hybrid->starts[starts];
    capu_status status = CAPU_OK;

    for (uint32_t i = 0; status == CAPU_OK && i < starts; i++) {
        struct search copy = {0};

        if (can_gain(&hybrid->starts[i])) {
            status = copy_with_returns(hybrid, &hybrid->starts[i], &copy);
        }
        if (copy.has_returns && (!best->has_returns || copy.best_ns < best->best_ns)) {
            hybrid->start_count = starts + 1;
            hybrid->kinds[starts] = hybrid->kinds[i];
            search_swap(&copy, best);
        }
        search_finish(&copy);
    }
    return status;
}

/*
 * A start for budgets in which pages are scarce. A tensor has the same pages in
 * all its residencies, so close to the floor nothing that the greedy decides may find a placement.
 * With every tensor away between its accesses there is one, but at a multiple of the copies. So
 * this start begins there, and keeps tensors in gaps as long as the plan can be placed and takes no
 * longer: the shortest gaps first, which keep their pages from the fewest others. Many gaps are
 * tried at once, and half as many where that fails.
 */

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

static void decide_gaps(struct frugal *frugal, uint32_t from, uint32_t to, enum decision decision)
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
        decide_gaps(frugal, from, from + width, DECIDE_KEEP);
        status = try_decisions(frugal, &is_good);
        frugal->tries_left--;
        if (is_good) {
            from += width;
            width *= 2;
            continue;
        }
        decide_gaps(frugal, from, from + width, DECIDE_SWAP);
        from += width == 1;
        width -= width / 2;
    }
    return status;
}

static uint32_t count_tries(const struct planner_request *request)
{
    uint32_t tries = TRIED_OPS / (request->trace_index->trace->op_count + 1);

    tries /= request->effort == EFFORT_QUICK ? QUICK_PART : 1;
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

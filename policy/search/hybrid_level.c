/*
 * One budget level: its starts are scanned; the best is improved for a while, then the
 * others; then the best of them gets the rest of the work. After each of these steps it is decided
 * whether the level can still give the final plan: from the overhead so far follows a floor below
 * which its result is ignored, and once the floor is no better than the best plan found elsewhere,
 * the level is left. The floors are fixed shares, so a level's result depends on the level alone.
 */
#include "base/random.h"
#include "policy/search/hybrid_state.h"
#include "policy/search/search.h"

#include <string.h>

/*
 * Improvement: large changes and small ones alternate. Ruin and rebuild
 * leaves a local optimum that exchanges of single decisions cannot leave; local search then removes
 * what the greedy, pricing one gap at a time, got wrong. The share of the effort that is left is
 * the temperature of the local search.
 */

/* Rebuilds, and steps of local search, per turn. */
#define REBUILDS 8
#define LOCAL_SEARCH_STEPS 60
/* Turns without gain after which another start is more likely to gain something. */
#define IDLE_TURNS 20

static uint64_t draw_below(struct hybrid *hybrid, uint64_t below)
{
    return (random_xorshift(&hybrid->seed) >> 33) % below;
}

/* Gives up part of the best decisions: some at random, or all gaps that end in a window of ops. */
static void ruin(struct hybrid *hybrid)
{
    const struct trace_index *trace_index = hybrid->planning->request->trace_index;
    uint32_t gaps = lower_gap_count(hybrid->planning->lower);
    uint32_t ops = trace_index->trace->op_count;
    uint64_t kind = draw_below(hybrid, 3);
    uint64_t share = 3 + draw_below(hybrid, 20);
    uint32_t width = 1 + ops / (uint32_t)(4 + draw_below(hybrid, 44));
    uint32_t from = (uint32_t)draw_below(hybrid, ops);

    memcpy(hybrid->decisions, hybrid->search->decisions, gaps);
    for (uint32_t gap = 0; gap < gaps; gap++) {
        uint32_t end = lower_gap_end(hybrid->planning->lower, gap);
        uint32_t at = kind == 1 ? end : lower_gap_start(hybrid->planning->lower, gap);
        bool goes = kind == 0 ? draw_below(hybrid, 100) < share : at >= from && at - from < width;

        if (hybrid->decisions[gap] != DECIDE_KEEP && goes) {
            hybrid->decisions[gap] = DECIDE_KEEP;
        }
    }
}

/* Swaps that the greedy has decided again are still returns. */
static void keep_returns(struct hybrid *hybrid)
{
    const struct search *search = hybrid->search;

    for (uint32_t gap = 0; search->has_returns && gap < lower_gap_count(hybrid->planning->lower);
         gap++) {
        if (search->decisions[gap] == DECIDE_RETURN && hybrid->decisions[gap] == DECIDE_SWAP) {
            hybrid->decisions[gap] = DECIDE_RETURN;
        }
    }
}

static capu_status rebuild(struct hybrid *hybrid)
{
    static const double thetas[] = {0.005, 0.02, 0.05, 0.1, 0.2, 0.3, 0.6, 1.0};
    static const double safeties[] = {1.0, 1.0, 1.15, 1.3};
    static const double margins[] = {1.0, 1.0, 0.99, 0.97, 0.94};
    static const double leads[] = {0.0, 1.0, 2.0, 4.0, 8.0, 1000.0};
    struct lower_options options = hybrid->search->options;
    struct greedy_options greedy = {.theta = thetas[draw_below(hybrid, 8)],
                                    .safety = safeties[draw_below(hybrid, 4)],
                                    .margin = margins[draw_below(hybrid, 5)],
                                    .with_swap = true,
                                    .with_drop = true,
                                    .with_save = draw_below(hybrid, 2) == 0,
                                    .with_stalled = draw_below(hybrid, 2) == 0,
                                    .rounds_max = 10,
                                    .first_round = 20};
    uint64_t ns;
    capu_status status =
        greedy_run(hybrid->greedy, &greedy, hybrid->decisions, &hybrid->search->scratch);

    if (status != CAPU_OK) {
        return status;
    }
    keep_returns(hybrid);
    options.estimate_ns = greedy_estimate(hybrid->greedy);
    options.is_cautious ^= draw_below(hybrid, 8) == 0;
    if (draw_below(hybrid, 4) == 0) {
        options.lead = leads[draw_below(hybrid, 6)];
        options.with_save = draw_below(hybrid, 2) == 0;
        options.safety = safeties[draw_below(hybrid, 4)];
    }
    status = search_try(hybrid->search, hybrid->decisions, &options, &ns);
    /* Worth another lowering only if it is close. */
    if (status == CAPU_OK && ns != UINT64_MAX && ns / 256 < hybrid->search->best_ns / 250) {
        status = hybrid_absorb(hybrid, &options, &ns);
    }
    return status;
}

/* Ruin and rebuild alternate with local search in the current search, until the work is spent or
   they have gained nothing for long. */
static capu_status improve_search(struct hybrid *hybrid, uint64_t work)
{
    struct search *search = hybrid->search;
    uint64_t end = search_work(search) + work;
    uint32_t idle = 0;
    struct local_search *local_search = NULL;
    capu_status status = CAPU_OK;

    if (hybrid->is_placing) {
        hybrid->planning->limit_bytes = search->options.limit_bytes;
    }
    /* Decisions of another planner's plan are unknown. */
    if (search->best_ns != UINT64_MAX && search->options.limit_bytes > 0) {
        status = local_search_create(search, hybrid->seed, &local_search);
    }
    while (status == CAPU_OK && local_search != NULL) {
        uint64_t before = search->best_ns;
        uint64_t now = search_work(search);

        if (now >= end || idle == IDLE_TURNS || before <= hybrid->bound_ns ||
            search_should_stop(search)) {
            break;
        }
        if (hybrid->is_in_turn) {
            search_note_work(search, end - now);
        }
        for (uint32_t i = 0; status == CAPU_OK && i < REBUILDS && search_work(search) < end; i++) {
            ruin(hybrid);
            status = rebuild(hybrid);
        }
        if (status == CAPU_OK) {
            status = local_search_run(local_search, LOCAL_SEARCH_STEPS, end,
                                      (double)(end - now) / (double)work);
        }
        idle = search->best_ns < before ? 0 : idle + 1;
    }
    local_search_destroy(local_search);
    return status;
}

/* The search of a level. */

/* From so many ops on, a level may be left before the other planners have been tried on it, and
   later. */
#define LEFT_OPS 300
#define LEFT_OPS_LATER 30
/* Overheads of more than such a part of the ideal are large. No step after the scan brings them
   below this share of them. */
#define FAR_FROM_IDEAL 2
#define LEFT_FAR 0.6
/* The most walks over a small trace, and the least in the improvement of a start. */
#define WALKS_PER_OP 60
#define WALKS_MAX 30000
#define WALKS_MIN 110
/* If so many starts were scanned, those whose overhead is more than this many times the best one's,
   plus 2 points, are not improved. */
#define MANY_STARTS 5
#define WITHIN 1.4
/* If the places cost more than such a part of the ideal, another kind of start is tried. */
#define MUCH_OF_IDEAL 10

static capu_status scan_start(struct hybrid *hybrid, uint32_t kind)
{
    capu_status status;

    hybrid->kinds[hybrid->start_count] = kind;
    hybrid->search = &hybrid->starts[hybrid->start_count++];
    status = search_init(hybrid->search, hybrid->planning);
    hybrid->search->floor_ns = hybrid->floor_ns;
    hybrid->search->is_unplaced = !hybrid->is_placing;
    return status == CAPU_OK ? hybrid_scan_one(hybrid, kind) : status;
}

/* Moves the best of the starts to the first place. */
static void sort_starts(struct hybrid *hybrid)
{
    for (uint32_t i = 1; i < hybrid->start_count; i++) {
        if (hybrid->starts[i].best_ns < hybrid->starts[0].best_ns) {
            uint32_t kind = hybrid->kinds[i];

            hybrid->kinds[i] = hybrid->kinds[0];
            hybrid->kinds[0] = kind;
            search_swap(&hybrid->starts[0], &hybrid->starts[i]);
        }
    }
}

/* The best time of all starts; where plans are placed, without place lines, as the cost of
   placement may be regained. */
static uint64_t best_of_starts(const struct hybrid *hybrid)
{
    uint64_t best_ns = UINT64_MAX;

    for (uint32_t i = 0; i < hybrid->start_count; i++) {
        const struct search *start = &hybrid->starts[i];
        uint64_t ns = start->best_ns;

        if (hybrid->is_placing && start->unplaced_ns < ns) {
            ns = start->unplaced_ns;
        }
        best_ns = ns < best_ns ? ns : best_ns;
    }
    return best_ns;
}

/* Results of this level below this are ignored from now on. */
static void raise_floor(struct hybrid *hybrid, uint64_t floor_ns)
{
    if (floor_ns > hybrid->floor_ns) {
        hybrid->floor_ns = floor_ns;
        for (uint32_t i = 0; i < hybrid->start_count; i++) {
            hybrid->starts[i].floor_ns = floor_ns;
        }
    }
}

/* Can this level become no better than the best found elsewhere? Limits what it may gain from here
   on. */
static bool is_hopeless(struct hybrid *hybrid, enum step step, const struct search *best)
{
    const struct trace *trace = hybrid->planning->request->trace_index->trace;
    uint64_t ideal = trace->total_ns;
    uint64_t gain = ideal / NEAR_IDEAL;
    uint64_t now_ns = best_of_starts(hybrid);

    if (now_ns != UINT64_MAX && now_ns > ideal &&
        trace->op_count >= (step < STEP_OTHERS ? LEFT_OPS : LEFT_OPS_LATER)) {
        bool is_far = step >= STEP_SCAN && now_ns - ideal > ideal / FAR_FROM_IDEAL;
        double left = hybrid->effort->left[step];
        uint64_t floor_ns;

        left = is_far && left < LEFT_FAR ? LEFT_FAR : left;
        floor_ns = ideal + (uint64_t)(left * (double)(now_ns - ideal));

        raise_floor(hybrid, floor_ns > gain ? floor_ns - gain : 0);
    }
    return hybrid->floor_ns >= best->best_ns;
}

static uint64_t part_of(uint64_t bytes, uint64_t thousandths)
{
    return bytes / 1000 * thousandths + bytes % 1000 * thousandths / 1000;
}

/* Lowers within a limit what was found without place lines, and places it: as it is, or first
   completed by the greedy for that limit, which gives up less than a lowering that runs out of
   room. */
static capu_status place_within(struct hybrid *hybrid, const struct search *found, uint64_t limit,
                                bool is_completed)
{
    static const struct greedy_options greedy = {.theta = 0.05,
                                                 .safety = 1.0,
                                                 .margin = 1.0,
                                                 .with_swap = true,
                                                 .with_drop = true,
                                                 .with_save = true,
                                                 .rounds_max = 10,
                                                 .first_round = 20};
    struct lower_options options = found->options;
    uint64_t ns;
    capu_status status = CAPU_OK;

    options.limit_bytes = limit;
    options.cutoff_ns = 0;
    memcpy(hybrid->decisions, found->decisions, lower_gap_count(hybrid->planning->lower));
    if (is_completed) {
        hybrid->planning->limit_bytes = limit;
        status = greedy_run(hybrid->greedy, &greedy, hybrid->decisions, &hybrid->search->scratch);
        options.estimate_ns = greedy_estimate(hybrid->greedy);
    }
    if (status == CAPU_OK) {
        status = search_try(hybrid->search, hybrid->decisions, &options, &ns);
    }
    if (status == CAPU_OK && is_completed) {
        status = hybrid_absorb(hybrid, &options, &ns);
    }
    return status;
}

/* A first plan with place lines: that of the first start, lowered with less memory if it cannot be
   placed. It counts in any case, so that there is one early. */
static capu_status place_first(struct hybrid *hybrid, struct search *best)
{
    static const uint64_t parts[] = {1000, 970, 900};
    uint64_t whole = hybrid->planning->limit_bytes;
    struct search own;
    capu_status status = search_init(&own, hybrid->planning);

    own.has_virtual = hybrid->starts[0].has_virtual;
    hybrid_select(hybrid, &own);
    for (size_t i = 0;
         status == CAPU_OK && own.best_ns == UINT64_MAX && i < sizeof(parts) / sizeof(parts[0]);
         i++) {
        status = place_within(hybrid, &hybrid->starts[0], part_of(whole, parts[i]), false);
    }
    hybrid_select(hybrid, &hybrid->starts[0]);
    if (status == CAPU_OK && own.best_ns != UINT64_MAX) {
        status = search_offer(best, &own.best);
    }
    search_finish(&own);
    return status;
}

/* Scans every start, or only the first ones if they show that none will beat the best found
   elsewhere. */
static capu_status scan(struct hybrid *hybrid, struct search *best)
{
    uint32_t starts = hybrid->effort->starts;
    capu_status status = scan_start(hybrid, hybrid_kind(hybrid, 0));

    starts += starts > FIRST_STARTS && hybrid_has_virtual(hybrid) ? 2 : 0;
    if (status == CAPU_OK && hybrid->search->best_ns != UINT64_MAX && hybrid->search->is_unplaced &&
        hybrid->planning->placer != NULL) {
        status = place_first(hybrid, best);
    }
    for (uint32_t i = 1; status == CAPU_OK && i < starts; i++) {
        if (hybrid->search->best_ns <= hybrid->bound_ns || search_should_stop(hybrid->search) ||
            (i == 1 && is_hopeless(hybrid, STEP_FIRST_START, best)) ||
            (i == FIRST_STARTS && is_hopeless(hybrid, STEP_FIRST_STARTS, best))) {
            break;
        }
        status = scan_start(hybrid, hybrid_kind(hybrid, i));
    }
    hybrid->scanned_count = hybrid->start_count;
    return status == CAPU_OK ? hybrid_scan_returns(hybrid) : status;
}

/* Is some start, with place lines, about as fast as a time without them? */
static bool are_placed_well(const struct hybrid *hybrid, uint64_t unplaced_ns)
{
    bool result = false;

    for (uint32_t i = 0; i < hybrid->start_count; i++) {
        uint64_t ns = hybrid->starts[i].best_ns;

        result |= ns != UINT64_MAX && ns - ns / 512 <= unplaced_ns;
    }
    return result;
}

/*
 * Where plans are placed: scans with slightly less memory than there is, since tensors that share
 * pages never fill them completely; if the pages still do not suffice, or a tensor has to wait for
 * its pages, with less and less, at the price of the best start before it was placed.
 */
static capu_status scan_smaller(struct hybrid *hybrid)
{
    /* Parts of a thousand. The whole, which was scanned, is only for where each page counts. */
    static const uint64_t parts[] = {997, 990, 980, 940, 850, 600};
    const struct trace_index *trace_index = hybrid->planning->request->trace_index;
    uint64_t whole = hybrid->planning->limit_bytes;
    uint64_t least = trace_index->floor_bytes - trace_index->fixed_bytes + trace_index->idle_bytes;
    uint64_t least_part = hybrid->effort->work > 0 ? 940 : 980; /* if a plan was found already */
    uint32_t chosen = 0;
    capu_status status = CAPU_OK;

    for (uint32_t i = 1; i < hybrid->start_count; i++) {
        chosen = hybrid->starts[i].unplaced_ns < hybrid->starts[chosen].unplaced_ns ? i : chosen;
    }
    hybrid_select(hybrid, &hybrid->starts[chosen]);
    for (size_t i = 0; status == CAPU_OK && i < sizeof(parts) / sizeof(parts[0]); i++) {
        uint64_t limit = part_of(whole, parts[i]);
        bool has_any = hybrid->search->best_ns != UINT64_MAX;

        if (limit < least || are_placed_well(hybrid, hybrid->search->unplaced_ns) ||
            (has_any && (parts[i] < least_part || search_should_stop(hybrid->search)))) {
            break;
        }
        hybrid->planning->limit_bytes = limit;
        status = hybrid_scan_one(hybrid, hybrid->kinds[chosen]);
    }
    hybrid->planning->limit_bytes = whole;
    return status;
}

/* Adds a start that needs few pages, if the places of the others cost much of the ideal time. Where
   it is not improved, it cannot become better than the others without places. */
static capu_status scan_frugal(struct hybrid *hybrid, const struct search *best)
{
    uint64_t ideal = hybrid->planning->request->trace_index->trace->total_ns;
    uint64_t placed_ns = hybrid->starts[0].best_ns;
    uint64_t unplaced_ns = best_of_starts(hybrid);
    capu_status status;

    if (placed_ns - unplaced_ns <= ideal / MUCH_OF_IDEAL) {
        return CAPU_OK;
    }
    if (hybrid->effort->work == 0) {
        raise_floor(hybrid, unplaced_ns);
    }
    if (hybrid->floor_ns >= best->best_ns) {
        return CAPU_OK;
    }
    planner_set_budget(hybrid->planning, hybrid->planning->plan->budget_bytes);
    status = hybrid_scan_frugal(hybrid);
    sort_starts(hybrid);
    return status;
}

/* Offers the plans of the library's other planners, so that none of them beats this one at a level
   searched in depth. */
static capu_status offer_others(struct planning *planning, struct search *best)
{
    uint32_t gaps = planning->request->trace_index->trace->operand_count;
    capu_status status = CAPU_OK;

    lower_use_virtual_reads(planning->lower, false);
    for (const struct planner *planner = planning->planners; planner->name != NULL; planner++) {
        if (planner == planning->planner || status == CAPU_NO_HOST_MEMORY) {
            continue;
        }
        memset(planning->decisions, DECIDE_KEEP, gaps);
        planning->is_quiet = true; /* what is too fast for this level does not count */
        status = planner->plan(planning);
        planning->is_quiet = false;
        if (status == CAPU_OK) {
            status = search_offer(best, planning->plan);
        }
    }
    return status == CAPU_NO_HOST_MEMORY ? status : CAPU_OK;
}

/* The longest time of a start that is worth improving. */
static uint64_t worth_improving(const struct hybrid *hybrid)
{
    uint64_t ideal = hybrid->planning->request->trace_index->trace->total_ns;
    uint64_t best_ns = hybrid->starts[0].best_ns;

    return hybrid->scanned_count < MANY_STARTS || best_ns == UINT64_MAX
               ? UINT64_MAX
               : ideal + ideal / 50 + (uint64_t)(WITHIN * (double)(best_ns - ideal));
}

/* So much work, or less on small traces: what there is to find in them grows faster than they do.
 */
static uint64_t work_of(const struct hybrid *hybrid, uint64_t work)
{
    uint64_t ops = hybrid->planning->request->trace_index->trace->op_count;
    uint64_t walks = ops * WALKS_PER_OP < WALKS_MAX ? ops * WALKS_PER_OP : WALKS_MAX;

    return work < ops * walks ? work : ops * walks;
}

/* Improves a start for a while: for at least half a turn, unless a turn is too expensive. */
static capu_status improve_start(struct hybrid *hybrid, uint32_t start)
{
    uint64_t ops = hybrid->planning->request->trace_index->trace->op_count;
    uint64_t least = ops <= MANY_OPS ? ops * WALKS_MIN : 0;
    uint64_t work = work_of(hybrid, hybrid->effort->start_work);

    hybrid_select(hybrid, &hybrid->starts[start]);
    return improve_search(hybrid, work > least ? work : least);
}

/* Improves the best start, and the others in turn when that gains no more. */
static capu_status improve_in_turn(struct hybrid *hybrid)
{
    uint64_t left = work_of(hybrid, hybrid->effort->work);
    uint32_t idle = 0;
    capu_status status = CAPU_OK;

    hybrid->is_in_turn = true;
    for (uint32_t i = 0; status == CAPU_OK && left > 0 && idle < hybrid->start_count; i++) {
        struct search *search = &hybrid->starts[i % hybrid->start_count];
        uint64_t before = search_work(search);
        uint64_t spent;

        if (search->best_ns <= hybrid->bound_ns || search_should_stop(search)) {
            break;
        }
        hybrid_select(hybrid, search);
        status = improve_search(hybrid, left);
        spent = search_work(search) - before;
        left -= spent < left ? spent : left;
        idle = spent > 0 ? 0 : idle + 1;
    }
    hybrid->is_in_turn = false;
    sort_starts(hybrid);
    return status;
}

/* Improves every start for a while, then the best one. */
static capu_status search_in_depth(struct hybrid *hybrid, const struct search *best)
{
    uint64_t most = worth_improving(hybrid);
    capu_status status;

    if (is_hopeless(hybrid, STEP_SCAN, best)) {
        return CAPU_OK;
    }
    status = improve_start(hybrid, 0);
    if (is_hopeless(hybrid, STEP_BEST_START, best)) {
        return status;
    }
    planner_set_budget(hybrid->planning, hybrid->planning->plan->budget_bytes);
    /* Some of the others are slow on many ops. The search without place lines has already had them.
     */
    if (status == CAPU_OK && !hybrid->is_placing &&
        hybrid->planning->request->trace_index->trace->op_count <= MANY_OPS) {
        status = offer_others(hybrid->planning, &hybrid->starts[0]);
    }
    if (is_hopeless(hybrid, STEP_OTHERS, best)) {
        return status;
    }
    for (uint32_t i = 1; status == CAPU_OK && i < hybrid->start_count; i++) {
        if (hybrid->starts[i].best_ns <= most) {
            status = improve_start(hybrid, i);
        }
    }
    sort_starts(hybrid);
    return status == CAPU_OK && !is_hopeless(hybrid, STEP_STARTS, best) ? improve_in_turn(hybrid)
                                                                        : status;
}

/* Is it about as fast as a time without place lines? */
static bool is_as_good(const struct search *placed, uint64_t unplaced_ns)
{
    return placed->best_ns != UINT64_MAX && placed->best_ns - placed->best_ns / 4096 <= unplaced_ns;
}

/* Places a start as it is, then lowered with less and less memory, since tensors that share pages
   never fill them completely. */
static capu_status place_start(struct hybrid *hybrid, struct search *found, bool is_completed)
{
    static const uint64_t parts[] = {1000, 997, 994, 990, 985, 980, 970, 960, 940};
    uint64_t whole = hybrid->planning->limit_bytes;
    capu_status status = CAPU_OK;

    if (found->options.limit_bytes == 0) {
        return search_offer(hybrid->search, &found->best);
    }
    for (size_t i = is_completed; status == CAPU_OK && i < sizeof(parts) / sizeof(parts[0]); i++) {
        uint64_t limit = part_of(whole, parts[i]);

        status = place_within(hybrid, found, limit, is_completed);
        if (is_as_good(hybrid->search, found->best_ns)) {
            break;
        }
    }
    return status;
}

/* Places a start, and improves it for a while if placing costs time. Goes into `placed` if it is
   better. */
static capu_status try_start(struct hybrid *hybrid, struct search *found, bool is_completed,
                             struct search *placed)
{
    uint64_t whole = hybrid->planning->limit_bytes;
    struct search own;
    capu_status status = search_init(&own, hybrid->planning);

    own.floor_ns = found->floor_ns;
    own.has_virtual = found->has_virtual;
    hybrid_select(hybrid, &own);
    if (status == CAPU_OK) {
        status = place_start(hybrid, found, is_completed);
    }
    if (status == CAPU_OK && !is_as_good(&own, found->best_ns)) {
        status = improve_search(hybrid, work_of(hybrid, hybrid->effort->start_work * 2));
    }
    hybrid->planning->limit_bytes = whole;
    if (own.best_ns < placed->best_ns) {
        search_swap(&own, placed);
    }
    search_finish(&own);
    return status;
}

/* Places what was found without place lines, and improves the best of it with them. */
static capu_status place_starts(struct hybrid *hybrid, struct search *best)
{
    uint64_t whole = hybrid->planning->limit_bytes;
    struct search placed;
    capu_status status = search_init(&placed, hybrid->planning);

    hybrid->is_placing = true;
    for (uint32_t i = 0; status == CAPU_OK && i < hybrid->start_count * 2; i++) {
        struct search *found = &hybrid->starts[i / 2];

        if (found->best_ns < placed.best_ns && !is_as_good(&placed, found->best_ns)) {
            status = try_start(hybrid, found, i % 2 != 0, &placed);
        }
    }
    hybrid_select(hybrid, &placed);
    if (status == CAPU_OK && !is_as_good(&placed, hybrid->starts[0].best_ns)) {
        status = improve_search(hybrid, work_of(hybrid, hybrid->effort->work / 2));
    }
    hybrid->planning->limit_bytes = whole;
    hybrid->found_ns = hybrid->starts[0].best_ns;
    hybrid->result_ns = placed.best_ns;
    if (status == CAPU_OK && placed.best_ns < UINT64_MAX) {
        status = search_offer(best, &placed.best);
    }
    search_finish(&placed);
    return status;
}

capu_status hybrid_level_plan(struct hybrid *hybrid, struct search *best)
{
    bool is_placing = hybrid->is_placing;
    capu_status status = scan(hybrid, best);

    if (hybrid->floor_ns >= best->best_ns) {
        return status;
    }
    if (status == CAPU_OK && is_placing) {
        status = scan_smaller(hybrid);
    }
    sort_starts(hybrid);
    if (status == CAPU_OK && is_placing && hybrid->starts[0].best_ns == UINT64_MAX) {
        status = offer_others(hybrid->planning, &hybrid->starts[0]);
    }
    if (status == CAPU_OK && is_placing) {
        status = scan_frugal(hybrid, best);
    }
    if (status == CAPU_OK && hybrid->effort->work > 0) {
        status = search_in_depth(hybrid, best);
    }
    if (status != CAPU_OK || hybrid->starts[0].best_ns == UINT64_MAX ||
        hybrid->floor_ns >= best->best_ns) {
        return status;
    }
    if (hybrid->planning->placer != NULL && !is_placing) {
        return place_starts(hybrid, best);
    }
    return search_offer(best, &hybrid->starts[0].best);
}

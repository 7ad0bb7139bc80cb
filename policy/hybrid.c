/*
 * Ours, the default. Each tensor and gap is kept, swapped or dropped by price (greedy.c), lowered,
 * simulated exactly, and improved:
 *
 * 1. Scan: the greedy for several prices of the link; each result with several leads of its
 *    prefetches, with and without saves. Two more starts where tensors that are dead in backward
 *    but read by many replays live on (DenseNet's features).
 * 2. Every start is improved for a while, since prices lead to different valleys; then the best one
 *    for the rest of the effort. By turns: ruin and rebuild (part of the decisions is given up, and
 *    the greedy completes them at other prices), and polish (polish.h). Seeded by the trace alone,
 *    so equal requests give equal plans.
 *
 * A larger budget never gives a slower plan: budgets are rounded down to the rungs of a fixed
 * ladder, and the answer is the best over all rungs up to the budget. Few rungs are searched in
 * depth, the others only scanned. Two things keep lower rungs cheap: none matters from where the
 * lower bound is no better than the best found; and on all but small traces, what a phase may gain
 * over the one before it is limited, so that a rung that is far worse than the best found need not
 * be searched further.
 *
 * With place lines the times that count are those of placed plans, each placed in its rung's own
 * pages; only what is better without is placed at all.
 */
#include "policy/planner.h"

#include "policy/bound.h"
#include "policy/greedy.h"
#include "policy/polish.h"
#include "policy/search.h"
#include "policy/wake.h"

#include <stdlib.h>
#include <string.h>

/* Ops from which even a scan is dear: the ladder then has few rungs. */
#define MANY_OPS 8000
/* Ops from which improving what a scan found is too dear: what the effort for it would still pay
   for gained nothing. */
#define HUGE_OPS 100000
/* Ops from which default effort may take a few seconds. */
#define SOME_OPS 2500
#define ABSORB_MAX 3
#define STARTS_MAX 4
#define WAKE_STARTS 2
#define FIRST_STARTS 2
/* What is left of the overhead of the first starts in the end, if it is large, of that of a scan
   when every start was improved, and of that when the best one was: no less than these shares, from
   so many ops on. */
#define LEFT_BY_SCAN 0.2
#define LEFT_BY_STARTS 0.4
#define LEFT_BY_DEPTH 0.75
#define LEFT_OPS 300
/* Overheads of more than such a part of the ideal are large. They are not brought below
   LEFT_BY_STARTS in the end, either. */
#define FAR_FROM_IDEAL 2
/* Besides, such a part of the ideal may always be gained: where little is lost, all of it. */
#define NEAR_IDEAL 500
/* Where there are many starts, those whose overhead is more than this many times the best one's,
   and 2 points, are not improved. */
#define WITHIN 1.6
/* Ruins and rebuilds, and steps of polish, in one turn. */
#define REBUILDS 8
#define POLISH_STEPS 60
/* Turns without gain that end a search. */
#define IDLE_TURNS 4

struct effort {
    uint32_t rungs;       /* the ladder: so many parts of the unconstrained peak */
    uint32_t depth_every; /* each so many rungs one is searched in depth; 0: none */
    uint32_t starts;      /* prices that are scanned */
    uint32_t variants;    /* of lead, save and caution */
    uint64_t start_work;  /* for each start, and in the end: ops walked over */
    uint64_t work;
    uint32_t turns;      /* the same in turns: small traces are done before the work is */
    uint32_t rounds_max; /* of the greedy */
};

static const struct effort efforts[EFFORT_COUNT] = {
    [EFFORT_QUICK] = {.rungs = 10, .starts = 4, .variants = 2, .rounds_max = 40},
    [EFFORT_DEFAULT] = {.rungs = 20,
                        .depth_every = 2,
                        .starts = 4,
                        .variants = 4,
                        .start_work = 200000,
                        .work = 1200000,
                        .turns = 12,
                        .rounds_max = 40},
    [EFFORT_BEST] = {.rungs = 40,
                     .depth_every = 2,
                     .starts = 4,
                     .variants = 8,
                     .start_work = 2000000,
                     .work = 20000000,
                     .turns = 200,
                     .rounds_max = 60},
};

/* From MANY_OPS on. */
static const struct effort quick_large = {.rungs = 4, .starts = 2, .variants = 2, .rounds_max = 40};
static const struct effort default_large = {.rungs = 10,
                                            .depth_every = 1,
                                            .starts = 2,
                                            .variants = 2,
                                            .start_work = 100000,
                                            .work = 1000000,
                                            .turns = 12,
                                            .rounds_max = 40};

/* From HUGE_OPS on. */
static const struct effort default_huge = {
    .rungs = 10, .depth_every = 1, .starts = 2, .variants = 2, .rounds_max = 40};

/* From SOME_OPS on. */
static const struct effort default_medium = {.rungs = 20,
                                             .depth_every = 2,
                                             .starts = 4,
                                             .variants = 4,
                                             .start_work = 400000,
                                             .work = 2500000,
                                             .turns = 12,
                                             .rounds_max = 40};

/* What a rung that is not searched in depth gets. */
static const struct effort scan_only = {.starts = 2, .variants = 1, .rounds_max = 40};

struct hybrid {
    struct planning *planning;
    const struct effort *effort;
    struct search *search; /* of the start at hand */
    struct search starts[STARTS_MAX + WAKE_STARTS];
    uint32_t kinds[STARTS_MAX + WAKE_STARTS]; /* of the starts: which greedy */
    uint32_t start_count;
    uint64_t floor_ns; /* by the first starts: what is faster is passed over in the whole rung */
    struct greedy *greedy;
    uint8_t *decisions;
    uint32_t *wake;
    uint64_t seed;
    bool is_placing; /* the starts are placed */
};

/* A small generator (xorshift64*), so that searches are the same everywhere. */
static uint64_t draw(struct hybrid *hybrid, uint64_t below)
{
    hybrid->seed ^= hybrid->seed >> 12;
    hybrid->seed ^= hybrid->seed << 25;
    hybrid->seed ^= hybrid->seed >> 27;
    return ((hybrid->seed * 0x2545F4914F6CDD1Du) >> 33) % below;
}

/* Evictions that the lowering was forced to are planned the next time, with their prefetch. */
static capu_status absorb(struct hybrid *hybrid, const struct lower_options *options, uint64_t *ns)
{
    uint32_t gaps = hybrid->planning->request->uses->trace->operand_count;
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
        status = search_try(hybrid->search, hybrid->decisions, hybrid->wake, options, ns);
        if (*ns >= best) {
            break;
        }
        best = *ns;
    }
    *ns = best;
    return status;
}

/* The decisions at hand, with several leads, with and without saves. The best of their times. */
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
        status = search_try(hybrid->search, hybrid->decisions, hybrid->wake, &options, &ns);
        if (status == CAPU_OK && i == 0) {
            status = absorb(hybrid, &options, &ns);
        }
        *best = ns < *best ? ns : *best;
    }
    return status;
}

/* The greedy's ways to start. Where tensors live on for replays, chains are long and read much: the
   last ones, which count that, are for there. */
static const struct {
    double theta;
    uint32_t first_round;
    bool is_wary;
} kinds[STARTS_MAX + WAKE_STARTS] = {{0.02, 8, false}, {0.1, 16, false}, {0.05, 16, false},
                                     {0.3, 24, false}, {0.05, 16, true}, {0.1, 16, true}};

/* A greedy run from nothing, and its variants. */
static capu_status scan_one(struct hybrid *hybrid, uint32_t kind)
{
    struct greedy_options options = {.theta = kinds[kind].theta,
                                     .safety = 1.0,
                                     .margin = 1.0,
                                     .with_swap = true,
                                     .with_drop = true,
                                     .is_wary = kinds[kind].is_wary,
                                     .first_round = kinds[kind].first_round,
                                     .rounds_max = hybrid->effort->rounds_max};
    uint64_t ns;
    capu_status status;

    memset(hybrid->decisions, DECIDE_KEEP, hybrid->planning->request->uses->trace->operand_count);
    status = greedy_run(hybrid->greedy, &options, hybrid->wake, hybrid->decisions,
                        &hybrid->search->scratch);
    return status == CAPU_OK ? try_variants(hybrid, &options, &ns) : status;
}

static capu_status scan_start(struct hybrid *hybrid, uint32_t kind)
{
    capu_status status;

    hybrid->kinds[hybrid->start_count] = kind;
    hybrid->search = &hybrid->starts[hybrid->start_count++];
    status = search_init(hybrid->search, hybrid->planning);
    hybrid->search->floor_ns = hybrid->floor_ns;
    hybrid->search->is_unplaced = !hybrid->is_placing;
    return status == CAPU_OK ? scan_one(hybrid, kind) : status;
}

/* The best of the starts into the first place; ideal at best. */
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

/* The least that a phase may leave of a time. */
static uint64_t least_left(const struct hybrid *hybrid, uint64_t ns, double share)
{
    const struct trace *trace = hybrid->planning->request->uses->trace;
    uint64_t ideal = trace->total_ns;
    uint64_t gain = ideal / NEAR_IDEAL;
    uint64_t floor_ns = ideal;

    if (ns == UINT64_MAX || trace->op_count < LEFT_OPS) {
        return 0;
    }
    if (ns > ideal) {
        floor_ns += (uint64_t)(share * (double)(ns - ideal));
    }
    return floor_ns > gain ? floor_ns - gain : 0;
}

/* The best of all starts. Where plans are placed: without, as what placement cost may be gained. */
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

/* From here on the starts may become this fast. */
static void set_floor(struct hybrid *hybrid, uint64_t floor_ns)
{
    for (uint32_t i = 0; i < hybrid->start_count; i++) {
        hybrid->starts[i].floor_ns = floor_ns > hybrid->floor_ns ? floor_ns : hybrid->floor_ns;
    }
}

/* By the first starts: is all that this rung may become no better than the best found elsewhere?
   Sets its floor. */
static bool is_hopeless(struct hybrid *hybrid, const struct search *best)
{
    uint64_t ideal = hybrid->planning->request->uses->trace->total_ns;
    uint64_t start_ns = best_of_starts(hybrid);

    if (start_ns > ideal + ideal / FAR_FROM_IDEAL) {
        uint64_t floor_ns = least_left(hybrid, start_ns, LEFT_BY_SCAN);

        hybrid->floor_ns = floor_ns > hybrid->floor_ns ? floor_ns : hybrid->floor_ns;
        set_floor(hybrid, 0);
    }
    return hybrid->floor_ns >= best->best_ns;
}

/* Every start; only the first ones where they show that none will be better than the best found
   elsewhere. */
static capu_status scan(struct hybrid *hybrid, const struct search *best)
{
    uint64_t ideal = hybrid->planning->request->uses->trace->total_ns;
    capu_status status = CAPU_OK;

    for (uint32_t i = 0; status == CAPU_OK && i < hybrid->effort->starts; i++) {
        if (i > 0 && (hybrid->search->best_ns <= ideal || search_should_stop(hybrid->search))) {
            break;
        }
        if (i == FIRST_STARTS && is_hopeless(hybrid, best)) {
            return CAPU_OK;
        }
        status = scan_start(hybrid, i);
    }
    if (hybrid->effort->starts <= FIRST_STARTS) {
        is_hopeless(hybrid, best);
    }
    if (status == CAPU_OK && hybrid->effort->starts > 2 &&
        wake_choose(hybrid->planning->request->uses, hybrid->planning->lower, hybrid->wake)) {
        for (uint32_t i = 0; status == CAPU_OK && i < WAKE_STARTS; i++) {
            status = scan_start(hybrid, STARTS_MAX + i);
        }
    }
    return status;
}

/* Is no start better without place lines than the best is with them? */
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
 * Where plans are placed: with a little less memory than there is, since tensors that share pages
 * never fill them quite; where the pages still do not suffice, or somebody waits for them, with
 * less and less, at the price of what was best before it was placed.
 */
static capu_status scan_smaller(struct hybrid *hybrid)
{
    /* Parts of a thousand. The whole, which was scanned, is only for where each page counts. */
    static const uint64_t parts[] = {997, 990, 980, 940, 850, 600};
    const struct uses *uses = hybrid->planning->request->uses;
    uint64_t whole = hybrid->planning->limit_bytes;
    uint64_t least = uses->floor_bytes - uses->fixed_bytes + uses->idle_bytes;
    uint64_t least_part = hybrid->effort->work > 0 ? 940 : 980; /* where there is any already */
    uint32_t chosen = 0;
    capu_status status = CAPU_OK;

    for (uint32_t i = 1; i < hybrid->start_count; i++) {
        chosen = hybrid->starts[i].unplaced_ns < hybrid->starts[chosen].unplaced_ns ? i : chosen;
    }
    hybrid->search = &hybrid->starts[chosen];
    if (hybrid->kinds[chosen] < STARTS_MAX) {
        /* Only the last starts may let tensors live on. */
        memset(hybrid->wake, 0, uses->trace->tensor_count * sizeof(*hybrid->wake));
    }
    for (size_t i = 0; status == CAPU_OK && i < sizeof(parts) / sizeof(parts[0]); i++) {
        uint64_t limit = whole / 1000 * parts[i] + whole % 1000 * parts[i] / 1000;
        bool has_any = hybrid->search->best_ns != UINT64_MAX;

        if (limit < least || are_placed_well(hybrid, hybrid->search->unplaced_ns) ||
            (has_any && (parts[i] < least_part || search_should_stop(hybrid->search)))) {
            break;
        }
        hybrid->planning->limit_bytes = limit;
        status = scan_one(hybrid, hybrid->kinds[chosen]);
    }
    hybrid->planning->limit_bytes = whole;
    return status;
}

/* Part of the best decisions, given up: some at random, or all gaps that end in a window of ops. */
static void ruin(struct hybrid *hybrid)
{
    const struct uses *uses = hybrid->planning->request->uses;
    uint32_t gaps = uses->trace->operand_count;
    uint32_t ops = uses->trace->op_count;
    uint64_t kind = draw(hybrid, 3);
    uint64_t share = 3 + draw(hybrid, 20);
    uint32_t width = 1 + ops / (uint32_t)(4 + draw(hybrid, 44));
    uint32_t from = (uint32_t)draw(hybrid, ops);

    memcpy(hybrid->decisions, hybrid->search->decisions, gaps);
    memcpy(hybrid->wake, hybrid->search->wake, uses->trace->tensor_count * sizeof(*hybrid->wake));
    for (uint32_t gap = 0; gap < gaps; gap++) {
        uint32_t end = lower_gap_end(hybrid->planning->lower, gap);
        uint32_t at = kind == 1 ? end : uses->op[gap];
        bool goes = kind == 0 ? draw(hybrid, 100) < share : at >= from && at - from < width;

        if (hybrid->decisions[gap] != DECIDE_KEEP && goes) {
            hybrid->decisions[gap] = DECIDE_KEEP;
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
    struct greedy_options greedy = {.theta = thetas[draw(hybrid, 8)],
                                    .safety = safeties[draw(hybrid, 4)],
                                    .margin = margins[draw(hybrid, 5)],
                                    .with_swap = true,
                                    .with_drop = true,
                                    .with_save = draw(hybrid, 2) == 0,
                                    .with_stalled = draw(hybrid, 2) == 0,
                                    .rounds_max = 10,
                                    .first_round = 20};
    uint64_t ns;
    capu_status status = greedy_run(hybrid->greedy, &greedy, hybrid->wake, hybrid->decisions,
                                    &hybrid->search->scratch);

    if (status != CAPU_OK) {
        return status;
    }
    options.estimate_ns = greedy_estimate(hybrid->greedy);
    options.is_cautious ^= draw(hybrid, 8) == 0;
    if (draw(hybrid, 4) == 0) {
        options.lead = leads[draw(hybrid, 6)];
        options.with_save = draw(hybrid, 2) == 0;
        options.safety = safeties[draw(hybrid, 4)];
    }
    status = search_try(hybrid->search, hybrid->decisions, hybrid->wake, &options, &ns);
    /* Worth another look only where it is close. */
    if (status == CAPU_OK && ns != UINT64_MAX && ns / 256 < hybrid->search->best_ns / 250) {
        status = absorb(hybrid, &options, &ns);
    }
    return status;
}

/* Ruin and rebuild, and polish, by turns, until the effort is spent. */
static capu_status improve(struct hybrid *hybrid, uint64_t work, uint32_t turns)
{
    struct search *search = hybrid->search;
    uint64_t ideal = hybrid->planning->request->uses->trace->total_ns;
    uint64_t begin = search_work(search);
    uint64_t end = begin + work;
    uint32_t idle = 0;
    struct polish *polish = NULL;
    capu_status status = CAPU_OK;

    if (hybrid->is_placing) {
        hybrid->planning->limit_bytes = search->options.limit_bytes;
    }
    /* Decisions of another planner's plan are not known. */
    if (search->best_ns != UINT64_MAX && search->options.limit_bytes > 0) {
        status = polish_create(search, hybrid->seed, &polish);
    }
    for (uint32_t turn = 0; status == CAPU_OK && polish != NULL && turn < turns; turn++) {
        uint64_t before = search->best_ns;
        uint64_t now = search_work(search);

        if (now >= end || idle == IDLE_TURNS || before <= ideal || search_should_stop(search)) {
            break;
        }
        for (uint32_t i = 0; status == CAPU_OK && i < REBUILDS && search_work(search) < end; i++) {
            ruin(hybrid);
            status = rebuild(hybrid);
        }
        if (status == CAPU_OK) {
            status = polish_run(polish, POLISH_STEPS, end, (double)(end - now) / (double)work);
        }
        idle = search->best_ns < before ? 0 : idle + 1;
    }
    polish_destroy(polish);
    return status;
}

/* What the others would do, so that none of them is better where it counts. */
static capu_status offer_others(struct planning *planning, struct search *best)
{
    uint32_t gaps = planning->request->uses->trace->operand_count;
    capu_status status = CAPU_OK;

    for (const struct planner *planner = planners; planner->name != NULL; planner++) {
        if (planner->plan == hybrid_plan || status == CAPU_NO_HOST_MEMORY) {
            continue;
        }
        memset(planning->decisions, DECIDE_KEEP, gaps);
        status = planner->plan(planning);
        if (status == CAPU_OK) {
            status = search_offer(best, planning->plan);
        }
    }
    return status == CAPU_NO_HOST_MEMORY ? status : CAPU_OK;
}

/* What a start may take at most to be worth improving. */
static uint64_t worth_improving(const struct hybrid *hybrid)
{
    uint64_t ideal = hybrid->planning->request->uses->trace->total_ns;
    uint64_t best_ns = hybrid->starts[0].best_ns;

    return hybrid->start_count <= STARTS_MAX || best_ns == UINT64_MAX
               ? UINT64_MAX
               : ideal + ideal / 50 + (uint64_t)(WITHIN * (double)(best_ns - ideal));
}

/* Every start for a while, then the best. */
static capu_status search_in_depth(struct hybrid *hybrid, const struct search *best)
{
    uint64_t most = worth_improving(hybrid);
    uint64_t ideal = hybrid->planning->request->uses->trace->total_ns;
    uint64_t start_ns = best_of_starts(hybrid);
    uint64_t floor_ns = least_left(hybrid, start_ns, LEFT_BY_STARTS);
    capu_status status = CAPU_OK;

    if (start_ns > ideal + ideal / FAR_FROM_IDEAL && floor_ns > hybrid->floor_ns) {
        hybrid->floor_ns = floor_ns;
    }
    if (hybrid->floor_ns >= best->best_ns ||
        least_left(hybrid, floor_ns, LEFT_BY_DEPTH) >= best->best_ns) {
        return CAPU_OK;
    }
    set_floor(hybrid, floor_ns);
    for (uint32_t i = 0; status == CAPU_OK && i < hybrid->start_count; i++) {
        hybrid->search = &hybrid->starts[i];
        if (hybrid->search->best_ns <= most) {
            status = improve(hybrid, hybrid->effort->start_work, hybrid->effort->turns / 4);
        }
    }
    sort_starts(hybrid);
    planner_set_budget(hybrid->planning, hybrid->planning->plan->budget_bytes);
    /* Not all of the others are quick where there are many ops. */
    if (status == CAPU_OK && hybrid->planning->request->uses->trace->op_count <= MANY_OPS) {
        status = offer_others(hybrid->planning, &hybrid->starts[0]);
    }
    hybrid->search = &hybrid->starts[0];
    floor_ns = least_left(hybrid, best_of_starts(hybrid), LEFT_BY_DEPTH);
    set_floor(hybrid, floor_ns);
    return status == CAPU_OK && floor_ns < best->best_ns
               ? improve(hybrid, hybrid->effort->work, hybrid->effort->turns)
               : status;
}

/* Places what was found without: as it is, and lowered again with less and less memory, since
   tensors that share pages never fill them quite. The best of that is improved with its places. */
static capu_status place_start(struct hybrid *hybrid, struct search *best)
{
    static const uint64_t parts[] = {1000, 997, 994, 990, 985, 980, 970, 960, 940};
    struct planning *planning = hybrid->planning;
    struct search *found = &hybrid->starts[0];
    uint64_t whole = planning->limit_bytes;
    struct search placed;
    capu_status status = search_init(&placed, planning);

    placed.floor_ns = found->floor_ns;
    if (status == CAPU_OK && found->options.limit_bytes == 0) {
        status = search_offer(&placed, &found->best);
    }
    for (size_t i = 0; status == CAPU_OK && found->options.limit_bytes > 0 &&
                       i < sizeof(parts) / sizeof(parts[0]) && !search_is_placed_well(&placed);
         i++) {
        struct lower_options options = found->options;
        uint64_t ns;

        options.limit_bytes = whole / 1000 * parts[i] + whole % 1000 * parts[i] / 1000;
        options.cutoff_ns = 0;
        status = search_try(&placed, found->decisions, found->wake, &options, &ns);
    }
    if (status == CAPU_OK && placed.best_ns != UINT64_MAX &&
        !(placed.best_ns - placed.best_ns / 512 <= found->best_ns)) {
        hybrid->search = &placed;
        hybrid->is_placing = true;
        status = improve(hybrid, hybrid->effort->start_work * 2, hybrid->effort->turns / 2);
    }
    planning->limit_bytes = whole;
    if (status == CAPU_OK && placed.best_ns < UINT64_MAX) {
        status = search_offer(best, &placed.best);
    }
    search_finish(&placed);
    return status;
}

static capu_status plan_rung(struct hybrid *hybrid, struct search *best)
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
    if (status == CAPU_OK && hybrid->effort->work > 0) {
        status = search_in_depth(hybrid, best);
    }
    if (status == CAPU_OK && hybrid->starts[0].best_ns < UINT64_MAX &&
        hybrid->planning->placer != NULL && !is_placing) {
        return place_start(hybrid, best);
    }
    if (status == CAPU_OK && hybrid->starts[0].best_ns < UINT64_MAX) {
        status = search_offer(best, &hybrid->starts[0].best);
    }
    return status;
}

static capu_status plan_in_one_way(struct planning *planning, const struct effort *effort,
                                   bool is_placing, uint64_t *floor_ns, struct search *best)
{
    const struct trace *trace = planning->request->uses->trace;
    struct hybrid hybrid = {.planning = planning,
                            .effort = effort,
                            .seed = 0x9E3779B97F4A7C15u,
                            .is_placing = is_placing,
                            .floor_ns = *floor_ns};
    capu_status status = CAPU_NO_HOST_MEMORY;

    hybrid.decisions = calloc((size_t)trace->operand_count + 1, 1);
    hybrid.wake = calloc((size_t)trace->tensor_count + 1, sizeof(*hybrid.wake));
    if (hybrid.decisions != NULL && hybrid.wake != NULL) {
        status = greedy_create(planning, &hybrid.greedy);
    }
    if (status == CAPU_OK) {
        status = plan_rung(&hybrid, best);
    }
    *floor_ns = hybrid.floor_ns;
    greedy_destroy(hybrid.greedy);
    free(hybrid.decisions);
    free(hybrid.wake);
    for (uint32_t i = 0; i < hybrid.start_count; i++) {
        search_finish(&hybrid.starts[i]);
    }
    return status;
}

/* With place lines: places what the whole search found without, and searches among what can be
   placed. Neither is always the better one. */
static capu_status plan_budget(struct planning *planning, const struct effort *effort,
                               struct search *best)
{
    uint64_t floor_ns = 0;
    capu_status status = CAPU_OK;

    if (planning->placer != NULL && effort->work > 0) {
        status = plan_in_one_way(planning, effort, false, &floor_ns, best);
        planner_set_budget(planning, planning->plan->budget_bytes);
        if (floor_ns >= best->best_ns) {
            return status;
        }
    }
    return status == CAPU_OK
               ? plan_in_one_way(planning, effort, planning->placer != NULL, &floor_ns, best)
               : status;
}

/* The plan that can be placed wherever any is known to. */
static capu_status offer_frugal(struct planning *planning, struct search *best)
{
    capu_status status = planner_plan_frugally(planning, best->best_ns);

    if (status == CAPU_OK) {
        status = search_offer(best, planning->plan);
    }
    return status == CAPU_NO_HOST_MEMORY ? status : CAPU_OK;
}

/* The budget of a rung; rung 0 is the floor. */
static uint64_t rung_budget(const struct uses *uses, uint32_t rung, uint32_t rungs)
{
    return rung == 0 ? uses->floor_bytes
                     : uses->peak_bytes / rungs * rung + uses->peak_bytes % rungs * rung / rungs;
}

static const struct effort *effort_for(enum planner_effort effort, uint32_t ops)
{
    if (ops > MANY_OPS && effort != EFFORT_BEST) {
        return effort == EFFORT_QUICK ? &quick_large
               : ops > HUGE_OPS       ? &default_huge
                                      : &default_large;
    }
    return effort == EFFORT_DEFAULT && ops > SOME_OPS ? &default_medium : &efforts[effort];
}

capu_status hybrid_plan(struct planning *planning)
{
    const struct uses *uses = planning->request->uses;
    const struct effort *effort = effort_for(planning->request->effort, uses->trace->op_count);
    uint32_t rungs = effort->rungs;
    uint64_t asked_bytes = planning->plan->budget_bytes;
    struct search best;
    capu_status status = search_init(&best, planning);

    for (uint32_t rung = rungs + 1; status == CAPU_OK && rung-- > 0;) {
        uint64_t budget = rung_budget(uses, rung, rungs);
        bool is_deep = effort->depth_every > 0 && rung % effort->depth_every == 0;

        if (budget > planning->request->budget_bytes || !planner_set_budget(planning, budget)) {
            continue;
        }
        if (best.best_ns != UINT64_MAX &&
            (search_should_stop(&best) ||
             bound_cut(uses, planning->machine, budget) >= best.best_ns)) {
            break;
        }
        /* A rung is searched as if the budget were no more: whatever is asked for, it gives the
           same. */
        planning->plan->budget_bytes = budget;
        status = plan_budget(planning, is_deep ? effort : &scan_only, &best);
        planning->plan->budget_bytes = asked_bytes;
    }
    if (status == CAPU_OK && planning->placer != NULL) {
        status = offer_frugal(planning, &best);
    }
    if (status == CAPU_OK) {
        status = search_conclude(&best);
    }
    search_finish(&best);
    return status;
}

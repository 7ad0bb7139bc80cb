/*
 * Ours, the default. Each tensor and gap is kept, swapped or dropped by price (greedy.c), lowered,
 * simulated exactly, and improved:
 *
 * 1. Scan: the greedy for several prices of the link, safety factors and margins; each result with
 *    several leads of its prefetches, with and without saves.
 * 2. Wake: tensors dead in backward but read by many replays live on (DenseNet's features).
 * 3. Ruin and rebuild: give part of the best decisions up, let the greedy complete them at other
 *    prices, keep what is better. Seeded by the trace alone, so equal requests give equal plans.
 *
 * A larger budget never gives a slower plan: budgets are rounded down to the rungs of a fixed
 * ladder, and the answer is the best over all rungs up to the budget. Few rungs are searched in
 * depth, the others only scanned. Rungs whose lower bound is no better than the best found cannot
 * matter. With place lines the time of a rung's plan is that of its placement in the rung's own
 * pages, for the same reason.
 */
#include "policy/planner.h"

#include "policy/bound.h"
#include "policy/greedy.h"
#include "policy/search.h"

#include <stdlib.h>
#include <string.h>

/* Ops from which even a scan is dear: the ladder of quick effort then has few rungs. */
#define MANY_OPS 8000
/* Ops from which default effort has to be sparing. */
#define SOME_OPS 1600
#define ABSORB_MAX 3

struct effort {
    uint32_t rungs;       /* the ladder: so many parts of the unconstrained peak */
    uint32_t depth_every; /* each so many rungs one is searched in depth; 0: none */
    uint32_t thetas;      /* how many of the list are scanned */
    uint32_t refinements; /* of safety and margin */
    uint32_t variants;    /* of lead and save */
    uint32_t steps_max;   /* ruin and rebuild */
    uint64_t op_steps;    /* the same times ops, at most */
    uint32_t first_round; /* of the greedy: skips rounds that go for little */
    uint32_t rounds_max;
    uint64_t least_part; /* of a thousand of the limit, for the sake of better placements */
};

static const struct effort efforts[EFFORT_COUNT] = {
    [EFFORT_QUICK] = {.rungs = 10,
                      .thetas = 2,
                      .variants = 2,
                      .first_round = 8,
                      .rounds_max = 40,
                      .least_part = 980},
    [EFFORT_DEFAULT] = {.rungs = 20,
                        .depth_every = 2,
                        .thetas = 4,
                        .refinements = 4,
                        .variants = 6,
                        .steps_max = 120,
                        .op_steps = 90000,
                        .rounds_max = 60,
                        .least_part = 940},
    [EFFORT_BEST] = {.rungs = 40,
                     .depth_every = 2,
                     .thetas = 7,
                     .refinements = 7,
                     .variants = 8,
                     .steps_max = 1000,
                     .op_steps = 2000000,
                     .rounds_max = 60,
                     .least_part = 940},
};

/* Default effort for more than SOME_OPS, within the same few seconds. */
static const struct effort default_large = {.rungs = 20,
                                            .depth_every = 2,
                                            .thetas = 2,
                                            .refinements = 2,
                                            .variants = 4,
                                            .steps_max = 60,
                                            .op_steps = 40000,
                                            .first_round = 4,
                                            .rounds_max = 60,
                                            .least_part = 940};

/* What a rung that is not searched in depth gets. */
static const struct effort scan_only = {
    .thetas = 1, .variants = 2, .first_round = 8, .rounds_max = 40, .least_part = 980};

struct hybrid {
    struct planning *planning;
    const struct effort *effort;
    struct search search;
    struct greedy *greedy;
    uint8_t *decisions;
    uint32_t *wake;
    struct greedy_options best_greedy;
    struct greedy_options unplaced_greedy; /* of the best there was before it was placed */
    uint64_t seed;
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
        status = search_try(&hybrid->search, hybrid->decisions, hybrid->wake, options, ns);
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
    } variants[] = {{1000.0, true},  {2.0, true},  {8.0, false}, {0.0, true},
                    {1000.0, false}, {2.0, false}, {8.0, true},  {0.0, false}};
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
        status = search_try(&hybrid->search, hybrid->decisions, hybrid->wake, &options, &ns);
        if (status == CAPU_OK && i == 0) {
            status = absorb(hybrid, &options, &ns);
        }
        *best = ns < *best ? ns : *best;
    }
    return status;
}

/* A greedy run from nothing, and its variants; keeps the options where the result is the best. */
static capu_status scan_one(struct hybrid *hybrid, const struct greedy_options *options)
{
    uint64_t before = hybrid->search.best_ns;
    uint64_t unplaced_before = hybrid->search.unplaced_ns;
    uint64_t ns;
    capu_status status;

    if (search_should_stop(&hybrid->search) && before != UINT64_MAX) {
        return CAPU_OK;
    }
    memset(hybrid->decisions, DECIDE_KEEP, hybrid->planning->request->uses->trace->operand_count);
    status = greedy_run(hybrid->greedy, options, hybrid->wake, hybrid->decisions,
                        &hybrid->search.scratch);
    if (status == CAPU_OK) {
        status = try_variants(hybrid, options, &ns);
    }
    if (hybrid->search.best_ns < before) {
        hybrid->best_greedy = *options;
    }
    if (hybrid->search.unplaced_ns < unplaced_before) {
        hybrid->unplaced_greedy = *options;
    }
    return status;
}

/*
 * Tensors that are dead in backward but read by several replayable ops whose outputs are larger and
 * wanted there live on until the last of those outputs is: then each replay is one op, not a chain.
 * False: there are none.
 */
static bool choose_wake(struct hybrid *hybrid)
{
    const struct uses *uses = hybrid->planning->request->uses;
    const struct trace *trace = uses->trace;
    struct lower *lower = hybrid->planning->lower;
    bool has_any = false;

    for (uint32_t t = 0; t < trace->tensor_count; t++) {
        uint32_t last = uses->first[t + 1];
        uint64_t bytes = 0;
        uint32_t readers = 0;
        uint32_t until = 0;

        hybrid->wake[t] = 0;
        if (trace->tensors[t].persistent || uses->rounded[t] == 0) {
            continue;
        }
        for (uint32_t slot = uses->first[t]; slot < last; slot++) {
            const struct trace_op *op = &trace->ops[uses->op[slot]];
            uint64_t own = 0;

            for (uint32_t i = 0; uses->role[slot] == USE_READ && i < op->write_count; i++) {
                uint32_t w = trace_writes(trace, op)[i];
                uint32_t end_slot = uses->first[w + 1] - 1;

                if (op->replayable && uses->op[end_slot] > uses->op[last - 1] &&
                    uses->op[end_slot] > uses->op[slot] + 1 && end_slot > uses->first[w] &&
                    lower_can_drop(lower, end_slot - 1)) {
                    own += uses->rounded[w];
                    until = uses->op[end_slot] > until ? uses->op[end_slot] : until;
                }
            }
            readers += own > 0;
            bytes += own;
        }
        if (readers >= 2 && bytes > 2 * uses->rounded[t] && until > uses->op[last - 1]) {
            hybrid->wake[t] = until;
            has_any = true;
        }
    }
    return has_any;
}

static capu_status scan_wake(struct hybrid *hybrid)
{
    uint64_t before = hybrid->search.best_ns;
    struct greedy_options options = hybrid->best_greedy;
    capu_status status = CAPU_OK;

    if (hybrid->effort->refinements == 0 || !choose_wake(hybrid)) {
        return CAPU_OK;
    }
    status = scan_one(hybrid, &options);
    if (hybrid->search.best_ns == before) {
        memset(hybrid->wake, 0,
               hybrid->planning->request->uses->trace->tensor_count * sizeof(*hybrid->wake));
    }
    return status;
}

static capu_status scan(struct hybrid *hybrid)
{
    static const double thetas[] = {0.02, 0.3, 0.1, 0.05, 0.6, 0.2, 0.005};
    static const struct {
        double safety;
        double margin;
        bool with_save;
    } refinements[] = {{1.0, 1.0, true},  {1.3, 1.0, false},  {1.0, 0.96, false}, {1.3, 1.0, true},
                       {1.0, 0.92, true}, {1.3, 0.96, false}, {1.6, 1.0, true}};
    struct greedy_options options = {.safety = 1.0,
                                     .margin = 1.0,
                                     .with_swap = true,
                                     .with_drop = true,
                                     .first_round = hybrid->effort->first_round,
                                     .rounds_max = hybrid->effort->rounds_max};
    capu_status status = CAPU_OK;

    options.theta = thetas[0];
    hybrid->best_greedy = options;
    hybrid->unplaced_greedy = options;
    for (uint32_t i = 0; status == CAPU_OK && i < hybrid->effort->thetas; i++) {
        options.theta = thetas[i];
        status = scan_one(hybrid, &options);
    }
    if (status == CAPU_OK) {
        status = scan_wake(hybrid);
    }
    for (uint32_t i = 0; status == CAPU_OK && i < hybrid->effort->refinements; i++) {
        options = hybrid->best_greedy;
        options.safety = refinements[i].safety;
        options.margin = refinements[i].margin;
        options.with_save = refinements[i].with_save;
        options.with_stalled = i % 4 == 3;
        status = scan_one(hybrid, &options);
    }
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

    memcpy(hybrid->decisions, hybrid->search.decisions, gaps);
    memcpy(hybrid->wake, hybrid->search.wake, uses->trace->tensor_count * sizeof(*hybrid->wake));
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
    struct lower_options options = hybrid->search.options;
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
                                    &hybrid->search.scratch);

    if (status != CAPU_OK) {
        return status;
    }
    options.estimate_ns = greedy_estimate(hybrid->greedy);
    if (draw(hybrid, 4) == 0) {
        options.lead = leads[draw(hybrid, 6)];
        options.with_save = draw(hybrid, 2) == 0;
        options.safety = safeties[draw(hybrid, 4)];
    }
    status = search_try(&hybrid->search, hybrid->decisions, hybrid->wake, &options, &ns);
    /* Worth another look only where it is close. */
    if (status == CAPU_OK && ns != UINT64_MAX && ns / 256 < hybrid->search.best_ns / 250) {
        status = absorb(hybrid, &options, &ns);
    }
    return status;
}

static capu_status improve(struct hybrid *hybrid)
{
    uint32_t ops = hybrid->planning->request->uses->trace->op_count;
    uint64_t steps = hybrid->effort->op_steps / (ops + 1);
    uint64_t ideal = hybrid->planning->request->uses->trace->total_ns;
    capu_status status = CAPU_OK;

    steps = steps > hybrid->effort->steps_max ? hybrid->effort->steps_max : steps;
    for (uint64_t i = 0; status == CAPU_OK && i < steps; i++) {
        if (search_should_stop(&hybrid->search) || hybrid->search.best_ns == UINT64_MAX ||
            hybrid->search.best_ns <= ideal) {
            break;
        }
        ruin(hybrid);
        status = rebuild(hybrid);
    }
    return status;
}

/*
 * Where plans are placed: with a little less memory than there is, since tensors that share pages
 * never fill them quite; where the pages still do not suffice, or somebody waits for them, with
 * less and less, at the price of the best plan before it was placed. Afterwards the limit is that
 * of the best.
 */
static capu_status scan_placing(struct hybrid *hybrid)
{
    /* Parts of a thousand. The whole is only for where each page counts. */
    static const uint64_t parts[] = {1000, 997, 990, 980, 940, 850, 600};
    const struct uses *uses = hybrid->planning->request->uses;
    const struct search *search = &hybrid->search;
    uint64_t whole = hybrid->planning->limit_bytes;
    uint64_t least = uses->floor_bytes - uses->fixed_bytes + uses->idle_bytes;
    capu_status status = CAPU_OK;

    for (size_t i = 0; status == CAPU_OK && i < sizeof(parts) / sizeof(parts[0]); i++) {
        uint64_t limit = whole / 1000 * parts[i] + whole % 1000 * parts[i] / 1000;

        if (search_is_placed_well(search) ||
            (search->best_ns != UINT64_MAX && parts[i] < hybrid->effort->least_part)) {
            break;
        }
        if (i > 0 && limit < least) {
            continue;
        }
        hybrid->planning->limit_bytes = limit > least ? limit : whole;
        status = i == 0 ? scan(hybrid) : scan_one(hybrid, &hybrid->unplaced_greedy);
    }
    hybrid->planning->limit_bytes =
        search->best_ns != UINT64_MAX ? search->options.limit_bytes : whole;
    return status;
}

static capu_status plan_rung(struct planning *planning, const struct effort *effort,
                             struct search *best, bool *has_any)
{
    const struct trace *trace = planning->request->uses->trace;
    struct hybrid hybrid = {.planning = planning, .effort = effort, .seed = 0x9E3779B97F4A7C15u};
    capu_status status = search_init(&hybrid.search, planning);

    hybrid.decisions = calloc((size_t)trace->operand_count + 1, 1);
    hybrid.wake = calloc((size_t)trace->tensor_count + 1, sizeof(*hybrid.wake));
    if (status == CAPU_OK) {
        status = hybrid.decisions != NULL && hybrid.wake != NULL
                     ? greedy_create(planning, &hybrid.greedy)
                     : CAPU_NO_HOST_MEMORY;
    }
    if (status == CAPU_OK) {
        status = planning->placer != NULL ? scan_placing(&hybrid) : scan(&hybrid);
    }
    if (status == CAPU_OK) {
        status = improve(&hybrid);
    }
    *has_any = hybrid.search.best_ns < UINT64_MAX;
    if (status == CAPU_OK && *has_any) {
        status = search_offer(best, &hybrid.search.best);
    }
    greedy_destroy(hybrid.greedy);
    free(hybrid.decisions);
    free(hybrid.wake);
    search_finish(&hybrid.search);
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
    return effort == EFFORT_DEFAULT && ops > SOME_OPS ? &default_large : &efforts[effort];
}

capu_status hybrid_plan(struct planning *planning)
{
    const struct uses *uses = planning->request->uses;
    const struct effort *effort = effort_for(planning->request->effort, uses->trace->op_count);
    uint32_t rungs = planning->request->effort == EFFORT_QUICK && uses->trace->op_count > MANY_OPS
                         ? 4
                         : effort->rungs;
    struct search best;
    capu_status status = search_init(&best, planning);

    for (uint32_t rung = rungs + 1; status == CAPU_OK && rung-- > 0;) {
        uint64_t budget = rung_budget(uses, rung, rungs);
        bool is_deep = effort->depth_every > 0 && rung % effort->depth_every == 0;
        bool has_any;

        if (budget > planning->request->budget_bytes || !planner_set_budget(planning, budget)) {
            continue;
        }
        if (best.best_ns != UINT64_MAX &&
            (search_should_stop(&best) ||
             bound_cut(uses, planning->machine, budget) >= best.best_ns)) {
            break;
        }
        if (planning->placer != NULL) {
            /* Pages and pool are the rung's, so that its plan is the same under any budget. */
            planning->plan->budget_bytes = budget;
        }
        status = plan_rung(planning, is_deep ? effort : &scan_only, &best, &has_any);
        if (status == CAPU_OK && (is_deep || (planning->placer != NULL && !has_any))) {
            planner_set_budget(planning, budget);
            status = offer_others(planning, &best);
        }
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

/*
 * The improvement phase of planner hybrid: large changes and small ones alternate. Ruin and rebuild
 * leaves a local optimum that exchanges of single decisions cannot leave; local search then removes
 * what the greedy, pricing one gap at a time, got wrong. The share of the effort that is left is
 * the temperature of the local search.
 */
#include "policy/search/hybrid_state.h"

#include "base/random.h"
#include "policy/search/local_search.h"

#include <string.h>

/* Rebuilds, and steps of local search, per turn. */
#define REBUILDS 8
#define LOCAL_SEARCH_STEPS 60
/* Turns without gain after which another start is more likely to gain something. */
#define IDLE_TURNS 20

static uint64_t draw(struct hybrid *hybrid, uint64_t below)
{
    return (random_xorshift(&hybrid->seed) >> 33) % below;
}

/* Gives up part of the best decisions: some at random, or all gaps that end in a window of ops. */
static void ruin(struct hybrid *hybrid)
{
    const struct trace_index *trace_index = hybrid->planning->request->trace_index;
    uint32_t gaps = lower_gap_count(hybrid->planning->lower);
    uint32_t ops = trace_index->trace->op_count;
    uint64_t kind = draw(hybrid, 3);
    uint64_t share = 3 + draw(hybrid, 20);
    uint32_t width = 1 + ops / (uint32_t)(4 + draw(hybrid, 44));
    uint32_t from = (uint32_t)draw(hybrid, ops);

    memcpy(hybrid->decisions, hybrid->search->decisions, gaps);
    for (uint32_t gap = 0; gap < gaps; gap++) {
        uint32_t end = lower_gap_end(hybrid->planning->lower, gap);
        uint32_t at = kind == 1 ? end : lower_gap_start(hybrid->planning->lower, gap);
        bool goes = kind == 0 ? draw(hybrid, 100) < share : at >= from && at - from < width;

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
    capu_status status =
        greedy_run(hybrid->greedy, &greedy, hybrid->decisions, &hybrid->search->scratch);

    if (status != CAPU_OK) {
        return status;
    }
    keep_returns(hybrid);
    options.estimate_ns = greedy_estimate(hybrid->greedy);
    options.is_cautious ^= draw(hybrid, 8) == 0;
    if (draw(hybrid, 4) == 0) {
        options.lead = leads[draw(hybrid, 6)];
        options.with_save = draw(hybrid, 2) == 0;
        options.safety = safeties[draw(hybrid, 4)];
    }
    status = search_try(hybrid->search, hybrid->decisions, &options, &ns);
    /* Worth another lowering only if it is close. */
    if (status == CAPU_OK && ns != UINT64_MAX && ns / 256 < hybrid->search->best_ns / 250) {
        status = hybrid_absorb(hybrid, &options, &ns);
    }
    return status;
}

capu_status hybrid_improve(struct hybrid *hybrid, uint64_t work)
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

/*
 * The scan of planner hybrid: one greedy run per price, and each result lowered in several ways.
 * The right lead and the use of saves depend on how busy the links are, which is known only after
 * lowering; a few variants are cheaper than a model of that.
 */
#include "policy/search/hybrid_state.h"

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

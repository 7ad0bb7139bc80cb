/*
 * Planner hybrid, the default: keeps, swaps or drops each tensor in each gap. It searches; the
 * lowering makes every set of decisions a valid plan, and the execution model times it exactly.
 *
 * Scan. The greedy runs for several prices of the link (theta). Each result is lowered with several
 * leads of its prefetches, with and without saves. Where dead tensors
 * may be worth keeping for replays, some starts also decide about those (lower.h). Where
 * what is swapped over the border is missing when the iteration begins, a copy of a start has it
 * return earlier.
 *
 * Improvement. Every start is improved for a while, since prices lead to different local optima;
 * then the best one gets the rest of the work, and the others in turn when it gains no more. Ruin
 * and rebuild (large neighbourhood search: part of the decisions is given up, and the greedy
 * completes them at other prices) alternates with local search. Random choices follow from the
 * request's seed, so equal requests give equal plans.
 *
 * Monotone in the budget: a larger budget never gives a slower plan. Budgets are rounded down to a
 * fixed list of budget levels, and the answer is the best of all levels up to the budget. Few
 * levels are searched in depth, the others only scanned. Two rules keep lower levels cheap, so that
 * most of the work goes into the highest. A level is left out if its lower bound is no better than
 * the best plan found. And on all but tiny traces, what the steps of a level's search may still
 * gain is limited, so that a level that is far worse than the best found need not be searched
 * further; faster results are ignored, which keeps the answer independent of what else was
 * searched.
 *
 * With place lines, only times of placed plans count, and each plan is placed within its own
 * level's budget. Where the places of all starts cost much, another one begins with the plan that
 * copies most, which can always be placed, and keeps what its pages allow. Effort is counted in
 * ops walked over, not in seconds: plans do not depend on the machine. hybrid.c has the budget
 * levels; hybrid_level.c searches one level; hybrid_scan.c makes its starts. planner_run enters
 * by hybrid_plan (planner_shared.h).
 */
#ifndef CAPU_POLICY_HYBRID_STATE_H
#define CAPU_POLICY_HYBRID_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "capuchin/status.h"
#include "policy/search/greedy.h"
#include "policy/search/planner_shared.h"
#include "policy/search/search.h"

/* Two more where there are virtual reads, one with returns, one from the frugal plan. */
#define STARTS_MAX 8
/* After so many starts, the level may be left. */
#define FIRST_STARTS 2
/* From so many ops on there are fewer levels and starts, and the other planners are not tried. */
#define MANY_OPS 8000
/* Any phase may gain this part of the ideal time: where little is lost, all of it. */
#define NEAR_IDEAL 500

/* After each of these steps it is decided whether a level can still give the final plan. */
enum step {
    STEP_FIRST_START, /* scanned */
    STEP_FIRST_STARTS,
    STEP_SCAN,       /* all starts */
    STEP_BEST_START, /* improved */
    STEP_OTHERS,     /* the other planners tried */
    STEP_STARTS,     /* all improved */
    STEP_COUNT
};

struct effort {
    uint32_t levels;         /* the budget levels: number of parts of the unconstrained peak */
    uint32_t depth_every;    /* one in so many levels is searched in depth; 0: none */
    uint32_t starts;         /* prices that are scanned */
    uint32_t variants;       /* of lead, save and caution */
    uint64_t start_work;     /* for each start: ops walked over */
    uint64_t work;           /* for the best start; or for all, if it does not get better */
    uint32_t rounds_max;     /* of the greedy */
    double left[STEP_COUNT]; /* the least share of an overhead that is left after what follows */
};

struct hybrid {
    struct planning *planning;
    const struct effort *effort;
    struct search *search; /* of the current start */
    struct search starts[STARTS_MAX];
    uint32_t kinds[STARTS_MAX]; /* of the starts: which greedy */
    uint32_t start_count;
    uint32_t scanned_count; /* without the copy with returns */
    uint64_t bound_ns;      /* no plan is faster */
    uint64_t floor_ns;      /* faster results are ignored in the whole level */
    struct greedy *greedy;
    uint8_t *decisions;
    uint64_t seed;
    bool is_placing;    /* the starts are placed */
    bool is_in_turn;    /* the starts are improved in turn: the longest phase */
    uint64_t found_ns;  /* where they are not: of the best */
    uint64_t result_ns; /* and of the best when it was placed */
};

/* hybrid_level.c: offers the best plan for the planning's limit to `best`. */
capu_status hybrid_level_plan(struct hybrid *hybrid, struct search *best);

/* hybrid_scan.c: are there dead tensors that may be worth keeping? */
bool hybrid_has_virtual(const struct hybrid *hybrid);
/* The kind of a start, by its number and the starts before it. */
uint32_t hybrid_kind(const struct hybrid *hybrid, uint32_t start);
/* Makes a search the current one, with or without the virtual reads. */
void hybrid_select(struct hybrid *hybrid, struct search *search);
/* A greedy run from scratch into the current search, and its variants. */
capu_status hybrid_scan_one(struct hybrid *hybrid, uint32_t kind);
/* Plans forced evictions as swaps, so that they are prefetched. */
capu_status hybrid_absorb(struct hybrid *hybrid, const struct lower_options *options, uint64_t *ns);

/* Adds a start, where that is faster: the best copy of a start in which tensors
   return before the iteration ends. */
capu_status hybrid_scan_returns(struct hybrid *hybrid);

/* Adds a start, where it is better than the first one: what can be kept of the
   frugal plan, which copies most. Pre: there is a placer. */
capu_status hybrid_scan_frugal(struct hybrid *hybrid);

#endif

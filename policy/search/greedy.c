/*
 * The greedy's rounds.
 *
 * The excess over the budget is a profile over ops; its prefix sums give, in O(1), how much of it a
 * tensor relieves by being away from one op to another. Idle time of each link per op is a Fenwick
 * tree: "when is this copy out, if it uses idle time only?" is one search in it, and taking a swap
 * consumes that time, so that swaps of one round do not count on the same idle time twice.
 *
 * Candidates are a heap by relieved excess per price, and the best are taken until a share of the
 * excess is relieved. The share is small in the first rounds: each decision changes the prices of
 * the others (a chain gets longer, a link busier), and taking few at a time lets the next round see
 * that. At the end, what the profile has room for after all is kept again, dearest first.
 *
 * A round costs O((gaps + ops) log ops) and one bounded walk over producers per gap that may be
 * dropped. Prices per byte and time instead of the paper's one tensor after the other: the paper's
 * ranking sees only free time at one peak.
 */
#include "policy/search/greedy.h"

#include "base/assert.h"
#include "base/heap.h"
#include "policy/lower/op_trees.h"

#include <stdlib.h>
#include <string.h>

struct candidate {
    double score;
    uint32_t gap;
    uint8_t decision;
    bool is_stalled; /* a swap that the link has no idle time for */
};

struct greedy {
    struct planning *planning;
    const struct trace_index *trace_index;
    const struct trace *trace;
    struct idle_time out;
    struct idle_time in;
    double *weight;    /* prefix sums of the excess, from index 1 */
    uint32_t *crowded; /* prefix counts of ops with an excess, from index 1 */
    uint64_t *estimate_ns;
    struct candidate *candidates;
    uint32_t *open; /* gaps that could be given up at all */
    uint32_t open_count;
    uint64_t *out_ns; /* per tensor */
    uint64_t *in_ns;
    struct segment_tree tree;
    const struct greedy_options *options;
    const uint8_t *decisions;
    uint64_t limit_bytes; /* with the margin */
};

/* Where a gap's bytes are away: [first, last], and for a wrap also [0, wrapped_last]. Empty where
   first > last. */
struct away {
    int64_t first;
    int64_t last;
    int64_t wrapped_first;
    int64_t wrapped_last;
};

static int64_t out_time(const struct greedy *greedy, uint32_t tensor)
{
    /* What nothing writes has a copy on the host already. */
    return greedy->trace_index->final_version[tensor] == 0
               ? 0
               : (int64_t)(greedy->options->safety * (double)greedy->out_ns[tensor]);
}

static int64_t in_time(const struct greedy *greedy, uint32_t tensor)
{
    return (int64_t)(greedy->options->safety * (double)greedy->in_ns[tensor]);
}

/* The first op during which a swap's copy out may run. */
static uint32_t out_from(const struct greedy *greedy, uint32_t gap)
{
    uint32_t tensor = lower_gap_tensor(greedy->planning->lower, gap);
    uint32_t slot = gap;

    if (gap >= greedy->trace->operand_count) {
        return lower_gap_start(greedy->planning->lower, gap) + 1;
    }
    while (greedy->options->with_save && greedy->trace_index->role[slot] == USE_READ &&
           slot > greedy->trace_index->first[tensor]) {
        slot--;
    }
    return greedy->trace_index->op[slot] + 1;
}

/* Where a swap of the gap would relieve memory. False: the link has no time for it. */
static bool swap_away(const struct greedy *greedy, uint32_t gap, struct away *away)
{
    uint32_t tensor = lower_gap_tensor(greedy->planning->lower, gap);
    uint32_t end = lower_gap_end(greedy->planning->lower, gap);
    uint32_t ops = greedy->trace->op_count;
    uint32_t after = lower_gap_start(greedy->planning->lower, gap) + 1;
    uint32_t back = end >= ops ? end - ops : end;
    int64_t out_needed =
        idle_time_before(&greedy->out, out_from(greedy, gap)) + out_time(greedy, tensor);
    int64_t in_left = idle_time_before(&greedy->in, back) - in_time(greedy, tensor);
    int64_t gone;
    int64_t returns;

    if (in_left < 0) {
        return false;
    }
    gone = out_time(greedy, tensor) == 0 ? after : idle_time_find(&greedy->out, out_needed) + 1;
    gone = gone > after ? gone : after;
    returns = idle_time_find(&greedy->in, in_left + 1);
    *away = (struct away){.first = gone, .last = returns - 1, .wrapped_last = -1};
    if (end >= ops) {
        int64_t total = idle_time_before(&greedy->out, ops);

        away->last = ops - 1;
        away->wrapped_last = returns - 1;
        if (out_needed > total) {
            away->wrapped_first = idle_time_find(&greedy->out, out_needed - total) + 1;
        }
        return away->first <= away->last || away->wrapped_first <= away->wrapped_last;
    }
    return away->first <= away->last;
}

static double weight_of(const struct greedy *greedy, const struct away *away)
{
    double sum = 0.0;

    if (away->first <= away->last) {
        sum += greedy->weight[away->last + 1] - greedy->weight[away->first];
    }
    if (away->wrapped_first <= away->wrapped_last) {
        sum += greedy->weight[away->wrapped_last + 1] - greedy->weight[away->wrapped_first];
    }
    return sum;
}

static uint32_t crowded_of(const struct greedy *greedy, const struct away *away)
{
    uint32_t sum = 0;

    if (away->first <= away->last) {
        sum += greedy->crowded[away->last + 1] - greedy->crowded[away->first];
    }
    if (away->wrapped_first <= away->wrapped_last) {
        sum += greedy->crowded[away->wrapped_last + 1] - greedy->crowded[away->wrapped_first];
    }
    return sum;
}

static double swap_price(const struct greedy *greedy, uint32_t gap)
{
    uint32_t tensor = lower_gap_tensor(greedy->planning->lower, gap);
    double in_ns = (double)in_time(greedy, tensor);
    double price = 1.0 + greedy->options->theta * ((double)out_time(greedy, tensor) + in_ns);

    return greedy->options->is_wary
               ? price + in_ns * (double)lower_chain_reads(greedy->planning->lower, gap)
               : price;
}

/* The whole gap, from the op after the access to the op before the next. */
static struct away whole_away(const struct greedy *greedy, uint32_t gap)
{
    int64_t ops = greedy->trace->op_count;
    int64_t end = lower_gap_end(greedy->planning->lower, gap);

    return (struct away){.first = (int64_t)lower_gap_start(greedy->planning->lower, gap) + 1,
                         .last = end >= ops ? ops - 1 : end - 1,
                         .wrapped_last = end >= ops ? end - ops - 1 : -1};
}

/* Compute waits for a copy that nothing hides: the price of a swap without idle time. */
static double stalled_price(const struct greedy *greedy, uint32_t tensor)
{
    return 1.0 + (double)in_time(greedy, tensor) + 0.5 * (double)out_time(greedy, tensor);
}

/* The better way to give up a gap; score 0: there is none. */
static struct candidate judge_gap(struct greedy *greedy, uint32_t gap)
{
    struct lower *lower = greedy->planning->lower;
    uint32_t tensor = lower_gap_tensor(lower, gap);
    double bytes = (double)greedy->trace_index->rounded[tensor];
    capu_hint hint = (capu_hint)greedy->trace->tensors[tensor].hint;
    struct candidate best = {.gap = gap, .decision = DECIDE_KEEP};
    struct away away = whole_away(greedy, gap);
    double whole = bytes * weight_of(greedy, &away);

    if (whole <= 0.0 || lower_gap_is_idle(lower, gap)) {
        return best;
    }
    if (greedy->options->with_swap && hint != CAPU_HINT_RECOMPUTE &&
        swap_away(greedy, gap, &away)) {
        best.score = bytes * weight_of(greedy, &away) / swap_price(greedy, gap);
        best.decision = DECIDE_SWAP;
    }
    if (greedy->options->with_swap && greedy->options->with_stalled &&
        hint != CAPU_HINT_RECOMPUTE) {
        double score = whole / stalled_price(greedy, tensor);

        if (score > best.score) {
            best.score = score;
            best.decision = DECIDE_SWAP;
            best.is_stalled = true;
        }
    }
    if (greedy->options->with_drop && hint != CAPU_HINT_SWAP && lower_can_drop(lower, gap)) {
        uint64_t cost = lower_drop_cost(lower, greedy->decisions, gap, greedy->options->is_wary);
        double score = cost == UINT64_MAX ? 0.0 : whole / (1.0 + (double)cost);

        if (score > best.score) {
            best.score = score;
            best.decision = DECIDE_DROP;
            best.is_stalled = false;
        }
    }
    return best;
}

static int compare_candidates(const void *a, const void *b)
{
    const struct candidate *left = a;
    const struct candidate *right = b;

    if (left->score != right->score) {
        return left->score > right->score ? -1 : 1;
    }
    return (left->gap > right->gap) - (left->gap < right->gap);
}

/* Whether the gap can be given up at all, whatever else was decided. */
static bool is_open(const struct greedy *greedy, uint32_t gap)
{
    const struct lower *lower = greedy->planning->lower;
    uint32_t tensor = lower_gap_tensor(lower, gap);
    uint32_t end = lower_gap_end(lower, gap);

    return end != TRACE_INDEX_NONE && end > lower_gap_start(greedy->planning->lower, gap) + 1 &&
           greedy->trace_index->rounded[tensor] > 0 &&
           greedy->trace->tensors[tensor].hint != CAPU_HINT_KEEP;
}

static void list_open(struct greedy *greedy)
{
    greedy->open_count = 0;
    for (uint32_t gap = 0; gap < lower_gap_count(greedy->planning->lower); gap++) {
        if (is_open(greedy, gap)) {
            greedy->open[greedy->open_count++] = gap;
        }
    }
}

/* The profile's excess into prefix sums; its total. */
static double sum_excess(struct greedy *greedy, const struct lower_result *result)
{
    double total = 0.0;
    int64_t limit = (int64_t)greedy->limit_bytes;

    for (uint32_t k = 0; k < greedy->trace->op_count; k++) {
        int64_t excess = result->profile[k] - limit;

        greedy->weight[k + 1] = greedy->weight[k] + (excess > 0 ? (double)excess : 0.0);
        greedy->crowded[k + 1] = greedy->crowded[k] + (excess > 0);
        total += excess > 0 ? (double)excess : 0.0;
    }
    return total;
}

static capu_status measure_excess(struct greedy *greedy, const uint8_t *decisions, bool is_first,
                                  struct plan *scratch)
{
    struct lower_options options = planner_full_options(greedy->planning);
    const struct lower_result *result = lower_result_of(greedy->planning->lower);
    capu_status status;

    options.limit_bytes = greedy->limit_bytes;
    options.is_soft = true;
    options.with_save = greedy->options->with_save;
    options.safety = greedy->options->safety;
    options.estimate_ns = is_first ? NULL : greedy->estimate_ns;
    status = lower_run(greedy->planning->lower, decisions, &options, scratch);
    memcpy(greedy->estimate_ns, result->start_ns,
           ((size_t)greedy->trace->op_count + 1) * sizeof(*greedy->estimate_ns));
    return status;
}

static bool is_better(const void *a, const void *b, const void *context)
{
    (void)context;
    return compare_candidates(a, b) < 0;
}

static const struct heap_order best_first = {.element_bytes = sizeof(struct candidate),
                                             .is_before = is_better};

/* A heap, the best on top: few of many are taken. */
static uint32_t list_candidates(struct greedy *greedy, const uint8_t *decisions)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < greedy->open_count; i++) {
        if (decisions[greedy->open[i]] == DECIDE_KEEP) {
            struct candidate candidate = judge_gap(greedy, greedy->open[i]);

            if (candidate.score > 0.0) {
                greedy->candidates[count++] = candidate;
            }
        }
    }
    heap_build(greedy->candidates, count, best_first);
    return count;
}

/* Reserves the link's time for a swap. False: other swaps of this round have taken most of what
   made it good. */
static bool take_swap(struct greedy *greedy, const struct candidate *best, struct away *away)
{
    uint32_t ops = greedy->trace->op_count;
    uint32_t gap = best->gap;
    uint32_t tensor = lower_gap_tensor(greedy->planning->lower, gap);
    uint32_t end = lower_gap_end(greedy->planning->lower, gap);
    double bytes = (double)greedy->trace_index->rounded[tensor];

    if (!swap_away(greedy, gap, away) ||
        bytes * weight_of(greedy, away) / swap_price(greedy, gap) < 0.5 * best->score) {
        return false;
    }
    idle_time_consume_forward(&greedy->out, out_from(greedy, gap), out_time(greedy, tensor));
    idle_time_consume_backward(&greedy->in, end >= ops ? end - ops : end, in_time(greedy, tensor));
    return true;
}

/* The same for a drop: fewer of its replays may be shared than when it was priced. */
static bool take_drop(struct greedy *greedy, const struct candidate *best, const struct away *away)
{
    struct lower *lower = greedy->planning->lower;
    double bytes = (double)greedy->trace_index->rounded[lower_gap_tensor(lower, best->gap)];
    uint64_t cost;

    if (!greedy->options->is_wary) {
        return true;
    }
    cost = lower_drop_cost(lower, greedy->decisions, best->gap, true);
    if (cost == UINT64_MAX ||
        bytes * weight_of(greedy, away) / (1.0 + (double)cost) < 0.5 * best->score) {
        return false;
    }
    lower_note_drop(lower, greedy->decisions, best->gap);
    return true;
}

/* Takes the best until `target` (bytes times crowded ops) is relieved. How many were taken. */
static uint32_t take_best(struct greedy *greedy, uint8_t *decisions, uint32_t count, double target)
{
    double relieved = 0.0;
    uint32_t taken = 0;

    while (count > 0 && relieved < target) {
        struct candidate best = greedy->candidates[0];
        uint32_t tensor = lower_gap_tensor(greedy->planning->lower, best.gap);
        struct away away = whole_away(greedy, best.gap);

        heap_pop(greedy->candidates, count--, best_first);
        if ((best.decision == DECIDE_SWAP && !best.is_stalled &&
             !take_swap(greedy, &best, &away)) ||
            (best.decision == DECIDE_DROP && !take_drop(greedy, &best, &away))) {
            continue;
        }
        relieved += (double)greedy->trace_index->rounded[tensor] * crowded_of(greedy, &away);
        decisions[best.gap] = best.decision;
        taken++;
    }
    return taken;
}

/* Dearest first: what the profile has room for is kept after all. */
static void give_back(struct greedy *greedy, uint8_t *decisions)
{
    struct lower *lower = greedy->planning->lower;
    const struct lower_result *result = lower_result_of(lower);
    int64_t limit = (int64_t)greedy->limit_bytes;
    uint32_t count = 0;

    segment_tree_fill(&greedy->tree, result->profile, greedy->trace->op_count);
    for (uint32_t gap = 0; gap < lower_gap_count(greedy->planning->lower); gap++) {
        uint32_t tensor = lower_gap_tensor(lower, gap);
        capu_hint hint = (capu_hint)greedy->trace->tensors[tensor].hint;

        if (decisions[gap] != DECIDE_KEEP && hint == CAPU_HINT_NONE &&
            lower_gap_end(lower, gap) != TRACE_INDEX_NONE) {
            double price = swap_price(greedy, gap);

            if (decisions[gap] == DECIDE_DROP) {
                price = (double)lower_replay_ns(lower, gap) + 1.0;
            }
            greedy->candidates[count++] =
                (struct candidate){.score = price, .gap = gap, .decision = decisions[gap]};
        }
    }
    qsort(greedy->candidates, count, sizeof(*greedy->candidates), compare_candidates);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t gap = greedy->candidates[i].gap;
        uint32_t end = lower_gap_end(lower, gap);
        uint32_t ops = greedy->trace->op_count;
        uint32_t first = lower_gap_start(greedy->planning->lower, gap) + 1;
        uint32_t last = end >= ops ? ops - 1 : end - 1;
        int64_t bytes = (int64_t)greedy->trace_index->rounded[lower_gap_tensor(lower, gap)];

        if (segment_tree_most(&greedy->tree, first, last) + bytes > limit ||
            (end > ops && segment_tree_most(&greedy->tree, 0, end - ops - 1) + bytes > limit)) {
            continue;
        }
        segment_tree_add(&greedy->tree, first, last, bytes);
        if (end > ops) {
            segment_tree_add(&greedy->tree, 0, end - ops - 1, bytes);
        }
        decisions[gap] = DECIDE_KEEP;
    }
}

/* The share of the excess that a round relieves: small at first, while prices still change. */
static double share_of_round(uint32_t round)
{
    return round < 16 ? 0.125 : round < 24 ? 0.25 : round < 32 ? 0.5 : 1.0;
}

capu_status greedy_run(struct greedy *greedy, const struct greedy_options *options,
                       uint8_t *decisions, struct plan *scratch)
{
    const struct lower_result *result = lower_result_of(greedy->planning->lower);
    capu_status status;

    ASSERT(options->theta > 0.0 && options->safety > 0.0 && options->margin > 0.0);
    greedy->options = options;
    greedy->limit_bytes = (uint64_t)((double)greedy->planning->limit_bytes * options->margin);
    greedy->decisions = decisions;
    list_open(greedy);
    for (uint32_t round = 0;; round++) {
        uint32_t count;
        double total;

        status = measure_excess(greedy, decisions, round == 0, scratch);
        if (status != CAPU_OK || result->excess_most <= 0 || round >= options->rounds_max) {
            break;
        }
        total = sum_excess(greedy, result);
        idle_time_fill(&greedy->out, result->start_ns, result->out_busy);
        idle_time_fill(&greedy->in, result->start_ns, result->in_busy);
        count = list_candidates(greedy, decisions);
        if (take_best(greedy, decisions, count,
                      total * share_of_round(options->first_round + round)) == 0) {
            break;
        }
    }
    if (status == CAPU_OK) {
        give_back(greedy, decisions);
    }
    return status == CAPU_NO_HOST_MEMORY ? status : CAPU_OK;
}

const uint64_t *greedy_estimate(const struct greedy *greedy)
{
    return greedy->estimate_ns;
}

static capu_status allocate_greedy(struct greedy *greedy)
{
    size_t ops = (size_t)greedy->trace->op_count + 2;
    size_t tensors = (size_t)greedy->trace->tensor_count + 1;
    size_t gaps = (size_t)lower_gap_count(greedy->planning->lower) + 1;

    greedy->weight = calloc(ops, sizeof(*greedy->weight));
    greedy->crowded = calloc(ops, sizeof(*greedy->crowded));
    greedy->estimate_ns = calloc(ops, sizeof(*greedy->estimate_ns));
    greedy->candidates = calloc(gaps, sizeof(*greedy->candidates));
    greedy->open = calloc(gaps, sizeof(*greedy->open));
    greedy->out_ns = calloc(tensors, sizeof(*greedy->out_ns));
    greedy->in_ns = calloc(tensors, sizeof(*greedy->in_ns));
    return idle_time_init(&greedy->out, greedy->trace->op_count) == CAPU_OK &&
                   idle_time_init(&greedy->in, greedy->trace->op_count) == CAPU_OK &&
                   greedy->weight != NULL && greedy->crowded != NULL &&
                   greedy->estimate_ns != NULL && greedy->candidates != NULL &&
                   greedy->open != NULL && greedy->out_ns != NULL && greedy->in_ns != NULL
               ? segment_tree_init(&greedy->tree, greedy->trace->op_count + 1)
               : CAPU_NO_HOST_MEMORY;
}

capu_status greedy_create(struct planning *planning, struct greedy **out)
{
    const struct machine *machine = planning->machine;
    struct greedy *greedy = calloc(1, sizeof(*greedy));

    if (greedy == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    greedy->planning = planning;
    greedy->trace_index = planning->request->trace_index;
    greedy->trace = greedy->trace_index->trace;
    if (allocate_greedy(greedy) != CAPU_OK) {
        greedy_destroy(greedy);
        return CAPU_NO_HOST_MEMORY;
    }
    for (uint32_t t = 0; t < greedy->trace->tensor_count; t++) {
        uint64_t bytes = greedy->trace->tensors[t].bytes;

        greedy->out_ns[t] =
            clock_copy_ns(bytes, machine->d2h_bytes_per_s, machine->copy_latency_ns);
        greedy->in_ns[t] = clock_copy_ns(bytes, machine->h2d_bytes_per_s, machine->copy_latency_ns);
    }
    *out = greedy;
    return CAPU_OK;
}

void greedy_destroy(struct greedy *greedy)
{
    if (greedy == NULL) {
        return;
    }
    idle_time_finish(&greedy->out);
    idle_time_finish(&greedy->in);
    free(greedy->weight);
    free(greedy->crowded);
    free(greedy->estimate_ns);
    free(greedy->candidates);
    free(greedy->open);
    free(greedy->out_ns);
    free(greedy->in_ns);
    segment_tree_finish(&greedy->tree);
    free(greedy);
}

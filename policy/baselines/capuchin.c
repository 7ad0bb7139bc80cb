/*
 * Planner capuchin: the paper's own (Peng et al., ASPLOS 2020). It takes one tensor after another,
 * those with the most free time first (the time between the end of the copy out and the latest
 * start of the copy in), and swaps it if that is hidden or costs less than recomputing the same
 * tensor, until the bytes over the peak are saved.
 *
 * Choices where the paper is silent: the live set and the window of the peak are those of the
 * unconstrained iteration, and the window ends with the op at the peak; a tensor is evicted in the
 * longest gap between its accesses; a tie between swap and recompute goes to recompute; a candidate
 * that loses a source to recomputation has its own recomputation time raised, and inherits the
 * sources of that source. If the plan still exceeds the budget once the peak is handled, the rest
 * is paged on demand. Feedback is a number of rounds that move every in-trigger forward by another
 * twentieth of its copy, using the times of the previous round; the best round is kept.
 */
#include "policy/baselines/baselines.h"
#include "policy/search/planner_shared.h"

#include "policy/search/search.h"

#include <stdlib.h>
#include <string.h>

#define FEEDBACK_ROUNDS 5

enum choice { OPEN, SWAPPED, RECOMPUTED };

struct candidate {
    uint32_t tensor;
    uint32_t gap; /* the longest one, and it spans the peak */
    uint64_t out_end_ns;
    uint64_t back_ns;
    uint64_t in_ns;
    int64_t free_ns;
    uint64_t replay_ns; /* of one recomputation from its sources */
    uint64_t extra_ns;  /* what it adds to chosen targets that need it */
    enum choice choice;
    uint32_t *sources; /* indices of candidates */
    uint32_t source_count;
};

struct lane_item {
    uint64_t start;
    uint64_t end;
};

struct paper {
    struct planning *planning;
    const struct trace_index *trace_index;
    const struct trace *trace;
    uint64_t *start_ns; /* ideal, one more at the end */
    struct candidate *candidates;
    uint32_t count;
    uint32_t *index_of; /* per tensor: its candidate plus one */
    uint32_t *seen;     /* per tensor: the candidate whose search passed it last, plus one */
    uint32_t *stack;
    struct lane_item *lane; /* copies in, by time */
    uint32_t lane_count;
    uint64_t window_end_ns; /* of the peak */
};

static uint32_t longest_gap(const struct paper *paper, uint32_t tensor)
{
    const struct trace_index *trace_index = paper->trace_index;
    uint32_t longest = TRACE_INDEX_NONE;
    uint64_t most = 0;

    for (uint32_t gap = trace_index->first[tensor]; gap + 1 < trace_index->first[tensor + 1];
         gap++) {
        uint32_t end = lower_gap_end(paper->planning->lower, gap);

        if (end != TRACE_INDEX_NONE &&
            paper->start_ns[end] - paper->start_ns[trace_index->op[gap] + 1] >= most) {
            most = paper->start_ns[end] - paper->start_ns[trace_index->op[gap] + 1];
            longest = gap;
        }
    }
    return longest;
}

/* Most free time first; then the earlier swap-in, then the id. */
static int compare_candidates(const void *a, const void *b)
{
    const struct candidate *left = a;
    const struct candidate *right = b;
    uint64_t left_in = left->back_ns - left->in_ns;
    uint64_t right_in = right->back_ns - right->in_ns;

    if (left->free_ns != right->free_ns) {
        return left->free_ns > right->free_ns ? -1 : 1;
    }
    if (left_in != right_in) {
        return left_in < right_in ? -1 : 1;
    }
    return (left->tensor > right->tensor) - (left->tensor < right->tensor);
}

static void find_candidates(struct paper *paper)
{
    const struct trace_index *trace_index = paper->trace_index;
    const struct machine *machine = paper->planning->machine;

    for (uint32_t t = 0; t < paper->trace->tensor_count; t++) {
        const struct trace_tensor *tensor = &paper->trace->tensors[t];
        uint32_t first = trace_index->first[t];
        uint32_t last = trace_index->first[t + 1];
        uint32_t gap;
        struct candidate *candidate = &paper->candidates[paper->count];

        if (tensor->persistent || trace_index->rounded[t] == 0 || last - first < 2 ||
            trace_index->op[first] > trace_index->peak_op ||
            trace_index->op[last - 1] < trace_index->peak_op) {
            continue;
        }
        gap = longest_gap(paper, t);
        if (gap == TRACE_INDEX_NONE || trace_index->op[gap] >= trace_index->peak_op ||
            lower_gap_end(paper->planning->lower, gap) <= trace_index->peak_op) {
            continue;
        }
        *candidate = (struct candidate){.tensor = t, .gap = gap};
        candidate->in_ns =
            clock_copy_ns(tensor->bytes, machine->h2d_bytes_per_s, machine->copy_latency_ns);
        candidate->back_ns = paper->start_ns[lower_gap_end(paper->planning->lower, gap)];
        candidate->out_end_ns =
            paper->start_ns[trace_index->op[gap] + 1] +
            clock_copy_ns(tensor->bytes, machine->d2h_bytes_per_s, machine->copy_latency_ns);
        candidate->free_ns = (int64_t)candidate->back_ns - (int64_t)candidate->in_ns -
                             (int64_t)candidate->out_end_ns;
        paper->count++;
    }
    /* When the op at the peak has ended, its own tensors begin to be released. */
    paper->window_end_ns = paper->start_ns[trace_index->peak_op + 1];
    qsort(paper->candidates, paper->count, sizeof(*paper->candidates), compare_candidates);
    for (uint32_t i = 0; i < paper->count; i++) {
        paper->index_of[paper->candidates[i].tensor] = i + 1;
    }
}

static void add_source(struct candidate *candidate, uint32_t source)
{
    for (uint32_t i = 0; i < candidate->source_count; i++) {
        if (candidate->sources[i] == source) {
            return;
        }
    }
    candidate->sources[candidate->source_count++] = source;
}

static bool has_source(const struct candidate *candidate, uint32_t source)
{
    for (uint32_t i = 0; i < candidate->source_count; i++) {
        if (candidate->sources[i] == source) {
            return true;
        }
    }
    return false;
}

/* Climbs from a candidate to its sources: other candidates, what lives on beyond its back-access,
   what is persistent. Only candidates need to be remembered: the others stay. */
static void climb(struct paper *paper, uint32_t index)
{
    struct candidate *candidate = &paper->candidates[index];
    const struct trace_index *trace_index = paper->trace_index;
    uint32_t back = lower_gap_end(paper->planning->lower, candidate->gap);
    uint32_t depth = 1;

    paper->stack[0] = candidate->tensor;
    paper->seen[candidate->tensor] = index + 1;
    while (depth > 0) {
        uint32_t tensor = paper->stack[--depth];
        const struct trace_op *op = &paper->trace->ops[trace_index->op[trace_index->first[tensor]]];

        candidate->replay_ns += op->ns;
        for (uint32_t i = 0; i < op->read_count; i++) {
            uint32_t r = paper->trace->operands[op->first + i];

            if (paper->seen[r] == index + 1 || paper->trace->tensors[r].persistent) {
                continue;
            }
            paper->seen[r] = index + 1;
            if (paper->index_of[r] != 0) {
                add_source(candidate, paper->index_of[r] - 1);
            } else if (trace_index->op[trace_index->first[r + 1] - 1] < back) {
                paper->stack[depth++] = r;
            }
        }
    }
}

/* The latest start of a copy of that length that ends by `end` and overlaps with no other on the
   lane. */
static int64_t find_slot(const struct paper *paper, uint64_t end, uint64_t length)
{
    int64_t latest = (int64_t)end;

    for (uint32_t i = paper->lane_count; i-- > 0;) {
        if ((int64_t)paper->lane[i].start >= latest) {
            continue;
        }
        if ((int64_t)paper->lane[i].end <= latest - (int64_t)length) {
            break;
        }
        latest = (int64_t)paper->lane[i].start;
    }
    return latest - (int64_t)length;
}

static void book_slot(struct paper *paper, uint64_t start, uint64_t length)
{
    uint32_t at = paper->lane_count++;

    for (; at > 0 && paper->lane[at - 1].start > start; at--) {
        paper->lane[at] = paper->lane[at - 1];
    }
    paper->lane[at] = (struct lane_item){.start = start, .end = start + length};
}

/* The share of a swap that cannot be hidden; *start: when its copy in would begin. */
static uint64_t swap_overhead(const struct paper *paper, const struct candidate *candidate,
                              uint64_t *start)
{
    int64_t slot = find_slot(paper, candidate->back_ns, candidate->in_ns);
    uint64_t from =
        candidate->out_end_ns > paper->window_end_ns ? candidate->out_end_ns : paper->window_end_ns;
    uint64_t end;

    if (slot >= (int64_t)from) {
        *start = (uint64_t)slot;
        return 0;
    }
    /* No in-trigger hides it: it starts as soon as it may and the lane is free. */
    for (uint32_t i = 0; i < paper->lane_count; i++) {
        if (paper->lane[i].start < from + candidate->in_ns && paper->lane[i].end > from) {
            from = paper->lane[i].end;
        }
    }
    *start = from;
    end = from + candidate->in_ns;
    return end > candidate->back_ns ? end - candidate->back_ns : 0;
}

/* Updates recomputation times as Algorithm 2 does when `target` is chosen for recomputation. */
static void book_recompute(struct paper *paper, uint32_t target)
{
    struct candidate *chosen = &paper->candidates[target];
    uint64_t times = 1;

    for (uint32_t i = 0; i < paper->count; i++) {
        struct candidate *other = &paper->candidates[i];

        if (i == target || other->choice == SWAPPED || !has_source(other, target)) {
            continue;
        }
        times += other->choice == RECOMPUTED;
        other->replay_ns += chosen->replay_ns;
        for (uint32_t s = 0; s < other->source_count; s++) {
            if (other->sources[s] == target) {
                other->sources[s] = other->sources[--other->source_count];
                break;
            }
        }
        for (uint32_t s = 0; s < chosen->source_count; s++) {
            add_source(other, chosen->sources[s]);
        }
    }
    chosen->choice = RECOMPUTED;
    for (uint32_t i = 0; i < paper->count; i++) {
        struct candidate *other = &paper->candidates[i];

        if (other->choice == OPEN && has_source(chosen, i)) {
            other->extra_ns = times * other->replay_ns;
        } else if (other->choice == OPEN && other->extra_ns > 0) {
            other->extra_ns = 0;
            for (uint32_t p = 0; p < paper->count; p++) {
                other->extra_ns += paper->candidates[p].choice == RECOMPUTED &&
                                           has_source(&paper->candidates[p], i)
                                       ? other->replay_ns
                                       : 0;
            }
        }
    }
}

/* The open candidate that saves most bytes per time of its recomputation. */
static uint32_t best_by_time(const struct paper *paper)
{
    uint32_t best = UINT32_MAX;
    double most = -1.0;

    for (uint32_t i = 0; i < paper->count; i++) {
        const struct candidate *candidate = &paper->candidates[i];
        uint64_t ns = candidate->replay_ns + candidate->extra_ns;
        double rate =
            (double)paper->trace_index->rounded[candidate->tensor] / (double)(ns > 0 ? ns : 1);

        if (candidate->choice == OPEN && rate > most &&
            lower_can_drop(paper->planning->lower, candidate->gap)) {
            most = rate;
            best = i;
        }
    }
    return best;
}

/* Algorithm 2 alone. */
static void choose_recompute(struct paper *paper)
{
    int64_t saving =
        (int64_t)(paper->trace_index->peak_bytes - paper->planning->request->budget_bytes);

    while (saving > 0) {
        uint32_t i = best_by_time(paper);

        if (i == UINT32_MAX) {
            return;
        }
        book_recompute(paper, i);
        saving -= (int64_t)paper->trace_index->rounded[paper->candidates[i].tensor];
        paper->planning->decisions[paper->candidates[i].gap] = DECIDE_DROP;
    }
}

/* Algorithm 1. */
static void choose_actions(struct paper *paper)
{
    const struct planning *planning = paper->planning;
    /* Of the current limit, which may be that of a level. */
    int64_t saving = (int64_t)(paper->trace_index->peak_bytes - planning->plan->fixed_bytes -
                               planning->limit_bytes);
    bool only_swaps = (planning->request->without & WITHOUT_RECOMPUTE) != 0;

    for (uint32_t i = 0; i < paper->count && saving > 0; i++) {
        struct candidate *candidate = &paper->candidates[i];
        bool can_replay = !only_swaps && lower_can_drop(paper->planning->lower, candidate->gap);
        uint64_t start;
        uint64_t overhead = swap_overhead(paper, candidate, &start);

        if (!can_replay || overhead < candidate->replay_ns + candidate->extra_ns) {
            candidate->choice = SWAPPED;
            book_slot(paper, start, candidate->in_ns);
        } else {
            book_recompute(paper, i);
        }
        saving -= (int64_t)paper->trace_index->rounded[candidate->tensor];
        paper->planning->decisions[candidate->gap] =
            candidate->choice == SWAPPED ? DECIDE_SWAP : DECIDE_DROP;
    }
}

static capu_status feed_back(struct paper *paper)
{
    struct planning *planning = paper->planning;
    struct lower_options options = planner_paging_options(planning);
    uint32_t ops = paper->trace->op_count;
    uint32_t rounds = (planning->request->without & WITHOUT_FEEDBACK) == 0 ? FEEDBACK_ROUNDS : 1;
    struct search search;
    capu_status status = search_init(&search, planning);

    options.with_prefetch = true;
    options.with_collective = (planning->request->without & WITHOUT_COLLECTIVE) == 0;
    options.estimate_ns = paper->start_ns;
    for (uint32_t round = 0; status == CAPU_OK && round < rounds; round++) {
        uint64_t ns;

        options.safety = 1.0 + 0.05 * round;
        status = search_try(&search, planning->decisions, &options, &ns);
        memcpy(paper->start_ns, lower_result_of(planning->lower)->start_ns,
               ((size_t)ops + 1) * sizeof(*paper->start_ns));
    }
    if (status == CAPU_OK) {
        status = search_conclude(&search);
    }
    search_finish(&search);
    return status;
}

static capu_status allocate_paper(struct paper *paper, uint32_t **pool)
{
    size_t tensors = (size_t)paper->trace->tensor_count + 1;

    paper->start_ns = calloc((size_t)paper->trace->op_count + 2, sizeof(*paper->start_ns));
    paper->candidates = calloc(tensors, sizeof(*paper->candidates));
    paper->index_of = calloc(tensors, sizeof(*paper->index_of));
    paper->seen = calloc(tensors, sizeof(*paper->seen));
    paper->stack = calloc(tensors, sizeof(*paper->stack));
    paper->lane = calloc(tensors, sizeof(*paper->lane));
    if (paper->start_ns == NULL || paper->candidates == NULL || paper->index_of == NULL ||
        paper->seen == NULL || paper->stack == NULL || paper->lane == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    for (uint32_t k = 0; k < paper->trace->op_count; k++) {
        paper->start_ns[k + 1] = paper->start_ns[k] + paper->trace->ops[k].ns;
    }
    find_candidates(paper);
    *pool = calloc((size_t)paper->count * paper->count + 1, sizeof(**pool));
    return *pool != NULL ? CAPU_OK : CAPU_NO_HOST_MEMORY;
}

capu_status capuchin_plan(struct planning *planning)
{
    struct paper paper = {.planning = planning,
                          .trace_index = planning->request->trace_index,
                          .trace = planning->request->trace_index->trace};
    uint32_t *pool = NULL;
    capu_status status = allocate_paper(&paper, &pool);

    if (status == CAPU_OK) {
        for (uint32_t i = 0; i < paper.count; i++) {
            paper.candidates[i].sources = pool + (size_t)i * paper.count;
            climb(&paper, i);
        }
        if ((planning->request->without & WITHOUT_SWAP) != 0) {
            choose_recompute(&paper);
        } else {
            choose_actions(&paper);
        }
        status = feed_back(&paper);
    }
    free(pool);
    free(paper.start_ns);
    free(paper.candidates);
    free(paper.index_of);
    free(paper.seen);
    free(paper.stack);
    free(paper.lane);
    return status;
}

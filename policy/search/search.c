/* Evaluation of decisions, from cheap to expensive: the lowering's own clock already shows that
   many are too slow, the simulation with a cutoff most of the others, and only what is still better
   than the best is placed. Then local search, which evaluates one change after another. */
#include "policy/search/search.h"

#include "base/assert.h"
#include "base/hash.h"
#include "base/random.h"
#include "policy/model/timeline.h"
#include "policy/model/validate.h"

#include <stdlib.h>
#include <string.h>

/* A placement counts as so many simulations. */
#define PLACE_WORK 4

capu_status search_init(struct search *search, struct planning *planning)
{
    const struct trace *trace = planning->request->trace_index->trace;
    capu_status status;

    *search =
        (struct search){.planning = planning, .best_ns = UINT64_MAX, .unplaced_ns = UINT64_MAX};
    status = plan_init_like(&search->scratch, planning->plan);
    if (status == CAPU_OK) {
        status = plan_init_like(&search->best, planning->plan);
    }
    search->decisions = calloc((size_t)lower_gap_count(planning->lower) + 1, 1);
    search->estimate_ns = calloc((size_t)trace->op_count + 1, sizeof(*search->estimate_ns));
    if (status != CAPU_OK || search->decisions == NULL || search->estimate_ns == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    return CAPU_OK;
}

void search_finish(struct search *search)
{
    plan_finish(&search->scratch);
    plan_finish(&search->best);
    free(search->decisions);
    free(search->estimate_ns);
    *search = (struct search){0};
}

void search_swap(struct search *a, struct search *b)
{
    struct search kept = *a;

    *a = *b;
    *b = kept;
}

static void swap_plans(struct plan *a, struct plan *b)
{
    struct plan kept = *a;

    *a = *b;
    *b = kept;
}

/* Gives the scratch plan place lines; *ns is its time with them. */
static capu_status place_scratch(struct search *search, struct program *program, uint64_t *ns)
{
    struct place_result result;
    capu_status status =
        placer_run(search->planning->placer, &search->scratch, program, &result, NULL);

    search->timed_ops +=
        PLACE_WORK * (uint64_t)search->planning->request->trace_index->trace->op_count;
    *ns = status == CAPU_OK ? result.placed_ns : UINT64_MAX;
    return status == CAPU_OVER_BUDGET ? CAPU_OK : status;
}

/* Times the scratch plan; UINT64_MAX if it is not valid, or slower than the cutoff. The lowering's
   plans are valid, except that it does not know how long replays prolong the life of host copies.
   Placed if it is faster than `place_below_ns` without; the cutoff is for the time without. */
static capu_status time_scratch(struct search *search, uint64_t cutoff_ns, uint64_t place_below_ns,
                                uint64_t *ns)
{
    const struct planner_request *request = search->planning->request;
    struct program program;
    capu_status status;

    search->timed_ops += request->trace_index->trace->op_count;
    *ns = UINT64_MAX;
    status = request->host_bytes != UINT64_MAX
                 ? validate_program(&program, request->trace_index, &search->scratch, NULL)
                 : program_init(&program, request->trace_index, &search->scratch, NULL);
    if (status == CAPU_OK) {
        status = timeline_time(&program, search->planning->machine, cutoff_ns, ns);
    }
    if (status == CAPU_OK && search->planning->placer != NULL && !search->is_unplaced &&
        search->scratch.place_count == 0) {
        search->unplaced_ns = *ns < search->unplaced_ns ? *ns : search->unplaced_ns;
        status = *ns < place_below_ns ? place_scratch(search, &program, ns) : CAPU_OK;
    }
    program_finish(&program);
    return status == CAPU_NO_HOST_MEMORY ? status : CAPU_OK;
}

/* By the lowering's own clock, which saw the first iteration: the later ones are no faster, but for
   copies that begin in the one before. */
static bool is_too_slow(const struct search *search, const struct lower_options *options)
{
    uint32_t ops = search->planning->request->trace_index->trace->op_count;
    uint64_t first_ns = lower_result_of(search->planning->lower)->start_ns[ops];

    return options->cutoff_ns > 0 && first_ns - first_ns / 512 >= options->cutoff_ns;
}

/* The scratch plan is the best so far, and complete or not. */
static capu_status take_scratch(struct search *search, uint64_t ns)
{
    search->best_ns = ns;
    swap_plans(&search->best, &search->scratch);
    return search->is_unplaced && search->planning->placer != NULL
               ? CAPU_OK
               : planner_report(search->planning, &search->best, ns);
}

capu_status search_try(struct search *search, const uint8_t *decisions,
                       const struct lower_options *options, uint64_t *ns)
{
    const struct trace *trace = search->planning->request->trace_index->trace;
    capu_status status = lower_run(search->planning->lower, decisions, options, &search->scratch);

    *ns = UINT64_MAX;
    if (status == CAPU_OK && !is_too_slow(search, options)) {
        status = time_scratch(search, options->cutoff_ns, search->best_ns, ns);
    }
    if (status != CAPU_OK) {
        return status == CAPU_NO_HOST_MEMORY ? status : CAPU_OK;
    }
    if (*ns < search->floor_ns) {
        *ns = UINT64_MAX;
    }
    if (*ns < search->best_ns) {
        status = take_scratch(search, *ns);
        memmove(search->decisions, decisions, lower_gap_count(search->planning->lower));
        lower_settle_returns(search->planning->lower, search->decisions);
        search->options = *options;
        if (options->estimate_ns != NULL) {
            memmove(search->estimate_ns, options->estimate_ns,
                    ((size_t)trace->op_count + 1) * sizeof(*search->estimate_ns));
            search->options.estimate_ns = search->estimate_ns;
        }
    }
    return status;
}

capu_status search_offer(struct search *search, struct plan *plan)
{
    struct plan other = *plan;
    uint64_t ns;
    capu_status status;

    ASSERT_EXPENSIVE(validate_is_sound(search->planning->request->trace_index, plan));
    /* The actions change places, the header stays: but what is fixed goes with the actions. */
    swap_plans(&search->scratch, plan);
    if (search->planning->placer == NULL) {
        search->scratch.budget_bytes = plan->budget_bytes;
    }
    /* A placed plan may even be faster: the answer is the same whatever else was offered. */
    status = time_scratch(search, 0, UINT64_MAX, &ns);
    if (status == CAPU_OK && ns < search->best_ns && ns >= search->floor_ns) {
        status = take_scratch(search, ns);
    }
    swap_plans(&search->scratch, plan);
    plan->fixed_bytes = other.fixed_bytes;
    plan->budget_bytes = other.budget_bytes;
    return status;
}

bool search_is_placed_well(const struct search *search)
{
    return search->best_ns != UINT64_MAX &&
           search->best_ns - search->best_ns / 512 <= search->unplaced_ns;
}

uint64_t search_work(const struct search *search)
{
    return lower_work(search->planning->lower) + search->timed_ops;
}

bool search_should_stop(const struct search *search)
{
    const struct planner_request *request = search->planning->request;

    return request->should_stop != NULL && request->should_stop(request->user);
}

void search_note_work(const struct search *search, uint64_t left)
{
    const struct planner_request *request = search->planning->request;

    if (request->working != NULL) {
        request->working(request->user, left);
    }
}

capu_status search_conclude(struct search *search)
{
    if (search->best_ns == UINT64_MAX) {
        return CAPU_OVER_BUDGET;
    }
    swap_plans(search->planning->plan, &search->best);
    return CAPU_OK;
}

/*
 * Local search over decisions, by threshold accepting (Dueck and Scheuer, 1990): a change is taken
 * if it makes the plan faster, or slower by less than a random slack that shrinks with `heat`.
 *
 * A move changes one gap, drawn with a probability proportional to its bytes, or all gaps of its
 * class within some distance. A class holds the gaps of tensors of one size that are made and used
 * alike: in a network of equal layers, changing a single layer rarely pays, but changing the same
 * tensor in many layers does. Two moves in three are exchanges: another gap that overlaps the first
 * goes the other way, so that the memory in use stays about the same. One step in twelve changes
 * the options of the lowering instead (lead, saves, safety, expected times).
 *
 * Every change costs a full lowering and a simulation, cut off as soon as it is certain to be
 * rejected.
 */

#define ABSORB_MAX 2

struct open_gap {
    uint32_t gap;
    uint32_t from;       /* the op it follows */
    uint32_t to;         /* the op that ends it; beyond the last where it wraps */
    uint32_t class_next; /* the next of the same class: a ring */
    bool can_drop;
    bool can_return;
};

struct local_search {
    struct search *search;
    const struct trace_index *trace_index;
    const struct trace *trace;
    struct lower *lower;
    struct open_gap *open;
    uint64_t *bytes; /* prefix sums over open gaps */
    uint32_t open_count;
    uint8_t *current;
    uint8_t *trial;
    uint64_t current_ns;
    struct lower_options options; /* of the current state */
    uint64_t *estimate_ns;
    uint64_t *timed_ns; /* when the ops start under the current decisions */
    uint64_t seed;
};

static uint64_t draw_below(struct local_search *local_search, uint64_t below)
{
    return (random_xorshift(&local_search->seed) >> 33) % below;
}

struct key {
    uint64_t hash;
    uint32_t index;
};

static int compare_keys(const void *a, const void *b)
{
    const struct key *left = a;
    const struct key *right = b;

    if (left->hash != right->hash) {
        return left->hash < right->hash ? -1 : 1;
    }
    return (left->index > right->index) - (left->index < right->index);
}

/* The class of a gap: tensors of the same size, made and used alike. */
static uint64_t class_of(const struct local_search *local_search, uint32_t gap)
{
    const struct trace_index *trace_index = local_search->trace_index;
    uint32_t tensor = lower_gap_tensor(local_search->lower, gap);
    uint32_t first = trace_index->first[tensor];
    const struct trace_op *op = &local_search->trace->ops[trace_index->op[first]];
    uint64_t hash =
        hash_mix(trace_index->rounded[tensor], lower_gap_rank(local_search->lower, gap));

    hash = hash_mix(hash, trace_index->first[tensor + 1] - first);
    hash = hash_mix(hash, op->read_count * 64 + op->write_count);
    return hash_mix(hash, (uint64_t)local_search->trace->tensors[tensor].kind);
}

static capu_status list_open(struct local_search *local_search)
{
    uint32_t gaps = lower_gap_count(local_search->lower);
    struct key *keys = malloc(((size_t)gaps + 1) * sizeof(*keys));
    uint32_t count = 0;

    if (keys == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    for (uint32_t gap = 0; gap < gaps; gap++) {
        uint32_t tensor = lower_gap_tensor(local_search->lower, gap);
        uint32_t end = lower_gap_end(local_search->lower, gap);
        uint64_t bytes = local_search->trace_index->rounded[tensor];

        if (end == TRACE_INDEX_NONE || end <= lower_gap_start(local_search->lower, gap) + 1 ||
            bytes == 0 || local_search->trace->tensors[tensor].hint != CAPU_HINT_NONE) {
            continue;
        }
        local_search->open[count] =
            (struct open_gap){.gap = gap,
                              .from = lower_gap_start(local_search->lower, gap),
                              .to = end,
                              .can_drop = lower_can_drop(local_search->lower, gap),
                              .can_return = local_search->search->has_returns &&
                                            lower_can_return(local_search->lower, gap)};
        keys[count] = (struct key){.hash = class_of(local_search, gap), .index = count};
        local_search->bytes[count + 1] = local_search->bytes[count] + bytes;
        count++;
    }
    local_search->open_count = count;
    qsort(keys, count, sizeof(*keys), compare_keys);
    for (uint32_t i = 0; i < count;) {
        uint32_t end = i + 1;

        while (end < count && keys[end].hash == keys[i].hash) {
            end++;
        }
        for (uint32_t j = i; j < end; j++) {
            local_search->open[keys[j].index].class_next = keys[j + 1 < end ? j + 1 : i].index;
        }
        i = end;
    }
    free(keys);
    return CAPU_OK;
}

/* Draws an open gap, large ones more often. */
static uint32_t draw_gap(struct local_search *local_search)
{
    uint64_t total = local_search->bytes[local_search->open_count];
    uint64_t at =
        (uint64_t)(((unsigned __int128)draw_below(local_search, (uint64_t)1 << 31) * total) >> 31);
    uint32_t low = 0;
    uint32_t high = local_search->open_count - 1;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (local_search->bytes[middle + 1] > at) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

static bool is_possible(const struct open_gap *open, uint8_t decision)
{
    return decision == DECIDE_DROP     ? open->can_drop
           : decision == DECIDE_RETURN ? open->can_return
                                       : true;
}

static uint8_t other_decision(struct local_search *local_search, const struct open_gap *open,
                              uint8_t decision)
{
    uint8_t third = open->can_return ? DECIDE_RETURN : DECIDE_DROP;
    uint8_t other;

    if (!is_possible(open, third)) {
        return decision == DECIDE_KEEP ? DECIDE_SWAP : DECIDE_KEEP;
    }
    other = (uint8_t)(((decision == third ? 2 : decision) + 1 + draw_below(local_search, 2)) % 3);
    return other == 2 ? third : other;
}

/* Sets one gap, or all of its class that have the same decision and are less than `width` ops away.
 */
static void set_gap(struct local_search *local_search, uint32_t index, uint8_t decision,
                    uint32_t width)
{
    const struct open_gap *anchor = &local_search->open[index];
    uint8_t before = local_search->trial[anchor->gap];
    uint32_t i = index;

    do {
        const struct open_gap *open = &local_search->open[i];
        uint32_t distance =
            open->from > anchor->from ? open->from - anchor->from : anchor->from - open->from;

        if (i == index || (distance < width && local_search->trial[open->gap] == before &&
                           is_possible(open, decision))) {
            local_search->trial[open->gap] = decision;
        }
        i = open->class_next;
    } while (width > 0 && i != index);
}

static void propose_change(struct local_search *local_search)
{
    uint32_t index = draw_gap(local_search);
    const struct open_gap *open;
    uint32_t width = 0;
    uint8_t before;
    uint8_t after;

    memcpy(local_search->trial, local_search->current, lower_gap_count(local_search->lower));
    /* In half of the moves, a gap that is not kept. */
    if (draw_below(local_search, 2) == 0) {
        for (int i = 0; i < 16 && local_search->trial[local_search->open[index].gap] == DECIDE_KEEP;
             i++) {
            index = draw_gap(local_search);
        }
    }
    if (draw_below(local_search, 3) == 0) {
        width = local_search->trace->op_count >> draw_below(local_search, 6);
    }
    open = &local_search->open[index];
    before = local_search->trial[open->gap];
    after = other_decision(local_search, open, before);
    set_gap(local_search, index, after, width);
    if (draw_below(local_search, 3) == 0) {
        return;
    }
    /* An exchange: another gap at the same time goes the other way. */
    for (int i = 0; i < 24; i++) {
        uint32_t other = draw_gap(local_search);
        const struct open_gap *match = &local_search->open[other];

        if (match->from < open->to && match->to > open->from && other != index &&
            local_search->trial[match->gap] == after && is_possible(match, before)) {
            set_gap(local_search, other, before, width);
            break;
        }
    }
}

static capu_status evaluate(struct local_search *local_search, const struct lower_options *options,
                            uint64_t *ns)
{
    capu_status status = CAPU_OK;
    const uint8_t *forced = lower_forced(local_search->lower);

    *ns = UINT64_MAX;
    for (int i = 0; status == CAPU_OK; i++) {
        bool has_changed = false;

        status = search_try(local_search->search, local_search->trial, options, ns);
        if (local_search->search->has_returns) {
            lower_settle_returns(local_search->lower, local_search->trial);
        }
        for (uint32_t j = 0; i < ABSORB_MAX && *ns != UINT64_MAX && j < local_search->open_count;
             j++) {
            uint32_t gap = local_search->open[j].gap;

            if (forced[gap] && local_search->trial[gap] == DECIDE_KEEP) {
                local_search->trial[gap] = DECIDE_SWAP;
                has_changed = true;
            }
        }
        if (!has_changed) {
            break;
        }
    }
    return status;
}

static void take_trial(struct local_search *local_search, uint64_t ns)
{
    uint8_t *trial = local_search->trial;

    local_search->trial = local_search->current;
    local_search->current = trial;
    local_search->current_ns = ns;
    memcpy(local_search->timed_ns, lower_result_of(local_search->lower)->start_ns,
           ((size_t)local_search->trace->op_count + 1) * sizeof(*local_search->timed_ns));
}

static capu_status take_step(struct local_search *local_search, uint64_t slack)
{
    static const double leads[] = {0.0, 1.0, 2.0, 4.0, 8.0, 1000.0};
    static const double safeties[] = {1.0, 1.15, 1.3};
    struct lower_options options = local_search->options;
    bool is_retimed = false;
    uint64_t ns;
    capu_status status;

    options.estimate_ns = local_search->estimate_ns;
    if (draw_below(local_search, 12) == 0) {
        memcpy(local_search->trial, local_search->current, lower_gap_count(local_search->lower));
        switch (draw_below(local_search, 5)) {
        case 0:
            options.lead = leads[draw_below(local_search, 6)];
            break;
        case 1:
            options.with_save = !options.with_save;
            break;
        case 2:
            options.is_cautious = !options.is_cautious;
            break;
        case 3:
            options.safety = safeties[draw_below(local_search, 3)];
            break;
        default:
            options.estimate_ns = local_search->timed_ns;
            is_retimed = true;
            break;
        }
    } else {
        propose_change(local_search);
    }
    options.cutoff_ns = local_search->current_ns + slack;
    status = evaluate(local_search, &options, &ns);
    if (status == CAPU_OK && ns < options.cutoff_ns) {
        if (is_retimed) {
            memcpy(local_search->estimate_ns, local_search->timed_ns,
                   ((size_t)local_search->trace->op_count + 1) * sizeof(*local_search->timed_ns));
        }
        local_search->options = options;
        take_trial(local_search, ns);
    }
    return status;
}

static void from_best(struct local_search *local_search)
{
    const struct search *search = local_search->search;

    memcpy(local_search->current, search->decisions, lower_gap_count(local_search->lower));
    memcpy(local_search->estimate_ns, search->estimate_ns,
           ((size_t)local_search->trace->op_count + 1) * sizeof(*local_search->estimate_ns));
    memcpy(local_search->timed_ns, search->estimate_ns,
           ((size_t)local_search->trace->op_count + 1) * sizeof(*local_search->estimate_ns));
    local_search->options = search->options;
    local_search->current_ns = search->best_ns;
}

capu_status local_search_run(struct local_search *local_search, uint32_t steps, uint64_t work_end,
                             double heat)
{
    const struct search *search = local_search->search;
    uint64_t ideal = local_search->trace->total_ns;
    capu_status status = CAPU_OK;

    if (local_search->open_count == 0 || search->best_ns == UINT64_MAX) {
        return CAPU_OK;
    }
    from_best(local_search);
    for (uint32_t i = 0; status == CAPU_OK && i < steps; i++) {
        uint64_t most = (uint64_t)(heat / 64.0 * (double)(search->best_ns - ideal));

        if (search_work(search) >= work_end || search->best_ns <= ideal ||
            search_should_stop(search)) {
            break;
        }
        if (local_search->current_ns > search->best_ns + 4 * most) {
            from_best(local_search);
        }
        status = take_step(local_search, most > 0 ? draw_below(local_search, most) : 0);
    }
    return status;
}

capu_status local_search_create(struct search *search, uint64_t seed, struct local_search **out)
{
    const struct planner_request *request = search->planning->request;
    size_t gaps = (size_t)lower_gap_count(search->planning->lower) + 1;
    size_t ops = (size_t)request->trace_index->trace->op_count + 1;
    struct local_search *local_search = calloc(1, sizeof(*local_search));
    capu_status status = CAPU_NO_HOST_MEMORY;

    ASSERT(search->best_ns != UINT64_MAX && seed != 0);
    if (local_search == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    *local_search = (struct local_search){.search = search,
                                          .trace_index = request->trace_index,
                                          .trace = request->trace_index->trace,
                                          .lower = search->planning->lower,
                                          .seed = seed};
    local_search->open = malloc(gaps * sizeof(*local_search->open));
    local_search->bytes = calloc(gaps + 1, sizeof(*local_search->bytes));
    local_search->current = malloc(gaps);
    local_search->trial = malloc(gaps);
    local_search->estimate_ns = malloc(ops * sizeof(*local_search->estimate_ns));
    local_search->timed_ns = malloc(ops * sizeof(*local_search->timed_ns));
    if (local_search->open != NULL && local_search->bytes != NULL &&
        local_search->current != NULL && local_search->trial != NULL &&
        local_search->estimate_ns != NULL && local_search->timed_ns != NULL) {
        status = list_open(local_search);
    }
    if (status != CAPU_OK) {
        local_search_destroy(local_search);
        return status;
    }
    *out = local_search;
    return CAPU_OK;
}

void local_search_destroy(struct local_search *local_search)
{
    if (local_search == NULL) {
        return;
    }
    free(local_search->open);
    free(local_search->bytes);
    free(local_search->current);
    free(local_search->trial);
    free(local_search->estimate_ns);
    free(local_search->timed_ns);
    free(local_search);
}

/* Local search over decisions: threshold accepting, with moves for single gaps and for whole
   classes of gaps that look the same. */
#include "policy/polish.h"

#include <stdlib.h>
#include <string.h>

#define ABSORB_MAX 2

struct open_gap {
    uint32_t gap;
    uint32_t from;       /* the op it follows */
    uint32_t to;         /* the op that ends it; beyond the last where it wraps */
    uint32_t class_next; /* the next of the same class: a ring */
    uint8_t can_drop;
};

struct polish {
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
    uint64_t *timed_ns; /* when the ops of the current state really start */
    uint64_t seed;
};

static uint64_t draw(struct polish *polish, uint64_t below)
{
    polish->seed ^= polish->seed >> 12;
    polish->seed ^= polish->seed << 25;
    polish->seed ^= polish->seed >> 27;
    return ((polish->seed * 0x2545F4914F6CDD1Du) >> 33) % below;
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

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
    return hash ^ (hash >> 29);
}

/* Gaps of tensors of the same size, made alike and used alike. */
static uint64_t class_of(const struct polish *polish, uint32_t gap)
{
    const struct trace_index *trace_index = polish->trace_index;
    uint32_t tensor = lower_gap_tensor(polish->lower, gap);
    uint32_t first = trace_index->first[tensor];
    const struct trace_op *op = &polish->trace->ops[trace_index->op[first]];
    uint64_t hash = mix(trace_index->rounded[tensor], gap - first);

    hash = mix(hash, trace_index->first[tensor + 1] - first);
    hash = mix(hash, op->read_count * 64 + op->write_count);
    return mix(hash, (uint64_t)polish->trace->tensors[tensor].kind);
}

static capu_status list_open(struct polish *polish)
{
    uint32_t gaps = polish->trace->operand_count;
    struct key *keys = malloc(((size_t)gaps + 1) * sizeof(*keys));
    uint32_t count = 0;

    if (keys == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    for (uint32_t gap = 0; gap < gaps; gap++) {
        uint32_t tensor = lower_gap_tensor(polish->lower, gap);
        uint32_t end = lower_gap_end(polish->lower, gap);
        uint64_t bytes = polish->trace_index->rounded[tensor];

        if (end == TRACE_INDEX_NONE || end <= polish->trace_index->op[gap] + 1 || bytes == 0 ||
            polish->trace->tensors[tensor].hint != HINT_NONE) {
            continue;
        }
        polish->open[count] = (struct open_gap){.gap = gap,
                                                .from = polish->trace_index->op[gap],
                                                .to = end,
                                                .can_drop = lower_can_drop(polish->lower, gap)};
        keys[count] = (struct key){.hash = class_of(polish, gap), .index = count};
        polish->bytes[count + 1] = polish->bytes[count] + bytes;
        count++;
    }
    polish->open_count = count;
    qsort(keys, count, sizeof(*keys), compare_keys);
    for (uint32_t i = 0; i < count;) {
        uint32_t end = i + 1;

        while (end < count && keys[end].hash == keys[i].hash) {
            end++;
        }
        for (uint32_t j = i; j < end; j++) {
            polish->open[keys[j].index].class_next = keys[j + 1 < end ? j + 1 : i].index;
        }
        i = end;
    }
    free(keys);
    return CAPU_OK;
}

/* An open gap, large ones more often. */
static uint32_t draw_gap(struct polish *polish)
{
    uint64_t total = polish->bytes[polish->open_count];
    uint64_t at = (uint64_t)(((unsigned __int128)draw(polish, (uint64_t)1 << 31) * total) >> 31);
    uint32_t low = 0;
    uint32_t high = polish->open_count - 1;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (polish->bytes[middle + 1] > at) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

static uint8_t other_decision(struct polish *polish, const struct open_gap *open, uint8_t decision)
{
    uint8_t other;

    if (!open->can_drop) {
        return decision == DECIDE_KEEP ? DECIDE_SWAP : DECIDE_KEEP;
    }
    other = (uint8_t)((decision + 1 + draw(polish, 2)) % 3);
    return other;
}

/* Sets one gap, or all of its class that are as it is now and not further than `width` ops away. */
static void set(struct polish *polish, uint32_t index, uint8_t decision, uint32_t width)
{
    const struct open_gap *anchor = &polish->open[index];
    uint8_t before = polish->trial[anchor->gap];
    uint32_t i = index;

    do {
        const struct open_gap *open = &polish->open[i];
        uint32_t distance =
            open->from > anchor->from ? open->from - anchor->from : anchor->from - open->from;

        if (i == index || (distance < width && polish->trial[open->gap] == before &&
                           (decision != DECIDE_DROP || open->can_drop))) {
            polish->trial[open->gap] = decision;
        }
        i = open->class_next;
    } while (width > 0 && i != index);
}

static void propose(struct polish *polish)
{
    uint32_t index = draw_gap(polish);
    const struct open_gap *open;
    uint32_t width = 0;
    uint8_t before;
    uint8_t after;

    memcpy(polish->trial, polish->current, polish->trace->operand_count);
    /* Half of the time something that is not kept. */
    if (draw(polish, 2) == 0) {
        for (int i = 0; i < 16 && polish->trial[polish->open[index].gap] == DECIDE_KEEP; i++) {
            index = draw_gap(polish);
        }
    }
    if (draw(polish, 3) == 0) {
        width = polish->trace->op_count >> draw(polish, 6);
    }
    open = &polish->open[index];
    before = polish->trial[open->gap];
    after = other_decision(polish, open, before);
    set(polish, index, after, width);
    if (draw(polish, 3) == 0) {
        return;
    }
    /* An exchange: something else at the same time goes the other way. */
    for (int i = 0; i < 24; i++) {
        uint32_t other = draw_gap(polish);
        const struct open_gap *match = &polish->open[other];

        if (match->from < open->to && match->to > open->from && other != index &&
            polish->trial[match->gap] == after && (before != DECIDE_DROP || match->can_drop)) {
            set(polish, other, before, width);
            break;
        }
    }
}

static capu_status evaluate(struct polish *polish, const struct lower_options *options,
                            uint64_t *ns)
{
    capu_status status = CAPU_OK;
    const uint8_t *forced = lower_forced(polish->lower);

    *ns = UINT64_MAX;
    for (int i = 0; status == CAPU_OK; i++) {
        bool has_changed = false;

        status =
            search_try(polish->search, polish->trial, polish->search->extended_life, options, ns);
        for (uint32_t j = 0; i < ABSORB_MAX && *ns != UINT64_MAX && j < polish->open_count; j++) {
            uint32_t gap = polish->open[j].gap;

            if (forced[gap] && polish->trial[gap] == DECIDE_KEEP) {
                polish->trial[gap] = DECIDE_SWAP;
                has_changed = true;
            }
        }
        if (!has_changed) {
            break;
        }
    }
    return status;
}

static void take(struct polish *polish, uint64_t ns)
{
    uint8_t *trial = polish->trial;

    polish->trial = polish->current;
    polish->current = trial;
    polish->current_ns = ns;
    memcpy(polish->timed_ns, lower_result_of(polish->lower)->start_ns,
           ((size_t)polish->trace->op_count + 1) * sizeof(*polish->timed_ns));
}

static capu_status step(struct polish *polish, uint64_t slack)
{
    static const double leads[] = {0.0, 1.0, 2.0, 4.0, 8.0, 1000.0};
    static const double safeties[] = {1.0, 1.15, 1.3};
    struct lower_options options = polish->options;
    bool is_retimed = false;
    uint64_t ns;
    capu_status status;

    options.estimate_ns = polish->estimate_ns;
    if (draw(polish, 12) == 0) {
        memcpy(polish->trial, polish->current, polish->trace->operand_count);
        switch (draw(polish, 5)) {
        case 0:
            options.lead = leads[draw(polish, 6)];
            break;
        case 1:
            options.with_save = !options.with_save;
            break;
        case 2:
            options.is_cautious = !options.is_cautious;
            break;
        case 3:
            options.safety = safeties[draw(polish, 3)];
            break;
        default:
            options.estimate_ns = polish->timed_ns;
            is_retimed = true;
            break;
        }
    } else {
        propose(polish);
    }
    options.cutoff_ns = polish->current_ns + slack;
    status = evaluate(polish, &options, &ns);
    if (status == CAPU_OK && ns < options.cutoff_ns) {
        if (is_retimed) {
            memcpy(polish->estimate_ns, polish->timed_ns,
                   ((size_t)polish->trace->op_count + 1) * sizeof(*polish->timed_ns));
        }
        polish->options = options;
        take(polish, ns);
    }
    return status;
}

static void from_best(struct polish *polish)
{
    const struct search *search = polish->search;

    memcpy(polish->current, search->decisions, polish->trace->operand_count);
    memcpy(polish->estimate_ns, search->estimate_ns,
           ((size_t)polish->trace->op_count + 1) * sizeof(*polish->estimate_ns));
    memcpy(polish->timed_ns, search->estimate_ns,
           ((size_t)polish->trace->op_count + 1) * sizeof(*polish->estimate_ns));
    polish->options = search->options;
    polish->current_ns = search->best_ns;
}

capu_status polish_run(struct polish *polish, uint32_t steps, uint64_t work_end, double heat)
{
    const struct search *search = polish->search;
    uint64_t ideal = polish->trace->total_ns;
    capu_status status = CAPU_OK;

    if (polish->open_count == 0 || search->best_ns == UINT64_MAX) {
        return CAPU_OK;
    }
    from_best(polish);
    for (uint32_t i = 0; status == CAPU_OK && i < steps; i++) {
        uint64_t most = (uint64_t)(heat / 64.0 * (double)(search->best_ns - ideal));

        if (search_work(search) >= work_end || search->best_ns <= ideal ||
            search_should_stop(search)) {
            break;
        }
        if (polish->current_ns > search->best_ns + 4 * most) {
            from_best(polish);
        }
        status = step(polish, most > 0 ? draw(polish, most) : 0);
    }
    return status;
}

capu_status polish_create(struct search *search, uint64_t seed, struct polish **out)
{
    const struct planner_request *request = search->planning->request;
    size_t gaps = (size_t)request->trace_index->trace->operand_count + 1;
    size_t ops = (size_t)request->trace_index->trace->op_count + 1;
    struct polish *polish = calloc(1, sizeof(*polish));
    capu_status status = CAPU_NO_HOST_MEMORY;

    if (polish == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    *polish = (struct polish){.search = search,
                              .trace_index = request->trace_index,
                              .trace = request->trace_index->trace,
                              .lower = search->planning->lower,
                              .seed = seed};
    polish->open = malloc(gaps * sizeof(*polish->open));
    polish->bytes = calloc(gaps + 1, sizeof(*polish->bytes));
    polish->current = malloc(gaps);
    polish->trial = malloc(gaps);
    polish->estimate_ns = malloc(ops * sizeof(*polish->estimate_ns));
    polish->timed_ns = malloc(ops * sizeof(*polish->timed_ns));
    if (polish->open != NULL && polish->bytes != NULL && polish->current != NULL &&
        polish->trial != NULL && polish->estimate_ns != NULL && polish->timed_ns != NULL) {
        status = list_open(polish);
    }
    if (status != CAPU_OK) {
        polish_destroy(polish);
        return status;
    }
    *out = polish;
    return CAPU_OK;
}

void polish_destroy(struct polish *polish)
{
    if (polish == NULL) {
        return;
    }
    free(polish->open);
    free(polish->bytes);
    free(polish->current);
    free(polish->trial);
    free(polish->estimate_ns);
    free(polish->timed_ns);
    free(polish);
}

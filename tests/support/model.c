/*
 * The specification of plans, item by item; the quotations are from it.
 *
 * model_run expands a plan into a list of steps and carries out several iterations of it, with the
 * state of every tensor, page and byte in plain arrays. Times are exact because each step computes
 * its own from the steps that it waits for. A failed allocation fails the test.
 */
#include "tests/support/model.h"

#include <check.h>

#include <stdlib.h>

#define NOTHING (-1)

enum kind { OP, REPLAY, EVICT, SAVE, DROP, PREFETCH, RELEASE };

struct step {
    enum kind kind;
    uint32_t subject; /* op or tensor */
    uint32_t group; /* shared by an op and the actions after it, or a replay and its drops; or 0 */
};

struct hold {
    int64_t device; /* version, or NOTHING */
    int64_t host;
    uint64_t ready;
    uint64_t last;
    uint64_t host_ns;
    uint64_t saved;
    bool starts_on_host;
    bool is_pooled; /* false: counted in fixed_bytes */
    int64_t final;  /* version at the end of an iteration */
    bool is_touched;
};

struct chunk {
    uint64_t bytes;
    uint64_t usable;
};

struct walk {
    const struct trace *trace;
    const struct plan *plan;
    struct model *model;
    struct step *steps;
    size_t step_count;
    size_t step_capacity;
    struct hold *tensors;
    int64_t *seen; /* per operand: the version that the op reads or makes */
    struct chunk *pool;
    size_t pool_count;
    size_t pool_capacity;
    uint64_t *page_usable; /* per page: the time from which it can be used */
    uint32_t *page_owner;  /* per page: the tensor that holds it, plus one; 0: none */
    uint64_t held;
    uint64_t fixed_alive;
    uint64_t on_host;
    uint64_t compute;
    uint64_t d2h;
    uint64_t h2d;
};

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void refuse(struct walk *walk, const char *why)
{
    if (walk->model->is_valid) {
        walk->model->is_valid = false;
        walk->model->why = why;
    }
}

static void *room(void *array, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity) {
        return array;
    }
    *capacity = *capacity * 2 + 64;
    array = realloc(array, *capacity * size);
    ck_assert_ptr_nonnull(array);
    return array;
}

static void put(struct walk *walk, enum kind kind, uint32_t subject, uint32_t group)
{
    walk->steps = room(walk->steps, walk->step_count, &walk->step_capacity, sizeof(*walk->steps));
    walk->steps[walk->step_count++] = (struct step){kind, subject, group};
}

/* "The program of an iteration is: for k = 0, 1, ...: every prefetch and recompute with before = k,
   op k, every save, evict and drop with after = k." */
static void weave(struct walk *walk)
{
    static const enum kind kinds[] = {[ACTION_EVICT] = EVICT,
                                      [ACTION_SAVE] = SAVE,
                                      [ACTION_DROP] = DROP,
                                      [ACTION_PREFETCH] = PREFETCH};
    const struct plan *plan = walk->plan;
    uint32_t group = 0;

    for (uint32_t k = 0; k < walk->trace->op_count; k++) {
        for (int is_after = 0; is_after < 2; is_after++) {
            for (uint32_t i = 0; i < plan->action_count; i++) {
                const struct plan_action *action = &plan->actions[i];
                bool comes_after = action->kind < ACTION_PREFETCH;

                if (action->point != k || comes_after != (is_after == 1)) {
                    continue;
                }
                if (action->kind != ACTION_RECOMPUTE) {
                    put(walk, kinds[action->kind], action->tensor, is_after == 1 ? group : 0);
                    continue;
                }
                for (uint32_t r = action->first; r < action->first + action->count; r++) {
                    put(walk, REPLAY, plan->replays[r].op, ++group);
                    for (uint32_t d = 0; d < plan->replays[r].drop_count; d++) {
                        put(walk, DROP, plan->drops[plan->replays[r].first_drop + d], group);
                    }
                }
            }
            if (is_after == 0) {
                put(walk, OP, k, ++group);
            }
        }
    }
}

static bool names(const struct trace *trace, uint32_t op, uint32_t tensor)
{
    for (uint32_t i = 0; i < trace_operand_count(&trace->ops[op]); i++) {
        if (trace->operands[trace->ops[op].first + i] == tensor) {
            return true;
        }
    }
    return false;
}

/* "A transient tensor is given back by itself at its last access in that program ... after the
   actions of that point." */
static void release(struct walk *walk)
{
    struct step *steps = walk->steps;
    size_t count = walk->step_count;

    walk->steps = NULL;
    walk->step_count = 0;
    walk->step_capacity = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t group = steps[i].group;

        put(walk, steps[i].kind, steps[i].subject, group);
        if (group == 0 || (i + 1 < count && steps[i + 1].group == group)) {
            continue;
        }
        for (uint32_t t = 0; t < walk->trace->tensor_count; t++) {
            bool is_here = false;
            bool is_later = false;

            for (size_t j = 0; j < count && !walk->trace->tensors[t].persistent; j++) {
                if (steps[j].kind <= REPLAY && names(walk->trace, steps[j].subject, t)) {
                    is_here |= steps[j].group == group;
                    is_later |= steps[j].group > group;
                }
            }
            if (is_here && !is_later) {
                put(walk, RELEASE, t, 0);
            }
        }
    }
    free(steps);
}

static uint64_t rounded(const struct walk *walk, uint32_t tensor)
{
    uint64_t page = walk->plan->page_bytes;

    return (walk->trace->tensors[tensor].bytes + page - 1) / page * page;
}

static const struct plan_place *place_of(const struct walk *walk, uint32_t tensor)
{
    for (uint32_t i = 0; i < walk->plan->place_count; i++) {
        if (walk->plan->places[i].tensor == tensor) {
            return &walk->plan->places[i];
        }
    }
    return NULL;
}

/* "alloc(b) takes b bytes from the pool, those usable earliest first, and gives the latest of their
   times." */
static uint64_t take_bytes(struct walk *walk, uint64_t bytes)
{
    uint64_t latest = 0;

    while (bytes > 0 && walk->pool_count > 0) {
        size_t earliest = 0;
        uint64_t part;

        for (size_t i = 1; i < walk->pool_count; i++) {
            earliest = walk->pool[i].usable < walk->pool[earliest].usable ? i : earliest;
        }
        part = bytes < walk->pool[earliest].bytes ? bytes : walk->pool[earliest].bytes;
        latest = later(latest, walk->pool[earliest].usable);
        bytes -= part;
        walk->pool[earliest].bytes -= part;
        if (walk->pool[earliest].bytes == 0) {
            walk->pool[earliest] = walk->pool[--walk->pool_count];
        }
    }
    return latest;
}

static void give_bytes(struct walk *walk, uint64_t bytes, uint64_t usable)
{
    walk->pool = room(walk->pool, walk->pool_count, &walk->pool_capacity, sizeof(*walk->pool));
    if (bytes > 0) {
        walk->pool[walk->pool_count++] = (struct chunk){bytes, usable};
    }
}

/* Accounts for an allocation and returns the time from which the memory can be used. */
static uint64_t allocate(struct walk *walk, uint32_t tensor)
{
    const struct plan_place *place = place_of(walk, tensor);
    uint64_t latest = 0;

    if (!walk->tensors[tensor].is_pooled) {
        walk->fixed_alive += walk->trace->tensors[tensor].bytes;
        if (walk->fixed_alive > walk->plan->fixed_bytes) {
            refuse(walk, "fixed_bytes");
        }
        return 0;
    }
    walk->held += rounded(walk, tensor);
    walk->model->most_held = later(walk->model->most_held, walk->held + walk->plan->fixed_bytes);
    if (walk->held + walk->plan->fixed_bytes > walk->plan->budget_bytes) {
        refuse(walk, "budget");
    }
    if (walk->plan->place_count == 0) {
        return take_bytes(walk, rounded(walk, tensor));
    }
    for (uint32_t r = 0; place != NULL && r < place->count; r++) {
        const struct plan_run *run = &walk->plan->runs[place->first + r];

        for (uint32_t p = run->first; p < run->first + run->count; p++) {
            if (walk->page_owner[p] != 0) {
                refuse(walk, "page");
            }
            walk->page_owner[p] = tensor + 1;
            latest = later(latest, walk->page_usable[p]);
        }
    }
    return latest;
}

static void give_back(struct walk *walk, uint32_t tensor, uint64_t usable)
{
    const struct plan_place *place = place_of(walk, tensor);

    walk->tensors[tensor].device = NOTHING;
    if (!walk->tensors[tensor].is_pooled) {
        walk->fixed_alive -= walk->trace->tensors[tensor].bytes;
        return;
    }
    walk->held -= rounded(walk, tensor);
    if (walk->plan->place_count == 0) {
        give_bytes(walk, rounded(walk, tensor), usable);
    }
    for (uint32_t r = 0; place != NULL && r < place->count; r++) {
        const struct plan_run *run = &walk->plan->runs[place->first + r];

        for (uint32_t p = run->first; p < run->first + run->count; p++) {
            walk->page_owner[p] = 0;
            walk->page_usable[p] = usable;
        }
    }
}

static void forget_host(struct walk *walk, uint32_t tensor)
{
    if (walk->tensors[tensor].host != NOTHING) {
        walk->on_host -= walk->trace->tensors[tensor].bytes;
        walk->tensors[tensor].host = NOTHING;
    }
}

static uint64_t copy_ns(const struct walk *walk, uint32_t tensor, uint64_t rate)
{
    __uint128_t product = (__uint128_t)walk->trace->tensors[tensor].bytes * 1000000000u;

    return walk->trace->machine.copy_latency_ns + (uint64_t)(product / rate) +
           (product % rate != 0);
}

static void run_op(struct walk *walk, uint32_t number)
{
    const struct trace_op *op = &walk->trace->ops[number];
    uint32_t count = trace_operand_count(op);
    uint64_t start = walk->compute;

    for (uint32_t i = 0; i < count; i++) {
        struct hold *hold = &walk->tensors[walk->trace->operands[op->first + i]];
        bool is_read = i < op->read_count;
        bool is_write = !is_read && i < op->read_count + op->write_count;

        if (!is_write && hold->device != walk->seen[op->first + i]) {
            refuse(walk, "presence");
        }
        if (hold->device != NOTHING) {
            start = later(start, hold->ready);
            start = is_read ? start : later(start, hold->saved);
        }
    }
    for (uint32_t i = op->read_count; i < count; i++) {
        uint32_t tensor = walk->trace->operands[op->first + i];
        struct hold *hold = &walk->tensors[tensor];
        bool is_update = i >= op->read_count + op->write_count;

        if (hold->device == NOTHING) {
            start = later(start, allocate(walk, tensor));
        }
        hold->device = walk->seen[op->first + i] + is_update;
        if (hold->host < hold->device) {
            forget_host(walk, tensor);
        }
    }
    walk->compute = start + op->ns;
    for (uint32_t i = 0; i < count; i++) {
        struct hold *hold = &walk->tensors[walk->trace->operands[op->first + i]];

        hold->last = walk->compute;
        hold->ready = i >= op->read_count ? walk->compute : hold->ready;
    }
}

/* Copies a tensor to the host if the device copy is newer. False: the host copy was current. */
static bool copy_out(struct walk *walk, uint32_t tensor, uint64_t start)
{
    struct hold *hold = &walk->tensors[tensor];

    if (hold->host >= hold->device) {
        return false;
    }
    walk->on_host += hold->host == NOTHING ? walk->trace->tensors[tensor].bytes : 0;
    walk->model->most_on_host = later(walk->model->most_on_host, walk->on_host);
    if (walk->on_host > walk->plan->host_bytes) {
        refuse(walk, "host_bytes");
    }
    hold->host = hold->device;
    walk->d2h =
        later(walk->d2h, start) + copy_ns(walk, tensor, walk->trace->machine.d2h_bytes_per_s);
    hold->host_ns = walk->d2h;
    return true;
}

static void act(struct walk *walk, enum kind kind, uint32_t tensor)
{
    struct hold *hold = &walk->tensors[tensor];
    uint64_t usable = later(hold->last, later(hold->ready, hold->saved));

    if (kind == RELEASE) {
        forget_host(walk, tensor);
        if (hold->device != NOTHING) {
            give_back(walk, tensor, usable);
        }
        return;
    }
    if (!hold->is_pooled || (hold->device == NOTHING) != (kind == PREFETCH) ||
        (kind == PREFETCH && hold->host == NOTHING)) {
        refuse(walk, "state");
        return;
    }
    switch (kind) {
    case PREFETCH:
        walk->h2d = later(walk->h2d, later(walk->compute, hold->host_ns));
        walk->h2d = later(walk->h2d, allocate(walk, tensor)) +
                    copy_ns(walk, tensor, walk->trace->machine.h2d_bytes_per_s);
        hold->ready = walk->h2d;
        hold->device = hold->host;
        break;
    case SAVE:
        if (copy_out(walk, tensor, hold->ready)) {
            hold->saved = walk->d2h;
        }
        break;
    case EVICT:
        if (copy_out(walk, tensor, later(hold->last, hold->ready))) {
            usable = walk->d2h;
        }
        give_back(walk, tensor, usable);
        break;
    default:
        give_back(walk, tensor, usable);
        break;
    }
}

/* Finds the version that each operand sees in the program without a plan. */
static void number(struct walk *walk)
{
    for (uint32_t k = 0; k < walk->trace->op_count; k++) {
        const struct trace_op *op = &walk->trace->ops[k];

        for (uint32_t i = 0; i < trace_operand_count(op); i++) {
            int64_t *version = &walk->tensors[walk->trace->operands[op->first + i]].final;
            bool is_read = i < op->read_count;
            bool is_write = !is_read && i < op->read_count + op->write_count;

            *version += is_write;
            walk->seen[op->first + i] = *version;
            *version += !is_read && !is_write;
        }
    }
}

/* "A persistent tensor whose first event in the program is a prefetch starts the iteration on the
   host; every other persistent tensor starts it resident." */
static void find_starts(struct walk *walk)
{
    for (size_t i = 0; i < walk->step_count; i++) {
        const struct step *step = &walk->steps[i];

        for (uint32_t t = 0; t < walk->trace->tensor_count; t++) {
            struct hold *hold = &walk->tensors[t];
            bool is_event =
                step->kind <= REPLAY ? names(walk->trace, step->subject, t) : step->subject == t;

            if (is_event && !hold->is_touched) {
                hold->is_touched = true;
                hold->starts_on_host = step->kind == PREFETCH && walk->trace->tensors[t].persistent;
            }
        }
    }
}

/* The largest page number, plus one. */
static uint32_t page_count(const struct plan *plan)
{
    uint32_t count = 0;

    for (uint32_t r = 0; r < plan->run_count; r++) {
        uint32_t end = plan->runs[r].first + plan->runs[r].count;

        count = end > count ? end : count;
    }
    return count;
}

static void check_places(struct walk *walk)
{
    uint64_t distinct = 0;

    for (uint32_t i = 0; i < walk->plan->place_count; i++) {
        const struct plan_place *place = &walk->plan->places[i];
        uint64_t pages = 0;

        for (uint32_t r = 0; r < place->count; r++) {
            const struct plan_run *run = &walk->plan->runs[place->first + r];

            pages += run->count;
            for (uint32_t p = run->first; p < run->first + run->count; p++) {
                distinct += walk->page_owner[p] == 0;
                walk->page_owner[p] = 1;
            }
        }
        if (pages * walk->plan->page_bytes != rounded(walk, place->tensor) ||
            !walk->trace->tensors[place->tensor].managed ||
            place_of(walk, place->tensor) != place) {
            refuse(walk, "place");
        }
    }
    if (distinct * walk->plan->page_bytes + walk->plan->fixed_bytes > walk->plan->budget_bytes) {
        refuse(walk, "pages");
    }
    for (uint32_t p = 0; p < page_count(walk->plan); p++) {
        walk->page_owner[p] = 0;
    }
}

static void begin(struct walk *walk)
{
    for (uint32_t t = 0; t < walk->trace->tensor_count; t++) {
        struct hold *hold = &walk->tensors[t];

        hold->is_pooled = walk->trace->tensors[t].managed &&
                          (walk->plan->place_count == 0 || place_of(walk, t) != NULL);
        hold->device = NOTHING;
        hold->host = NOTHING;
        if (!walk->trace->tensors[t].persistent) {
            continue;
        }
        if (hold->starts_on_host) {
            hold->host = 0;
            walk->on_host += walk->trace->tensors[t].bytes;
        } else {
            hold->device = 0;
            allocate(walk, t);
        }
    }
    walk->model->most_on_host = later(walk->model->most_on_host, walk->on_host);
    if (walk->on_host > walk->plan->host_bytes) {
        refuse(walk, "host_bytes");
    }
}

/* "At the end of the iteration the newest version of every persistent tensor is resident or on the
   host, and it is resident exactly if it started the iteration resident." */
static void end(struct walk *walk)
{
    for (uint32_t t = 0; t < walk->trace->tensor_count; t++) {
        struct hold *hold = &walk->tensors[t];

        if (!walk->trace->tensors[t].persistent) {
            if (hold->device != NOTHING) {
                refuse(walk, "a transient at the end");
            }
            continue;
        }
        if (hold->device != (hold->starts_on_host ? NOTHING : hold->final) ||
            (hold->starts_on_host && hold->host != hold->final)) {
            refuse(walk, "end");
        }
        if (hold->host == hold->final) {
            hold->host = 0;
        } else {
            forget_host(walk, t);
        }
        hold->device = hold->device == NOTHING ? NOTHING : 0;
    }
}

void model_run(struct model *model, const struct trace *trace, const struct plan *plan)
{
    uint32_t pages = page_count(plan);
    struct walk walk = {.trace = trace, .plan = plan, .model = model};
    uint64_t before = 0;

    *model = (struct model){.is_valid = true, .why = ""};
    walk.tensors = calloc((size_t)trace->tensor_count + 1, sizeof(*walk.tensors));
    walk.seen = calloc((size_t)trace->operand_count + 1, sizeof(*walk.seen));
    walk.page_usable = calloc((size_t)pages + 1, sizeof(*walk.page_usable));
    walk.page_owner = calloc((size_t)pages + 1, sizeof(*walk.page_owner));
    ck_assert(walk.tensors != NULL && walk.seen != NULL && walk.page_usable != NULL &&
              walk.page_owner != NULL);
    if (plan->fixed_bytes > plan->budget_bytes) {
        refuse(&walk, "fixed_bytes and the budget");
    } else {
        give_bytes(&walk, plan->budget_bytes - plan->fixed_bytes, 0);
    }
    number(&walk);
    weave(&walk);
    release(&walk);
    find_starts(&walk);
    check_places(&walk);
    begin(&walk);
    for (int iteration = 0; iteration < 4 && model->is_valid; iteration++) {
        before = walk.compute;
        for (size_t i = 0; i < walk.step_count && model->is_valid; i++) {
            if (walk.steps[i].kind <= REPLAY) {
                run_op(&walk, walk.steps[i].subject);
            } else {
                act(&walk, walk.steps[i].kind, walk.steps[i].subject);
            }
        }
        end(&walk);
    }
    model->iteration_ns = walk.compute - before;
    free(walk.steps);
    free(walk.tensors);
    free(walk.seen);
    free(walk.pool);
    free(walk.page_usable);
    free(walk.page_owner);
}

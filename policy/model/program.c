/*
 * The pages of each tensor, checked and indexed; then trace and plan merged; then where a walk over
 * the result begins, and where it turns.
 */
#include "policy/model/program.h"

#include <inttypes.h>
#include <stdlib.h>

/* Pages of each tensor into `first`, shifted by one for the prefix sum to come. */
static capu_status count_pages(struct placement *placement, const struct trace_index *trace_index,
                               const struct plan *plan, struct error_text *error)
{
    for (uint32_t i = 0; i < plan->place_count; i++) {
        const struct plan_place *place = &plan->places[i];
        uint64_t pages = 0;

        for (uint32_t r = 0; r < place->count; r++) {
            const struct plan_run *run = &plan->runs[place->first + r];

            if (run->count == 0 || run->first >= PLAN_PAGES_MAX ||
                run->count > PLAN_PAGES_MAX - run->first) {
                return error_text_set(error, CAPU_INVALID, "place: a run of pages is out of range");
            }
            pages += run->count;
            if (pages > PLAN_PAGES_MAX) {
                /* Such a plan names pages more than once, and their bytes may exceed 64 bits. */
                return error_text_set(error, CAPU_INVALID, "place: too many pages");
            }
        }
        if (place->tensor >= trace_index->trace->tensor_count ||
            !trace_index->trace->tensors[place->tensor].managed ||
            placement->first[place->tensor + 1] != 0) {
            return error_text_set(error, CAPU_INVALID,
                                  "place: tensor %" PRIu32
                                  " does not exist, is not managed, or is placed twice",
                                  place->tensor);
        }
        if (pages * trace_index->page_bytes != trace_index->rounded[place->tensor]) {
            return error_text_set(error, CAPU_INVALID,
                                  "place: tensor %" PRIu32 " has %" PRIu64
                                  " pages, its bytes need %" PRIu64,
                                  place->tensor, pages,
                                  trace_index->rounded[place->tensor] / trace_index->page_bytes);
        }
        placement->first[place->tensor + 1] = (uint32_t)pages;
    }
    return CAPU_OK;
}

static capu_status fill_pages(struct placement *placement, const struct trace_index *trace_index,
                              const struct plan *plan, struct error_text *error)
{
    uint64_t distinct = 0;
    uint8_t *is_named;

    for (uint32_t i = 0; i < plan->place_count; i++) {
        uint32_t at = placement->first[plan->places[i].tensor];

        for (uint32_t r = 0; r < plan->places[i].count; r++) {
            const struct plan_run *run = &plan->runs[plan->places[i].first + r];

            for (uint32_t p = 0; p < run->count; p++) {
                placement->pages[at++] = run->first + p;
            }
            if (run->first + run->count > placement->page_count) {
                placement->page_count = run->first + run->count;
            }
        }
    }
    is_named = calloc((size_t)placement->page_count + 1, 1);
    if (is_named == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    for (uint32_t i = 0; i < placement->first[trace_index->trace->tensor_count]; i++) {
        distinct += !is_named[placement->pages[i]];
        is_named[placement->pages[i]] = 1;
    }
    free(is_named);
    if (plan->fixed_bytes > plan->budget_bytes ||
        distinct > (plan->budget_bytes - plan->fixed_bytes) / trace_index->page_bytes) {
        return error_text_set(error, CAPU_INVALID,
                              "place: %" PRIu64 " pages and fixed_bytes exceed the budget",
                              distinct);
    }
    return CAPU_OK;
}

capu_status placement_init(struct placement *placement, const struct trace_index *trace_index,
                           const struct plan *plan, struct error_text *error)
{
    uint32_t tensors = trace_index->trace->tensor_count;
    uint64_t total = 0;
    capu_status status;

    *placement = (struct placement){0};
    if (plan->place_count == 0) {
        return CAPU_OK;
    }
    placement->first = calloc((size_t)tensors + 2, sizeof(*placement->first));
    if (placement->first == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    status = count_pages(placement, trace_index, plan, error);
    if (status != CAPU_OK) {
        goto finish;
    }
    for (uint32_t t = 0; t < tensors; t++) {
        total += placement->first[t + 1];
        if (total > UINT32_MAX / 2) {
            status = error_text_set(error, CAPU_INVALID, "place: too many pages");
            goto finish;
        }
        placement->first[t + 1] = (uint32_t)total;
    }
    placement->pages = malloc((size_t)(total + 1) * sizeof(*placement->pages));
    if (placement->pages == NULL) {
        status = CAPU_NO_HOST_MEMORY;
        goto finish;
    }
    status = fill_pages(placement, trace_index, plan, error);
    if (status != CAPU_OK) {
        goto finish;
    }
    return CAPU_OK;

finish:
    placement_finish(placement);
    return status;
}

void placement_finish(struct placement *placement)
{
    free(placement->first);
    free(placement->pages);
    *placement = (struct placement){0};
}

/*
 * Merging. Actions are sorted by point (stable, so that file order decides within one), then each
 * transient's release is inserted after the group of its last access: an op with the actions after
 * it, or a replay with its drops.
 */

struct weaver {
    const struct trace_index *trace_index;
    const struct plan *plan;
    struct item *items; /* without releases */
    uint32_t *group;    /* per item */
    uint32_t count;
    uint32_t group_count;
    uint32_t *order;      /* actions by point */
    uint32_t *last_group; /* per tensor: of its last access, plus one; 0: none */
};

static capu_status check_tensor(const struct weaver *weaver, const struct plan_action *action,
                                uint32_t tensor, struct error_text *error)
{
    const char *kind = action_kind_name((enum action_kind)action->kind);

    if (tensor >= weaver->trace_index->trace->tensor_count) {
        return error_text_set(error, CAPU_INVALID,
                              "%s at op %" PRIu32 ": there is no tensor %" PRIu32, kind,
                              action->point, tensor);
    }
    if (!weaver->trace_index->trace->tensors[tensor].managed) {
        return error_text_set(
            error, CAPU_INVALID, "%s at op %" PRIu32 ": tensor %" PRIu32 " (%.80s) is not managed",
            kind, action->point, tensor, trace_tensor_name(weaver->trace_index->trace, tensor));
    }
    return CAPU_OK;
}

static capu_status check_replay(const struct weaver *weaver, const struct plan_action *action,
                                const struct plan_replay *replay, struct error_text *error)
{
    const struct trace *trace = weaver->trace_index->trace;
    capu_status status = CAPU_OK;

    if (replay->op >= action->point) {
        return error_text_set(error, CAPU_INVALID,
                              "recompute before op %" PRIu32 ": op %" PRIu32 " is not earlier",
                              action->point, replay->op);
    }
    if (!trace->ops[replay->op].replayable) {
        return error_text_set(error, CAPU_INVALID,
                              "recompute before op %" PRIu32 ": op %" PRIu32
                              " (%.80s) is not replayable",
                              action->point, replay->op, trace_op_name(trace, replay->op));
    }
    for (uint32_t i = 0; status == CAPU_OK && i < replay->drop_count; i++) {
        status = check_tensor(weaver, action, weaver->plan->drops[replay->first_drop + i], error);
    }
    return status;
}

static capu_status check_action(const struct weaver *weaver, const struct plan_action *action,
                                struct error_text *error)
{
    capu_status status = CAPU_OK;

    if (action->point >= weaver->trace_index->trace->op_count) {
        return error_text_set(error, CAPU_INVALID, "%s: there is no op %" PRIu32,
                              action_kind_name((enum action_kind)action->kind), action->point);
    }
    if (action->kind != ACTION_RECOMPUTE) {
        return check_tensor(weaver, action, action->tensor, error);
    }
    for (uint32_t i = 0; status == CAPU_OK && i < action->count; i++) {
        status = check_replay(weaver, action, &weaver->plan->replays[action->first + i], error);
    }
    return status;
}

static uint32_t point_of(const struct plan_action *action)
{
    bool is_before = action->kind == ACTION_PREFETCH || action->kind == ACTION_RECOMPUTE;

    return action->point * 2 + !is_before;
}

/* A stable counting sort; `start` has one entry a point and one more. */
static void sort_actions(struct weaver *weaver, uint32_t *start)
{
    const struct plan *plan = weaver->plan;
    uint32_t points = weaver->trace_index->trace->op_count * 2;

    for (uint32_t i = 0; i < plan->action_count; i++) {
        start[point_of(&plan->actions[i])]++;
    }
    for (uint32_t p = 1; p <= points; p++) {
        start[p] += start[p - 1];
    }
    for (uint32_t i = plan->action_count; i-- > 0;) {
        weaver->order[--start[point_of(&plan->actions[i])]] = i;
    }
}

static void put_item(struct weaver *weaver, enum action_kind kind, uint32_t subject, uint32_t point)
{
    weaver->group[weaver->count] = weaver->group_count;
    weaver->items[weaver->count++] =
        (struct item){.kind = kind, .subject = subject, .point = point};
}

static void put_run(struct weaver *weaver, enum action_kind kind, uint32_t number, uint32_t point)
{
    const struct trace *trace = weaver->trace_index->trace;
    const struct trace_op *op = &trace->ops[number];

    weaver->group_count++;
    put_item(weaver, kind, number, point);
    for (uint32_t i = 0; i < trace_operand_count(op); i++) {
        weaver->last_group[trace->operands[op->first + i]] = weaver->group_count + 1;
    }
}

static void put_action(struct weaver *weaver, const struct plan_action *action)
{
    if (action->kind != ACTION_RECOMPUTE) {
        put_item(weaver, (enum action_kind)action->kind, action->tensor, action->point);
        return;
    }
    for (uint32_t i = 0; i < action->count; i++) {
        const struct plan_replay *replay = &weaver->plan->replays[action->first + i];

        put_run(weaver, ACTION_REPLAY, replay->op, action->point);
        for (uint32_t j = 0; j < replay->drop_count; j++) {
            put_item(weaver, ACTION_DROP, weaver->plan->drops[replay->first_drop + j],
                     action->point);
        }
    }
    /* What follows belongs to no replay. */
    weaver->group_count++;
}

static void weave(struct weaver *weaver, const uint32_t *start)
{
    for (uint32_t k = 0; k < weaver->trace_index->trace->op_count; k++) {
        weaver->group_count++;
        for (uint32_t i = start[2 * k]; i < start[2 * k + 1]; i++) {
            put_action(weaver, &weaver->plan->actions[weaver->order[i]]);
        }
        put_run(weaver, ACTION_OP, k, k);
        for (uint32_t i = start[2 * k + 1]; i < start[2 * k + 2]; i++) {
            put_action(weaver, &weaver->plan->actions[weaver->order[i]]);
        }
    }
}

/* Copies the items and puts the releases in, by tensor id after each group. */
static void put_releases(const struct weaver *weaver, struct program *program, uint32_t *start,
                         uint32_t *dying)
{
    const struct trace *trace = weaver->trace_index->trace;
    uint32_t groups = weaver->group_count + 2;

    for (uint32_t t = 0; t < trace->tensor_count; t++) {
        if (!trace->tensors[t].persistent && weaver->last_group[t] > 0) {
            start[weaver->last_group[t] - 1]++;
        }
    }
    for (uint32_t g = 1; g < groups; g++) {
        start[g] += start[g - 1];
    }
    for (uint32_t t = trace->tensor_count; t-- > 0;) {
        if (!trace->tensors[t].persistent && weaver->last_group[t] > 0) {
            dying[--start[weaver->last_group[t] - 1]] = t;
        }
    }
    for (uint32_t i = 0; i < weaver->count; i++) {
        uint32_t group = weaver->group[i];
        bool ends = i + 1 == weaver->count || weaver->group[i + 1] != group;

        program->items[program->count++] = weaver->items[i];
        for (uint32_t d = start[group]; ends && d < start[group + 1]; d++) {
            program->items[program->count++] = (struct item){
                .kind = ACTION_RELEASE, .subject = dying[d], .point = weaver->items[i].point};
        }
    }
}

static void find_starts(struct program *program, uint8_t *is_seen)
{
    const struct trace *trace = program->trace_index->trace;

    for (uint32_t i = 0; i < program->count; i++) {
        const struct item *item = &program->items[i];
        const struct trace_op *op;

        if (!item_is_run(item)) {
            program->starts_on_host[item->subject] |= !is_seen[item->subject] &&
                                                      item->kind == ACTION_PREFETCH &&
                                                      trace->tensors[item->subject].persistent;
            is_seen[item->subject] = 1;
            continue;
        }
        op = &trace->ops[item->subject];
        for (uint32_t j = 0; j < trace_operand_count(op); j++) {
            is_seen[trace->operands[op->first + j]] = 1;
        }
    }
}

capu_status program_init(struct program *program, const struct trace_index *trace_index,
                         const struct plan *plan, struct error_text *error)
{
    const struct trace *trace = trace_index->trace;
    size_t tensors = (size_t)trace->tensor_count + 1;
    size_t items =
        (size_t)trace->op_count + plan->action_count + plan->replay_count + plan->drop_count + 1;
    size_t points = (size_t)trace->op_count * 2 + 2;
    /* A group an op and its point, a replay, and an end of a recompute. */
    size_t groups = (size_t)trace->op_count * 2 + plan->replay_count + plan->action_count + 4;
    struct weaver weaver = {.trace_index = trace_index, .plan = plan};
    uint32_t *start = NULL;
    uint32_t *dying = NULL;
    uint8_t *is_seen = NULL;
    capu_status status = CAPU_OK;

    *program = (struct program){.trace_index = trace_index, .plan = plan};
    for (uint32_t i = 0; status == CAPU_OK && i < plan->action_count; i++) {
        status = check_action(&weaver, &plan->actions[i], error);
    }
    if (status != CAPU_OK) {
        return status;
    }
    weaver.items = malloc(items * sizeof(*weaver.items));
    weaver.group = malloc(items * sizeof(*weaver.group));
    weaver.order = malloc(((size_t)plan->action_count + 1) * sizeof(*weaver.order));
    weaver.last_group = calloc(tensors, sizeof(*weaver.last_group));
    start = calloc(points > groups ? points : groups, sizeof(*start));
    dying = malloc(tensors * sizeof(*dying));
    is_seen = calloc(tensors, sizeof(*is_seen));
    program->items = malloc((items + tensors) * sizeof(*program->items));
    program->starts_on_host = calloc(tensors, sizeof(*program->starts_on_host));
    if (weaver.items == NULL || weaver.group == NULL || weaver.order == NULL ||
        weaver.last_group == NULL || start == NULL || dying == NULL || is_seen == NULL ||
        program->items == NULL || program->starts_on_host == NULL) {
        program_finish(program);
        status = CAPU_NO_HOST_MEMORY;
        goto free_weaver;
    }
    sort_actions(&weaver, start);
    weave(&weaver, start);
    for (size_t i = 0; i < (points > groups ? points : groups); i++) {
        start[i] = 0;
    }
    put_releases(&weaver, program, start, dying);
    find_starts(program, is_seen);
    status = placement_init(&program->placement, trace_index, plan, error);
    if (status != CAPU_OK) {
        program_finish(program);
    }

free_weaver:
    free(is_seen);
    free(dying);
    free(start);
    free(weaver.last_group);
    free(weaver.order);
    free(weaver.group);
    free(weaver.items);
    return status;
}

capu_status program_place(struct program *program, struct error_text *error)
{
    placement_finish(&program->placement);
    return placement_init(&program->placement, program->trace_index, program->plan, error);
}

void program_finish(struct program *program)
{
    placement_finish(&program->placement);
    free(program->items);
    free(program->starts_on_host);
    *program = (struct program){0};
}

capu_status program_walk_init(struct program_walk *walk, const struct program *program)
{
    const struct trace *trace = program->trace_index->trace;
    size_t tensors = (size_t)trace->tensor_count + 1;

    *walk = (struct program_walk){.program = program};
    walk->device = malloc(tensors * sizeof(*walk->device));
    walk->host = malloc(tensors * sizeof(*walk->host));
    if (walk->device == NULL || walk->host == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    for (uint32_t t = 0; t < trace->tensor_count; t++) {
        bool on_host = program->starts_on_host[t];

        walk->device[t] = trace->tensors[t].persistent && !on_host ? 0 : PROGRAM_NO_VERSION;
        walk->host[t] = on_host ? 0 : PROGRAM_NO_VERSION;
    }
    return CAPU_OK;
}

void program_walk_finish(struct program_walk *walk)
{
    free(walk->device);
    free(walk->host);
    *walk = (struct program_walk){0};
}

void program_walk_turn(struct program_walk *walk, const struct program_visitor *visitor, void *user)
{
    const struct trace_index *trace_index = walk->program->trace_index;

    for (uint32_t t = 0; t < trace_index->trace->tensor_count; t++) {
        uint32_t newest = trace_index->final_version[t];

        if (trace_index->trace->tensors[t].persistent) {
            walk->device[t] = walk->device[t] == newest ? 0 : PROGRAM_NO_VERSION;
            if (walk->host[t] == newest) {
                walk->host[t] = 0;
            } else {
                program_walk_forget(walk, visitor, user, t);
            }
        }
    }
}

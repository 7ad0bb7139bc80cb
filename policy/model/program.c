/*
 * Merging. Actions are sorted by point (stable, so that file order decides within one), then each
 * transient's release is inserted after the group of its last access: an op with the actions after
 * it, or a replay with its drops.
 */
#include "policy/model/program.h"

#include <inttypes.h>
#include <stdlib.h>

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

static void put(struct weaver *weaver, enum action_kind kind, uint32_t subject, uint32_t point)
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
    put(weaver, kind, number, point);
    for (uint32_t i = 0; i < trace_operand_count(op); i++) {
        weaver->last_group[trace->operands[op->first + i]] = weaver->group_count + 1;
    }
}

static void put_action(struct weaver *weaver, const struct plan_action *action)
{
    if (action->kind != ACTION_RECOMPUTE) {
        put(weaver, (enum action_kind)action->kind, action->tensor, action->point);
        return;
    }
    for (uint32_t i = 0; i < action->count; i++) {
        const struct plan_replay *replay = &weaver->plan->replays[action->first + i];

        put_run(weaver, ACTION_REPLAY, replay->op, action->point);
        for (uint32_t j = 0; j < replay->drop_count; j++) {
            put(weaver, ACTION_DROP, weaver->plan->drops[replay->first_drop + j], action->point);
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

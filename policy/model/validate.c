/* The rules of a valid plan, checked item by item in issue order. */
#include "policy/model/validate.h"

#include "policy/model/program.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NO_TENSOR UINT32_MAX

struct check {
    const struct trace_index *trace_index;
    const struct trace *trace;
    const struct plan *plan;
    const struct program *program;
    struct error_text *error;
    struct program_walk walk;
    uint8_t *is_fixed; /* per tensor: counted in fixed_bytes, in no action */
    uint32_t *owner;   /* per page: the tensor that holds it, or NO_TENSOR */
    uint64_t held;     /* bytes of the pool, without fixed_bytes */
    uint64_t limit;    /* the same */
    uint64_t host_held;
    uint64_t fixed_alive;
};

/* "evict at op 12 (conv1): tensor 3 (x) is not resident" */
static capu_status refuse_item(const struct check *check, const struct item *item, uint32_t tensor,
                               const char *what)
{
    const struct trace *trace = check->trace;
    uint32_t op = item_is_run(item) ? item->subject : item->point;
    char at[48] = "";

    if (item->kind == ACTION_REPLAY) {
        snprintf(at, sizeof(at), " before op %" PRIu32, item->point);
    }
    return error_text_set(
        check->error, CAPU_INVALID, "%s%s %" PRIu32 " (%.80s)%s: tensor %" PRIu32 " (%.80s) %s",
        action_kind_name((enum action_kind)item->kind), item_is_run(item) ? "" : " at op", op,
        op < trace->op_count ? trace_op_name(trace, op) : "", at, tensor,
        trace_tensor_name(trace, tensor), what);
}

static capu_status check_take(void *user, const struct item *item, uint32_t tensor)
{
    struct check *check = user;
    uint64_t bytes = check->trace_index->rounded[tensor];

    if (check->is_fixed[tensor]) {
        check->fixed_alive += check->trace->tensors[tensor].bytes;
        return check->fixed_alive <= check->plan->fixed_bytes
                   ? CAPU_OK
                   : refuse_item(check, item, tensor, "exceeds fixed_bytes");
    }
    if (bytes > check->limit - check->held) {
        return refuse_item(check, item, tensor, "exceeds the budget");
    }
    check->held += bytes;
    for (uint32_t i = 0; i < placement_count(&check->program->placement, tensor); i++) {
        uint32_t *owner = &check->owner[placement_page(&check->program->placement, tensor, i)];

        if (*owner != NO_TENSOR) {
            return refuse_item(check, item, tensor, "takes a page that another tensor holds");
        }
        *owner = tensor;
    }
    return CAPU_OK;
}

static capu_status check_give(void *user, const struct item *item, uint32_t tensor)
{
    struct check *check = user;

    (void)item;
    if (check->is_fixed[tensor]) {
        check->fixed_alive -= check->trace->tensors[tensor].bytes;
        return CAPU_OK;
    }
    check->held -= check->trace_index->rounded[tensor];
    for (uint32_t i = 0; i < placement_count(&check->program->placement, tensor); i++) {
        check->owner[placement_page(&check->program->placement, tensor, i)] = NO_TENSOR;
    }
    return CAPU_OK;
}

static capu_status copy_out(void *user, const struct item *item, uint32_t tensor)
{
    struct check *check = user;

    check->host_held += check->trace->tensors[tensor].bytes;
    return check->host_held <= check->plan->host_bytes
               ? CAPU_OK
               : refuse_item(check, item, tensor, "exceeds host_bytes");
}

static void check_forget(void *user, uint32_t tensor)
{
    struct check *check = user;

    check->host_held -= check->trace->tensors[tensor].bytes;
}

static const struct program_visitor visitor = {
    .take = check_take, .copy_out = copy_out, .forget = check_forget, .give = check_give};

/* Whether everything is there that an op or a replay needs. */
static capu_status check_run(const struct check *check, const struct item *item)
{
    const struct trace_op *op = &check->trace->ops[item->subject];
    const uint32_t *operands = check->trace->operands + op->first;
    const uint32_t *versions = check->trace_index->version + op->first;

    for (uint32_t i = 0; i < trace_operand_count(op); i++) {
        bool is_write = i >= op->read_count && i < op->read_count + op->write_count;

        if (!is_write && !program_walk_is_resident(&check->walk, operands[i])) {
            return refuse_item(check, item, operands[i], "is needed and not resident");
        }
        if (!is_write && check->walk.device[operands[i]] != versions[i]) {
            return refuse_item(check, item, operands[i], "holds another version than the op saw");
        }
    }
    return CAPU_OK;
}

/* Whether a tensor is where an action needs it. */
static capu_status check_action(const struct check *check, const struct item *item)
{
    uint32_t tensor = item->subject;
    bool is_resident = program_walk_is_resident(&check->walk, tensor);

    if (item->kind == ACTION_RELEASE) {
        return CAPU_OK;
    }
    if (check->is_fixed[tensor]) {
        return refuse_item(check, item, tensor, "has no place line and is counted in fixed_bytes");
    }
    if (item->kind != ACTION_PREFETCH) {
        return is_resident ? CAPU_OK : refuse_item(check, item, tensor, "is not resident");
    }
    if (is_resident) {
        return refuse_item(check, item, tensor, "is resident already");
    }
    return program_walk_has_copy(&check->walk, tensor)
               ? CAPU_OK
               : refuse_item(check, item, tensor, "has no host copy");
}

/* The iteration begins: persistent tensors where they start. */
static capu_status begin_iteration(struct check *check)
{
    static const struct item nowhere = {.kind = ACTION_OP};

    for (uint32_t t = 0; t < check->trace->tensor_count; t++) {
        capu_status status;

        if (check->program->starts_on_host[t]) {
            check->host_held += check->trace->tensors[t].bytes;
        }
        if (!program_walk_is_resident(&check->walk, t)) {
            continue;
        }
        status = check_take(check, &nowhere, t);
        if (status != CAPU_OK) {
            return error_text_set(check->error, status,
                                  "at the start: tensor %" PRIu32
                                  " (%.80s) does not fit the budget, fixed_bytes or its pages",
                                  t, trace_tensor_name(check->trace, t));
        }
    }
    return check->host_held <= check->plan->host_bytes
               ? CAPU_OK
               : error_text_set(check->error, CAPU_INVALID,
                                "what starts the iteration on the host exceeds host_bytes");
}

/* The iteration ends as it began; the final versions are the next one's first. */
static capu_status end_iteration(struct check *check)
{
    for (uint32_t t = 0; t < check->trace->tensor_count; t++) {
        uint32_t newest = check->trace_index->final_version[t];
        bool on_host = check->program->starts_on_host[t];

        if (!check->trace->tensors[t].persistent) {
            continue;
        }
        if (program_walk_is_resident(&check->walk, t) == on_host ||
            (on_host ? check->walk.host[t] : check->walk.device[t]) != newest) {
            return error_text_set(check->error, CAPU_INVALID,
                                  "at the end: tensor %" PRIu32
                                  " (%.80s) starts %s but does not end so with its newest version",
                                  t, trace_tensor_name(check->trace, t),
                                  on_host ? "on the host" : "resident");
        }
    }
    program_walk_turn(&check->walk, &visitor, check);
    return CAPU_OK;
}

static capu_status walk_items(struct check *check)
{
    capu_status status = CAPU_OK;

    for (uint32_t i = 0; status == CAPU_OK && i < check->program->count; i++) {
        const struct item *item = &check->program->items[i];

        status = item_is_run(item) ? check_run(check, item) : check_action(check, item);
        if (status == CAPU_OK) {
            status = program_walk_item(&check->walk, &visitor, check, item);
        }
    }
    return status == CAPU_OK ? end_iteration(check) : status;
}

static capu_status refuse_subject(const struct check *check, uint32_t in_plan, uint32_t in_trace,
                                  const char *what)
{
    return error_text_set(
        check->error, CAPU_INVALID,
        "the plan is for another trace: \"%.80s\" with %" PRIu32 " %s, not \"%.80s\" with %" PRIu32,
        check->plan->trace, in_plan, what, trace_text(check->trace, check->trace->name), in_trace);
}

/* Otherwise such a plan would be rejected at the first op that does not suit it, or even be valid.
   Plans without counts, as older versions wrote them, are judged by the rules alone. */
static capu_status check_subject(const struct check *check)
{
    const struct plan *plan = check->plan;
    const char *name = trace_text(check->trace, check->trace->name);

    if (plan->trace_tensors != PLAN_COUNT_UNKNOWN &&
        plan->trace_tensors != check->trace->tensor_count) {
        return refuse_subject(check, plan->trace_tensors, check->trace->tensor_count, "tensors");
    }
    if (plan->trace_ops != PLAN_COUNT_UNKNOWN && plan->trace_ops != check->trace->op_count) {
        return refuse_subject(check, plan->trace_ops, check->trace->op_count, "ops");
    }
    /* Two batch sizes of one network have the same counts. */
    if (plan->trace_tensors != PLAN_COUNT_UNKNOWN && plan->trace[0] != '\0' &&
        strcmp(plan->trace, name) != 0) {
        return error_text_set(check->error, CAPU_INVALID,
                              "the plan is for another trace: \"%.80s\", not \"%.80s\"",
                              plan->trace, name);
    }
    return CAPU_OK;
}

static capu_status check_header(const struct check *check)
{
    const struct plan *plan = check->plan;

    if (plan->fixed_bytes > plan->budget_bytes) {
        return error_text_set(check->error, CAPU_INVALID, "fixed_bytes exceeds the budget");
    }
    return plan->page_bytes == check->trace_index->page_bytes
               ? CAPU_OK
               : error_text_set(check->error, CAPU_INVALID,
                                "the plan is for pages of another size");
}

static capu_status walk_init(struct check *check)
{
    const struct plan *plan = check->plan;
    const struct placement *placement = &check->program->placement;
    size_t tensors = (size_t)check->trace->tensor_count + 1;

    check->limit = plan->budget_bytes - plan->fixed_bytes;
    check->is_fixed = calloc(tensors, sizeof(*check->is_fixed));
    check->owner = malloc(((size_t)placement->page_count + 1) * sizeof(*check->owner));
    if (program_walk_init(&check->walk, check->program) != CAPU_OK || check->is_fixed == NULL ||
        check->owner == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    for (uint32_t t = 0; t < check->trace->tensor_count; t++) {
        check->is_fixed[t] = !check->trace->tensors[t].managed ||
                             (plan->place_count > 0 && placement_count(placement, t) == 0);
    }
    for (uint32_t p = 0; p < placement->page_count; p++) {
        check->owner[p] = NO_TENSOR;
    }
    return CAPU_OK;
}

static capu_status walk_twice(struct check *check)
{
    capu_status status = walk_init(check);

    if (status == CAPU_OK) {
        status = begin_iteration(check);
    }
    for (int iteration = 0; status == CAPU_OK && iteration < 2; iteration++) {
        status = walk_items(check);
    }
    program_walk_finish(&check->walk);
    free(check->is_fixed);
    free(check->owner);
    return status;
}

capu_status validate_program(struct program *program, const struct trace_index *trace_index,
                             const struct plan *plan, struct error_text *error)
{
    struct check check = {.trace_index = trace_index,
                          .trace = trace_index->trace,
                          .plan = plan,
                          .program = program,
                          .error = error};
    capu_status status = check_subject(&check);

    *program = (struct program){0};
    if (status == CAPU_OK) {
        status = check_header(&check);
    }
    if (status == CAPU_OK) {
        status = program_init(program, trace_index, plan, error);
    }
    if (status == CAPU_OK) {
        status = walk_twice(&check);
    }
    if (status != CAPU_OK) {
        program_finish(program);
    }
    return status;
}

capu_status validate_plan(const struct trace_index *trace_index, const struct plan *plan,
                          struct error_text *error)
{
    struct program program;
    capu_status status = validate_program(&program, trace_index, plan, error);

    program_finish(&program);
    return status;
}

bool validate_is_sound(const struct trace_index *trace_index, const struct plan *plan)
{
    struct plan roomy = *plan;

    roomy.budget_bytes = INT64_MAX;
    roomy.host_bytes = UINT64_MAX;
    return validate_plan(trace_index, &roomy, NULL) != CAPU_INVALID;
}

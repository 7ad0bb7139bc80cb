/* The rules of a valid plan, checked item by item in issue order. */
#include "policy/model/validate.h"

#include "base/assert.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NO_VERSION UINT32_MAX
#define NO_TENSOR UINT32_MAX

struct walk {
    const struct trace_index *trace_index;
    const struct trace *trace;
    const struct plan *plan;
    const struct program *program;
    struct error_text *error;
    uint32_t *device;  /* per tensor: the version it holds on the device, or NO_VERSION */
    uint32_t *host;    /* the same of the host copy */
    uint8_t *is_fixed; /* per tensor: counted in fixed_bytes, in no action */
    uint32_t *owner;   /* per page: the tensor that holds it, or NO_TENSOR */
    uint64_t held;     /* bytes of the pool, without fixed_bytes */
    uint64_t limit;    /* the same */
    uint64_t host_held;
    uint64_t fixed_alive;
};

/* "evict at op 12 (conv1): tensor 3 (x) is not resident" */
static capu_status refuse(const struct walk *walk, const struct item *item, uint32_t tensor,
                          const char *what)
{
    const struct trace *trace = walk->trace;
    uint32_t op = item_is_run(item) ? item->subject : item->point;
    char at[48] = "";

    if (item->kind == ACTION_REPLAY) {
        snprintf(at, sizeof(at), " before op %" PRIu32, item->point);
    }
    return error_text_set(
        walk->error, CAPU_INVALID, "%s%s %" PRIu32 " (%.80s)%s: tensor %" PRIu32 " (%.80s) %s",
        action_kind_name((enum action_kind)item->kind), item_is_run(item) ? "" : " at op", op,
        op < trace->op_count ? trace_op_name(trace, op) : "", at, tensor,
        trace_tensor_name(trace, tensor), what);
}

static capu_status take(struct walk *walk, const struct item *item, uint32_t tensor)
{
    uint64_t bytes = walk->trace_index->rounded[tensor];

    if (walk->is_fixed[tensor]) {
        walk->fixed_alive += walk->trace->tensors[tensor].bytes;
        return walk->fixed_alive <= walk->plan->fixed_bytes
                   ? CAPU_OK
                   : refuse(walk, item, tensor, "exceeds fixed_bytes");
    }
    if (bytes > walk->limit - walk->held) {
        return refuse(walk, item, tensor, "exceeds the budget");
    }
    walk->held += bytes;
    for (uint32_t i = 0; i < placement_count(&walk->program->placement, tensor); i++) {
        uint32_t *owner = &walk->owner[placement_page(&walk->program->placement, tensor, i)];

        if (*owner != NO_TENSOR) {
            return refuse(walk, item, tensor, "takes a page that another tensor holds");
        }
        *owner = tensor;
    }
    return CAPU_OK;
}

static void give_back(struct walk *walk, uint32_t tensor)
{
    if (walk->is_fixed[tensor]) {
        walk->fixed_alive -= walk->trace->tensors[tensor].bytes;
    } else {
        walk->held -= walk->trace_index->rounded[tensor];
        for (uint32_t i = 0; i < placement_count(&walk->program->placement, tensor); i++) {
            walk->owner[placement_page(&walk->program->placement, tensor, i)] = NO_TENSOR;
        }
    }
    walk->device[tensor] = NO_VERSION;
}

static void forget_host(struct walk *walk, uint32_t tensor)
{
    if (walk->host[tensor] != NO_VERSION) {
        walk->host_held -= walk->trace->tensors[tensor].bytes;
        walk->host[tensor] = NO_VERSION;
    }
}

/* A copy to the host, where there is none: one that is there is no older, since writes end it. */
static capu_status copy_out(struct walk *walk, const struct item *item, uint32_t tensor)
{
    if (walk->host[tensor] != NO_VERSION) {
        ASSERT(walk->host[tensor] >= walk->device[tensor]);
        return CAPU_OK;
    }
    walk->host_held += walk->trace->tensors[tensor].bytes;
    walk->host[tensor] = walk->device[tensor];
    return walk->host_held <= walk->plan->host_bytes
               ? CAPU_OK
               : refuse(walk, item, tensor, "exceeds host_bytes");
}

static capu_status run_op(struct walk *walk, const struct item *item)
{
    const struct trace_op *op = &walk->trace->ops[item->subject];
    const uint32_t *operands = walk->trace->operands + op->first;
    const uint32_t *versions = walk->trace_index->version + op->first;
    capu_status status = CAPU_OK;

    for (uint32_t i = 0; i < trace_operand_count(op); i++) {
        bool is_write = i >= op->read_count && i < op->read_count + op->write_count;

        if (!is_write && walk->device[operands[i]] == NO_VERSION) {
            return refuse(walk, item, operands[i], "is needed and not resident");
        }
        if (!is_write && walk->device[operands[i]] != versions[i]) {
            return refuse(walk, item, operands[i], "holds another version than the op saw");
        }
    }
    for (uint32_t i = op->read_count; i < trace_operand_count(op); i++) {
        uint32_t tensor = operands[i];

        if (walk->device[tensor] == NO_VERSION) {
            status = take(walk, item, tensor);
            if (status != CAPU_OK) {
                return status;
            }
        }
        walk->device[tensor] = versions[i] + (i >= op->read_count + op->write_count);
        if (walk->host[tensor] != NO_VERSION && walk->host[tensor] < walk->device[tensor]) {
            forget_host(walk, tensor);
        }
    }
    return status;
}

static capu_status act(struct walk *walk, const struct item *item)
{
    uint32_t tensor = item->subject;
    capu_status status = CAPU_OK;

    if (item->kind == ACTION_RELEASE) {
        forget_host(walk, tensor);
        if (walk->device[tensor] != NO_VERSION) {
            give_back(walk, tensor);
        }
        return CAPU_OK;
    }
    if (walk->is_fixed[tensor]) {
        return refuse(walk, item, tensor, "has no place line and is counted in fixed_bytes");
    }
    if (item->kind == ACTION_PREFETCH) {
        if (walk->device[tensor] != NO_VERSION) {
            return refuse(walk, item, tensor, "is resident already");
        }
        if (walk->host[tensor] == NO_VERSION) {
            return refuse(walk, item, tensor, "has no host copy");
        }
        status = take(walk, item, tensor);
        walk->device[tensor] = walk->host[tensor];
        return status;
    }
    if (walk->device[tensor] == NO_VERSION) {
        return refuse(walk, item, tensor, "is not resident");
    }
    if (item->kind != ACTION_DROP) {
        status = copy_out(walk, item, tensor);
    }
    if (item->kind != ACTION_SAVE) {
        give_back(walk, tensor);
    }
    return status;
}

/* The iteration begins: persistent tensors where they start. */
static capu_status begin(struct walk *walk)
{
    static const struct item nowhere = {.kind = ACTION_OP};

    for (uint32_t t = 0; t < walk->trace->tensor_count; t++) {
        capu_status status;

        if (!walk->trace->tensors[t].persistent) {
            continue;
        }
        if (walk->program->starts_on_host[t]) {
            walk->host[t] = 0;
            walk->host_held += walk->trace->tensors[t].bytes;
            continue;
        }
        walk->device[t] = 0;
        status = take(walk, &nowhere, t);
        if (status != CAPU_OK) {
            return error_text_set(walk->error, status,
                                  "at the start: tensor %" PRIu32
                                  " (%.80s) does not fit the budget, fixed_bytes or its pages",
                                  t, trace_tensor_name(walk->trace, t));
        }
    }
    return walk->host_held <= walk->plan->host_bytes
               ? CAPU_OK
               : error_text_set(walk->error, CAPU_INVALID,
                                "what starts the iteration on the host exceeds host_bytes");
}

/* The iteration ends as it began; the final versions are the next one's first. */
static capu_status end(struct walk *walk)
{
    for (uint32_t t = 0; t < walk->trace->tensor_count; t++) {
        uint32_t newest = walk->trace_index->final_version[t];
        bool on_host = walk->program->starts_on_host[t];

        if (!walk->trace->tensors[t].persistent) {
            continue;
        }
        if ((walk->device[t] == NO_VERSION) != on_host ||
            (on_host ? walk->host[t] : walk->device[t]) != newest) {
            return error_text_set(walk->error, CAPU_INVALID,
                                  "at the end: tensor %" PRIu32
                                  " (%.80s) starts %s but does not end so with its newest version",
                                  t, trace_tensor_name(walk->trace, t),
                                  on_host ? "on the host" : "resident");
        }
        walk->device[t] = on_host ? NO_VERSION : 0;
        if (walk->host[t] == newest) {
            walk->host[t] = 0;
        } else {
            forget_host(walk, t);
        }
    }
    return CAPU_OK;
}

static capu_status walk_items(struct walk *walk)
{
    capu_status status = CAPU_OK;

    for (uint32_t i = 0; status == CAPU_OK && i < walk->program->count; i++) {
        const struct item *item = &walk->program->items[i];

        status = item_is_run(item) ? run_op(walk, item) : act(walk, item);
    }
    return status == CAPU_OK ? end(walk) : status;
}

static capu_status refuse_subject(const struct walk *walk, uint32_t in_plan, uint32_t in_trace,
                                  const char *what)
{
    return error_text_set(
        walk->error, CAPU_INVALID,
        "the plan is for another trace: \"%.80s\" with %" PRIu32 " %s, not \"%.80s\" with %" PRIu32,
        walk->plan->trace, in_plan, what, trace_text(walk->trace, walk->trace->name), in_trace);
}

/* Otherwise such a plan would be rejected at the first op that does not suit it, or even be valid.
   Plans without counts, as older versions wrote them, are judged by the rules alone. */
static capu_status check_subject(const struct walk *walk)
{
    const struct plan *plan = walk->plan;
    const char *name = trace_text(walk->trace, walk->trace->name);

    if (plan->trace_tensors != PLAN_COUNT_UNKNOWN &&
        plan->trace_tensors != walk->trace->tensor_count) {
        return refuse_subject(walk, plan->trace_tensors, walk->trace->tensor_count, "tensors");
    }
    if (plan->trace_ops != PLAN_COUNT_UNKNOWN && plan->trace_ops != walk->trace->op_count) {
        return refuse_subject(walk, plan->trace_ops, walk->trace->op_count, "ops");
    }
    /* Two batch sizes of one network have the same counts. */
    if (plan->trace_tensors != PLAN_COUNT_UNKNOWN && plan->trace[0] != '\0' &&
        strcmp(plan->trace, name) != 0) {
        return error_text_set(walk->error, CAPU_INVALID,
                              "the plan is for another trace: \"%.80s\", not \"%.80s\"",
                              plan->trace, name);
    }
    return CAPU_OK;
}

static capu_status check_header(const struct walk *walk)
{
    const struct plan *plan = walk->plan;

    if (plan->fixed_bytes > plan->budget_bytes) {
        return error_text_set(walk->error, CAPU_INVALID, "fixed_bytes exceeds the budget");
    }
    return plan->page_bytes == walk->trace_index->page_bytes
               ? CAPU_OK
               : error_text_set(walk->error, CAPU_INVALID, "the plan is for pages of another size");
}

static capu_status walk_init(struct walk *walk)
{
    const struct plan *plan = walk->plan;
    const struct placement *placement = &walk->program->placement;
    size_t tensors = (size_t)walk->trace->tensor_count + 1;

    walk->limit = plan->budget_bytes - plan->fixed_bytes;
    walk->device = malloc(tensors * sizeof(*walk->device));
    walk->host = malloc(tensors * sizeof(*walk->host));
    walk->is_fixed = calloc(tensors, sizeof(*walk->is_fixed));
    walk->owner = malloc(((size_t)placement->page_count + 1) * sizeof(*walk->owner));
    if (walk->device == NULL || walk->host == NULL || walk->is_fixed == NULL ||
        walk->owner == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    for (uint32_t t = 0; t < walk->trace->tensor_count; t++) {
        walk->device[t] = NO_VERSION;
        walk->host[t] = NO_VERSION;
        walk->is_fixed[t] = !walk->trace->tensors[t].managed ||
                            (plan->place_count > 0 && placement_count(placement, t) == 0);
    }
    for (uint32_t p = 0; p < placement->page_count; p++) {
        walk->owner[p] = NO_TENSOR;
    }
    return CAPU_OK;
}

static capu_status walk_twice(struct walk *walk)
{
    capu_status status = walk_init(walk);

    if (status == CAPU_OK) {
        status = begin(walk);
    }
    for (int iteration = 0; status == CAPU_OK && iteration < 2; iteration++) {
        status = walk_items(walk);
    }
    free(walk->device);
    free(walk->host);
    free(walk->is_fixed);
    free(walk->owner);
    return status;
}

capu_status validate_program(struct program *program, const struct trace_index *trace_index,
                             const struct plan *plan, struct error_text *error)
{
    struct walk walk = {.trace_index = trace_index,
                        .trace = trace_index->trace,
                        .plan = plan,
                        .program = program,
                        .error = error};
    capu_status status = check_subject(&walk);

    *program = (struct program){0};
    if (status == CAPU_OK) {
        status = check_header(&walk);
    }
    if (status == CAPU_OK) {
        status = program_init(program, trace_index, plan, error);
    }
    if (status == CAPU_OK) {
        status = walk_twice(&walk);
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

/* Describing tensors, and asking about them: see capuchin/memory.h. */
#include "runtime/api/describe.h"

#include "runtime/api/context.h"
#include "runtime/context/config.h"
#include "runtime/context/failure.h"
#include "runtime/follow/recovery.h"
#include "runtime/plan/planning.h"
#include "runtime/residency/residency.h"
#include "runtime/residency/swap.h"
#include "runtime/tensor/memory.h"

#include <string.h>

static capu_status check_info(capu_context *context, const capu_tensor_info *info)
{
    const struct {
        const char *name;
        uint32_t value;
        uint32_t most;
    } fields[] = {{"kind", info->kind, CAPU_INPUT},
                  {"lifetime", info->lifetime, CAPU_TRANSIENT},
                  {"hint", info->hint, CAPU_HINT_RECOMPUTE},
                  {"reserved", info->reserved, 0}};

    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        if (fields[i].value > fields[i].most) {
            return failure_set(&context->failure, CAPU_INVALID,
                               "capu_tensor_describe as '%s': %s is %u, and at most %u",
                               info->name != NULL ? info->name : "", fields[i].name,
                               fields[i].value, fields[i].most);
        }
    }
    return CAPU_OK;
}

/* Copies and checks the caller's info. */
static capu_status read_info(capu_context *context, const capu_tensor_info *from,
                             capu_tensor_info *info)
{
    if (from == NULL) {
        return failure_set(&context->failure, CAPU_INVALID, "no tensor info was given");
    }
    if (!struct_read(info, sizeof(*info), from, from->size)) {
        return failure_set(&context->failure, CAPU_WRONG_STRUCT,
                           "a capu_tensor_info of %zu bytes; this library's is %zu", from->size,
                           sizeof(*info));
    }
    return check_info(context, info);
}

static bool is_persistent(const capu_tensor_info *info)
{
    return info->lifetime == CAPU_PERSISTENT ||
           (info->lifetime == CAPU_LIFETIME_DEFAULT &&
            (info->kind == CAPU_KIND_UNKNOWN || info->kind == CAPU_PARAMETER ||
             info->kind == CAPU_OPTIMIZER));
}

/* The tensor in the guide that is active, or that this iteration has left; NULL: it is in neither.
 */
static const struct guide_tensor *find_planned(const capu_context *context,
                                               const struct tensor *tensor)
{
    if (context->guided.active != NULL && tensor_is_placed(tensor)) {
        return &context->guided.active->guide->tensors[tensor->guide_index];
    }
    return owed_find(&context->guided, tensor) != OWED_NONE
               ? &context->guided.owed.guide->tensors[tensor->guide_index]
               : NULL;
}

/* Makes sure that a tensor has its contents and that plans keep them. If they are lost already, the
   program learns that now and not in a later iteration. Between iterations nothing is reported: the
   program may mean the iterations to come, and reading what is lost fails by name. A plan that
   keeps the tensor stays. */
static capu_status keep_from_now_on(capu_context *context, struct tensor *tensor,
                                    bool becomes_persistent)
{
    const struct guide_tensor *planned = find_planned(context, tensor);
    bool is_let_die = planned != NULL && !planned->is_kept;
    char why[ERROR_TEXT_BYTES];
    capu_status status = CAPU_OK;

    /* A plan may know it as persistent and let it die nevertheless, if it is always freed. */
    if (is_let_die && tensor_is_placed(tensor) &&
        (planned->is_transient || tensor_is_lost(tensor))) {
        status = leave_guide(&context->residency);
    }
    if (status == CAPU_OK && becomes_persistent && !tensor->is_read_after) {
        /* Plans, and the records that plans are made of, let it die after its last access. */
        tensor->is_read_after = true;
        status = planning_forget(&context->plans, tensor->address);
    }
    if (status == CAPU_OK && context->iteration.is_open && !tensor_is_placed(tensor) &&
        (is_let_die || becomes_persistent)) {
        status = recovery_restore(&context->following, tensor);
    }
    if (status != CAPU_CONTENTS_LOST) {
        return status;
    }
    memcpy(why, context->failure.text, sizeof(why));
    planning_note_loss(&context->plans);
    return failure_set(&context->failure, status, "'%s' is described as persistent too late: %s",
                       lookup_name(&context->memory, tensor), why);
}

capu_status capu_tensor_describe(capu_context *context, const void *address,
                                 const capu_tensor_info *info)
{
    capu_status status = context_uncaptured(&context, "capu_tensor_describe");
    struct tensor *tensor;
    capu_tensor_info copy;
    const char *name = NULL;
    bool becomes_persistent;

    if (status == CAPU_OK) {
        status = read_info(context, info, &copy);
    }
    if (status == CAPU_OK) {
        status = lookup_tensor(&context->memory, address, "capu_tensor_describe", &tensor);
    }
    if (status != CAPU_OK) {
        return status;
    }
    context_note_layout(context, tensor);
    if (copy.name != NULL) {
        name = names_intern(&context->memory.names, copy.name);
        if (name == NULL) {
            return failure_set(&context->failure, CAPU_NO_HOST_MEMORY,
                               "no memory for a tensor's name");
        }
        tensor->name = name;
    }
    tensor->kind = copy.kind;
    tensor->hint = copy.hint;
    becomes_persistent = !tensor->is_persistent && is_persistent(&copy);
    tensor->is_persistent = is_persistent(&copy);
    if (tensor_is_defined(tensor)) {
        contents_define(&context->residency, tensor);
    }
    return tensor->is_persistent ? keep_from_now_on(context, tensor, becomes_persistent) : CAPU_OK;
}

static capu_tensor_state state_of(capu_context *context, struct tensor *tensor)
{
    return (capu_tensor_state){
        .size = sizeof(capu_tensor_state),
        .name = lookup_name(&context->memory, tensor),
        .address = tensor->address,
        .bytes = tensor->bytes,
        .fixed_bytes = tensor->bytes - tensor->span_bytes,
        .kind = tensor->kind,
        .hint = tensor->hint,
        .is_persistent = tensor->is_persistent,
        .is_resident = tensor_is_mapped(tensor) || !tensor_is_managed(tensor),
        .is_defined = tensor_is_defined(tensor),
        .has_host_copy = tensor_on_host(tensor),
        .version = tensor->version,
        .is_zero = tensor_is_managed(tensor) && tensor_is_zero(tensor),
        .out_bytes = tensor->out_bytes,
        .back_bytes = tensor->back_bytes,
    };
}

bool describe_next(capu_context *context, struct describe_range *range, capu_tensor_state *state)
{
    struct tensor *tensor = NULL;

    if (range->address < range->end && context_usable(&context) == CAPU_OK) {
        tensor = tensors_find(&context->memory.tensors, (const void *)(uintptr_t)range->address);
    }
    if (tensor != NULL) {
        *state = state_of(context, tensor);
        range->address = (uintptr_t)tensor_end(tensor);
    }
    return tensor != NULL;
}

capu_status capu_tensor_query(capu_context *context, const void *address, capu_tensor_state *state)
{
    capu_status status = context_usable(&context);
    struct tensor *tensor;
    capu_tensor_state now;

    if (status != CAPU_OK) {
        return status;
    }
    if (state == NULL) {
        return failure_set(&context->failure, CAPU_INVALID,
                           "capu_tensor_query: no place for the state");
    }
    status = lookup_tensor(&context->memory, address, "capu_tensor_query", &tensor);
    if (status != CAPU_OK) {
        return status;
    }
    now = state_of(context, tensor);
    if (!struct_write(state, state->size, &now, sizeof(now))) {
        return failure_set(&context->failure, CAPU_WRONG_STRUCT,
                           "a capu_tensor_state of %zu bytes; this library's is %zu", state->size,
                           sizeof(now));
    }
    return CAPU_OK;
}

void *capu_tensor_next(capu_context *context, const void *address)
{
    struct tensor *tensor;

    if (context_usable(&context) != CAPU_OK ||
        lookup_tensor(&context->memory, address, "capu_tensor_next", &tensor) != CAPU_OK) {
        return NULL;
    }
    return tensor->next != NULL ? tensor->next->address : NULL;
}

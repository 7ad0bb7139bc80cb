/* Tensors from addresses and names for tensors, see lookup.h. */
#include "runtime/tensor/lookup.h"

#include "runtime/context/failure.h"
#include "runtime/context/internal.h"

#include <stdio.h>
#include <string.h>

static capu_status fail_freed(capu_context *context, const void *address, const char *what)
{
    const char *name = tensors_freed_name(&context->memory.tensors, address);
    char text[32];

    snprintf(text, sizeof(text), "%p", address); /* which is the name of a tensor without one */
    if (name == NULL || strcmp(name, text) == 0) {
        return failure_set(&context->failure, CAPU_ALREADY_FREED, "%s: %s has been freed", what,
                           text);
    }
    return failure_set(&context->failure, CAPU_ALREADY_FREED, "%s: '%s' at %s has been freed", what,
                       name, text);
}

capu_status lookup_tensor(capu_context *context, const void *address, const char *what,
                          struct tensor **tensor)
{
    *tensor = tensors_find(&context->memory.tensors, address);
    if (*tensor != NULL) {
        return CAPU_OK;
    }
    if (tensors_was_freed(&context->memory.tensors, address)) {
        return fail_freed(context, address, what);
    }
    if (address == NULL) {
        return failure_set(&context->failure, CAPU_UNKNOWN_ADDRESS, "%s: the address is NULL",
                           what);
    }
    return failure_set(&context->failure, CAPU_UNKNOWN_ADDRESS,
                       "%s: %p is in no tensor of this context", what, address);
}

capu_status lookup_allocation(capu_context *context, const void *address, const char *what,
                              struct allocation **allocation)
{
    struct tensor *tensor;
    capu_status status = lookup_tensor(context, address, what, &tensor);

    if (status != CAPU_OK) {
        return status;
    }
    if (tensor->allocation->address != address) {
        return failure_set(&context->failure, CAPU_UNKNOWN_ADDRESS,
                           "%s: %p lies inside the allocation at %p", what, address,
                           tensor->allocation->address);
    }
    *allocation = tensor->allocation;
    return CAPU_OK;
}

bool lookup_is_named(const struct tensor *tensor)
{
    char text[32];

    snprintf(text, sizeof(text), "%p", tensor->address); /* as lookup_name names it */
    return tensor->name != NULL && strcmp(tensor->name, text) != 0;
}

const char *lookup_name(capu_context *context, struct tensor *tensor)
{
    char text[32];

    if (tensor->name == NULL) {
        snprintf(text, sizeof(text), "%p", tensor->address);
        tensor->name = names_intern(&context->memory.names, text);
    }
    return tensor->name != NULL ? tensor->name : "";
}

/* Tensors from addresses and names for tensors, see lookup.h. */
#include "runtime/tensor/lookup.h"

#include "runtime/context/failure.h"

#include <stdio.h>
#include <string.h>

static capu_status fail_freed(struct memory *memory, const void *address, const char *what)
{
    const char *name = tensors_freed_name(&memory->tensors, address);
    char text[32];

    snprintf(text, sizeof(text), "%p", address); /* which is the name of a tensor without one */
    if (name == NULL || strcmp(name, text) == 0) {
        return failure_set(memory->failure, CAPU_ALREADY_FREED, "%s: %s has been freed", what,
                           text);
    }
    return failure_set(memory->failure, CAPU_ALREADY_FREED, "%s: '%s' at %s has been freed", what,
                       name, text);
}

capu_status lookup_tensor(struct memory *memory, const void *address, const char *what,
                          struct tensor **tensor)
{
    *tensor = tensors_find(&memory->tensors, address);
    if (*tensor != NULL) {
        return CAPU_OK;
    }
    if (tensors_was_freed(&memory->tensors, address)) {
        return fail_freed(memory, address, what);
    }
    if (address == NULL) {
        return failure_set(memory->failure, CAPU_UNKNOWN_ADDRESS, "%s: the address is NULL", what);
    }
    return failure_set(memory->failure, CAPU_UNKNOWN_ADDRESS,
                       "%s: %p is in no tensor of this context", what, address);
}

capu_status lookup_allocation(struct memory *memory, const void *address, const char *what,
                              struct allocation **allocation)
{
    struct tensor *tensor;
    capu_status status = lookup_tensor(memory, address, what, &tensor);

    if (status != CAPU_OK) {
        return status;
    }
    if (tensor->allocation->address != address) {
        return failure_set(memory->failure, CAPU_UNKNOWN_ADDRESS,
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

const char *lookup_name(struct memory *memory, struct tensor *tensor)
{
    char text[32];

    if (tensor->name == NULL) {
        snprintf(text, sizeof(text), "%p", tensor->address);
        tensor->name = names_intern(&memory->names, text);
    }
    return tensor->name != NULL ? tensor->name : "";
}

/* Allocations as structs, and finding and naming tensors: see memory.h. */
#include "runtime/tensor/memory.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(offsetof(struct tensor, used) == CACHE_LINE_BYTES &&
                   offsetof(struct tensor, allocation) == 2 * CACHE_LINE_BYTES &&
                   offsetof(struct tensor, residency) == 3 * CACHE_LINE_BYTES &&
                   offsetof(struct tensor, span) <= 4 * CACHE_LINE_BYTES,
               "the groups of a tensor's fields are cache lines");

/* A tensor over `bytes` at `address`; its span is set by the caller. */
static struct tensor *tensor_create(struct allocation *allocation, void *address, uint64_t bytes,
                                    size_t page_count)
{
    size_t lines = (sizeof(struct tensor) + CACHE_LINE_BYTES - 1) / CACHE_LINE_BYTES;
    struct tensor *tensor = aligned_alloc(CACHE_LINE_BYTES, lines * CACHE_LINE_BYTES);

    if (tensor == NULL) {
        return NULL;
    }
    *tensor = (struct tensor){0};
    tensor->address = address;
    tensor->bytes = bytes;
    tensor->allocation = allocation;
    tensor->is_persistent = true;
    tensor->page_count = page_count;
    if (page_count > 0) {
        tensor->span = address;
        tensor->span_bytes = bytes;
        tensor->pages = calloc(page_count, sizeof(*tensor->pages));
        if (tensor->pages == NULL) {
            free(tensor);
            return NULL;
        }
    }
    return tensor;
}

static void tensor_destroy(struct tensor *tensor)
{
    if (tensor != NULL) {
        free(tensor->pages);
        free(tensor);
    }
}

capu_status allocation_create(struct memory *memory, void *address, uint64_t bytes,
                              size_t page_count, struct allocation **out)
{
    struct allocation *allocation = calloc(1, sizeof(*allocation));

    if (allocation == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    allocation->address = address;
    allocation->bytes = bytes;
    allocation->page_count = page_count;
    allocation->first = tensor_create(allocation, address, bytes, page_count);
    if (allocation->first == NULL || tensors_add(&memory->tensors, allocation->first) != CAPU_OK) {
        tensor_destroy(allocation->first);
        free(allocation);
        return CAPU_NO_HOST_MEMORY;
    }
    page_census_add(&memory->census, allocation);
    page_census_tensor(&memory->census, allocation->first, 1);
    *out = allocation;
    return CAPU_OK;
}

void allocation_destroy(struct memory *memory, struct allocation *allocation, bool is_in_iteration)
{
    struct tensor *tensor = allocation->first;

    while (tensor != NULL) {
        struct tensor *next = tensor->next;

        page_census_tensor(&memory->census, tensor, -1);
        tensors_forget(&memory->tensors, tensor);
        tensor_destroy(tensor);
        tensor = next;
    }
    page_census_remove(&memory->census, allocation, is_in_iteration);
    free(allocation->edge_pages);
    free(allocation);
}

/*
 * Tensors from addresses, and names for tensors.
 */

static capu_status fail_freed(struct memory *memory, const void *address, const char *what)
{
    const char *name = tensors_freed_name(&memory->tensors, address);
    char text[32];

    snprintf(text, sizeof(text), "%p", address); /* which is the name of a tensor without one */
    if (name == NULL || strcmp(name, text) == 0) {
        return failure_set(memory->failure, CAPU_WRONG_ADDRESS, "%s: %s has been freed", what,
                           text);
    }
    return failure_set(memory->failure, CAPU_WRONG_ADDRESS, "%s: '%s' at %s has been freed", what,
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
        return failure_set(memory->failure, CAPU_WRONG_ADDRESS, "%s: the address is NULL", what);
    }
    return failure_set(memory->failure, CAPU_WRONG_ADDRESS,
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
        return failure_set(memory->failure, CAPU_WRONG_ADDRESS,
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

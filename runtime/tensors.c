/*
 * Finding tensors by address, and the lists that hold them: see tensors.h.
 *
 * Operands nearly always name the start of a tensor, and that must be fast: a hash table of start
 * addresses answers it. An address inside a tensor is found in a balanced tree (tsearch). The table
 * never forgets an address, so that a double free or a use after free can be reported with the
 * name of the tensor.
 */
#define _GNU_SOURCE /* twalk_r */

#include "runtime/tensors.h"

#include "base/assert.h"

#include <search.h>
#include <stddef.h>
#include <stdlib.h>

enum { FIRST_CAPACITY = 256 };

/* A start address that is or was in use. A removed tensor stays here until it is forgotten; then
   `tensor` is NULL. */
struct tensor_slot {
    const void *address; /* NULL: empty */
    struct tensor *tensor;
    const char *removed_name; /* name of the removed tensor, interned; NULL: it had none */
    bool is_removed;
};

/* Most addresses are multiples of 256; Fibonacci hashing spreads them. */
static size_t slot_of(const struct tensors *tensors, const void *address)
{
    size_t mask = tensors->capacity - 1;
    size_t slot = (size_t)(((uint64_t)(uintptr_t)address * 11400714819323198485u) >> 20) & mask;

    while (tensors->slots[slot].address != NULL && tensors->slots[slot].address != address) {
        slot = (slot + 1) & mask;
    }
    return slot;
}

/* Doubles the table. Keeps the addresses of removed tensors, so that a double free can be named. */
static capu_status grow(struct tensors *tensors)
{
    struct tensors larger = *tensors;

    larger.capacity = tensors->capacity == 0 ? FIRST_CAPACITY : tensors->capacity * 2;
    larger.slots = calloc(larger.capacity, sizeof(*larger.slots));
    if (larger.slots == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    for (size_t i = 0; i < tensors->capacity; i++) {
        if (tensors->slots[i].address != NULL) {
            larger.slots[slot_of(&larger, tensors->slots[i].address)] = tensors->slots[i];
        }
    }
    free(tensors->slots);
    *tensors = larger;
    return CAPU_OK;
}

/* Orders tensors by address. Tensors that overlap compare equal, so a key of one byte finds the
   tensor that contains it. */
static int compare(const void *left, const void *right)
{
    const struct tensor *a = left;
    const struct tensor *b = right;

    if (tensor_end(a) <= (unsigned char *)b->address) {
        return -1;
    }
    return (unsigned char *)a->address >= tensor_end(b) ? 1 : 0;
}

capu_status tensors_add(struct tensors *tensors, struct tensor *tensor)
{
    struct tensor_slot *slot;

    if (tensors->count * 2 >= tensors->capacity) {
        capu_status status = grow(tensors);

        if (status != CAPU_OK) {
            return status;
        }
    }
    if (tsearch(tensor, &tensors->tree, compare) == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    slot = &tensors->slots[slot_of(tensors, tensor->address)];
    if (slot->address == NULL) {
        slot->address = tensor->address;
        tensors->count++;
    }
    slot->tensor = tensor;
    slot->is_removed = false;
    tensors->live_count++;
    return CAPU_OK;
}

void tensors_remove(struct tensors *tensors, struct tensor *tensor)
{
    struct tensor_slot *slot = &tensors->slots[slot_of(tensors, tensor->address)];

    slot->is_removed = true;
    slot->removed_name = tensor->name;
    tdelete(tensor, &tensors->tree, compare);
    tensors->live_count--;
}

void tensors_replace(struct tensors *tensors, struct tensor *old, struct tensor *tensor)
{
    struct tensor **node = tfind(old, &tensors->tree, compare);

    ASSERT(old->address == tensor->address);
    *node = tensor;
    tensors->slots[slot_of(tensors, old->address)].tensor = tensor;
}

void tensors_forget(struct tensors *tensors, const struct tensor *tensor)
{
    struct tensor_slot *slot = &tensors->slots[slot_of(tensors, tensor->address)];

    if (slot->tensor == tensor) {
        slot->tensor = NULL;
    }
}

struct tensor *tensors_find_freed(const struct tensors *tensors, const void *address)
{
    const struct tensor_slot *slot;

    if (tensors->capacity == 0) {
        return NULL;
    }
    slot = &tensors->slots[slot_of(tensors, address)];
    return slot->is_removed ? slot->tensor : NULL;
}

/* The tensor that contains an address which is not the start of one. Not inlined, so that the
   common path of tensors_find does not spend time on clearing the key. */
static __attribute__((noinline)) struct tensor *find_around(const struct tensors *tensors,
                                                            const void *address)
{
    const struct tensor key = {.address = (void *)(uintptr_t)address, .bytes = 1};
    struct tensor *const *found = tfind(&key, &tensors->tree, compare);

    return found != NULL ? *found : NULL;
}

struct tensor *tensors_find(const struct tensors *tensors, const void *address)
{
    const struct tensor_slot *slot;

    if (address == NULL || tensors->capacity == 0) {
        return NULL;
    }
    slot = &tensors->slots[slot_of(tensors, address)];
    return slot->tensor != NULL && !slot->is_removed ? slot->tensor : find_around(tensors, address);
}

struct visit {
    void (*visit)(struct tensor *tensor, void *data);
    void *data;
};

static void visit_node(const void *node, VISIT which, void *closure)
{
    const struct visit *visit = closure;

    if (which == postorder || which == leaf) {
        visit->visit(*(struct tensor *const *)node, visit->data);
    }
}

void tensors_each(const struct tensors *tensors, void (*visit)(struct tensor *tensor, void *data),
                  void *data)
{
    struct visit closure = {.visit = visit, .data = data};

    twalk_r(tensors->tree, visit_node, &closure);
}

struct tensor *tensors_any(const struct tensors *tensors)
{
    /* A node of tsearch begins with the pointer to its element. */
    return tensors->tree != NULL ? *(struct tensor *const *)tensors->tree : NULL;
}

bool tensors_was_freed(const struct tensors *tensors, const void *address)
{
    const struct tensor_slot *slot;

    if (address == NULL || tensors->capacity == 0) {
        return false;
    }
    slot = &tensors->slots[slot_of(tensors, address)];
    return slot->is_removed;
}

const char *tensors_freed_name(const struct tensors *tensors, const void *address)
{
    return tensors_was_freed(tensors, address)
               ? tensors->slots[slot_of(tensors, address)].removed_name
               : NULL;
}

static void keep(void *node)
{
    (void)node;
}

void tensors_finish(struct tensors *tensors)
{
    tdestroy(tensors->tree, keep);
    free(tensors->slots);
    *tensors = (struct tensors){0};
}

static struct tensor_link *link_of(struct tensor *tensor, size_t link_offset)
{
    return (struct tensor_link *)(void *)((unsigned char *)tensor + link_offset);
}

void tensor_list_append(struct tensor_list *list, struct tensor *tensor, size_t link_offset)
{
    struct tensor_link *link = link_of(tensor, link_offset);

    link->list = list;
    link->previous = list->tail;
    link->next = NULL;
    if (list->tail != NULL) {
        link_of(list->tail, link_offset)->next = tensor;
    } else {
        list->head = tensor;
    }
    list->tail = tensor;
    list->count++;
}

void tensor_list_remove(struct tensor *tensor, size_t link_offset)
{
    struct tensor_link *link = link_of(tensor, link_offset);
    struct tensor_list *list = link->list;

    if (list == NULL) {
        return;
    }
    if (link->previous != NULL) {
        link_of(link->previous, link_offset)->next = link->next;
    } else {
        list->head = link->next;
    }
    if (link->next != NULL) {
        link_of(link->next, link_offset)->previous = link->previous;
    } else {
        list->tail = link->previous;
    }
    list->count--;
    link->list = NULL;
}

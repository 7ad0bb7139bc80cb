/*
 * Finding tensors by address, and the lists that hold them: see tensors.h.
 *
 * Operands nearly always name the start of a tensor, and that must be fast: a hash table of start
 * addresses answers it. An address inside a tensor is found in a balanced tree (tsearch), which
 * takes long with many tensors; programs name the same addresses in every iteration, so a cache
 * remembers where the tensor started. It is a hint: the table says whether that tensor still is
 * there. The table never forgets an address, so that a double free or a use after free can be
 * reported with the name of the tensor.
 */
#define _GNU_SOURCE /* twalk_r */

#include "runtime/tensor/tensors.h"

#include "base/assert.h"

#include <search.h>
#include <stddef.h>
#include <stdlib.h>

enum { FIRST_CAPACITY = 256 };

/* A start address that is or was in use. Small, so that no slot crosses cache lines. */
struct tensor_slot {
    const void *address;   /* NULL: empty */
    struct tensor *tensor; /* NULL: it was removed */
};

/* What a slot was before its tensor was removed. */
struct tensor_removed {
    bool is_removed;
    struct tensor *tensor; /* until it is forgotten; then NULL */
    const char *name;      /* its name, interned; NULL: it had none */
};

/* Addresses are multiples of 256, and of large ones of the device's page; Fibonacci hashing spreads
   them over the highest bits. */
static size_t home_of(const struct tensors *tensors, const void *address)
{
    return (size_t)(((uint64_t)(uintptr_t)address * 11400714819323198485u) >>
                    (__builtin_clzll(tensors->capacity) + 1));
}

static size_t slot_of(const struct tensors *tensors, const void *address)
{
    size_t mask = tensors->capacity - 1;
    size_t slot = home_of(tensors, address);

    while (tensors->slots[slot].address != NULL && tensors->slots[slot].address != address) {
        slot = (slot + 1) & mask;
    }
    return slot;
}

static void free_tables(struct tensors *tensors)
{
    free(tensors->slots);
    free(tensors->removed);
    free(tensors->inside);
}

/* Doubles the table. Keeps the addresses of removed tensors, so that a double free can be named. */
static capu_status grow(struct tensors *tensors)
{
    struct tensors larger = *tensors;

    larger.capacity = tensors->capacity == 0 ? FIRST_CAPACITY : tensors->capacity * 2;
    larger.slots = calloc(larger.capacity, sizeof(*larger.slots));
    larger.removed = calloc(larger.capacity, sizeof(*larger.removed));
    larger.inside = calloc(larger.capacity, sizeof(*larger.inside)); /* it fills again */
    if (larger.slots == NULL || larger.removed == NULL || larger.inside == NULL) {
        free_tables(&larger);
        return CAPU_NO_HOST_MEMORY;
    }
    for (size_t i = 0; i < tensors->capacity; i++) {
        if (tensors->slots[i].address != NULL) {
            size_t slot = slot_of(&larger, tensors->slots[i].address);

            larger.slots[slot] = tensors->slots[i];
            larger.removed[slot] = tensors->removed[i];
        }
    }
    free_tables(tensors);
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
    size_t slot;

    if (tensors->count * 2 >= tensors->capacity) {
        capu_status status = grow(tensors);

        if (status != CAPU_OK) {
            return status;
        }
    }
    if (tsearch(tensor, &tensors->tree, compare) == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    slot = slot_of(tensors, tensor->address);
    if (tensors->slots[slot].address == NULL) {
        tensors->slots[slot].address = tensor->address;
        tensors->count++;
    }
    tensors->slots[slot].tensor = tensor;
    tensors->removed[slot] = (struct tensor_removed){0};
    tensors->live_count++;
    return CAPU_OK;
}

void tensors_remove(struct tensors *tensors, struct tensor *tensor)
{
    size_t slot = slot_of(tensors, tensor->address);

    tensors->slots[slot].tensor = NULL;
    tensors->removed[slot] =
        (struct tensor_removed){.is_removed = true, .tensor = tensor, .name = tensor->name};
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

/* What was at a start address before; NULL: no tensor ever, or it is still there. */
static struct tensor_removed *find_removed(const struct tensors *tensors, const void *address)
{
    struct tensor_removed *removed;

    if (address == NULL || tensors->capacity == 0) {
        return NULL;
    }
    removed = &tensors->removed[slot_of(tensors, address)];
    return removed->is_removed ? removed : NULL;
}

void tensors_forget(struct tensors *tensors, const struct tensor *tensor)
{
    struct tensor_removed *removed = find_removed(tensors, tensor->address);

    if (removed != NULL && removed->tensor == tensor) {
        removed->tensor = NULL;
    }
}

struct tensor *tensors_find_freed(const struct tensors *tensors, const void *address)
{
    const struct tensor_removed *removed = find_removed(tensors, address);

    return removed != NULL ? removed->tensor : NULL;
}

/* The tensor that starts at an address; NULL: none does now. */
static struct tensor *find_start(const struct tensors *tensors, const void *start)
{
    return tensors->slots[slot_of(tensors, start)].tensor;
}

/* The tensor that contains an address which is not the start of one. Not inlined, so that the
   common path of tensors_find does not spend time on clearing the key. */
static __attribute__((noinline)) struct tensor *find_around(const struct tensors *tensors,
                                                            const void *address)
{
    const struct tensor key = {.address = (void *)(uintptr_t)address, .bytes = 1};
    struct tensor_inside *inside = &tensors->inside[home_of(tensors, address)];
    struct tensor *const *found;

    if (inside->address == address) {
        struct tensor *tensor = find_start(tensors, inside->start);

        if (tensor != NULL && (const unsigned char *)address < tensor_end(tensor)) {
            return tensor;
        }
    }
    found = tfind(&key, &tensors->tree, compare);
    if (found == NULL) {
        return NULL;
    }
    *inside = (struct tensor_inside){.address = address, .start = (*found)->address};
    return *found;
}

struct tensor *tensors_find(const struct tensors *tensors, const void *address)
{
    struct tensor *tensor;

    if (address == NULL || tensors->capacity == 0) {
        return NULL;
    }
    tensor = find_start(tensors, address);
    return tensor != NULL ? tensor : find_around(tensors, address);
}

void tensors_expect(const struct tensors *tensors, const void *address)
{
    if (tensors->capacity > 0) {
        __builtin_prefetch(&tensors->slots[home_of(tensors, address)]);
    }
}

void tensors_expect_inside(const struct tensors *tensors, const void *address)
{
    if (tensors->capacity > 0 && find_start(tensors, address) == NULL) {
        __builtin_prefetch(&tensors->inside[home_of(tensors, address)]);
    }
}

void tensors_fetch(const struct tensors *tensors, const void *start)
{
    const struct tensor *tensor = tensors->capacity > 0 ? find_start(tensors, start) : NULL;

    for (size_t offset = 0; tensor != NULL && offset < offsetof(struct tensor, residency);
         offset += CACHE_LINE_BYTES) {
        __builtin_prefetch((const unsigned char *)tensor + offset);
    }
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
    return find_removed(tensors, address) != NULL;
}

const char *tensors_freed_name(const struct tensors *tensors, const void *address)
{
    const struct tensor_removed *removed = find_removed(tensors, address);

    return removed != NULL ? removed->name : NULL;
}

static void keep(void *node)
{
    (void)node;
}

void tensors_finish(struct tensors *tensors)
{
    tdestroy(tensors->tree, keep);
    free_tables(tensors);
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

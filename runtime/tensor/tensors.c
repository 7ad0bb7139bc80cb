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

/* What started at an address before its tensor was removed. */
struct tensor_removed {
    bool is_removed;
    struct tensor *tensor; /* until it is forgotten; then NULL */
    const char *name;      /* its name, interned; NULL: it had none */
};

static void free_tables(struct tensors *tensors)
{
    table_finish(&tensors->starts);
    free(tensors->removed);
    free(tensors->inside);
}

/* Makes room for another start. Keeps those of removed tensors, so that a double free can be named.
 */
static capu_status reserve_start(struct tensors *tensors)
{
    const struct table *starts = &tensors->starts;
    struct tensors larger = *tensors;

    if (starts->count < starts->capacity / 2) {
        return CAPU_OK;
    }
    larger.starts = (struct table){0};
    larger.removed = NULL;
    larger.inside = NULL;
    if (table_reserve(&larger.starts, starts->count + 1)) {
        larger.removed = calloc(larger.starts.capacity, sizeof(*larger.removed));
        larger.inside = calloc(larger.starts.capacity, sizeof(*larger.inside)); /* it fills again */
    }
    if (larger.removed == NULL || larger.inside == NULL) {
        free_tables(&larger);
        return CAPU_NO_HOST_MEMORY;
    }
    for (size_t i = 0; i < starts->capacity; i++) {
        struct table_entry entry = starts->entries[i];

        if (entry.key != TABLE_NO_KEY) {
            larger.removed[table_put(&larger.starts, entry.key, entry.value)] = tensors->removed[i];
        }
    }
    free_tables(tensors);
    *tensors = larger;
    return CAPU_OK;
}

/* Where its start is among all starts; TABLE_NONE: nothing has ever started there. */
static size_t index_of(const struct tensors *tensors, const struct tensor *tensor)
{
    return table_index(&tensors->starts, (uintptr_t)tensor->address);
}

static void set_start(struct tensors *tensors, size_t at, struct tensor *tensor)
{
    tensors->starts.entries[at].value = (uintptr_t)tensor;
}

/* Orders tensors by address. Tensors that overlap compare equal, so a key of one byte finds the
   tensor that contains it. */
static int compare_addresses(const void *left, const void *right)
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
    capu_status status = reserve_start(tensors);
    size_t at;

    if (status != CAPU_OK) {
        return status;
    }
    if (tsearch(tensor, &tensors->tree, compare_addresses) == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    at = index_of(tensors, tensor);
    if (at == TABLE_NONE) {
        at = table_put(&tensors->starts, (uintptr_t)tensor->address, 0);
    }
    set_start(tensors, at, tensor);
    tensors->removed[at] = (struct tensor_removed){0};
    tensors->live_count++;
    return CAPU_OK;
}

void tensors_remove(struct tensors *tensors, struct tensor *tensor)
{
    size_t at = index_of(tensors, tensor);

    set_start(tensors, at, NULL);
    tensors->removed[at] =
        (struct tensor_removed){.is_removed = true, .tensor = tensor, .name = tensor->name};
    tdelete(tensor, &tensors->tree, compare_addresses);
    tensors->live_count--;
}

void tensors_replace(struct tensors *tensors, struct tensor *old, struct tensor *tensor)
{
    struct tensor **node = tfind(old, &tensors->tree, compare_addresses);

    ASSERT(old->address == tensor->address);
    *node = tensor;
    set_start(tensors, index_of(tensors, old), tensor);
}

/* What was at a start address before; NULL: no tensor ever, or it is still there. */
static struct tensor_removed *find_removed(const struct tensors *tensors, const void *address)
{
    size_t at = table_index(&tensors->starts, (uintptr_t)address);

    return at != TABLE_NONE && tensors->removed[at].is_removed ? &tensors->removed[at] : NULL;
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
    uint64_t value = 0;

    (void)table_get(&tensors->starts, (uintptr_t)start, &value);
    return (struct tensor *)(uintptr_t)value;
}

static struct tensor_inside *inside_of(const struct tensors *tensors, const void *address)
{
    return &tensors->inside[hash_place((uintptr_t)address, tensors->starts.bits)];
}

/* The tensor that contains an address which is not the start of one. Not inlined, so that the
   common path of tensors_find does not spend time on clearing the key. */
static __attribute__((noinline)) struct tensor *find_around(const struct tensors *tensors,
                                                            const void *address)
{
    const struct tensor key = {.address = (void *)(uintptr_t)address, .bytes = 1};
    struct tensor_inside *inside = inside_of(tensors, address);
    struct tensor *const *found;

    if (inside->address == address) {
        struct tensor *tensor = find_start(tensors, inside->start);

        if (tensor != NULL && (const unsigned char *)address < tensor_end(tensor)) {
            return tensor;
        }
    }
    found = tfind(&key, &tensors->tree, compare_addresses);
    if (found == NULL) {
        return NULL;
    }
    *inside = (struct tensor_inside){.address = address, .start = (*found)->address};
    return *found;
}

struct tensor *tensors_find(const struct tensors *tensors, const void *address)
{
    struct tensor *tensor = find_start(tensors, address);

    if (tensor != NULL || address == NULL || tensors->live_count == 0) {
        return tensor;
    }
    return find_around(tensors, address);
}

void tensors_expect(const struct tensors *tensors, const void *address)
{
    __builtin_prefetch(table_home(&tensors->starts, (uintptr_t)address));
}

void tensors_expect_inside(const struct tensors *tensors, const void *address)
{
    if (tensors->live_count > 0 && find_start(tensors, address) == NULL) {
        __builtin_prefetch(inside_of(tensors, address));
    }
}

void tensors_fetch(const struct tensors *tensors, const void *start)
{
    const struct tensor *tensor = find_start(tensors, start);

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

static void keep_tensor(void *node)
{
    (void)node;
}

void tensors_finish(struct tensors *tensors)
{
    tdestroy(tensors->tree, keep_tensor);
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

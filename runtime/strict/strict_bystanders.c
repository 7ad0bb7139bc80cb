/* Bystanders, see strict.h. */
#include "runtime/strict/strict.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

#define FEW_WORDS 64 /* in an output of so few, one word that comes from a bystander is enough */

/* The part of a tensor that lies in one shared page. */
struct bystander {
    struct tensor *tensor;
    const unsigned char *address;
    uint64_t bytes;
    unsigned char *memory; /* the device's, as the library sees it */
    size_t saved;          /* where its contents are in `saved` */
};

struct bystanders {
    struct bystander *list;
    size_t count;
    size_t capacity;
    const unsigned char **pages; /* that were searched */
    size_t page_count;
    size_t page_capacity;
    unsigned char *saved;
    size_t saved_bytes;
    size_t saved_capacity;
    uint64_t number; /* the pattern of the first; the others have the next lower numbers */
};

void strict_bystanders_destroy(struct bystanders *bystanders)
{
    if (bystanders != NULL) {
        free(bystanders->list);
        free(bystanders->pages);
        free(bystanders->saved);
        free(bystanders);
    }
}

static bool is_named(const struct op *op, const struct tensor *tensor)
{
    return tensor->in_op.stamp == op->stamp;
}

static bool add_bystander(struct strict *strict, struct tensor *tensor, const unsigned char *start,
                          const unsigned char *end)
{
    struct bystanders *bystanders = strict->bystanders;
    struct bystander bystander = {.tensor = tensor, .address = start};
    uint64_t bytes = (uint64_t)(end - start);

    bystander.bytes = bytes;
    bystander.memory = device_view(strict->lanes->device, start, &bytes);
    bystander.saved = bystanders->saved_bytes;
    if (bystander.memory == NULL) {
        return true; /* nothing is there that could be touched */
    }
    if (!array_reserve(&bystanders->list, &bystanders->capacity, bystanders->count + 1,
                       sizeof(bystander)) ||
        !array_reserve(&bystanders->saved, &bystanders->saved_capacity,
                       bystanders->saved_bytes + bystander.bytes, 1)) {
        return false;
    }
    bystanders->list[bystanders->count++] = bystander;
    bystanders->saved_bytes += bystander.bytes;
    return true;
}

/* Adds the tensors of a page that the op does not name. `tensor` is one of the page. */
static bool add_page(struct strict *strict, const struct op *op, struct tensor *tensor,
                     const unsigned char *page)
{
    struct bystanders *bystanders = strict->bystanders;
    const unsigned char *page_end = page + strict->settings->config.page_bytes;

    for (size_t i = 0; i < bystanders->page_count; i++) {
        if (bystanders->pages[i] == page) {
            return true;
        }
    }
    if (!array_reserve(&bystanders->pages, &bystanders->page_capacity, bystanders->page_count + 1,
                       sizeof(*bystanders->pages))) {
        return false;
    }
    bystanders->pages[bystanders->page_count++] = page;
    while (tensor->previous != NULL && tensor_end(tensor->previous) > page) {
        tensor = tensor->previous;
    }
    for (; tensor != NULL && (const unsigned char *)tensor->address < page_end;
         tensor = tensor->next) {
        const unsigned char *start = tensor->address;
        const unsigned char *end = tensor_end(tensor);

        if (!is_named(op, tensor) && !add_bystander(strict, tensor, start > page ? start : page,
                                                    end < page_end ? end : page_end)) {
            return false;
        }
    }
    return true;
}

static bool add_pages_of(struct strict *strict, const struct op *op, struct tensor *tensor)
{
    uintptr_t mask = ~(uintptr_t)(strict->settings->config.page_bytes - 1);
    uintptr_t first = (uintptr_t)tensor->address & mask;
    uintptr_t last = ((uintptr_t)tensor_end(tensor) - 1) & mask;

    if (tensor->allocation->first->next == NULL) {
        return true; /* never split */
    }
    return add_page(strict, op, tensor, (const unsigned char *)first) &&
           add_page(strict, op, tensor, (const unsigned char *)last);
}

static bool is_listed(const struct bystanders *bystanders, const struct tensor *tensor)
{
    for (size_t i = 0; i < bystanders->count; i++) {
        if (bystanders->list[i].tensor == tensor) {
            return true;
        }
    }
    return false;
}

/* Adds the tensors of a small allocation. Pre: those that are split from operands are added. */
static bool add_small(struct strict *strict, const struct op *op, const void *address)
{
    struct tensor *tensor =
        address != NULL ? tensors_find(&strict->memory->tensors, address) : NULL;

    for (; tensor != NULL; tensor = tensor->next) {
        if (!is_named(op, tensor) && !is_listed(strict->bystanders, tensor) &&
            !add_bystander(strict, tensor, tensor->address, tensor_end(tensor))) {
            return false;
        }
    }
    return true;
}

/* Adds what lies before and after a small allocation in its page. */
static bool add_neighbours(struct strict *strict, const struct op *op, const struct tensor *tensor)
{
    const void *address = tensor->allocation->address;

    return tensor->allocation->page_count > 0 ||
           (add_small(strict, op, slabs_beside(strict->memory->slabs, address, false)) &&
            add_small(strict, op, slabs_beside(strict->memory->slabs, address, true)));
}

/* Adds all bystanders of the op at hand. */
static bool add_bystanders(struct strict *strict, const struct op *op)
{
    bool is_complete = true;

    for (size_t i = 0; i < op->access_count && is_complete; i++) {
        is_complete = add_pages_of(strict, op, op->accesses[i].tensor);
    }
    for (size_t i = 0; i < op->access_count && is_complete; i++) {
        is_complete = add_neighbours(strict, op, op->accesses[i].tensor);
    }
    return is_complete;
}

static struct poison poison_at(const struct bystanders *bystanders, size_t index)
{
    return poison_of(bystanders->number - index);
}

capu_status strict_bystanders_hide(struct strict *strict, const struct op *op)
{
    struct bystanders *bystanders = strict->bystanders;

    if (bystanders == NULL) {
        bystanders = calloc(1, sizeof(*bystanders));
        if (bystanders == NULL) {
            return CAPU_NO_HOST_MEMORY;
        }
        strict->bystanders = bystanders;
    }
    bystanders->count = 0;
    bystanders->page_count = 0;
    bystanders->saved_bytes = 0;
    if (!add_bystanders(strict, op)) {
        bystanders->count = 0;
        return CAPU_NO_HOST_MEMORY;
    }
    strict->poison_last += bystanders->count;
    bystanders->number = strict->poison_last;
    for (size_t i = 0; i < bystanders->count; i++) {
        const struct bystander *bystander = &bystanders->list[i];
        const struct poison poison = poison_at(bystanders, i);

        memcpy(bystanders->saved + bystander->saved, bystander->memory, bystander->bytes);
        poison_fill(&poison, bystander->memory, bystander->address, bystander->bytes);
    }
    return CAPU_OK;
}

bool strict_bystanders_any(const struct strict *strict)
{
    return strict->bystanders != NULL && strict->bystanders->count > 0;
}

/* Compares with the pattern at the start, and the rest with itself, since the pattern repeats. */
static bool is_unchanged(const struct bystander *bystander, const struct poison *poison)
{
    unsigned char start[sizeof(poison->words)];
    size_t first = bystander->bytes < sizeof(start) ? (size_t)bystander->bytes : sizeof(start);

    poison_fill(poison, start, bystander->address, first);
    return memcmp(bystander->memory, start, first) == 0 &&
           memcmp(bystander->memory, bystander->memory + first, bystander->bytes - first) == 0;
}

const void *strict_bystanders_written(const struct strict *strict)
{
    const struct bystanders *bystanders = strict->bystanders;

    for (size_t i = 0; i < bystanders->count; i++) {
        const struct bystander *bystander = &bystanders->list[i];
        const struct poison poison = poison_at(bystanders, i);

        if (is_unchanged(bystander, &poison)) {
            continue;
        }
        for (uint64_t at = 0; at < bystander->bytes; at++) {
            uintptr_t phase = (uintptr_t)(bystander->address + at) % sizeof(poison.words);

            if (bystander->memory[at] != ((const unsigned char *)poison.words)[phase]) {
                return bystander->address + at;
            }
        }
    }
    return NULL;
}

void strict_bystanders_show(struct strict *strict)
{
    const struct bystanders *bystanders = strict->bystanders;

    for (size_t i = 0; i < bystanders->count; i++) {
        const struct bystander *bystander = &bystanders->list[i];

        memcpy(bystander->memory, bystanders->saved + bystander->saved, bystander->bytes);
    }
}

/* The first bystander of which a word is in the tensor; SIZE_MAX: none. */
static uint64_t find_any(const struct strict *strict, const struct tensor *tensor)
{
    const struct bystanders *bystanders = strict->bystanders;
    uint64_t here;

    for (uint64_t done = 0; done < tensor->bytes; done += here) {
        const unsigned char *memory;

        here = tensor->bytes - done;
        memory = device_view(strict->lanes->device, (const char *)tensor->address + done, &here);
        for (uint64_t at = 0; memory != NULL && at + sizeof(uint32_t) <= here;
             at += sizeof(uint32_t)) {
            uint64_t index;
            uint32_t word;

            memcpy(&word, memory + at, sizeof(word));
            if (poison_is_from(word, bystanders->number, bystanders->count, &index)) {
                return index;
            }
        }
    }
    return UINT64_MAX;
}

/* Random words can look like one of many bystanders, but hardly twice like the same. */
static bool is_in(const struct strict *strict, size_t index, const struct tensor *tensor)
{
    const struct poison poison = poison_at(strict->bystanders, index);
    struct poison_found found = {0};

    strict_find_results(strict, &poison, false, tensor, &found);
    return found.words >= 2 || (found.words == 1 && found.scanned <= FEW_WORDS);
}

struct tensor *strict_bystanders_read(const struct strict *strict, const struct op *op)
{
    const struct bystanders *bystanders = strict->bystanders;

    for (size_t i = 0; bystanders->count > 0 && i < op->access_count; i++) {
        const struct access *access = &op->accesses[i];
        uint64_t index = access->role != CAPU_READ ? find_any(strict, access->tensor) : UINT64_MAX;

        if (index < bystanders->count && is_in(strict, (size_t)index, access->tensor)) {
            return bystanders->list[index].tensor;
        }
    }
    return NULL;
}

/* Addresses by allocation order, see address_memo.h. */
#include "runtime/address_memo.h"

#include <stdlib.h>

void address_memo_finish(struct address_memo *memo)
{
    for (size_t i = 0; i < ADDRESS_MEMO_LABELS; i++) {
        free(memo->lists[i].places);
    }
    *memo = (struct address_memo){0};
}

void address_memo_begin(struct address_memo *memo, const char *label, uint64_t iteration)
{
    struct address_memo_list *oldest = &memo->lists[0];

    memo->next = 0;
    for (size_t i = 0; i < ADDRESS_MEMO_LABELS; i++) {
        struct address_memo_list *list = &memo->lists[i];

        if (list->label == label) {
            oldest = list;
            break;
        }
        if (list->used < oldest->used) {
            oldest = list;
        }
    }
    if (oldest->label != label) {
        oldest->label = label;
        oldest->count = 0;
    }
    oldest->used = iteration;
    memo->open = oldest;
}

void address_memo_end(struct address_memo *memo)
{
    memo->open = NULL;
}

/* The entry of that size, or the one that makes way for it. */
static struct address_memo_entry *find_entry(struct address_memo_place *place, uint64_t bytes)
{
    size_t i = 0;

    while (i + 1 < ADDRESS_MEMO_SIZES && place->entries[i].bytes != bytes) {
        i++;
    }
    return &place->entries[i];
}

void *address_memo_propose(const struct address_memo *memo, uint64_t bytes)
{
    const struct address_memo_list *list = memo->open;
    const struct address_memo_entry *entry;

    if (list == NULL || memo->next >= list->count) {
        return NULL;
    }
    entry = find_entry(&list->places[memo->next], bytes);
    return entry->bytes == bytes ? entry->address : NULL;
}

capu_status address_memo_note(struct address_memo *memo, void *address, uint64_t bytes)
{
    struct address_memo_list *list = memo->open;
    struct address_memo_entry *newest;

    if (list == NULL) {
        return CAPU_OK;
    }
    if (memo->next == list->capacity) {
        size_t capacity = list->capacity == 0 ? 64 : list->capacity * 2;
        struct address_memo_place *places = realloc(list->places, capacity * sizeof(*places));

        if (places == NULL) {
            return CAPU_NO_HOST_MEMORY;
        }
        list->places = places;
        list->capacity = capacity;
    }
    if (memo->next == list->count) {
        list->places[list->count++] = (struct address_memo_place){0};
    }
    newest = list->places[memo->next++].entries;
    for (struct address_memo_entry *at = find_entry(list->places + memo->next - 1, bytes);
         at > newest; at--) {
        *at = at[-1];
    }
    *newest = (struct address_memo_entry){.address = address, .bytes = bytes};
    return CAPU_OK;
}

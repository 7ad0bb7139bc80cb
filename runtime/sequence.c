/* Addresses by allocation order, see sequence.h. */
#include "runtime/sequence.h"

#include <stdlib.h>

void sequence_finish(struct sequence *sequence)
{
    for (size_t i = 0; i < SEQUENCE_LABELS; i++) {
        free(sequence->lists[i].places);
    }
    *sequence = (struct sequence){0};
}

void sequence_begin(struct sequence *sequence, const char *label, uint64_t iteration)
{
    struct sequence_list *oldest = &sequence->lists[0];

    sequence->next = 0;
    for (size_t i = 0; i < SEQUENCE_LABELS; i++) {
        struct sequence_list *list = &sequence->lists[i];

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
    sequence->open = oldest;
}

void sequence_end(struct sequence *sequence)
{
    sequence->open = NULL;
}

/* The entry of that size, or the one that makes way for it. */
static struct sequence_entry *find_entry(struct sequence_place *place, uint64_t bytes)
{
    size_t i = 0;

    while (i + 1 < SEQUENCE_SIZES && place->entries[i].bytes != bytes) {
        i++;
    }
    return &place->entries[i];
}

void *sequence_propose(const struct sequence *sequence, uint64_t bytes)
{
    const struct sequence_list *list = sequence->open;
    const struct sequence_entry *entry;

    if (list == NULL || sequence->next >= list->count) {
        return NULL;
    }
    entry = find_entry(&list->places[sequence->next], bytes);
    return entry->bytes == bytes ? entry->address : NULL;
}

capu_status sequence_note(struct sequence *sequence, void *address, uint64_t bytes)
{
    struct sequence_list *list = sequence->open;
    struct sequence_entry *newest;

    if (list == NULL) {
        return CAPU_OK;
    }
    if (sequence->next == list->capacity) {
        size_t capacity = list->capacity == 0 ? 64 : list->capacity * 2;
        struct sequence_place *places = realloc(list->places, capacity * sizeof(*places));

        if (places == NULL) {
            return CAPU_NO_HOST_MEMORY;
        }
        list->places = places;
        list->capacity = capacity;
    }
    if (sequence->next == list->count) {
        list->places[list->count++] = (struct sequence_place){0};
    }
    newest = list->places[sequence->next++].entries;
    for (struct sequence_entry *at = find_entry(list->places + sequence->next - 1, bytes);
         at > newest; at--) {
        *at = at[-1];
    }
    *newest = (struct sequence_entry){.address = address, .bytes = bytes};
    return CAPU_OK;
}

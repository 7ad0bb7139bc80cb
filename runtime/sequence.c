/* Addresses by allocation order, see sequence.h. */
#include "runtime/sequence.h"

#include <stdlib.h>

void sequence_finish(struct sequence *sequence)
{
    for (size_t i = 0; i < SEQUENCE_LABELS; i++) {
        free(sequence->lists[i].entries);
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

void *sequence_propose(const struct sequence *sequence, uint64_t bytes)
{
    const struct sequence_list *list = sequence->open;

    if (list == NULL || sequence->next >= list->count ||
        list->entries[sequence->next].bytes != bytes) {
        return NULL;
    }
    return list->entries[sequence->next].address;
}

capu_status sequence_note(struct sequence *sequence, void *address, uint64_t bytes)
{
    struct sequence_list *list = sequence->open;

    if (list == NULL) {
        return CAPU_OK;
    }
    if (sequence->next == list->capacity) {
        size_t capacity = list->capacity == 0 ? 64 : list->capacity * 2;
        struct sequence_entry *entries = realloc(list->entries, capacity * sizeof(*entries));

        if (entries == NULL) {
            return CAPU_NO_HOST_MEMORY;
        }
        list->entries = entries;
        list->capacity = capacity;
    }
    list->entries[sequence->next] = (struct sequence_entry){.address = address, .bytes = bytes};
    sequence->next++;
    if (list->count < sequence->next) {
        list->count = sequence->next;
    }
    return CAPU_OK;
}

/* Addresses by allocation order, see address_memo.h. */
#include "runtime/plan/address_memo.h"

#include "base/array.h"

#include <stdlib.h>

void address_memo_finish(struct address_memo *memo)
{
    free(memo->places);
    *memo = (struct address_memo){0};
}

void address_memo_begin(struct address_memo *memo)
{
    memo->next = 0;
}

/* The entry of that size, or the one to be replaced by it. */
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
    const struct address_memo_entry *entry;

    if (memo->next >= memo->count) {
        return NULL;
    }
    entry = find_entry(&memo->places[memo->next], bytes);
    return entry->bytes == bytes ? entry->address : NULL;
}

capu_status address_memo_note(struct address_memo *memo, void *address, uint64_t bytes)
{
    struct address_memo_entry *newest;

    if (!array_reserve(&memo->places, &memo->capacity, memo->next + 1, sizeof(*memo->places))) {
        return CAPU_NO_HOST_MEMORY;
    }
    if (memo->next == memo->count) {
        memo->places[memo->count++] = (struct address_memo_place){0};
    }
    newest = memo->places[memo->next++].entries;
    for (struct address_memo_entry *at = find_entry(memo->places + memo->next - 1, bytes);
         at > newest; at--) {
        *at = at[-1];
    }
    *newest = (struct address_memo_entry){.address = address, .bytes = bytes};
    return CAPU_OK;
}

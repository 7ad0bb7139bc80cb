/*
 * Table: a hash table from one number to another.
 *
 * Linear probing in a table that is at most half full. Removal shifts later entries back instead of
 * leaving markers, so that look-ups do not slow down with age. Making room is separate from
 * putting, so that callers can make it where they can still fail. Look-ups are inlined: every
 * operand of every op is one. Owned by the owner of the struct around it.
 */
#ifndef CAPU_BASE_TABLE_H
#define CAPU_BASE_TABLE_H

#include "base/hash.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TABLE_NO_KEY UINT64_MAX /* never a key */
#define TABLE_NONE SIZE_MAX     /* never an index */

struct table_entry {
    uint64_t key;
    uint64_t value;
};

/* Zeroed: empty, without room. */
struct table {
    struct table_entry *entries;
    size_t capacity; /* 2^bits, or 0 */
    size_t count;
    unsigned bits;
};

void table_finish(struct table *table);

/* Makes room for `count` keys in all. False: no host memory, nothing changed. */
bool table_reserve(struct table *table, size_t count);

/* Returns the index of the new entry. Pre: there is room, and the key is not in the table. */
size_t table_put(struct table *table, uint64_t key, uint64_t value);

/* A key that is not there is fine. */
void table_remove(struct table *table, uint64_t key);

/* The index of a key's entry, until room is made or a key removed; TABLE_NONE: it is not there. */
static inline size_t table_index(const struct table *table, uint64_t key)
{
    size_t at;

    if (table->count == 0 || key == TABLE_NO_KEY) {
        return TABLE_NONE;
    }
    at = hash_place(key, table->bits);
    while (table->entries[at].key != key) {
        if (table->entries[at].key == TABLE_NO_KEY) {
            return TABLE_NONE;
        }
        at = (at + 1) & (table->capacity - 1);
    }
    return at;
}

/* False, and *value untouched, if the key is not there. */
static inline bool table_get(const struct table *table, uint64_t key, uint64_t *value)
{
    size_t at = table_index(table, key);

    if (at == TABLE_NONE) {
        return false;
    }
    *value = table->entries[at].value;
    return true;
}

/* Where looking up a key begins, for the caller to prefetch; NULL: the table is empty. An inline
   function that prefetched would seem to have no effect, and compilers would drop the call. */
static inline const void *table_home(const struct table *table, uint64_t key)
{
    return table->count > 0 ? &table->entries[hash_place(key, table->bits)] : NULL;
}

#endif

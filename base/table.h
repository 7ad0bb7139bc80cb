/*
 * Table: a hash table from one number to another.
 *
 * Linear probing in a table that is at most half full. Removal shifts later entries back instead of
 * leaving markers, so that look-ups do not slow down with age. Making room is separate from
 * putting, so that callers can make it where they can still fail. Owned by the owner of the struct
 * around it.
 */
#ifndef CAPU_BASE_TABLE_H
#define CAPU_BASE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TABLE_NO_KEY UINT64_MAX /* never a key */

struct table_entry {
    uint64_t key;
    uint64_t value;
};

/* Zeroed: empty, without room. */
struct table {
    struct table_entry *entries;
    size_t capacity; /* a power of two, or 0 */
    size_t count;
    unsigned shift; /* 64 - log2(capacity) */
};

void table_finish(struct table *table);

/* Makes room for `count` keys in all. False: no host memory, nothing changed. */
bool table_reserve(struct table *table, size_t count);

/* Pre: there is room, and the key is not in the table. */
void table_put(struct table *table, uint64_t key, uint64_t value);

/* False, and *value untouched, if the key is not there. */
bool table_get(const struct table *table, uint64_t key, uint64_t *value);

/* A key that is not there is fine. */
void table_remove(struct table *table, uint64_t key);

#endif

/*
 * Table: see table.h.
 */
#include "base/table.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY ((size_t)64)

/* Multiplying by 2^64 / golden ratio spreads keys that differ in a few middle bits, as addresses
   do, over the top bits. */
static size_t home_of(const struct table *table, uint64_t key)
{
    return (size_t)((key * UINT64_C(0x9E3779B97F4A7C15)) >> table->shift);
}

static void place(struct table *table, struct table_entry entry)
{
    size_t at = home_of(table, entry.key);

    while (table->entries[at].key != TABLE_NO_KEY) {
        at = (at + 1) & (table->capacity - 1);
    }
    table->entries[at] = entry;
}

void table_finish(struct table *table)
{
    free(table->entries);
    memset(table, 0, sizeof(*table));
}

bool table_reserve(struct table *table, size_t count)
{
    struct table larger = {.capacity = FIRST_CAPACITY, .count = table->count};

    if (count <= table->capacity / 2) {
        return true;
    }
    if (count > SIZE_MAX / 4 / sizeof(*larger.entries)) {
        return false;
    }
    while (larger.capacity / 2 < count) {
        larger.capacity *= 2;
    }
    larger.shift = (unsigned)__builtin_clzll(larger.capacity) + 1;
    larger.entries = malloc(larger.capacity * sizeof(*larger.entries));
    if (larger.entries == NULL) {
        return false;
    }
    for (size_t i = 0; i < larger.capacity; i++) {
        larger.entries[i].key = TABLE_NO_KEY;
    }
    for (size_t i = 0; i < table->capacity; i++) {
        if (table->entries[i].key != TABLE_NO_KEY) {
            place(&larger, table->entries[i]);
        }
    }
    free(table->entries);
    *table = larger;
    return true;
}

/* Index of the key's entry; the capacity if there is none. */
static size_t entry_of(const struct table *table, uint64_t key)
{
    size_t at;

    if (table->count == 0) {
        return table->capacity;
    }
    at = home_of(table, key);
    while (table->entries[at].key != key) {
        if (table->entries[at].key == TABLE_NO_KEY) {
            return table->capacity;
        }
        at = (at + 1) & (table->capacity - 1);
    }
    return at;
}

void table_put(struct table *table, uint64_t key, uint64_t value)
{
    ASSERT(key != TABLE_NO_KEY && table->count < table->capacity / 2);
    ASSERT_INTERNAL(entry_of(table, key) == table->capacity);
    place(table, (struct table_entry){.key = key, .value = value});
    table->count++;
}

bool table_get(const struct table *table, uint64_t key, uint64_t *value)
{
    size_t at = entry_of(table, key);

    if (key == TABLE_NO_KEY || at == table->capacity) {
        return false;
    }
    *value = table->entries[at].value;
    return true;
}

void table_remove(struct table *table, uint64_t key)
{
    size_t mask = table->capacity - 1;
    size_t hole = entry_of(table, key);
    size_t at = hole;

    if (key == TABLE_NO_KEY || hole == table->capacity) {
        return;
    }
    for (;;) {
        size_t home;

        at = (at + 1) & mask;
        if (table->entries[at].key == TABLE_NO_KEY) {
            break;
        }
        /* An entry may fill the hole only if the hole is not before its home. */
        home = home_of(table, table->entries[at].key);
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            table->entries[hole] = table->entries[at];
            hole = at;
        }
    }
    table->entries[hole].key = TABLE_NO_KEY;
    table->count--;
}

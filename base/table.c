/*
 * Table: see table.h.
 */
#include "base/table.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY ((size_t)64)

static size_t place_entry(struct table *table, struct table_entry entry)
{
    size_t at = hash_place(entry.key, table->bits);

    while (table->entries[at].key != TABLE_NO_KEY) {
        at = (at + 1) & (table->capacity - 1);
    }
    table->entries[at] = entry;
    return at;
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
    larger.bits = (unsigned)__builtin_ctzll(larger.capacity);
    larger.entries = malloc(larger.capacity * sizeof(*larger.entries));
    if (larger.entries == NULL) {
        return false;
    }
    for (size_t i = 0; i < larger.capacity; i++) {
        larger.entries[i].key = TABLE_NO_KEY;
    }
    for (size_t i = 0; i < table->capacity; i++) {
        if (table->entries[i].key != TABLE_NO_KEY) {
            (void)place_entry(&larger, table->entries[i]);
        }
    }
    free(table->entries);
    *table = larger;
    return true;
}

size_t table_put(struct table *table, uint64_t key, uint64_t value)
{
    ASSERT(key != TABLE_NO_KEY && table->count < table->capacity / 2);
    ASSERT_INTERNAL(table_index(table, key) == TABLE_NONE);
    table->count++;
    return place_entry(table, (struct table_entry){.key = key, .value = value});
}

void table_remove(struct table *table, uint64_t key)
{
    size_t mask = table->capacity - 1;
    size_t hole = table_index(table, key);
    size_t at = hole;

    if (hole == TABLE_NONE) {
        return;
    }
    for (;;) {
        size_t home;

        at = (at + 1) & mask;
        if (table->entries[at].key == TABLE_NO_KEY) {
            break;
        }
        /* An entry may fill the hole only if the hole is not before its home. */
        home = hash_place(table->entries[at].key, table->bits);
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            table->entries[hole] = table->entries[at];
            hole = at;
        }
    }
    table->entries[hole].key = TABLE_NO_KEY;
    table->count--;
}

/* Interned names, see names.h. */
#include "runtime/names.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 256 };

struct name_entry {
    uint64_t hash;
    size_t length;
    char text[];
};

/* FNV-1a, 64 bits. */
static uint64_t hash_of(const char *text, size_t *length)
{
    uint64_t hash = 14695981039346656037u;
    const char *at;

    for (at = text; *at != '\0'; at++) {
        hash = (hash ^ (unsigned char)*at) * 1099511628211u;
    }
    *length = (size_t)(at - text);
    return hash;
}

static size_t slot_of(const struct names *names, uint64_t hash, const char *text, size_t length)
{
    size_t slot = hash & (names->capacity - 1);

    while (names->entries[slot] != NULL) {
        const struct name_entry *entry = names->entries[slot];

        if (entry->hash == hash && entry->length == length &&
            memcmp(entry->text, text, length) == 0) {
            break;
        }
        slot = (slot + 1) & (names->capacity - 1);
    }
    return slot;
}

static int grow(struct names *names)
{
    struct names larger = {0};

    larger.capacity = names->capacity == 0 ? FIRST_CAPACITY : names->capacity * 2;
    larger.entries = calloc(larger.capacity, sizeof(struct name_entry *));
    if (larger.entries == NULL) {
        return -1;
    }
    for (size_t i = 0; i < names->capacity; i++) {
        struct name_entry *entry = names->entries[i];

        if (entry != NULL) {
            larger.entries[slot_of(&larger, entry->hash, entry->text, entry->length)] = entry;
            larger.count++;
        }
    }
    free(names->entries);
    *names = larger;
    return 0;
}

const char *names_intern(struct names *names, const char *text)
{
    struct name_entry *entry;
    uint64_t hash;
    size_t length;
    size_t slot;

    if (text == NULL) {
        return "";
    }
    if (names->count * 2 >= names->capacity && grow(names) != 0) {
        return NULL;
    }
    hash = hash_of(text, &length);
    slot = slot_of(names, hash, text, length);
    if (names->entries[slot] != NULL) {
        return names->entries[slot]->text;
    }
    entry = malloc(sizeof(*entry) + length + 1);
    if (entry == NULL) {
        return NULL;
    }
    entry->hash = hash;
    entry->length = length;
    memcpy(entry->text, text, length + 1);
    names->entries[slot] = entry;
    names->count++;
    return entry->text;
}

void names_finish(struct names *names)
{
    for (size_t i = 0; i < names->capacity; i++) {
        free(names->entries[i]);
    }
    free(names->entries);
    *names = (struct names){0};
}

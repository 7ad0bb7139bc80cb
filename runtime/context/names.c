/*
 * Interned names, see names.h.
 *
 * A hash table with open addressing; nothing is ever removed, so it needs no deletion marks. In
 * front of it is a small cache keyed by the address of the caller's text: a program names its ops
 * with string constants, so the same address returns every iteration, and comparing one string
 * replaces checking the UTF-8 and hashing.
 */
#include "runtime/context/names.h"

#include "base/utf8.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* NAME_BYTES is the limit of trace files, see TRACE_NAME_MAX. */
enum { FIRST_CAPACITY = 256, NAME_BYTES = 4096 };

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
    struct names larger = *names;

    larger.count = 0;
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

static const char *intern(struct names *names, const char *text)
{
    struct name_entry *entry;
    uint64_t hash;
    size_t length;
    size_t slot;

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

/* The length in bytes of the UTF-8 sequence at `text`; 0 if there is no valid one. */
static size_t sequence_length(const char *text)
{
    uint32_t code;

    return utf8_read(text, &code);
}

/* Whether reports and traces can hold the text as it is. */
static bool is_writable(const char *text)
{
    const char *at = text;

    while (*at != '\0') {
        size_t length = sequence_length(at);

        if (length == 0 || at + length - text > NAME_BYTES) {
            return false;
        }
        at += length;
    }
    return true;
}

/* A copy that reports and traces can hold: bytes that are not UTF-8 become '?', and the copy ends
   at NAME_BYTES. */
static char *writable_copy(const char *text)
{
    const char *at = text;
    char *copy = malloc(NAME_BYTES + 1);
    size_t used = 0;

    if (copy == NULL) {
        return NULL;
    }
    while (*at != '\0') {
        size_t length = sequence_length(at);
        size_t bytes = length > 0 ? length : 1;

        if (used + bytes > NAME_BYTES) {
            break;
        }
        memcpy(copy + used, length > 0 ? at : "?", bytes);
        used += bytes;
        at += bytes;
    }
    copy[used] = '\0';
    return copy;
}

static const char *intern_copy(struct names *names, const char *text)
{
    char *copy = writable_copy(text);
    const char *interned = copy != NULL ? intern(names, copy) : NULL;

    free(copy);
    return interned;
}

static struct recent_name *recent_of(struct names *names, const char *text)
{
    uint64_t hash = (uint64_t)(uintptr_t)text * UINT64_C(11400714819323198485);

    return &names->recent[hash >> 32 & (NAMES_RECENT - 1)];
}

const char *names_intern(struct names *names, const char *text)
{
    static const char none[] = "";
    struct recent_name *recent;

    if (text == NULL || text[0] == '\0') {
        return none;
    }
    recent = recent_of(names, text);
    /* The caller may reuse the address for another text, so compare before trusting the cache. */
    if (recent->text != text || strcmp(recent->interned, text) != 0) {
        const char *interned = is_writable(text) ? intern(names, text) : intern_copy(names, text);

        if (interned == NULL) {
            return NULL;
        }
        *recent = (struct recent_name){.text = text, .interned = interned};
    }
    return recent->interned;
}

void names_mend(char *text)
{
    while (*text != '\0') {
        size_t length = sequence_length(text);

        *text = length > 0 ? *text : '?';
        text += length > 0 ? length : 1;
    }
}

void names_finish(struct names *names)
{
    for (size_t i = 0; i < names->capacity; i++) {
        free(names->entries[i]);
    }
    free(names->entries);
    *names = (struct names){0};
}

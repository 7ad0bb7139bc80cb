/*
 * Interned names, see names.h.
 *
 * A table leads from the hash of a text to its entry; of texts with the same hash, later ones have
 * the numbers after it. In front of it is a small cache keyed by the address of the caller's text:
 * a program names its ops with string constants, so the same address returns every iteration, and
 * comparing one string replaces checking the UTF-8 and hashing.
 */
#include "runtime/context/names.h"

#include "base/hash.h"
#include "base/utf8.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* NAME_BYTES is the limit of trace files, see TRACE_NAME_MAX. */
enum { NAME_BYTES = 4096 };

struct name_entry {
    struct name_entry *next; /* of all of them */
    char text[];
};

static const char *intern_text(struct names *names, const char *text)
{
    struct name_entry *entry;
    size_t length = strlen(text);
    uint64_t key = hash_bytes(text, length);
    uint64_t value;

    for (; table_get(&names->table, key, &value); key++) {
        entry = (struct name_entry *)(uintptr_t)value;
        if (strcmp(entry->text, text) == 0) {
            return entry->text;
        }
    }
    if (!table_reserve(&names->table, names->table.count + 1)) {
        return NULL;
    }
    entry = malloc(sizeof(*entry) + length + 1);
    if (entry == NULL) {
        return NULL;
    }
    entry->next = names->newest;
    memcpy(entry->text, text, length + 1);
    names->newest = entry;
    table_put(&names->table, key, (uintptr_t)entry);
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
    const char *interned = copy != NULL ? intern_text(names, copy) : NULL;

    free(copy);
    return interned;
}

static struct recent_name *recent_of(struct names *names, const char *text)
{
    return &names->recent[hash_place((uintptr_t)text, NAMES_RECENT_BITS)];
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
        const char *interned =
            is_writable(text) ? intern_text(names, text) : intern_copy(names, text);

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
    for (struct name_entry *entry = names->newest; entry != NULL;) {
        struct name_entry *next = entry->next;

        free(entry);
        entry = next;
    }
    table_finish(&names->table);
    *names = (struct names){0};
}

/*
 * Where `capuchin top` has its figures from: the sockets of the user's running programs, as
 * docs/top.md describes them. What a socket says is not trusted: it may be anything.
 */
#ifndef CAPU_TOOLS_TOP_SOURCE_H
#define CAPU_TOOLS_TOP_SOURCE_H

#include <jansson.h>

#include <stdbool.h>
#include <stddef.h>

#include "policy/format/string_buffer.h"

/* All programs at one moment. */
struct top_snapshot {
    json_t *programs; /* an array of complete lines, by process */
    struct string_buffer
        rejected;   /* a line of text per socket that is not shown, with the reason */
    size_t removed; /* sockets of programs that have ended */
};

/* Asks every socket in a folder, or in those of the user if `folder` is NULL, and removes those of
   programs that have ended. False: out of memory, or a folder cannot be read, and an error has been
   printed. */
bool top_snapshot_take(const char *folder, struct top_snapshot *snapshot);
void top_snapshot_finish(struct top_snapshot *snapshot);

/* Whether a text is a complete line of this version; if not, `why` says what is wrong. The caller
   releases the result. */
json_t *top_line_read(const char *text, size_t length, struct string_buffer *why);

#endif

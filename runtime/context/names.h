/*
 * Names: interned strings. Equal names have the same address, so records store pointers and compare
 * them.
 *
 * A name lives as long as the context. Only the context's thread adds names. The strings never
 * change, so another thread may read one that was passed to it.
 */
#ifndef CAPU_RUNTIME_NAMES_H
#define CAPU_RUNTIME_NAMES_H

#include "base/table.h"

enum { NAMES_RECENT_BITS = 6 };

struct name_entry;

/* A text that was interned lately. */
struct recent_name {
    const char *text;     /* the caller's address */
    const char *interned; /* what the text was then */
};

struct names {
    struct table table;                                /* hash of a text to its entry */
    struct name_entry *newest;                         /* of the list of all entries */
    struct recent_name recent[1 << NAMES_RECENT_BITS]; /* by address: ops repeat their names */
};

/* Returns the interned copy of `text` ("" for NULL), made fit for reports and traces: bytes that
   are not UTF-8 are replaced, and a name longer than a trace allows is cut. NULL if host memory is
   full. */
const char *names_intern(struct names *names, const char *text);

/* Replaces, in place, the bytes of a text that are not UTF-8. Formatting into a buffer can cut a
   name inside a character. */
void names_mend(char *text);

/* Frees every name. Accepts a zeroed table. */
void names_finish(struct names *names);

#endif

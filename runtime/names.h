/*
 * Names: one copy of every string, so that records keep pointers and compare them.
 *
 * A name lives as long as the context. Written by the context's thread; the strings themselves
 * never change, so other threads may read one they were handed.
 */
#ifndef CAPU_RUNTIME_NAMES_H
#define CAPU_RUNTIME_NAMES_H

#include <stddef.h>
#include <stdint.h>

enum { NAMES_RECENT = 64 };

struct name_entry;

/* A text that was asked for, by its address, and what it was then. */
struct recent_name {
    const char *text;
    const char *interned;
};

struct names {
    struct name_entry **entries; /* open addressing; NULL is empty */
    size_t capacity;             /* a power of two */
    size_t count;
    struct recent_name recent[NAMES_RECENT]; /* by hashed address: ops repeat their names */
};

/* The one copy of `text` ("" for NULL), made fit for reports and traces: bytes that are no UTF-8
   are replaced, and what is longer than a trace allows is cut. NULL if host memory is full. */
const char *names_intern(struct names *names, const char *text);

/* Replaces bytes of a text that are no UTF-8: where formatting cut a name, for one. */
void names_mend(char *text);

/* Frees every name. A zeroed table is fine. */
void names_finish(struct names *names);

#endif

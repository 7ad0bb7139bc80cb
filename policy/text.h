/*
 * A growing string: what trace and plan writers write into. A zeroed struct is an empty one. After
 * a failed append the contents are as before.
 */
#ifndef CAPU_POLICY_TEXT_H
#define CAPU_POLICY_TEXT_H

#include <jansson.h>
#include <stddef.h>

#include "capuchin/status.h"

struct text {
    char *data; /* terminated once anything was appended; NULL before */
    size_t length;
    size_t capacity;
};

/* Errors: NO_HOST_MEMORY. */
capu_status text_append(struct text *text, const char *bytes, size_t count);
capu_status text_format(struct text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Appends a JSON value, with Jansson's flags. */
capu_status text_append_json(struct text *text, const json_t *value, size_t flags);

/* Frees the contents; the struct is empty again. */
void text_finish(struct text *text);

#endif

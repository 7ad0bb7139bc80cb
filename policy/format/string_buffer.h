/*
 * A growing string, which the writers of traces and plans append to. A zeroed struct is an empty
 * one. After a failed append the contents are as before.
 */
#ifndef CAPU_POLICY_STRING_BUFFER_H
#define CAPU_POLICY_STRING_BUFFER_H

#include <jansson.h>
#include <stddef.h>

#include "capuchin/status.h"

struct string_buffer {
    char *data; /* terminated once anything was appended; NULL before */
    size_t length;
    size_t capacity;
};

/* Errors: NO_HOST_MEMORY. */
capu_status string_buffer_append(struct string_buffer *text, const char *bytes, size_t count);
capu_status string_buffer_format(struct string_buffer *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Appends a JSON value, with Jansson's flags. */
capu_status string_buffer_append_json(struct string_buffer *text, const json_t *value,
                                      size_t flags);

/* Frees the contents; the struct is empty again. */
void string_buffer_finish(struct string_buffer *text);

#endif

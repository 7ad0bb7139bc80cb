/* A growing string. Doubles, so that n appends cost O(n). */
#include "policy/format/string_buffer.h"

#include "base/array.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static capu_status reserve_bytes(struct string_buffer *text, size_t more)
{
    if (more >= SIZE_MAX / 4 - text->length) {
        return CAPU_NO_HOST_MEMORY;
    }
    return array_reserve(&text->data, &text->capacity, text->length + more + 1, 1)
               ? CAPU_OK
               : CAPU_NO_HOST_MEMORY;
}

capu_status string_buffer_append(struct string_buffer *text, const char *bytes, size_t count)
{
    capu_status status = reserve_bytes(text, count);

    if (status != CAPU_OK) {
        return status;
    }
    memcpy(text->data + text->length, bytes, count);
    text->length += count;
    text->data[text->length] = '\0';
    return CAPU_OK;
}

capu_status string_buffer_format(struct string_buffer *text, const char *format, ...)
{
    va_list arguments;
    capu_status status;
    int count;

    va_start(arguments, format);
    count = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (count < 0) {
        return CAPU_INVALID;
    }
    status = reserve_bytes(text, (size_t)count);
    if (status != CAPU_OK) {
        return status;
    }
    va_start(arguments, format);
    vsnprintf(text->data + text->length, (size_t)count + 1, format, arguments);
    va_end(arguments);
    text->length += (size_t)count;
    return CAPU_OK;
}

struct sink {
    struct string_buffer *text;
    capu_status status;
};

/* For Jansson, which goes on after some of its failures: the first one stays. */
static int append_dump(const char *bytes, size_t count, void *data)
{
    struct sink *sink = data;

    if (sink->status == CAPU_OK) {
        sink->status = string_buffer_append(sink->text, bytes, count);
    }
    return sink->status == CAPU_OK ? 0 : -1;
}

capu_status string_buffer_append_json(struct string_buffer *text, const json_t *value, size_t flags)
{
    struct sink sink = {.text = text};
    size_t length = text->length;
    int failed = json_dump_callback(value, append_dump, &sink, flags);

    if (failed == 0 && sink.status == CAPU_OK) {
        return CAPU_OK;
    }
    text->length = length;
    if (text->data != NULL) {
        text->data[length] = '\0';
    }
    return CAPU_NO_HOST_MEMORY;
}

void string_buffer_finish(struct string_buffer *text)
{
    free(text->data);
    *text = (struct string_buffer){0};
}

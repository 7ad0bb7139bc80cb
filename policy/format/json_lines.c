/* JSON Lines with errors that name the place. Jansson parses; this file limits length and depth
   first. */
#include "policy/format/json_lines.h"

#include "base/array.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

capu_status json_lines_load(const char *path, struct string_buffer *text, struct error_text *error)
{
    FILE *file = fopen(path, "rb");
    char chunk[65536];
    size_t count;
    capu_status status = CAPU_OK;

    if (file == NULL) {
        return error_text_set(error, CAPU_FILE_FAILED, "%s: %s", path, strerror(errno));
    }
    while (status == CAPU_OK && (count = fread(chunk, 1, sizeof(chunk), file)) > 0) {
        status = text->length + count > JSON_LINES_FILE_MAX
                     ? error_text_set(error, CAPU_TOO_LARGE, "%s: larger than %zu bytes", path,
                                      JSON_LINES_FILE_MAX)
                     : string_buffer_append(text, chunk, count);
    }
    if (status == CAPU_OK && ferror(file)) {
        status = error_text_set(error, CAPU_FILE_FAILED, "%s: %s", path, strerror(errno));
    }
    fclose(file);
    return status;
}

void json_lines_init(struct json_lines *lines, const char *file, const char *data, size_t length,
                     struct error_text *error)
{
    *lines = (struct json_lines){.file = file, .data = data, .length = length, .error = error};
}

void json_lines_finish(struct json_lines *lines)
{
    json_decref(lines->value);
    lines->value = NULL;
}

capu_status json_lines_refuse(struct json_lines *lines, const char *what)
{
    return error_text_set(lines->error, CAPU_FILE_FAILED, "%s:%zu: %s", lines->file, lines->number,
                          what);
}

capu_status json_lines_refuse_built(struct json_lines *lines, capu_status status)
{
    struct error_text inner = {""};

    if (lines->error != NULL) {
        inner = *lines->error;
    }
    error_text_set(lines->error, status, "%s:%zu: %.300s", lines->file, lines->number, inner.text);
    return status == CAPU_INVALID ? CAPU_FILE_FAILED : status;
}

static capu_status refuse_field(struct json_lines *lines, const char *key, const char *what)
{
    return error_text_set(lines->error, CAPU_FILE_FAILED, "%s:%zu: \"%s\" %s", lines->file,
                          lines->number, key, what);
}

/* Brackets outside strings, before the parser sees them: it recurses. */
static bool is_too_deep(const char *line, size_t length)
{
    unsigned depth = 0;
    bool in_string = false;

    for (size_t i = 0; i < length; i++) {
        char c = line[i];

        if (in_string) {
            i += c == '\\';
            in_string = c != '"';
        } else if (c == '"') {
            in_string = true;
        } else if (c == '[' || c == '{') {
            if (++depth > JSON_LINES_DEPTH_MAX) {
                return true;
            }
        } else if ((c == ']' || c == '}') && depth > 0) {
            depth--;
        }
    }
    return false;
}

static bool is_blank(const char *line, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (line[i] != ' ' && line[i] != '\t' && line[i] != '\r') {
            return false;
        }
    }
    return true;
}

static capu_status parse(struct json_lines *lines, const char *line, size_t length)
{
    json_error_t problem;

    if (length > JSON_LINES_LINE_MAX) {
        return json_lines_refuse(lines, "the line is too long");
    }
    if (is_too_deep(line, length)) {
        return json_lines_refuse(lines, "nested too deeply");
    }
    lines->value = json_loadb(line, length, JSON_REJECT_DUPLICATES, &problem);
    if (lines->value == NULL && problem.text[0] == '\0') {
        return CAPU_NO_HOST_MEMORY;
    }
    if (lines->value == NULL) {
        return error_text_set(lines->error, CAPU_FILE_FAILED, "%s:%zu:%d: %s", lines->file,
                              lines->number, problem.column, problem.text);
    }
    if (!json_is_object(lines->value)) {
        return json_lines_refuse(lines, "not an object");
    }
    return json_lines_string(lines, lines->value, "type", true, &lines->type);
}

capu_status json_lines_next(struct json_lines *lines, bool *more)
{
    json_lines_finish(lines);
    *more = false;
    while (lines->offset < lines->length) {
        const char *line = lines->data + lines->offset;
        const char *end = memchr(line, '\n', lines->length - lines->offset);
        size_t length = end != NULL ? (size_t)(end - line) : lines->length - lines->offset;

        lines->offset += length + 1;
        lines->number++;
        if (!is_blank(line, length)) {
            *more = true;
            return parse(lines, line, length);
        }
    }
    return CAPU_OK;
}

capu_status json_lines_each(struct json_lines *lines,
                            capu_status (*read)(void *user, bool is_first), void *user)
{
    bool more = true;
    bool is_first = true;
    capu_status status = json_lines_next(lines, &more);

    while (status == CAPU_OK && more) {
        status = read(user, is_first);
        is_first = false;
        status = status == CAPU_OK ? json_lines_next(lines, &more) : status;
    }
    return status == CAPU_OK && is_first
               ? error_text_set(lines->error, CAPU_FILE_FAILED, "%s: empty", lines->file)
               : status;
}

capu_status json_lines_number(struct json_lines *lines, const json_t *object, const char *key,
                              bool required, uint64_t limit, uint64_t *value)
{
    const json_t *field = json_object_get(object, key);

    if (field == NULL) {
        return required ? refuse_field(lines, key, "is missing") : CAPU_OK;
    }
    if (!json_is_integer(field) || json_integer_value(field) < 0) {
        return refuse_field(lines, key, "is not a number of 0 or more");
    }
    if ((uint64_t)json_integer_value(field) > limit) {
        return refuse_field(lines, key, "is too large");
    }
    *value = (uint64_t)json_integer_value(field);
    return CAPU_OK;
}

capu_status json_lines_string(struct json_lines *lines, const json_t *object, const char *key,
                              bool required, const char **value)
{
    const json_t *field = json_object_get(object, key);

    if (field == NULL) {
        return required ? refuse_field(lines, key, "is missing") : CAPU_OK;
    }
    if (!json_is_string(field)) {
        return refuse_field(lines, key, "is not a string");
    }
    *value = json_string_value(field);
    return CAPU_OK;
}

capu_status json_lines_boolean(struct json_lines *lines, const json_t *object, const char *key,
                               bool *value)
{
    const json_t *field = json_object_get(object, key);

    if (field == NULL) {
        return CAPU_OK;
    }
    if (!json_is_boolean(field)) {
        return refuse_field(lines, key, "is neither true nor false");
    }
    *value = json_is_true(field);
    return CAPU_OK;
}

capu_status json_lines_list(struct json_lines *lines, const json_t *object, const char *key,
                            struct json_lines_ids *ids)
{
    const json_t *field = json_object_get(object, key);

    ids->count = 0;
    if (field == NULL) {
        return CAPU_OK;
    }
    if (!json_is_array(field)) {
        return refuse_field(lines, key, "is not a list");
    }
    if (!array_reserve(&ids->ids, &ids->capacity, json_array_size(field), sizeof(*ids->ids))) {
        return CAPU_NO_HOST_MEMORY;
    }
    for (size_t i = 0; i < json_array_size(field); i++) {
        const json_t *entry = json_array_get(field, i);

        if (!json_is_integer(entry) || json_integer_value(entry) < 0 ||
            json_integer_value(entry) >= UINT32_MAX) {
            return refuse_field(lines, key, "has an entry that is not an id");
        }
        ids->ids[ids->count++] = (uint32_t)json_integer_value(entry);
    }
    return CAPU_OK;
}

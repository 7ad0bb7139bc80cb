/*
 * Reading JSON Lines: one object per line, and every error names file, line and field. Shared by
 * the readers of traces and plans. The text belongs to the caller and must outlive the struct.
 */
#ifndef CAPU_POLICY_JSON_LINES_H
#define CAPU_POLICY_JSON_LINES_H

#include <jansson.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error_text.h"
#include "capuchin/status.h"
#include "policy/format/string_buffer.h"

#define JSON_LINES_FILE_MAX ((size_t)1 << 30)
#define JSON_LINES_LINE_MAX ((size_t)1 << 27)
#define JSON_LINES_DEPTH_MAX 16

struct json_lines {
    const char *file; /* for messages */
    const char *data;
    size_t length;
    size_t offset;
    size_t number; /* of the current line, from 1 */
    json_t *value; /* the current line; owned */
    const char *type;
    struct error_text *error;
};

/* A growing list of tensor ids, reused from line to line. */
struct json_lines_ids {
    uint32_t *ids;
    size_t count;
    size_t capacity;
};

/* Reads a whole file into a buffer. Errors: FILE_FAILED, TOO_LARGE, NO_HOST_MEMORY. */
capu_status json_lines_load(const char *path, struct string_buffer *text, struct error_text *error);

void json_lines_init(struct json_lines *lines, const char *file, const char *data, size_t length,
                     struct error_text *error);
void json_lines_finish(struct json_lines *lines);

/* The next line that is not blank; *more is false at the end. Errors: FILE_FAILED, TOO_LARGE. */
capu_status json_lines_next(struct json_lines *lines, bool *more);

/* Has every line that is not blank read, in order. Errors: FILE_FAILED, also if there is no such
   line; TOO_LARGE; those of `read`, after which it ends. */
capu_status json_lines_each(struct json_lines *lines,
                            capu_status (*read)(void *user, bool is_first), void *user);

/* Reports FILE_FAILED for the current line. */
capu_status json_lines_refuse(struct json_lines *lines, const char *what);
/* The same with the message that a function of trace.h or plan.h left in the error text. Keeps
   `status` if it says that memory is short. */
capu_status json_lines_refuse_built(struct json_lines *lines, capu_status status);

/* Fields of an object of the line. A missing one is an error if `required`, else *value stays. */
capu_status json_lines_number(struct json_lines *lines, const json_t *object, const char *key,
                              bool required, uint64_t limit, uint64_t *value);
capu_status json_lines_string(struct json_lines *lines, const json_t *object, const char *key,
                              bool required, const char **value);
capu_status json_lines_boolean(struct json_lines *lines, const json_t *object, const char *key,
                               bool *value);
capu_status json_lines_list(struct json_lines *lines, const json_t *object, const char *key,
                            struct json_lines_ids *ids);

#endif

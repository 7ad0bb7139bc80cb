/*
 * Reading JSON lines: one object a line, every error naming file, line and field. What the trace
 * and the plan reader share. The text stays the caller's and must outlive the struct.
 */
#ifndef CAPU_POLICY_LINES_H
#define CAPU_POLICY_LINES_H

#include <jansson.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capuchin/status.h"
#include "policy/error_text.h"
#include "policy/text.h"

#define LINES_FILE_MAX ((size_t)1 << 30)
#define LINES_LINE_MAX ((size_t)1 << 27)
#define LINES_DEPTH_MAX 16

struct lines {
    const char *file; /* for messages */
    const char *data;
    size_t length;
    size_t offset;
    size_t number; /* of the line at hand, from 1 */
    json_t *value; /* the line at hand; owned */
    const char *type;
    struct error_text *error;
};

/* A growing list of tensor ids, used again and again. */
struct lines_ids {
    uint32_t *ids;
    size_t count;
    size_t capacity;
};

/* A whole file into a text. Errors: FILE_FAILED, TOO_LARGE, NO_HOST_MEMORY. */
capu_status lines_load(const char *path, struct text *text, struct error_text *error);

void lines_init(struct lines *lines, const char *file, const char *data, size_t length,
                struct error_text *error);
void lines_finish(struct lines *lines);

/* The next line that is not blank; *more is false at the end. Errors: BAD_FILE, TOO_LARGE. */
capu_status lines_next(struct lines *lines, bool *more);

/* A BAD_FILE about the line at hand. */
capu_status lines_refuse(struct lines *lines, const char *what);
/* The same with the message that a builder left in the error text. Keeps `status` where it says
   that memory is short. */
capu_status lines_refuse_built(struct lines *lines, capu_status status);

/* Fields of an object of the line. A missing one is an error if `required`, else *value stays. */
capu_status lines_number(struct lines *lines, const json_t *object, const char *key, bool required,
                         uint64_t limit, uint64_t *value);
capu_status lines_string(struct lines *lines, const json_t *object, const char *key, bool required,
                         const char **value);
capu_status lines_boolean(struct lines *lines, const json_t *object, const char *key, bool *value);
capu_status lines_list(struct lines *lines, const json_t *object, const char *key,
                       struct lines_ids *ids);

#endif

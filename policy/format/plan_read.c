/* Reads a plan. The fields of each line are checked here; whether the plan fits a trace is checked
   by validate.c. */
#include "policy/format/plan.h"

#include "policy/format/json_lines.h"

#include <stdlib.h>
#include <string.h>

struct reader {
    struct json_lines lines;
    struct plan *plan;
    struct json_lines_ids drops;
};

/* How many tensors or ops the trace has. It stays unknown if the key is missing. */
static capu_status read_count(struct reader *reader, const char *key, uint32_t *count)
{
    uint64_t value = *count;
    capu_status status = json_lines_number(&reader->lines, reader->lines.value, key, false,
                                           PLAN_COUNT_UNKNOWN - 1, &value);

    *count = (uint32_t)value;
    return status;
}

static capu_status read_header(struct reader *reader)
{
    struct json_lines *lines = &reader->lines;
    struct plan *plan = reader->plan;
    const char *name = "";
    uint64_t version = 0;
    capu_status status =
        json_lines_number(lines, lines->value, "version", true, UINT32_MAX, &version);

    if (status == CAPU_OK && version != 1) {
        status = json_lines_refuse(lines, "only version 1 is known");
    }
    if (status == CAPU_OK) {
        status = json_lines_string(lines, lines->value, "trace", false, &name);
    }
    if (status == CAPU_OK) {
        status = plan_init(plan, name, 0, 1);
    }
    if (status == CAPU_OK) {
        status = read_count(reader, "tensors", &plan->trace_tensors);
    }
    if (status == CAPU_OK) {
        status = read_count(reader, "ops", &plan->trace_ops);
    }
    if (status == CAPU_OK) {
        status = json_lines_number(lines, lines->value, "budget_bytes", true, PLAN_BYTES_MAX,
                                   &plan->budget_bytes);
    }
    if (status == CAPU_OK) {
        status = json_lines_number(lines, lines->value, "page_bytes", false, PLAN_BYTES_MAX,
                                   &plan->page_bytes);
    }
    if (status == CAPU_OK) {
        status = json_lines_number(lines, lines->value, "fixed_bytes", false, PLAN_BYTES_MAX,
                                   &plan->fixed_bytes);
    }
    if (status == CAPU_OK) {
        status = json_lines_number(lines, lines->value, "host_bytes", false, INT64_MAX,
                                   &plan->host_bytes);
    }
    return status;
}

/* A number that names a tensor, an op or a page. */
static capu_status read_index(struct reader *reader, const json_t *object, const char *key,
                              uint32_t *index)
{
    uint64_t value = 0;
    capu_status status =
        json_lines_number(&reader->lines, object, key, true, UINT32_MAX - 1, &value);

    *index = (uint32_t)value;
    return status;
}

static capu_status read_action(struct reader *reader, enum action_kind kind)
{
    uint32_t tensor;
    uint32_t point;
    capu_status status = read_index(reader, reader->lines.value, "tensor", &tensor);

    if (status == CAPU_OK) {
        status = read_index(reader, reader->lines.value,
                            kind == ACTION_PREFETCH ? "before" : "after", &point);
    }
    return status == CAPU_OK ? plan_add(reader->plan, kind, tensor, point) : status;
}

static capu_status read_replay(struct reader *reader, const json_t *entry)
{
    uint32_t op;
    capu_status status;

    if (!json_is_object(entry)) {
        return json_lines_refuse(&reader->lines, "an entry of \"replays\" is not an object");
    }
    status = read_index(reader, entry, "op", &op);
    if (status == CAPU_OK) {
        status = json_lines_list(&reader->lines, entry, "drop", &reader->drops);
    }
    if (status == CAPU_OK) {
        status = plan_add_replay(reader->plan, op);
    }
    for (size_t i = 0; status == CAPU_OK && i < reader->drops.count; i++) {
        status = plan_add_drop(reader->plan, reader->drops.ids[i]);
    }
    return status;
}

static capu_status read_recompute(struct reader *reader)
{
    const json_t *replays = json_object_get(reader->lines.value, "replays");
    uint32_t before;
    capu_status status = read_index(reader, reader->lines.value, "before", &before);

    if (status == CAPU_OK && !json_is_array(replays)) {
        status = json_lines_refuse(&reader->lines, "\"replays\" is not a list");
    }
    if (status == CAPU_OK) {
        status = plan_add_recompute(reader->plan, before);
    }
    for (size_t i = 0; status == CAPU_OK && i < json_array_size(replays); i++) {
        status = read_replay(reader, json_array_get(replays, i));
    }
    return status;
}

static capu_status read_run(struct reader *reader, const json_t *run)
{
    const json_t *first = json_array_get(run, 0);
    const json_t *count = json_array_get(run, 1);

    if (json_array_size(run) != 2 || !json_is_integer(first) || !json_is_integer(count) ||
        json_integer_value(first) < 0 || json_integer_value(count) <= 0 ||
        json_integer_value(first) >= PLAN_PAGES_MAX || json_integer_value(count) > PLAN_PAGES_MAX) {
        return json_lines_refuse(&reader->lines, "an entry of \"pages\" is not [first, count]");
    }
    return plan_add_run(reader->plan, (uint32_t)json_integer_value(first),
                        (uint32_t)json_integer_value(count));
}

static capu_status read_place(struct reader *reader)
{
    const json_t *pages = json_object_get(reader->lines.value, "pages");
    uint32_t tensor;
    capu_status status = read_index(reader, reader->lines.value, "tensor", &tensor);

    if (status == CAPU_OK && !json_is_array(pages)) {
        status = json_lines_refuse(&reader->lines, "\"pages\" is not a list");
    }
    if (status == CAPU_OK) {
        status = plan_add_place(reader->plan, tensor);
    }
    for (size_t i = 0; status == CAPU_OK && i < json_array_size(pages); i++) {
        status = read_run(reader, json_array_get(pages, i));
    }
    return status;
}

static capu_status read_line(struct reader *reader, bool is_first)
{
    const char *type = reader->lines.type;

    if (is_first != (strcmp(type, "plan") == 0)) {
        return json_lines_refuse(&reader->lines, is_first
                                                     ? "a plan begins with a line of type \"plan\""
                                                     : "a second line of type \"plan\"");
    }
    if (is_first) {
        return read_header(reader);
    }
    if (strcmp(type, "recompute") == 0) {
        return read_recompute(reader);
    }
    if (strcmp(type, "place") == 0) {
        return read_place(reader);
    }
    for (unsigned kind = 0; kind < ACTION_RECOMPUTE; kind++) {
        if (strcmp(type, action_kind_name((enum action_kind)kind)) == 0) {
            return read_action(reader, (enum action_kind)kind);
        }
    }
    return json_lines_refuse(&reader->lines, "unknown \"type\"");
}

capu_status plan_read(struct plan *plan, const char *file, const char *data, size_t length,
                      struct error_text *error)
{
    struct reader reader = {.plan = plan};
    bool is_first = true;
    bool more = true;
    capu_status status = CAPU_OK;

    json_lines_init(&reader.lines, file, data, length, error);
    *plan = (struct plan){0};
    while (status == CAPU_OK) {
        status = json_lines_next(&reader.lines, &more);
        if (status != CAPU_OK || !more) {
            break;
        }
        status = read_line(&reader, is_first);
        is_first = false;
    }
    if (status == CAPU_OK && is_first) {
        status = error_text_set(error, CAPU_BAD_FILE, "%s: empty", file);
    }
    json_lines_finish(&reader.lines);
    free(reader.drops.ids);
    if (status != CAPU_OK) {
        plan_finish(plan);
    }
    return status;
}

capu_status plan_load(struct plan *plan, const char *path, struct error_text *error)
{
    struct string_buffer text = {0};
    capu_status status = json_lines_load(path, &text, error);

    *plan = (struct plan){0};
    if (status == CAPU_OK) {
        status = plan_read(plan, path, text.data != NULL ? text.data : "", text.length, error);
    }
    string_buffer_finish(&text);
    return status;
}

/* Plans: building them, and their format, JSON lines. */
#include "policy/format/plan.h"

#include "base/array.h"
#include "base/assert.h"
#include "policy/format/json_lines.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define ELEMENTS_MAX ((uint32_t)1 << 28)

const char *action_kind_name(enum action_kind kind)
{
    static const char *const names[ACTION_KIND_COUNT] = {
        [ACTION_EVICT] = "evict",       [ACTION_SAVE] = "save",           [ACTION_DROP] = "drop",
        [ACTION_PREFETCH] = "prefetch", [ACTION_RECOMPUTE] = "recompute", [ACTION_OP] = "op",
        [ACTION_REPLAY] = "replay",     [ACTION_RELEASE] = "release",
    };

    return (unsigned)kind < ACTION_KIND_COUNT ? names[kind] : "?";
}

/* Room for one more element. */
static capu_status grow_list(void *array, uint32_t count, size_t *capacity, size_t element_bytes)
{
    if (count >= ELEMENTS_MAX) {
        return CAPU_TOO_LARGE;
    }
    return array_reserve(array, capacity, (size_t)count + 1, element_bytes) ? CAPU_OK
                                                                            : CAPU_NO_HOST_MEMORY;
}

capu_status plan_init(struct plan *plan, const char *trace, uint64_t budget_bytes,
                      uint64_t page_bytes)
{
    *plan = (struct plan){.trace_tensors = PLAN_COUNT_UNKNOWN,
                          .trace_ops = PLAN_COUNT_UNKNOWN,
                          .budget_bytes = budget_bytes,
                          .page_bytes = page_bytes,
                          .host_bytes = UINT64_MAX};
    plan->trace = strdup(trace);
    if (plan->trace == NULL) {
        *plan = (struct plan){0};
        return CAPU_NO_HOST_MEMORY;
    }
    return CAPU_OK;
}

capu_status plan_init_like(struct plan *plan, const struct plan *other)
{
    capu_status status = plan_init(plan, other->trace, other->budget_bytes, other->page_bytes);

    if (status == CAPU_OK) {
        plan->trace_tensors = other->trace_tensors;
        plan->trace_ops = other->trace_ops;
        plan->fixed_bytes = other->fixed_bytes;
        plan->host_bytes = other->host_bytes;
    }
    return status;
}

/* Room for exactly so many elements, and what is in them. */
static bool copy_array(void *array, size_t *capacity, const void *from, uint32_t count,
                       size_t element_bytes)
{
    void *copy;

    if (count == 0) {
        return true;
    }
    copy = malloc(count * element_bytes);
    if (copy == NULL) {
        return false;
    }
    memcpy(copy, from, count * element_bytes);
    memcpy(array, &copy, sizeof(copy));
    *capacity = count;
    return true;
}

capu_status plan_copy(struct plan *plan, const struct plan *other)
{
    capu_status status = plan_init_like(plan, other);

    if (status != CAPU_OK) {
        return status;
    }
    if (!copy_array(&plan->actions, &plan->action_capacity, other->actions, other->action_count,
                    sizeof(*other->actions)) ||
        !copy_array(&plan->replays, &plan->replay_capacity, other->replays, other->replay_count,
                    sizeof(*other->replays)) ||
        !copy_array(&plan->drops, &plan->drop_capacity, other->drops, other->drop_count,
                    sizeof(*other->drops)) ||
        !copy_array(&plan->places, &plan->place_capacity, other->places, other->place_count,
                    sizeof(*other->places)) ||
        !copy_array(&plan->runs, &plan->run_capacity, other->runs, other->run_count,
                    sizeof(*other->runs))) {
        plan_finish(plan);
        return CAPU_NO_HOST_MEMORY;
    }
    plan->action_count = other->action_count;
    plan->replay_count = other->replay_count;
    plan->drop_count = other->drop_count;
    plan->place_count = other->place_count;
    plan->run_count = other->run_count;
    return CAPU_OK;
}

void plan_finish(struct plan *plan)
{
    if (plan == NULL) {
        return;
    }
    free(plan->trace);
    free(plan->actions);
    free(plan->replays);
    free(plan->drops);
    free(plan->places);
    free(plan->runs);
    *plan = (struct plan){0};
}

void plan_clear(struct plan *plan)
{
    plan->action_count = 0;
    plan->replay_count = 0;
    plan->drop_count = 0;
    plan_clear_places(plan);
}

void plan_clear_places(struct plan *plan)
{
    plan->place_count = 0;
    plan->run_count = 0;
}

capu_status plan_add(struct plan *plan, enum action_kind kind, uint32_t tensor, uint32_t point)
{
    capu_status status = grow_list(&plan->actions, plan->action_count, &plan->action_capacity,
                                   sizeof(*plan->actions));

    if (status == CAPU_OK) {
        plan->actions[plan->action_count++] =
            (struct plan_action){.kind = kind, .tensor = tensor, .point = point};
    }
    return status;
}

capu_status plan_add_recompute(struct plan *plan, uint32_t before)
{
    capu_status status = plan_add(plan, ACTION_RECOMPUTE, UINT32_MAX, before);

    if (status == CAPU_OK) {
        plan->actions[plan->action_count - 1].first = plan->replay_count;
    }
    return status;
}

capu_status plan_add_replay(struct plan *plan, uint32_t op)
{
    capu_status status;

    ASSERT(plan->action_count > 0);
    ASSERT(plan->actions[plan->action_count - 1].kind == ACTION_RECOMPUTE);
    status = grow_list(&plan->replays, plan->replay_count, &plan->replay_capacity,
                       sizeof(*plan->replays));
    if (status == CAPU_OK) {
        plan->replays[plan->replay_count++] =
            (struct plan_replay){.op = op, .first_drop = plan->drop_count};
        plan->actions[plan->action_count - 1].count++;
    }
    return status;
}

capu_status plan_add_drop(struct plan *plan, uint32_t tensor)
{
    capu_status status;

    ASSERT(plan->replay_count > 0);
    status = grow_list(&plan->drops, plan->drop_count, &plan->drop_capacity, sizeof(*plan->drops));
    if (status == CAPU_OK) {
        plan->drops[plan->drop_count++] = tensor;
        plan->replays[plan->replay_count - 1].drop_count++;
    }
    return status;
}

capu_status plan_add_place(struct plan *plan, uint32_t tensor)
{
    capu_status status =
        grow_list(&plan->places, plan->place_count, &plan->place_capacity, sizeof(*plan->places));

    if (status == CAPU_OK) {
        plan->places[plan->place_count++] =
            (struct plan_place){.tensor = tensor, .first = plan->run_count};
    }
    return status;
}

capu_status plan_add_run(struct plan *plan, uint32_t first, uint32_t count)
{
    capu_status status;

    ASSERT(plan->place_count > 0);
    status = grow_list(&plan->runs, plan->run_count, &plan->run_capacity, sizeof(*plan->runs));
    if (status == CAPU_OK) {
        plan->runs[plan->run_count++] = (struct plan_run){.first = first, .count = count};
        plan->places[plan->place_count - 1].count++;
    }
    return status;
}

static capu_status put_header(const struct plan *plan, struct string_buffer *text,
                              struct error_text *error)
{
    json_error_t problem = {0};
    json_t *name = json_pack_ex(&problem, 0, "s", plan->trace);
    capu_status status;

    if (name == NULL) {
        return json_error_code(&problem) == json_error_invalid_utf8
                   ? error_text_set(error, CAPU_INVALID, "the plan's trace name is not UTF-8")
                   : CAPU_NO_HOST_MEMORY;
    }
    status = string_buffer_format(text, "{\"type\":\"plan\",\"version\":1,\"trace\":");
    if (status == CAPU_OK) {
        status = string_buffer_append_json(text, name, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
    }
    json_decref(name);
    if (status == CAPU_OK && plan->trace_tensors != PLAN_COUNT_UNKNOWN) {
        status = string_buffer_format(text, ",\"tensors\":%" PRIu32, plan->trace_tensors);
    }
    if (status == CAPU_OK && plan->trace_ops != PLAN_COUNT_UNKNOWN) {
        status = string_buffer_format(text, ",\"ops\":%" PRIu32, plan->trace_ops);
    }
    if (status == CAPU_OK) {
        status = string_buffer_format(text, ",\"budget_bytes\":%" PRIu64 ",\"page_bytes\":%" PRIu64,
                                      plan->budget_bytes, plan->page_bytes);
    }
    if (status == CAPU_OK && plan->fixed_bytes > 0) {
        status = string_buffer_format(text, ",\"fixed_bytes\":%" PRIu64, plan->fixed_bytes);
    }
    if (status == CAPU_OK && plan->host_bytes != UINT64_MAX) {
        status = string_buffer_format(text, ",\"host_bytes\":%" PRIu64, plan->host_bytes);
    }
    return status == CAPU_OK ? string_buffer_append(text, "}\n", 2) : status;
}

static capu_status put_replay(const struct plan *plan, const struct plan_replay *replay,
                              bool is_first, struct string_buffer *text)
{
    capu_status status = string_buffer_format(text, "%s{\"op\":%" PRIu32 ",\"drop\":[",
                                              is_first ? "" : ",", replay->op);

    for (uint32_t i = 0; status == CAPU_OK && i < replay->drop_count; i++) {
        status = string_buffer_format(text, "%s%" PRIu32, i == 0 ? "" : ",",
                                      plan->drops[replay->first_drop + i]);
    }
    return status == CAPU_OK ? string_buffer_append(text, "]}", 2) : status;
}

static capu_status put_action(const struct plan *plan, const struct plan_action *action,
                              struct string_buffer *text)
{
    capu_status status;

    if (action->kind != ACTION_RECOMPUTE) {
        return string_buffer_format(
            text, "{\"type\":\"%s\",\"tensor\":%" PRIu32 ",\"%s\":%" PRIu32 "}\n",
            action_kind_name((enum action_kind)action->kind), action->tensor,
            action->kind == ACTION_PREFETCH ? "before" : "after", action->point);
    }
    status = string_buffer_format(
        text, "{\"type\":\"recompute\",\"before\":%" PRIu32 ",\"replays\":[", action->point);
    for (uint32_t i = 0; status == CAPU_OK && i < action->count; i++) {
        status = put_replay(plan, &plan->replays[action->first + i], i == 0, text);
    }
    return status == CAPU_OK ? string_buffer_append(text, "]}\n", 3) : status;
}

static capu_status put_place(const struct plan *plan, const struct plan_place *place,
                             struct string_buffer *text)
{
    capu_status status = string_buffer_format(
        text, "{\"type\":\"place\",\"tensor\":%" PRIu32 ",\"pages\":[", place->tensor);

    for (uint32_t i = 0; status == CAPU_OK && i < place->count; i++) {
        const struct plan_run *run = &plan->runs[place->first + i];

        status = string_buffer_format(text, "%s[%" PRIu32 ",%" PRIu32 "]", i == 0 ? "" : ",",
                                      run->first, run->count);
    }
    return status == CAPU_OK ? string_buffer_append(text, "]}\n", 3) : status;
}

capu_status plan_write(const struct plan *plan, struct string_buffer *text,
                       struct error_text *error)
{
    capu_status status = put_header(plan, text, error);

    for (uint32_t i = 0; status == CAPU_OK && i < plan->action_count; i++) {
        status = put_action(plan, &plan->actions[i], text);
    }
    for (uint32_t i = 0; status == CAPU_OK && i < plan->place_count; i++) {
        status = put_place(plan, &plan->places[i], text);
    }
    return status;
}

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

static capu_status read_line(void *user, bool is_first)
{
    struct reader *reader = user;
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
    capu_status status;

    json_lines_init(&reader.lines, file, data, length, error);
    *plan = (struct plan){0};
    status = json_lines_each(&reader.lines, read_line, &reader);
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

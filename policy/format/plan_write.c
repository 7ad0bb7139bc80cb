/* A plan as JSON lines. Only the name needs a JSON library's care; the rest is numbers. */
#include "policy/format/plan.h"

#include <jansson.h>

#include <inttypes.h>

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

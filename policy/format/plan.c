/* Building a plan. */
#include "policy/format/plan.h"

#include "base/array.h"
#include "base/assert.h"

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
static capu_status grow(void *array, uint32_t count, size_t *capacity, size_t element_bytes)
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
    capu_status status =
        grow(&plan->actions, plan->action_count, &plan->action_capacity, sizeof(*plan->actions));

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
    status =
        grow(&plan->replays, plan->replay_count, &plan->replay_capacity, sizeof(*plan->replays));
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
    status = grow(&plan->drops, plan->drop_count, &plan->drop_capacity, sizeof(*plan->drops));
    if (status == CAPU_OK) {
        plan->drops[plan->drop_count++] = tensor;
        plan->replays[plan->replay_count - 1].drop_count++;
    }
    return status;
}

capu_status plan_add_place(struct plan *plan, uint32_t tensor)
{
    capu_status status =
        grow(&plan->places, plan->place_count, &plan->place_capacity, sizeof(*plan->places));

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
    status = grow(&plan->runs, plan->run_count, &plan->run_capacity, sizeof(*plan->runs));
    if (status == CAPU_OK) {
        plan->runs[plan->run_count++] = (struct plan_run){.first = first, .count = count};
        plan->places[plan->place_count - 1].count++;
    }
    return status;
}

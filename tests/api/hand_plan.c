/* Plans written by hand, see hand_plan.h. */
#include "tests/api/hand_plan.h"

#include "policy/model/timeline.h"
#include "policy/model/validate.h"
#include "policy/place/place.h"
#include "runtime/guide/plan_entry.h"
#include "runtime/plan/planning.h"

#include <check.h>

static void fill_plan(struct plan *plan, const struct hand_action *actions, size_t count,
                      uint64_t budget_bytes, bool is_placed, const struct trace_index *trace_index)
{
    struct place_result result;
    struct error_text error = {""};

    ck_assert_int_eq(plan_init(plan, "by hand", budget_bytes, RIG_PAGE), CAPU_OK);
    plan->host_bytes = UINT64_MAX;
    for (uint32_t i = 0; i < trace_index->trace->tensor_count; i++) {
        const struct trace_tensor *tensor = &trace_index->trace->tensors[i];

        plan->fixed_bytes += tensor->managed ? tensor->fixed_bytes : tensor->bytes;
    }
    for (size_t i = 0; i < count; i++) {
        ck_assert_int_eq(plan_add(plan, actions[i].kind, actions[i].tensor, actions[i].point),
                         CAPU_OK);
        if (actions[i].kind == ACTION_RECOMPUTE) {
            ck_assert_int_eq(plan_add_replay(plan, actions[i].replay), CAPU_OK);
        }
    }
    if (is_placed) {
        ck_assert_msg(place_plan(trace_index, NULL, plan, &result, &error) == CAPU_OK, "%s",
                      error.text);
    }
}

const struct record *hand_plan_record(const capu_context *context)
{
    const struct record *newest = NULL;

    for (size_t i = 0; i < RECORD_COUNT; i++) {
        const struct record *record = &context->records.tracker.records[i];

        if (record->state == RECORD_FINISHED && record->stamp == context->iteration.number) {
            newest = record;
        }
    }
    ck_assert_ptr_nonnull(newest);
    return newest;
}

uint64_t hand_plan_give(struct rig *rig, const void *any, const struct hand_action *actions,
                        size_t count, bool is_placed)
{
    capu_context *context = rig->context;
    uint64_t budget_bytes = context->settings.config.budget_bytes;
    const struct record *record;
    struct label_record *label;
    struct error_text error = {""};
    struct trace trace;
    struct trace_index trace_index;
    struct timeline timeline;
    struct program program;
    struct plan plan;
    struct plan_entry *entry;
    uint64_t ns;

    RIG_OK(rig, capu_synchronize(context));
    RIG_OK(rig, planning_forget(&context->plans, any)); /* planning's own plan */
    record = hand_plan_record(context);
    label =
        label_records_find(&context->plans.labels, names_intern(&context->memory.names, "train"));
    ck_assert_ptr_nonnull(label);
    ck_assert_int_eq(trace_record_build(&context->records, record, true, &trace, &error), CAPU_OK);
    ck_assert_int_eq(trace_index_init(&trace_index, &trace, RIG_PAGE, &error), CAPU_OK);
    fill_plan(&plan, actions, count, budget_bytes, is_placed, &trace_index);
    ck_assert_msg(validate_program(&program, &trace_index, &plan, &error) == CAPU_OK, "%s",
                  error.text);
    ck_assert_int_eq(timeline_of(&timeline, &program, NULL, false, &error), CAPU_OK);
    ck_assert_int_eq(plan_entry_create(record, &entry), CAPU_OK);
    ck_assert_msg(guide_compile(entry->guide, &program, &error) == CAPU_OK, "%s", error.text);
    ns = timeline.iteration_ns;
    entry->budget_bytes = budget_bytes;
    entry->feedback.predicted_ns = ns;
    entry->feedback.expected_ns = ns;
    entry->feedback.ideal_ns = timeline.ideal_ns;
    entry->feedback.replay_ns = timeline.replay_ns;
    entry->feedback.round = 100; /* it is not made anew */
    ck_assert(label_records_add_plan(&context->plans.labels, label, entry, NULL, UINT64_MAX));
    timeline_finish(&timeline);
    program_finish(&program);
    plan_finish(&plan);
    trace_index_finish(&trace_index);
    trace_finish(&trace);
    return ns;
}

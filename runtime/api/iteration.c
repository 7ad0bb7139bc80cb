/*
 * Where iterations begin and end: see capuchin/iteration.h.
 *
 * The order in which an iteration begins matters. First the iteration before the last one must have
 * finished, which bounds how far the host runs ahead and frees a record and a staging set. Records
 * are completed next, because a finished record can lead to a new plan. Then a plan is chosen and
 * installed. Only after that is the record of the new iteration opened, since it notes which plan
 * it begins with. Transient tensors are forgotten before a plan is installed, so that installing
 * does not preserve contents that are about to become undefined.
 */
#include "runtime/api/context.h"

#include "device/marks.h"
#include "runtime/context/failure.h"
#include "runtime/follow/executor.h"
#include "runtime/follow/recovery.h"
#include "runtime/issue/issue.h"
#include "runtime/plan/planning.h"
#include "runtime/residency/swap.h"

/* Slabs are kept for what the last so many iterations have needed, or up to twice as many. Fewer
   would be given back and taken again where kinds of iterations alternate, each time at other
   addresses, which plans for these iterations may need. */
enum { SLAB_ITERATIONS = 32 };

/* Makes transient tensors undefined: discards their contents on the device and on the host. */
static void forget_transients(capu_context *context)
{
    while (context->memory.transient.head != NULL) {
        contents_forget(&context->residency, context->memory.transient.head);
    }
}

/* Waits until at most one iteration is running. */
static capu_status wait_before_last(capu_context *context)
{
    const struct record *oldest = NULL;
    size_t running = 0;

    for (size_t i = 0; i < RECORD_COUNT; i++) {
        const struct record *record = &context->records.tracker.records[i];

        if (record->state == RECORD_RUNNING) {
            running++;
            oldest = oldest == NULL || record->stamp < oldest->stamp ? record : oldest;
        }
    }
    if (running < 2) {
        return CAPU_OK;
    }
    return failure_check(&context->failure, lane_wait(oldest->end),
                         "waiting for an earlier iteration");
}

/* Recycles the events of marks on a copy lane that have completed. */
static void retire_copies(struct lane *lane)
{
    struct lane_position newest = {.lane = lane, .sequence = lane->marked};

    if (lane->marked > 0 && lane_has_passed(newest)) {
        lane_retire(newest);
    } else if (lane->done > lane->retired) {
        lane_retire((struct lane_position){.lane = lane, .sequence = lane->done});
    }
}

/* Whether the iteration that begins has its ops timed. In mode off nothing waits, and runs with a
   plan are compared with the time of the whole iteration, which the events of each op would make
   longer. */
static bool wants_times(capu_context *context)
{
    const struct config *config = &context->settings.config;
    bool is_traced =
        config->trace_path != NULL && context->iteration.number + 1 == config->trace_iteration;

    if (config->mode == CAPU_MODE_OFF) {
        return is_traced || config->timeline != 0 || config->sample_every == 1;
    }
    return context->plans.keeper == NULL || planning_wants_times(&context->plans);
}

capu_status iteration_prepare(capu_context *context, const char *call, const char *label,
                              struct label_record **labelled)
{
    const char *interned;
    capu_status status;

    if (context->iteration.is_open) {
        return failure_set(
            &context->failure, CAPU_WRONG_ORDER, "%s while an iteration is open: call %s first",
            call, context->lanes.capture.graph != NULL ? "capu_graph_end" : "capu_iteration_end");
    }
    interned = names_intern(&context->memory.names, label);
    if (interned == NULL) {
        return failure_set(&context->failure, CAPU_NO_HOST_MEMORY, "%s: no memory for the label",
                           call);
    }
    status = wait_before_last(context);
    if (status == CAPU_OK) {
        status = settle_records(context);
    }
    if (status == CAPU_OK) {
        status = departures_reap(&context->residency);
    }
    if (status != CAPU_OK) {
        return status;
    }
    *labelled = label_records_use(&context->plans.labels, interned, context->iteration.number + 1,
                                  context->guided.active);
    return *labelled != NULL ? CAPU_OK
                             : failure_set(&context->failure, CAPU_NO_HOST_MEMORY,
                                           "%s: no memory for the label", call);
}

void iteration_forget(capu_context *context)
{
    forget_transients(context);
}

capu_status iteration_plan(capu_context *context, struct label_record *label)
{
    if (context->plans.keeper == NULL) {
        return CAPU_OK;
    }
    forget_transients(context);
    return planning_begin(&context->plans, label);
}

capu_status iteration_open(capu_context *context, struct label_record *label, bool is_timed)
{
    const char *plan_error;
    struct record *record;
    capu_status status;

    retire_copies(&context->lanes.d2h);
    retire_copies(&context->lanes.h2d);
    context->iteration.number++;
    plan_error =
        context->guided.active == NULL ? planning_error(&context->plans, label->label) : "";
    record = tracker_open(&context->records, label->label, plan_error, is_timed);
    planning_report(&context->plans, label, &record->report);
    status = lane_mark(&context->lanes.compute, &record->begin);
    if (status != CAPU_OK) {
        tracker_cancel(&context->records);
        context->iteration.number--;
        return failure_check(&context->failure, status, "marking the compute stream");
    }
    staging_turn(&context->lanes.staging);
    pages_reset_peak(context->memory.pages);
    context->plans.label = label;
    context->lanes.capture = (struct capture){0};
    address_memo_begin(&label->addresses);
    forget_transients(context);
    timeline_log_open(&context->records);
    uploads_turn(&context->residency);
    if (context->iteration.number == 1) {
        slabs_restart(context->memory.slabs); /* what only the set-up needed is not needed again */
    }
    context->iteration.is_open = true;
    context->iteration.mark = marks_open(
        MARK_ITERATION, label->label[0] != '\0' ? label->label : NULL, context->iteration.number);
    context->lanes.unrecorded_ops = 0;
    return CAPU_OK;
}

capu_status capu_iteration_begin(capu_context *context, const char *label)
{
    capu_status status = context_ready(&context, "capu_iteration_begin");
    struct label_record *labelled;

    if (status == CAPU_OK) {
        status = iteration_prepare(context, "capu_iteration_begin", label, &labelled);
    }
    if (status == CAPU_OK) {
        status = iteration_plan(context, labelled);
    }
    return status == CAPU_OK ? iteration_open(context, labelled, wants_times(context)) : status;
}

capu_status iteration_finish(capu_context *context, const char *call)
{
    capu_status status;

    if (!context->iteration.is_open) {
        return failure_set(&context->failure, CAPU_WRONG_ORDER, "%s without capu_iteration_begin",
                           call);
    }
    if (context->records.tracker.segment_depth > 0) {
        return failure_set(&context->failure, CAPU_WRONG_ORDER,
                           "%s while segment '%s' is open: call capu_segment_end first", call,
                           context->records.tracker.segment);
    }
    status = executor_finish(&context->following);
    return status == CAPU_OK ? recovery_finish(&context->following) : status;
}

/* The iteration is over, whether it has run or not. */
static void end_iteration(capu_context *context)
{
    context->plans.label = NULL;
    context->iteration.is_open = false;
    marks_close(context->iteration.mark);
}

capu_status iteration_close(capu_context *context)
{
    struct lane_position position;
    capu_status status = lane_mark(&context->lanes.compute, &position);

    if (status != CAPU_OK) {
        return failure_check(&context->failure, status, "marking the compute stream");
    }
    planning_end(context->plans.label, context->records.tracker.open);
    tracker_close(&context->records, position);
    ranges_settle(context->memory.ranges);
    slabs_settle(context->memory.slabs);
    if (context->iteration.number % SLAB_ITERATIONS == 0) {
        slabs_turn(context->memory.slabs);
    }
    page_census_settle(&context->memory.census);
    end_iteration(context);
    return CAPU_OK;
}

void iteration_cancel(capu_context *context)
{
    tracker_cancel(&context->records);
    end_iteration(context);
}

capu_status capu_iteration_end(capu_context *context)
{
    capu_status status = context_ready(&context, "capu_iteration_end");

    if (status != CAPU_OK) {
        return status;
    }
    if (context->lanes.capture.graph != NULL) {
        return failure_set(
            &context->failure, CAPU_WRONG_ORDER,
            "capu_iteration_end while an iteration is captured: call capu_graph_end");
    }
    status = iteration_finish(context, "capu_iteration_end");
    return status == CAPU_OK ? iteration_close(context) : status;
}

/*
 * Where iterations begin and end: see capuchin/iteration.h.
 *
 * The order in capu_iteration_begin matters. First the iteration before the last one must have
 * finished, which bounds how far the host runs ahead and frees a record and a staging set. Records
 * are completed next, because a finished record can lead to a new plan. Then a plan is chosen and
 * installed. Only after that is the record of the new iteration opened, since it notes which plan
 * it begins with. Transient tensors are forgotten before a plan is installed, so that installing
 * does not preserve contents that are about to become undefined.
 */
#include "runtime/contents.h"
#include "runtime/executor.h"
#include "runtime/failure.h"
#include "runtime/internal.h"
#include "runtime/planning.h"
#include "runtime/recovery.h"
#include "runtime/settle.h"

/* Makes transient tensors undefined: discards their contents on the device and on the host. */
static void forget_transients(capu_context *context)
{
    while (context->transient.head != NULL) {
        contents_forget(context, context->transient.head);
    }
}

/* Waits until at most one iteration is running. */
static capu_status wait_before_last(capu_context *context)
{
    const struct record *oldest = NULL;
    size_t running = 0;

    for (size_t i = 0; i < RECORD_COUNT; i++) {
        const struct record *record = &context->tracker.records[i];

        if (record->state == RECORD_RUNNING) {
            running++;
            oldest = oldest == NULL || record->stamp < oldest->stamp ? record : oldest;
        }
    }
    if (running < 2) {
        return CAPU_OK;
    }
    return failure_check(context, lane_wait(oldest->end), "waiting for an earlier iteration");
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
    const capu_config *config = &context->config;
    bool is_traced =
        config->trace_path != NULL && context->iteration + 1 == config->trace_iteration;

    if (config->mode == CAPU_MODE_OFF) {
        return is_traced || config->timeline != 0 || config->sample_every == 1;
    }
    return context->planning == NULL || planning_wants_times(context);
}

capu_status capu_iteration_begin(capu_context *context, const char *label)
{
    capu_status status = context_ready(context, "capu_iteration_begin");
    const char *interned;
    const char *plan_error;
    struct label_record *labelled;
    struct record *record;
    bool is_timed;

    if (status != CAPU_OK) {
        return status;
    }
    if (context->in_iteration) {
        return failure_set(context, CAPU_WRONG_ORDER,
                           "capu_iteration_begin while an iteration is open: call "
                           "capu_iteration_end first");
    }
    interned = names_intern(&context->names, label);
    if (interned == NULL) {
        return failure_set(context, CAPU_NO_HOST_MEMORY,
                           "capu_iteration_begin: no memory for the label");
    }
    status = wait_before_last(context);
    if (status == CAPU_OK) {
        status = settle_records(context);
    }
    if (status == CAPU_OK) {
        status = departures_reap(context);
    }
    if (status != CAPU_OK) {
        return status;
    }
    labelled =
        label_records_use(&context->labels, interned, context->iteration + 1, context->active);
    if (labelled == NULL) {
        return failure_set(context, CAPU_NO_HOST_MEMORY,
                           "capu_iteration_begin: no memory for the label");
    }
    if (context->planning != NULL) {
        forget_transients(context);
        status = planning_begin(context, labelled);
        if (status != CAPU_OK) {
            return status;
        }
    }
    is_timed = wants_times(context);
    retire_copies(&context->d2h);
    retire_copies(&context->h2d);
    context->iteration++;
    plan_error = context->active == NULL ? planning_error(context, interned) : "";
    record = tracker_open(context, interned, plan_error, is_timed);
    planning_report(context, labelled, &record->report);
    status = lane_mark(&context->compute, &record->begin);
    if (status != CAPU_OK) {
        tracker_cancel(context);
        context->iteration--;
        return failure_check(context, status, "marking the compute stream");
    }
    staging_turn(&context->staging);
    pages_reset_peak(context->pages);
    context->label = labelled;
    address_memo_begin(&labelled->addresses);
    forget_transients(context);
    timeline_log_open(context);
    uploads_turn(context);
    context->in_iteration = true;
    context->iteration_mark = marks_open(MARK_ITERATION, label, context->iteration);
    context->unrecorded_ops = 0;
    return CAPU_OK;
}

capu_status capu_iteration_end(capu_context *context)
{
    capu_status status = context_ready(context, "capu_iteration_end");
    struct lane_position end;

    if (status != CAPU_OK) {
        return status;
    }
    if (!context->in_iteration) {
        return failure_set(context, CAPU_WRONG_ORDER,
                           "capu_iteration_end without capu_iteration_begin");
    }
    if (context->tracker.segment_depth > 0) {
        return failure_set(context, CAPU_WRONG_ORDER,
                           "capu_iteration_end while segment '%s' is open: call "
                           "capu_segment_end first",
                           context->tracker.segment);
    }
    status = executor_finish(context);
    if (status == CAPU_OK) {
        status = recovery_finish(context);
    }
    if (status != CAPU_OK) {
        return status;
    }
    status = lane_mark(&context->compute, &end);
    if (status != CAPU_OK) {
        return failure_check(context, status, "marking the compute stream");
    }
    planning_end(context->label, context->tracker.open);
    tracker_close(context, end);
    context->label = NULL;
    ranges_settle(context->ranges);
    slabs_settle(context->slabs);
    page_census_settle(&context->census);
    context->in_iteration = false;
    marks_close(context->iteration_mark);
    return CAPU_OK;
}

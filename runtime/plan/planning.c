/* Plans from records, and which one comes next; see planning.h. */
#include "runtime/plan/planning.h"

#include "device/monotonic.h"
#include "runtime/context/device_choice.h"
#include "runtime/context/failure.h"
#include "runtime/context/internal.h"
#include "runtime/follow/install.h"
#include "runtime/plan/plan_job.h"
#include "runtime/residency/leave.h"
#include "runtime/residency/parked.h"

#include <stdlib.h>
#include <time.h>

enum { FAILURES = 3, JOBS = PLANNING_JOBS };

/* How long the thread sleeps between looks at a plan and at the device. Whether the device has
   finished can only be asked, so being woken for the plan would save no more than one such nap. */
enum { NAP_NS = 200000 };

struct plan_keeper {
    struct plan_job *jobs[JOBS];
    uint64_t reviewed; /* the iteration of the newest record taken from the tracker */
};

static capu_status measure_link(capu_context *context)
{
    capu_status status = device_choice_measure(context->lanes.device, &context->settings.config,
                                               &context->lanes.link);

    return failure_check(&context->failure, status, "measuring the link between device and host");
}

capu_status planning_create(capu_context *context, struct plan_keeper **out)
{
    struct plan_keeper *planning = calloc(1, sizeof(*planning));
    capu_status status;

    if (planning == NULL) {
        return failure_set(&context->failure, CAPU_NO_HOST_MEMORY, "no memory for planning");
    }
    status = measure_link(context);
    if (status != CAPU_OK) {
        free(planning);
        return status;
    }
    *out = planning;
    return CAPU_OK;
}

void planning_destroy(struct plan_keeper *planning)
{
    if (planning == NULL) {
        return;
    }
    for (size_t i = 0; i < JOBS; i++) {
        if (planning->jobs[i] != NULL) {
            plan_job_stop(planning->jobs[i]);
        }
    }
    for (size_t i = 0; i < JOBS; i++) {
        if (planning->jobs[i] != NULL) {
            plan_job_wait(planning->jobs[i]);
            plan_job_destroy(planning->jobs[i]);
        }
    }
    free(planning);
}

/* Whether a new plan is to replace one for the same ops: a placed one an unplaced one in any case;
   a stage that is faster; or a plan made with the times that the old one's iterations had, unless
   it is predicted to take longer than these. */
static bool is_wanted(const struct plan_entry *entry, struct plan_entry *old)
{
    if (entry->guide->is_unplaced != old->guide->is_unplaced) {
        return old->guide->is_unplaced;
    }
    if (entry->feedback.round == 0) {
        return entry->feedback.predicted_ns < old->feedback.predicted_ns;
    }
    if (entry->feedback.predicted_ns > old->feedback.measured_ns) {
        feedback_accept(&old->feedback, &entry->feedback);
        return false;
    }
    return true;
}

bool planning_keep(capu_context *context, struct label_record *label, struct plan_entry *entry)
{
    struct plan_entry *old = plan_cache_find(&label->plans, entry->guide->signature);
    uint64_t limit_bytes = context->settings.config.plan_memory_bytes;

    entry->stage = 1;
    if (old != NULL) {
        if (!is_wanted(entry, old)) {
            return false;
        }
        if (old == context->guided.active && entry->feedback.round == 0 &&
            entry->guide->is_unplaced == old->guide->is_unplaced) {
            label_records_add_better(&context->plans.labels, label, old, entry, limit_bytes);
            return true;
        }
        if (old == context->guided.active && leave_guide(&context->residency) != CAPU_OK) {
            return false;
        }
        entry->stage = old->stage + 1;
        plan_cache_discard(&label->plans, old);
    }
    entry->used = context->iteration.number;
    return label_records_add_plan(&context->plans.labels, label, entry, context->guided.active,
                                  limit_bytes);
}

static void refuse(struct label_record *label, const struct plan_job *job, capu_status status)
{
    plan_cache_refuse(&label->plans, job->entry->guide->signature, plan_job_error(job, status));
}

/* Whether plans for a label copy out what nothing could recompute, instead of discarding it. */
static bool keeps_contents(const capu_context *context, const struct label_record *label)
{
    return label->has_lost || context->settings.config.keep_contents != 0;
}

/* Takes the newest plan that a job has found, unless the label has been replaced meanwhile, or
   needs a plan that keeps more. */
static void take_plan(capu_context *context, struct plan_job *job)
{
    struct label_record *label =
        label_records_find(&context->plans.labels, job->entry->guide->label);
    struct plan_entry *entry = plan_job_take(job);

    if (entry == NULL) {
        return;
    }
    if (label == NULL || entry->keeps_contents != keeps_contents(context, label) ||
        !planning_keep(context, label, entry)) {
        plan_entry_destroy(entry);
        return;
    }
    if (job->wants_text) {
        agent_plan(context->agent, entry->text.data, entry->text.length);
        entry->text = (struct string_buffer){0};
    }
}

static void finish_job(capu_context *context, struct plan_job *job)
{
    struct label_record *label =
        label_records_find(&context->plans.labels, job->entry->guide->label);

    if (label != NULL && job->least_bytes > 0) {
        label->guided_floor_bytes = job->least_bytes;
    }
    if (job->status != CAPU_OK && job->entry->feedback.round == 0 && label != NULL &&
        job->entry->keeps_contents == keeps_contents(context, label)) {
        refuse(label, job, job->status);
    }
    plan_job_destroy(job);
}

static void take_jobs(capu_context *context)
{
    struct plan_keeper *planning = context->plans.keeper;

    for (size_t i = 0; i < JOBS; i++) {
        struct plan_job *job = planning->jobs[i];
        bool is_done = job != NULL && plan_job_is_done(job);

        if (job != NULL) {
            take_plan(context, job);
        }
        if (is_done) {
            planning->jobs[i] = NULL;
            finish_job(context, job);
        }
    }
}

/* A place for a job; NULL: all are busy. */
static struct plan_job **find_place(struct plan_keeper *planning)
{
    for (size_t i = 0; i < JOBS; i++) {
        if (planning->jobs[i] == NULL) {
            return &planning->jobs[i];
        }
    }
    return NULL;
}

/* With wait_for_plan, no iteration goes without a plan because all jobs are busy. */
static void wait_for_place(capu_context *context)
{
    struct plan_keeper *planning = context->plans.keeper;

    if (context->settings.config.wait_for_plan != 0 && find_place(planning) == NULL) {
        plan_job_wait(planning->jobs[0]);
        take_jobs(context);
    }
}

/* The job that makes this plan, NULL: none does. */
static struct plan_job **find_job(struct plan_keeper *planning, const char *label,
                                  uint64_t signature)
{
    for (size_t i = 0; i < JOBS; i++) {
        struct plan_job *job = planning->jobs[i];

        if (job != NULL && job->entry->guide->label == label &&
            job->entry->guide->signature == signature) {
            return &planning->jobs[i];
        }
    }
    return NULL;
}

/* Makes a plan of a record; `old`: the one it is to improve on, by the rates in `link`; NULL: none.
 */
static void start_job(capu_context *context, struct label_record *label,
                      const struct record *record, const struct plan_entry *old,
                      const struct feedback_link *link)
{
    struct plan_job **place = find_place(context->plans.keeper);
    struct plan_job *job;
    capu_status status;

    if (place == NULL) {
        return; /* the next record is another chance */
    }
    status = plan_job_start(context, record, keeps_contents(context, label), old, link, &job);
    if (status == CAPU_OK) {
        *place = job;
        return;
    }
    if (job != NULL && job->entry != NULL && old == NULL) {
        refuse(label, job, status);
    }
    plan_job_destroy(job);
}

/* Plans for a record's iteration if there is no guide for it yet. */
static void consider(capu_context *context, const struct record *record)
{
    struct label_record *label = label_records_find(&context->plans.labels, record->label);

    if (label != NULL && record->op_count > 0 && !backoff_is_paused(&label->backoff) &&
        find_job(context->plans.keeper, record->label, record->signature) == NULL &&
        plan_cache_find(&label->plans, record->signature) == NULL &&
        plan_cache_refusal(&label->plans, record->signature) == NULL) {
        start_job(context, label, record, NULL, NULL);
    }
}

/* Makes a plan in more memory than the one that the record's iteration followed. It becomes active
   when that is worth it. */
static void outgrow(capu_context *context, struct label_record *label, const struct record *record,
                    struct plan_entry *entry)
{
    if (record->is_timed && find_place(context->plans.keeper) != NULL) {
        entry->budget_bytes = context->settings.config.budget_bytes; /* asked once */
        start_job(context, label, record, NULL, NULL);
    }
}

/* Makes a new plan of a record of a guided iteration, where feedback.h says so. While a job still
   makes one for the same ops, the times are taken, too: the job may end without a plan. */
static void review(capu_context *context, const struct record *record)
{
    struct label_record *label = label_records_find(&context->plans.labels, record->label);
    struct plan_entry *entry =
        label != NULL ? plan_cache_find(&label->plans, record->signature) : NULL;
    struct feedback_link link;

    if (entry == NULL) {
        return;
    }
    if (entry->budget_bytes < context->settings.config.budget_bytes &&
        find_job(context->plans.keeper, record->label, record->signature) == NULL) {
        outgrow(context, label, record, entry);
        return;
    }
    if (!feedback_take(&entry->feedback, record, &link)) {
        return;
    }
    if (find_job(context->plans.keeper, record->label, record->signature) != NULL) {
        feedback_again(&entry->feedback);
        return;
    }
    plan_cache_discard_better(&label->plans, entry); /* made with other times */
    start_job(context, label, record, entry, &link);
    entry->feedback.round++; /* each review costs a plan: they become fewer */
    entry->feedback.window *= 2;
    feedback_restart(&entry->feedback);
}

void planning_review(capu_context *context)
{
    struct plan_keeper *planning = context->plans.keeper;
    const struct record *record;

    while (planning != NULL && (record = tracker_finished_after(&context->records.tracker,
                                                                planning->reviewed)) != NULL) {
        planning->reviewed = record->stamp;
        if (record->report.graph != 0) {
            continue; /* it takes another time than what the plan is compared with */
        }
        if (record->report.mode == CAPU_MODE_GUIDED && record->report.diverged == 0) {
            review(context, record);
        } else {
            consider(context, record);
        }
    }
}

static bool is_traced_next(const capu_context *context)
{
    return context->settings.config.trace_path != NULL &&
           context->iteration.number + 1 == context->settings.config.trace_iteration;
}

bool planning_wants_times(capu_context *context)
{
    return context->guided.active == NULL ||
           feedback_wants_times(&context->guided.active->feedback,
                                context->settings.config.sample_every) ||
           is_traced_next(context);
}

bool planning_times_next(const capu_context *context)
{
    return feedback_times_next(&context->guided.active->feedback,
                               context->settings.config.sample_every) ||
           is_traced_next(context);
}

/* Plans for finished records that have no plan: all jobs may have been busy, or the plan was
   discarded. The newest comes first, since an older one with the same ops may be stale. */
static void consider_again(capu_context *context)
{
    struct tracker *tracker = &context->records.tracker;
    uint64_t before = UINT64_MAX;

    for (size_t round = 0; round < RECORD_COUNT; round++) {
        const struct record *newest = NULL;

        for (size_t i = 0; i < RECORD_COUNT; i++) {
            const struct record *record = &tracker->records[i];

            if (record->state == RECORD_FINISHED && record->stamp < before &&
                (newest == NULL || record->stamp > newest->stamp)) {
                newest = record;
            }
        }
        if (newest == NULL) {
            return;
        }
        before = newest->stamp;
        consider(context, newest);
    }
}

/* Waits for the plan of the iteration that is expected, if there is a record of one to plan for. */
static capu_status wait_for_plan(capu_context *context, const char *label, uint64_t signature)
{
    struct plan_keeper *planning = context->plans.keeper;
    struct plan_job **job = find_job(planning, label, signature);
    capu_status status = CAPU_OK;

    if (job == NULL) {
        status = failure_check(&context->failure, lane_synchronize(&context->lanes.compute),
                               "waiting for an iteration to plan for");
        if (status == CAPU_OK) {
            status = tracker_settle(&context->records);
            planning_review(context);
        }
        consider_again(context);
        job = find_job(planning, label, signature);
    }
    if (status == CAPU_OK && job != NULL) {
        plan_job_wait(*job);
        take_jobs(context);
    }
    return status;
}

/* The end of the work that the device still has; a position that has passed: none. */
static struct lane_position find_end(const capu_context *context)
{
    const struct record *newest = NULL;

    for (size_t i = 0; i < RECORD_COUNT; i++) {
        const struct record *record = &context->records.tracker.records[i];

        if (record->state == RECORD_RUNNING && (newest == NULL || record->stamp > newest->stamp)) {
            newest = record;
        }
    }
    return newest != NULL ? newest->end : (struct lane_position){0};
}

/* Whether waiting for a first plan costs no more than going on without one: the device works on
   earlier iterations, for which installing a plan waits anyway, or less time has passed than the
   recorded iteration stalled. */
static bool is_worth_waiting(struct plan_job *job, struct lane_position end)
{
    uint64_t passed_ns = monotonic_now_ns() - job->started_ns;

    return !plan_job_has_plan(job) && !plan_job_is_done(job) && passed_ns < PLANNING_PATIENCE_NS &&
           (passed_ns < job->stall_ns || !lane_has_passed(end));
}

/* Waits for a first plan as long as that is worth it; not on a device whose clock stands still
   meanwhile, as that of sim does. */
static void wait_for_stage(capu_context *context, const char *label, uint64_t signature)
{
    struct plan_job **job = find_job(context->plans.keeper, label, signature);
    struct lane_position end = find_end(context);
    bool is_moving = true;

    while (job != NULL && is_moving && is_worth_waiting(*job, end)) {
        uint64_t before = device_now_ns(context->lanes.device);

        nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
        is_moving = device_now_ns(context->lanes.device) != before;
    }
    take_jobs(context);
}

/* With wait_for_plan: waits for what the job of a first plan does after it has found the plan,
   which is to look for the smallest budget. */
static void end_first_job(capu_context *context, const char *label, uint64_t signature)
{
    struct plan_job **job = context->settings.config.wait_for_plan != 0
                                ? find_job(context->plans.keeper, label, signature)
                                : NULL;

    if (job != NULL && (*job)->entry->feedback.round == 0) {
        plan_job_wait(*job);
        take_jobs(context);
    }
}

/* The signature to expect. An iteration that was new may be here to stay, so after one of those the
   usual is expected only if there is a guide for it. */
static uint64_t expect(const struct label_record *label)
{
    uint64_t signature;

    if (predictor_predict(&label->predictor, &signature) == 0 &&
        plan_cache_find(&label->plans, signature) == NULL) {
        signature = predictor_newest(&label->predictor);
    }
    return signature;
}

static capu_status choose(capu_context *context, const struct label_record *label,
                          struct plan_entry **entry)
{
    uint64_t signature;
    capu_status status = CAPU_OK;

    *entry = NULL;
    if (label->predictor.count == 0 || backoff_is_paused(&label->backoff)) {
        return CAPU_OK;
    }
    signature = expect(label);
    end_first_job(context, label->label, signature);
    *entry = plan_cache_find(&label->plans, signature);
    if (*entry != NULL || plan_cache_refusal(&label->plans, signature) != NULL) {
        return CAPU_OK;
    }
    if (context->settings.config.wait_for_plan != 0) {
        status = wait_for_plan(context, label->label, signature);
    } else {
        wait_for_stage(context, label->label, signature);
    }
    *entry = plan_cache_find(&label->plans, signature);
    return status;
}

static capu_status install(capu_context *context, struct plan_cache *plans,
                           struct plan_entry *entry)
{
    capu_status status = install_guide(&context->following, entry);

    if (status == CAPU_OK || context->failure.lost != CAPU_OK) {
        return context->failure.lost;
    }
    if (status == CAPU_NOT_READY) {
        /* Its tensors are not what they were: there will be a plan of the next record. */
        plan_cache_discard(plans, entry);
        return CAPU_OK;
    }
    entry->failures++;
    if (entry->failures >= FAILURES) {
        plan_cache_refuse(plans, entry->guide->signature, context->failure.text);
        plan_cache_discard(plans, entry);
    }
    return CAPU_OK;
}

/* Whether the active plan has to go: another one is next, or there is a better one and changing is
   worth it. */
static bool must_leave(const capu_context *context, const struct plan_entry *entry)
{
    struct plan_entry *active = context->guided.active;

    return active != entry ||
           (active->better != NULL && improvement_is_due(&active->improvement, active->change_ns));
}

/* Leaves the active plan, once all work has completed. Adds how long it took after that. */
static capu_status leave(capu_context *context, uint64_t *change_ns)
{
    uint64_t start;
    capu_status status;

    lanes_quiesce_all(&context->lanes);
    start = device_now_ns(context->lanes.device);
    status = leave_guide(&context->residency);
    *change_ns += device_now_ns(context->lanes.device) - start;
    return status;
}

capu_status planning_begin(capu_context *context, struct label_record *label)
{
    struct plan_entry *entry;
    uint64_t change_ns = 0;
    capu_status status;

    label_records_discard_wrong(&context->plans.labels);
    take_jobs(context);
    wait_for_place(context);
    consider_again(context);
    status = choose(context, label, &entry);
    if (status == CAPU_OK && context->guided.active != NULL && must_leave(context, entry)) {
        status = leave(context, &change_ns);
    }
    if (status != CAPU_OK) {
        return status;
    }
    if (context->guided.active == NULL) {
        parked_clear(&context->residency);
    }
    if (entry == NULL) {
        return CAPU_OK;
    }
    if (context->guided.active == NULL && entry->better != NULL) {
        entry = plan_cache_promote(&label->plans, entry);
    }
    entry->used = context->iteration.number + 1;
    if (context->guided.active == entry) {
        context->guided.binding.next = 0;
        context->guided.binding.free_count = 0;
        return CAPU_OK;
    }
    entry->change_ns = change_ns;
    return install(context, &label->plans, entry);
}

static void end_job(struct plan_keeper *planning, size_t index)
{
    struct plan_job *job = planning->jobs[index];

    plan_job_stop(job);
    plan_job_wait(job);
    plan_job_destroy(job);
    planning->jobs[index] = NULL;
}

/* Ends the jobs whose guides have a tensor that begins there. */
static void stop_jobs(struct plan_keeper *planning, const void *address)
{
    for (size_t i = 0; i < JOBS; i++) {
        struct plan_job *job = planning->jobs[i];

        if (job != NULL && guide_has_tensor(job->entry->guide, address)) {
            end_job(planning, i);
        }
    }
}

/* Gives up the guides of a label that have a tensor that begins there. */
static capu_status forget_guides(capu_context *context, struct plan_cache *plans,
                                 const void *address)
{
    capu_status status = CAPU_OK;

    for (size_t i = plans->count; i-- > 0 && status == CAPU_OK;) {
        struct plan_entry *entry = plans->slots[i].entry;

        if (!guide_has_tensor(entry->guide, address)) {
            continue;
        }
        if (entry == context->guided.active) {
            status = leave_guide(&context->residency);
        }
        entry->feedback.is_wrong = true; /* recovery may need it until the iteration ends */
        if (status == CAPU_OK && entry->guide != context->guided.owed.guide) {
            plan_cache_discard(plans, entry);
        }
    }
    return status;
}

capu_status planning_forget(capu_context *context, const void *address)
{
    capu_status status = CAPU_OK;

    if (context->plans.keeper == NULL) {
        return CAPU_OK;
    }
    stop_jobs(context->plans.keeper, address);
    for (size_t i = 0; i < context->plans.labels.count && status == CAPU_OK; i++) {
        status = forget_guides(context, &context->plans.labels.slots[i].record->plans, address);
    }
    return status;
}

/* Ends the jobs that plan in more memory than there is now. */
static void stop_larger_jobs(capu_context *context)
{
    struct plan_keeper *planning = context->plans.keeper;

    for (size_t i = 0; i < JOBS; i++) {
        if (planning->jobs[i] != NULL &&
            planning->jobs[i]->budget_bytes > context->settings.config.budget_bytes) {
            end_job(planning, i);
        }
    }
}

static bool fits(const capu_context *context, const struct plan_entry *entry)
{
    return entry->guide->page_count + memory_kept_pages(&context->memory) <=
           pages_limit(context->memory.pages);
}

void planning_note_budget(capu_context *context)
{
    if (context->plans.keeper == NULL) {
        return;
    }
    stop_larger_jobs(context);
    for (size_t i = 0; i < context->plans.labels.count; i++) {
        struct plan_cache *plans = &context->plans.labels.slots[i].record->plans;

        plan_cache_forget_refusals(plans);
        for (size_t k = 0; k < plans->count; k++) {
            struct plan_entry *entry = plans->slots[k].entry;

            if (entry != context->guided.active && !fits(context, entry)) {
                entry->feedback.is_wrong = true; /* recovery may need it until the iteration ends */
            } else if (entry->better != NULL && !fits(context, entry->better)) {
                plan_cache_discard_better(plans, entry);
            }
            if (entry->budget_bytes < context->settings.config.budget_bytes) {
                feedback_again(&entry->feedback);
            }
        }
    }
}

void planning_end(struct label_record *label, const struct record *record)
{
    predictor_add(&label->predictor, record->signature);
    backoff_note(&label->backoff, record->report.mode == CAPU_MODE_GUIDED,
                 record->report.diverged != 0);
}

static const char *error_of(const struct label_record *label)
{
    const char *refusal = NULL;

    if (backoff_is_paused(&label->backoff)) {
        return "guided mode pauses under this label, since too many iterations in a row left their "
               "plans";
    }
    if (label->predictor.count > 0) {
        refusal = plan_cache_refusal(&label->plans, predictor_newest(&label->predictor));
    }
    if (refusal == NULL && label->was_displaced) {
        return "a plan of this label was discarded, since all that are kept would take more than "
               "plan_memory_bytes";
    }
    return refusal != NULL ? refusal : "";
}

/* The label of the iteration under way, or of the last one. NULL: it is not remembered. */
static struct label_record *newest_label(const capu_context *context)
{
    for (size_t i = 0; i < RECORD_COUNT; i++) {
        const struct record *record = &context->records.tracker.records[i];

        if (record->state != RECORD_UNUSED && record->stamp == context->iteration.number) {
            return label_records_find(&context->plans.labels, record->label);
        }
    }
    return NULL;
}

void planning_note_loss(capu_context *context)
{
    struct label_record *label = newest_label(context);

    if (context->plans.keeper == NULL || label == NULL || keeps_contents(context, label) ||
        leave_guide(&context->residency) != CAPU_OK) {
        return;
    }
    label->has_lost = true;
    for (size_t i = 0; i < label->plans.count; i++) {
        label->plans.slots[i].entry->feedback.is_wrong = true; /* recovery may need it until then */
    }
}

const char *planning_error(capu_context *context, const char *label)
{
    const struct label_record *record;

    label = names_intern(&context->memory.names, label);
    if (context->plans.keeper == NULL || label == NULL) {
        return "";
    }
    record = label_records_find(&context->plans.labels, label);
    return record != NULL ? error_of(record) : "";
}

/* How long a plan for the label has been in the making; 0: none is. */
static uint64_t planning_time(const capu_context *context, const struct label_record *label)
{
    uint64_t longest_ns = 0;

    for (size_t i = 0; context->plans.keeper != NULL && i < JOBS; i++) {
        const struct plan_job *job = context->plans.keeper->jobs[i];

        if (job != NULL && job->entry->guide->label == label->label) {
            uint64_t ns = monotonic_now_ns() - job->started_ns + 1;

            longest_ns = ns > longest_ns ? ns : longest_ns;
        }
    }
    return longest_ns;
}

void planning_report(const capu_context *context, const struct label_record *label,
                     capu_report *report)
{
    report->guided_mode = context->plans.keeper != NULL;
    report->effort = context->plans.keeper != NULL ? context->settings.config.effort : 0;
    report->plan_bytes = label_records_plan_bytes(&context->plans.labels);
    report->retry_in = label->backoff.left;
    report->guided_floor_bytes = label->guided_floor_bytes;
    report->plan_stage = context->guided.active != NULL ? context->guided.active->stage : 0;
    report->planning_ns = planning_time(context, label);
}

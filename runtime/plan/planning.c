/* Plans from records, and which one comes next; see planning.h. */
#include "runtime/plan/planning.h"

#include "device/monotonic.h"
#include "runtime/context/device_choice.h"
#include "runtime/context/failure.h"
#include "runtime/follow/following.h"
#include "runtime/plan/plan_job.h"
#include "runtime/plan/plans.h"
#include "runtime/residency/departure.h"
#include "runtime/residency/residency.h"

#include <stdlib.h>

enum { FAILURES = 3, JOBS = PLANNING_JOBS };

struct plan_keeper {
    struct plan_job *jobs[JOBS];
    uint64_t reviewed; /* the iteration of the newest record taken from the tracker */
};

static capu_status measure_link(struct plans *plans)
{
    capu_status status =
        device_choice_measure(plans->lanes->device, &plans->settings->config, &plans->lanes->link);

    return failure_check(plans->failure, status, "measuring the link between device and host");
}

capu_status planning_create(struct plans *plans, struct plan_keeper **out)
{
    struct plan_keeper *planning = calloc(1, sizeof(*planning));
    capu_status status;

    if (planning == NULL) {
        return failure_set(plans->failure, CAPU_NO_HOST_MEMORY, "no memory for planning");
    }
    status = measure_link(plans);
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

bool planning_keep(struct plans *plans, struct label_record *label, struct plan_entry *entry)
{
    struct plan_entry *old = plan_cache_find(&label->plans, entry->guide->signature);
    uint64_t limit_bytes = plans->settings->config.plan_memory_bytes;

    entry->stage = 1;
    if (old != NULL) {
        if (!is_wanted(entry, old)) {
            return false;
        }
        if (old == plans->guided->active && entry->feedback.round == 0 &&
            entry->guide->is_unplaced == old->guide->is_unplaced) {
            label_records_add_better(&plans->labels, label, old, entry, limit_bytes);
            return true;
        }
        if (old == plans->guided->active && leave_guide(plans->residency) != CAPU_OK) {
            return false;
        }
        entry->stage = old->stage + 1;
        plan_cache_discard(&label->plans, old);
    }
    entry->used = plans->iteration->number;
    return label_records_add_plan(&plans->labels, label, entry, plans->guided->active, limit_bytes);
}

static void refuse(struct label_record *label, const struct plan_job *job, capu_status status)
{
    plan_cache_refuse(&label->plans, job->entry->guide->signature, plan_job_error(job, status));
}

/* Whether plans for a label copy out what nothing could recompute, instead of discarding it. */
static bool keeps_contents(const struct plans *plans, const struct label_record *label)
{
    return label->has_lost || plans->settings->config.keep_contents != 0;
}

/* Takes the newest plan that a job has found, unless the label has been replaced meanwhile, or
   needs a plan that keeps more. */
static void take_plan(struct plans *plans, struct plan_job *job)
{
    struct label_record *label = label_records_find(&plans->labels, job->entry->guide->label);
    struct plan_entry *entry = plan_job_take(job);

    if (entry == NULL) {
        return;
    }
    if (label == NULL || entry->keeps_contents != keeps_contents(plans, label) ||
        !planning_keep(plans, label, entry)) {
        plan_entry_destroy(entry);
        return;
    }
    if (job->wants_text) {
        agent_plan(plans->agent, entry->text.data, entry->text.length);
        entry->text = (struct string_buffer){0};
    }
}

static void finish_job(struct plans *plans, struct plan_job *job)
{
    struct label_record *label = label_records_find(&plans->labels, job->entry->guide->label);

    if (label != NULL && job->least_bytes > 0) {
        label->guided_floor_bytes = job->least_bytes;
    }
    if (job->status != CAPU_OK && job->entry->feedback.round == 0 && label != NULL &&
        job->entry->keeps_contents == keeps_contents(plans, label)) {
        refuse(label, job, job->status);
    }
    plan_job_destroy(job);
}

static void take_jobs(struct plans *plans)
{
    struct plan_keeper *planning = plans->keeper;

    for (size_t i = 0; i < JOBS; i++) {
        struct plan_job *job = planning->jobs[i];
        bool is_done = job != NULL && plan_job_is_done(job);

        if (job != NULL) {
            take_plan(plans, job);
        }
        if (is_done) {
            planning->jobs[i] = NULL;
            finish_job(plans, job);
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
static void wait_for_place(struct plans *plans)
{
    struct plan_keeper *planning = plans->keeper;

    if (plans->settings->config.wait_for_plan != 0 && find_place(planning) == NULL) {
        plan_job_wait(planning->jobs[0]);
        take_jobs(plans);
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
static void start_job(struct plans *plans, struct label_record *label, const struct record *record,
                      const struct plan_entry *old, const struct feedback_link *link)
{
    struct plan_job **place = find_place(plans->keeper);
    struct plan_job *job;
    capu_status status;

    if (place == NULL) {
        return; /* the next record is another chance */
    }
    status = plan_job_start(plans, record, keeps_contents(plans, label), old, link, &job);
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
static void consider(struct plans *plans, const struct record *record)
{
    struct label_record *label = label_records_find(&plans->labels, record->label);

    if (label != NULL && record->op_count > 0 && !backoff_is_paused(&label->backoff) &&
        find_job(plans->keeper, record->label, record->signature) == NULL &&
        plan_cache_find(&label->plans, record->signature) == NULL &&
        plan_cache_refusal(&label->plans, record->signature) == NULL) {
        start_job(plans, label, record, NULL, NULL);
    }
}

/* Makes a plan in more memory than the one that the record's iteration followed. It becomes active
   when that is worth it. */
static void outgrow(struct plans *plans, struct label_record *label, const struct record *record,
                    struct plan_entry *entry)
{
    if (record->is_timed && find_place(plans->keeper) != NULL) {
        entry->budget_bytes = plans->settings->config.budget_bytes; /* asked once */
        start_job(plans, label, record, NULL, NULL);
    }
}

/* Makes a new plan of a record of a guided iteration, where feedback.h says so. While a job still
   makes one for the same ops, the times are taken, too: the job may end without a plan. */
static void review(struct plans *plans, const struct record *record)
{
    struct label_record *label = label_records_find(&plans->labels, record->label);
    struct plan_entry *entry =
        label != NULL ? plan_cache_find(&label->plans, record->signature) : NULL;
    struct feedback_link link;

    if (entry == NULL) {
        return;
    }
    if (entry->budget_bytes < plans->settings->config.budget_bytes &&
        find_job(plans->keeper, record->label, record->signature) == NULL) {
        outgrow(plans, label, record, entry);
        return;
    }
    if (!feedback_take(&entry->feedback, record, &link)) {
        return;
    }
    if (find_job(plans->keeper, record->label, record->signature) != NULL) {
        feedback_again(&entry->feedback);
        return;
    }
    plan_cache_discard_better(&label->plans, entry); /* made with other times */
    start_job(plans, label, record, entry, &link);
    entry->feedback.round++; /* each review costs a plan: they become fewer */
    entry->feedback.window *= 2;
    feedback_restart(&entry->feedback);
}

void planning_review(struct plans *plans)
{
    struct plan_keeper *planning = plans->keeper;
    const struct record *record;

    while (planning != NULL && (record = tracker_finished_after(&plans->records->tracker,
                                                                planning->reviewed)) != NULL) {
        planning->reviewed = record->stamp;
        if (record->report.graph != 0) {
            continue; /* it takes another time than what the plan is compared with */
        }
        if (record->report.mode == CAPU_MODE_GUIDED && record->report.diverged == 0) {
            review(plans, record);
        } else {
            consider(plans, record);
        }
    }
}

static bool is_traced_next(const struct plans *plans)
{
    return plans->settings->config.trace_path != NULL &&
           plans->iteration->number + 1 == plans->settings->config.trace_iteration;
}

bool planning_wants_times(struct plans *plans)
{
    return plans->guided->active == NULL ||
           feedback_wants_times(&plans->guided->active->feedback,
                                plans->settings->config.sample_every) ||
           is_traced_next(plans);
}

bool planning_times_next(const struct plans *plans)
{
    return feedback_times_next(&plans->guided->active->feedback,
                               plans->settings->config.sample_every) ||
           is_traced_next(plans);
}

/* Plans for finished records that have no plan: all jobs may have been busy, or the plan was
   discarded. The newest comes first, since an older one with the same ops may be stale. */
static void consider_again(struct plans *plans)
{
    struct tracker *tracker = &plans->records->tracker;
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
        consider(plans, newest);
    }
}

/* Waits for the plan of the iteration that is expected, if there is a record of one to plan for. */
static capu_status wait_for_plan(struct plans *plans, const char *label, uint64_t signature)
{
    struct plan_keeper *planning = plans->keeper;
    struct plan_job **job = find_job(planning, label, signature);
    capu_status status = CAPU_OK;

    if (job == NULL) {
        status = failure_check(plans->failure, lane_synchronize(&plans->lanes->compute),
                               "waiting for an iteration to plan for");
        if (status == CAPU_OK) {
            status = tracker_settle(plans->records);
            planning_review(plans);
        }
        consider_again(plans);
        job = find_job(planning, label, signature);
    }
    if (status == CAPU_OK && job != NULL) {
        plan_job_wait(*job);
        take_jobs(plans);
    }
    return status;
}

/* Waits for a first plan as long as that is worth it. */
static void wait_for_stage(struct plans *plans, const char *label, uint64_t signature)
{
    struct plan_job **job = find_job(plans->keeper, label, signature);

    if (job != NULL) {
        plan_job_wait_briefly(*job, plans->lanes->device,
                              tracker_newest_end(&plans->records->tracker));
    }
    take_jobs(plans);
}

/* With wait_for_plan: waits for what the job of a first plan does after it has found the plan,
   which is to look for the smallest budget. */
static void end_first_job(struct plans *plans, const char *label, uint64_t signature)
{
    struct plan_job **job = plans->settings->config.wait_for_plan != 0
                                ? find_job(plans->keeper, label, signature)
                                : NULL;

    if (job != NULL && (*job)->entry->feedback.round == 0) {
        plan_job_wait(*job);
        take_jobs(plans);
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

static capu_status choose(struct plans *plans, const struct label_record *label,
                          struct plan_entry **entry)
{
    uint64_t signature;
    capu_status status = CAPU_OK;

    *entry = NULL;
    if (label->predictor.count == 0 || backoff_is_paused(&label->backoff)) {
        return CAPU_OK;
    }
    signature = expect(label);
    end_first_job(plans, label->label, signature);
    *entry = plan_cache_find(&label->plans, signature);
    if (*entry != NULL || plan_cache_refusal(&label->plans, signature) != NULL) {
        return CAPU_OK;
    }
    if (plans->settings->config.wait_for_plan != 0) {
        status = wait_for_plan(plans, label->label, signature);
    } else {
        wait_for_stage(plans, label->label, signature);
    }
    *entry = plan_cache_find(&label->plans, signature);
    return status;
}

static capu_status install(struct plans *plans, struct plan_cache *cache, struct plan_entry *entry)
{
    capu_status status = install_guide(plans->following, entry);

    if (status == CAPU_OK || plans->failure->lost != CAPU_OK) {
        return plans->failure->lost;
    }
    if (status == CAPU_NOT_READY) {
        /* Its tensors are not what they were: there will be a plan of the next record. */
        plan_cache_discard(cache, entry);
        return CAPU_OK;
    }
    entry->failures++;
    if (entry->failures >= FAILURES) {
        plan_cache_refuse(cache, entry->guide->signature, plans->failure->text);
        plan_cache_discard(cache, entry);
    }
    return CAPU_OK;
}

/* Whether the active plan has to go: another one is next, or there is a better one and changing is
   worth it. */
static bool must_leave(const struct plans *plans, const struct plan_entry *entry)
{
    struct plan_entry *active = plans->guided->active;

    return active != entry ||
           (active->better != NULL && improvement_is_due(&active->improvement, active->change_ns));
}

/* Leaves the active plan, once all work has completed. Adds how long it took after that. */
static capu_status leave(struct plans *plans, uint64_t *change_ns)
{
    uint64_t start;
    capu_status status;

    lanes_quiesce_all(plans->lanes);
    start = device_now_ns(plans->lanes->device);
    status = leave_guide(plans->residency);
    *change_ns += device_now_ns(plans->lanes->device) - start;
    return status;
}

capu_status planning_begin(struct plans *plans, struct label_record *label)
{
    struct plan_entry *entry;
    uint64_t change_ns = 0;
    capu_status status;

    label_records_discard_wrong(&plans->labels);
    take_jobs(plans);
    wait_for_place(plans);
    consider_again(plans);
    status = choose(plans, label, &entry);
    if (status == CAPU_OK && plans->guided->active != NULL && must_leave(plans, entry)) {
        status = leave(plans, &change_ns);
    }
    if (status != CAPU_OK) {
        return status;
    }
    if (plans->guided->active == NULL) {
        parked_clear(plans->residency);
    }
    if (entry == NULL) {
        return CAPU_OK;
    }
    if (plans->guided->active == NULL && entry->better != NULL) {
        entry = plan_cache_promote(&label->plans, entry);
    }
    entry->used = plans->iteration->number + 1;
    if (plans->guided->active == entry) {
        plans->guided->binding.next = 0;
        plans->guided->binding.free_count = 0;
        return CAPU_OK;
    }
    entry->change_ns = change_ns;
    return install(plans, &label->plans, entry);
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
static capu_status forget_guides(struct plans *plans, struct plan_cache *cache, const void *address)
{
    capu_status status = CAPU_OK;

    for (size_t i = cache->count; i-- > 0 && status == CAPU_OK;) {
        struct plan_entry *entry = cache->slots[i].entry;

        if (!guide_has_tensor(entry->guide, address)) {
            continue;
        }
        if (entry == plans->guided->active) {
            status = leave_guide(plans->residency);
        }
        entry->feedback.is_wrong = true; /* recovery may need it until the iteration ends */
        if (status == CAPU_OK && entry->guide != plans->guided->owed.guide) {
            plan_cache_discard(cache, entry);
        }
    }
    return status;
}

capu_status planning_forget(struct plans *plans, const void *address)
{
    capu_status status = CAPU_OK;

    if (plans->keeper == NULL) {
        return CAPU_OK;
    }
    stop_jobs(plans->keeper, address);
    for (size_t i = 0; i < plans->labels.count && status == CAPU_OK; i++) {
        status = forget_guides(plans, &plans->labels.slots[i].record->plans, address);
    }
    return status;
}

/* Ends the jobs that plan in more memory than there is now. */
static void stop_larger_jobs(struct plans *plans)
{
    struct plan_keeper *planning = plans->keeper;

    for (size_t i = 0; i < JOBS; i++) {
        if (planning->jobs[i] != NULL &&
            planning->jobs[i]->budget_bytes > plans->settings->config.budget_bytes) {
            end_job(planning, i);
        }
    }
}

static bool fits(const struct plans *plans, const struct plan_entry *entry)
{
    return entry->guide->page_count + memory_kept_pages(plans->memory) <=
           pages_limit(plans->memory->pages);
}

void planning_note_budget(struct plans *plans)
{
    if (plans->keeper == NULL) {
        return;
    }
    stop_larger_jobs(plans);
    for (size_t i = 0; i < plans->labels.count; i++) {
        struct plan_cache *cache = &plans->labels.slots[i].record->plans;

        plan_cache_forget_refusals(cache);
        for (size_t k = 0; k < cache->count; k++) {
            struct plan_entry *entry = cache->slots[k].entry;

            if (entry != plans->guided->active && !fits(plans, entry)) {
                entry->feedback.is_wrong = true; /* recovery may need it until the iteration ends */
            } else if (entry->better != NULL && !fits(plans, entry->better)) {
                plan_cache_discard_better(cache, entry);
            }
            if (entry->budget_bytes < plans->settings->config.budget_bytes) {
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

/* The label of the iteration under way, or of the last one. NULL: it is not remembered. */
static struct label_record *newest_label(const struct plans *plans)
{
    for (size_t i = 0; i < RECORD_COUNT; i++) {
        const struct record *record = &plans->records->tracker.records[i];

        if (record->state != RECORD_UNUSED && record->stamp == plans->iteration->number) {
            return label_records_find(&plans->labels, record->label);
        }
    }
    return NULL;
}

void planning_note_loss(struct plans *plans)
{
    struct label_record *label = newest_label(plans);

    if (plans->keeper == NULL || label == NULL || keeps_contents(plans, label) ||
        leave_guide(plans->residency) != CAPU_OK) {
        return;
    }
    label->has_lost = true;
    for (size_t i = 0; i < label->plans.count; i++) {
        label->plans.slots[i].entry->feedback.is_wrong = true; /* recovery may need it until then */
    }
}

const char *planning_error(struct plans *plans, const char *label)
{
    const struct label_record *record;

    label = names_intern(&plans->memory->names, label);
    if (plans->keeper == NULL || label == NULL) {
        return "";
    }
    record = label_records_find(&plans->labels, label);
    return record != NULL ? label_records_refusal(record) : "";
}

/* How long a plan for the label has been in the making; 0: none is. */
static uint64_t planning_time(const struct plans *plans, const struct label_record *label)
{
    uint64_t longest_ns = 0;

    for (size_t i = 0; plans->keeper != NULL && i < JOBS; i++) {
        const struct plan_job *job = plans->keeper->jobs[i];

        if (job != NULL && job->entry->guide->label == label->label) {
            uint64_t ns = monotonic_now_ns() - job->started_ns + 1;

            longest_ns = ns > longest_ns ? ns : longest_ns;
        }
    }
    return longest_ns;
}

void planning_report(const struct plans *plans, const struct label_record *label,
                     struct report *report)
{
    report->guided_mode = plans->keeper != NULL;
    report->effort = plans->keeper != NULL ? plans->settings->config.effort : 0;
    report->plan_bytes = label_records_plan_bytes(&plans->labels);
    report->retry_in = label->backoff.left;
    report->guided_floor_bytes = label->guided_floor_bytes;
    report->plan_stage = plans->guided->active != NULL ? plans->guided->active->stage : 0;
    report->planning_ns = planning_time(plans, label);
}

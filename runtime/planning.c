/* Plans from records, and which one comes next; see planning.h. */
#include "runtime/planning.h"

#include "policy/planner.h"
#include "policy/timeline.h"
#include "runtime/failure.h"
#include "runtime/feedback.h"
#include "runtime/install.h"
#include "runtime/internal.h"
#include "runtime/leave.h"
#include "runtime/parked.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { FAILURES = 3, HOST_ROUNDS = 4, JOBS = 3 };

/* One plan in the making; the worker's from agent_start until it is done. */
struct job {
    struct trace trace;
    struct guide *guide;
    const struct planner *planner;
    enum planner_effort effort;
    uint64_t budget_bytes;
    uint64_t host_bytes;
    uint64_t page_bytes;
    bool wants_text; /* the plan as a file */
    atomic_bool stop;
    struct agent_task *task;

    capu_status status;
    struct error_text error;
    struct string_buffer text;
};

struct plan_keeper {
    struct job *jobs[JOBS]; /* fewer than libuv's threads: pinning must not wait for plans */
    struct agent *agent;
    uint64_t reviewed; /* the iteration of the newest record taken from the tracker */
};

static bool should_stop(void *user)
{
    struct job *job = user;

    return atomic_load(&job->stop);
}

/* Bytes of host memory if every tensor that is ever copied out keeps its block. */
static uint64_t block_bytes(const struct job *job, const struct plan *plan, bool *is_copied)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < plan->action_count; i++) {
        const struct plan_action *action = &plan->actions[i];
        bool copies = action->kind == ACTION_EVICT || action->kind == ACTION_SAVE ||
                      action->kind == ACTION_PREFETCH;

        if (copies && !is_copied[action->tensor]) {
            is_copied[action->tensor] = true;
            bytes += job->trace.tensors[action->tensor].bytes;
        }
    }
    return bytes;
}

/* A plan whose blocks, which are kept for good, fit the host budget. Plans share host memory over
   time and the runtime does not, so where that is too much it asks for less. */
static capu_status find_plan(struct job *job, const struct trace_index *trace_index,
                             struct plan *plan)
{
    struct planner_request request = {
        .trace_index = trace_index,
        .budget_bytes = job->budget_bytes,
        .host_bytes = job->host_bytes,
        .effort = job->effort,
        .place = true,
        .should_stop = should_stop,
        .user = job,
    };
    bool *is_copied = calloc((size_t)job->trace.tensor_count + 1, sizeof(*is_copied));
    capu_status status = is_copied != NULL ? CAPU_OK : CAPU_NO_HOST_MEMORY;

    for (int round = 0; round < HOST_ROUNDS && status == CAPU_OK; round++) {
        uint64_t bytes;

        status = planner_run(job->planner, &request, plan, &job->error);
        if (status != CAPU_OK) {
            break;
        }
        memset(is_copied, 0, job->trace.tensor_count);
        bytes = block_bytes(job, plan, is_copied);
        if (bytes <= job->host_bytes) {
            free(is_copied);
            return CAPU_OK;
        }
        plan_finish(plan);
        request.host_bytes =
            (uint64_t)((double)request.host_bytes * (double)job->host_bytes / (double)bytes);
    }
    free(is_copied);
    return status != CAPU_OK ? status
                             : error_text_set(&job->error, CAPU_HOST_OVER_BUDGET,
                                              "no plan whose host copies fit the host budget");
}

static capu_status make_guide(struct job *job, const struct trace_index *trace_index)
{
    struct plan plan = {0};
    struct timeline timeline = {0};
    capu_status status = find_plan(job, trace_index, &plan);

    if (status != CAPU_OK) {
        return status;
    }
    status = timeline_init(&timeline, trace_index, &plan, NULL, false, &job->error);
    if (status == CAPU_OK) {
        status = guide_compile(job->guide, trace_index, &plan, &job->error);
    }
    if (status == CAPU_OK && job->wants_text) {
        status = plan_write(&plan, &job->text, &job->error);
    }
    job->guide->predicted_ns = timeline.iteration_ns;
    job->guide->ideal_ns = timeline.ideal_ns;
    job->guide->replay_ns = timeline.replay_ns;
    timeline_finish(&timeline);
    plan_finish(&plan);
    return status;
}

/* On libuv's work queue. */
static void run_job(void *data)
{
    struct job *job = data;
    struct trace_index trace_index = {0};

    job->status = trace_index_init(&trace_index, &job->trace, job->page_bytes, &job->error);
    if (job->status == CAPU_OK) {
        job->status = make_guide(job, &trace_index);
    }
    trace_index_finish(&trace_index);
}

static void job_destroy(struct job *job)
{
    if (job == NULL) {
        return;
    }
    agent_forget(job->task);
    guide_destroy(job->guide);
    trace_finish(&job->trace);
    string_buffer_finish(&job->text);
    free(job);
}

capu_status planning_create(capu_context *context, struct plan_keeper **out)
{
    struct plan_keeper *planning = calloc(1, sizeof(*planning));
    capu_status status;

    if (planning == NULL) {
        return failure_set(context, CAPU_NO_HOST_MEMORY, "no memory for planning");
    }
    status = links_measure(context, &context->links);
    if (status != CAPU_OK) {
        free(planning);
        return status;
    }
    planning->agent = context->agent;
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
            atomic_store(&planning->jobs[i]->stop, true);
        }
    }
    for (size_t i = 0; i < JOBS; i++) {
        if (planning->jobs[i] != NULL) {
            agent_wait(planning->agent, planning->jobs[i]->task);
            job_destroy(planning->jobs[i]);
        }
    }
    free(planning);
}

/* A guide that is still the best is expected to take what it took, with ops as they are now. */
static void expect_measured(struct guide *guide, const struct guide *newer)
{
    guide->predicted_ns = guide->measured_ns;
    guide->ideal_ns = newer->ideal_ns;
    for (uint32_t k = 0; k < guide->op_count; k++) {
        guide->ops[k].ns = newer->ops[k].ns;
    }
    feedback_again(guide);
}

/* Keeps a new guide, in place of an old one for the same ops if it is no worse than what that one
   took. False: it is not kept. Between iterations. */
static bool keep_guide(capu_context *context, struct label_record *label, struct guide *guide)
{
    struct guide *old = plan_cache_find(&label->plans, guide->signature);

    if (old != NULL) {
        if (guide->predicted_ns > old->measured_ns) {
            expect_measured(old, guide);
            return false;
        }
        if (old == context->guide && leave_guide(context) != CAPU_OK) {
            return false;
        }
        plan_cache_discard(&label->plans, old);
    }
    guide->used = context->iteration;
    label_records_add_guide(&context->labels, label, guide, context->guide);
    return true;
}

static void refuse(struct label_record *label, const struct job *job, capu_status status)
{
    plan_cache_refuse(&label->plans, job->guide->signature,
                      job->error.text[0] != '\0' ? job->error.text : capu_status_text(status));
}

/* Takes up what a worker has made, unless the label has been replaced meanwhile. */
static void take_job(capu_context *context, struct job *job)
{
    struct plan_keeper *planning = context->planning;
    struct label_record *label = label_records_find(&context->labels, job->guide->label);

    if (label == NULL) {
        job_destroy(job);
        return;
    }
    if (job->status == CAPU_OK && keep_guide(context, label, job->guide)) {
        job->guide = NULL;
        if (job->wants_text &&
            agent_plan(planning->agent, job->text.data, job->text.length) == CAPU_OK) {
            job->text = (struct string_buffer){0};
        }
    } else if (job->status != CAPU_OK && job->guide->round == 0 && !atomic_load(&job->stop)) {
        refuse(label, job, job->status);
    }
    job_destroy(job);
}

static void take_jobs(capu_context *context)
{
    struct plan_keeper *planning = context->planning;

    for (size_t i = 0; i < JOBS; i++) {
        struct job *job = planning->jobs[i];

        if (job != NULL && agent_is_done(planning->agent, job->task)) {
            planning->jobs[i] = NULL;
            take_job(context, job);
        }
    }
}

/* The job that makes this plan, NULL: none does. */
static struct job **find_job(struct plan_keeper *planning, const char *label, uint64_t signature)
{
    for (size_t i = 0; i < JOBS; i++) {
        struct job *job = planning->jobs[i];

        if (job != NULL && job->guide->label == label && job->guide->signature == signature) {
            return &planning->jobs[i];
        }
    }
    return NULL;
}

static struct job **find_place(struct plan_keeper *planning)
{
    for (size_t i = 0; i < JOBS; i++) {
        if (planning->jobs[i] == NULL) {
            return &planning->jobs[i];
        }
    }
    return NULL;
}

/* A slower link than measured, for plans after one that came too late. */
static void slow_links(struct trace *trace, uint32_t percent)
{
    struct machine *machine = &trace->machine;

    machine->d2h_bytes_per_s = machine->d2h_bytes_per_s / 100 * percent + 1;
    machine->h2d_bytes_per_s = machine->h2d_bytes_per_s / 100 * percent + 1;
}

static capu_status fill_job(capu_context *context, const struct record *record, struct job *job)
{
    static const enum planner_effort efforts[] = {
        [CAPU_EFFORT_QUICK] = EFFORT_QUICK,
        [CAPU_EFFORT_DEFAULT] = EFFORT_DEFAULT,
        [CAPU_EFFORT_BEST] = EFFORT_BEST,
    };
    capu_status status = guide_create(record, &job->guide);

    if (status == CAPU_OK) {
        status = trace_build(context, record, true, &job->trace, &job->error);
    }
    job->planner = planner_find(context->config.planner);
    job->effort = efforts[context->config.effort];
    job->budget_bytes = context->config.budget_bytes;
    job->host_bytes = context->config.host_budget_bytes;
    job->page_bytes = pages_bytes_each(context->pages);
    job->wants_text = context->config.plan_path != NULL;
    if (status == CAPU_OK) {
        feedback_init(job->guide);
    }
    return status;
}

/* A new plan is made with the times that the old one's iterations had. */
static void take_seen_times(struct job *job, const struct guide *old, uint32_t link_percent)
{
    uint64_t total = 0;

    for (uint32_t k = 0; k < old->op_count; k++) {
        uint64_t ns = feedback_op_ns(old, k);

        job->trace.ops[k].ns = ns;
        job->guide->ops[k].ns = ns;
        total += ns;
    }
    job->trace.total_ns = total;
    feedback_inherit(job->guide, old);
    job->guide->link_percent = link_percent;
    slow_links(&job->trace, link_percent);
}

/* Makes a plan of a record; `old`: the guide it is to improve on, NULL: none. */
static void start_job(capu_context *context, struct label_record *label,
                      const struct record *record, const struct guide *old, uint32_t link_percent)
{
    struct plan_keeper *planning = context->planning;
    struct job **place = find_place(planning);
    struct job *job = place != NULL ? calloc(1, sizeof(*job)) : NULL;
    capu_status status;

    if (job == NULL) {
        return; /* the next record is another chance */
    }
    status = fill_job(context, record, job);
    if (status == CAPU_OK && old != NULL) {
        take_seen_times(job, old, link_percent);
    }
    if (status == CAPU_OK) {
        status = agent_start(planning->agent, run_job, job, &job->task);
    }
    if (status == CAPU_OK) {
        *place = job;
        return;
    }
    if (job->guide != NULL && old == NULL) {
        refuse(label, job, status);
    }
    job_destroy(job);
}

/* Plans for a record's iteration if there is no guide for it yet. */
static void consider(capu_context *context, const struct record *record)
{
    struct label_record *label = label_records_find(&context->labels, record->label);

    if (label != NULL && record->op_count > 0 &&
        find_job(context->planning, record->label, record->signature) == NULL &&
        plan_cache_find(&label->plans, record->signature) == NULL &&
        plan_cache_refusal(&label->plans, record->signature) == NULL) {
        start_job(context, label, record, NULL, 100);
    }
}

/* Makes a new plan of a record of a guided iteration, where feedback.h says so. */
static void review(capu_context *context, const struct record *record)
{
    struct label_record *label = label_records_find(&context->labels, record->label);
    struct guide *guide = label != NULL ? plan_cache_find(&label->plans, record->signature) : NULL;
    uint32_t link_percent;

    if (guide == NULL || find_job(context->planning, record->label, record->signature) != NULL ||
        !feedback_take(guide, record, &link_percent)) {
        return;
    }
    start_job(context, label, record, guide, link_percent);
    guide->round++; /* each review costs a plan: they become fewer */
    guide->window *= 2;
    feedback_restart(guide);
}

void planning_review(capu_context *context)
{
    struct plan_keeper *planning = context->planning;
    const struct record *record;

    while (planning != NULL &&
           (record = tracker_finished_after(&context->tracker, planning->reviewed)) != NULL) {
        planning->reviewed = record->stamp;
        if (record->report.mode == CAPU_MODE_GUIDED && record->report.diverged == 0) {
            review(context, record);
        } else {
            consider(context, record);
        }
    }
}

bool planning_wants_times(capu_context *context)
{
    bool is_traced = context->config.trace_path != NULL &&
                     context->iteration + 1 == context->config.trace_iteration;

    return context->guide == NULL ||
           feedback_wants_times(context->guide, context->config.sample_every) || is_traced;
}

/* Finished records get another chance: all jobs may have been taken, or the plan discarded. The
   newest first, since a stale one may have the same ops. */
static void consider_again(capu_context *context)
{
    struct tracker *tracker = &context->tracker;
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
    struct plan_keeper *planning = context->planning;
    struct job **job = find_job(planning, label, signature);
    capu_status status = CAPU_OK;

    if (job == NULL) {
        status = failure_check(context, lane_synchronize(&context->compute),
                               "waiting for an iteration to plan for");
        if (status == CAPU_OK) {
            status = tracker_settle(context);
            planning_review(context);
        }
        consider_again(context);
        job = find_job(planning, label, signature);
    }
    if (status == CAPU_OK && job != NULL) {
        agent_wait(planning->agent, (*job)->task);
        take_jobs(context);
    }
    return status;
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
                          struct guide **guide)
{
    uint64_t signature;
    capu_status status = CAPU_OK;

    *guide = NULL;
    if (label->predictor.count == 0) {
        return CAPU_OK;
    }
    signature = expect(label);
    *guide = plan_cache_find(&label->plans, signature);
    if (*guide == NULL && context->config.wait_for_plan != 0 &&
        plan_cache_refusal(&label->plans, signature) == NULL) {
        status = wait_for_plan(context, label->label, signature);
        *guide = plan_cache_find(&label->plans, signature);
    }
    return status;
}

static bool has_tensor(const struct guide *guide, const void *address)
{
    for (uint32_t i = 0; i < guide->tensor_count; i++) {
        if (guide->tensors[i].address == address) {
            return true;
        }
    }
    return false;
}

static capu_status install(capu_context *context, struct plan_cache *plans, struct guide *guide)
{
    capu_status status = guide_install(context, guide);

    if (status == CAPU_OK || context->lost != CAPU_OK) {
        return context->lost;
    }
    if (status == CAPU_NOT_READY) {
        /* Its tensors are not what they were: the next record will tell. */
        plan_cache_discard(plans, guide);
        return CAPU_OK;
    }
    guide->failures++;
    if (guide->failures >= FAILURES) {
        plan_cache_refuse(plans, guide->signature, context->error);
        plan_cache_discard(plans, guide);
    }
    return CAPU_OK;
}

capu_status planning_begin(capu_context *context, struct label_record *label)
{
    struct guide *guide;
    capu_status status;

    label_records_discard_wrong(&context->labels);
    take_jobs(context);
    consider_again(context);
    status = choose(context, label, &guide);
    if (status == CAPU_OK && context->guide != NULL && context->guide != guide) {
        status = leave_guide(context);
    }
    if (status != CAPU_OK) {
        return status;
    }
    if (context->guide == NULL) {
        parked_clear(context);
    }
    if (guide == NULL) {
        return CAPU_OK;
    }
    guide->used = context->iteration + 1;
    if (context->guide == guide) {
        guide->next = 0;
        return CAPU_OK;
    }
    return install(context, &label->plans, guide);
}

/* Ends the jobs whose guides have a tensor that begins there. */
static void stop_jobs(struct plan_keeper *planning, const void *address)
{
    for (size_t i = 0; i < JOBS; i++) {
        if (planning->jobs[i] != NULL && has_tensor(planning->jobs[i]->guide, address)) {
            atomic_store(&planning->jobs[i]->stop, true);
            agent_wait(planning->agent, planning->jobs[i]->task);
            job_destroy(planning->jobs[i]);
            planning->jobs[i] = NULL;
        }
    }
}

/* Gives up the guides of a label that have a tensor that begins there. */
static capu_status forget_guides(capu_context *context, struct plan_cache *plans,
                                 const void *address)
{
    capu_status status = CAPU_OK;

    for (size_t i = plans->guide_count; i-- > 0 && status == CAPU_OK;) {
        struct guide *guide = plans->guides[i];

        if (!has_tensor(guide, address)) {
            continue;
        }
        if (guide == context->guide) {
            status = leave_guide(context);
        }
        guide->is_wrong = true; /* recovery may need it until the iteration ends */
        if (status == CAPU_OK && guide != context->recovery.guide) {
            plan_cache_discard(plans, guide);
        }
    }
    return status;
}

capu_status planning_forget(capu_context *context, const void *address)
{
    capu_status status = CAPU_OK;

    if (context->planning == NULL) {
        return CAPU_OK;
    }
    stop_jobs(context->planning, address);
    for (size_t i = 0; i < LABEL_RECORDS && status == CAPU_OK; i++) {
        status = forget_guides(context, &context->labels.list[i].plans, address);
    }
    return status;
}

const char *planning_error(capu_context *context, const char *label)
{
    const struct label_record *record;
    const char *text = NULL;

    label = names_intern(&context->names, label);
    if (context->planning == NULL || label == NULL) {
        return "";
    }
    record = label_records_find(&context->labels, label);
    if (record != NULL && record->predictor.count > 0) {
        text = plan_cache_refusal(&record->plans, predictor_newest(&record->predictor));
    }
    return text != NULL ? text : "";
}

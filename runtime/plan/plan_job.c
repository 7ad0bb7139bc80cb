/* Making a plan off the training thread, see plan_job.h. */
#include "runtime/plan/plan_job.h"

#include "base/assert.h"
#include "base/size_text.h"
#include "device/monotonic.h"
#include "policy/model/timeline.h"
#include "runtime/plan/plans.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* How long the thread sleeps between looks at a plan and at the device. Whether the device has
   finished can only be asked, so being woken for the plan would save no more than one such nap. */
enum { NAP_NS = 200000 };

/* How often a plan is asked for whose host copies fit. */
enum { HOST_ROUNDS = 5 };

/* A stage takes at least a hundredth less than the one before it: compiling a plan takes time, and
   changing to it costs an install. The planner's result need only be faster. */
enum { STAGE_GAIN = 100 };

static bool should_stop(void *user)
{
    struct plan_job *job = user;

    return atomic_load(&job->stop);
}

/* Bytes of host memory if every tensor that is ever copied out keeps its block. */
static uint64_t block_bytes(struct plan_job *job, const struct plan *plan)
{
    uint64_t bytes = 0;

    memset(job->is_copied, 0, job->trace.tensor_count);
    for (uint32_t i = 0; i < plan->action_count; i++) {
        const struct plan_action *action = &plan->actions[i];
        bool copies = action->kind == ACTION_EVICT || action->kind == ACTION_SAVE ||
                      action->kind == ACTION_PREFETCH;

        if (copies && !job->is_copied[action->tensor]) {
            job->is_copied[action->tensor] = true;
            bytes += job->trace.tensors[action->tensor].bytes;
        }
    }
    return bytes;
}

/* Fills in what the plan does, and how long that takes. */
static capu_status compile(struct plan_job *job, const struct program *program,
                           const struct machine *machine, const struct timeline *timeline,
                           struct plan_entry *entry)
{
    capu_status status = guide_compile(entry->guide, program, &job->error);

    if (status == CAPU_OK && job->wants_text) {
        status = plan_write(program->plan, &entry->text, &job->error);
    }
    entry->feedback.link.d2h_bytes_per_s = machine->d2h_bytes_per_s;
    entry->feedback.link.h2d_bytes_per_s = machine->h2d_bytes_per_s;
    entry->feedback.copy_latency_ns = machine->copy_latency_ns;
    entry->feedback.bytes_per_s[COPY_OUT] = job->trace.machine.d2h_bytes_per_s;
    entry->feedback.bytes_per_s[COPY_IN] = job->trace.machine.h2d_bytes_per_s;
    entry->feedback.predicted_ns = timeline->iteration_ns;
    entry->feedback.expected_ns = timeline->iteration_ns;
    entry->feedback.ideal_ns = timeline->ideal_ns;
    entry->feedback.replay_ns = timeline->replay_ns;
    return status;
}

/* Whether training would rather follow this plan than the one that was handed over before. */
static bool is_better(const struct plan_job *job, const struct plan *plan, uint64_t ns)
{
    return ns < job->found_ns || (plan->place_count > 0 && !job->has_placed);
}

/* The rates that a plan is timed with. */
static capu_status choose_rates(struct plan_job *job, const struct program *program,
                                struct machine *machine)
{
    if (!duplex_matters(&job->duplex, &job->trace.machine)) {
        *machine = job->machine;
        return CAPU_OK;
    }
    return duplex_rates(program, &job->trace.machine, &job->duplex, machine, &job->error);
}

/* Hands a plan over if it is better than the one before it. */
static capu_status hand_over(struct plan_job *job, const struct program *program)
{
    const struct plan *plan = program->plan;
    struct timeline timeline = {0};
    struct plan_entry *entry = NULL;
    struct machine machine;
    capu_status status = choose_rates(job, program, &machine);

    if (status == CAPU_OK) {
        status = timeline_of(&timeline, program, &machine, false, &job->error);
    }
    if (status == CAPU_OK && is_better(job, plan, timeline.iteration_ns)) {
        status = plan_entry_copy(job->entry, &entry);
        if (status == CAPU_OK) {
            status = compile(job, program, &machine, &timeline, entry);
        }
        if (status == CAPU_OK) {
            job->found_ns = timeline.iteration_ns;
            job->next = machine;
            job->has_placed = plan->place_count > 0;
            entry = atomic_exchange(&job->ready, entry);
        }
        plan_entry_destroy(entry); /* one that nothing has taken, or that could not be compiled */
    }
    timeline_finish(&timeline);
    return status;
}

/* A better plan while the planner goes on. One that cannot be handed over costs nothing: the
   planner's result is still to come. */
static void take_stage(void *user, const struct program *program, uint64_t predicted_ns)
{
    struct plan_job *job = user;

    if (is_better(job, program->plan, predicted_ns + job->found_ns / STAGE_GAIN) &&
        block_bytes(job, program->plan) <= job->host_bytes) {
        hand_over(job, program);
    }
}

/* A placed plan, or if none was found, one whose tensors have no pages of their own. */
static capu_status run_planner(struct plan_job *job, struct planner_request *request,
                               struct plan *plan, struct program *program)
{
    capu_status status = planner_run_program(job->planner, request, plan, program, &job->error);

    if (status == CAPU_UNSUPPORTED && request->place && job->places != PLACES_REQUIRED &&
        !job->has_placed && !should_stop(job)) {
        request->place = false;
        status = planner_run_program(job->planner, request, plan, program, &job->error);
    }
    return status;
}

/* Hands over a plan whose blocks, which are kept for good, fit the host budget. Plans share host
   memory over time and the runtime does not, so where that is too much it asks for less: first for
   no copies of unread tensors. */
static capu_status make_plan(struct plan_job *job, enum plan_effort effort)
{
    struct planner_request request = {
        .trace_index = job->trace_index,
        .machine = &job->machine,
        .budget_bytes = job->budget_bytes,
        .host_bytes = job->host_bytes,
        .effort = effort,
        .place = job->places != PLACES_NONE,
        .apart_bytes = job->apart_bytes,
        .preserve = job->preserve,
        .freed = job->freed,
        .should_stop = should_stop,
        .improved = job->is_staged ? take_stage : NULL,
        .user = job,
    };

    for (int round = 0; round < HOST_ROUNDS; round++) {
        struct plan plan;
        struct program program;
        capu_status status = run_planner(job, &request, &plan, &program);
        uint64_t bytes;

        if (status != CAPU_OK) {
            return status;
        }
        bytes = block_bytes(job, &plan);
        if (bytes <= job->host_bytes) {
            status = hand_over(job, &program);
        }
        program_finish(&program);
        plan_finish(&plan);
        if (bytes <= job->host_bytes) {
            return status;
        }
        if (request.preserve == PRESERVE_UNREAD) {
            request.preserve = PRESERVE_NOTHING;
            continue;
        }
        request.host_bytes =
            (uint64_t)((double)request.host_bytes * (double)job->host_bytes / (double)bytes);
    }
    return error_text_set(&job->error, CAPU_HOST_OVER_BUDGET,
                          "no plan whose host copies fit %s of host memory "
                          "(CAPUCHIN_HOST_BUDGET); without copies, everything fits within %s",
                          size_text(job->host_bytes).text,
                          size_text(job->trace_index->peak_bytes).text);
}

/* For the report. Without a result it says that the budget is not known. */
static void find_least(struct plan_job *job)
{
    const struct planner_request request = {
        .trace_index = job->trace_index, .host_bytes = UINT64_MAX, .place = true};
    struct error_text ignored;

    if (job->trace_index->trace != NULL &&
        planner_least_budget(&request, &job->least_bytes, &ignored) != CAPU_OK) {
        job->least_bytes = 0;
    }
}

/* On a helper of the agent. Finding places can take seconds and find none, so a job in stages
   begins with what little effort finds. So does one that does not know yet how often its plans have
   both directions of the link busy at once. A failure after the first plan costs nothing but better
   ones. */
static void run_job(void *data)
{
    struct plan_job *job = data;
    struct trace_index trace_index = {0};
    bool is_uncertain = duplex_matters(&job->duplex, &job->trace.machine);

    job->trace_index = &trace_index;
    job->status = trace_index_init(&trace_index, &job->trace, job->page_bytes, &job->error);
    if (job->status == CAPU_OK &&
        (is_uncertain || (job->is_staged && job->effort != EFFORT_QUICK))) {
        make_plan(job, EFFORT_QUICK);
        job->machine = job->next;
    }
    if (job->status == CAPU_OK) {
        job->status = make_plan(job, job->effort);
    }
    if (job->found_ns != UINT64_MAX) {
        job->status = CAPU_OK;
    }
    if (job->entry->feedback.round == 0 && !atomic_load(&job->stop)) {
        find_least(job);
    }
    trace_index_finish(&trace_index);
    job->trace_index = NULL;
}

/* The host budget without what uploads take of it. A budget that holds every tensor is no limit:
   planners then need not check it. */
static uint64_t host_limit(const struct plans *plans, const struct trace *trace)
{
    uint64_t budget_bytes = plans->settings->config.host_budget_bytes;
    uint64_t bytes = 0;

    if (budget_bytes != UINT64_MAX) {
        ASSERT(plans->residency->uploads.bytes <= budget_bytes);
        budget_bytes -= plans->residency->uploads.bytes;
    }
    for (uint32_t i = 0; i < trace->tensor_count; i++) {
        bytes += trace->tensors[i].bytes;
    }
    return bytes <= budget_bytes ? UINT64_MAX : budget_bytes;
}

/* Before which op the program freed each tensor of the trace, which has one more than the guide. */
static capu_status copy_freed(struct plan_job *job)
{
    const struct guide *guide = job->entry->guide;

    job->freed = malloc(((size_t)job->trace.tensor_count + 1) * sizeof(*job->freed));
    if (job->freed == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    for (uint32_t t = 0; t < job->trace.tensor_count; t++) {
        job->freed[t] = t < guide->tensor_count ? guide->tensors[t].freed_op : TRACE_INDEX_NONE;
    }
    return CAPU_OK;
}

static void add_pages(struct tensor *tensor, void *pages)
{
    *(uint64_t *)pages += tensor->page_count;
}

/* Pages that live tensors need which the record does not have. A plan leaves room for them. */
static uint64_t other_pages(const struct plans *plans, const struct record *record)
{
    uint64_t pages = 0;

    tensors_each(&plans->memory->tensors, add_pages, &pages);
    for (size_t i = 0; i < record->tensor_count; i++) {
        const struct tensor *tensor =
            tensors_find(&plans->memory->tensors, record->tensors[i].address);

        if (tensor != NULL && tensor->address == record->tensors[i].address &&
            tensor->page_count == record_tensor_pages(&record->tensors[i]) &&
            tensor->page_count <= pages) {
            pages -= tensor->page_count;
        }
    }
    return pages;
}

static capu_status fill(struct plans *plans, const struct record *record, bool keeps_contents,
                        struct plan_job *job)
{
    capu_status status = plan_entry_create(record, &job->entry);
    uint64_t others;

    if (status == CAPU_OK) {
        status = trace_record_build(plans->records, record, true, &job->trace, &job->error);
    }
    if (status == CAPU_OK) {
        job->is_copied = calloc((size_t)job->trace.tensor_count + 1, sizeof(*job->is_copied));
        status = job->is_copied != NULL ? copy_freed(job) : CAPU_NO_HOST_MEMORY;
        job->entry->keeps_contents = keeps_contents;
        job->entry->budget_bytes = plans->settings->config.budget_bytes;
    }
    job->machine = job->trace.machine;
    job->next = job->machine;
    job->duplex = (struct duplex){plans->lanes->link.d2h_duplex_bytes_per_s,
                                  plans->lanes->link.h2d_duplex_bytes_per_s};
    job->preserve = keeps_contents ? PRESERVE_ALL : PRESERVE_UNREAD;
    job->planner = planner_find(plans->settings->config.planner);
    job->effort = (enum plan_effort)plans->settings->config.effort;
    job->budget_bytes = plans->settings->config.budget_bytes;
    job->host_bytes = host_limit(plans, &job->trace);
    job->page_bytes = pages_bytes_each(plans->memory->pages);
    others = other_pages(plans, record) * job->page_bytes;
    job->apart_bytes = job->budget_bytes > others ? job->budget_bytes - others : 0;
    job->places = plans->places_nothing ? PLACES_NONE : PLACES_TRIED;
    job->wants_text = plans->settings->config.plan_path != NULL;
    job->found_ns = UINT64_MAX;
    job->started_ns = monotonic_now_ns();
    job->stall_ns = record->is_timed ? record->report.stall_ns : 0;
    job->agent = plans->agent;
    return status;
}

static uint64_t rate_within(uint64_t bytes_per_s)
{
    bytes_per_s = bytes_per_s < TRACE_RATE_MIN ? TRACE_RATE_MIN : bytes_per_s;
    return bytes_per_s > TRACE_RATE_MAX ? TRACE_RATE_MAX : bytes_per_s;
}

/* A new plan is made with the times that the old one's iterations had. */
static void take_seen_times(struct plan_job *job, const struct plan_entry *old,
                            const struct feedback_link *link)
{
    struct feedback *feedback = &job->entry->feedback;
    uint64_t total = 0;

    for (uint32_t k = 0; k < old->feedback.op_count; k++) {
        uint64_t ns = feedback_op_ns(&old->feedback, k);

        job->trace.ops[k].ns = ns;
        feedback->planned_ns[k] = ns;
        total += ns;
    }
    job->trace.total_ns = total;
    feedback_inherit(feedback, &old->feedback);
    feedback->link.percent = link->percent;
    if (link->d2h_bytes_per_s != 0 && link->h2d_bytes_per_s != 0) {
        job->machine.d2h_bytes_per_s = rate_within(link->d2h_bytes_per_s);
        job->machine.h2d_bytes_per_s = rate_within(link->h2d_bytes_per_s);
        job->duplex = (struct duplex){0};
    }
}

capu_status plan_job_start(struct plans *plans, const struct record *record, bool keeps_contents,
                           const struct plan_entry *old, const struct feedback_link *link,
                           struct plan_job **out)
{
    struct plan_job *job = calloc(1, sizeof(*job));
    capu_status status;

    *out = job;
    if (job == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    status = fill(plans, record, keeps_contents, job);
    if (status == CAPU_OK && old != NULL) {
        if (old->guide->is_unplaced) {
            job->places = PLACES_NONE; /* none were found before */
        } else if (job->places == PLACES_TRIED) {
            job->places = PLACES_REQUIRED;
        }
        take_seen_times(job, old, link);
    }
    job->is_staged = old == NULL && plans->settings->config.wait_for_plan == 0;
    return status == CAPU_OK ? agent_start(job->agent, run_job, job, &job->task) : status;
}

struct plan_entry *plan_job_take(struct plan_job *job)
{
    return atomic_exchange(&job->ready, NULL);
}

bool plan_job_has_plan(struct plan_job *job)
{
    return atomic_load(&job->ready) != NULL;
}

bool plan_job_is_done(const struct plan_job *job)
{
    return agent_is_done(job->agent, job->task);
}

void plan_job_wait(const struct plan_job *job)
{
    agent_wait(job->agent, job->task);
}

/* Whether waiting for a first plan costs no more than going on without one: the device works on
   earlier iterations, for which installing a plan waits anyway, or less time has passed than the
   recorded iteration stalled. */
static bool is_worth_waiting(struct plan_job *job, struct lane_position end)
{
    uint64_t passed_ns = monotonic_now_ns() - job->started_ns;

    return !plan_job_has_plan(job) && !plan_job_is_done(job) && passed_ns < PLAN_JOB_PATIENCE_NS &&
           (passed_ns < job->stall_ns || !lane_has_passed(end));
}

void plan_job_wait_briefly(struct plan_job *job, struct device *device, struct lane_position end)
{
    bool is_moving = true;

    while (is_moving && is_worth_waiting(job, end)) {
        uint64_t before = device_now_ns(device);

        nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
        is_moving = device_now_ns(device) != before;
    }
}

void plan_job_stop(struct plan_job *job)
{
    atomic_store(&job->stop, true);
}

const char *plan_job_error(const struct plan_job *job, capu_status status)
{
    return job->error.text[0] != '\0' ? job->error.text : capu_status_text(status);
}

void plan_job_destroy(struct plan_job *job)
{
    if (job == NULL) {
        return;
    }
    ASSERT_INTERNAL(job->task == NULL || plan_job_is_done(job));
    agent_forget(job->task);
    plan_entry_destroy(plan_job_take(job));
    plan_entry_destroy(job->entry);
    trace_finish(&job->trace);
    free(job->freed);
    free(job->is_copied);
    free(job);
}

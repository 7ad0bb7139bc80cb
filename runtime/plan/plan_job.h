/*
 * A plan in the making: from a finished record, off the training thread.
 *
 * The context's thread copies what the plan is made of: the record as a trace, and the budgets. A
 * worker of the agent runs the planner (policy/search/planner.h) and compiles its plan
 * (guide_compile). The context's thread asks from time to time whether there is one, and takes it.
 * Planning is pure, so a job that is stopped or thrown away leaves nothing behind.
 *
 * A job in stages hands over the first plan that it finds, and then better ones, while it goes on
 * planning: faster ones, and after one without places the first that has places. Only the newest is
 * kept until it is taken, in `ready`, which either thread exchanges. Everything else that a job
 * holds is its worker's from plan_job_start until it is done, and the context thread's before and
 * after that.
 */
#ifndef CAPU_RUNTIME_PLAN_JOB_H
#define CAPU_RUNTIME_PLAN_JOB_H

#include "base/error_text.h"
#include "capuchin/status.h"
#include "policy/model/timeline.h"
#include "policy/search/planner.h"
#include "runtime/guide/plan_entry.h"

#include <stdatomic.h>

struct agent_task;
struct plans;

/* Whether the tensors of the plan get pages of their own. */
enum plan_job_places {
    PLACES_TRIED,    /* if such a plan is found */
    PLACES_REQUIRED, /* no other plan will do: the one it is to improve on has them */
    PLACES_NONE,     /* such a plan is not looked for */
};

/* So long after planning began, iterations no longer wait for a first plan. */
#define PLAN_JOB_PATIENCE_NS UINT64_C(200000000)

struct plan_job {
    struct trace trace;
    const struct trace_index *trace_index; /* of it, while the worker plans */
    struct plan_entry *entry; /* of the record's iteration, without a plan; never changes */
    const struct planner *planner;
    enum plan_effort effort;
    struct duplex duplex;   /* slower rates to account for; none if `machine` has rates seen */
    struct machine machine; /* to plan for */
    struct machine next;    /* with the rates of the best plan so far */
    uint64_t budget_bytes;
    uint64_t apart_bytes; /* of the budget: all but what other tensors need */
    uint64_t host_bytes;
    enum preserve preserve;
    uint32_t *freed; /* per tensor of the trace, as planner_request wants it */
    uint64_t page_bytes;
    enum plan_job_places places;
    bool wants_text; /* the plan as a file, too */
    bool is_staged;
    bool has_placed;     /* the newest plan that was handed over has places */
    uint64_t started_ns; /* by the monotonic clock */
    uint64_t stall_ns;   /* of the record's iteration; 0: not known */
    bool *is_copied;     /* per tensor, for one plan at a time */
    uint64_t found_ns;   /* of an iteration under the newest plan that was handed over */
    _Atomic(struct plan_entry *) ready; /* owned, by whoever takes it out; NULL: none */
    atomic_bool stop;
    struct agent *agent;
    struct agent_task *task;

    uint64_t least_bytes; /* the smallest budget known to have a placed plan; 0: not known */
    capu_status status;   /* OK: a plan has been handed over */
    struct error_text error;
};

/* A job for the record's iteration. `keeps_contents`: the plan is to copy out what it would discard
   and nothing could recompute. `old` is the entry that the plan is to improve on, for the rates of
   `link`; NULL, both: there is none, and the job has stages unless wait_for_plan is set. Even on
   failure *out is a job, or NULL without memory for one: its `entry` may be NULL. NO_HOST_MEMORY,
   and what trace_record_build and agent_start give. */
capu_status plan_job_start(struct plans *plans, const struct record *record, bool keeps_contents,
                           const struct plan_entry *old, const struct feedback_link *link,
                           struct plan_job **out);

/* The newest plan that has been found since the last call, which the caller then owns; NULL: none.
   It is better than those before it. */
struct plan_entry *plan_job_take(struct plan_job *job);

/* Whether there is a plan to take. */
bool plan_job_has_plan(struct plan_job *job);

/* Whether it is done; waits until it is. */
bool plan_job_is_done(const struct plan_job *job);
void plan_job_wait(const struct plan_job *job);

/* Waits for a first plan as long as that costs no more than going on without one; `end` is the end
   of the work that the device still has. Returns at once on a device whose clock stands still
   meanwhile, as that of sim does. */
void plan_job_wait_briefly(struct plan_job *job, struct device *device, struct lane_position end);

/* Asks a running job to end early, with whatever result. */
void plan_job_stop(struct plan_job *job);

/* Why there is no plan. Pre: it is done, or it could not be started. */
const char *plan_job_error(const struct plan_job *job, capu_status status);

/* Pre: it is done, or it could not be started. NULL is fine. */
void plan_job_destroy(struct plan_job *job);

#endif

/*
 * The agent's thread, see agent.h.
 *
 * Three kinds of work have three paths. Writing a file is a job: jobs run one after the other on
 * the agent's thread, so the lines of a report stay in order and agent_flush only has to compare
 * two counters. Planning is a task, and pinning memory is a growth: both can take seconds, so they
 * run on libuv's work queue, where they delay neither the files nor each other.
 *
 * Only uv_async_send may be called from another thread. So a caller stores its request under the
 * lock and sends a signal, and wake_up collects all requests on the agent's thread. libuv may merge
 * several signals into one; therefore wake_up empties every queue each time. The loop ends by
 * itself once the signal's handle is closed and the work queue has nothing left.
 */
#include "runtime/agent.h"

#include "base/files.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

/* One write to a file. */
struct job {
    struct job *next;
    char *data; /* owned */
    size_t bytes;
    const char *path; /* the file to replace; NULL: append to the report */
    const char *what; /* which file, for error messages */
};

/* Long work that runs on libuv's work queue. */
struct agent_task {
    struct agent_task *next;
    struct agent *agent;
    uv_work_t work;
    void (*run)(void *data);
    void *data;
    bool is_done; /* guarded by the agent's lock */
};

struct agent {
    uv_loop_t loop;
    uv_async_t wake;
    uv_thread_t thread;
    uv_work_t growth;
    struct host_arena *arena;
    char *trace_path;
    char *report_path;
    char *plan_path;
    int report; /* -1: no line is written yet */

    uv_mutex_t lock; /* guards everything below */
    uv_cond_t changed;
    struct job *first;
    struct job *last;
    struct agent_task *tasks; /* not started yet */
    uint64_t posted;          /* counts jobs */
    uint64_t done;            /* jobs finished; they finish in the order they were posted */
    bool is_ending;
    bool wants_growth;
    bool is_growing;
    uint64_t growth_bytes;
    capu_status growth_status;
    capu_status status; /* FILE_FAILED after the first failure, described in `text` */
    char text[AGENT_TEXT_BYTES];
};

/* Keeps only the first error: later ones are mostly consequences of it. */
void agent_fail(struct agent *agent, const char *text)
{
    uv_mutex_lock(&agent->lock);
    if (agent->status == CAPU_OK) {
        agent->status = CAPU_FILE_FAILED;
        snprintf(agent->text, sizeof(agent->text), "%s", text);
    }
    uv_mutex_unlock(&agent->lock);
}

static void note_error(struct agent *agent, const char *what, const char *path, int error)
{
    char text[AGENT_TEXT_BYTES];

    snprintf(text, sizeof(text), "writing the %s file '%s': %s", what, path,
             uv_strerror(uv_translate_sys_error(error)));
    agent_fail(agent, text);
}

/* The report grows while training goes on. Its first line replaces the file, and the others are
   appended to it. */
static int write_job(struct agent *agent, const struct job *job)
{
    if (job->path != NULL) {
        return files_replace(job->path, job->data, job->bytes, NULL);
    }
    if (agent->report < 0) {
        return files_replace(agent->report_path, job->data, job->bytes, &agent->report);
    }
    return files_append(agent->report, job->data, job->bytes);
}

static void do_job(struct agent *agent, struct job *job)
{
    int error = write_job(agent, job);

    if (error != 0) {
        note_error(agent, job->what, job->path != NULL ? job->path : agent->report_path, error);
    }
    free(job->data);
    free(job);
}

/* Runs on libuv's work queue, since pinning can take seconds. */
static void grow(uv_work_t *work)
{
    struct agent *agent = work->data;

    agent->growth_status = host_arena_grow(agent->arena, agent->growth_bytes);
}

static void growth_done(uv_work_t *work, int status)
{
    struct agent *agent = work->data;

    (void)status;
    uv_mutex_lock(&agent->lock);
    agent->is_growing = false;
    uv_cond_broadcast(&agent->changed);
    uv_mutex_unlock(&agent->lock);
}

static void start_growth(struct agent *agent)
{
    if (uv_queue_work(&agent->loop, &agent->growth, grow, growth_done) != 0) {
        agent->growth_status = CAPU_NO_HOST_MEMORY;
        growth_done(&agent->growth, 0);
    }
}

static void run_task(uv_work_t *work)
{
    struct agent_task *task = work->data;

    task->run(task->data);
}

static void task_done(uv_work_t *work, int status)
{
    struct agent_task *task = work->data;
    struct agent *agent = task->agent;

    (void)status;
    uv_mutex_lock(&agent->lock);
    task->is_done = true;
    uv_cond_broadcast(&agent->changed);
    uv_mutex_unlock(&agent->lock);
}

/* If the work queue refuses a task, it runs right here. That delays the files, but the context's
   thread may be waiting for the task. */
static void start_tasks(struct agent *agent, struct agent_task *task)
{
    while (task != NULL) {
        struct agent_task *next = task->next;

        if (uv_queue_work(&agent->loop, &task->work, run_task, task_done) != 0) {
            run_task(&task->work);
            task_done(&task->work, 0);
        }
        task = next;
    }
}

/* Does everything that was requested. Runs on the agent's thread. */
static void wake_up(uv_async_t *wake)
{
    struct agent *agent = wake->data;
    struct agent_task *tasks;
    bool is_ending;
    bool grows;

    uv_mutex_lock(&agent->lock);
    while (agent->first != NULL) {
        struct job *job = agent->first;

        agent->first = job->next;
        if (agent->first == NULL) {
            agent->last = NULL;
        }
        uv_mutex_unlock(&agent->lock);
        do_job(agent, job);
        uv_mutex_lock(&agent->lock);
        agent->done++;
        uv_cond_broadcast(&agent->changed);
    }
    is_ending = agent->is_ending;
    grows = agent->wants_growth;
    agent->wants_growth = false;
    tasks = agent->tasks;
    agent->tasks = NULL;
    uv_mutex_unlock(&agent->lock);
    start_tasks(agent, tasks);
    if (grows) {
        start_growth(agent);
    }
    if (is_ending && !uv_is_closing((uv_handle_t *)wake)) {
        uv_close((uv_handle_t *)wake, NULL);
    }
}

static void run_loop(void *data)
{
    struct agent *agent = data;

    uv_run(&agent->loop, UV_RUN_DEFAULT);
}

/* Checks now what is written much later, so that a bad path already fails when the context is
   created. */
static capu_status check_file(const char *path, const char *what, char *error, size_t error_bytes)
{
    int problem = path != NULL ? files_check(path) : 0;

    if (problem != 0) {
        snprintf(error, error_bytes, "opening the %s file '%s': %s", what, path,
                 uv_strerror(uv_translate_sys_error(problem)));
        return CAPU_FILE_FAILED;
    }
    return CAPU_OK;
}

static bool copy_path(const char *path, char **copy)
{
    *copy = path != NULL ? strdup(path) : NULL;
    return path == NULL || *copy != NULL;
}

static capu_status take_paths(struct agent *agent, const struct agent_paths *paths, char *error,
                              size_t error_bytes)
{
    capu_status status;

    if (!copy_path(paths->report, &agent->report_path) ||
        !copy_path(paths->trace, &agent->trace_path) ||
        !copy_path(paths->plan, &agent->plan_path)) {
        return CAPU_NO_HOST_MEMORY;
    }
    status = check_file(paths->trace, "trace", error, error_bytes);
    if (status == CAPU_OK) {
        status = check_file(paths->plan, "plan", error, error_bytes);
    }
    if (status == CAPU_OK) {
        status = check_file(paths->report, "report", error, error_bytes);
    }
    return status;
}

static void free_agent(struct agent *agent)
{
    if (agent->report >= 0) {
        close(agent->report);
    }
    free(agent->report_path);
    free(agent->trace_path);
    free(agent->plan_path);
    free(agent);
}

capu_status agent_create(const struct agent_paths *paths, struct host_arena *arena, char *error,
                         size_t error_bytes, struct agent **out)
{
    struct agent *agent = calloc(1, sizeof(*agent));
    capu_status status;

    if (agent == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    agent->arena = arena;
    agent->report = -1;
    agent->wake.data = agent;
    agent->growth.data = agent;
    status = take_paths(agent, paths, error, error_bytes);
    if (status != CAPU_OK) {
        goto free_agent;
    }
    status = CAPU_NO_HOST_MEMORY;
    if (uv_mutex_init(&agent->lock) != 0) {
        goto free_agent;
    }
    if (uv_cond_init(&agent->changed) != 0) {
        goto destroy_lock;
    }
    if (uv_loop_init(&agent->loop) != 0) {
        goto destroy_condition;
    }
    if (uv_async_init(&agent->loop, &agent->wake, wake_up) != 0) {
        goto close_loop;
    }
    if (uv_thread_create(&agent->thread, run_loop, agent) != 0) {
        uv_close((uv_handle_t *)&agent->wake, NULL);
        uv_run(&agent->loop, UV_RUN_DEFAULT);
        goto close_loop;
    }
    *out = agent;
    return CAPU_OK;

close_loop:
    uv_loop_close(&agent->loop);
destroy_condition:
    uv_cond_destroy(&agent->changed);
destroy_lock:
    uv_mutex_destroy(&agent->lock);
free_agent:
    free_agent(agent);
    return status;
}

void agent_destroy(struct agent *agent)
{
    if (agent == NULL) {
        return;
    }
    uv_mutex_lock(&agent->lock);
    agent->is_ending = true;
    uv_mutex_unlock(&agent->lock);
    uv_async_send(&agent->wake);
    uv_thread_join(&agent->thread);
    uv_loop_close(&agent->loop);
    uv_cond_destroy(&agent->changed);
    uv_mutex_destroy(&agent->lock);
    free_agent(agent);
}

static capu_status post(struct agent *agent, char *data, size_t bytes, const char *path,
                        const char *what)
{
    struct job *job = calloc(1, sizeof(*job));

    if (job == NULL) {
        free(data);
        return CAPU_NO_HOST_MEMORY;
    }
    job->data = data;
    job->bytes = bytes;
    job->path = path;
    job->what = what;
    uv_mutex_lock(&agent->lock);
    if (agent->last != NULL) {
        agent->last->next = job;
    } else {
        agent->first = job;
    }
    agent->last = job;
    agent->posted++;
    uv_mutex_unlock(&agent->lock);
    uv_async_send(&agent->wake);
    return CAPU_OK;
}

capu_status agent_report(struct agent *agent, char *line)
{
    size_t length = strlen(line);

    /* The newline replaces the terminating zero; the length is passed along. */
    line[length] = '\n';
    return post(agent, line, length + 1, NULL, "report");
}

capu_status agent_trace(struct agent *agent, char *text, size_t bytes)
{
    return post(agent, text, bytes, agent->trace_path, "trace");
}

capu_status agent_plan(struct agent *agent, char *text, size_t bytes)
{
    return post(agent, text, bytes, agent->plan_path, "plan");
}

capu_status agent_start(struct agent *agent, void (*run)(void *data), void *data,
                        struct agent_task **out)
{
    struct agent_task *task = calloc(1, sizeof(*task));

    if (task == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    task->agent = agent;
    task->work.data = task;
    task->run = run;
    task->data = data;
    uv_mutex_lock(&agent->lock);
    task->next = agent->tasks;
    agent->tasks = task;
    uv_mutex_unlock(&agent->lock);
    uv_async_send(&agent->wake);
    *out = task;
    return CAPU_OK;
}

bool agent_is_done(struct agent *agent, const struct agent_task *task)
{
    bool is_done;

    uv_mutex_lock(&agent->lock);
    is_done = task->is_done;
    uv_mutex_unlock(&agent->lock);
    return is_done;
}

void agent_wait(struct agent *agent, const struct agent_task *task)
{
    uv_mutex_lock(&agent->lock);
    while (!task->is_done) {
        uv_cond_wait(&agent->changed, &agent->lock);
    }
    uv_mutex_unlock(&agent->lock);
}

void agent_forget(struct agent_task *task)
{
    free(task);
}

/* Requests a growth. Pre: the lock is held and no growth is under way. */
static void ask_growth(struct agent *agent, uint64_t bytes)
{
    agent->growth_bytes = bytes;
    agent->is_growing = true;
    agent->wants_growth = true;
    uv_async_send(&agent->wake);
}

static void wait_growth(struct agent *agent)
{
    while (agent->is_growing) {
        uv_cond_wait(&agent->changed, &agent->lock);
    }
}

capu_status agent_grow(struct agent *agent, uint64_t bytes)
{
    capu_status status;

    uv_mutex_lock(&agent->lock);
    if (agent->is_growing) {
        /* This growth was started ahead of need. If it succeeds, the caller tries again with what
           it added. */
        wait_growth(agent);
        status = agent->growth_status;
    } else {
        status = CAPU_NOT_READY;
    }
    if (status != CAPU_OK) {
        ask_growth(agent, bytes);
        wait_growth(agent);
        status = agent->growth_status;
    }
    uv_mutex_unlock(&agent->lock);
    return status;
}

void agent_grow_ahead(struct agent *agent, uint64_t bytes)
{
    if (!host_arena_is_short(agent->arena, bytes)) {
        return;
    }
    uv_mutex_lock(&agent->lock);
    if (!agent->is_growing && agent->growth_status == CAPU_OK) {
        ask_growth(agent, bytes);
    }
    uv_mutex_unlock(&agent->lock);
}

capu_status agent_flush(struct agent *agent, char *error, size_t error_bytes)
{
    capu_status status;
    uint64_t target;

    uv_mutex_lock(&agent->lock);
    target = agent->posted;
    while (agent->done < target) {
        uv_cond_wait(&agent->changed, &agent->lock);
    }
    status = agent->status;
    if (status != CAPU_OK) {
        snprintf(error, error_bytes, "%s", agent->text);
    }
    uv_mutex_unlock(&agent->lock);
    return status;
}

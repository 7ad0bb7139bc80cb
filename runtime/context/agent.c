/*
 * The agent, see agent.h.
 *
 * Three kinds of work have two sets of threads. Writing a file is a job of the writer, which is a
 * single thread: files are written one after the other, so the lines of a report stay in order and
 * agent_flush only has to compare two counters. Planning is a task, and pinning memory is a growth:
 * both can take seconds, so they run on helpers, where they delay neither the files nor each other.
 *
 * An event loop and pool of a library are no alternative: libuv's abort where there is no
 * descriptor or no thread left, even in the child of a fork, and its pool starts at the first use.
 */
#include "runtime/context/agent.h"

#include "base/files.h"
#include "base/thread.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * Workers: threads that do jobs in order.
 */

struct workers {
    size_t thread_count; /* that have been started; owned by the creating thread */

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    struct workers_job *first; /* not begun yet */
    struct workers_job *last;
    bool is_ending;

    pthread_t threads[];
};

/* A worker's thread. */
static void *serve_jobs(void *argument)
{
    struct workers *workers = argument;

    pthread_mutex_lock(&workers->lock);
    for (;;) {
        struct workers_job *job = workers->first;

        if (job != NULL) {
            workers->first = job->next;
            pthread_mutex_unlock(&workers->lock);
            job->run(job);
            pthread_mutex_lock(&workers->lock);
        } else if (workers->is_ending) {
            break;
        } else {
            pthread_cond_wait(&workers->changed, &workers->lock);
        }
    }
    pthread_mutex_unlock(&workers->lock);
    return NULL;
}

capu_status workers_create(size_t count, struct workers **out)
{
    struct workers *workers = calloc(1, sizeof(*workers) + count * sizeof(workers->threads[0]));

    if (workers == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    pthread_mutex_init(&workers->lock, NULL);
    pthread_cond_init(&workers->changed, NULL);
    while (workers->thread_count < count) {
        if (!thread_start(&workers->threads[workers->thread_count], serve_jobs, workers)) {
            workers_destroy(workers);
            return CAPU_SYSTEM_LIMIT;
        }
        workers->thread_count++;
    }
    *out = workers;
    return CAPU_OK;
}

void workers_destroy(struct workers *workers)
{
    if (workers == NULL) {
        return;
    }
    pthread_mutex_lock(&workers->lock);
    workers->is_ending = true;
    pthread_cond_broadcast(&workers->changed);
    pthread_mutex_unlock(&workers->lock);
    for (size_t i = 0; i < workers->thread_count; i++) {
        pthread_join(workers->threads[i], NULL);
    }
    pthread_cond_destroy(&workers->changed);
    pthread_mutex_destroy(&workers->lock);
    free(workers);
}

void workers_add(struct workers *workers, struct workers_job *job)
{
    job->next = NULL;
    pthread_mutex_lock(&workers->lock);
    if (workers->first != NULL) {
        workers->last->next = job;
    } else {
        workers->first = job;
    }
    workers->last = job;
    pthread_cond_signal(&workers->changed);
    pthread_mutex_unlock(&workers->lock);
}

/*
 * The agent.
 */

/* One write to a file. */
struct job {
    struct workers_job head; /* first: a job is found from it */
    struct agent *agent;
    char *data; /* owned */
    size_t bytes;
    const char *path; /* the file to replace; NULL: append to the report */
    const char *what; /* which file, for error messages */
};

/* Long work that runs on a helper. */
struct agent_task {
    struct workers_job head; /* first: a task is found from it */
    struct agent *agent;
    void (*run)(void *data);
    void *data;
    bool is_done; /* guarded by the agent's lock */
};

struct growth {
    struct workers_job head; /* first: the growth is found from it */
    struct agent *agent;
};

struct agent {
    struct workers *writer;  /* one thread */
    struct workers *helpers; /* one for the growth, and one for each task that runs at once */
    struct growth growth;
    struct host_arena *arena;
    char *trace_path;
    char *report_path;
    char *plan_path;
    int report; /* -1: no line is written yet */

    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t changed;
    uint64_t posted; /* counts jobs */
    uint64_t done;   /* jobs finished; they finish in the order they were posted */
    bool is_growing;
    uint64_t growth_bytes;
    capu_status growth_status;
    capu_status status; /* FILE_FAILED after the first failure, described in `text` */
    char text[AGENT_TEXT_BYTES];
};

/* Keeps only the first error: later ones are mostly consequences of it. */
void agent_fail(struct agent *agent, const char *text)
{
    pthread_mutex_lock(&agent->lock);
    if (agent->status == CAPU_OK) {
        agent->status = CAPU_FILE_FAILED;
        snprintf(agent->text, sizeof(agent->text), "%s", text);
    }
    pthread_mutex_unlock(&agent->lock);
}

static void note_error(struct agent *agent, const char *what, const char *path, int error)
{
    char text[AGENT_TEXT_BYTES];

    snprintf(text, sizeof(text), "writing the %s file '%s': %s", what, path, strerror(error));
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

/* Runs on the writer, which blocks SIGPIPE and SIGXFSZ: a closed pipe and a file that is too large
   are errors like any other. */
static void run_job(struct workers_job *head)
{
    struct job *job = (struct job *)(void *)head;
    struct agent *agent = job->agent;
    int error = write_job(agent, job);

    if (error != 0) {
        note_error(agent, job->what, job->path != NULL ? job->path : agent->report_path, error);
    }
    free(job->data);
    free(job);
    pthread_mutex_lock(&agent->lock);
    agent->done++;
    pthread_cond_broadcast(&agent->changed);
    pthread_mutex_unlock(&agent->lock);
}

/* Runs on a helper, since pinning can take seconds. */
static void run_growth(struct workers_job *head)
{
    struct agent *agent = ((struct growth *)(void *)head)->agent;
    capu_status status = host_arena_grow(agent->arena, agent->growth_bytes);

    pthread_mutex_lock(&agent->lock);
    agent->growth_status = status;
    agent->is_growing = false;
    pthread_cond_broadcast(&agent->changed);
    pthread_mutex_unlock(&agent->lock);
}

/* Runs on a helper. */
static void run_task(struct workers_job *head)
{
    struct agent_task *task = (struct agent_task *)(void *)head;
    struct agent *agent = task->agent;

    task->run(task->data);
    pthread_mutex_lock(&agent->lock);
    task->is_done = true;
    pthread_cond_broadcast(&agent->changed);
    pthread_mutex_unlock(&agent->lock);
}

/* Checks now what is written much later, so that a bad path already fails when the context is
   created. */
static capu_status check_file(const char *path, const char *what, char *error, size_t error_bytes)
{
    int problem = path != NULL ? files_check(path) : 0;

    if (problem != 0) {
        snprintf(error, error_bytes, "opening the %s file '%s': %s", what, path, strerror(problem));
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

static capu_status start_threads(struct agent *agent, size_t task_count, char *error,
                                 size_t error_bytes)
{
    capu_status status = workers_create(1, &agent->writer);

    if (status == CAPU_OK) {
        status = workers_create(task_count + 1, &agent->helpers);
    }
    if (status == CAPU_SYSTEM_LIMIT) {
        snprintf(error, error_bytes,
                 "the agent needs %zu threads, and the system does not start that many more",
                 task_count + 2);
    }
    return status;
}

capu_status agent_create(const struct agent_paths *paths, struct host_arena *arena,
                         size_t task_count, char *error, size_t error_bytes, struct agent **out)
{
    struct agent *agent = calloc(1, sizeof(*agent));
    capu_status status;

    if (agent == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    agent->arena = arena;
    agent->report = -1;
    agent->growth = (struct growth){.head.run = run_growth, .agent = agent};
    pthread_mutex_init(&agent->lock, NULL);
    pthread_cond_init(&agent->changed, NULL);
    status = take_paths(agent, paths, error, error_bytes);
    if (status == CAPU_OK) {
        status = start_threads(agent, task_count, error, error_bytes);
    }
    if (status != CAPU_OK) {
        agent_destroy(agent);
        return status;
    }
    *out = agent;
    return CAPU_OK;
}

void agent_destroy(struct agent *agent)
{
    if (agent == NULL) {
        return;
    }
    workers_destroy(agent->helpers);
    workers_destroy(agent->writer);
    if (agent->report >= 0) {
        close(agent->report);
    }
    pthread_cond_destroy(&agent->changed);
    pthread_mutex_destroy(&agent->lock);
    free(agent->report_path);
    free(agent->trace_path);
    free(agent->plan_path);
    free(agent);
}

static capu_status post_job(struct agent *agent, char *data, size_t bytes, const char *path,
                            const char *what)
{
    struct job *job = calloc(1, sizeof(*job));

    if (job == NULL) {
        free(data);
        return CAPU_NO_HOST_MEMORY;
    }
    job->head.run = run_job;
    job->agent = agent;
    job->data = data;
    job->bytes = bytes;
    job->path = path;
    job->what = what;
    pthread_mutex_lock(&agent->lock);
    agent->posted++;
    pthread_mutex_unlock(&agent->lock);
    workers_add(agent->writer, &job->head);
    return CAPU_OK;
}

capu_status agent_report(struct agent *agent, char *line)
{
    size_t length = strlen(line);

    /* The newline replaces the terminating zero; the length is passed along. */
    line[length] = '\n';
    return post_job(agent, line, length + 1, NULL, "report");
}

capu_status agent_trace(struct agent *agent, char *text, size_t bytes)
{
    return post_job(agent, text, bytes, agent->trace_path, "trace");
}

capu_status agent_plan(struct agent *agent, char *text, size_t bytes)
{
    return post_job(agent, text, bytes, agent->plan_path, "plan");
}

capu_status agent_start(struct agent *agent, void (*run)(void *data), void *data,
                        struct agent_task **out)
{
    struct agent_task *task = calloc(1, sizeof(*task));

    if (task == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    task->head.run = run_task;
    task->agent = agent;
    task->run = run;
    task->data = data;
    workers_add(agent->helpers, &task->head);
    *out = task;
    return CAPU_OK;
}

bool agent_is_done(struct agent *agent, const struct agent_task *task)
{
    bool is_done;

    pthread_mutex_lock(&agent->lock);
    is_done = task->is_done;
    pthread_mutex_unlock(&agent->lock);
    return is_done;
}

void agent_wait(struct agent *agent, const struct agent_task *task)
{
    pthread_mutex_lock(&agent->lock);
    while (!task->is_done) {
        pthread_cond_wait(&agent->changed, &agent->lock);
    }
    pthread_mutex_unlock(&agent->lock);
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
    workers_add(agent->helpers, &agent->growth.head);
}

static void wait_growth(struct agent *agent)
{
    while (agent->is_growing) {
        pthread_cond_wait(&agent->changed, &agent->lock);
    }
}

capu_status agent_grow(struct agent *agent, uint64_t bytes)
{
    capu_status status;

    pthread_mutex_lock(&agent->lock);
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
    pthread_mutex_unlock(&agent->lock);
    return status;
}

void agent_grow_ahead(struct agent *agent, uint64_t bytes)
{
    if (!host_arena_is_short(agent->arena, bytes)) {
        return;
    }
    pthread_mutex_lock(&agent->lock);
    if (!agent->is_growing && agent->growth_status == CAPU_OK) {
        ask_growth(agent, bytes);
    }
    pthread_mutex_unlock(&agent->lock);
}

capu_status agent_flush(struct agent *agent, char *error, size_t error_bytes)
{
    capu_status status;
    uint64_t target;

    pthread_mutex_lock(&agent->lock);
    target = agent->posted;
    while (agent->done < target) {
        pthread_cond_wait(&agent->changed, &agent->lock);
    }
    status = agent->status;
    if (status != CAPU_OK) {
        snprintf(error, error_bytes, "%s", agent->text);
    }
    pthread_mutex_unlock(&agent->lock);
    return status;
}

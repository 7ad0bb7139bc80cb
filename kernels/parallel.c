/*
 * The pool: a list of jobs, and workers that take tiles from the first job that has any left.
 * Callers work on their own job as well. So two callers never wait for each other's work, and all
 * work is done even if no worker could be started.
 *
 * One lock guards everything. It is held only to take a tile and to count it as done. A job is on
 * its caller's stack: it leaves the list when its last tile is taken, and the caller returns when
 * the last one is done.
 */
#include "kernels/parallel.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

/* More would not help: the largest op has a few hundred tiles. */
#define THREAD_LIMIT 64u

struct job {
    struct job *next;
    parallel_function function;
    const void *arguments;
    size_t tile_count;
    size_t taken;
    size_t done;
    unsigned workers; /* working on it now, not counting the caller */
    pthread_cond_t finished;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t work;
    struct job *jobs; /* those with tiles left */
    unsigned threads; /* limit, callers included; 0: not decided yet */
    unsigned started; /* workers that have been started */
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .work = PTHREAD_COND_INITIALIZER};

static unsigned limit_threads(long count)
{
    if (count < 1) {
        return 1;
    }
    return count > (long)THREAD_LIMIT ? THREAD_LIMIT : (unsigned)count;
}

static unsigned default_threads(void)
{
    const char *text = getenv("KERNELS_THREADS");

    if (text != NULL && *text != '\0') {
        return limit_threads(strtol(text, NULL, 10));
    }
    return limit_threads(sysconf(_SC_NPROCESSORS_ONLN));
}

/* The functions below are called with the lock held. */

static void forget_job(struct job *job)
{
    struct job **link = &pool.jobs;

    while (*link != job) {
        link = &(*link)->next;
    }
    *link = job->next;
}

/* Takes and runs one tile. The lock is released while the tile runs. */
static void run_tile(struct job *job)
{
    size_t tile = job->taken++;

    if (job->taken == job->tile_count) {
        forget_job(job);
    }
    pthread_mutex_unlock(&pool.lock);
    job->function(job->arguments, tile);
    pthread_mutex_lock(&pool.lock);
    job->done++;
    if (job->done == job->tile_count) {
        pthread_cond_signal(&job->finished);
    }
}

/* A job that has tiles left and fewer threads than the limit. */
static struct job *find_job(void)
{
    struct job *job = pool.jobs;

    while (job != NULL && job->workers + 1 >= pool.threads) {
        job = job->next;
    }
    return job;
}

static void *work_on_jobs(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&pool.lock);
    for (;;) {
        struct job *job = find_job();

        if (job == NULL) {
            pthread_cond_wait(&pool.work, &pool.lock);
            continue;
        }
        /* The caller cannot return before it holds the lock: the job lives while we hold it. */
        job->workers++;
        while (job->taken < job->tile_count) {
            run_tile(job);
        }
        job->workers--;
    }
    return NULL;
}

static void start_workers(void)
{
    pthread_attr_t attributes;
    pthread_t thread;

    if (pool.started + 1 >= pool.threads || pthread_attr_init(&attributes) != 0) {
        return;
    }
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    while (pool.started + 1 < pool.threads &&
           pthread_create(&thread, &attributes, work_on_jobs, NULL) == 0) {
        pool.started++;
    }
    pthread_attr_destroy(&attributes);
}

unsigned parallel_threads(void)
{
    unsigned threads;

    pthread_mutex_lock(&pool.lock);
    if (pool.threads == 0) {
        pool.threads = default_threads();
    }
    threads = pool.threads;
    pthread_mutex_unlock(&pool.lock);
    return threads;
}

void parallel_set_threads(unsigned count)
{
    pthread_mutex_lock(&pool.lock);
    pool.threads = limit_threads((long)count);
    pthread_mutex_unlock(&pool.lock);
}

void parallel_run(size_t tile_count, parallel_function function, const void *arguments)
{
    struct job job = {.function = function, .arguments = arguments, .tile_count = tile_count};

    if (tile_count < 2 || parallel_threads() < 2) {
        for (size_t tile = 0; tile < tile_count; tile++) {
            function(arguments, tile);
        }
        return;
    }
    pthread_cond_init(&job.finished, NULL);
    pthread_mutex_lock(&pool.lock);
    start_workers();
    job.next = pool.jobs;
    pool.jobs = &job;
    pthread_cond_broadcast(&pool.work);
    while (job.taken < job.tile_count) {
        run_tile(&job);
    }
    while (job.done < job.tile_count) {
        pthread_cond_wait(&job.finished, &pool.lock);
    }
    pthread_mutex_unlock(&pool.lock);
    pthread_cond_destroy(&job.finished);
}

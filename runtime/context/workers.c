/* Workers, see workers.h. */
#include "runtime/context/workers.h"

#include "base/thread.h"

#include <stdlib.h>

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
static void *serve(void *argument)
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
        if (!thread_start(&workers->threads[workers->thread_count], serve, workers)) {
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

/*
 * The queue: all work of the process in the order of issue, carried out by one thread.
 *
 * The lock guards the list and the numbers. Work that fails ends everything: what follows is not
 * carried out, and every call returns the error, as after a fault on a GPU. A child of a fork has
 * no such thread; driver_enter refuses its calls.
 */
#include "tests/ptx/driver/declared.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct work {
    struct work *next;
    queue_function run;
    struct declared *access; /* that it belongs to */
    unsigned char block[] __attribute__((aligned(16)));
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t has_work;
    pthread_cond_t has_completed;
    struct work *first;
    struct work *last;
    uint64_t issued;
    uint64_t completed;
    CUresult error;
    bool is_started;
    pthread_t thread;
} queue = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .has_work = PTHREAD_COND_INITIALIZER,
    .has_completed = PTHREAD_COND_INITIALIZER,
};

static void *carry_out(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&queue.lock);
    for (;;) {
        struct work *work = queue.first;
        CUresult result = queue.error;

        if (work == NULL) {
            pthread_cond_wait(&queue.has_work, &queue.lock);
            continue;
        }
        pthread_mutex_unlock(&queue.lock);
        if (result == CUDA_SUCCESS) {
            compare_begin(work->access);
            result = compare_end(work->run(work->block));
        }
        declared_release(work->access);
        pthread_mutex_lock(&queue.lock);
        queue.first = work->next;
        if (queue.first == NULL) {
            queue.last = NULL;
        }
        free(work);
        queue.completed++;
        if (queue.error == CUDA_SUCCESS) {
            queue.error = result;
        }
        pthread_cond_broadcast(&queue.has_completed);
    }
    return NULL;
}

/* Starts the thread once. Pre: the lock is held. */
static bool start(void)
{
    if (!queue.is_started && pthread_create(&queue.thread, NULL, carry_out, NULL) == 0) {
        pthread_detach(queue.thread);
        queue.is_started = true;
    }
    return queue.is_started;
}

CUresult queue_issue(queue_function run, const void *block, size_t bytes, uint64_t *number)
{
    struct work *work = malloc(sizeof(*work) + bytes);
    CUresult result;

    if (work == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    result = declared_take(&work->access);
    if (result != CUDA_SUCCESS) {
        free(work);
        return result;
    }
    work->next = NULL;
    work->run = run;
    memcpy(work->block, block, bytes);
    pthread_mutex_lock(&queue.lock);
    if (!start()) {
        pthread_mutex_unlock(&queue.lock);
        declared_release(work->access);
        free(work);
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    if (queue.last == NULL) {
        queue.first = work;
    } else {
        queue.last->next = work;
    }
    queue.last = work;
    *number = ++queue.issued;
    pthread_cond_signal(&queue.has_work);
    pthread_mutex_unlock(&queue.lock);
    return CUDA_SUCCESS;
}

uint64_t queue_last_issued(void)
{
    uint64_t number;

    pthread_mutex_lock(&queue.lock);
    number = queue.issued;
    pthread_mutex_unlock(&queue.lock);
    return number;
}

bool queue_is_done(uint64_t number)
{
    bool is_done;

    pthread_mutex_lock(&queue.lock);
    is_done = queue.completed >= number;
    pthread_mutex_unlock(&queue.lock);
    return is_done;
}

bool queue_is_own_thread(void)
{
    bool is_own;

    pthread_mutex_lock(&queue.lock);
    is_own = queue.is_started && pthread_equal(queue.thread, pthread_self());
    pthread_mutex_unlock(&queue.lock);
    return is_own;
}

CUresult queue_wait(uint64_t number)
{
    CUresult error;

    if (queue_is_own_thread()) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    pthread_mutex_lock(&queue.lock);
    while (queue.completed < number) {
        pthread_cond_wait(&queue.has_completed, &queue.lock);
    }
    error = queue.error;
    pthread_mutex_unlock(&queue.lock);
    return error;
}

CUresult queue_error(void)
{
    CUresult error;

    pthread_mutex_lock(&queue.lock);
    error = queue.error;
    pthread_mutex_unlock(&queue.lock);
    return error;
}

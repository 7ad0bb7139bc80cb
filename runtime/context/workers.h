/*
 * Workers: threads that do jobs off the context's thread, in the order in which they were added.
 * With one thread, a job begins when the one before it has ended.
 *
 * All threads start when the workers are created, so that no later moment can lack one. Adding a
 * job cannot fail: the caller provides the job's struct.
 *
 * A lock guards the queue; it is not held while a job runs.
 */
#ifndef CAPU_RUNTIME_WORKERS_H
#define CAPU_RUNTIME_WORKERS_H

#include "capuchin/status.h"

#include <stddef.h>

struct workers;

/* A job. Embedded in a larger struct, which `run` finds from it and may free. */
struct workers_job {
    struct workers_job *next;
    void (*run)(struct workers_job *job);
};

/* Starts `count` threads. SYSTEM_LIMIT: there are no more threads; NO_HOST_MEMORY. */
capu_status workers_create(size_t count, struct workers **out);

/* Finishes all jobs, then ends the threads. Accepts NULL. Jobs must not add jobs meanwhile. */
void workers_destroy(struct workers *workers);

/* Adds a job, whose struct must live until it has run. Any thread. */
void workers_add(struct workers *workers, struct workers_job *job);

#endif

/*
 * The agent: the library's threads for work that must not delay training. They write report, trace
 * and plan files, pin host memory, and run the planner.
 *
 * The context's thread posts files to write, and the writer writes them in order. Tasks and the
 * growth of the host arena run concurrently, each on a helper. All threads start with the agent.
 * One lock guards the shared state; it is never held during a file or device call. Nothing happens
 * at process exit: agent_destroy ends the threads.
 *
 * All functions are called on the context's thread.
 */
#ifndef CAPU_RUNTIME_AGENT_H
#define CAPU_RUNTIME_AGENT_H

#include "allocator/host_arena.h"
#include "capuchin/status.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * Workers: threads that do jobs off the context's thread, in the order in which they were added.
 * With one thread, a job begins when the one before it has ended.
 *
 * All threads start when the workers are created, so that no later moment can lack one. Adding a
 * job cannot fail: the caller provides the job's struct.
 *
 * A lock guards the queue; it is not held while a job runs.
 */

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

/* The agent. */

struct agent;
struct agent_task;

enum { AGENT_TEXT_BYTES = 512 };

/* Paths of the files to write; NULL: no such file. The agent copies them. */
struct agent_paths {
    const char *report;
    const char *trace;
    const char *plan;
};

/* Checks that the files can be created or replaced, which are not changed until there is something
   to write, and starts the threads, with helpers for `task_count` tasks at once. `arena` is
   borrowed until agent_destroy. FILE_FAILED: one of the files cannot; SYSTEM_LIMIT: there are no
   more threads; both with a text in `error`. NO_HOST_MEMORY. */
capu_status agent_create(const struct agent_paths *paths, struct host_arena *arena,
                         size_t task_count, char *error, size_t error_bytes, struct agent **out);

/* Finishes all jobs and tasks, then ends the threads. Accepts NULL. */
void agent_destroy(struct agent *agent);

/* Appends a line to the report file; the first line replaces the file. Takes `line` (allocated with
   malloc), also on failure. NO_HOST_MEMORY; write errors are reported by agent_flush. */
capu_status agent_report(struct agent *agent, char *line);

/* Each replaces its file, which stays as it was if that fails. Takes `text` (allocated with
   malloc), also on failure. NO_HOST_MEMORY; write errors are reported by agent_flush. */
capu_status agent_trace(struct agent *agent, char *text, size_t bytes);
capu_status agent_plan(struct agent *agent, char *text, size_t bytes);

/* Starts `run(data)` on a helper, concurrently with all other work; it waits if more tasks run than
   the agent was created for. The caller keeps ownership of `data` but must not touch it until the
   task is done. NO_HOST_MEMORY. */
capu_status agent_start(struct agent *agent, void (*run)(void *data), void *data,
                        struct agent_task **task);

/* Returns whether the task is done; waits until it is. */
bool agent_is_done(struct agent *agent, const struct agent_task *task);
void agent_wait(struct agent *agent, const struct agent_task *task);

/* Frees a task that is done. Accepts NULL. */
void agent_forget(struct agent_task *task);

/* Notes that a report, trace or plan did not reach its file. agent_flush reports the first such
   text. */
void agent_fail(struct agent *agent, const char *text);

/* Grows the host arena and waits for it. If a growth is already under way and succeeds, it counts,
   even if it adds fewer than `bytes`: try to allocate again, and call this again if that fails.
   HOST_OVER_BUDGET, NO_HOST_MEMORY. */
capu_status agent_grow(struct agent *agent, uint64_t bytes);

/* Starts growing the host arena by `bytes` if less than a quarter of it, or less than `bytes`, is
   free. Does not wait. Does nothing while a growth is under way or if the last one failed. */
void agent_grow_ahead(struct agent *agent, uint64_t bytes);

/* Waits until all jobs posted so far are done. FILE_FAILED: something did not reach its file since
   the agent was created; `error` receives the first such text. */
capu_status agent_flush(struct agent *agent, char *error, size_t error_bytes);

#endif

/*
 * The agent: a thread with a libuv loop for everything that must not hold up training: report,
 * trace and plan files, pinning host memory, and planning.
 *
 * The context's thread posts jobs, the agent's thread does them in order; host memory is pinned on
 * libuv's work queue beside them. Shared state is guarded by one lock, never held over file or
 * device calls. Nothing is done at exit: agent_destroy ends the thread.
 */
#ifndef CAPU_RUNTIME_AGENT_H
#define CAPU_RUNTIME_AGENT_H

#include "allocator/host_arena.h"
#include "capuchin/status.h"

#include <stdbool.h>
#include <stddef.h>

struct agent;
struct agent_task;

enum { AGENT_TEXT_BYTES = 512 };

/* The files an agent writes; NULL: none. Copied. */
struct agent_paths {
    const char *report;
    const char *trace;
    const char *plan;
};

/* Creates or truncates the files. FILE_FAILED with the text in `error`. */
capu_status agent_create(const struct agent_paths *paths, struct host_arena *arena, char *error,
                         size_t error_bytes, struct agent **out);

/* Does all jobs, then ends. NULL is fine. */
void agent_destroy(struct agent *agent);

/* Appends a line to the report file; takes `line` (malloc), also on failure. */
capu_status agent_report(struct agent *agent, char *line);

/* Each writes its file whole; takes `text` (malloc), also on failure. */
capu_status agent_trace(struct agent *agent, char *text, size_t bytes);
capu_status agent_plan(struct agent *agent, char *text, size_t bytes);

/* Starts `run(data)` on libuv's work queue, beside everything else. `data` stays the caller's, who
   leaves it alone until the task is done. NO_HOST_MEMORY. */
capu_status agent_start(struct agent *agent, void (*run)(void *data), void *data,
                        struct agent_task **task);

/* Whether it is done; waits for it to be. */
bool agent_is_done(struct agent *agent, const struct agent_task *task);
void agent_wait(struct agent *agent, const struct agent_task *task);

/* Frees a task that is done. NULL is fine. */
void agent_forget(struct agent_task *task);

/* Something kept a report or a trace from its file: agent_flush tells the first such text. */
void agent_fail(struct agent *agent, const char *text);

/* Grows the host arena by at least `bytes` and waits for it. HOST_OVER_BUDGET, NO_HOST_MEMORY. */
capu_status agent_grow(struct agent *agent, uint64_t bytes);

/* Starts growing ahead of need; nothing if a growth is under way. */
void agent_grow_ahead(struct agent *agent, uint64_t bytes);

/* Waits until all jobs posted so far are done. FILE_FAILED: a file could not be written since the
   agent was created; the text in `error`. */
capu_status agent_flush(struct agent *agent, char *error, size_t error_bytes);

#endif

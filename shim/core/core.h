/*
 * The library's context that holds the program's memory, and the lock around it.
 *
 * The context is created by the first call that needs it. All work of the program goes to the
 * context's compute stream, in the order of the calls. On the host device, which is for tests,
 * there is no such stream: work runs on one of the driver's, and each call waits for it.
 */
#ifndef CAPU_SHIM_CORE_H
#define CAPU_SHIM_CORE_H

#include "shim/driver/caller.h"
#include "shim/driver/driver.h"

#include "capuchin/capuchin.h"

#include <stdbool.h>

struct operands;

/* Whether a call is ours. Not while nothing is managed, in a child after fork, inside a library's
   call whose operands are known, or for callers that the call is not for. Thread: any. */
bool core_takes(enum caller caller, bool is_program_only);

/* Whether this is not a child after fork. Thread: any. */
bool core_is_parent(void);

/* The stream on which work for a stream of the program is enqueued. Thread: any. */
CUstream core_stream(CUstream stream);

/* The architecture of a device: 90 for compute capability 9.0. Thread: any. */
unsigned core_architecture(CUdevice device);

/* Makes the context of the first device current if none is, as the runtime does: a call of a
   library of CUDA may be the first of all. Thread: any; not entered. */
CUresult core_need_device(void);

/* Takes the lock, and creates the context if there is none. An error: neither was done. */
CUresult core_enter(void);
void core_leave(void);

/* Takes the lock alone, for what is guarded by it and needs no context; or only if no thread has
   it, at the exit of the process. Both end with core_unlock. */
void core_lock(void);
bool core_try_lock(void);
void core_unlock(void);

/* Whether there is a context. Thread: any. */
bool core_is_open(void);

/* Whether this thread has entered. Thread: any. */
bool core_is_inside(void);

/* The rest is for the thread that has entered. */
capu_context *core_context(void);

/* Whether the context's device is host. */
bool core_is_host(void);

/* What the context was created with. */
uint64_t core_full_budget(void);

/* The driver's error for a status; a line reports what failed and why. */
CUresult core_result(capu_status status, const char *what);

/* Begins an access. The caller then enqueues its work on core_stream() and ends the access with the
   driver's answer, which end returns. OUT_OF_MEMORY: also if operands are missing, since there was
   no host memory. */
CUresult core_begin(const struct operands *operands, const char *name);
CUresult core_end(CUresult result, const char *name);

/* Runs an op, whose operands are set here, by its function: the library may run it again later. On
   the host device also waits for it. What was said of begin and end does not hold: the function
   says what has begun. */
CUresult core_run(const struct operands *operands, capu_op *op);

/* Counts a launch, copy or memset of the program that failed here and would not have failed without
   a budget; those whose access does not begin are counted. What was counted so far. Thread: any. */
void core_note_undone(void);
uint64_t core_undone(void);

/* After calls of the library that enqueue work: on the host device waits for it. */
CUresult core_settle(CUresult result);

/* Waits for all work of the program, without the lock. Thread: any. */
CUresult core_wait(void);

/* Sets what is called when an access has begun, and when its work has been enqueued (on the host
   device: completed), by the thread that has entered. NULL: nothing. Before the first access. */
void core_watch(void (*begun)(const char *name, const capu_operand *operands, size_t count),
                void (*ended)(void));

/* After a call of the library has failed for want of room: makes some, by cuts that were noted, or
   at the cost of others. False: it cannot, and the call need not be tried again. */
bool core_make_room(void);

/* Sets what is asked to make room when the operands of an access do not fit the budget; false: it
   cannot. */
void core_on_lack(bool (*make_room)(void));

/* Between these, calls of this thread go to the driver: a library's call with known operands. */
void core_guard_begin(void);
void core_guard_end(void);

#endif

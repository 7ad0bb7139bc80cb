/*
 * The inside of the test driver: libcuda.so.1 of our own, whose device is memory of this process
 * and whose processor is the machine that executes PTX on the CPU (tests/ptx/machine).
 *
 * entry.c has the table of entry points, context.c devices and contexts, queue.c the thread that
 * carries out all work, capture.c, graph.c and graph_run.c
 * graphs, memory.c the device's memory, host_memory.c pinned memory and what is known
 * about a pointer, copy.c copies and fills, stream.c streams and events, module.c device code,
 * launch.c launches.
 *
 * Locks: each file has its own, if any, and holds it only over its own structures. No lock is held
 * while work is waited for.
 */
#ifndef CAPU_TESTS_PTX_DRIVER_H
#define CAPU_TESTS_PTX_DRIVER_H

#include "tests/ptx/include/driver_types.h"

#include <stdbool.h>

/* What the environment says about the device, read once. */
struct driver_settings {
    uint64_t memory_bytes;  /* PTX_DRIVER_MEMORY; 4 GiB unless set */
    int capability;         /* PTX_DRIVER_CAPABILITY: 80 is 8.0; 90 unless set */
    bool with_foreign;      /* PTX_DRIVER_FOREIGN: copies may use memory of other owners */
    bool names_streams;     /* PTX_DRIVER_STREAMS: stderr says where prefetches and the like go */
    bool without_compiler;  /* PTX_DRIVER_NO_COMPILER: PTX by itself is not loaded */
    bool with_machine_code; /* PTX_DRIVER_MACHINE_CODE: it goes before PTX, and cannot run */
    const char *operands;   /* PTX_DRIVER_OPERANDS: what is declared, see declared.h; NULL */
};

const struct driver_settings *driver_settings(void);

/* Begins a call: success, or what it must return: NOT_INITIALIZED before cuInit and in a child of a
   fork, or the error of work that failed, which lasts. */
CUresult driver_enter(void);
/* The same for calls that need a current context: or INVALID_CONTEXT. */
CUresult driver_enter_context(void);

#define DRIVER_ENTER(enter)             \
    do {                                \
        CUresult entered_ = enter();    \
        if (entered_ != CUDA_SUCCESS) { \
            return entered_;            \
        }                               \
    } while (0)

/* The same for calls that may wait for work, which captures forbid: or their error. */
CUresult driver_enter_waiting(void);

CUcontext context_current(void);

/*
 * Work, by the number under which it was issued. One thread carries all of it out in that order,
 * which is legal for every program whose streams do not wait for each other's kernels.
 */
typedef CUresult (*queue_function)(void *block);

/* Issues work; `block` is copied and freed afterwards. Returns OUT_OF_MEMORY without host memory.
 */
CUresult queue_issue(queue_function run, const void *block, size_t bytes, uint64_t *number);
uint64_t queue_last_issued(void);
bool queue_is_done(uint64_t number);
/* Waits until the work has completed or can no longer do so. Returns the lasting error. From a host
   function: INVALID_HANDLE, since it would wait for itself. */
CUresult queue_wait(uint64_t number);
CUresult queue_error(void);
bool queue_is_own_thread(void);

struct memory_block {
    uint64_t address;
    uint64_t bytes; /* as asked for; pages up to the next border are accessible too */
    uint64_t id;
    bool is_managed;
    bool is_leaving; /* freed, but work issued before may still use it */
};

/* Errors: INVALID_VALUE: zero bytes; OUT_OF_MEMORY. */
CUresult memory_take(uint64_t bytes, bool is_managed, uint64_t *address);
/* Marks a block as freed; false: there is no block at the address. */
bool memory_leave(uint64_t address);
/* Frees a block that was marked. Nothing may use it any more. */
void memory_free(uint64_t address);
/* The block that contains the address. False: none does. */
bool memory_find(uint64_t address, struct memory_block *block);
void memory_figures(uint64_t *used_bytes, uint64_t *total_bytes);

/* Frees all blocks, marked or not. Nothing may use them any more. */
void memory_reset(void);

/* Gives the variables of all modules their first contents again. Nothing may use them meanwhile. */
void module_reset(void);
/* The variable of a loaded module that contains the address. False: none does. */
bool module_find_variable(uint64_t address, struct memory_block *block);

/* Whether all of it is in one block of pinned memory. */
bool host_memory_is_pinned(const void *address, uint64_t bytes);
/* Whether all of it is memory that a device address can mean: a block, a variable or pinned memory;
   with foreign memory allowed, any. */
bool host_memory_is_reachable(uint64_t address, uint64_t bytes);

bool stream_is_capturing(CUstream stream);
/* Notes that the stream takes part in a capture. */
void capture_note_blocking(CUstream stream);
/* For a call that may wait for work: an error, and captures that forbid it become invalid. */
CUresult capture_check_wait(void);
/* The same for a call that no capture allows. */
CUresult capture_check_none(void);

/* The stream of a handle, special ones included. NULL: there is none. */
struct CUstream_st *stream_of(CUstream handle);
/* Issues work to a stream, and notes it as the stream's last; adds it to the graph that the stream
   captures, if it does: the number is 0 then. The legacy default stream cannot be used while a
   stream captures for which it would wait. */
CUresult stream_issue(CUstream stream, queue_function run, const void *block, size_t bytes,
                      uint64_t *number);

#endif

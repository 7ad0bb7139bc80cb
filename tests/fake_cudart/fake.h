/* Internals of the fake, shared by fake_cudart.c (state, faults, devices, host memory),
   fake_memory.c (the driver's calls) and those of streams.h. */
#ifndef CAPU_TESTS_FAKE_CUDART_FAKE_H
#define CAPU_TESTS_FAKE_CUDART_FAKE_H

#include "tests/fake_cudart/fake_cudart.h"

#include "device/device.h"

#include <cuda_runtime_api.h>
#include <pthread.h>

struct fake_handle {
    struct fake_handle *next;
    device_page *pages; /* of the host device, whose page size is the granularity */
    size_t page_count;
    size_t mapping_count;
    int device; /* to which the memory belongs */
    bool is_released;
};

struct fake_mapping {
    char *address;
    uint64_t bytes;
    struct fake_handle *handle;
    bool has_access;
};

struct fake_range {
    struct fake_range *next;
    char *address;
    uint64_t bytes;
    void *reserved; /* the host device's range; larger if it had to be aligned */
    uint64_t reserved_bytes;
};

struct fake_registered {
    struct fake_registered *next;
    char *address;
    uint64_t bytes;
    bool is_own; /* allocated by cudaHostAlloc, not registered */
};

struct fake {
    pthread_mutex_t lock; /* guards the rest */
    struct fake_cudart_machine machine;
    struct device *host; /* NULL: not created yet */

    struct fake_handle *handles;
    struct fake_range *ranges;
    struct fake_mapping *mappings; /* by address */
    size_t mapping_count;
    size_t mapping_capacity;
    struct fake_registered *registered;
    uint64_t used_bytes;

    struct CUstream_st *streams;
    struct CUevent_st *events;
    unsigned event_flags;
    uint64_t timed_records;
    struct fake_capture *captures; /* under way */
    unsigned long long capture_count;
    struct CUgraph_st *graphs;
    struct CUgraphExec_st *executables;
    size_t access_count;
    bool is_exportable;

    int sticky; /* the error of a lost device */
    bool is_armed;
    struct fake_cudart_fault fault;
    uint64_t random;
    uint64_t calls;
    uint64_t hits;
    uint64_t calls_of[FAKE_CUDART_CALL_COUNT];
};

extern struct fake fake;

/* Begins a call: returns 0, or the error that the call must return. */
int fake_enter(enum fake_cudart_call call);
/* Loses the device: from now on every call returns this error. Only the first error counts. */
void fake_lose(int error);
/* Waits for all pending work. */
void fake_drain(void);
/* Ends a call of the runtime: stores and returns its error. */
cudaError_t fake_leave(int error);
int fake_current(void);

#define FAKE_RUNTIME_ENTER(name)                \
    do {                                        \
        int entered_ = fake_enter(FAKE_##name); \
        if (entered_ != 0) {                    \
            return fake_leave(entered_);        \
        }                                       \
    } while (0)

#define FAKE_DRIVER_ENTER(name)                 \
    do {                                        \
        int entered_ = fake_enter(FAKE_##name); \
        if (entered_ != 0) {                    \
            return (CUresult)entered_;          \
        }                                       \
    } while (0)

/* The same for a call that CUDA calls potentially unsafe during a capture. */
#define FAKE_RUNTIME_ENTER_UNSAFE(name)      \
    do {                                     \
        int forbidden_;                      \
        FAKE_RUNTIME_ENTER(name);            \
        forbidden_ = fake_capture_forbids(); \
        if (forbidden_ != 0) {               \
            return fake_leave(forbidden_);   \
        }                                    \
    } while (0)

#define FAKE_DRIVER_ENTER_UNSAFE(name)       \
    do {                                     \
        int forbidden_;                      \
        FAKE_DRIVER_ENTER(name);             \
        forbidden_ = fake_capture_forbids(); \
        if (forbidden_ != 0) {               \
            return (CUresult)forbidden_;     \
        }                                    \
    } while (0)

/* fake_capture.c: a call that CUDA calls potentially unsafe: 0, or the error, and the captures that
   prohibit it are invalidated. */
int fake_capture_forbids(void);

void fake_lock(void);
void fake_unlock(void);

/* Whether all of [address, address + bytes) is accessible, and whether any of it is reserved. Pre:
   the lock is held. */
bool fake_has_access(const void *address, uint64_t bytes);
bool fake_is_device_memory(const void *address, uint64_t bytes);
/* Whether part of the memory is pinned, but not all of it in one piece. Pre: the lock is held. */
bool fake_is_half_pinned(const void *address, uint64_t bytes);
/* Whether all of it is pinned, in one piece. Pre: the lock is held. */
bool fake_is_pinned(const void *address, uint64_t bytes);
/* Each releases the objects of its file. */
void fake_memory_finish(void);
void fake_streams_finish(void);

#endif

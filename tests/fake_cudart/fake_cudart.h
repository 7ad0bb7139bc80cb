/*
 * A CUDA runtime without a GPU, for tests. It implements the calls that the cuda device makes over
 * the host device: streams are threads, events are real, device memory is a memfd, and memory
 * without access faults.
 *
 * It is as strict as CUDA, and stricter where CUDA would silently do something wrong:
 * - a handle is mapped as a whole and at offset 0, and a mapping is unmapped as a whole;
 * - a new mapping is not accessible until access is set;
 * - a copy to or from memory without access loses the device when the stream reaches it;
 * - a copy is rejected if only part of its host memory is pinned, and it loses the device if that
 *   memory is unpinned before the copy has run;
 * - a stream waits for a value in pinned memory, or in device memory with access; if that memory
 * goes away meanwhile, the device is lost; a capture refuses such a wait;
 * - streams and events belong to the device that was current, memory to the one it was created on;
 * - while a stream is captured, what CUDA refuses then is refused, and invalidates the capture: see
 *   fake_capture.c. Nodes of a graph that no edge orders run beside each other.
 *
 * Every call can be made to fail. The state is created at the first call, and there is one per
 * process. The calls that the device contract allows on a second thread may come from two threads;
 * the functions below only from the testing thread.
 */
#ifndef CAPU_TESTS_FAKE_CUDART_H
#define CAPU_TESTS_FAKE_CUDART_H

#include "capuchin/op.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(name): every call that can be made to fail. */
#define FAKE_CUDART_CALLS(X)               \
    X(cudaGetDeviceCount)                  \
    X(cudaSetDevice)                       \
    X(cudaDeviceGetAttribute)              \
    X(cudaDeviceCanAccessPeer)             \
    X(cudaDeviceSynchronize)               \
    X(cudaMemGetInfo)                      \
    X(cudaGetDriverEntryPointByVersion)    \
    X(cudaHostRegister)                    \
    X(cudaHostUnregister)                  \
    X(cudaHostAlloc)                       \
    X(cudaFreeHost)                        \
    X(cudaStreamCreateWithFlags)           \
    X(cudaStreamDestroy)                   \
    X(cudaStreamSynchronize)               \
    X(cudaStreamQuery)                     \
    X(cudaStreamWaitEvent)                 \
    X(cudaEventCreateWithFlags)            \
    X(cudaEventDestroy)                    \
    X(cudaEventRecord)                     \
    X(cudaEventQuery)                      \
    X(cudaEventSynchronize)                \
    X(cudaEventElapsedTime)                \
    X(cudaMemcpyAsync)                     \
    X(cudaMemsetAsync)                     \
    X(cudaStreamBeginCapture)              \
    X(cudaStreamEndCapture)                \
    X(cudaStreamIsCapturing)               \
    X(cudaStreamGetCaptureInfo)            \
    X(cudaThreadExchangeStreamCaptureMode) \
    X(cudaGraphGetNodes)                   \
    X(cudaGraphDestroy)                    \
    X(cudaGraphInstantiate)                \
    X(cudaGraphExecUpdate)                 \
    X(cudaGraphExecMemcpyNodeSetParams1D)  \
    X(cudaGraphLaunch)                     \
    X(cudaGraphExecDestroy)                \
    X(cuMemGetAllocationGranularity)       \
    X(cuMemCreate)                         \
    X(cuMemRelease)                        \
    X(cuMemMap)                            \
    X(cuMemUnmap)                          \
    X(cuMemSetAccess)                      \
    X(cuMemAddressReserve)                 \
    X(cuMemAddressFree)                    \
    X(cuStreamWaitValue32)

#define FAKE_CUDART_ENUMERATOR(name) FAKE_##name,
enum fake_cudart_call { FAKE_CUDART_CALLS(FAKE_CUDART_ENUMERATOR) FAKE_CUDART_CALL_COUNT };
#undef FAKE_CUDART_ENUMERATOR
#define FAKE_CUDART_ANY_CALL FAKE_CUDART_CALL_COUNT

/* Properties of the machine. Zero means the default. */
struct fake_cudart_machine {
    uint64_t memory_bytes;      /* of a device; default 256 MiB */
    uint64_t granularity_bytes; /* default 64 KiB */
    int device_count;           /* default 1; all devices share the memory */
    int host_node;              /* NUMA node of every device; default 0 */
    uint64_t delay_seed;        /* not 0: work is delayed at random */
    bool has_no_driver;
    bool has_no_devices;
    bool unmaps_singly;     /* a call can unmap only one mapping */
    bool has_own_alignment; /* ignores the requested alignment beyond the granularity */
    bool has_peers;         /* each device can access the memory of the others */
    bool has_no_exporting;  /* handles cannot be exported */
    const char *missing;    /* name of a driver call that is not found */
};

/* Which call fails. */
struct fake_cudart_fault {
    enum fake_cudart_call call; /* or FAKE_CUDART_ANY_CALL */
    uint64_t number;            /* which of these calls, counted from 1 since arming */
    uint32_t one_in;            /* if number is 0: fails at random, one call in this many */
    uint64_t seed;
    int error;       /* the error that the call returns */
    bool is_lasting; /* all later calls of this kind fail too */
    bool is_sticky;  /* the device is lost: every later call returns the error */
};

/* The objects that exist, to find leaks. */
struct fake_cudart_left {
    size_t handles; /* not released, or still mapped */
    size_t mappings;
    size_t ranges;
    size_t registered; /* ranges of pinned host memory */
    size_t streams;
    size_t events;
    size_t graphs; /* and executable ones */
};

/* The name of a call, such as "cudaSetDevice". A constant. */
const char *fake_cudart_name(enum fake_cudart_call call);

/* Releases everything and starts again with the given machine; NULL: the default one. */
void fake_cudart_reset(const struct fake_cudart_machine *machine);

/* Arms a fault and starts counting calls. NULL: no call fails any more. */
void fake_cudart_arm(const struct fake_cudart_fault *fault);
/* The number of calls of the armed kind, and of failures, since arming. */
uint64_t fake_cudart_calls(void);
uint64_t fake_cudart_hits(void);
/* The number of calls of one kind since the last reset, including failed ones. */
uint64_t fake_cudart_calls_of(enum fake_cudart_call call);

struct fake_cudart_left fake_cudart_left(void);

/* Whether the device is lost, so that every call fails. */
bool fake_cudart_is_lost(void);

/* The flags with which the newest event was created. */
unsigned fake_cudart_event_flags(void);

/* How many devices the newest cuMemSetAccess gave access to, and whether the newest page can be
   exported. */
size_t fake_cudart_access_count(void);
bool fake_cudart_is_exportable(void);

/* How often an event with timing was recorded since the last reset. */
uint64_t fake_cudart_timed_records(void);

/*
 * Launches a kernel, which runs on the stream's thread. `arguments` must stay valid until it has
 * run. If the kernel fails, the device is lost. DEVICE_FAILED: the kernel cannot be launched.
 */
capu_status fake_cudart_launch(capu_stream stream, capu_run_function kernel, const void *arguments);

/* Whether work of the stream is recorded, not run. */
bool fake_cudart_is_captured(capu_stream stream);

/* Gets and sets the current device of this thread, without counting a call. FAKE_CUDART_FOREIGN: a
   context that the program has made by itself is current. */
#define FAKE_CUDART_FOREIGN (-1)
int fake_cudart_current(void);
void fake_cudart_make_current(int ordinal);

/* The result of cudaPeekAtLastError on this thread. */
int fake_cudart_last_error(void);

/* The device to which a stream belongs. */
int fake_cudart_device_of(capu_stream stream);

#endif

/*
 * A CUDA runtime without a GPU, for tests: the calls that the cuda device makes, over the host
 * device. Streams are threads, events are real, device memory is a memfd, and what has no access
 * faults.
 *
 * It is as strict as CUDA is, and where CUDA would go on and be wrong, stricter: handles are mapped
 * whole and at offset 0, mappings are unmapped whole, a mapping has no access at first, a copy that
 * meets memory without access loses the device when the stream gets there, one whose host memory is
 * pinned in part is refused, one whose host memory is unpinned before its turn loses the device,
 * streams and events belong to the device that was current, memory to the one it was made on. Every
 * call can be made to fail.
 *
 * State is made at the first call and is one for the process. The calls of the device's contract
 * may come from two threads; the functions below from the testing thread only.
 */
#ifndef CAPU_TESTS_FAKE_CUDART_H
#define CAPU_TESTS_FAKE_CUDART_H

#include "capuchin/op.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(name): every call that can be made to fail. */
#define FAKE_CUDART_CALLS(X)            \
    X(cudaGetDeviceCount)               \
    X(cudaSetDevice)                    \
    X(cudaDeviceGetAttribute)           \
    X(cudaDeviceSynchronize)            \
    X(cudaMemGetInfo)                   \
    X(cudaGetDriverEntryPointByVersion) \
    X(cudaHostRegister)                 \
    X(cudaHostUnregister)               \
    X(cudaHostAlloc)                    \
    X(cudaFreeHost)                     \
    X(cudaStreamCreateWithFlags)        \
    X(cudaStreamDestroy)                \
    X(cudaStreamSynchronize)            \
    X(cudaStreamQuery)                  \
    X(cudaStreamWaitEvent)              \
    X(cudaEventCreateWithFlags)         \
    X(cudaEventDestroy)                 \
    X(cudaEventRecord)                  \
    X(cudaEventQuery)                   \
    X(cudaEventSynchronize)             \
    X(cudaEventElapsedTime)             \
    X(cudaMemcpyAsync)                  \
    X(cudaMemsetAsync)                  \
    X(cuMemGetAllocationGranularity)    \
    X(cuMemCreate)                      \
    X(cuMemRelease)                     \
    X(cuMemMap)                         \
    X(cuMemUnmap)                       \
    X(cuMemSetAccess)                   \
    X(cuMemAddressReserve)              \
    X(cuMemAddressFree)

#define FAKE_CUDART_ENUMERATOR(name) FAKE_##name,
enum fake_cudart_call { FAKE_CUDART_CALLS(FAKE_CUDART_ENUMERATOR) FAKE_CUDART_CALL_COUNT };
#undef FAKE_CUDART_ENUMERATOR
#define FAKE_CUDART_ANY_CALL FAKE_CUDART_CALL_COUNT

/* What kind of machine it is. Zero means the default. */
struct fake_cudart_machine {
    uint64_t memory_bytes;      /* of a device; default 256 MiB */
    uint64_t granularity_bytes; /* default 64 KiB */
    int device_count;           /* default 1; they share the memory */
    int host_node;              /* of every device; default 0 */
    uint64_t delay_seed;        /* not 0: work comes late, by chance */
    bool has_no_driver;
    bool has_no_devices;
    bool unmaps_singly;     /* one mapping a call */
    bool has_own_alignment; /* reserved addresses are aligned to the granularity and no more */
    const char *missing;    /* a driver call that is not found */
};

/* Which call fails. */
struct fake_cudart_fault {
    enum fake_cudart_call call; /* or FAKE_CUDART_ANY_CALL */
    uint64_t number;            /* this one of them, counted from 1 since arming */
    uint32_t one_in;            /* number 0: by chance, one in so many */
    uint64_t seed;
    int error;       /* what it answers */
    bool is_lasting; /* all later ones fail too */
    bool is_sticky;  /* the device is lost: every later call answers the error */
};

/* What is there, to find leaks. */
struct fake_cudart_left {
    size_t handles; /* not released, or mapped */
    size_t mappings;
    size_t ranges;
    size_t registered; /* ranges of host memory */
    size_t streams;
    size_t events;
};

/* "cudaSetDevice"; a constant. */
const char *fake_cudart_name(enum fake_cudart_call call);

/* Ends whatever there is and begins anew, on such a machine; NULL: the default. */
void fake_cudart_reset(const struct fake_cudart_machine *machine);

/* Counts from here. NULL: nothing fails any more. */
void fake_cudart_arm(const struct fake_cudart_fault *fault);
/* Calls counted, and failed, since arming. */
uint64_t fake_cudart_calls(void);
uint64_t fake_cudart_hits(void);
/* Calls of one kind since the last reset, failed ones included. */
uint64_t fake_cudart_calls_of(enum fake_cudart_call call);

struct fake_cudart_left fake_cudart_left(void);

/* Whether every call answers the error of a lost device. */
bool fake_cudart_is_lost(void);

/* The flags that the newest event was made with. */
unsigned fake_cudart_event_flags(void);

/* Records of events with timing since the last reset. */
uint64_t fake_cudart_timed_records(void);

/*
 * A kernel launch: `kernel` runs on the stream's thread. `arguments` must stay valid until it has
 * run. Its failure loses the device. OK, or DEVICE_FAILED if it cannot be launched.
 */
capu_status fake_cudart_launch(capu_stream stream, capu_run_function kernel, const void *arguments);

/* The device that is current on this thread; it is made so without counting a call. */
int fake_cudart_current(void);
void fake_cudart_make_current(int ordinal);

/* What cudaPeekAtLastError answers on this thread. */
int fake_cudart_last_error(void);

/* The device that a stream is of. */
int fake_cudart_device_of(capu_stream stream);

#endif

/*
 * The inside of the cuda device, shared by its files: cuda.c (table, creation), cuda_error.c (what
 * calls answered), cuda_memory.c (pages, ranges, mappings), cuda_host.c (pinned memory),
 * cuda_stream.c (streams, events, work, captures and graphs).
 *
 * They include CUDA's headers, or those of tests/fake_cudart, which declare the same. Calls go from
 * cuda.c to the others and from all of them to cuda_error.c, never back.
 */
#ifndef CAPU_DEVICE_CUDA_H
#define CAPU_DEVICE_CUDA_H

#include "device/books.h"
#include "device/device.h"

#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdatomic.h>

/* The driver's calls, each with the version whose type is compiled here. Those of virtual memory
   came with CUDA 10.2. */
#define CUDA_DRIVER_CALLS(X)                \
    X(cuMemGetAllocationGranularity, 10020) \
    X(cuMemCreate, 10020)                   \
    X(cuMemRelease, 10020)                  \
    X(cuMemMap, 10020)                      \
    X(cuMemUnmap, 10020)                    \
    X(cuMemSetAccess, 10020)                \
    X(cuMemAddressReserve, 10020)           \
    X(cuMemAddressFree, 10020)              \
    X(cuCtxGetCurrent, 4000)
#define CUDA_DRIVER_VERSION 10020
#define CUDA_DEVICES_MAX 16 /* that a page can be accessible to; servers have up to 16 */

struct cuda_driver {
#define CUDA_DRIVER_FIELD(call, version) PFN_##call##_v##version call;
    CUDA_DRIVER_CALLS(CUDA_DRIVER_FIELD)
#undef CUDA_DRIVER_FIELD
};

struct cuda_device {
    struct device head;

    /* Constant. */
    struct cuda_driver driver;
    int ordinal;
    int host_node;      /* the NUMA node nearest to the device; -1: not known */
    CUcontext context;  /* the primary context of the device, which the runtime works in */
    bool is_exportable; /* pages can be exported to other processes */
    CUmemAccessDesc access[CUDA_DEVICES_MAX]; /* who may touch a page: the device and its peers */
    size_t access_count;

    /* Owned by the calling thread. */
    struct page_numbers pages;
    CUmemGenericAllocationHandle *handles; /* of page n at n */
    size_t handle_capacity;
    struct reservations reservations;
    bool unmaps_singly; /* the driver takes one mapping per call */
    bool misaligns;     /* the driver reserves addresses that are not aligned to pages */

    struct chunks chunks;           /* pinned memory; has its own lock */
    atomic_bool has_no_registering; /* the driver only pins memory that it has allocated */
    uint64_t host_wait_ns;          /* constant: how long pinning is repeated for lack of memory */
    atomic_bool has_waited_in_vain; /* the last time; then it is not repeated */

    atomic_int failure; /* capu_status; set once, after failure_text is written */
    pthread_mutex_t failure_lock;
    char failure_text[256]; /* of the failure; before it, of the newest refusal. Guarded by the lock
                             */
};

static inline struct cuda_device *cuda_of(struct device *device)
{
    return (struct cuda_device *)device;
}

static inline capu_status cuda_failure_of(struct cuda_device *cuda)
{
    return (capu_status)atomic_load_explicit(&cuda->failure, memory_order_acquire);
}

/*
 * cuda_error.c: the result of a CUDA call, as a status; every call goes through here. The numbers
 * of the runtime and of the driver mean the same. Lack of memory becomes `shortage`. An error that
 * the device does not survive is DEVICE_LOST; the first one is recorded as the device's failure,
 * with the name of the call that returned it. Anything else is DEVICE_FAILED. The text of the
 * newest refusal is kept.
 */
capu_status cuda_translate(struct cuda_device *cuda, int error, capu_status shortage,
                           const char *call);
#define CUDA_CALL(cuda_, shortage_, call_) cuda_translate(cuda_, (int)(call_), shortage_, #call_)

/* cuda_error.c: makes the device fail, for cases in which its state can no longer be known. */
void cuda_fail(struct cuda_device *cuda, const char *text);

/* Clears the runtime's last error after a call of ours has failed and was handled, so that the
   program does not find it. Not for driver calls, which leave no error behind: one that is there is
   the program's. */
void cuda_forget_error(int error);

/* The slot `failure` of the device's table. */
capu_status cuda_failure(struct device *device, char *text, size_t text_bytes);

/* cuda_error.c: makes the device current on this thread, for calls that depend on it. Its failure,
   if it has failed. */
capu_status cuda_activate(struct cuda_device *cuda);
/* The same for frequent calls: does nothing if the device's context is current. It may not be even
   if there is only one device, since a program can make contexts of its own. */
static inline capu_status cuda_activate_quickly(struct cuda_device *cuda)
{
    CUcontext current = NULL;

    return cuda->driver.cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == cuda->context
               ? cuda_failure_of(cuda)
               : cuda_activate(cuda);
}

/* cuda_memory.c */
/* The properties of a page. */
CUmemAllocationProp cuda_page_properties(const struct cuda_device *cuda);
capu_status cuda_page_create(struct device *device, device_page *page);
void cuda_page_destroy(struct device *device, device_page page);
capu_status cuda_range_reserve(struct device *device, uint64_t bytes, void **address);
void cuda_range_release(struct device *device, void *address, uint64_t bytes);
capu_status cuda_map(struct device *device, void *address, const device_page *pages, size_t count);
capu_status cuda_unmap(struct device *device, void *address, size_t count);
/* Unmaps, unreserves and releases all that is left. */
void cuda_memory_finish(struct cuda_device *cuda);

/* cuda_host.c */
capu_status cuda_host_alloc(struct device *device, uint64_t bytes, void **address);
void cuda_host_free(struct device *device, void *address, uint64_t bytes);
/* Unpins and frees all that is left. */
void cuda_host_finish(struct cuda_device *cuda);

/* cuda_stream.c */
capu_status cuda_stream_create(struct device *device, enum device_engine engine,
                               capu_stream *stream);
void cuda_stream_destroy(struct device *device, capu_stream stream);
capu_status cuda_stream_synchronize(struct device *device, capu_stream stream);
capu_status cuda_event_create(struct device *device, bool with_timing, struct device_event **event);
void cuda_event_destroy(struct device *device, struct device_event *event);
capu_status cuda_event_record(struct device *device, struct device_event *event,
                              capu_stream stream);
capu_status cuda_event_query(struct device *device, struct device_event *event);
capu_status cuda_event_wait(struct device *device, struct device_event *event);
capu_status cuda_stream_follow(struct device *device, capu_stream stream,
                               struct device_event *event);
capu_status cuda_event_elapsed(struct device *device, struct device_event *from,
                               struct device_event *to, uint64_t *ns);
capu_status cuda_copy_out(struct device *device, capu_stream stream, void *to, const void *from,
                          uint64_t bytes);
capu_status cuda_copy_in(struct device *device, capu_stream stream, void *to, const void *from,
                         uint64_t bytes);
capu_status cuda_copy_within(struct device *device, capu_stream stream, void *to, const void *from,
                             uint64_t bytes);
capu_status cuda_fill(struct device *device, capu_stream stream, void *to, unsigned char byte,
                      uint64_t bytes);
capu_status cuda_run(struct device *device, capu_stream stream, const struct device_work *work);

/* cuda_stream.c: captures and graphs */
capu_status cuda_capture_begin(struct device *device, capu_stream stream);
capu_status cuda_capture_end(struct device *device, capu_stream stream, struct device_graph **graph,
                             bool *is_updated);
capu_status cuda_capture_state(struct device *device, capu_stream stream,
                               enum device_capture *state);
capu_status cuda_capture_node(struct device *device, capu_stream stream, void **node);
capu_status cuda_graph_set_copy_in(struct device *device, struct device_graph *graph, void *node,
                                   const struct device_copy *copy);
capu_status cuda_graph_launch(struct device *device, struct device_graph *graph,
                              capu_stream stream);
void cuda_graph_destroy(struct device *device, struct device_graph *graph);

#endif

/*
 * The cuda device: streams, events and copies of the CUDA runtime; memory through the driver's
 * virtual memory calls.
 *
 * The runtime is linked, the driver is not: its calls are looked up when a device is created. So a
 * library that was built with CUDA loads where there is no driver, and reports that there is no
 * device.
 *
 * CUDA calls that depend on the current device first make this device current on the calling
 * thread, and leave it so. Nothing is done at exit: a device that is not destroyed is left to the
 * operating system.
 *
 * Page size: the larger of 2 MiB and what the driver requires, unless that makes more pages than
 * PAGES_MAX; then the smallest power of two that does not. Each page costs a driver call whenever
 * it is mapped.
 */
#include "device/cuda.h"

#include "base/size_text.h"
#include "device/calibration.h"
#include "device/monotonic.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_PAGE_BYTES ((uint64_t)2 << 20)
/* Enough for the largest GPUs: pages must not be larger without a budget than with one, because
   what counts as a small tensor depends on them, and with it what a run needs at least. */
#define PAGES_MAX (1 << 17)
/* Left to the program if the config names no budget: for its kernels, and the code and workspaces
   of cuBLAS, which alone may take a third of this. */
#define HEADROOM_MAX ((uint64_t)1 << 30)
#define HEADROOM_SHARE 16
/* Virtual machines may get more memory within a second when they ask for it. */
#define HOST_WAIT_NS ((uint64_t)2000000000)

static uint64_t cuda_now_ns(struct device *device)
{
    (void)device;
    return monotonic_now_ns();
}

static void cuda_destroy(struct device *device)
{
    struct cuda_device *cuda = cuda_of(device);

    (void)cuda_activate(cuda);
    cuda_memory_finish(cuda);
    cuda_host_finish(cuda);
    pthread_mutex_destroy(&cuda->failure_lock);
    free(cuda);
}

static const struct device_table cuda_table = {
    .destroy = cuda_destroy,
    .page_create = cuda_page_create,
    .page_destroy = cuda_page_destroy,
    .range_reserve = cuda_range_reserve,
    .range_release = cuda_range_release,
    .map = cuda_map,
    .unmap = cuda_unmap,
    .host_alloc = cuda_host_alloc,
    .host_free = cuda_host_free,
    .stream_create = cuda_stream_create,
    .stream_destroy = cuda_stream_destroy,
    .stream_synchronize = cuda_stream_synchronize,
    .event_create = cuda_event_create,
    .event_destroy = cuda_event_destroy,
    .event_record = cuda_event_record,
    .event_query = cuda_event_query,
    .event_wait = cuda_event_wait,
    .stream_follow = cuda_stream_follow,
    .event_elapsed = cuda_event_elapsed,
    .copy_out = cuda_copy_out,
    .copy_in = cuda_copy_in,
    .copy_within = cuda_copy_within,
    .fill = cuda_fill,
    .run = cuda_run,
    .now_ns = cuda_now_ns,
    .failure = cuda_failure,
    .capture_begin = cuda_capture_begin,
    .capture_end = cuda_capture_end,
    .capture_state = cuda_capture_state,
    .capture_node = cuda_capture_node,
    .graph_set_copy_in = cuda_graph_set_copy_in,
    .graph_launch = cuda_graph_launch,
    .graph_destroy = cuda_graph_destroy,
};

/* Describes the error of a CUDA call during creation of the device. */
static capu_status refuse_error(capu_status status, const struct cuda_device *cuda,
                                const char *attempt, int error, char *text, size_t text_bytes)
{
    return device_refuse(status, text, text_bytes, "cuda:%d: %s: %s, %s", cuda->ordinal, attempt,
                         cudaGetErrorName((cudaError_t)error),
                         cudaGetErrorString((cudaError_t)error));
}

/* Finds the device and makes it current. NO_DEVICE if that fails, for whatever reason. */
static capu_status find_device(struct cuda_device *cuda, char *text, size_t text_bytes)
{
    int count = 0;
    int error = (int)cudaGetDeviceCount(&count);

    if (error != cudaSuccess) {
        cuda_forget_error(error);
        return refuse_error(CAPU_NO_DEVICE, cuda, "there is no CUDA device", error, text,
                            text_bytes);
    }
    if (cuda->ordinal >= count) {
        return device_refuse(CAPU_NO_DEVICE, text, text_bytes,
                             "cuda:%d: there are %d CUDA devices, counted from 0", cuda->ordinal,
                             count);
    }
    error = (int)cudaSetDevice(cuda->ordinal);
    if (error != cudaSuccess) {
        cuda_forget_error(error);
        return refuse_error(CAPU_NO_DEVICE, cuda, "the device cannot be used", error, text,
                            text_bytes);
    }
    return CAPU_OK;
}

/* Looks up the driver's calls. The table is usable only if all are found. */
static capu_status look_up(struct cuda_driver *driver, char *text, size_t text_bytes)
{
    void *entry;
    int error;

    /* POSIX allows an object pointer to hold a function; some failures leave the entry untouched.
     */
#define LOOK_UP(call, version)                                                        \
    entry = NULL;                                                                     \
    error = (int)cudaGetDriverEntryPointByVersion(#call, &entry, CUDA_DRIVER_VERSION, \
                                                  cudaEnableDefault, NULL);           \
    if (error != cudaSuccess || entry == NULL) {                                      \
        cuda_forget_error(error);                                                     \
        return device_refuse(CAPU_NO_DEVICE, text, text_bytes,                        \
                             "the CUDA driver does not have " #call);                 \
    }                                                                                 \
    memcpy(&driver->call, &entry, sizeof(entry));
    CUDA_DRIVER_CALLS(LOOK_UP)
#undef LOOK_UP
    return CAPU_OK;
}

static void add_access(struct cuda_device *cuda, int ordinal)
{
    cuda->access[cuda->access_count++] = (CUmemAccessDesc){
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = ordinal},
        .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
    };
}

/* Lists the devices that may touch the pages: this one and, if that is asked for, those that can.
 */
static capu_status list_access(struct cuda_device *cuda, bool has_peers, char *text,
                               size_t text_bytes)
{
    int count = 0;
    int error;

    add_access(cuda, cuda->ordinal);
    if (!has_peers) {
        return CAPU_OK;
    }
    error = (int)cudaGetDeviceCount(&count);
    for (int other = 0; other < count && error == cudaSuccess; other++) {
        int can = 0;

        if (other == cuda->ordinal) {
            continue;
        }
        error = (int)cudaDeviceCanAccessPeer(&can, other, cuda->ordinal);
        if (error == cudaSuccess && can != 0) {
            if (cuda->access_count == CUDA_DEVICES_MAX) {
                return device_refuse(CAPU_UNSUPPORTED, text, text_bytes,
                                     "cuda:%d: peer_access is limited to %d devices", cuda->ordinal,
                                     CUDA_DEVICES_MAX);
            }
            add_access(cuda, other);
        }
    }
    if (error != cudaSuccess) {
        cuda_forget_error(error);
        return refuse_error(CAPU_DEVICE_FAILED, cuda, "asking for its peers", error, text,
                            text_bytes);
    }
    return CAPU_OK;
}

/* Fills in memory and page size, and checks them. */
static capu_status complete_options(struct cuda_device *cuda, struct device_options *options,
                                    char *text, size_t text_bytes)
{
    struct device_page_rule *rule = &cuda->head.capabilities.page_rule;
    const CUmemAllocationProp properties = cuda_page_properties(cuda);
    size_t granularity = 0;
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    int error = (int)cuda->driver.cuMemGetAllocationGranularity(&granularity, &properties,
                                                                CU_MEM_ALLOC_GRANULARITY_MINIMUM);

    if (cuda->is_exportable && error == CUDA_ERROR_NOT_SUPPORTED) {
        return refuse_error(CAPU_UNSUPPORTED, cuda, "its memory cannot be exported", error, text,
                            text_bytes);
    }
    if (error != cudaSuccess || granularity == 0) {
        return refuse_error(CAPU_NO_DEVICE, cuda, "the device has no virtual memory management",
                            error, text, text_bytes);
    }
    error = (int)cudaMemGetInfo(&free_bytes, &total_bytes);
    if (error != cudaSuccess) {
        cuda_forget_error(error);
        return refuse_error(CAPU_DEVICE_FAILED, cuda, "asking for the device's memory", error, text,
                            text_bytes);
    }
    if (options->memory_bytes == 0) {
        uint64_t share = free_bytes / HEADROOM_SHARE;

        options->memory_bytes = free_bytes - (share < HEADROOM_MAX ? share : HEADROOM_MAX);
    }
    if (options->memory_bytes > free_bytes) {
        return device_refuse(
            CAPU_OVER_BUDGET, text, text_bytes,
            "a budget of %s is more than the %s that are free on the device, of %s",
            size_text(options->memory_bytes).text, size_text(free_bytes).text,
            size_text(total_bytes).text);
    }
    *rule = device_make_page_rule(
        options, DEFAULT_PAGE_BYTES > granularity ? DEFAULT_PAGE_BYTES : granularity, PAGES_MAX);
    if (options->page_bytes == 0) {
        options->page_bytes = device_choose_page(rule, options->memory_bytes);
    }
    if ((options->page_bytes & (options->page_bytes - 1)) != 0 ||
        options->page_bytes % granularity != 0) {
        return device_refuse(CAPU_INVALID, text, text_bytes,
                             "a page of %" PRIu64
                             " bytes is not a power of two and a multiple of %zu, "
                             "which the device asks for",
                             options->page_bytes, granularity);
    }
    return device_round_memory(options, text, text_bytes);
}

static void init_device(struct cuda_device *cuda, const struct device_options *options)
{
    const struct device_capabilities capabilities = {
        .name = "cuda",
        .page_bytes = options->page_bytes,
        .page_rule = cuda->head.capabilities.page_rule,
        .memory_bytes = options->memory_bytes,
        .link = {.d2h_bytes_per_s = options->d2h_bytes_per_s,
                 .h2d_bytes_per_s = options->h2d_bytes_per_s,
                 .d2h_duplex_bytes_per_s = options->d2h_duplex_bytes_per_s,
                 .h2d_duplex_bytes_per_s = options->h2d_duplex_bytes_per_s,
                 .copy_latency_ns = options->copy_latency_ns},
        .can_capture = true,
    };

    cuda->head.table = &cuda_table;
    cuda->head.capabilities = capabilities;
    cuda->host_wait_ns = options->host_wait_ns > 0 ? options->host_wait_ns : HOST_WAIT_NS;
    page_numbers_init(&cuda->pages, options->memory_bytes / options->page_bytes);
    reservations_init(&cuda->reservations, options->page_bytes);
    chunks_init(&cuda->chunks);
    pthread_mutex_init(&cuda->failure_lock, NULL);
    /* If the node is not known, memory comes from any. */
    if (cudaDeviceGetAttribute(&cuda->host_node, cudaDevAttrHostNumaId, cuda->ordinal) !=
        cudaSuccess) {
        (void)cudaGetLastError();
        cuda->host_node = -1;
    }
}

static capu_status measure_link(struct cuda_device *cuda, char *text, size_t text_bytes)
{
    struct device_capabilities *capabilities = &cuda->head.capabilities;
    char failure[sizeof(cuda->failure_text)];
    capu_status status =
        calibration_complete(&cuda->head, capabilities->memory_bytes, &capabilities->link);

    if (status != CAPU_OK) {
        (void)cuda_failure(&cuda->head, failure, sizeof(failure));
        device_refuse(status, text, text_bytes, "measuring the link%s%s",
                      failure[0] != '\0' ? ": " : "", failure);
    }
    return status;
}

capu_status cuda_device_create(const struct device_options *options, struct device **device,
                               char *text, size_t text_bytes)
{
    struct device_options complete = {0};
    struct cuda_device *cuda = calloc(1, sizeof(*cuda));
    capu_status status;

    if (cuda == NULL) {
        return device_refuse(CAPU_NO_HOST_MEMORY, text, text_bytes,
                             "no memory for the cuda device");
    }
    if (options != NULL) {
        complete = *options;
    }
    cuda->ordinal = complete.ordinal <= INT32_MAX ? (int)complete.ordinal : INT32_MAX;
    cuda->is_exportable = complete.is_exportable;
    status = find_device(cuda, text, text_bytes);
    if (status == CAPU_OK) {
        status = look_up(&cuda->driver, text, text_bytes);
    }
    if (status == CAPU_OK) {
        (void)cuda->driver.cuCtxGetCurrent(&cuda->context); /* made current by find() */
        status = list_access(cuda, complete.has_peers, text, text_bytes);
    }
    if (status == CAPU_OK) {
        status = complete_options(cuda, &complete, text, text_bytes);
    }
    if (status != CAPU_OK) {
        free(cuda);
        return status;
    }
    init_device(cuda, &complete);
    status = measure_link(cuda, text, text_bytes);
    if (status != CAPU_OK) {
        cuda_destroy(&cuda->head);
        return status;
    }
    *device = &cuda->head;
    return CAPU_OK;
}

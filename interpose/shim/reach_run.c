/*
 * Running slices: each has a module of its own, and runs on a stream of its own, which waits for no
 * work of the program, unless it reads what that work may store: then it follows that work, on the
 * same stream. Results go to a little memory of the driver's, and from there to pinned
 * memory. None of that is the program's, and a slice is done when the call returns.
 */
#include "interpose/shim/core.h"
#include "interpose/shim/passed.h"
#include "interpose/shim/reach_parts.h"
#include "interpose/shim/real_calls.h"

#include <stdlib.h>
#include <string.h>

enum { RESULTS_BYTES = REACH_REPORTS_MOST * sizeof(struct slice_result) };

/* Guarded by the core's lock. */
static struct {
    CUresult result; /* of opening it */
    bool is_opened;
    CUstream stream;
    CUdeviceptr device;        /* results */
    struct slice_result *host; /* the same, before and after a launch */
} run;

CUresult reach_load(const struct ptx_module *module, const struct kernel *roles,
                    struct reach *reach)
{
    const struct real_calls *real = real_calls();
    char head[128];
    CUresult result = DRIVER_OUT_OF_MEMORY;
    size_t name_bytes = roles->name.length + sizeof("_slice");
    char *name = malloc(name_bytes);
    char *text;

    slice_head(module, head, sizeof(head));
    text = malloc(strlen(head) + reach->slice.text_bytes + 1);
    if (name != NULL && text != NULL) {
        memcpy(name, roles->name.text, roles->name.length);
        memcpy(name + roles->name.length, "_slice", sizeof("_slice"));
        strcpy(text, head);
        memcpy(text + strlen(head), reach->slice.text, reach->slice.text_bytes);
        text[strlen(head) + reach->slice.text_bytes] = '\0';
        result = real->cuModuleLoadData(&reach->module, text);
    }
    if (result == DRIVER_SUCCESS) {
        result = real->cuModuleGetFunction(&reach->function, reach->module, name);
    }
    free(name);
    free(text);
    return result;
}

static CUresult open_run(void)
{
    const struct real_calls *real = real_calls();
    int least = 0;
    int greatest = 0;
    CUresult result;

    (void)real->cuCtxGetStreamPriorityRange(&least, &greatest);
    result = real->cuStreamCreateWithPriority(&run.stream, STREAM_NON_BLOCKING, greatest);
    if (result == DRIVER_SUCCESS) {
        result = passed_note(real->cuMemAllocHost_v2((void **)&run.host, RESULTS_BYTES),
                             "cuMemAllocHost_v2 for slices", RESULTS_BYTES);
    }
    if (result == DRIVER_SUCCESS) {
        result = passed_note(real->cuMemAlloc_v2(&run.device, RESULTS_BYTES),
                             "cuMemAlloc_v2 for slices", RESULTS_BYTES);
    }
    return result;
}

/* The slice uses no shared memory, whatever the kernel does. */
static CUresult enqueue(const struct reach *reach, const struct launch *launch,
                        unsigned char *block, CUstream stream)
{
    const struct real_calls *real = real_calls();
    size_t block_bytes = reach->slice.parameter_bytes;
    size_t bytes = reach->slice.report_count * sizeof(struct slice_result);
    void *extra[] = {LAUNCH_BUFFER, block, LAUNCH_BUFFER_BYTES, &block_bytes, LAUNCH_END};
    CUresult result = reach_set_variables(reach, stream, block);

    if (result == DRIVER_SUCCESS) {
        result = real->cuMemcpyHtoDAsync_v2(run.device, run.host, bytes, stream);
    }
    if (result == DRIVER_SUCCESS) {
        result = real->cuLaunchKernel(reach->function, launch->grid[0], launch->grid[1],
                                      launch->grid[2], launch->block[0], launch->block[1],
                                      launch->block[2], 0, stream, NULL, extra);
    }
    if (result == DRIVER_SUCCESS) {
        result = real->cuMemcpyDtoHAsync_v2(run.host, run.device, bytes, stream);
    }
    return result;
}

CUresult reach_run(const struct reach *reach, const struct launch *launch,
                   unsigned char block[PARAMETERS_BYTES_MOST], struct slice_result *results)
{
    uint64_t address;
    CUstream stream;
    CUresult result;
    CUresult waited;

    if (!run.is_opened) {
        run.is_opened = true;
        run.result = open_run();
    }
    if (run.result != DRIVER_SUCCESS) {
        return run.result;
    }
    address = run.device;
    memcpy(block + reach->slice.results_offset, &address, sizeof(address));
    for (size_t i = 0; i < reach->slice.report_count; i++) {
        run.host[i] = (struct slice_result)SLICE_RESULT_NONE;
    }
    stream = reach->slice.source_count > 0 ? core_stream(NULL) : run.stream;
    result = enqueue(reach, launch, block, stream);
    waited = real_calls()->cuStreamSynchronize(stream);
    result = result != DRIVER_SUCCESS ? result : waited;
    if (result == DRIVER_SUCCESS) {
        memcpy(results, run.host, reach->slice.report_count * sizeof(*results));
    }
    return result;
}

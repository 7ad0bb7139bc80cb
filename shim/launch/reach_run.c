/*
 * Running slices: each has a module of its own, and runs on a stream of its own, which waits for no
 * work of the program, unless it reads what that work may store: then it follows that work, on the
 * same stream. Results go to a little memory of the driver's, and from there to pinned
 * memory. None of that is the program's, and a slice is done when the call returns.
 */
#include "shim/core/core.h"
#include "shim/core/outside.h"
#include "shim/driver/real.h"
#include "shim/launch/reach_parts.h"

#include <stdio.h>
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

/* The text of a kernel's slices as a module; NULL: no host memory. The caller frees it. */
static char *text_of(const struct ptx_module *module, const struct slice *slice, bool has_cover)
{
    char head[128];
    char *text;
    size_t bytes;

    slice_head(module, head, sizeof(head));
    bytes = strlen(head) + slice->text_bytes + slice->cover_bytes + 1;
    text = malloc(bytes);
    if (text != NULL) {
        (void)snprintf(text, bytes, "%s%s%s", head, slice->text, has_cover ? slice->cover : "");
    }
    return text;
}

static CUresult find_function(const struct reach *reach, const struct kernel *roles,
                              const char *ending, CUfunction *function)
{
    size_t bytes = roles->name.length + strlen(ending) + 1;
    char *name = malloc(bytes);
    CUresult result = DRIVER_OUT_OF_MEMORY;

    if (name != NULL) {
        (void)snprintf(name, bytes, "%.*s%s", (int)roles->name.length, roles->name.text, ending);
        result = real_calls()->cuModuleGetFunction(function, reach->module, name);
    }
    free(name);
    return result;
}

static CUresult load(const struct ptx_module *module, const struct kernel *roles,
                     struct reach *reach, bool has_cover)
{
    char *text = text_of(module, &reach->slice, has_cover);
    CUresult result =
        text != NULL ? real_calls()->cuModuleLoadData(&reach->module, text) : DRIVER_OUT_OF_MEMORY;

    free(text);
    if (result == DRIVER_SUCCESS) {
        result = find_function(reach, roles, "_slice", &reach->function);
    }
    if (result == DRIVER_SUCCESS && has_cover &&
        find_function(reach, roles, "_cover", &reach->cover) != DRIVER_SUCCESS) {
        reach->cover = NULL;
    }
    return result;
}

/* Without coverage, launches are slower and no less right. */
CUresult reach_load(const struct ptx_module *module, const struct kernel *roles,
                    struct reach *reach)
{
    CUresult result = load(module, roles, reach, reach->slice.cover != NULL);

    return result != DRIVER_SUCCESS && reach->slice.cover != NULL
               ? load(module, roles, reach, false)
               : result;
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
        result = outside_count_call(real->cuMemAllocHost_v2((void **)&run.host, RESULTS_BYTES),
                                    "cuMemAllocHost_v2 for slices", RESULTS_BYTES);
    }
    if (result == DRIVER_SUCCESS) {
        result = outside_count_call(real->cuMemAlloc_v2(&run.device, RESULTS_BYTES),
                                    "cuMemAlloc_v2 for slices", RESULTS_BYTES);
    }
    return result;
}

CUstream reach_stream(const struct reach *reach)
{
    return reach->slice.source_count > 0 ? core_stream(NULL) : run.stream;
}

/* A slice uses no shared memory, whatever the kernel does. */
CUresult reach_launch(CUfunction function, const struct reach *reach, const struct launch *launch,
                      unsigned char block[PARAMETERS_BYTES_MOST], uint64_t address)
{
    CUstream stream = reach_stream(reach);
    size_t block_bytes = reach->slice.parameter_bytes;
    void *extra[] = {LAUNCH_BUFFER, block, LAUNCH_BUFFER_BYTES, &block_bytes, LAUNCH_END};
    CUresult result = reach_set_variables(reach, stream, block);

    memcpy(block + reach->slice.results_offset, &address, sizeof(address));
    return result != DRIVER_SUCCESS
               ? result
               : real_calls()->cuLaunchKernel(function, launch->grid[0], launch->grid[1],
                                              launch->grid[2], launch->block[0], launch->block[1],
                                              launch->block[2], 0, stream, NULL, extra);
}

static CUresult enqueue(const struct reach *reach, const struct launch *launch,
                        unsigned char *block, CUstream stream)
{
    const struct real_calls *real = real_calls();
    size_t bytes = reach->slice.report_count * sizeof(struct slice_result);
    CUresult result = real->cuMemcpyHtoDAsync_v2(run.device, run.host, bytes, stream);

    if (result == DRIVER_SUCCESS) {
        result = reach_launch(reach->function, reach, launch, block, run.device);
    }
    if (result == DRIVER_SUCCESS) {
        result = real->cuMemcpyDtoHAsync_v2(run.host, run.device, bytes, stream);
    }
    return result;
}

CUresult reach_run(const struct reach *reach, const struct launch *launch,
                   unsigned char block[PARAMETERS_BYTES_MOST], struct slice_result *results)
{
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
    for (size_t i = 0; i < reach->slice.report_count; i++) {
        run.host[i] = (struct slice_result)SLICE_RESULT_NONE;
    }
    stream = reach_stream(reach);
    result = enqueue(reach, launch, block, stream);
    waited = real_calls()->cuStreamSynchronize(stream);
    result = result != DRIVER_SUCCESS ? result : waited;
    if (result == DRIVER_SUCCESS) {
        memcpy(results, run.host, reach->slice.report_count * sizeof(*results));
    }
    return result;
}

/*
 * Running slices: each has a module of its own, and runs on a stream of its own, which waits for no
 * work of the program, unless it reads what that work may store: then it follows that work, on the
 * same stream. Results go to a little memory of the driver's, and from there to pinned
 * memory. None of that is the program's, and a slice is done when the call returns.
 */
#include "shim/core/alloc.h"
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

static CUresult load_slice(const struct ptx_module *module, const struct kernel *roles,
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
    CUresult result = load_slice(module, roles, reach, reach->slice.cover != NULL);

    return result != DRIVER_SUCCESS && reach->slice.cover != NULL
               ? load_slice(module, roles, reach, false)
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

static CUresult enqueue_slice(const struct reach *reach, const struct launch *launch,
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
    result = enqueue_slice(reach, launch, block, stream);
    waited = real_calls()->cuStreamSynchronize(stream);
    result = result != DRIVER_SUCCESS ? result : waited;
    if (result == DRIVER_SUCCESS) {
        memcpy(results, run.host, reach->slice.report_count * sizeof(*results));
    }
    return result;
}

/*
 * Variables of the program's modules that slices read. Their addresses are the driver's; they do
 * not change while the module is loaded. A constant is copied before each launch of a slice: its
 * address may be used for copies, and nothing says that a kernel can load from it.
 */

static CUresult find_variable(const struct code_kernel *kernel, const struct slice_source *source,
                              struct reach_variable *variable)
{
    const struct real_calls *real = real_calls();
    CUresult result = kernel->is_in_library
                          ? real->cuLibraryGetGlobal(&variable->address, &variable->bytes,
                                                     (CUlibrary)kernel->handle, source->variable)
                          : real->cuModuleGetGlobal_v2(&variable->address, &variable->bytes,
                                                       (CUmodule)kernel->handle, source->variable);

    if (result == DRIVER_SUCCESS && source->is_constant) {
        result = outside_count_call(real->cuMemAlloc_v2(&variable->copy, variable->bytes),
                                    "cuMemAlloc_v2 for slices", variable->bytes);
    }
    return result;
}

static void forget_slice(struct reach *reach)
{
    for (size_t i = 0; i < reach->slice.source_count; i++) {
        if (reach->variables[i].copy != 0) {
            (void)real_calls()->cuMemFree_v2(reach->variables[i].copy);
        }
    }
    free(reach->variables);
    reach->variables = NULL;
}

CUresult reach_find_variables(const struct code_kernel *kernel, struct reach *reach)
{
    const struct slice *slice = &reach->slice;
    CUresult result = DRIVER_SUCCESS;

    reach->variables = calloc(slice->source_count + 1, sizeof(*reach->variables));
    if (reach->variables == NULL) {
        return DRIVER_OUT_OF_MEMORY;
    }
    for (size_t i = 0; i < slice->source_count && result == DRIVER_SUCCESS; i++) {
        if (slice->sources[i].variable != NULL) {
            result = find_variable(kernel, &slice->sources[i], &reach->variables[i]);
        }
    }
    if (result != DRIVER_SUCCESS) {
        forget_slice(reach);
    }
    return result;
}

CUresult reach_set_variables(const struct reach *reach, CUstream stream, unsigned char *block)
{
    CUresult result = DRIVER_SUCCESS;

    for (size_t i = 0; i < reach->slice.source_count && result == DRIVER_SUCCESS; i++) {
        const struct reach_variable *variable = &reach->variables[i];
        CUdeviceptr from = variable->copy != 0 ? variable->copy : variable->address;
        CUdeviceptr bounds[] = {from, from + variable->bytes};

        if (reach->slice.sources[i].variable == NULL) {
            continue;
        }
        memcpy(block + reach->slice.sources[i].offset, bounds, sizeof(bounds));
        if (variable->copy != 0) {
            result = real_calls()->cuMemcpyDtoDAsync_v2(variable->copy, variable->address,
                                                        variable->bytes, stream);
        }
    }
    return result;
}

bool reach_stores_elsewhere(const struct kernel *roles, const unsigned char *block)
{
    for (size_t i = 0; i < roles->word_count; i++) {
        const struct kernel_word *word = &roles->words[i];
        uint32_t offset = 0;
        uint64_t pointer;

        while ((word->is_written || word->is_atomic) &&
               parameters_next(block, roles, word, &offset, &pointer)) {
            if (pointer != 0 && alloc_find_pointer(pointer) == NULL) {
                return true;
            }
        }
    }
    return roles->writes_variables;
}

/*
 * What the operands of a launch depend on, as bytes: the kernel and the shape of the launch, then
 * the version of the variables that the slice reads, its inputs, then all pointers.
 */

struct head {
    const struct code_kernel *kernel;
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t cluster[3];
    uint32_t shared_bytes;
    uint64_t version; /* of variables; 0: the slice reads none */
};

/* The bytes that a word's pointers lie in. */
static uint32_t word_bytes(const struct kernel *roles, const struct kernel_word *word)
{
    return word->offset == PTX_NONE ? roles->parameters[word->parameter].bytes : sizeof(uint64_t);
}

bool reach_key_fits(const struct kernel *roles, const struct reach *reach)
{
    size_t bytes = sizeof(struct head) + reach->row_bytes;

    for (size_t i = 0; i < roles->word_count; i++) {
        bytes += word_bytes(roles, &roles->words[i]);
    }
    return bytes <= REACH_KEY_BYTES_MOST;
}

void reach_find_key(const struct code_kernel *kernel, const struct launch *launch,
                    const unsigned char *block, struct reach_key *key)
{
    const struct kernel *roles = kernel->roles;
    const struct reach *reach = kernel->reach;
    struct head head;

    memset(&head, 0, sizeof(head)); /* between its fields, too */
    head.kernel = kernel;
    head.shared_bytes = launch->shared_bytes;
    head.version = reach->slice.source_count > 0 ? code_version() : 0;
    memcpy(head.grid, launch->grid, sizeof(head.grid));
    memcpy(head.block, launch->block, sizeof(head.block));
    memcpy(head.cluster, launch->cluster, sizeof(head.cluster));
    memcpy(key->key, &head, sizeof(head));
    slice_key(&reach->slice, block, key->key + sizeof(head));
    key->results_bytes = sizeof(head) + reach->row_bytes;
    key->bytes = key->results_bytes;
    for (size_t i = 0; i < roles->word_count; i++) {
        const struct kernel_word *word = &roles->words[i];
        uint32_t bytes = word_bytes(roles, word);

        parameters_copy(key->key + key->bytes,
                        block + roles->parameters[word->parameter].offset +
                            (word->offset == PTX_NONE ? 0 : word->offset),
                        bytes);
        key->bytes += bytes;
    }
}

/*
 * Launches. The operands of a closed kernel are what reach.h says of the launch. For an open kernel
 * all allocations are made resident; if they do not fit, the program gets the driver's error for
 * too little memory. The kernel is then launched by the driver, inside an access of these operands.
 */
#include "shim/launch/launch.h"

#include "shim/core/capture.h"
#include "shim/core/code.h"
#include "shim/core/core.h"
#include "shim/core/iteration.h"
#include "shim/core/operands.h"
#include "shim/driver/log.h"
#include "shim/driver/real.h"
#include "shim/driver/settings.h"
#include "shim/driver/symbol.h"
#include "shim/launch/reach.h"

#include <inttypes.h>
#include <string.h>

bool launch_is_refused(const struct code_kernel *kernel, const struct launch *launch)
{
    if (kernel->roles != NULL && kernel->roles->waits_for_others && !launch->is_cooperative) {
        log_line("refused: the kernel %s waits for memory that another kernel or the host writes; "
                 "under a budget, kernels run one after the other",
                 kernel->name);
    } else if (code_is_stale(kernel)) {
        log_line("refused: the kernel %s may use variables of its module; under a budget, "
                 "cudaDeviceReset does not give them their first values again",
                 kernel->name);
    } else {
        return false;
    }
    symbol_note_refusal(kernel->name);
    core_note_undone();
    return true;
}

/* Structures may be packed, so addresses at any offset count. */
static void add_bytes(const unsigned char *bytes, size_t count, struct operands *operands)
{
    uint64_t address;

    for (size_t at = 0; at + sizeof(address) <= count; at++) {
        memcpy(&address, bytes + at, sizeof(address));
        operands_add_allocation(operands, address, CAPU_UPDATE);
    }
}

/* Launches take functions and kernels. */
static CUresult parameter_bytes(CUfunction function, size_t index, size_t *bytes)
{
    size_t offset;
    CUresult result = real_calls()->cuFuncGetParamInfo(function, index, &offset, bytes);

    return result == DRIVER_SUCCESS || result == DRIVER_INVALID_VALUE
               ? result
               : real_calls()->cuKernelGetParamInfo((CUkernel)function, index, &offset, bytes);
}

/* Adds what addresses in a launch's parameters lead to, if the user vouches for them: whole
   allocations, updated. A number that happens to be an address adds an allocation that the kernel
   does not touch, which costs memory and nothing else. False: they are not trusted, or the driver
   does not say how large they are, and nothing was added. */
static bool add_trusted(CUfunction function, void *const *parameters, const unsigned char *bytes,
                        size_t byte_count, struct operands *operands)
{
    size_t count;
    CUresult result = DRIVER_SUCCESS;

    if (!settings_get()->trusts_parameters) {
        return false;
    }
    if (parameters == NULL) {
        if (bytes != NULL) {
            add_bytes(bytes, byte_count, operands);
        }
        return bytes != NULL;
    }
    for (size_t i = 0; (result = parameter_bytes(function, i, &count)) == DRIVER_SUCCESS; i++) {
        add_bytes(parameters[i], count, operands);
    }
    return result == DRIVER_INVALID_VALUE; /* for the first index that there is none of */
}

/* A launch from its begin to its end. */
struct begun {
    struct code_kernel *kernel;
    bool is_run;        /* it was carried out here, and has no end */
    bool is_watched;    /* by verify.c */
    bool writes_wholes; /* tensors, which were not fetched */
};

/* Finds the operands of a launch. */
static CUresult add_operands(CUfunction function, struct code_kernel *kernel,
                             const struct launch *launch, struct operands *operands)
{
    CUresult result = DRIVER_SUCCESS;

    if (kernel->reason != NULL) {
        kernel->is_trusted =
            add_trusted(function, launch->parameters.list, launch->parameters.bytes,
                        launch->parameters.byte_count, operands);
    }
    if (kernel->reason == NULL) {
        result = reach_add(kernel, launch, operands);
    } else if (!kernel->is_trusted) {
        operands_add_all(operands);
    }
    return result == DRIVER_SUCCESS && operands->has_failed ? DRIVER_OUT_OF_MEMORY : result;
}

static void note_launch(struct code_kernel *kernel, const struct operands *operands)
{
    if (kernel->reason != NULL || operands->stores_elsewhere) {
        code_note_stored();
    }
    kernel->launch_count++;
    kernel->most_bytes =
        operands->bytes > kernel->most_bytes ? operands->bytes : kernel->most_bytes;
}

/* Begins the access of a launch, unless the launch is run as an op here. Pre: entered. */
static CUresult begin_access(CUfunction function, const struct launch *launch,
                             struct operands *operands, struct begun *begun)
{
    struct code_kernel *kernel = begun->kernel;
    CUresult result;
    bool waits;

    if (launch_is_refused(kernel, launch)) {
        return DRIVER_NOT_SUPPORTED;
    }
    result = add_operands(function, kernel, launch, operands);
    begun->writes_wholes = operands->written_bytes > 0;
    if (result != DRIVER_SUCCESS) {
        return result;
    }
    operands_loosen(operands);
    iteration_event(core_context(), kernel->name, PERIOD_LAUNCH, operands->pointers);
    if (recompute_takes(kernel, launch, operands)) {
        result = recompute_run(function, kernel, launch, operands, &begun->is_run);
        if (begun->is_run) {
            note_launch(kernel, operands);
        }
        return result;
    }
    waits = verify_wait(kernel);
    result = core_begin(operands, kernel->name);
    if (result == DRIVER_OUT_OF_MEMORY && kernel->reason != NULL && !kernel->is_trusted) {
        log_line("all %" PRIu64
                 " bytes are needed for the kernel %s, which is open: %s; what to do: "
                 "docs/unmodified.md",
                 operands->bytes, kernel->name, kernel->reason);
    }
    if (result == DRIVER_SUCCESS) {
        note_launch(kernel, operands);
        begun->is_watched = waits && verify_begin(operands);
    }
    return result;
}

/* The kernel of a function; an open one if it was never seen. NULL: no host memory. */
static struct code_kernel *find_kernel(CUfunction function)
{
    struct code_kernel *kernel = code_find(function);
    const char *name = NULL;

    if (kernel != NULL) {
        return kernel;
    }
    if (real_calls()->cuFuncGetName(&name, function) != DRIVER_SUCCESS || name == NULL) {
        name = "a kernel without a name";
    }
    return code_add_unknown(function, name);
}

/* Takes the lock and finds the kernel, with its slice. An error: neither. */
static CUresult enter_for_launch(CUfunction function, struct code_kernel **kernel)
{
    CUresult result = core_enter();

    if (result != DRIVER_SUCCESS) {
        return result;
    }
    *kernel = find_kernel(function);
    if (*kernel != NULL && reach_is_due(*kernel)) {
        core_leave();
        reach_prepare(*kernel);
        result = core_enter();
    } else if (*kernel == NULL) {
        core_leave();
        result = DRIVER_OUT_OF_MEMORY;
    }
    return result;
}

/* Begins a launch: takes the lock and begins its access. An error, or is_run: neither. */
static CUresult begin_launch(CUfunction function, const struct launch *launch, struct begun *begun)
{
    struct operands operands = {0};
    CUresult result;

    *begun = (struct begun){.kernel = NULL};
    verify_prepare();
    result = enter_for_launch(function, &begun->kernel);
    if (result != DRIVER_SUCCESS) {
        return result;
    }
    result = begin_access(function, launch, &operands, begun);
    operands_finish(&operands);
    if (result != DRIVER_SUCCESS) {
        begun->kernel->failed_count += !begun->is_run;
        reach_note_failure(begun->kernel, begun->is_run && begun->writes_wholes);
    }
    if (result != DRIVER_SUCCESS || begun->is_run) {
        core_leave();
    }
    return result;
}

static CUresult end_launch(const struct begun *begun, CUresult result)
{
    if (result != DRIVER_SUCCESS) {
        reach_note_failure(begun->kernel, begun->writes_wholes);
    } else if (begun->is_watched) {
        result = verify_end(begun->kernel);
    }
    result = core_end(result, begun->kernel->name);
    core_leave();
    return result;
}

void launch_learn_node(CUgraphNode node, const void *function)
{
    struct kernel_node params;
    unsigned type;

    if (real_calls()->cuGraphNodeGetType(node, &type) != DRIVER_SUCCESS || type != NODE_KERNEL ||
        real_calls()->cuGraphKernelNodeGetParams_v2(node, &params) != DRIVER_SUCCESS ||
        params.function == NULL || params.function == function || core_enter() != DRIVER_SUCCESS) {
        return;
    }
    code_note_same(params.function, function);
    core_leave();
}

/* The same for the node that a launch has added to a stream's capture. */
static void learn_captured(CUstream stream, CUfunction function)
{
    const CUgraphNode *last = NULL;
    CUgraph graph = NULL;
    unsigned status = CAPTURE_NONE;
    uint64_t id;
    size_t count = 0;

    if (real_calls()->cuStreamGetCaptureInfo_v2(stream, &status, &id, &graph, &last, &count) ==
            DRIVER_SUCCESS &&
        status == CAPTURE_ACTIVE && count == 1) {
        launch_learn_node(last[0], function);
    }
}

/* After a launch into a stream that captures: the node says how the driver calls the kernel. */
static CUresult end_captured(CUresult result, CUstream stream, CUfunction function)
{
    if (result == DRIVER_SUCCESS) {
        learn_captured(stream, function);
    }
    return result;
}

CUresult on_cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                           unsigned block_x, unsigned block_y, unsigned block_z,
                           unsigned shared_bytes, CUstream stream, void **parameters, void **extra)
{
    const struct launch launch = {.grid = {grid_x, grid_y, grid_z},
                                  .block = {block_x, block_y, block_z},
                                  .shared_bytes = shared_bytes,
                                  .is_next = true,
                                  .parameters = parameters_of(parameters, extra),
                                  .is_plain = true};
    struct begun begun;
    CUresult result;

    if (capture_takes(stream)) {
        return end_captured(real_calls()->cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x,
                                                         block_y, block_z, shared_bytes, stream,
                                                         parameters, extra),
                            stream, function);
    }
    result = begin_launch(function, &launch, &begun);
    if (result != DRIVER_SUCCESS || begun.is_run) {
        return result;
    }
    return end_launch(&begun, real_calls()->cuLaunchKernel(function, grid_x, grid_y, grid_z,
                                                           block_x, block_y, block_z, shared_bytes,
                                                           core_stream(stream), parameters, extra));
}

CUresult on_cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                      unsigned grid_z, unsigned block_x, unsigned block_y,
                                      unsigned block_z, unsigned shared_bytes, CUstream stream,
                                      void **parameters)
{
    const struct launch launch = {.grid = {grid_x, grid_y, grid_z},
                                  .block = {block_x, block_y, block_z},
                                  .shared_bytes = shared_bytes,
                                  .is_next = true,
                                  .is_cooperative = true,
                                  .parameters = parameters_of(parameters, NULL)};
    struct begun begun;
    CUresult result;

    if (capture_takes(stream)) {
        return end_captured(real_calls()->cuLaunchCooperativeKernel(
                                function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                                shared_bytes, stream, parameters),
                            stream, function);
    }
    result = begin_launch(function, &launch, &begun);
    if (result != DRIVER_SUCCESS || begun.is_run) {
        return result;
    }
    return end_launch(&begun, real_calls()->cuLaunchCooperativeKernel(
                                  function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                                  shared_bytes, core_stream(stream), parameters));
}

static struct launch launch_of(const struct launch_config *config, void **parameters, void **extra)
{
    struct launch launch = {.shared_bytes = config->shared_bytes,
                            .is_next = true,
                            .parameters = parameters_of(parameters, extra),
                            .is_plain = config->attribute_count == 0};

    memcpy(launch.grid, config->grid, sizeof(launch.grid));
    memcpy(launch.block, config->block, sizeof(launch.block));
    for (unsigned i = 0; config->attributes != NULL && i < config->attribute_count; i++) {
        if (config->attributes[i].id == ATTRIBUTE_CLUSTER) {
            memcpy(launch.cluster, config->attributes[i].value.cluster, sizeof(launch.cluster));
        }
        launch.is_cooperative |= config->attributes[i].id == ATTRIBUTE_COOPERATIVE &&
                                 config->attributes[i].value.cooperative != 0;
    }
    return launch;
}

CUresult on_cuLaunchKernelEx(const struct launch_config *config, CUfunction function,
                             void **parameters, void **extra)
{
    struct launch_config folded;
    struct launch launch;
    struct begun begun;
    CUresult result;

    if (config == NULL) {
        return DRIVER_INVALID_VALUE;
    }
    if (capture_takes(config->stream)) {
        return end_captured(real_calls()->cuLaunchKernelEx(config, function, parameters, extra),
                            config->stream, function);
    }
    launch = launch_of(config, parameters, extra);
    result = begin_launch(function, &launch, &begun);
    if (result != DRIVER_SUCCESS || begun.is_run) {
        return result;
    }
    folded = *config;
    folded.stream = core_stream(config->stream);
    return end_launch(&begun, real_calls()->cuLaunchKernelEx(&folded, function, parameters, extra));
}

/*
 * Launches. Parameters are copied at the call, and the kernel runs when its turn comes.
 *
 * An access to memory that is not mapped ends the launch with ILLEGAL_ADDRESS: the handler of
 * SIGSEGV leaves the kernel. It is installed only where no other one is; one that is installed
 * later and passes faults on, as libcapuchin's does, comes first.
 */
#define _GNU_SOURCE
#include "tests/ptx/driver/code.h"
#include "tests/ptx/driver/declared.h"
#include "tests/ptx/driver/graph.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct launch {
    struct CUfunc_st *handle;
    const struct machine_function *function;
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t shared_bytes;
    int is_cooperative;
    unsigned char parameters[] __attribute__((aligned(16)));
};

static _Thread_local sigjmp_buf *way_out; /* of the kernel that runs in this thread */
static _Thread_local uint64_t fault_address;
static struct sigaction earlier;

static void on_fault(int number, siginfo_t *info, void *context)
{
    (void)context;
    if (way_out != NULL && info->si_code > 0) {
        fault_address = (uintptr_t)info->si_addr;
        siglongjmp(*way_out, 1);
    }
    sigaction(number, &earlier, NULL);
    raise(number);
}

static void catch_faults(void)
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    struct sigaction current;

    if (sigaction(SIGSEGV, NULL, &current) == 0 && (current.sa_flags & SA_SIGINFO) == 0 &&
        current.sa_handler == SIG_DFL) {
        (void)sigaction(SIGSEGV, &action, &earlier);
    }
}

/* What `capuchin run --strict` reads memory with. */
static bool is_watcher(const struct machine_function *function)
{
    return strcmp(function->name, "capuchin_checksum") == 0;
}

CUresult launch_run(void *block)
{
    const struct launch *launch = block;
    struct machine_launch machine = {
        .shared_bytes = launch->shared_bytes,
        .is_cooperative = launch->is_cooperative != 0,
        .parameters = launch->parameters,
        .observer = declared_is_on() && !is_watcher(launch->function) ? compare_observe : NULL,
    };
    struct error_text problem;
    sigjmp_buf here;
    capu_status status;

    memcpy(machine.grid, launch->grid, sizeof(machine.grid));
    memcpy(machine.block, launch->block, sizeof(machine.block));
    if (sigsetjmp(here, 1) != 0) {
        way_out = NULL;
        fprintf(stderr, "test driver: kernel %s accesses 0x%llx, where there is no memory\n",
                launch->function->name, (unsigned long long)fault_address);
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    way_out = &here;
    status = machine_run(launch->function, &machine, &problem);
    way_out = NULL;
    if (status == CAPU_OK) {
        return CUDA_SUCCESS;
    }
    fprintf(stderr, "test driver: %s\n", problem.text);
    if (status == CAPU_INVALID) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return strstr(problem.text, "ssert") != NULL ? CUDA_ERROR_ASSERT : CUDA_ERROR_LAUNCH_FAILED;
}

/* The buffer of parameters that `extra` describes; NULL: there is none of that size. */
static const void *packed(void **extra, uint32_t bytes)
{
    const void *buffer = NULL;
    size_t count = 0;

    for (; extra[0] != CU_LAUNCH_PARAM_END; extra += 2) {
        if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER) {
            buffer = extra[1];
        } else if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE) {
            count = *(size_t *)extra[1];
        }
    }
    return count >= bytes ? buffer : NULL;
}

/* Copies the parameters of a launch. False: there are none. */
static bool copy_parameters(struct launch *launch, void **parameters, void **extra)
{
    const struct machine_function *function = launch->function;

    if (parameters != NULL) {
        for (size_t i = 0; i < function->parameter_count; i++) {
            memcpy(launch->parameters + function->parameters[i].offset, parameters[i],
                   function->parameters[i].bytes);
        }
        return true;
    }
    if (extra != NULL) {
        const void *buffer = packed(extra, function->parameter_bytes);

        if (buffer != NULL) {
            memcpy(launch->parameters, buffer, function->parameter_bytes);
        }
        return buffer != NULL || function->parameter_bytes == 0;
    }
    return function->parameter_count == 0;
}

static bool is_valid(const CUlaunchConfig *config, const struct CUfunc_st *function)
{
    uint64_t threads = (uint64_t)config->blockDimX * config->blockDimY * config->blockDimZ;

    return config->gridDimX > 0 && config->gridDimX <= INT32_MAX && config->gridDimY > 0 &&
           config->gridDimY <= UINT16_MAX && config->gridDimZ > 0 &&
           config->gridDimZ <= UINT16_MAX && threads > 0 && config->blockDimX <= 1024 &&
           config->blockDimY <= 1024 && config->blockDimZ <= 64 && threads <= 1024 &&
           config->sharedMemBytes <= SHARED_BYTES_MOST &&
           config->sharedMemBytes + function->machine->shared_bytes <= function->dynamic_bytes_most;
}

static int is_cooperative(const CUlaunchConfig *config)
{
    int value = 0;

    for (unsigned i = 0; i < config->numAttrs; i++) {
        if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
            value = config->attrs[i].value.cooperative;
        }
    }
    return value;
}

/* Whether all blocks of a launch are on the device at once. */
static bool fits_at_once(const CUlaunchConfig *config, CUfunction handle)
{
    uint64_t blocks = (uint64_t)config->gridDimX * config->gridDimY * config->gridDimZ;
    unsigned threads = config->blockDimX * config->blockDimY * config->blockDimZ;
    int processors = 0;
    int each = 0;

    return cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0) ==
               CUDA_SUCCESS &&
           cuOccupancyMaxActiveBlocksPerMultiprocessor(&each, handle, (int)threads,
                                                       config->sharedMemBytes) == CUDA_SUCCESS &&
           blocks <= (uint64_t)processors * (uint64_t)each;
}

/* Makes the block of a launch, which the caller frees. */
static CUresult make(const CUlaunchConfig *config, CUfunction handle, void **parameters,
                     void **extra, void **block, size_t *bytes)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct CUfunc_st *function = function_of(handle);
    struct launch *launch;

    if (function == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (!is_valid(config, function)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if ((uint64_t)config->blockDimX * config->blockDimY * config->blockDimZ >
        function->machine->threads_most) {
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    }
    if (is_cooperative(config) && !fits_at_once(config, handle)) {
        return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
    }
    pthread_once(&once, catch_faults);
    *bytes = sizeof(*launch) + function->machine->parameter_bytes;
    launch = calloc(1, *bytes);
    if (launch == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *launch = (struct launch){
        .handle = function,
        .function = function->machine,
        .grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
        .block = {config->blockDimX, config->blockDimY, config->blockDimZ},
        .shared_bytes = config->sharedMemBytes,
        .is_cooperative = is_cooperative(config),
    };
    if (!copy_parameters(launch, parameters, extra)) {
        free(launch);
        return CUDA_ERROR_INVALID_VALUE;
    }
    *block = launch;
    return CUDA_SUCCESS;
}

static CUresult launch_with(const CUlaunchConfig *config, CUfunction handle, void **parameters,
                            void **extra)
{
    void *block = NULL;
    size_t bytes = 0;
    uint64_t number;
    CUresult result;

    DRIVER_ENTER(driver_enter_context);
    if (stream_of(config->hStream) == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    result = make(config, handle, parameters, extra, &block, &bytes);
    if (result == CUDA_SUCCESS) {
        result = stream_issue(config->hStream, launch_run, block, bytes, &number);
    }
    free(block);
    return result;
}

CUresult launch_make(const CUDA_KERNEL_NODE_PARAMS *params, void **block, size_t *bytes)
{
    const CUlaunchConfig config = {
        .gridDimX = params->gridDimX,
        .gridDimY = params->gridDimY,
        .gridDimZ = params->gridDimZ,
        .blockDimX = params->blockDimX,
        .blockDimY = params->blockDimY,
        .blockDimZ = params->blockDimZ,
        .sharedMemBytes = params->sharedMemBytes,
    };

    return make(&config, params->func != NULL ? params->func : (CUfunction)params->kern,
                params->kernelParams, params->extra, block, bytes);
}

CUresult launch_describe(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *params)
{
    struct launch *launch = node->block;
    size_t count = launch->function->parameter_count;

    if (node->parameters == NULL) {
        node->parameters = calloc(count + 1, sizeof(void *));
        if (node->parameters == NULL) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        for (size_t i = 0; i < count; i++) {
            node->parameters[i] = launch->parameters + launch->function->parameters[i].offset;
        }
    }
    *params = (CUDA_KERNEL_NODE_PARAMS){
        .func = launch->handle,
        .gridDimX = launch->grid[0],
        .gridDimY = launch->grid[1],
        .gridDimZ = launch->grid[2],
        .blockDimX = launch->block[0],
        .blockDimY = launch->block[1],
        .blockDimZ = launch->block[2],
        .sharedMemBytes = launch->shared_bytes,
        .kernelParams = node->parameters,
    };
    return CUDA_SUCCESS;
}

CUresult launch_attribute(CUgraphNode node, unsigned id, CUlaunchAttributeValue *value)
{
    const struct launch *launch = node->block;

    if (id != CU_LAUNCH_ATTRIBUTE_COOPERATIVE && id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    memset(value, 0, sizeof(*value));
    if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
        value->cooperative = launch->is_cooperative;
    }
    return CUDA_SUCCESS;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters,
                          void **extra)
{
    enum { CLUSTER_WORDS = 3 };

    if (config == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (unsigned i = 0; i < config->numAttrs; i++) {
        unsigned cluster[CLUSTER_WORDS];

        memcpy(cluster, config->attrs[i].value.pad, sizeof(cluster));
        if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION &&
            (cluster[0] > 1 || cluster[1] > 1 || cluster[2] > 1)) {
            fprintf(stderr, "test driver: clusters are not supported\n");
            return CUDA_ERROR_NOT_SUPPORTED;
        }
    }
    return launch_with(config, function, parameters, extra);
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                        CUstream stream, void **parameters, void **extra)
{
    const CUlaunchConfig config = {grid_x,  grid_y,       grid_z, block_x, block_y,
                                   block_z, shared_bytes, stream, NULL,    0};

    return launch_with(&config, function, parameters, extra);
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                   unsigned grid_z, unsigned block_x, unsigned block_y,
                                   unsigned block_z, unsigned shared_bytes, CUstream stream,
                                   void **parameters)
{
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1};
    const CUlaunchConfig config = {grid_x,  grid_y,       grid_z, block_x,    block_y,
                                   block_z, shared_bytes, stream, &attribute, 1};

    return launch_with(&config, function, parameters, NULL);
}

/* Finding the driver, the thread's last error, and the variants for the per-thread default stream.
 */
#include "tests/ptx/cudart/cudart.h"

#include <pthread.h>
#include <stddef.h>

enum { RUNTIME_VERSION = 13000 };

static struct driver_table legacy;
static struct driver_table per_thread;
static CUcontext context;
static cudaError_t started; /* how starting ended */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Thread_local cudaError_t last_error;
static _Thread_local bool is_inside; /* starting, which may call back */
_Thread_local bool cudart_is_per_thread;

static cudaError_t start(void)
{
    CUresult result;

    switch (driver_table_open(&legacy, &per_thread)) {
    case DRIVER_TABLE_OPEN:
        break;
    case DRIVER_TABLE_NO_DRIVER:
        return cudaErrorInsufficientDriver;
    default:
        return cudaErrorSharedObjectSymbolNotFound;
    }
    result = legacy.cuInit(0);
    if (result == CUDA_SUCCESS) {
        result = legacy.cuDevicePrimaryCtxRetain(&context, 0);
    }
    return (cudaError_t)(int)result;
}

static void start_once(void)
{
    is_inside = true;
    started = start();
    is_inside = false;
}

cudaError_t cudart_enter(void)
{
    CUcontext current = NULL;

    if (!is_inside) {
        pthread_once(&once, start_once);
    }
    if (started != cudaSuccess) {
        return started;
    }
    (void)legacy.cuCtxGetCurrent(&current);
    return current != NULL ? cudaSuccess : (cudaError_t)(int)legacy.cuCtxSetCurrent(context);
}

cudaError_t cudart_leave(int error)
{
    if (error != cudaSuccess) {
        last_error = (cudaError_t)error;
    }
    return (cudaError_t)error;
}

const struct driver_table *cudart_driver(void)
{
    return cudart_is_per_thread ? &per_thread : &legacy;
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t error = last_error;

    last_error = cudaSuccess;
    return error;
}

cudaError_t cudaPeekAtLastError(void)
{
    return last_error;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    if (version == NULL) {
        return cudart_leave(cudaErrorInvalidValue);
    }
    *version = RUNTIME_VERSION;
    return cudaSuccess;
}

#define PER_THREAD_VARIANT(name, suffix_pt, parameters, arguments) \
    cudaError_t name##suffix_pt parameters                         \
    {                                                              \
        cudaError_t error;                                         \
                                                                   \
        cudart_is_per_thread = true;                               \
        error = name arguments;                                    \
        cudart_is_per_thread = false;                              \
        return error;                                              \
    }
CUDART_STREAM_CALLS(PER_THREAD_VARIANT)

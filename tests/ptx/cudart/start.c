/* Finding the driver, the thread's last error, and the variants for the per-thread default stream.
 */
#include "tests/ptx/cudart/cudart.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

enum { RUNTIME_VERSION = 13000 };

typedef CUresult (*finder)(const char *name, void **function, int version, cuuint64_t flags,
                           CUdriverProcAddressQueryResult *result);

static struct cudart_driver legacy;
static struct cudart_driver per_thread;
static CUcontext context;
static cudaError_t started; /* how starting ended */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Thread_local cudaError_t last_error;
static _Thread_local bool is_inside; /* starting, which may call back */
_Thread_local bool cudart_is_per_thread;

static const struct {
    const char *name;
    size_t offset; /* in struct cudart_driver */
    int since;
    int since_pt; /* of the per-thread variant; 0: none */
} wanted[] = {
#define PLAIN_ROW(name, suffix, since, parameters) \
    {#name, offsetof(struct cudart_driver, name), since, 0},
#define STREAM_ROW(name, suffix, since, since_pt, suffix_pt, parameters, arguments) \
    {#name, offsetof(struct cudart_driver, name), since, since_pt},
    DRIVER_PLAIN_CALLS(PLAIN_ROW) DRIVER_STREAM_CALLS(STREAM_ROW)};

static bool find(finder get, struct cudart_driver *table, bool is_pt)
{
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        CUdriverProcAddressQueryResult result;
        int version = is_pt && wanted[i].since_pt != 0 ? wanted[i].since_pt : wanted[i].since;
        void **slot = (void **)((char *)table + wanted[i].offset);

        if (get(wanted[i].name, slot, version,
                is_pt ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
                      : CU_GET_PROC_ADDRESS_LEGACY_STREAM,
                &result) != CUDA_SUCCESS ||
            *slot == NULL) {
            return false;
        }
    }
    return true;
}

static cudaError_t start(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    finder get = library != NULL ? (finder)dlsym(library, "cuGetProcAddress_v2") : NULL;
    CUresult result;

    if (get == NULL) {
        return cudaErrorInsufficientDriver;
    }
    if (!find(get, &legacy, false) || !find(get, &per_thread, true)) {
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

const struct cudart_driver *cudart_driver(void)
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

static const struct {
    cudaError_t error;
    const char *name;
    const char *text;
} errors[] = {
#define DRIVER_ROW(driver_name, name, number, text) {name, #name, text},
#define RUNTIME_ROW(name, number, text) {name, #name, text},
    DRIVER_ERRORS(DRIVER_ROW) CUDART_ERRORS(RUNTIME_ROW)};

const char *cudaGetErrorName(cudaError_t error)
{
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        if (errors[i].error == error) {
            return errors[i].name;
        }
    }
    return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error)
{
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        if (errors[i].error == error) {
            return errors[i].text;
        }
    }
    return "unrecognized error code";
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

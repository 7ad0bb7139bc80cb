/*
 * The results of CUDA calls in the cuda device: see cuda.h. Any thread.
 *
 * CUDA reports some errors of earlier, asynchronous work at whatever call comes next, and most of
 * these are lasting: every later call returns them, too. So one place decides which errors mean
 * that the device is lost.
 */
#include "device/cuda.h"

#include <stdio.h>
#include <string.h>

/* Errors that every later call returns as well: the device is lost to this process. */
static bool is_lasting(int error)
{
    switch (error) {
    case cudaErrorCudartUnloading: /* the process is ending */
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case 226: /* cudaErrorContained, and below cudaErrorTensorMemoryLeak: newer than 12.5 */
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorContextIsDestroyed:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case 721:
    case cudaErrorMpsClientTerminated:
    case cudaErrorExternalDevice:
        return true;
    default:
        return false;
    }
}

/* CUDA says "unknown" both for errors that it does not survive and for things that it merely could
   not do, such as pinning memory in some virtual machines. A device that still answers is not lost.
 */
static bool is_lost(int error)
{
    size_t free_bytes;
    size_t total_bytes;

    return is_lasting(error) ||
           (error == cudaErrorUnknown && cudaMemGetInfo(&free_bytes, &total_bytes) != cudaSuccess);
}

void cuda_fail(struct cuda_device *cuda, const char *text)
{
    pthread_mutex_lock(&cuda->failure_lock);
    if (cuda_failure_of(cuda) == CAPU_OK) {
        snprintf(cuda->failure_text, sizeof(cuda->failure_text), "%s", text);
        atomic_store_explicit(&cuda->failure, CAPU_DEVICE_LOST, memory_order_release);
    }
    pthread_mutex_unlock(&cuda->failure_lock);
}

/* "cudaFoo" of "cudaFoo(bar)" and of "cuda->driver.cudaFoo(bar)". */
static void call_name(const char *call, char *name, size_t name_bytes)
{
    const char *end = strchr(call, '(');
    const char *start = end;

    while (start > call && start[-1] != '.') {
        start--;
    }
    snprintf(name, name_bytes, "%.*s", (int)(end - start), start);
}

static bool is_driver_call(const char *call)
{
    static const char prefix[] = "cuda->driver.";

    return strncmp(call, prefix, sizeof(prefix) - 1) == 0;
}

/* Keeps the text of a refusal for the caller's error message. */
static void note_refusal(struct cuda_device *cuda, int error, const char *call)
{
    char name[64];

    call_name(call, name, sizeof(name));
    pthread_mutex_lock(&cuda->failure_lock);
    if (cuda_failure_of(cuda) == CAPU_OK) {
        snprintf(cuda->failure_text, sizeof(cuda->failure_text), "%s returned %s", name,
                 cudaGetErrorName((cudaError_t)error));
    }
    pthread_mutex_unlock(&cuda->failure_lock);
}

void cuda_forget_error(int error)
{
    if ((int)cudaPeekAtLastError() == error) {
        (void)cudaGetLastError();
    }
}

capu_status cuda_translate(struct cuda_device *cuda, int error, capu_status shortage,
                           const char *call)
{
    char text[sizeof(cuda->failure_text)];
    char name[64];

    if (error == cudaSuccess) {
        return CAPU_OK;
    }
    if (is_lost(error)) {
        call_name(call, name, sizeof(name));
        snprintf(text, sizeof(text), "the device is lost: %s returned %s, %s", name,
                 cudaGetErrorName((cudaError_t)error), cudaGetErrorString((cudaError_t)error));
        cuda_fail(cuda, text);
        return CAPU_DEVICE_LOST;
    }
    if (!is_driver_call(call)) {
        cuda_forget_error(error);
    }
    if (error == cudaErrorNotReady) {
        return CAPU_NOT_READY;
    }
    note_refusal(cuda, error, call);
    return error == cudaErrorMemoryAllocation ? shortage : CAPU_DEVICE_FAILED;
}

capu_status cuda_activate(struct cuda_device *cuda)
{
    capu_status status = cuda_failure_of(cuda);

    return status != CAPU_OK ? status
                             : CUDA_CALL(cuda, CAPU_DEVICE_FAILED, cudaSetDevice(cuda->ordinal));
}

capu_status cuda_failure(struct device *device, char *text, size_t text_bytes)
{
    struct cuda_device *cuda = cuda_of(device);
    capu_status status = cuda_failure_of(cuda);

    if (text != NULL && text_bytes > 0) {
        pthread_mutex_lock(&cuda->failure_lock);
        snprintf(text, text_bytes, "%s", cuda->failure_text);
        pthread_mutex_unlock(&cuda->failure_lock);
    }
    return status;
}

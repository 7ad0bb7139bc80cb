/* Handles: streams, modes and workspaces; names of statuses. */
#include "tests/ptx/cublas/handle.h"

#include <stdlib.h>

enum { OWN_WORKSPACE_BYTES = 64 << 10, VERSION = 130000 };

void handle_open_workspace(cublasHandle_t handle)
{
    if (handle->is_opened) {
        return;
    }
    handle->is_opened = true;
    if (blas_driver()->cuMemAlloc(&handle->own_workspace, OWN_WORKSPACE_BYTES) == CUDA_SUCCESS &&
        handle->workspace == NULL) {
        handle->workspace = (void *)(uintptr_t)handle->own_workspace;
        handle->workspace_bytes = OWN_WORKSPACE_BYTES;
    }
}

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle)
{
    cublasStatus_t status = blas_enter();
    cublasHandle_t made;

    if (status != CUBLAS_STATUS_SUCCESS) {
        return status;
    }
    made = handle != NULL ? calloc(1, sizeof(*made)) : NULL;
    if (made == NULL) {
        return handle == NULL ? CUBLAS_STATUS_INVALID_VALUE : CUBLAS_STATUS_ALLOC_FAILED;
    }
    if (getenv("PTX_CUBLAS_LATE_WORKSPACE") == NULL) {
        handle_open_workspace(made);
        if (made->own_workspace == 0) {
            free(made);
            return CUBLAS_STATUS_ALLOC_FAILED;
        }
    }
    *handle = made;
    return CUBLAS_STATUS_SUCCESS;
}

/* Begins a call with a handle, and one that also stores a result. */
#define ENTER_HANDLE(handle)                      \
    do {                                          \
        if ((handle) == NULL) {                   \
            return CUBLAS_STATUS_NOT_INITIALIZED; \
        }                                         \
    } while (0)
#define ENTER_RESULT(handle, result)            \
    do {                                        \
        ENTER_HANDLE(handle);                   \
        if ((result) == NULL) {                 \
            return CUBLAS_STATUS_INVALID_VALUE; \
        }                                       \
    } while (0)

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle)
{
    ENTER_HANDLE(handle);
    if (handle->own_workspace != 0) {
        (void)blas_driver()->cuMemFree(handle->own_workspace);
    }
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetVersion_v2(cublasHandle_t handle, int *version)
{
    ENTER_RESULT(handle, version);
    *version = VERSION;
    return CUBLAS_STATUS_SUCCESS;
}

/* The workspace becomes the library's own again. */
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream)
{
    ENTER_HANDLE(handle);
    handle->stream = stream;
    handle->workspace = (void *)(uintptr_t)handle->own_workspace;
    handle->workspace_bytes = handle->own_workspace != 0 ? OWN_WORKSPACE_BYTES : 0;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t *stream)
{
    ENTER_RESULT(handle, stream);
    *stream = handle->stream;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode)
{
    ENTER_HANDLE(handle);
    handle->math_mode = mode;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t *mode)
{
    ENTER_RESULT(handle, mode);
    *mode = handle->math_mode;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode)
{
    ENTER_HANDLE(handle);
    if (mode > CUBLAS_POINTER_MODE_DEVICE) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    handle->pointer_mode = mode;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t *mode)
{
    ENTER_RESULT(handle, mode);
    *mode = handle->pointer_mode;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t mode)
{
    (void)mode;
    ENTER_HANDLE(handle);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace, size_t bytes)
{
    ENTER_HANDLE(handle);
    if (workspace == NULL && bytes > 0) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    handle->workspace = workspace;
    handle->workspace_bytes = bytes;
    return CUBLAS_STATUS_SUCCESS;
}

static const struct {
    cublasStatus_t status;
    const char *name;
    const char *text;
} statuses[] = {
    {CUBLAS_STATUS_SUCCESS, "CUBLAS_STATUS_SUCCESS", "success"},
    {CUBLAS_STATUS_NOT_INITIALIZED, "CUBLAS_STATUS_NOT_INITIALIZED",
     "the library was not initialized"},
    {CUBLAS_STATUS_ALLOC_FAILED, "CUBLAS_STATUS_ALLOC_FAILED", "the resource allocation failed"},
    {CUBLAS_STATUS_INVALID_VALUE, "CUBLAS_STATUS_INVALID_VALUE",
     "an unsupported value or parameter was passed to the function"},
    {CUBLAS_STATUS_EXECUTION_FAILED, "CUBLAS_STATUS_EXECUTION_FAILED",
     "the GPU program failed to execute"},
    {CUBLAS_STATUS_NOT_SUPPORTED, "CUBLAS_STATUS_NOT_SUPPORTED",
     "the functionality requested is not supported"},
};

const char *cublasGetStatusName(cublasStatus_t status)
{
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        if (statuses[i].status == status) {
            return statuses[i].name;
        }
    }
    return "unknown";
}

const char *cublasGetStatusString(cublasStatus_t status)
{
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        if (statuses[i].status == status) {
            return statuses[i].text;
        }
    }
    return "unknown";
}

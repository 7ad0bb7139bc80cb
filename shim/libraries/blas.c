/* Handles, streams and matrices of cuBLAS, see blas.h. */
#include "shim/libraries/blas.h"

#include "shim/core/capture.h"
#include "shim/core/core.h"
#include "shim/core/iteration.h"
#include "shim/core/outside.h"
#include "shim/driver/loader.h"
#include "shim/driver/log.h"
#include "shim/driver/real.h"
#include "shim/libraries/library_calls.h"

#include "base/array.h"

#include <pthread.h>
#include <stdlib.h>

/* The library's own functions. */

static struct blas_calls calls;

/* In place of what is not there, whatever its parameters are. */
static cublasStatus_t fail_missing(void)
{
    log_line("the program calls a function of cuBLAS, and no library that has it is loaded");
    return BLAS_NOT_INITIALIZED;
}

static void *find_function(const char *name)
{
    void *function = loader_next("libcublas", name);

    return function != NULL ? function : (void *)(uintptr_t)fail_missing;
}

static void fill_calls(void)
{
#define FILL(name, parameters) calls.name = (cublasStatus_t(*) parameters)find_function(#name);
#define FILL_WRAPPED(name, parameters, arguments) FILL(name, parameters)
    BLAS_WRAPPED(FILL_WRAPPED)
    BLAS_CALLED(FILL)
#undef FILL
#undef FILL_WRAPPED
}

const struct blas_calls *blas_calls(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, fill_calls);
    return &calls;
}

enum { HOPPER = 90, WORKSPACE_BYTES = 4 << 20, WORKSPACE_BYTES_HOPPER = 32 << 20 };

/* Handles work on the core's stream, whichever one the program has set, but on the program's while
   that captures. Guarded by the core's lock. */
static struct {
    struct handle {
        cublasHandle_t handle;
        CUstream stream;    /* the program's */
        CUstream now;       /* on which it works */
        uint64_t workspace; /* that the program gave */
        size_t workspace_bytes;
    } * list;
    size_t count, capacity;
} handles;

static struct handle *find_handle(cublasHandle_t handle)
{
    for (size_t i = 0; i < handles.count; i++) {
        if (handles.list[i].handle == handle) {
            return &handles.list[i];
        }
    }
    return NULL;
}

cublasStatus_t blas_status(CUresult result)
{
    switch (result) {
    case DRIVER_SUCCESS:
        return BLAS_SUCCESS;
    case DRIVER_OUT_OF_MEMORY:
        return BLAS_ALLOC_FAILED;
    case DRIVER_NOT_SUPPORTED:
        return BLAS_NOT_SUPPORTED;
    default:
        return BLAS_EXECUTION_FAILED;
    }
}

/* By cudaDataType: the kinds of real and complex numbers, in the order of library_types.h. */
size_t blas_element_bytes(unsigned type)
{
    static const unsigned char bytes[] = {4, 8, 2, 1, 8, 16, 4, 2, 1, 2, 4,  8, 4,  8, 2,
                                          4, 0, 0, 0, 0, 2,  4, 2, 4, 8, 16, 8, 16, 1, 1};

    return type < sizeof(bytes) ? bytes[type] : 0;
}

/* The default workspace, as documented for cublasSetWorkspace. The library may allocate it when it
   first multiplies: inside an access, where there may be no room. */
static void reserve_workspace(uint64_t taken_bytes)
{
    static bool has_reserved;
    CUdevice device = 0;
    uint64_t bytes;

    if (has_reserved || real_calls()->cuCtxGetDevice(&device) != DRIVER_SUCCESS) {
        return;
    }
    has_reserved = true;
    bytes = core_architecture(device) >= HOPPER ? WORKSPACE_BYTES_HOPPER : WORKSPACE_BYTES;
    if (taken_bytes < bytes) {
        outside_reserve(bytes - taken_bytes);
    }
}

cublasStatus_t on_cublasCreate_v2(cublasHandle_t *handle)
{
    uint64_t outside;
    cublasStatus_t status;
    CUresult result = core_need_device();

    if (result == DRIVER_SUCCESS) {
        result = core_enter();
    }
    if (result != DRIVER_SUCCESS) {
        return blas_status(result);
    }
    outside = outside_bytes();
    core_guard_begin();
    status = blas_calls()->cublasCreate_v2(handle);
    if (status == BLAS_SUCCESS) {
        status = blas_calls()->cublasSetStream_v2(*handle, core_stream(NULL));
    }
    core_guard_end();
    if (status == BLAS_SUCCESS) {
        reserve_workspace(outside_bytes() - outside);
        if (array_reserve(&handles.list, &handles.capacity, handles.count + 1,
                          sizeof(handles.list[0]))) {
            handles.list[handles.count++] =
                (struct handle){.handle = *handle, .now = core_stream(NULL)};
        } else {
            status = BLAS_ALLOC_FAILED;
        }
    }
    core_leave();
    return status;
}

cublasStatus_t on_cublasDestroy_v2(cublasHandle_t handle)
{
    struct handle *own;
    cublasStatus_t status;
    CUresult result = core_enter();

    if (result != DRIVER_SUCCESS) {
        return blas_status(result);
    }
    own = find_handle(handle);
    if (own != NULL) {
        *own = handles.list[--handles.count];
    }
    core_leave();
    core_guard_begin();
    status = blas_calls()->cublasDestroy_v2(handle);
    core_guard_end();
    return status;
}

static CUstream target_of(CUstream stream)
{
    return capture_takes(stream) ? stream : core_stream(stream);
}

/* Setting a stream takes the program's workspace away, so it is given again. */
static void follow_stream(struct handle *own)
{
    CUstream wanted = target_of(own->stream);

    if (wanted == own->now ||
        blas_calls()->cublasSetStream_v2(own->handle, wanted) != BLAS_SUCCESS) {
        return;
    }
    own->now = wanted;
    if (own->workspace_bytes > 0) {
        (void)blas_calls()->cublasSetWorkspace_v2(own->handle, (void *)(uintptr_t)own->workspace,
                                                  own->workspace_bytes);
    }
}

/* Handles follow the streams that capture now, or no longer. */
static void follow_all(void)
{
    if (core_enter() != DRIVER_SUCCESS) {
        return;
    }
    core_guard_begin();
    for (size_t i = 0; i < handles.count; i++) {
        follow_stream(&handles.list[i]);
    }
    core_guard_end();
    core_leave();
}

__attribute__((constructor)) static void watch_captures(void)
{
    capture_on_change(follow_all);
}

cublasStatus_t on_cublasSetStream_v2(cublasHandle_t handle, CUstream stream)
{
    struct handle *own;
    CUresult result = core_enter();

    if (result != DRIVER_SUCCESS) {
        return blas_status(result);
    }
    own = find_handle(handle);
    if (own != NULL) {
        own->stream = stream;
        own->now = target_of(stream);
        own->workspace_bytes = 0; /* the library takes its own again */
    }
    core_guard_begin();
    /* Also for what it does to the workspace. */
    result = blas_calls()->cublasSetStream_v2(handle, target_of(stream));
    core_guard_end();
    core_leave();
    return result;
}

cublasStatus_t on_cublasGetStream_v2(cublasHandle_t handle, CUstream *stream)
{
    const struct handle *own;
    CUresult result = core_enter();

    if (result != DRIVER_SUCCESS) {
        return blas_status(result);
    }
    own = find_handle(handle);
    if (own != NULL && stream != NULL) {
        *stream = own->stream;
    }
    core_leave();
    return own != NULL && stream != NULL ? BLAS_SUCCESS
                                         : blas_calls()->cublasGetStream_v2(handle, stream);
}

cublasStatus_t on_cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace, size_t bytes)
{
    struct handle *own;
    cublasStatus_t status;
    CUresult result = core_enter();

    if (result != DRIVER_SUCCESS) {
        return blas_status(result);
    }
    core_guard_begin();
    status = blas_calls()->cublasSetWorkspace_v2(handle, workspace, bytes);
    core_guard_end();
    own = find_handle(handle);
    if (status == BLAS_SUCCESS && own != NULL) {
        own->workspace = (uintptr_t)workspace;
        own->workspace_bytes = bytes;
    }
    core_leave();
    return status;
}

struct blas_call blas_enter(const char *name)
{
    return (struct blas_call){.name = name, .status = blas_status(core_enter())};
}

bool blas_begin_on(struct blas_call *call, CUstream stream)
{
    CUresult result;

    if (call->status != BLAS_SUCCESS) {
        return false;
    }
    call->is_captured = capture_takes(stream);
    if (call->is_captured) {
        result = graph_known_begin(stream, &call->operands, &call->captured);
    } else {
        operands_loosen(&call->operands);
        iteration_event(core_context(), call->name, PERIOD_LAUNCH, call->operands.pointers);
        result = core_begin(&call->operands, call->name);
    }
    operands_finish(&call->operands);
    if (result == DRIVER_SUCCESS) {
        core_guard_begin();
    } else {
        core_leave();
    }
    call->status = blas_status(result);
    return result == DRIVER_SUCCESS;
}

bool blas_begin(struct blas_call *call, cublasHandle_t handle)
{
    const struct handle *own = call->status == BLAS_SUCCESS ? find_handle(handle) : NULL;

    if (own == NULL) {
        return blas_begin_on(call, core_stream(NULL));
    }
    operands_add_range(&call->operands, own->workspace, own->workspace_bytes, CAPU_UPDATE);
    return blas_begin_on(call, own->stream);
}

cublasStatus_t blas_end(const struct blas_call *call, cublasStatus_t status)
{
    CUresult result = DRIVER_SUCCESS;

    core_guard_end();
    if (call->is_captured) {
        graph_known_end(&call->captured, status == BLAS_SUCCESS);
    } else {
        result = core_end(DRIVER_SUCCESS, call->name);
    }
    core_leave();
    return status != BLAS_SUCCESS ? status : blas_status(result);
}

/* From the first byte to the last of all matrices. */
static void add_hull(struct operands *operands, const struct blas_matrix *matrix, capu_role role)
{
    uint64_t address = (uintptr_t)matrix->address;
    int64_t apart = matrix->count > 1 ? (matrix->count - 1) * matrix->stride : 0;
    int64_t elements = (matrix->columns - 1) * matrix->ld + matrix->rows;

    if (matrix->rows <= 0 || matrix->columns <= 0 || matrix->count <= 0 || address == 0) {
        return;
    }
    operands->pointers = operands_note_pointer(operands->pointers, address);
    if (apart < 0) {
        address -= (uint64_t)-apart * matrix->element_bytes;
        apart = -apart;
    }
    operands_add_range(operands, address, (uint64_t)(elements + apart) * matrix->element_bytes,
                       role);
}

void blas_add_read(struct operands *operands, const struct blas_matrix *matrix)
{
    add_hull(operands, matrix, CAPU_READ);
}

bool blas_is_used(const struct blas_matrix *matrix)
{
    return matrix->address != NULL && matrix->rows > 0 && matrix->columns > 0 &&
           matrix->count > 0 && matrix->ld >= matrix->rows;
}

void blas_add_written(struct operands *operands, const struct blas_matrix *matrix, bool keeps)
{
    bool has_gaps = (matrix->columns > 1 && matrix->ld != matrix->rows) ||
                    (matrix->count > 1 && matrix->stride != matrix->ld * matrix->columns);

    keeps |= !blas_is_used(matrix);
    add_hull(operands, matrix, keeps || has_gaps ? CAPU_UPDATE : CAPU_WRITE);
}

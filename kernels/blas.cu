/* Keeps a cuBLAS handle per stream, and multiplies matrices that are stored by rows. */
#include "kernels/blas.cuh"

#include "kernels/blas_library.cuh"
#include "kernels/blas_stream.cuh"
#include "kernels/grid.cuh"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    struct entry *next;
    capu_stream stream;
    int device; /* of the stream: a new stream on another device may have the same address */
    cublasHandle_t handle;
    void *scratch;
};

/* Guarded by the lock. Entries of the list never change and are never removed. */
static struct {
    pthread_mutex_t lock;
    bool is_loaded;
    struct blas_functions functions;
    cublasComputeType_t arithmetic;
    struct entry *entries;
} blas = {PTHREAD_MUTEX_INITIALIZER, false, {}, CUBLAS_COMPUTE_32F, NULL};

static capu_status read_arithmetic(cublasComputeType_t *arithmetic)
{
    const char *text = getenv("KERNELS_MATMUL");

    if (text == NULL || *text == '\0' || strcmp(text, "fp32") == 0) {
        *arithmetic = CUBLAS_COMPUTE_32F;
    } else if (strcmp(text, "tf32") == 0) {
        *arithmetic = CUBLAS_COMPUTE_32F_FAST_TF32;
    } else if (strcmp(text, "bf16") == 0) {
        *arithmetic = CUBLAS_COMPUTE_32F_FAST_16BF;
    } else {
        return CAPU_INVALID;
    }
    return CAPU_OK;
}

/* `reason` has BLAS_REASON_BYTES; it is written if there is an error. Publishes only what is
   complete. */
static capu_status load(char *reason)
{
    capu_status status;

    if (blas.is_loaded) {
        return CAPU_OK;
    }
    status = read_arithmetic(&blas.arithmetic);
    if (status != CAPU_OK) {
        snprintf(reason, BLAS_REASON_BYTES, "KERNELS_MATMUL is not fp32, tf32 or bf16");
        return status;
    }
    status = blas_library_load(&blas.functions, reason);
    blas.is_loaded = status == CAPU_OK;
    return status;
}

static struct entry *find(capu_stream stream, int device)
{
    struct entry *entry = blas.entries;

    while (entry != NULL && (entry->stream != stream || entry->device != device)) {
        entry = entry->next;
    }
    return entry;
}

/*
 * The device of the stream, which need not be the thread's current one: a program may train on two.
 * Toolkits and drivers before 12.8 cannot report it; there the current one is assumed.
 */
static capu_status find_device(capu_stream stream, int *current, int *device)
{
    if (cudaGetDevice(current) != cudaSuccess) {
        cudaGetLastError();
        return CAPU_DEVICE_FAILED;
    }
    *device = *current;
#if CUDART_VERSION >= 12080
    if (stream != NULL && cudaStreamGetDevice((cudaStream_t)stream, device) != cudaSuccess) {
        cudaGetLastError();
        *device = *current;
    }
#endif
    return CAPU_OK;
}

/*
 * Setting the stream resets the workspace, so the workspace is set after it. By default cuBLAS adds
 * the parts of a product that it splits along its depth in the type of the result; that is
 * disabled, or bf16 results would be rounded several times.
 */
static bool configure(const struct entry *entry)
{
    return blas.functions.set_stream(entry->handle, (cudaStream_t)entry->stream) ==
               CUBLAS_STATUS_SUCCESS &&
           blas.functions.set_workspace(entry->handle, entry->scratch, BLAS_SCRATCH_BYTES) ==
               CUBLAS_STATUS_SUCCESS &&
           blas.functions.set_atomics(entry->handle, CUBLAS_ATOMICS_NOT_ALLOWED) ==
               CUBLAS_STATUS_SUCCESS &&
           blas.functions.set_math(entry->handle,
                                   CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION) ==
               CUBLAS_STATUS_SUCCESS;
}

/* A handle and memory belong to the device that is current when they are created. */
static capu_status make(capu_stream stream, int device, struct entry **out)
{
    struct entry *entry = (struct entry *)calloc(1, sizeof(*entry));

    if (entry == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    entry->stream = stream;
    entry->device = device;
    if (cudaMalloc(&entry->scratch, BLAS_SCRATCH_BYTES) != cudaSuccess) {
        cudaGetLastError(); /* clear the error, or the next launch would report it */
        free(entry);
        return CAPU_DEVICE_FAILED;
    }
    entry->next = blas.entries;
    blas.entries = entry;
    *out = entry;
    return CAPU_OK;
}

static capu_status add_handle(struct entry *entry)
{
    char reason[BLAS_REASON_BYTES]; /* blas_find reports it */
    capu_status status = load(reason);

    if (status != CAPU_OK) {
        return status;
    }
    if (blas.functions.create(&entry->handle) != CUBLAS_STATUS_SUCCESS) {
        entry->handle = NULL;
    } else if (!configure(entry)) {
        blas.functions.destroy(entry->handle);
        entry->handle = NULL;
    }
    if (entry->handle == NULL) {
        cudaGetLastError();
        return CAPU_DEVICE_FAILED;
    }
    return CAPU_OK;
}

/* Completes the stream's entry, or makes one: *entry is NULL before. */
static capu_status complete(capu_stream stream, int device, bool has_products, struct entry **entry)
{
    capu_status status = CAPU_OK;

    if (*entry == NULL) {
        status = make(stream, device, entry);
    }
    return status == CAPU_OK && has_products && (*entry)->handle == NULL ? add_handle(*entry)
                                                                         : status;
}

/* Restores the current device. */
static capu_status complete_there(capu_stream stream, int current, int device, bool has_products,
                                  struct entry **entry)
{
    capu_status status;

    if (device == current) {
        return complete(stream, device, has_products, entry);
    }
    if (cudaSetDevice(device) != cudaSuccess) {
        cudaGetLastError();
        return CAPU_DEVICE_FAILED;
    }
    status = complete(stream, device, has_products, entry);
    return cudaSetDevice(current) == cudaSuccess ? status : CAPU_DEVICE_FAILED;
}

static capu_status entry_of(capu_stream stream, bool has_products, struct entry **entry)
{
    int current = 0;
    int device = 0;
    capu_status status = find_device(stream, &current, &device);

    if (status != CAPU_OK) {
        return status;
    }
    pthread_mutex_lock(&blas.lock);
    *entry = find(stream, device);
    if (*entry == NULL || (has_products && (*entry)->handle == NULL)) {
        status = complete_there(stream, current, device, has_products, entry);
    }
    pthread_mutex_unlock(&blas.lock);
    return status;
}

capu_status blas_prepare(capu_stream stream, bool has_products)
{
    struct entry *entry;

    return entry_of(stream, has_products, &entry);
}

/* The path of the file that a function is in. */
static const char *file_of(const void *function)
{
    Dl_info info;

    return dladdr(function, &info) != 0 ? info.dli_fname : "?";
}

capu_status blas_find(char *text, size_t text_bytes)
{
    char reason[BLAS_REASON_BYTES];
    capu_status status;

    pthread_mutex_lock(&blas.lock);
    status = load(reason);
    if (status == CAPU_OK) {
        snprintf(text, text_bytes, "%s and %s", file_of((const void *)blas.functions.create),
                 file_of((const void *)blas.functions.lt_multiply));
    } else {
        snprintf(text, text_bytes, "%s", reason);
    }
    pthread_mutex_unlock(&blas.lock);
    return status;
}

capu_status blas_stream_of(capu_stream stream, struct blas_stream *out)
{
    struct entry *entry;
    capu_status status = entry_of(stream, true, &entry);

    if (status != CAPU_OK) {
        return status;
    }
    out->functions = &blas.functions;
    out->handle = entry->handle;
    out->scratch = entry->scratch;
    out->device = entry->device;
    out->arithmetic = blas.arithmetic;
    return CAPU_OK;
}

capu_status blas_scratch(capu_stream stream, void **scratch)
{
    struct entry *entry;
    capu_status status = entry_of(stream, false, &entry);

    if (status == CAPU_OK) {
        *scratch = entry->scratch;
    }
    return status;
}

/*
 * cuBLAS expects matrices by columns. Read by columns, a matrix that is stored by rows is its
 * transpose, and (a b)^T = b^T a^T: so the factors are swapped.
 */
capu_status blas_gemm(capu_stream stream, const struct gemm *gemm, const struct blas_batch *batch)
{
    const float alpha = 1.0f;
    cublasOperation_t a_operation = gemm->a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasOperation_t b_operation = gemm->b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    int64_t rows = (int64_t)gemm->rows;
    int64_t columns = (int64_t)gemm->columns;
    int64_t depth = (int64_t)gemm->depth;
    int64_t a_stride = (int64_t)gemm->a_stride;
    int64_t b_stride = (int64_t)gemm->b_stride;
    int64_t c_stride = (int64_t)gemm->c_stride;
    cudaDataType type = blas_type_of(gemm->element);
    cudaDataType c_type = blas_type_of(gemm->result);
    cublasComputeType_t arithmetic;
    struct blas_stream on;
    cublasStatus_t result;
    capu_status status = blas_stream_of(stream, &on);

    if (status != CAPU_OK) {
        return status;
    }
    arithmetic = blas_arithmetic_of(&on, gemm->element);
    if (batch == NULL) {
        result = on.functions->multiply(on.handle, b_operation, a_operation, columns, rows, depth,
                                        &alpha, gemm->b, type, b_stride, gemm->a, type, a_stride,
                                        &gemm->beta, gemm->c, c_type, c_stride, arithmetic,
                                        CUBLAS_GEMM_DEFAULT);
    } else {
        result = on.functions->multiply_many(
            on.handle, b_operation, a_operation, columns, rows, depth, &alpha, gemm->b, type,
            b_stride, (long long)batch->b_step, gemm->a, type, a_stride, (long long)batch->a_step,
            &gemm->beta, gemm->c, c_type, c_stride, (long long)batch->c_step, (int64_t)batch->count,
            arithmetic, CUBLAS_GEMM_DEFAULT);
    }
    return result == CUBLAS_STATUS_SUCCESS ? CAPU_OK : CAPU_DEVICE_FAILED;
}

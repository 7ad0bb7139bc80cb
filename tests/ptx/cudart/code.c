/*
 * What nvcc's code registers before main: fat binaries, kernels and variables. Each fat binary is a
 * library of the driver, loaded when something of it is first used. Nothing is unregistered before
 * the process ends, since that is when programs do it.
 *
 * Entries are only added. The lock guards the lists and what is filled in on demand.
 */
#include "tests/ptx/cudart/code.h"

#include <pthread.h>
#include <stdlib.h>

struct binary {
    struct binary *next;
    void *image;
    CUlibrary library; /* NULL: not loaded yet */
};

struct entry {
    struct entry *next;
    const void *host;
    const char *name; /* in device code */
    struct binary *binary;
    CUkernel kernel; /* NULL: a variable, or not looked up yet */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct binary *binaries;
static struct entry *kernels;
static struct entry *variables;
static struct entry *managed; /* `host` is where the program looks up the address */

struct dim3;

#define REGISTRATION CUDART_API
REGISTRATION void **__cudaRegisterFatBinary(void *image);
REGISTRATION void __cudaRegisterFatBinaryEnd(void **handle);
REGISTRATION void __cudaUnregisterFatBinary(void **handle);
REGISTRATION char __cudaInitModule(void **handle);
REGISTRATION void __cudaRegisterFunction(void **handle, const char *host, char *device,
                                         const char *name, int threads, void *thread, void *block,
                                         struct dim3 *block_size, struct dim3 *grid_size,
                                         int *warp);
REGISTRATION void __cudaRegisterVar(void **handle, char *host, char *device, const char *name,
                                    int is_external, size_t bytes, int is_constant, int is_global);
REGISTRATION void __cudaRegisterManagedVar(void **handle, void **host, char *device,
                                           const char *name, int is_external, size_t bytes,
                                           int is_constant, int is_global);

void **__cudaRegisterFatBinary(void *image)
{
    struct binary *binary = calloc(1, sizeof(*binary));

    if (binary == NULL) {
        return NULL;
    }
    binary->image = image;
    pthread_mutex_lock(&lock);
    binary->next = binaries;
    binaries = binary;
    pthread_mutex_unlock(&lock);
    return (void **)binary;
}

void __cudaRegisterFatBinaryEnd(void **handle)
{
    (void)handle;
}

void __cudaUnregisterFatBinary(void **handle)
{
    (void)handle;
}

static void add(struct entry **list, void **handle, const void *host, const char *name)
{
    struct entry *entry = calloc(1, sizeof(*entry));

    if (entry == NULL || handle == NULL) {
        free(entry);
        return;
    }
    entry->host = host;
    entry->name = name;
    entry->binary = (struct binary *)handle;
    pthread_mutex_lock(&lock);
    entry->next = *list;
    *list = entry;
    pthread_mutex_unlock(&lock);
}

void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                            int threads, void *thread, void *block, struct dim3 *block_size,
                            struct dim3 *grid_size, int *warp)
{
    (void)device;
    (void)threads;
    (void)thread;
    (void)block;
    (void)block_size;
    (void)grid_size;
    (void)warp;
    add(&kernels, handle, host, name);
}

void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int is_external,
                       size_t bytes, int is_constant, int is_global)
{
    (void)device;
    (void)is_external;
    (void)bytes;
    (void)is_constant;
    (void)is_global;
    add(&variables, handle, host, name);
}

void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name,
                              int is_external, size_t bytes, int is_constant, int is_global)
{
    (void)device;
    (void)is_external;
    (void)bytes;
    (void)is_constant;
    (void)is_global;
    add(&managed, handle, host, name);
}

static struct entry *find(struct entry *list, const void *host)
{
    while (list != NULL && list->host != host) {
        list = list->next;
    }
    return list;
}

/* Loads the binary, if that has not happened yet. Pre: the lock is held. */
static cudaError_t load(struct binary *binary)
{
    if (binary->library != NULL) {
        return cudaSuccess;
    }
    return (cudaError_t)(int)cudart_driver()->cuLibraryLoadData(&binary->library, binary->image,
                                                                NULL, NULL, 0, NULL, NULL, 0);
}

/* Programs call this before they first use a managed variable on the host. */
char __cudaInitModule(void **handle)
{
    struct binary *binary = (struct binary *)handle;
    cudaError_t error = binary != NULL ? cudart_enter() : cudaErrorInvalidValue;

    pthread_mutex_lock(&lock);
    if (error == cudaSuccess) {
        error = load(binary);
    }
    for (struct entry *entry = managed; entry != NULL && error == cudaSuccess;
         entry = entry->next) {
        CUdeviceptr address;
        size_t bytes;

        if (entry->binary == binary) {
            error = (cudaError_t)(int)cudart_driver()->cuLibraryGetGlobal(
                &address, &bytes, binary->library, entry->name);
        }
        if (entry->binary == binary && error == cudaSuccess) {
            *(void **)(uintptr_t)entry->host = (void *)(uintptr_t)address;
        }
    }
    pthread_mutex_unlock(&lock);
    return cudart_leave(error) == cudaSuccess;
}

cudaError_t code_kernel(const void *function, CUkernel *kernel)
{
    struct entry *entry;
    cudaError_t error = cudaErrorInvalidDeviceFunction;

    pthread_mutex_lock(&lock);
    entry = find(kernels, function);
    if (entry != NULL) {
        error = load(entry->binary);
        if (error == cudaSuccess && entry->kernel == NULL) {
            error = (cudaError_t)(int)cudart_driver()->cuLibraryGetKernel(
                &entry->kernel, entry->binary->library, entry->name);
        }
        *kernel = entry->kernel;
    } else {
        for (entry = kernels; entry != NULL && error != cudaSuccess; entry = entry->next) {
            if (function != NULL && function == entry->kernel) {
                *kernel = entry->kernel;
                error = cudaSuccess;
            }
        }
    }
    pthread_mutex_unlock(&lock);
    return error == cudaErrorSymbolNotFound ? cudaErrorInvalidDeviceFunction : error;
}

cudaError_t code_variable(const void *symbol, CUdeviceptr *address, size_t *bytes)
{
    struct entry *entry;
    cudaError_t error = cudaErrorInvalidSymbol;

    pthread_mutex_lock(&lock);
    entry = find(variables, symbol);
    if (entry != NULL) {
        error = load(entry->binary);
        if (error == cudaSuccess) {
            error = (cudaError_t)(int)cudart_driver()->cuLibraryGetGlobal(
                address, bytes, entry->binary->library, entry->name);
        }
    }
    pthread_mutex_unlock(&lock);
    return error == cudaErrorSymbolNotFound ? cudaErrorInvalidSymbol : error;
}

/*
 * Pinned host memory, and what is known about a pointer.
 *
 * Memory that is allocated here or registered is one list; the lock guards it. The device sees it
 * at the same address.
 */
#include "tests/ptx/driver/driver.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct pinned {
    struct pinned *next;
    uint64_t address;
    uint64_t bytes;
    unsigned flags;
    bool is_own; /* allocated here, not registered */
};

static struct {
    pthread_mutex_t lock;
    struct pinned *first;
} host = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* A pinned block that overlaps the range; NULL: none. Pre: the lock is held. */
static struct pinned **find(uint64_t address, uint64_t bytes)
{
    for (struct pinned **at = &host.first; *at != NULL; at = &(*at)->next) {
        if (address < (*at)->address + (*at)->bytes && (*at)->address < address + bytes) {
            return at;
        }
    }
    return NULL;
}

static bool find_copy(uint64_t address, struct pinned *copy)
{
    struct pinned **at;

    pthread_mutex_lock(&host.lock);
    at = find(address, 1);
    if (at != NULL) {
        *copy = **at;
    }
    pthread_mutex_unlock(&host.lock);
    return at != NULL;
}

bool host_memory_is_pinned(const void *address, uint64_t bytes)
{
    struct pinned pinned;
    uint64_t at = (uintptr_t)address;

    return find_copy(at, &pinned) && at >= pinned.address &&
           bytes <= pinned.address + pinned.bytes - at;
}

bool host_memory_is_reachable(uint64_t address, uint64_t bytes)
{
    struct memory_block block;

    if (memory_find(address, &block) || module_find_variable(address, &block)) {
        return bytes <= block.address + block.bytes - address;
    }
    return driver_settings()->with_foreign ||
           host_memory_is_pinned((void *)(uintptr_t)address, bytes);
}

static CUresult add(void *address, uint64_t bytes, unsigned flags, bool is_own)
{
    struct pinned *made = malloc(sizeof(*made));
    CUresult result = CUDA_SUCCESS;

    if (made == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *made = (struct pinned){.address = (uintptr_t)address, bytes, flags, is_own};
    pthread_mutex_lock(&host.lock);
    if (find(made->address, bytes) != NULL) {
        result = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    } else {
        made->next = host.first;
        host.first = made;
        made = NULL;
    }
    pthread_mutex_unlock(&host.lock);
    free(made);
    return result;
}

/* Takes a block that begins at the address off the list. False: there is none of that kind. */
static bool drop(void *address, bool is_own, uint64_t *bytes)
{
    struct pinned **at;
    struct pinned *found = NULL;

    pthread_mutex_lock(&host.lock);
    at = find((uintptr_t)address, 1);
    if (at != NULL && (*at)->address == (uintptr_t)address && (*at)->is_own == is_own) {
        found = *at;
        *at = found->next;
        *bytes = found->bytes;
    }
    pthread_mutex_unlock(&host.lock);
    free(found);
    return found != NULL;
}

CUresult cuMemHostAlloc(void **address, size_t bytes, unsigned flags)
{
    CUresult result;
    void *made;

    DRIVER_ENTER(driver_enter_waiting);
    if (address == NULL || bytes == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    made = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    result = add(made, bytes, flags, true);
    if (result != CUDA_SUCCESS) {
        munmap(made, bytes);
        return result;
    }
    *address = made;
    return CUDA_SUCCESS;
}

CUresult cuMemAllocHost_v2(void **address, size_t bytes)
{
    return cuMemHostAlloc(address, bytes, 0);
}

CUresult cuMemFreeHost(void *address)
{
    uint64_t bytes;
    CUresult result;

    DRIVER_ENTER(driver_enter_waiting);
    if (address == NULL) {
        return CUDA_SUCCESS;
    }
    result = queue_wait(queue_last_issued());
    if (!drop(address, true, &bytes)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    munmap(address, bytes);
    return result;
}

CUresult cuMemHostRegister_v2(void *address, size_t bytes, unsigned flags)
{
    DRIVER_ENTER(driver_enter_waiting);
    if (address == NULL || bytes == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return add(address, bytes, flags, false);
}

CUresult cuMemHostUnregister(void *address)
{
    uint64_t bytes;

    DRIVER_ENTER(driver_enter_context);
    return drop(address, false, &bytes) ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *address, void *pointer, unsigned flags)
{
    DRIVER_ENTER(driver_enter_context);
    if (address == NULL || flags != 0 || !host_memory_is_pinned(pointer, 1)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *address = (uintptr_t)pointer;
    return CUDA_SUCCESS;
}

CUresult cuMemHostGetFlags(unsigned *flags, void *pointer)
{
    struct pinned pinned;

    DRIVER_ENTER(driver_enter_context);
    if (flags == NULL || !find_copy((uintptr_t)pointer, &pinned)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *flags = pinned.flags;
    return CUDA_SUCCESS;
}

/* What an attribute says about memory; for memory that is not CUDA's all zeros. */
struct about {
    bool is_known;
    bool is_host;
    bool is_managed;
    uint64_t id;
    uint64_t address;
    uint64_t base;
    uint64_t bytes;
};

static struct about about(uint64_t address)
{
    struct memory_block block;
    struct pinned pinned;

    if (memory_find(address, &block) || module_find_variable(address, &block)) {
        return (struct about){true,    false,         block.is_managed, block.id,
                              address, block.address, block.bytes};
    }
    if (find_copy(address, &pinned)) {
        return (struct about){true,    true,           false,       pinned.address,
                              address, pinned.address, pinned.bytes};
    }
    return (struct about){.address = address};
}

static CUresult answer(void *value, CUpointer_attribute attribute, const struct about *about)
{
    CUcontext context = about->is_known ? context_current() : NULL;
    uint64_t device = about->is_known ? about->address : 0;
    uint64_t on_host = about->is_host || about->is_managed ? about->address : 0;
    uint64_t wide = 0;

    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        memcpy(value, &context, sizeof(context));
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)value = !about->is_known ? 0
                             : about->is_host ? CU_MEMORYTYPE_HOST
                                              : CU_MEMORYTYPE_DEVICE;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        *(unsigned *)value = 0;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(unsigned *)value = about->is_managed;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        *(unsigned *)value = about->is_known;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)value = about->is_known ? 0 : -2;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        wide = device;
        break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        wide = on_host;
        break;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        wide = about->id;
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        wide = about->base;
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        wide = about->bytes;
        break;
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    memcpy(value, &wide, sizeof(wide));
    return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr address)
{
    struct about known;

    DRIVER_ENTER(driver_enter_context);
    known = about(address);
    if (value == NULL || !known.is_known) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return answer(value, attribute, &known);
}

CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute *attributes, void **values,
                                CUdeviceptr address)
{
    struct about known;
    CUresult result = CUDA_SUCCESS;

    DRIVER_ENTER(driver_enter_context);
    if (count == 0 || attributes == NULL || values == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    known = about(address);
    for (unsigned i = 0; i < count && result == CUDA_SUCCESS; i++) {
        result = answer(values[i], attributes[i], &known);
    }
    return result;
}

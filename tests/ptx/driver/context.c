/*
 * Devices, contexts, and what the environment says about them. There is one device, and it has a
 * primary context; other contexts are names for the same. Which is current is a stack per thread.
 */
#include "tests/ptx/driver/driver.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VERSION = 13000, STACK_DEPTH = 16, PROCESSORS = 8 };

struct CUctx_st {
    bool is_primary;
};

static struct CUctx_st primary = {.is_primary = true};
static atomic_int primary_uses;
static atomic_uint primary_flags;
static atomic_bool is_initialised;
static atomic_bool is_child;
static _Thread_local CUcontext stack[STACK_DEPTH];
static _Thread_local int depth;

static struct driver_settings settings;
static pthread_once_t settings_once = PTHREAD_ONCE_INIT;

/* A number of bytes with an optional unit; 0: not one. */
static uint64_t bytes_of(const char *text)
{
    static const char *const units[] = {"", "KiB", "MiB", "GiB"};
    char *end;
    unsigned long long number = strtoull(text, &end, 10);

    for (unsigned i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(end, units[i]) == 0) {
            return number << (10 * i);
        }
    }
    return 0;
}

static void read_settings(void)
{
    const char *memory = getenv("PTX_DRIVER_MEMORY");
    const char *capability = getenv("PTX_DRIVER_CAPABILITY");
    const char *operands = getenv("PTX_DRIVER_OPERANDS");
    const char *foreign = getenv("PTX_DRIVER_FOREIGN");

    settings.memory_bytes = memory != NULL ? bytes_of(memory) : UINT64_C(4) << 30;
    settings.capability = capability != NULL ? atoi(capability) : 90;
    settings.names_streams = getenv("PTX_DRIVER_STREAMS") != NULL;
    settings.without_compiler = getenv("PTX_DRIVER_NO_COMPILER") != NULL;
    settings.with_machine_code = getenv("PTX_DRIVER_MACHINE_CODE") != NULL;
    settings.operands = operands != NULL && operands[0] != '\0' ? operands : NULL;
    settings.with_foreign = foreign != NULL && strcmp(foreign, "0") != 0;
    if (settings.memory_bytes == 0) {
        fprintf(stderr, "test driver: PTX_DRIVER_MEMORY=%s is not a size; no device\n", memory);
    }
}

const struct driver_settings *driver_settings(void)
{
    pthread_once(&settings_once, read_settings);
    return &settings;
}

CUcontext context_current(void)
{
    return depth > 0 ? stack[depth - 1] : NULL;
}

CUresult driver_enter(void)
{
    if (!is_initialised || is_child) {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    return queue_error();
}

CUresult driver_enter_context(void)
{
    CUresult result = driver_enter();

    if (result == CUDA_SUCCESS && context_current() == NULL) {
        result = CUDA_ERROR_INVALID_CONTEXT;
    }
    return result;
}

static void note_child(void)
{
    is_child = true;
}

static void watch_forks(void)
{
    (void)pthread_atfork(NULL, NULL, note_child);
}

CUresult cuInit(unsigned flags)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    if (flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (is_child) {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    if (driver_settings()->memory_bytes == 0) {
        return CUDA_ERROR_NO_DEVICE;
    }
    pthread_once(&once, watch_forks);
    is_initialised = true;
    return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version)
{
    if (version == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *version = VERSION;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    DRIVER_ENTER(driver_enter);
    if (device == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (ordinal != 0) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    *device = 0;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
    DRIVER_ENTER(driver_enter);
    if (count == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *count = 1;
    return CUDA_SUCCESS;
}

/* Begins a call about a device. */
#define ENTER_DEVICE(device, is_valid)        \
    do {                                      \
        DRIVER_ENTER(driver_enter);           \
        if ((device) != 0) {                  \
            return CUDA_ERROR_INVALID_DEVICE; \
        }                                     \
        if (!(is_valid)) {                    \
            return CUDA_ERROR_INVALID_VALUE;  \
        }                                     \
    } while (0)

CUresult cuDeviceGetName(char *name, int bytes, CUdevice device)
{
    ENTER_DEVICE(device, name != NULL && bytes > 0);
    snprintf(name, (size_t)bytes, "PTX on the CPU");
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
    ENTER_DEVICE(device, uuid != NULL);
    memcpy(uuid->bytes, "PTX on the CPU\0", sizeof(uuid->bytes));
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    return cuDeviceGetUuid_v2(uuid, device);
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    ENTER_DEVICE(device, bytes != NULL);
    *bytes = driver_settings()->memory_bytes;
    return CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device)
{
    ENTER_DEVICE(device, major != NULL && minor != NULL);
    *major = driver_settings()->capability / 10;
    *minor = driver_settings()->capability % 10;
    return CUDA_SUCCESS;
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    ENTER_DEVICE(device, can != NULL && peer == 0);
    *can = 0;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *text, int bytes, CUdevice device)
{
    ENTER_DEVICE(device, text != NULL && bytes > 0);
    snprintf(text, (size_t)bytes, "0000:00:00.0");
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    static const struct {
        CUdevice_attribute attribute;
        int value;
    } known[] = {
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 48 << 10},
        {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 64 << 10},
        {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
        {CU_DEVICE_ATTRIBUTE_MAX_PITCH, 2147483647},
        {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
        {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1000000},
        {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512},
        {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, PROCESSORS},
        {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
        {CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT, 512},
        {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
        {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 1000000},
        {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 256},
        {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 4 << 20},
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
        {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 1},
        {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
        {CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, 32},
        {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 228 << 10},
        {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
        {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
        {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1},
        {CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1},
        {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 227 << 10},
        {CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32},
        {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1 << 10},
        {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
    };

    ENTER_DEVICE(device, value != NULL && attribute > 0);
    *value = 0;
    if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) {
        *value = driver_settings()->capability / 10;
    } else if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR) {
        *value = driver_settings()->capability % 10;
    }
    for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (known[i].attribute == attribute) {
            *value = known[i].value;
        }
    }
    return CUDA_SUCCESS;
}

/* Which pools there are; the first is the default one. Their attributes are accepted and mean
   nothing, and all give memory in the same way. Atomic. */
enum { POOLS = 32 };
static bool pools[POOLS] = {true};

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *out, CUdevice device)
{
    ENTER_DEVICE(device, out != NULL);
    *out = (CUmemoryPool)&pools[0];
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetMemPool(CUmemoryPool *out, CUdevice device)
{
    return cuDeviceGetDefaultMemPool(out, device);
}

static CUresult enter_pool(CUmemoryPool given)
{
    DRIVER_ENTER(driver_enter);
    for (size_t i = 0; i < POOLS; i++) {
        if (given == (CUmemoryPool)&pools[i] && __atomic_load_n(&pools[i], __ATOMIC_ACQUIRE)) {
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemPoolCreate(CUmemoryPool *out, const CUmemPoolProps *properties)
{
    enum { PINNED = 1, ON_DEVICE = 1 };

    DRIVER_ENTER(driver_enter);
    if (out == NULL || properties == NULL || properties->allocType != PINNED ||
        properties->location.type != ON_DEVICE || properties->location.id != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 1; i < POOLS; i++) {
        if (!__atomic_exchange_n(&pools[i], true, __ATOMIC_ACQ_REL)) {
            *out = (CUmemoryPool)&pools[i];
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemPoolDestroy(CUmemoryPool given)
{
    CUresult result = enter_pool(given);

    if (result != CUDA_SUCCESS || given == (CUmemoryPool)&pools[0]) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    __atomic_store_n((bool *)given, false, __ATOMIC_RELEASE);
    return CUDA_SUCCESS;
}

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool given)
{
    ENTER_DEVICE(device, true);
    return enter_pool(given);
}

CUresult cuMemPoolSetAttribute(CUmemoryPool given, CUmemPool_attribute attribute, void *value)
{
    (void)attribute;
    (void)value;
    return enter_pool(given);
}

CUresult cuMemPoolGetAttribute(CUmemoryPool given, CUmemPool_attribute attribute, void *value)
{
    enum { FIRST_WIDE = 4 }; /* those below are of 32 bits */

    DRIVER_ENTER(driver_enter);
    if (value == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    memset(value, 0, attribute < FIRST_WIDE ? sizeof(int) : sizeof(uint64_t));
    return enter_pool(given);
}

CUresult cuMemPoolTrimTo(CUmemoryPool given, size_t bytes)
{
    (void)bytes;
    return enter_pool(given);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t bytes, CUmemoryPool given,
                                 CUstream stream)
{
    CUresult result = enter_pool(given);

    return result == CUDA_SUCCESS ? cuMemAllocAsync(address, bytes, stream) : result;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    ENTER_DEVICE(device, context != NULL);
    primary_uses++;
    *context = &primary;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    ENTER_DEVICE(device, true);
    if (primary_uses == 0) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    primary_uses--;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    return cuDevicePrimaryCtxRelease_v2(device);
}

/* Modules, streams and events stay, and are used on as if they had been made anew. */
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    CUresult result;

    ENTER_DEVICE(device, true);
    result = queue_wait(queue_last_issued());
    memory_reset();
    module_reset();
    return result;
}

CUresult cuDevicePrimaryCtxReset(CUdevice device)
{
    return cuDevicePrimaryCtxReset_v2(device);
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags)
{
    ENTER_DEVICE(device, true);
    primary_flags = flags;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *is_active)
{
    ENTER_DEVICE(device, flags != NULL && is_active != NULL);
    *flags = primary_flags;
    *is_active = primary_uses > 0;
    return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
    DRIVER_ENTER(driver_enter);
    if (context == NULL || depth == STACK_DEPTH) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    stack[depth++] = context;
    return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
    DRIVER_ENTER(driver_enter);
    if (depth == 0) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    depth--;
    if (context != NULL) {
        *context = stack[depth];
    }
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    DRIVER_ENTER(driver_enter);
    if (depth > 0) {
        depth--;
    }
    return context != NULL ? cuCtxPushCurrent_v2(context) : CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    DRIVER_ENTER(driver_enter);
    if (context == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *context = context_current();
    return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device)
{
    CUcontext made;

    (void)flags;
    ENTER_DEVICE(device, context != NULL);
    made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *context = made;
    return cuCtxPushCurrent_v2(made);
}

CUresult cuCtxDestroy_v2(CUcontext context)
{
    DRIVER_ENTER(driver_enter);
    if (context == NULL || context->is_primary) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (context_current() == context) {
        depth--;
    }
    free(context);
    return CUDA_SUCCESS;
}

/* Begins a call about a context; NULL means the current one. */
static CUresult enter_context(CUcontext context)
{
    return context != NULL ? driver_enter() : driver_enter_context();
}

CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext context)
{
    CUresult result = enter_context(context);

    if (result == CUDA_SUCCESS) {
        *device = 0;
    }
    return result;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    return cuCtxGetDevice_v2(device, NULL);
}

CUresult cuCtxGetFlags(unsigned *flags)
{
    DRIVER_ENTER(driver_enter_context);
    *flags = primary_flags;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext context, unsigned *version)
{
    (void)context;
    DRIVER_ENTER(driver_enter_context);
    *version = VERSION;
    return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize_v2(CUcontext context)
{
    CUresult result = enter_context(context);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    DRIVER_ENTER(capture_check_none);
    return queue_wait(queue_last_issued());
}

CUresult cuCtxSynchronize(void)
{
    return cuCtxSynchronize_v2(NULL);
}

/* Limits are accepted and mean nothing. */
CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
    (void)limit;
    (void)value;
    return driver_enter_context();
}

CUresult cuCtxGetLimit(size_t *value, CUlimit limit)
{
    (void)limit;
    DRIVER_ENTER(driver_enter_context);
    *value = 8 << 20;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCacheConfig(CUfunc_cache *config)
{
    DRIVER_ENTER(driver_enter_context);
    *config = 0;
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config)
{
    (void)config;
    return driver_enter_context();
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    DRIVER_ENTER(driver_enter_context);
    if (least != NULL) {
        *least = 0;
    }
    if (greatest != NULL) {
        *greatest = -5;
    }
    return CUDA_SUCCESS;
}

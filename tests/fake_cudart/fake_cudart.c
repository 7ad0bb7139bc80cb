/* The fake's state, its faults, and the calls about devices and host memory. */
#include "tests/fake_cudart/fake.h"

#include "base/random.h"
#include "tests/support/adaptor_delay.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define DEFAULT_MEMORY_BYTES ((uint64_t)256 << 20)
#define DEFAULT_GRANULARITY_BYTES ((uint64_t)64 << 10)
#define MACHINE_PAGE ((uintptr_t)4096)
#define DRIVER_VERSION 12050 /* oldest supported version: newer calls are not found */

struct fake fake = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local int last_error;
static _Thread_local int current_device;

void fake_lock(void)
{
    pthread_mutex_lock(&fake.lock);
}

void fake_unlock(void)
{
    pthread_mutex_unlock(&fake.lock);
}

int fake_current(void)
{
    return current_device;
}

int fake_cudart_current(void)
{
    return current_device;
}

void fake_cudart_make_current(int ordinal)
{
    current_device = ordinal;
}

static void complete_machine(void)
{
    if (fake.machine.memory_bytes == 0) {
        fake.machine.memory_bytes = DEFAULT_MEMORY_BYTES;
    }
    if (fake.machine.granularity_bytes == 0) {
        fake.machine.granularity_bytes = DEFAULT_GRANULARITY_BYTES;
    }
    if (fake.machine.device_count == 0) {
        fake.machine.device_count = 1;
    }
}

/* Creates the underlying host device. Not before the first call, since that is in the process that
   uses the device, and threads do not survive a fork. Pre: the lock is held. */
static bool make_host(void)
{
    struct device_options options = {0};

    complete_machine();
    options.memory_bytes = fake.machine.memory_bytes;
    options.page_bytes = fake.machine.granularity_bytes;
    if (host_device_create(&options, &fake.host, NULL, 0) != CAPU_OK) {
        return false;
    }
    if (fake.machine.delay_seed != 0) {
        struct adaptor_delay_plan plan = {
            .seed = fake.machine.delay_seed, .longest_ns = 200000, .one_in = 8};

        return adaptor_delay_create(fake.host, &plan, &fake.host) == CAPU_OK;
    }
    return true;
}

/* Whether this call must fail. Pre: the lock is held. */
static bool is_hit(enum fake_cudart_call call)
{
    const struct fake_cudart_fault *fault = &fake.fault;
    bool is_due;

    if (!fake.is_armed || (fault->call != FAKE_CUDART_ANY_CALL && fault->call != call)) {
        return false;
    }
    fake.calls++;
    if (fault->is_lasting && fake.hits > 0) {
        is_due = true;
    } else if (fault->number > 0) {
        is_due = fake.calls == fault->number;
    } else {
        is_due = fault->one_in > 0 && random_next(&fake.random) % fault->one_in == 0;
    }
    fake.hits += is_due ? 1 : 0;
    return is_due;
}

int fake_enter(enum fake_cudart_call call)
{
    bool is_lost = false;
    bool was_lost = false;
    int error = 0;

    fake_lock();
    fake.calls_of[call]++;
    if (fake.machine.has_no_driver) {
        error = cudaErrorInsufficientDriver;
    } else if (fake.host == NULL && !make_host()) {
        error = cudaErrorMemoryAllocation;
    } else if (fake.sticky != 0) {
        error = fake.sticky;
        was_lost = true;
    } else if (is_hit(call)) {
        error = fake.fault.error;
        is_lost = fake.fault.is_sticky;
    }
    fake_unlock();
    if (is_lost) {
        fake_lose(error); /* ends waits for a value, too */
    }
    if (is_lost || was_lost) {
        /* Nothing runs on a lost device any more, so the program may free memory that pending work
           would use: what one stream lost it with may have left work of others running. */
        fake_drain();
    }
    return error;
}

void fake_lose(int error)
{
    fake_lock();
    if (fake.sticky == 0) {
        fake.sticky = error;
    }
    fake_unlock();
}

cudaError_t fake_leave(int error)
{
    if (error != 0) {
        last_error = error;
    }
    return (cudaError_t)error;
}

const char *fake_cudart_name(enum fake_cudart_call call)
{
#define CALL_NAME(name) #name,
    static const char *const names[] = {FAKE_CUDART_CALLS(CALL_NAME)};
#undef CALL_NAME

    return (unsigned)call < FAKE_CUDART_CALL_COUNT ? names[call] : "any";
}

void fake_cudart_reset(const struct fake_cudart_machine *machine)
{
    fake_streams_finish();
    fake_memory_finish();
    while (fake.registered != NULL) {
        struct fake_registered *next = fake.registered->next;

        if (fake.registered->is_own) {
            free(fake.registered->address);
        }
        free(fake.registered);
        fake.registered = next;
    }
    device_destroy(fake.host);
    fake = (struct fake){.lock = PTHREAD_MUTEX_INITIALIZER};
    if (machine != NULL) {
        fake.machine = *machine;
    }
    last_error = 0;
    current_device = 0;
}

void fake_cudart_arm(const struct fake_cudart_fault *fault)
{
    fake_lock();
    fake.is_armed = fault != NULL;
    if (fault != NULL) {
        fake.fault = *fault;
        fake.random = fault->seed;
        fake.calls = 0;
        fake.hits = 0;
    }
    fake_unlock();
}

/* Reads a counter. */
static uint64_t read_count(const uint64_t *count)
{
    uint64_t read;

    fake_lock();
    read = *count;
    fake_unlock();
    return read;
}

bool fake_cudart_is_lost(void)
{
    bool is_lost;

    fake_lock();
    is_lost = fake.sticky != 0;
    fake_unlock();
    return is_lost;
}

uint64_t fake_cudart_calls(void)
{
    return read_count(&fake.calls);
}

uint64_t fake_cudart_hits(void)
{
    return read_count(&fake.hits);
}

uint64_t fake_cudart_calls_of(enum fake_cudart_call call)
{
    return read_count(&fake.calls_of[call]);
}

unsigned fake_cudart_event_flags(void)
{
    return fake.event_flags;
}

size_t fake_cudart_access_count(void)
{
    return fake.access_count;
}

bool fake_cudart_is_exportable(void)
{
    return fake.is_exportable;
}

uint64_t fake_cudart_timed_records(void)
{
    return fake.timed_records;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    FAKE_RUNTIME_ENTER(cudaGetDeviceCount);
    if (fake.machine.has_no_devices) {
        return fake_leave(cudaErrorNoDevice);
    }
    *count = fake.machine.device_count;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int ordinal)
{
    FAKE_RUNTIME_ENTER(cudaSetDevice);
    if (ordinal < 0 || ordinal >= fake.machine.device_count) {
        return fake_leave(cudaErrorInvalidDevice);
    }
    current_device = ordinal;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int ordinal)
{
    FAKE_RUNTIME_ENTER(cudaDeviceGetAttribute);
    if (ordinal < 0 || ordinal >= fake.machine.device_count) {
        return fake_leave(cudaErrorInvalidDevice);
    }
    if (attribute != cudaDevAttrHostNumaId) {
        return fake_leave(cudaErrorInvalidValue);
    }
    *value = fake.machine.host_node;
    return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int ordinal, int peer)
{
    FAKE_RUNTIME_ENTER(cudaDeviceCanAccessPeer);
    if (ordinal < 0 || ordinal >= fake.machine.device_count || peer < 0 ||
        peer >= fake.machine.device_count) {
        return fake_leave(cudaErrorInvalidDevice);
    }
    *can = fake.machine.has_peers && ordinal != peer;
    return cudaSuccess;
}

/* The primary context of device n is n + 1 here. */
CUresult cuCtxGetCurrent(CUcontext *context)
{
    *context =
        (CUcontext)(uintptr_t)(current_device == FAKE_CUDART_FOREIGN ? 1000 : current_device + 1);
    return CUDA_SUCCESS;
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    FAKE_RUNTIME_ENTER_UNSAFE(cudaMemGetInfo);
    fake_lock();
    *total_bytes = (size_t)fake.machine.memory_bytes;
    *free_bytes = (size_t)(fake.machine.memory_bytes - fake.used_bytes);
    fake_unlock();
    return cudaSuccess;
}

/* Without a driver this fails and leaves *entry unchanged, as CUDA does. */
cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **entry, unsigned int version,
                                             unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *result)
{
    FAKE_RUNTIME_ENTER(cudaGetDriverEntryPointByVersion);
    if (flags != cudaEnableDefault || version > DRIVER_VERSION) {
        return fake_leave(cudaErrorInvalidValue);
    }
    if (fake.machine.missing == NULL || strcmp(symbol, fake.machine.missing) != 0) {
#define FIND(name, parameters)                            \
    if (strcmp(symbol, #name) == 0 && version >= 10020) { \
        CUresult(*found) parameters = name;               \
        memcpy(entry, &found, sizeof(found));             \
        if (result != NULL) {                             \
            *result = cudaDriverEntryPointSuccess;        \
        }                                                 \
        return cudaSuccess;                               \
    }
        FAKE_DRIVER_CALLS(FIND)
        FAKE_DRIVER_CONTEXT_CALLS(FIND)
        FAKE_DRIVER_WAIT_CALLS(FIND)
#undef FIND
    }
    /* If the symbol is not found, the call still succeeds; only *result and *entry show it. */
    *entry = NULL;
    if (result != NULL) {
        *result = cudaDriverEntryPointSymbolNotFound;
    }
    return cudaSuccess;
}

/* Adds a range of pinned host memory. */
static int enter_pinned(char *address, size_t bytes, bool is_own)
{
    struct fake_registered *made = calloc(1, sizeof(*made));
    int error = 0;

    if (made == NULL) {
        return cudaErrorMemoryAllocation;
    }
    *made = (struct fake_registered){NULL, address, bytes, is_own};
    fake_lock();
    for (const struct fake_registered *other = fake.registered; other != NULL && error == 0;
         other = other->next) {
        if (other->address < address + bytes && address < other->address + other->bytes) {
            error = cudaErrorHostMemoryAlreadyRegistered;
        }
    }
    if (error == 0) {
        made->next = fake.registered;
        fake.registered = made;
    }
    fake_unlock();
    if (error != 0) {
        free(made);
    }
    return error;
}

/* Removes a range of pinned host memory. False if there is no such range. */
static bool leave_pinned(void *address, bool is_own)
{
    struct fake_registered **link = &fake.registered;
    struct fake_registered *found;

    fake_lock();
    while (*link != NULL && ((*link)->address != address || (*link)->is_own != is_own)) {
        link = &(*link)->next;
    }
    found = *link;
    if (found != NULL) {
        *link = found->next;
    }
    fake_unlock();
    free(found);
    return found != NULL;
}

bool fake_is_half_pinned(const void *address, uint64_t bytes)
{
    const char *at = address;

    for (const struct fake_registered *one = fake.registered; one != NULL; one = one->next) {
        if (one->address < at + bytes && at < one->address + one->bytes) {
            return at < one->address || at + bytes > one->address + one->bytes;
        }
    }
    return false;
}

bool fake_is_pinned(const void *address, uint64_t bytes)
{
    const char *at = address;

    for (const struct fake_registered *one = fake.registered; one != NULL; one = one->next) {
        if (at >= one->address && at + bytes <= one->address + one->bytes) {
            return true;
        }
    }
    return false;
}

/* Whether registered memory is still mapped. */
static bool is_there(char *address)
{
    uint64_t bytes = 0;
    char *start = (char *)((uintptr_t)address & ~(MACHINE_PAGE - 1));

    fake_lock();
    for (const struct fake_registered *one = fake.registered; one != NULL; one = one->next) {
        bytes = one->address == address ? one->bytes : bytes;
    }
    fake_unlock();
    return msync(start, (size_t)(address - start) + bytes, MS_ASYNC) == 0;
}

cudaError_t cudaHostRegister(void *address, size_t bytes, unsigned int flags)
{
    FAKE_RUNTIME_ENTER_UNSAFE(cudaHostRegister);
    if (address == NULL || bytes == 0 || (flags & ~(unsigned)cudaHostRegisterPortable) != 0) {
        return fake_leave(cudaErrorInvalidValue);
    }
    return fake_leave(enter_pinned(address, bytes, false));
}

cudaError_t cudaHostUnregister(void *address)
{
    FAKE_RUNTIME_ENTER_UNSAFE(cudaHostUnregister);
    if (!is_there(address)) { /* CUDA would continue with pages that the program no longer owns */
        return fake_leave(cudaErrorInvalidValue);
    }
    return fake_leave(leave_pinned(address, false) ? cudaSuccess
                                                   : cudaErrorHostMemoryNotRegistered);
}

cudaError_t cudaHostAlloc(void **address, size_t bytes, unsigned int flags)
{
    char *made;
    int error;

    FAKE_RUNTIME_ENTER_UNSAFE(cudaHostAlloc);
    if (bytes == 0 || (flags & ~(unsigned)cudaHostAllocPortable) != 0) {
        return fake_leave(cudaErrorInvalidValue);
    }
    /* Whole pages of the machine, as CUDA allocates them. */
    made = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    if (made == NULL) {
        return fake_leave(cudaErrorMemoryAllocation);
    }
    error = enter_pinned(made, bytes, true);
    if (error != 0) {
        free(made);
        return fake_leave(error);
    }
    *address = made;
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *address)
{
    FAKE_RUNTIME_ENTER_UNSAFE(cudaFreeHost);
    if (!leave_pinned(address, true)) {
        return fake_leave(cudaErrorInvalidValue);
    }
    free(address);
    return cudaSuccess;
}

cudaError_t cudaGetLastError(void)
{
    int error = last_error;

    fake_lock();
    last_error = fake.sticky;
    fake_unlock();
    return (cudaError_t)error;
}

int fake_cudart_last_error(void)
{
    return last_error;
}

cudaError_t cudaPeekAtLastError(void)
{
    return (cudaError_t)last_error;
}

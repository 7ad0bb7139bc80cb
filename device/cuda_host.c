/*
 * The cuda device's host memory: pinned, so that copies run beside everything else.
 *
 * Memory is mapped, touched by several threads at once and then registered, since cudaHostAlloc
 * clears and pins page by page on one thread (others report that it takes five times as long). It
 * comes from the NUMA node nearest to the device if that is known and has room. It has exactly the
 * size that was asked for, while the runtime would round large sizes up. It is never
 * write-combined, because the host also reads it.
 *
 * Where the driver does not register memory of ours, as in some sandboxes, it allocates the memory
 * itself. Where memory is short, pinning is repeated for a while.
 *
 * Any thread: the chunks have a lock, one flag is atomic, the rest is constant.
 */
#define _GNU_SOURCE
#include "device/cuda.h"

#include "base/thread.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { TOUCH_THREADS = 4, PIN_WAITS = 5 };
#define TOUCH_BYTES_MIN ((uint64_t)64 << 20) /* below this, starting threads costs more */
#define POLICY_PREFERRED 1 /* MPOL_PREFERRED of <numaif.h>, a package of its own */

struct part {
    char *address;
    uint64_t bytes;
    capu_status status;
};

/* Prefers memory of the node. If it has none left, or the kernel refuses, memory comes from any. */
static void prefer_node(void *address, uint64_t bytes, int node)
{
    const unsigned long bits = 8 * sizeof(unsigned long);
    unsigned long mask[16] = {0};

    if (node >= 0 && (unsigned long)node < bits * (sizeof(mask) / sizeof(mask[0]))) {
        mask[(unsigned long)node / bits] |= 1ul << ((unsigned long)node % bits);
        (void)syscall(SYS_mbind, address, bytes, POLICY_PREFERRED, mask, 8 * sizeof(mask), 0);
    }
}

/* Makes the kernel provide the memory, so that lack of it is a status here. */
static void *touch(void *argument)
{
    struct part *part = argument;

    part->status = CAPU_OK;
#ifdef MADV_POPULATE_WRITE
    while (madvise(part->address, part->bytes, MADV_POPULATE_WRITE) != 0) {
        if (errno == EINTR || errno == EAGAIN) {
            continue;
        }
        /* Linux before 5.14 does not know this advice; registering then provides the memory. */
        part->status = errno == EINVAL ? CAPU_OK : CAPU_NO_HOST_MEMORY;
        break;
    }
#endif
    return NULL;
}

static capu_status touch_all(char *address, uint64_t bytes)
{
    const uint64_t machine_page = (uint64_t)sysconf(_SC_PAGESIZE);
    size_t count = bytes < TOUCH_BYTES_MIN ? 1 : TOUCH_THREADS;
    uint64_t step = (bytes / count + machine_page - 1) & ~(machine_page - 1);
    struct part parts[TOUCH_THREADS];
    pthread_t threads[TOUCH_THREADS];
    bool is_running[TOUCH_THREADS] = {false};
    capu_status status = CAPU_OK;

    for (size_t i = 0; i < count; i++) {
        parts[i].address = address + i * step;
        parts[i].bytes = i + 1 < count ? step : bytes - i * step;
        /* This thread touches the last part, and any for which no thread can be started. */
        is_running[i] = i + 1 < count && thread_start(&threads[i], touch, &parts[i]);
        if (!is_running[i]) {
            touch(&parts[i]);
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (is_running[i]) {
            pthread_join(threads[i], NULL);
        }
        if (parts[i].status != CAPU_OK) {
            status = parts[i].status;
        }
    }
    return status;
}

static capu_status alloc_registered(struct cuda_device *cuda, uint64_t bytes, void **address)
{
    void *memory = NULL;
    capu_status status = chunks_alloc(&cuda->chunks, bytes, true, &memory);

    if (status != CAPU_OK) {
        return status;
    }
    prefer_node(memory, bytes, cuda->host_node);
    status = touch_all(memory, bytes);
    if (status == CAPU_OK) {
        status = CUDA_CALL(cuda, CAPU_NO_HOST_MEMORY,
                           cudaHostRegister(memory, (size_t)bytes, cudaHostRegisterPortable));
    }
    if (status != CAPU_OK) {
        chunks_free(&cuda->chunks, memory, bytes);
        return status;
    }
    *address = memory;
    return CAPU_OK;
}

static capu_status alloc_by_driver(struct cuda_device *cuda, uint64_t bytes, void **address)
{
    void *memory = NULL;
    capu_status status = CUDA_CALL(cuda, CAPU_NO_HOST_MEMORY,
                                   cudaHostAlloc(&memory, (size_t)bytes, cudaHostAllocPortable));

    if (status == CAPU_OK) {
        status = chunks_borrow(&cuda->chunks, memory, bytes);
        if (status != CAPU_OK) {
            (void)CUDA_CALL(cuda, CAPU_DEVICE_FAILED, cudaFreeHost(memory));
        }
    }
    if (status == CAPU_OK) {
        *address = memory;
    }
    return status;
}

/* Waits a total of host_wait_ns, twice as long each time: true until then. */
static bool wait_for_memory(const struct cuda_device *cuda, unsigned attempt)
{
    uint64_t ns = (cuda->host_wait_ns >> PIN_WAITS) << attempt;
    struct timespec left = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};

    while (attempt < PIN_WAITS && nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
    return attempt < PIN_WAITS;
}

/* Where memory is short, it is waited for: the machine may take it from others, or get more. Then
   the driver may have some left. Only once: who waits for a budget that the machine does not have
   must not wait at each piece of it. */
static capu_status alloc_patiently(struct cuda_device *cuda, uint64_t bytes, void **address)
{
    bool is_patient = !atomic_load_explicit(&cuda->has_waited_in_vain, memory_order_relaxed);
    capu_status status = alloc_registered(cuda, bytes, address);

    for (unsigned attempt = 0;
         is_patient && status == CAPU_NO_HOST_MEMORY && wait_for_memory(cuda, attempt); attempt++) {
        status = alloc_registered(cuda, bytes, address);
    }
    if (status == CAPU_NO_HOST_MEMORY && is_patient) {
        status = alloc_by_driver(cuda, bytes, address);
    }
    atomic_store_explicit(&cuda->has_waited_in_vain, status == CAPU_NO_HOST_MEMORY,
                          memory_order_relaxed);
    return status;
}

/* Pinned memory is no part of a graph. So this thread may pin it while the program captures a
   stream in a mode that prohibits other threads, or this one, from doing so. Returns the mode
   before. */
static enum cudaStreamCaptureMode exchange_mode(enum cudaStreamCaptureMode mode)
{
    if (cudaThreadExchangeStreamCaptureMode(&mode) != cudaSuccess) {
        (void)cudaGetLastError();
        mode = cudaStreamCaptureModeGlobal;
    }
    return mode;
}

static capu_status alloc(struct device *device, uint64_t bytes, void **address)
{
    struct cuda_device *cuda = cuda_of(device);
    capu_status status = cuda_activate(cuda);

    if (status != CAPU_OK) {
        return status;
    }
    if (!atomic_load_explicit(&cuda->has_no_registering, memory_order_relaxed)) {
        status = alloc_patiently(cuda, bytes, address);
        if (status != CAPU_DEVICE_FAILED) {
            return status;
        }
    }
    status = alloc_by_driver(cuda, bytes, address);
    if (status == CAPU_OK) {
        /* Registering was refused and this works, so it is not tried again. */
        atomic_store_explicit(&cuda->has_no_registering, true, memory_order_relaxed);
    }
    return status;
}

capu_status cuda_host_alloc(struct device *device, uint64_t bytes, void **address)
{
    enum cudaStreamCaptureMode before = exchange_mode(cudaStreamCaptureModeRelaxed);
    capu_status status = alloc(device, bytes, address);

    (void)exchange_mode(before);
    return status;
}

static capu_status unpin(struct cuda_device *cuda, void *address)
{
    return chunks_is_borrowed(&cuda->chunks, address)
               ? CUDA_CALL(cuda, CAPU_DEVICE_FAILED, cudaFreeHost(address))
               : CUDA_CALL(cuda, CAPU_DEVICE_FAILED, cudaHostUnregister(address));
}

void cuda_host_free(struct device *device, void *address, uint64_t bytes)
{
    struct cuda_device *cuda = cuda_of(device);

    if (chunks_hold(&cuda->chunks, address, bytes)) {
        capu_status status = unpin(cuda, address);

        /* Memory that the driver still considers pinned must not be unmapped. */
        if (status == CAPU_OK || status == CAPU_DEVICE_LOST) {
            chunks_free(&cuda->chunks, address, bytes);
        }
    }
}

void cuda_host_finish(struct cuda_device *cuda)
{
    for (size_t index = 0; index < cuda->chunks.count; index++) {
        (void)unpin(cuda, cuda->chunks.sorted[index].address);
    }
    chunks_finish(&cuda->chunks);
}

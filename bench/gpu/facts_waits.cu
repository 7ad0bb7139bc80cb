/*
 * Measurement 13: a stream that waits on the device for a flag in pinned host memory, which another
 * thread sets without a call of CUDA. What it costs, and what goes on meanwhile.
 */
#include "bench/gpu/facts.cuh"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

/* Sets the flag after a while, whatever the thread that called CUDA is waiting for. */
struct setter {
    volatile uint32_t *flag;
    uint32_t value;
    uint64_t after_ns;
    double set_s; /* when that was */
};

#define LATER_NS UINT64_C(300000000)

static void *set_later(void *argument)
{
    struct setter *setter = (struct setter *)argument;
    struct timespec pause = {0, (long)setter->after_ns};

    nanosleep(&pause, NULL);
    setter->set_s = facts_now_s();
    __atomic_store_n(setter->flag, setter->value, __ATOMIC_RELEASE);
    return NULL;
}

/* Memory that the measurements use. */
struct parts {
    uint32_t *flag;
    char *pinned;
    char *device;
    void *pageable;
};

/* Something that should go on while another stream waits; false: it failed. */
typedef bool (*action)(struct facts *facts, const struct parts *parts);

static bool run_kernel(struct facts *facts, const struct parts *parts)
{
    facts_fill(facts->other, parts->device, MIB);
    return cudaStreamSynchronize(facts->other) == cudaSuccess;
}

static bool copy_out(struct facts *facts, const struct parts *parts)
{
    return cudaMemcpyAsync(parts->pinned, parts->device, MIB, cudaMemcpyDeviceToHost,
                           facts->other) == cudaSuccess &&
           cudaStreamSynchronize(facts->other) == cudaSuccess;
}

static bool copy_in(struct facts *facts, const struct parts *parts)
{
    return cudaMemcpyAsync(parts->device, parts->pinned, MIB, cudaMemcpyHostToDevice,
                           facts->other) == cudaSuccess &&
           cudaStreamSynchronize(facts->other) == cudaSuccess;
}

static bool map_memory(struct facts *facts, const struct parts *parts)
{
    struct facts_range range;

    (void)parts;
    if (facts_range_make(facts, facts->granularity, facts->granularity, &range) != CUDA_SUCCESS) {
        return false;
    }
    facts->driver.call_cuMemUnmap(range.address, range.bytes);
    facts->driver.call_cuMemRelease(range.handles[0]);
    facts->driver.call_cuMemAddressFree(range.address, range.bytes);
    free(range.handles);
    return true;
}

static bool pin_memory(struct facts *facts, const struct parts *parts)
{
    (void)facts;
    return cudaHostRegister(parts->pageable, MIB, cudaHostRegisterDefault) == cudaSuccess &&
           cudaHostUnregister(parts->pageable) == cudaSuccess;
}

static bool allocate(struct facts *facts, const struct parts *parts)
{
    void *address = NULL;

    (void)facts;
    (void)parts;
    if (cudaMalloc(&address, MIB) != cudaSuccess) {
        return false;
    }
    cudaFree(address);
    return true;
}

static const struct {
    const char *what;
    action act;
} actions[] = {
    {"a kernel on another stream", run_kernel},
    {"a copy out on another stream", copy_out},
    {"a copy in on another stream", copy_in},
    {"mapping memory", map_memory},
    {"pinning memory", pin_memory},
    {"cudaMalloc and cudaFree", allocate},
};

/* Whether the action ends before the flag is set for which the stream waits. */
static void try_beside(struct facts *facts, const struct parts *parts, size_t number)
{
    struct setter setter = {parts->flag, 1, LATER_NS, 0.0};
    pthread_t thread;
    double end;
    bool works;

    cudaDeviceSynchronize();
    __atomic_store_n(parts->flag, 0, __ATOMIC_RELEASE);
    if (facts->driver.call_cuStreamWaitValue32(facts->stream, (CUdeviceptr)parts->flag, 1,
                                               CU_STREAM_WAIT_VALUE_GEQ) != CUDA_SUCCESS) {
        facts_text(facts, actions[number].what, "no wait could be enqueued");
        return;
    }
    if (pthread_create(&thread, NULL, set_later, &setter) != 0) {
        set_later(&setter);
        return;
    }
    works = actions[number].act(facts, parts);
    end = facts_now_s();
    pthread_join(thread, NULL);
    facts_text(facts, actions[number].what,
               !works                ? "fails while a stream waits"
               : end <= setter.set_s ? "goes on while a stream waits"
                                     : "waited for the stream that waits");
    cudaStreamSynchronize(facts->stream);
}

/* From the store of a flag until the host sees that the stream has gone on, and what it costs to
   enqueue the wait. */
static void measure_costs(struct facts *facts, uint32_t *flag)
{
    enum { ROUNDS = 50 };
    double enqueue[ROUNDS];
    double latency[ROUNDS];

    for (int round = 0; round < ROUNDS; round++) {
        struct timespec pause = {0, 500000};
        double begin = facts_now_s();

        __atomic_store_n(flag, 0, __ATOMIC_RELEASE);
        facts->driver.call_cuStreamWaitValue32(facts->stream, (CUdeviceptr)flag, 1,
                                               CU_STREAM_WAIT_VALUE_GEQ);
        enqueue[round] = (facts_now_s() - begin) * 1e6;
        nanosleep(&pause, NULL);
        begin = facts_now_s();
        __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
        while (cudaStreamQuery(facts->stream) == cudaErrorNotReady) {
        }
        latency[round] = (facts_now_s() - begin) * 1e6;
    }
    facts_value(facts, "enqueueing a wait for a flag", facts_median(enqueue, ROUNDS), "us");
    facts_value(facts, "from the store of the flag until the host sees the stream go on",
                facts_median(latency, ROUNDS), "us");
}

/* 13: streams that wait for a flag. */
void facts_waits(struct facts *facts)
{
    struct parts parts = {NULL, NULL, NULL, MAP_FAILED};
    CUresult result;

    parts.pageable = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (parts.pageable == MAP_FAILED ||
        cudaHostAlloc((void **)&parts.flag, 4096, cudaHostAllocDefault) != cudaSuccess ||
        cudaHostAlloc((void **)&parts.pinned, MIB, cudaHostAllocDefault) != cudaSuccess ||
        cudaMalloc((void **)&parts.device, MIB) != cudaSuccess) {
        facts_text(facts, "memory", "none for a flag and copies");
    } else {
        run_kernel(facts, &parts); /* loads the kernel */
        __atomic_store_n(parts.flag, 1, __ATOMIC_RELEASE);
        result = facts->driver.call_cuStreamWaitValue32(facts->stream, (CUdeviceptr)parts.flag, 1,
                                                        CU_STREAM_WAIT_VALUE_GEQ);
        facts_text(facts, "a stream waits for a flag in pinned memory", facts_error(facts, result));
        if (result == CUDA_SUCCESS) {
            cudaStreamSynchronize(facts->stream);
            measure_costs(facts, parts.flag);
            for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
                try_beside(facts, &parts, i);
            }
        }
    }
    cudaFree(parts.device);
    if (parts.pinned != NULL) {
        cudaFreeHost(parts.pinned);
    }
    if (parts.flag != NULL) {
        cudaFreeHost(parts.flag);
    }
    if (parts.pageable != MAP_FAILED) {
        munmap(parts.pageable, MIB);
    }
}

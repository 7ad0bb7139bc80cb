/* Measurements 5, 6, 7 and 8: copies, events and pinned memory. */
#include "bench/gpu/facts.cuh"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* Memory on both sides for copies, filled with numbers. */
struct ends {
    char *device;
    char *host;
};

static bool open_ends(struct facts *facts, struct ends *ends, size_t device_bytes,
                      size_t host_bytes)
{
    *ends = (struct ends){};
    if (cudaMalloc((void **)&ends->device, device_bytes) != cudaSuccess ||
        cudaHostAlloc((void **)&ends->host, host_bytes, cudaHostAllocDefault) != cudaSuccess) {
        facts_text(facts, "memory", "none for copies");
        cudaFree(ends->device);
        return false;
    }
    facts_fill(facts->stream, ends->device, device_bytes);
    cudaMemcpyAsync(ends->host, ends->device, host_bytes < device_bytes ? host_bytes : device_bytes,
                    cudaMemcpyDeviceToHost, facts->stream);
    cudaStreamSynchronize(facts->stream);
    return true;
}

static void close_ends(struct ends *ends)
{
    cudaFreeHost(ends->host);
    cudaFree(ends->device);
}

/* A kernel holds a stream back until everything is enqueued, for longer than the host needs.
   Otherwise small copies would run at the pace of the host, and would end before the other
   direction begins. */
#define GATE_NS UINT64_C(3000000)

/* The rate of copies in one direction: the median of five rounds after one that is not counted. */
static double one_way_gb_per_s(cudaStream_t stream, void *device, void *host, size_t bytes,
                               cudaMemcpyKind kind, int copies)
{
    void *to = kind == cudaMemcpyHostToDevice ? device : host;
    void *from = kind == cudaMemcpyHostToDevice ? host : device;
    double ms[6];

    for (int round = 0; round < 6; round++) {
        struct facts_timer timer;

        facts_spin(stream, GATE_NS);
        timer = facts_timer_begin(stream);

        for (int i = 0; i < copies; i++) {
            cudaMemcpyAsync(to, from, bytes, kind, stream);
        }
        ms[round] = facts_timer_end_ms(&timer);
    }
    return copies * (double)bytes / facts_median(ms + 1, 5) * 1e-6;
}

/* The rate of copies in one direction while the other direction is busy: its copies are enqueued
   first and last longer. Timed with events. */
static double beside_other_gb_per_s(struct facts *facts, const struct ends *ends, size_t bytes,
                                    cudaMemcpyKind kind, int copies)
{
    bool is_in = kind == cudaMemcpyHostToDevice;
    double ms[3];

    for (int round = 0; round < 3; round++) {
        struct facts_timer timer;

        cudaDeviceSynchronize();
        facts_spin(facts->other, GATE_NS);
        facts_spin(facts->stream, GATE_NS);
        for (int i = 0; i < 3 * copies; i++) {
            if (is_in) {
                cudaMemcpyAsync(ends->host + bytes, ends->device + bytes, bytes,
                                cudaMemcpyDeviceToHost, facts->other);
            } else {
                cudaMemcpyAsync(ends->device + bytes, ends->host + bytes, bytes,
                                cudaMemcpyHostToDevice, facts->other);
            }
        }
        timer = facts_timer_begin(facts->stream);
        for (int i = 0; i < copies; i++) {
            cudaMemcpyAsync(is_in ? ends->device : ends->host, is_in ? ends->host : ends->device,
                            bytes, kind, facts->stream);
        }
        ms[round] = facts_timer_end_ms(&timer);
    }
    cudaDeviceSynchronize();
    return copies * (double)bytes / facts_median(ms, 3) * 1e-6;
}

/* Pinned memory of each NUMA node, as a preference, so that a full node is not an error. */
static void measure_nodes(struct facts *facts, char *device)
{
    const size_t bytes = 256 * MIB;

    for (int node = 0; node < 64; node++) {
        unsigned long mask = 1ul << node;
        char path[64];
        char what[64];
        void *memory;

        snprintf(path, sizeof(path), "/sys/devices/system/node/node%d", node);
        if (access(path, F_OK) != 0) {
            continue;
        }
        memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) {
            return;
        }
        syscall(SYS_mbind, memory, bytes, 1 /* MPOL_PREFERRED */, &mask, 64, 0);
        memset(memory, 1, bytes);
        if (cudaHostRegister(memory, bytes, cudaHostRegisterDefault) == cudaSuccess) {
            cudaMemcpy(memory, device, bytes, cudaMemcpyDeviceToHost);
            snprintf(what, sizeof(what), "host to device, from node %d", node);
            facts_value(
                facts, what,
                one_way_gb_per_s(facts->stream, device, memory, bytes, cudaMemcpyHostToDevice, 4),
                "GB/s");
            snprintf(what, sizeof(what), "device to host, to node %d", node);
            facts_value(
                facts, what,
                one_way_gb_per_s(facts->stream, device, memory, bytes, cudaMemcpyDeviceToHost, 4),
                "GB/s");
            cudaHostUnregister(memory);
        } else {
            facts_text(facts, path, "memory of it is not registered");
        }
        munmap(memory, bytes);
    }
}

/* 5: the link in one direction and in both at once, and the cost of a copy itself. */
void facts_link(struct facts *facts)
{
    static const size_t sizes[] = {64 << 10, MIB, 16 * MIB, 256 * MIB, GIB};
    const size_t count = sizeof(sizes) / sizeof(sizes[0]) - (facts->is_quick ? 1 : 0);
    struct ends ends;
    double begin;
    char what[64];

    if (!open_ends(facts, &ends, 2 * sizes[count - 1], 2 * sizes[count - 1])) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        int copies = sizes[i] < 16 * MIB ? 100 : sizes[i] < GIB ? 8 : 2;

        for (int is_in = 0; is_in < 2; is_in++) {
            cudaMemcpyKind kind = is_in ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost;
            const char *name = is_in ? "host to device" : "device to host";
            double alone =
                one_way_gb_per_s(facts->stream, ends.device, ends.host, sizes[i], kind, copies);
            double beside = beside_other_gb_per_s(facts, &ends, sizes[i], kind, copies);

            snprintf(what, sizeof(what), "%s, %zu KiB", name, sizes[i] >> 10);
            facts_value(facts, what, alone, "GB/s");
            snprintf(what, sizeof(what), "%s beside the other way, %zu KiB", name, sizes[i] >> 10);
            facts_value(facts, what, beside, "GB/s");
        }
    }
    begin = facts_now_s();
    for (int i = 0; i < 200; i++) {
        cudaMemcpyAsync(ends.device, ends.host, 4096, cudaMemcpyHostToDevice, facts->stream);
        cudaStreamSynchronize(facts->stream);
    }
    facts_value(facts, "a copy of 4 KiB and a wait", (facts_now_s() - begin) / 200 * 1e6, "us");
    measure_nodes(facts, ends.device);
    close_ends(&ends);
}

enum kernel_kind { KERNEL_NONE, KERNEL_COPIES, KERNEL_COMPUTES, KERNEL_KINDS };
enum { BESIDE_COPIES = 8, BESIDE_KERNELS = 20, BESIDE_ROUNDS = 3 };
#define BESIDE_BYTES (256 * MIB)

/* Keeps the device busy for a while, with data after the first two buffers, which the copies use.
 */
static void enqueue_kernels(struct facts *facts, enum kernel_kind kind, char *device, int count)
{
    for (int i = 0; i < count; i++) {
        if (kind == KERNEL_COMPUTES) {
            facts_compute(facts->stream, (float *)(device + 2 * BESIDE_BYTES), 32 * MIB, 1000);
        } else if (kind == KERNEL_COPIES) {
            facts_copy(facts->stream, device + 2 * BESIDE_BYTES, device + 3 * BESIDE_BYTES,
                       BESIDE_BYTES);
        }
    }
}

static void enqueue_copies(cudaStream_t stream, const struct ends *ends, bool is_in, int count)
{
    for (int i = 0; i < count; i++) {
        if (is_in) {
            cudaMemcpyAsync(ends->device, ends->host, BESIDE_BYTES, cudaMemcpyHostToDevice, stream);
        } else {
            cudaMemcpyAsync(ends->host + BESIDE_BYTES, ends->device + BESIDE_BYTES, BESIDE_BYTES,
                            cudaMemcpyDeviceToHost, stream);
        }
    }
}

/* Milliseconds of kernels while copies run that outlast them. */
static double kernels_ms(struct facts *facts, const struct ends *ends, cudaStream_t streams[2],
                         enum kernel_kind kind, unsigned copies)
{
    struct facts_timer timer;
    double ms;

    cudaDeviceSynchronize();
    for (int is_in = 0; is_in < 2; is_in++) {
        if (copies >> is_in & 1) {
            enqueue_copies(streams[is_in], ends, is_in, BESIDE_COPIES);
        }
    }
    timer = facts_timer_begin(facts->stream);
    enqueue_kernels(facts, kind, ends->device, BESIDE_KERNELS);
    ms = facts_timer_end_ms(&timer);
    cudaDeviceSynchronize();
    return ms;
}

/* The rate of copies in one direction while kernels run and, if `copies` has both, copies in the
   other direction, all of which outlast them. There are never more kernels than the queue of a
   stream holds, or the host would wait before it starts the copies. */
static double copies_gb_per_s(struct facts *facts, const struct ends *ends, cudaStream_t streams[2],
                              enum kernel_kind kind, unsigned copies, bool is_in)
{
    struct facts_timer timer;
    double ms;

    cudaDeviceSynchronize();
    enqueue_kernels(facts, kind, ends->device, (kind == KERNEL_COPIES ? 45 : 8) * BESIDE_KERNELS);
    if (copies >> !is_in & 1) {
        enqueue_copies(streams[!is_in], ends, !is_in, 3 * BESIDE_COPIES);
    }
    timer = facts_timer_begin(streams[is_in]);
    enqueue_copies(streams[is_in], ends, is_in, BESIDE_COPIES);
    ms = facts_timer_end_ms(&timer);
    cudaDeviceSynchronize();
    return BESIDE_COPIES * (double)BESIDE_BYTES / ms * 1e-6;
}

static void measure_beside(struct facts *facts, const struct ends *ends, cudaStream_t streams[2],
                           enum kernel_kind kind, unsigned copies)
{
    static const char *const kernels[KERNEL_KINDS] = {"none", "memory-bound", "compute-bound"};
    static const char *const ways[] = {"none", "out", "in", "both"};
    double alone[BESIDE_ROUNDS];
    double beside[BESIDE_ROUNDS];
    double rates[2] = {0.0, 0.0};
    double slower = 0.0;
    char what[96];

    if (kind != KERNEL_NONE) {
        for (int round = 0; round < BESIDE_ROUNDS; round++) {
            alone[round] = kernels_ms(facts, ends, streams, kind, 0);
            beside[round] = kernels_ms(facts, ends, streams, kind, copies);
        }
        slower = (facts_median(beside, BESIDE_ROUNDS) / facts_median(alone, BESIDE_ROUNDS) - 1.0) *
                 100.0;
        snprintf(what, sizeof(what), "%s kernel, copies %s", kernels[kind], ways[copies]);
        facts_value(facts, what, slower, "% slower");
    }
    for (int is_in = 0; is_in < 2; is_in++) {
        if (copies >> is_in & 1) {
            double rounds[BESIDE_ROUNDS];

            for (int round = 0; round < BESIDE_ROUNDS; round++) {
                rounds[round] = copies_gb_per_s(facts, ends, streams, kind, copies, is_in);
            }
            rates[is_in] = facts_median(rounds, BESIDE_ROUNDS);
            snprintf(what, sizeof(what), "copies %s%s, kernel: %s", is_in ? "in" : "out",
                     copies == 3 ? " (of both)" : "", kernels[kind]);
            facts_value(facts, what, rates[is_in], "GB/s");
        }
    }
    facts_interference_line(facts, kernels[kind], ways[copies], slower, rates[1], rates[0]);
}

/* 6: how copies and kernels slow each other down. */
void facts_interference(struct facts *facts)
{
    cudaStream_t streams[2] = {NULL, facts->other};
    struct ends ends;

    if (!open_ends(facts, &ends, 4 * BESIDE_BYTES, 2 * BESIDE_BYTES)) {
        return;
    }
    if (cudaStreamCreateWithFlags(&streams[0], cudaStreamNonBlocking) == cudaSuccess) {
        enqueue_kernels(facts, KERNEL_COPIES, ends.device, 2); /* loads the kernels */
        enqueue_kernels(facts, KERNEL_COMPUTES, ends.device, 2);
        for (int kind = 0; kind < KERNEL_KINDS; kind++) {
            for (unsigned copies = 1; copies <= 3; copies++) {
                measure_beside(facts, &ends, streams, (enum kernel_kind)kind, copies);
            }
        }
        cudaStreamDestroy(streams[0]);
    }
    close_ends(&ends);
}

static void CUDART_CB do_nothing(void *unused)
{
    (void)unused;
}

/* 7: the cost of an event on the host. */
void facts_events(struct facts *facts)
{
    const int rounds = 1000;
    cudaEvent_t timing;
    cudaEvent_t plain;
    double begin;

    cudaEventCreate(&timing);
    cudaEventCreateWithFlags(&plain, cudaEventDisableTiming);
    for (int pass = 0; pass < 2; pass++) { /* the first pass warms up */
        double us[6];

        cudaStreamSynchronize(facts->stream);
        begin = facts_now_s();
        for (int i = 0; i < rounds; i++) {
            cudaEventRecord(timing, facts->stream);
        }
        us[0] = facts_now_s() - begin;
        begin = facts_now_s();
        for (int i = 0; i < rounds; i++) {
            cudaEventRecord(plain, facts->stream);
        }
        us[1] = facts_now_s() - begin;
        begin = facts_now_s();
        for (int i = 0; i < rounds; i++) {
            cudaStreamWaitEvent(facts->other, plain, 0);
        }
        us[2] = facts_now_s() - begin;
        cudaDeviceSynchronize();
        begin = facts_now_s();
        for (int i = 0; i < rounds; i++) {
            cudaEventQuery(plain);
        }
        us[3] = facts_now_s() - begin;
        begin = facts_now_s();
        for (int i = 0; i < rounds; i++) {
            facts_spin(facts->stream, 0);
        }
        us[4] = facts_now_s() - begin;
        cudaStreamSynchronize(facts->stream);
        begin = facts_now_s();
        for (int i = 0; i < 100; i++) {
            cudaLaunchHostFunc(facts->stream, do_nothing, NULL);
        }
        cudaStreamSynchronize(facts->stream);
        us[5] = (facts_now_s() - begin) * rounds / 100;
        if (pass == 1) {
            facts_value(facts, "record, with timing", us[0] / rounds * 1e6, "us");
            facts_value(facts, "record, without timing", us[1] / rounds * 1e6, "us");
            facts_value(facts, "stream waits for an event", us[2] / rounds * 1e6, "us");
            facts_value(facts, "query", us[3] / rounds * 1e6, "us");
            facts_value(facts, "launch of an empty kernel", us[4] / rounds * 1e6, "us");
            facts_value(facts, "host function, until it has run", us[5] / rounds * 1e6, "us");
        }
    }
    cudaEventDestroy(timing);
    cudaEventDestroy(plain);
}

enum pinning { PIN_ALLOC, PIN_REGISTER, PIN_POPULATED, PIN_THREADS, PIN_HUGE, PINNINGS };
enum { TOUCHERS = 4 };

struct part {
    char *memory;
    size_t bytes;
};

static void *touch(void *argument)
{
    struct part *part = (struct part *)argument;

    if (madvise(part->memory, part->bytes, MADV_POPULATE_WRITE) != 0) {
        memset(part->memory, 1, part->bytes);
    }
    return NULL;
}

/* With that many threads, or with this one only if none can be started. */
static void touch_all(char *memory, size_t bytes, int count)
{
    struct part parts[TOUCHERS];
    pthread_t threads[TOUCHERS];
    bool runs[TOUCHERS];

    for (int i = 0; i < count; i++) {
        parts[i].memory = memory + bytes / (size_t)count * (size_t)i;
        parts[i].bytes = bytes / (size_t)count;
        runs[i] = pthread_create(&threads[i], NULL, touch, &parts[i]) == 0;
        if (!runs[i]) {
            touch(&parts[i]);
        }
    }
    for (int i = 0; i < count; i++) {
        if (runs[i]) {
            pthread_join(threads[i], NULL);
        }
    }
}

static double pin_s(enum pinning way, size_t bytes)
{
    double begin = facts_now_s();
    void *memory = NULL;
    double end;

    if (way == PIN_ALLOC) {
        if (cudaHostAlloc(&memory, bytes, cudaHostAllocDefault) != cudaSuccess) {
            return -1.0;
        }
        end = facts_now_s();
        cudaFreeHost(memory);
        return end - begin;
    }
    memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return -1.0;
    }
    if (way == PIN_HUGE) {
        madvise(memory, bytes, MADV_HUGEPAGE);
    }
    if (way != PIN_REGISTER) {
        touch_all((char *)memory, bytes, way == PIN_THREADS ? TOUCHERS : 1);
    }
    if (cudaHostRegister(memory, bytes, cudaHostRegisterDefault) != cudaSuccess) {
        munmap(memory, bytes);
        return -1.0;
    }
    end = facts_now_s();
    cudaHostUnregister(memory);
    munmap(memory, bytes);
    return end - begin;
}

/* 8: ways to pinned memory. */
void facts_pinned(struct facts *facts)
{
    static const char *const names[PINNINGS] = {"cudaHostAlloc", "register", "populate, register",
                                                "populate by four threads, register",
                                                "huge pages, populate, register"};
    size_t bytes = facts->is_quick ? GIB : 4 * GIB;

    for (int way = 0; way < PINNINGS; way++) {
        double seconds = pin_s((enum pinning)way, bytes);

        cudaGetLastError();
        if (seconds < 0.0) {
            facts_text(facts, names[way], "failed");
        } else {
            facts_value(facts, names[way], seconds / ((double)bytes / GIB), "s/GiB");
        }
    }
}

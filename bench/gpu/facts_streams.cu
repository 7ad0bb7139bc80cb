/* Measurements of streams, copies, events, pinned memory and captures: 4, 5, 6, 7, 8, 9. */
#include "bench/gpu/facts.cuh"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* 4: whether memory may be mapped while a stream is captured. */
void facts_maps_under_capture(struct facts *facts)
{
    static const struct {
        const char *name;
        cudaStreamCaptureMode mode;
    } modes[] = {{"global", cudaStreamCaptureModeGlobal},
                 {"relaxed", cudaStreamCaptureModeRelaxed}};

    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        struct facts_range range;
        cudaGraph_t graph = NULL;
        char what[64];

        if (cudaStreamBeginCapture(facts->stream, modes[i].mode) != cudaSuccess) {
            facts_text(facts, "capture", "does not begin");
            continue;
        }
        snprintf(what, sizeof(what), "create, map, set access under %s capture", modes[i].name);
        facts_text(facts, what,
                   facts_error(facts, facts_range_make(facts, 2 * facts->granularity,
                                                       facts->granularity, &range)));
        snprintf(what, sizeof(what), "the %s capture afterwards", modes[i].name);
        facts_text(facts, what, cudaGetErrorName(cudaStreamEndCapture(facts->stream, &graph)));
        if (graph != NULL) {
            cudaGraphDestroy(graph);
        }
        cudaGetLastError();
        if (range.count > 0) {
            facts_range_drop(facts, &range);
        }
    }
}

static double one_way_gb_per_s(cudaStream_t stream, void *device, void *host, size_t bytes,
                               cudaMemcpyKind kind, int rounds)
{
    struct facts_timer timer = facts_timer_begin(stream);
    void *to = kind == cudaMemcpyHostToDevice ? device : host;
    void *from = kind == cudaMemcpyHostToDevice ? host : device;

    for (int i = 0; i < rounds; i++) {
        cudaMemcpyAsync(to, from, bytes, kind, stream);
    }
    return rounds * (double)bytes / facts_timer_end_ms(&timer) * 1e-6;
}

/* Both directions at once, until both are through; what each moved over the time of both. */
static double both_ways_gb_per_s(struct facts *facts, char *device, char *host, size_t bytes,
                                 int rounds)
{
    double begin;

    cudaDeviceSynchronize();
    begin = facts_now_s();
    for (int i = 0; i < rounds; i++) {
        cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, facts->stream);
        cudaMemcpyAsync(host + bytes, device + bytes, bytes, cudaMemcpyDeviceToHost, facts->other);
    }
    cudaDeviceSynchronize();
    return rounds * (double)bytes / (facts_now_s() - begin) * 1e-9;
}

/* 5: the link, one way and both, and what a copy costs by itself. */
void facts_link(struct facts *facts)
{
    static const size_t sizes[] = {64 << 10, MIB, 16 * MIB, 256 * MIB};
    char *device = NULL;
    char *host = NULL;
    double begin;
    char what[64];

    if (cudaMalloc((void **)&device, 512 * MIB) != cudaSuccess ||
        cudaHostAlloc((void **)&host, 512 * MIB, cudaHostAllocDefault) != cudaSuccess) {
        facts_text(facts, "memory", "none for copies");
        cudaFree(device);
        return;
    }
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        int rounds = sizes[i] < 16 * MIB ? 200 : 10;

        one_way_gb_per_s(facts->stream, device, host, sizes[i], cudaMemcpyHostToDevice, 2);
        snprintf(what, sizeof(what), "host to device, %zu KiB", sizes[i] >> 10);
        facts_value(
            facts, what,
            one_way_gb_per_s(facts->stream, device, host, sizes[i], cudaMemcpyHostToDevice, rounds),
            "GB/s");
        snprintf(what, sizeof(what), "device to host, %zu KiB", sizes[i] >> 10);
        facts_value(
            facts, what,
            one_way_gb_per_s(facts->stream, device, host, sizes[i], cudaMemcpyDeviceToHost, rounds),
            "GB/s");
        snprintf(what, sizeof(what), "both at once, each way, %zu KiB", sizes[i] >> 10);
        facts_value(facts, what, both_ways_gb_per_s(facts, device, host, sizes[i], rounds), "GB/s");
    }
    begin = facts_now_s();
    for (int i = 0; i < 200; i++) {
        cudaMemcpyAsync(device, host, 4096, cudaMemcpyHostToDevice, facts->stream);
        cudaStreamSynchronize(facts->stream);
    }
    facts_value(facts, "a copy of 4 KiB and a wait", (facts_now_s() - begin) / 200 * 1e6, "us");
    cudaFreeHost(host);
    cudaFree(device);
}

/* How much longer kernels take while copies run in one direction or both. */
static double slowdown(struct facts *facts, bool computes, bool in, bool out, char *device,
                       char *host)
{
    size_t bytes = 256 * MIB;
    struct facts_timer timer;
    double ms[2];

    for (int is_beside = 0; is_beside < 2; is_beside++) {
        cudaStream_t second = NULL;

        cudaDeviceSynchronize();
        cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking);
        for (int i = 0; is_beside && i < 40; i++) {
            if (in) {
                cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, facts->other);
            }
            if (out) {
                cudaMemcpyAsync(host + bytes, device + bytes, bytes, cudaMemcpyDeviceToHost,
                                second);
            }
        }
        timer = facts_timer_begin(facts->stream);
        for (int i = 0; i < 40; i++) {
            if (computes) {
                facts_compute(facts->stream, (float *)(device + 2 * bytes), 32 * MIB, 1000);
            } else {
                facts_copy(facts->stream, device + 2 * bytes, device + 3 * bytes, bytes);
            }
        }
        ms[is_beside] = facts_timer_end_ms(&timer);
        cudaDeviceSynchronize();
        cudaStreamDestroy(second);
    }
    return (ms[1] / ms[0] - 1.0) * 100.0;
}

/* 6: what copies do to kernels. */
void facts_interference(struct facts *facts)
{
    char *device = NULL;
    char *host = NULL;

    if (cudaMalloc((void **)&device, GIB) != cudaSuccess ||
        cudaHostAlloc((void **)&host, 512 * MIB, cudaHostAllocDefault) != cudaSuccess) {
        facts_text(facts, "memory", "none for copies");
        cudaFree(device);
        return;
    }
    for (int computes = 0; computes < 2; computes++) {
        const char *names[2][3] = {
            {"copy kernel, copies in", "copy kernel, copies out", "copy kernel, copies both ways"},
            {"arithmetic, copies in", "arithmetic, copies out", "arithmetic, copies both ways"}};

        facts_value(facts, names[computes][0], slowdown(facts, computes, true, false, device, host),
                    "% slower");
        facts_value(facts, names[computes][1], slowdown(facts, computes, false, true, device, host),
                    "% slower");
        facts_value(facts, names[computes][2], slowdown(facts, computes, true, true, device, host),
                    "% slower");
    }
    cudaFreeHost(host);
    cudaFree(device);
}

static void CUDART_CB do_nothing(void *unused)
{
    (void)unused;
}

/* 7: what an event costs the host. */
void facts_events(struct facts *facts)
{
    const int rounds = 1000;
    cudaEvent_t timing;
    cudaEvent_t plain;
    double begin;

    cudaEventCreate(&timing);
    cudaEventCreateWithFlags(&plain, cudaEventDisableTiming);
    for (int pass = 0; pass < 2; pass++) { /* the first warms up */
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

enum pinning { PIN_ALLOC, PIN_REGISTER, PIN_POPULATED, PIN_HUGE, PINNINGS };

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
    if (way != PIN_REGISTER && madvise(memory, bytes, MADV_POPULATE_WRITE) != 0) {
        memset(memory, 1, bytes);
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

/* 8: four ways to pinned memory, by one thread. */
void facts_pinned(struct facts *facts)
{
    static const char *const names[PINNINGS] = {"cudaHostAlloc", "register", "populate, register",
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

/* What a guided iteration does, in small: two tensors share pages through aliases, one is swapped
   out before the other is written and comes back after it has been read. */
struct small_iteration {
    char *first; /* two ranges over the same pages */
    char *second;
    char *result;
    char *host;
    size_t bytes;
    cudaEvent_t events[4];
};

static void capture_iteration(struct facts *facts, struct small_iteration *it)
{
    /* first = f(first); out; second = copy of result; result = f(second); in */
    facts_compute(facts->stream, (float *)it->first, it->bytes / 4, 3);
    cudaEventRecord(it->events[0], facts->stream);
    cudaStreamWaitEvent(facts->other, it->events[0], 0);
    cudaMemcpyAsync(it->host, it->first, it->bytes, cudaMemcpyDeviceToHost, facts->other);
    cudaEventRecord(it->events[1], facts->other);
    cudaStreamWaitEvent(facts->stream, it->events[1], 0);
    facts_copy(facts->stream, it->second, it->result, it->bytes);
    facts_compute(facts->stream, (float *)it->second, it->bytes / 4, 2);
    facts_copy(facts->stream, it->result, it->second, it->bytes);
    cudaEventRecord(it->events[2], facts->stream);
    cudaStreamWaitEvent(facts->other, it->events[2], 0);
    cudaMemcpyAsync(it->first, it->host, it->bytes, cudaMemcpyHostToDevice, facts->other);
    cudaEventRecord(it->events[3], facts->other);
    cudaStreamWaitEvent(facts->stream, it->events[3], 0);
}

static void start_iterations(struct facts *facts, struct small_iteration *it)
{
    cudaMemsetAsync(it->first, 0x3e, it->bytes, facts->stream);
    cudaMemsetAsync(it->result, 0x3f, it->bytes, facts->stream);
    cudaStreamSynchronize(facts->stream);
}

static uint64_t checksum_of(struct facts *facts, struct small_iteration *it)
{
    cudaStreamSynchronize(facts->stream);
    return facts_checksum(facts->stream, it->first, it->bytes) * 31 +
           facts_checksum(facts->stream, it->result, it->bytes);
}

/* The same without a graph and without aliases: what it must give. */
static void run_captured(struct facts *facts, struct small_iteration *it, char *apart, int rounds)
{
    struct small_iteration plain = *it;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t executable = NULL;
    uint64_t expected;
    uint64_t got;
    cudaError_t error;
    double begin;

    plain.second = apart;
    start_iterations(facts, &plain);
    begin = facts_now_s();
    for (int i = 0; i < rounds; i++) {
        capture_iteration(facts, &plain);
    }
    expected = checksum_of(facts, &plain);
    facts_value(facts, "an iteration without a graph", (facts_now_s() - begin) / rounds * 1e6,
                "us");
    start_iterations(facts, it);
    cudaStreamBeginCapture(facts->stream, cudaStreamCaptureModeGlobal);
    capture_iteration(facts, it);
    error = cudaStreamEndCapture(facts->stream, &graph);
    if (error == cudaSuccess) {
        error = cudaGraphInstantiate(&executable, graph, 0);
    }
    begin = facts_now_s();
    for (int i = 0; i < rounds && error == cudaSuccess; i++) {
        error = cudaGraphLaunch(executable, facts->stream);
    }
    if (error != cudaSuccess) {
        facts_text(facts, "a captured iteration", cudaGetErrorName(error));
    } else {
        got = checksum_of(facts, it);
        facts_value(facts, "an iteration of a graph, aliased",
                    (facts_now_s() - begin) / rounds * 1e6, "us");
        facts_text(facts, "results of graph and aliases",
                   got == expected ? "the same as without" : "DIFFERENT");
    }
    if (executable != NULL) {
        cudaGraphExecDestroy(executable);
    }
    if (graph != NULL) {
        cudaGraphDestroy(graph);
    }
}

/* 9: an iteration with aliases and copies beside it, captured and launched many times. */
void facts_captured_iteration(struct facts *facts)
{
    size_t bytes = 16 * MIB;
    struct small_iteration it = {};
    struct facts_range range;
    CUdeviceptr second = 0;
    char *apart = NULL;

    it.bytes = bytes;
    if (cudaMalloc((void **)&it.result, 2 * bytes) != cudaSuccess ||
        cudaHostAlloc((void **)&it.host, bytes, cudaHostAllocDefault) != cudaSuccess ||
        facts_range_make(facts, bytes, facts->granularity, &range) != CUDA_SUCCESS) {
        facts_text(facts, "memory", "none for an iteration");
        return;
    }
    apart = it.result + bytes;
    it.first = (char *)range.address;
    if (facts->driver.call_cuMemAddressReserve(&second, bytes, 0, 0, 0) == CUDA_SUCCESS) {
        for (size_t i = 0; i < range.count; i++) {
            facts->driver.call_cuMemMap(second + i * facts->granularity, facts->granularity, 0,
                                        range.handles[i], 0);
        }
        facts->driver.call_cuMemSetAccess(second, bytes, &facts->access, 1);
        it.second = (char *)second;
        for (int i = 0; i < 4; i++) {
            cudaEventCreateWithFlags(&it.events[i], cudaEventDisableTiming);
        }
        run_captured(facts, &it, apart, facts->is_quick ? 200 : 1000);
        cudaDeviceSynchronize();
        for (int i = 0; i < 4; i++) {
            cudaEventDestroy(it.events[i]);
        }
        for (size_t i = 0; i < range.count; i++) {
            facts->driver.call_cuMemUnmap(second + i * facts->granularity, facts->granularity);
        }
        facts->driver.call_cuMemAddressFree(second, bytes);
    }
    facts_range_drop(facts, &range);
    cudaFreeHost(it.host);
    cudaFree(it.result);
}

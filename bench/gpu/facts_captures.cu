/* Measurements 4 and 9: stream capture. */
#include "bench/gpu/facts.cuh"

#include <stdio.h>

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

/* A guided iteration in miniature: two tensors share pages through aliases; one is swapped out
   before the other is written, and returns after the other has been read. */
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
    facts_fill(facts->stream, it->first, it->bytes);
    facts_fill(facts->stream, it->result, it->bytes);
    cudaStreamSynchronize(facts->stream);
}

static uint64_t checksum_of(struct facts *facts, struct small_iteration *it)
{
    cudaStreamSynchronize(facts->stream);
    return facts_checksum(facts->stream, it->first, it->bytes) * 31 +
           facts_checksum(facts->stream, it->result, it->bytes);
}

/* The same without a graph and without aliases: the expected result. */
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

/* 9: an iteration with aliases and concurrent copies, captured once and launched many times. */
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

/* Measurements 1, 2, 3, 10, 11 and 12: the driver's memory calls. */
#include "bench/gpu/facts.cuh"

#include "kernels/blas.cuh"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* 1: whether part of a handle can be mapped. */
void facts_parts_of_handles(struct facts *facts)
{
    const struct facts_driver *driver = &facts->driver;
    size_t page = facts->granularity;
    CUmemGenericAllocationHandle handle;
    CUdeviceptr address = 0;
    CUresult result;

    if (driver->call_cuMemCreate(&handle, 4 * page, &facts->property, 0) != CUDA_SUCCESS ||
        driver->call_cuMemAddressReserve(&address, 4 * page, 0, 0, 0) != CUDA_SUCCESS) {
        facts_text(facts, "handles", "none could be made");
        return;
    }
    result = driver->call_cuMemMap(address, page, 0, handle, 0);
    facts_text(facts, "map a size below the handle's", facts_error(facts, result));
    if (result == CUDA_SUCCESS) {
        driver->call_cuMemUnmap(address, page);
    }
    result = driver->call_cuMemMap(address, page, page, handle, 0);
    facts_text(facts, "map at an offset", facts_error(facts, result));
    if (result == CUDA_SUCCESS) {
        driver->call_cuMemUnmap(address, page);
    }
    driver->call_cuMemAddressFree(address, 4 * page);
    driver->call_cuMemRelease(handle);
}

static double copy_gb_per_s(const struct facts *facts, CUdeviceptr to, CUdeviceptr from,
                            size_t bytes)
{
    struct facts_timer timer;
    double ms[5];

    facts_fill(facts->stream, (void *)from, bytes);
    facts_copy(facts->stream, (void *)to, (const void *)from, bytes);
    for (int round = 0; round < 5; round++) {
        timer = facts_timer_begin(facts->stream);
        for (int i = 0; i < 10; i++) {
            facts_copy(facts->stream, (void *)to, (const void *)from, bytes);
        }
        ms[round] = facts_timer_end_ms(&timer);
    }
    return 10.0 * 2.0 * (double)bytes / facts_median(ms, 5) * 1e-6;
}

static double product_tflops(const struct facts *facts, CUdeviceptr at, size_t side)
{
    struct gemm gemm = {};
    struct facts_timer timer;
    float *matrices = (float *)at;
    double ms[5];

    gemm.rows = side;
    gemm.columns = side;
    gemm.depth = side;
    gemm.a = matrices;
    gemm.a_stride = side;
    gemm.b = matrices + side * side;
    gemm.b_stride = side;
    gemm.c = matrices + 2 * side * side;
    gemm.c_stride = side;
    facts_fill(facts->stream, matrices, 2 * side * side * sizeof(*matrices));
    if (blas_gemm(facts->stream, &gemm, NULL) != CAPU_OK) {
        return 0.0;
    }
    for (int round = 0; round < 5; round++) {
        timer = facts_timer_begin(facts->stream);
        for (int i = 0; i < 5; i++) {
            blas_gemm(facts->stream, &gemm, NULL);
        }
        ms[round] = facts_timer_end_ms(&timer);
    }
    return 5.0 * 2.0 * (double)side * (double)side * (double)side / facts_median(ms, 5) * 1e-9;
}

/* Maps the same handles into a second range in reverse order, as placement does to share pages. */
static CUresult map_reversed(const struct facts *facts, const struct facts_range *range,
                             CUdeviceptr *address)
{
    CUresult result = facts->driver.call_cuMemAddressReserve(address, range->bytes, 0, 0, 0);

    for (size_t i = 0; i < range->count && result == CUDA_SUCCESS; i++) {
        result =
            facts->driver.call_cuMemMap(*address + i * range->handle_bytes, range->handle_bytes, 0,
                                        range->handles[range->count - 1 - i], 0);
    }
    return result == CUDA_SUCCESS
               ? facts->driver.call_cuMemSetAccess(*address, range->bytes, &facts->access, 1)
               : result;
}

static void measure_range(struct facts *facts, size_t bytes, size_t handle_bytes)
{
    struct facts_range range;
    CUdeviceptr reversed = 0;
    char what[96];

    if (facts_range_make(facts, bytes, handle_bytes, &range) != CUDA_SUCCESS) {
        facts_text(facts, "range", "could not be made");
        return;
    }
    snprintf(what, sizeof(what), "copy kernel, handles of %zu MiB", handle_bytes / MIB);
    facts_value(facts, what,
                copy_gb_per_s(facts, range.address, range.address + bytes / 2, bytes / 2), "GB/s");
    snprintf(what, sizeof(what), "fp32 product, handles of %zu MiB", handle_bytes / MIB);
    facts_value(facts, what, product_tflops(facts, range.address, PRODUCT_SIDE), "TFLOP/s");
    if (range.count > 1 && map_reversed(facts, &range, &reversed) == CUDA_SUCCESS) {
        snprintf(what, sizeof(what), "copy kernel, aliased in reverse, %zu MiB",
                 handle_bytes / MIB);
        facts_value(facts, what, copy_gb_per_s(facts, reversed, reversed + bytes / 2, bytes / 2),
                    "GB/s");
        snprintf(what, sizeof(what), "fp32 product, aliased in reverse, %zu MiB",
                 handle_bytes / MIB);
        facts_value(facts, what, product_tflops(facts, reversed, PRODUCT_SIDE), "TFLOP/s");
        cudaDeviceSynchronize();
        for (size_t i = 0; i < range.count; i++) {
            facts->driver.call_cuMemUnmap(reversed + i * handle_bytes, handle_bytes);
        }
    }
    facts_range_drop(facts, &range);
}

/* 2: one handle at many addresses, and the cost of aliases. */
void facts_aliases(struct facts *facts)
{
    static const size_t counts[] = {2, 64, 1024};
    size_t bytes = facts->is_quick ? 512 * MIB : 2 * GIB;
    size_t page = facts->granularity;
    CUmemGenericAllocationHandle handle;
    char what[96];

    if (facts->driver.call_cuMemCreate(&handle, page, &facts->property, 0) != CUDA_SUCCESS) {
        facts_text(facts, "handles", "none could be made");
        return;
    }
    for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
        CUdeviceptr address = 0;
        CUresult result =
            facts->driver.call_cuMemAddressReserve(&address, counts[c] * page, 0, 0, 0);
        size_t mapped = 0;
        uint64_t first;
        uint64_t last;

        while (result == CUDA_SUCCESS && mapped < counts[c]) {
            result = facts->driver.call_cuMemMap(address + mapped * page, page, 0, handle, 0);
            mapped += result == CUDA_SUCCESS;
        }
        if (result == CUDA_SUCCESS) {
            result =
                facts->driver.call_cuMemSetAccess(address, counts[c] * page, &facts->access, 1);
        }
        snprintf(what, sizeof(what), "one handle at %zu addresses", counts[c]);
        facts_text(facts, what, facts_error(facts, result));
        if (result == CUDA_SUCCESS) {
            cudaMemsetAsync((void *)address, (int)c + 1, page, facts->stream);
            first = facts_checksum(facts->stream, (const void *)address, page);
            last = facts_checksum(facts->stream, (const void *)(address + (counts[c] - 1) * page),
                                  page);
            facts_text(facts, "written through the first, read through the last",
                       first == last && first != 0 ? "the same" : "DIFFERENT");
        }
        for (size_t i = 0; i < mapped; i++) {
            facts->driver.call_cuMemUnmap(address + i * page, page);
        }
        facts->driver.call_cuMemAddressFree(address, counts[c] * page);
    }
    facts->driver.call_cuMemRelease(handle);
    measure_range(facts, bytes, page);
    measure_range(facts, bytes, 32 * MIB);
    measure_range(facts, bytes, bytes);
}

/* Times of one round of calls, in seconds. */
struct costs {
    double create;
    double map;
    double access_each;
    double unmap_each;
    double access_all;
    double unmap_all;
    double release;
};

/* Pre: `count` handles of `bytes` fit. */
static bool measure_calls(const struct facts *facts, size_t bytes, size_t count,
                          CUmemGenericAllocationHandle *handles, struct costs *costs)
{
    const struct facts_driver *driver = &facts->driver;
    CUdeviceptr address = 0;
    CUresult result = driver->call_cuMemAddressReserve(&address, count * bytes, 0, 0, 0);
    double times[9];
    size_t made = 0;

    times[0] = facts_now_s();
    while (result == CUDA_SUCCESS && made < count) {
        result = driver->call_cuMemCreate(&handles[made], bytes, &facts->property, 0);
        made += result == CUDA_SUCCESS;
    }
    times[1] = facts_now_s();
    for (size_t i = 0; i < made && result == CUDA_SUCCESS; i++) {
        result = driver->call_cuMemMap(address + i * bytes, bytes, 0, handles[i], 0);
    }
    times[2] = facts_now_s();
    for (size_t i = 0; i < made && result == CUDA_SUCCESS; i++) {
        result = driver->call_cuMemSetAccess(address + i * bytes, bytes, &facts->access, 1);
    }
    times[3] = facts_now_s();
    for (size_t i = 0; i < made && result == CUDA_SUCCESS; i++) {
        result = driver->call_cuMemUnmap(address + i * bytes, bytes);
    }
    times[4] = facts_now_s();
    for (size_t i = 0; i < made && result == CUDA_SUCCESS; i++) {
        result = driver->call_cuMemMap(address + i * bytes, bytes, 0, handles[i], 0);
    }
    times[5] = facts_now_s();
    if (result == CUDA_SUCCESS) {
        result = driver->call_cuMemSetAccess(address, made * bytes, &facts->access, 1);
    }
    times[6] = facts_now_s();
    if (result == CUDA_SUCCESS) {
        result = driver->call_cuMemUnmap(address, made * bytes);
    }
    times[7] = facts_now_s();
    for (size_t i = 0; i < made; i++) {
        driver->call_cuMemRelease(handles[i]);
    }
    times[8] = facts_now_s();
    driver->call_cuMemAddressFree(address, count * bytes);
    *costs = (struct costs){times[1] - times[0], times[2] - times[1], times[3] - times[2],
                            times[4] - times[3], times[6] - times[5], times[7] - times[6],
                            times[8] - times[7]};
    if (result != CUDA_SUCCESS) {
        facts_text(facts, "a call failed", facts_error(facts, result));
    }
    return result == CUDA_SUCCESS;
}

static void tell_costs(const struct facts *facts, const struct costs *costs, size_t bytes,
                       size_t count, const char *state)
{
    const struct {
        const char *name;
        double seconds;
        size_t calls;
    } lines[] = {
        {"create", costs->create, count},
        {"map", costs->map, count},
        {"set access, one by one", costs->access_each, count},
        {"unmap, one by one", costs->unmap_each, count},
        {"set access over all", costs->access_all, 1},
        {"unmap over all", costs->unmap_all, 1},
        {"release", costs->release, count},
    };
    char what[128];

    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        snprintf(what, sizeof(what), "%s, %zu x %zu MiB, %s", lines[i].name, count, bytes / MIB,
                 state);
        facts_value(facts, what, lines[i].seconds / (double)lines[i].calls * 1e6, "us a call");
    }
}

/* One thread's share of concurrent calls. */
struct share {
    const struct facts *facts;
    size_t count;
    pthread_t thread;
    bool works;
};

static void *make_share(void *argument)
{
    struct share *share = (struct share *)argument;
    struct facts_range range;

    cudaSetDevice(0);
    share->works = facts_range_make(share->facts, share->count * share->facts->granularity,
                                    share->facts->granularity, &range) == CUDA_SUCCESS;
    if (share->works) {
        facts_range_drop(share->facts, &range);
    }
    return NULL;
}

/* The same number of pages, created, mapped and released by one thread and by eight. */
static void measure_threads(const struct facts *facts)
{
    static const size_t counts[] = {1, 8};
    const size_t pages = 1024;

    for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
        struct share shares[8];
        double begin = facts_now_s();
        bool works = true;
        char what[96];

        for (size_t i = 0; i < counts[c]; i++) {
            shares[i].facts = facts;
            shares[i].count = pages / counts[c];
            shares[i].works = false;
            if (pthread_create(&shares[i].thread, NULL, make_share, &shares[i]) != 0) {
                facts_text(facts, "threads", "none could be started");
                exit(1);
            }
        }
        for (size_t i = 0; i < counts[c]; i++) {
            pthread_join(shares[i].thread, NULL);
            works = works && shares[i].works;
        }
        snprintf(what, sizeof(what), "create, map, access, unmap, release by %zu threads",
                 counts[c]);
        if (works) {
            facts_value(facts, what, (facts_now_s() - begin) / (double)pages * 1e6, "us a page");
        } else {
            facts_text(facts, what, "failed");
        }
    }
}

/* Keeps the device busy for a while: enqueued after the timer or, without one, timed to the end.
   Few long kernels, because a long queue of short ones would block the host. */
static double busy_ms(const struct facts *facts, float *data, struct facts_timer *timer)
{
    struct facts_timer own = facts_timer_begin(facts->stream);

    for (int k = 0; k < (facts->is_quick ? 150 : 400); k++) {
        facts_compute(facts->stream, data, 64 * MIB, 2000);
    }
    if (timer == NULL) {
        return facts_timer_end_ms(&own);
    }
    *timer = own;
    return 0.0;
}

/* 3 and 11: the cost of the calls while the GPU is idle, and while unrelated kernels run. */
void facts_call_costs(struct facts *facts)
{
    static const struct {
        size_t bytes;
        size_t count;
    } rounds[] = {{2 * MIB, 1024}, {32 * MIB, 64}, {256 * MIB, 8}};
    CUmemGenericAllocationHandle handles[1024];
    double alone_ms;
    void *data = NULL;

    if (cudaMalloc(&data, 256 * MIB) != cudaSuccess) {
        facts_text(facts, "memory", "none for the busy kernels");
        return;
    }
    facts_fill(facts->stream, data, 256 * MIB);
    alone_ms = busy_ms(facts, (float *)data, NULL); /* the first launch loads the kernel */
    alone_ms = busy_ms(facts, (float *)data, NULL);
    facts_value(facts, "kernels alone", alone_ms, "ms");
    for (int is_busy = 0; is_busy < 2; is_busy++) {
        for (size_t i = 0; i < sizeof(rounds) / sizeof(rounds[0]); i++) {
            struct facts_timer timer;
            struct costs costs;

            if (is_busy) {
                busy_ms(facts, (float *)data, &timer);
            }
            if (measure_calls(facts, rounds[i].bytes, rounds[i].count, handles, &costs)) {
                tell_costs(facts, &costs, rounds[i].bytes, rounds[i].count,
                           is_busy ? "busy" : "idle");
                if (is_busy) {
                    facts_text(facts, "kernels still running at the end",
                               cudaStreamQuery(facts->stream) == cudaErrorNotReady ? "yes" : "no");
                }
            }
            if (is_busy) {
                facts_value(facts, "kernels beside these calls",
                            (facts_timer_end_ms(&timer) / alone_ms - 1.0) * 100.0, "% slower");
            }
            cudaStreamSynchronize(facts->stream);
        }
    }
    cudaFree(data);
    measure_threads(facts);
}

/* 10: the GPU clears new handles: what that costs, and how it slows a kernel. */
void facts_fresh_handles(struct facts *facts)
{
    size_t count = facts->is_quick ? 32 : 128;
    size_t bytes = 128 * MIB;
    CUmemGenericAllocationHandle handles[128];
    struct facts_timer timer;
    void *data = NULL;
    size_t made = 0;
    double begin;
    double alone_ms = 0.0;
    double beside_ms = 0.0;

    if (cudaMalloc(&data, 512 * MIB) != cudaSuccess) {
        facts_text(facts, "memory", "none for the kernel");
        return;
    }
    facts_fill(facts->stream, data, 512 * MIB);
    facts_copy(facts->stream, data, (char *)data + 256 * MIB, 256 * MIB);
    for (int is_beside = 0; is_beside < 2; is_beside++) {
        timer = facts_timer_begin(facts->stream);
        for (int i = 0; i < 800; i++) {
            facts_copy(facts->stream, data, (char *)data + 256 * MIB, 256 * MIB);
        }
        if (is_beside) {
            begin = facts_now_s();
            while (made < count &&
                   facts->driver.call_cuMemCreate(&handles[made], bytes, &facts->property, 0) ==
                       CUDA_SUCCESS) {
                made++;
            }
            facts_value(facts, "create, 128 MiB handles, a copy kernel beside",
                        (facts_now_s() - begin) * 1e3 / ((double)(made * bytes) / GIB), "ms/GiB");
            beside_ms = facts_timer_end_ms(&timer);
        } else {
            alone_ms = facts_timer_end_ms(&timer);
        }
    }
    facts_value(facts, "copy kernels alone", alone_ms, "ms");
    facts_value(facts, "copy kernels while handles are created", beside_ms, "ms");
    for (size_t i = 0; i < made; i++) {
        facts->driver.call_cuMemRelease(handles[i]);
    }
    cudaFree(data);
}

/* 12: how many handles and mappings are possible, and how much device memory they take. */
void facts_limits(struct facts *facts)
{
    const struct facts_driver *driver = &facts->driver;
    size_t page = facts->granularity;
    size_t wanted = facts->is_quick ? 8192 : 32768;
    size_t mappings = facts->is_quick ? 65536 : 524288;
    CUmemGenericAllocationHandle *handles =
        (CUmemGenericAllocationHandle *)calloc(wanted, sizeof(*handles));
    CUdeviceptr address = 0;
    size_t made = 0;
    size_t mapped = 0;
    size_t free_before = 0;
    size_t free_after = 0;
    size_t total;
    double begin = facts_now_s();

    cudaMemGetInfo(&free_before, &total);
    while (handles != NULL && made < wanted && (made + 1) * page < facts->free_bytes / 10 * 9 &&
           driver->call_cuMemCreate(&handles[made], page, &facts->property, 0) == CUDA_SUCCESS) {
        made++;
    }
    facts_value(facts, "handles made", (double)made, "");
    facts_value(facts, "time for them", facts_now_s() - begin, "s");
    cudaMemGetInfo(&free_after, &total);
    facts_value(facts, "device memory beyond their bytes, a handle",
                made == 0 ? 0.0
                          : ((double)free_before - (double)free_after - (double)(made * page)) /
                                (double)made,
                "bytes");
    begin = facts_now_s();
    if (made > 0 &&
        driver->call_cuMemAddressReserve(&address, mappings * page, 0, 0, 0) == CUDA_SUCCESS) {
        while (mapped < mappings &&
               driver->call_cuMemMap(address + mapped * page, page, 0, handles[mapped % made], 0) ==
                   CUDA_SUCCESS) {
            mapped++;
        }
    }
    facts_value(facts, "mappings made over them", (double)mapped, "");
    if (mapped > 0) {
        facts_text(facts, "one set access over all of them",
                   facts_error(facts, driver->call_cuMemSetAccess(address, mapped * page,
                                                                  &facts->access, 1)));
        facts_value(facts, "time for both", facts_now_s() - begin, "s");
        cudaMemGetInfo(&free_before, &total);
        facts_value(facts, "device memory a mapping",
                    ((double)free_after - (double)free_before) / (double)mapped, "bytes");
        begin = facts_now_s();
        driver->call_cuMemUnmap(address, mapped * page);
        facts_value(facts, "one unmap over all of them", facts_now_s() - begin, "s");
    }
    if (address != 0) {
        driver->call_cuMemAddressFree(address, mappings * page);
    }
    for (size_t i = 0; i < made; i++) {
        driver->call_cuMemRelease(handles[i]);
    }
    free(handles);
}

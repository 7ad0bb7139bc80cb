/*
 * Measures, on this machine, the facts that the design of the cuda device depends on: what CUDA
 * allows and what it costs. Prints one line per result; JSON lines with --json. --quick uses
 * smaller sizes, numbers select measurements, --probe only prints the GPU, and --cublas the file
 * of cuBLAS. Exit code 77: no GPU.
 */
#include "bench/gpu/facts.cuh"

#include "kernels/blas.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef FACTS_ON_FAKE
#define THREADS 1
#define BLOCKS 1
#define ROUNDS(rounds) ((rounds) > 0)
#else
#define ROUNDS(rounds) (rounds)
#define THREADS 256
#define BLOCKS 1056 /* eight per multiprocessor on the largest GPU */
#endif
#define NO_GPU 77

static bool wants_json;

static __global__ void copy_words(float4 *to, const float4 *from, size_t count)
{
    for (size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x; i < count;
         i += (size_t)gridDim.x * THREADS) {
        to[i] = from[i];
    }
}

static __global__ void compute_items(float *data, size_t count, int rounds)
{
    for (size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x; i < count;
         i += (size_t)gridDim.x * THREADS) {
        float value = data[i];

        for (int round = 0; round < rounds; round++) {
            value = value * 0.999f + 0.001f;
        }
        data[i] = value;
    }
}

static __global__ void fill_words(float *data, size_t count)
{
    for (size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x; i < count;
         i += (size_t)gridDim.x * THREADS) {
        uint32_t bits = (uint32_t)i * 2654435761u;

        bits = (bits ^ (bits >> 15)) * 2246822519u;
        bits = (bits ^ (bits >> 13)) * 3266489917u;
        data[i] = (float)(bits >> 8) / 16777216.0f - 0.5f;
    }
}

static __device__ uint64_t device_ns(void)
{
    uint64_t now;

#ifdef FACTS_ON_FAKE
    now = facts_fake_ns();
#else
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
#endif
    return now;
}

static __global__ void spin_for(uint64_t ns)
{
    uint64_t begin = device_ns();

    while (device_ns() - begin < ns) {
    }
}

/* Integers, whose sum does not depend on the order. */
static __global__ void sum_words(const uint32_t *words, size_t count, unsigned long long *sum)
{
    unsigned long long own = 0;

    for (size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x; i < count;
         i += (size_t)gridDim.x * THREADS) {
        own += words[i] * (unsigned long long)(i % 1009 + 1);
    }
    atomicAdd(sum, own);
}

void facts_copy(cudaStream_t stream, void *to, const void *from, size_t bytes)
{
    FACTS_LAUNCH(copy_words, BLOCKS, THREADS, stream, (float4 *)to, (const float4 *)from,
                 bytes / sizeof(float4));
}

void facts_compute(cudaStream_t stream, float *data, size_t count, int rounds)
{
    FACTS_LAUNCH(compute_items, BLOCKS, THREADS, stream, data, count, ROUNDS(rounds));
}

void facts_fill(cudaStream_t stream, void *data, size_t bytes)
{
    FACTS_LAUNCH(fill_words, BLOCKS, THREADS, stream, (float *)data, bytes / sizeof(float));
}

void facts_spin(cudaStream_t stream, uint64_t ns)
{
    FACTS_LAUNCH(spin_for, 1, 1, stream, ns);
}

uint64_t facts_checksum(cudaStream_t stream, const void *data, size_t bytes)
{
    unsigned long long *sum = NULL;
    unsigned long long result = 0;

    if (cudaMalloc((void **)&sum, sizeof(*sum)) != cudaSuccess) {
        return 0;
    }
    cudaMemsetAsync(sum, 0, sizeof(*sum), stream);
    FACTS_LAUNCH(sum_words, BLOCKS, THREADS, stream, (const uint32_t *)data, bytes / 4, sum);
    cudaMemcpyAsync(&result, sum, sizeof(result), cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    cudaFree(sum);
    return result;
}

double facts_now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

struct facts_timer facts_timer_begin(cudaStream_t stream)
{
    struct facts_timer timer = {};

    timer.stream = stream;
    cudaEventCreate(&timer.begin);
    cudaEventCreate(&timer.end);
    cudaEventRecord(timer.begin, stream);
    return timer;
}

double facts_timer_end_ms(struct facts_timer *timer)
{
    float ms = 0.0f;

    cudaEventRecord(timer->end, timer->stream);
    cudaEventSynchronize(timer->end);
    cudaEventElapsedTime(&ms, timer->begin, timer->end);
    cudaEventDestroy(timer->begin);
    cudaEventDestroy(timer->end);
    return (double)ms;
}

const char *facts_error(const struct facts *facts, CUresult result)
{
    const char *name = NULL;

    if (result == CUDA_SUCCESS) {
        return "works";
    }
    facts->driver.call_cuGetErrorName(result, &name);
    return name != NULL ? name : "an unknown error";
}

/* A failed measurement may give a value that JSON has no number for. */
static const char *json_number(double value, char text[32])
{
    snprintf(text, 32, "%.6g", value);
    return isfinite(value) ? text : "null";
}

void facts_value(const struct facts *facts, const char *what, double value, const char *unit)
{
    char text[32];

    if (wants_json) {
        printf("{\"fact\":%d,\"what\":\"%s\",\"value\":%s,\"unit\":\"%s\"}\n", facts->number, what,
               json_number(value, text), unit);
    } else {
        printf("%4d  %-62s %12.4g %s\n", facts->number, what, value, unit);
    }
    fflush(stdout);
}

void facts_text(const struct facts *facts, const char *what, const char *text)
{
    if (wants_json) {
        printf("{\"fact\":%d,\"what\":\"%s\",\"text\":\"%s\"}\n", facts->number, what, text);
    } else {
        printf("%4d  %-62s %s\n", facts->number, what, text);
    }
    fflush(stdout);
}

void facts_interference_line(const struct facts *facts, const char *kernel, const char *copies,
                             double slower_percent, double in_gb_per_s, double out_gb_per_s)
{
    char texts[3][32];

    if (wants_json) {
        printf("{\"fact\":%d,\"table\":\"interference\",\"kernel\":\"%s\",\"copies\":\"%s\","
               "\"kernel_slower_percent\":%s,\"in_gb_per_s\":%s,\"out_gb_per_s\":%s}\n",
               facts->number, kernel, copies, json_number(slower_percent, texts[0]),
               json_number(in_gb_per_s, texts[1]), json_number(out_gb_per_s, texts[2]));
        fflush(stdout);
    }
}

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;

    return (left > right) - (left < right);
}

double facts_median(double *values, size_t count)
{
    qsort(values, count, sizeof(*values), compare);
    return values[count / 2];
}

static void undo(const struct facts *facts, struct facts_range *range)
{
    for (size_t i = 0; i < range->count; i++) {
        facts->driver.call_cuMemUnmap(range->address + i * range->handle_bytes,
                                      range->handle_bytes);
        facts->driver.call_cuMemRelease(range->handles[i]);
    }
    if (range->address != 0) {
        facts->driver.call_cuMemAddressFree(range->address, range->bytes);
    }
    free(range->handles);
    *range = (struct facts_range){};
}

CUresult facts_range_make(const struct facts *facts, size_t bytes, size_t handle_bytes,
                          struct facts_range *range)
{
    const struct facts_driver *driver = &facts->driver;
    CUresult result;

    *range = (struct facts_range){0, bytes, handle_bytes, 0, NULL};
    range->handles =
        (CUmemGenericAllocationHandle *)calloc(bytes / handle_bytes, sizeof(*range->handles));
    if (range->handles == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    result = driver->call_cuMemAddressReserve(&range->address, bytes, 0, 0, 0);
    while (result == CUDA_SUCCESS && range->count < bytes / handle_bytes) {
        CUmemGenericAllocationHandle *handle = &range->handles[range->count];

        result = driver->call_cuMemCreate(handle, handle_bytes, &facts->property, 0);
        if (result == CUDA_SUCCESS) {
            result = driver->call_cuMemMap(range->address + range->count * handle_bytes,
                                           handle_bytes, 0, *handle, 0);
            if (result != CUDA_SUCCESS) {
                driver->call_cuMemRelease(*handle);
                break;
            }
            range->count++;
        }
    }
    if (result == CUDA_SUCCESS) {
        result = driver->call_cuMemSetAccess(range->address, bytes, &facts->access, 1);
    }
    if (result != CUDA_SUCCESS) {
        undo(facts, range);
    }
    return result;
}

void facts_range_drop(const struct facts *facts, struct facts_range *range)
{
    cudaDeviceSynchronize();
    undo(facts, range);
}

static bool find_calls(struct facts_driver *driver)
{
    cudaDriverEntryPointQueryResult answer;
    void *address;

#define FACTS_CALL(name)                                                                        \
    address = NULL;                                                                             \
    if (cudaGetDriverEntryPointByVersion(#name, &address, 12000, cudaEnableDefault, &answer) != \
            cudaSuccess ||                                                                      \
        address == NULL) {                                                                      \
        printf("skipped: the driver has no " #name "\n");                                       \
        return false;                                                                           \
    }                                                                                           \
    driver->call_##name = (decltype(driver->call_##name))address;
    FACTS_CALLS(FACTS_CALL)
#undef FACTS_CALL
    return true;
}

static bool open_facts(struct facts *facts)
{
    cudaDeviceProp properties;
    size_t total = 0;
    int driver = 0;
    int count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    char text[384];

    if (error != cudaSuccess || count == 0) {
        printf("skipped: no GPU: %s\n", cudaGetErrorString(error));
        return false;
    }
    if (cudaGetDeviceProperties(&properties, 0) != cudaSuccess || cudaSetDevice(0) != cudaSuccess ||
        cudaFree(NULL) != cudaSuccess ||
        cudaMemGetInfo(&facts->free_bytes, &total) != cudaSuccess ||
        cudaStreamCreateWithFlags(&facts->stream, cudaStreamNonBlocking) != cudaSuccess ||
        cudaStreamCreateWithFlags(&facts->other, cudaStreamNonBlocking) != cudaSuccess) {
        printf("skipped: the GPU cannot be opened: %s\n", cudaGetErrorString(cudaGetLastError()));
        return false;
    }
    if (!find_calls(&facts->driver)) {
        return false;
    }
    facts->property.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    facts->property.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    facts->access.location = facts->property.location;
    facts->access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    facts->driver.call_cuMemGetAllocationGranularity(&facts->granularity, &facts->property,
                                                     CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    cudaDriverGetVersion(&driver);
    snprintf(text, sizeof(text), "%s, sm_%d%d, %zu MiB, %d multiprocessors, driver %d",
             properties.name, properties.major, properties.minor, total / MIB,
             properties.multiProcessorCount, driver);
    facts_text(facts, "machine", text);
    facts_value(facts, "granularity", (double)facts->granularity / MIB, "MiB");
    return true;
}

/* In an order in which each one disturbs the following ones least. */
static const struct {
    int number;
    void (*measure)(struct facts *facts);
} measurements[] = {
    {1, facts_parts_of_handles},
    {4, facts_maps_under_capture},
    {5, facts_link},
    {6, facts_interference},
    {7, facts_events},
    {8, facts_pinned},
    {2, facts_aliases},
    {3, facts_call_costs},
    {9, facts_captured_iteration},
    {13, facts_waits},
    {10, facts_fresh_handles},
    {12, facts_limits},
};

/* Prints which cuBLAS the operations of the examples use, or why there is none. */
static int print_cublas(void)
{
    char text[512];
    capu_status status = blas_find(text, sizeof(text));

    printf("%s\n", text);
    return status == CAPU_OK ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct facts facts = {};
    uint32_t wanted = 0;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            wants_json = true;
        } else if (strcmp(argv[i], "--quick") == 0) {
            facts.is_quick = true;
        } else if (strcmp(argv[i], "--cublas") == 0) {
            return print_cublas();
        } else if (strcmp(argv[i], "--probe") == 0) {
            wanted |= 1;
        } else if (atoi(argv[i]) >= 1 && atoi(argv[i]) <= 13) {
            wanted |= UINT32_C(1) << atoi(argv[i]);
        } else {
            fprintf(stderr, "usage: %s [--json] [--quick] [--probe | --cublas] [1..13]...\n",
                    argv[0]);
            return 2;
        }
    }
    if (!open_facts(&facts)) {
        return NO_GPU;
    }
    for (size_t i = 0; i < sizeof(measurements) / sizeof(measurements[0]); i++) {
        cudaError_t error;

        facts.number = measurements[i].number;
        if (wanted != 0 && (wanted >> facts.number & 1) == 0) {
            continue;
        }
        measurements[i].measure(&facts);
        cudaGetLastError(); /* already reported */
        error = cudaDeviceSynchronize();
        if (error != cudaSuccess) {
            facts_text(&facts, "the device failed", cudaGetErrorString(error));
            return 1;
        }
    }
    return 0;
}

/*
 * What the files of gpu_facts share: calls of the driver, kernels, clocks, and output. A
 * measurement that a machine does not allow is reported as such, and the next one follows.
 */
#ifndef CAPU_BENCH_GPU_FACTS_CUH
#define CAPU_BENCH_GPU_FACTS_CUH

#include <cuda.h>
#include <cuda_runtime.h>

#include <stddef.h>
#include <stdint.h>

/* Tests run this over a fake, with a unit of their own. */
#ifndef MIB
#define MIB ((size_t)1 << 20)
#define PRODUCT_SIDE ((size_t)4096)
#define FACTS_LAUNCH(kernel, blocks, threads, stream, ...) \
    kernel<<<(blocks), (threads), 0, (stream)>>>(__VA_ARGS__)
#endif
#define GIB (1024 * MIB)

/* Calls of the driver, looked up at run time, so that the program starts without a driver. */
#define FACTS_CALLS(X)               \
    X(cuMemAddressReserve)           \
    X(cuMemAddressFree)              \
    X(cuMemCreate)                   \
    X(cuMemRelease)                  \
    X(cuMemMap)                      \
    X(cuMemUnmap)                    \
    X(cuMemSetAccess)                \
    X(cuMemGetAllocationGranularity) \
    X(cuStreamWaitValue32)           \
    X(cuGetErrorName)

struct facts_driver {
#define FACTS_CALL(name) decltype(&name) call_##name;
    FACTS_CALLS(FACTS_CALL)
#undef FACTS_CALL
};

/* What all measurements use. */
struct facts {
    struct facts_driver driver;
    CUmemAllocationProp property;
    CUmemAccessDesc access;
    size_t granularity;
    size_t free_bytes; /* of the device, at the start */
    cudaStream_t stream;
    cudaStream_t other;
    bool is_quick;
    int number; /* of the current measurement */
};

/* Prints one result: the number of the measurement, what, and how much. */
void facts_value(const struct facts *facts, const char *what, double value, const char *unit);
void facts_text(const struct facts *facts, const char *what, const char *text);
/* The name of the error; "works" if there is none. */
const char *facts_error(const struct facts *facts, CUresult result);

double facts_now_s(void);

/* Times what is enqueued in between, with events; the end waits and returns milliseconds. */
struct facts_timer {
    cudaEvent_t begin;
    cudaEvent_t end;
    cudaStream_t stream;
};
struct facts_timer facts_timer_begin(cudaStream_t stream);
double facts_timer_end_ms(struct facts_timer *timer);

/* Prints a row of a table for planners: how a kind of kernel and copies slow each other down. Only
   with
   --json; the same numbers are also printed one by one. */
void facts_interference_line(const struct facts *facts, const char *kernel, const char *copies,
                             double slower_percent, double in_gb_per_s, double out_gb_per_s);

/* The median of the values, which are sorted. */
double facts_median(double *values, size_t count);

/* Pseudo-random numbers from -0.5 to 0.5, so that copied or multiplied data is never constant. */
void facts_fill(cudaStream_t stream, void *data, size_t bytes);
/* Kernels: one copies, one computes, one waits. */
void facts_copy(cudaStream_t stream, void *to, const void *from, size_t bytes);
void facts_compute(cudaStream_t stream, float *data, size_t count, int rounds);
void facts_spin(cudaStream_t stream, uint64_t ns);
/* The sum of all words. Waits. */
uint64_t facts_checksum(cudaStream_t stream, const void *data, size_t bytes);

/* A range of `bytes` over handles of `handle_bytes`; all or nothing. Dropping it waits for the
   device. Creating it, even without success, does not: it is tried during capture. */
struct facts_range {
    CUdeviceptr address;
    size_t bytes;
    size_t handle_bytes;
    size_t count;
    CUmemGenericAllocationHandle *handles;
};
CUresult facts_range_make(const struct facts *facts, size_t bytes, size_t handle_bytes,
                          struct facts_range *range);
void facts_range_drop(const struct facts *facts, struct facts_range *range);

/* The measurements, in the order of their numbers. */
void facts_parts_of_handles(struct facts *facts);
void facts_aliases(struct facts *facts);
void facts_call_costs(struct facts *facts);
void facts_fresh_handles(struct facts *facts);
void facts_limits(struct facts *facts);
void facts_maps_under_capture(struct facts *facts);
void facts_link(struct facts *facts);
void facts_interference(struct facts *facts);
void facts_events(struct facts *facts);
void facts_pinned(struct facts *facts);
void facts_captured_iteration(struct facts *facts);
void facts_waits(struct facts *facts);

#endif

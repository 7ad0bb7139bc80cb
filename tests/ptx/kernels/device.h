/*
 * Stands in for NVIDIA's headers where clang compiles the kernels of kernels/ to PTX; see code.sh.
 * Neither a CUDA toolkit nor its library of device functions is needed. Launches only name their
 * kernels, so that templates are instantiated. Exponentials, logarithms and the like are within the
 * tolerances of tests/gpu.
 */
#ifndef CAPU_TESTS_PTX_KERNELS_DEVICE_H
#define CAPU_TESTS_PTX_KERNELS_DEVICE_H

#define __CUDACC__
#define CUDART_VERSION 13000

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __align__(bytes) __attribute__((aligned(bytes)))

struct uint3 {
    unsigned int x, y, z;
};
struct dim3 {
    unsigned int x, y, z;
    constexpr dim3(unsigned int x_ = 1, unsigned int y_ = 1, unsigned int z_ = 1)
        : x(x_), y(y_), z(z_)
    {
    }
};
struct __attribute__((aligned(16))) float4 {
    float x, y, z, w;
};
#include <__clang_cuda_builtin_vars.h>

/* For the host's part of the files, of which nothing remains. */
enum cudaError_t { cudaSuccess };
typedef struct CUstream_st *cudaStream_t;
extern "C" cudaError_t cudaGetLastError(void);
template <typename Kernel> void device_name(Kernel kernel);
#define GRID_LAUNCH(kernel, blocks, threads, stream, ...) \
    (device_name(kernel), (void)(blocks), (void)(stream))

#define DEVICE static inline __device__

DEVICE float __shfl_xor_sync(unsigned int mask, float value, int lanes)
{
    return __nvvm_shfl_sync_bfly_f32(mask, value, lanes, 31);
}

DEVICE double __shfl_xor_sync(unsigned int mask, double value, int lanes)
{
    int halves[2];

    __builtin_memcpy(halves, &value, sizeof(halves));
    halves[0] = __nvvm_shfl_sync_bfly_i32(mask, halves[0], lanes, 31);
    halves[1] = __nvvm_shfl_sync_bfly_i32(mask, halves[1], lanes, 31);
    __builtin_memcpy(&value, halves, sizeof(halves));
    return value;
}

DEVICE unsigned int __ballot_sync(unsigned int mask, int value)
{
    return __nvvm_vote_ballot_sync(mask, value);
}

DEVICE int __ffs(int value)
{
    return __builtin_ffs(value);
}

DEVICE void *memcpy(void *to, const void *from, size_t bytes)
{
    return __builtin_memcpy(to, from, bytes);
}

/* code.sh switches contraction off: products and sums are rounded separately everywhere. */
DEVICE float __fadd_rn(float a, float b)
{
    return a + b;
}

DEVICE float __fsub_rn(float a, float b)
{
    return a - b;
}

DEVICE float __fmul_rn(float a, float b)
{
    return a * b;
}

DEVICE double __dadd_rn(double a, double b)
{
    return a + b;
}

DEVICE double __dmul_rn(double a, double b)
{
    return a * b;
}

DEVICE float nanf(const char *)
{
    return __builtin_nanf("");
}

DEVICE float fmaxf(float a, float b)
{
    return __nvvm_fmax_f(a, b);
}

DEVICE float sqrtf(float x)
{
    return __nvvm_sqrt_rn_f(x);
}

DEVICE double sqrt(double x)
{
    return __nvvm_sqrt_rn_d(x);
}

DEVICE float rsqrtf(float x)
{
    return 1.0f / sqrtf(x);
}

DEVICE float expf(float x)
{
    return __nvvm_ex2_approx_f(x * 1.44269504f);
}

DEVICE float logf(float x)
{
    return __nvvm_lg2_approx_f(x) * 0.693147181f;
}

DEVICE float tanhf(float x)
{
    return 1.0f - 2.0f / (expf(2.0f * x) + 1.0f);
}

/* log(m 2^e) = e log(2) + 2 artanh(s) with s = (m - 1) / (m + 1). For normal numbers. */
DEVICE double log(double x)
{
    uint64_t bits;
    double m;
    double s;
    double sum = 0.0;
    int exponent;

    __builtin_memcpy(&bits, &x, sizeof(bits));
    exponent = (int)(bits >> 52) - 1022;
    bits = (bits & UINT64_C(0xfffffffffffff)) | UINT64_C(0x3fe0000000000000);
    __builtin_memcpy(&m, &bits, sizeof(m)); /* from 1/2 to 1 */
    s = (m - 1.0) / (m + 1.0);
    for (int i = 39; i > 0; i -= 2) {
        sum = sum * s * s + 1.0 / i;
    }
    return exponent * 0.693147180559945309 + 2.0 * s * sum;
}

/* The series, for x near 0: by multiples of pi, of whose remainder the sign is that of the result.
 */
DEVICE double sin(double x)
{
    int halves = (int)(x * 0.318309886183790672 + 0.5);
    double rest = x - halves * 3.14159265358979312 - halves * 1.22464679914735321e-16;
    double sum = 0.0;

    for (int i = 22; i > 0; i -= 2) {
        sum = 1.0 - sum * rest * rest / (i * (i + 1));
    }
    return halves % 2 == 0 ? rest * sum : -rest * sum;
}

DEVICE double cos(double x)
{
    return sin(x + 1.57079632679489656);
}

#endif

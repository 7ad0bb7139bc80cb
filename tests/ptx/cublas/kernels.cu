/*
 * The kernels of libcublas of these tests. They are compiled to PTX, which is kept beside this
 * file, so that the library needs no toolkit. Products and sums are rounded one by one, in the
 * order of the inner index: slow and the same everywhere.
 */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

/* Numbers of cudaDataType. */
enum { TYPE_F32 = 0, TYPE_F16 = 2, TYPE_BF16 = 14 };

/* Bits of cublasLtEpilogue_t. */
enum { WITH_RELU = 2, WITH_BIAS = 4, WITH_GELU = 32 };

struct product {
    const void *a, *b;
    const void *c;
    void *d;
    const float *alpha_at, *beta_at; /* in device memory; NULL: alpha and beta are given */
    const void *bias;                /* per row */
    void *aux;                       /* what the activation is applied to; NULL: not wanted */
    float alpha, beta;
    int m, n, k;
    int a_row, a_column, b_row, b_column; /* from element to element */
    int ldc, ldd, aux_ld;
    int a_type, b_type, c_type, bias_type;
    int epilogue;
    long long a_stride, b_stride, c_stride, d_stride; /* from product to product */
};

static __device__ float load(const void *from, long long index, int type)
{
    if (type == TYPE_F16) {
        return __half2float(static_cast<const __half *>(from)[index]);
    }
    if (type == TYPE_BF16) {
        return __bfloat162float(static_cast<const __nv_bfloat16 *>(from)[index]);
    }
    return static_cast<const float *>(from)[index];
}

static __device__ void store(void *to, long long index, int type, float value)
{
    if (type == TYPE_F16) {
        static_cast<__half *>(to)[index] = __float2half_rn(value);
    } else if (type == TYPE_BF16) {
        static_cast<__nv_bfloat16 *>(to)[index] = __float2bfloat16_rn(value);
    } else {
        static_cast<float *>(to)[index] = value;
    }
}

static __device__ float finish(const product &p, int row, int column, float value)
{
    if (p.epilogue & WITH_BIAS) {
        value = __fadd_rn(value, load(p.bias, row, p.bias_type));
    }
    if (p.aux != nullptr) {
        store(p.aux, static_cast<long long>(column) * p.aux_ld + row, p.c_type, value);
    }
    if (p.epilogue & WITH_RELU) {
        value = value > 0 ? value : 0;
    }
    if (p.epilogue & WITH_GELU) {
        float cube = 0.044715f * value * value * value;

        value = 0.5f * value * (1.0f + tanhf(0.79788456f * (value + cube)));
    }
    return value;
}

/* One element of d per thread; d may be c. */
static __device__ void multiply(const product &p, long long batch)
{
    int row = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    int column = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y);
    float sum = 0;
    float alpha = p.alpha_at != nullptr ? *p.alpha_at : p.alpha;
    float beta = p.beta_at != nullptr ? *p.beta_at : p.beta;

    if (row >= p.m || column >= p.n) {
        return;
    }
    long long a = batch * p.a_stride + static_cast<long long>(row) * p.a_row;
    long long b = batch * p.b_stride + static_cast<long long>(column) * p.b_column;
    if (p.a_type == TYPE_F32 && p.b_type == TYPE_F32) {
        const float *left = static_cast<const float *>(p.a) + a;
        const float *right = static_cast<const float *>(p.b) + b;

        for (int i = 0; i < p.k; i++) {
            sum = __fadd_rn(sum, __fmul_rn(left[static_cast<long long>(i) * p.a_column],
                                           right[static_cast<long long>(i) * p.b_row]));
        }
    } else {
        for (int i = 0; i < p.k; i++) {
            sum = __fadd_rn(
                sum, __fmul_rn(load(p.a, a + static_cast<long long>(i) * p.a_column, p.a_type),
                               load(p.b, b + static_cast<long long>(i) * p.b_row, p.b_type)));
        }
    }
    float value = __fmul_rn(alpha, sum);
    if (beta != 0) {
        long long c = batch * p.c_stride + static_cast<long long>(column) * p.ldc + row;

        value = __fadd_rn(value, __fmul_rn(beta, load(p.c, c, p.c_type)));
    }
    store(p.d, batch * p.d_stride + static_cast<long long>(column) * p.ldd + row, p.c_type,
          finish(p, row, column, value));
}

extern "C" __global__ void capuchin_gemm(product p)
{
    multiply(p, blockIdx.z);
}

/* The same with arrays of pointers in device memory, one per product. */
extern "C" __global__ void capuchin_gemm_pointers(product p, const void *const *a,
                                                  const void *const *b, void *const *c)
{
    p.a = a[blockIdx.z];
    p.b = b[blockIdx.z];
    p.c = p.d = c[blockIdx.z];
    multiply(p, 0);
}

struct product_f64 {
    const double *a, *b;
    double *c;
    double alpha, beta;
    int m, n, k;
    int a_row, a_column, b_row, b_column;
    int ldc;
    long long a_stride, b_stride, c_stride; /* from product to product */
};

extern "C" __global__ void capuchin_gemm_f64(product_f64 p)
{
    int row = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    int column = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y);
    long long batch = blockIdx.z;
    double sum = 0;

    if (row >= p.m || column >= p.n) {
        return;
    }
    const double *a = p.a + batch * p.a_stride + static_cast<long long>(row) * p.a_row;
    const double *b = p.b + batch * p.b_stride + static_cast<long long>(column) * p.b_column;
    for (int i = 0; i < p.k; i++) {
        sum = __dadd_rn(sum, __dmul_rn(a[static_cast<long long>(i) * p.a_column],
                                       b[static_cast<long long>(i) * p.b_row]));
    }
    double *to = p.c + batch * p.c_stride + static_cast<long long>(column) * p.ldc + row;
    double value = __dmul_rn(p.alpha, sum);
    *to = p.beta != 0 ? __dadd_rn(value, __dmul_rn(p.beta, *to)) : value;
}

/* What the vector kernels do. */
enum { VECTOR_SCALE = 0, VECTOR_ADD = 1, VECTOR_COPY = 2, VECTOR_SWAP = 3, VECTOR_ROTATE = 4 };

extern "C" __global__ void capuchin_vector(int what, int n, const float *alpha_at, float alpha,
                                           float beta, float *x, int x_step, float *y, int y_step)
{
    int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);

    if (i >= n) {
        return;
    }
    if (alpha_at != nullptr) {
        alpha = *alpha_at;
    }
    float from = x[static_cast<long long>(i) * x_step];
    float *to = y + static_cast<long long>(i) * y_step;
    if (what == VECTOR_SCALE) {
        *to = __fmul_rn(alpha, from);
    } else if (what == VECTOR_ADD) {
        *to = __fadd_rn(__fmul_rn(alpha, from), *to);
    } else if (what == VECTOR_ROTATE) {
        float other = *to;

        *to = __fsub_rn(__fmul_rn(alpha, other), __fmul_rn(beta, from));
        x[static_cast<long long>(i) * x_step] =
            __fadd_rn(__fmul_rn(alpha, from), __fmul_rn(beta, other));
    } else {
        if (what == VECTOR_SWAP) {
            x[static_cast<long long>(i) * x_step] = *to;
        }
        *to = from;
    }
}

/* An element of C is alpha times one of A plus beta times one of B, or of a row and a column. */
struct combination {
    const float *alpha_at, *beta_at; /* in device memory; NULL: alpha and beta are given */
    float alpha, beta;
    const float *a, *b;
    float *c;
    int m, n;
    int a_row, a_column, b_row, b_column; /* from element to element */
    int ldc;
    int is_outer; /* C += alpha a b, a by rows and b by columns */
};

extern "C" __global__ void capuchin_matrix(combination p)
{
    int row = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    int column = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y);
    float alpha = p.alpha_at != nullptr ? *p.alpha_at : p.alpha;
    float beta = p.beta_at != nullptr ? *p.beta_at : p.beta;

    if (row >= p.m || column >= p.n) {
        return;
    }
    long long a =
        static_cast<long long>(row) * p.a_row + static_cast<long long>(column) * p.a_column;
    long long b =
        static_cast<long long>(row) * p.b_row + static_cast<long long>(column) * p.b_column;
    float *c = p.c + static_cast<long long>(column) * p.ldc + row;
    if (p.is_outer) {
        *c = __fadd_rn(*c, __fmul_rn(alpha, __fmul_rn(p.a[a], p.b[b])));
    } else {
        float left = alpha != 0 ? __fmul_rn(alpha, p.a[a]) : 0;
        float right = beta != 0 ? __fmul_rn(beta, p.b[b]) : 0;

        *c = __fadd_rn(left, right);
    }
}

/* What the reduction does: the sum of products, the root of the sum of squares, the sum of absolute
   values, the number of the largest of these, from 1. */
enum { REDUCE_DOT = 0, REDUCE_NORM = 1, REDUCE_ABSOLUTE = 2, REDUCE_LARGEST = 3 };

/* One thread. */
extern "C" __global__ void capuchin_reduce(int what, int n, const float *x, int x_step,
                                           const float *y, int y_step, float *result)
{
    float sum = 0;
    float most = -1;
    int where = 0;

    for (int i = 0; i < n; i++) {
        float a = x[static_cast<long long>(i) * x_step];

        if (what == REDUCE_LARGEST) {
            where = fabsf(a) > most ? i + 1 : where;
            most = fmaxf(most, fabsf(a));
        } else if (what == REDUCE_ABSOLUTE) {
            sum = __fadd_rn(sum, fabsf(a));
        } else {
            sum = __fadd_rn(sum, __fmul_rn(a, y[static_cast<long long>(i) * y_step]));
        }
    }
    *result = what == REDUCE_LARGEST ? __int_as_float(where)
              : what == REDUCE_NORM  ? sqrtf(sum)
                                     : sum;
}

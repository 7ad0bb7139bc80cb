/* cuBLAS and cuBLASLt over the test driver, each call compared with a loop in the same order. */
#include "tests/ptx/include/cublaslt_types.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { MOST = 4096 };

static float host[4][MOST];
static float *device[4];
static cublasHandle_t handle;

/* Four buffers with different contents, here and on the device. */
static void start(void)
{
    unsigned state = 1;

    for (int i = 0; i < 4; i++) {
        void *address;

        for (int j = 0; j < MOST; j++) {
            state = state * 1664525u + 1013904223u;
            host[i][j] = (float)(state >> 8) / 8388608.0f - 1.0f;
        }
        ck_assert_int_eq(cudaMalloc(&address, sizeof(host[i])), cudaSuccess);
        device[i] = address;
        ck_assert_int_eq(cudaMemcpy(address, host[i], sizeof(host[i]), cudaMemcpyHostToDevice),
                         cudaSuccess);
    }
    ck_assert_uint_eq(cublasCreate_v2(&handle), CUBLAS_STATUS_SUCCESS);
}

/* Whether buffer 2 on the device is as on the host. */
static void check(void)
{
    static float got[MOST];

    ck_assert_int_eq(cudaMemcpy(got, device[2], sizeof(got), cudaMemcpyDeviceToHost), cudaSuccess);
    for (int i = 0; i < MOST; i++) {
        ck_assert_msg(memcmp(&got[i], &host[2][i], sizeof(float)) == 0, "element %d: %g, not %g", i,
                      (double)got[i], (double)host[2][i]);
    }
}

/* Rounds to a float, whatever the compiler would like to keep. */
static float round_to_float(float value)
{
    volatile float rounded = value;

    return rounded;
}

static void multiply(bool is_a_transposed, bool is_b_transposed, int m, int n, int k, float alpha,
                     int lda, int ldb, float beta, int ldc, long long first)
{
    for (int row = 0; row < m; row++) {
        for (int column = 0; column < n; column++) {
            float *c = &host[2][first + column * ldc + row];
            float sum = 0;

            for (int i = 0; i < k; i++) {
                float a = host[0][is_a_transposed ? row * lda + i : i * lda + row];
                float b = host[1][is_b_transposed ? i * ldb + column : column * ldb + i];

                sum = round_to_float(sum + round_to_float(a * b));
            }
            sum = round_to_float(alpha * sum);
            *c = beta != 0 ? round_to_float(sum + round_to_float(beta * *c)) : sum;
        }
    }
}

START_TEST(products_of_all_forms)
{
    const float alpha = 0.5f;
    const float betas[] = {0, 2};

    start();
    for (unsigned form = 0; form < 8; form++) {
        bool is_a_transposed = (form & 1) != 0;
        bool is_b_transposed = (form & 2) != 0;
        float beta = betas[form >> 2];

        ck_assert_uint_eq(cublasSgemm_v2(handle, form & 1, form >> 1 & 1, 19, 21, 23, &alpha,
                                         device[0], 24, device[1], 25, &beta, device[2], 20),
                          CUBLAS_STATUS_SUCCESS);
        multiply(is_a_transposed, is_b_transposed, 19, 21, 23, alpha, 24, 25, beta, 20, 0);
        check();
    }
    ck_assert_uint_eq(cublasSgemm_v2(handle, 0, 0, 19, 21, 23, &alpha, device[0], 18, device[1], 25,
                                     &alpha, device[2], 20),
                      CUBLAS_STATUS_INVALID_VALUE);
}
END_TEST

START_TEST(batches_and_scalars_on_the_device)
{
    const float zero = 0;
    float alpha = 3;

    start();
    ck_assert_uint_eq(cublasSgemmStridedBatched(handle, 0, 0, 4, 5, 6, &alpha, device[0], 4, 0,
                                                device[1], 6, 0, &zero, device[2], 4, 100, 3),
                      CUBLAS_STATUS_SUCCESS);
    for (int i = 0; i < 3; i++) {
        multiply(false, false, 4, 5, 6, alpha, 4, 6, 0, 4, 100 * i);
    }
    check();
    ck_assert_uint_eq(cublasSetPointerMode_v2(handle, CUBLAS_POINTER_MODE_DEVICE),
                      CUBLAS_STATUS_SUCCESS);
    ck_assert_uint_eq(cublasSgemm_v2(handle, 0, 0, 4, 5, 6, device[3], device[0], 4, device[1], 6,
                                     device[3] + 1, device[2], 4),
                      CUBLAS_STATUS_SUCCESS);
    multiply(false, false, 4, 5, 6, host[3][0], 4, 6, host[3][1], 4, 0);
    check();
}
END_TEST

/* Drops what bfloat16 does not have, and returns the rest. */
static uint16_t bfloat16_of(float *value)
{
    uint32_t bits;

    memcpy(&bits, value, sizeof(bits));
    bits &= 0xffff0000u;
    memcpy(value, &bits, sizeof(bits));
    return (uint16_t)(bits >> 16);
}

START_TEST(bfloat16_operands)
{
    static uint16_t small[2][MOST];
    const float alpha = 1;
    const float zero = 0;

    start();
    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < MOST; j++) {
            small[i][j] = bfloat16_of(&host[i][j]);
        }
        ck_assert_int_eq(cudaMemcpy(device[i], small[i], sizeof(small[i]), cudaMemcpyHostToDevice),
                         cudaSuccess);
    }
    ck_assert_uint_eq(cublasGemmEx(handle, 1, 0, 7, 8, 9, &alpha, device[0], CUDA_R_16BF, 9,
                                   device[1], CUDA_R_16BF, 9, &zero, device[2], CUDA_R_32F, 7,
                                   CUBLAS_COMPUTE_32F, -1),
                      CUBLAS_STATUS_SUCCESS);
    multiply(true, false, 7, 8, 9, 1, 9, 9, 0, 7, 0);
    check();
    ck_assert_uint_eq(cublasGemmEx_64(handle, 1, 0, INT64_C(1) << 40, 8, 9, &alpha, device[0],
                                      CUDA_R_32F, 9, device[1], CUDA_R_32F, 9, &zero, device[2],
                                      CUDA_R_32F, 7, CUBLAS_COMPUTE_32F, -1),
                      CUBLAS_STATUS_NOT_SUPPORTED);
    ck_assert_uint_eq(cublasGemmEx(handle, 1, 0, 7, 8, 9, &alpha, device[0], CUDA_R_64F, 9,
                                   device[1], CUDA_R_16BF, 9, &zero, device[2], CUDA_R_32F, 7,
                                   CUBLAS_COMPUTE_32F, -1),
                      CUBLAS_STATUS_NOT_SUPPORTED);
}
END_TEST

/* Whole numbers up to 31, which halves have exactly. */
static uint16_t half_of(int value)
{
    int exponent = value > 15 ? 4 : value > 7 ? 3 : value > 3 ? 2 : value > 1 ? 1 : 0;

    return (uint16_t)(value == 0 ? 0
                                 : ((exponent + 15) << 10 | ((value << 10 >> exponent) - 1024)));
}

/* Items of 4 by 4 matrices of whole numbers, which all formats have: A, B, and what C held. */
static int whole(int which, int batch, int row, int column)
{
    return (which + batch + 2 * row + column) % 3;
}

static int product_of(int batch, int row, int column, int beta)
{
    int sum = 0;

    for (int i = 0; i < 4; i++) {
        sum += whole(0, batch, row, i) * whole(1, batch, i, column);
    }
    return sum + beta * whole(2, batch, row, column);
}

enum { MATRICES = 3, APART = 32 }; /* elements from one to the next */

/* Fills all three buffers with matrices of doubles, floats or halves by columns. */
static void fill(size_t bytes)
{
    static union {
        double wide[MATRICES * APART];
        float floats[MATRICES * APART];
        uint16_t halves[MATRICES * APART];
    } items;

    for (int which = 0; which < 3; which++) {
        for (int i = 0; i < MATRICES * APART; i++) {
            int value = whole(which, i / APART, i % APART % 4, i % APART / 4 % 4);

            if (bytes == 8) {
                items.wide[i] = value;
            } else if (bytes == 4) {
                items.floats[i] = (float)value;
            } else {
                items.halves[i] = half_of(value);
            }
        }
        ck_assert_int_eq(
            cudaMemcpy(device[which], &items, bytes * MATRICES * APART, cudaMemcpyHostToDevice),
            cudaSuccess);
    }
}

static void check_products(size_t bytes, int count, int beta)
{
    static unsigned char got[8 * MATRICES * APART];

    ck_assert_int_eq(cudaMemcpy(got, device[2], bytes * MATRICES * APART, cudaMemcpyDeviceToHost),
                     cudaSuccess);
    for (int i = 0; i < count * APART; i++) {
        int row = i % APART % 4, column = i % APART / 4;
        int value = column < 4 ? product_of(i / APART, row, column, beta)
                               : whole(2, i / APART, row, column % 4);
        double wide = value;
        float single = (float)value;
        uint16_t half = half_of(value);

        ck_assert_msg(memcmp(got + (size_t)i * bytes,
                             bytes == 8   ? (void *)&wide
                             : bytes == 4 ? (void *)&single
                                          : (void *)&half,
                             bytes) == 0,
                      "%zu bytes, element %d is not %d", bytes, i, value);
    }
}

START_TEST(halves_and_doubles)
{
    const uint16_t half_one = 0x3c00, half_zero = 0;
    const double one = 1;
    const float float_one = 1, float_zero = 0;
    const __half *a, *b;
    __half *c;

    start();
    a = (const __half *)device[0];
    b = (const __half *)device[1];
    c = (__half *)device[2];
    fill(2);
    ck_assert_uint_eq(cublasHgemm(handle, 0, 0, 4, 4, 4, &half_one, a, 4, b, 4, &half_zero, c, 4),
                      CUBLAS_STATUS_SUCCESS);
    check_products(2, 1, 0);
    fill(2);
    ck_assert_uint_eq(cublasHgemmStridedBatched(handle, 0, 0, 4, 4, 4, &half_one, a, 4, APART, b, 4,
                                                APART, &half_one, c, 4, APART, MATRICES),
                      CUBLAS_STATUS_SUCCESS);
    check_products(2, MATRICES, 1);
    fill(2);
    ck_assert_uint_eq(cublasSgemmEx(handle, 0, 0, 4, 4, 4, &float_one, a, CUDA_R_16F, 4, b,
                                    CUDA_R_16F, 4, &float_zero, c, CUDA_R_16F, 4),
                      CUBLAS_STATUS_SUCCESS);
    check_products(2, 1, 0);
    fill(8);
    ck_assert_uint_eq(cublasGemmStridedBatchedEx(
                          handle, 0, 0, 4, 4, 4, &one, a, CUDA_R_64F, 4, APART, b, CUDA_R_64F, 4,
                          APART, &one, c, CUDA_R_64F, 4, APART, MATRICES, CUBLAS_COMPUTE_64F, -1),
                      CUBLAS_STATUS_SUCCESS);
    check_products(8, MATRICES, 1);
}
END_TEST

/* Arrays of pointers to the matrices, the last first, in the fourth buffer. */
static void list_matrices(size_t bytes, void *lists[3])
{
    const void *pointers[3][MATRICES];

    for (int which = 0; which < 3; which++) {
        for (size_t i = 0; i < MATRICES; i++) {
            pointers[which][i] =
                (unsigned char *)device[which] + (MATRICES - 1 - i) * APART * bytes;
        }
        lists[which] = (unsigned char *)device[3] + which * sizeof(pointers[0]);
    }
    ck_assert_int_eq(cudaMemcpy(device[3], pointers, sizeof(pointers), cudaMemcpyHostToDevice),
                     cudaSuccess);
}

START_TEST(arrays_of_pointers)
{
    const uint16_t half_one = 0x3c00;
    const float one = 1;
    void *lists[3];

    start();
    fill(4);
    list_matrices(4, lists);
    ck_assert_uint_eq(cublasSgemmBatched(handle, 0, 0, 4, 4, 4, &one, (const float **)lists[0], 4,
                                         (const float **)lists[1], 4, &one, (float **)lists[2], 4,
                                         MATRICES),
                      CUBLAS_STATUS_SUCCESS);
    check_products(4, MATRICES, 1);
    fill(2);
    list_matrices(2, lists);
    ck_assert_uint_eq(cublasHgemmBatched(handle, 0, 0, 4, 4, 4, &half_one,
                                         (const __half **)lists[0], 4, (const __half **)lists[1], 4,
                                         &half_one, (__half **)lists[2], 4, MATRICES),
                      CUBLAS_STATUS_SUCCESS);
    check_products(2, MATRICES, 1);
    ck_assert_uint_eq(cublasGemmBatchedEx(handle, 0, 0, 4, 4, 4, &one, lists[0], CUDA_R_16F, 4,
                                          lists[1], CUDA_R_16F, 4, &one, lists[2], CUDA_R_16F, 3,
                                          MATRICES, CUBLAS_COMPUTE_32F, -1),
                      CUBLAS_STATUS_INVALID_VALUE);
}
END_TEST

START_TEST(vectors)
{
    const float alpha = 0.25f;
    const float zero = 0;
    float dot = 0;
    float norm = 0;
    float expected = 0;

    start();
    ck_assert_uint_eq(cublasSaxpy_v2(handle, 300, &alpha, device[0], 2, device[2], 3),
                      CUBLAS_STATUS_SUCCESS);
    for (int i = 0; i < 300; i++) {
        host[2][3 * i] = round_to_float(round_to_float(alpha * host[0][2 * i]) + host[2][3 * i]);
    }
    check();
    ck_assert_uint_eq(cublasSscal_v2(handle, 10, &alpha, device[2], 1), CUBLAS_STATUS_SUCCESS);
    for (int i = 0; i < 10; i++) {
        host[2][i] = round_to_float(alpha * host[2][i]);
    }
    check();
    ck_assert_uint_eq(cublasSdot_v2(handle, 100, device[0], 1, device[1], 2, &dot),
                      CUBLAS_STATUS_SUCCESS);
    for (int i = 0; i < 100; i++) {
        expected = round_to_float(expected + round_to_float(host[0][i] * host[1][2 * i]));
    }
    ck_assert(dot == expected);
    ck_assert_uint_eq(cublasSnrm2_v2(handle, 1, device[0], 1, &norm), CUBLAS_STATUS_SUCCESS);
    ck_assert(fabsf(norm - fabsf(host[0][0])) < 1e-6f);
    ck_assert_uint_eq(cublasSgemv_v2(handle, CUBLAS_OP_N, 6, 7, &alpha, device[0], 8, device[1], 2,
                                     &zero, device[2], 3),
                      CUBLAS_STATUS_SUCCESS);
    for (int row = 0; row < 6; row++) {
        float sum = 0;

        for (int i = 0; i < 7; i++) {
            sum = round_to_float(sum + round_to_float(host[1][2 * i] * host[0][8 * i + row]));
        }
        host[2][3 * row] = round_to_float(alpha * sum);
    }
    check();
}
END_TEST

/* With steps and leading dimensions that differ. */
START_TEST(transfers)
{
    float back[64] = {0};

    start();
    ck_assert_uint_eq(cublasSetVector(20, sizeof(float), host[1], 2, device[0], 3),
                      CUBLAS_STATUS_SUCCESS);
    for (int i = 0; i < 20; i++) {
        host[0][3 * i] = host[1][2 * i];
    }
    ck_assert_uint_eq(cublasSetMatrix(5, 6, sizeof(float), host[0], 7, device[2], 9),
                      CUBLAS_STATUS_SUCCESS);
    for (int i = 0; i < 30; i++) {
        host[2][i / 5 * 9 + i % 5] = host[0][i / 5 * 7 + i % 5];
    }
    ck_assert_uint_eq(cublasSetVector(40, sizeof(float), host[0], 1, device[1], 1),
                      CUBLAS_STATUS_SUCCESS);
    memcpy(host[1], host[0], 40 * sizeof(float));
    check();
    ck_assert_uint_eq(cublasGetMatrix(5, 6, sizeof(float), device[2], 9, back, 5),
                      CUBLAS_STATUS_SUCCESS);
    for (int i = 0; i < 30; i++) {
        ck_assert(back[i] == host[2][i / 5 * 9 + i % 5]);
    }
    ck_assert_uint_eq(cublasGetVector(20, sizeof(float), device[0], 3, back, 1),
                      CUBLAS_STATUS_SUCCESS);
    for (int i = 0; i < 20; i++) {
        ck_assert(back[i] == host[0][3 * i]);
    }
    ck_assert_uint_eq(cublasSetMatrix(5, 6, sizeof(float), host[0], 4, device[2], 9),
                      CUBLAS_STATUS_INVALID_VALUE);
}
END_TEST

START_TEST(vectors_and_matrices)
{
    const float cosine = 0.8f;
    const float sine = 0.6f;
    int largest = 0;
    int expected = 0;

    start();
    ck_assert_uint_eq(cublasSswap_v2(handle, 20, device[0], 1, device[1], 3),
                      CUBLAS_STATUS_SUCCESS);
    for (int i = 0; i < 20; i++) {
        float x = host[0][i];

        host[0][i] = host[1][3 * i];
        host[1][3 * i] = x;
    }
    check();
    ck_assert_uint_eq(cublasSrot_v2(handle, 20, device[0], 2, device[1], 1, &cosine, &sine),
                      CUBLAS_STATUS_SUCCESS);
    for (int i = 0; i < 20; i++) {
        float x = host[0][2 * i];
        float y = host[1][i];

        host[0][2 * i] = round_to_float(round_to_float(cosine * x) + round_to_float(sine * y));
        host[1][i] = round_to_float(round_to_float(cosine * y) - round_to_float(sine * x));
    }
    check();
    ck_assert_uint_eq(cublasSger_v2(handle, 6, 7, &sine, device[0], 2, device[1], 1, device[2], 8),
                      CUBLAS_STATUS_SUCCESS);
    for (int i = 0; i < 42; i++) {
        float *to = &host[2][i / 6 * 8 + i % 6];

        *to = round_to_float(
            *to + round_to_float(sine * round_to_float(host[0][i % 6 * 2] * host[1][i / 6])));
    }
    check();
    ck_assert_uint_eq(cublasSgeam(handle, CUBLAS_OP_T, CUBLAS_OP_N, 6, 7, &sine, device[0], 9,
                                  &cosine, device[1], 6, device[2], 8),
                      CUBLAS_STATUS_SUCCESS);
    for (int i = 0; i < 42; i++) {
        host[2][i / 6 * 8 + i % 6] =
            round_to_float(round_to_float(sine * host[0][i % 6 * 9 + i / 6]) +
                           round_to_float(cosine * host[1][i]));
    }
    check();
    for (int i = 1; i < 30; i++) {
        expected = fabsf(host[2][i]) > fabsf(host[2][expected]) ? i : expected;
    }
    ck_assert_uint_eq(cublasIsamax_v2(handle, 30, device[2], 1, &largest), CUBLAS_STATUS_SUCCESS);
    ck_assert_int_eq(largest, expected + 1);
}
END_TEST

START_TEST(lt_adds_a_bias_and_an_activation)
{
    const float alpha = 1;
    const float zero = 0;
    const uint32_t transposed = CUBLAS_OP_T;
    const uint32_t epilogue = CUBLASLT_EPILOGUE_RELU | CUBLASLT_EPILOGUE_BIAS;
    const void *bias;
    cublasLtHandle_t lt;
    cublasLtMatmulDesc_t description;
    cublasLtMatrixLayout_t layouts[3];
    int64_t ld = 0;
    uint32_t got = 0;
    size_t written = 0;

    start();
    bias = device[3];
    ck_assert_uint_eq(cublasLtCreate(&lt), CUBLAS_STATUS_SUCCESS);
    ck_assert_uint_eq(cublasLtMatmulDescCreate(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F),
                      CUBLAS_STATUS_SUCCESS);
    ck_assert_uint_eq(cublasLtMatmulDescSetAttribute(description, CUBLASLT_MATMUL_DESC_TRANSA,
                                                     &transposed, sizeof(transposed)),
                      CUBLAS_STATUS_SUCCESS);
    ck_assert_uint_eq(cublasLtMatmulDescSetAttribute(description, CUBLASLT_MATMUL_DESC_EPILOGUE,
                                                     &epilogue, sizeof(epilogue)),
                      CUBLAS_STATUS_SUCCESS);
    ck_assert_uint_eq(cublasLtMatmulDescSetAttribute(description, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                                     &bias, sizeof(bias)),
                      CUBLAS_STATUS_SUCCESS);
    cublasLtMatrixLayoutCreate(&layouts[0], CUDA_R_32F, 11, 10, 12);
    cublasLtMatrixLayoutCreate(&layouts[1], CUDA_R_32F, 11, 9, 11);
    cublasLtMatrixLayoutCreate(&layouts[2], CUDA_R_32F, 10, 9, 10);
    ck_assert_uint_eq(cublasLtMatmul(lt, description, &alpha, device[0], layouts[0], device[1],
                                     layouts[1], &zero, device[2], layouts[2], device[2],
                                     layouts[2], NULL, NULL, 0, NULL),
                      CUBLAS_STATUS_SUCCESS);
    ck_assert_uint_eq(cublasLtMatrixLayoutGetAttribute(layouts[0], CUBLASLT_MATRIX_LAYOUT_LD, &ld,
                                                       sizeof(ld), &written),
                      CUBLAS_STATUS_SUCCESS);
    ck_assert_int_eq(ld, 12);
    ck_assert_uint_eq(written, sizeof(ld));
    ck_assert_uint_eq(cublasLtMatmulDescGetAttribute(description, CUBLASLT_MATMUL_DESC_EPILOGUE,
                                                     &got, sizeof(got), NULL),
                      CUBLAS_STATUS_SUCCESS);
    ck_assert_uint_eq(got, epilogue);
    multiply(true, false, 10, 9, 11, 1, 12, 11, 0, 10, 0);
    for (int i = 0; i < 90; i++) {
        float value = round_to_float(host[2][i] + host[3][i % 10]);

        host[2][i] = value > 0 ? value : 0;
    }
    check();
    for (int i = 0; i < 3; i++) {
        cublasLtMatrixLayoutDestroy(layouts[i]);
    }
    cublasLtMatmulDescDestroy(description);
    cublasLtDestroy(lt);
}
END_TEST

START_TEST(a_handle_needs_its_workspace)
{
    size_t before;
    size_t after;
    size_t total;
    void *address;

    setenv("PTX_DRIVER_MEMORY", "64KiB", 1);
    ck_assert_int_eq(cudaMalloc(&address, 512), cudaSuccess);
    ck_assert_uint_eq(cublasCreate_v2(&handle), CUBLAS_STATUS_ALLOC_FAILED);
    ck_assert_int_eq(cudaFree(address), cudaSuccess);
    ck_assert_int_eq(cudaMemGetInfo(&before, &total), cudaSuccess);
    ck_assert_uint_eq(cublasCreate_v2(&handle), CUBLAS_STATUS_SUCCESS);
    ck_assert_uint_eq(cublasDestroy_v2(handle), CUBLAS_STATUS_SUCCESS);
    ck_assert_int_eq(cudaMemGetInfo(&after, &total), cudaSuccess);
    ck_assert_uint_eq(before, after);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuBLAS over the test driver");
    TCase *tcase = tcase_create("cublas");

    tcase_add_test(tcase, products_of_all_forms);
    tcase_add_test(tcase, batches_and_scalars_on_the_device);
    tcase_add_test(tcase, bfloat16_operands);
    tcase_add_test(tcase, halves_and_doubles);
    tcase_add_test(tcase, arrays_of_pointers);
    tcase_add_test(tcase, vectors);
    tcase_add_test(tcase, transfers);
    tcase_add_test(tcase, vectors_and_matrices);
    tcase_add_test(tcase, lt_adds_a_bias_and_an_activation);
    tcase_add_test(tcase, a_handle_needs_its_workspace);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}

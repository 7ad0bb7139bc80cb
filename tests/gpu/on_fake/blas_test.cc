/*
 * The handles of cuBLAS that the kernels keep, and its absence: over the fake runtime, which can
 * have two devices, and with stand-ins for cuBLAS. Each test runs in a process of its own, so it
 * may change the environment.
 */
#include "kernels/blas.cuh"
#include "kernels/matmul.h"

#include "tests/ptx/stand_in/cuda_runtime.h"

extern "C" {
#include "tests/fake_cudart/fake_cudart.h"
#include "tests/support/suite.h"
}

#include <cstdio>
#include <cstdlib>
#include <cstring>

static capu_stream make_stream(int device)
{
    cudaStream_t stream = NULL;

    ck_assert_int_eq(cudaSetDevice(device), cudaSuccess);
    ck_assert_int_eq(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    ck_assert_int_eq(cudaSetDevice(0), cudaSuccess);
    return (capu_stream)stream;
}

static void make_two_devices(void)
{
    struct fake_cudart_machine machine = {};

    machine.device_count = 2;
    fake_cudart_reset(&machine);
}

/* A wrong value in the environment is reported before the first op. */
START_TEST(an_unknown_arithmetic_is_rejected)
{
    capu_stream stream = make_stream(0);

    setenv("KERNELS_MATMUL", "fp8", 1);
    ck_assert_int_eq(blas_prepare(stream, true), CAPU_INVALID);
    setenv("KERNELS_MATMUL", "bf16", 1);
    ck_assert_int_eq(blas_prepare(stream, true), CAPU_OK);
}
END_TEST

/* A handle is created on the stream's device, and the current device stays the same. The stand-in
   rejects a handle with a stream of another device. */
START_TEST(handles_belong_to_the_device_of_the_stream)
{
    capu_stream streams[2];
    int current = -1;
    void *scratch[2] = {NULL, NULL};

    make_two_devices();
    for (int i = 0; i < 2; i++) {
        streams[i] = make_stream(i);
        ck_assert_int_eq(blas_prepare(streams[i], true), CAPU_OK);
        ck_assert_int_eq(cudaGetDevice(&current), cudaSuccess);
        ck_assert_int_eq(current, 0);
        ck_assert_int_eq(blas_scratch(streams[i], &scratch[i]), CAPU_OK);
    }
    ck_assert_ptr_ne(scratch[0], scratch[1]);
}
END_TEST

/* A null stream is one of the current device, so the same address stands for two streams. */
START_TEST(streams_of_two_devices_may_have_one_address)
{
    void *scratch = NULL;
    void *other = NULL;
    void *again = NULL;

    make_two_devices();
    ck_assert_int_eq(blas_scratch(NULL, &scratch), CAPU_OK);
    ck_assert_int_eq(cudaSetDevice(1), cudaSuccess);
    ck_assert_int_eq(blas_scratch(NULL, &other), CAPU_OK);
    ck_assert_ptr_ne(scratch, other);
    ck_assert_int_eq(cudaSetDevice(0), cudaSuccess);
    ck_assert_int_eq(blas_scratch(NULL, &again), CAPU_OK);
    ck_assert_ptr_eq(scratch, again);
}
END_TEST

START_TEST(a_missing_cublas_is_reported)
{
    const char *cublas = getenv("KERNELS_CUBLAS");
    char path[4096];
    char alone[4096 + 16];
    char text[512];
    struct matmul matmul = {};
    void *scratch = NULL;
    void *other = NULL;
    capu_stream stream = make_stream(0);

    ck_assert_ptr_nonnull(cublas);
    snprintf(path, sizeof(path), "%s", cublas);
    snprintf(alone, sizeof(alone), "%.*s_alone.so", (int)strlen(path) - 3, path);
    setenv("KERNELS_CUBLAS", alone, 1);
    ck_assert_int_eq(blas_prepare(stream, true), CAPU_UNSUPPORTED);
    ck_assert_int_eq(blas_find(text, sizeof(text)), CAPU_UNSUPPORTED);
    ck_assert_msg(strstr(text, "cublasLtMatmul") != NULL, "not named: %s", text);
    setenv("KERNELS_CUBLAS", "/nowhere/libcublas.so", 1);
    ck_assert_int_eq(blas_find(text, sizeof(text)), CAPU_UNSUPPORTED);
    ck_assert_msg(strstr(text, "/nowhere/libcublas.so") != NULL, "not named: %s", text);
    ck_assert_int_eq(blas_prepare(stream, true), CAPU_UNSUPPORTED);
    matmul.rows = 1;
    ck_assert_int_eq(matmul_backward_input_cuda(stream, &matmul), CAPU_UNSUPPORTED);
    /* What multiplies no matrices does not need it; what it has made serves products later. */
    ck_assert_int_eq(blas_prepare(stream, false), CAPU_OK);
    ck_assert_int_eq(blas_scratch(stream, &scratch), CAPU_OK);
    ck_assert_int_eq(blas_prepare(stream, true), CAPU_UNSUPPORTED);
    setenv("KERNELS_CUBLAS", path, 1);
    ck_assert_int_eq(blas_prepare(stream, true), CAPU_OK);
    ck_assert_int_eq(blas_scratch(stream, &other), CAPU_OK);
    ck_assert_ptr_eq(scratch, other);
    ck_assert_int_eq(blas_find(text, sizeof(text)), CAPU_OK);
    ck_assert_msg(strstr(text, "libfake_cublas.so and ") != NULL &&
                      strstr(text, "libfake_cublas_lt.so") != NULL,
                  "not named: %s", text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuBLAS of the kernels");
    TCase *tests = tcase_create("handles");

    tcase_add_test(tests, an_unknown_arithmetic_is_rejected);
    tcase_add_test(tests, handles_belong_to_the_device_of_the_stream);
    tcase_add_test(tests, streams_of_two_devices_may_have_one_address);
    tcase_add_test(tests, a_missing_cublas_is_reported);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

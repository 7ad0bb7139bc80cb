/*
 * The inside of libcudart.so.13 of these tests: CUDA's runtime as thin calls of the driver. The
 * driver is found as NVIDIA's runtime finds it, by dlopen("libcuda.so.1") and cuGetProcAddress, so
 * that a library in front of the driver sees everything.
 */
#ifndef CAPU_TESTS_PTX_CUDART_H
#define CAPU_TESTS_PTX_CUDART_H

#include "tests/ptx/client/driver_table.h"
#include "tests/ptx/include/cudart_types.h"

#include <stdbool.h>

/* Begins a call: finds the driver and makes the device's primary context current, if neither has
   happened yet. Returns success, or the error that the call must return. */
cudaError_t cudart_enter(void);
/* Ends a call: stores the error, if it is one, as the thread's last error, and returns it. */
cudaError_t cudart_leave(int error);
/* The calls for the variant that runs: legacy or per-thread default stream. Pre: entered. */
const struct driver_table *cudart_driver(void);
/* The driver's form of a copy. Arrays are not supported. Returns an error, for the caller to store.
 */
cudaError_t cudart_form_3d(const struct cudaMemcpy3DParms *given, CUDA_MEMCPY3D *copy);
/* Which variant runs in this thread; set by the variants around the call itself. */
extern _Thread_local bool cudart_is_per_thread;

#define CUDART_ENTER()                         \
    do {                                       \
        cudaError_t entered_ = cudart_enter(); \
        if (entered_ != cudaSuccess) {         \
            return cudart_leave(entered_);     \
        }                                      \
    } while (0)

/* The whole body of a call that is one call of the driver. */
#define CUDART_FORWARD(name, ...)                                     \
    do {                                                              \
        CUDART_ENTER();                                               \
        return cudart_leave((int)cudart_driver()->name(__VA_ARGS__)); \
    } while (0)

#endif

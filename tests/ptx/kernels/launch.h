/*
 * How the kernels of kernels/ are launched where a C++ compiler has compiled their host code:
 * included before each of these files. A launch is handed to whoever links them: to the test
 * runtime (launch_cudart.cc) or to the fake one (tests/gpu/on_fake).
 */
#ifndef CAPU_TESTS_PTX_KERNELS_LAUNCH_H
#define CAPU_TESTS_PTX_KERNELS_LAUNCH_H

#include "tests/ptx/stand_in/cuda_runtime.h"

/*
 * Enqueues the kernel of this host function, whose PTX was made from the source file `file`. The
 * arguments are copied.
 */
void kernels_enqueue(const void *function, const char *file, dim3 grid, dim3 block,
                     void *const *arguments, cudaStream_t stream);

template <typename... Parameters> struct kernels_launcher {
    void (*kernel)(Parameters...);
    const char *file;
    dim3 grid, block;
    cudaStream_t stream;

    void operator()(Parameters... values) const
    {
        void *pointers[] = {const_cast<void *>(static_cast<const void *>(&values))...};

        kernels_enqueue(reinterpret_cast<const void *>(kernel), file, grid, block, pointers,
                        stream);
    }
};

template <typename... Parameters>
kernels_launcher<Parameters...> kernels_launch(void (*kernel)(Parameters...), const char *file,
                                               dim3 grid, dim3 block, void *stream)
{
    return {kernel, file, grid, block, static_cast<cudaStream_t>(stream)};
}

#define GRID_LAUNCH(kernel, blocks, threads, stream, ...) \
    kernels_launch(kernel, __BASE_FILE__, (blocks), (threads), (stream))(__VA_ARGS__)

#endif

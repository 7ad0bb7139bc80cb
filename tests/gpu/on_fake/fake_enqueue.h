/* Work for the streams of the fake runtime, from kernels and from the stand-in for cuBLAS. */
#ifndef CAPU_TESTS_GPU_ON_FAKE_FAKE_ENQUEUE_H
#define CAPU_TESTS_GPU_ON_FAKE_FAKE_ENQUEUE_H

#include "tests/ptx/stand_in/cuda_runtime.h"

#include <functional>

/* Runs `work` when the stream reaches it, or, if the stream is captured, at each launch of the
   graph. If it returns false, the device is lost. */
void fake_enqueue(cudaStream_t stream, const std::function<bool()> &work);

#endif

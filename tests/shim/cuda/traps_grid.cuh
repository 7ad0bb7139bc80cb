// How the kernels of the traps divide their work. No kernels: those are in the PTX of every program
// that includes them.
#ifndef TRAPS_GRID_CUH
#define TRAPS_GRID_CUH

#include <cuda_runtime.h>

const int kThreads = 128;

__device__ inline int global_index()
{
    return blockIdx.x * blockDim.x + threadIdx.x;
}

#endif

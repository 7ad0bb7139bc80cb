/* Types of pointers to the driver's calls, see fake_cuda_calls.h. */
#ifndef CAPU_TESTS_FAKE_CUDA_TYPEDEFS_H
#define CAPU_TESTS_FAKE_CUDA_TYPEDEFS_H

#include "cuda.h"

#define FAKE_DRIVER_POINTER(name, parameters) typedef CUresult(*PFN_##name##_v10020) parameters;
FAKE_DRIVER_CALLS(FAKE_DRIVER_POINTER)
#undef FAKE_DRIVER_POINTER
#define FAKE_DRIVER_POINTER(name, parameters) typedef CUresult(*PFN_##name##_v4000) parameters;
FAKE_DRIVER_CONTEXT_CALLS(FAKE_DRIVER_POINTER)
#undef FAKE_DRIVER_POINTER
#define FAKE_DRIVER_POINTER(name, parameters) typedef CUresult(*PFN_##name##_v11070) parameters;
FAKE_DRIVER_WAIT_CALLS(FAKE_DRIVER_POINTER)
#undef FAKE_DRIVER_POINTER

#endif

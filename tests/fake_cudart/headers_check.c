/*
 * Compiled, but never run, where NVIDIA's headers are installed: checks that what the fake's own
 * lists declare is declared in the same way there; tests/ptx/headers_check.c does the same for the
 * lists that it shares. A call with another type is a conflicting declaration.
 */
#include "include/fake_cuda_calls.h"

#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>
#include <stddef.h>

#define SAME_VALUE(name, value) _Static_assert((name) == (value), #name);
FAKE_DRIVER_VALUES(SAME_VALUE)

#if CUDART_VERSION >= 13000
_Static_assert(cudaErrorContained == 226 && cudaErrorTensorMemoryLeak == 721, "cuda.c");
#endif

#define SAME_OFFSET(type, field, offset) \
    _Static_assert(offsetof(type, field) == (offset), #type "." #field);
FAKE_DRIVER_FIELDS(SAME_OFFSET)
#define SAME_SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), #type);
FAKE_DRIVER_SIZES(SAME_SIZE)

#define SAME_RUNTIME_CALL(name, parameters) extern cudaError_t name parameters;
FAKE_CUDA_CALLS(SAME_RUNTIME_CALL)
#if CUDART_VERSION >= 13000
FAKE_CUDA_13_CALLS(SAME_RUNTIME_CALL)
#endif
#define SAME_DRIVER_CALL(name, parameters)                                                    \
    extern CUresult name parameters;                                                          \
    _Static_assert(__builtin_types_compatible_p(PFN_##name##_v10020, CUresult(*) parameters), \
                   #name);
FAKE_DRIVER_CALLS(SAME_DRIVER_CALL)
#define SAME_CONTEXT_CALL(name, parameters) \
    extern CUresult name parameters;        \
    _Static_assert(__builtin_types_compatible_p(PFN_##name##_v4000, CUresult(*) parameters), #name);
FAKE_DRIVER_CONTEXT_CALLS(SAME_CONTEXT_CALL)
#define SAME_WAIT_CALL(name, parameters)                                                      \
    extern CUresult name parameters;                                                          \
    _Static_assert(__builtin_types_compatible_p(PFN_##name##_v11070, CUresult(*) parameters), \
                   #name);
FAKE_DRIVER_WAIT_CALLS(SAME_WAIT_CALL)

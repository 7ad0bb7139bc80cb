/*
 * Compiled, but never run, where NVIDIA's headers are installed: checks that everything our headers
 * declare is declared in the same way there. A call with another type is a conflicting declaration.
 */
#define __CUDA_API_VERSION_INTERNAL /* also the first versions of functions */
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>
#include <stddef.h>

#include "tests/ptx/include/cublas_calls.h"
#include "tests/ptx/include/cudart_calls.h"
#include "tests/ptx/include/cudart_values.h"
#include "tests/ptx/include/driver_calls.h"
#include "tests/ptx/include/driver_values.h"

/* Since CUDA 12, the shorter name means this one. */
#define PFN_cuGraphInstantiate_v12000 PFN_cuGraphInstantiateWithFlags_v11040

#define SAME_OFFSET(type, field, offset) \
    _Static_assert(offsetof(type, field) == (offset), #type "." #field);
#define SAME_SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), #type);
#define SAME_VALUE(name, value) _Static_assert((int)(name) == (value), #name);
DRIVER_FIELDS(SAME_OFFSET)
DRIVER_SIZES(SAME_SIZE)
DRIVER_ATTRIBUTES(SAME_VALUE)
CUDART_FIELDS(SAME_OFFSET)
CUDART_SIZES(SAME_SIZE)
CUDART_MEMCPY_KINDS(SAME_VALUE)
CUDART_MEMORY_TYPES(SAME_VALUE)
CUDART_DEVICE_ATTRIBUTES(SAME_VALUE)
CUDART_ENTRY_POINT_RESULTS(SAME_VALUE)
CUDART_CAPTURE_STATUSES(SAME_VALUE)
CUDART_CAPTURE_MODES(SAME_VALUE)
CUDART_UPDATE_RESULTS(SAME_VALUE)
CUDART_FLAGS(SAME_VALUE)

#define SAME_ERROR(driver_name, runtime_name, number, text)       \
    _Static_assert((int)(driver_name) == (number), #driver_name); \
    _Static_assert((int)(runtime_name) == (number), #runtime_name);
DRIVER_ERRORS(SAME_ERROR)
#define SAME_RUNTIME_ERROR(name, number, text) _Static_assert((int)(name) == (number), #name);
CUDART_ERRORS(SAME_RUNTIME_ERROR)

/* The names are macros in NVIDIA's header, so they must be pasted at once. */
#define SAME_PLAIN(name, suffix, since, parameters)                                             \
    _Static_assert(__builtin_types_compatible_p(PFN_##name##_v##since, CUresult(*) parameters), \
                   #name);
DRIVER_PLAIN_CALLS(SAME_PLAIN)
DRIVER_CODE_CALLS(SAME_PLAIN)
DRIVER_OTHER_VERSIONS(SAME_PLAIN)
#define SAME_STREAM(name, suffix, since, since_pt, suffix_pt, parameters, arguments)               \
    _Static_assert(__builtin_types_compatible_p(PFN_##name##_v##since, CUresult(*) parameters),    \
                   #name);                                                                         \
    _Static_assert(                                                                                \
        __builtin_types_compatible_p(PFN_##name##_v##since_pt##suffix_pt, CUresult(*) parameters), \
        #name #suffix_pt);
DRIVER_STREAM_CALLS(SAME_STREAM)
DRIVER_LAUNCH_CALLS(SAME_STREAM)
#define EXISTS(name, suffix, since) \
    _Static_assert(sizeof(PFN_##name##_v##since) == sizeof(void *), #name);
DRIVER_REFUSED_CALLS(EXISTS)
#define EXISTS_STREAM(name, suffix, since, since_pt, suffix_pt) \
    _Static_assert(sizeof(PFN_##name##_v##since_pt##suffix_pt) == sizeof(void *), #name);
DRIVER_REFUSED_STREAM_CALLS(EXISTS_STREAM)

#define SAME_RUNTIME(name, parameters) extern cudaError_t name parameters;
CUDART_PLAIN_CALLS(SAME_RUNTIME)
#define SAME_RUNTIME_STREAM(name, suffix_pt, parameters, arguments) \
    extern cudaError_t name parameters;
CUDART_STREAM_CALLS(SAME_RUNTIME_STREAM)
#define SAME_EXISTS(name) _Static_assert(sizeof(&name) == sizeof(void *), #name);
CUDART_REFUSED_CALLS(SAME_EXISTS)
#define SAME_TEXT(name, parameters) extern const char *name parameters;
CUDART_TEXT_CALLS(SAME_TEXT)

CUBLAS_VALUES(SAME_VALUE)
CUBLAS_COMPUTE_TYPES(SAME_VALUE)
typedef uint16_t __half; /* NVIDIA's functions of halves are for C++ */
#define SAME_BLAS(name, parameters) extern cublasStatus_t name parameters;
CUBLAS_CALLS(SAME_BLAS)
CUBLASLT_CALLS(SAME_BLAS)

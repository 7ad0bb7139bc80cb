/*
 * Compiled, but never run, where NVIDIA's headers are installed: each function that the library
 * exports or calls has the parameters that it has there. The library's types are its own, so
 * parameters are compared by how they are passed: pointers, integers and enumerations by their
 * size, floating point, structures by their size.
 */
#define __CUDA_API_VERSION_INTERNAL /* also the first versions of functions */
#include <cuda.h>
#ifdef WITH_CUBLAS
#include <cublasLt.h>
#include <cublas_v2.h>
#endif
#ifdef WITH_CURAND
#include <curand.h>
#endif
#ifdef WITH_NCCL
#include <nccl.h>
#endif
#include <stddef.h>
#include <stdint.h>
#include <type_traits>

namespace own
{
#include "shim/driver/driver_calls.h"
#include "shim/libraries/library_calls.h"
} // namespace own

template <class T> constexpr bool is_number = std::is_integral_v<T> || std::is_enum_v<T>;

/* Whether parameters of both types are passed in the same way. */
template <class A, class B> constexpr bool is_same()
{
    if constexpr (std::is_pointer_v<A> || std::is_pointer_v<B>) {
        return std::is_pointer_v<A> && std::is_pointer_v<B>;
    } else if constexpr (is_number<A> || is_number<B>) {
        return is_number<A> && is_number<B> && sizeof(A) == sizeof(B);
    } else if constexpr (std::is_class_v<A> || std::is_class_v<B>) {
        return std::is_class_v<A> && std::is_class_v<B> && sizeof(A) == sizeof(B) &&
               alignof(A) == alignof(B);
    } else {
        return std::is_same_v<A, B>;
    }
}

template <class A, class B> struct same : std::false_type {
};
template <class R, class S, class... A, class... B>
requires(sizeof...(A) == sizeof...(B)) struct same<R(A...), S(B...)>
    : std::bool_constant<is_same<R, S>() && (is_same<A, B>() && ...)> {
};

#define SAME(name, parameters, result)        \
    namespace own                             \
    {                                         \
    using type_of_##name = result parameters; \
    }                                         \
    static_assert(same<own::type_of_##name, decltype(::name)>::value, #name);

#define DRIVER_SAME(name, parameters) SAME(name, parameters, CUresult)
#define DRIVER_SAME_WRAPPED(name, takers, parameters, arguments) DRIVER_SAME(name, parameters)
#define DRIVER_SAME_TWICE(name, suffix, takers, parameters, arguments) \
    DRIVER_SAME(name, parameters)                                      \
    DRIVER_SAME(name##suffix, parameters)
#define DRIVER_SAME_PASSED(name, parameters, ...) DRIVER_SAME(name, parameters)
DRIVER_WRAPPED(DRIVER_SAME_WRAPPED)
DRIVER_WRAPPED_TWICE(DRIVER_SAME_TWICE)
DRIVER_PASSED_HOST(DRIVER_SAME_PASSED)
DRIVER_PASSED_DEVICE(DRIVER_SAME_PASSED)
DRIVER_PASSED_FREES(DRIVER_SAME_PASSED)
DRIVER_CALLED(DRIVER_SAME)

#ifdef WITH_CUBLAS
/* These have overloads in C++, so blas_headers_check.c compares them. */
#undef BLAS_TYPED_PRODUCTS
#define BLAS_TYPED_PRODUCTS(X)
#define BLAS_SAME(name, parameters) SAME(name, parameters, cublasStatus_t)
#define BLAS_SAME_WRAPPED(name, parameters, arguments) BLAS_SAME(name, parameters)
BLAS_WRAPPED(BLAS_SAME_WRAPPED)
BLAS_CALLED(BLAS_SAME)
#endif

#ifdef WITH_CURAND
#define RAND_SAME(name, parameters) SAME(name, parameters, curandStatus_t)
#define RAND_SAME_PLAIN(name, parameters, arguments) RAND_SAME(name, parameters)
#define RAND_SAME_FILLING(name, type, parameters, arguments) RAND_SAME(name, parameters)
RAND_PLAIN(RAND_SAME_PLAIN)
RAND_FILLING(RAND_SAME_FILLING)
RAND_OTHER(RAND_SAME)
#endif

#ifdef WITH_NCCL
#define NCCL_SAME(name, parameters, arguments, ranks) SAME(name, parameters, int)
NCCL_CALLS(NCCL_SAME)
static_assert((int)own::NCCL_SYSTEM_ERROR == (int)ncclSystemError);
static_assert((int)own::NCCL_INVALID_USAGE == (int)ncclInvalidUsage);
#endif

/* Finding the functions of cuBLAS, see blas_calls.h. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "interpose/shim/blas_calls.h"

#include <dlfcn.h>
#include <pthread.h>

static struct blas_calls calls;

/* In place of what is not there, whatever its parameters are. */
static cublasStatus_t fail_missing(void)
{
    return BLAS_NOT_INITIALIZED;
}

static void *find(const char *name)
{
    void *function = dlsym(RTLD_NEXT, name);

    return function != NULL ? function : (void *)(uintptr_t)fail_missing;
}

static void fill(void)
{
#define FILL(name, parameters) calls.name = (cublasStatus_t(*) parameters)find(#name);
#define FILL_WRAPPED(name, parameters, arguments) FILL(name, parameters)
    BLAS_WRAPPED(FILL_WRAPPED)
    BLAS_CALLED(FILL)
#undef FILL
#undef FILL_WRAPPED
}

const struct blas_calls *blas_calls(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, fill);
    return &calls;
}

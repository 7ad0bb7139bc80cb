/* Finding the functions of cuBLAS, see blas_calls.h. */
#include "shim/libraries/blas_calls.h"

#include "shim/driver/log.h"
#include "shim/driver/next.h"

#include <pthread.h>

static struct blas_calls calls;

/* In place of what is not there, whatever its parameters are. */
static cublasStatus_t fail_missing(void)
{
    log_line("the program calls a function of cuBLAS, and no library that has it is loaded");
    return BLAS_NOT_INITIALIZED;
}

static void *find(const char *name)
{
    void *function = next_find("libcublas", name);

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

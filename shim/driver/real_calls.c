/* Finding the real driver's functions, see real_calls.h. */
#include "shim/driver/real_calls.h"

#include "shim/driver/log.h"
#include "shim/driver/real.h"

#include <pthread.h>

static struct real_calls calls;

static CUresult fail_missing(const char *name)
{
    if (!real_is_open()) {
        return DRIVER_NO_DEVICE;
    }
    log_line(
        "the CUDA driver has no function %s, which runs under a budget need: it may be too old",
        name);
    return DRIVER_NOT_FOUND;
}

static void *find(const char *name, CUresult (*missing)(void))
{
    void *function = real_find(name);

    return function != NULL ? function : (void *)(uintptr_t)missing;
}

/* Each function of the driver: X(name, parameters). */
#define EACH(X)                      \
    DRIVER_WRAPPED(X##_WRAPPED)      \
    DRIVER_WRAPPED_TWICE(X##_TWICE)  \
    DRIVER_PASSED_HOST(X##_PASSED)   \
    DRIVER_PASSED_DEVICE(X##_PASSED) \
    DRIVER_PASSED_FREES(X##_PASSED)  \
    DRIVER_CALLED(X)

/* In place of one that is not there, whatever its parameters are. */
#define MISSING(name, parameters)        \
    static CUresult missing_##name(void) \
    {                                    \
        return fail_missing(#name);      \
    }
#define MISSING_WRAPPED(name, takers, parameters, arguments) MISSING(name, parameters)
#define MISSING_TWICE(name, suffix, takers, parameters, arguments) \
    MISSING(name, parameters)                                      \
    MISSING(name##suffix, parameters)
#define MISSING_PASSED(name, parameters, ...) MISSING(name, parameters)
EACH(MISSING)

#define FILL(name, parameters) calls.name = (CUresult(*) parameters)find(#name, missing_##name);
#define FILL_WRAPPED(name, takers, parameters, arguments) FILL(name, parameters)
#define FILL_TWICE(name, suffix, takers, parameters, arguments) \
    FILL(name, parameters)                                      \
    FILL(name##suffix, parameters)
#define FILL_PASSED(name, parameters, ...) FILL(name, parameters)

static void fill(void)
{
    EACH(FILL)
}

const struct real_calls *real_calls(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, fill);
    return &calls;
}

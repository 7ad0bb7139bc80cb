/* Finding the real driver's functions, see real_calls.h. */
#include "interpose/shim/real_calls.h"

#include "interpose/shim/real.h"

#include <pthread.h>

static struct real_calls calls;

/* In place of what is not there, whatever its parameters are. */
static CUresult fail_missing(void)
{
    return real_is_open() ? DRIVER_NOT_FOUND : DRIVER_NO_DEVICE;
}

static void *find(const char *name)
{
    void *function = real_find(name);

    return function != NULL ? function : (void *)(uintptr_t)fail_missing;
}

static void fill(void)
{
#define FILL(name, parameters) calls.name = (CUresult(*) parameters)find(#name);
#define FILL_WRAPPED(name, takers, parameters, arguments) FILL(name, parameters)
#define FILL_TWICE(name, suffix, takers, parameters, arguments) \
    FILL(name, parameters)                                      \
    FILL(name##suffix, parameters)
    DRIVER_WRAPPED(FILL_WRAPPED)
    DRIVER_WRAPPED_TWICE(FILL_TWICE)
#define FILL_PASSED(name, parameters, ...) FILL(name, parameters)
    DRIVER_PASSED_HOST(FILL_PASSED)
    DRIVER_PASSED_DEVICE(FILL_PASSED)
    DRIVER_PASSED_FREES(FILL_PASSED)
    DRIVER_CALLED(FILL)
#undef FILL
#undef FILL_WRAPPED
#undef FILL_TWICE
#undef FILL_PASSED
}

const struct real_calls *real_calls(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, fill);
    return &calls;
}

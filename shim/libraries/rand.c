/*
 * cuRAND at its own interface. What a call fills is exactly an array of numbers; the library's
 * kernels touch nothing else but memory of the library's own. It works on the core's stream.
 *
 * The array is an update: a call that the library rejects leaves it as it is.
 */
#include "shim/libraries/library_calls.h"

#include "shim/core/capture.h"
#include "shim/core/core.h"
#include "shim/core/operands.h"
#include "shim/driver/loader.h"
#include "shim/driver/log.h"
#include "shim/driver/symbol.h"

#include "base/table.h"

#include <pthread.h>
#include <stdbool.h>

static struct {
#define MEMBER(name, parameters) curandStatus_t(*name) parameters;
#define MEMBER_PLAIN(name, parameters, arguments) MEMBER(name, parameters)
#define MEMBER_FILLING(name, type, parameters, arguments) MEMBER(name, parameters)
    RAND_OTHER(MEMBER)
    RAND_PLAIN(MEMBER_PLAIN)
    RAND_FILLING(MEMBER_FILLING)
} calls;

/* In place of what is not there, whatever its parameters are. */
static curandStatus_t fail_missing(void)
{
    log_line("the program calls a function of cuRAND, and no library that has it is loaded");
    return RAND_NOT_INITIALIZED;
}

static void *find_function(const char *name)
{
    void *function = loader_next("libcurand", name);

    return function != NULL ? function : (void *)(uintptr_t)fail_missing;
}

static void fill_calls(void)
{
#define FIND(name, parameters) calls.name = (curandStatus_t(*) parameters)find_function(#name);
#define FIND_PLAIN(name, parameters, arguments) FIND(name, parameters)
#define FIND_FILLING(name, type, parameters, arguments) FIND(name, parameters)
    RAND_OTHER(FIND)
    RAND_PLAIN(FIND_PLAIN)
    RAND_FILLING(FIND_FILLING)
}

/* Whether the call is ours. */
static bool takes(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, fill_calls);
    return core_takes(CALLER_PROGRAM, false);
}

/* The program's streams of generators, but for the default stream. */
static struct {
    pthread_mutex_t lock;
    struct table table;
} streams = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void note_stream(curandGenerator_t generator, CUstream stream)
{
    uint64_t key = (uint64_t)(uintptr_t)generator;

    (void)pthread_mutex_lock(&streams.lock);
    if (streams.table.count > 0) {
        table_remove(&streams.table, key);
    }
    if (stream != NULL && table_reserve(&streams.table, streams.table.count + 1)) {
        table_put(&streams.table, key, (uint64_t)(uintptr_t)stream);
    }
    (void)pthread_mutex_unlock(&streams.lock);
}

/* Whether the generator's stream captures. What the library would add to the graph, and which state
   of its own that changes, is not known. */
static bool is_refused(curandGenerator_t generator)
{
    uint64_t stream = 0;

    (void)pthread_mutex_lock(&streams.lock);
    if (streams.table.count > 0) {
        (void)table_get(&streams.table, (uint64_t)(uintptr_t)generator, &stream);
    }
    (void)pthread_mutex_unlock(&streams.lock);
    if (stream == 0 || !capture_takes((CUstream)(uintptr_t)stream)) {
        return false;
    }
    symbol_note_refusal("cuRAND in a capture");
    log_line("refused: cuRAND in a capture, which programs cannot use under a budget "
             "(docs/unmodified.md)");
    return true;
}

static curandStatus_t status_of(CUresult result)
{
    switch (result) {
    case DRIVER_SUCCESS:
        return RAND_SUCCESS;
    case DRIVER_OUT_OF_MEMORY:
        return RAND_ALLOCATION_FAILED;
    default:
        return RAND_LAUNCH_FAILURE;
    }
}

/* Takes the lock and begins the access. An error: neither. */
static curandStatus_t begin_filling(const void *numbers, size_t bytes, const char *name)
{
    struct operands operands = {0};
    CUresult result = core_enter();

    if (result != DRIVER_SUCCESS) {
        return status_of(result);
    }
    operands_add_range(&operands, (uintptr_t)numbers, bytes, CAPU_UPDATE);
    result = core_begin(&operands, name);
    operands_finish(&operands);
    if (result != DRIVER_SUCCESS) {
        core_leave();
        return status_of(result);
    }
    core_guard_begin();
    return RAND_SUCCESS;
}

static curandStatus_t end_filling(curandStatus_t status, const char *name)
{
    CUresult result;

    core_guard_end();
    result = core_end(DRIVER_SUCCESS, name);
    core_leave();
    return status != RAND_SUCCESS ? status : status_of(result);
}

/* What is exported. */

#define EXPORT(name, parameters)                  \
    DRIVER_EXPORT curandStatus_t name parameters; \
    curandStatus_t name parameters

#define EXPORT_PLAIN(name, parameters, arguments) \
    EXPORT(name, parameters)                      \
    {                                             \
        curandStatus_t status;                    \
                                                  \
        if (!takes()) {                           \
            return calls.name arguments;          \
        }                                         \
        core_guard_begin();                       \
        status = calls.name arguments;            \
        core_guard_end();                         \
        return status;                            \
    }
RAND_PLAIN(EXPORT_PLAIN)

#define EXPORT_FILLING(name, type, parameters, arguments)                                  \
    EXPORT(name, parameters)                                                               \
    {                                                                                      \
        curandStatus_t status;                                                             \
                                                                                           \
        if (!takes() || count > SIZE_MAX / sizeof(type)) {                                 \
            return calls.name arguments;                                                   \
        }                                                                                  \
        if (is_refused(generator)) {                                                       \
            return RAND_LAUNCH_FAILURE;                                                    \
        }                                                                                  \
        status = begin_filling(numbers, count * sizeof(type), #name);                      \
        return status == RAND_SUCCESS ? end_filling(calls.name arguments, #name) : status; \
    }
RAND_FILLING(EXPORT_FILLING)

EXPORT(curandSetStream, (curandGenerator_t generator, CUstream stream))
{
    bool is_ours = takes();

    if (is_ours) {
        note_stream(generator, stream);
    }
    return calls.curandSetStream(generator, is_ours ? core_stream(stream) : stream);
}

EXPORT(curandCreateGenerator, (curandGenerator_t * generator, unsigned type))
{
    curandStatus_t status;
    CUresult result;

    if (!takes()) {
        return calls.curandCreateGenerator(generator, type);
    }
    result = core_need_device();
    if (result == DRIVER_SUCCESS) {
        result = core_enter(); /* for the stream */
    }
    if (result != DRIVER_SUCCESS) {
        return status_of(result);
    }
    core_leave();
    core_guard_begin();
    status = calls.curandCreateGenerator(generator, type);
    if (status == RAND_SUCCESS) {
        status = calls.curandSetStream(*generator, core_stream(NULL));
    }
    core_guard_end();
    return status;
}

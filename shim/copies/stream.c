/*
 * Streams. All streams of the program stand for one, so their order is the order of the calls:
 * waiting for a stream waits for all work. The driver answers for that stream truthfully. Streams
 * that capture, and events, are in capture.c.
 */
#include "shim/core/capture.h"
#include "shim/core/core.h"
#include "shim/core/iteration.h"
#include "shim/driver/real.h"

#include <stdlib.h>

/* The driver's stream for a call. */
static CUstream target(CUstream stream)
{
    return capture_takes(stream) ? stream : core_stream(stream);
}

CUresult on_cuStreamSynchronize(CUstream stream)
{
    uint64_t begun = iteration_wait_begin();
    CUresult result = real_calls()->cuStreamSynchronize(target(stream));

    iteration_wait_end(begun);
    return result;
}

CUresult on_cuStreamQuery(CUstream stream)
{
    return real_calls()->cuStreamQuery(target(stream));
}

CUresult on_cuCtxSynchronize(void)
{
    uint64_t begun = iteration_wait_begin();
    CUresult result = real_calls()->cuCtxSynchronize();

    iteration_wait_end(begun);
    return result;
}

CUresult on_cuCtxSynchronize_v2(CUcontext context)
{
    uint64_t begun = iteration_wait_begin();
    CUresult result = real_calls()->cuCtxSynchronize_v2(context);

    iteration_wait_end(begun);
    return result;
}

CUresult on_cuLaunchHostFunc(CUstream stream, host_function function, void *argument)
{
    return real_calls()->cuLaunchHostFunc(target(stream), function, argument);
}

/* A callback is told its stream: the program's, not the one on which it ran. */
struct callback {
    stream_callback function;
    CUstream stream;
    void *argument;
};

static void call_back(CUstream stream, CUresult result, void *argument)
{
    struct callback callback = *(struct callback *)argument;

    (void)stream;
    free(argument);
    callback.function(callback.stream, result, callback.argument);
}

CUresult on_cuStreamAddCallback(CUstream stream, stream_callback function, void *argument,
                                unsigned flags)
{
    struct callback *callback;
    CUresult result;

    if (function == NULL) {
        return DRIVER_INVALID_VALUE;
    }
    if (capture_takes(stream)) {
        return real_calls()->cuStreamAddCallback(stream, function, argument, flags);
    }
    callback = malloc(sizeof(*callback));
    if (callback == NULL) {
        return DRIVER_OUT_OF_MEMORY;
    }
    *callback = (struct callback){function, stream, argument};
    result = real_calls()->cuStreamAddCallback(core_stream(stream), call_back, callback, flags);
    if (result != DRIVER_SUCCESS) {
        free(callback);
    }
    return result;
}

/*
 * Calls about memory that is not ours: managed memory, arrays, resources of graphics. They go to
 * the driver, in the place where the program's other work goes: the library's stream, or one that
 * captures.
 */

#define STREAM(stream) target(stream)
#define ON_STREAM(name, suffix, takers, parameters, arguments) \
    CUresult on_##name parameters                              \
    {                                                          \
        return real_calls()->name arguments;                   \
    }
DRIVER_BESIDE(ON_STREAM)

/* After the program's work, and done before what follows. */
#define NOW(name, suffix, takers, parameters, arguments)                                    \
    CUresult on_##name parameters                                                           \
    {                                                                                       \
        CUresult result = core_wait();                                                      \
                                                                                            \
        if (result == DRIVER_SUCCESS) {                                                     \
            result = real_calls()->name arguments;                                          \
        }                                                                                   \
        return result == DRIVER_SUCCESS ? real_calls()->cuStreamSynchronize(NULL) : result; \
    }
DRIVER_BESIDE_NOW(NOW)

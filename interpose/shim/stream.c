/*
 * Streams and events. All streams of the program stand for one, so their order is the order of the
 * calls: an event is recorded there, and waiting for a stream waits for all work. The driver
 * answers for that stream truthfully.
 */
#include "interpose/shim/core.h"
#include "interpose/shim/handlers.h"
#include "interpose/shim/iteration.h"
#include "interpose/shim/real_calls.h"

#include <stdlib.h>

CUresult on_cuStreamSynchronize(CUstream stream)
{
    uint64_t begun = iteration_wait_begin();
    CUresult result = real_calls()->cuStreamSynchronize(core_stream(stream));

    iteration_wait_end(begun);
    return result;
}

CUresult on_cuStreamQuery(CUstream stream)
{
    return real_calls()->cuStreamQuery(core_stream(stream));
}

CUresult on_cuCtxSynchronize(void)
{
    uint64_t begun = iteration_wait_begin();
    CUresult result = real_calls()->cuCtxSynchronize();

    iteration_wait_end(begun);
    return result;
}

CUresult on_cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    return real_calls()->cuStreamWaitEvent(core_stream(stream), event, flags);
}

CUresult on_cuEventRecord(CUevent event, CUstream stream)
{
    return real_calls()->cuEventRecord(event, core_stream(stream));
}

CUresult on_cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags)
{
    return real_calls()->cuEventRecordWithFlags(event, core_stream(stream), flags);
}

CUresult on_cuLaunchHostFunc(CUstream stream, host_function function, void *argument)
{
    return real_calls()->cuLaunchHostFunc(core_stream(stream), function, argument);
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

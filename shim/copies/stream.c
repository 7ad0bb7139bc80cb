/*
 * Streams and events. All streams of the program stand for one, so their order is the order of the
 * calls: waiting for a stream waits for all work. The driver answers for that stream truthfully.
 * Streams that capture go to the driver as they are (shim/core/capture.h).
 */
#include "shim/core/capture.h"
#include "shim/core/core.h"
#include "shim/core/iteration.h"
#include "shim/driver/real.h"
#include "shim/graph/graph.h"

#include <stdlib.h>

/* The driver's stream for a call. */
static CUstream target_of(CUstream stream)
{
    return capture_takes(stream) ? stream : core_stream(stream);
}

CUresult on_cuStreamSynchronize(CUstream stream)
{
    uint64_t begun = iteration_wait_begin();
    CUresult result = real_calls()->cuStreamSynchronize(target_of(stream));

    iteration_wait_end(begun);
    return result;
}

CUresult on_cuStreamQuery(CUstream stream)
{
    return real_calls()->cuStreamQuery(target_of(stream));
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
    return real_calls()->cuLaunchHostFunc(target_of(stream), function, argument);
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

/* Events, and the calls with which captures begin, spread to other streams, and end. */

CUresult on_cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags)
{
    bool takes = capture_takes(stream);
    CUresult result =
        real_calls()->cuEventRecordWithFlags(event, takes ? stream : core_stream(stream), flags);

    /* An external record is a node: it happens when the graph runs. */
    if (result == DRIVER_SUCCESS && !(takes && flags == EVENT_RECORD_EXTERNAL)) {
        capture_note_event(event, takes);
    }
    return result;
}

CUresult on_cuEventRecord(CUevent event, CUstream stream)
{
    bool takes = capture_takes(stream);
    CUresult result = real_calls()->cuEventRecord(event, takes ? stream : core_stream(stream));

    if (result == DRIVER_SUCCESS) {
        capture_note_event(event, takes);
    }
    return result;
}

/* A stream that waits for a captured event takes part in the capture from now on. */
CUresult on_cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    bool takes = capture_has_event(event) || capture_takes(stream);
    CUresult result =
        real_calls()->cuStreamWaitEvent(takes ? stream : core_stream(stream), event, flags);

    if (takes && result == DRIVER_SUCCESS) {
        capture_changed();
    }
    return result;
}

/* With the lock: no call of the library is under way that the driver would refuse from now on. */
CUresult on_cuStreamBeginCapture_v2(CUstream stream, int mode)
{
    CUresult result = core_enter();

    if (result != DRIVER_SUCCESS) {
        return result;
    }
    result = real_calls()->cuStreamBeginCapture_v2(stream, mode);
    if (result == DRIVER_SUCCESS) {
        capture_count(1);
    }
    core_leave();
    if (result == DRIVER_SUCCESS) {
        capture_changed();
    }
    return result;
}

/* A failure may have ended the capture or not. */
CUresult on_cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    bool was_capturing = capture_takes(stream);
    CUresult result = real_calls()->cuStreamEndCapture(stream, graph);

    if (result != DRIVER_SUCCESS && core_enter() == DRIVER_SUCCESS) {
        graph_known_drop_all(); /* the graph may be gone, and its nodes' handles mean others */
        core_leave();
    }
    if (was_capturing && !capture_has(stream)) {
        capture_count(-1);
        capture_changed();
    }
    return result;
}

/*
 * Calls about memory that is not ours: managed memory, arrays, resources of graphics. They go to
 * the driver, in the place where the program's other work goes: the library's stream, or one that
 * captures.
 */

#define STREAM(stream) target_of(stream)
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

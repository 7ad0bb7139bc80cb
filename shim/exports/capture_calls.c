/* Events, and the calls with which captures begin, spread to other streams, and end. */
#include "shim/core/capture.h"
#include "shim/core/core.h"
#include "shim/driver/real.h"
#include "shim/graph/graph.h"
#include "shim/libraries/blas.h"

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
        blas_follow();
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
        blas_follow();
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
        blas_follow();
    }
    return result;
}

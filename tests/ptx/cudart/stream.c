/* Streams, events and host functions. */
#include "tests/ptx/cudart/cudart.h"

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    CUDART_FORWARD(cuStreamCreate, stream, 0);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags)
{
    CUDART_FORWARD(cuStreamCreate, stream, flags);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned int flags, int priority)
{
    CUDART_FORWARD(cuStreamCreateWithPriority, stream, flags, priority);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    CUDART_FORWARD(cuStreamDestroy, stream);
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority)
{
    CUDART_FORWARD(cuStreamGetPriority, stream, priority);
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned int *flags)
{
    CUDART_FORWARD(cuStreamGetFlags, stream, flags);
}

cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long *id)
{
    CUDART_FORWARD(cuStreamGetId, stream, id);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    CUDART_FORWARD(cuStreamSynchronize, stream);
}

/* There is one device. */
cudaError_t cudaStreamGetDevice(cudaStream_t stream, int *device)
{
    (void)stream;
    CUDART_FORWARD(cuCtxGetDevice, device, NULL);
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    CUDART_FORWARD(cuStreamQuery, stream);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
    CUDART_FORWARD(cuStreamWaitEvent, stream, event, flags);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
    CUDART_FORWARD(cuStreamIsCapturing, stream, (CUstreamCaptureStatus *)status);
}

/* Results have the same numbers in both. */
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t function,
                                  void *argument, unsigned int flags)
{
    CUDART_FORWARD(cuStreamAddCallback, stream, (CUstreamCallback)function, argument, flags);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *argument)
{
    CUDART_FORWARD(cuLaunchHostFunc, stream, function, argument);
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    CUDART_FORWARD(cuEventCreate, event, 0);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
    CUDART_FORWARD(cuEventCreate, event, flags);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    CUDART_FORWARD(cuEventDestroy, event);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    CUDART_FORWARD(cuEventRecord, event, stream);
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags)
{
    CUDART_FORWARD(cuEventRecordWithFlags, event, stream, flags);
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    CUDART_FORWARD(cuEventQuery, event);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    CUDART_FORWARD(cuEventSynchronize, event);
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
    CUDART_FORWARD(cuEventElapsedTime, ms, from, to);
}

/* Graphs, captured and built. */
#include "tests/ptx/cudart/code.h"

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    CUDART_FORWARD(cuStreamBeginCapture, stream, (CUstreamCaptureMode)mode);
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    CUDART_FORWARD(cuStreamEndCapture, stream, graph);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
    CUDART_FORWARD(cuGraphInstantiateWithFlags, exec, graph, flags);
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
                                          unsigned long long flags)
{
    return cudaGraphInstantiate(exec, graph, flags);
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
    CUDART_FORWARD(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode *)mode);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    CUDART_FORWARD(cuGraphLaunch, exec, stream);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    CUDART_FORWARD(cuGraphDestroy, graph);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    CUDART_FORWARD(cuGraphExecDestroy, exec);
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream)
{
    CUDART_FORWARD(cuGraphUpload, exec, stream);
}

cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned int flags)
{
    CUDART_FORWARD(cuGraphCreate, graph, flags);
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
    CUDART_FORWARD(cuGraphGetNodes, graph, nodes, count);
}

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                       const cudaGraphNode_t *before, size_t count,
                                       cudaGraph_t child)
{
    CUDART_FORWARD(cuGraphAddChildGraphNode, node, graph, before, count, child);
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo *info)
{
    CUDART_FORWARD(cuGraphExecUpdate, exec, graph, info);
}

/* What the driver is given for a kernel. */
static cudaError_t read_kernel(const struct cudaKernelNodeParams *params,
                               CUDA_KERNEL_NODE_PARAMS *read)
{
    CUkernel kernel;
    cudaError_t found;

    if (params == NULL) {
        return cudaErrorInvalidValue;
    }
    found = code_kernel(params->func, &kernel);
    if (found != cudaSuccess) {
        return found;
    }
    *read = (CUDA_KERNEL_NODE_PARAMS){
        .gridDimX = params->gridDim.x,
        .gridDimY = params->gridDim.y,
        .gridDimZ = params->gridDim.z,
        .blockDimX = params->blockDim.x,
        .blockDimY = params->blockDim.y,
        .blockDimZ = params->blockDim.z,
        .sharedMemBytes = params->sharedMemBytes,
        .kernelParams = params->kernelParams,
        .extra = params->extra,
        .kern = kernel,
    };
    return cudaSuccess;
}

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                   const cudaGraphNode_t *before, size_t count,
                                   const struct cudaKernelNodeParams *params)
{
    CUDA_KERNEL_NODE_PARAMS read;
    cudaError_t found;

    CUDART_ENTER();
    found = read_kernel(params, &read);
    return cudart_leave(found != cudaSuccess ? (int)found
                                             : (int)cudart_driver()->cuGraphAddKernelNode(
                                                   node, graph, before, count, &read));
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const struct cudaKernelNodeParams *params)
{
    CUDA_KERNEL_NODE_PARAMS read;
    cudaError_t found;

    CUDART_ENTER();
    found = read_kernel(params, &read);
    return cudart_leave(found != cudaSuccess ? (int)found
                                             : (int)cudart_driver()->cuGraphExecKernelNodeSetParams(
                                                   exec, node, &read));
}

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                   const cudaGraphNode_t *before, size_t count,
                                   const struct cudaMemcpy3DParms *params)
{
    CUDA_MEMCPY3D copy;
    cudaError_t error = cudart_form_3d(params, &copy);

    if (error != cudaSuccess) {
        return cudart_leave(error);
    }
    CUDART_FORWARD(cuGraphAddMemcpyNode, node, graph, before, count, &copy, NULL);
}

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                 const cudaGraphNode_t *before, size_t count,
                                 const struct cudaHostNodeParams *params)
{
    CUDA_HOST_NODE_PARAMS read;

    if (params == NULL) {
        return cudart_leave(cudaErrorInvalidValue);
    }
    read = (CUDA_HOST_NODE_PARAMS){.fn = params->fn, .userData = params->userData};
    CUDART_FORWARD(cuGraphAddHostNode, node, graph, before, count, &read);
}

cudaError_t cudaGraphClone(cudaGraph_t *clone, cudaGraph_t graph)
{
    CUDART_FORWARD(cuGraphClone, clone, graph);
}

/* The kind is not looked at: addresses say where they are. */
cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *node, cudaGraph_t graph,
                                     const cudaGraphNode_t *before, size_t count, void *to,
                                     const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    const CUDA_MEMCPY3D copy = {
        .srcMemoryType = CU_MEMORYTYPE_UNIFIED,
        .srcDevice = (CUdeviceptr)(uintptr_t)from,
        .srcPitch = bytes,
        .srcHeight = 1,
        .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
        .dstDevice = (CUdeviceptr)(uintptr_t)to,
        .dstPitch = bytes,
        .dstHeight = 1,
        .WidthInBytes = bytes,
        .Height = 1,
        .Depth = 1,
    };

    (void)kind;
    CUDART_FORWARD(cuGraphAddMemcpyNode, node, graph, before, count, &copy, NULL);
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                   const cudaGraphNode_t *before, size_t count,
                                   const struct cudaMemsetParams *params)
{
    CUDA_MEMSET_NODE_PARAMS read;

    if (params == NULL) {
        return cudart_leave(cudaErrorInvalidValue);
    }
    read = (CUDA_MEMSET_NODE_PARAMS){(CUdeviceptr)(uintptr_t)params->dst,
                                     params->pitch,
                                     params->value,
                                     params->elementSize,
                                     params->width,
                                     params->height};
    CUDART_FORWARD(cuGraphAddMemsetNode, node, graph, before, count, &read, NULL);
}

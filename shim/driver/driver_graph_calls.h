/* The driver's functions about captures and graphs, for the lists of driver_calls.h. */
#ifndef CAPU_SHIM_DRIVER_GRAPH_CALLS_H
#define CAPU_SHIM_DRIVER_GRAPH_CALLS_H

/* As in DRIVER_WRAPPED. */
#define DRIVER_GRAPH_WRAPPED(X)                                                                  \
    X(cuGraphInstantiate, ALL,                                                                   \
      (CUgraphExec * exec, CUgraph graph, CUgraphNode * failed, char *text, size_t bytes),       \
      (exec, graph, failed, text, bytes))                                                        \
    X(cuGraphInstantiate_v2, ALL,                                                                \
      (CUgraphExec * exec, CUgraph graph, CUgraphNode * failed, char *text, size_t bytes),       \
      (exec, graph, failed, text, bytes))                                                        \
    X(cuGraphInstantiateWithFlags, ALL,                                                          \
      (CUgraphExec * exec, CUgraph graph, unsigned long long flags), (exec, graph, flags))       \
    X(cuGraphExecDestroy, ALL, (CUgraphExec exec), (exec))                                       \
    X(cuGraphDestroy, ALL, (CUgraph graph), (graph))                                             \
    X(cuGraphDestroyNode, ALL, (CUgraphNode node), (node))                                       \
    X(cuGraphNodeSetParams, ALL, (CUgraphNode node, void *params), (node, params))               \
    X(cuGraphExecUpdate_v2, ALL, (CUgraphExec exec, CUgraph graph, void *info),                  \
      (exec, graph, info))                                                                       \
    X(cuGraphExecKernelNodeSetParams_v2, ALL,                                                    \
      (CUgraphExec exec, CUgraphNode node, const struct kernel_node *params),                    \
      (exec, node, params))                                                                      \
    X(cuGraphExecMemcpyNodeSetParams, ALL,                                                       \
      (CUgraphExec exec, CUgraphNode node, const struct copy_3d *params, CUcontext context),     \
      (exec, node, params, context))                                                             \
    X(cuGraphExecMemsetNodeSetParams, ALL,                                                       \
      (CUgraphExec exec, CUgraphNode node, const struct memset_node *params, CUcontext context), \
      (exec, node, params, context))                                                             \
    X(cuGraphExecNodeSetParams, ALL, (CUgraphExec exec, CUgraphNode node, void *params),         \
      (exec, node, params))                                                                      \
    X(cuGraphAddKernelNode_v2, ALL,                                                              \
      (CUgraphNode * node, CUgraph graph, const CUgraphNode *before, size_t count,               \
       const struct kernel_node *params),                                                        \
      (node, graph, before, count, params))                                                      \
    X(cuGraphKernelNodeSetParams_v2, ALL, (CUgraphNode node, const struct kernel_node *params),  \
      (node, params))                                                                            \
    X(cuGraphAddMemcpyNode, ALL,                                                                 \
      (CUgraphNode * node, CUgraph graph, const CUgraphNode *before, size_t count,               \
       const struct copy_3d *params, CUcontext context),                                         \
      (node, graph, before, count, params, context))                                             \
    X(cuGraphMemcpyNodeSetParams, ALL, (CUgraphNode node, const struct copy_3d *params),         \
      (node, params))                                                                            \
    X(cuGraphAddMemsetNode, ALL,                                                                 \
      (CUgraphNode * node, CUgraph graph, const CUgraphNode *before, size_t count,               \
       const struct memset_node *params, CUcontext context),                                     \
      (node, graph, before, count, params, context))                                             \
    X(cuGraphMemsetNodeSetParams, ALL, (CUgraphNode node, const struct memset_node *params),     \
      (node, params))

/* As in DRIVER_WRAPPED_TWICE. */
#define DRIVER_GRAPH_WRAPPED_TWICE(X)                                                              \
    X(cuStreamBeginCapture_v2, _ptsz, ALL, (CUstream stream, int mode), (STREAM(stream), mode))    \
    X(cuStreamEndCapture, _ptsz, ALL, (CUstream stream, CUgraph * graph), (STREAM(stream), graph)) \
    X(cuGraphInstantiateWithParams, _ptsz, ALL,                                                    \
      (CUgraphExec * exec, CUgraph graph, struct instantiate_params * params),                     \
      (exec, graph, params))                                                                       \
    X(cuGraphUpload, _ptsz, ALL, (CUgraphExec exec, CUstream stream), (exec, STREAM(stream)))      \
    X(cuGraphLaunch, _ptsz, ALL, (CUgraphExec exec, CUstream stream), (exec, STREAM(stream)))

/* As in DRIVER_CALLED. */
#define DRIVER_GRAPH_CALLED(X)                                                                     \
    X(cuStreamIsCapturing, (CUstream stream, unsigned *status))                                    \
    X(cuStreamGetCaptureInfo_v2, (CUstream stream, unsigned *status, uint64_t *id, CUgraph *graph, \
                                  const CUgraphNode **last, size_t *count))                        \
    X(cuThreadExchangeStreamCaptureMode, (int *mode))                                              \
    X(cuGraphGetNodes, (CUgraph graph, CUgraphNode * nodes, size_t * count))                       \
    X(cuGraphNodeGetType, (CUgraphNode node, unsigned *type))                                      \
    X(cuGraphKernelNodeGetParams_v2, (CUgraphNode node, struct kernel_node * params))              \
    X(cuGraphKernelNodeGetAttribute, (CUgraphNode node, int attribute, void *value))               \
    X(cuGraphMemcpyNodeGetParams, (CUgraphNode node, struct copy_3d * params))                     \
    X(cuGraphMemsetNodeGetParams, (CUgraphNode node, struct memset_node * params))

#endif

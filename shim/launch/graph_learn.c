/* How the driver calls kernels in graphs, see graph_learn.h. */
#include "shim/launch/graph_learn.h"

#include "shim/core/code.h"
#include "shim/core/core.h"
#include "shim/driver/real.h"

void graph_learn_node(CUgraphNode node, const void *function)
{
    struct kernel_node params;
    unsigned type;

    if (real_calls()->cuGraphNodeGetType(node, &type) != DRIVER_SUCCESS || type != NODE_KERNEL ||
        real_calls()->cuGraphKernelNodeGetParams_v2(node, &params) != DRIVER_SUCCESS ||
        params.function == NULL || params.function == function || core_enter() != DRIVER_SUCCESS) {
        return;
    }
    code_note_same(params.function, function);
    core_leave();
}

void graph_learn(CUstream stream, CUfunction function)
{
    const CUgraphNode *last = NULL;
    CUgraph graph = NULL;
    unsigned status = CAPTURE_NONE;
    uint64_t id;
    size_t count = 0;

    if (real_calls()->cuStreamGetCaptureInfo_v2(stream, &status, &id, &graph, &last, &count) ==
            DRIVER_SUCCESS &&
        status == CAPTURE_ACTIVE && count == 1) {
        graph_learn_node(last[0], function);
    }
}

/* Graphs of the test driver: captured and built, updated, and what a capture forbids. */
#include "tests/ptx/include/driver_types.h"
#include "tests/support/suite.h"

#include <check.h>
#include <pthread.h>
#include <string.h>

static const char ptx[] = ".version 7.8\n.target sm_80\n.address_size 64\n"
                          ".visible .entry put(.param .u64 to, .param .u32 value)\n"
                          "{\n"
                          ".reg .u64 %d<3>;\n.reg .u32 %r<2>;\n"
                          "ld.param.u64 %d1, [to];\n"
                          "cvta.to.global.u64 %d2, %d1;\n"
                          "ld.param.u32 %r1, [value];\n"
                          "st.global.u32 [%d2], %r1;\n"
                          "ret;\n"
                          "}\n";

static CUfunction put;
static CUdeviceptr memory;
static CUstream streams[2];

static void start(void)
{
    CUcontext context;
    CUmodule module;

    ck_assert_int_eq(cuInit(0), CUDA_SUCCESS);
    ck_assert_int_eq(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    ck_assert_int_eq(cuCtxSetCurrent(context), CUDA_SUCCESS);
    ck_assert_int_eq(cuModuleLoadData(&module, ptx), CUDA_SUCCESS);
    ck_assert_int_eq(cuModuleGetFunction(&put, module, "put"), CUDA_SUCCESS);
    ck_assert_int_eq(cuMemAlloc_v2(&memory, 4096), CUDA_SUCCESS);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    }
}

static unsigned word(size_t index)
{
    unsigned value = 0;

    ck_assert_int_eq(cuMemcpyDtoH_v2(&value, memory + index * sizeof(value), sizeof(value)),
                     CUDA_SUCCESS);
    return value;
}

static CUresult launch(CUdeviceptr to, unsigned value, CUstream stream)
{
    return cuLaunchKernel(put, 1, 1, 1, 1, 1, 1, 0, stream, (void *[]){&to, &value}, NULL);
}

static CUDA_KERNEL_NODE_PARAMS node_params(void **parameters)
{
    return (CUDA_KERNEL_NODE_PARAMS){put, 1, 1, 1, 1, 1, 1, 0, parameters, NULL, NULL, NULL};
}

static CUgraphExec instantiate(CUgraph graph)
{
    CUgraphExec exec;

    ck_assert_int_eq(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
    return exec;
}

static void run(CUgraphExec exec)
{
    ck_assert_int_eq(cuGraphLaunch(exec, streams[0]), CUDA_SUCCESS);
    ck_assert_int_eq(cuStreamSynchronize(streams[0]), CUDA_SUCCESS);
}

/* A launch, a fill and a copy, in this order, of which the copy is on another stream. */
static CUgraph capture(unsigned value)
{
    CUgraph graph;
    CUevent events[2];

    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(cuEventCreate(&events[i], 0), CUDA_SUCCESS);
    }
    ck_assert_int_eq(cuStreamBeginCapture_v2(streams[0], 0), CUDA_SUCCESS);
    ck_assert_int_eq(launch(memory, value, streams[0]), CUDA_SUCCESS);
    ck_assert_int_eq(cuMemsetD32Async(memory + 4, value + 1, 1, streams[0]), CUDA_SUCCESS);
    ck_assert_int_eq(cuEventRecord(events[0], streams[0]), CUDA_SUCCESS);
    ck_assert_int_eq(cuStreamWaitEvent(streams[1], events[0], 0), CUDA_SUCCESS);
    ck_assert_int_eq(cuMemcpyDtoDAsync_v2(memory + 8, memory, 8, streams[1]), CUDA_SUCCESS);
    ck_assert_int_eq(cuEventRecord(events[1], streams[1]), CUDA_SUCCESS);
    ck_assert_int_eq(cuStreamWaitEvent(streams[0], events[1], 0), CUDA_SUCCESS);
    ck_assert_int_eq(cuStreamEndCapture(streams[0], &graph), CUDA_SUCCESS);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(cuEventDestroy_v2(events[i]), CUDA_SUCCESS);
    }
    return graph;
}

START_TEST(nodes_say_what_they_do)
{
    CUgraph graph;
    CUgraphNode nodes[4];
    CUgraphNodeType type;
    CUDA_KERNEL_NODE_PARAMS kernel;
    CUDA_MEMSET_NODE_PARAMS fill;
    CUDA_MEMCPY3D copy;
    size_t count = 4;

    start();
    graph = capture(7);
    ck_assert_int_eq(cuGraphGetNodes(graph, NULL, &count), CUDA_SUCCESS);
    ck_assert_uint_eq(count, 3);
    ck_assert_int_eq(cuGraphGetNodes(graph, nodes, &count), CUDA_SUCCESS);
    for (unsigned i = 0; i < 3; i++) {
        static const CUgraphNodeType types[] = {
            CU_GRAPH_NODE_TYPE_KERNEL, CU_GRAPH_NODE_TYPE_MEMSET, CU_GRAPH_NODE_TYPE_MEMCPY};

        ck_assert_int_eq(cuGraphNodeGetType(nodes[i], &type), CUDA_SUCCESS);
        ck_assert_uint_eq(type, types[i]);
    }
    ck_assert_int_eq(cuGraphKernelNodeGetParams_v2(nodes[0], &kernel), CUDA_SUCCESS);
    ck_assert_ptr_eq(kernel.func, put);
    ck_assert_uint_eq(*(CUdeviceptr *)kernel.kernelParams[0], memory);
    ck_assert_uint_eq(*(unsigned *)kernel.kernelParams[1], 7);
    ck_assert_int_eq(cuGraphMemsetNodeGetParams(nodes[1], &fill), CUDA_SUCCESS);
    ck_assert_uint_eq(fill.dst, memory + 4);
    ck_assert_uint_eq(fill.value, 8);
    ck_assert_int_eq(cuGraphMemcpyNodeGetParams(nodes[2], &copy), CUDA_SUCCESS);
    ck_assert_uint_eq(copy.srcDevice, memory);
    ck_assert_uint_eq(copy.dstDevice, memory + 8);
    ck_assert_uint_eq(copy.WidthInBytes, 8);
    ck_assert_int_eq(cuGraphMemcpyNodeGetParams(nodes[0], &copy), CUDA_ERROR_INVALID_VALUE);
    ck_assert_int_eq(cuGraphDestroy(graph), CUDA_SUCCESS);
}
END_TEST

START_TEST(parameters_are_replaced)
{
    CUgraphExecUpdateResultInfo info;
    CUgraph graph;
    CUgraph other;
    CUgraphExec exec;
    CUgraphNode nodes[3];
    CUdeviceptr to;
    unsigned value = 50;
    CUDA_KERNEL_NODE_PARAMS kernel = node_params((void *[]){&to, &value});
    size_t count = 3;

    start();
    kernel.func = put;
    to = memory;
    graph = capture(7);
    exec = instantiate(graph);
    run(exec);
    ck_assert_uint_eq(word(2), 7);
    ck_assert_uint_eq(word(3), 8);
    ck_assert_int_eq(cuGraphGetNodes(graph, nodes, &count), CUDA_SUCCESS);
    ck_assert_int_eq(cuGraphExecKernelNodeSetParams_v2(exec, nodes[0], &kernel), CUDA_SUCCESS);
    ck_assert_int_eq(cuGraphExecKernelNodeSetParams_v2(exec, nodes[1], &kernel),
                     CUDA_ERROR_INVALID_VALUE);
    run(exec);
    ck_assert_uint_eq(word(2), 50);
    other = capture(20);
    ck_assert_int_eq(cuGraphExecUpdate_v2(exec, other, &info), CUDA_SUCCESS);
    run(exec);
    ck_assert_uint_eq(word(2), 20);
    ck_assert_uint_eq(word(3), 21);
    ck_assert_int_eq(cuGraphDestroy(other), CUDA_SUCCESS);
    ck_assert_int_eq(cuGraphCreate(&other, 0), CUDA_SUCCESS);
    ck_assert_int_eq(cuGraphExecUpdate_v2(exec, other, &info),
                     CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    ck_assert_uint_eq(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
    /* The nodes are still known by those of the first graph. */
    ck_assert_int_eq(cuGraphExecKernelNodeSetParams_v2(exec, nodes[0], &kernel), CUDA_SUCCESS);
    run(exec);
    ck_assert_uint_eq(word(2), 50);
    ck_assert_int_eq(cuGraphExecDestroy(exec), CUDA_SUCCESS);
    ck_assert_int_eq(cuGraphDestroy(other), CUDA_SUCCESS);
    ck_assert_int_eq(cuGraphDestroy(graph), CUDA_SUCCESS);
}
END_TEST

static void count_up(void *counter)
{
    ++*(unsigned *)counter;
}

/* Nodes run after those that they depend on, in whatever order they were added. */
START_TEST(built_graphs_run_in_order)
{
    CUgraph graph;
    CUgraph parent;
    CUgraphNode nodes[4];
    CUgraphExec exec;
    CUdeviceptr to;
    unsigned value = 3;
    unsigned counter = 0;
    CUDA_KERNEL_NODE_PARAMS kernel = node_params((void *[]){&to, &value});
    CUDA_MEMSET_NODE_PARAMS fill = {.value = 9, .elementSize = 4, .width = 1, .height = 1};
    CUDA_HOST_NODE_PARAMS host = {count_up, &counter};

    start();
    kernel.func = put;
    to = memory;
    fill.dst = memory;
    ck_assert_int_eq(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
    ck_assert_int_eq(cuGraphAddMemsetNode(&nodes[0], graph, NULL, 0, &fill, NULL), CUDA_SUCCESS);
    ck_assert_int_eq(cuGraphAddKernelNode_v2(&nodes[1], graph, nodes, 1, &kernel), CUDA_SUCCESS);
    ck_assert_int_eq(cuGraphAddHostNode(&nodes[2], graph, &nodes[1], 1, &host), CUDA_SUCCESS);
    exec = instantiate(graph);
    run(exec);
    run(exec);
    ck_assert_uint_eq(word(0), 3);
    ck_assert_uint_eq(counter, 2);
    fill.elementSize = 3;
    ck_assert_int_eq(cuGraphMemsetNodeSetParams(nodes[0], &fill), CUDA_ERROR_INVALID_VALUE);
    ck_assert_int_eq(cuGraphExecDestroy(exec), CUDA_SUCCESS);
    ck_assert_int_eq(cuGraphCreate(&parent, 0), CUDA_SUCCESS);
    ck_assert_int_eq(cuGraphAddChildGraphNode(&nodes[3], parent, NULL, 0, graph), CUDA_SUCCESS);
    exec = instantiate(parent);
    run(exec);
    ck_assert_uint_eq(counter, 3);
    ck_assert_int_eq(cuGraphExecDestroy(exec), CUDA_SUCCESS);
    ck_assert_int_eq(cuGraphDestroy(parent), CUDA_SUCCESS);
    ck_assert_int_eq(cuGraphDestroy(graph), CUDA_SUCCESS);
}
END_TEST

static void *allocate(void *result)
{
    CUcontext context;
    CUdeviceptr address;

    (void)cuDevicePrimaryCtxRetain(&context, 0);
    (void)cuCtxSetCurrent(context);
    *(CUresult *)result = cuMemAlloc_v2(&address, 64);
    return NULL;
}

static CUresult allocate_elsewhere(void)
{
    CUresult result = CUDA_ERROR_UNKNOWN;
    pthread_t thread;

    ck_assert_int_eq(pthread_create(&thread, NULL, allocate, &result), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    return result;
}

/* Ends a capture that must have become invalid. */
static void end_invalid(void)
{
    CUstreamCaptureStatus status;
    CUgraph graph;

    ck_assert_int_eq(cuStreamIsCapturing(streams[0], &status), CUDA_SUCCESS);
    ck_assert_uint_eq(status, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    ck_assert_int_eq(launch(memory, 1, streams[0]), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    ck_assert_int_eq(cuStreamEndCapture(streams[0], &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    ck_assert_ptr_null(graph);
}

START_TEST(captures_forbid_what_may_wait)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUdeviceptr address;
    CUgraph graph;

    start();
    ck_assert_int_eq(cuStreamBeginCapture_v2(streams[0], CU_STREAM_CAPTURE_MODE_GLOBAL),
                     CUDA_SUCCESS);
    ck_assert_int_eq(cuMemAlloc_v2(&address, 64), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    end_invalid();
    ck_assert_int_eq(cuStreamBeginCapture_v2(streams[0], CU_STREAM_CAPTURE_MODE_GLOBAL),
                     CUDA_SUCCESS);
    ck_assert_int_eq(allocate_elsewhere(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    end_invalid();
    ck_assert_int_eq(cuStreamBeginCapture_v2(streams[0], CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                     CUDA_SUCCESS);
    ck_assert_int_eq(allocate_elsewhere(), CUDA_SUCCESS);
    ck_assert_int_eq(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
    ck_assert_int_eq(cuMemAlloc_v2(&address, 64), CUDA_SUCCESS);
    ck_assert_int_eq(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
    ck_assert_int_eq(cuCtxSynchronize(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    end_invalid();
    /* The legacy default stream waits for streams that do not say otherwise. */
    ck_assert_int_eq(cuStreamBeginCapture_v2(streams[0], 0), CUDA_SUCCESS);
    ck_assert_int_eq(launch(memory, 1, NULL), CUDA_SUCCESS);
    ck_assert_int_eq(cuStreamEndCapture(streams[0], &graph), CUDA_SUCCESS);
    ck_assert_int_eq(cuGraphDestroy(graph), CUDA_SUCCESS);
    ck_assert_int_eq(cuStreamCreate(&streams[0], 0), CUDA_SUCCESS);
    ck_assert_int_eq(cuStreamBeginCapture_v2(streams[0], 0), CUDA_SUCCESS);
    ck_assert_int_eq(launch(memory, 1, NULL), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    end_invalid();
}
END_TEST

START_TEST(captures_are_joined_and_ended_where_they_began)
{
    CUgraph graph;
    CUevent event;

    start();
    ck_assert_int_eq(cuEventCreate(&event, 0), CUDA_SUCCESS);
    ck_assert_int_eq(cuEventRecord(event, streams[1]), CUDA_SUCCESS);
    ck_assert_int_eq(cuStreamBeginCapture_v2(streams[0], 0), CUDA_SUCCESS);
    ck_assert_int_eq(cuStreamWaitEvent(streams[0], event, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    ck_assert_int_eq(cuEventRecord(event, streams[0]), CUDA_SUCCESS);
    ck_assert_int_eq(cuEventQuery(event), CUDA_ERROR_CAPTURED_EVENT);
    ck_assert_int_eq(cuStreamWaitEvent(streams[1], event, 0), CUDA_SUCCESS);
    ck_assert_int_eq(launch(memory, 1, streams[1]), CUDA_SUCCESS);
    ck_assert_int_eq(cuStreamEndCapture(streams[1], &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    ck_assert_int_eq(cuStreamEndCapture(streams[0], &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    ck_assert_int_eq(cuStreamSynchronize(streams[1]), CUDA_SUCCESS);
    ck_assert_uint_eq(word(0), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("graphs of the test driver");
    TCase *tcase = tcase_create("graphs");

    tcase_add_test(tcase, nodes_say_what_they_do);
    tcase_add_test(tcase, parameters_are_replaced);
    tcase_add_test(tcase, built_graphs_run_in_order);
    tcase_add_test(tcase, captures_forbid_what_may_wait);
    tcase_add_test(tcase, captures_are_joined_and_ended_where_they_began);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}

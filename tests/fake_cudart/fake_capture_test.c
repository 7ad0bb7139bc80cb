/* Checks that captures and graphs of the fake behave as CUDA's do: what is recorded, what is
   refused, and what a launch orders. */
#include "tests/fake_cudart/fake_cudart.h"
#include "tests/support/suite.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#define PAGE ((size_t)64 << 10)
#define IS(call_, expected_) ck_assert_int_eq((int)(call_), (int)(expected_))
#define WORKS(call_) IS(call_, cudaSuccess)

static const CUmemAllocationProp properties = {
    .type = CU_MEM_ALLOCATION_TYPE_PINNED,
    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
};
static const CUmemAccessDesc access_of_device = {
    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
};

/* A page of device memory, two streams and two events. */
static unsigned char *memory;
static cudaStream_t origin;
static cudaStream_t side;
static cudaEvent_t fork_event;
static cudaEvent_t join_event;

static void set_up(uint64_t delay_seed)
{
    const struct fake_cudart_machine machine = {.delay_seed = delay_seed};
    CUmemGenericAllocationHandle handle;
    CUdeviceptr range;

    fake_cudart_reset(&machine);
    IS(cuMemAddressReserve(&range, PAGE, 0, 0, 0), CUDA_SUCCESS);
    IS(cuMemCreate(&handle, PAGE, &properties, 0), CUDA_SUCCESS);
    IS(cuMemMap(range, PAGE, 0, handle, 0), CUDA_SUCCESS);
    IS(cuMemSetAccess(range, PAGE, &access_of_device, 1), CUDA_SUCCESS);
    memory = (unsigned char *)(uintptr_t)range;
    WORKS(cudaStreamCreateWithFlags(&origin, cudaStreamNonBlocking));
    WORKS(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
    WORKS(cudaEventCreateWithFlags(&fork_event, cudaEventDisableTiming));
    WORKS(cudaEventCreateWithFlags(&join_event, cudaEventDefault));
}

static void begin(void)
{
    WORKS(cudaStreamBeginCapture(origin, cudaStreamCaptureModeThreadLocal));
}

static void fork_side(void)
{
    WORKS(cudaEventRecord(fork_event, origin));
    WORKS(cudaStreamWaitEvent(side, fork_event, 0));
}

static void join_side(void)
{
    WORKS(cudaEventRecord(join_event, side));
    WORKS(cudaStreamWaitEvent(origin, join_event, 0));
}

static cudaGraphExec_t end(cudaGraph_t *kept)
{
    cudaGraphExec_t executable = NULL;
    cudaGraph_t graph = NULL;

    WORKS(cudaStreamEndCapture(origin, &graph));
    WORKS(cudaGraphInstantiate(&executable, graph, 0));
    if (kept != NULL) {
        *kept = graph;
    } else {
        WORKS(cudaGraphDestroy(graph));
    }
    return executable;
}

static void launch(cudaGraphExec_t executable)
{
    WORKS(cudaGraphLaunch(executable, origin));
    WORKS(cudaStreamSynchronize(origin));
}

/* The capture must have been invalidated: it refuses everything, and ends without a graph. */
static void expect_invalidated(void)
{
    enum cudaStreamCaptureStatus status;
    cudaGraph_t graph = (cudaGraph_t)memory;

    WORKS(cudaStreamIsCapturing(origin, &status));
    IS(status, cudaStreamCaptureStatusInvalidated);
    IS(cudaMemsetAsync(memory, 1, 1, origin), cudaErrorStreamCaptureInvalidated);
    IS(cudaEventRecord(fork_event, origin), cudaErrorStreamCaptureInvalidated);
    IS(cudaStreamEndCapture(origin, &graph), cudaErrorStreamCaptureInvalidated);
    ck_assert_ptr_null(graph);
    WORKS(cudaStreamIsCapturing(origin, &status));
    IS(status, cudaStreamCaptureStatusNone);
    WORKS(cudaMemsetAsync(memory, 1, 1, origin));
    WORKS(cudaStreamSynchronize(origin));
}

static capu_status increment(capu_stream stream, const void *arguments)
{
    (void)stream;
    (**(unsigned char *const *)arguments)++;
    return CAPU_OK;
}

START_TEST(work_is_recorded_and_runs_at_every_launch)
{
    unsigned char bytes[4] = "abc";
    unsigned char *to = memory;
    cudaGraphExec_t executable;
    enum cudaStreamCaptureStatus status;

    set_up(1);
    to = memory;
    begin();
    WORKS(cudaStreamIsCapturing(origin, &status));
    IS(status, cudaStreamCaptureStatusActive);
    WORKS(cudaMemcpyAsync(memory, bytes, 4, cudaMemcpyHostToDevice, origin));
    WORKS(cudaMemsetAsync(memory + 1, 'x', 1, origin));
    WORKS(fake_cudart_launch(origin, increment, &to));
    WORKS(cudaMemcpyAsync(memory + 8, memory, 4, cudaMemcpyDeviceToDevice, origin));
    executable = end(NULL);
    usleep(2000);
    ck_assert_uint_eq(memory[0], 0);
    launch(executable);
    ck_assert_int_eq(memcmp(memory + 8, "bxc", 4), 0);
    bytes[2] = 'd'; /* a copy reads its source when it runs */
    launch(executable);
    ck_assert_int_eq(memcmp(memory + 8, "bxd", 4), 0);
    WORKS(cudaGraphExecDestroy(executable));
    IS(cudaGraphExecDestroy(executable), cudaErrorInvalidValue);
    ck_assert_uint_eq(fake_cudart_left().graphs, 0);
}
END_TEST

START_TEST(streams_join_by_events_and_must_be_joined_back)
{
    enum cudaStreamCaptureStatus status;
    cudaGraph_t graph;
    cudaGraphExec_t executable;

    set_up(2);
    begin();
    WORKS(cudaMemsetAsync(memory, 1, 1, origin));
    fork_side();
    WORKS(cudaStreamIsCapturing(side, &status));
    IS(status, cudaStreamCaptureStatusActive);
    WORKS(cudaMemcpyAsync(memory + 1, memory, 1, cudaMemcpyDeviceToDevice, side));
    IS(cudaStreamEndCapture(side, &graph), cudaErrorStreamCaptureUnmatched);
    IS(cudaStreamEndCapture(origin, &graph), cudaErrorStreamCaptureInvalidated);

    begin();
    fork_side();
    WORKS(cudaMemsetAsync(memory + 1, 2, 1, side));
    IS(cudaStreamEndCapture(origin, &graph), cudaErrorStreamCaptureUnjoined);
    ck_assert_ptr_null(graph);
    WORKS(cudaStreamIsCapturing(side, &status));
    IS(status, cudaStreamCaptureStatusNone);

    begin();
    WORKS(cudaMemsetAsync(memory, 7, 1, origin));
    fork_side();
    WORKS(cudaMemcpyAsync(memory + 1, memory, 1, cudaMemcpyDeviceToDevice, side));
    join_side();
    WORKS(cudaMemcpyAsync(memory + 2, memory + 1, 1, cudaMemcpyDeviceToDevice, origin));
    executable = end(NULL);
    for (unsigned i = 0; i < 20; i++) {
        memset(memory, 0, 3);
        launch(executable);
        ck_assert_uint_eq(memory[2], 7);
    }
}
END_TEST

static atomic_int met;

/* Returns only when both of them run. */
static capu_status meet(capu_stream stream, const void *arguments)
{
    (void)stream;
    (void)arguments;
    atomic_fetch_add(&met, 1);
    while (atomic_load(&met) < 2) {
        usleep(100);
    }
    return CAPU_OK;
}

START_TEST(nodes_without_an_edge_run_beside_each_other)
{
    cudaGraphExec_t executable;

    set_up(0);
    begin();
    fork_side();
    WORKS(fake_cudart_launch(origin, meet, NULL));
    WORKS(fake_cudart_launch(side, meet, NULL));
    join_side();
    executable = end(NULL);
    ck_assert_int_eq(atomic_load(&met), 0);
    launch(executable);
    ck_assert_int_eq(atomic_load(&met), 2);
}
END_TEST

/* Launches on different streams, with a copy that ends late on a side stream. */
START_TEST(launches_of_one_graph_follow_each_other)
{
    static unsigned char *counter;
    cudaGraphExec_t executable;

    set_up((uint64_t)_i + 1);
    counter = memory;
    begin();
    fork_side();
    WORKS(cudaMemcpyAsync(memory + 1, memory, 1, cudaMemcpyDeviceToDevice, side));
    join_side();
    WORKS(fake_cudart_launch(origin, increment, &counter));
    WORKS(cudaMemcpyAsync(memory, memory, 1, cudaMemcpyDeviceToDevice, origin));
    executable = end(NULL);
    memory[0] = 0;
    for (unsigned i = 0; i < 20; i++) {
        WORKS(cudaGraphLaunch(executable, i % 2 == 0 ? origin : side));
    }
    WORKS(cudaDeviceSynchronize());
    ck_assert_uint_eq(memory[0], 20);
    ck_assert_uint_eq(memory[1], 19);
}
END_TEST

START_TEST(waiting_for_what_was_recorded_outside_is_refused)
{
    set_up(0);
    WORKS(cudaEventRecord(join_event, side));
    begin();
    IS(cudaStreamWaitEvent(origin, join_event, 0), cudaErrorStreamCaptureIsolation);
    expect_invalidated();
}
END_TEST

enum question {
    ASK_STREAM,
    SYNC_STREAM,
    ASK_EVENT,
    SYNC_EVENT,
    TIME_EVENT,
    SYNC_DEVICE,
    QUESTIONS
};

/* What conflicts with a capture in every mode. */
START_TEST(captured_work_cannot_be_waited_for)
{
    static const int expected[QUESTIONS] = {cudaErrorStreamCaptureUnsupported,
                                            cudaErrorStreamCaptureUnsupported,
                                            cudaErrorCapturedEvent,
                                            cudaErrorCapturedEvent,
                                            cudaErrorCapturedEvent,
                                            cudaErrorStreamCaptureUnsupported};
    float ms;
    int error = 0;

    set_up(0);
    WORKS(cudaStreamBeginCapture(origin, cudaStreamCaptureModeRelaxed));
    WORKS(cudaEventRecord(join_event, origin));
    switch (_i) {
    case ASK_STREAM:
        error = (int)cudaStreamQuery(origin);
        break;
    case SYNC_STREAM:
        error = (int)cudaStreamSynchronize(origin);
        break;
    case ASK_EVENT:
        error = (int)cudaEventQuery(join_event);
        break;
    case SYNC_EVENT:
        error = (int)cudaEventSynchronize(join_event);
        break;
    case TIME_EVENT: {
        cudaEvent_t other;

        WORKS(cudaEventCreateWithFlags(&other, cudaEventDefault));
        WORKS(cudaEventRecord(other, side));
        /* Recorded for once, so that only the capture is in the way. */
        WORKS(cudaEventRecord(join_event, side));
        WORKS(cudaEventRecord(join_event, origin));
        error = (int)cudaEventElapsedTime(&ms, other, join_event);
        break;
    }
    default:
        error = (int)cudaDeviceSynchronize();
        break;
    }
    IS(error, expected[_i]);
    expect_invalidated();
    /* An event stays captured until it is recorded elsewhere. */
    if (_i == ASK_EVENT) {
        IS(cudaEventQuery(join_event), cudaErrorCapturedEvent);
        IS(cudaStreamWaitEvent(side, join_event, 0), cudaErrorCapturedEvent);
        WORKS(cudaEventRecord(join_event, side));
        WORKS(cudaEventSynchronize(join_event));
    }
}
END_TEST

START_TEST(unsafe_calls_are_refused_unless_the_mode_is_relaxed)
{
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    cudaGraph_t graph;
    void *pinned;

    set_up(0);
    WORKS(cudaEventRecord(join_event, side));
    WORKS(cudaStreamBeginCapture(origin, (enum cudaStreamCaptureMode)_i));
    if (_i == cudaStreamCaptureModeRelaxed) {
        WORKS(cudaHostAlloc(&pinned, PAGE, 0));
        WORKS(cudaFreeHost(pinned));
        WORKS(cudaStreamSynchronize(side));
        WORKS(cudaEventQuery(join_event));
    }
    WORKS(cudaThreadExchangeStreamCaptureMode(&mode));
    IS(mode, cudaStreamCaptureModeGlobal);
    WORKS(cudaHostAlloc(&pinned, PAGE, 0));
    WORKS(cudaStreamSynchronize(side));
    WORKS(cudaEventQuery(join_event));
    WORKS(cudaThreadExchangeStreamCaptureMode(&mode));
    IS(mode, cudaStreamCaptureModeRelaxed);
    if (_i == cudaStreamCaptureModeRelaxed) {
        WORKS(cudaStreamEndCapture(origin, &graph));
        return;
    }
    IS(cudaEventQuery(join_event), cudaErrorStreamCaptureUnsupported);
    expect_invalidated();
    WORKS(cudaStreamBeginCapture(origin, (enum cudaStreamCaptureMode)_i));
    IS(cudaFreeHost(pinned), cudaErrorStreamCaptureUnsupported);
    expect_invalidated();
    WORKS(cudaFreeHost(pinned));
}
END_TEST

static cudaError_t from_elsewhere[2];

static void *allocate_elsewhere(void *nothing)
{
    cudaGraph_t graph;
    void *pinned;

    from_elsewhere[0] = cudaHostAlloc(&pinned, PAGE, 0);
    from_elsewhere[1] = cudaStreamEndCapture(origin, &graph);
    return nothing;
}

/* A capture in mode global also prohibits other threads. */
START_TEST(other_threads_are_bound_by_a_global_capture_only)
{
    enum cudaStreamCaptureStatus status;
    pthread_t thread;

    set_up(0);
    WORKS(cudaStreamBeginCapture(origin, (enum cudaStreamCaptureMode)_i));
    ck_assert_int_eq(pthread_create(&thread, NULL, allocate_elsewhere, NULL), 0);
    pthread_join(thread, NULL);
    IS(from_elsewhere[0],
       _i == cudaStreamCaptureModeGlobal ? cudaErrorStreamCaptureUnsupported : cudaSuccess);
    IS(from_elsewhere[1],
       _i == cudaStreamCaptureModeRelaxed ? cudaSuccess : cudaErrorStreamCaptureWrongThread);
    WORKS(cudaStreamIsCapturing(origin, &status));
    IS(status, _i == cudaStreamCaptureModeGlobal        ? cudaStreamCaptureStatusInvalidated
               : _i == cudaStreamCaptureModeThreadLocal ? cudaStreamCaptureStatusActive
                                                        : cudaStreamCaptureStatusNone);
}
END_TEST

START_TEST(captures_do_not_mix)
{
    cudaGraph_t graph;

    set_up(0);
    IS(cudaStreamEndCapture(origin, &graph), cudaErrorIllegalState);
    begin();
    IS(cudaStreamBeginCapture(origin, cudaStreamCaptureModeRelaxed), cudaErrorIllegalState);
    WORKS(cudaStreamBeginCapture(side, cudaStreamCaptureModeThreadLocal));
    WORKS(cudaEventRecord(join_event, side));
    IS(cudaStreamWaitEvent(origin, join_event, 0), cudaErrorStreamCaptureMerge);
    IS(cudaStreamEndCapture(side, &graph), cudaErrorStreamCaptureInvalidated);
    expect_invalidated();
}
END_TEST

START_TEST(a_new_capture_updates_a_graph)
{
    cudaGraphExecUpdateResultInfo result;
    cudaGraphExec_t executable;
    cudaGraph_t graph;

    set_up(3);
    begin();
    WORKS(cudaMemsetAsync(memory, 1, 1, origin));
    WORKS(cudaMemcpyAsync(memory + 1, memory, 1, cudaMemcpyDeviceToDevice, origin));
    executable = end(NULL);

    begin();
    WORKS(cudaMemsetAsync(memory + 2, 9, 2, origin));
    WORKS(cudaMemcpyAsync(memory + 4, memory + 3, 1, cudaMemcpyDeviceToDevice, origin));
    WORKS(cudaStreamEndCapture(origin, &graph));
    WORKS(cudaGraphExecUpdate(executable, graph, &result));
    IS(result.result, cudaGraphExecUpdateSuccess);
    WORKS(cudaGraphDestroy(graph));
    memset(memory, 0, 8);
    launch(executable);
    ck_assert_uint_eq(memory[0], 0);
    ck_assert_uint_eq(memory[4], 9);

    begin();
    WORKS(cudaMemsetAsync(memory, 1, 1, origin));
    WORKS(cudaStreamEndCapture(origin, &graph));
    IS(cudaGraphExecUpdate(executable, graph, &result), cudaErrorGraphExecUpdateFailure);
    IS(result.result, cudaGraphExecUpdateErrorTopologyChanged);
    WORKS(cudaGraphDestroy(graph));

    begin();
    fork_side();
    WORKS(cudaMemsetAsync(memory, 1, 1, origin));
    WORKS(cudaMemcpyAsync(memory + 1, memory, 1, cudaMemcpyDeviceToDevice, side));
    join_side();
    WORKS(cudaStreamEndCapture(origin, &graph));
    IS(cudaGraphExecUpdate(executable, graph, &result), cudaErrorGraphExecUpdateFailure);
    IS(result.result, cudaGraphExecUpdateErrorTopologyChanged);
    WORKS(cudaGraphDestroy(graph));

    begin();
    WORKS(cudaMemsetAsync(memory, 1, 1, origin));
    WORKS(cudaMemsetAsync(memory, 1, 1, origin));
    WORKS(cudaStreamEndCapture(origin, &graph));
    IS(cudaGraphExecUpdate(executable, graph, &result), cudaErrorGraphExecUpdateFailure);
    IS(result.result, cudaGraphExecUpdateErrorNodeTypeChanged);
    ck_assert_ptr_nonnull(result.errorNode);
    WORKS(cudaGraphDestroy(graph));

    begin();
    WORKS(cudaMemsetAsync(memory, 1, 1, origin));
    WORKS(cudaMemcpyAsync(&result, memory, 1, cudaMemcpyDeviceToHost, origin));
    WORKS(cudaStreamEndCapture(origin, &graph));
    IS(cudaGraphExecUpdate(executable, graph, &result), cudaErrorGraphExecUpdateFailure);
    IS(result.result, cudaGraphExecUpdateErrorParametersChanged);
    WORKS(cudaGraphDestroy(graph));

    /* A failed update changes nothing. */
    memset(memory, 0, 8);
    launch(executable);
    ck_assert_uint_eq(memory[4], 9);
}
END_TEST

START_TEST(a_copy_gets_another_source)
{
    unsigned char first = 1;
    unsigned char second = 2;
    enum cudaStreamCaptureStatus status;
    const cudaGraphNode_t *nodes;
    unsigned long long id = 0;
    cudaGraphExec_t executable;
    cudaGraphNode_t node;
    cudaGraphNode_t all[3];
    cudaGraph_t graph;
    cudaGraph_t same;
    size_t count;

    set_up(0);
    begin();
    WORKS(cudaStreamGetCaptureInfo(origin, &status, &id, &graph, &nodes, NULL, &count));
    ck_assert_uint_eq(count, 0);
    WORKS(cudaMemcpyAsync(memory, &first, 1, cudaMemcpyHostToDevice, origin));
    WORKS(cudaStreamGetCaptureInfo(origin, &status, &id, &graph, &nodes, NULL, &count));
    IS(status, cudaStreamCaptureStatusActive);
    ck_assert_uint_eq(id, 1);
    ck_assert_uint_eq(count, 1);
    node = nodes[0];
    WORKS(cudaMemsetAsync(memory + 1, 3, 1, origin));
    executable = end(&same);
    ck_assert_ptr_eq(same, graph);
    count = 3;
    WORKS(cudaGraphGetNodes(graph, all, &count));
    ck_assert_uint_eq(count, 2);
    ck_assert_ptr_eq(all[0], node);
    launch(executable);
    ck_assert_uint_eq(memory[0], 1);
    WORKS(cudaGraphExecMemcpyNodeSetParams1D(executable, node, memory, &second, 1,
                                             cudaMemcpyHostToDevice));
    launch(executable);
    ck_assert_uint_eq(memory[0], 2);
    IS(cudaGraphExecMemcpyNodeSetParams1D(executable, all[1], memory, &second, 1,
                                          cudaMemcpyHostToDevice),
       cudaErrorInvalidValue);
    IS(cudaGraphExecMemcpyNodeSetParams1D(executable, node, memory, memory + 1, 1,
                                          cudaMemcpyDeviceToDevice),
       cudaErrorInvalidValue);
    WORKS(cudaGraphExecDestroy(executable));
    WORKS(cudaGraphDestroy(graph));
    IS(cudaGraphDestroy(graph), cudaErrorInvalidValue);
}
END_TEST

START_TEST(an_external_event_is_recorded_by_each_launch)
{
    cudaGraphExec_t executable;
    cudaEvent_t before;
    float ms = -1;

    set_up(4);
    WORKS(cudaEventCreateWithFlags(&before, cudaEventDefault));
    IS(cudaEventRecordWithFlags(join_event, origin, cudaEventRecordExternal),
       cudaErrorInvalidValue);
    begin();
    WORKS(cudaMemsetAsync(memory, 1, 1, origin));
    WORKS(cudaEventRecordWithFlags(join_event, origin, cudaEventRecordExternal));
    executable = end(NULL);
    WORKS(cudaEventRecord(before, origin));
    launch(executable);
    WORKS(cudaEventSynchronize(join_event));
    WORKS(cudaEventElapsedTime(&ms, before, join_event));
    ck_assert_float_ge(ms, 0);
}
END_TEST

START_TEST(a_launch_that_touches_lost_memory_loses_the_device)
{
    cudaGraphExec_t executable;

    set_up(0);
    begin();
    WORKS(cudaMemsetAsync(memory, 1, 1, origin));
    executable = end(NULL);
    IS(cuMemUnmap((CUdeviceptr)(uintptr_t)memory, PAGE), CUDA_SUCCESS);
    (void)cudaGraphLaunch(executable, origin); /* fails, too, if the device is lost by then */
    IS(cudaStreamSynchronize(origin), cudaErrorIllegalAddress);
    ck_assert(fake_cudart_is_lost());
    fake_cudart_reset(NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fake capture");
    TCase *cases = tcase_create("capture");

    tcase_add_test(cases, work_is_recorded_and_runs_at_every_launch);
    tcase_add_test(cases, streams_join_by_events_and_must_be_joined_back);
    tcase_add_test(cases, nodes_without_an_edge_run_beside_each_other);
    tcase_add_loop_test(cases, launches_of_one_graph_follow_each_other, 0, 3);
    tcase_add_test(cases, waiting_for_what_was_recorded_outside_is_refused);
    tcase_add_loop_test(cases, captured_work_cannot_be_waited_for, 0, QUESTIONS);
    tcase_add_loop_test(cases, unsafe_calls_are_refused_unless_the_mode_is_relaxed, 0, 3);
    tcase_add_loop_test(cases, other_threads_are_bound_by_a_global_capture_only, 0, 3);
    tcase_add_test(cases, captures_do_not_mix);
    tcase_add_test(cases, a_new_capture_updates_a_graph);
    tcase_add_test(cases, a_copy_gets_another_source);
    tcase_add_test(cases, an_external_event_is_recorded_by_each_launch);
    tcase_add_test(cases, a_launch_that_touches_lost_memory_loses_the_device);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}

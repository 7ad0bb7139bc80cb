// Traps with graphs: captured, built, updated, and launched when their memory has gone elsewhere.
//
//     graphs [CASE...]
//
// As traps.cu. Some cases need all memory, or have a test of their own, and run only if named.
#include "tests/shim/cuda/traps_cases.cuh"
#include "tests/shim/cuda/traps_kernels.cuh"
#include "tests/shim/cuda/traps_memory.cuh"

#include <cstdio>
#include <cstring>
#include <cuda_runtime.h>

static cudaStream_t side_stream()
{
    cudaStream_t stream;

    CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
}

static cudaGraphExec_t executable(cudaGraph_t graph)
{
    cudaGraphExec_t exec;

    CUDA_CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CUDA_CHECK(cudaGraphDestroy(graph));
    return exec;
}

static cudaGraph_t end_capture(cudaStream_t stream)
{
    cudaGraph_t graph;

    CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
    return graph;
}

struct Model {
    float *weights, *gradients, *activations, *input;
    cudaGraphExec_t step;
};

static Model new_model(int seed)
{
    return {input(seed), device<float>(kCount), device<float>(kCount), device<float>(kCount),
            nullptr};
}

// Several models, each of whose steps is a graph. All of them together do not fit a small budget.
static void run_training()
{
    static Model models[4] = {new_model(70), new_model(71), new_model(72), new_model(73)};
    cudaStream_t stream = side_stream();

    CUDA_CHECK(cudaDeviceSynchronize());
    for (Model &model : models) {
        CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
        CUDA_CHECK(cudaMemsetAsync(model.gradients, 0, kBytes, stream));
        scale<<<kBlocks, kThreads, 0, stream>>>(model.activations, model.weights, 0.5f, kCount);
        add_to<<<kBlocks, kThreads, 0, stream>>>(model.activations, model.input, kCount);
        add_to<<<kBlocks, kThreads, 0, stream>>>(model.gradients, model.activations, kCount);
        add_to<<<kBlocks, kThreads, 0, stream>>>(model.weights, model.gradients, kCount);
        model.step = executable(end_capture(stream));
    }
    for (int i = 0; i < 3; i++) {
        for (Model &model : models) {
            CUDA_CHECK(cudaMemcpyAsync(model.input, made_up(kCount, 80 + i).data(), kBytes,
                                       cudaMemcpyHostToDevice, stream));
            CUDA_CHECK(cudaGraphLaunch(model.step, stream));
        }
    }
    CUDA_CHECK(cudaStreamSynchronize(stream));
    for (Model &model : models) {
        show("graph of a step", model.weights);
        CUDA_CHECK(cudaGraphExecDestroy(model.step));
    }
    CUDA_CHECK(cudaStreamDestroy(stream));
}

// One graph whose kernels get other operands, node by node and all at once.
static void run_update()
{
    static float *from[5] = {input(90), input(91), input(92), input(93), input(94)};
    static float *sum = filled(0), *other = filled(0x3e);
    cudaStream_t stream = side_stream();
    cudaGraph_t graph;
    cudaGraphNode_t nodes[2];
    size_t count = 2;
    int all = kCount;
    float factor = 0.25f;

    CUDA_CHECK(cudaDeviceSynchronize());
    CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    scale<<<kBlocks, kThreads, 0, stream>>>(sum, from[0], factor, kCount);
    add_to<<<kBlocks, kThreads, 0, stream>>>(other, sum, kCount);
    graph = end_capture(stream);
    CUDA_CHECK(cudaGraphGetNodes(graph, nodes, &count));
    cudaGraphExec_t exec;
    CUDA_CHECK(cudaGraphInstantiate(&exec, graph, 0));
    for (float *&one : from) {
        void *parameters[] = {&sum, &one, &factor, &all};
        cudaKernelNodeParams node = {};

        node.func = reinterpret_cast<void *>(scale);
        node.gridDim = dim3(kBlocks);
        node.blockDim = dim3(kThreads);
        node.kernelParams = parameters;
        CUDA_CHECK(cudaGraphExecKernelNodeSetParams(exec, nodes[0], &node));
        CUDA_CHECK(cudaGraphLaunch(exec, stream));
        factor += 0.5f;
    }
    for (int i = 4; i >= 0; i--) {
        cudaGraphExecUpdateResultInfo info;
        cudaGraph_t next;

        CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
        scale<<<kBlocks, kThreads, 0, stream>>>(from[(i + 1) % 5], from[i], 1.5f, kCount - i);
        add_to<<<kBlocks, kThreads, 0, stream>>>(sum, from[i], kCount);
        next = end_capture(stream);
        CUDA_CHECK(cudaGraphExecUpdate(exec, next, &info));
        CUDA_CHECK(cudaGraphDestroy(next));
        CUDA_CHECK(cudaGraphLaunch(exec, stream));
    }
    CUDA_CHECK(cudaStreamSynchronize(stream));
    CUDA_CHECK(cudaGraphExecDestroy(exec));
    CUDA_CHECK(cudaGraphDestroy(graph));
    CUDA_CHECK(cudaStreamDestroy(stream));
    show("graph updated", sum);
    show("graph updated, other", other);
    show("graph updated, from", from[3]);
}

// Two streams that events join into one capture, while another stream does other work.
static void run_fork()
{
    static float *left = input(100), *right = input(101), *joined = filled(0), *apart = input(102);
    cudaStream_t streams[2] = {side_stream(), side_stream()};
    cudaEvent_t forked, done;

    CUDA_CHECK(cudaEventCreate(&forked));
    CUDA_CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    CUDA_CHECK(cudaDeviceSynchronize());
    CUDA_CHECK(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeThreadLocal));
    CUDA_CHECK(cudaEventRecord(forked, streams[0]));
    CUDA_CHECK(cudaStreamWaitEvent(streams[1], forked, 0));
    scale<<<kBlocks, kThreads, 0, streams[0]>>>(left, left, 1.25f, kCount);
    scale<<<kBlocks, kThreads, 0, streams[1]>>>(right, right, 0.75f, kCount);
    scale<<<kBlocks, kThreads>>>(apart, apart, 0.5f, kCount); // at once, and only now
    CUDA_CHECK(cudaMemcpyAsync(joined, right, kBytes, cudaMemcpyDeviceToDevice, streams[1]));
    CUDA_CHECK(cudaEventRecord(done, streams[1]));
    CUDA_CHECK(cudaStreamWaitEvent(streams[0], done, 0));
    add_to<<<kBlocks, kThreads, 0, streams[0]>>>(joined, left, kCount);
    cudaGraphExec_t exec = executable(end_capture(streams[0]));
    for (int i = 0; i < 3; i++) {
        CUDA_CHECK(cudaGraphLaunch(exec, streams[i % 2]));
        CUDA_CHECK(cudaEventRecord(done, streams[i % 2]));
        CUDA_CHECK(cudaStreamWaitEvent(streams[1 - i % 2], done, 0));
    }
    CUDA_CHECK(cudaEventSynchronize(done));
    CUDA_CHECK(cudaGraphExecDestroy(exec));
    for (int i = 0; i < 2; i++) {
        CUDA_CHECK(cudaStreamDestroy(streams[i]));
    }
    CUDA_CHECK(cudaEventDestroy(forked));
    CUDA_CHECK(cudaEventDestroy(done));
    show("graph joined", joined);
    show("graph joined, apart", apart);
}

// Copies and memsets are captured while other work takes the memory that they are about.
static void run_evictions()
{
    static float *parts[12];
    static float *bounce = pinned<float>(kCount), *back = pinned<float>(kCount);
    cudaStream_t stream = side_stream();

    for (int i = 0; i < 12 && parts[11] == nullptr; i++) {
        parts[i] = input(110 + i);
    }
    CUDA_CHECK(cudaDeviceSynchronize());
    CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    CUDA_CHECK(cudaMemcpyAsync(parts[0], bounce, kBytes, cudaMemcpyHostToDevice, stream));
    for (int i = 1; i < 12; i++) {
        add_to<<<kBlocks, kThreads>>>(parts[i], parts[(i + 5) % 12], kCount);
    }
    CUDA_CHECK(cudaMemcpyAsync(parts[1], parts[0], kBytes / 2, cudaMemcpyDeviceToDevice, stream));
    CUDA_CHECK(cudaMemsetAsync(parts[2] + 5, 0x3d, 5000, stream));
    float *fresh = device<float>(kCount); // the mode allows it
    add_to<<<kBlocks, kThreads, 0, stream>>>(parts[2], parts[1], kCount);
    CUDA_CHECK(cudaMemset2DAsync(parts[3], kSide * sizeof(float), 0, 64, kSide, stream));
    CUDA_CHECK(cudaMemcpy2DAsync(parts[3] + 8, kSide * sizeof(float), parts[2],
                                 kSide * sizeof(float), 256, kSide, cudaMemcpyDeviceToDevice,
                                 stream));
    CUDA_CHECK(cudaMemcpyAsync(back, parts[2], kBytes, cudaMemcpyDeviceToHost, stream));
    cudaGraphExec_t exec = executable(end_capture(stream));
    for (int i = 0; i < 3; i++) {
        memcpy(bounce, made_up(kCount, 130 + i).data(), kBytes);
        CUDA_CHECK(cudaGraphLaunch(exec, stream));
        CUDA_CHECK(cudaStreamSynchronize(stream));
        printf("graph back %g\n", back[100]);
        for (int k = 4; k < 12; k++) {
            scale<<<kBlocks, kThreads>>>(parts[k], parts[k], 0.5f, kCount);
        }
    }
    CUDA_CHECK(cudaFree(fresh));
    CUDA_CHECK(cudaGraphExecDestroy(exec));
    CUDA_CHECK(cudaStreamDestroy(stream));
    show("graph with evictions", parts[2]);
    show("graph with evictions, rows", parts[3]);
    show("graph with evictions, others", parts[11]);
}

// Nodes change indices and a variable, by which nodes after them choose addresses.
static void run_indices()
{
    static float *table = input(200), *out = filled(0), *spread = filled(0x3f);
    static int *indices = device<int>(kCount), *chosen = pinned<int>(kCount);
    cudaStream_t stream = side_stream();

    CUDA_CHECK(cudaDeviceSynchronize());
    CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CUDA_CHECK(
        cudaMemcpyAsync(indices, chosen, kCount * sizeof(int), cudaMemcpyHostToDevice, stream));
    gather<<<kBlocks, kThreads, 0, stream>>>(out, table, indices, kCount);
    turn_order<<<1, kWindow, 0, stream>>>();
    copy_shifted<<<kBlocks, kThreads, 0, stream>>>(spread, out, kCount);
    scatter<<<kBlocks, kThreads, 0, stream>>>(spread, table, indices, kCount / 3);
    cudaGraphExec_t exec = executable(end_capture(stream));
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < kCount; k++) {
            chosen[k] = static_cast<int>((k * 7919LL + 13 * i) % (kCount >> i));
        }
        CUDA_CHECK(cudaGraphLaunch(exec, stream));
        CUDA_CHECK(cudaStreamSynchronize(stream));
    }
    CUDA_CHECK(cudaGraphExecDestroy(exec));
    CUDA_CHECK(cudaStreamDestroy(stream));
    show("graph that gathers", out);
    show("graph that scatters", spread);
}

static void count_up(void *counter)
{
    ++*static_cast<int *>(counter);
}

// A graph that the program builds itself, with a function of the host from a capture beside.
static void run_built()
{
    static float *from = input(140), *to = filled(0x40), *copied = device<float>(kCount);
    static int calls;
    cudaStream_t stream = side_stream();
    cudaGraph_t graph;
    cudaGraphNode_t nodes[3];
    int count = kCount - 7;
    void *parameters[] = {&to, &from, &count};
    cudaKernelNodeParams kernel = {};
    cudaMemsetParams fill = {};

    kernel.func = reinterpret_cast<void *>(add_to);
    kernel.gridDim = dim3(kBlocks);
    kernel.blockDim = dim3(kThreads);
    kernel.kernelParams = parameters;
    fill.dst = to + 100;
    fill.value = 0x3f800000;
    fill.elementSize = 4;
    fill.width = 300;
    fill.height = 1;
    CUDA_CHECK(cudaGraphCreate(&graph, 0));
    CUDA_CHECK(cudaGraphAddMemsetNode(&nodes[0], graph, nullptr, 0, &fill));
    CUDA_CHECK(cudaGraphAddKernelNode(&nodes[1], graph, nodes, 1, &kernel));
    CUDA_CHECK(cudaGraphAddMemcpyNode1D(&nodes[2], graph, nodes + 1, 1, copied, to, kBytes,
                                        cudaMemcpyDeviceToDevice));
    cudaGraphExec_t built = executable(graph);
    CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CUDA_CHECK(cudaLaunchHostFunc(stream, count_up, &calls));
    scale<<<kBlocks, kThreads, 0, stream>>>(copied, copied, 0.5f, kCount);
    cudaGraphExec_t counting = executable(end_capture(stream));
    CUDA_CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 2; i++) {
        CUDA_CHECK(cudaGraphLaunch(built, stream));
        CUDA_CHECK(cudaGraphLaunch(counting, stream));
    }
    CUDA_CHECK(cudaStreamSynchronize(stream));
    printf("graph calls %d\n", calls);
    CUDA_CHECK(cudaGraphExecDestroy(built));
    CUDA_CHECK(cudaGraphExecDestroy(counting));
    CUDA_CHECK(cudaStreamDestroy(stream));
    show("graph built", to);
    show("graph built, copied", copied);
}

// Two graphs, each with half of all memory.
static void run_in_turn()
{
    static float *parts[16];
    cudaGraphExec_t execs[2];
    cudaStream_t stream = side_stream();

    for (int i = 0; i < 16 && parts[15] == nullptr; i++) {
        parts[i] = input(150 + i);
    }
    CUDA_CHECK(cudaDeviceSynchronize());
    for (int half = 0; half < 2; half++) {
        CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
        for (int i = 0; i < 8; i++) {
            add_to<<<kBlocks, kThreads, 0, stream>>>(parts[8 * half + i],
                                                     parts[8 * half + (i + 3) % 8], kCount);
        }
        execs[half] = executable(end_capture(stream));
    }
    for (int i = 0; i < 6; i++) {
        CUDA_CHECK(cudaGraphLaunch(execs[i % 2], stream));
    }
    CUDA_CHECK(cudaStreamSynchronize(stream));
    for (int half = 0; half < 2; half++) {
        CUDA_CHECK(cudaGraphExecDestroy(execs[half]));
        show("graphs in turn", parts[8 * half + 3]);
    }
    CUDA_CHECK(cudaStreamDestroy(stream));
}

// A graph within a graph: nothing is known of it.
static void run_in_graph()
{
    static float *values = input(170), *others = input(171), *unused = input(172);
    cudaStream_t stream = side_stream();
    cudaGraph_t child, parent;
    cudaGraphNode_t node;

    CUDA_CHECK(cudaDeviceSynchronize());
    CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    add_to<<<kBlocks, kThreads, 0, stream>>>(values, others, kCount);
    child = end_capture(stream);
    CUDA_CHECK(cudaGraphCreate(&parent, 0));
    CUDA_CHECK(cudaGraphAddChildGraphNode(&node, parent, nullptr, 0, child));
    CUDA_CHECK(cudaGraphDestroy(child));
    cudaGraphExec_t exec = executable(parent);
    CUDA_CHECK(cudaGraphLaunch(exec, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
    CUDA_CHECK(cudaGraphExecDestroy(exec));
    CUDA_CHECK(cudaStreamDestroy(stream));
    show("graph in a graph", values);
    show("graph in a graph, unused", unused);
}

// What a capture forbids, and what that does to it.
static void run_errors()
{
    static float *values = input(180);
    cudaStream_t stream = side_stream(), blocking;
    cudaGraph_t graph = nullptr;
    float *more = nullptr;

    CUDA_CHECK(cudaDeviceSynchronize());
    CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    printf("malloc %d", cudaMalloc(&more, kBytes));
    printf(", end %d\n", cudaStreamEndCapture(stream, &graph));
    CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    printf("free %d", cudaFree(values));
    printf(", end %d\n", cudaStreamEndCapture(stream, &graph));
    CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    printf("synchronise %d", cudaStreamSynchronize(stream));
    printf(", end %d\n", cudaStreamEndCapture(stream, &graph));
    CUDA_CHECK(cudaStreamCreate(&blocking));
    CUDA_CHECK(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeRelaxed));
    printf("memcpy %d", cudaMemcpy(values, values + 100, 100, cudaMemcpyDeviceToDevice));
    printf(", end %d\n", cudaStreamEndCapture(blocking, &graph));
    CUDA_CHECK(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeRelaxed));
    scale<<<kBlocks, kThreads, 0, blocking>>>(values, values, 2.0f, kCount);
    printf("end %d\n", cudaStreamEndCapture(blocking, &graph));
    (void)cudaGetLastError();
    CUDA_CHECK(cudaGraphLaunch(executable(graph), blocking));
    CUDA_CHECK(cudaStreamSynchronize(blocking));
    CUDA_CHECK(cudaStreamDestroy(stream));
    CUDA_CHECK(cudaStreamDestroy(blocking));
    show("after capture errors", values);
}

// A kernel whose pointers lie in memory, in a graph.
static void run_of_table()
{
    static float *parts[3] = {input(190), input(191), input(192)};
    static float **table = device<float *>(3);
    cudaStream_t stream = side_stream();

    CUDA_CHECK(cudaMemcpy(table, parts, sizeof(parts), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaDeviceSynchronize());
    CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    through_table<<<kBlocks, kThreads, 0, stream>>>(table, 3, kCount);
    cudaGraphExec_t exec = executable(end_capture(stream));
    CUDA_CHECK(cudaGraphLaunch(exec, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
    CUDA_CHECK(cudaGraphExecDestroy(exec));
    CUDA_CHECK(cudaStreamDestroy(stream));
    show("graph of a table", parts[1]);
}

static const Case cases[] = {
    {"training", run_training},
    {"update", run_update},
    {"fork", run_fork},
    {"evictions", run_evictions},
    {"indices", run_indices},
    {"built", run_built},
    {"in_turn", run_in_turn, true},
    {"in_graph", run_in_graph, true},
    {"of_table", run_of_table, true},
    {"errors", run_errors, true},
};

int main(int argc, char **argv)
{
    return run_cases(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}

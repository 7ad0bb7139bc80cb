// Traps for what runs CUDA programs without knowing them: each case uses memory in a way that is
// legal, common, and easily mistaken.
//
//     traps [CASE...]
//
// Without arguments, all cases but those whose kernels need all memory ("table"). Each runs twice
// and keeps its memory; prints checksums of what it has computed, and all of them again at the end.
#include "tests/shim/cuda/traps_cases.cuh"
#include "tests/shim/cuda/traps_kernels.cuh"
#include "tests/shim/cuda/traps_memory.cuh"
#include "tests/shim/cuda/traps_operands.cuh"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <thread>
#include <vector>

static void run_triangle()
{
    static float *in = input(1), *out = filled(0x3f), *fresh = device<float>(kCount);

    triangle<<<kBlocks, kThreads>>>(out, in, kSide);
    triangle<<<kBlocks, kThreads>>>(fresh, out, kSide);
    show("triangle", out);
    show("triangle of what nobody wrote", fresh);
}

static void run_optional()
{
    static float *in = input(2), *bias = input(3), *out = filled(0x40), *saved = filled(0x3e);
    const int part = kCount / 2;

    optional_operands<<<kBlocks, kThreads>>>(out, in, nullptr, nullptr, part);
    optional_operands<<<kBlocks, kThreads>>>(out + 1000, in + 77, bias + 3, nullptr, part);
    optional_operands<<<kBlocks, kThreads>>>(out + part, in + part, nullptr, saved + part, part);
    optional_operands<<<kBlocks, kThreads>>>(out + 5, in, bias, saved + 1, 100);
    show("optional", out);
    show("optional, saved", saved);
}

static void run_in_place()
{
    static float *values = input(4), *second = input(5);

    add_to<<<kBlocks, kThreads>>>(values, values, kCount);
    scale<<<kBlocks, kThreads>>>(second, second, 1.25f, kCount);
    scale<<<kBlocks, kThreads>>>(values, values + kCount / 2, 0.5f,
                                 kCount / 2); // from its own upper half
    show("in place", values);
    show("in place, scaled", second);
}

static void run_structure()
{
    static float *from[3] = {input(6), input(7), input(8)}, *to = filled(0);
    Job job = {to, kCount - 100, {from[0], from[1], from[2]}, {0.5f, -1.5f, 2.0f}};

    for (int first = 0; first < 3; first++) {
        weighted<<<kBlocks, kThreads>>>(job, first);
    }
    show("structure", to);
}

static void run_indices()
{
    static float *table = input(9), *out = filled(0), *spread = filled(0x3f);
    static int *indices = device<int>(kCount);
    std::vector<int> chosen(kCount);

    for (int i = 0; i < kCount; i++) {
        chosen[i] = static_cast<int>(i * 7919LL % kCount);
    }
    CUDA_CHECK(cudaMemcpy(indices, chosen.data(), kCount * sizeof(int), cudaMemcpyHostToDevice));
    gather<<<kBlocks, kThreads>>>(out, table, indices, kCount);
    scatter<<<kBlocks, kThreads>>>(spread, out, indices, kCount / 3);
    show("gather", out);
    show("scatter", spread);
}

static void run_atomics()
{
    static float *in = input(10);
    static unsigned int *bins = device<unsigned int>(300), *largest = device<unsigned int>(1);

    CUDA_CHECK(cudaMemset(bins, 0, 100 * sizeof(unsigned int))); // the others go on
    histogram<<<kBlocks, kThreads>>>(bins, largest, in, kCount, 300);
    show("histogram", bins, 300 * sizeof(unsigned int));
    show("largest", largest, sizeof(unsigned int));
}

static void run_ticket()
{
    static float *in = input(11), *partial = device<float>(kBlocks), *sums = device<float>(8);

    for (int i = 0; i < 8; i++) {
        sum_by_last_block<<<kBlocks, kThreads>>>(sums + i, partial, in, kCount - 1000 * i);
    }
    show("ticket", sums, 8 * sizeof(float));
}

static void run_streams()
{
    static float *a = input(12), *b = filled(0), *c = filled(0);
    cudaStream_t streams[2];
    cudaEvent_t done[2];
    float ms = -1.0f;

    for (int i = 0; i < 2; i++) {
        CUDA_CHECK(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
        CUDA_CHECK(cudaEventCreate(&done[i]));
    }
    CUDA_CHECK(cudaDeviceSynchronize()); // fills of the default stream
    for (int i = 0; i < 3; i++) {
        scale<<<kBlocks, kThreads, 0, streams[0]>>>(b, a, 1.5f, kCount);
        CUDA_CHECK(cudaEventRecord(done[0], streams[0]));
        CUDA_CHECK(cudaStreamWaitEvent(streams[1], done[0], 0));
        add_to<<<kBlocks, kThreads, 0, streams[1]>>>(c, b, kCount);
        CUDA_CHECK(cudaEventRecord(done[1], streams[1]));
        CUDA_CHECK(cudaStreamWaitEvent(streams[0], done[1], 0));
        scale<<<kBlocks, kThreads, 0, streams[0]>>>(a, c, 0.25f, kCount);
    }
    CUDA_CHECK(cudaStreamSynchronize(streams[0]));
    CUDA_CHECK(cudaEventElapsedTime(&ms, done[0], done[1]));
    printf("streams: %d %d %d\n", cudaEventQuery(done[1]), cudaStreamQuery(streams[1]), ms >= 0.0f);
    for (int i = 0; i < 2; i++) {
        CUDA_CHECK(cudaEventDestroy(done[i]));
        CUDA_CHECK(cudaStreamDestroy(streams[i]));
    }
    show("streams", c);
    show("streams, back", a);
}

static void run_memsets()
{
    static float *memory = input(13), *rows = input(14);
    char *bytes = reinterpret_cast<char *>(memory);

    CUDA_CHECK(cudaMemset(bytes + 13, 0, 4099));
    CUDA_CHECK(cudaMemset(bytes + 20000, 0x55, 1));
    CUDA_CHECK(cudaMemsetAsync(bytes + 30001, 0xaa, 10000, nullptr));
    CUDA_CHECK(cudaMemset2D(rows, kSide * sizeof(float), 0, 100, kSide));
    CUDA_CHECK(cudaMemset2D(rows + 64, 2 * kSide * sizeof(float), 0x41, 30, kSide / 2));
    show("memsets", memory);
    show("memsets of rows", rows);
}

static void run_rows()
{
    static float *to = filled(0x3d);
    static float *pitched = nullptr;
    static size_t pitch = 0;
    static float *bounce = pinned<float>(kCount);
    std::vector<float> host = made_up(kCount, 15);
    const size_t row = kSide * sizeof(float);

    if (pitched == nullptr) {
        CUDA_CHECK(cudaMallocPitch(&pitched, &pitch, 300, 90));
        CUDA_CHECK(cudaMemset2D(pitched, pitch, 0, 300, 90));
    }
    CUDA_CHECK(cudaMemcpy2D(pitched, pitch, host.data() + 9, row, 300, 90, cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy2D(to + 3, row, pitched, pitch, 200, 80, cudaMemcpyDeviceToDevice));
    CUDA_CHECK(
        cudaMemcpy2DAsync(bounce, row, to, row, row, kSide, cudaMemcpyDeviceToHost, nullptr));
    CUDA_CHECK(
        cudaMemcpy2DAsync(to + 64, row, bounce, row, 90, kSide, cudaMemcpyHostToDevice, nullptr));
    CUDA_CHECK(cudaDeviceSynchronize());
    show("rows", to);
    /* From one part of an allocation to another. */
    CUDA_CHECK(cudaMemcpy2D(to + kCount / 2, row, to, row, row, 40, cudaMemcpyDeviceToDevice));
    CUDA_CHECK(cudaMemcpy(to + 100, to + kCount / 4, 5000, cudaMemcpyDeviceToDevice));
    CUDA_CHECK(cudaMemset2D(to + kCount - 8 * kSide, row, 0x21, row, 8));
    show("rows, within", to);
}

static void run_tail()
{
    const int count = kCount - 3;
    static float *in = input(16, count), *out = device<float>(count);

    add_vectors<<<kBlocks / 4 + 1, kThreads>>>(out, reinterpret_cast<float4 *>(in), count);
    show("tail", out, count * sizeof(float));
}

static void run_symbols()
{
    static float *in = input(17), *out = filled(0);
    int back[kWindow];
    int first[kWindow];

    for (int i = 0; i < kWindow; i++) {
        first[i] = i * i;
    }
    CUDA_CHECK(cudaMemcpyToSymbol(order, first, sizeof(first)));
    for (int i = 0; i < 3; i++) {
        int by = 100 * i + 1;

        CUDA_CHECK(cudaMemcpyToSymbol(shift, &by, sizeof(by)));
        copy_shifted<<<kBlocks, kThreads>>>(out, in, kCount);
        turn_order<<<1, kWindow>>>();
        add_to<<<kBlocks, kThreads>>>(in, out, kCount);
    }
    CUDA_CHECK(cudaMemcpyFromSymbol(back, order, sizeof(back)));
    printf("symbol %d %d\n", back[0], back[kWindow - 1]);
    show("symbols", in);
}

static void run_halves()
{
    static float *in = input(18);
    static unsigned short *out = device<unsigned short>(kCount);

    CUDA_CHECK(cudaMemset(out, 0xee, kCount * sizeof(unsigned short)));
    store_halves<<<kBlocks, kThreads>>>(out, in, kCount);
    show("halves", out, kCount * sizeof(unsigned short));
}

// The same launches again and again: arrays of which they write all, and what is nearly that.
static void run_wholes()
{
    static float *in = input(63), *whole = filled(0x3f), *most = filled(0x40),
                 *parts = filled(0x41);
    static float *mixed = filled(0x3d), *between = filled(0x42), *last = filled(0x3e);
    const int half = kCount / 2;

    for (int i = 0; i < 3; i++) {
        scale<<<kBlocks, kThreads>>>(whole, in, 1.5f + i, kCount);
        scale<<<kBlocks, kThreads>>>(most, whole, 0.5f + i, kCount - 1);
        in_two_parts<<<kBlocks, kThreads>>>(parts, parts + half, most, half);
        in_two_parts<<<kBlocks, kThreads>>>(mixed, mixed + half - 1, parts, half);
        through_neighbours<<<kBlocks, kThreads>>>(last, between, mixed);
        scale<<<kBlocks, kThreads>>>(in, last, 0.01f, kCount);
        scale<<<kBlocks, kThreads>>>(between, between, 0.5f, kCount);
        add_to<<<kBlocks, kThreads>>>(last, between, kCount);
    }
    show("wholes", whole);
    show("wholes, but one", most);
    show("wholes in two parts", parts);
    show("wholes in two parts, but one", mixed);
    show("wholes between threads", between);
    show("wholes, last", last);
}

// A launch that the driver refuses leaves memory as it was, also if others of the kernel were
// accepted, which would have written all of it.
static void run_refused()
{
    static float *in = input(64), *out = filled(0);

    for (int i = 0; i < 3; i++) {
        scale<<<kBlocks, kThreads>>>(out, in, 2.0f + i, kCount);
        CUDA_CHECK(cudaGetLastError());
    }
    run_wholes();
    for (int i = 0; i < 2; i++) {
        scale<<<kBlocks, kThreads, 1 << 20>>>(out, in, 9.0f, kCount);
        printf("refused: %d\n", cudaGetLastError() != cudaSuccess);
    }
    show("refused", out);
}

// One pinned buffer, filled again as soon as an event says that it may be.
static void run_bounce()
{
    static float *parts[4] = {filled(0), filled(0), filled(0), filled(0)};
    static float *bounce = pinned<float>(kCount);
    cudaEvent_t copied;

    CUDA_CHECK(cudaEventCreateWithFlags(&copied, cudaEventDisableTiming));
    for (int i = 0; i < 4; i++) {
        std::vector<float> values = made_up(kCount, 20 + i);

        memcpy(bounce, values.data(), kBytes);
        CUDA_CHECK(cudaMemcpyAsync(parts[i], bounce, kBytes, cudaMemcpyHostToDevice, nullptr));
        CUDA_CHECK(cudaEventRecord(copied, nullptr));
        CUDA_CHECK(cudaEventSynchronize(copied));
    }
    add_to<<<kBlocks, kThreads>>>(parts[0], parts[1], kCount);
    CUDA_CHECK(cudaMemcpyAsync(bounce, parts[0], kBytes, cudaMemcpyDeviceToHost, nullptr));
    CUDA_CHECK(cudaMemcpyAsync(parts[2], bounce, kBytes, cudaMemcpyHostToDevice,
                               nullptr)); // what just came
    show("bounce", parts[2]);
    show("bounce, last", parts[3]);
    CUDA_CHECK(cudaEventDestroy(copied));
}

static void fill_up(void *memory)
{
    float *values = static_cast<float *>(memory);

    for (int i = 0; i < kCount; i++) {
        values[i] = values[i] * 0.5f + static_cast<float>(i % 17);
    }
}

// A function of the host writes what the next copy reads.
static void run_host_function()
{
    static float *values = input(24), *out = filled(0);
    static float *bounce = pinned<float>(kCount);
    cudaStream_t stream;

    CUDA_CHECK(cudaStreamCreate(&stream));
    CUDA_CHECK(cudaMemcpyAsync(bounce, values, kBytes, cudaMemcpyDeviceToHost, stream));
    CUDA_CHECK(cudaLaunchHostFunc(stream, fill_up, bounce));
    CUDA_CHECK(cudaMemcpyAsync(out, bounce, kBytes, cudaMemcpyHostToDevice, stream));
    add_to<<<kBlocks, kThreads, 0, stream>>>(values, out, kCount);
    CUDA_CHECK(cudaLaunchHostFunc(stream, fill_up, bounce));
    CUDA_CHECK(cudaMemcpyAsync(out, bounce, kBytes / 2, cudaMemcpyHostToDevice, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
    CUDA_CHECK(cudaStreamDestroy(stream));
    show("host function", out);
    show("host function, values", values);
}

static void run_lengths()
{
    static float *batch = device<float>(kCount), *sum = filled(0);

    for (int i = 0; i < 6; i++) {
        int count = 1000 + 2477 * i % 9000;

        CUDA_CHECK(cudaMemcpy(batch + i, made_up(count, 30 + i).data(), count * sizeof(float),
                              cudaMemcpyHostToDevice));
        add_to<<<kBlocks, kThreads>>>(sum, batch, count);
    }
    show("lengths", sum);
    show("lengths, batch", batch);
}

// The same parameters, but other grids and blocks: how far a launch reaches depends on them.
static void run_shapes()
{
    static float *in = input(44), *out = filled(0);

    for (int blocks : {kBlocks / 4, kBlocks, kBlocks / 2}) {
        scale<<<blocks, kThreads>>>(out, in, 3.0f, kCount);
        add_to<<<blocks, kThreads / 2>>>(in, out, kCount);
    }
    add_to<<<kBlocks, kThreads>>>(in, out, kCount);
    show("shapes", out);
    show("shapes, in", in);
}

static void run_shared()
{
    static float *in = input(40), *out = filled(0);

    reverse_blocks<<<kBlocks, kThreads, kThreads * sizeof(float)>>>(out, in, kCount);
    reverse_blocks<<<kBlocks * 2, kThreads / 2, kThreads * 4>>>(in, out, kCount - 60);
    show("shared", in);
}

static void run_templates()
{
    static float *out = input(41);
    static int *whole = device<int>(kCount);

    every<3, float><<<kBlocks, kThreads>>>(out, 1.5f, kCount);
    every<5, int><<<kBlocks, kThreads>>>(whole, 9, kCount);
    every<1, float><<<kBlocks, kThreads>>>(out + 1, 0.5f, kCount - 1);
    show("templates", out);
    show("templates, whole", whole);
}

// Memory that comes and goes in the order of a stream.
static void run_pool()
{
    static float *kept = filled(0);
    cudaStream_t stream;

    CUDA_CHECK(cudaStreamCreate(&stream));
    for (int i = 0; i < 4; i++) {
        float *temporary;

        CUDA_CHECK(cudaMallocAsync(&temporary, kBytes + 1000 * i, stream));
        CUDA_CHECK(cudaMemsetAsync(temporary, 0x40 + i, kBytes, stream));
        add_to<<<kBlocks, kThreads, 0, stream>>>(kept, temporary, kCount);
        CUDA_CHECK(cudaFreeAsync(temporary, stream));
    }
    CUDA_CHECK(cudaStreamSynchronize(stream));
    CUDA_CHECK(cudaStreamDestroy(stream));
    show("pool", kept);
}

// Managed and mapped memory as operands beside the program's own.
static void run_managed()
{
    static float *out = filled(0);
    static float *managed = nullptr;
    static std::vector<float> ordinary = made_up(kCount, 43);
    static float *mapped = pinned<float>(kCount);

    if (managed == nullptr) {
        CUDA_CHECK(cudaMallocManaged(&managed, kBytes));
        CUDA_CHECK(cudaHostRegister(ordinary.data(), kBytes, 0));
        memcpy(managed, ordinary.data(), kBytes);
        memset(mapped, 0, kBytes);
    }
    add_to<<<kBlocks, kThreads>>>(out, managed, kCount);
    add_to<<<kBlocks, kThreads>>>(managed, out, kCount);
    scale<<<kBlocks, kThreads>>>(mapped, out, 2.0f, kCount);
    CUDA_CHECK(cudaMemcpyAsync(out, ordinary.data(), kBytes / 4, cudaMemcpyHostToDevice, nullptr));
    CUDA_CHECK(cudaDeviceSynchronize());
    managed[7] += 1.0f;
    printf("managed %g, mapped %g\n", managed[100], mapped[kCount - 1]);
    show("managed", out);
}

// Kernels whose pointers lie in memory: nothing can be known about them.
static void run_table()
{
    static float *parts[3] = {input(50), input(51), input(52)};
    static float **table = device<float *>(3);

    CUDA_CHECK(cudaMemcpy(table, parts, sizeof(parts), cudaMemcpyHostToDevice));
    through_table<<<kBlocks, kThreads>>>(table, 3, kCount);
    scale<<<kBlocks, kThreads>>>(parts[0], parts[2], 0.5f, kCount);
    show("table", parts[0]);
    show("table, other", parts[1]);
}

// A program that begins anew. Its memory from before is gone.
static void run_reset()
{
    float *values = input(60);

    CUDA_CHECK(cudaMemset(values, 1, kBytes / 2));
    CUDA_CHECK(cudaDeviceReset());
    values = input(61);
    add_to<<<kBlocks, kThreads>>>(values, values, kCount);
    show("reset", values);
    results.clear();
}

// Variables have their first values after that: all zero.
static void run_reset_variables()
{
    const int by = 5;
    float first;

    CUDA_CHECK(cudaMemcpyToSymbol(shift, &by, sizeof(by)));
    CUDA_CHECK(cudaDeviceReset());
    float *in = input(62), *out = filled(0);
    copy_shifted<<<kBlocks, kThreads>>>(out, in, kCount);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpy(&first, out, sizeof(first), cudaMemcpyDeviceToHost));
    printf("reset: %d\n", first == made_up(1, 62)[0]);
}

// Threads that share nothing but the device. Each has a stream beside its default stream, and reads
// its results while the others launch.
struct Worker {
    float *in, *out, *sum;
    std::vector<float> host;
    int calls;
};

static void count_call(void *calls)
{
    ++*static_cast<int *>(calls);
}

static void work(Worker *worker)
{
    const size_t row = kSide * sizeof(float);
    float *const bounce = pinned<float>(kCount);
    cudaStream_t stream;
    cudaEvent_t done[2];

    CUDA_CHECK(cudaStreamCreate(&stream));
    CUDA_CHECK(cudaEventCreate(&done[0]));
    CUDA_CHECK(cudaEventCreate(&done[1]));
    for (int step = 0; step < 4; step++) {
        CUDA_CHECK(cudaMemcpy(worker->in, worker->host.data(), kBytes, cudaMemcpyHostToDevice));
        CUDA_CHECK(cudaEventRecord(done[0], nullptr));
        CUDA_CHECK(cudaStreamWaitEvent(stream, done[0], 0));
        scale<<<kBlocks, kThreads, 0, stream>>>(worker->out, worker->in, 0.5f, kCount);
        CUDA_CHECK(cudaMemcpyAsync(bounce, worker->out, kBytes, cudaMemcpyDeviceToHost, stream));
        CUDA_CHECK(cudaLaunchHostFunc(stream, count_call, &worker->calls));
        CUDA_CHECK(cudaEventRecord(done[1], stream));
        CUDA_CHECK(cudaStreamWaitEvent(nullptr, done[1], 0));
        add_to<<<kBlocks, kThreads>>>(worker->sum, worker->out, kCount);
        CUDA_CHECK(cudaMemcpy2D(worker->host.data(), row, worker->sum, row, row, kSide / 2,
                                cudaMemcpyDeviceToHost));
        CUDA_CHECK(cudaMemcpy(&worker->host[kCount / 2], worker->sum + kCount / 2, kBytes / 2,
                              cudaMemcpyDeviceToHost));
        worker->host[step] += bounce[step] + static_cast<float>(worker->calls);
    }
    CUDA_CHECK(cudaStreamSynchronize(stream));
    CUDA_CHECK(cudaEventDestroy(done[0]));
    CUDA_CHECK(cudaEventDestroy(done[1]));
    CUDA_CHECK(cudaStreamDestroy(stream));
    CUDA_CHECK(cudaFreeHost(bounce));
}

static void run_threads()
{
    static Worker workers[4];
    std::vector<std::thread> threads;

    for (int i = 0; i < 4; i++) {
        workers[i] = {device<float>(kCount), filled(i), filled(0), made_up(kCount, 70 + i), 0};
    }
    for (Worker &worker : workers) {
        threads.emplace_back(work, &worker);
    }
    for (int i = 0; i < 4; i++) {
        threads[i].join();
        printf("calls %d\n", workers[i].calls);
        show("threads", workers[i].sum);
        show("threads, other", workers[i].out);
    }
}

static const Case cases[] = {
    {"triangle", run_triangle}, {"optional", run_optional},
    {"in_place", run_in_place}, {"structure", run_structure},
    {"indices", run_indices},   {"atomics", run_atomics},
    {"ticket", run_ticket},     {"streams", run_streams},
    {"memsets", run_memsets},   {"rows", run_rows},
    {"tail", run_tail},         {"symbols", run_symbols},
    {"halves", run_halves},     {"refused", run_refused},
    {"bounce", run_bounce},     {"host_function", run_host_function},
    {"lengths", run_lengths},   {"shapes", run_shapes},
    {"shared", run_shared},     {"templates", run_templates},
    {"pool", run_pool},         {"managed", run_managed},
    {"table", run_table, true}, {"threads", run_threads, true},
    {"reset", run_reset, true}, {"reset_variables", run_reset_variables, true},
};

int main(int argc, char **argv)
{
    return run_cases(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}

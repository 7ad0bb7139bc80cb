// Traps whose addresses depend on what the program has stored before, in variables and indices:
// what one launch reads says nothing of the next.
//
//     indices
//
// Each case runs twice and keeps its memory; prints checksums of what it has computed, and all of
// them again at the end.
#include "tests/shim/cuda/traps_kernels.cuh"
#include "tests/shim/cuda/traps_memory.cuh"

#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <vector>

const int kWindows = 8;
const int kWindowCount = kCount / kWindows;

__constant__ int window_of[kWindows];
__device__ int first_window;
__device__ int window_index[kWindows];

// Which window is read, and which is written, is in variables.
__global__ void copy_window(float *out, const float *in, int which)
{
    int i = global_index();

    if (i < kWindowCount) {
        out[window_of[which] * kWindowCount + i] = in[first_window * kWindowCount + i] + 1.0f;
    }
}

// Stores through a pointer, which may lead to a variable.
__global__ void store_number(int *to, int number)
{
    *to = number;
}

// Reads a window that its own store decides, if `to` leads there.
__global__ void store_and_read(float *out, const float *in, int *to, int number)
{
    int i = global_index();

    if (i < kWindowCount) {
        out[i] = in[window_index[(i + number) % kWindows] * kWindowCount + i];
    }
    if (i == 0) {
        *to = window_index[0];
    }
}

// Indices that lead to one window of the table.
__global__ void make_indices(int *indices, int window, int count)
{
    int i = global_index();

    if (i < count) {
        indices[i] = window * kWindowCount + (i * 37) % kWindowCount;
    }
}

// Adds where the indices say, and changes them: they may be the same memory.
__global__ void scatter_and_step(float *out, const int *indices, int *next, int count)
{
    int i = global_index();

    if (i < count) {
        int place = indices[i];

        out[place] += 1.0f;
        next[i] = (place + kWindowCount) % kCount;
    }
}

// Rows of different lengths.
__global__ void sum_segments(float *out, const float *in, const int *starts, int count)
{
    int i = global_index();

    if (i < count) {
        float sum = 0.0f;

        for (int k = starts[i]; k < starts[i + 1]; k++) {
            sum += in[k];
        }
        out[i] = sum;
    }
}

static void copy_windows(float *out, const float *in)
{
    for (int which = 0; which < 2 * kWindows; which += 4) {
        copy_window<<<kWindowCount / kThreads, kThreads>>>(out, in, which % kWindows);
    }
}

static void run_windows()
{
    static float *in = input(70), *out = filled(0);
    int windows[kWindows];
    int *variable;

    CUDA_CHECK(cudaGetSymbolAddress(reinterpret_cast<void **>(&variable), first_window));
    for (int round = 0; round < 3; round++) {
        int first = 2 * round + 1;

        for (int i = 0; i < kWindows; i++) {
            windows[i] = (i * 3 + round) % kWindows;
        }
        CUDA_CHECK(cudaMemcpyToSymbol(window_of, windows, sizeof(windows)));
        copy_windows(out, in);
        CUDA_CHECK(cudaMemcpyToSymbol(first_window, &first, sizeof(first)));
        copy_windows(out, in);
        store_number<<<1, 1>>>(variable, 7 - round);
        copy_windows(out, in);
        CUDA_CHECK(cudaMemset(variable, 0, sizeof(int)));
        copy_windows(out, in);
    }
    show("windows", out);
}

static void run_own_variable()
{
    static float *in = input(71), *out = filled(0);
    int windows[kWindows];
    int *variable;

    CUDA_CHECK(cudaGetSymbolAddress(reinterpret_cast<void **>(&variable), window_index));
    for (int i = 0; i < 4; i++) {
        for (int k = 0; k < kWindows; k++) {
            windows[k] = (k + i) % 2 + 2 * i;
        }
        CUDA_CHECK(cudaMemcpyToSymbol(window_index, windows, sizeof(windows)));
        store_and_read<<<kWindowCount / kThreads, kThreads>>>(out, in, variable + 5, i);
    }
    show("own variable", out);
}

static void run_new_indices()
{
    static float *table = input(72), *out = filled(0), *spread = filled(0);
    static int *indices = device<int>(kCount);

    for (int window = 0; window < kWindows; window += 2) {
        make_indices<<<kBlocks, kThreads>>>(indices, window, kCount);
        gather<<<kBlocks, kThreads>>>(out, table, indices, kCount);
        scatter<<<kWindowCount / kThreads, kThreads>>>(spread, out, indices, kWindowCount);
    }
    show("new indices", out);
    show("new indices, scattered", spread);
}

static void run_own_indices()
{
    static float *out = filled(0);
    static int *indices = device<int>(kCount), *other = device<int>(kCount);

    make_indices<<<kBlocks, kThreads>>>(indices, 3, kCount);
    for (int i = 0; i < 3; i++) {
        scatter_and_step<<<1, kThreads>>>(out, indices, indices, kThreads);
        scatter_and_step<<<1, kThreads>>>(out, indices, other, kThreads);
        scatter_and_step<<<1, kThreads>>>(out, other, indices + kThreads / 2, kThreads);
    }
    show("own indices", out);
    show("own indices, changed", indices);
}

static void run_segments()
{
    static float *in = input(73), *sums = device<float>(kCount);
    static int *starts = device<int>(kCount + 1);
    std::vector<int> borders(kThreads + 1);

    for (int round = 0; round < 3; round++) {
        int at = round * 2 * kWindowCount;

        for (int i = 0; i <= kThreads; i++) {
            borders[i] = at;
            at += i % 7 + round;
        }
        CUDA_CHECK(cudaMemcpy(starts, borders.data(), borders.size() * sizeof(int),
                              cudaMemcpyHostToDevice));
        sum_segments<<<1, kThreads>>>(sums + round * kThreads, in, starts, kThreads);
    }
    show("segments", sums, 3 * kThreads * sizeof(float));
}

// A ticket decides which block adds up; it decides no address.
static void run_ticket()
{
    static float *in = input(74), *partial = device<float>(kCount), *sums = device<float>(4);

    for (int i = 0; i < 4; i++) {
        sum_by_last_block<<<kBlocks, kThreads>>>(sums + i, partial + 500 * i, in, kCount - 900 * i);
    }
    show("ticket", sums, 4 * sizeof(float));
}

int main()
{
    for (int round = 0; round < 2; round++) {
        run_ticket();
        run_windows();
        run_own_variable();
        run_new_indices();
        run_own_indices();
        run_segments();
    }
    for (const Result &result : results) {
        print_result(result);
    }
    return 0;
}

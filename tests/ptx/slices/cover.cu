/*
 * Kernels whose stores are easily mistaken for a whole write, and some that are one. cover_test.c
 * says what each of them covers. cover.ptx is what nvcc makes of this file, for machines without
 * nvcc; tests/ptx/programs/ptx_kept.sh compares it.
 */

/* All columns up to the row's number, and none after it, as a softmax of attention does. */
extern "C" __global__ void triangle(float *to, int side)
{
    for (int column = threadIdx.x; column <= (int)blockIdx.x; column += blockDim.x) {
        to[blockIdx.x * side + column] = 1.0f;
    }
}

/* The same, and zeros for the rest. */
extern "C" __global__ void full_triangle(float *to, int side)
{
    for (int column = threadIdx.x; column < side; column += blockDim.x) {
        to[blockIdx.x * side + column] = column <= (int)blockIdx.x ? 1.0f : 0.0f;
    }
}

/* More threads than elements. */
extern "C" __global__ void tail(float *to, const float *from, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < count) {
        to[i] = 2.0f * from[i];
    }
}

/* Every thread takes several, a grid apart; `step` elements lie between them. */
extern "C" __global__ void strided(float *to, int count, int step)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        to[i * step] = 1.0f;
    }
}

/* A transposition by tiles in shared memory. */
extern "C" __global__ void tiles(float *to, const float *from, int rows, int columns, int pitch)
{
    __shared__ float tile[8][9];
    int row = blockIdx.y * 8 + threadIdx.y;
    int column = blockIdx.x * 8 + threadIdx.x;

    if (row < rows && column < columns) {
        tile[threadIdx.y][threadIdx.x] = from[row * columns + column];
    }
    __syncthreads();
    row = blockIdx.x * 8 + threadIdx.y;
    column = blockIdx.y * 8 + threadIdx.x;
    if (row < columns && column < rows) {
        to[row * pitch + column] = tile[threadIdx.x][threadIdx.y];
    }
}

/* Two halves at once, and one at the end of an odd count. */
extern "C" __global__ void halves(unsigned short *to, int count)
{
    int i = 2 * (blockIdx.x * blockDim.x + threadIdx.x);

    if (i + 1 < count) {
        *(ushort2 *)(to + i) = make_ushort2(1, 2);
    } else if (i < count) {
        to[i] = 3;
    }
}

/* Four at once, one by one at the end. */
extern "C" __global__ void vectors(float *to, int count)
{
    int i = 4 * (blockIdx.x * blockDim.x + threadIdx.x);

    if (i + 4 <= count) {
        *(float4 *)(to + i) = make_float4(1.0f, 2.0f, 3.0f, 4.0f);
    } else {
        for (; i < count; i++) {
            to[i] = 5.0f;
        }
    }
}

extern "C" __global__ void in_place(float *values, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < count) {
        values[i] = values[i] * values[i];
    }
}

/* All is stored, and then read by another thread. */
extern "C" __global__ void neighbours(float *to, float *between)
{
    between[threadIdx.x] = threadIdx.x;
    __syncthreads();
    to[threadIdx.x] = between[threadIdx.x ^ 1];
}

/* What is not greater keeps its value. */
extern "C" __global__ void greater(float *to, const float *from)
{
    if (from[threadIdx.x] > 1.0f) {
        to[threadIdx.x] = from[threadIdx.x];
    }
}

/* Some threads end early, as data says. */
extern "C" __global__ void early(float *first, float *second, const int *ends)
{
    first[threadIdx.x] = 1.0f;
    if (ends[threadIdx.x] != 0) {
        return;
    }
    second[threadIdx.x] = 2.0f;
}

/* A loop that data ends, before what is stored for certain. */
extern "C" __global__ void after_loop(float *to, const int *next)
{
    int at = threadIdx.x;
    int count = 0;

    while (next[at] != at) {
        at = next[at];
        count++;
    }
    to[threadIdx.x] = count;
}

/* Goes to one of two. */
extern "C" __global__ void either(float *one, float *other, int is_one)
{
    float *to = is_one != 0 ? one : other;

    to[threadIdx.x] = 1.0f;
}

/* Counts in one, stores to all of the other. */
extern "C" __global__ void counted(unsigned *counts, float *to)
{
    atomicAdd(&counts[threadIdx.x], 1u);
    to[threadIdx.x] = 1.0f;
}

/* All is set first, and then some of it by an index. */
extern "C" __global__ void one_hot(float *to, const int *index, int classes)
{
    for (int i = 0; i < classes; i++) {
        to[threadIdx.x * classes + i] = 0.0f;
    }
    to[threadIdx.x * classes + index[threadIdx.x]] = 1.0f;
}

/* Bytes and words, in turn. */
extern "C" __global__ void mixed(unsigned char *to)
{
    unsigned char *own = to + 8 * threadIdx.x;

    *(unsigned *)own = 1;
    own[4] = 2;
    own[5] = 3;
    *(unsigned short *)(own + 6) = 4;
}

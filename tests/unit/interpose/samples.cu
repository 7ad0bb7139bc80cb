/* Kernels whose analysis is known, one per way of using memory. samples.ptx is what nvcc makes of
 * this file: nvcc -arch=sm_80 -ptx -o samples.ptx samples.cu (CUDA 13.0), for machines without
 * nvcc. The expected analysis is in samples_test.c. */

struct layer {
    const float *weights;
    long count;
    float *gradients;
    float *optional; /* NULL: none */
};

__device__ int offsets[16];
__device__ float *hidden;
__shared__ int shared_index;

/* In place, by value, optional. */
extern "C" __global__ void step(struct layer layer, float rate)
{
    long i = blockIdx.x * (long)blockDim.x + threadIdx.x;

    if (i < layer.count) {
        layer.gradients[i] -= rate * layer.weights[i];
        if (layer.optional != 0) {
            layer.optional[i] = layer.gradients[i];
        }
    }
}

/* The lower triangle only: written, in part. */
extern "C" __global__ void triangle(float *to, int side)
{
    for (int column = threadIdx.x; column <= (int)blockIdx.x; column += blockDim.x) {
        to[blockIdx.x * side + column] = 1.0f;
    }
}

extern "C" __global__ void gather(float *to, const float *from, const int *index)
{
    to[threadIdx.x] = from[index[threadIdx.x]];
}

extern "C" __global__ void scatter(float *to, const float *from, const int *index, int count)
{
    if (threadIdx.x < count) {
        atomicAdd(&to[index[threadIdx.x]], from[threadIdx.x]);
    }
}

/* Whether a store happens depends on data, where it goes does not. */
extern "C" __global__ void clip(float *values, short *flags)
{
    if (values[threadIdx.x] > 1.0f) {
        flags[threadIdx.x] = 1;
    }
}

/* A binary search: the address depends on data through the path alone. */
extern "C" __global__ void search(const int *sorted, int count, const int *wanted, int *found)
{
    int low = 0;
    int high = count;

    while (low < high) {
        int middle = (low + high) / 2;

        if (sorted[middle] < wanted[threadIdx.x]) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    found[threadIdx.x] = sorted[low];
}

/* The last block adds up: its ticket decides a branch and widens no array. */
extern "C" __global__ void ticket(float *parts, unsigned *done, float *sum)
{
    parts[blockIdx.x] = 1.0f;
    __threadfence();
    if (atomicAdd(done, 1) == gridDim.x - 1) {
        float all = 0.0f;

#pragma unroll 1 /* nvcc would compare the ticket again, to decide how to unroll */
        for (unsigned i = 0; i < gridDim.x; i++) {
            all += parts[i];
        }
        *sum = all;
    }
}

extern "C" __global__ void table(float *const *pointers, int count)
{
    pointers[blockIdx.x][threadIdx.x] = (float)count;
}

extern "C" __global__ void escape(float **slots, float *array)
{
    array[threadIdx.x] = 0.0f;
    slots[threadIdx.x] = array + threadIdx.x;
}

extern "C" __global__ void from_variable(const float *from)
{
    hidden[threadIdx.x] = from[threadIdx.x];
}

/* A variable of the module is known before the launch. */
extern "C" __global__ void by_variable(float *to, const float *from)
{
    to[threadIdx.x] = from[offsets[threadIdx.x]];
}

extern "C" __global__ void choose(float *one, float *other, int which, const float *from)
{
    float *to = which > 3 ? one : other;

    to[threadIdx.x] = from[threadIdx.x];
}

struct list {
    float *pointers[6];
};

extern "C" __global__ void listed(const struct list list, int which)
{
    list.pointers[which][threadIdx.x] = 2.0f;
}

extern "C" __global__ void by_shared(float *to, const int *index)
{
    if (threadIdx.x == 0) {
        shared_index = index[blockIdx.x];
    }
    __syncthreads();
    to[shared_index + threadIdx.x] = 1.0f;
}

/* A lock: waits for another thread. */
extern "C" __global__ void locked(int *lock, float *value)
{
    while (atomicCAS(lock, 0, 1) != 0) {
    }
    *value += 1.0f;
    atomicExch(lock, 0);
}

/* A compare-and-swap that is repeated with what it found: does not wait. */
extern "C" __global__ void largest(int *most, const int *values)
{
    int seen = *most;
    int value = values[threadIdx.x];

    while (seen < value) {
        int found = atomicCAS(most, seen, value);

        if (found == seen) {
            break;
        }
        seen = found;
    }
}

/* Vectors, and bytes. */
extern "C" __global__ void widen(float4 *to, const char4 *from)
{
    char4 bytes = from[threadIdx.x];

    to[threadIdx.x] = make_float4(bytes.x, bytes.y, bytes.z, bytes.w);
}

/* Inline assembly with a scope of its own. */
extern "C" __global__ void assembly(float *to, const float *from)
{
    float value;

    asm volatile("{\n\t.reg .pred p;\n\tsetp.eq.u32 p, %2, 0;\n\tmov.f32 %0, 0f00000000;\n\t"
                 "@p bra DONE;\n\tld.global.f32 %0, [%1];\n\tDONE:\n\t}"
                 : "=f"(value)
                 : "l"(from + threadIdx.x), "r"(threadIdx.x));
    to[threadIdx.x] = value;
}

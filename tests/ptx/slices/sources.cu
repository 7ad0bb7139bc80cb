/* Kernels whose addresses depend on variables of the module and on data, one per way of reading
 * them. sources.ptx is what nvcc makes of this file: nvcc -arch=sm_80 -ptx -o sources.ptx
 * sources.cu (CUDA 13.0), for machines without nvcc. What slices find out is in sources_test.c. */

__constant__ int table[64];
__constant__ struct {
    long count;
    int stride, offset;
} shape;
__device__ int limit;
__managed__ int shared_limit;
__device__ int4 corners[8];
__shared__ int is_chosen;

extern "C" __global__ void constant_table(int *to, const int *from, const int *index, int count)
{
    to[table[threadIdx.x % 64]] = from[threadIdx.x];
}

extern "C" __global__ void constant_shape(int *to, const int *from, const int *index, int count)
{
    long i = blockIdx.x * (long)blockDim.x + threadIdx.x;

    if (i < shape.count) {
        to[i * shape.stride + shape.offset] = from[i];
    }
}

extern "C" __global__ void device_scalar(int *to, const int *from, const int *index, int count)
{
    int end = limit;

    for (int i = threadIdx.x; i < end; i += blockDim.x) {
        to[i] = from[i];
    }
}

extern "C" __global__ void device_vector(int *to, const int *from, const int *index, int count)
{
    int4 corner = corners[threadIdx.x % 8];

    if (corner.x < corner.w) {
        to[corner.y] = from[corner.z];
    }
}

/* Beyond its end: what lies there is not known. */
extern "C" __global__ void beyond_table(int *to, const int *from, const int *index, int count)
{
    to[table[count]] = from[threadIdx.x];
}

/* The variable that it reads changes while it runs. */
extern "C" __global__ void changes_variable(int *to, const int *from, const int *index, int count)
{
    to[limit] = from[threadIdx.x];
    limit = count;
}

/* The host may change it at any time. */
extern "C" __global__ void managed_variable(int *to, const int *from, const int *index, int count)
{
    to[shared_limit] = from[threadIdx.x];
}

extern "C" __global__ void gathered(int *to, const int *from, const int *index, int count)
{
    to[threadIdx.x] = from[index[threadIdx.x]];
}

extern "C" __global__ void scattered(int *to, const int *from, const int *index, int count)
{
    int place = index[threadIdx.x];

    if (place >= 4 && place < count) {
        to[place] = from[threadIdx.x];
    }
}

extern "C" __global__ void gathered_vector(int *to, const int *from, const int4 *index, int count)
{
    int4 places = index[threadIdx.x];

    to[threadIdx.x] = from[places.x] + from[places.w];
}

/* An embedding: rows. */
extern "C" __global__ void rows(int *to, const int *from, const int *index, int count)
{
    int row = index[blockIdx.x];

    for (int i = threadIdx.x; i < count; i += blockDim.x) {
        to[blockIdx.x * count + i] = from[row * count + i];
    }
}

/* Segments: data decides how often. */
extern "C" __global__ void segments(int *to, const int *from, const int *index, int count)
{
    int sum = 0;
    int end = index[threadIdx.x] + index[threadIdx.x + 1] % 8;

    for (int i = index[threadIdx.x]; i < end; i++) {
        sum += from[i];
    }
    to[threadIdx.x] = sum;
}

/* Two kinds of data: what decides, and where. */
extern "C" __global__ void by_class(int *to, const int *from, const int *index, int count)
{
    if (from[threadIdx.x] > count) {
        to[index[threadIdx.x]] = 1;
    }
}

/* By a variable and by data. */
extern "C" __global__ void by_both(int *to, const int *from, const int *index, int count)
{
    to[threadIdx.x] = from[table[index[threadIdx.x] % 64]];
}

extern "C" __global__ void own_index(int *to, const int *from, int *index, int count)
{
    to[index[threadIdx.x]] = from[threadIdx.x];
    index[threadIdx.x] = count;
}

/* An index of an index. */
extern "C" __global__ void staged(int *to, const int *from, const int *index, int count)
{
    to[threadIdx.x] = from[index[index[threadIdx.x]]];
}

/* What decides whether the index is read is not known. */
extern "C" __global__ void unknown_way(int *to, const int *from, const int *index, int count)
{
    if (threadIdx.x == 0) {
        is_chosen = from[0];
    }
    __syncthreads();
    if (is_chosen > 0) {
        to[index[threadIdx.x]] = 1;
    }
}

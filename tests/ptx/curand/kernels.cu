/*
 * The kernels of libcurand of these tests. They are compiled to PTX, which is kept beside this
 * file. Each number is a hash of the seed and its place in the sequence, so results are the same
 * everywhere. The state is in memory of the library's own, as that of NVIDIA's library is.
 */

struct state {
    unsigned long long seed;
    unsigned long long next; /* place in the sequence */
};

static __device__ unsigned hash(const state *at, unsigned long long place)
{
    unsigned long long bits = (at->seed + place + 1) * 0x9e3779b97f4a7c15ull;

    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9ull;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebull;
    return static_cast<unsigned>((bits ^ (bits >> 31)) >> 32);
}

/* Above 0, at most 1, as cuRAND's. */
static __device__ float uniform(const state *at, unsigned long long place)
{
    return static_cast<float>((hash(at, place) >> 8) + 1) * (1.0f / 16777216.0f);
}

/* The sum of twelve uniform numbers has a variance of 1. */
static __device__ float normal(const state *at, unsigned long long place)
{
    float sum = -6.0f;

    for (int i = 0; i < 12; i++) {
        sum = __fadd_rn(sum, uniform(at, 12 * place + i));
    }
    return sum;
}

/* What to fill with: bits, uniform numbers, normal ones. */
enum { FILL_BITS = 0, FILL_UNIFORM = 1, FILL_NORMAL = 2 };

extern "C" __global__ void capuchin_random(int what, const state *at, void *numbers,
                                           unsigned long long count, float mean, float deviation)
{
    unsigned long long i = static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    unsigned long long place = at->next + i;

    if (i >= count) {
        return;
    }
    if (what == FILL_BITS) {
        static_cast<unsigned *>(numbers)[i] = hash(at, place);
    } else if (what == FILL_UNIFORM) {
        static_cast<float *>(numbers)[i] = uniform(at, place);
    } else {
        static_cast<float *>(numbers)[i] = __fadd_rn(mean, __fmul_rn(deviation, normal(at, place)));
    }
}

/* One thread. */
extern "C" __global__ void capuchin_random_skip(state *at, unsigned long long count)
{
    at->next += count;
}

extern "C" __global__ void capuchin_random_begin(state *at, unsigned long long seed)
{
    at->seed = seed;
    at->next = 0;
}

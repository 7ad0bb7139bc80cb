/* Buffers on host and device. */
#include "tests/gpu/pairs.h"

#include "kernels/random.h"

#include <check.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEED 20241121u

#define CUDA_OK(call_)                                                                      \
    do {                                                                                    \
        cudaError_t error_ = (call_);                                                       \
        ck_assert_msg(error_ == cudaSuccess, "%s: %s", #call_, cudaGetErrorString(error_)); \
    } while (0)

static unsigned char *allocate(size_t bytes)
{
    unsigned char *memory = (unsigned char *)malloc(bytes);

    ck_assert_ptr_nonnull(memory);
    return memory;
}

static struct pair *make(struct pairs *pairs, size_t bytes, enum pair_kind kind)
{
    struct pair *pair = &pairs->pair[pairs->count++];

    ck_assert_uint_le(pairs->count, PAIRS_LIMIT);
    pair->kind = kind;
    pair->bytes = bytes;
    pair->host = allocate(bytes);
    pair->before = allocate(bytes);
    pair->first = allocate(bytes);
    pair->second = allocate(bytes);
    memset(pair->host, 0xff, bytes);
    CUDA_OK(cudaMalloc(&pair->device_start, bytes + pairs->shift));
    pair->device = (unsigned char *)pair->device_start + pairs->shift;
    return pair;
}

static uint32_t draw(struct pairs *pairs)
{
    return random_draw(SEED, 99, pairs->drawn++).word[0];
}

float *pairs_floats(struct pairs *pairs, size_t count, float low, float high)
{
    float *values = (float *)make(pairs, count * sizeof(float), PAIR_FLOATS)->host;

    for (size_t i = 0; i < count; i++) {
        values[i] = low + (high - low) * random_unit(draw(pairs));
    }
    return values;
}

float *pairs_output(struct pairs *pairs, size_t count)
{
    return (float *)make(pairs, count * sizeof(float), PAIR_FLOATS)->host;
}

float *pairs_zeros(struct pairs *pairs, size_t count)
{
    struct pair *pair = make(pairs, count * sizeof(float), PAIR_FLOATS);

    memset(pair->host, 0, pair->bytes);
    return (float *)pair->host;
}

int32_t *pairs_numbers(struct pairs *pairs, size_t count, uint32_t limit)
{
    int32_t *numbers = (int32_t *)make(pairs, count * sizeof(int32_t), PAIR_BYTES)->host;

    for (size_t i = 0; i < count; i++) {
        numbers[i] = (int32_t)(draw(pairs) % limit);
    }
    return numbers;
}

uint8_t *pairs_bytes(struct pairs *pairs, size_t count)
{
    return make(pairs, count, PAIR_BYTES)->host;
}

float *pairs_scratch(struct pairs *pairs, size_t bytes)
{
    return (float *)make(pairs, bytes, PAIR_SCRATCH)->host;
}

/* The arguments for the device: a word that is an address of a buffer is replaced. */
static void translate(const struct pairs *pairs, unsigned char *arguments, size_t bytes)
{
    for (size_t at = 0; at + sizeof(uintptr_t) <= bytes; at += sizeof(uintptr_t)) {
        uintptr_t word;

        memcpy(&word, arguments + at, sizeof(word));
        for (size_t i = 0; i < pairs->count; i++) {
            uintptr_t start = (uintptr_t)pairs->pair[i].host;

            if (word >= start && word < start + pairs->pair[i].bytes) {
                word = (uintptr_t)pairs->pair[i].device + (word - start);
                memcpy(arguments + at, &word, sizeof(word));
                break;
            }
        }
    }
}

/* Runs on the device from the contents before; results go to `first` or `second`. */
static void run_on_device(struct pairs *pairs, const char *name, capu_run_function cuda,
                          const void *arguments, bool is_first)
{
    for (size_t i = 0; i < pairs->count; i++) {
        struct pair *pair = &pairs->pair[i];

        CUDA_OK(cudaMemcpy(pair->device, pair->before, pair->bytes, cudaMemcpyHostToDevice));
    }
    ck_assert_msg(cuda(NULL, arguments) == CAPU_OK, "%s: the launch failed", name);
    CUDA_OK(cudaDeviceSynchronize());
    for (size_t i = 0; i < pairs->count; i++) {
        struct pair *pair = &pairs->pair[i];

        CUDA_OK(cudaMemcpy(is_first ? pair->first : pair->second, pair->device, pair->bytes,
                           cudaMemcpyDeviceToHost));
    }
}

static void compare_floats(const char *name, size_t index, const struct pair *pair,
                           double tolerance)
{
    const float *expected = (const float *)pair->host;
    const float *got = (const float *)pair->first;

    for (size_t i = 0; i < pair->bytes / sizeof(float); i++) {
        double limit = tolerance * (1.0 + fabs((double)expected[i]));
        bool is_near = isnan(expected[i]) ? isnan(got[i])
                                          : fabs((double)got[i] - (double)expected[i]) <= limit;

        if (!is_near) {
            ck_abort_msg("%s: buffer %zu, item %zu is %.9g, not %.9g", name, index, i,
                         (double)got[i], (double)expected[i]);
        }
    }
}

static void keep_before(struct pairs *pairs)
{
    for (size_t i = 0; i < pairs->count; i++) {
        memcpy(pairs->pair[i].before, pairs->pair[i].host, pairs->pair[i].bytes);
    }
}

void pairs_run_cuda(struct pairs *pairs, capu_run_function cuda, const void *arguments,
                    size_t argument_bytes)
{
    unsigned char *translated = allocate(argument_bytes);

    memcpy(translated, arguments, argument_bytes);
    translate(pairs, translated, argument_bytes);
    keep_before(pairs);
    run_on_device(pairs, "alone", cuda, translated, true);
    for (size_t i = 0; i < pairs->count; i++) {
        memcpy(pairs->pair[i].host, pairs->pair[i].first, pairs->pair[i].bytes);
    }
    free(translated);
}

void pairs_run(struct pairs *pairs, const char *name, capu_run_function host,
               capu_run_function cuda, const void *arguments, size_t argument_bytes,
               double tolerance)
{
    unsigned char *translated = allocate(argument_bytes);

    memcpy(translated, arguments, argument_bytes);
    translate(pairs, translated, argument_bytes);
    keep_before(pairs);
    run_on_device(pairs, name, cuda, translated, true);
    run_on_device(pairs, name, cuda, translated, false);
    ck_assert_msg(host(NULL, arguments) == CAPU_OK, "%s: the host failed", name);
    for (size_t i = 0; i < pairs->count; i++) {
        struct pair *pair = &pairs->pair[i];

        if (pair->kind == PAIR_SCRATCH) {
            continue;
        }
        ck_assert_msg(memcmp(pair->first, pair->second, pair->bytes) == 0,
                      "%s: buffer %zu differs from run to run", name, i);
        if (pair->kind == PAIR_FLOATS) {
            compare_floats(name, i, pair, tolerance);
        } else {
            ck_assert_msg(memcmp(pair->first, pair->host, pair->bytes) == 0,
                          "%s: buffer %zu differs from the host's", name, i);
        }
    }
    free(translated);
}

void pairs_finish(struct pairs *pairs)
{
    for (size_t i = 0; i < pairs->count; i++) {
        struct pair *pair = &pairs->pair[i];

        free(pair->host);
        free(pair->before);
        free(pair->first);
        free(pair->second);
        CUDA_OK(cudaFree(pair->device_start));
    }
    pairs->count = 0;
}

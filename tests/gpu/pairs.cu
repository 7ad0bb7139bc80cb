/* Buffers on host and device, see pairs.h. */
#include "tests/gpu/pairs.h"

#include "kernels/random.h"

#include <check.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEED 20241121u

/* Around every buffer on the device lie so many bytes of ones, NaNs to whoever reads them. */
#define MARGIN_BYTES ((size_t)256)
#define MARGIN_BYTE 0xff

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
    size_t shift;

    ck_assert_uint_le(pairs->count, PAIRS_LIMIT);
    pair->kind = kind;
    pair->bytes = bytes;
    pair->host = allocate(bytes);
    pair->before = allocate(bytes);
    pair->first = allocate(bytes);
    pair->second = allocate(bytes);
    memset(pair->host, 0xff, bytes);
    shift = kind == PAIR_BF16 ? pairs->shift / 2 : pairs->shift;
    pair->device_bytes = 2 * MARGIN_BYTES + shift + bytes;
    CUDA_OK(cudaMalloc(&pair->device_start, pair->device_bytes));
    CUDA_OK(cudaMemset(pair->device_start, MARGIN_BYTE, pair->device_bytes));
    pair->device = (unsigned char *)pair->device_start + MARGIN_BYTES + shift;
    return pair;
}

static void check_margin(size_t index, const unsigned char *device, size_t bytes)
{
    unsigned char *margin = allocate(bytes);

    CUDA_OK(cudaMemcpy(margin, device, bytes, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < bytes; i++) {
        ck_assert_msg(margin[i] == MARGIN_BYTE, "something was written beside buffer %zu", index);
    }
    free(margin);
}

static void check_margins(size_t index, const struct pair *pair)
{
    const unsigned char *start = (const unsigned char *)pair->device_start;
    const unsigned char *end = pair->device + pair->bytes;

    check_margin(index, start, (size_t)(pair->device - start));
    check_margin(index, end, (size_t)(start + pair->device_bytes - end));
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

void *pairs_blank(struct pairs *pairs, size_t count)
{
    enum pair_kind kind = pairs->element == ELEMENT_BF16 ? PAIR_BF16 : PAIR_FLOATS;

    return make(pairs, count * element_bytes(pairs->element), kind)->host;
}

void *pairs_clear(struct pairs *pairs, size_t count)
{
    return memset(pairs_blank(pairs, count), 0, count * element_bytes(pairs->element));
}

void *pairs_items(struct pairs *pairs, size_t count, float low, float high)
{
    void *items = pairs_blank(pairs, count);

    for (size_t i = 0; i < count; i++) {
        pairs_set(pairs, items, i, low + (high - low) * random_unit(draw(pairs)));
    }
    return items;
}

void pairs_set(struct pairs *pairs, void *items, size_t index, float value)
{
    pairs->has_nan = pairs->has_nan || isnan(value);
    if (pairs->element == ELEMENT_BF16) {
        ((uint16_t *)items)[index] = element_round(value);
    } else {
        ((float *)items)[index] = value;
    }
}

float pairs_get(const struct pairs *pairs, const void *items, size_t index)
{
    return pairs->element == ELEMENT_BF16 ? element_widen(((const uint16_t *)items)[index])
                                          : ((const float *)items)[index];
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

/* Translates arguments for the device: replaces every word that is an address in a host buffer. */
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

/* Runs the operation on the device, starting from `before`. Copies the results to `first` or
   `second`. */
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

/* Whether `got` is within the tolerance; nothing is near a NaN. Neighbouring bf16 numbers, with 8
   bits of precision, differ by at most 2^-7 of their value. */
static bool is_near(double got, double expected, enum pair_kind kind, double tolerance)
{
    double limit = tolerance * (1.0 + fabs(expected));

    if (kind == PAIR_BF16 && tolerance > 0.0) {
        limit += 0x1p-7 * fabs(expected);
    }
    return got == expected || fabs(got - expected) <= limit;
}

/* Whether an item is as it was before the run, on both sides. */
static bool is_untouched(const struct pair *pair, size_t item, size_t item_bytes)
{
    const unsigned char *before = pair->before + item * item_bytes;

    return memcmp(pair->host + item * item_bytes, before, item_bytes) == 0 &&
           memcmp(pair->first + item * item_bytes, before, item_bytes) == 0;
}

/* A NaN on both sides counts as equal only if the test has put a NaN among the inputs; otherwise
   both have read what was not written. */
static void compare_items(const char *name, size_t index, const struct pair *pair, double tolerance,
                          bool has_nan)
{
    struct pairs as = {};
    size_t count;

    as.element = pair->kind == PAIR_BF16 ? ELEMENT_BF16 : ELEMENT_FP32;
    count = pair->bytes / element_bytes(as.element);
    for (size_t i = 0; i < count; i++) {
        double expected = pairs_get(&as, pair->host, i);
        double got = pairs_get(&as, pair->first, i);

        if (!is_near(got, expected, pair->kind, tolerance) &&
            !is_untouched(pair, i, element_bytes(as.element)) &&
            !(has_nan && isnan(got) && isnan(expected))) {
            ck_abort_msg("%s: buffer %zu, item %zu is %.9g, not %.9g", name, index, i, got,
                         expected);
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
                      "%s: buffer %zu differs between two runs", name, i);
        if (pair->kind != PAIR_BYTES) {
            compare_items(name, i, pair, tolerance, pairs->has_nan);
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
        check_margins(i, pair);
        CUDA_OK(cudaFree(pair->device_start));
    }
    pairs->count = 0;
}

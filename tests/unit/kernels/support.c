/* Shared by the kernel tests. */
#include "tests/unit/kernels/support.h"

#include "kernels/parallel.h"
#include "kernels/random.h"

#include <check.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t support_seed(void)
{
    const char *text = getenv("TEST_SEED");
    uint64_t seed = text != NULL ? strtoull(text, NULL, 0) : 20240607u;

    printf("seed %llu (TEST_SEED)\n", (unsigned long long)seed);
    return seed;
}

float support_draw(struct support *support, float low, float high)
{
    struct random_block block = random_draw(support->seed, 77, support->drawn++);
    return low + (high - low) * random_unit(block.word[0]);
}

static void *place(struct support *support, size_t bytes, size_t shift)
{
    unsigned char *memory = NULL;

    ck_assert_uint_lt(support->buffer_count, SUPPORT_BUFFERS);
    /* The size is not rounded up, so that ASan sees a write past the end. */
    ck_assert_int_eq(posix_memalign((void **)&memory, 64, bytes + shift), 0);
    memset(memory, 0xff, bytes + shift);
    support->buffers[support->buffer_count++] = memory;
    return memory + shift;
}

void *support_buffer(struct support *support, size_t bytes)
{
    return place(support, bytes, support->shift);
}

size_t support_bytes(const struct support *support, size_t count)
{
    return count * element_bytes(support->element);
}

/* Buffers of bf16 are shifted by half as much, which puts them between floats. */
void *support_blank(struct support *support, size_t count)
{
    size_t shift = support->element == ELEMENT_BF16 ? support->shift / 2 : support->shift;

    return place(support, support_bytes(support, count), shift);
}

void *support_items(struct support *support, size_t count, float low, float high)
{
    void *items = support_blank(support, count);

    for (size_t i = 0; i < count; i++) {
        element_set(support->element, items, i, support_draw(support, low, high));
    }
    return items;
}

double support_item(const struct support *support, const void *items, size_t index)
{
    return support->element == ELEMENT_BF16 ? element_widen(((const uint16_t *)items)[index])
                                            : ((const float *)items)[index];
}

float *support_output(struct support *support, size_t count)
{
    return support_buffer(support, count * sizeof(float));
}

float *support_floats(struct support *support, size_t count, float low, float high)
{
    float *values = support_output(support, count);

    for (size_t i = 0; i < count; i++) {
        values[i] = support_draw(support, low, high);
    }
    return values;
}

void support_keep(struct support *support, const void *bytes, size_t count)
{
    support->result = realloc(support->result, support->result_bytes + count);
    ck_assert_ptr_nonnull(support->result);
    memcpy(support->result + support->result_bytes, bytes, count);
    support->result_bytes += count;
}

void support_near(const char *what, size_t index, double got, double expected, double tolerance)
{
    /* Written so that a NaN fails. */
    if (!(fabs(got - expected) <= tolerance * (1.0 + fabs(expected)))) {
        ck_abort_msg("%s[%zu] is %.9g, not %.9g", what, index, got, expected);
    }
}

void support_stored(const struct support *support, const char *what, size_t index, double got,
                    double expected, double tolerance)
{
    /* bf16 has 8 significant bits: half a unit in the last place is at most 2^-8 of the value. */
    double rounding = support->element == ELEMENT_BF16 ? 0x1p-8 * fabs(expected) : 0.0;

    if (!(fabs(got - expected) <= tolerance * (1.0 + fabs(expected)) + rounding)) {
        ck_abort_msg("%s[%zu] is %.9g, not %.9g", what, index, got, expected);
    }
}

static struct support run_once(support_case run, const void *shape, uint64_t seed,
                               enum element element, unsigned threads, size_t shift)
{
    struct support support = {.seed = seed, .shift = shift, .element = element};

    support.is_reference_due = threads == 1 && shift == 0;
    parallel_set_threads(threads);
    run(&support, shape);
    while (support.buffer_count > 0) {
        free(support.buffers[--support.buffer_count]);
    }
    return support;
}

void support_sweep(support_case run, const void *shape)
{
    support_sweep_in(ELEMENT_FP32, run, shape);
}

void support_sweep_in(enum element element, support_case run, const void *shape)
{
    static const size_t shifts[] = {0, 4, 20, 60};
    uint64_t seed = support_seed();
    struct support first = run_once(run, shape, seed, element, 1, 0);

    ck_assert_uint_gt(first.result_bytes, 0);
    for (unsigned threads = 1; threads <= 3; threads++) {
        for (size_t i = 0; i < sizeof(shifts) / sizeof(shifts[0]); i++) {
            struct support other = run_once(run, shape, seed, element, threads, shifts[i]);

            ck_assert_uint_eq(other.result_bytes, first.result_bytes);
            ck_assert_msg(memcmp(other.result, first.result, first.result_bytes) == 0,
                          "bits change with %u threads, %zu bytes off", threads, shifts[i]);
            free(other.result);
        }
    }
    free(first.result);
}

/* What the tests of the kernels share. */
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
    const char *text = getenv("CAPUCHIN_TEST_SEED");
    uint64_t seed = text != NULL ? strtoull(text, NULL, 0) : 20240607u;

    printf("seed %llu (CAPUCHIN_TEST_SEED)\n", (unsigned long long)seed);
    return seed;
}

float support_draw(struct support *support, float low, float high)
{
    struct random_block block = random_draw(support->seed, 77, support->drawn++);
    return low + (high - low) * random_unit(block.word[0]);
}

void *support_buffer(struct support *support, size_t bytes)
{
    unsigned char *memory = NULL;

    ck_assert_uint_lt(support->buffer_count, SUPPORT_BUFFERS);
    /* Not rounded up behind the buffer: a write past its end is then seen by ASan. */
    ck_assert_int_eq(posix_memalign((void **)&memory, 64, bytes + support->shift), 0);
    memset(memory, 0xff, bytes + support->shift);
    support->buffers[support->buffer_count++] = memory;
    return memory + support->shift;
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

static struct support run_once(support_case run, const void *shape, uint64_t seed, unsigned threads,
                               size_t shift)
{
    struct support support = {.seed = seed, .shift = shift};

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
    static const size_t shifts[] = {0, 4, 20, 60};
    uint64_t seed = support_seed();
    struct support first = run_once(run, shape, seed, 1, 0);

    ck_assert_uint_gt(first.result_bytes, 0);
    for (unsigned threads = 1; threads <= 3; threads++) {
        for (size_t i = 0; i < sizeof(shifts) / sizeof(shifts[0]); i++) {
            struct support other = run_once(run, shape, seed, threads, shifts[i]);

            ck_assert_uint_eq(other.result_bytes, first.result_bytes);
            ck_assert_msg(memcmp(other.result, first.result, first.result_bytes) == 0,
                          "bits change with %u threads, %zu bytes off", threads, shifts[i]);
            free(other.result);
        }
    }
    free(first.result);
}

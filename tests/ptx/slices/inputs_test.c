/*
 * Results of a slice depend on its inputs only (interpose/slice/slice.h): launches whose parameters
 * have the same key give the same results relative to their pointers. Whatever is in no input is
 * changed at random from one launch to the next. Where inputs are left out on purpose, that is
 * seen.
 */
#include "tests/ptx/slices/compare.h"
#include "tests/ptx/slices/text.h"

#include "base/random.h"
#include "tests/support/effort.h"
#include "tests/support/suite.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    TEXT_BYTES = 1 << 18,
    LAUNCHES_LEAST = 6,
    LAUNCHES = 40,
    BLOCK_BYTES = 4096,
    REPORTS_MOST = 2 * SLICE_WORDS_MOST,
};

static const char *const files[] = {SLICE_SAMPLES, SLICE_CONTROL, SLICE_CUBLAS, SLICE_CLASSIFIER,
                                    SLICE_GPT};

/* A kernel, and a launch of its slice. */
struct launch {
    const struct comparison *comparison;
    const struct kernel *kernel;
    const struct slice *slice;
    uint32_t grid[3];
    uint32_t block[3];
    unsigned char parameters[BLOCK_BYTES];
    struct slice_result results[REPORTS_MOST];
};

static uint64_t pick(uint64_t *random, uint64_t count)
{
    return random_next(random) % count;
}

/* Somewhere, but so that no address near it wraps around. */
static uint64_t pick_pointer(uint64_t *random)
{
    return ((uint64_t)1 << 45) + pick(random, (uint64_t)1 << 44);
}

static unsigned char *word_at(struct launch *launch, size_t index, uint32_t *count)
{
    const struct kernel_word *word = &launch->kernel->words[index];
    const struct kernel_parameter *parameter = &launch->kernel->parameters[word->parameter];
    bool is_any = word->offset == PTX_NONE;

    *count = is_any ? parameter->bytes / 8 : 1;
    return launch->parameters + parameter->offset + (is_any ? 0 : word->offset);
}

/* Small numbers, and pointers to anywhere; some are null. */
static void make(struct launch *launch, uint64_t *random)
{
    uint32_t step = 4u << pick(random, 2);
    uint32_t count;

    memset(launch->parameters, 0, sizeof(launch->parameters));
    for (uint32_t at = 0; at < launch->kernel->parameter_bytes; at += step) {
        uint32_t number = (uint32_t)pick(random, 40);

        memcpy(launch->parameters + at, &number, sizeof(number));
    }
    for (size_t i = 0; i < launch->kernel->word_count; i++) {
        unsigned char *place = word_at(launch, i, &count);

        for (uint32_t j = 0; j < count; j++) {
            uint64_t pointer = pick(random, 6) == 0 ? 0 : pick_pointer(random) & ~(uint64_t)3;

            memcpy(place + 8 * (size_t)j, &pointer, sizeof(pointer));
        }
    }
    for (unsigned i = 0; i < 3; i++) {
        launch->grid[i] = 1 + (uint32_t)pick(random, i == 0 ? 4 : 2);
        launch->block[i] = i == 0 ? 1 + (uint32_t)pick(random, 64) : 1;
    }
}

/* Changes all that is in no input: `other` has the same key. */
static void change(const struct launch *launch, struct launch *other, uint64_t *random)
{
    *other = *launch;
    for (uint32_t i = 0; i < launch->kernel->parameter_bytes; i++) {
        other->parameters[i] = (unsigned char)random_next(random);
    }
    for (size_t i = 0; i < launch->kernel->word_count; i++) {
        uint32_t count;
        unsigned char *place = word_at(other, i, &count);

        for (uint32_t j = 0; j < count; j++) {
            uint64_t pointer = pick_pointer(random);

            memcpy(place + 8 * (size_t)j, &pointer, sizeof(pointer));
        }
    }
    for (unsigned pass = 0; pass < 3; pass++) {
        for (size_t i = 0; i < launch->slice->input_count; i++) {
            const struct slice_input *input = &launch->slice->inputs[i];
            const unsigned char *from = launch->parameters + input->offset;
            unsigned char *to = other->parameters + input->offset;
            uint64_t old, now;

            memcpy(&old, from, sizeof(old));
            memcpy(&now, to, sizeof(now));
            if (pass == 0 && input->kind == SLICE_INPUT_LOW_BITS) {
                now = (now & ~input->mask) | (old & input->mask);
                memcpy(to, &now, sizeof(now));
            } else if (pass == 1 && input->kind == SLICE_INPUT_NULL && old == 0) {
                memset(to, 0, sizeof(now));
            } else if (pass == 2 && input->kind == SLICE_INPUT_VALUE) {
                memcpy(to, from, input->bytes);
            }
        }
    }
}

static bool observe(void *context, const struct machine_access *access)
{
    const struct launch *launch = context;

    return access->address - (uint64_t)(uintptr_t)launch->results < sizeof(launch->results);
}

static void run(struct launch *launch)
{
    struct machine_launch call = {
        .parameters = launch->parameters, .observer = observe, .observer_context = launch};
    uint64_t results = (uint64_t)(uintptr_t)launch->results;
    struct error_text problem = {""};
    char name[1024];

    (void)snprintf(name, sizeof(name), "%.*s_slice", (int)launch->kernel->name.length,
                   launch->kernel->name.text);
    for (size_t i = 0; i < launch->slice->report_count; i++) {
        launch->results[i] = (struct slice_result)SLICE_RESULT_NONE;
    }
    memcpy(launch->parameters + launch->slice->results_offset, &results, sizeof(results));
    memcpy(call.grid, launch->grid, sizeof(call.grid));
    memcpy(call.block, launch->block, sizeof(call.block));
    ck_assert_msg(machine_run(machine_function_find(launch->comparison->sliced, name), &call,
                              &problem) == CAPU_OK,
                  "%s: %s", name, problem.text);
}

static bool has_given_up(const struct slice_result *result)
{
    return result->lowest == 0 && result->end == UINT64_MAX;
}

/* Whether a report has the same result in both, relative to its pointer. */
static bool is_same(const struct launch *one, const struct launch *other, size_t report)
{
    const struct slice_report *what = &one->slice->reports[report];
    const struct slice_result *first = &one->results[report];
    const struct slice_result *second = &other->results[report];
    uint64_t base = slice_base(one->kernel, what, one->parameters);
    uint64_t other_base = slice_base(one->kernel, what, other->parameters);

    if (has_given_up(first) || has_given_up(second)) {
        return has_given_up(first) && has_given_up(second);
    }
    if (!slice_is_relative(first) || !slice_is_relative(second)) {
        return true;
    }
    if (first->end == 0 || second->end == 0) {
        return first->end == second->end;
    }
    return first->lowest - base == second->lowest - other_base &&
           first->end - base == second->end - other_base;
}

static void check_keys(const struct launch *one, const struct launch *other)
{
    unsigned char keys[2][BLOCK_BYTES * 2];

    ck_assert_uint_le(slice_key_bytes(one->slice), sizeof(keys[0]));
    slice_key(one->slice, one->parameters, keys[0]);
    slice_key(one->slice, other->parameters, keys[1]);
    ck_assert_mem_eq(keys[0], keys[1], slice_key_bytes(one->slice));
}

/* Launches with the same key. True: all had the same results. */
static bool has_same_results(const struct comparison *comparison, size_t kernel, unsigned launches,
                             uint64_t seed, uint64_t *accesses)
{
    struct launch *pair = calloc(2, sizeof(*pair));
    uint64_t random = seed;
    bool is_right = true;

    ck_assert_ptr_nonnull(pair);
    pair[0].comparison = comparison;
    pair[0].kernel = &comparison->kernels.kernels[kernel];
    pair[0].slice = &comparison->slices[kernel];
    ck_assert_uint_le(pair[0].slice->report_count, REPORTS_MOST);
    for (unsigned i = 0; i < launches; i++) {
        make(&pair[0], &random);
        change(&pair[0], &pair[1], &random);
        check_keys(&pair[0], &pair[1]);
        run(&pair[0]);
        run(&pair[1]);
        for (size_t j = 0; j < pair[0].slice->report_count; j++) {
            is_right &= is_same(&pair[0], &pair[1], j);
            *accesses += pair[0].results[j].end != 0;
        }
    }
    free(pair);
    return is_right;
}

START_TEST(equal_keys_give_equal_results)
{
    static char text[TEXT_BYTES];
    struct comparison comparison;

    compare_open(text, text_read(files[_i], text, TEXT_BYTES), NULL, &comparison);
    for (size_t i = 0; i < comparison.kernels.count; i++) {
        uint64_t accesses = 0;
        bool is_right;

        if (comparison.slices[i].text != NULL) {
            is_right =
                has_same_results(&comparison, i, LAUNCHES_LEAST + (unsigned)effort_share(LAUNCHES),
                                 i + 1, &accesses);
            ck_assert_msg(is_right && accesses > 0, "%s: %.*s, %" PRIu64 " results", files[_i],
                          (int)comparison.kernels.kernels[i].name.length,
                          comparison.kernels.kernels[i].name.text, accesses);
        }
    }
    compare_close(&comparison);
}
END_TEST

/* Each input of these kernels, left out, leads to different results under one key. */
START_TEST(inputs_that_are_left_out_are_missed)
{
    static const char *const kernels[] = {"step", "triangle", "scatter", "search", "choose"};
    static char text[TEXT_BYTES];
    struct comparison comparison;
    unsigned missed = 0;

    compare_open(text, text_read(SLICE_SAMPLES, text, TEXT_BYTES), NULL, &comparison);
    for (size_t i = 0; i < comparison.kernels.count; i++) {
        struct slice *slice = &comparison.slices[i];
        bool is_tested = false;

        for (size_t j = 0; j < sizeof(kernels) / sizeof(kernels[0]); j++) {
            is_tested |= span_is(comparison.kernels.kernels[i].name, kernels[j]);
        }
        for (size_t j = slice->input_count; is_tested && j > 0; j--) {
            struct slice_input last = slice->inputs[slice->input_count - 1];
            struct slice_input left_out = slice->inputs[j - 1];
            uint64_t accesses = 0;

            slice->inputs[j - 1] = last;
            slice->input_count--;
            ck_assert_msg(!has_same_results(&comparison, i, 60, j, &accesses),
                          "%.*s, input at %" PRIu32, (int)comparison.kernels.kernels[i].name.length,
                          comparison.kernels.kernels[i].name.text, left_out.offset);
            slice->inputs[slice->input_count++] = last;
            slice->inputs[j - 1] = left_out;
            missed++;
        }
    }
    ck_assert_uint_ge(missed, 6);
    compare_close(&comparison);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ptx_slice_inputs");
    TCase *cases = tcase_create("inputs");

    tcase_add_loop_test(cases, equal_keys_give_equal_results, 0, sizeof(files) / sizeof(files[0]));
    tcase_add_test(cases, inputs_that_are_left_out_are_missed);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}

/*
 * max_pool: values, places and gradients, also for sides that the window does not divide and for
 * windows that overlap, leave gaps or reach over the border.
 */
#include "kernels/max_pool.h"

#include "tests/support/suite.h"
#include "tests/unit/kernels/support.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

static const struct max_pool shapes[] = {
    {.planes = 1, .height = 2, .width = 2, .window = 2},
    {.planes = 37, .height = 7, .width = 9, .window = 2},
    {.planes = 5, .height = 10, .width = 11, .window = 3},
    {.planes = 200, .height = 14, .width = 14, .window = 2},
    {.planes = 3, .height = 9, .width = 12, .window = 3, .stride = 2, .padding = 1},
    {.planes = 20, .height = 1, .width = 2, .window = 3, .stride = 2, .padding = 1},
    {.planes = 2, .height = 11, .width = 8, .window = 5, .stride = 1, .padding = 4},
    {.planes = 17, .height = 10, .width = 13, .window = 2, .stride = 3},
    {.planes = 2, .height = 6, .width = 7, .window = 2, .stride = 2, .padding = 1},
};

static void check(const struct support *support, const struct max_pool *pool)
{
    size_t rows = max_pool_output_height(pool);
    size_t columns = max_pool_output_width(pool);
    ptrdiff_t stride = max_pool_stride(pool);
    ptrdiff_t window = pool->window;
    size_t items = pool->planes * pool->height * pool->width;
    double *expected = calloc(items, sizeof(*expected));

    for (size_t at = 0; at < pool->planes * rows * columns; at++) {
        size_t plane = at / (rows * columns);
        ptrdiff_t top = (ptrdiff_t)(at / columns % rows) * stride - pool->padding;
        ptrdiff_t left = (ptrdiff_t)(at % columns) * stride - pool->padding;
        size_t best = SIZE_MAX;

        for (ptrdiff_t y = top; y < top + window; y++) {
            for (ptrdiff_t x = left; x < left + window; x++) {
                size_t from = (plane * pool->height + (size_t)y) * pool->width + (size_t)x;

                if (y < 0 || x < 0 || y >= (ptrdiff_t)pool->height || x >= (ptrdiff_t)pool->width) {
                    continue;
                }
                best = best == SIZE_MAX || support_item(support, pool->input, from) >
                                               support_item(support, pool->input, best)
                           ? from
                           : best;
            }
        }
        ck_assert_double_eq(support_item(support, pool->output, at),
                            support_item(support, pool->input, best));
        expected[best] += support_item(support, pool->output_gradient, at);
    }
    for (size_t i = 0; i < items; i++) {
        support_stored(support, "input_gradient", i, support_item(support, pool->input_gradient, i),
                       expected[i], 1e-6);
    }
    free(expected);
}

static void run_case(struct support *support, const void *shape)
{
    struct max_pool pool = *(const struct max_pool *)shape;
    size_t items = pool.planes * pool.height * pool.width;
    size_t outputs = pool.planes * max_pool_output_height(&pool) * max_pool_output_width(&pool);

    pool.element = support->element;
    pool.input = support_items(support, items, -1.0f, 1.0f);
    pool.output = support_blank(support, outputs);
    pool.places = support_buffer(support, outputs);
    pool.output_gradient = support_items(support, outputs, -1.0f, 1.0f);
    pool.input_gradient = support_blank(support, items);
    ck_assert_int_eq(max_pool_forward_host(NULL, &pool), CAPU_OK);
    ck_assert_int_eq(max_pool_backward_host(NULL, &pool), CAPU_OK);
    if (support->is_reference_due) {
        check(support, &pool);
    }
    support_keep(support, pool.output, support_bytes(support, outputs));
    support_keep(support, pool.input_gradient, support_bytes(support, items));
}

SUPPORT_TESTS_IN_BOTH_TYPES(run_case, shapes)

/* Whatever the places contain, nothing is written outside the image. */
START_TEST(corrupt_places_are_harmless)
{
    float gradient[4];
    float output_gradient = 1.0f;

    for (unsigned place = 0; place <= UINT8_MAX; place++) {
        uint8_t chosen = (uint8_t)place;
        unsigned y = place % 9 / 3;
        unsigned x = place % 3;
        struct max_pool pool = {.places = &chosen,
                                .output_gradient = &output_gradient,
                                .input_gradient = gradient,
                                .planes = 1,
                                .height = 2,
                                .width = 2,
                                .window = 3,
                                .stride = 2,
                                .padding = 1};

        ck_assert_int_eq(max_pool_backward_host(NULL, &pool), CAPU_OK);
        for (unsigned i = 0; i < 4; i++) {
            bool is_chosen = y > 0 && x > 0 && i == (y - 1) * 2 + (x - 1);
            ck_assert_float_eq(gradient[i], is_chosen ? 1.0f : 0.0f);
        }
    }
}
END_TEST

START_TEST(nan_is_propagated)
{
    for (int place = 0; place < 4; place++) {
        float input[4] = {1.0f, 2.0f, 3.0f, 0.0f};
        float output = 0.0f;
        uint8_t chosen = 0;
        struct max_pool pool = {.input = input,
                                .output = &output,
                                .places = &chosen,
                                .planes = 1,
                                .height = 2,
                                .width = 2,
                                .window = 2};

        input[place] = NAN;
        ck_assert_int_eq(max_pool_forward_host(NULL, &pool), CAPU_OK);
        ck_assert_float_nan(output);
    }
}
END_TEST

static const struct {
    struct max_pool pool;
    capu_status status;
} refused[] = {
    {{.planes = 1, .height = 17, .width = 17, .window = 17}, CAPU_INVALID},
    {{.planes = 1, .height = 4, .width = 4, .window = 0}, CAPU_INVALID},
    {{.planes = 1, .height = 2, .width = 4, .window = 3}, CAPU_INVALID},
    {{.planes = 1, .height = 4, .width = 2, .window = 3}, CAPU_INVALID},
    {{.planes = 1, .height = 0, .width = 4, .window = 2}, CAPU_INVALID},
    {{.planes = 0, .height = 4, .width = 4, .window = 2}, CAPU_INVALID},
    {{.planes = 1, .height = 4, .width = 4, .window = 2, .padding = 2}, CAPU_INVALID},
    {{.planes = 1, .height = 9, .width = 0, .window = 2, .padding = 1}, CAPU_INVALID},
    {{.planes = 1, .height = 1, .width = 9, .window = 4, .padding = 1}, CAPU_INVALID},
    {{.planes = 1, .height = 1, .width = UINT32_MAX, .window = 3, .padding = 1}, CAPU_TOO_LARGE},
    {{.planes = SIZE_MAX / 16, .height = 4, .width = 4, .window = 2}, CAPU_TOO_LARGE},
    {{.planes = 2, .height = 65536, .width = 65536, .window = 2}, CAPU_TOO_LARGE},
};

START_TEST(bad_shapes_are_rejected)
{
    const struct max_pool *pool = &refused[_i].pool;

    ck_assert_int_eq(max_pool_forward_host(NULL, pool), refused[_i].status);
    ck_assert_int_eq(max_pool_backward_host(NULL, pool), refused[_i].status);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("max_pool");
    TCase *tests = tcase_create("max_pool");

    add_reference_tests(tests);
    tcase_add_test(tests, corrupt_places_are_harmless);
    tcase_add_test(tests, nan_is_propagated);
    tcase_add_loop_test(tests, bad_shapes_are_rejected, 0, sizeof(refused) / sizeof(refused[0]));
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

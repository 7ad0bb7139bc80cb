/* max_pool: values, places and gradients, for sides that the window does not divide too. */
#include "kernels/max_pool.h"

#include "tests/support/suite.h"
#include "tests/unit/kernels/support.h"

#include <math.h>
#include <stdlib.h>

static const struct max_pool shapes[] = {
    {.planes = 1, .height = 2, .width = 2, .window = 2},
    {.planes = 37, .height = 7, .width = 9, .window = 2},
    {.planes = 5, .height = 10, .width = 11, .window = 3},
    {.planes = 200, .height = 14, .width = 14, .window = 2},
};

static void check(const struct max_pool *pool)
{
    size_t rows = pool->height / pool->window;
    size_t columns = pool->width / pool->window;
    size_t items = pool->planes * pool->height * pool->width;
    double *expected = calloc(items, sizeof(*expected));

    for (size_t at = 0; at < pool->planes * rows * columns; at++) {
        size_t plane = at / (rows * columns);
        size_t top = at / columns % rows * pool->window;
        size_t left = at % columns * pool->window;
        size_t best = SIZE_MAX;

        for (size_t y = top; y < top + pool->window; y++) {
            for (size_t x = left; x < left + pool->window; x++) {
                size_t from = (plane * pool->height + y) * pool->width + x;
                best = best == SIZE_MAX || pool->input[from] > pool->input[best] ? from : best;
            }
        }
        ck_assert_float_eq(pool->output[at], pool->input[best]);
        expected[best] = pool->output_gradient[at];
    }
    for (size_t i = 0; i < items; i++) {
        support_near("input_gradient", i, pool->input_gradient[i], expected[i], 0.0);
    }
    free(expected);
}

static void run_case(struct support *support, const void *shape)
{
    struct max_pool pool = *(const struct max_pool *)shape;
    size_t items = pool.planes * pool.height * pool.width;
    size_t outputs = pool.planes * (pool.height / pool.window) * (pool.width / pool.window);

    pool.input = support_floats(support, items, -1.0f, 1.0f);
    pool.output = support_output(support, outputs);
    pool.places = support_buffer(support, outputs);
    pool.output_gradient = support_floats(support, outputs, -1.0f, 1.0f);
    pool.input_gradient = support_output(support, items);
    ck_assert_int_eq(max_pool_forward_host(NULL, &pool), CAPU_OK);
    ck_assert_int_eq(max_pool_backward_host(NULL, &pool), CAPU_OK);
    if (support->is_reference_due) {
        check(&pool);
    }
    support_keep(support, pool.output, outputs * sizeof(float));
    support_keep(support, pool.input_gradient, items * sizeof(float));
}

START_TEST(matches_reference)
{
    support_sweep(run_case, &shapes[_i]);
}
END_TEST

START_TEST(lets_nan_through)
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
    {{.planes = SIZE_MAX / 16, .height = 4, .width = 4, .window = 2}, CAPU_TOO_LARGE},
    {{.planes = 2, .height = 65536, .width = 65536, .window = 2}, CAPU_TOO_LARGE},
};

START_TEST(refuses_bad_shapes)
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

    tcase_add_loop_test(tests, matches_reference, 0, sizeof(shapes) / sizeof(shapes[0]));
    tcase_add_test(tests, lets_nan_through);
    tcase_add_loop_test(tests, refuses_bad_shapes, 0, sizeof(refused) / sizeof(refused[0]));
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

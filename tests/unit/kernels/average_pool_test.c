/* average_pool: averages and their gradients, for planes of various sizes. */
#include "kernels/average_pool.h"

#include "tests/support/suite.h"
#include "tests/unit/kernels/support.h"

static const struct average_pool shapes[] = {
    {.planes = 1, .plane = 1},
    {.planes = 7, .plane = 49},
    {.planes = 300, .plane = 5},
    {.planes = 3, .plane = 10000},
};

static void check(const struct support *support, const struct average_pool *pool)
{
    for (size_t i = 0; i < pool->planes; i++) {
        double sum = 0.0;

        for (size_t k = 0; k < pool->plane; k++) {
            size_t at = i * pool->plane + k;

            sum += support_item(support, pool->input, at);
            support_stored(support, "input_gradient", at,
                           support_item(support, pool->input_gradient, at),
                           support_item(support, pool->output_gradient, i) / pool->plane, 1e-7);
        }
        support_stored(support, "output", i, support_item(support, pool->output, i),
                       sum / pool->plane, 1e-6);
    }
}

static void run_case(struct support *support, const void *shape)
{
    struct average_pool pool = *(const struct average_pool *)shape;
    size_t items = pool.planes * pool.plane;

    pool.element = support->element;
    pool.input = support_items(support, items, -1.0f, 3.0f);
    pool.output = support_blank(support, pool.planes);
    pool.output_gradient = support_items(support, pool.planes, -1.0f, 1.0f);
    pool.input_gradient = support_blank(support, items);
    ck_assert_int_eq(average_pool_forward_host(NULL, &pool), CAPU_OK);
    ck_assert_int_eq(average_pool_backward_host(NULL, &pool), CAPU_OK);
    if (support->is_reference_due) {
        check(support, &pool);
    }
    support_keep(support, pool.output, support_bytes(support, pool.planes));
    support_keep(support, pool.input_gradient, support_bytes(support, items));
}

SUPPORT_TESTS_IN_BOTH_TYPES(run_case, shapes)

static const struct {
    struct average_pool pool;
    capu_status status;
} refused[] = {
    {{.planes = 0, .plane = 4}, CAPU_INVALID},
    {{.planes = 4, .plane = 0}, CAPU_INVALID},
    {{.planes = UINT32_MAX, .plane = 2}, CAPU_TOO_LARGE},
    {{.planes = SIZE_MAX, .plane = 1}, CAPU_TOO_LARGE},
    {{.planes = 1, .plane = UINT32_MAX - 30}, CAPU_TOO_LARGE},
};

START_TEST(bad_shapes_are_rejected)
{
    ck_assert_int_eq(average_pool_forward_host(NULL, &refused[_i].pool), refused[_i].status);
    ck_assert_int_eq(average_pool_backward_host(NULL, &refused[_i].pool), refused[_i].status);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("average_pool");
    TCase *tests = tcase_create("average_pool");

    add_reference_tests(tests);
    tcase_add_loop_test(tests, bad_shapes_are_rejected, 0, sizeof(refused) / sizeof(refused[0]));
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

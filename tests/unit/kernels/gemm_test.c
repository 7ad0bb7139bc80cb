/* gemm: every transposition, sizes across block boundaries, strides, and beta. */
#include "kernels/gemm.h"

#include "tests/support/suite.h"
#include "tests/unit/kernels/support.h"

struct shape {
    size_t rows;
    size_t columns;
    size_t depth;
};

static const struct shape shapes[] = {{1, 1, 1}, {5, 7, 3}, {128, 256, 4}, {129, 257, 70}};

/* Items by which each row is longer than necessary. */
#define SLACK 3

static double item(const float *matrix, size_t stride, bool is_transposed, size_t row,
                   size_t column)
{
    return is_transposed ? matrix[column * stride + row] : matrix[row * stride + column];
}

static void check(const struct gemm *gemm, const float *before)
{
    for (size_t row = 0; row < gemm->rows; row++) {
        for (size_t column = 0; column < gemm->columns; column++) {
            size_t at = row * gemm->c_stride + column;
            double sum = gemm->beta != 0.0f ? gemm->beta * before[at] : 0.0;

            for (size_t k = 0; k < gemm->depth; k++) {
                sum += item(gemm->a, gemm->a_stride, gemm->a_transposed, row, k) *
                       item(gemm->b, gemm->b_stride, gemm->b_transposed, k, column);
            }
            support_near("c", at, ((const float *)gemm->c)[at], sum, 1e-5);
        }
    }
}

static void run_one(struct support *support, const struct shape *shape, bool a_transposed,
                    bool b_transposed, float beta)
{
    size_t a_rows = a_transposed ? shape->depth : shape->rows;
    size_t a_columns = (a_transposed ? shape->rows : shape->depth) + SLACK;
    size_t b_rows = b_transposed ? shape->columns : shape->depth;
    size_t b_columns = (b_transposed ? shape->depth : shape->columns) + SLACK;
    size_t c_items = shape->rows * (shape->columns + SLACK);
    /* With beta 0 the result must not depend on the previous contents, which are NaN. */
    float *c = beta != 0.0f ? support_floats(support, c_items, -1.0f, 1.0f)
                            : support_output(support, c_items);
    float *before = support_output(support, c_items);
    struct gemm gemm = {
        .rows = shape->rows,
        .columns = shape->columns,
        .depth = shape->depth,
        .a = support_floats(support, a_rows * a_columns, -1.0f, 1.0f),
        .a_stride = a_columns,
        .a_transposed = a_transposed,
        .b = support_floats(support, b_rows * b_columns, -1.0f, 1.0f),
        .b_stride = b_columns,
        .b_transposed = b_transposed,
        .c = c,
        .c_stride = shape->columns + SLACK,
        .beta = beta,
    };

    for (size_t i = 0; i < c_items; i++) {
        before[i] = c[i];
    }
    gemm_run(&gemm);
    if (support->is_reference_due) {
        check(&gemm, before);
    }
    support_keep(support, c, c_items * sizeof(float));
}

static void run_case(struct support *support, const void *shape)
{
    run_one(support, shape, false, false, 0.0f);
    run_one(support, shape, false, true, 1.0f);
    run_one(support, shape, true, false, 0.5f);
    run_one(support, shape, true, true, 0.0f);
}

SUPPORT_TESTS(run_case, shapes)

int main(void)
{
    Suite *suite = suite_create("gemm");
    TCase *tests = tcase_create("gemm");

    add_reference_tests(tests);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

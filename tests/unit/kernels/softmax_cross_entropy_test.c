/* softmax_cross_entropy compared with double precision. */
#include "kernels/softmax_cross_entropy.h"

#include "tests/support/suite.h"
#include "tests/unit/kernels/support.h"

#include <math.h>

struct shape {
    uint32_t rows;
    uint32_t classes;
    float spread;
};

static const struct shape shapes[] = {
    {1, 1, 1.0f}, {3, 10, 5.0f}, {130, 10, 60.0f}, {65, 256, 10.0f}};

static void check(const struct support *support, const struct softmax_cross_entropy *arguments)
{
    double total = 0.0;

    for (size_t row = 0; row < arguments->rows; row++) {
        size_t first = row * arguments->classes;
        double most = support_item(support, arguments->logits, first);
        double sum = 0.0;
        double loss;

        for (size_t i = 0; i < arguments->classes; i++) {
            most = fmax(most, support_item(support, arguments->logits, first + i));
        }
        for (size_t i = 0; i < arguments->classes; i++) {
            sum += exp(support_item(support, arguments->logits, first + i) - most);
        }
        loss = log(sum) + most -
               support_item(support, arguments->logits, first + (size_t)arguments->labels[row]);
        total += loss;
        support_near("loss", row, arguments->losses[row], loss, 2e-6);
        for (size_t i = 0; i < arguments->classes; i++) {
            double probability =
                exp(support_item(support, arguments->logits, first + i) - most) / sum;
            double kept = support_item(support, arguments->probabilities, first + i);
            double target = i == (size_t)arguments->labels[row];

            support_stored(support, "probability", first + i, kept, probability, 1e-6);
            /* The gradient follows from the stored, rounded probability. */
            support_stored(support, "gradient", first + i,
                           support_item(support, arguments->gradient, first + i),
                           (kept - target) * arguments->scale, 1e-6);
        }
    }
    support_near("mean", 0, *arguments->mean, total / arguments->rows, 2e-6);
}

static void run_case(struct support *support, const void *argument)
{
    const struct shape *shape = argument;
    size_t items = (size_t)shape->rows * shape->classes;
    int32_t *labels = support_buffer(support, shape->rows * sizeof(*labels));
    struct softmax_cross_entropy arguments = {
        .logits = support_items(support, items, -shape->spread, shape->spread),
        .labels = labels,
        .probabilities = support_blank(support, items),
        .losses = support_output(support, shape->rows),
        .mean = support_output(support, 1),
        .gradient = support_blank(support, items),
        .rows = shape->rows,
        .classes = shape->classes,
        .scale = 1.0f / (float)shape->rows,
        .element = support->element,
    };

    for (size_t row = 0; row < shape->rows; row++) {
        labels[row] = (int32_t)support_draw(support, 0.0f, (float)shape->classes);
    }
    ck_assert_int_eq(softmax_cross_entropy_forward_host(NULL, &arguments), CAPU_OK);
    ck_assert_int_eq(softmax_cross_entropy_backward_host(NULL, &arguments), CAPU_OK);
    if (support->is_reference_due) {
        check(support, &arguments);
    }
    support_keep(support, arguments.probabilities, support_bytes(support, items));
    support_keep(support, arguments.mean, sizeof(float));
    support_keep(support, arguments.gradient, support_bytes(support, items));
}

SUPPORT_TESTS_IN_BOTH_TYPES(run_case, shapes)

START_TEST(invalid_labels_are_rejected)
{
    static const int32_t wrong[] = {-1, 3, INT32_MAX};
    float logits[3] = {0};
    float outputs[8];

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct softmax_cross_entropy arguments = {
            .logits = logits,
            .labels = &wrong[i],
            .probabilities = outputs,
            .losses = outputs + 3,
            .mean = outputs + 4,
            .gradient = outputs + 5,
            .rows = 1,
            .classes = 3,
        };
        ck_assert_int_eq(softmax_cross_entropy_forward_host(NULL, &arguments), CAPU_INVALID);
        ck_assert_int_eq(softmax_cross_entropy_backward_host(NULL, &arguments), CAPU_INVALID);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("softmax_cross_entropy");
    TCase *tests = tcase_create("softmax_cross_entropy");

    add_reference_tests(tests);
    tcase_add_test(tests, invalid_labels_are_rejected);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

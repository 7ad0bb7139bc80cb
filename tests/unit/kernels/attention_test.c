/*
 * attention: the forward chain compared with one formula in double precision, the backward chain
 * with finite differences of that formula, and what happens above the diagonal.
 */
#include "kernels/attention.h"

#include "tests/support/suite.h"
#include "tests/unit/kernels/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const struct attention shapes[] = {
    {.batch = 1, .length = 1, .heads = 1, .head_channels = 1},
    {.batch = 2, .length = 7, .heads = 3, .head_channels = 5},
    {.batch = 1, .length = 33, .heads = 2, .head_channels = 16},
};

#define STEP 1e-5
#define DIFFERENCES 60

static double qkv_at(const struct attention *attention, const double *qkv, size_t batch, size_t t,
                     size_t part, size_t head, size_t channel)
{
    size_t row = batch * attention->length + t;
    return qkv[((row * 3 + part) * attention->heads + head) * attention->head_channels + channel];
}

/* The output of one row of one head, which attends to the rows up to itself. */
static void reference_row(const struct attention *attention, const double *qkv, size_t batch,
                          size_t head, size_t t, double *output)
{
    double scale = 1.0 / sqrt((double)attention->head_channels);
    double sum = 0.0;

    for (size_t i = 0; i < attention->head_channels; i++) {
        output[i] = 0.0;
    }
    for (size_t s = 0; s <= t; s++) {
        double score = 0.0;

        for (size_t i = 0; i < attention->head_channels; i++) {
            score += qkv_at(attention, qkv, batch, t, 0, head, i) *
                     qkv_at(attention, qkv, batch, s, 1, head, i);
        }
        score = exp(score * scale);
        sum += score;
        for (size_t i = 0; i < attention->head_channels; i++) {
            output[i] += score * qkv_at(attention, qkv, batch, s, 2, head, i);
        }
    }
    for (size_t i = 0; i < attention->head_channels; i++) {
        output[i] /= sum;
    }
}

static void reference(const struct attention *attention, const double *qkv, double *output)
{
    size_t rows = (size_t)attention->batch * attention->length * attention->heads;

    for (size_t i = 0; i < rows; i++) {
        size_t t = i / attention->heads % attention->length;
        size_t batch = i / attention->heads / attention->length;

        reference_row(attention, qkv, batch, i % attention->heads, t,
                      output + i * attention->head_channels);
    }
}

static double objective(const struct support *support, const struct attention *attention,
                        const double *qkv, double *scratch, size_t items)
{
    double sum = 0.0;

    reference(attention, qkv, scratch);
    for (size_t i = 0; i < items; i++) {
        sum += scratch[i] * support_item(support, attention->output_gradient, i);
    }
    return sum;
}

/*
 * In bf16 each op of a chain rounds its result, so single items can be off by more than one
 * rounding. The vector of all errors must still be short compared with the result.
 */
struct distance {
    double error;
    double expected;
};

static void measure(const struct support *support, const char *what, struct distance *distance,
                    size_t index, double got, double expected, double tolerance)
{
    distance->error += (got - expected) * (got - expected);
    distance->expected += expected * expected;
    if (support->element == ELEMENT_FP32) {
        support_near(what, index, got, expected, tolerance);
    }
}

/* One rounding is off by at most 2^-8; over many items the errors of a chain mostly cancel. */
static void is_near(const char *what, const struct distance *distance)
{
    double relative = sqrt(distance->error / (distance->expected + 1e-30));

    ck_assert_msg(relative <= 0x1p-7, "%s is off by %.3g of its length", what, relative);
}

static void check(const struct support *support, const struct attention *attention, size_t items)
{
    struct distance outputs = {0};
    struct distance gradients = {0};
    double *qkv = calloc(3 * items, sizeof(double));
    double *output = calloc(items, sizeof(double));

    for (size_t i = 0; i < 3 * items; i++) {
        qkv[i] = support_item(support, attention->qkv, i);
    }
    reference(attention, qkv, output);
    for (size_t i = 0; i < items; i++) {
        measure(support, "output", &outputs, i, support_item(support, attention->output, i),
                output[i], 5e-6);
    }
    for (size_t k = 0; k < DIFFERENCES; k++) {
        size_t i = k * 7919 % (3 * items);
        double kept = qkv[i];
        double up;
        double down;

        qkv[i] = kept + STEP;
        up = objective(support, attention, qkv, output, items);
        qkv[i] = kept - STEP;
        down = objective(support, attention, qkv, output, items);
        qkv[i] = kept;
        measure(support, "qkv_gradient", &gradients, i,
                support_item(support, attention->qkv_gradient, i), (up - down) / (2 * STEP), 1e-4);
    }
    if (support->element == ELEMENT_BF16) {
        is_near("output", &outputs);
        is_near("qkv_gradient", &gradients);
    }
    free(qkv);
    free(output);
}

static void run_backward(const struct support *support, const struct attention *attention,
                         size_t square)
{
    ck_assert_int_eq(attention_merge_backward_host(NULL, attention), CAPU_OK);
    ck_assert_int_eq(attention_mix_backward_weights_host(NULL, attention), CAPU_OK);
    ck_assert_int_eq(attention_mix_backward_value_host(NULL, attention), CAPU_OK);
    /* the rest is zero */
    memset(attention->scores_gradient, 0, support_bytes(support, square));
    ck_assert_int_eq(attention_softmax_backward_host(NULL, attention), CAPU_OK);
    ck_assert_int_eq(attention_scores_backward_query_host(NULL, attention), CAPU_OK);
    ck_assert_int_eq(attention_scores_backward_key_host(NULL, attention), CAPU_OK);
    ck_assert_int_eq(attention_split_backward_host(NULL, attention), CAPU_OK);
}

static void run_case(struct support *support, const void *shape)
{
    struct attention attention = *(const struct attention *)shape;
    size_t items =
        (size_t)attention.batch * attention.length * attention.heads * attention.head_channels;
    size_t square = (size_t)attention.batch * attention.heads * attention.length * attention.length;

    attention.element = support->element;
    attention.qkv = support_items(support, 3 * items, -1.0f, 1.0f);
    attention.parts = support_blank(support, 3 * items);
    attention.scores = support_blank(support, square);
    attention.weights = support_blank(support, square);
    attention.mixed = support_blank(support, items);
    attention.output = support_blank(support, items);
    attention.qkv_gradient = support_blank(support, 3 * items);
    attention.parts_gradient = support_blank(support, 3 * items);
    attention.scores_gradient = support_blank(support, square);
    attention.weights_gradient = support_blank(support, square);
    attention.mixed_gradient = support_blank(support, items);
    attention.output_gradient = support_items(support, items, -1.0f, 1.0f);
    ck_assert_int_eq(attention_split_forward_host(NULL, &attention), CAPU_OK);
    ck_assert_int_eq(attention_scores_forward_host(NULL, &attention), CAPU_OK);
    memset(attention.weights, 0, support_bytes(support, square)); /* the rest is zero */
    ck_assert_int_eq(attention_softmax_forward_host(NULL, &attention), CAPU_OK);
    ck_assert_int_eq(attention_mix_forward_host(NULL, &attention), CAPU_OK);
    ck_assert_int_eq(attention_merge_forward_host(NULL, &attention), CAPU_OK);
    run_backward(support, &attention, square);
    if (support->is_reference_due) {
        check(support, &attention, items);
    }
    support_keep(support, attention.weights, support_bytes(support, square));
    support_keep(support, attention.output, support_bytes(support, items));
    support_keep(support, attention.qkv_gradient, support_bytes(support, 3 * items));
}

/* It does not write the upper triangle, which is why the operand must be declared
 * CAPU_WRITE_REST_ZERO. */
START_TEST(softmax_writes_only_the_lower_triangle)
{
    float scores[9] = {0};
    float weights[9];
    struct attention attention = {.scores = scores,
                                  .weights = weights,
                                  .batch = 1,
                                  .length = 3,
                                  .heads = 1,
                                  .head_channels = 4};

    for (int i = 0; i < 9; i++) {
        weights[i] = NAN;
    }
    ck_assert_int_eq(attention_softmax_forward_host(NULL, &attention), CAPU_OK);
    for (int i = 0; i < 9; i++) {
        if (i % 3 > i / 3) {
            ck_assert_float_nan(weights[i]);
        } else {
            support_near("weight", (size_t)i, weights[i], 1.0 / (1 + i / 3), 1e-6);
        }
    }
}
END_TEST

/* Makes accessible only those of three parts, a page each, whose bit is set in `open`. */
static void open_parts(void *parts, size_t page, unsigned open)
{
    for (size_t part = 0; part < 3; part++) {
        int access = (open >> part & 1u) != 0 ? PROT_READ | PROT_WRITE : PROT_NONE;

        ck_assert_int_eq(mprotect((char *)parts + part * page, page, access), 0);
    }
}

/* Memory that no operand declares may be evicted or belong to another tensor: it is not touched. */
START_TEST(only_declared_parts_are_touched)
{
    enum { QUERY = 1, KEY = 2, VALUE = 4 };
    static const struct {
        capu_status (*run)(capu_stream stream, const void *arguments);
        unsigned parts;
        unsigned gradients;
    } operations[] = {
        {attention_scores_forward_host, QUERY | KEY, 0},
        {attention_mix_forward_host, VALUE, 0},
        {attention_mix_backward_weights_host, VALUE, 0},
        {attention_mix_backward_value_host, 0, VALUE},
        {attention_scores_backward_query_host, KEY, QUERY},
        {attention_scores_backward_key_host, QUERY, KEY},
    };
    enum element element = _i == 0 ? ELEMENT_FP32 : ELEMENT_BF16;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct attention attention = {.batch = 2,
                                  .length = 8,
                                  .heads = 2,
                                  .element = element,
                                  .head_channels = (uint32_t)(page / element_bytes(element) / 32)};
    size_t square = (size_t)2 * 2 * 8 * 8 * sizeof(float);
    void *maps[2];

    for (size_t i = 0; i < 2; i++) {
        maps[i] = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ck_assert_ptr_ne(maps[i], MAP_FAILED);
    }
    attention.parts = maps[0];
    attention.parts_gradient = maps[1];
    attention.scores = attention.scores_gradient = calloc(1, square);
    attention.weights = attention.weights_gradient = calloc(1, square);
    attention.mixed = attention.mixed_gradient = calloc(1, page);
    for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
        open_parts(maps[0], page, operations[i].parts);
        open_parts(maps[1], page, operations[i].gradients);
        ck_assert_int_eq(operations[i].run(NULL, &attention), CAPU_OK);
    }
    free(attention.scores);
    free(attention.weights);
    free(attention.mixed);
    munmap(maps[0], 3 * page);
    munmap(maps[1], 3 * page);
}
END_TEST

SUPPORT_TESTS_IN_BOTH_TYPES(run_case, shapes)

int main(void)
{
    Suite *suite = suite_create("attention");
    TCase *tests = tcase_create("attention");

    add_reference_tests(tests);
    tcase_add_test(tests, softmax_writes_only_the_lower_triangle);
    tcase_add_loop_test(tests, only_declared_parts_are_touched, 0, 2);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

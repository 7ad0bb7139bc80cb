/* embedding: rows and gradients, including tokens that occur more than once. */
#include "kernels/embedding.h"

#include "tests/support/suite.h"
#include "tests/unit/kernels/support.h"

#include <stdlib.h>
#include <string.h>

static const struct embedding shapes[] = {
    {.batch = 1, .length = 1, .channels = 1, .vocabulary = 1},
    {.batch = 3, .length = 7, .channels = 33, .vocabulary = 5},
    {.batch = 4, .length = 50, .channels = 64, .vocabulary = 256},
};

static void check_backward(const struct support *support, const struct embedding *embedding,
                           const float *token_before, const float *position_before)
{
    size_t channels = embedding->channels;
    double *token = calloc(embedding->vocabulary * channels, sizeof(double));
    double *position = calloc(embedding->length * channels, sizeof(double));

    for (size_t i = 0; i < (size_t)embedding->batch * embedding->length * channels; i++) {
        size_t row = i / channels;

        token[(size_t)embedding->tokens[row] * channels + i % channels] +=
            support_item(support, embedding->output_gradient, i);
        position[row % embedding->length * channels + i % channels] +=
            support_item(support, embedding->output_gradient, i);
    }
    for (size_t i = 0; i < embedding->vocabulary * channels; i++) {
        support_near("token_gradient", i, embedding->token_gradient[i], token_before[i] + token[i],
                     2e-6);
    }
    for (size_t i = 0; i < embedding->length * channels; i++) {
        support_near("position_gradient", i, embedding->position_gradient[i],
                     position_before[i] + position[i], 2e-6);
    }
    free(token);
    free(position);
}

static void run_case(struct support *support, const void *shape)
{
    struct embedding embedding = *(const struct embedding *)shape;
    size_t rows = (size_t)embedding.batch * embedding.length;
    size_t items = rows * embedding.channels;
    size_t token_items = (size_t)embedding.vocabulary * embedding.channels;
    size_t position_items = (size_t)embedding.length * embedding.channels;
    int32_t *tokens = support_buffer(support, rows * sizeof(*tokens));
    float *token_before = support_floats(support, token_items, -1.0f, 1.0f);
    float *position_before = support_floats(support, position_items, -1.0f, 1.0f);

    for (size_t row = 0; row < rows; row++) {
        tokens[row] = (int32_t)support_draw(support, 0.0f, (float)embedding.vocabulary);
    }
    embedding.element = support->element;
    embedding.tokens = tokens;
    embedding.token_weight = support_items(support, token_items, -1.0f, 1.0f);
    embedding.position_weight = support_items(support, position_items, -1.0f, 1.0f);
    embedding.output = support_blank(support, items);
    embedding.output_gradient = support_items(support, items, -1.0f, 1.0f);
    embedding.token_gradient = support_output(support, token_items);
    embedding.position_gradient = support_output(support, position_items);
    memcpy(embedding.token_gradient, token_before, token_items * sizeof(float));
    memcpy(embedding.position_gradient, position_before, position_items * sizeof(float));
    ck_assert_int_eq(embedding_forward_host(NULL, &embedding), CAPU_OK);
    ck_assert_int_eq(embedding_backward_host(NULL, &embedding), CAPU_OK);
    for (size_t i = 0; support->is_reference_due && i < items; i++) {
        size_t row = i / embedding.channels;
        size_t channel = i % embedding.channels;
        size_t token = (size_t)tokens[row] * embedding.channels + channel;
        size_t position = row % embedding.length * embedding.channels + channel;

        support_stored(support, "output", i, support_item(support, embedding.output, i),
                       support_item(support, embedding.token_weight, token) +
                           support_item(support, embedding.position_weight, position),
                       1e-7);
    }
    if (support->is_reference_due) {
        check_backward(support, &embedding, token_before, position_before);
    }
    support_keep(support, embedding.output, support_bytes(support, items));
    support_keep(support, embedding.token_gradient, token_items * sizeof(float));
    support_keep(support, embedding.position_gradient, position_items * sizeof(float));
}

START_TEST(unknown_tokens_are_rejected)
{
    static const int32_t wrong[] = {-1, 2, INT32_MAX};
    float values[8] = {0};

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct embedding embedding = {.tokens = &wrong[i],
                                      .token_weight = values,
                                      .position_weight = values,
                                      .output = values,
                                      .output_gradient = values,
                                      .token_gradient = values,
                                      .position_gradient = values,
                                      .batch = 1,
                                      .length = 1,
                                      .channels = 4,
                                      .vocabulary = 2};
        ck_assert_int_eq(embedding_forward_host(NULL, &embedding), CAPU_INVALID);
        ck_assert_int_eq(embedding_backward_host(NULL, &embedding), CAPU_INVALID);
    }
}
END_TEST

SUPPORT_TESTS_IN_BOTH_TYPES(run_case, shapes)

int main(void)
{
    Suite *suite = suite_create("embedding");
    TCase *tests = tcase_create("embedding");

    add_reference_tests(tests);
    tcase_add_test(tests, unknown_tokens_are_rejected);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

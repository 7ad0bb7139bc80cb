/* copies: fp32 is not copied, bf16 is; what is read stays, what is written comes back rounded. */
#include "kernels/copies.h"

#include "tests/support/suite.h"

#define COUNT ((size_t)20011)

static uint16_t *make(void)
{
    uint16_t *items = malloc(COUNT * sizeof(*items));

    ck_assert_ptr_nonnull(items);
    for (size_t i = 0; i < COUNT; i++) {
        items[i] = element_round((float)i);
    }
    return items;
}

START_TEST(gives_floats_back_themselves)
{
    struct copies copies = {.element = ELEMENT_FP32};
    float items[3] = {1.0f, 2.0f, 3.0f};

    ck_assert_ptr_eq(copies_read(&copies, items, 3), items);
    ck_assert_ptr_eq(copies_write(&copies, items, 3), items);
    ck_assert_ptr_eq(copies_update(&copies, items, 3), items);
    ck_assert_ptr_null(copies_update(&copies, NULL, 3));
    ck_assert_int_eq(copies_finish(&copies), CAPU_OK);
}
END_TEST

START_TEST(copies_bf16_and_rounds_it_back)
{
    struct copies copies = {.element = ELEMENT_BF16};
    uint16_t *read = make();
    uint16_t *written = make();
    uint16_t *updated = make();
    float *from = (float *)copies_read(&copies, read, COUNT);
    float *to = copies_write(&copies, written, COUNT);
    float *both = copies_update(&copies, updated, COUNT);

    ck_assert_ptr_null(copies_read(&copies, NULL, COUNT));
    ck_assert_int_eq(copies.status, CAPU_OK);
    for (size_t i = 0; i < COUNT; i++) {
        ck_assert_float_eq(from[i], element_widen(element_round((float)i)));
        ck_assert_float_eq(both[i], from[i]);
        to[i] = 0.1f;
        both[i] += 0.1f;
        from[i] = -1.0f; /* a copy: nobody sees it */
    }
    ck_assert_int_eq(copies_finish(&copies), CAPU_OK);
    for (size_t i = 0; i < COUNT; i++) {
        uint16_t before = element_round((float)i);

        ck_assert_uint_eq(read[i], before);
        ck_assert_uint_eq(written[i], element_round(0.1f));
        ck_assert_uint_eq(updated[i], element_round(element_widen(before) + 0.1f));
    }
    free(read);
    free(written);
    free(updated);
}
END_TEST

/* An operation that was refused, or found no memory, leaves everything as it was. */
START_TEST(writes_nothing_after_a_failure)
{
    struct copies copies = {.element = ELEMENT_BF16, .status = CAPU_INVALID};
    uint16_t *items = make();

    ck_assert_ptr_null(copies_update(&copies, items, COUNT));
    ck_assert_int_eq(copies_finish(&copies), CAPU_INVALID);
    copies = (struct copies){.element = ELEMENT_BF16};
    copies_write(&copies, items, COUNT)[0] = 7.0f;
    ck_assert_ptr_null(copies_read(&copies, items, SIZE_MAX / 2));
    ck_assert_int_eq(copies.status, CAPU_NO_HOST_MEMORY);
    ck_assert_int_eq(copies_finish(&copies), CAPU_NO_HOST_MEMORY);
    ck_assert_uint_eq(items[0], 0);
    free(items);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("copies");
    TCase *tests = tcase_create("copies");

    tcase_add_test(tests, gives_floats_back_themselves);
    tcase_add_test(tests, copies_bf16_and_rounds_it_back);
    tcase_add_test(tests, writes_nothing_after_a_failure);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

/*
 * copies: fp32 is used in place, bf16 is copied. What is only read does not change, what is written
 * is rounded back.
 */
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

START_TEST(floats_are_used_in_place)
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

START_TEST(bf16_is_copied_and_rounded_back)
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
        from[i] = -1.0f; /* changes only the copy */
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

/* An operation that was rejected or ran out of memory changes nothing. */
START_TEST(a_failure_writes_nothing)
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

    tcase_add_test(tests, floats_are_used_in_place);
    tcase_add_test(tests, bf16_is_copied_and_rounded_back);
    tcase_add_test(tests, a_failure_writes_nothing);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

/* Arrays: growing keeps the elements and doubles the capacity; a failure changes nothing. */
#include "base/array.h"

#include "tests/support/malloc_faults.h"
#include "tests/support/suite.h"

#include <stdint.h>

START_TEST(growing_keeps_the_elements)
{
    uint32_t *elements = NULL;
    size_t capacity = 0;
    size_t growths = 0;

    for (size_t count = 0; count < 100000; count++) {
        size_t before = capacity;

        ck_assert(array_reserve(&elements, &capacity, count + 1, sizeof(*elements)));
        ck_assert_uint_gt(capacity, count);
        elements[count] = (uint32_t)count * 7;
        if (capacity != before) {
            ck_assert_uint_ge(capacity, before * 2);
            growths++;
        }
    }
    for (size_t i = 0; i < 100000; i++) {
        ck_assert_uint_eq(elements[i], (uint32_t)i * 7);
    }
    ck_assert_uint_le(growths, 14);
    free(elements);
}
END_TEST

START_TEST(capacity_is_at_least_the_count_needed)
{
    char *bytes = NULL;
    size_t capacity = 0;

    ck_assert(array_reserve(&bytes, &capacity, 0, 1));
    ck_assert_ptr_null(bytes);
    ck_assert(array_reserve(&bytes, &capacity, 1000, 1));
    ck_assert_uint_eq(capacity, 1000);
    ck_assert(array_reserve(&bytes, &capacity, 999, 1));
    ck_assert_uint_eq(capacity, 1000);
    ck_assert(array_reserve(&bytes, &capacity, 1001, 1));
    ck_assert_uint_eq(capacity, 2000);
    free(bytes);
}
END_TEST

START_TEST(failed_allocations_change_nothing)
{
    uint64_t *elements = NULL;
    uint64_t *before;
    size_t capacity = 0;
    bool is_done;

    ck_assert(array_reserve(&elements, &capacity, 16, sizeof(*elements)));
    elements[15] = 4;
    before = elements;
    malloc_faults_arm(1, true);
    is_done = array_reserve(&elements, &capacity, 17, sizeof(*elements));
    malloc_faults_arm(0, false);
    ck_assert(!is_done);
    ck_assert(!array_reserve(&elements, &capacity, SIZE_MAX, sizeof(*elements)));
    ck_assert(
        !array_reserve(&elements, &capacity, SIZE_MAX / sizeof(*elements) + 1, sizeof(*elements)));
    ck_assert_ptr_eq(elements, before);
    ck_assert_uint_eq(capacity, 16);
    ck_assert_uint_eq(elements[15], 4);
    free(elements);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("array");
    TCase *tcase = tcase_create("array");

    tcase_add_test(tcase, growing_keeps_the_elements);
    tcase_add_test(tcase, capacity_is_at_least_the_count_needed);
    tcase_add_test(tcase, failed_allocations_change_nothing);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}

/* Hash tables: put, get and remove, compared with a plain array, with keys that collide. */
#include "base/table.h"

#include "tests/support/malloc_faults.h"
#include "tests/support/seed.h"
#include "tests/support/suite.h"

#define KEYS 600

START_TEST(tables_match_the_model)
{
    uint64_t state = seed_start("table");
    uint64_t stride = UINT64_C(1) << (_i * 7);
    bool there[KEYS] = {false};
    struct table table = {0};
    uint64_t value = 5;

    ck_assert(!table_get(&table, 0, &value));
    table_remove(&table, 0);
    for (uint64_t step = 1; step < 20000; step++) {
        size_t key = seed_below(&state, KEYS);

        if (there[key]) {
            ck_assert(table_get(&table, key * stride, &value));
            ck_assert_uint_eq(value, key + 7);
            table_remove(&table, key * stride);
        } else {
            ck_assert(!table_get(&table, key * stride, &value));
            ck_assert(table_reserve(&table, table.count + 1));
            table_put(&table, key * stride, key + 7);
        }
        there[key] = !there[key];
    }
    value = 0;
    for (size_t key = 0; key < KEYS; key++) {
        uint64_t found;

        ck_assert(table_get(&table, key * stride, &found) == there[key]);
        value += there[key];
    }
    ck_assert_uint_eq(value, table.count);
    ck_assert(!table_get(&table, TABLE_NO_KEY, &value));
    table_remove(&table, TABLE_NO_KEY);
    ck_assert_uint_eq(value, table.count);
    table_finish(&table);
}
END_TEST

START_TEST(looking_up_begins_at_the_home)
{
    struct table table = {0};

    ck_assert_ptr_null(table_home(&table, 3));
    ck_assert(table_reserve(&table, 1));
    ck_assert_ptr_null(table_home(&table, 3));
    ck_assert_ptr_eq(&table.entries[table_put(&table, 3, 4)], table_home(&table, 3));
    table_finish(&table);
}
END_TEST

START_TEST(failed_allocations_change_nothing)
{
    struct table table = {0};
    uint64_t value;
    bool is_done;

    ck_assert(!table_reserve(&table, SIZE_MAX));
    ck_assert(table_reserve(&table, 1));
    table_put(&table, 3, 4);
    malloc_faults_arm(1, true);
    is_done = table_reserve(&table, 1000);
    malloc_faults_arm(0, false);
    ck_assert(!is_done);
    ck_assert(table_get(&table, 3, &value));
    ck_assert_uint_eq(value, 4);
    table_finish(&table);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("table");
    TCase *tcase = tcase_create("table");

    tcase_add_loop_test(tcase, tables_match_the_model, 0, 8);
    tcase_add_test(tcase, looking_up_begins_at_the_home);
    tcase_add_test(tcase, failed_allocations_change_nothing);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}

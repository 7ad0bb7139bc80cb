/* The addresses that the n-th allocation of an iteration had last time. */
#include "runtime/plan/label_records.h"

#include "tests/support/suite.h"

static void note(struct address_memo *memo, char *address, uint64_t bytes)
{
    ck_assert_int_eq(address_memo_note(memo, address, bytes), CAPU_OK);
}

START_TEST(proposes_by_order_and_size)
{
    static char memory[200];
    struct address_memo memo = {0};

    address_memo_begin(&memo);
    for (int i = 0; i < 200; i++) {
        ck_assert_ptr_null(address_memo_propose(&memo, 8));
        note(&memo, memory + i, 8);
    }
    ck_assert_ptr_null(address_memo_propose(&memo, 8));
    address_memo_begin(&memo);
    for (int i = 0; i < 200; i++) {
        ck_assert_ptr_null(address_memo_propose(&memo, 9));
        ck_assert_ptr_eq(address_memo_propose(&memo, 8), memory + i);
        note(&memo, memory + 199 - i, 8);
    }
    address_memo_begin(&memo);
    ck_assert_ptr_eq(address_memo_propose(&memo, 8), memory + 199);
    address_memo_finish(&memo);
}
END_TEST

/* An occasional smaller batch displaces nothing; of many sizes, the one least recently seen is
   replaced. */
START_TEST(a_few_sizes_are_remembered)
{
    static char memory[ADDRESS_MEMO_SIZES + 2];
    struct address_memo memo = {0};

    for (uint64_t bytes = 1; bytes <= ADDRESS_MEMO_SIZES; bytes++) {
        address_memo_begin(&memo);
        note(&memo, memory + bytes, bytes);
    }
    for (uint64_t bytes = 1; bytes <= ADDRESS_MEMO_SIZES; bytes++) {
        address_memo_begin(&memo);
        ck_assert_ptr_eq(address_memo_propose(&memo, bytes), memory + bytes);
    }
    note(&memo, memory, 1); /* at another address: now the newest */
    address_memo_begin(&memo);
    note(&memo, memory + ADDRESS_MEMO_SIZES + 1, ADDRESS_MEMO_SIZES + 1);
    address_memo_begin(&memo);
    ck_assert_ptr_eq(address_memo_propose(&memo, 1), memory);
    ck_assert_ptr_null(address_memo_propose(&memo, 2));
    for (uint64_t bytes = 3; bytes <= ADDRESS_MEMO_SIZES + 1; bytes++) {
        ck_assert_ptr_eq(address_memo_propose(&memo, bytes), memory + bytes);
    }
    address_memo_finish(&memo);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("runtime address_memo");
    TCase *tcase = tcase_create("address_memo");

    tcase_add_test(tcase, proposes_by_order_and_size);
    tcase_add_test(tcase, a_few_sizes_are_remembered);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}

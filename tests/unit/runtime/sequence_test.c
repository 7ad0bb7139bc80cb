/* Which address the n-th allocation of an iteration had last time. */
#include "runtime/sequence.h"

#include "tests/support/suite.h"

static void note(struct sequence *sequence, char *address, uint64_t bytes)
{
    ck_assert_int_eq(sequence_note(sequence, address, bytes), CAPU_OK);
}

START_TEST(proposes_by_order_and_size)
{
    static char memory[200];
    struct sequence sequence = {0};

    note(&sequence, memory, 1); /* outside: not counted */
    sequence_begin(&sequence, "train", 1);
    for (int i = 0; i < 200; i++) {
        ck_assert_ptr_null(sequence_propose(&sequence, 8));
        note(&sequence, memory + i, 8);
    }
    sequence_end(&sequence);
    ck_assert_ptr_null(sequence_propose(&sequence, 8));
    sequence_begin(&sequence, "train", 2);
    for (int i = 0; i < 200; i++) {
        ck_assert_ptr_null(sequence_propose(&sequence, 9));
        ck_assert_ptr_eq(sequence_propose(&sequence, 8), memory + i);
        note(&sequence, memory + 199 - i, 8);
    }
    sequence_end(&sequence);
    sequence_begin(&sequence, "train", 3);
    ck_assert_ptr_eq(sequence_propose(&sequence, 8), memory + 199);
    sequence_finish(&sequence);
}
END_TEST

/* A smaller batch in between takes nothing away; of many sizes the one not seen for longest goes.
 */
START_TEST(a_few_sizes_are_remembered)
{
    static char memory[SEQUENCE_SIZES + 2];
    struct sequence sequence = {0};
    uint64_t iteration = 1;

    for (uint64_t bytes = 1; bytes <= SEQUENCE_SIZES; bytes++) {
        sequence_begin(&sequence, "train", iteration++);
        note(&sequence, memory + bytes, bytes);
    }
    for (uint64_t bytes = 1; bytes <= SEQUENCE_SIZES; bytes++) {
        sequence_begin(&sequence, "train", iteration++);
        ck_assert_ptr_eq(sequence_propose(&sequence, bytes), memory + bytes);
    }
    note(&sequence, memory, 1); /* elsewhere: the newest now */
    sequence_begin(&sequence, "train", iteration++);
    note(&sequence, memory + SEQUENCE_SIZES + 1, SEQUENCE_SIZES + 1);
    sequence_begin(&sequence, "train", iteration);
    ck_assert_ptr_eq(sequence_propose(&sequence, 1), memory);
    ck_assert_ptr_null(sequence_propose(&sequence, 2));
    for (uint64_t bytes = 3; bytes <= SEQUENCE_SIZES + 1; bytes++) {
        ck_assert_ptr_eq(sequence_propose(&sequence, bytes), memory + bytes);
    }
    sequence_finish(&sequence);
}
END_TEST

START_TEST(the_label_least_recently_used_makes_way)
{
    static const char labels[SEQUENCE_LABELS + 1];
    static char memory[SEQUENCE_LABELS + 1];
    struct sequence sequence = {0};
    uint64_t iteration = 1;

    for (int i = 0; i <= SEQUENCE_LABELS; i++) {
        sequence_begin(&sequence, &labels[i], iteration++);
        note(&sequence, &memory[i], 8);
        sequence_end(&sequence);
        sequence_begin(&sequence, &labels[1], iteration++); /* kept in use */
        sequence_end(&sequence);
    }
    sequence_begin(&sequence, &labels[1], iteration++);
    ck_assert_ptr_nonnull(sequence_propose(&sequence, 8));
    sequence_begin(&sequence, &labels[SEQUENCE_LABELS], iteration++);
    ck_assert_ptr_nonnull(sequence_propose(&sequence, 8));
    sequence_begin(&sequence, &labels[0], iteration++);
    ck_assert_ptr_null(sequence_propose(&sequence, 8));
    sequence_finish(&sequence);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("runtime sequence");
    TCase *tcase = tcase_create("sequence");

    tcase_add_test(tcase, proposes_by_order_and_size);
    tcase_add_test(tcase, a_few_sizes_are_remembered);
    tcase_add_test(tcase, the_label_least_recently_used_makes_way);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}

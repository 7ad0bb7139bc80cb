/* One record per label: which label and which plan is replaced, and that all parts of a record are
   replaced together. */
#include "runtime/plan/label_records.h"

#include "tests/support/suite.h"
#include "tests/unit/runtime/entries.h"

START_TEST(a_label_is_found_again)
{
    static const char labels[2];
    struct label_records records = {0};
    struct label_record *record = label_records_use(&records, &labels[0], 1, NULL);

    ck_assert_ptr_eq(record->label, &labels[0]);
    ck_assert_ptr_null(label_records_find(&records, &labels[1]));
    predictor_add(&record->predictor, 7);
    ck_assert_ptr_ne(label_records_use(&records, &labels[1], 2, NULL), record);
    ck_assert_ptr_eq(label_records_use(&records, &labels[0], 3, NULL), record);
    ck_assert_ptr_eq(label_records_find(&records, &labels[0]), record);
    ck_assert_uint_eq(predictor_newest(&record->predictor), 7);
    label_records_finish(&records);
}
END_TEST

/* Gives a record everything that it can hold: an iteration, an address, a plan and a refusal. */
static void fill(struct label_records *records, struct label_record *record, void *address)
{
    predictor_add(&record->predictor, record->used);
    address_memo_begin(&record->addresses);
    ck_assert_int_eq(address_memo_note(&record->addresses, address, 8), CAPU_OK);
    ck_assert(
        label_records_add_plan(records, record, make_entry(1, record->used), NULL, UINT64_MAX));
    plan_cache_refuse(&record->plans, 2, "no plan");
}

START_TEST(the_label_least_recently_used_is_replaced)
{
    static const char labels[LABEL_RECORDS + 1];
    static char memory[LABEL_RECORDS + 1];
    struct label_records records = {0};
    struct label_record *record;
    uint64_t iteration = 1;

    for (int i = 0; i < LABEL_RECORDS; i++) {
        fill(&records, label_records_use(&records, &labels[i], iteration++, NULL), &memory[i]);
        label_records_use(&records, &labels[1], iteration++, NULL); /* stays in use */
    }
    record = label_records_use(&records, &labels[LABEL_RECORDS], iteration++, NULL);
    ck_assert_ptr_null(label_records_find(&records, &labels[0]));
    ck_assert_uint_eq(record->predictor.count, 0);
    ck_assert_uint_eq(record->plans.count, 0);
    ck_assert_ptr_null(plan_cache_refusal(&record->plans, 2));
    address_memo_begin(&record->addresses);
    ck_assert_ptr_null(address_memo_propose(&record->addresses, 8));
    for (int i = 1; i < LABEL_RECORDS; i++) {
        record = label_records_find(&records, &labels[i]);
        ck_assert_ptr_nonnull(record);
        ck_assert_uint_eq(record->predictor.count, 1);
        ck_assert_str_eq(plan_cache_refusal(&record->plans, 2), "no plan");
        address_memo_begin(&record->addresses);
        ck_assert_ptr_eq(address_memo_propose(&record->addresses, 8), &memory[i]);
    }
    label_records_use(&records, &labels[0], iteration, NULL);
    ck_assert_ptr_null(label_records_find(&records, &labels[2]));
    ck_assert_ptr_nonnull(label_records_find(&records, &labels[1]));
    label_records_finish(&records);
}
END_TEST

static struct label_record *find_with(struct label_records *records, uint64_t signature)
{
    for (size_t i = 0; i < records->count; i++) {
        if (plan_cache_find(&records->slots[i].record->plans, signature) != NULL) {
            return records->slots[i].record;
        }
    }
    return NULL;
}

/* Room for this many plans; the bytes of one are missing for one more. */
enum { PLANS = 20 };
#define LIMIT ((uint64_t)(PLANS + 1) * ENTRY_BYTES - 1)

START_TEST(the_plans_least_recently_used_of_all_labels_are_discarded)
{
    static const char labels[2];
    struct label_records records = {0};
    struct label_record *first = label_records_use(&records, &labels[0], 1, NULL);
    struct label_record *second = label_records_use(&records, &labels[1], 2, NULL);
    const struct plan_entry *active;
    struct plan_entry *large;

    for (uint64_t i = 0; i < PLANS; i++) {
        struct label_record *record = i % 2 == 0 ? first : second;

        ck_assert(label_records_add_plan(&records, record, make_entry(i, 100 - i), NULL, LIMIT));
        ck_assert_ptr_eq(find_with(&records, i), record);
        ck_assert_uint_eq(label_records_plan_bytes(&records), (i + 1) * ENTRY_BYTES);
    }
    ck_assert(!first->was_displaced && !second->was_displaced);
    /* The last two are the oldest, and one of them is active. */
    active = plan_cache_find(&second->plans, PLANS - 1);
    ck_assert(label_records_add_plan(&records, second, make_entry(50, 200), active, LIMIT));
    ck_assert_ptr_eq(plan_cache_find(&second->plans, PLANS - 1), active);
    ck_assert_ptr_null(find_with(&records, PLANS - 2));
    ck_assert_ptr_eq(find_with(&records, 50), second);
    ck_assert(first->was_displaced && !second->was_displaced);
    /* A large one takes the place of several. */
    large = make_entry(51, 201);
    large->guide->bytes += 2 * ENTRY_BYTES;
    ck_assert(label_records_add_plan(&records, first, large, active, LIMIT));
    for (uint64_t i = 0; i < PLANS; i++) {
        ck_assert((find_with(&records, i) == NULL) == (i >= PLANS - 5 && i != PLANS - 1));
    }
    ck_assert_uint_eq(label_records_plan_bytes(&records), PLANS * ENTRY_BYTES);
    label_records_finish(&records);
}
END_TEST

START_TEST(the_active_and_the_newest_plan_are_always_kept)
{
    static const char label;
    struct label_records records = {0};
    struct label_record *record = label_records_use(&records, &label, 1, NULL);
    struct plan_entry *active = make_entry(1, 1);

    ck_assert(label_records_add_plan(&records, record, active, NULL, 1));
    ck_assert(label_records_add_plan(&records, record, make_entry(2, 2), active, 1));
    ck_assert(label_records_add_plan(&records, record, make_entry(3, 3), active, 1));
    ck_assert_uint_eq(record->plans.count, 2);
    ck_assert_ptr_eq(plan_cache_find(&record->plans, 1), active);
    ck_assert_ptr_nonnull(plan_cache_find(&record->plans, 3));
    ck_assert(record->was_displaced);
    label_records_finish(&records);
}
END_TEST

START_TEST(wrong_plans_are_discarded)
{
    static const char labels[2];
    struct label_records records = {0};
    struct label_record *first = label_records_use(&records, &labels[0], 1, NULL);
    struct label_record *second = label_records_use(&records, &labels[1], 2, NULL);

    for (uint64_t i = 0; i < 6; i++) {
        struct plan_entry *entry = make_entry(i, i);

        entry->feedback.is_wrong = i != 2;
        ck_assert(
            label_records_add_plan(&records, i < 4 ? first : second, entry, NULL, UINT64_MAX));
    }
    label_records_discard_wrong(&records);
    ck_assert_uint_eq(first->plans.count, 1);
    ck_assert_uint_eq(second->plans.count, 0);
    ck_assert_ptr_nonnull(plan_cache_find(&first->plans, 2));
    label_records_finish(&records);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("runtime label_records");
    TCase *tcase = tcase_create("label_records");

    tcase_add_test(tcase, a_label_is_found_again);
    tcase_add_test(tcase, the_label_least_recently_used_is_replaced);
    tcase_add_test(tcase, the_plans_least_recently_used_of_all_labels_are_discarded);
    tcase_add_test(tcase, the_active_and_the_newest_plan_are_always_kept);
    tcase_add_test(tcase, wrong_plans_are_discarded);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}

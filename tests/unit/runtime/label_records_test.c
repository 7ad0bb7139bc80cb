/* One record per label: which label and which plan is replaced, and that all parts of a record are
   replaced together. */
#include "runtime/label_records.h"

#include "tests/support/suite.h"

#include <stdlib.h>

static struct plan_entry *make_entry(uint64_t signature, uint64_t used)
{
    struct plan_entry *entry = calloc(1, sizeof(*entry));

    ck_assert_ptr_nonnull(entry);
    entry->guide = calloc(1, sizeof(*entry->guide));
    ck_assert_ptr_nonnull(entry->guide);
    entry->guide->signature = signature;
    entry->used = used;
    return entry;
}

START_TEST(a_label_is_found_again)
{
    static const char labels[2];
    struct label_records records = {0};
    struct label_record *record = label_records_use(&records, &labels[0], 1);

    ck_assert_ptr_eq(record->label, &labels[0]);
    ck_assert_ptr_null(label_records_find(&records, &labels[1]));
    predictor_add(&record->predictor, 7);
    ck_assert_ptr_ne(label_records_use(&records, &labels[1], 2), record);
    ck_assert_ptr_eq(label_records_use(&records, &labels[0], 3), record);
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
    label_records_add_plan(records, record, make_entry(1, record->used), NULL);
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
        fill(&records, label_records_use(&records, &labels[i], iteration++), &memory[i]);
        label_records_use(&records, &labels[1], iteration++); /* stays in use */
    }
    record = label_records_use(&records, &labels[LABEL_RECORDS], iteration++);
    ck_assert_ptr_null(label_records_find(&records, &labels[0]));
    ck_assert_uint_eq(record->predictor.count, 0);
    ck_assert_uint_eq(record->plans.entry_count, 0);
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
    label_records_use(&records, &labels[0], iteration);
    ck_assert_ptr_null(label_records_find(&records, &labels[2]));
    ck_assert_ptr_nonnull(label_records_find(&records, &labels[1]));
    label_records_finish(&records);
}
END_TEST

static struct label_record *find_with(struct label_records *records, uint64_t signature)
{
    for (size_t i = 0; i < LABEL_RECORDS; i++) {
        if (plan_cache_find(&records->list[i].plans, signature) != NULL) {
            return &records->list[i];
        }
    }
    return NULL;
}

START_TEST(the_plan_least_recently_used_of_all_labels_is_replaced)
{
    static const char labels[2];
    struct label_records records = {0};
    struct label_record *first = label_records_use(&records, &labels[0], 1);
    struct label_record *second = label_records_use(&records, &labels[1], 2);
    const struct plan_entry *active;

    for (uint64_t i = 0; i < PLAN_CACHE_ENTRIES; i++) {
        struct label_record *record = i % 2 == 0 ? first : second;

        ck_assert_ptr_null(find_with(&records, i));
        label_records_add_plan(&records, record, make_entry(i, 100 - i), NULL);
        ck_assert_ptr_eq(find_with(&records, i), record);
    }
    /* The last two are the oldest, and one of them is active. */
    active = plan_cache_find(&second->plans, PLAN_CACHE_ENTRIES - 1);
    label_records_add_plan(&records, first, make_entry(50, 200), active);
    ck_assert_ptr_eq(plan_cache_find(&second->plans, PLAN_CACHE_ENTRIES - 1), active);
    ck_assert_ptr_null(find_with(&records, PLAN_CACHE_ENTRIES - 2));
    ck_assert_ptr_eq(find_with(&records, 50), first);
    /* After one was discarded there is room, and none is replaced. */
    plan_cache_discard(&first->plans, plan_cache_find(&first->plans, 0));
    label_records_add_plan(&records, second, make_entry(51, 201), NULL);
    for (uint64_t i = 1; i < PLAN_CACHE_ENTRIES; i++) {
        ck_assert(i == PLAN_CACHE_ENTRIES - 2 || find_with(&records, i) != NULL);
    }
    ck_assert_ptr_eq(find_with(&records, 51), second);
    label_records_finish(&records);
}
END_TEST

START_TEST(wrong_plans_are_discarded)
{
    static const char labels[2];
    struct label_records records = {0};
    struct label_record *first = label_records_use(&records, &labels[0], 1);
    struct label_record *second = label_records_use(&records, &labels[1], 2);

    for (uint64_t i = 0; i < 6; i++) {
        struct plan_entry *entry = make_entry(i, i);

        entry->feedback.is_wrong = i != 2;
        label_records_add_plan(&records, i < 4 ? first : second, entry, NULL);
    }
    label_records_discard_wrong(&records);
    ck_assert_uint_eq(first->plans.entry_count, 1);
    ck_assert_uint_eq(second->plans.entry_count, 0);
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
    tcase_add_test(tcase, the_plan_least_recently_used_of_all_labels_is_replaced);
    tcase_add_test(tcase, wrong_plans_are_discarded);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}

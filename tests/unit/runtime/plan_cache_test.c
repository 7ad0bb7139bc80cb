/* The plans and refusals of one label: finding them by signature, and which one is replaced when
   there are too many. */
#include "runtime/plan/plan_cache.h"

#include "tests/support/suite.h"
#include "tests/unit/runtime/entries.h"

#include <string.h>

enum { PLANS = 100 };

START_TEST(plans_are_found_by_signature)
{
    struct plan_cache cache = {0};

    ck_assert_ptr_null(plan_cache_oldest(&cache, NULL));
    for (uint64_t i = 0; i < PLANS; i++) {
        ck_assert_ptr_null(plan_cache_find(&cache, i));
        ck_assert(plan_cache_add(&cache, make_entry(i, 100 - i)));
    }
    for (uint64_t i = 0; i < PLANS; i++) {
        ck_assert_uint_eq(plan_cache_find(&cache, i)->guide->signature, i);
    }
    plan_cache_discard(&cache, plan_cache_find(&cache, 1));
    ck_assert_uint_eq(cache.count, PLANS - 1);
    ck_assert_uint_eq(cache.bytes, (PLANS - 1) * ENTRY_BYTES);
    ck_assert_ptr_null(plan_cache_find(&cache, 1));
    ck_assert_ptr_nonnull(plan_cache_find(&cache, 0));
    ck_assert_ptr_nonnull(plan_cache_find(&cache, PLANS - 1));
    plan_cache_finish(&cache);
}
END_TEST

START_TEST(the_oldest_plan_is_never_the_active_one)
{
    struct plan_cache cache = {0};

    for (uint64_t i = 0; i < 3; i++) {
        ck_assert(plan_cache_add(&cache, make_entry(i, 100 - i)));
    }
    ck_assert_uint_eq(plan_cache_oldest(&cache, NULL)->guide->signature, 2);
    ck_assert_uint_eq(plan_cache_oldest(&cache, plan_cache_find(&cache, 2))->guide->signature, 1);
    plan_cache_discard(&cache, plan_cache_find(&cache, 0));
    plan_cache_discard(&cache, plan_cache_find(&cache, 1));
    ck_assert_ptr_null(plan_cache_oldest(&cache, plan_cache_find(&cache, 2)));
    plan_cache_finish(&cache);
}
END_TEST

static struct plan_entry *make_better(uint64_t signature, uint64_t predicted_ns)
{
    struct plan_entry *entry = make_entry(signature, 0);

    entry->feedback.predicted_ns = predicted_ns;
    return entry;
}

/* A better plan waits with the one that it is to replace: its gain is the difference between their
   predictions, and its bytes count. */
START_TEST(a_better_plan_waits_and_takes_the_place)
{
    struct plan_cache cache = {0};
    struct plan_entry *entry = make_better(7, 1000);
    struct plan_entry *better = make_better(7, 900);

    entry->stage = 3;
    ck_assert(plan_cache_add(&cache, make_better(6, 1)));
    ck_assert(plan_cache_add(&cache, entry));
    plan_cache_add_better(&cache, entry, make_better(7, 950));
    ck_assert_uint_eq(entry->improvement.gain_ns, 50);
    entry->improvement.forgone_ns = 20;
    plan_cache_add_better(&cache, entry, better);
    ck_assert_uint_eq(entry->improvement.gain_ns, 100);
    ck_assert_uint_eq(entry->improvement.forgone_ns, 20);
    ck_assert_uint_eq(cache.bytes, 3 * ENTRY_BYTES);
    ck_assert_uint_eq(plan_entry_bytes(entry), 2 * ENTRY_BYTES);
    ck_assert_ptr_eq(plan_cache_find(&cache, 7), entry);
    ck_assert_ptr_eq(plan_cache_promote(&cache, entry), better);
    ck_assert_ptr_eq(plan_cache_find(&cache, 7), better);
    ck_assert_uint_eq(better->stage, 4);
    ck_assert_uint_eq(cache.bytes, 2 * ENTRY_BYTES);

    plan_cache_add_better(&cache, better, make_better(7, 800));
    plan_cache_discard_better(&cache, better);
    plan_cache_discard_better(&cache, better);
    ck_assert_ptr_null(better->better);
    ck_assert_uint_eq(better->improvement.gain_ns, 0);
    ck_assert_uint_eq(cache.bytes, 2 * ENTRY_BYTES);
    plan_cache_add_better(&cache, better, make_better(7, 700));
    plan_cache_discard(&cache, better);
    ck_assert_uint_eq(cache.bytes, ENTRY_BYTES);
    plan_cache_finish(&cache);
}
END_TEST

START_TEST(the_oldest_refusal_is_replaced)
{
    static char text[2 * PLAN_CACHE_TEXT_BYTES];
    struct plan_cache cache = {0};

    for (uint64_t i = 0; i <= PLAN_CACHE_REFUSALS; i++) {
        ck_assert_ptr_null(plan_cache_refusal(&cache, i));
        plan_cache_refuse(&cache, i, i == 2 ? "no pages" : "no plan");
    }
    ck_assert_ptr_null(plan_cache_refusal(&cache, 0));
    ck_assert_str_eq(plan_cache_refusal(&cache, 2), "no pages");
    ck_assert_str_eq(plan_cache_refusal(&cache, PLAN_CACHE_REFUSALS), "no plan");
    memset(text, 'x', sizeof(text) - 1);
    plan_cache_refuse(&cache, 99, text);
    ck_assert_uint_eq(strlen(plan_cache_refusal(&cache, 99)), PLAN_CACHE_TEXT_BYTES - 1);
    plan_cache_finish(&cache);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("runtime plan_cache");
    TCase *tcase = tcase_create("plan_cache");

    tcase_add_test(tcase, plans_are_found_by_signature);
    tcase_add_test(tcase, the_oldest_plan_is_never_the_active_one);
    tcase_add_test(tcase, a_better_plan_waits_and_takes_the_place);
    tcase_add_test(tcase, the_oldest_refusal_is_replaced);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}

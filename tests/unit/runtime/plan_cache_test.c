/* The plans and refusals of one label: finding them by signature, and which one is replaced when
   there are too many. */
#include "runtime/plan_cache.h"

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
    tcase_add_test(tcase, the_oldest_refusal_is_replaced);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}

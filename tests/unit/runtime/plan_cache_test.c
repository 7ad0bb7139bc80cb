/* Kept guides and refusals: found by label and signature, and which of too many goes. */
#include "runtime/plan_cache.h"

#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

static const char *const label = "train";

static struct guide *make(uint64_t signature, uint64_t used)
{
    struct guide *guide = calloc(1, sizeof(*guide));

    ck_assert_ptr_nonnull(guide);
    guide->label = label;
    guide->signature = signature;
    guide->used = used;
    return guide;
}

START_TEST(the_guide_least_recently_used_makes_way)
{
    struct plan_cache cache = {0};

    for (uint64_t i = 0; i < PLAN_CACHE_GUIDES; i++) {
        ck_assert_ptr_null(plan_cache_find(&cache, label, i));
        plan_cache_add(&cache, make(i, 100 - i), NULL);
    }
    ck_assert_ptr_null(plan_cache_find(&cache, "other", 0));
    /* The last two are the oldest, and one of them is in force. */
    plan_cache_add(&cache, make(50, 200), plan_cache_find(&cache, label, PLAN_CACHE_GUIDES - 1));
    ck_assert_ptr_nonnull(plan_cache_find(&cache, label, PLAN_CACHE_GUIDES - 1));
    ck_assert_ptr_null(plan_cache_find(&cache, label, PLAN_CACHE_GUIDES - 2));
    ck_assert_ptr_nonnull(plan_cache_find(&cache, label, 50));
    /* Where one was discarded nobody makes way. */
    plan_cache_discard(&cache, plan_cache_find(&cache, label, 0));
    ck_assert_ptr_null(plan_cache_find(&cache, label, 0));
    plan_cache_add(&cache, make(51, 201), NULL);
    for (uint64_t i = 1; i < PLAN_CACHE_GUIDES; i++) {
        ck_assert(i == PLAN_CACHE_GUIDES - 2 || plan_cache_find(&cache, label, i) != NULL);
    }
    plan_cache_finish(&cache);
}
END_TEST

START_TEST(the_oldest_refusal_makes_way)
{
    static char text[2 * PLAN_CACHE_TEXT_BYTES];
    struct plan_cache cache = {0};

    for (uint64_t i = 0; i <= PLAN_CACHE_REFUSALS; i++) {
        ck_assert_ptr_null(plan_cache_refusal(&cache, label, i));
        plan_cache_refuse(&cache, label, i, i == 2 ? "no pages" : "no plan");
    }
    ck_assert_ptr_null(plan_cache_refusal(&cache, label, 0));
    ck_assert_str_eq(plan_cache_refusal(&cache, label, 2), "no pages");
    ck_assert_str_eq(plan_cache_refusal(&cache, label, PLAN_CACHE_REFUSALS), "no plan");
    ck_assert_ptr_null(plan_cache_refusal(&cache, "other", 2));
    memset(text, 'x', sizeof(text) - 1);
    plan_cache_refuse(&cache, label, 99, text);
    ck_assert_uint_eq(strlen(plan_cache_refusal(&cache, label, 99)), PLAN_CACHE_TEXT_BYTES - 1);
    plan_cache_finish(&cache);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("runtime plan_cache");
    TCase *tcase = tcase_create("plan_cache");

    tcase_add_test(tcase, the_guide_least_recently_used_makes_way);
    tcase_add_test(tcase, the_oldest_refusal_makes_way);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}

/* Kept guides and refusals: found by label and signature, and which of too many goes. */
#include "runtime/kept.h"

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
    struct kept kept = {0};

    for (uint64_t i = 0; i < KEPT_GUIDES; i++) {
        ck_assert_ptr_null(kept_find(&kept, label, i));
        kept_add(&kept, make(i, 100 - i), NULL);
    }
    ck_assert_ptr_null(kept_find(&kept, "other", 0));
    /* The last two are the oldest, and one of them is in force. */
    kept_add(&kept, make(50, 200), kept_find(&kept, label, KEPT_GUIDES - 1));
    ck_assert_ptr_nonnull(kept_find(&kept, label, KEPT_GUIDES - 1));
    ck_assert_ptr_null(kept_find(&kept, label, KEPT_GUIDES - 2));
    ck_assert_ptr_nonnull(kept_find(&kept, label, 50));
    /* Where one was discarded nobody makes way. */
    kept_discard(&kept, kept_find(&kept, label, 0));
    ck_assert_ptr_null(kept_find(&kept, label, 0));
    kept_add(&kept, make(51, 201), NULL);
    for (uint64_t i = 1; i < KEPT_GUIDES; i++) {
        ck_assert(i == KEPT_GUIDES - 2 || kept_find(&kept, label, i) != NULL);
    }
    kept_finish(&kept);
}
END_TEST

START_TEST(the_oldest_refusal_makes_way)
{
    static char text[2 * KEPT_TEXT_BYTES];
    struct kept kept = {0};

    for (uint64_t i = 0; i <= KEPT_REFUSALS; i++) {
        ck_assert_ptr_null(kept_refusal(&kept, label, i));
        kept_refuse(&kept, label, i, i == 2 ? "no pages" : "no plan");
    }
    ck_assert_ptr_null(kept_refusal(&kept, label, 0));
    ck_assert_str_eq(kept_refusal(&kept, label, 2), "no pages");
    ck_assert_str_eq(kept_refusal(&kept, label, KEPT_REFUSALS), "no plan");
    ck_assert_ptr_null(kept_refusal(&kept, "other", 2));
    memset(text, 'x', sizeof(text) - 1);
    kept_refuse(&kept, label, 99, text);
    ck_assert_uint_eq(strlen(kept_refusal(&kept, label, 99)), KEPT_TEXT_BYTES - 1);
    kept_finish(&kept);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("runtime kept");
    TCase *tcase = tcase_create("kept");

    tcase_add_test(tcase, the_guide_least_recently_used_makes_way);
    tcase_add_test(tcase, the_oldest_refusal_makes_way);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}

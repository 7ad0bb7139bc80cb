/* Histories of events against a plain list of the same events. */
#include "interpose/period/history.h"

#include "tests/support/suite.h"

#include <stdlib.h>

enum { EVENTS = HISTORY_EVENTS + 5000 };

static uint64_t list[EVENTS];
static struct history *history;

static void start(void)
{
    history = calloc(1, sizeof(*history));
    ck_assert_ptr_nonnull(history);
    history_init(history);
}

static void add(uint64_t hash)
{
    list[history->count] = hash;
    history_add(history, hash, hash + 1, hash % 3 == 0, hash % 2 == 0);
}

static bool is_repeated(uint64_t length)
{
    uint64_t end = history->count;

    for (uint64_t i = 1; i <= length; i++) {
        if (list[end - i] != list[end - length - i]) {
            return false;
        }
    }
    return true;
}

static uint64_t before(uint64_t number)
{
    for (uint64_t i = number; i-- > 0 && history->count - i <= HISTORY_EVENTS;) {
        if (list[i] == list[number]) {
            return i;
        }
    }
    return HISTORY_NONE;
}

/* Repetitions of two hashes, and of three, among others. */
START_TEST(repetitions_are_those_of_the_list)
{
    uint64_t random = 1;
    uint64_t found = 0;

    start();
    for (int i = 0; i < 400; i++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
        add(random >> 62);
        for (uint64_t length = 1; 2 * length <= history->count; length++) {
            ck_assert_int_eq(history_is_repeated(history, length), is_repeated(length));
            found += is_repeated(length);
        }
        ck_assert_uint_eq(history_before(history, (uint64_t)i), before((uint64_t)i));
    }
    ck_assert(!history_is_repeated(history, 0));
    ck_assert(!history_is_repeated(history, history->count));
    ck_assert_uint_gt(found, 50);
    free(history);
}
END_TEST

/* The oldest events are forgotten: other hashes of their buckets are not taken for them. */
START_TEST(old_events_are_forgotten)
{
    start();
    for (uint64_t i = 0; i < EVENTS; i++) {
        /* One of a few thousand, of which several share a bucket; now and then one that is rare. */
        add(i % 20000 == 7 ? 1 : 2 + i % 4096 * (HISTORY_EVENTS / 8));
    }
    for (uint64_t i = EVENTS - 5000; i < EVENTS; i += 7) {
        ck_assert_uint_eq(history_before(history, i), before(i));
        ck_assert_uint_eq(history_get(history, i)->hash, list[i]);
        ck_assert_uint_eq(history_get(history, i)->wait_ns, list[i] + 1);
    }
    for (uint64_t length = 1; length <= HISTORY_LONGEST; length += 97) {
        ck_assert_int_eq(history_is_repeated(history, length), is_repeated(length));
    }
    ck_assert(history_is_repeated(history, 4096));
    ck_assert(!history_is_repeated(history, HISTORY_LONGEST + 1));
    free(history);
}
END_TEST

START_TEST(some_events_count)
{
    start();
    for (int k = 0; k < 2; k++) {
        for (uint64_t i = 0; i < 10; i++) {
            add(i); /* 0, 3, 6, 9 */
        }
    }
    ck_assert_uint_eq(history_counted(history, 10), 4);
    ck_assert_uint_eq(history_counted(history, 1), 1);
    free(history);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("history");
    TCase *cases = tcase_create("history");

    tcase_add_test(cases, repetitions_are_those_of_the_list);
    tcase_add_test(cases, old_events_are_forgotten);
    tcase_add_test(cases, some_events_count);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}

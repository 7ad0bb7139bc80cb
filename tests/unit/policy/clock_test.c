/* The items of the execution model and the pool of free bytes, each alone. */
#include "tests/unit/policy/fixture.h"

#include "policy/model/clock.h"

static struct trace trace;
static struct clock clock_;

static void setup(void)
{
    read_trace(&trace, CHAIN_TRACE);
    ck_assert_int_eq(clock_init(&clock_, &trace, &trace.machine), CAPU_OK);
}

static void teardown(void)
{
    clock_finish(&clock_);
    trace_finish(&trace);
}

START_TEST(a_copy_takes_latency_and_whole_nanoseconds)
{
    ck_assert_uint_eq(clock_copy_ns(1000, 1000000000, 10), 1010);
    ck_assert_uint_eq(clock_copy_ns(4, 3000000000, 0), 2);
    ck_assert_uint_eq(clock_copy_ns(0, 1000000000, 10), 10);
}
END_TEST

START_TEST(the_earliest_usable_bytes_are_taken_first)
{
    clock_reset(&clock_, 100);
    ck_assert_uint_eq(clock_take(&clock_, 60), 0);
    ck_assert_int_eq(clock_give(&clock_, 30, 500), CAPU_OK);
    ck_assert_int_eq(clock_give(&clock_, 20, 300), CAPU_OK);
    ck_assert_int_eq(clock_give(&clock_, 10, 400), CAPU_OK);
    ck_assert_uint_eq(clock_take(&clock_, 40), 0);
    /* 20 of 300, 5 of 400. Then the rest of 400 and 25 of 500. */
    ck_assert_uint_eq(clock_take(&clock_, 25), 400);
    ck_assert_uint_eq(clock_take(&clock_, 30), 500);
    ck_assert_uint_eq(clock_take(&clock_, 0), 0);
    clock_reset(&clock_, 7);
    ck_assert_uint_eq(clock_take(&clock_, 7), 0);
}
END_TEST

/* More falling sequences than there are lanes: the order must still hold. */
START_TEST(the_pool_matches_a_plain_list)
{
    static uint64_t list[4000];
    uint64_t state = 5;
    size_t count = 0;

    clock_reset(&clock_, 0);
    for (int step = 0; step < 4000; step++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        if (count == 0 || state >> 62 != 0) {
            uint64_t usable_ns = (state >> 33) % 5000;

            ck_assert_int_eq(clock_give(&clock_, 1, usable_ns), CAPU_OK);
            list[count++] = usable_ns;
        } else {
            size_t least = 0;

            for (size_t i = 1; i < count; i++) {
                least = list[i] < list[least] ? i : least;
            }
            ck_assert_uint_eq(clock_take(&clock_, 1), list[least]);
            list[least] = list[--count];
        }
    }
    ck_assert_uint_gt(count, 1000);
}
END_TEST

/* f0 0-2000; its x leaves 2000-3010; back 3010-4020, f1 waits for it: 4020-6020. */
START_TEST(items_wait_for_their_dependencies)
{
    struct clock_span span;

    clock_reset(&clock_, 0);
    clock_.tensors[1].is_fresh = true;
    span = clock_op(&clock_, &trace, 0, 0);
    ck_assert_uint_eq(span.end, 2000);
    span = clock_evict(&clock_, 1);
    ck_assert_uint_eq(span.start, 2000);
    ck_assert_uint_eq(span.end, 3010);
    span = clock_prefetch(&clock_, 1, 2500);
    ck_assert_uint_eq(span.start, 3010);
    ck_assert_int_eq(span.wait, WAIT_HOST_COPY);
    ck_assert_uint_eq(span.end, 4020);
    span = clock_op(&clock_, &trace, 1, 0);
    ck_assert_uint_eq(span.start, 4020);
    ck_assert_int_eq(span.wait, WAIT_TENSOR);
    ck_assert_uint_eq(clock_usable(&clock_, 1), 6020);
    /* y is read while its save runs; what it holds is usable when both have ended. */
    span = clock_save(&clock_, 2);
    ck_assert_uint_eq(span.start, 6020);
    ck_assert_uint_eq(span.end, 7030);
    span = clock_op(&clock_, &trace, 2, 6500);
    ck_assert_uint_eq(span.start, 6500);
    ck_assert_int_eq(span.wait, WAIT_MEMORY);
    ck_assert_uint_eq(clock_usable(&clock_, 2), 9500);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("policy/clock");
    TCase *tests = tcase_create("clock");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, a_copy_takes_latency_and_whole_nanoseconds);
    tcase_add_test(tests, the_earliest_usable_bytes_are_taken_first);
    tcase_add_test(tests, the_pool_matches_a_plain_list);
    tcase_add_test(tests, items_wait_for_their_dependencies);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

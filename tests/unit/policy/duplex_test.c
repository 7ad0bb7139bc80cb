/* Rates where both directions of the link slow each other down, compared with values by hand. */
#include "policy/model/timeline.h"
#include "tests/unit/policy/fixture.h"

/* Two parameters of 1000 bytes, updated in turn by ops that take as long as a copy. */
#define TURNS_TRACE                                                                           \
    TRACE_LINE MACHINE_LINE TENSOR_LINE(0, "a", 1000, "parameter")                            \
        TENSOR_LINE(1, "b", 1000, "parameter") OP_LINE("f", 1010, "[]", "[]", "[0]", "false") \
            OP_LINE("g", 1010, "[]", "[]", "[1]", "false") END_LINE(2, 2)

static struct trace trace;
static struct trace_index trace_index;
static struct plan plan;
static struct machine machine;
static struct error_text error;

static void set_up(void)
{
    read_trace(&trace, TURNS_TRACE);
    ck_assert_int_eq(trace_index_init(&trace_index, &trace, 1, &error), CAPU_OK);
}

static void tear_down(void)
{
    plan_finish(&plan);
    trace_index_finish(&trace_index);
    trace_finish(&trace);
}

static void find(const struct duplex *duplex)
{
    struct program program;

    ck_assert_int_eq(program_init(&program, &trace_index, &plan, &error), CAPU_OK);
    ck_assert_int_eq(duplex_rates(&program, &trace.machine, duplex, &machine, &error), CAPU_OK);
    program_finish(&program);
}

/* Each comes back and leaves again around its op. */
#define TURNS_PLAN \
    PLAN_LINE(2000, "") PREFETCH(0, 0) AFTER("evict", 0, 0) PREFETCH(1, 1) AFTER("evict", 1, 1)

START_TEST(rates_that_are_not_slower_do_not_matter)
{
    const struct duplex unknown = {0};
    const struct duplex faster = {2000000000, 1000000000};

    ck_assert(!duplex_matters(&unknown, &trace.machine));
    ck_assert(!duplex_matters(&faster, &trace.machine));
    read_plan(&plan, TURNS_PLAN);
    find(&faster);
    ck_assert_uint_eq(machine.d2h_bytes_per_s, 1000000000);
    ck_assert_uint_eq(machine.h2d_bytes_per_s, 1000000000);
}
END_TEST

/* a comes back while b of the iteration before leaves, and leaves while b comes back. */
START_TEST(copies_that_always_meet_have_duplex_rates)
{
    const struct duplex half = {500000000, 500000000};
    struct timeline timeline;

    read_plan(&plan, TURNS_PLAN);
    ck_assert_int_eq(timeline_init(&timeline, &trace_index, &plan, NULL, false, &error), CAPU_OK);
    ck_assert_uint_eq(timeline.iteration_ns, 4040);
    timeline_finish(&timeline);
    ck_assert(duplex_matters(&half, &trace.machine));
    find(&half);
    ck_assert_uint_eq(machine.d2h_bytes_per_s, 500000000);
    ck_assert_uint_eq(machine.h2d_bytes_per_s, 500000000);
    ck_assert_uint_eq(machine.copy_latency_ns, 10);
}
END_TEST

/* Only copies out become slower. They then last longer than those that they meet, so that their
   mean rate is between both. */
START_TEST(one_direction_can_be_slower)
{
    const struct duplex half = {500000000, 0};

    read_plan(&plan, TURNS_PLAN);
    find(&half);
    ck_assert_uint_gt(machine.d2h_bytes_per_s, 500000000);
    ck_assert_uint_lt(machine.d2h_bytes_per_s, 900000000);
    ck_assert_uint_eq(machine.h2d_bytes_per_s, 1000000000);
}
END_TEST

/* In the plan of timeline_test.c, x is copied out and later back: nothing meets. */
START_TEST(copies_that_never_meet_have_solo_rates)
{
    const struct duplex half = {500000000, 500000000};

    tear_down();
    read_trace(&trace, CHAIN_TRACE);
    ck_assert_int_eq(trace_index_init(&trace_index, &trace, 1, &error), CAPU_OK);
    read_plan(&plan, PLAN_LINE(2150, "") AFTER("evict", 1, 1) PREFETCH(1, 3));
    find(&half);
    ck_assert_uint_eq(machine.d2h_bytes_per_s, 1000000000);
    ck_assert_uint_eq(machine.h2d_bytes_per_s, 1000000000);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("policy duplex");
    TCase *tcase = tcase_create("duplex");

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, rates_that_are_not_slower_do_not_matter);
    tcase_add_test(tcase, copies_that_always_meet_have_duplex_rates);
    tcase_add_test(tcase, one_direction_can_be_slower);
    tcase_add_test(tcase, copies_that_never_meet_have_solo_rates);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}

/* Which iterations are timed, and when their times call for another plan. */
#include "runtime/guide/feedback.h"

#include "tests/support/suite.h"

enum { OPS = 2, EVERY = 10, FIRST = 7 /* timed in a row: three to settle and a window of four */ };

static struct record_op took[OPS];

static struct feedback make(void)
{
    struct feedback feedback;

    ck_assert_int_eq(feedback_init(&feedback, OPS), CAPU_OK);
    feedback.predicted_ns = feedback.expected_ns = 220;
    feedback.ideal_ns = 200;
    for (size_t i = 0; i < OPS; i++) {
        feedback.planned_ns[i] = 100;
    }
    feedback_start(&feedback);
    return feedback;
}

/* Runs one iteration and returns whether it calls for a new plan. */
static bool iterate_waiting(struct feedback *feedback, uint64_t op_ns, uint64_t stall_ns,
                            uint64_t waited_ns, uint32_t *percent)
{
    struct record record = {.ops = took, .op_count = OPS};
    struct feedback_link link;
    bool is_remade;

    record.is_timed = feedback_wants_times(feedback, 1000);
    record.report.time_ns = OPS * op_ns + stall_ns + waited_ns;
    record.report.waited_ns = waited_ns;
    record.report.stall_ns = record.is_timed ? stall_ns : CAPU_NOT_TIMED;
    for (size_t i = 0; i < OPS; i++) {
        took[i].ns = record.is_timed ? op_ns : 0;
    }
    is_remade = feedback_take(feedback, &record, &link);
    *percent = is_remade ? link.percent : *percent;
    return is_remade;
}

static bool iterate(struct feedback *feedback, uint64_t op_ns, uint64_t stall_ns, uint32_t *percent)
{
    return iterate_waiting(feedback, op_ns, stall_ns, 0, percent);
}

START_TEST(few_iterations_are_timed)
{
    struct feedback feedback = make();
    struct feedback_link link;

    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < FIRST + 5 * EVERY; i++) {
            struct record record = {.ops = took, .op_count = OPS};
            bool is_sample = i >= FIRST && (i - FIRST + 1) % EVERY == 0;

            record.is_timed = feedback_wants_times(&feedback, EVERY);
            ck_assert_msg(record.is_timed == (i < FIRST || is_sample), "iteration %u", i);
            record.report.time_ns = 220;
            record.report.stall_ns = 20;
            took[0].ns = took[1].ns = 100;
            ck_assert(!feedback_take(&feedback, &record, &link));
        }
        ck_assert_uint_eq(feedback.measured_ns, 220);
        feedback_start(&feedback); /* the plan becomes active again */
    }
    for (uint32_t i = 0; i < 3 * FIRST; i++) {
        ck_assert(feedback_wants_times(&feedback, 1));
    }
    feedback_finish(&feedback);
}
END_TEST

/* Iterations that wait for others, some more and some less, are as long as those that do not: in
   the window, and afterwards, when whole iterations are compared. */
START_TEST(waits_for_others_do_not_count)
{
    struct feedback feedback = make();
    uint32_t percent = 0;

    for (uint32_t i = 0; i < 5 * FIRST; i++) {
        ck_assert(!iterate_waiting(&feedback, 100, 20, i % 3 * 1000, &percent));
        ck_assert_uint_eq(feedback.strays, 0);
    }
    ck_assert_uint_eq(feedback.measured_ns, 220);
    feedback_finish(&feedback);
}
END_TEST

/* A plan that waits longer than predicted but is the best there is stays, and what it waits is
   expected from then on. Its prediction remains the planner's, so that a report that compares the
   two does not compare a measurement with itself. */
START_TEST(an_accepted_plan_keeps_its_prediction)
{
    struct feedback feedback = make();
    struct feedback newer = make();
    uint32_t percent = 0;
    bool is_remade = false;

    for (uint32_t i = 0; i < FIRST; i++) {
        is_remade = iterate(&feedback, 100, 100, &percent);
    }
    ck_assert(is_remade);
    feedback_accept(&feedback, &newer);
    ck_assert_uint_eq(feedback.predicted_ns, 220);
    for (uint32_t i = 0; i < FIRST; i++) {
        ck_assert(!iterate(&feedback, 100, 100, &percent));
    }
    is_remade = false;
    for (uint32_t i = 0; i < 2 * FIRST && !is_remade; i++) {
        is_remade = iterate(&feedback, 100, 200, &percent);
    }
    ck_assert(is_remade);
    feedback_finish(&feedback);
    feedback_finish(&newer);
}
END_TEST

/* Several iterations in a row of another length are noticed even if their ops are not timed. A
   single one is not. */
START_TEST(a_changed_length_is_timed)
{
    struct feedback feedback = make();
    uint32_t percent = 0;
    uint32_t asked = 0;
    uint32_t i;

    for (i = 0; i < FIRST + 2; i++) {
        ck_assert(!iterate(&feedback, 100, 20, &percent));
    }
    for (i = 0; i < 3; i++) {
        ck_assert(!iterate(&feedback, 150, 20, &percent));
    }
    ck_assert(!iterate(&feedback, 100, 20, &percent));
    ck_assert_uint_eq(feedback.to_time, 0);
    for (i = 0; i < 4 + 4 && asked == 0; i++) {
        asked = iterate(&feedback, 150, 20, &percent) ? i + 1 : 0;
    }
    ck_assert_uint_eq(asked, 4 + 4);
    ck_assert_uint_eq(percent, 100);
    ck_assert_uint_eq(feedback_op_ns(&feedback, 0), 150);
    ck_assert_uint_eq(feedback.measured_ns, 320);
    feedback_finish(&feedback);
}
END_TEST

/* Compute was idle although the ops ran as planned: each time a plan for slower links is requested,
   down to a limit. */
START_TEST(late_copies_ask_for_slower_links)
{
    struct feedback feedback = make();
    uint32_t percent = 0;

    for (uint32_t i = 0; i + 1 < FIRST; i++) {
        ck_assert(!iterate(&feedback, 100, 60, &percent));
    }
    ck_assert(iterate(&feedback, 100, 60, &percent));
    ck_assert_uint_eq(percent, 85);
    feedback.link.percent = 31;
    feedback_again(&feedback);
    for (uint32_t i = 0; i < FIRST; i++) {
        ck_assert(!iterate(&feedback, 100, 60, &percent));
    }
    feedback.link.percent = 100;
    feedback.round = 1000;
    feedback_again(&feedback);
    for (uint32_t i = 0; i < FIRST; i++) {
        ck_assert(!iterate(&feedback, 100, 60, &percent));
    }
    feedback_finish(&feedback);
}
END_TEST

/* The same, but the copies that were timed had other rates than planned: a plan is made for these.
 */
START_TEST(late_copies_ask_for_the_rates_seen)
{
    struct feedback feedback = make();
    struct feedback_link link = {0};
    bool is_remade = false;

    feedback.link = (struct feedback_link){1000000000, 1000000000, 100};
    feedback.copy_latency_ns = 10;
    feedback.bytes_per_s[COPY_OUT] = feedback.bytes_per_s[COPY_IN] = 1000000000;
    for (uint32_t i = 0; i < FIRST; i++) {
        struct record record = {.ops = took, .op_count = OPS, .is_timed = true};

        ck_assert(!is_remade);
        feedback_wants_times(&feedback, 1000);
        record.report.time_ns = 2 * 100 + 60;
        record.report.stall_ns = 60;
        took[0].ns = took[1].ns = 100;
        record.copies[COPY_OUT] = (struct copy_sums){.count = 2, .bytes = 100, .ns = 220};
        record.copies[COPY_IN] = (struct copy_sums){.count = 1, .bytes = 100, .ns = 60};
        is_remade = feedback_take(&feedback, &record, &link);
    }
    ck_assert(is_remade);
    ck_assert_uint_eq(link.d2h_bytes_per_s, 500000000);
    ck_assert_uint_eq(link.h2d_bytes_per_s, 1000000000);
    ck_assert_uint_eq(link.percent, 100);
    feedback_finish(&feedback);
}
END_TEST

START_TEST(a_new_plan_has_longer_windows)
{
    struct feedback old = make();
    struct feedback feedback = make();
    uint32_t percent = 0;

    feedback_inherit(&feedback, &old);
    feedback_start(&feedback);
    for (uint32_t i = 0; i < FIRST + 4; i++) {
        ck_assert_uint_eq(feedback.measured_ns, 0);
        ck_assert(feedback_wants_times(&feedback, EVERY));
        feedback.to_time++;
        iterate(&feedback, 100, 20, &percent);
    }
    ck_assert_uint_eq(feedback.measured_ns, 220);
    ck_assert_uint_eq(feedback.round, 1);
    feedback_finish(&old);
    feedback_finish(&feedback);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("runtime feedback");
    TCase *tcase = tcase_create("feedback");

    tcase_add_test(tcase, few_iterations_are_timed);
    tcase_add_test(tcase, waits_for_others_do_not_count);
    tcase_add_test(tcase, an_accepted_plan_keeps_its_prediction);
    tcase_add_test(tcase, a_changed_length_is_timed);
    tcase_add_test(tcase, late_copies_ask_for_slower_links);
    tcase_add_test(tcase, late_copies_ask_for_the_rates_seen);
    tcase_add_test(tcase, a_new_plan_has_longer_windows);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}

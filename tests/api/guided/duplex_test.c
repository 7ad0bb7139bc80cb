/*
 * Guided mode on links that slow each other down, on sim: plans are made for rates corrected by how
 * much both directions are busy at once, and then for the rates that copies had.
 */
#include "tests/api/steps.h"

#include <time.h>

enum { TENSORS = 16, TENSOR_PAGES = 256, KEPT = 6, ITERATIONS = 30 };

#define SOLO UINT64_C(10000000000)

static capu_status nothing(capu_stream stream, const void *arguments)
{
    (void)stream;
    (void)arguments;
    return CAPU_OK;
}

struct updates {
    struct rig rig;
    void *tensors[TENSORS];
    uint64_t op_ns;
};

/* Parameters are updated one after the other, and less than half of them fit: all the time some
   leave and others return. */
static void init(struct updates *updates, uint64_t duplex_bytes_per_s, bool hides_duplex,
                 uint64_t op_ns)
{
    rig_init(&updates->rig, &(struct rig_options){.is_sim = true,
                                                  .mode = CAPU_MODE_GUIDED,
                                                  .budget_pages = (KEPT + 1) * TENSOR_PAGES,
                                                  .wait_for_plan = true,
                                                  .link_bytes_per_s = SOLO,
                                                  .duplex_bytes_per_s = duplex_bytes_per_s,
                                                  .hides_duplex = hides_duplex});
    updates->op_ns = op_ns;
    for (size_t i = 0; i < TENSORS; i++) {
        char name[16];

        snprintf(name, sizeof(name), "weight%zu", i);
        updates->tensors[i] = step_tensor(&updates->rig, name, CAPU_PARAMETER, TENSOR_PAGES);
        RIG_OK(&updates->rig,
               step_touch(&updates->rig, "fill", CAPU_WRITE, 1, &updates->tensors[i]));
    }
}

static struct report iterate(struct updates *updates)
{
    struct rig *rig = &updates->rig;
    RIG_OK(rig, capu_iteration_begin(rig->context, "train"));
    for (size_t i = 0; i < TENSORS; i++) {
        capu_operand operand = capu_updates(updates->tensors[i]);
        capu_op op = {.size = sizeof(op),
                      .name = "update",
                      .run = nothing,
                      .operands = &operand,
                      .operand_count = 1,
                      .duration_ns = updates->op_ns};

        RIG_OK(rig, capu_run(rig->context, &op));
    }
    RIG_OK(rig, capu_iteration_end(rig->context));
    RIG_OK(rig, capu_synchronize(rig->context));
    return rig_report(rig);
}

/* Trains, and returns the report of the last iteration. */
static struct report train(struct updates *updates, unsigned iterations)
{
    struct report report = iterate(updates);

    for (unsigned i = 1; i < iterations; i++) {
        report = iterate(updates);
    }
    return report;
}

static uint64_t error_of(const struct report *report)
{
    return report->time_ns > report->predicted_ns ? report->time_ns - report->predicted_ns
                                                  : report->predicted_ns - report->time_ns;
}

/* Copies are most of the time here. With the rates of one direction alone, plans promise less than
   two thirds of what their iterations take; with corrected rates, they are off by a twentieth of
   that, and iterations take no longer. One plan lets no copies meet at all. */
START_TEST(plans_know_that_copies_meet)
{
    const uint64_t rates[] = {SOLO / 4, SOLO / 8 * 3, SOLO / 2};
    bool is_apart = false;

    for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
        struct updates updates;
        struct report ignorant;
        struct report report;

        init(&updates, rates[i], true, 60000);
        ignorant = train(&updates, ITERATIONS);
        rig_finish(&updates.rig);
        init(&updates, rates[i], false, 60000);
        report = train(&updates, ITERATIONS);
        rig_finish(&updates.rig);
        ck_assert_uint_eq(ignorant.plan_d2h_bytes_per_s, SOLO);
        ck_assert_uint_eq(ignorant.plan_h2d_bytes_per_s, SOLO);
        ck_assert_uint_gt(ignorant.time_ns / 3 * 2, ignorant.predicted_ns);
        ck_assert_uint_lt(error_of(&report), error_of(&ignorant) / 20);
        ck_assert_uint_lt(error_of(&report), report.time_ns / 40);
        ck_assert_uint_le(report.time_ns, ignorant.time_ns);
        ck_assert_uint_ge(report.plan_d2h_bytes_per_s, rates[i]);
        ck_assert_uint_eq(report.plan_d2h_bytes_per_s, report.plan_h2d_bytes_per_s);
        is_apart = is_apart || (report.plan_d2h_bytes_per_s == SOLO && error_of(&report) == 0);
    }
    ck_assert(is_apart);
}
END_TEST

/* The virtual clock does not wait for a plan that replaces another one, so the test does. If there
   is none, Check's time limit ends the test. */
static struct report wait_and_iterate(struct updates *updates)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    return iterate(updates);
}

/* It is not known at first that the directions slow each other down. Timed iterations see it, and
   the plan that replaces the first one is made for the rates seen. */
START_TEST(plans_are_made_for_the_rates_seen)
{
    struct updates updates;
    struct report first;
    struct report last;

    init(&updates, SOLO / 2, true, 200000);
    first = train(&updates, 5);
    ck_assert_uint_eq(first.timed, 1);
    ck_assert_uint_eq(first.plan_stage, 1);
    ck_assert_uint_eq(first.plan_d2h_bytes_per_s, SOLO);
    ck_assert_uint_lt(first.seen_d2h_bytes_per_s, SOLO * 6 / 10);
    ck_assert_uint_gt(first.seen_d2h_bytes_per_s, SOLO / 2);
    do {
        last = wait_and_iterate(&updates);
    } while (last.plan_stage == 1);
    ck_assert_uint_eq(last.plan_stage, 2);
    ck_assert_uint_eq(last.plan_d2h_bytes_per_s / 10000000, first.seen_d2h_bytes_per_s / 10000000);
    ck_assert_uint_eq(last.plan_h2d_bytes_per_s / 10000000, first.seen_h2d_bytes_per_s / 10000000);
    do {
        last = wait_and_iterate(&updates);
    } while (last.timed == 1);
    ck_assert_uint_eq(iterate(&updates).seen_d2h_bytes_per_s, 0);
    rig_finish(&updates.rig);
}
END_TEST

/* A passive iteration has no plan, and its copies are not timed. */
START_TEST(without_a_plan_no_rates_are_reported)
{
    struct updates updates;
    struct report report;

    init(&updates, SOLO / 2, false, 60000);
    report = iterate(&updates);
    ck_assert_uint_gt(report.evicted_bytes, 0);
    ck_assert_uint_eq(report.plan_d2h_bytes_per_s + report.plan_h2d_bytes_per_s, 0);
    ck_assert_uint_eq(report.seen_d2h_bytes_per_s + report.seen_h2d_bytes_per_s, 0);
    rig_finish(&updates.rig);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("duplex");
    TCase *tcase = tcase_create("duplex");

    tcase_add_test(tcase, plans_know_that_copies_meet);
    tcase_add_test(tcase, plans_are_made_for_the_rates_seen);
    tcase_add_test(tcase, without_a_plan_no_rates_are_reported);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}

/*
 * Fault sweep over the device: a whole training program runs once for each device call, and that
 * call fails, alone or together with all later ones. Checks that the status is sensible, that the
 * context stays valid and can be destroyed, that nothing leaks, and that after a single failure the
 * program still computes the right bytes.
 */
#include "tests/fault/program.h"

#include "runtime/plan/planning.h"
#include "tests/support/adaptor_fault.h"
#include "tests/support/effort.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static void expect_sums(const struct program *program, const char *what)
{
    ck_assert_msg(program->status == CAPU_OK && !program->is_wrong &&
                      memcmp(program->sums, program_sums, sizeof(program_sums)) == 0,
                  "%s: %s (%s: %s), sums %u %u %u", what, capu_status_name(program->status),
                  program->what != NULL ? program->what : "", capu_last_error(program->context),
                  program->sums[0], program->sums[1], program->sums[2]);
}

START_TEST(the_program_is_right_when_nothing_fails)
{
    struct rig rig;
    struct program program = {0};

    rig_init(&rig, &(struct rig_options){.budget_pages = PROGRAM_BUDGET_PAGES,
                                         .host_budget_bytes = PROGRAM_HOST_PAGES * RIG_PAGE});
    program.context = rig.context;
    program_run(&program);
    expect_sums(&program, "no fault");
    rig_finish(&rig);
}
END_TEST

enum way { PASSIVELY, GUIDED, WITHOUT_PLACES };

static struct rig_options options_of(bool is_strict, enum way way)
{
    return (struct rig_options){
        .budget_pages = PROGRAM_BUDGET_PAGES + (way != PASSIVELY ? 2 : 0), /* placing takes more */
        .host_budget_bytes = PROGRAM_HOST_PAGES * RIG_PAGE,
        .has_faults = true,
        .strict = is_strict,
        .mode = way != PASSIVELY ? CAPU_MODE_GUIDED : 0,
        .wait_for_plan = way != PASSIVELY,
        .places_nothing = way == WITHOUT_PLACES,
    };
}

/* One run in which one call fails. False if the program made fewer calls of this kind. */
static bool run_with(const struct adaptor_fault_plan *plan, bool is_strict, enum way way)
{
    struct rig_options options = options_of(is_strict, way);
    struct rig rig;
    struct program program = {.retries = plan->is_lasting ? 0 : 1, .keeps_input = way != PASSIVELY};
    bool hit;
    char what[128];

    snprintf(what, sizeof(what), "%s call %llu, %s%s%s", adaptor_slot_name(plan->slot),
             (unsigned long long)plan->call, plan->is_lasting ? "lasting" : "once",
             is_strict ? ", strict" : "",
             way == GUIDED           ? ", guided"
             : way == WITHOUT_PLACES ? ", guided without places"
                                     : "");
    rig_init(&rig, &options);
    program.context = rig.context;
    adaptor_fault_arm(rig.faults, plan);
    program_run(&program);
    hit = adaptor_fault_hits(rig.faults) > 0;
    ck_assert_msg(!program.is_wrong, "%s: %s", what, program.what);
    if (!plan->is_lasting && program.status != CAPU_DEVICE_LOST) {
        expect_sums(&program, what);
    }
    ck_assert_msg(program.status == CAPU_OK || program.status == plan->status ||
                      program.status == CAPU_DEVICE_LOST,
                  "%s: %s", what, capu_status_name(program.status));
    if (program.status == CAPU_DEVICE_LOST) {
        void *address;

        ck_assert_int_eq(capu_malloc(rig.context, 1, &address), CAPU_DEVICE_LOST);
        ck_assert_str_ne(capu_last_error(rig.context), "");
    }
    capu_context_destroy(rig.context);
    return hit;
}

/* The device functions that return a status and are called after the context was created. */
static const struct {
    enum adaptor_slot slot;
    capu_status status;
} slots[] = {
    {ADAPTOR_PAGE_CREATE, CAPU_DEVICE_FAILED},
    {ADAPTOR_RANGE_RESERVE, CAPU_SYSTEM_LIMIT},
    {ADAPTOR_MAP, CAPU_SYSTEM_LIMIT},
    {ADAPTOR_UNMAP, CAPU_DEVICE_FAILED},
    {ADAPTOR_HOST_ALLOC, CAPU_NO_HOST_MEMORY},
    {ADAPTOR_STREAM_SYNCHRONIZE, CAPU_DEVICE_FAILED},
    {ADAPTOR_EVENT_CREATE, CAPU_DEVICE_FAILED},
    {ADAPTOR_EVENT_RECORD, CAPU_DEVICE_FAILED},
    {ADAPTOR_EVENT_WAIT, CAPU_DEVICE_FAILED},
    {ADAPTOR_STREAM_FOLLOW, CAPU_DEVICE_FAILED},
    {ADAPTOR_EVENT_ELAPSED, CAPU_DEVICE_FAILED},
    {ADAPTOR_COPY_OUT, CAPU_DEVICE_FAILED},
    {ADAPTOR_COPY_IN, CAPU_DEVICE_FAILED},
    {ADAPTOR_COPY_WITHIN, CAPU_DEVICE_FAILED},
    {ADAPTOR_FILL, CAPU_DEVICE_FAILED},
    {ADAPTOR_RUN, CAPU_DEVICE_FAILED},
    {ADAPTOR_OPEN, CAPU_SYSTEM_LIMIT},
};

enum { SLOTS = sizeof(slots) / sizeof(slots[0]) };

static void sweep(size_t index, bool is_lasting, bool is_strict, enum way way)
{
    struct adaptor_fault_plan plan = {
        .slot = slots[index].slot, .status = slots[index].status, .is_lasting = is_lasting};

    for (plan.call = 1; run_with(&plan, is_strict, way); plan.call = effort_next(plan.call)) {
    }
    /* The runtime does not wait for, or follow, a position that has passed: these two calls depend
       on timing. Memory is opened only on host, in strict mode. */
    ck_assert_msg(plan.call > 1 || plan.slot == ADAPTOR_RANGE_RESERVE ||
                      plan.slot == ADAPTOR_EVENT_WAIT || plan.slot == ADAPTOR_STREAM_FOLLOW ||
                      plan.slot == ADAPTOR_OPEN,
                  "%s was never called", adaptor_slot_name(plan.slot));
}

/* A device call fails while the context is created. If creation succeeds anyway, the context must
   work like any other. */
START_TEST(a_call_fails_while_a_guided_context_is_created)
{
    struct adaptor_fault_plan plan = {.slot = slots[_i].slot, .status = slots[_i].status};
    struct rig_options options = options_of(false, GUIDED);
    bool hit = true;

    options.creation_fault = &plan;
    for (plan.call = 1; hit; plan.call = effort_next(plan.call)) {
        struct rig rig;
        struct program program = {.keeps_input = true};

        rig_init(&rig, &options);
        if (rig.context == NULL) {
            continue;
        }
        hit = adaptor_fault_hits(rig.faults) > 0;
        adaptor_fault_arm(rig.faults, NULL);
        program.context = rig.context;
        program_run(&program);
        expect_sums(&program, adaptor_slot_name(plan.slot));
        rig_finish(&rig);
    }
}
END_TEST

/* The device has only as many pages as the program needs, although the budget allows more. */
START_TEST(a_device_with_less_than_the_budget_is_enough)
{
    const struct adaptor_fault_plan plan = {.slot = ADAPTOR_PAGE_CREATE,
                                            .status = CAPU_OVER_BUDGET,
                                            .call = PROGRAM_BUDGET_PAGES + 1,
                                            .is_lasting = true};
    struct rig_options options = options_of(_i == 1, false);
    struct program program = {0};
    struct rig rig;

    options.budget_pages = PROGRAM_BUDGET_PAGES + 8;
    rig_init(&rig, &options);
    adaptor_fault_arm(rig.faults, &plan);
    program.context = rig.context;
    program_run(&program);
    ck_assert_uint_gt(adaptor_fault_hits(rig.faults), 0);
    expect_sums(&program, "a device with less than the budget");
    rig_finish(&rig);
}
END_TEST

START_TEST(a_call_fails_once)
{
    sweep((size_t)_i, false, false, PASSIVELY);
}
END_TEST

START_TEST(calls_fail_forever)
{
    sweep((size_t)_i, true, false, PASSIVELY);
}
END_TEST

START_TEST(a_call_fails_once_in_strict_mode)
{
    sweep((size_t)_i, false, true, PASSIVELY);
}
END_TEST

START_TEST(a_call_fails_once_in_guided_mode)
{
    sweep((size_t)_i, false, false, GUIDED);
}
END_TEST

START_TEST(calls_fail_forever_in_guided_mode)
{
    sweep((size_t)_i, true, false, GUIDED);
}
END_TEST

START_TEST(a_call_fails_once_in_strict_guided_mode)
{
    sweep((size_t)_i, false, true, GUIDED);
}
END_TEST

START_TEST(a_call_fails_once_without_places)
{
    sweep((size_t)_i, false, false, WITHOUT_PLACES);
}
END_TEST

/* Makes sure that the sweeps in guided mode test it: the program's last iteration follows its plan,
   and one with places to the end. A plan without places may begin by dropping what has contents
   only now, depending on the times that were measured. */
START_TEST(the_program_is_guided)
{
    struct rig rig;
    struct rig_options options = options_of(false, _i == 0 ? GUIDED : WITHOUT_PLACES);
    struct program program = {.keeps_input = true};
    capu_report report = CAPU_REPORT_INIT;

    rig_init(&rig, &options);
    program.context = rig.context;
    program_run(&program);
    expect_sums(&program, "no fault");
    RIG_OK(&rig, capu_report_get(rig.context, &report));
    ck_assert_msg(report.mode == CAPU_MODE_GUIDED, "%s",
                  planning_error(&rig.context->plans, "train"));
    ck_assert(report.diverged == 0 || _i == 1);
    ck_assert_uint_gt(report.prefetched_bytes, 0);
    ck_assert_uint_eq(report.unplaced, _i);
    rig_finish(&rig);
}
END_TEST

/* Work fails when the stream executes it. The context can no longer be used, and says why. */
static void fail_in_flight(size_t index, enum way way)
{
    static const enum adaptor_slot works[] = {ADAPTOR_RUN, ADAPTOR_FILL, ADAPTOR_COPY_OUT,
                                              ADAPTOR_COPY_IN};
    struct adaptor_fault_plan plan = {
        .slot = works[index], .status = CAPU_DEVICE_LOST, .in_flight = true};
    struct rig_options options = options_of(false, way);
    bool hit = true;

    for (plan.call = 1; hit; plan.call = effort_next(plan.call)) {
        struct rig rig;
        struct program program = {.keeps_input = way != PASSIVELY};
        void *address;

        rig_init(&rig, &options);
        program.context = rig.context;
        adaptor_fault_arm(rig.faults, &plan);
        program_run(&program);
        hit = adaptor_fault_hits(rig.faults) > 0;
        if (hit) {
            capu_status status = program.status;

            if (status == CAPU_OK) {
                status = capu_synchronize(rig.context);
            }
            ck_assert_msg(status == CAPU_OP_FAILED || status == CAPU_DEVICE_LOST, "%s",
                          capu_status_name(status));
            ck_assert_int_eq(capu_malloc(rig.context, 1, &address), status);
            ck_assert_int_eq(capu_iteration_begin(rig.context, NULL), status);
            ck_assert_int_eq(capu_synchronize(rig.context), status);
            ck_assert_str_ne(capu_last_error(rig.context), "");
        } else {
            expect_sums(&program, "no fault in flight");
        }
        capu_context_destroy(rig.context);
    }
}

START_TEST(work_fails_in_flight)
{
    fail_in_flight((size_t)_i, PASSIVELY);
}
END_TEST

START_TEST(work_fails_in_flight_in_guided_mode)
{
    fail_in_flight((size_t)_i, GUIDED);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fault device");
    TCase *cases = tcase_create("device");

    tcase_set_timeout(cases, 300);
    tcase_add_test(cases, the_program_is_right_when_nothing_fails);
    tcase_add_loop_test(cases, a_call_fails_once, 0, SLOTS);
    tcase_add_loop_test(cases, calls_fail_forever, 0, SLOTS);
    tcase_add_loop_test(cases, a_call_fails_once_in_strict_mode, 0, SLOTS);
    tcase_add_loop_test(cases, work_fails_in_flight, 0, 4);
    tcase_add_loop_test(cases, the_program_is_guided, 0, 2);
    tcase_add_loop_test(cases, a_call_fails_once_without_places, 0, SLOTS);
    tcase_add_loop_test(cases, a_call_fails_once_in_guided_mode, 0, SLOTS);
    tcase_add_loop_test(cases, calls_fail_forever_in_guided_mode, 0, SLOTS);
    tcase_add_loop_test(cases, a_call_fails_once_in_strict_guided_mode, 0, SLOTS);
    tcase_add_loop_test(cases, work_fails_in_flight_in_guided_mode, 0, 4);
    suite_add_tcase(suite, cases);
    cases = tcase_create("creation");
    tcase_set_timeout(cases, 300);
    tcase_add_loop_test(cases, a_device_with_less_than_the_budget_is_enough, 0, 2);
    tcase_add_loop_test(cases, a_call_fails_while_a_guided_context_is_created, 0, SLOTS);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}

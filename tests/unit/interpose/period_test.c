/*
 * Iterations found in sequences of events. Steps are made of layers: launches whose pointers differ
 * from layer to layer, as those of training programs do, so that only whole steps repeat.
 */
#include "interpose/period/period.h"

#include "tests/support/suite.h"

#include <stdio.h>
#include <string.h>

enum { MOST = 200000 };

/* Hashes of events. Those of layers are LAYERS + 100 * layer + launch. */
enum {
    TOKENS = 1,
    TARGETS,
    LOSS,
    CLEAR,
    SUM,
    SAMPLE = 50,
    SETUP = 1000,
    UPDATE = 5000,
    LAYERS = 10000
};

struct run {
    struct period *period;
    uint64_t events[MOST]; /* hashes */
    enum period_step steps[MOST];
    size_t count;
    uint64_t wait_ns; /* of the next event */
};

static struct run run;

static void start(bool is_named)
{
    memset(&run, 0, sizeof(run));
    run.period = period_create(is_named);
    ck_assert_ptr_nonnull(run.period);
}

static void finish(void)
{
    period_destroy(run.period);
}

static enum period_step emit(enum period_kind kind, uint64_t id, bool is_named)
{
    struct period_event event = {id * UINT64_C(0x2545f4914f6cdd1d), run.wait_ns, kind, is_named};

    ck_assert_uint_lt(run.count, MOST);
    run.wait_ns = 0;
    run.events[run.count] = id;
    run.steps[run.count] = period_next(run.period, &event);
    return run.steps[run.count++];
}

static void launches(uint64_t first, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        emit(PERIOD_LAUNCH, first + i, false);
    }
}

static void forward(size_t layers, size_t each)
{
    for (size_t i = 0; i < layers; i++) {
        launches(LAYERS + 100 * i, each);
    }
}

static void backward(size_t layers, size_t each)
{
    for (size_t i = layers; i-- > 0;) {
        launches(LAYERS + 50 + 100 * i, each);
    }
}

static void copies(void)
{
    emit(PERIOD_COPY_IN, TOKENS, false);
    emit(PERIOD_COPY_IN, TARGETS, false);
}

static void train(void)
{
    copies();
    forward(12, 14);
    backward(12, 22);
    launches(UPDATE, 3);
    emit(PERIOD_OTHER, LOSS, false);
}

enum { TRAIN_EVENTS = 2 + 12 * (14 + 22) + 3 + 1, VALIDATE_EVENTS = 2 + 12 * 14 + 1 };

static void validate(void)
{
    copies();
    forward(12, 14);
    emit(PERIOD_OTHER, LOSS, false);
}

/* Iterations that began after the event `from`. */
static size_t begun_since(size_t from)
{
    size_t count = 0;

    for (size_t i = from; i < run.count; i++) {
        count += run.steps[i] == PERIOD_BEGINS;
    }
    return count;
}

/* All that began since then began with this event, and lasted so long. The last one is still open.
 */
static void check_since(size_t from, uint64_t first, size_t least, size_t most)
{
    size_t begun = SIZE_MAX;

    for (size_t i = from; i < run.count; i++) {
        if (run.steps[i] != PERIOD_GOES_ON && begun != SIZE_MAX) {
            ck_assert_uint_ge(i - begun, least);
            ck_assert_uint_le(i - begun, most);
            begun = SIZE_MAX;
        }
        if (run.steps[i] == PERIOD_BEGINS) {
            ck_assert_uint_eq(run.events[i], first);
            begun = i;
        }
    }
}

static void check_state(enum period_anchor anchor, size_t events)
{
    struct period_state state = period_state(run.period);

    ck_assert_int_eq(state.anchor, anchor);
    ck_assert_uint_eq(state.events, events);
}

/* After two repetitions, each step begins one, at its first copy; layers never do. */
START_TEST(steps_are_found)
{
    start(false);
    launches(SETUP, 40);
    for (int i = 0; i < 2; i++) {
        train();
    }
    ck_assert_uint_eq(begun_since(0), 0);
    for (int i = 0; i < 20; i++) {
        size_t at = run.count;

        train();
        ck_assert_int_eq(run.steps[at], PERIOD_BEGINS);
        ck_assert_uint_eq(begun_since(at), 1);
    }
    check_state(PERIOD_BY_COPY, TRAIN_EVENTS);
    check_since(0, TOKENS, TRAIN_EVENTS, TRAIN_EVENTS);
    ck_assert_uint_eq(period_state(run.period).found_count, 1);
    finish();
}
END_TEST

/* What is done only now and then is outside: the iteration ends when it is complete. */
/* There and back, so that each launch occurs twice. */
static void there_and_back(void)
{
    launches(SETUP, 20);
    for (uint64_t i = 20; i-- > 0;) {
        launches(SETUP + i, 1);
    }
}

START_TEST(steps_need_an_event_that_occurs_once)
{
    size_t at;

    start(false);
    for (int i = 0; i < 20; i++) {
        there_and_back();
    }
    ck_assert_uint_eq(begun_since(0), 0);
    for (int i = 0; i < 8; i++) {
        at = run.count;
        copies();
        there_and_back();
        ck_assert(i < 4 || begun_since(at) == 1);
    }
    check_state(PERIOD_BY_COPY, 42);
    at = run.count;
    for (int i = 0; i < 20; i++) {
        there_and_back();
    }
    ck_assert_uint_eq(begun_since(at), 0);
    for (int i = 0; i < 8; i++) {
        at = run.count;
        emit(PERIOD_OTHER, LOSS, false);
        there_and_back();
        ck_assert(i < 4 || begun_since(at) == 1);
    }
    check_state(PERIOD_BY_PLACE, 41);
    finish();
}
END_TEST
START_TEST(what_is_done_now_and_then_is_outside)
{
    start(false);
    for (int i = 0; i < 30; i++) {
        size_t at = run.count;

        train();
        if (i % 7 == 6) {
            launches(SAMPLE, 1 + (size_t)i);
            ck_assert_int_eq(run.steps[at + TRAIN_EVENTS], PERIOD_ENDS);
        }
        ck_assert_uint_eq(begun_since(at), i >= 2);
    }
    check_since(0, TOKENS, TRAIN_EVENTS, TRAIN_EVENTS);
    finish();
}
END_TEST

/* Validation begins as training does, whichever comes first. */
START_TEST(validation_has_iterations_of_its_own)
{
    size_t at;

    start(false);
    for (int i = 0; i < 5; i++) {
        validate();
    }
    check_state(PERIOD_BY_COPY, VALIDATE_EVENTS);
    for (int i = 0; i < 4; i++) {
        train();
    }
    check_state(PERIOD_BY_COPY, TRAIN_EVENTS);
    at = run.count;
    for (int i = 0; i < 60; i++) {
        train();
        if (i % 10 == 9) {
            for (int k = 0; k < 5; k++) {
                validate();
            }
        }
    }
    ck_assert_uint_eq(begun_since(at), 60 + 30);
    check_since(at, TOKENS, VALIDATE_EVENTS, TRAIN_EVENTS);
    finish();
}
END_TEST

/* If they alternate from the beginning, both are one iteration. Since training begins as validation
   does, that is found first; then the whole. No copy occurs once in it, and the host never waits,
   so some other event begins it. */
START_TEST(alternating_steps_are_one_iteration)
{
    size_t at;

    start(false);
    for (int i = 0; i < 12; i++) {
        at = run.count;
        train();
        validate();
        if (i != 1 && i != 2) {
            ck_assert_uint_eq(begun_since(at), i >= 2);
        }
    }
    check_state(PERIOD_BY_PLACE, TRAIN_EVENTS + VALIDATE_EVENTS);
    finish();
}
END_TEST

/* A step of several equal micro-steps: the first of them are found as iterations, and soon the
   whole step. What begins it is the event after the longest wait that is not part of a micro-step.
 */
static void micro_steps(size_t count)
{
    emit(PERIOD_OTHER, CLEAR, false);
    for (size_t i = 0; i < count; i++) {
        copies();
        forward(4, 14);
        backward(4, 22);
    }
    run.wait_ns = 1000 + run.count; /* how long varies */
    launches(UPDATE, 5);
    run.wait_ns = 10;
    emit(PERIOD_OTHER, LOSS, false);
}

START_TEST(micro_steps_are_part_of_a_step)
{
    size_t count = (size_t)_i;
    size_t events = 1 + count * (2 + 4 * 36) + 6;
    size_t at = 0;

    start(false);
    for (int i = 0; i < 14; i++) {
        at = i == 3 ? run.count : at;
        micro_steps(count);
    }
    check_state(PERIOD_BY_WAIT, events);
    ck_assert_uint_eq(begun_since(at), 11);
    check_since(at, UPDATE, events, events);
    finish();
}
END_TEST

/* With more of them, each is an iteration, the last one longer. */
START_TEST(many_micro_steps_are_iterations)
{
    size_t events = 2 + 4 * 36;
    size_t at = 0;

    start(false);
    for (int i = 0; i < 8; i++) {
        at = i == 4 ? run.count : at;
        micro_steps(8);
    }
    check_state(PERIOD_BY_COPY, events + 7);
    ck_assert_uint_eq(begun_since(at), 4 * 8);
    check_since(at, TOKENS, events, events + 7);
    finish();
}
END_TEST

/* A loop inside the step, over the same memory: a recurrent layer. The step begins with a copy, and
   so replaces the loop, however often that runs. */
START_TEST(loops_inside_steps_are_replaced)
{
    size_t at = 0;

    start(false);
    for (int i = 0; i < 10; i++) {
        at = i == 4 ? run.count : at;
        copies();
        for (int k = 0; k < 50; k++) {
            launches(LAYERS, 16);
        }
        launches(UPDATE, 9);
    }
    check_state(PERIOD_BY_COPY, 2 + 50 * 16 + 9);
    ck_assert_uint_eq(begun_since(at), 6);
    check_since(at, TOKENS, 2 + 50 * 16 + 9, 2 + 50 * 16 + 9);
    finish();
}
END_TEST

/* Fewer than eight launches are no iteration, nor are repetitions that never come twice in a row.
 */
START_TEST(no_iterations_are_found)
{
    start(false);
    for (int i = 0; i < 300; i++) {
        copies();
        launches(LAYERS, PERIOD_LEAST_LAUNCHES - 1);
    }
    ck_assert_uint_eq(begun_since(0), 0);
    for (int i = 0; i < 100; i++) {
        train();
        launches(UPDATE + 10 + 3 * (size_t)i, 3);
    }
    ck_assert_uint_eq(begun_since(0), 0);
    check_state(PERIOD_NONE, 0);
    copies();
    launches(LAYERS, PERIOD_LEAST_LAUNCHES);
    copies();
    launches(LAYERS, PERIOD_LEAST_LAUNCHES);
    copies();
    ck_assert_int_eq(run.steps[run.count - 2], PERIOD_BEGINS);
    finish();
}
END_TEST

/* The program goes on to something else, and comes back. */
START_TEST(another_period_is_found)
{
    size_t at;

    start(false);
    for (int i = 0; i < 6; i++) {
        train();
    }
    for (int i = 0; i < 100; i++) {
        launches(SAMPLE, 17);
    }
    check_state(PERIOD_BY_PLACE, 17);
    at = run.count;
    for (int i = 0; i < 6; i++) {
        train();
    }
    check_state(PERIOD_BY_COPY, TRAIN_EVENTS);
    ck_assert_uint_eq(begun_since(at), 4);
    finish();
}
END_TEST

/* The longest step that can be found, and one that is too long. */
START_TEST(the_history_is_bounded)
{
    size_t events = _i == 0 ? PERIOD_MOST_EVENTS : PERIOD_MOST_EVENTS + 1;

    start(false);
    for (int i = 0; i < 5; i++) {
        launches(LAYERS, events);
    }
    ck_assert_uint_eq(begun_since(0), _i == 0 ? 3 : 0);
    finish();
}
END_TEST

/* After three failures in a row no iteration begins for 16 of them, then 32, until one is as
   expected. */
START_TEST(failures_lead_to_pauses)
{
    size_t expected[] = {PERIOD_PAUSE, 2 * PERIOD_PAUSE, 4 * PERIOD_PAUSE};

    start(_i == 1);
    for (size_t k = 0; k < 3; k++) {
        size_t passed = 0;

        for (size_t i = 0; i < PERIOD_FAILURES + 1;) {
            enum period_step step = emit(PERIOD_COPY_IN, TOKENS, true);

            forward(2, 10);
            if (step == PERIOD_BEGINS) {
                period_note(run.period, false);
                i++;
            } else {
                passed++;
            }
            if (i == PERIOD_FAILURES) {
                break;
            }
        }
        /* The next event ends the one that is open. */
        ck_assert_int_eq(emit(PERIOD_COPY_IN, TOKENS, true), PERIOD_ENDS);
        forward(2, 10);
        ck_assert_uint_eq(period_state(run.period).pause_count, k + 1);
        if (k > 0) {
            ck_assert_uint_ge(passed + 2, expected[k - 1]);
            ck_assert_uint_le(passed, expected[k - 1] + 2);
        }
    }
    while (emit(PERIOD_COPY_IN, TOKENS, true) != PERIOD_BEGINS) {
        forward(2, 10);
    }
    period_note(run.period, true);
    forward(2, 10);
    ck_assert_int_eq(emit(PERIOD_COPY_IN, TOKENS, true), PERIOD_BEGINS);
    finish();
}
END_TEST

/* Two failures, and one that is as expected: no pause. */
START_TEST(some_failures_are_no_reason)
{
    start(false);
    for (int i = 0; i < 60; i++) {
        train();
        period_note(run.period, i % 3 == 2);
    }
    ck_assert_uint_eq(begun_since(0), 58);
    ck_assert_uint_eq(period_state(run.period).pause_count, 0);
    finish();
}
END_TEST

/* Events that the user has named: nothing else begins one, and each ends the one before. */
START_TEST(named_events_begin_iterations)
{
    start(true);
    for (int i = 0; i < 6; i++) {
        train();
    }
    ck_assert_uint_eq(begun_since(0), 0);
    for (size_t i = 0; i < 6; i++) {
        ck_assert_int_eq(emit(PERIOD_LAUNCH, SUM, true), PERIOD_BEGINS);
        launches(LAYERS, 3 + i);
    }
    check_state(PERIOD_BY_NAME, 1 + 3 + 4);
    /* None is longer than the longest. */
    launches(LAYERS, PERIOD_MOST_EVENTS);
    ck_assert_int_eq(run.steps[run.count - 3 - 6], PERIOD_ENDS);
    finish();
}
END_TEST

/* A step allocates memory before its first event: it begins there if the one before is complete,
   and ends if something else follows. */
START_TEST(iterations_begin_before_their_first_event)
{
    size_t at;

    start(false);
    ck_assert(!period_begins_early(run.period, false));
    for (int i = 0; i < 3; i++) {
        ck_assert(!period_begins_early(run.period, false));
        train();
    }
    for (int i = 0; i < 5; i++) {
        ck_assert(period_begins_early(run.period, false));
        ck_assert(!period_begins_early(run.period, false));
        at = run.count;
        train();
        ck_assert_uint_eq(begun_since(at), 0);
    }
    check_since(0, TOKENS, 3 * TRAIN_EVENTS, run.count);
    launches(SAMPLE, 3);
    ck_assert_int_eq(run.steps[run.count - 3], PERIOD_ENDS);
    ck_assert(!period_begins_early(run.period, false));
    train();
    ck_assert_int_eq(run.steps[run.count - TRAIN_EVENTS], PERIOD_BEGINS);
    ck_assert(period_begins_early(run.period, false));
    launches(SETUP, 5);
    ck_assert_int_eq(run.steps[run.count - 5], PERIOD_ENDS);
    at = run.count;
    train();
    ck_assert_int_eq(run.steps[at], PERIOD_BEGINS);
    check_state(PERIOD_BY_COPY, TRAIN_EVENTS);
    finish();
}
END_TEST

/* The same where the user has named what comes next, and where the last length says so. */
START_TEST(named_iterations_begin_early)
{
    start(true);
    for (size_t i = 0; i < 4; i++) {
        ck_assert_int_eq(period_begins_early(run.period, false), i >= 2);
        ck_assert_int_eq(emit(PERIOD_LAUNCH, SUM, true), i >= 2 ? PERIOD_GOES_ON : PERIOD_BEGINS);
        launches(LAYERS, 9);
    }
    launches(LAYERS, 1);
    ck_assert(period_begins_early(run.period, true));
    ck_assert_int_eq(emit(PERIOD_LAUNCH, SUM, true), PERIOD_GOES_ON);
    ck_assert(period_begins_early(run.period, true));
    ck_assert_int_eq(emit(PERIOD_LAUNCH, SUM, false), PERIOD_ENDS);
    check_state(PERIOD_BY_NAME, 1);
    finish();
}
END_TEST

/* The caller has ended an iteration: it is not ended again. */
START_TEST(closed_iterations_are_not_ended)
{
    start(false);
    for (int i = 0; i < 3; i++) {
        train();
    }
    period_close(run.period);
    launches(SAMPLE, 3);
    ck_assert_int_eq(run.steps[run.count - 3], PERIOD_GOES_ON);
    train();
    ck_assert_int_eq(run.steps[run.count - TRAIN_EVENTS], PERIOD_BEGINS);
    finish();
}
END_TEST

/* The host waits longest in the middle of each step, where memory that the step frees is in use. */
START_TEST(iterations_begin_where_memory_lasts)
{
    size_t begun[2] = {0};

    start(false);
    for (size_t step = 0; step < 6; step++) {
        uint64_t born = period_events(run.period);

        launches(LAYERS, 6);
        run.wait_ns = 1000 + step;
        launches(UPDATE, 6);
        begun[1] += run.steps[run.count - 6] == PERIOD_BEGINS;
        begun[0] += run.steps[run.count - 12] == PERIOD_BEGINS;
        period_freed(run.period, born);
    }
    ck_assert_uint_ge(begun[0], 3);
    ck_assert_uint_eq(begun[1], 0);
    finish();
}
END_TEST

/* Whether a period is missing after so many events that are all different. */
static bool is_missing_after(size_t count)
{
    static uint64_t next = 1000000;

    for (size_t i = 0; i < count; i++) {
        emit(PERIOD_LAUNCH, next++, false);
    }
    return period_is_missing(run.period);
}

/* A period is missing after so many events without one, also if one was known before. */
START_TEST(a_missing_period_is_noticed)
{
    start(false);
    ck_assert(!is_missing_after(PERIOD_PATIENCE));
    ck_assert(is_missing_after(1));
    for (int i = 0; i < 3; i++) {
        train();
    }
    ck_assert(!is_missing_after(PERIOD_PATIENCE));
    ck_assert(is_missing_after(2 * TRAIN_EVENTS));
    finish();
    start(true);
    ck_assert(!is_missing_after(2 * PERIOD_PATIENCE));
    finish();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("period");
    TCase *cases = tcase_create("period");

    tcase_add_test(cases, steps_are_found);
    tcase_add_test(cases, steps_need_an_event_that_occurs_once);
    tcase_add_test(cases, what_is_done_now_and_then_is_outside);
    tcase_add_test(cases, validation_has_iterations_of_its_own);
    tcase_add_test(cases, alternating_steps_are_one_iteration);
    tcase_add_loop_test(cases, micro_steps_are_part_of_a_step, 2, PERIOD_MICRO_STEPS + 1);
    tcase_add_test(cases, many_micro_steps_are_iterations);
    tcase_add_test(cases, loops_inside_steps_are_replaced);
    tcase_add_test(cases, no_iterations_are_found);
    tcase_add_test(cases, another_period_is_found);
    tcase_add_loop_test(cases, the_history_is_bounded, 0, 2);
    tcase_add_loop_test(cases, failures_lead_to_pauses, 0, 2);
    tcase_add_test(cases, some_failures_are_no_reason);
    tcase_add_test(cases, named_events_begin_iterations);
    tcase_add_test(cases, iterations_begin_before_their_first_event);
    tcase_add_test(cases, named_iterations_begin_early);
    tcase_add_test(cases, closed_iterations_are_not_ended);
    tcase_add_test(cases, iterations_begin_where_memory_lasts);
    tcase_add_test(cases, a_missing_period_is_noticed);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}

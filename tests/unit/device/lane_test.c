/* Lanes: the ring of events, its growth and reuse, and positions. On sim, where times are exact. */
#include "device/lane.h"
#include "tests/support/adaptor_count.h"
#include "tests/support/suite.h"

#define CHECK_OK(call) ck_assert_int_eq((call), CAPU_OK)

static struct device *sim;
static struct device *device; /* the counting adaptor around sim */
static struct lane timed;
static struct lane plain;

static void set_up(void)
{
    CHECK_OK(sim_device_create(NULL, &sim, NULL, 0));
    CHECK_OK(adaptor_count_create(sim, &device));
    CHECK_OK(lane_init(&timed, device, DEVICE_COMPUTE, NULL, true));
    CHECK_OK(lane_init(&plain, device, DEVICE_D2H, NULL, false));
}

static void tear_down(void)
{
    lane_finish(&timed);
    lane_finish(&plain);
    device_destroy(device);
}

static struct lane_position run_and_mark(struct lane *lane, uint64_t ns)
{
    const struct device_work work = {.name = "op", .duration_ns = ns};
    struct lane_position position = {0};

    CHECK_OK(device_run(device, lane->stream, &work));
    CHECK_OK(lane_mark(lane, &position));
    return position;
}

static uint64_t events_created(void)
{
    struct adaptor_counts counts;

    adaptor_count_read(device, &counts);
    return counts.slots[ADAPTOR_EVENT_CREATE].calls;
}

START_TEST(marks_survive_growth)
{
    struct lane_position marks[500];
    uint64_t ns = 0;

    for (uint64_t index = 0; index < 500; index++) {
        marks[index] = run_and_mark(&timed, index + 1);
        ck_assert_uint_eq(marks[index].sequence, index + 1);
    }
    ck_assert(!lane_has_passed(marks[0]));
    CHECK_OK(lane_wait(marks[250]));
    ck_assert(lane_has_passed(marks[0]));
    ck_assert(lane_has_passed(marks[250]));
    ck_assert(!lane_has_passed(marks[251]));
    ck_assert_int_eq(lane_elapsed_ns(marks[0], marks[499], &ns), CAPU_NOT_READY);
    CHECK_OK(lane_synchronize(&timed));
    for (uint64_t index = 1; index < 500; index++) {
        CHECK_OK(lane_elapsed_ns(marks[index - 1], marks[index], &ns));
        ck_assert_uint_eq(ns, index + 1);
    }
    CHECK_OK(lane_elapsed_ns(marks[9], marks[3], &ns));
    ck_assert_uint_eq(ns, 0);
    lane_retire(marks[100]);
    ck_assert_int_eq(lane_elapsed_ns(marks[100], marks[200], &ns), CAPU_INVALID);
    CHECK_OK(lane_elapsed_ns(marks[101], marks[102], &ns));
    ck_assert(lane_has_passed(marks[50]));
    CHECK_OK(lane_wait(marks[50]));
}
END_TEST

START_TEST(a_steady_lane_creates_no_events)
{
    uint64_t before;

    for (int round = 0; round < 100; round++) {
        struct lane_position mark = run_and_mark(&timed, 1);

        CHECK_OK(lane_wait(mark));
        lane_retire(mark);
    }
    for (int round = 0; round < 100; round++) {
        CHECK_OK(lane_wait(run_and_mark(&plain, 1))); /* never retired */
    }
    before = events_created();
    for (int round = 0; round < 1000; round++) {
        struct lane_position mark = run_and_mark(&timed, 1);

        CHECK_OK(lane_wait(mark));
        lane_retire(mark);
        CHECK_OK(lane_wait(run_and_mark(&plain, 1)));
    }
    ck_assert_uint_eq(events_created(), before);
    ck_assert_uint_le(before, 2 * 64);
    /* Marks that were never waited for need a slot each. */
    for (int round = 0; round < 200; round++) {
        (void)run_and_mark(&plain, 1);
    }
    ck_assert_uint_gt(events_created(), before);
}
END_TEST

START_TEST(lanes_follow_positions)
{
    const struct lane_position never = {0};
    struct lane_position mark = run_and_mark(&timed, 1000);
    struct lane_position followed;

    ck_assert(lane_has_passed(never));
    CHECK_OK(lane_wait(never));
    CHECK_OK(lane_follow(&plain, never));
    CHECK_OK(lane_follow(&timed, mark)); /* its own lane: nothing to do */
    CHECK_OK(lane_follow(&plain, mark));
    followed = run_and_mark(&plain, 10);
    CHECK_OK(lane_wait(followed));
    ck_assert_uint_eq(device_now_ns(device), 1010);
    ck_assert(lane_has_passed(mark));
}
END_TEST

START_TEST(a_borrowed_stream_is_not_destroyed)
{
    struct lane borrowed;
    capu_stream stream = NULL;

    CHECK_OK(device_stream_create(device, DEVICE_COMPUTE, &stream));
    CHECK_OK(lane_init(&borrowed, device, DEVICE_COMPUTE, stream, false));
    (void)run_and_mark(&borrowed, 5);
    lane_finish(&borrowed);
    lane_finish(&borrowed);
    CHECK_OK(device_stream_synchronize(device, stream));
    device_stream_destroy(device, stream);
}
END_TEST

/* A ring with both kinds of marks grows, and creates no events afterwards. */
START_TEST(untimed_marks_can_be_mixed_with_timed_ones)
{
    struct lane_position marks[300];
    uint64_t before;
    uint64_t ns;

    for (uint64_t index = 0; index < 300; index++) {
        const struct device_work work = {.name = "op", .duration_ns = 10};

        CHECK_OK(device_run(device, timed.stream, &work));
        CHECK_OK((index % 3 == 0 ? lane_mark : lane_mark_untimed)(&timed, &marks[index]));
        ck_assert_uint_eq(marks[index].sequence, index + 1);
    }
    CHECK_OK(lane_wait(marks[100]));
    ck_assert(lane_has_passed(marks[99]));
    ck_assert(!lane_has_passed(marks[101]));
    CHECK_OK(lane_follow(&plain, marks[298]));
    run_and_mark(&plain, 1);
    CHECK_OK(lane_synchronize(&plain));
    ck_assert_uint_eq(device_now_ns(device), 2991);
    CHECK_OK(lane_synchronize(&timed));
    CHECK_OK(lane_elapsed_ns(marks[3], marks[297], &ns));
    ck_assert_uint_eq(ns, 2940);
    ck_assert_int_eq(lane_elapsed_ns(marks[3], marks[298], &ns), CAPU_INVALID);
    ck_assert_int_eq(lane_elapsed_ns(marks[4], marks[297], &ns), CAPU_INVALID);
    before = events_created();
    for (uint64_t index = 0; index < 2000; index++) {
        CHECK_OK((index % 2 == 0 ? lane_mark : lane_mark_untimed)(&timed, &marks[0]));
        lane_retire((struct lane_position){&timed, marks[0].sequence - 1});
    }
    ck_assert_uint_eq(events_created(), before);
}
END_TEST

static uint64_t events_recorded(void)
{
    struct adaptor_counts counts;

    adaptor_count_read(device, &counts);
    return counts.slots[ADAPTOR_EVENT_RECORD].calls;
}

/* A promise costs nothing until its position is needed, and then all its users share one mark. */
START_TEST(promises_become_marks_when_needed)
{
    const struct device_work work = {.name = "op", .duration_ns = 10};
    struct lane_position first;
    struct lane_position second;
    struct lane_position mark;
    uint64_t ns;

    ck_assert_ptr_null(lane_newest(&timed).lane);
    CHECK_OK(device_run(device, timed.stream, &work));
    first = lane_promise(&timed);
    CHECK_OK(device_run(device, timed.stream, &work));
    second = lane_promise(&timed);
    ck_assert(!lane_has_passed(first));
    ck_assert_uint_eq(lane_newest(&timed).sequence, second.sequence);
    CHECK_OK(lane_follow(&timed, first)); /* its own lane: nothing to do */
    ck_assert_uint_eq(events_recorded(), 0);
    CHECK_OK(lane_follow(&plain, second));
    CHECK_OK(lane_follow(&plain, first));
    ck_assert_uint_eq(events_recorded(), 1);
    run_and_mark(&plain, 5);
    CHECK_OK(lane_synchronize(&plain));
    ck_assert_uint_eq(device_now_ns(device), 25);
    ck_assert(lane_has_passed(first) && lane_has_passed(second));

    /* The next mark fulfils the promise. */
    CHECK_OK(device_run(device, timed.stream, &work));
    first = lane_promise(&timed);
    CHECK_OK(lane_mark(&timed, &mark));
    ck_assert_uint_eq(mark.sequence, first.sequence);
    ck_assert_uint_eq(lane_newest(&timed).sequence, first.sequence);
    CHECK_OK(lane_wait(first));

    /* So does a wait of the host. */
    CHECK_OK(device_run(device, timed.stream, &work));
    first = lane_promise(&timed);
    CHECK_OK(lane_wait(first));
    ck_assert(lane_has_passed(first));
    ck_assert_int_eq(lane_elapsed_ns(mark, first, &ns), CAPU_INVALID);
}
END_TEST

START_TEST(positions_of_a_failed_device_have_passed)
{
    struct lane_position mark = run_and_mark(&timed, 1000);
    struct lane_position untouched = {0};

    ck_assert(!lane_has_passed(mark));
    ck_assert(sim_device_fail(sim, "op"));
    ck_assert(lane_has_passed(mark));
    ck_assert(lane_has_passed(lane_promise(&timed)));
    ck_assert_int_eq(lane_wait(mark), CAPU_OP_FAILED);
    ck_assert_int_eq(lane_wait(lane_promise(&timed)), CAPU_OP_FAILED);
    ck_assert_int_eq(lane_mark(&timed, &untouched), CAPU_OP_FAILED);
    ck_assert_ptr_null(untouched.lane);
    ck_assert_int_eq(lane_synchronize(&timed), CAPU_OP_FAILED);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lane");
    TCase *tcase = tcase_create("lane");

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, marks_survive_growth);
    tcase_add_test(tcase, a_steady_lane_creates_no_events);
    tcase_add_test(tcase, lanes_follow_positions);
    tcase_add_test(tcase, a_borrowed_stream_is_not_destroyed);
    tcase_add_test(tcase, untimed_marks_can_be_mixed_with_timed_ones);
    tcase_add_test(tcase, promises_become_marks_when_needed);
    tcase_add_test(tcase, positions_of_a_failed_device_have_passed);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}

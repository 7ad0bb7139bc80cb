/* The contract of streams, events and running work. */
#include "contract.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t slow_ns = 20000000;

struct setting {
    struct device *device;
    capu_stream one; /* compute */
    capu_stream two; /* d2h */
    char *address;   /* one page */
    uint64_t bytes;
    char *host; /* as many bytes */
};

static bool set_up(struct setting *setting, int index)
{
    device_page page;

    setting->device = contract_make(index);
    if (setting->device == NULL) {
        return false;
    }
    setting->address = contract_mapped(setting->device, &page, 1);
    setting->bytes = setting->device->capabilities.page_bytes;
    setting->host = malloc(setting->bytes);
    memset(setting->host, 1, setting->bytes);
    CHECK_OK(device_stream_create(setting->device, DEVICE_COMPUTE, &setting->one));
    CHECK_OK(device_stream_create(setting->device, DEVICE_D2H, &setting->two));
    return true;
}

static void tear_down(struct setting *setting)
{
    device_stream_destroy(setting->device, setting->one);
    device_stream_destroy(setting->device, setting->two);
    free(setting->host);
    device_destroy(setting->device);
}

static void run_slowly(const struct setting *setting, capu_stream stream, int index)
{
    const struct device_work work = {.name = "slow",
                                     .run = contract_subjects[index].slow,
                                     .arguments = &slow_ns,
                                     .duration_ns = slow_ns};

    CHECK_OK(device_run(setting->device, stream, &work));
}

static struct device_event *make_event(const struct setting *setting, bool with_timing)
{
    struct device_event *event = NULL;

    CHECK_OK(device_event_create(setting->device, with_timing, &event));
    return event;
}

START_TEST(a_stream_runs_in_order)
{
    struct setting setting;

    if (!set_up(&setting, _i)) {
        return;
    }
    for (unsigned char byte = 2; byte < 40; byte++) {
        char *second = setting.host + setting.bytes / 2;

        CHECK_OK(device_fill(setting.device, setting.one, setting.address, byte, setting.bytes));
        CHECK_OK(device_copy_out(setting.device, setting.one, setting.host, setting.address,
                                 setting.bytes / 2));
        CHECK_OK(device_fill(setting.device, setting.one, setting.address,
                             (unsigned char)(byte + 50), setting.bytes));
        CHECK_OK(device_copy_out(setting.device, setting.one, second, setting.address,
                                 setting.bytes / 2));
        CHECK_OK(device_stream_synchronize(setting.device, setting.one));
        ck_assert(contract_reads_as(setting.device, setting.host, setting.bytes / 2, (char)byte));
        ck_assert(contract_reads_as(setting.device, second, setting.bytes / 2, (char)(byte + 50)));
    }
    tear_down(&setting);
}
END_TEST

START_TEST(copies_go_both_ways_at_any_alignment)
{
    struct setting setting;
    char *source;
    const uint64_t bytes = 1001;

    if (!set_up(&setting, _i)) {
        return;
    }
    source = malloc(bytes);
    memset(source, 77, bytes);
    CHECK_OK(device_fill(setting.device, setting.one, setting.address, 5, setting.bytes));
    CHECK_OK(device_copy_in(setting.device, setting.one, setting.address + 3, source, bytes));
    CHECK_OK(device_copy_within(setting.device, setting.one, setting.address + 2011,
                                setting.address + 3, bytes));
    CHECK_OK(
        device_copy_out(setting.device, setting.one, setting.host, setting.address, setting.bytes));
    CHECK_OK(device_stream_synchronize(setting.device, setting.one));
    ck_assert(contract_reads_as(setting.device, setting.host, 3, 5));
    ck_assert(contract_reads_as(setting.device, setting.host + 3, bytes, 77));
    ck_assert(contract_reads_as(setting.device, setting.host + 3 + bytes, 2011 - 3 - bytes, 5));
    ck_assert(contract_reads_as(setting.device, setting.host + 2011, bytes, 77));
    ck_assert(contract_reads_as(setting.device, setting.host + 2011 + bytes, 100, 5));
    free(source);
    tear_down(&setting);
}
END_TEST

/* The library only copies to and from host memory of the device. Copies with other host memory, as
   in the other tests, may wait. */
START_TEST(copies_with_the_devices_host_memory_do_not_wait)
{
    struct setting setting;
    struct device_event *event;
    void *memory = NULL;
    char *ends[2];

    if (!set_up(&setting, _i)) {
        return;
    }
    CHECK_OK(device_host_alloc(setting.device, 2 * setting.bytes, &memory));
    ends[0] = memory;
    ends[1] = ends[0] + setting.bytes;
    memset(ends[0], 77, setting.bytes);
    memset(ends[1], 1, setting.bytes);
    event = make_event(&setting, false);
    run_slowly(&setting, setting.one, _i);
    CHECK_OK(device_copy_in(setting.device, setting.one, setting.address, ends[0], setting.bytes));
    CHECK_OK(device_copy_out(setting.device, setting.one, ends[1], setting.address, setting.bytes));
    CHECK_OK(device_event_record(setting.device, event, setting.one));
    ck_assert_int_eq(device_event_query(setting.device, event), CAPU_NOT_READY);
    CHECK_OK(device_event_wait(setting.device, event));
    if (!setting.device->capabilities.is_simulated) {
        ck_assert(contract_reads_as(setting.device, ends[1], setting.bytes, 77));
    }
    device_event_destroy(setting.device, event);
    device_host_free(setting.device, memory, 2 * setting.bytes);
    tear_down(&setting);
}
END_TEST

START_TEST(a_following_stream_sees_what_was_written)
{
    struct setting setting;
    struct device_event *written;
    struct device_event *read;

    if (!set_up(&setting, _i)) {
        return;
    }
    written = make_event(&setting, false);
    read = make_event(&setting, false);
    for (unsigned char byte = 2; byte < 60; byte++) {
        if (byte % 20 == 2) {
            run_slowly(&setting, setting.one, _i);
        }
        CHECK_OK(device_fill(setting.device, setting.one, setting.address, byte, setting.bytes));
        CHECK_OK(device_event_record(setting.device, written, setting.one));
        CHECK_OK(device_stream_follow(setting.device, setting.two, written));
        CHECK_OK(device_copy_out(setting.device, setting.two, setting.host, setting.address,
                                 setting.bytes));
        CHECK_OK(device_event_record(setting.device, read, setting.two));
        CHECK_OK(device_stream_follow(setting.device, setting.one, read));
        /* This fill must not overtake the copy. */
        CHECK_OK(device_fill(setting.device, setting.one, setting.address, 1, setting.bytes));
        CHECK_OK(device_event_wait(setting.device, read));
        ck_assert(contract_reads_as(setting.device, setting.host, setting.bytes, (char)byte));
    }
    CHECK_OK(device_stream_synchronize(setting.device, setting.one));
    device_event_destroy(setting.device, written);
    device_event_destroy(setting.device, read);
    tear_down(&setting);
}
END_TEST

START_TEST(an_event_that_was_never_recorded_is_reached)
{
    struct setting setting;
    struct device_event *event;

    if (!set_up(&setting, _i)) {
        return;
    }
    event = make_event(&setting, false);
    run_slowly(&setting, setting.one, _i);
    CHECK_OK(device_event_query(setting.device, event));
    CHECK_OK(device_event_wait(setting.device, event));
    CHECK_OK(device_stream_follow(setting.device, setting.one, event));
    CHECK_OK(device_stream_synchronize(setting.device, setting.one));
    device_event_destroy(setting.device, event);
    tear_down(&setting);
}
END_TEST

START_TEST(an_event_is_reached_after_the_work_before_it)
{
    struct setting setting;
    struct device_event *event;
    struct device_event *idle;

    if (!set_up(&setting, _i)) {
        return;
    }
    event = make_event(&setting, false);
    idle = make_event(&setting, false);
    run_slowly(&setting, setting.one, _i);
    CHECK_OK(device_event_record(setting.device, event, setting.one));
    ck_assert_int_eq(device_event_query(setting.device, event), CAPU_NOT_READY);
    CHECK_OK(device_event_wait(setting.device, event));
    CHECK_OK(device_event_query(setting.device, event));
    /* Recorded again, it is not reached until the new work is done. */
    run_slowly(&setting, setting.one, _i);
    CHECK_OK(device_event_record(setting.device, event, setting.one));
    ck_assert_int_eq(device_event_query(setting.device, event), CAPU_NOT_READY);
    CHECK_OK(device_stream_synchronize(setting.device, setting.one));
    CHECK_OK(device_event_query(setting.device, event));
    /* An event may be destroyed before its recording is reached. */
    run_slowly(&setting, setting.one, _i);
    CHECK_OK(device_event_record(setting.device, idle, setting.one));
    device_event_destroy(setting.device, idle);
    device_event_destroy(setting.device, event);
    tear_down(&setting);
}
END_TEST

/* The time from one event to another; both must be reached. */
static uint64_t elapsed(const struct setting *setting, struct device_event *from,
                        struct device_event *to)
{
    uint64_t ns = UINT64_MAX;

    CHECK_OK(device_event_elapsed(setting->device, from, to, &ns));
    return ns;
}

START_TEST(followers_wait_for_the_newest_recording_at_the_call)
{
    struct setting setting;
    struct device_event *event;
    struct device_event *start;
    struct device_event *end;
    capu_stream idle = NULL;

    if (!set_up(&setting, _i)) {
        return;
    }
    CHECK_OK(device_stream_create(setting.device, DEVICE_H2D, &idle));
    event = make_event(&setting, false);
    start = make_event(&setting, true);
    end = make_event(&setting, true);

    /* Of two recordings the newest counts. */
    CHECK_OK(device_event_record(setting.device, start, setting.one));
    run_slowly(&setting, setting.one, _i);
    CHECK_OK(device_event_record(setting.device, event, setting.one));
    run_slowly(&setting, setting.one, _i);
    CHECK_OK(device_event_record(setting.device, event, setting.one));
    CHECK_OK(device_stream_follow(setting.device, setting.two, event));
    CHECK_OK(device_event_record(setting.device, end, setting.two));
    CHECK_OK(device_event_wait(setting.device, end));
    ck_assert_uint_ge(elapsed(&setting, start, end), 2 * slow_ns);

    /* Recording the event elsewhere after the call does not change what the stream waits for. */
    CHECK_OK(device_event_record(setting.device, start, setting.one));
    run_slowly(&setting, setting.one, _i);
    CHECK_OK(device_event_record(setting.device, event, setting.one));
    CHECK_OK(device_stream_follow(setting.device, setting.two, event));
    CHECK_OK(device_event_record(setting.device, event, idle));
    CHECK_OK(device_event_record(setting.device, end, setting.two));
    CHECK_OK(device_event_wait(setting.device, event));
    CHECK_OK(device_event_wait(setting.device, end));
    ck_assert_uint_ge(elapsed(&setting, start, end), slow_ns);

    device_event_destroy(setting.device, event);
    device_event_destroy(setting.device, start);
    device_event_destroy(setting.device, end);
    device_stream_destroy(setting.device, idle);
    tear_down(&setting);
}
END_TEST

START_TEST(events_measure_the_time_between_them)
{
    struct setting setting;
    struct device_event *start;
    struct device_event *end;
    struct device_event *untimed;
    uint64_t before;
    uint64_t ns = 4711;

    if (!set_up(&setting, _i)) {
        return;
    }
    start = make_event(&setting, true);
    end = make_event(&setting, true);
    untimed = make_event(&setting, false);
    ck_assert_int_eq(device_event_elapsed(setting.device, start, end, &ns), CAPU_INVALID);
    before = device_now_ns(setting.device);
    CHECK_OK(device_event_record(setting.device, start, setting.one));
    run_slowly(&setting, setting.one, _i);
    CHECK_OK(device_event_record(setting.device, end, setting.one));
    CHECK_OK(device_event_record(setting.device, untimed, setting.one));
    ck_assert_int_eq(device_event_elapsed(setting.device, start, end, &ns), CAPU_NOT_READY);
    CHECK_OK(device_event_wait(setting.device, untimed));
    ck_assert_int_eq(device_event_elapsed(setting.device, start, untimed, &ns), CAPU_INVALID);
    ck_assert_uint_eq(ns, 4711);
    ck_assert_uint_ge(elapsed(&setting, start, end), slow_ns);
    ck_assert_uint_lt(elapsed(&setting, start, end), 1000 * slow_ns);
    ck_assert_uint_eq(elapsed(&setting, end, start), 0);
    /* The host's clock has advanced at least as much. */
    ck_assert_uint_ge(device_now_ns(setting.device), before + slow_ns);
    device_event_destroy(setting.device, start);
    device_event_destroy(setting.device, end);
    device_event_destroy(setting.device, untimed);
    tear_down(&setting);
}
END_TEST

START_TEST(destroying_a_stream_waits_for_its_work)
{
    struct setting setting;
    struct device_event *event;

    if (!set_up(&setting, _i)) {
        return;
    }
    event = make_event(&setting, false);
    for (unsigned char byte = 30; byte < 33; byte++) {
        capu_stream stream = NULL;

        CHECK_OK(device_stream_create(setting.device, DEVICE_H2D, &stream));
        run_slowly(&setting, stream, _i);
        CHECK_OK(device_fill(setting.device, stream, setting.address, byte, setting.bytes));
        CHECK_OK(
            device_copy_out(setting.device, stream, setting.host, setting.address, setting.bytes));
        CHECK_OK(device_event_record(setting.device, event, stream));
        device_stream_destroy(setting.device, stream);
        ck_assert(contract_reads_as(setting.device, setting.host, setting.bytes, (char)byte));
        /* An event recorded on a destroyed stream stays reached. */
        CHECK_OK(device_event_query(setting.device, event));
        CHECK_OK(device_stream_follow(setting.device, setting.one, event));
    }
    device_event_destroy(setting.device, event);
    tear_down(&setting);
}
END_TEST

/* The rest is mostly for devices that call `run` on the stream's thread. */

static capu_status count_up(capu_stream stream, const void *arguments)
{
    atomic_uint *const *counter = arguments;

    (void)stream;
    atomic_fetch_add(*counter, 1);
    return CAPU_OK;
}

static capu_status refuse(capu_stream stream, const void *arguments)
{
    (void)stream;
    (void)arguments;
    return CAPU_UNSUPPORTED;
}

static capu_status wait_for_count(capu_stream stream, const void *arguments)
{
    atomic_uint *const *counter = arguments;

    (void)stream;
    while (atomic_load(*counter) == 0) {
    }
    return CAPU_OK;
}

START_TEST(streams_run_concurrently)
{
    struct setting setting;
    atomic_uint counter = 0;
    atomic_uint *pointer = &counter;
    const struct device_work waits = {
        .name = "waits", .run = wait_for_count, .arguments = &pointer, .duration_ns = 1};
    const struct device_work counts = {
        .name = "counts", .run = count_up, .arguments = &pointer, .duration_ns = 1};

    if (!set_up(&setting, _i)) {
        return;
    }
    CHECK_OK(device_run(setting.device, setting.one, &waits));
    CHECK_OK(device_run(setting.device, setting.two, &counts));
    CHECK_OK(device_stream_synchronize(setting.device, setting.one));
    ck_assert_uint_eq(atomic_load(&counter), 1);
    tear_down(&setting);
}
END_TEST

START_TEST(a_long_queue_is_accepted)
{
    struct setting setting;
    atomic_uint counter = 0;
    atomic_uint *pointer = &counter;
    const struct device_work counts = {
        .name = "counts", .run = count_up, .arguments = &pointer, .duration_ns = 1};

    if (!set_up(&setting, _i)) {
        return;
    }
    run_slowly(&setting, setting.one, _i);
    for (int index = 0; index < 5000; index++) {
        CHECK_OK(device_run(setting.device, setting.one, &counts));
    }
    CHECK_OK(device_stream_synchronize(setting.device, setting.one));
    if (setting.device->capabilities.runs_on_stream) {
        ck_assert_uint_eq(atomic_load(&counter), 5000);
    }
    tear_down(&setting);
}
END_TEST

START_TEST(a_failure_in_flight_stops_dependent_work)
{
    struct setting setting;
    atomic_uint counter = 0;
    atomic_uint *pointer = &counter;
    const struct device_work fails = {
        .name = "the bad op", .run = refuse, .arguments = NULL, .duration_ns = 1};
    const struct device_work counts = {
        .name = "counts", .run = count_up, .arguments = &pointer, .duration_ns = 1};
    struct device_event *event;
    char text[200] = "";

    if (!set_up(&setting, _i)) {
        return;
    }
    event = make_event(&setting, true);
    /* Everything is enqueued before the failure. */
    run_slowly(&setting, setting.one, _i);
    CHECK_OK(device_run(setting.device, setting.one, &fails));
    CHECK_OK(device_run(setting.device, setting.one, &counts));
    CHECK_OK(device_event_record(setting.device, event, setting.one));
    CHECK_OK(device_stream_follow(setting.device, setting.two, event));
    CHECK_OK(device_run(setting.device, setting.two, &counts));
    ck_assert_int_eq(device_stream_synchronize(setting.device, setting.two), CAPU_OP_FAILED);
    ck_assert_int_eq(device_stream_synchronize(setting.device, setting.one), CAPU_OP_FAILED);
    ck_assert_int_eq(device_event_wait(setting.device, event), CAPU_OP_FAILED);
    ck_assert_int_eq(device_event_query(setting.device, event), CAPU_OP_FAILED);
    ck_assert_int_eq(device_run(setting.device, setting.two, &counts), CAPU_OP_FAILED);
    ck_assert_int_eq(device_fill(setting.device, setting.one, setting.address, 0, setting.bytes),
                     CAPU_OP_FAILED);
    ck_assert_int_eq(device_event_record(setting.device, event, setting.two), CAPU_OP_FAILED);
    ck_assert_int_eq(device_stream_follow(setting.device, setting.two, event), CAPU_OP_FAILED);
    ck_assert_int_eq(device_failure(setting.device, text, sizeof(text)), CAPU_OP_FAILED);
    ck_assert_ptr_nonnull(strstr(text, "the bad op"));
    ck_assert_uint_eq(atomic_load(&counter), 0);
    /* Memory can still be unmapped. */
    CHECK_OK(device_unmap(setting.device, setting.address, 1));
    device_event_destroy(setting.device, event);
    tear_down(&setting);
    ck_assert_uint_eq(atomic_load(&counter), 0);
}
END_TEST

void contract_add_streams(TCase *tcase, const struct contract_subject *subject, int index)
{
    tcase_add_loop_test(tcase, a_stream_runs_in_order, index, index + 1);
    tcase_add_loop_test(tcase, copies_go_both_ways_at_any_alignment, index, index + 1);
    tcase_add_loop_test(tcase, copies_with_the_devices_host_memory_do_not_wait, index, index + 1);
    tcase_add_loop_test(tcase, a_following_stream_sees_what_was_written, index, index + 1);
    tcase_add_loop_test(tcase, an_event_that_was_never_recorded_is_reached, index, index + 1);
    tcase_add_loop_test(tcase, an_event_is_reached_after_the_work_before_it, index, index + 1);
    tcase_add_loop_test(tcase, followers_wait_for_the_newest_recording_at_the_call, index,
                        index + 1);
    tcase_add_loop_test(tcase, events_measure_the_time_between_them, index, index + 1);
    tcase_add_loop_test(tcase, destroying_a_stream_waits_for_its_work, index, index + 1);
    tcase_add_loop_test(tcase, a_long_queue_is_accepted, index, index + 1);
    if (subject->runs_on_stream) {
        tcase_add_loop_test(tcase, streams_run_concurrently, index, index + 1);
        tcase_add_loop_test(tcase, a_failure_in_flight_stops_dependent_work, index, index + 1);
    }
}

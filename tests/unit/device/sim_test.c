/* The times of the sim device, compared with values computed by hand, and its bookkeeping. */
#include "device/device.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

#define CHECK_OK(call) ck_assert_int_eq((call), CAPU_OK)
#define PAGE ((uint64_t)2 << 20)

static struct device *device;
static capu_stream compute;
static capu_stream d2h;
static capu_stream h2d;
static char *memory; /* one mapped page */

static void set_up(void)
{
    const struct device_options options = {
        .d2h_bytes_per_s = 1000000000, .h2d_bytes_per_s = 2000000000, .copy_latency_ns = 1000};
    device_page page;
    void *address = NULL;

    CHECK_OK(sim_device_create(&options, &device, NULL, 0));
    CHECK_OK(device_stream_create(device, DEVICE_COMPUTE, &compute));
    CHECK_OK(device_stream_create(device, DEVICE_D2H, &d2h));
    CHECK_OK(device_stream_create(device, DEVICE_H2D, &h2d));
    CHECK_OK(device_page_create(device, &page));
    CHECK_OK(device_range_reserve(device, 2 * PAGE, &address));
    CHECK_OK(device_map(device, address, &page, 1));
    memory = address;
}

static void tear_down(void)
{
    device_destroy(device);
}

static void run(capu_stream stream, uint64_t ns)
{
    const struct device_work work = {.name = "op", .duration_ns = ns};

    CHECK_OK(device_run(device, stream, &work));
}

static struct device_event *record(capu_stream stream)
{
    struct device_event *event = NULL;

    CHECK_OK(device_event_create(device, true, &event));
    CHECK_OK(device_event_record(device, event, stream));
    return event;
}

/* Waits for an event, destroys it, and returns the time. */
static uint64_t wait_and_drop(struct device_event *event)
{
    CHECK_OK(device_event_wait(device, event));
    device_event_destroy(device, event);
    return device_now_ns(device);
}

START_TEST(defaults_are_those_of_the_paper)
{
    struct device *other = NULL;

    CHECK_OK(sim_device_create(NULL, &other, NULL, 0));
    ck_assert_str_eq(other->capabilities.name, "sim");
    ck_assert_uint_eq(other->capabilities.page_bytes, PAGE);
    ck_assert_uint_eq(other->capabilities.link.d2h_bytes_per_s, 12000000000u);
    ck_assert_uint_eq(other->capabilities.link.h2d_bytes_per_s, 12000000000u);
    ck_assert_uint_eq(other->capabilities.link.d2h_duplex_bytes_per_s, 12000000000u);
    ck_assert_uint_eq(other->capabilities.link.h2d_duplex_bytes_per_s, 12000000000u);
    ck_assert_uint_eq(other->capabilities.link.copy_latency_ns, 10000);
    ck_assert(other->capabilities.is_simulated);
    device_destroy(other);
}
END_TEST

START_TEST(times_follow_the_execution_model)
{
    char target[4] = "abc";
    void *host = NULL;
    struct device_event *out;
    struct device_event *op;
    struct device_event *in;

    CHECK_OK(device_host_alloc(device, PAGE, &host));
    run(compute, 5000);
    op = record(compute);
    CHECK_OK(device_stream_follow(device, d2h, op));
    CHECK_OK(device_copy_out(device, d2h, host, memory, 1000001)); /* 5000 .. 1006001 */
    out = record(d2h);
    run(compute, 7000); /* 5000 .. 12000 */
    CHECK_OK(device_stream_follow(device, h2d, out));
    CHECK_OK(device_copy_in(device, h2d, memory, host, 1000001)); /* 1006001 .. 1507002 */
    in = record(h2d);
    CHECK_OK(device_stream_follow(device, compute, in));
    run(compute, 8); /* 1507002 .. 1507010 */
    ck_assert_uint_eq(device_now_ns(device), 0);
    ck_assert_int_eq(device_event_query(device, op), CAPU_NOT_READY);
    ck_assert_uint_eq(wait_and_drop(out), 1006001);
    CHECK_OK(device_event_query(device, op)); /* the host has waited for a later event */
    ck_assert_uint_eq(wait_and_drop(op), 1006001);
    ck_assert_uint_eq(wait_and_drop(in), 1507002);
    CHECK_OK(device_fill(device, compute, memory, 0, PAGE)); /* takes no time */
    CHECK_OK(device_stream_synchronize(device, compute));
    ck_assert_uint_eq(device_now_ns(device), 1507010);
    /* Work starts no earlier than the host issues it. */
    CHECK_OK(device_copy_out(device, d2h, target, memory, 3));
    CHECK_OK(device_stream_synchronize(device, d2h));
    ck_assert_uint_eq(device_now_ns(device), 1507010 + 1003);
    ck_assert_mem_eq(target, "\0\0\0", 4);
}
END_TEST

START_TEST(streams_of_one_engine_take_turns)
{
    capu_stream other = NULL;
    struct device_event *start;
    struct device_event *end;
    uint64_t ns = 0;

    CHECK_OK(device_stream_create(device, DEVICE_COMPUTE, &other));
    run(compute, 100);
    start = record(other); /* on an idle stream: now */
    run(other, 50);        /* 100 .. 150 */
    end = record(other);
    run(compute, 25); /* 150 .. 175 */
    CHECK_OK(device_stream_synchronize(device, compute));
    ck_assert_uint_eq(device_now_ns(device), 175);
    CHECK_OK(device_event_elapsed(device, start, end, &ns));
    ck_assert_uint_eq(ns, 150);
    device_event_destroy(device, start);
    device_event_destroy(device, end);
}
END_TEST

/* Half as fast while both directions are busy: a copy that has begun becomes slower when one in the
   other direction begins, and faster when that ends. */
START_TEST(directions_can_slow_each_other_down)
{
    const struct device_options options = {.d2h_bytes_per_s = 1000000000,
                                           .h2d_bytes_per_s = 2000000000,
                                           .d2h_duplex_bytes_per_s = 500000000,
                                           .h2d_duplex_bytes_per_s = 1000000000,
                                           .copy_latency_ns = 1};
    struct device_event *begin;
    struct device_event *out;
    struct device_event *in;
    device_page page;
    void *host = NULL;
    void *at = NULL;
    uint64_t ns = 0;

    device_destroy(device);
    CHECK_OK(sim_device_create(&options, &device, NULL, 0));
    ck_assert_uint_eq(device->capabilities.link.d2h_duplex_bytes_per_s, 500000000);
    CHECK_OK(device_stream_create(device, DEVICE_COMPUTE, &compute));
    CHECK_OK(device_stream_create(device, DEVICE_D2H, &d2h));
    CHECK_OK(device_stream_create(device, DEVICE_H2D, &h2d));
    CHECK_OK(device_page_create(device, &page));
    CHECK_OK(device_range_reserve(device, PAGE, &at));
    CHECK_OK(device_map(device, at, &page, 1));
    CHECK_OK(device_host_alloc(device, PAGE, &host));
    begin = record(d2h);
    CHECK_OK(device_copy_out(device, d2h, host, at, 999)); /* alone: 0 .. 1000 */
    out = record(d2h);
    run(compute, 500);
    in = record(compute);
    CHECK_OK(device_stream_follow(device, h2d, in));
    device_event_destroy(device, in);
    CHECK_OK(device_copy_in(device, h2d, at, host, 1998)); /* alone: 500 .. 1500 */
    in = record(h2d);
    ck_assert_int_eq(device_event_query(device, out), CAPU_NOT_READY);
    ck_assert_int_eq(device_event_elapsed(device, begin, out, &ns), CAPU_NOT_READY);
    CHECK_OK(device_event_wait(device, in));
    CHECK_OK(device_event_elapsed(device, begin, out, &ns));
    ck_assert_uint_eq(ns, 1500); /* 500 alone, 1000 at half its speed */
    CHECK_OK(device_event_elapsed(device, begin, in, &ns));
    ck_assert_uint_eq(ns, 2000); /* 1000 at half its speed, 500 alone */
    device_event_destroy(device, begin);
    device_event_destroy(device, out);
    device_event_destroy(device, in);
}
END_TEST

/* An event that is destroyed, or recorded again, before the work it was recorded after has ended.
 */
START_TEST(events_can_be_forgotten)
{
    struct device_event *first;
    struct device_event *second;
    struct device_event *third;
    uint64_t ns = 0;

    run(compute, 100);
    first = record(compute);
    second = record(compute);
    third = record(compute);
    device_event_destroy(device, second);
    run(compute, 100);
    CHECK_OK(device_event_record(device, first, compute));
    for (int i = 0; i < 1000; i++) { /* what is pending moves to a larger ring */
        run(compute, 1);
    }
    CHECK_OK(device_event_wait(device, third));
    ck_assert_uint_eq(device_now_ns(device), 100);
    ck_assert_int_eq(device_event_query(device, first), CAPU_NOT_READY);
    CHECK_OK(device_stream_synchronize(device, compute));
    CHECK_OK(device_event_elapsed(device, third, first, &ns));
    ck_assert_uint_eq(ns, 100);
    ck_assert_uint_eq(device_now_ns(device), 1200);
    device_event_destroy(device, first);
    device_event_destroy(device, third);
}
END_TEST

START_TEST(copies_of_unmapped_memory_are_rejected)
{
    char target[8] = "1234567";

    ck_assert_int_eq(device_copy_out(device, d2h, target, memory + PAGE, 8), CAPU_INVALID);
    ck_assert_int_eq(device_copy_out(device, d2h, target, memory + PAGE - 4, 8), CAPU_INVALID);
    ck_assert_int_eq(device_copy_in(device, h2d, target, target, 8), CAPU_INVALID);
    ck_assert_int_eq(device_fill(device, compute, memory, 0, PAGE + 1), CAPU_INVALID);
    ck_assert_int_eq(device_copy_within(device, compute, memory, memory + PAGE, 1), CAPU_INVALID);
    ck_assert_str_eq(target, "1234567");
    CHECK_OK(device_copy_out(device, d2h, target, memory + PAGE - 8, 8));
}
END_TEST

START_TEST(copies_do_not_change_host_memory)
{
    char *host = NULL;

    CHECK_OK(device_host_alloc(device, (uint64_t)1 << 36, (void **)&host)); /* lazy */
    ck_assert_int_eq(host[12345678], 0);
    host[5] = 7;
    CHECK_OK(device_copy_out(device, d2h, host, memory, PAGE));
    CHECK_OK(device_stream_synchronize(device, d2h));
    ck_assert_int_eq(host[5], 7);
    device_host_free(device, host, (uint64_t)1 << 36);
}
END_TEST

START_TEST(a_failure_stops_the_device)
{
    char text[100] = "";

    ck_assert(sim_device_fail(device, "the bad op"));
    ck_assert_int_eq(device_failure(device, text, sizeof(text)), CAPU_OP_FAILED);
    ck_assert_ptr_nonnull(strstr(text, "the bad op"));
    ck_assert_int_eq(device_stream_synchronize(device, compute), CAPU_OP_FAILED);
    ck_assert_int_eq(device_fill(device, compute, memory, 0, 1), CAPU_OP_FAILED);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sim");
    TCase *tcase = tcase_create("sim");

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, defaults_are_those_of_the_paper);
    tcase_add_test(tcase, times_follow_the_execution_model);
    tcase_add_test(tcase, streams_of_one_engine_take_turns);
    tcase_add_test(tcase, directions_can_slow_each_other_down);
    tcase_add_test(tcase, events_can_be_forgotten);
    tcase_add_test(tcase, copies_of_unmapped_memory_are_rejected);
    tcase_add_test(tcase, copies_do_not_change_host_memory);
    tcase_add_test(tcase, a_failure_stops_the_device);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
